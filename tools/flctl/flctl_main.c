/*
 * flctl: administers a running fl-serverd and exports its model. Reads the command line, makes the
 * request, calls the server (admin_call.c) and returns the exit code. Main thread. It formats no
 * answers: print.c and identity_print.c do.
 */

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/json/json.h"
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
    OPT_USES,
    OPT_LABELS,
    OPT_MANY,
    OPT_ALL,
    OPT_SERIAL,
    OPT_PUBLIC_KEY,
    OPT_YES
};

static void ctl_usage(FILE *out)
{
    const struct fl_ctl_command *c;

    (void)fputs("usage: flctl [options] COMMAND\n\ncommands:\n", out);
    for (c = fl_ctl_commands; c->name != NULL; c++) {
        (void)fprintf(out, "  %-14s %s\n", c->name, c->help);
    }
    (void)fputs(
        "  backup TARGET  copy the state folder of --state-dir into a new folder, as of one\n"
        "                 instant, whether its server runs or not\n"
        "  restore BACKUP make the state folder of --state-dir from a backup\n"
        "  unmove         let the state folder of --state-dir be started again after backup\n"
        "                 --moved, when no other server was or will be started from that backup\n",
        out);
    (void)fputs(
        "\noptions:\n"
        "  -s, --socket PATH     admin socket of the server; default: $FL_ADMIN_SOCKET, then\n"
        "                        /run/fl-serverd/admin.sock\n"
        "  -d, --state-dir DIR   the same as --socket DIR/admin.sock\n"
        "  -i, --instance NAME   the server that fl-serverd@NAME runs: its socket\n"
        "                        /run/fl-serverd-NAME/admin.sock and its state folder\n"
        "      --server ADDRESS  over TLS instead, host:port: one of the server's listen_admin\n"
        "      --identity DIR    with --server: the folder that admin-certificate made; or, each\n"
        "      --certificate F   by itself: the admin's certificate and its chain to a root,\n"
        "      --key F           its private key,\n"
        "      --ca F            and the roots of the server's certificate\n"
        "  -j, --json            print JSON\n"
        "  -l, --last N          rounds, audit: only the newest N\n"
        "  -a, --abandoned       rounds: the abandoned ones, when and by what\n"
        "  -m, --reason TEXT     pause, abort-round, revoke, evict, disable: the reason, for the "
        "log\n"
        "                        and the audit; at most 300 bytes\n"
        "  -f, --force           rollback: even if clients and server have state between rounds;\n"
        "                        revoke, disable: even if the server knows no such name\n"
        "      --yes             revoke: do not ask for confirmation; required without a terminal\n"
        "  -r, --round N         export, hold, release: the round; export without it: the last\n"
        "  -u, --unseen-for SPAN clients forget: all not seen for so long, such as 720h\n"
        "  -o, --output FILE     export: file to write; default model.safetensors.\n"
        "                        admin-certificate: the folder\n"
        "      --valid SPAN      invite, admin-certificate: lifetime; default: as the server "
        "is\n"
        "                        configured\n"
        "      --uses N          invite: how many clients may join with it; default 1\n"
        "      --labels A=B,…    invite: labels that the client announces\n"
        "      --many FILE       invite: one name per line, labels may follow; -: standard input. "
        "Prints a\n"
        "                        name, a tab and the invitation for each, or none if one is "
        "invalid\n"
        "      --without-keys    backup: leave out keys and certificates\n"
        "      --moved           backup: of a stopped server whose federation moves to another "
        "host;\n"
        "                        marks the state folder, so that no server starts from it again;\n"
        "                        restore: of such a backup, the federation goes on as after a\n"
        "                        restart\n"
        "      --all             invitations, certificates: also those that are not valid any "
        "more\n"
        "      --serial HEX      revoke, disable, enable: one certificate, as certificates lists "
        "it\n"
        "      --public-key HEX  revoke, disable, enable: all certificates of that key (its "
        "SHA-256)\n"
        "      --reference       print the figures of rounds and clients (Markdown)\n"
        "  -h, --help            this text\n"
        "  -V, --version         version\n"
        "\nexit codes: 0 done, 1 the call failed, 2 usage, 3 no server at the socket or address\n",
        out);
}

static const struct fl_ctl_command *ctl_find_command(const char *name)
{
    const struct fl_ctl_command *c;

    for (c = fl_ctl_commands; c->name != NULL; c++) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return NULL;
}

/* More than the number of commands. */
#define MOST_COMMANDS 64

static int ctl_unknown_command(const char *name)
{
    const char *names[MOST_COMMANDS];
    const char *near;
    size_t n;

    for (n = 0; n < MOST_COMMANDS && fl_ctl_commands[n].name != NULL; n++) {
        names[n] = fl_ctl_commands[n].name;
    }
    near = fl_str_nearest(name, names, n);
    (void)fprintf(stderr, "flctl: unknown command '%s'%s%s%s (see flctl --help)\n", name,
                  near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?" : "");
    return FL_CTL_USAGE;
}

/* "90m", "720h", "30d" */
static bool ctl_parse_span(const char *text, uint64_t *ret_ms)
{
    static const struct {
        char unit;
        uint64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    char digits[16] = "";
    size_t len = strlen(text);
    uint64_t n;
    size_t i;

    if (len < 2 || len >= sizeof(digits)) {
        return false;
    }
    (void)memcpy(digits, text, len - 1);
    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (text[len - 1] == units[i].unit && fl_str_to_u64(digits, &n) == FL_OK &&
            n <= UINT64_MAX / 2 / units[i].ms)
        {
            *ret_ms = n * units[i].ms;
            return true;
        }
    }
    return false;
}

/* Checks a value of an option; the exit code if it is wrong. */
static int ctl_check_value(bool right, const char *option, const char *expected, const char *found)
{
    if (right) {
        return -1;
    }
    (void)fprintf(stderr, "flctl: --%s: expected %s, found '%s'\n", option, expected, found);
    return FL_CTL_USAGE;
}

/* Options without a letter: an exit code to end with, or -1 to continue. */
static int ctl_parse_word(struct fl_ctl_args *a, int opt, const char *arg)
{
    switch (opt) {
    case OPT_VALID:
        return ctl_check_value(ctl_parse_span(arg, &a->valid_ms) && a->valid_ms > 0, "valid",
                               "a span such as 1h", arg);
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
    case OPT_ALL:
        a->out.all = true;
        return -1;
    case OPT_YES:
        a->yes = true;
        return -1;
    case OPT_SERIAL:
        a->serial = arg;
        return -1;
    case OPT_PUBLIC_KEY:
        a->public_key = arg;
        return -1;
    default:
        (void)fputs("try flctl --help\n", stderr);
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
        return ctl_check_value(fl_str_to_u64(arg, &a->last) == FL_OK && a->last <= UINT32_MAX,
                               "last", "a number", arg);
    case 'r':
        a->has_round = true;
        return ctl_check_value(fl_str_to_u64(arg, &a->round) == FL_OK, "round", "a number", arg);
    case 'u':
        return ctl_check_value(ctl_parse_span(arg, &a->forget.unseen_for_ms) &&
                                   a->forget.unseen_for_ms > 0,
                               "unseen-for", "a span such as 720h", arg);
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
        (void)fprintf(stderr, "flctl: --reason: %zu bytes, at most %d are allowed\n", strlen(arg),
                      FL_WIRE_MAX_REASON);
        return FL_CTL_USAGE;
    case 'o':
        a->out.file = arg;
        a->has_output = true;
        return -1;
    case 'h':
        ctl_usage(stdout);
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

int fl_ctl_complain(const struct fl_ctl_args *args, int code, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "flctl: %s: %s\n", args->command->name, fl_str_clean(text));
    return code;
}

/* Finds the command, of two words or one, and reads its arguments. */
static int ctl_parse_command(int n, char **words, struct fl_ctl_args *a)
{
    char both[64];
    int used = 2;

    if (n == 0) {
        (void)fprintf(stderr, "flctl: expected a command (see flctl --help)\n");
        return FL_CTL_USAGE;
    }
    if (fl_ctl_is_backup(words[0])) {
        return fl_ctl_backup(&a->backup, n, words);
    }
    if (n >= 2 && snprintf(both, sizeof(both), "%s %s", words[0], words[1]) < (int)sizeof(both)) {
        a->command = ctl_find_command(both);
    }
    if (a->command == NULL) {
        used = 1;
        a->command = ctl_find_command(words[0]);
    }
    if (a->command == NULL) {
        return ctl_unknown_command(words[0]);
    }
    if (a->command->args != NULL) {
        return a->command->args(a, n - used, words + used);
    }
    return n == used ? -1
                     : fl_ctl_complain(a, FL_CTL_USAGE,
                                       "unexpected argument '%s' (see flctl --help)", words[used]);
}

static int ctl_parse(int argc, char **argv, struct fl_ctl_args *a)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'},
        {"state-dir", required_argument, NULL, 'd'},
        {"instance", required_argument, NULL, 'i'},
        {"json", no_argument, NULL, 'j'},
        {"last", required_argument, NULL, 'l'},
        {"abandoned", no_argument, NULL, 'a'},
        {"round", required_argument, NULL, 'r'},
        {"output", required_argument, NULL, 'o'},
        {"force", no_argument, NULL, 'f'},
        {"reason", required_argument, NULL, 'm'},
        {"unseen-for", required_argument, NULL, 'u'},
        {"without-keys", no_argument, NULL, 'K'},
        {"moved", no_argument, NULL, 'M'},
        {"reference", no_argument, NULL, 'R'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {"valid", required_argument, NULL, OPT_VALID},
        {"uses", required_argument, NULL, OPT_USES},
        {"server", required_argument, NULL, OPT_SERVER},
        {"identity", required_argument, NULL, OPT_IDENTITY},
        {"certificate", required_argument, NULL, OPT_CERTIFICATE},
        {"key", required_argument, NULL, OPT_KEY},
        {"ca", required_argument, NULL, OPT_CA},
        {"labels", required_argument, NULL, OPT_LABELS},
        {"many", required_argument, NULL, OPT_MANY},
        {"all", no_argument, NULL, OPT_ALL},
        {"serial", required_argument, NULL, OPT_SERIAL},
        {"public-key", required_argument, NULL, OPT_PUBLIC_KEY},
        {"yes", no_argument, NULL, OPT_YES},
        {NULL, 0, NULL, 0}};
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
    while ((opt = getopt_long(argc, argv, "s:d:i:jl:r:o:u:m:afhV", options, NULL)) != -1) {
        code = ctl_parse_option(a, opt, optarg);
        if (code >= 0) {
            return code;
        }
    }
    code = ctl_parse_command(argc - optind, argv + optind, a);
    if (code >= 0) {
        return code;
    }
    if (fl_fs_absolute(a->socket, path, sizeof(path), &err) != FL_OK ||
        fl_str_copy(a->socket, sizeof(a->socket), path) != FL_OK)
    {
        (void)fprintf(stderr, "flctl: the path of the socket is too long\n");
        return FL_CTL_USAGE;
    }
    return -1;
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
    int n = snprintf(tmp, sizeof(tmp), "%s.tmp", a->out.file);
    int code;

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
    if (code == FL_CTL_OK && (fflush(a->out.export) != 0 || fsync(fileno(a->out.export)) != 0)) {
        perror(tmp);
        code = FL_CTL_FAILED;
    }
    if (fclose(a->out.export) != 0 && code == FL_CTL_OK) {
        perror(tmp);
        code = FL_CTL_FAILED;
    }
    if (code == FL_CTL_OK && fl_fs_publish(tmp, a->out.file, true, &err) != FL_OK) {
        (void)fprintf(stderr, "flctl: %s\n", err.msg);
        code = FL_CTL_FAILED;
    }
    if (code != FL_CTL_OK) {
        (void)unlink(tmp);
    }
    return code;
}

static int ctl_run(struct fl_ctl_args *a)
{
    struct fl_buf request;
    int code;

    fl_buf_init(&request, REQUEST_MAX);
    code = a->command->request != NULL ? a->command->request(a, &request) : FL_CTL_OK;
    if (code != FL_CTL_OK) {
        fl_buf_done(&request);
        return code;
    }
    a->out.array = a->out.json ? json_array() : NULL;
    a->out.round = a->round;
    code = strcmp(a->command->name, "export") == 0 ? ctl_export_model(a, &request)
                                                   : fl_ctl_call(a, &request);
    if (code != FL_CTL_OK && a->command->message == fl_ctl_on_admin) {
        fl_ctl_forget_key(a->out.file);
    }
    if (code == FL_CTL_OK && a->command->finish != NULL) {
        a->command->finish(&a->out);
    }
    json_decref(a->out.array);
    fl_buf_done(&request);
    return fflush(stdout) == 0 ? code : FL_CTL_FAILED;
}

int main(int argc, char **argv)
{
    struct fl_ctl_args a = {.out = {.file = "model.safetensors"}, .reason = fl_wire_lend("")};
    /* Without SIGXFSZ a file over the size limit is a write error like a full disk, not a death in
       the middle of a backup. */
    static const struct sigaction ignore = {.sa_handler = SIG_IGN};
    int code;

    (void)sigaction(SIGXFSZ, &ignore, NULL);
    code = ctl_parse(argc, argv, &a);
    code = code >= 0 ? code : ctl_run(&a);
    fl_wire_invite_done(&a.out.invite);
    return code;
}
