/* fl-clientd: takes part in a federation with data that never leaves this machine. */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "client/daemon/clientd.h"
#include "client/daemon/clientd_exit.h"
#include "client/daemon/clientd_preflight.h"
#include "client/daemon/enrol_command.h"
#include "client/daemon/export_model.h"
#include "client/daemon/init_trainer.h"
#include "client/daemon/invitation_file.h"
#include "client/daemon/try_trainer.h"
#include "libfl/base/args.h"
#include "libfl/base/buf.h"
#include "libfl/base/fs.h"
#include "libfl/base/owner.h"
#include "libfl/base/str.h"
#include "libfl/base/undumpable.h"
#include "libfl/net/failed_start.h"
#include "libfl/net/loop.h"
#include "libfl/net/uv_memory.h"

/* Behind the letters. */
enum {
    OPT_REFERENCE = 256,
    OPT_INVITATION,
    OPT_NAME,
    OPT_DATA,
    OPT_STATE_DIR,
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
           "check the file and all that a start needs, start nothing; root checks as the owner "
           "of the state folder"),
    FL_ARG("join", 'j', NULL, 'j',
           "get a certificate with the line that flctl invite printed, and write CONFIG "
           "(/etc/fl/client.yaml) when there is none. The line is read from standard input, or "
           "the systemd credential 'invitation'"),
    FL_ARG("invitation", '\0', "FILE", OPT_INVITATION,
           "or from FILE; never from the arguments, which others can read"),
    FL_ARG("name", '\0', "NAME", OPT_NAME,
           "for a first CONFIG: the name, when the invitation is for several"),
    FL_ARG("data", '\0', "FOLDER", OPT_DATA,
           "likewise: the folder with this host's data (/srv/fl/data)"),
    FL_ARG("state-dir", '\0', "FOLDER", OPT_STATE_DIR,
           "likewise: of the state (/var/lib/fl-clientd)"),
    FL_ARG("no-start", '\0', NULL, OPT_NO_START,
           "leave the service alone, which --join by root starts otherwise"),
    FL_ARG("init-trainer", '\0', "KIND", OPT_INIT_TRAINER,
           "write a first training script (trainer.py); pytorch or numpy"),
    FL_ARG("try-trainer", '\0', NULL, OPT_TRY_TRAINER,
           "start the program of CONFIG that trains, without a server: what its tasks take, "
           "what would be sent, whether it keeps to the protocol"),
    FL_ARG("model", '\0', "FILE", OPT_MODEL, "with the model of this safetensors file"),
    FL_ARG("learning-rate", '\0', "X", OPT_LEARNING_RATE, "of the training (0.01)"),
    FL_ARG("epochs", '\0', "N", OPT_EPOCHS, "likewise (1)"),
    FL_ARG("batch-size", '\0', "N", OPT_BATCH_SIZE, "likewise (16)"),
    FL_ARG("json", '\0', NULL, OPT_JSON, "what was found as JSON"),
    FL_ARG("export-model", '\0', "FILE", OPT_EXPORT_MODEL,
           "write the personal model of this client, as flctl export writes the global one. The "
           "daemon may run. Where only some tensors stay on the client, --model is the global "
           "model that they are put into"),
    FL_ARG("reference", '\0', NULL, OPT_REFERENCE,
           "print all configuration keys with defaults (Markdown)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    FL_ARG("version", 'V', NULL, 'V', "version"),
    {.name = NULL}};

static void usage(FILE *out)
{
    (void)fputs(
        "usage: fl-clientd [--check-config] CONFIG.yaml\n"
        "       fl-clientd --join [--invitation FILE] [CONFIG.yaml]\n"
        "       fl-clientd --init-trainer pytorch|numpy [FILE.py]\n"
        "       fl-clientd --try-trainer [--model FILE.safetensors] CONFIG.yaml\n"
        "       fl-clientd --export-model FILE [--model FILE.safetensors] CONFIG.yaml\n"
        "\n"
        "Takes part in a federation: receives the model, trains on local data that never\n"
        "leaves this machine, and uploads the layers that the server asks for. Comes back by\n"
        "itself after any loss of the connection.\n"
        "\n",
        out);
    fl_args_help(options, out);
    (void)fputs(
        "\n"
        "SIGTERM and SIGINT stop it; a finished result is kept and sent after the next start.\n"
        "SIGHUP reads the file again and takes up what a running client can.\n"
        "exit codes: 0 done, 1 failure while running, 2 usage, 3 configuration,\n"
        "            4 state folder, 5 data set or program, 7 refused by the server for good\n",
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

/* Only the event loop needs memory that cannot be refused: libuv would abort() without a line. */
static void on_reserve_used(void *ctx, size_t bytes)
{
    fl_log(ctx, FL_LOG_WARNING, "client",
           "out of memory for %zu bytes of the event loop: used the memory kept back for it; free "
           "some memory or raise MemoryMax=, else the client ends the next time",
           bytes);
}

static void on_exhausted(void *ctx, size_t bytes)
{
    (void)bytes;
    fl_log(ctx, FL_LOG_ERROR, "client",
           "out of memory for the event loop: ending here, a finished result is on disk and sent "
           "after the next start");
    _exit(FL_EXIT_FAILURE);
}

static int take_part(const struct fl_client_conf *conf, const char *path, struct fl_log *log,
                     struct fl_log_out *out)
{
    static const struct fl_uv_memory_cbs memory = {.reserve_used = on_reserve_used,
                                                   .exhausted = on_exhausted};
    int exit_code;

    fl_undumpable();
    if (fl_uv_memory_init(&memory, log) != FL_OK) {
        fl_log(log, FL_LOG_ERROR, "client", "cannot start: out of memory");
        return FL_EXIT_FAILURE;
    }
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

/* What the command line asks for. */
struct command {
    bool check_only, join, try_trainer;
    const char *init;         /* a kind of script; NULL: none */
    const char *export_model; /* where to; NULL: no export */
    struct fl_enrol_options enrol;
    bool enrol_given; /* any of those */
    struct fl_try_options trial;
    bool trial_given; /* any of those */
    bool trial_other; /* another one of those than --model */
};

static void complain(void *ctx, const char *text)
{
    fl_log_out_complain(ctx, "fl-clientd", text);
}

static void print_note(void *ctx, const char *note)
{
    (void)ctx;
    (void)printf("%s\n", note);
}

/* As the user whose the state folder is: root may all that a service may not. */
static int check_config(const struct fl_client_conf *conf, const char *path, struct fl_log_out *out)
{
    static struct fl_findings errors;
    static struct fl_findings notes;
    struct fl_err err = {0};
    int exit_code = FL_EXIT_FAILURE;
    int rv = fl_owner_become(conf->main->state_dir, path, &notes, &err);

    rv = rv == FL_OK ? fl_client_preflight(conf, &errors, &exit_code, &err) : rv;
    if (rv == FL_OK) {
        exit_code = FL_EXIT_OK;
        (void)printf("%s: ok: client '%s' of '%s', trainer %s\n", path,
                     conf->main->name[0] != '\0' ? conf->main->name : "(as its certificate says)",
                     conf->main->server, fl_client_trainers[conf->main->trainer]);
    } else if (errors.n == 0) {
        complain(out, fl_err_text(&err, rv));
    }
    fl_findings_each(&errors, complain, out);
    fl_findings_each(&notes, print_note, NULL);
    return fflush(stdout) == 0 ? exit_code : FL_EXIT_FAILURE;
}

static int load(const char *path, struct fl_log_out *out, struct fl_client_conf **ret)
{
    static struct fl_findings all;
    struct fl_err err = {0};
    int rv = fl_clientd_conf_load(path, &all, ret, &err);

    if (rv == FL_ENOENT && !fl_fs_exists(path)) {
        (void)fl_err_set(&err, rv,
                         "there is no configuration '%.200s': fl-clientd --join makes a first "
                         "one; fl-clientd --reference prints all that can be in it",
                         path);
    }
    fl_findings_each(&all, complain, out);
    if (rv != FL_OK && all.n == 0) {
        complain(out, fl_err_text(&err, rv));
    }
    return rv;
}

static int run(const char *path, const struct command *command)
{
    struct fl_client_conf *conf = NULL;
    static struct fl_log_limit limit = FL_LOG_LIMIT_INIT;
    struct fl_log_out out;
    struct fl_log log = {
        .level = FL_LOG_INFO, .sink = fl_log_out_sink, .ctx = &out, .limit = &limit};
    int exit_code;

    fl_log_out_init(&out, STDERR_FILENO);
    if (load(path, &out, &conf) != FL_OK) {
        return FL_EXIT_CONFIG;
    }
    atomic_store(&log.level, (int)conf->main->log_level);
    atomic_store(&out.format, (int)conf->main->log_format);
    if (command->export_model != NULL) {
        exit_code = fl_export_model(conf, command->export_model, command->trial.model);
    } else if (command->try_trainer) {
        exit_code = fl_try_trainer(conf, &command->trial);
    } else if (command->check_only) {
        exit_code = check_config(conf, path, &out);
    } else {
        exit_code = take_part(conf, path, &log, &out);
    }
    fl_client_conf_free(conf);
    return exit_code;
}

static int misuse(const char *what)
{
    (void)fprintf(stderr, "fl-clientd: %s\n", what);
    return FL_EXIT_USAGE;
}

/* True: it is one of those that only --join takes. */
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
    case OPT_NO_START:
        enrol->no_start = true;
        return true;
    default:
        return false;
    }
}

/* What is no number of that range is 0, which is none that can be asked for. */
static uint32_t count_of(const char *text)
{
    uint64_t n;

    return fl_str_to_u64(text, &n) == FL_OK && n <= 1000000 ? (uint32_t)n : 0;
}

static double rate_of(const char *text)
{
    double rate;

    return fl_str_to_double(text, &rate) == FL_OK && rate <= 1e6 ? rate : 0.0;
}

/* True: it is one of those that only --try-trainer takes. */
static bool take_trial_option(struct fl_try_options *trial, int opt, const char *value)
{
    switch (opt) {
    case OPT_MODEL:
        trial->model = value;
        return true;
    case OPT_LEARNING_RATE:
        trial->learning_rate = rate_of(value);
        return true;
    case OPT_EPOCHS:
        trial->epochs = count_of(value);
        return true;
    case OPT_BATCH_SIZE:
        trial->batch_size = count_of(value);
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
        command->enrol_given || command->trial_given || command->export_model != NULL)
    {
        return misuse("--init-trainer takes one file to be written, and no other option");
    }
    return fl_init_trainer(command->init, n == 1 ? operands[0] : NULL);
}

static int check_trial(const struct command *command)
{
    const struct fl_try_options *trial = &command->trial;

    if (command->export_model != NULL) {
        return command->trial_other || command->try_trainer || command->check_only || command->join
                   ? misuse("--export-model goes with --model only")
                   : FL_EXIT_OK;
    }
    if (command->trial_given && !command->try_trainer) {
        return misuse("--model, --learning-rate, --epochs, --batch-size and --json belong to "
                      "--try-trainer, --model to --export-model too");
    }
    if (command->try_trainer && (command->check_only || command->join)) {
        return misuse("--try-trainer goes with neither --check-config nor --join");
    }
    if (!(trial->learning_rate > 0.0) || trial->epochs == 0 || trial->batch_size == 0) {
        return misuse("expected a learning rate above 0, and 1 to 1000000 epochs and samples of a "
                      "batch");
    }
    return FL_EXIT_OK;
}

static int carry_out(struct command *command, int n, char **operands)
{
    if (command->init != NULL) {
        return init_trainer(command, n, operands);
    }
    if (check_trial(command) != FL_EXIT_OK) {
        return FL_EXIT_USAGE;
    }
    if (command->join && n <= 1 && !command->check_only) {
        command->enrol.config = n == 1 ? operands[0] : NULL;
        return fl_enrol_command(&command->enrol);
    }
    if (command->enrol_given && !command->join) {
        return misuse("--invitation, --name, --data, --state-dir and --no-start belong to --join");
    }
    if (n != 1 || command->join) {
        (void)fprintf(stderr, "fl-clientd: expected one configuration file, found %d arguments\n",
                      n);
        return FL_EXIT_USAGE;
    }
    return run(operands[0], command);
}

int main(int argc, char **argv)
{
    struct command command = {.trial = FL_TRY_OPTIONS};
    struct fl_args args = {.program = "fl-clientd", .rows = options, .argc = argc, .argv = argv};
    int opt;

    if (fl_invitation_in_arguments(argc, argv)) {
        return misuse(
            "an invitation is not taken from the arguments, which every user of this host "
            "can read: give it on standard input or with --invitation FILE; if others "
            "use this host, have this one withdrawn (flctl uninvite) and ask for another");
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
        case OPT_REFERENCE:
            return reference();
        case 'h':
            usage(stdout);
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
    return carry_out(&command, args.n_operands, argv + 1);
}
