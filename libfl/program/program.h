#ifndef FL_PROGRAM_PROGRAM_H
#define FL_PROGRAM_PROGRAM_H

/*
 * A program of the user as a child: its own process group, its limits, and what it writes to
 * stderr: each line goes to the log (lines.h), and the end is kept for errors. stdin is /dev/null,
 * stdout goes where our own messages go. Nothing of its group is left when it was freed.
 *
 * Nothing here waits but fl_program_reap(): who runs a program polls, and calls fl_program_look()
 * every FL_PROGRAM_TICK_MS at least.
 *
 * Threading: one call at a time. The kernel kills the program with SIGKILL when the thread that
 * started it ends, and so when this process does: that thread has to live as long.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/log.h"

/* How much of the end of what it wrote to stderr is kept. */
#define FL_PROGRAM_TAIL ((size_t)16 << 10)
/* How much of that an error repeats at most, as far as it has room. */
#define FL_PROGRAM_TAIL_SHOWN ((size_t)1 << 10)
#define FL_PROGRAM_TICK_MS    50
/* From SIGTERM to SIGKILL: long enough to write a checkpoint. */
#define FL_PROGRAM_GRACE_MS 2000
/* Most descriptors that one inherits. */
#define FL_PROGRAM_INHERITED 8

/* What a limit of memory is of. */
enum fl_program_memory {
    FL_PROGRAM_ADDRESS_SPACE, /* of each process (RLIMIT_AS): allocations in it fail */
    /*
     * What the processes of its group have in memory, each counted as ps does: looked at from time
     * to time, and over it the program is ended. For frameworks that reserve much more than
     * they use, as those with GPUs do.
     */
    FL_PROGRAM_PERSISTENT
};

struct fl_program_conf {     /* borrowed for fl_program_start() */
    const char *const *argv; /* NULL-terminated; argv[0] is searched in PATH */
    const char *const
        *additions;       /* "NAME=value" in its environment, NULL-terminated; may be NULL */
    const int *inherited; /* the program has them as the descriptors 3, 4 … */
    size_t n_inherited;
    uint64_t memory_bytes; /* 0: no limit */
    enum fl_program_memory memory_of;
    uint64_t descriptors;     /* its soft limit of them; 0: as ours */
    const struct fl_log *log; /* kept: gets the lines of its stderr; NULL: only the end is kept */
};

struct fl_program;

/*
 * Find a program as execvp() would. FL_ENOENT and FL_EPERM with what was looked for.
 */
FL_MUST_CHECK int fl_program_find(const char *name, char *out, size_t size, struct fl_err *err);

/* Returns when the program runs or could not be run, which the error says. */
FL_MUST_CHECK int fl_program_start(const struct fl_program_conf *conf, struct fl_program **ret,
                                   struct fl_err *err);
/* To be polled for reading; -1: the program has closed it. */
int fl_program_stderr(const struct fl_program *program);
/*
 * Reads what is there of stderr, looks at the memory, goes on with an ending. True: it has ended.
 * `now_ms` of a clock that never goes back.
 */
bool fl_program_look(struct fl_program *program, uint64_t now_ms);
/* SIGTERM to its group, and after FL_PROGRAM_GRACE_MS SIGKILL. Again: nothing. */
void fl_program_end(struct fl_program *program, uint64_t now_ms);
bool fl_program_ending(const struct fl_program *program);
/*
 * Waits for its end, and kills what it left behind. FL_OK: exit code 0; FL_EIO: another one, or a
 * signal; FL_ELIMIT: it was over its limit of resident memory. The message has no stderr.
 */
FL_MUST_CHECK int fl_program_reap(struct fl_program *program, struct fl_err *err);
/* The end of stderr, in order. Returns its length. */
size_t fl_program_tail(const struct fl_program *program, char out[FL_PROGRAM_TAIL]);
/* Put its last lines behind the message of `err`, as many as there is room for, on one line. */
void fl_program_add_tail(const struct fl_program *program, struct fl_err *err);
/* Kills what is left of it. NULL is allowed. */
void fl_program_free(struct fl_program *program);

#endif
