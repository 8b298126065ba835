#ifndef FL_CLIENT_TRAIN_COMMAND_IMPL_H
#define FL_CLIENT_TRAIN_COMMAND_IMPL_H

/* Inside the command trainer: running the program, and the JSON it speaks. */

#include <limits.h>

#include "client/train/trainer_impl.h"

/* How much of the end of what the program wrote to stderr is kept. */
#define FL__TAIL_SIZE ((size_t)16 << 10)
/* How much of that an error repeats at most, as far as it has room. */
#define FL__TAIL_SHOWN ((size_t)1 << 10)

struct fl__child {
    const char *const *argv; /* NULL-terminated; argv[0] is searched in PATH */
    const char *task_file;   /* in the environment as FL_TASK */
    const char *stderr_file; /* gets the end of its stderr when it fails */
    uint64_t time_limit_ms;  /* 0: none */
    const char *limit_note;  /* behind the message that it was ended by that; not NULL */
    uint64_t memory_bytes;   /* 0: none */
    uint64_t descriptors;    /* its soft limit of them; 0: as ours */
    atomic_bool *cancel;     /* may be NULL */
};

/*
 * Find a program as execvp() would, as an absolute path. FL_ENOENT and FL_EPERM with what
 * was looked for.
 */
FL_MUST_CHECK int fl__program_find(const char *name, char *out, size_t size, struct fl_err *err);
/*
 * Run to the end. FL_OK: exit code 0. FL_EIO: another code, or a signal; FL_ETIMEOUT;
 * FL_ECANCELED. The message has the code and the tail of stderr. Nothing of the program's
 * process group is left when this returns.
 */
FL_MUST_CHECK int fl__child_run(const struct fl__child *child, struct fl_err *err);

/* The trained model and what the program says about it, as in docs/trainer-command.md. */
struct fl__task_paths {
    char folder[PATH_MAX];
    char task[PATH_MAX];
    char model[PATH_MAX];
    char anchor[PATH_MAX]; /* written when the task has an anchor */
    char result[PATH_MAX];
    char result_model[PATH_MAX];
    char stderr_tail[PATH_MAX];
};

struct fl__description; /* what Welcome said, ready for task.json */

FL_MUST_CHECK int fl__description_create(const struct fl_train_model *model,
                                         struct fl__description **ret, struct fl_err *err);
void fl__description_free(struct fl__description *description);
/* Write task.json. `data` may be NULL. */
FL_MUST_CHECK int fl__task_write(const struct fl__description *description,
                                 const struct fl_train_task *task,
                                 const struct fl__task_paths *paths, const char *data,
                                 uint64_t deadline_ms, struct fl_err *err);
/* Read result.json into samples, steps, losses and the evaluations. */
FL_MUST_CHECK int fl__result_read(const char *path, struct fl_train_result *ret,
                                  struct fl_err *err);

#endif
