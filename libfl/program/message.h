#ifndef FL_PROGRAM_MESSAGE_H
#define FL_PROGRAM_MESSAGE_H

/*
 * The messages of docs/trainers.md: outgoing ones as text, those of the program as structs.
 * The program's messages are checked here as far as is possible without the state of the protocol.
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
    /* ACCEPTED, the answer to `client`: its samples */
    uint64_t samples, test_samples;
    bool diverged; /* FAILED */
    char error[FL_PERSISTENT_TEXT];
    /* DONE: the result; the kind of the task says which members are required */
    struct fl_persistent_answer figures;
};

/*
 * FL_EPROTO: not a JSON object, an unknown type, or a field with a wrong value. `asked`: the task
 * that a `done` belongs to.
 */
FL_MUST_CHECK int fl_answer_parse(const char *text, size_t len, enum fl_persistent_kind asked,
                                  struct fl_answer *ret, struct fl_err *err);

/*
 * The fields of result.json: FL_EFORMAT, with the file in the message; FL_ELIMIT: more than 1 MiB;
 * the errors of fl_fs_read().
 */
FL_MUST_CHECK int fl_answer_read_file(const char *path, struct fl_persistent_answer *ret,
                                      struct fl_err *err);

/* The version of task.json and result.json. */
#define FL_TASK_FILE_VERSION 1
/* Paths in task.json; all must be UTF-8. */
struct fl_task_paths {
    const char *data;   /* NULL: none */
    const char *anchor; /* NULL: none */
    const char *model, *result_model, *result;
};

/* Location in the shared memory, in bytes. */
struct fl_memory_slot {
    size_t offset, bytes, data;
};

/* Locations of vectors that the program gets. */
struct fl_slots {
    size_t weights_bytes, result_bytes;
    struct fl_memory_slot vectors[FL_PERSISTENT_VECTORS]; /* bytes 0: not present */
    struct fl_memory_slot mixup;
    struct fl_memory_slot updates, mean, shares, state;
    struct fl_memory_slot result, summary;
    struct fl_memory_slot step, scores, state_new;
    size_t result_used; /* part of result_bytes: without the data summary and the state, which are
                           seldom long */
};

/*
 * The fields of task.json that are the same for all tasks, or the description in `model` except the
 * slots. NULL when out of memory, or when a text is not JSON.
 */
json_t *fl_message_description(const struct fl_persistent_model *model, bool for_files);

/* Each returns a text that the caller frees, NULL when out of memory. */
char *fl_message_start(const struct fl_persistent_conf *conf);
/* NULL also for a text that is not UTF-8. */
char *fl_message_client(const struct fl_persistent_client *client);
char *fl_message_model(json_t *description, const struct fl_slots *slots);
char *fl_message_task(const struct fl_persistent_task *task, uint64_t id);
/* task.json of a TRAIN task. */
char *fl_message_task_file(json_t *description, const struct fl_persistent_task *task,
                           const struct fl_task_paths *paths);
char *fl_message_cancel(uint64_t id);
char *fl_message_bye(void);

#endif
