#ifndef FL_CLIENT_TRAIN_COMMAND_IMPL_H
#define FL_CLIENT_TRAIN_COMMAND_IMPL_H

/* Private to the command trainer: running the program, and its JSON files. */

#include <limits.h>

#include "client/train/limit.h"
#include "client/train/trainer_impl.h"

struct fl__child {
    struct fl_program_conf conf;
    const char *stderr_file; /* gets the tail of stderr when the program fails */
    uint64_t time_limit_ms;  /* 0: none */
    const char *limit_note;  /* appended to the message of a timeout; not NULL */
    atomic_bool *cancel;     /* may be NULL */
};

/*
 * Runs the program to its end. FL_OK: exit code 0. FL_EIO: another code, or a signal; FL_ELIMIT:
 * memory; FL_ETIMEOUT; FL_ECANCELED. The message has the code and the tail of stderr. No process of
 * the program's process group is left when this returns.
 */
FL_MUST_CHECK int fl__child_run(const struct fl__child *child, struct fl_err *err);

/* Paths of the files of one task (docs/trainers.md). */
struct fl__task_paths {
    char folder[PATH_MAX];
    char task[PATH_MAX];
    char model[PATH_MAX];
    char anchor[PATH_MAX]; /* written when the task has an anchor */
    char result[PATH_MAX];
    char result_model[PATH_MAX];
    char stderr_tail[PATH_MAX];
};

struct fl__description; /* model description of Welcome, ready for task.json */

FL_MUST_CHECK int fl__description_create(const struct fl_train_model *model,
                                         struct fl__description **ret, struct fl_err *err);
/* A policy with its options as JSON for the program; owned, NULL without memory. */
char *fl__policy_text(const struct fl_policy *policy, const struct fl_options *options);
void fl__description_free(struct fl__description *description);
/* Writes task.json. `data` may be NULL. */
FL_MUST_CHECK int fl__task_write(const struct fl__description *description,
                                 const struct fl_train_task *task,
                                 const struct fl__task_paths *paths, const char *data,
                                 uint64_t deadline_ms, struct fl_err *err);
/* Reads samples, steps, losses and the evaluations from result.json. */
FL_MUST_CHECK int fl__result_read(const char *path, struct fl_train_result *ret,
                                  struct fl_err *err);

#endif
