/*
 * Builds a tree from libyaml's events. One frame of an explicit stack per open collection, so the
 * depth is bounded by FL__CONF_MAX_DEPTH and not by the C stack. Every node knows its document, its
 * line and its full key. Does not check keys against option tables (apply.c).
 */

#include "libfl/conf/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "libfl/base/buf.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/conf/conf_impl.h"

struct frame {
    struct fl_conf_node *node;
    char *key; /* key of the entry whose value comes next */
    size_t key_line;
};

struct builder {
    struct fl_conf_doc *doc;
    struct fl_err *err;
    yaml_parser_t parser;
    struct frame stack[FL__CONF_MAX_DEPTH];
    size_t depth;
    size_t n_docs;
    bool bare;
};

FL_PRINTF(3, 4)
static int yaml_error(const struct builder *b, size_t line, const char *fmt, ...)
{
    char text[FL_ERR_BUF_SIZE];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return b->bare ? fl_err_set(b->err, FL_ECONF, "%s: %s", b->doc->name, text)
                   : fl_err_set(b->err, FL_ECONF, "%s:%zu: %s", b->doc->name, line, text);
}

static int yaml_no_memory(const struct builder *b)
{
    return fl_err_set(b->err, FL_ENOMEM, "%s: %s", b->doc->name, fl_strerror(FL_ENOMEM));
}

/* --- errors that libyaml would not report clearly --- */

/* True when the indentation of line `line` (1-based) contains a tab. */
static bool tab_indents(const uint8_t *data, size_t len, size_t line)
{
    size_t at = 1;
    size_t i = 0;

    for (; i < len && at < line; i++) {
        at += data[i] == '\n';
    }
    for (; i < len && (data[i] == ' ' || data[i] == '\t'); i++) {
        if (data[i] == '\t') {
            return true;
        }
    }
    return false;
}

static int syntax_error(const struct builder *b, const uint8_t *data, size_t len)
{
    const yaml_parser_t *p = &b->parser;
    size_t line = p->problem_mark.line + 1;

    if (p->error == YAML_MEMORY_ERROR) {
        return yaml_no_memory(b);
    }
    if (p->error == YAML_READER_ERROR) {
        size_t i;

        for (line = 1, i = 0; i < p->problem_offset && i < len; i++) {
            line += data[i] == '\n';
        }
        return yaml_error(b, line, "bad YAML: %s", p->problem);
    }
    if (tab_indents(data, len, line)) {
        return yaml_error(b, line, "a tab cannot indent in YAML; use spaces");
    }
    if (p->context != NULL) {
        return yaml_error(b, line, "bad YAML: %s (%s that begins on line %zu)",
                          p->problem != NULL ? p->problem : "syntax error", p->context,
                          p->context_mark.line + 1);
    }
    return yaml_error(b, line, "bad YAML: %s", p->problem != NULL ? p->problem : "syntax error");
}

/* --- building --- */

static bool null_text(const char *text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A new node, attached to the innermost open collection. */
static int new_node(struct builder *b, enum fl_conf_kind kind, const yaml_mark_t *mark,
                    struct fl_conf_node **ret)
{
    struct frame *frame = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
    const char *key = frame != NULL ? frame->key : NULL;
    struct fl_conf_node *node = NULL;
    int rv = fl__conf_node(b->doc, kind, frame != NULL ? frame->node : NULL, key, &node);

    if (rv == FL_ELIMIT) {
        return yaml_error(b, mark->line + 1, "more than %d values in one file", FL__CONF_MAX_NODES);
    }
    if (rv != FL_OK) {
        return yaml_no_memory(b);
    }
    /* The line of a section is that of its key, not of its first entry. */
    node->line = key != NULL ? frame->key_line : mark->line + 1;
    *ret = node;
    if (frame == NULL) {
        b->doc->root = node;
        return FL_OK;
    }
    if (fl__conf_attach(frame->node, key, node) != FL_OK) {
        return yaml_no_memory(b);
    }
    free(frame->key);
    frame->key = NULL;
    return FL_OK;
}

static int take_key(struct builder *b, struct frame *frame, const yaml_event_t *event)
{
    const char *key = (const char *)event->data.scalar.value;
    const struct fl_conf_node *map = frame->node;
    size_t line = event->start_mark.line + 1;
    const char *dot = map->path[0] != '\0' ? "." : "";
    size_t i;

    if (event->data.scalar.length == 0 || event->data.scalar.length > FL__CONF_MAX_KEY) {
        return yaml_error(b, line, "a key must have 1 to %d bytes", FL__CONF_MAX_KEY);
    }
    for (i = 0; key[i] != '\0'; i++) {
        if ((unsigned char)key[i] < 0x20 || key[i] == 0x7F) {
            return yaml_error(b, line, "a key must not have control characters");
        }
    }
    for (i = 0; i < map->n; i++) {
        if (strcmp(map->keys[i], key) == 0) {
            return yaml_error(b, line, "key '%s%s%s': given twice, first on line %zu", map->path,
                              dot, key, map->all[i]->line);
        }
    }
    if (map->n >= FL__CONF_MAX_ENTRIES) {
        return yaml_error(b, line, "more than %d entries in one section", FL__CONF_MAX_ENTRIES);
    }
    frame->key_line = line;
    frame->key = fl_str_dup(key);
    return frame->key != NULL ? FL_OK : yaml_no_memory(b);
}

static int check_plain(const struct builder *b, const yaml_event_t *event, const char *anchor,
                       const char *tag)
{
    if (anchor != NULL) {
        return yaml_error(b, event->start_mark.line + 1,
                          "anchors and aliases are not supported, write the value again");
    }
    if (tag != NULL) {
        return yaml_error(b, event->start_mark.line + 1, "tags such as !!str are not supported");
    }
    return FL_OK;
}

static int on_scalar(struct builder *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    struct frame *frame = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
    struct fl_conf_node *node = NULL;
    int rv = check_plain(b, event, (const char *)event->data.scalar.anchor,
                         (const char *)event->data.scalar.tag);

    if (rv != FL_OK) {
        return rv;
    }
    if (strlen(text) != event->data.scalar.length) {
        return yaml_error(b, event->start_mark.line + 1, "a text must not have a NUL character");
    }
    if (frame != NULL && frame->node->kind == FL_CONF_MAP && frame->key == NULL) {
        return take_key(b, frame, event);
    }
    rv = new_node(b, FL_CONF_SCALAR, &event->start_mark, &node);
    if (rv != FL_OK) {
        return rv;
    }
    node->null = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && null_text(text);
    node->text = fl_str_dup(text);
    return node->text != NULL ? FL_OK : yaml_no_memory(b);
}

static int on_open_collection(struct builder *b, const yaml_event_t *event, enum fl_conf_kind kind)
{
    bool map = kind == FL_CONF_MAP;
    struct frame *frame = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
    struct fl_conf_node *node = NULL;
    size_t line = event->start_mark.line + 1;
    int rv = check_plain(
        b, event,
        (const char *)(map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor),
        (const char *)(map ? event->data.mapping_start.tag : event->data.sequence_start.tag));

    if (rv != FL_OK) {
        return rv;
    }
    if (b->depth == FL__CONF_MAX_DEPTH) {
        return yaml_error(b, line, "nested deeper than %d levels", FL__CONF_MAX_DEPTH);
    }
    if (frame != NULL && frame->node->kind == FL_CONF_MAP && frame->key == NULL) {
        return yaml_error(b, line, "a key must be a text");
    }
    rv = new_node(b, kind, &event->start_mark, &node);
    if (rv != FL_OK) {
        return rv;
    }
    b->stack[b->depth++] = (struct frame){.node = node};
    return FL_OK;
}

static int on_event(struct builder *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++b->n_docs > 1) {
            return yaml_error(b, event->start_mark.line + 1,
                              "a second document begins, one file holds only one");
        }
        return FL_OK;
    case YAML_ALIAS_EVENT:
        return yaml_error(b, event->start_mark.line + 1,
                          "anchors and aliases are not supported, write the value again");
    case YAML_SCALAR_EVENT:
        return on_scalar(b, event);
    case YAML_MAPPING_START_EVENT:
        return on_open_collection(b, event, FL_CONF_MAP);
    case YAML_SEQUENCE_START_EVENT:
        return on_open_collection(b, event, FL_CONF_SEQ);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        b->depth--;
        return FL_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return FL_OK;
    }
    return FL_OK;
}

static int run_parser(struct builder *b, const uint8_t *data, size_t len)
{
    bool end = false;
    int rv;

    while (!end) {
        yaml_event_t event;

        if (yaml_parser_parse(&b->parser, &event) == 0) {
            return syntax_error(b, data, len);
        }
        end = event.type == YAML_STREAM_END_EVENT;
        rv = on_event(b, &event);
        yaml_event_delete(&event);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* An empty text is null, like a key without a value. */
static int add_null(struct builder *b)
{
    struct fl_conf_node *node = NULL;

    if (fl__conf_node(b->doc, FL_CONF_SCALAR, NULL, NULL, &node) != FL_OK ||
        (node->text = fl_str_dup("")) == NULL)
    {
        return yaml_no_memory(b);
    }
    node->null = true;
    b->doc->root = node;
    return FL_OK;
}

int fl__conf_build(struct fl_conf_doc *doc, const void *data, size_t len, bool bare,
                   struct fl_err *err)
{
    struct builder b = {.doc = doc, .err = err, .bare = bare};
    const uint8_t *bytes = data;
    size_t line = 1;
    size_t i;
    int rv;

    if (len > FL__CONF_MAX_BYTES) {
        return fl_err_set(b.err, FL_ECONF, "%s: the file has more than %u bytes", b.doc->name,
                          FL__CONF_MAX_BYTES);
    }
    for (i = 0; i < len;) {
        size_t n = fl_str_utf8(bytes + i, len - i);

        if (n == 0) {
            return yaml_error(&b, line, "not UTF-8 text");
        }
        line += bytes[i] == '\n';
        i += n;
    }
    if (yaml_parser_initialize(&b.parser) == 0) {
        return yaml_no_memory(&b);
    }
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, data, len);
    rv = run_parser(&b, data, len);
    yaml_parser_delete(&b.parser);
    for (i = 0; i < b.depth; i++) {
        free(b.stack[i].key);
    }
    if (rv != FL_OK) {
        return rv;
    }
    if (b.bare) {
        return b.doc->root != NULL ? FL_OK : add_null(&b);
    }
    if (b.doc->root == NULL || b.doc->root->null) {
        return fl_err_set(b.err, FL_ECONF, "%s: the file is empty", b.doc->name);
    }
    if (b.doc->root->kind != FL_CONF_MAP) {
        return yaml_error(&b, b.doc->root->line,
                          "expected 'key: value' lines at the top of the file");
    }
    return FL_OK;
}

int fl_conf_parse(const char *name, const void *data, size_t len, struct fl_conf_doc **ret,
                  struct fl_err *err)
{
    struct fl_conf_doc *doc = NULL;
    int rv = fl__conf_new(name, &doc);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s: %s", name, fl_strerror(rv));
    }
    rv = fl__conf_build(doc, data, len, /* bare= */ false, err);
    if (rv != FL_OK) {
        fl_conf_free(doc);
        return rv;
    }
    *ret = doc;
    return FL_OK;
}

void fl_conf_collect(struct fl_conf_doc *doc, struct fl_findings *all)
{
    doc->all = all;
}

int fl_conf_load(const char *path, struct fl_conf_doc **ret, struct fl_err *err)
{
    struct fl_buf buf;
    int rv = fl_fs_read(path, FL__CONF_MAX_BYTES, &buf, err);

    if (rv == FL_ELIMIT) {
        return fl_err_set(err, FL_ECONF, "%s: the file has more than %u bytes", path,
                          FL__CONF_MAX_BYTES);
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_conf_parse(path, buf.data != NULL ? (const void *)buf.data : "", buf.len, ret, err);
    fl_buf_done(&buf);
    return rv;
}
