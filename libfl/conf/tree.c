/* The tree of a YAML file: questions and its end. */

#include <stdlib.h>
#include <string.h>

#include "libfl/conf/conf_impl.h"

void fl_conf_free(struct fl_conf_doc *doc)
{
    struct fl_conf_node *node;
    size_t i;

    if (doc == NULL) {
        return;
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

const struct fl_conf_node *fl_conf_get(const struct fl_conf_node *map, const char *key)
{
    size_t i;

    if (map == NULL || map->kind != FL_CONF_MAP) {
        return NULL;
    }
    for (i = 0; i < map->n; i++) {
        if (strcmp(map->keys[i], key) == 0) {
            return map->all[i];
        }
    }
    return NULL;
}

bool fl__conf_is_null(const struct fl_conf_node *node)
{
    return node->null;
}

const char *fl__conf_name(const struct fl_conf_doc *doc)
{
    return doc->name;
}

const struct fl_conf_doc *fl__conf_doc(const struct fl_conf_node *node)
{
    return node->doc;
}
