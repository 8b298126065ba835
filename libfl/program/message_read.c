/*
 * Parses and checks the program's messages and result.json (docs/trainers.md). Pure functions but
 * for reading that file; the order of messages is checked in persistent_protocol.c.
 */
#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/program/fields.h"
#include "libfl/program/message.h"

/* Far above the size of any result, so that a faulty program cannot fill memory. */
#define RESULT_FILE_MAX ((size_t)1 << 20)

const char *const fl_answer_types[] = {
    [FL_ANSWER_READY] = "ready",       [FL_ANSWER_ACCEPTED] = "accepted",
    [FL_ANSWER_PROGRESS] = "progress", [FL_ANSWER_DONE] = "done",
    [FL_ANSWER_FAILED] = "failed",     [FL_ANSWER_CANCELED] = "canceled"};

/* A text for display, truncated and cleaned; "" when missing. */
static void message_read_text(const json_t *json, const char *key, char out[FL_PERSISTENT_TEXT])
{
    (void)fl_str_ends(out, FL_PERSISTENT_TEXT, json_string_value(json_object_get(json, key)));
    (void)fl_str_clean(out);
}

static int message_find_word(const char *const *list, size_t n, const char *word)
{
    size_t i;

    for (i = 0; word != NULL && i < n; i++) {
        if (strcmp(list[i], word) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int message_get_list(const json_t *json, const char *key, const json_t **ret,
                            struct fl_err *err)
{
    *ret = json_object_get(json, key);
    return json_is_array(*ret) ? FL_OK
                               : fl_err_set(err, FL_EFORMAT,
                                            "'ready': '%s' is missing or not a list of names", key);
}

static int message_read_ready(const json_t *json, struct fl_answer *ret, struct fl_err *err)
{
    struct fl_persistent_ready *ready = &ret->ready;
    const json_t *can = NULL;
    const json_t *parts = NULL;
    int rv = fl_field_count(json, "'ready'", "protocol", &ret->protocol, err);
    const char *name;
    size_t i;
    int kind;

    /* The other fields of another protocol version are unknown. */
    if (rv != FL_OK || ret->protocol != FL_PERSISTENT_VERSION) {
        return rv;
    }
    rv = message_get_list(json, "can", &can, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = message_get_list(json, "parts", &parts, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_field_count(json, "'ready'", "samples", &ready->samples, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_field_count(json, "'ready'", "test_samples", &ready->test_samples, err);
    if (rv != FL_OK) {
        return rv;
    }
    /* Unknown names are ignored. */
    for (i = 0; i < json_array_size(can); i++) {
        kind = message_find_word(fl_persistent_kinds, FL_PERSISTENT_KINDS,
                                 json_string_value(json_array_get(can, i)));
        ready->can |= kind >= 0 ? 1u << kind : 0;
    }
    for (i = 0; i < json_array_size(parts) && ready->n_parts < FL_PERSISTENT_PARTS; i++) {
        name = json_string_value(json_array_get(parts, i));
        if (name != NULL &&
            fl_str_copy(ready->parts[ready->n_parts], FL_PERSISTENT_PART, name) == FL_OK) {
            ready->n_parts++;
        }
    }
    message_read_text(json, "software", ready->software);
    ready->clients = json_is_true(json_object_get(json, "clients"));
    if ((ready->can & 1u << FL_PERSISTENT_TRAIN) != 0 && ready->samples == 0 && !ready->clients) {
        return fl_err_set(err, FL_EFORMAT,
                          "'ready': 'samples' is 0, but a program that can train needs at least 1");
    }
    return FL_OK;
}

static int message_check_present(bool has, const char *key, enum fl_persistent_kind asked,
                                 struct fl_err *err)
{
    return has ? FL_OK
               : fl_err_set(err, FL_EFORMAT, "'done' of '%s': '%s' is missing",
                            fl_persistent_kinds[asked], key);
}

/* Fields of another kind of task are ignored. `where`: the message or the file. */
static int message_read_done(const json_t *json, const char *where, enum fl_persistent_kind asked,
                             struct fl_persistent_answer *ret, struct fl_err *err)
{
    int rv = fl_field_evaluation(json, where, "received", &ret->has_received, &ret->received, err);

    if (rv != FL_OK) {
        return rv;
    }
    switch (asked) {
    case FL_PERSISTENT_TRAIN:
        rv = fl_field_count(json, where, "samples", &ret->samples, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (ret->samples == 0) {
            return fl_err_set(err, FL_EFORMAT,
                              "%.200s: 'samples' is 0: a result without samples has no weight",
                              where);
        }
        rv = fl_field_count(json, where, "steps", &ret->steps, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_field_number(json, where, "train_loss", &ret->train_loss, err);
        if (rv != FL_OK) {
            return rv;
        }
        return fl_field_evaluation(json, where, "trained", &ret->has_trained, &ret->trained, err);
    case FL_PERSISTENT_ADAPT:
        rv = fl_field_evaluation(json, where, "adapted", &ret->has_adapted, &ret->adapted, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = message_check_present(ret->has_adapted, "adapted", asked, err);
        if (rv != FL_OK) {
            return rv;
        }
        return message_check_present(ret->has_received, "received", asked, err);
    case FL_PERSISTENT_EVALUATE:
        return message_check_present(ret->has_received, "received", asked, err);
    case FL_PERSISTENT_SUMMARY:
        return fl_field_count(json, where, "bytes", &ret->summary_bytes, err);
    case FL_PERSISTENT_AGGREGATE:
        ret->has_scores = json_is_true(json_object_get(json, "scores"));
        return fl_field_count(json, where, "state_bytes", &ret->state_bytes, err);
    case FL_PERSISTENT_KINDS:
        break;
    }
    return FL_OK;
}

int fl_answer_read_file(const char *path, struct fl_persistent_answer *ret, struct fl_err *err)
{
    struct fl_buf text = {0};
    json_error_t where;
    json_t *json;
    int rv = fl_fs_read(path, RESULT_FILE_MAX, &text, err);

    if (rv != FL_OK) {
        return rv;
    }
    json = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, &where);
    fl_buf_done(&text);
    if (json == NULL) {
        return fl_err_set(err, FL_EFORMAT, "%.200s:%d: not JSON: %s", path, where.line, where.text);
    }
    rv = message_read_done(json, path, FL_PERSISTENT_TRAIN, ret, err);
    json_decref(json);
    return rv;
}

static int message_read_fields(const json_t *json, enum fl_persistent_kind asked,
                               struct fl_answer *ret, struct fl_err *err)
{
    switch (ret->type) {
    case FL_ANSWER_READY:
        return message_read_ready(json, ret, err);
    case FL_ANSWER_PROGRESS:
        /* For display only: invalid numbers are ignored. */
        (void)(fl_field_count(json, "", "done", &ret->done, NULL) != FL_OK ||
               fl_field_count(json, "", "total", &ret->total, NULL) != FL_OK);
        return FL_OK;
    case FL_ANSWER_DONE:
        return message_read_done(json, "'done'", asked, &ret->figures, err);
    case FL_ANSWER_FAILED:
        message_read_text(json, "error", ret->error);
        ret->diverged = json_is_true(json_object_get(json, "diverged"));
        return FL_OK;
    case FL_ANSWER_ACCEPTED:
        /* Of `client` only, whose reader misses what is not there. */
        (void)(fl_field_count(json, "", "samples", &ret->samples, NULL) != FL_OK ||
               fl_field_count(json, "", "test_samples", &ret->test_samples, NULL) != FL_OK);
        return FL_OK;
    case FL_ANSWER_CANCELED:
    case FL_ANSWER_TYPES:
        break;
    }
    return FL_OK;
}

int fl_answer_parse(const char *text, size_t len, enum fl_persistent_kind asked,
                    struct fl_answer *ret, struct fl_err *err)
{
    char shown[64];
    json_error_t where;
    json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    const char *word = json_string_value(json_object_get(json, "type"));
    int type = message_find_word(fl_answer_types, FL_ANSWER_TYPES, word);
    int rv;

    *ret = (struct fl_answer){.type = (enum fl_answer_type)type};
    if (json == NULL) {
        return fl_err_set(err, FL_EPROTO, "a message that is not JSON (%.80s): %s", where.text,
                          fl_log_quote(shown, sizeof(shown), text, len));
    }
    if (!json_is_object(json) || type < 0) {
        rv = fl_err_set(err, FL_EPROTO, "a message that is not a JSON object with a 'type': %s",
                        fl_log_quote(shown, sizeof(shown), text, len));
    } else {
        ret->has_id = fl_field_count(json, "", "id", &ret->id, NULL) == FL_OK;
        rv = message_read_fields(json, asked, ret, err);
        if (rv != FL_OK) {
            rv = FL_EPROTO;
        }
    }
    json_decref(json);
    return rv;
}
