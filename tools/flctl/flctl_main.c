/*
 * flctl: administers a running fl-serverd and exports its model. Reads the command line, makes the
 * request, calls the server (admin_call.c) and returns the exit code. Main thread. It formats no
 * answers: print.c and identity_print.c do.
 */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/args.h"
#include "libfl/base/fs.h"
#include "libfl/base/quantity.h"
#include "libfl/base/str.h"
#include "libfl/json/json.h"
#include "tools/flctl/check_rules.h"
#include "tools/flctl/flctl.h"

/* Maximum size of a request: the invitations of many clients. */
#define REQUEST_MAX (4u << 20)

/* Options without a letter. */
enum {
    OPT_VALID = 256,
    OPT_SERVER,
    OPT_IDENTITY,
    OPT_CERTIFICATE,
    OPT_KEY,
    OPT_CA,
    OPT_PROXY,
    OPT_PROXY_CREDENTIALS,
    OPT_PING_AFTER,
    OPT_USES,
    OPT_LABELS,
    OPT_MANY,
    OPT_ALL,
    OPT_SERIAL,
    OPT_PUBLIC_KEY,
    OPT_YES,
    OPT_ONNX,
    OPT_ACCESS,
    OPT_FORMAT,
    OPT_LABEL,
    OPT_DRY_RUN,
    OPT_FOLLOW,
    OPT_HOURS,
    OPT_WARN,
    OPT_CRITICAL
};

static const struct fl_arg options[] = {
    FL_ARG(
        "socket", 's', "PATH", 's',
        "admin socket of the server; default: $FL_ADMIN_SOCKET, then /run/fl-serverd/admin.sock"),
    FL_ARG("state-dir", 'd', "DIR", 'd', "the same as --socket DIR/admin.sock"),
    FL_ARG("instance", 'i', "NAME", 'i',
           "the server that fl-serverd@NAME runs: its socket /run/fl-serverd-NAME/admin.sock and "
           "its state folder"),
    FL_ARG("server", '\0', "ADDRESS", OPT_SERVER,
           "over TLS instead, host:port: one of the server's listen_admin"),
    FL_ARG("identity", '\0', "DIR", OPT_IDENTITY,
           "with --server: the folder that admin-certificate made; or, each by itself,"),
    FL_ARG("certificate", '\0', "F", OPT_CERTIFICATE,
           "the admin's certificate and its chain to a root,"),
    FL_ARG("key", '\0', "F", OPT_KEY, "its private key,"),
    FL_ARG("ca", '\0', "F", OPT_CA, "and the roots of the server's certificate"),
    FL_ARG("proxy", '\0', "URL", OPT_PROXY,
           "with --server: HTTP proxy on the way, http://host:port, or none; default: that of the "
           "environment variable https_proxy"),
    FL_ARG("proxy-credentials", '\0', "F", OPT_PROXY_CREDENTIALS,
           "file with the line USER:PASSWORD for the proxy"),
    FL_ARG("ping-after", '\0', "SPAN", OPT_PING_AFTER,
           "while the server does not answer: HTTP/2 ping after this silence, so that nothing on "
           "the way drops the connection; default 30s"),
    FL_ARG("json", 'j', NULL, 'j', "print JSON"),
    FL_ARG("last", 'l', "N", 'l',
           "rounds, participations, audit: only the newest N, 0: all; rounds: default 20, "
           "participations: 100"),
    FL_ARG("format", '\0', "WORD", OPT_FORMAT,
           "rounds: csv or jsonl, a line for each; check: nagios (default), json or prometheus"),
    FL_ARG("follow", '\0', NULL, OPT_FOLLOW,
           "rounds: then wait for further ones and print each, until all are done"),
    FL_ARG("warn", '\0', "A=B,…", OPT_WARN,
           "check: bounds of a warning, such as late=5x,missing=10%,certificate=14d,paused=off"),
    FL_ARG("critical", '\0', "A=B,…", OPT_CRITICAL, "check: the bounds that are critical"),
    FL_ARG("abandoned", 'a', NULL, 'a', "rounds: the abandoned ones, when and by what"),
    FL_ARG("reason", 'm', "TEXT", 'm',
           "pause, abort-round, clients quarantine, revoke, evict, disable: the reason, for the "
           "log and the audit; at "
           "most 300 bytes"),
    FL_ARG("force", 'f', NULL, 'f',
           "rollback: even if clients and server have state between rounds; revoke, disable: "
           "even if the server knows no such name"),
    FL_ARG("yes", '\0', NULL, OPT_YES,
           "revoke, and commands for several clients: do not ask for confirmation; required "
           "without a terminal"),
    FL_ARG("label", '\0', "KEY=VALUE", OPT_LABEL,
           "commands that take the NAME of a client: all clients that announced this label; "
           "repeated, values of one key are alternatives"),
    FL_ARG("dry-run", '\0', NULL, OPT_DRY_RUN,
           "the same commands: print the names of the clients and change nothing"),
    FL_ARG("hours", '\0', "HOURS", OPT_HOURS,
           "clients schedule: such as 22:00-06:00, in the client's time, repeated for several; or "
           "none"),
    FL_ARG("round", 'r', "N", 'r',
           "export, pin, unpin, participations: the round; export without it: the last"),
    FL_ARG("unseen-for", 'u', "SPAN", 'u', "clients forget: all not seen for so long, such as 30d"),
    FL_ARG("output", 'o', "FILE", 'o',
           "export: file to write; default model.safetensors. admin-certificate: the folder"),
    FL_ARG("onnx", '\0', NULL, OPT_ONNX,
           "export: the network as ONNX, for other programs; default model.onnx"),
    FL_ARG("valid", '\0', "SPAN", OPT_VALID,
           "invite, admin-certificate: lifetime; default: as the server is configured"),
    FL_ARG("uses", '\0', "N", OPT_USES, "invite: how many clients may join with it; default 1"),
    FL_ARG("labels", '\0', "A=B,…", OPT_LABELS, "invite: labels that the client announces"),
    FL_ARG("many", '\0', "FILE", OPT_MANY,
           "invite: one name per line, labels may follow; -: standard input. Prints a name, a "
           "tab and the invitation for each, or none if one is invalid"),
    FL_ARG("without-keys", '\0', NULL, 'K', "backup: leave out keys and certificates"),
    FL_ARG("moved", '\0', NULL, 'M',
           "backup: of a stopped server whose federation moves to another host; marks the state "
           "folder, so that no server starts from it again; restore: of such a backup, the "
           "federation continues as after a restart"),
    FL_ARG("all", '\0', NULL, OPT_ALL,
           "invitations, certificates: also those that are not valid any more"),
    FL_ARG("serial", '\0', "HEX", OPT_SERIAL,
           "revoke, disable, enable: one certificate, as certificates lists it"),
    FL_ARG("public-key", '\0', "HEX", OPT_PUBLIC_KEY,
           "revoke, disable, enable: all certificates of that key (its SHA-256)"),
    FL_ARG("reference", '\0', NULL, 'R', "print the figures of rounds and clients (Markdown)"),
    FL_ARG("access", '\0', NULL, OPT_ACCESS, "print who may call what on a server (Markdown)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    FL_ARG("version", 'V', NULL, 'V', "version"),
    {.name = NULL}};

#define CTL_COMMAND_OF(id, name, method, access, audit, thread, handler, request_, answer_, help) \
    [FL_VERB_##id] = {&fl_ctl_request_##request_, &fl_ctl_answer_##answer_},

const struct fl_ctl_command fl_ctl_commands[FL_VERB_N] = {FL_VERBS(CTL_COMMAND_OF)};

/* Commands that are no verb. */
struct ctl_local {
    const char *name;
    const char *usage; /* with its arguments */
    const char *help;  /* further lines are indented by 17 */
    int (*run)(struct fl_ctl_args *args, int n, char **words);
};

/* clang-format off */
static const struct ctl_local locals[] = {
    {"check", "check",
     "for monitoring: compare with the bounds of --warn and --critical; exit code\n"
     "0 ok, 1 warning, 2 critical or no server, 3 unknown",
     fl_ctl_check},
    {"watch", "watch",
     "status, why, the newest rounds and the clients in the terminal, once a second; q\n"
     "quits; without a terminal it prints them once",
     fl_ctl_watch},
    {"backup", "backup TARGET",
     "copy the state folder of --state-dir into a new folder, as of one\n"
     "instant, whether its server runs or not",
     fl_ctl_backup},
    {"restore", "restore BACKUP", "make the state folder of --state-dir from a backup",
     fl_ctl_backup},
    {"unmove", "unmove",
     "undo backup --moved: servers may start from the state folder again; only\n"
     "if no other server was or will be started from that backup",
     fl_ctl_backup},
};
/* clang-format on */

#define N_LOCALS (sizeof(locals) / sizeof(locals[0]))

/* NULL: there is no such one. */
static const struct ctl_local *ctl_find_local(const char *name)
{
    size_t i = 0;

    while (i < N_LOCALS && strcmp(locals[i].name, name) != 0) {
        i++;
    }
    return i < N_LOCALS ? &locals[i] : NULL;
}

static void ctl_print_local(const struct ctl_local *local, FILE *out)
{
    const char *line = local->help;

    (void)fprintf(out, "  %-14s ", local->usage);
    for (;;) {
        int n = (int)strcspn(line, "\n");

        (void)fprintf(out, "%.*s\n", n, line);
        line += n;
        if (*line == '\0') {
            return;
        }
        line++;
        (void)fprintf(out, "%17s", "");
    }
}

static void ctl_print_usage(FILE *out)
{
    size_t i;
    int verb;

    (void)fputs("usage: flctl [options] COMMAND\n\ncommands:\n", out);
    for (verb = 0; verb < FL_VERB_N; verb++) {
        (void)fprintf(out, "  %-14s %s\n", fl_verbs[verb].name, fl_verbs[verb].help);
    }
    for (i = 0; i < N_LOCALS; i++) {
        ctl_print_local(&locals[i], out);
    }
    (void)fputs("\noptions:\n", out);
    fl_args_help(options, out);
    (void)fputs(
        "\nexit codes: 0 done, 1 the call failed, 2 usage, 3 no server at the socket or address\n",
        out);
}

/* FL_VERB_N: there is no such command. */
static enum fl_verb ctl_find_command(const char *name)
{
    int verb = 0;

    while (verb < FL_VERB_N && strcmp(fl_verbs[verb].name, name) != 0) {
        verb++;
    }
    return (enum fl_verb)verb;
}

/* Checks a value of an option: -1, or the exit code if it is wrong. */
static int ctl_check_value(bool right, const char *option, const char *expected, const char *found)
{
    if (right) {
        return -1;
    }
    (void)fprintf(stderr, "flctl: --%s: expected %s, found '%s'\n", option, expected, found);
    return FL_CTL_USAGE;
}

static int ctl_take_span(const char *option, const char *text, uint64_t *ret_ms)
{
    static const struct fl_quantity_range range = {
        .kind = FL_QUANTITY_TIME, .step = 1000, .min = 1};
    struct fl_err err = {0};

    if (fl_quantity_read(&range, text, ret_ms, &err) != FL_OK) {
        (void)fprintf(stderr, "flctl: --%s: %s\n", option, err.msg);
        return FL_CTL_USAGE;
    }
    return -1;
}

/* Options without a letter: an exit code to end with, or -1 to continue. */
static int ctl_parse_word(struct fl_ctl_args *a, int opt, const char *arg)
{
    switch (opt) {
    case OPT_VALID:
        return ctl_take_span("valid", arg, &a->valid_ms);
    case OPT_USES:
        return ctl_check_value(fl_str_to_u64(arg, &a->uses) == FL_OK && a->uses >= 1 &&
                                   a->uses <= UINT32_MAX,
                               "uses", "a number from 1 on", arg);
    case OPT_LABELS:
        a->labels = arg;
        return -1;
    case OPT_MANY:
        a->many = arg;
        return -1;
    case OPT_SERVER:
        a->remote.server = arg;
        return -1;
    case OPT_IDENTITY:
        a->remote.identity = arg;
        return -1;
    case OPT_CERTIFICATE:
        a->remote.certificate = arg;
        return -1;
    case OPT_KEY:
        a->remote.key = arg;
        return -1;
    case OPT_CA:
        a->remote.ca = arg;
        return -1;
    case OPT_PROXY:
        a->remote.proxy = arg;
        return -1;
    case OPT_PROXY_CREDENTIALS:
        a->remote.proxy_credentials = arg;
        return -1;
    case OPT_PING_AFTER:
        return ctl_take_span("ping-after", arg, &a->remote.ping_after_ms);
    case OPT_ALL:
        a->out.all = true;
        return -1;
    case OPT_ACCESS:
        fl_ctl_access();
        return FL_CTL_OK;
    case OPT_YES:
        a->yes = true;
        return -1;
    case OPT_LABEL:
        return fl_ctl_bulk_label(a, arg);
    case OPT_HOURS:
        return fl_ctl_hours(a, arg);
    case OPT_DRY_RUN:
        a->bulk.dry_run = true;
        return -1;
    case OPT_FORMAT:
        a->format = arg;
        return -1;
    case OPT_FOLLOW:
        a->follow = true;
        return -1;
    case OPT_WARN:
        a->warn = arg;
        return -1;
    case OPT_CRITICAL:
        a->critical = arg;
        return -1;
    case OPT_SERIAL:
        a->serial = arg;
        return -1;
    case OPT_PUBLIC_KEY:
        a->public_key = arg;
        return -1;
    default:
        return FL_CTL_USAGE;
    }
}

/* Socket and state folder of an instance of the systemd template unit
   (systemd/fl-serverd.service.in). */
static int ctl_parse_instance(struct fl_ctl_args *a, const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.-";
    bool ok = name[0] != '\0' && strspn(name, allowed) == strlen(name) &&
              strlen(name) < sizeof(a->instance_dir) - 64;

    if (ok) {
        (void)snprintf(a->socket, sizeof(a->socket), "/run/fl-serverd-%s/admin.sock", name);
        (void)snprintf(a->instance_dir, sizeof(a->instance_dir), "/var/lib/fl-serverd-%s", name);
        a->backup.state_dir = a->instance_dir;
    }
    return ctl_check_value(ok, "instance", "the NAME of fl-serverd@NAME", name);
}

/* An exit code to end with, or -1 to continue. */
static int ctl_parse_option(struct fl_ctl_args *a, int opt, const char *arg)
{
    switch (opt) {
    case 's':
        return fl_str_copy(a->socket, sizeof(a->socket), arg) == FL_OK ? -1 : FL_CTL_USAGE;
    case 'K':
        a->backup.without_keys = true;
        return -1;
    case 'M':
        a->backup.moved = true;
        return -1;
    case 'd':
        a->backup.state_dir = arg;
        return fl_fs_join(a->socket, sizeof(a->socket), arg, "admin.sock") == FL_OK ? -1
                                                                                    : FL_CTL_USAGE;
    case 'i':
        return ctl_parse_instance(a, arg);
    case 'j':
        a->out.json = true;
        return -1;
    case 'l':
        a->has_last = true;
        return ctl_check_value(fl_str_to_u64(arg, &a->last) == FL_OK && a->last <= UINT32_MAX,
                               "last", "a number", arg);
    case 'r':
        a->has_round = true;
        return ctl_check_value(fl_str_to_u64(arg, &a->round) == FL_OK, "round", "a number", arg);
    case 'u':
        return ctl_take_span("unseen-for", arg, &a->forget.unseen_for_ms);
    case 'a':
        a->out.abandoned = true;
        return -1;
    case 'f':
        a->force = true;
        return -1;
    case 'm':
        a->reason = fl_wire_lend(arg);
        if (strlen(arg) <= FL_WIRE_MAX_REASON) {
            return -1;
        }
        (void)fprintf(stderr, "flctl: --reason: %zu bytes, at most %d are taken\n", strlen(arg),
                      FL_WIRE_MAX_REASON);
        return FL_CTL_USAGE;
    case OPT_ONNX:
        a->out.onnx = true;
        return -1;
    case 'o':
        a->out.file = arg;
        a->has_output = true;
        return -1;
    case 'h':
        ctl_print_usage(stdout);
        return FL_CTL_OK;
    case 'R':
        fl_ctl_reference();
        return FL_CTL_OK;
    case 'V':
        (void)printf("flctl %s\n", PACKAGE_VERSION);
        return FL_CTL_OK;
    default:
        return ctl_parse_word(a, opt, arg);
    }
}

/* Finds the command, of two words or one, and reads its arguments. */
static int ctl_parse_command(int n, char **words, struct fl_ctl_args *a)
{
    const char *names[FL_VERB_N + N_LOCALS];
    const char *near;
    const struct ctl_local *local;
    const struct fl_ctl_request *request;
    char both[64];
    size_t i;
    int used = 2;
    int verb;

    if (n == 0) {
        (void)fprintf(stderr, "flctl: expected a command (see flctl --help)\n");
        return FL_CTL_USAGE;
    }
    local = ctl_find_local(words[0]);
    if (local != NULL) {
        return fl_ctl_bulk_wanted(a, 0, NULL) ? fl_ctl_bulk_args(a, 0, NULL)
                                              : local->run(a, n, words);
    }
    if (n >= 2 && snprintf(both, sizeof(both), "%s %s", words[0], words[1]) < (int)sizeof(both)) {
        a->verb = ctl_find_command(both);
    }
    if (a->verb == FL_VERB_N) {
        used = 1;
        a->verb = ctl_find_command(words[0]);
    }
    if (a->verb == FL_VERB_N) {
        for (verb = 0; verb < FL_VERB_N; verb++) {
            names[verb] = fl_verbs[verb].name;
        }
        for (i = 0; i < N_LOCALS; i++) {
            names[FL_VERB_N + i] = locals[i].name;
        }
        near = fl_str_nearest(words[0], names, FL_VERB_N + N_LOCALS);
        (void)fprintf(stderr, "flctl: unknown command '%s'%s%s%s (see flctl --help)\n", words[0],
                      near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                      near != NULL ? "'?" : "");
        return FL_CTL_USAGE;
    }
    request = fl_ctl_commands[a->verb].request;
    if (fl_ctl_bulk_wanted(a, n - used, words + used)) {
        return fl_ctl_bulk_args(a, n - used, words + used);
    }
    if (request->args != NULL) {
        return request->args(a, n - used, words + used);
    }
    if (n > used) {
        return fl_ctl_complain(a, FL_CTL_USAGE, "unexpected argument '%s' (see flctl --help)",
                               words[used]);
    }
    return -1;
}

/* A wrong option of a check must not look like a critical state. */
static int ctl_usage_code(int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "check") == 0) {
            return FL_CHECK_UNKNOWN;
        }
    }
    return FL_CTL_USAGE;
}

static int ctl_parse(int argc, char **argv, struct fl_ctl_args *a)
{
    struct fl_args args = {.program = "flctl", .rows = options, .argc = argc, .argv = argv};
    const char *env = getenv("FL_ADMIN_SOCKET");
    char path[FL_CTL_PATH];
    struct fl_err err = {0};
    int code;
    int opt;

    if (fl_str_copy(a->socket, sizeof(a->socket),
                    env != NULL ? env : "/run/fl-serverd/admin.sock") != FL_OK)
    {
        return FL_CTL_USAGE;
    }
    while ((opt = fl_args_next(&args)) != FL_ARGS_END) {
        code = ctl_parse_option(a, opt, args.value);
        if (code >= 0) {
            return code == FL_CTL_USAGE ? ctl_usage_code(argc, argv) : code;
        }
    }
    if (fl_fs_absolute(a->socket, path, sizeof(path), &err) != FL_OK ||
        fl_str_copy(a->socket, sizeof(a->socket), path) != FL_OK)
    {
        (void)fprintf(stderr, "flctl: the path of the socket is too long\n");
        return FL_CTL_USAGE;
    }
    return ctl_parse_command(args.n_operands, argv + 1, a);
}

/* Closes the file in any case; prints the first error. */
static int ctl_close_durable(FILE *file, const char *path)
{
    if (fflush(file) != 0 || fsync(fileno(file)) != 0) {
        perror(path);
        (void)fclose(file);
        return FL_CTL_FAILED;
    }
    if (fclose(file) != 0) {
        perror(path);
        return FL_CTL_FAILED;
    }
    return FL_CTL_OK;
}

/*
 * Writes to a temporary file and renames it, so that a failed call never leaves a truncated model.
 * The rename would replace a device or a folder: these are refused.
 */
static int ctl_export_model(struct fl_ctl_args *a, const struct fl_buf *request)
{
    char tmp[FL_CTL_PATH];
    struct stat st;
    struct fl_err err = {0};
    int code;
    int n;

    if (a->out.onnx && !a->has_output) {
        a->out.file = "model.onnx";
    }
    /* fl_fs_replace() of the conversion writes FILE.tmp itself. */
    n = snprintf(tmp, sizeof(tmp), "%s.%s", a->out.file, a->out.onnx ? "download" : "tmp");
    if (stat(a->out.file, &st) == 0 && !S_ISREG(st.st_mode)) {
        (void)fprintf(stderr, "flctl: '%s' is not a regular file, choose another --output\n",
                      a->out.file);
        return FL_CTL_FAILED;
    }
    if (n < 0 || (size_t)n >= sizeof(tmp)) {
        return FL_CTL_USAGE;
    }
    a->out.export = fopen(tmp, "wb");
    if (a->out.export == NULL) {
        perror(tmp);
        return FL_CTL_FAILED;
    }
    code = fl_ctl_call(a, request);
    if (code != FL_CTL_OK) {
        (void)fclose(a->out.export);
        goto fail;
    }
    code = ctl_close_durable(a->out.export, tmp);
    if (code != FL_CTL_OK) {
        goto fail;
    }
    if (a->out.onnx) {
        if (fl_ctl_to_onnx(tmp, a->out.file, &err) != FL_OK) {
            (void)fprintf(stderr, "flctl: %s\n", err.msg);
            code = FL_CTL_FAILED;
        }
        (void)unlink(tmp);
        return code;
    }
    if (fl_fs_publish(tmp, a->out.file, true, &err) != FL_OK) {
        (void)fprintf(stderr, "flctl: %s\n", err.msg);
        code = FL_CTL_FAILED;
        goto fail;
    }
    return FL_CTL_OK;
fail:
    (void)unlink(tmp);
    return code;
}

static int ctl_run(struct fl_ctl_args *a)
{
    const struct fl_ctl_command *command = &fl_ctl_commands[a->verb];
    struct fl_buf request;
    int code = FL_CTL_OK;

    if (a->follow) {
        return fl_ctl_rounds_follow(a);
    }
    if (a->bulk.on) {
        return fl_ctl_bulk(a);
    }
    fl_buf_init(&request, REQUEST_MAX);
    if (command->request->fill != NULL) {
        code = command->request->fill(a, &request);
        if (code != FL_CTL_OK) {
            goto done;
        }
    }
    a->out.array = a->out.json ? json_array() : NULL;
    a->out.round = a->round;
    code = a->verb == FL_VERB_EXPORT ? ctl_export_model(a, &request) : fl_ctl_call(a, &request);
    if (code != FL_CTL_OK && a->verb == FL_VERB_ADMIN_CERTIFICATE) {
        fl_ctl_forget_key(a->out.file);
    }
    if (code == FL_CTL_OK && command->answer->finish != NULL) {
        command->answer->finish(&a->out);
    }
    if (fflush(stdout) != 0) {
        code = FL_CTL_FAILED;
    }
done:
    json_decref(a->out.array);
    fl_buf_done(&request);
    return code;
}

int main(int argc, char **argv)
{
    struct fl_ctl_args a = {
        .out = {.file = "model.safetensors"}, .reason = fl_wire_lend(""), .verb = FL_VERB_N};
    /* Without SIGXFSZ a file over the size limit is a write error like a full disk, not a death in
       the middle of a backup. */
    static const struct sigaction ignore = {.sa_handler = SIG_IGN};
    int code;

    (void)sigaction(SIGXFSZ, &ignore, NULL);
    code = ctl_parse(argc, argv, &a);
    if (code < 0) {
        code = ctl_run(&a);
    }
    fl_wire_invite_done(&a.out.invite);
    return code;
}
