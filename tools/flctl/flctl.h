#ifndef FL_FLCTL_FLCTL_H
#define FL_FLCTL_FLCTL_H

/*
 * flctl: one call to fl-serverd's admin socket, printed for people or as JSON.
 *
 * call.c makes the call, print.c prints what comes. backup.c calls nobody. Exit codes: 0 done, 1
 * the call failed, 2 usage, 3 no server at the socket.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libfl/wire/admin.h"

enum fl_ctl_exit { FL_CTL_OK = 0, FL_CTL_FAILED = 1, FL_CTL_USAGE = 2, FL_CTL_NO_SERVER = 3 };

struct fl_ctl_out {
    bool json;
    bool abandoned;   /* rounds: those that were given up */
    const char *file; /* export */
    FILE *export;
    size_t n;       /* messages so far */
    void *array;    /* json_t *, for lists */
    uint64_t round; /* rollback: that was asked for */
    uint64_t export_bytes, export_round;
};

/* One message of the answer: print or collect it. FL_OK, or why it cannot be used. */
typedef int (*fl_ctl_message_cb)(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                                 struct fl_err *err);

struct fl_ctl_command {
    const char *name;
    const char *path; /* gRPC method */
    const char *help;
    fl_ctl_message_cb message;
    void (*finish)(struct fl_ctl_out *out); /* may be NULL */
};

/* Ended by a NULL name. */
extern const struct fl_ctl_command fl_ctl_commands[];

/* What pause, resume, drain and abort-round are answered. */
int fl_ctl_on_controlled(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                         struct fl_err *err);

/* Call `path` on the socket with `request`; returns an exit code, errors are printed. */
int fl_ctl_call(const char *socket, const struct fl_ctl_command *command,
                const struct fl_buf *request, struct fl_ctl_out *out);

/* backup.c: what "backup TARGET" and "restore BACKUP" take beside. */
struct fl_ctl_backup {
    const char *state_dir; /* NULL: not said */
    bool without_keys, moved;
};
/* `words`: the command and what follows it; returns an exit code, errors are printed. */
int fl_ctl_backup(const struct fl_ctl_backup *options, int n, char **words);

/* reference.c: print the figures of rounds and clients (Markdown). */
void fl_ctl_reference(void);

#endif
