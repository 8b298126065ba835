/*
 * Verbs about one client, for all clients that a pattern or labels choose: lists the known names,
 * asks for a confirmation, and makes one call for each name, as if each command had been typed. So
 * access and audit are those of the verb. Main thread. Which names are chosen is in bulk_rules.c.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "libfl/json/json.h"
#include "tools/flctl/bulk_rules.h"
#include "tools/flctl/look.h"

/* Names in a message. */
#define BULK_SHOWN  5
#define BULK_FAILED 50
#define BULK_TEXT   (BULK_FAILED * (FL_NAME_MAX + 2) + 64)

/* Where the names come from that a verb takes. */
enum bulk_list { BULK_NONE, BULK_CLIENTS, BULK_CERTIFICATES };

struct bulk {
    struct fl_bulk_choice choice;
    struct fl_pair labels[FL_CTL_LABELS]; /* owned */
    struct fl_ctl_look look;
    struct fl_wire_certificate *certificates; /* owned */
    size_t n_certificates, certificates_cap;
    const char **names; /* chosen: sorted, each once; of the lists above */
    size_t n, names_cap;
};

struct bulk_kind {
    const struct fl_ctl_request *request;
    enum bulk_list list;
    /* Reads the words behind the name: -1, or an exit code, the reason is printed. NULL: there are
       none. */
    int (*words)(struct fl_ctl_args *args, int n, char **words);
};

/* By the kind of request that the row of the verb names. */
static struct bulk_kind bulk_kind_of(enum fl_verb verb)
{
    static const struct bulk_kind kinds[] = {
        {&fl_ctl_request_client_control, BULK_CLIENTS, NULL},
        {&fl_ctl_request_label, BULK_CLIENTS, fl_ctl_label_words},
        {&fl_ctl_request_schedule, BULK_CLIENTS, fl_ctl_schedule_words},
        {&fl_ctl_request_limit, BULK_CLIENTS, fl_ctl_limit_words},
        {&fl_ctl_request_forget, BULK_CLIENTS, NULL},
        {&fl_ctl_request_drop, BULK_CLIENTS, NULL},
        {&fl_ctl_request_revoke, BULK_CERTIFICATES, NULL}};
    size_t i;

    for (i = 0; verb != FL_VERB_N && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (fl_ctl_commands[verb].request == kinds[i].request) {
            return kinds[i];
        }
    }
    return (struct bulk_kind){.list = BULK_NONE};
}

static enum bulk_list bulk_list_of(enum fl_verb verb)
{
    return bulk_kind_of(verb).list;
}

/* --- command line --- */

int fl_ctl_bulk_label(struct fl_ctl_args *args, const char *text)
{
    if (args->bulk.n_labels == FL_CTL_LABELS) {
        (void)fprintf(stderr, "flctl: --label: at most %d are taken\n", FL_CTL_LABELS);
        return FL_CTL_USAGE;
    }
    args->bulk.labels[args->bulk.n_labels++] = text;
    return -1;
}

bool fl_ctl_bulk_wanted(struct fl_ctl_args *args, int n, char **words)
{
    bool takes = bulk_list_of(args->verb) != BULK_NONE;

    args->bulk.on = args->bulk.dry_run || args->bulk.n_labels > 0 ||
                    (takes && n > 0 && fl_name_is_pattern(words[0]));
    return args->bulk.on;
}

int fl_ctl_bulk_args(struct fl_ctl_args *args, int n, char **words)
{
    struct bulk_kind kind = bulk_kind_of(args->verb);

    if (kind.list == BULK_NONE) {
        (void)fprintf(stderr,
                      "flctl: --dry-run, --label: only for commands that take the name of a "
                      "client (see flctl --help)\n");
        return FL_CTL_USAGE;
    }
    if (args->serial != NULL || args->public_key != NULL || args->forget.unseen_for_ms != 0) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "a pattern, --label and --dry-run choose clients by name: not with "
                               "--serial, --public-key or --unseen-for");
    }
    if (kind.words != NULL) { /* Those behind the pattern. */
        int code = kind.words(args, n > 0 ? n - 1 : 0, words + 1);

        if (code >= 0) {
            return code;
        }
        n = n > 0;
    }
    if (n > 1) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "unexpected argument '%s': write a pattern in quotes, such as "
                               "'edge-*', so that the shell leaves it alone",
                               words[1]);
    }
    if (n == 0 && args->bulk.n_labels == 0) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "expected the name of a client, a pattern of names or --label");
    }
    if (n == 1 && !fl_wire_pattern_valid(words[0])) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "'%s' is neither a name (1 to %d of [A-Za-z0-9._-], not starting "
                               "with a dot) nor a pattern of names, with * and ?",
                               words[0], FL_NAME_MAX - 1);
    }
    args->bulk.pattern = n == 1 ? words[0] : "*";
    return -1;
}

/* --- the names --- */

static int bulk_take_certificate(void *ctx, const uint8_t *data, size_t len, struct fl_err *err)
{
    struct bulk *b = ctx;
    int rv = fl_grow(&b->certificates, &b->certificates_cap, b->n_certificates,
                     sizeof(b->certificates[0]));

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_wire_certificate_decode(data, len, &b->certificates[b->n_certificates], err);
    if (rv != FL_OK) {
        return rv;
    }
    b->n_certificates++;
    return FL_OK;
}

/* Adds the name if it is chosen. */
static int bulk_add(struct bulk *b, enum fl_verb verb, const struct fl_bulk_client *c)
{
    int rv;

    if (!fl_bulk_chosen(&b->choice, verb, c)) {
        return FL_OK;
    }
    rv = fl_grow(&b->names, &b->names_cap, b->n, sizeof(b->names[0]));
    if (rv != FL_OK) {
        return rv;
    }
    b->names[b->n++] = c->name;
    return FL_OK;
}

static const struct fl_wire_client *bulk_client_of(const struct bulk *b, const char *name)
{
    size_t i = 0;

    while (i < b->look.n_clients && strcmp(b->look.clients[i].name, name) != 0) {
        i++;
    }
    return i < b->look.n_clients ? &b->look.clients[i] : NULL;
}

/* A certificate has no labels: those are of the client of its name. */
static int bulk_add_certificates(struct bulk *b, enum fl_verb verb)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; i < b->n_certificates && rv == FL_OK; i++) {
        const struct fl_wire_certificate *c = &b->certificates[i];
        const struct fl_wire_client *client =
            b->choice.n_labels > 0 ? bulk_client_of(b, c->name) : NULL;

        rv = bulk_add(b, verb,
                      &(struct fl_bulk_client){.name = c->name,
                                               .state = c->state,
                                               .role = c->role,
                                               .labels = client != NULL ? client->labels : NULL,
                                               .n_labels = client != NULL ? client->n_labels : 0});
    }
    return rv;
}

static int bulk_add_clients(struct bulk *b, enum fl_verb verb)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; i < b->look.n_clients && rv == FL_OK; i++) {
        const struct fl_wire_client *c = &b->look.clients[i];

        rv = bulk_add(
            b, verb,
            &(struct fl_bulk_client){
                .name = c->name, .state = c->state, .labels = c->labels, .n_labels = c->n_labels});
    }
    return rv;
}

static int bulk_list_certificates(struct fl_ctl_args *args, struct bulk *b, struct fl_err *err)
{
    const struct fl_wire_list_certificates list = {.all = true};
    struct fl_buf request;
    int code = FL_CTL_FAILED;
    int rv;

    fl_buf_init(&request, FL_WIRE_MAX_LINE);
    rv = fl_wire_list_certificates_encode(&list, &request);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "%s", fl_strerror(rv));
    } else {
        code = fl_ctl_fetch(args, FL_VERB_CERTIFICATES, &request, bulk_take_certificate, b, err);
        args->remote.quiet = true;
    }
    fl_buf_done(&request);
    return code;
}

/* An exit code, with the reason in `err`. */
static int bulk_list_names(struct fl_ctl_args *args, struct bulk *b, struct fl_err *err)
{
    bool certificates = bulk_list_of(args->verb) == BULK_CERTIFICATES;
    int code = FL_CTL_OK;
    int rv;

    if (certificates) {
        code = bulk_list_certificates(args, b, err);
    }
    if (code == FL_CTL_OK && (!certificates || b->choice.n_labels > 0)) {
        code = fl_ctl_look_clients(args, &b->look, err);
    }
    if (code != FL_CTL_OK) {
        return code;
    }
    rv = certificates ? bulk_add_certificates(b, args->verb) : bulk_add_clients(b, args->verb);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "%s", fl_strerror(rv));
        return FL_CTL_FAILED;
    }
    b->n = fl_bulk_sort(b->names, b->n);
    if (b->n == 0) {
        (void)fl_err_set(err, FL_ENOENT,
                         "%s: no known client is chosen by '%s'%s (flctl %s lists them)",
                         fl_verbs[args->verb].name, b->choice.pattern,
                         b->choice.n_labels > 0 ? " and the labels" : "",
                         certificates ? "certificates --all" : "clients");
        return FL_CTL_FAILED;
    }
    return FL_CTL_OK;
}

/* --- confirmation --- */

bool fl_ctl_confirmed(void)
{
    char answer[16] = "";

    return fgets(answer, sizeof(answer), stdin) != NULL &&
           (strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0);
}

/* As for revoke: input that is no terminal cannot answer for the user. */
static int bulk_confirm(struct fl_ctl_args *args, const struct bulk *b)
{
    char names[BULK_TEXT];

    if (args->yes || (b->n == 1 && args->verb != FL_VERB_REVOKE)) {
        return FL_CTL_OK;
    }
    (void)fl_bulk_text(b->names, b->n, BULK_SHOWN, names, sizeof(names));
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "that is %zu client%s: %s; without a terminal to confirm it, add "
                               "--yes (--dry-run lists them), nothing was changed",
                               b->n, b->n == 1 ? "" : "s", names);
    }
    (void)fprintf(stderr, "%s for %zu client%s%s: %s? [y/N] ", fl_verbs[args->verb].name, b->n,
                  b->n == 1 ? "" : "s",
                  args->verb == FL_VERB_REVOKE ? ", permanently (flctl disable can be undone)" : "",
                  names);
    if (!fl_ctl_confirmed()) {
        return fl_ctl_complain(args, FL_CTL_FAILED, "not confirmed, nothing was changed");
    }
    return FL_CTL_OK;
}

/* --- the calls --- */

static int bulk_take_answer(void *ctx, const uint8_t *data, size_t len, struct fl_err *err)
{
    struct fl_ctl_args *args = ctx;

    if (!args->out.json) {
        (void)printf("%s: ", args->name);
    }
    if (!args->out.json && fl_ctl_commands[args->verb].answer == &fl_ctl_answer_done) {
        (void)printf("done\n");
    }
    return fl_ctl_commands[args->verb].answer->message(&args->out, data, len, err);
}

/* The call for args->name: an exit code, with the reason in `err`. */
static int bulk_call(struct fl_ctl_args *args, struct fl_err *err)
{
    struct fl_buf request;
    int code;

    fl_buf_init(&request, FL_WIRE_MAX_LINE);
    code = fl_ctl_commands[args->verb].request->fill(args, &request);
    if (code != FL_CTL_OK) {
        (void)fl_err_set(err, FL_EINVAL, "the request cannot be made");
    } else {
        code = fl_ctl_fetch(args, args->verb, &request, bulk_take_answer, args, err);
        args->remote.quiet = true;
    }
    fl_buf_done(&request);
    return code;
}

static void bulk_report(struct fl_ctl_args *args, const char *error)
{
    json_t *answer = args->out.answer;

    args->out.answer = NULL;
    if (args->out.json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "name", json_string(args->name));
        (void)json_object_set_new(o, "done", json_boolean(error == NULL));
        (void)json_object_set_new(o, "answer", answer != NULL ? answer : json_null());
        (void)json_object_set_new(o, "error", error != NULL ? json_string(error) : json_null());
        (void)json_array_append_new(args->out.array, o);
        return;
    }
    json_decref(answer);
    if (error != NULL) {
        (void)fprintf(stderr, "flctl: %s: %s\n", args->name, error);
    }
}

/* Calls for each name; a server that is gone is not asked again. */
static int bulk_run(struct fl_ctl_args *args, const struct bulk *b)
{
    const char **failed = calloc(b->n, sizeof(*failed));
    char names[BULK_TEXT];
    size_t n = 0;
    int code = FL_CTL_OK;
    size_t i;

    if (failed == NULL) {
        return fl_ctl_complain(args, FL_CTL_FAILED, "out of memory, nothing was changed");
    }
    for (i = 0; i < b->n; i++) {
        struct fl_err err = {0};
        int one = FL_CTL_NO_SERVER;

        args->name = b->names[i];
        if (code == FL_CTL_NO_SERVER) {
            (void)fl_err_set(&err, FL_EIO, "not tried");
        } else {
            one = bulk_call(args, &err);
        }
        if (one != FL_CTL_OK) {
            failed[n++] = args->name;
            code = one == FL_CTL_NO_SERVER ? FL_CTL_NO_SERVER : FL_CTL_FAILED;
        }
        bulk_report(args, one != FL_CTL_OK ? err.msg : NULL);
    }
    if (n > 0) {
        (void)fl_ctl_complain(args, code, "failed for %zu of %zu clients: %s", n, b->n,
                              fl_bulk_text(failed, n, BULK_FAILED, names, sizeof(names)));
    }
    free(failed);
    return code;
}

static void bulk_print_names(struct fl_ctl_args *args, const struct bulk *b)
{
    size_t i;

    for (i = 0; i < b->n; i++) {
        if (args->out.json) {
            (void)json_array_append_new(args->out.array, json_string(b->names[i]));
        } else {
            (void)printf("%s\n", b->names[i]);
        }
    }
}

static int bulk_read_labels(struct fl_ctl_args *args, struct bulk *b)
{
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < args->bulk.n_labels; i++) {
        if (fl_bulk_label(args->bulk.labels[i], &b->labels[i], &err) != FL_OK) {
            return fl_ctl_complain(args, FL_CTL_USAGE, "--label: %s", err.msg);
        }
    }
    b->choice = (struct fl_bulk_choice){
        .pattern = args->bulk.pattern, .labels = b->labels, .n_labels = args->bulk.n_labels};
    return FL_CTL_OK;
}

static void bulk_done(struct bulk *b)
{
    size_t i;

    for (i = 0; i < b->n_certificates; i++) {
        fl_wire_certificate_done(&b->certificates[i]);
    }
    for (i = 0; i < FL_CTL_LABELS; i++) {
        free(b->labels[i].key);
        free(b->labels[i].value);
    }
    free(b->certificates);
    free(b->names);
    fl_ctl_look_done(&b->look);
}

int fl_ctl_bulk(struct fl_ctl_args *args)
{
    struct bulk b = {.n = 0};
    struct fl_err err = {0};
    int code = bulk_read_labels(args, &b);

    if (code != FL_CTL_OK) {
        goto done;
    }
    code = bulk_list_names(args, &b, &err);
    if (code != FL_CTL_OK) {
        (void)fprintf(stderr, "flctl: %s\n", err.msg);
        goto done;
    }
    args->out.array = args->out.json ? json_array() : NULL;
    args->out.keeps_answer = true;
    if (args->bulk.dry_run) {
        bulk_print_names(args, &b);
    } else {
        code = bulk_confirm(args, &b);
        if (code != FL_CTL_OK) {
            goto done;
        }
        args->yes = true; /* The verb itself does not ask again for each. */
        code = bulk_run(args, &b);
    }
    fl_ctl_finish_list(&args->out);
    if (fflush(stdout) != 0) {
        code = FL_CTL_FAILED;
    }
done:
    json_decref(args->out.array);
    args->out.array = NULL;
    bulk_done(&b);
    return code;
}
