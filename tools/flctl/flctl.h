#ifndef FL_FLCTL_FLCTL_H
#define FL_FLCTL_FLCTL_H

/*
 * flctl: one call to fl-serverd, at its admin socket or over TLS, printed for people or as JSON.
 *
 * main.c reads the command line, requests.c and identity.c fill the request, call.c makes the call,
 * print.c and identity_print.c print what comes; backup.c calls nobody. Exit codes: 0 done, 1 the
 * call failed, 2 usage, 3 no server.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libfl/wire/admin_identity.h"

enum fl_ctl_exit { FL_CTL_OK = 0, FL_CTL_FAILED = 1, FL_CTL_USAGE = 2, FL_CTL_NO_SERVER = 3 };

/* Longest path of the command line. */
#define FL_CTL_PATH 4096

struct fl_ctl_out {
    bool json;
    bool abandoned;   /* rounds: those that were given up */
    bool all;         /* invitations, certificates */
    bool named;       /* certificates: of one name */
    const char *file; /* export */
    FILE *export;
    size_t n;       /* messages so far */
    void *array;    /* json_t *, for lists */
    uint64_t round; /* rollback: that was asked for */
    uint64_t export_bytes, export_round;
    struct fl_wire_invite invite; /* invite: what was asked for */
    bool many;                    /* invite: a name before each line */
};

struct fl_ctl_command;
struct fl_tls;

/* A server over TLS; each NULL when it is not given. */
struct fl_ctl_remote {
    const char *server;                 /* address; NULL: at the socket */
    const char *identity;               /* folder of the three below */
    const char *certificate, *key, *ca; /* files */
};

/* What "backup TARGET", "restore BACKUP" and "unmove" take beside. */
struct fl_ctl_backup {
    const char *state_dir; /* NULL: not said */
    bool without_keys, moved;
};

/* The command line. */
struct fl_ctl_args {
    char socket[FL_CTL_PATH];
    char instance_dir[FL_CTL_PATH]; /* state folder of --instance */
    struct fl_ctl_remote remote;
    struct fl_ctl_out out;
    bool has_output;
    uint64_t last;
    uint64_t round;
    bool has_round;
    bool force, yes;
    char *reason;
    struct fl_wire_forget forget;
    const char *name;                /* of a client, a pattern, or the beginning of a token */
    uint64_t valid_ms;               /* 0: as the server is configured */
    uint64_t uses;                   /* 0: one */
    const char *labels, *many;       /* NULL: not given */
    const char *serial, *public_key; /* in hexadecimal; NULL: not given */
    struct fl_ctl_backup backup;
    const struct fl_ctl_command *command;
};

/* One message of the answer: print or collect it. FL_OK, or why it cannot be used. */
typedef int (*fl_ctl_message_cb)(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                                 struct fl_err *err);

struct fl_ctl_command {
    const char *name; /* one word, or two */
    const char *path; /* gRPC method */
    const char *help;
    /* What follows the command: an exit code, the reason is printed, or -1 to go on. NULL: nothing.
     */
    int (*args)(struct fl_ctl_args *args, int n, char **words);
    /* FL_CTL_OK, or an exit code, the reason is printed. NULL: an empty message. */
    int (*request)(struct fl_ctl_args *args, struct fl_buf *request);
    fl_ctl_message_cb message;
    void (*finish)(struct fl_ctl_out *out); /* may be NULL */
};

/* Ended by a NULL name. */
extern const struct fl_ctl_command fl_ctl_commands[];

/* "flctl: COMMAND: …" on the terminal; returns `code`. */
FL_PRINTF(3, 4)
int fl_ctl_complain(const struct fl_ctl_args *args, int code, const char *fmt, ...);

/* requests.c */
int fl_ctl_round_arg(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_forget_args(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_summary_arg(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_ask_drop(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_rounds(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_forget(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_control(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_export(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_hold(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_release(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_rollback(struct fl_ctl_args *args, struct fl_buf *request);

/* identity.c */
int fl_ctl_invite_args(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_prefix_arg(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_certificates_args(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_deny_args(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_ask_invite(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_invitations(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_uninvite(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_certificates(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_deny(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_ask_audit(struct fl_ctl_args *args, struct fl_buf *request);

/* print.c: "2026-11-22T19:00:00Z", or "-". */
const char *fl_ctl_when(char *out, size_t size, uint64_t ms);
/* Print the list that was collected, as JSON. */
void fl_ctl_finish_list(struct fl_ctl_out *out);

/* identity_print.c */
int fl_ctl_on_invited(struct fl_ctl_out *out, const uint8_t *data, size_t len, struct fl_err *err);
void fl_ctl_finish_invite(struct fl_ctl_out *out);
int fl_ctl_on_invitation(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                         struct fl_err *err);
void fl_ctl_finish_invitations(struct fl_ctl_out *out);
int fl_ctl_on_withdrawn(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                        struct fl_err *err);
int fl_ctl_on_certificate(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                          struct fl_err *err);
void fl_ctl_finish_certificates(struct fl_ctl_out *out);
int fl_ctl_on_denied(struct fl_ctl_out *out, const uint8_t *data, size_t len, struct fl_err *err);
int fl_ctl_on_audit(struct fl_ctl_out *out, const uint8_t *data, size_t len, struct fl_err *err);

/* remote.c: keep it for as long as the call. */
int fl_ctl_remote_open(const struct fl_ctl_remote *remote, struct fl_tls **ret, struct fl_err *err);
int fl_ctl_admin_args(struct fl_ctl_args *args, int n, char **words);
/* Makes a key and keeps it in the folder. */
int fl_ctl_ask_admin(struct fl_ctl_args *args, struct fl_buf *request);
int fl_ctl_on_admin(struct fl_ctl_out *out, const uint8_t *data, size_t len, struct fl_err *err);
/* The key of a certificate that did not come. */
void fl_ctl_forget_key(const char *folder);

/* Call the command with `request`; returns an exit code, errors are printed. */
int fl_ctl_call(struct fl_ctl_args *args, const struct fl_buf *request);

/* backup.c. `words`: the command and what follows it; returns an exit code, errors are printed. */
int fl_ctl_backup(const struct fl_ctl_backup *options, int n, char **words);
bool fl_ctl_is_backup(const char *word);

/* reference.c: print the figures of rounds and clients (Markdown). */
void fl_ctl_reference(void);

#endif
