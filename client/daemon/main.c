/* fl-clientd: takes part in a federation with data that never leaves this machine. */

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "client/daemon/client.h"
#include "client/daemon/exit_codes.h"
#include "client/daemon/preflight.h"
#include "libfl/base/buf.h"
#include "libfl/net/failed_start.h"
#include "libfl/net/loop.h"

static void usage(FILE *out)
{
    (void)fputs(
        "usage: fl-clientd [--check-config] CONFIG.yaml\n"
        "\n"
        "Takes part in a federation: receives the model, trains on local data that never\n"
        "leaves this machine, and uploads the layers that the server asks for. Comes back by\n"
        "itself after any loss of the connection.\n"
        "\n"
        "  -c, --check-config  check the file and all that a start needs, start nothing\n"
        "      --reference     print all configuration keys with defaults (Markdown)\n"
        "  -h, --help          this text\n"
        "  -V, --version       version\n"
        "\n"
        "SIGTERM and SIGINT stop it; a finished result is kept and sent after the next start.\n"
        "SIGHUP reads the file again and takes up what a running client can.\n"
        "exit codes: 0 done, 1 failure while running, 2 usage, 3 configuration,\n"
        "            4 state folder, 5 data set, 7 refused by the server for good\n",
        out);
}

static int reference(void)
{
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, 1u << 20);
    rv = fl_client_conf_reference(&buf);
    if (rv == FL_OK) {
        (void)fwrite(buf.data, 1, buf.len, stdout);
    }
    fl_buf_done(&buf);
    return rv == FL_OK && fflush(stdout) == 0 ? FL_EXIT_OK : FL_EXIT_FAILURE;
}

/* What is wrong with a folder or a data set needs somebody. */
#define LONGEST_PAUSE_MS (5 * 60 * 1000)

static int take_part(const struct fl_client_conf *conf, const char *path, struct fl_log *log,
                     struct fl_log_out *out)
{
    int exit_code;

    fl_signal_ignore(SIGHUP); /* Until it runs there is nothing to take up. */
    exit_code = fl_client_run(conf, path, log, out);
    if (exit_code != FL_EXIT_OK && exit_code != FL_EXIT_REFUSED &&
        !fl_start_failed(log, LONGEST_PAUSE_MS))
    {
        exit_code = FL_EXIT_OK; /* It was told to stop. */
    }
    fl_log_left_out(log, /* all= */ true);
    return exit_code;
}

static int run(const char *path, bool check_only)
{
    struct fl_client_conf *conf = NULL;
    static struct fl_log_limit limit = FL_LOG_LIMIT_INIT;
    struct fl_err err = {0};
    struct fl_log_out out;
    struct fl_log log = {
        .level = FL_LOG_INFO, .sink = fl_log_out_sink, .ctx = &out, .limit = &limit};
    int exit_code = FL_EXIT_OK;
    int rv;

    fl_log_out_init(&out, STDERR_FILENO);
    rv = fl_clientd_conf_load(path, &conf, &err);
    if (rv != FL_OK) {
        fl_log_out_complain(&out, "fl-clientd", fl_err_text(&err, rv));
        return FL_EXIT_CONFIG;
    }
    atomic_store(&log.level, (int)conf->main->log_level);
    atomic_store(&out.format, (int)conf->main->log_format);
    if (check_only && (rv = fl_client_preflight(conf, &exit_code, &err)) != FL_OK) {
        fl_log_out_complain(&out, "fl-clientd", fl_err_text(&err, rv));
    } else if (check_only) {
        exit_code = FL_EXIT_OK;
        (void)printf("%s: ok: client '%s' of '%s', trainer %s\n", path, conf->main->name,
                     conf->main->server, fl_client_trainers[conf->main->trainer]);
    } else {
        exit_code = take_part(conf, path, &log, &out);
    }
    fl_client_conf_free(conf);
    return exit_code;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"check-config", no_argument, NULL, 'c'},
                                            {"reference", no_argument, NULL, 'r'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {NULL, 0, NULL, 0}};
    bool check_only = false;
    int opt;

    while ((opt = getopt_long(argc, argv, "chV", options, NULL)) != -1) {
        switch (opt) {
        case 'c':
            check_only = true;
            break;
        case 'r':
            return reference();
        case 'h':
            usage(stdout);
            return FL_EXIT_OK;
        case 'V':
            (void)printf("fl-clientd %s\n", PACKAGE_VERSION);
            return FL_EXIT_OK;
        default:
            (void)fputs("try fl-clientd --help\n", stderr);
            return FL_EXIT_USAGE;
        }
    }
    if (argc - optind != 1) {
        (void)fprintf(stderr, "fl-clientd: expected one configuration file, found %d arguments\n",
                      argc - optind);
        return FL_EXIT_USAGE;
    }
    return run(argv[optind], check_only);
}
