/*
 * Changes a tree: sets, copies and removes nodes at a path. Start-up and tools only. Does not parse
 * YAML (yaml.c) or write it (write.c).
 */

#include "libfl/conf/edit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/conf/conf_impl.h"

/* Copies a place into the document; NULL without memory. */
static const char *keep_place(struct fl_conf_doc *doc, const char *text)
{
    struct fl__conf_place *place = doc->places;
    size_t size = strlen(text) + 1;

    while (place != NULL && strcmp(place->text, text) != 0) {
        place = place->next;
    }
    if (place == NULL) {
        place = malloc(sizeof(*place) + size);
        if (place == NULL) {
            return NULL;
        }
        (void)memcpy(place->text, text, size);
        place->next = doc->places;
        doc->places = place;
    }
    return place->text;
}

/* Gives `to` the place and line of `from`, which may be in another document. */
static int copy_place(struct fl_conf_doc *doc, struct fl_conf_node *to,
                      const struct fl_conf_node *from)
{
    const char *place = from->place != NULL ? from->place : from->doc->name;

    to->line = from->line;
    if (strcmp(place, doc->name) == 0) {
        return FL_OK;
    }
    to->place = keep_place(doc, place);
    return to->place != NULL ? FL_OK : FL_ENOMEM;
}

/* Depth of nested collections, at most FL__CONF_MAX_DEPTH: 0 for a scalar. */
static size_t tree_depth(const struct fl_conf_node *node)
{
    size_t most = 0;
    size_t i;

    for (i = 0; i < node->n; i++) {
        size_t n = tree_depth(node->all[i]);

        most = n > most ? n : most;
    }
    return node->kind == FL_CONF_SCALAR ? 0 : most + 1;
}

/* Copies `from` and its subtree; the copy becomes a child of `parent`. */
static int copy_tree(struct fl_conf_doc *doc, const struct fl_conf_node *from,
                     const struct fl_conf_node *parent, const char *key, struct fl_conf_node **ret)
{
    struct fl_conf_node *node = NULL;
    size_t i;
    int rv = fl__conf_node(doc, from->kind, parent, key, &node);

    if (rv != FL_OK) {
        goto done;
    }
    rv = copy_place(doc, node, from);
    if (rv != FL_OK) {
        goto done;
    }
    if (from->text != NULL) {
        node->null = from->null;
        node->text = fl_str_dup(from->text);
        if (node->text == NULL) {
            rv = FL_ENOMEM;
            goto done;
        }
    }
    for (i = 0; i < from->n; i++) {
        const char *name = from->kind == FL_CONF_MAP ? from->keys[i] : NULL;
        struct fl_conf_node *child = NULL;

        rv = copy_tree(doc, from->all[i], node, name, &child);
        if (rv != FL_OK) {
            goto done;
        }
        rv = fl__conf_attach(node, name, child);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    *ret = node;
    return rv;
}

int fl_conf_copy(const struct fl_conf_doc *from, struct fl_conf_doc **ret)
{
    struct fl_conf_doc *doc = NULL;
    int rv = fl__conf_new(from->name, &doc);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = copy_tree(doc, from->root, NULL, NULL, &doc->root);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = doc;
    return FL_OK;
fail:
    fl_conf_free(doc);
    return FL_ENOMEM; /* A node of any document is within the limits. */
}

/* --- one value at a path --- */

/* A change in progress; `value` is the name of its origin in messages. */
struct change {
    struct fl_conf_doc *doc;
    const struct fl_conf_node *value;
    struct fl_err *err;
};

FL_PRINTF(2, 3)
static int edit_error(const struct change *c, const char *fmt, ...)
{
    char place[FL_ERR_BUF_SIZE];
    char text[FL_ERR_BUF_SIZE];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return fl_err_set(c->err, FL_ECONF, "%s: %s", fl__conf_at(c->value, place, sizeof(place)),
                      text);
}

static int edit_failed(const struct change *c, int rv)
{
    return rv == FL_ELIMIT ? edit_error(c, "more than %d values in one file", FL__CONF_MAX_NODES)
                           : fl_err_set(c->err, rv, "%s", fl_strerror(rv));
}

/* Sets the entry `key` of `map` to `node`, replacing an existing one. */
static int put_entry(const struct change *c, struct fl_conf_node *map, const char *key,
                     struct fl_conf_node *node)
{
    size_t i = fl__conf_index(map, key);

    if (i < map->n) {
        map->all[i] = node;
        return FL_OK;
    }
    if (map->n >= FL__CONF_MAX_ENTRIES) {
        return edit_error(c, "more than %d entries in one section", FL__CONF_MAX_ENTRIES);
    }
    if (fl__conf_attach(map, key, node) != FL_OK) {
        return edit_failed(c, FL_ENOMEM);
    }
    return FL_OK;
}

/* The section `key` of `map`, created when it is missing or empty. */
static int enter_section(const struct change *c, struct fl_conf_node *map, const char *key,
                         struct fl_conf_node **ret)
{
    size_t i = fl__conf_index(map, key);
    struct fl_conf_node *node = i < map->n ? map->all[i] : NULL;
    char place[FL_ERR_BUF_SIZE];
    int rv;

    if (node != NULL && node->kind != FL_CONF_MAP && !node->null) {
        return edit_error(c, "'%s' is %s (%s), nothing can be set below it", node->path,
                          node->kind == FL_CONF_SEQ ? "a list" : "a single value",
                          fl__conf_at(node, place, sizeof(place)));
    }
    if (node == NULL || node->kind != FL_CONF_MAP) {
        rv = fl__conf_node(c->doc, FL_CONF_MAP, map, key, &node);
        if (rv != FL_OK) {
            return edit_failed(c, rv);
        }
        rv = copy_place(c->doc, node, c->value);
        if (rv != FL_OK) {
            return edit_failed(c, rv);
        }
        rv = put_entry(c, map, key, node);
        if (rv != FL_OK) {
            return rv;
        }
    }
    *ret = node;
    return FL_OK;
}

/* Copies the next key of a path into `out`; NULL: invalid key. */
static const char *next_key(const char *path, char out[FL__CONF_MAX_KEY + 1])
{
    size_t n = strcspn(path, ".");
    size_t i;

    if (n == 0 || n > FL__CONF_MAX_KEY || (path[n] == '.' && path[n + 1] == '\0')) {
        return NULL;
    }
    for (i = 0; i < n; i++) {
        if ((unsigned char)path[i] < 0x20 || path[i] == 0x7F) {
            return NULL;
        }
    }
    (void)memcpy(out, path, n);
    out[n] = '\0';
    return path[n] == '.' ? path + n + 1 : path + n;
}

int fl_conf_put(struct fl_conf_doc *doc, const char *path, const struct fl_conf_node *value,
                struct fl_err *err)
{
    const struct change c = {doc, value, err};
    struct fl_conf_node *map = doc->root;
    struct fl_conf_node *node = NULL;
    char key[FL__CONF_MAX_KEY + 1];
    const char *rest = path;
    size_t below = tree_depth(value);
    size_t depth = 1;
    int rv;

    FL_REQUIRE(map->kind == FL_CONF_MAP);
    for (;; depth++) {
        rest = next_key(rest, key);
        if (rest == NULL) {
            return edit_error(
                &c, "expected keys joined by dots, such as server.rounds, found '%.80s'", path);
        }
        if (depth + below > FL__CONF_MAX_DEPTH) {
            return edit_error(&c, "nested deeper than %d levels", FL__CONF_MAX_DEPTH);
        }
        if (*rest == '\0') {
            break;
        }
        rv = enter_section(&c, map, key, &map);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = copy_tree(doc, value, map, key, &node);
    if (rv != FL_OK) {
        return edit_failed(&c, rv);
    }
    return put_entry(&c, map, key, node);
}

void fl_conf_drop(struct fl_conf_doc *doc, const char *path)
{
    struct fl_conf_node *map = doc->root;
    char key[FL__CONF_MAX_KEY + 1];
    size_t i;

    for (;;) {
        path = next_key(path, key);
        i = path != NULL && map->kind == FL_CONF_MAP ? fl__conf_index(map, key) : map->n;
        if (i == map->n) {
            return;
        }
        if (*path == '\0') {
            break;
        }
        map = map->all[i];
    }
    free(map->keys[i]);
    map->n--;
    (void)memmove(map->keys + i, map->keys + i + 1, (map->n - i) * sizeof(*map->keys));
    (void)memmove(map->all + i, map->all + i + 1, (map->n - i) * sizeof(struct fl_conf_node *));
}

int fl_conf_assign(struct fl_conf_doc *doc, const char *who, const char *text, struct fl_err *err)
{
    const char *equal = strchr(text, '=');
    struct fl_conf_doc *value = NULL;
    char path[FL__CONF_MAX_KEY + 1]; /* longest path of keys */
    char place[FL__CONF_MAX_KEY + 64];
    struct fl_conf_node *node;
    int rv;

    if (equal == NULL || equal == text || (size_t)(equal - text) >= sizeof(path)) {
        return fl_err_set(err, FL_ECONF, "%s: expected key=value, found '%.80s'", who, text);
    }
    (void)snprintf(path, sizeof(path), "%.*s", (int)(equal - text), text);
    (void)snprintf(place, sizeof(place), "%.32s %s", who, path);
    rv = fl__conf_new(place, &value);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_strerror(rv));
    }
    rv = fl__conf_build(value, equal + 1, strlen(equal + 1), /* bare= */ true, err);
    if (rv != FL_OK) {
        goto done;
    }
    /* Without line numbers: the text is not from a file. */
    for (node = value->nodes; node != NULL; node = node->next) {
        node->line = 0;
    }
    rv = fl_conf_put(doc, path, value->root, err);
done:
    fl_conf_free(value);
    return rv;
}
