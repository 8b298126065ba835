#include "client/conf/client_conf.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/base/rate.h"
#include "libfl/base/str.h"
#include "libfl/wire/messages.h"

const char *const fl_client_trainers[] = {
    [FL_TRAINER_BUILTIN] = "builtin", [FL_TRAINER_COMMAND] = "command", NULL};
static const char *const memories[] = {
    [FL_PROGRAM_ADDRESS_SPACE] = "address_space", [FL_PROGRAM_PERSISTENT] = "resident", NULL};
static const char *const augments[] = {
    [FL_AUGMENT_NONE] = "none", [FL_AUGMENT_FLIP_CROP] = "flip_crop", NULL};

static const char *const reloads[] = {
    [FL_RELOAD_BEFORE_TASK] = "before_task", [FL_RELOAD_NEVER] = "never", NULL};

static const struct fl_opt_spec main_specs[] = {
    {FL_OPT(struct fl_client_main, STRING, server), .flags = FL_OPT_REQUIRED | FL_CLIENT_DAEMON,
     .help = "Address of fl-serverd: host:port, [v6]:port or unix:/path"},
    {FL_OPT(struct fl_client_main, STRING, name), .flags = FL_CLIENT_DAEMON,
     .help =
         "Name of this client, unique in the federation: 1 to 127 of A-Z a-z 0-9 . _ -; not set: "
         "that of its certificate, which has to be the same when it is set"},
    {FL_OPT(struct fl_client_main, STRING, state_dir), .flags = FL_OPT_REQUIRED | FL_CLIENT_DAEMON,
     .help = "Folder for a finished and unsent result, and for what is kept between rounds; made "
             "when missing"},
    {FL_OPT(struct fl_client_main, BOOL, insecure), .flags = FL_CLIENT_DAEMON, .def = "no",
     .help =
         "Plaintext instead of TLS, for loopback addresses and socket files; the server believes "
         "the name"},
    {FL_OPT(struct fl_client_main, BOOL, insecure_remote), .flags = FL_CLIENT_DAEMON, .def = "no",
     .help = "Plaintext to other hosts too: anybody on the way can read and change updates"},
    {FL_OPT(struct fl_client_main, ENUM, trainer), .def = "builtin", .choices = fl_client_trainers,
     .help = "Who trains: the built-in engine, which needs OpenBLAS, or a program of yours"},
    {FL_OPT(struct fl_client_main, MAP, labels), .flags = FL_CLIENT_DAEMON,
     .help = "Free names and values that flctl clients shows; at most 64, 2048 bytes in all"},
    {FL_OPT(struct fl_client_main, ENUM, log_level), .flags = FL_CLIENT_DAEMON, .def = "info",
     .choices = fl_log_names, .help = "Lines above this level are not written"},
    {FL_OPT(struct fl_client_main, ENUM, log_format), .flags = FL_CLIENT_DAEMON, .def = "text",
     .choices = fl_log_formats,
     .help = "Lines for people, or an object of JSON each, whose key=value are its members"},
    {FL_OPT(struct fl_client_main, BOOL, exit_when_done), .flags = FL_CLIENT_DAEMON, .def = "no",
     .help = "End with exit code 0 when all rounds are done. Otherwise the client stays, and takes "
             "part again when the server is started with more rounds, within seconds: nobody has "
             "to go to every machine for it"},
    {FL_OPT(struct fl_client_main, BOOL, offers), .def = "no",
     .help = "Take part in algorithms whose clients tell something of their data itself: means of "
             "a few samples each, with fedmix and naivemix, which the server gives to all clients. "
             "Without a yes the client leaves such a federation, and says so"},
    {FL_OPT(struct fl_client_main, INT, least_group), .def = "10", .min = 2, .max = 1e9,
     .help =
         "With offers: no mean is of fewer samples. A server that asks for less is refused, and "
         "a client with fewer samples sends no means. 10, as publishers of health statistics "
         "show no count of fewer than 5 to 11 people; more hides more (docs/"
         "what-updates-tell.md)"},
    {FL_OPT(struct fl_client_main, INT, seed), .def = "0", .min = 0, .max = 9e15,
     .help = "Of the jitter of reconnects; 0 derives it from the name"},
    {FL_OPT(struct fl_client_main, ENUM, instructions), .flags = FL_CLIENT_DAEMON, .def = "auto",
     .choices = fl_kernels_names,
     .help = "Of this machine's processor, that the built-in engine trains with; one that the "
             "processor lacks is refused. auto: the fastest there are (docs/kernels.md)"},
    FL_OPT_END_OF(struct fl_client_main)};

static const struct fl_opt_spec tls_specs[] = {
    {FL_OPT(struct fl_client_tls, STRING, certificate),
     .help =
         "PEM file: this client's certificate, then those between it and its root; not set: what "
         "fl-clientd --join put into state_dir/identity, and renews by itself"},
    {FL_OPT(struct fl_client_tls, STRING, key),
     .help = "PEM file: its key, which nobody else may read; not set: likewise"},
    {FL_OPT(struct fl_client_tls, STRING, ca),
     .help = "PEM file: the roots that a server is believed by; not set: likewise"},
    {FL_OPT(struct fl_client_tls, STRING_LIST, crl),
     .help = "PEM files: lists of certificates that were taken back, of the server and of those "
             "between it and its root"},
    {FL_OPT(struct fl_client_tls, STRING, server_name),
     .help =
         "DNS name or address that the server's certificate has to be for; not set: the host of "
         "'server'"},
    FL_OPT_END_OF(struct fl_client_tls)};

static const struct fl_opt_spec data_specs[] = {
    {FL_OPT(struct fl_client_data, STRING, path),
     .help = "Folder with the training part (IDX, CIFAR, NPY or CSV), and a test part if any"},
    {FL_OPT(struct fl_client_data, FLOAT, validation), .def = "0", .min = 0, .max = 0.9,
     .help = "Share of the training part kept for evaluation when there is no test part"},
    {FL_OPT(struct fl_client_data, ENUM, augment), .def = "none", .choices = augments,
     .help = "Of training pictures; flip_crop: mirrored or not, shifted by up to 4 pixels"},
    {FL_OPT(struct fl_client_data, ENUM, reload), .flags = FL_CLIENT_DAEMON, .def = "before_task",
     .choices = reloads,
     .help =
         "before_task: the files are looked at before each task (names, sizes, times, inodes); "
         "changed ones are read again and the client reconnects with the new number of samples; "
         "without them it leaves until they are back. A program that trains reads its data by "
         "itself: only a folder that is gone counts. never: trains on what was read at the "
         "start, also when the files are gone"},
    FL_OPT_END_OF(struct fl_client_data)};

static const struct fl_opt_spec command_specs[] = {
    {FL_OPT(struct fl_client_command, STRING_LIST, program),
     .help = "Program and arguments; {task} stands for the path of the task file"},
    {FL_OPT(struct fl_client_command, DURATION, time_limit),
     FL_OPT_GIVEN(struct fl_client_command, time_limit), .def = "1h", .min = 100, .max = 6.048e8,
     .help = "The program is ended after it"},
    {FL_OPT(struct fl_client_command, DURATION, first_limit),
     FL_OPT_GIVEN(struct fl_client_command, first_limit), .min = 100, .max = 6.048e8,
     .help = "And after this while no run for this federation was good yet, as there is none to "
             "be compared with; not set: 10m, or time_limit when that is set or patience is 0"},
    {FL_OPT(struct fl_client_command, FLOAT, straggler_factor), .def = "10", .min = 0, .max = 1e6,
     .help = "And after this many times its longest run for this federation so far; 0: never"},
    {FL_OPT(struct fl_client_command, DURATION, straggler_min), .def = "2m", .min = 0,
     .max = 6.048e8, .help = "But not before"},
    {FL_OPT(struct fl_client_command, BYTES, memory_limit), .def = "0", .min = 0, .max = 1.1e12,
     .help = "Memory of the program; 0: no limit"},
    {FL_OPT(struct fl_client_command, ENUM, memory_of), .def = "address_space", .choices = memories,
     .help =
         "What memory_limit is of. address_space: of each process, whose allocations fail above "
         "it; resident: what all its processes have in memory, as ps counts it, and the program "
         "is ended above it: for frameworks that reserve much more than they use, as those with "
         "GPUs do"},
    {FL_OPT(struct fl_client_command, MAP, environment),
     .help = "Variables of its environment, beside those of fl-clientd and in place of them: "
             "CUDA_VISIBLE_DEVICES, say"},
    {FL_OPT(struct fl_client_command, BOOL, persistent), .def = "no",
     .help = "The program is started once and handed one task after the other "
             "(docs/trainer-protocol.md); no: started for each task (docs/trainer-command.md)"},
    {FL_OPT(struct fl_client_command, DURATION, start_limit), .def = "2m", .min = 100,
     .max = 8.64e7, .help = "A resident program has to be ready, and to know the model, by then"},
    {FL_OPT(struct fl_client_command, DURATION, cancel_grace), .def = "10s", .min = 0, .max = 3.6e6,
     .help = "A resident program that was told to cancel a task and does not say that it has is "
             "ended after it"},
    {FL_OPT(struct fl_client_command, DURATION, idle_exit), .def = "10m", .min = 0, .max = 6.048e8,
     .help =
         "A resident program that has had nothing to do for so long is ended, and started again "
         "for the next task; 0: it stays"},
    {FL_OPT(struct fl_client_command, INT, samples),
     FL_OPT_GIVEN(struct fl_client_command, samples), .def = "1", .min = 1, .max = 1e12,
     .help = "Training samples to announce before the program ever ran. Without it the client "
             "leaves where limits.least_samples or limits.least_steps need the number; what the "
             "program says in a result is compared with both, too"},
    FL_OPT_END_OF(struct fl_client_command)};

static const struct fl_opt_spec reconnect_specs[] = {
    {FL_OPT(struct fl_client_reconnect, DURATION, first), .def = "1s", .min = 10, .max = 3.6e6,
     .help = "First wait after a lost connection; doubled each time, with 20 % jitter"},
    {FL_OPT(struct fl_client_reconnect, DURATION, longest), .def = "1m", .min = 10, .max = 8.64e7,
     .help = "The waits grow to this. A client that was refused for what an operator can cure (it "
             "is disabled, a clock or a certificate is wrong), joining too, asks again within it"},
    {FL_OPT(struct fl_client_reconnect, DURATION, after_refusal), .def = "15m", .min = 0,
     .max = 8.64e7,
     .help = "Wait after the server refused this client for good (its certificate is not believed "
             "any more, its invitation is spent, its version or data do not fit); 0s: exit with "
             "code 7 after any refusal"},
    {FL_OPT(struct fl_client_reconnect, DURATION, when_done), .def = "1m", .min = 10, .max = 8.64e7,
     .help = "All rounds are done, and the server ends the session of a client that stays: the "
             "waits grow to this. A minute is soon enough for an operator who adds rounds, and "
             "a thousand clients that ask every minute cost a server nothing"},
    {FL_OPT(struct fl_client_reconnect, DURATION, connect_timeout), .def = "10s", .min = 100,
     .max = 600000, .help = "A connection that does not stand by then counts as failed"},
    FL_OPT_END_OF(struct fl_client_reconnect)};

static const struct fl_opt_spec limits_specs[] = {
    {FL_OPT(struct fl_client_limits, RATE, upload_rate), .def = "none", .min = 1,
     .max = (double)FL_RATE_MAX,
     .help = "Payload that this client sends goes no faster, so that a thin link keeps room for "
             "others. Of updates, with their frames of gRPC; heartbeats, reports and the like "
             "are not counted and do not wait behind it"},
    {FL_OPT(struct fl_client_limits, RATE, download_rate), .def = "none", .min = 1,
     .max = (double)FL_RATE_MAX,
     .help = "The same of models and whatever else it fetches; the server is given credit at this "
             "rate, so nothing piles up on the way"},
    {FL_OPT(struct fl_client_limits, INT, least_samples), .flags = FL_CLIENT_DAEMON, .def = "10",
     .min = 1, .max = 1e12,
     .help = "An update is made of so many training samples: a client that has fewer, or that is "
             "asked for fewer (training.steps times batch_size), leaves and says so. One of a few "
             "samples nearly is those samples (docs/what-updates-tell.md)"},
    {FL_OPT(struct fl_client_limits, INT, least_steps), .flags = FL_CLIENT_DAEMON, .def = "1",
     .min = 1, .max = 1e9,
     .help = "And in so many mini-batch steps: later steps blur what the first one tells"},
    {FL_OPT(struct fl_client_limits, BYTES, largest_model), .flags = FL_CLIENT_DAEMON, .def = "4G",
     .min = 0, .max = 1.1e12,
     .help = "A server with more bytes of parameters is refused before memory is taken for them; "
             "training takes three to five times as much memory. 0: no limit"},
    {FL_OPT(struct fl_client_limits, INT, rounds_per_day), .flags = FL_CLIENT_DAEMON, .def = "0",
     .min = 0, .max = 1e9,
     .help = "This client trains in no more rounds on one day (UTC), restarts included; after them "
             "it leaves and comes back on the next day. 0: no limit"},
    FL_OPT_END_OF(struct fl_client_limits)};

static const struct fl_conf_section sections[] = {
    {FL_CONF_SECTION("", main_specs, struct fl_client_conf, main, struct fl_client_main)},
    {FL_CONF_SECTION("tls", tls_specs, struct fl_client_conf, tls, struct fl_client_tls),
     .flags = FL_CLIENT_DAEMON},
    {FL_CONF_SECTION("data", data_specs, struct fl_client_conf, data, struct fl_client_data)},
    {FL_CONF_SECTION("command", command_specs, struct fl_client_conf, command,
                     struct fl_client_command),
     .flags = FL_CLIENT_DAEMON},
    {FL_CONF_SECTION("reconnect", reconnect_specs, struct fl_client_conf, reconnect,
                     struct fl_client_reconnect),
     .flags = FL_CLIENT_DAEMON},
    {FL_CONF_SECTION("limits", limits_specs, struct fl_client_conf, limits,
                     struct fl_client_limits)},
    {.name = NULL}};

/* What a Hello and the server have room for: nothing is left out that the operator wrote. */
static int check_labels(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_opt_map *labels = &conf->main->labels;
    const struct fl_conf_node *node = fl_conf_field(conf->file, labels);
    size_t bytes = 0;
    size_t i;

    if (labels->n > FL_WIRE_MAX_PAIRS) {
        return fl_conf_error(node, err, "expected at most %d labels, found %zu", FL_WIRE_MAX_PAIRS,
                             labels->n);
    }
    for (i = 0; i < labels->n; i++) {
        size_t key = strlen(labels->list[i].key);
        size_t value = strlen(labels->list[i].value);
        size_t longest = key > value ? key : value;

        if (longest > FL_WIRE_MAX_TEXT) {
            return fl_conf_error(node, err, "expected at most %d bytes of a label, found %zu",
                                 FL_WIRE_MAX_TEXT, longest);
        }
        bytes += key + value + 2;
    }
    if (bytes > FL_WIRE_LABELS_BYTES) {
        return fl_conf_error(node, err,
                             "expected at most %d bytes of labels, each key and value counted with "
                             "one byte more, found %zu",
                             FL_WIRE_LABELS_BYTES, bytes);
    }
    return FL_OK;
}

/* Who it is, and how that is shown: by its word alone, or by a certificate. */
static int check_identity(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_client_main *m = conf->main;
    const struct fl_client_tls *tls = conf->tls;

    if (m->name[0] == '\0' && m->insecure) {
        return fl_conf_error(fl_conf_field(conf->file, &m->name), err,
                             "a client without a certificate ('insecure: yes') needs a 'name'");
    }
    if (m->name[0] != '\0' && !fl_name_allowed(m->name)) {
        return fl_conf_error(
            fl_conf_field(conf->file, &m->name), err,
            "expected 1 to %d characters of A-Z a-z 0-9 . _ -, the first a letter, "
            "a digit or _, found '%s'",
            FL_NAME_MAX - 1, m->name);
    }
    if ((tls->certificate[0] == '\0') != (tls->key[0] == '\0')) {
        return fl_conf_error(fl_conf_section(conf->file, tls), err,
                             "expected tls.certificate and tls.key, found one without the other");
    }
    if (tls->certificate[0] != '\0' && tls->ca[0] == '\0') {
        return fl_conf_error(fl_conf_section(conf->file, tls), err,
                             "a certificate of your own needs tls.ca: the roots that the server is "
                             "believed by");
    }
    return FL_OK;
}

/* A name that a shell takes, and none that says what the program is to do. */
static bool good_variable(const char *name)
{
    size_t i;

    for (i = 0; name[i] != '\0'; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return i > 0 && strcmp(name, "FL_TASK") != 0 && strncmp(name, "FL_TRAINER_", 11) != 0;
}

static int check_command(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_client_command *c = conf->command;
    size_t i;

    for (i = 0; i < c->environment.n; i++) {
        if (!good_variable(c->environment.list[i].key)) {
            return fl_conf_error(fl_conf_field(conf->file, &c->environment), err,
                                 "expected names of A-Z a-z 0-9 _ that do not begin with a digit, "
                                 "and not FL_TASK or FL_TRAINER_..., found '%.100s'",
                                 c->environment.list[i].key);
        }
    }
    for (i = 0; c->persistent && i < c->program.n; i++) {
        if (strstr(c->program.list[i], "{task}") != NULL) {
            return fl_conf_error(fl_conf_field(conf->file, &c->program), err,
                                 "a program that stays ('command.resident: yes') has no task file "
                                 "for '{task}': it is told its tasks (docs/trainer-protocol.md)");
        }
    }
    return FL_OK;
}

static int check_trainer(const struct fl_client_conf *conf, struct fl_err *err)
{
    bool command = conf->main->trainer == FL_TRAINER_COMMAND;

    if (command && (conf->command->program.n == 0 || conf->command->program.list[0][0] == '\0')) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->command->program), err,
                             "trainer 'command' needs command.program");
    }
    if (command && conf->data->augment != FL_AUGMENT_NONE) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->data->augment), err,
                             "data.augment is for the built-in trainer; your program augments by "
                             "itself");
    }
    if (!command && conf->data->path[0] == '\0') {
        return fl_conf_error(fl_conf_field(conf->file, &conf->data->path), err,
                             "trainer 'builtin' needs data.path");
    }
    return FL_OK;
}

static int choose_kernels(struct fl_client_conf *conf, struct fl_err *err)
{
    const int *instructions = &conf->main->instructions;
    struct fl_err why = {0};
    int rv = fl_kernels_named(fl_kernels_names[*instructions], &conf->kernels, &why);

    return rv == FL_OK ? FL_OK
                       : fl_conf_error(fl_conf_field(conf->file, instructions), err, "%s", why.msg);
}

static int check(struct fl_client_conf *conf, struct fl_findings *all, struct fl_err *err)
{
    int rv = fl_findings_keep(all, choose_kernels(conf, err), err);

    rv = rv == FL_OK ? fl_findings_keep(all, check_identity(conf, err), err) : rv;
    rv = rv == FL_OK ? fl_findings_keep(all, check_trainer(conf, err), err) : rv;
    rv = rv == FL_OK ? fl_findings_keep(all, check_command(conf, err), err) : rv;
    return rv == FL_OK ? fl_findings_keep(all, check_labels(conf, err), err) : rv;
}

int fl_client_conf_load(const char *path, struct fl_findings *all, struct fl_client_conf **ret,
                        struct fl_err *err)
{
    struct fl_client_conf *conf = calloc(1, sizeof(*conf));
    int rv;

    if (conf == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_conf_read(path, sections, NULL, all, conf, &conf->file, err);
    rv = rv == FL_OK ? fl_findings_first(all, err) : rv;
    rv = rv == FL_OK ? check(conf, all, err) : rv;
    if (rv != FL_OK) {
        fl_client_conf_free(conf);
        return rv;
    }
    *ret = conf;
    return FL_OK;
}

int fl_client_conf_read(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                        struct fl_client_conf **ret, struct fl_err *err)
{
    struct fl_client_conf *conf = calloc(1, sizeof(*conf));
    int rv;

    if (conf == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_conf_read_map(doc, map, sections, NULL, FL_CLIENT_DAEMON, conf, &conf->file, err);
    rv = rv == FL_OK ? choose_kernels(conf, err) : rv;
    rv = rv == FL_OK ? check_labels(conf, err) : rv;
    if (rv != FL_OK) {
        fl_client_conf_free(conf);
        return rv;
    }
    *ret = conf;
    return FL_OK;
}

int fl_client_conf_daemons(const struct fl_client_conf *conf, struct fl_buf *out)
{
    return fl_conf_given(conf->file, FL_CLIENT_DAEMON, "client.", out);
}

bool fl_client_conf_is_daemons(const char *key)
{
    return (fl_conf_key_flags(sections, key) & (unsigned)FL_CLIENT_DAEMON) != 0;
}

void fl_client_conf_free(struct fl_client_conf *conf)
{
    if (conf == NULL) {
        return;
    }
    fl_conf_file_free(conf->file);
    free(conf);
}

int fl_client_conf_reference(struct fl_buf *out)
{
    return fl_conf_sections_reference(sections, out);
}
