/*
 * The tree of a YAML file: creating its nodes, reading them, freeing. Does not parse (yaml.c) or
 * change values (edit.c).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/conf/conf_impl.h"

int fl__conf_new(const char *name, struct fl_conf_doc **ret)
{
    struct fl_conf_doc *doc = calloc(1, sizeof(*doc));

    if (doc == NULL || (doc->name = fl_str_dup(name)) == NULL) {
        free(doc);
        return FL_ENOMEM;
    }
    *ret = doc;
    return FL_OK;
}

static char *make_path(const struct fl_conf_node *parent, const char *key)
{
    char path[FL__CONF_MAX_PATH + 1];
    int n = 0;

    if (parent == NULL) {
        return fl_str_dup("");
    }
    if (key == NULL) {
        n = snprintf(path, sizeof(path), "%s[%zu]", parent->path, parent->n);
    } else {
        n = snprintf(path, sizeof(path), "%s%s%s", parent->path, parent->path[0] != '\0' ? "." : "",
                     key);
    }
    /* Longer keys would be cut in messages anyway; depth times key length bounds the path. */
    return n < 0 ? NULL : fl_str_dup(path);
}

int fl__conf_node(struct fl_conf_doc *doc, enum fl_conf_kind kind,
                  const struct fl_conf_node *parent, const char *key, struct fl_conf_node **ret)
{
    struct fl_conf_node *node;

    if (doc->n_nodes >= FL__CONF_MAX_NODES) {
        return FL_ELIMIT;
    }
    node = calloc(1, sizeof(*node));
    if (node == NULL || (node->path = make_path(parent, key)) == NULL) {
        free(node);
        return FL_ENOMEM;
    }
    node->doc = doc;
    node->kind = kind;
    node->next = doc->nodes;
    doc->nodes = node;
    doc->n_nodes++;
    *ret = node;
    return FL_OK;
}

static int tree_grow(struct fl_conf_node *parent)
{
    size_t cap = parent->cap == 0 ? 8 : parent->cap * 2;
    struct fl_conf_node **all = realloc(parent->all, cap * sizeof(*all));
    char **keys;

    if (all == NULL) {
        return FL_ENOMEM;
    }
    parent->all = all;
    if (parent->kind == FL_CONF_MAP) {
        keys = realloc(parent->keys, cap * sizeof(*keys));
        if (keys == NULL) {
            return FL_ENOMEM;
        }
        parent->keys = keys;
    }
    parent->cap = cap;
    return FL_OK;
}

int fl__conf_attach(struct fl_conf_node *parent, const char *key, struct fl_conf_node *node)
{
    char *copy = NULL;

    if (parent->n == parent->cap && tree_grow(parent) != FL_OK) {
        return FL_ENOMEM;
    }
    if (parent->kind == FL_CONF_MAP) {
        copy = fl_str_dup(key);
        if (copy == NULL) {
            return FL_ENOMEM;
        }
        parent->keys[parent->n] = copy;
    }
    parent->all[parent->n++] = node;
    return FL_OK;
}

void fl_conf_free(struct fl_conf_doc *doc)
{
    struct fl__conf_place *place;
    struct fl_conf_node *node;
    size_t i;

    if (doc == NULL) {
        return;
    }
    while ((place = doc->places) != NULL) {
        doc->places = place->next;
        free(place);
    }
    while ((node = doc->nodes) != NULL) {
        doc->nodes = node->next;
        for (i = 0; node->keys != NULL && i < node->n; i++) {
            free(node->keys[i]);
        }
        free(node->keys);
        free(node->all);
        free(node->path);
        free(node->text);
        free(node);
    }
    free(doc->name);
    free(doc);
}

/* --- questions --- */

const struct fl_conf_node *fl_conf_root(const struct fl_conf_doc *doc)
{
    return doc->root;
}

enum fl_conf_kind fl_conf_kind(const struct fl_conf_node *node)
{
    return node->kind;
}

size_t fl_conf_line(const struct fl_conf_node *node)
{
    return node->line;
}

const char *fl_conf_path(const struct fl_conf_node *node)
{
    return node->path;
}

const char *fl_conf_text(const struct fl_conf_node *node)
{
    return node->kind == FL_CONF_SCALAR ? node->text : NULL;
}

size_t fl_conf_size(const struct fl_conf_node *node)
{
    return node->n;
}

const struct fl_conf_node *fl_conf_at(const struct fl_conf_node *node, size_t i)
{
    FL_REQUIRE(i < node->n);
    return node->all[i];
}

const char *fl_conf_key(const struct fl_conf_node *map, size_t i)
{
    FL_REQUIRE(map->kind == FL_CONF_MAP && i < map->n);
    return map->keys[i];
}

size_t fl__conf_index(const struct fl_conf_node *map, const char *key)
{
    size_t i = 0;

    while (i < map->n && strcmp(map->keys[i], key) != 0) {
        i++;
    }
    return i;
}

const struct fl_conf_node *fl_conf_get(const struct fl_conf_node *map, const char *key)
{
    size_t i;

    if (map == NULL || map->kind != FL_CONF_MAP) {
        return NULL;
    }
    i = fl__conf_index(map, key);
    return i < map->n ? map->all[i] : NULL;
}

const char *fl__conf_at(const struct fl_conf_node *node, char *out, size_t size)
{
    const char *place = node->place != NULL ? node->place : node->doc->name;

    if (node->line == 0) {
        (void)snprintf(out, size, "%s", place);
    } else {
        (void)snprintf(out, size, "%s:%zu", place, node->line);
    }
    return out;
}

bool fl__conf_is_null(const struct fl_conf_node *node)
{
    return node->null;
}

const char *fl__conf_name(const struct fl_conf_doc *doc)
{
    return doc->name;
}
