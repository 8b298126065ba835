#ifndef FL_FLCTL_FLCTL_H
#define FL_FLCTL_FLCTL_H

/*
 * flctl: one call to fl-serverd, at its admin socket or over TLS, printed as text or as JSON.
 *
 * flctl_main.c reads the command line, requests.c and identity_cmd.c fill the request, admin_call.c
 * makes the call, print.c and identity_print.c print the answer; backup_cmd.c makes no call. Exit
 * codes: 0 done, 1 the call failed, 2 usage, 3 no server.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libfl/wire/admin_identity.h"
#include "libfl/wire/verbs.h"

enum fl_ctl_exit { FL_CTL_OK = 0, FL_CTL_FAILED = 1, FL_CTL_USAGE = 2, FL_CTL_NO_SERVER = 3 };

/* Maximum length of a path of the command line. */
#define FL_CTL_PATH 4096

/* How rounds are printed: as text or, with --json, as one list; a line each. */
enum fl_ctl_rounds { FL_CTL_LIST, FL_CTL_CSV, FL_CTL_JSONL };

struct json_t;

struct fl_ctl_out {
    bool json;
    enum fl_ctl_rounds rounds;
    bool abandoned;   /* rounds: the abandoned ones */
    bool all;         /* invitations, certificates */
    bool named;       /* certificates: of one name */
    const char *file; /* export */
    bool onnx;        /* export: as ONNX */
    FILE *export;
    size_t n;     /* messages received so far */
    void *array;  /* json_t *, for lists */
    void *answer; /* json_t *, owned: the answer to one of several calls; NULL: none */
    bool keeps_answer;
    uint64_t round; /* rollback: the requested round */
    uint64_t export_bytes, export_round;
    struct fl_wire_invite invite; /* invite: the requested invitations */
    bool many;                    /* invite: print a name before each line */
};

struct fl_tls;

/* A server over TLS; each NULL when it is not given. */
struct fl_ctl_remote {
    const char *server;                 /* address; NULL: use the socket */
    const char *identity;               /* folder of the three below */
    const char *certificate, *key, *ca; /* files */
    bool quiet;                         /* no warning before the certificate expires */
    const char *proxy;                  /* URL, or "none" */
    const char *proxy_credentials;      /* file */
    uint64_t ping_after_ms;             /* also at the socket; 0: the default */
};

/* Options of "backup TARGET", "restore BACKUP" and "unmove". */
struct fl_ctl_backup {
    const char *state_dir; /* NULL: not given */
    bool without_keys, moved;
};

/* Most --label. */
#define FL_CTL_LABELS 16

/* Of a verb that takes the name of a client: the clients that it is for. */
struct fl_ctl_bulk {
    bool on, dry_run;
    const char *pattern;
    const char *labels[FL_CTL_LABELS]; /* "KEY=VALUE" */
    size_t n_labels;
};

/* Of `clients label`, `clients limit` and `clients schedule`. */
struct fl_ctl_central {
    struct fl_pair set[FL_WIRE_MAX_PAIRS];
    char *removed[FL_WIRE_MAX_PAIRS];
    size_t n_set, n_removed;
    char *hours[FL_HOURS_MAX];
    size_t n_hours;
    bool has_hours; /* --hours was given, `none` too */
};

/* The command line. */
struct fl_ctl_args {
    char socket[FL_CTL_PATH];
    char instance_dir[FL_CTL_PATH]; /* state folder of --instance */
    struct fl_ctl_remote remote;
    struct fl_ctl_out out;
    bool has_output;
    uint64_t last;
    bool has_last, follow;
    const char *format;          /* rounds, check; NULL: not given */
    const char *warn, *critical; /* check: bounds; NULL: the defaults */
    uint64_t call_ms;            /* time limit of a call; 0: that of a change on a slow disk */
    uint64_t round;
    bool has_round;
    bool force, yes;
    char *reason;
    struct fl_wire_forget forget;
    const char *name;                /* name of a client, a pattern, or the prefix of a token */
    uint64_t valid_ms;               /* 0: the server's default */
    uint64_t uses;                   /* 0: one */
    const char *labels, *many;       /* NULL: not given */
    const char *serial, *public_key; /* in hexadecimal; NULL: not given */
    struct fl_ctl_backup backup;
    struct fl_ctl_bulk bulk;
    struct fl_ctl_central central;
    enum fl_verb verb; /* FL_VERB_N: not read yet */
};

/* Handle one message of the answer: print or collect it. FL_OK, or why it cannot be used. */
typedef int (*fl_ctl_message_cb)(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                                 struct fl_err *err);

/* How the request of a verb is filled. */
struct fl_ctl_request {
    /* Reads the arguments of the command: an exit code, the reason is printed, or -1 to continue.
       NULL: no arguments. */
    int (*args)(struct fl_ctl_args *args, int n, char **words);
    /* FL_CTL_OK, or an exit code, the reason is printed. NULL: an empty message. */
    int (*fill)(struct fl_ctl_args *args, struct fl_buf *request);
};

/* How the answer to a verb is printed. */
struct fl_ctl_answer {
    fl_ctl_message_cb message;
    void (*finish)(struct fl_ctl_out *out); /* may be NULL */
};

/* Of each verb; its name, method and help are in fl_verbs. */
struct fl_ctl_command {
    const struct fl_ctl_request *request;
    const struct fl_ctl_answer *answer;
};

extern const struct fl_ctl_command fl_ctl_commands[FL_VERB_N];

/* What the rows of the verbs name: requests.c, identity_cmd.c; print.c, identity_print.c; remote.c.
 */
#define FL__CTL_KINDS_OF(id, name, method, access, audit, thread, handler, request, answer, help) \
    extern const struct fl_ctl_request fl_ctl_request_##request;                                  \
    extern const struct fl_ctl_answer fl_ctl_answer_##answer;
FL_VERBS(FL__CTL_KINDS_OF)

/* --hours: -1, or an exit code, the reason is printed. */
int fl_ctl_hours(struct fl_ctl_args *args, const char *text);
/* The words behind the name or pattern of these verbs; the same. */
int fl_ctl_label_words(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_schedule_words(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_limit_words(struct fl_ctl_args *args, int n, char **words);

/*
 * Writes the model of the safetensors file `from`, as fl-serverd exports it, as ONNX to `to`;
 * durable. FL_ENOENT: `from` does not say which network it is; FL_EUNIMPL names the layer that ONNX
 * cannot express here.
 */
FL_MUST_CHECK int fl_ctl_to_onnx(const char *from, const char *to, struct fl_err *err);
/* Prints "flctl: COMMAND: …" on the terminal; returns `code`. */
FL_PRINTF(3, 4)
int fl_ctl_complain(const struct fl_ctl_args *args, int code, const char *fmt, ...);
/* The result of an encoder as an exit code; an error is printed. */
int fl_ctl_encoded(const struct fl_ctl_args *args, int rv);

/* print.c: "2026-11-22T19:00:00Z", or "-". */
const char *fl_ctl_when(char *out, size_t size, uint64_t ms);
/* The labels of a client as a line "  labels a=b c=d" (none: no line). */
void fl_ctl_print_labels(const struct fl_pair *labels, size_t n);
/* Print an answer that is one object, or keep it for the caller. Takes `object`. */
void fl_ctl_print_object(struct fl_ctl_out *out, struct json_t *object);
/* Print the collected list, as JSON. */
void fl_ctl_finish_list(struct fl_ctl_out *out);

/* remote.c: keep `*ret` for as long as the call. */
int fl_ctl_remote_open(const struct fl_ctl_remote *remote, struct fl_tls **ret, struct fl_err *err);
/* Remove the key of a certificate that was not issued. */
void fl_ctl_forget_key(const char *folder);

/* One message of an answer. */
typedef int (*fl_ctl_take_cb)(void *ctx, const uint8_t *data, size_t len, struct fl_err *err);
/*
 * Call `verb` with `request` and pass the messages of the answer to `take`; returns an exit code,
 * with the reason in `err`.
 */
int fl_ctl_fetch(const struct fl_ctl_args *args, enum fl_verb verb, const struct fl_buf *request,
                 fl_ctl_take_cb take, void *ctx, struct fl_err *err);
/* Call the command with `request`; returns an exit code, errors are printed. */
int fl_ctl_call(struct fl_ctl_args *args, const struct fl_buf *request);

/* print.c: print or collect one round. */
void fl_ctl_print_round(struct fl_ctl_out *out, const struct fl_wire_round *round);
/* rounds_cmd.c: one line of its figures, the first one after the names of the columns. */
void fl_ctl_rounds_csv(const struct fl_ctl_out *out, const struct fl_wire_round *round);
/* Reads --format, --last and --follow of rounds: -1, or an exit code, the reason is printed. */
int fl_ctl_rounds_options(struct fl_ctl_args *args);
/* rounds --follow: prints rounds as they are committed; returns an exit code, errors are
   printed. */
int fl_ctl_rounds_follow(struct fl_ctl_args *args);

/* bulk_cmd.c: takes one --label: -1, or an exit code, the reason is printed. */
int fl_ctl_bulk_label(struct fl_ctl_args *args, const char *text);
/* True when the arguments choose clients by a pattern or labels, or only list them (--dry-run). */
bool fl_ctl_bulk_wanted(struct fl_ctl_args *args, int n, char **words);
/* Reads them: -1, or an exit code, the reason is printed. */
int fl_ctl_bulk_args(struct fl_ctl_args *args, int n, char **words);
/* Carries the verb out for each of them; returns an exit code, errors are printed. */
int fl_ctl_bulk(struct fl_ctl_args *args);
/* The user typed yes, after a question on the terminal. */
bool fl_ctl_confirmed(void);

/*
 * Commands that are no verb of the server: backup_cmd.c, check_cmd.c, watch_cmd.c. `words`: the
 * command and its arguments; each returns an exit code, errors are printed.
 */
int fl_ctl_backup(struct fl_ctl_args *args, int n, char **words);
/* The exit codes are those of monitoring plugins (check_rules.h). */
int fl_ctl_check(struct fl_ctl_args *args, int n, char **words);
int fl_ctl_watch(struct fl_ctl_args *args, int n, char **words);

/* flctl_reference.c: print the figures of rounds and clients (Markdown). */
void fl_ctl_reference(void);
/* Print who may call the methods of the verbs (Markdown). */
void fl_ctl_access(void);

#endif
