/* fl-clientd: takes part in a federation with data that never leaves this machine. */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/clientd.h"
#include "client/daemon/clientd_exit.h"
#include "client/daemon/clientd_preflight.h"
#include "client/daemon/enrol_command.h"
#include "client/daemon/export_model.h"
#include "client/daemon/init_trainer.h"
#include "client/daemon/invitation_file.h"
#include "client/daemon/status_command.h"
#include "client/daemon/try_trainer.h"
#include "client/http/client_http.h"
#include "client/http/client_report.h"
#include "client/http/client_shown.h"
#include "libfl/base/args.h"
#include "libfl/base/buf.h"
#include "libfl/base/fs.h"
#include "libfl/base/owner.h"
#include "libfl/base/str.h"
#include "libfl/base/undumpable.h"
#include "libfl/net/failed_start.h"
#include "libfl/net/loop.h"
#include "libfl/net/uv_memory.h"

/* Values above those of the short options. */
enum {
    OPT_REFERENCE = 256,
    OPT_METRICS,
    OPT_PATHS,
    OPT_TASKS,
    OPT_STATUS,
    OPT_FORMAT,
    OPT_INVITATION,
    OPT_NAME,
    OPT_DATA,
    OPT_STATE_DIR,
    OPT_PROXY,
    OPT_PROXY_CREDENTIALS,
    OPT_NO_START,
    OPT_INIT_TRAINER,
    OPT_TRY_TRAINER,
    OPT_EXPORT_MODEL,
    OPT_MODEL,
    OPT_LEARNING_RATE,
    OPT_EPOCHS,
    OPT_BATCH_SIZE,
    OPT_JSON
};

static const struct fl_arg options[] = {
    FL_ARG("check-config", 'c', NULL, 'c',
           "check the file and everything that a start needs, then exit; root checks as the owner "
           "of the state folder"),
    FL_ARG("join", 'j', NULL, 'j',
           "get a certificate with the invitation that flctl invite printed, and write CONFIG "
           "(/etc/fl/client.yaml) when there is none. The invitation is read from standard "
           "input, or from the systemd credential 'invitation'"),
    FL_ARG("invitation", '\0', "FILE", OPT_INVITATION,
           "or from FILE; never from the arguments, which others can read"),
    FL_ARG("name", '\0', "NAME", OPT_NAME,
           "for a first CONFIG: the name, if the invitation has several"),
    FL_ARG("data", '\0', "FOLDER", OPT_DATA,
           "for a first CONFIG: folder of this host's data (/srv/fl/data)"),
    FL_ARG("state-dir", '\0', "FOLDER", OPT_STATE_DIR,
           "for a first CONFIG: state folder (/var/lib/fl-clientd)"),
    FL_ARG("proxy", '\0', "URL", OPT_PROXY,
           "for a first CONFIG: HTTP proxy of this host, http://host:port, or none; without it "
           "that of the environment variable https_proxy"),
    FL_ARG("proxy-credentials", '\0', "FILE", OPT_PROXY_CREDENTIALS,
           "for a first CONFIG: file with the line USER:PASSWORD for the proxy"),
    FL_ARG("no-start", '\0', NULL, OPT_NO_START,
           "do not start the service, which --join by root does otherwise"),
    FL_ARG("init-trainer", '\0', "KIND", OPT_INIT_TRAINER,
           "write a first training script (trainer.py); pytorch or numpy"),
    FL_ARG("try-trainer", '\0', NULL, OPT_TRY_TRAINER,
           "run the training program of CONFIG without a server: how long its tasks take, what it "
           "would send, whether it follows the protocol"),
    FL_ARG("model", '\0', "FILE", OPT_MODEL, "with the model of this safetensors file"),
    FL_ARG("learning-rate", '\0', "X", OPT_LEARNING_RATE, "learning rate of --try-trainer (0.01)"),
    FL_ARG("epochs", '\0', "N", OPT_EPOCHS, "epochs of --try-trainer (1)"),
    FL_ARG("batch-size", '\0', "N", OPT_BATCH_SIZE, "batch size of --try-trainer (16)"),
    FL_ARG("json", '\0', NULL, OPT_JSON, "print the results of --try-trainer as JSON"),
    FL_ARG("export-model", '\0', "FILE", OPT_EXPORT_MODEL,
           "write the personal model of this client, as flctl export writes the global one. The "
           "daemon may run. Where only some tensors stay on the client, --model is the global "
           "model that they are put into"),
    FL_ARG("status", '\0', NULL, OPT_STATUS,
           "print what the running client of CONFIG does, its last tasks, limits and errors. Exit "
           "codes: 0 it works, 1 it needs its owner, 2 it does not run"),
    FL_ARG("format", '\0', "FORMAT", OPT_FORMAT, "format of --status: text (default) or json"),
    FL_ARG("reference", '\0', NULL, OPT_REFERENCE,
           "print all configuration keys with defaults (Markdown)"),
    FL_ARG("metrics", '\0', NULL, OPT_METRICS, "print all metrics of the HTTP port (Markdown)"),
    FL_ARG("paths", '\0', NULL, OPT_PATHS, "print all paths of the HTTP port (Markdown)"),
    FL_ARG("tasks", '\0', NULL, OPT_TASKS,
           "print all members of /api/v1/tasks of the HTTP port (Markdown)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    FL_ARG("version", 'V', NULL, 'V', "version"),
    {.name = NULL}};

static void client_print_usage(FILE *out)
{
    (void)fputs("usage: fl-clientd [--check-config] CONFIG.yaml\n"
                "       fl-clientd --join [--invitation FILE] [CONFIG.yaml]\n"
                "       fl-clientd --init-trainer pytorch|numpy [FILE.py]\n"
                "       fl-clientd --try-trainer [--model FILE.safetensors] CONFIG.yaml\n"
                "       fl-clientd --status [--format text|json] CONFIG.yaml\n"
                "       fl-clientd --export-model FILE [--model FILE.safetensors] CONFIG.yaml\n"
                "\n"
                "Takes part in a federation: receives the model, trains on local data that never\n"
                "leaves this machine, and uploads the layers that the server asks for. Reconnects\n"
                "automatically after a lost connection.\n"
                "\n",
                out);
    fl_args_help(options, out);
    (void)fputs(
        "\n"
        "SIGTERM and SIGINT stop it; a finished result is saved and sent after the next start.\n"
        "SIGHUP reads the file again and applies what can change at run time.\n"
        "exit codes: 0 done, 1 failure while running, 2 usage, 3 configuration,\n"
        "            4 state folder, 5 data set or program, 7 permanently refused by the server\n",
        out);
}

/* What `reference` appends. */
static int client_print(int (*reference)(struct fl_buf *out))
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

/* An operator has to fix a folder or a data set, so retries of the service manager are slow. */
#define LONGEST_PAUSE_MS (5 * 60 * 1000)

/*
 * Only libuv's event loop cannot handle a failed allocation: it would call abort() without a
 * message.
 */
static void loop_memory_reserve_used(void *ctx, size_t bytes)
{
    fl_log(ctx, FL_LOG_WARNING, "client",
           "out of memory for %zu bytes of the event loop: using the reserved memory; free some "
           "memory or raise MemoryMax=, otherwise the client exits the next time",
           bytes);
}

static void loop_memory_exhausted(void *ctx, size_t bytes)
{
    (void)bytes;
    fl_log(ctx, FL_LOG_ERROR, "client",
           "out of memory for the event loop: exiting; a finished result is on disk and is sent "
           "after the next start");
    _exit(FL_EXIT_FAILURE);
}

static int main_run_daemon(const struct fl_client_conf *conf, const char *path, struct fl_log *log,
                           struct fl_log_out *out)
{
    static const struct fl_uv_memory_cbs memory = {.reserve_used = loop_memory_reserve_used,
                                                   .exhausted = loop_memory_exhausted};
    int exit_code;

    fl_undumpable();
    if (fl_uv_memory_init(&memory, log) != FL_OK) {
        fl_log(log, FL_LOG_ERROR, "client", "cannot start: out of memory");
        return FL_EXIT_FAILURE;
    }
    fl_signal_ignore(SIGHUP); /* There is nothing to reload before the daemon runs. */
    exit_code = fl_client_run(conf, path, log, out);
    if (exit_code != FL_EXIT_OK && exit_code != FL_EXIT_REFUSED &&
        !fl_start_failed(log, LONGEST_PAUSE_MS))
    {
        exit_code = FL_EXIT_OK; /* Stopped by a signal. */
    }
    fl_log_left_out(log, /* all= */ true);
    return exit_code;
}

/* The parsed command line. */
struct command {
    bool check_only, join, try_trainer, status;
    const char *format;       /* of --status; NULL: text */
    const char *init;         /* kind of script to write; NULL: none */
    const char *export_model; /* file to write; NULL: no export */
    struct fl_enrol_options enrol;
    bool enrol_given; /* any of `enrol` */
    struct fl_try_options trial;
    bool trial_given; /* any of `trial` */
    bool trial_other; /* any of `trial` except --model */
};

static void main_complain(void *ctx, const char *text)
{
    fl_log_out_complain(ctx, "fl-clientd", text);
}

static void main_print_note(void *ctx, const char *note)
{
    (void)ctx;
    (void)printf("%s\n", note);
}

/* Checks as the owner of the state folder: root may access what the service may not. */
static int main_check_config(const struct fl_client_conf *conf, const char *path,
                             struct fl_log_out *out)
{
    static struct fl_findings errors;
    static struct fl_findings notes;
    struct fl_err err = {0};
    int exit_code = FL_EXIT_FAILURE;
    int rv = fl_owner_become(conf->main->state_dir, path, &notes, &err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_client_preflight(conf, &errors, &exit_code, &err);
    if (rv != FL_OK) {
        goto done;
    }
    exit_code = FL_EXIT_OK;
    (void)printf("%s: ok: client '%s' of '%s', trainer %s\n", path,
                 conf->main->name[0] != '\0' ? conf->main->name : "(of its certificate)",
                 conf->main->server.list[0], fl_client_trainers[conf->main->trainer]);
done:
    if (rv != FL_OK && errors.n == 0) {
        main_complain(out, fl_err_text(&err, rv));
    }
    fl_findings_each(&errors, main_complain, out);
    fl_findings_each(&notes, main_print_note, NULL);
    return fflush(stdout) == 0 ? exit_code : FL_EXIT_FAILURE;
}

static int main_load_conf(const char *path, struct fl_log_out *out, struct fl_client_conf **ret)
{
    static struct fl_findings all;
    struct fl_err err = {0};
    int rv = fl_clientd_conf_load(path, &all, ret, &err);

    if (rv == FL_ENOENT && !fl_fs_exists(path)) {
        (void)fl_err_set(&err, rv,
                         "the configuration '%.200s' does not exist: fl-clientd --join writes a "
                         "first one; fl-clientd --reference prints all keys",
                         path);
    }
    fl_findings_each(&all, main_complain, out);
    if (rv != FL_OK && all.n == 0) {
        main_complain(out, fl_err_text(&err, rv));
    }
    return rv;
}

static int main_run_command(const char *path, const struct command *command)
{
    struct fl_client_conf *conf = NULL;
    static struct fl_log_limit limit = FL_LOG_LIMIT_INIT;
    struct fl_log_out out;
    struct fl_log log = {.level = FL_LOG_INFO,
                         .sink = fl_log_out_sink,
                         .note = fl_log_out_note,
                         .ctx = &out,
                         .limit = &limit};
    int exit_code;

    fl_log_out_init(&out, STDERR_FILENO);
    if (main_load_conf(path, &out, &conf) != FL_OK) {
        return FL_EXIT_CONFIG;
    }
    atomic_store(&log.level, (int)conf->main->log_level);
    atomic_store(&out.format, (int)conf->main->log_format);
    if (command->status) {
        exit_code = fl_status_command(conf, command->format != NULL &&
                                                strcmp(command->format, "json") == 0);
    } else if (command->export_model != NULL) {
        exit_code = fl_export_model(conf, command->export_model, command->trial.model);
    } else if (command->try_trainer) {
        exit_code = fl_try_trainer(conf, &command->trial);
    } else if (command->check_only) {
        exit_code = main_check_config(conf, path, &out);
    } else {
        exit_code = main_run_daemon(conf, path, &log, &out);
    }
    fl_client_conf_free(conf);
    return exit_code;
}

static int client_usage_error(const char *what)
{
    (void)fprintf(stderr, "fl-clientd: %s\n", what);
    return FL_EXIT_USAGE;
}

/* True: the option belongs to --join. */
static bool take_enrol_option(struct fl_enrol_options *enrol, int opt, const char *value)
{
    switch (opt) {
    case OPT_INVITATION:
        enrol->invitation = value;
        return true;
    case OPT_NAME:
        enrol->name = value;
        return true;
    case OPT_DATA:
        enrol->data = value;
        return true;
    case OPT_STATE_DIR:
        enrol->state_dir = value;
        return true;
    case OPT_PROXY:
        enrol->proxy = value;
        return true;
    case OPT_PROXY_CREDENTIALS:
        enrol->proxy_credentials = value;
        return true;
    case OPT_NO_START:
        enrol->no_start = true;
        return true;
    default:
        return false;
    }
}

/* Returns 0, which no option accepts, for a text that is no number in range. */
static uint32_t option_count(const char *text)
{
    uint64_t n;

    return fl_str_to_u64(text, &n) == FL_OK && n <= 1000000 ? (uint32_t)n : 0;
}

static double option_rate(const char *text)
{
    double rate;

    return fl_str_to_double(text, &rate) == FL_OK && rate <= 1e6 ? rate : 0.0;
}

/* True: the option belongs to --try-trainer. */
static bool take_trial_option(struct fl_try_options *trial, int opt, const char *value)
{
    switch (opt) {
    case OPT_MODEL:
        trial->model = value;
        return true;
    case OPT_LEARNING_RATE:
        trial->learning_rate = option_rate(value);
        return true;
    case OPT_EPOCHS:
        trial->epochs = option_count(value);
        return true;
    case OPT_BATCH_SIZE:
        trial->batch_size = option_count(value);
        return true;
    case OPT_JSON:
        trial->json = true;
        return true;
    default:
        return false;
    }
}

static int init_trainer(const struct command *command, int n, char **operands)
{
    if (n > 1 || command->check_only || command->join || command->try_trainer ||
        command->enrol_given || command->trial_given || command->export_model != NULL ||
        command->status)
    {
        return client_usage_error(
            "--init-trainer takes at most one file to write, and no other option");
    }
    return fl_init_trainer(command->init, n == 1 ? operands[0] : NULL);
}

static int check_trial(const struct command *command)
{
    const struct fl_try_options *trial = &command->trial;

    if (command->export_model != NULL) {
        return command->trial_other || command->try_trainer || command->check_only || command->join
                   ? client_usage_error("--export-model can be combined with --model only")
                   : FL_EXIT_OK;
    }
    if (command->trial_given && !command->try_trainer) {
        return client_usage_error("--model, --learning-rate, --epochs, --batch-size and --json "
                                  "require --try-trainer (--model also works with --export-model)");
    }
    if (command->try_trainer && (command->check_only || command->join)) {
        return client_usage_error("--try-trainer cannot be combined with --check-config or --join");
    }
    if (!(trial->learning_rate > 0.0) || trial->epochs == 0 || trial->batch_size == 0) {
        return client_usage_error(
            "expected a learning rate above 0, and 1 to 1000000 epochs and samples of a "
            "batch");
    }
    return FL_EXIT_OK;
}

static int check_status(const struct command *command)
{
    const char *format = command->format;

    if (format != NULL && !command->status) {
        return client_usage_error("--format requires --status");
    }
    if (format != NULL && strcmp(format, "text") != 0 && strcmp(format, "json") != 0) {
        return client_usage_error("--format: expected text or json");
    }
    if (command->status &&
        (command->check_only || command->join || command->try_trainer || command->trial_given ||
         command->enrol_given || command->export_model != NULL))
    {
        return client_usage_error("--status can be combined with --format only");
    }
    return FL_EXIT_OK;
}

static int main_dispatch(struct command *command, int n, char **operands)
{
    if (command->init != NULL) {
        return init_trainer(command, n, operands);
    }
    if (check_status(command) != FL_EXIT_OK || check_trial(command) != FL_EXIT_OK) {
        return FL_EXIT_USAGE;
    }
    if (command->join && n <= 1 && !command->check_only) {
        command->enrol.config = n == 1 ? operands[0] : NULL;
        return fl_enrol_command(&command->enrol);
    }
    if (command->enrol_given && !command->join) {
        return client_usage_error("--invitation, --name, --data, --state-dir, --proxy, "
                                  "--proxy-credentials and --no-start "
                                  "require --join");
    }
    if (n != 1 || command->join) {
        (void)fprintf(stderr, "fl-clientd: expected one configuration file, found %d arguments\n",
                      n);
        return FL_EXIT_USAGE;
    }
    return main_run_command(operands[0], command);
}

int main(int argc, char **argv)
{
    struct command command = {.trial = FL_TRY_OPTIONS};
    struct fl_args args = {.program = "fl-clientd", .rows = options, .argc = argc, .argv = argv};
    int opt;

    if (fl_invitation_in_arguments(argc, argv)) {
        return client_usage_error(
            "invitation refused on the command line, which every user of this host can read: give "
            "it on standard input or with --invitation FILE; if others use this host, have this "
            "invitation withdrawn (flctl uninvite) and ask for another");
    }
    while ((opt = fl_args_next(&args)) != FL_ARGS_END) {
        switch (opt) {
        case 'c':
            command.check_only = true;
            break;
        case 'j':
            command.join = true;
            break;
        case OPT_INIT_TRAINER:
            command.init = args.value;
            break;
        case OPT_TRY_TRAINER:
            command.try_trainer = true;
            break;
        case OPT_EXPORT_MODEL:
            command.export_model = args.value;
            break;
        case OPT_STATUS:
            command.status = true;
            break;
        case OPT_FORMAT:
            command.format = args.value;
            break;
        case OPT_TASKS:
            return client_print(fl_owner_reference);
        case OPT_REFERENCE:
            return client_print(fl_client_conf_reference);
        case OPT_PATHS:
            return client_print(fl_client_http_reference);
        case OPT_METRICS:
            return client_print(fl_client_metrics_reference);
        case 'h':
            client_print_usage(stdout);
            return FL_EXIT_OK;
        case 'V':
            (void)printf("fl-clientd %s\n", PACKAGE_VERSION);
            return FL_EXIT_OK;
        default:
            if (take_enrol_option(&command.enrol, opt, args.value)) {
                command.enrol_given = true;
            } else if (take_trial_option(&command.trial, opt, args.value)) {
                command.trial_given = true;
                command.trial_other = command.trial_other || opt != OPT_MODEL;
            } else {
                return FL_EXIT_USAGE;
            }
        }
    }
    return main_dispatch(&command, args.n_operands, argv + 1);
}
