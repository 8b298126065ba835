/*
 * Writes a tree as YAML text with libyaml's emitter, one event per node; the depth is bounded like
 * the tree's. Start-up and tools only.
 */

#include <ctype.h>
#include <string.h>
#include <yaml.h>

#include "libfl/base/buf.h"
#include "libfl/conf/conf_impl.h"
#include "libfl/conf/edit.h"

struct writer {
    yaml_emitter_t emitter;
    struct fl_buf *out;
    int rv; /* of the buffer */
};

static int writer_take_output(void *data, unsigned char *bytes, size_t len)
{
    struct writer *w = data;

    w->rv = fl_buf_add(w->out, bytes, len);
    return w->rv == FL_OK;
}

/* Takes ownership of the event; fails only when out of memory, or with the error of the buffer. */
static int emit_event(struct writer *w, int made, yaml_event_t *event)
{
    if (made == 0) {
        return FL_ENOMEM;
    }
    if (yaml_emitter_emit(&w->emitter, event) != 0) {
        return FL_OK;
    }
    if (w->rv != FL_OK) {
        return w->rv;
    }
    return FL_ENOMEM;
}

/* True for text that every YAML parser reads as that text; everything else is quoted. */
static bool is_plain_text(const char *text)
{
    static const char *const words[] = {"null", "Null", "NULL"};
    size_t n = strlen(text);
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i]) == 0) {
            return false;
        }
    }
    for (i = 0; i < n; i++) {
        bool inner = i > 0 && i + 1 < n;

        if (isalnum((unsigned char)text[i]) == 0 && strchr("_./+-", text[i]) == NULL &&
            !(inner && text[i] == ' '))
        {
            return false;
        }
    }
    return n > 0 && (isalnum((unsigned char)text[0]) != 0 ||
                     (n > 1 && isalnum((unsigned char)text[1]) != 0));
}

static int write_text(struct writer *w, const char *text, bool bare)
{
    yaml_scalar_style_t style = bare ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    yaml_event_t event;
    int made = yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                            (int)strlen(text), 1, 1, style);

    return emit_event(w, made, &event);
}

static bool only_scalars(const struct fl_conf_node *node)
{
    size_t i;

    for (i = 0; i < node->n; i++) {
        if (node->all[i]->kind != FL_CONF_SCALAR) {
            return false;
        }
    }
    return true;
}

static int write_node(struct writer *w, const struct fl_conf_node *node);

static int write_map(struct writer *w, const struct fl_conf_node *node)
{
    yaml_event_t event;
    size_t i;
    int rv = emit_event(
        w, yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE),
        &event);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < node->n; i++) {
        rv = write_text(w, node->keys[i], is_plain_text(node->keys[i]));
        if (rv != FL_OK) {
            return rv;
        }
        rv = write_node(w, node->all[i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return emit_event(w, yaml_mapping_end_event_initialize(&event), &event);
}

static int write_list(struct writer *w, const struct fl_conf_node *node)
{
    yaml_sequence_style_t style =
        only_scalars(node) ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE;
    yaml_event_t event;
    size_t i;
    int rv =
        emit_event(w, yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style), &event);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < node->n; i++) {
        rv = write_node(w, node->all[i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return emit_event(w, yaml_sequence_end_event_initialize(&event), &event);
}

static int write_node(struct writer *w, const struct fl_conf_node *node)
{
    switch (node->kind) {
    case FL_CONF_MAP:
        return write_map(w, node);
    case FL_CONF_SEQ:
        return write_list(w, node);
    case FL_CONF_SCALAR:
        break;
    }
    return node->null ? write_text(w, "null", true)
                      : write_text(w, node->text, is_plain_text(node->text));
}

static int write_document(struct writer *w, const struct fl_conf_node *node)
{
    yaml_event_t event;
    int rv = emit_event(w, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);

    if (rv != FL_OK) {
        return rv;
    }
    rv = emit_event(w, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
    if (rv != FL_OK) {
        return rv;
    }
    rv = write_node(w, node);
    if (rv != FL_OK) {
        return rv;
    }
    rv = emit_event(w, yaml_document_end_event_initialize(&event, 1), &event);
    if (rv != FL_OK) {
        return rv;
    }
    return emit_event(w, yaml_stream_end_event_initialize(&event), &event);
}

int fl_conf_write(const struct fl_conf_node *node, struct fl_buf *out)
{
    struct writer w = {.out = out, .rv = FL_OK};
    int rv;

    if (yaml_emitter_initialize(&w.emitter) == 0) {
        return FL_ENOMEM;
    }
    yaml_emitter_set_output(&w.emitter, writer_take_output, &w);
    yaml_emitter_set_unicode(&w.emitter, 1);
    yaml_emitter_set_width(&w.emitter, -1);
    rv = write_document(&w, node);
    yaml_emitter_delete(&w.emitter);
    return rv;
}
