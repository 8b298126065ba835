/* fl-serverd: coordinates a federation described in one YAML file. */

#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "libfl/base/args.h"
#include "libfl/base/fs.h"
#include "libfl/base/owner.h"
#include "libfl/base/undumpable.h"
#include "libfl/model/units.h"
#include "libfl/net/failed_start.h"
#include "libfl/net/loop.h"
#include "libfl/num/gemm.h"
#include "server/auth/auth.h"
#include "server/daemon/serverd.h"
#include "server/daemon/serverd_exit.h"
#include "server/daemon/serverd_preflight.h"
#include "server/http/server_http.h"
#include "server/http/server_metrics.h"
#include "server/network/no_memory.h"
#include "server/runtime/runtime.h"

static const struct fl_arg options[] = {
    FL_ARG("check-config", 'c', NULL, 'c',
           "check the file and all that a start needs, print the layers of the model, start "
           "nothing; root checks as the owner of the state folder"),
    FL_ARG("init", '\0', NULL, 'i',
           "create the identity of the federation: its root, the intermediate that signs, the "
           "server's certificate; keeps what exists"),
    FL_ARG("renew-root", '\0', NULL, 'n',
           "with --init: create another root, trusted beside the old one for a while"),
    FL_ARG("recover", '\0', NULL, 'R',
           "when the state database is lost or damaged: make the newest good checkpoint the last "
           "committed round, report what is lost, start nothing"),
    FL_ARG("reference", '\0', NULL, 'r', "print all configuration keys with defaults (Markdown)"),
    FL_ARG("metrics", '\0', NULL, 'm', "print all metrics of the HTTP port (Markdown)"),
    FL_ARG("paths", '\0', NULL, 'p', "print all paths of the HTTP port (Markdown)"),
    FL_ARG("hooks", '\0', NULL, 'k', "print all hooks with their variables (Markdown)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    FL_ARG("version", 'V', NULL, 'V', "version"),
    {.name = NULL}};

static void serverd_usage(FILE *out)
{
    const struct fl_preset *p;
    const char *const *n;

    (void)fputs(
        "usage: fl-serverd [--check-config | --init [--renew-root] | --recover] CONFIG.yaml\n"
        "\n"
        "Coordinates a federation: selects clients, sends them the model, requests updates,\n"
        "aggregates, and stores everything it accepted on disk.\n"
        "\n",
        out);
    fl_args_help(options, out);
    (void)fputs("\n"
                "SIGTERM and SIGINT stop it with everything committed; the next start continues.\n"
                "SIGHUP reloads the settings that a running server can change.\n"
                "exit codes: 0 done, 1 failure while running, 2 usage, 3 configuration,\n"
                "            4 state folder or database, 5 data set or model file, 6 address,\n"
                "            8 certificates and keys\n"
                "\n"
                "algorithms:\n",
                out);
    for (p = fl_strategy_presets(); p->name != NULL; p++) {
        (void)fprintf(out, "  %-16s %s\n", p->name, p->help);
    }
    (void)fputs("networks:\n ", out);
    for (n = fl_net_presets(); *n != NULL; n++) {
        (void)fprintf(out, " %s", *n);
    }
    (void)fputc('\n', out);
}

/* What `reference` appends. */
static int serverd_print(int (*reference)(struct fl_buf *out))
{
    struct fl_buf buf;
    bool printed = false;

    fl_buf_init(&buf, 1u << 20);
    if (reference(&buf) == FL_OK) {
        (void)fwrite(buf.data, 1, buf.len, stdout);
        printed = fflush(stdout) == 0;
    }
    fl_buf_done(&buf);
    return printed ? FL_EXIT_OK : FL_EXIT_FAILURE;
}

/* An address may become free soon without help; a folder or a data set needs the operator. */
#define LONGEST_PAUSE_ADDRESS_MS (30 * 1000)
#define LONGEST_PAUSE_MS         (5 * 60 * 1000)

static int serverd_serve(const struct fl_serverd_conf *own, struct fl_log *log,
                         struct fl_log_out *out)
{
    int exit_code;

    /*
     * One heap for all threads: memory that uploads freed serves the aggregation that follows, and
     * an idle daemon is small. Threads allocate per job, not per value, so there is no contention.
     */
    (void)mallopt(M_ARENA_MAX, 1);
    /*
     * Chunks of uploads come from the heap instead of a mapping each, and freed memory at its end
     * stays for the next ones; the work thread returns it before it aggregates.
     */
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    fl_undumpable();
    if (fl_serverd_keep_back_memory(log) != FL_OK) {
        fl_log(log, FL_LOG_ERROR, "server", "cannot start: out of memory");
        return FL_EXIT_FAILURE;
    }
    fl_signal_ignore(SIGHUP); /* A reload is possible only once the server runs. */
    exit_code = fl_server_run(own, log, out);
    if (exit_code != FL_EXIT_OK &&
        !fl_start_failed(log,
                         exit_code == FL_EXIT_LISTEN ? LONGEST_PAUSE_ADDRESS_MS : LONGEST_PAUSE_MS))
    {
        exit_code = FL_EXIT_OK; /* A stop signal arrived. */
    }
    fl_log_left_out(log, /* all= */ true);
    return exit_code;
}

/* --init, with `renew_root` for a new root. Returns the exit code. */
static int serverd_init(const struct fl_serverd_conf *own, const struct fl_log *log,
                        bool renew_root)
{
    const struct fl_auth_setup setup = {.conf = own->conf, .state_dir = own->state_dir, .log = log};
    struct fl_err err = {0};
    int rv;

    if (fl_auth_own_pki(own->conf)) {
        (void)fprintf(stderr, "fl-serverd: `tls: certificate` configures the operator's own "
                              "certificates: nothing to create here\n");
        return FL_EXIT_CONFIG;
    }
    /* Files that root creates must belong to the service user, or the service cannot read them. */
    rv = fl_owner_become(own->state_dir, own->path, NULL, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_preflight_federation(own, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_auth_init(&setup, renew_root, &err);
done:
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-serverd: %s\n", fl_err_text(&err, rv));
        return FL_EXIT_IDENTITY;
    }
    return fflush(stdout) == 0 ? FL_EXIT_OK : FL_EXIT_FAILURE;
}

/*
 * --recover: make the newest good checkpoint of the state folder its last committed round, and
 * print the result. Starts no server. Returns the exit code.
 */
static int serverd_recover(const struct fl_serverd_conf *own, const struct fl_log *log)
{
    const char *dir = own->state_dir;
    struct fl_err err = {0};
    int exit_code = FL_EXIT_STATE;
    int lock = -1;
    int rv = fl_fs_exists(dir)
                 ? fl_fs_lock_dir(dir, &lock, &err)
                 : fl_err_set(&err, FL_ENOENT, "the state folder '%s' does not exist", dir);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_preflight_federation(own, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_runtime_rebuild(own->conf, dir, log, &err);
    if (rv != FL_OK) {
        goto done;
    }
    exit_code = FL_EXIT_OK;
done:
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-serverd: cannot recover: %s\n", fl_err_text(&err, rv));
    }
    if (lock >= 0) {
        (void)close(lock);
    }
    return exit_code;
}

enum task { TASK_RUN, TASK_CHECK, TASK_RECOVER, TASK_INIT, TASK_RENEW_ROOT };

static void serverd_print_note(void *ctx, const char *note)
{
    (void)ctx;
    (void)printf("%s\n", note);
}

static void serverd_print_error(void *ctx, const char *text)
{
    fl_log_out_complain(ctx, "fl-serverd", text);
}

static void serverd_warn(void *ctx, const char *text)
{
    fl_log(ctx, FL_LOG_WARNING, "server", "%s", text);
}

/* Check as the owner of the state folder: root has permissions that a service does not. */
static int serverd_check_config(const struct fl_serverd_conf *own, struct fl_log_out *out)
{
    static struct fl_preflight_report report;
    const struct fl_server_conf *conf = own->conf;
    struct fl_buf table;
    struct fl_err err = {0};
    int exit_code = FL_EXIT_FAILURE;
    int rv = fl_owner_become(own->state_dir, own->path, &report.notes, &err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_preflight(own, &report, &exit_code, &err);
    if (rv != FL_OK) {
        goto done;
    }
    /* What a start would do and warn of, and the units it would use. */
    (void)printf("%s: ok: federation '%s', algorithm %s, %zu layers, %zu parameters\n", own->path,
                 conf->main->federation, conf->strategy->algorithm, fl_layout_units(conf->layout),
                 fl_layout_count(conf->layout));
    fl_findings_each(&report.notes, serverd_print_note, NULL);
    fl_buf_init(&table, (size_t)FL_LAYOUT_MAX_UNITS * 2 * FL_NAME_MAX);
    if (fl_layout_table(conf->layout, &table) == FL_OK) {
        (void)fwrite(table.data, 1, table.len, stdout);
    }
    fl_buf_done(&table);
    exit_code = FL_EXIT_OK;
done:
    if (rv != FL_OK) {
        if (report.errors.n == 0) {
            serverd_print_error(out, fl_err_text(&err, rv));
        }
        fl_findings_each(&report.errors, serverd_print_error, out);
        fl_findings_each(&report.notes, serverd_print_note, NULL);
    }
    return fflush(stdout) == 0 ? exit_code : FL_EXIT_FAILURE;
}

static int serverd_load(const char *path, struct fl_log_out *out, struct fl_serverd_conf **ret)
{
    static struct fl_findings all;
    struct fl_err err = {0};
    int rv =
        fl_gemm_init(&err); /* First, else its error would be reported for the network's key. */

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_serverd_conf_load(path, &all, ret, &err);
done:
    if (rv == FL_ENOENT && !fl_fs_exists(path)) {
        (void)fl_err_set(&err, rv,
                         "the configuration '%.200s' does not exist: write one; fl-serverd "
                         "--reference prints all its keys",
                         path);
    }
    fl_findings_each(&all, serverd_print_error, out);
    if (rv != FL_OK && all.n == 0) {
        serverd_print_error(out, fl_err_text(&err, rv));
    }
    return rv;
}

static int serverd_run(const char *path, enum task task)
{
    struct fl_serverd_conf *own = NULL;
    const struct fl_server_conf *conf;
    static struct fl_log_limit limit = FL_LOG_LIMIT_INIT;
    static struct fl_findings odd;
    struct fl_log_out out;
    struct fl_log log = {.level = FL_LOG_INFO,
                         .sink = fl_log_out_sink,
                         .note = fl_log_out_note,
                         .ctx = &out,
                         .limit = &limit};
    int exit_code;

    fl_log_out_init(&out, STDERR_FILENO);
    if (serverd_load(path, &out, &own) != FL_OK) {
        return FL_EXIT_CONFIG;
    }
    conf = own->conf;
    atomic_store(&log.level, (int)conf->main->log_level);
    atomic_store(&out.format, (int)conf->main->log_format);
    if (task == TASK_RECOVER) {
        exit_code = serverd_recover(own, &log);
    } else if (task == TASK_INIT || task == TASK_RENEW_ROOT) {
        exit_code = serverd_init(own, &log, task == TASK_RENEW_ROOT);
    } else if (task == TASK_CHECK) {
        exit_code = serverd_check_config(own, &out);
    } else {
        fl_server_conf_odd(conf, &odd);
        fl_findings_each(&odd, serverd_warn, &log);
        exit_code = serverd_serve(own, &log, &out);
    }
    fl_serverd_conf_free(own);
    return exit_code;
}

int main(int argc, char **argv)
{
    enum task task = TASK_RUN;
    struct fl_args args = {.program = "fl-serverd", .rows = options, .argc = argc, .argv = argv};
    int opt;

    while ((opt = fl_args_next(&args)) != FL_ARGS_END) {
        switch (opt) {
        case 'c':
            task = TASK_CHECK;
            break;
        case 'i':
            task = task == TASK_RENEW_ROOT ? task : TASK_INIT;
            break;
        case 'n':
            task = TASK_RENEW_ROOT;
            break;
        case 'R':
            task = TASK_RECOVER;
            break;
        case 'r':
            return serverd_print(fl_server_conf_reference);
        case 'm':
            return serverd_print(fl_server_metrics_reference);
        case 'p':
            return serverd_print(fl_server_http_reference);
        case 'k':
            return serverd_print(fl_hooks_reference);
        case 'h':
            serverd_usage(stdout);
            return FL_EXIT_OK;
        case 'V':
            (void)printf("fl-serverd %s\n", PACKAGE_VERSION);
            return FL_EXIT_OK;
        default:
            return FL_EXIT_USAGE;
        }
    }
    if (args.n_operands != 1) {
        (void)fprintf(stderr, "fl-serverd: expected one configuration file, found %d arguments\n",
                      args.n_operands);
        return FL_EXIT_USAGE;
    }
    return serverd_run(argv[1], task);
}
