#ifndef FL_PROGRAM_PROGRAM_H
#define FL_PROGRAM_PROGRAM_H

/*
 * A program of the user as a child process: its own process group, its limits, and its stderr: each
 * line is logged (lines.h), and the end is kept for errors. stdin is /dev/null, stdout is that of
 * this process. After fl_program_free() no process of its group is left.
 *
 * Only fl_program_reap() waits: the caller polls, and calls fl_program_look() at least every
 * FL_PROGRAM_TICK_MS.
 *
 * Threading: one call at a time. The kernel kills the program with SIGKILL when the thread that
 * started it ends, and so when this process ends: that thread must live as long as the program.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/log.h"

/* Bytes of the end of stderr that are kept. */
#define FL_PROGRAM_TAIL ((size_t)16 << 10)
/* Maximum bytes of it in an error, if there is room. */
#define FL_PROGRAM_TAIL_SHOWN ((size_t)1 << 10)
#define FL_PROGRAM_TICK_MS    50
/* Time from SIGTERM to SIGKILL: long enough to write a checkpoint. */
#define FL_PROGRAM_GRACE_MS 2000
/* Maximum number of inherited descriptors. */
#define FL_PROGRAM_INHERITED 8

/* The kind of a memory limit. */
enum fl_program_memory {
    FL_PROGRAM_ADDRESS_SPACE, /* address space of each process (RLIMIT_AS): its allocations fail */
    /*
     * Sum of the resident memory of the processes of its group, as ps counts it: checked
     * periodically, and the program is killed above the limit. For frameworks that reserve much
     * more than they use, as those with GPUs do.
     */
    FL_PROGRAM_RESIDENT_MEMORY
};

struct fl_program_conf {     /* borrowed for fl_program_start() */
    const char *const *argv; /* NULL-terminated; argv[0] is searched in PATH */
    const char *const
        *additions;       /* "NAME=value" in its environment, NULL-terminated; may be NULL */
    const int *inherited; /* inherited as the descriptors 3, 4 … */
    size_t n_inherited;
    uint64_t memory_bytes; /* 0: no limit */
    enum fl_program_memory memory_of;
    uint64_t descriptors;     /* soft limit of open files; 0: that of this process */
    const struct fl_log *log; /* kept: gets the lines of its stderr; NULL: only the end is kept */
};

struct fl_program;

/* Find a program as execvp() does. FL_ENOENT and FL_EPERM with the name. */
FL_MUST_CHECK int fl_program_find(const char *name, char *out, size_t size, struct fl_err *err);
/*
 * Check a command without starting it: argv[0] as fl_program_find(), and of a known interpreter
 * (python3, sh …) that its script can be read; a relative path is one from the current folder. The
 * errors of fl_program_find(), and those of reading, with the name of the script.
 */
FL_MUST_CHECK int fl_program_check(const char *const *argv, struct fl_err *err);

/* Returns when the program is running or could not be executed, which the error says. */
FL_MUST_CHECK int fl_program_start(const struct fl_program_conf *conf, struct fl_program **ret,
                                   struct fl_err *err);
/* Descriptor to poll for reading; -1: the program has closed it. */
int fl_program_stderr(const struct fl_program *program);
/*
 * Read the available stderr, check the memory, continue a termination. True: it has exited.
 * `now_ms` is from a monotonic clock.
 */
bool fl_program_look(struct fl_program *program, uint64_t now_ms);
/* Send SIGTERM to its group, and SIGKILL after FL_PROGRAM_GRACE_MS. Later calls are no-ops. */
void fl_program_end(struct fl_program *program, uint64_t now_ms);
bool fl_program_ending(const struct fl_program *program);
/*
 * Wait for its exit, and kill the rest of its group. FL_OK: exit code 0; FL_EIO: another one, or a
 * signal; FL_ELIMIT: it exceeded its limit of resident memory. The message does not include stderr.
 */
FL_MUST_CHECK int fl_program_reap(struct fl_program *program, struct fl_err *err);
/* Copy the end of stderr. Returns its length. */
size_t fl_program_tail(const struct fl_program *program, char out[FL_PROGRAM_TAIL]);
/* Append its last lines to the message of `err` on one line, as many as fit. */
void fl_program_add_tail(const struct fl_program *program, struct fl_err *err);
/* Kill the remaining processes. NULL is allowed. */
void fl_program_free(struct fl_program *program);

#endif
