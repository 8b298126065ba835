#ifndef FL_PROGRAM_MESSAGE_H
#define FL_PROGRAM_MESSAGE_H

/*
 * The messages of docs/trainer-protocol.md: ours as text, the program's as structs. What a program
 * sends is checked here as far as it can be without knowing what was asked.
 */

#include <jansson.h>

#include "libfl/program/persistent.h"

enum fl_answer_type {
    FL_ANSWER_READY,
    FL_ANSWER_ACCEPTED,
    FL_ANSWER_PROGRESS,
    FL_ANSWER_DONE,
    FL_ANSWER_FAILED,
    FL_ANSWER_CANCELED,
    FL_ANSWER_TYPES
};
/* "ready" …, by type. */
extern const char *const fl_answer_types[];

struct fl_answer {
    enum fl_answer_type type;
    bool has_id;
    uint64_t id;
    uint64_t done, total;             /* PROGRESS */
    struct fl_persistent_ready ready; /* READY */
    uint64_t protocol;
    bool diverged; /* FAILED */
    char error[FL_PERSISTENT_TEXT];
    struct fl_persistent_answer figures; /* DONE: what it holds; `kind` says what it has to */
};

/*
 * FL_EPROTO: no JSON object, no type that there is, a field that is not what it has to be. `asked`:
 * the task that a `done` is about.
 */
FL_MUST_CHECK int fl_answer_parse(const char *text, size_t len, enum fl_persistent_kind asked,
                                  struct fl_answer *ret, struct fl_err *err);

/* Where something lies in the shared memory, in bytes. */
struct fl_slot {
    size_t offset, bytes, data;
};

/* What a program is told to find. */
struct fl_slots {
    size_t weights_bytes, result_bytes;
    struct fl_slot vectors[FL_PERSISTENT_VECTORS]; /* bytes 0: not there */
    struct fl_slot mixup;
    struct fl_slot result, offer;
    size_t result_used; /* of result_bytes: without the offer, which is seldom long */
};

/* All that stands in `model` but the slots; NULL without memory, or when a text is no JSON. */
json_t *fl_message_description(const struct fl_persistent_model *model);

/* Each a text that the caller frees, NULL without memory. */
char *fl_message_start(const struct fl_persistent_conf *conf);
char *fl_message_model(json_t *description, const struct fl_slots *slots);
char *fl_message_task(const struct fl_persistent_task *task, uint64_t id);
char *fl_message_cancel(uint64_t id);
char *fl_message_bye(void);

#endif
