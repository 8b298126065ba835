/* flctl: look at a running fl-serverd and take its model out. */

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/json/json.h"
#include "tools/flctl/flctl.h"

#define PATH_SIZE 4096

static void usage(FILE *out)
{
    const struct fl_ctl_command *c;

    (void)fputs("usage: flctl [options] COMMAND\n\ncommands:\n", out);
    for (c = fl_ctl_commands; c->name != NULL; c++) {
        (void)fprintf(out, "  %-14s %s\n", c->name, c->help);
    }
    (void)fputs(
        "  backup TARGET  copy the state folder of --state-dir into a new folder, as of one\n"
        "                 instant, whether its server runs or not\n"
        "  restore BACKUP make the state folder of --state-dir from a backup\n",
        out);
    (void)fputs(
        "\noptions:\n"
        "  -s, --socket PATH     admin socket of the server; default: $FL_ADMIN_SOCKET, then\n"
        "                        /run/fl-serverd/admin.sock\n"
        "  -d, --state-dir DIR   the same as --socket DIR/admin.sock\n"
        "  -j, --json            print JSON\n"
        "  -l, --last N          rounds: only the newest N\n"
        "  -a, --abandoned       rounds: those that were given up, when and by what\n"
        "  -m, --reason TEXT     pause, abort-round: why, for whoever looks; at most 300 bytes\n"
        "  -f, --force           rollback: although clients and server keep state between rounds\n"
        "  -r, --round N         export, hold, release: of which round; export without: the last\n"
        "  -u, --unseen-for SPAN clients forget: all that are away for so long, such as 720h\n"
        "  -o, --output FILE     export: where to write; default model.safetensors\n"
        "      --without-keys    backup: leave out keys and certificates\n"
        "      --moved           restore: the server was stopped before the backup and never\n"
        "                        started since; the federation goes on as after a restart\n"
        "      --reference       print what is told of rounds and clients (Markdown)\n"
        "  -h, --help            this text\n"
        "  -V, --version         version\n"
        "\nexit codes: 0 done, 1 the call failed, 2 usage, 3 no server at the socket\n",
        out);
}

struct arguments {
    char socket[PATH_SIZE];
    struct fl_ctl_out out;
    uint64_t last;
    uint64_t round;
    bool has_round;
    bool force;
    char *reason;
    struct fl_wire_forget forget;
    struct fl_ctl_backup backup;
    const struct fl_ctl_command *command;
};

static const struct fl_ctl_command *find(const char *name)
{
    const struct fl_ctl_command *c;

    for (c = fl_ctl_commands; c->name != NULL; c++) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[16];
    const char *near;
    size_t n;

    for (n = 0; n < 16 && fl_ctl_commands[n].name != NULL; n++) {
        names[n] = fl_ctl_commands[n].name;
    }
    near = fl_str_nearest(name, names, n);
    (void)fprintf(stderr, "flctl: unknown command '%s'%s%s%s (see flctl --help)\n", name,
                  near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?" : "");
    return FL_CTL_USAGE;
}

/* "90m", "720h", "30d" */
static bool parse_span(const char *text, uint64_t *ret_ms)
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

/* An exit code to end with, or -1 to go on. */
static int parse_option(struct arguments *a, int opt, const char *arg)
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
    case 'j':
        a->out.json = true;
        return -1;
    case 'l':
        if (fl_str_to_u64(arg, &a->last) == FL_OK && a->last <= UINT32_MAX) {
            return -1;
        }
        (void)fprintf(stderr, "flctl: --last: expected a number, found '%s'\n", arg);
        return FL_CTL_USAGE;
    case 'r':
        a->has_round = true;
        if (fl_str_to_u64(arg, &a->round) == FL_OK) {
            return -1;
        }
        (void)fprintf(stderr, "flctl: --round: expected a number, found '%s'\n", arg);
        return FL_CTL_USAGE;
    case 'u':
        if (parse_span(arg, &a->forget.unseen_for_ms) && a->forget.unseen_for_ms > 0) {
            return -1;
        }
        (void)fprintf(stderr, "flctl: --unseen-for: expected a span such as 720h, found '%s'\n",
                      arg);
        return FL_CTL_USAGE;
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
    case 'o':
        a->out.file = arg;
        return -1;
    case 'h':
        usage(stdout);
        return FL_CTL_OK;
    case 'R':
        fl_ctl_reference();
        return FL_CTL_OK;
    case 'V':
        (void)printf("flctl %s\n", PACKAGE_VERSION);
        return FL_CTL_OK;
    default:
        (void)fputs("try flctl --help\n", stderr);
        return FL_CTL_USAGE;
    }
}

/* What follows "clients forget". */
static int parse_forget(int n, char **args, struct arguments *a)
{
    a->command = find("clients forget");
    if (n == (a->forget.unseen_for_ms == 0 ? 1 : 0) &&
        (n == 0 || (fl_name_valid(args[0]) &&
                    fl_str_copy(a->forget.name, sizeof(a->forget.name), args[0]) == FL_OK)))
    {
        return -1;
    }
    (void)fputs("flctl: clients forget: expected the name of a client, or --unseen-for\n", stderr);
    return FL_CTL_USAGE;
}

static int parse(int argc, char **argv, struct arguments *a)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'}, {"state-dir", required_argument, NULL, 'd'},
        {"json", no_argument, NULL, 'j'},         {"last", required_argument, NULL, 'l'},
        {"abandoned", no_argument, NULL, 'a'},    {"round", required_argument, NULL, 'r'},
        {"output", required_argument, NULL, 'o'}, {"force", no_argument, NULL, 'f'},
        {"reason", required_argument, NULL, 'm'}, {"unseen-for", required_argument, NULL, 'u'},
        {"without-keys", no_argument, NULL, 'K'}, {"moved", no_argument, NULL, 'M'},
        {"reference", no_argument, NULL, 'R'},    {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},      {NULL, 0, NULL, 0}};
    const char *env = getenv("FL_ADMIN_SOCKET");
    char path[PATH_SIZE];
    struct fl_err err = {0};
    int opt;

    if (fl_str_copy(a->socket, sizeof(a->socket),
                    env != NULL ? env : "/run/fl-serverd/admin.sock") != FL_OK)
    {
        return FL_CTL_USAGE;
    }
    while ((opt = getopt_long(argc, argv, "s:d:jl:r:o:u:m:afhV", options, NULL)) != -1) {
        int code = parse_option(a, opt, optarg);

        if (code >= 0) {
            return code;
        }
    }
    if (argc - optind >= 2 && strcmp(argv[optind], "clients") == 0 &&
        strcmp(argv[optind + 1], "forget") == 0)
    {
        return parse_forget(argc - optind - 2, argv + optind + 2, a);
    }
    if (argc == optind) {
        (void)fprintf(stderr, "flctl: expected a command (see flctl --help)\n");
        return FL_CTL_USAGE;
    }
    if (strcmp(argv[optind], "backup") == 0 || strcmp(argv[optind], "restore") == 0) {
        return fl_ctl_backup(&a->backup, argc - optind, argv + optind);
    }
    a->command = find(argv[optind]);
    if (a->command == NULL) {
        return unknown_command(argv[optind]);
    }
    optind++;
    if (optind < argc && strcmp(argv[optind - 1], "rollback") == 0) {
        int code = parse_option(a, 'r', argv[optind++]);

        if (code >= 0) {
            return code;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "flctl: %s: unexpected argument '%s' (see flctl --help)\n",
                      a->command->name, argv[optind]);
        return FL_CTL_USAGE;
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
 * Written beside and renamed, so that a broken call never leaves half a model. The rename
 * would put a file in the place of a device or a folder: these are refused.
 */
static int export_model(struct arguments *a, const struct fl_buf *request)
{
    char tmp[PATH_SIZE];
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
    code = fl_ctl_call(a->socket, a->command, request, &a->out);
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

/* What the command asks for; a command without words of its own sends an empty message. */
static int fill_request(const struct arguments *a, struct fl_buf *request)
{
    const char *name = a->command->name;
    struct fl_wire_hold hold = {a->round, strcmp(name, "release") == 0};
    const struct fl_wire_list_rounds list = {(uint32_t)a->last, a->out.abandoned};
    int rv = FL_OK;

    if (strcmp(name, "rounds") == 0) {
        rv = fl_wire_list_rounds_encode(&list, request);
    } else if (strcmp(name, "export") == 0) {
        rv = fl_wire_export_request_encode(a->round, request);
    } else if (strcmp(name, "hold") == 0 || hold.release) {
        if (!a->has_round) {
            (void)fprintf(stderr, "flctl: %s: --round N says which checkpoint\n", name);
            return FL_CTL_USAGE;
        }
        rv = fl_wire_hold_encode(&hold, request);
    } else if (a->command->message == fl_ctl_on_controlled) {
        const struct fl_wire_control control = {a->reason};

        rv = fl_wire_control_encode(&control, request);
    } else if (strcmp(name, "rollback") == 0) {
        const struct fl_wire_rollback rollback = {a->round, a->force};

        if (!a->has_round) {
            (void)fprintf(stderr, "flctl: rollback: expected the round to go back to\n");
            return FL_CTL_USAGE;
        }
        rv = fl_wire_rollback_encode(&rollback, request);
    }
    return rv == FL_OK ? FL_CTL_OK : FL_CTL_FAILED;
}

static int run(struct arguments *a)
{
    struct fl_buf request;
    int code;

    fl_buf_init(&request, 4096);
    code = fill_request(a, &request);
    if (code != FL_CTL_OK) {
        fl_buf_done(&request);
        return code;
    }
    if (strcmp(a->command->name, "clients forget") == 0 &&
        fl_wire_forget_encode(&a->forget, &request) != FL_OK)
    {
        return FL_CTL_FAILED;
    }
    a->out.array = a->out.json ? json_array() : NULL;
    a->out.round = a->round;
    code = strcmp(a->command->name, "export") == 0
               ? export_model(a, &request)
               : fl_ctl_call(a->socket, a->command, &request, &a->out);
    if (code == FL_CTL_OK && a->command->finish != NULL) {
        a->command->finish(&a->out);
    }
    json_decref(a->out.array);
    fl_buf_done(&request);
    return fflush(stdout) == 0 ? code : FL_CTL_FAILED;
}

int main(int argc, char **argv)
{
    struct arguments a = {.out = {.file = "model.safetensors"}, .reason = fl_wire_lend("")};
    int code = parse(argc, argv, &a);

    return code >= 0 ? code : run(&a);
}
