/*
 * The configuration of a client: the tables of its keys, from which docs/configuration.md is
 * printed, and the checks across keys. Called at start and reload, on the caller's thread. It does
 * not check folders, data or the server (client/daemon/clientd_preflight.c).
 */

#include "client/conf/client_conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/base/rate.h"
#include "libfl/base/str.h"
#include "libfl/wire/messages.h"

/*
 * Time limit of the first run of a program for this federation: a program that hangs must not hold
 * a round longer.
 */
#define FIRST_LIMIT_MS 600000

const char *const fl_client_trainers[] = {
    [FL_TRAINER_BUILTIN] = "builtin", [FL_TRAINER_COMMAND] = "command", NULL};
static const char *const memories[] = {
    [FL_PROGRAM_ADDRESS_SPACE] = "address_space", [FL_PROGRAM_RESIDENT_MEMORY] = "resident", NULL};
static const char *const augments[] = {
    [FL_AUGMENT_NONE] = "none", [FL_AUGMENT_FLIP_CROP] = "flip_crop", NULL};

static const char *const reloads[] = {
    [FL_RELOAD_BEFORE_TASK] = "before_task", [FL_RELOAD_NEVER] = "never", NULL};

static const struct fl_opt_spec main_specs[] = {
    {FL_OPT(struct fl_client_main, STRING_LIST, server),
     .flags = FL_OPT_REQUIRED | FL_CLIENT_DAEMON | FL_OPT_BASIC,
     .help = "Address of fl-serverd: host:port, [v6]:port or unix:/path. Several (at most 16), of "
             "one federation, are tried in this order, with random pauses of at most "
             "reconnect.first in between (docs/network.md)"},
    {FL_OPT(struct fl_client_main, STRING, name), .flags = FL_CLIENT_DAEMON | FL_OPT_BASIC,
     .help = "Name of this client, unique in the federation: 1 to 127 of A-Z a-z 0-9 . _ -; not "
             "set: the name in its certificate, which must be equal when both are set"},
    {FL_OPT(struct fl_client_main, STRING, state_dir),
     .flags = FL_OPT_REQUIRED | FL_CLIENT_DAEMON | FL_OPT_BASIC,
     .help = "Folder for a finished and unsent result, and for the client state kept between "
             "rounds; created when missing"},
    {FL_OPT(struct fl_client_main, STRING, proxy), .flags = FL_CLIENT_DAEMON,
     .help = "HTTP proxy of the connection to 'server', which has to allow CONNECT: "
             "http://host:port; none: connect directly. Not set: that of the environment variable "
             "https_proxy, unless 'server' is in no_proxy or a loopback address (docs/network.md)"},
    {FL_OPT(struct fl_client_main, STRING, proxy_credentials), .flags = FL_CLIENT_DAEMON,
     .help = "File with the line USER:PASSWORD for a proxy that asks for them (Basic "
             "authentication), which other users must not be able to read; read again for each "
             "connection"},
    {FL_OPT(struct fl_client_main, BOOL, insecure), .flags = FL_CLIENT_DAEMON | FL_OPT_BASIC,
     .def = "no",
     .help = "Plaintext instead of TLS, for loopback addresses and socket files. No "
             "authentication: the server trusts the name that the client sends"},
    {FL_OPT(struct fl_client_main, BOOL, insecure_remote), .flags = FL_CLIENT_DAEMON, .def = "no",
     .help =
         "Plaintext to other hosts too: anyone on the network path can read and change updates"},
    {FL_OPT(struct fl_client_main, ENUM, trainer), .flags = FL_OPT_BASIC, .def = "builtin",
     .choices = fl_client_trainers,
     .help = "The trainer: the built-in engine, which needs OpenBLAS, or a program of yours"},
    {FL_OPT(struct fl_client_main, MAP, labels), .flags = FL_CLIENT_DAEMON,
     .help =
         "Labels, free names and values that flctl clients shows; at most 64, 2048 bytes in all"},
    {FL_OPT(struct fl_client_main, STRING_LIST, accept), .flags = FL_CLIENT_DAEMON,
     .help = "What operators of the server may change of this client with flctl: labels (flctl "
             "clients label), which are added to its own and win over them; schedule (flctl "
             "clients schedule), hours beside those of section 'when'; limits (flctl clients "
             "limit), rates and rounds a day below those of section 'limits'. Not set: nothing "
             "(docs/operating.md#central-settings)"},
    {FL_OPT(struct fl_client_main, ENUM, log_level), .flags = FL_CLIENT_DAEMON | FL_OPT_BASIC,
     .def = "info", .choices = fl_log_names, .help = "Messages above this level are not logged"},
    {FL_OPT(struct fl_client_main, ENUM, log_format), .flags = FL_CLIENT_DAEMON, .def = "text",
     .choices = fl_log_formats,
     .help =
         "text: lines for people; json: one JSON object per line, with key=value as its members"},
    {FL_OPT(struct fl_client_main, BOOL, exit_when_done), .flags = FL_CLIENT_DAEMON, .def = "no",
     .help = "Exit with code 0 when all rounds are done. Otherwise the client stays and, when the "
             "server is started with more rounds, reconnects within seconds, without any action on "
             "the clients"},
    {FL_OPT(struct fl_client_main, BOOL, summaries), .def = "no",
     .help = "Allow data summaries: algorithms such as fedmix and naivemix send means of a few "
             "samples each, which the server distributes to all clients. With 'no' the client "
             "leaves such a federation, and sends the reason"},
    {FL_OPT(struct fl_client_main, INT, least_group), .def = "10", .min = 2, .max = 1e9,
     .help = "With summaries: least number of samples of a mean. The client leaves a server that "
             "requests less, and sends no means when it has fewer samples. 10, as publishers of "
             "health statistics show no count of fewer than 5 to 11 people; more hides more "
             "(docs/security.md)"},
    {FL_OPT(struct fl_client_main, INT, seed), .flags = FL_OPT_DEBUG, .def = "0", .min = 0,
     .max = 9e15, .help = "Seed of the jitter of reconnects; 0 derives it from the name"},
    {FL_OPT(struct fl_client_main, ENUM, instructions), .flags = FL_CLIENT_DAEMON | FL_OPT_DEBUG,
     .def = "auto", .choices = fl_kernels_names,
     .help = "Instruction set of this machine's processor for the built-in engine; one that the "
             "processor lacks is refused. auto: the fastest available (docs/kernels.md)"},
    FL_OPT_END_OF(struct fl_client_main)};

static const struct fl_opt_spec tls_specs[] = {
    {FL_OPT(struct fl_client_tls, STRING, certificate),
     .help = "PEM file: this client's certificate, then the intermediate ones; not set: the "
             "certificate that fl-clientd --join put into state_dir/identity, and renews "
             "automatically"},
    {FL_OPT(struct fl_client_tls, STRING, key),
     .help = "PEM file: its key, which no other user may read; not set: likewise"},
    {FL_OPT(struct fl_client_tls, STRING, ca),
     .help = "PEM file: the trusted roots of the server; not set: likewise"},
    {FL_OPT(struct fl_client_tls, STRING_LIST, crl),
     .help = "PEM files: revocation lists (CRL) for the server's certificate and the intermediate "
             "ones up to its root"},
    {FL_OPT(struct fl_client_tls, STRING, server_name),
     .help = "DNS name or address that the server's certificate has to be valid for; not set: the "
             "host of 'server'"},
    FL_OPT_END_OF(struct fl_client_tls)};

static const struct fl_opt_spec data_specs[] = {
    {FL_OPT(struct fl_client_data, STRING, path), .flags = FL_OPT_BASIC,
     .help = "Folder with the training part (IDX, CIFAR, NPY, NPZ or CSV), and a test part if any"},
    {FL_OPT(struct fl_client_data, FLOAT, validation), .flags = FL_OPT_BASIC, .def = "0", .min = 0,
     .max = 0.9,
     .help = "Share of the training part reserved for evaluation when there is no test part"},
    {FL_OPT(struct fl_client_data, ENUM, augment), .def = "none", .choices = augments,
     .help =
         "Augmentation of training images; flip_crop: mirrored or not, shifted by up to 4 pixels"},
    {FL_OPT(struct fl_client_data, ENUM, reload), .flags = FL_CLIENT_DAEMON, .def = "before_task",
     .choices = reloads,
     .help = "before_task: the files are checked before each task (names, sizes, times, inodes); "
             "changed ones are read again and the client reconnects with the new number of "
             "samples; when they are missing it disconnects until they are back. A training "
             "program reads its data itself: only a missing folder is detected. never: train on "
             "the data read at the start, also when the files are missing"},
    FL_OPT_END_OF(struct fl_client_data)};

static const struct fl_opt_spec command_specs[] = {
    {FL_OPT(struct fl_client_command, STRING_LIST, program), .flags = FL_OPT_BASIC,
     .help = "Program and arguments; {task} is replaced by the path of the task file"},
    {FL_OPT(struct fl_client_command, DURATION, time_limit), .flags = FL_OPT_BASIC,
     FL_OPT_GIVEN(struct fl_client_command, time_limit), .def = "1h", .min = 100, .max = 6.048e8,
     .help = "Longest run of the program; it is killed after this time"},
    {FL_OPT(struct fl_client_command, DURATION, first_limit),
     FL_OPT_GIVEN(struct fl_client_command, first_limit), .min = 100, .max = 6.048e8,
     .help = "Time limit while no run for this federation has succeeded yet, as there is none to "
             "compare with; not set: 10m, or time_limit when that is set or straggler_factor is 0"},
    {FL_OPT(struct fl_client_command, FLOAT, straggler_factor), .flags = FL_CLIENT_DAEMON,
     .def = "10", .min = 0, .max = 1e6,
     .help = "The program is also killed after this many times its longest run for this federation "
             "so far; 0: never"},
    {FL_OPT(struct fl_client_command, DURATION, straggler_min), .flags = FL_CLIENT_DAEMON,
     .def = "2m", .min = 0, .max = 6.048e8, .help = "Least time before straggler_factor applies"},
    {FL_OPT(struct fl_client_command, BYTES, memory_limit), .def = "0", .min = 0, .max = 1.1e12,
     .help = "Memory limit of the program; 0: no limit"},
    {FL_OPT(struct fl_client_command, ENUM, memory_of), .def = "address_space", .choices = memories,
     .help = "What memory_limit applies to. address_space: each process, whose allocations fail "
             "above it; resident: the memory of all its processes, as ps counts it, and the "
             "program is killed above it: for frameworks that reserve much more than they use, as "
             "those with GPUs do"},
    {FL_OPT(struct fl_client_command, MAP, environment),
     .help = "Additional environment variables, which replace those of fl-clientd: "
             "CUDA_VISIBLE_DEVICES, say"},
    {FL_OPT(struct fl_client_command, BOOL, persistent), .def = "no",
     .help = "yes: the program is persistent, started once and sent one task after the other; no: "
             "it is started for each task (docs/trainers.md)"},
    {FL_OPT(struct fl_client_command, DURATION, start_limit), .def = "2m", .min = 100,
     .max = 8.64e7, .help = "Timeout for a persistent program to be ready and to accept the model"},
    {FL_OPT(struct fl_client_command, DURATION, cancel_grace), .flags = FL_OPT_DEBUG, .def = "10s",
     .min = 0, .max = 3.6e6,
     .help =
         "A persistent program that does not confirm a canceled task within this time is killed"},
    {FL_OPT(struct fl_client_command, DURATION, idle_exit), .flags = FL_CLIENT_DAEMON, .def = "10m",
     .min = 0, .max = 6.048e8,
     .help = "A persistent program that is idle for this time is stopped, and started again for "
             "the next task; 0: never"},
    {FL_OPT(struct fl_client_command, INT, samples), .flags = FL_CLIENT_DAEMON,
     FL_OPT_GIVEN(struct fl_client_command, samples), .def = "1", .min = 1, .max = 1e12,
     .help = "Number of training samples to announce before the program has run. Without it the "
             "client leaves when limits.least_samples or limits.least_steps need the number; the "
             "number in each result is checked against both as well"},
    FL_OPT_END_OF(struct fl_client_command)};

static const struct fl_opt_spec reconnect_specs[] = {
    {FL_OPT(struct fl_client_reconnect, DURATION, first), .def = "1s", .min = 10, .max = 3.6e6,
     .help = "First pause after a lost connection; doubled each time, with 20 % jitter"},
    {FL_OPT(struct fl_client_reconnect, DURATION, longest), .def = "1m", .min = 10, .max = 8.64e7,
     .help = "Longest of these pauses. After a refusal that an operator can resolve (the client is "
             "disabled, a clock or a certificate is wrong), also while joining, the client retries "
             "within it"},
    {FL_OPT(struct fl_client_reconnect, DURATION, after_refusal), .def = "15m", .min = 0,
     .max = 8.64e7,
     .help =
         "Pause after a permanent refusal (the certificate is no longer trusted, the invitation is "
         "used up, the version or the data do not fit); 0s: exit with code 7 after any refusal"},
    {FL_OPT(struct fl_client_reconnect, DURATION, when_done), .def = "1m", .min = 10, .max = 8.64e7,
     .help = "Longest pause when all rounds are done and the server ends the session of a client "
             "that stays. A minute is soon enough for an operator who adds rounds, and a thousand "
             "clients that retry every minute cost a server nothing"},
    {FL_OPT(struct fl_client_reconnect, DURATION, ping_after), .def = "30s", .min = 0, .max = 3.6e6,
     .help = "When nothing arrives for so long, the client sends an HTTP/2 ping, so that proxies, "
             "firewalls and NAT keep the connection open, whatever the server's heartbeat is "
             "(docs/network.md#idle-connections); 0: never"},
    {FL_OPT(struct fl_client_reconnect, DURATION, ping_limit), .flags = FL_OPT_DEBUG, .def = "20s",
     .min = 10, .max = 600000,
     .help = "When nothing arrives for so long after a ping, the connection is closed as dead"},
    {FL_OPT(struct fl_client_reconnect, DURATION, connect_timeout), .flags = FL_OPT_DEBUG,
     .def = "10s", .min = 100, .max = 600000, .help = "Timeout of a connection attempt"},
    FL_OPT_END_OF(struct fl_client_reconnect)};

static const struct fl_opt_spec limits_specs[] = {
    {FL_OPT(struct fl_client_limits, RATE, upload_rate), .def = "none", .min = 1,
     .max = (double)FL_RATE_MAX,
     .help = "Upload rate limit, so that a slow link keeps capacity for others. It applies to "
             "updates, with their gRPC frames; heartbeats, reports and the like are not counted "
             "and are not delayed by it"},
    {FL_OPT(struct fl_client_limits, RATE, download_rate), .def = "none", .min = 1,
     .max = (double)FL_RATE_MAX,
     .help = "Download rate limit for models and everything else that the client fetches; the "
             "server gets flow-control credit at this rate, so nothing queues on the way"},
    {FL_OPT(struct fl_client_limits, INT, least_samples), .flags = FL_CLIENT_DAEMON, .def = "10",
     .min = 1, .max = 1e12,
     .help =
         "Least number of training samples of an update: a client that has fewer, or that the "
         "server asks for fewer (training.steps times batch_size), leaves and sends the reason. An "
         "update of a few samples reveals nearly those samples (docs/security.md)"},
    {FL_OPT(struct fl_client_limits, INT, least_steps), .flags = FL_CLIENT_DAEMON, .def = "1",
     .min = 1, .max = 1e9,
     .help = "Least number of mini-batch steps of an update: later steps blur what the first one "
             "reveals"},
    {FL_OPT(struct fl_client_limits, BYTES, largest_model), .flags = FL_CLIENT_DAEMON, .def = "4G",
     .min = 0, .max = 1.1e12,
     .help = "Largest model in bytes of parameters; the client leaves a server with a larger one "
             "before it allocates memory for it. Training takes three to five times as much "
             "memory. 0: no limit"},
    {FL_OPT(struct fl_client_limits, INT, rounds_per_day), .flags = FL_CLIENT_DAEMON, .def = "0",
     .min = 0, .max = 1e9,
     .help = "Most rounds that this client trains on one day (UTC), restarts included; then it "
             "disconnects and reconnects on the next day. 0: no limit"},
    FL_OPT_END_OF(struct fl_client_limits)};

static const char *const outsides[] = {
    [FL_WHEN_STAY] = "stay", [FL_WHEN_DISCONNECT] = "disconnect", NULL};

static const struct fl_opt_spec when_specs[] = {
    {FL_OPT(struct fl_client_when, STRING_LIST, hours),
     .help =
         "Hours in which this device takes part, such as 22:00-06:00, in the time of this host; "
         "at most 16. Not set: at any time"},
    {FL_OPT(struct fl_client_when, FLOAT, load_below), .def = "0", .min = 0, .max = 1e6,
     .help =
         "Only while the load average of the last minute is below it for each processor (0.5: half "
         "of them are busy), this client's training included; 0: any"},
    {FL_OPT(struct fl_client_when, BOOL, mains), .def = "no",
     .help = "Only on mains power. A device that reports no power supply is on mains power"},
    {FL_OPT(struct fl_client_when, BOOL, unmetered), .def = "no",
     .help = "Only on a network that NetworkManager does not report as metered; without "
             "NetworkManager on any"},
    {FL_OPT(struct fl_client_when, BYTES, free_memory), .def = "0", .min = 0, .max = 1.1e12,
     .help = "Only while so much memory is available; 0: any"},
    {FL_OPT(struct fl_client_when, BYTES, free_disk), .def = "0", .min = 0, .max = 1.1e15,
     .help = "Only while so much disk space is free at state_dir; 0: any"},
    {FL_OPT(struct fl_client_when, ENUM, outside), .def = "stay", .choices = outsides,
     .help =
         "While a rule does not hold: stay connected without being selected, or disconnect once "
         "the server has the reason. A round in which the client takes part is finished either "
         "way"},
    {FL_OPT(struct fl_client_when, DURATION, check), .flags = FL_OPT_DEBUG, .def = "30s", .min = 10,
     .max = 3.6e6, .help = "Interval at which the rules are checked"},
    {FL_OPT(struct fl_client_when, STRING, system_root), .flags = FL_OPT_DEBUG,
     .help = "Folder whose proc and sys are read in place of those of this host"},
    FL_OPT_END_OF(struct fl_client_when)};

static const struct fl_conf_section sections[] = {
    {FL_CONF_SECTION("", main_specs, struct fl_client_conf, main, struct fl_client_main)},
    {FL_CONF_SECTION("tls", tls_specs, struct fl_client_conf, tls, struct fl_client_tls),
     .flags = FL_CLIENT_DAEMON},
    {FL_CONF_SECTION("data", data_specs, struct fl_client_conf, data, struct fl_client_data)},
    {FL_CONF_SECTION("command", command_specs, struct fl_client_conf, command,
                     struct fl_client_command)},
    {FL_CONF_SECTION("reconnect", reconnect_specs, struct fl_client_conf, reconnect,
                     struct fl_client_reconnect),
     .flags = FL_CLIENT_DAEMON},
    {FL_CONF_SECTION("limits", limits_specs, struct fl_client_conf, limits,
                     struct fl_client_limits)},
    {FL_CONF_SECTION("http", fl_http_specs, struct fl_client_conf, http, struct fl_http_conf),
     .flags = FL_CLIENT_DAEMON},
    {FL_CONF_SECTION("when", when_specs, struct fl_client_conf, when, struct fl_client_when),
     .flags = FL_CLIENT_DAEMON},
    {.name = NULL}};

/* Limits of Hello and of the server: all configured labels have to fit. */
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

static int check_accept(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_opt_texts *accept = &conf->main->accept;
    size_t i;

    for (i = 0; i < accept->n; i++) {
        if (strcmp(accept->list[i], "labels") != 0 && strcmp(accept->list[i], "schedule") != 0 &&
            strcmp(accept->list[i], "limits") != 0)
        {
            return fl_conf_error(fl_conf_field(conf->file, accept), err,
                                 "expected labels, schedule or limits, found '%s'",
                                 accept->list[i]);
        }
    }
    return FL_OK;
}

/* The name of the client, and its proof: none with 'insecure: yes', else a certificate. */
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
        return fl_conf_error(
            fl_conf_section(conf->file, tls), err,
            "a certificate of your own needs tls.ca: the trusted roots of the server");
    }
    return FL_OK;
}

/* A valid name for a shell, and not one of the variables that control the program. */
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
                                 "a persistent program ('command.persistent: yes') has no task "
                                 "file for '{task}': it "
                                 "receives its tasks in messages (docs/trainers.md)");
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
                             "data.augment applies to the built-in trainer only; your program has "
                             "to augment by itself");
    }
    if (!command && conf->data->path[0] == '\0') {
        return fl_conf_error(fl_conf_field(conf->file, &conf->data->path), err,
                             "trainer 'builtin' needs data.path");
    }
    return FL_OK;
}

static int client_conf_choose_kernels(struct fl_client_conf *conf, struct fl_err *err)
{
    const int *instructions = &conf->main->instructions;
    struct fl_err why = {0};
    int rv = fl_kernels_named(fl_kernels_names[*instructions], &conf->kernels, &why);

    if (rv != FL_OK) {
        return fl_conf_error(fl_conf_field(conf->file, instructions), err, "%s", why.msg);
    }
    return FL_OK;
}

static int client_conf_check(struct fl_client_conf *conf, struct fl_findings *all,
                             struct fl_err *err)
{
    static int (*const checks[])(const struct fl_client_conf *, struct fl_err *) = {
        check_identity, check_trainer, check_command, check_labels, check_accept};
    size_t i;
    int rv = fl_findings_keep(all, client_conf_choose_kernels(conf, err), err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        rv = fl_findings_keep(all, checks[i](conf, err), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
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
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_findings_first(all, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = client_conf_check(conf, all, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = conf;
    return FL_OK;
fail:
    fl_client_conf_free(conf);
    return rv;
}

int fl_client_conf_read(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                        struct fl_client_conf **ret, struct fl_err *err)
{
    const struct fl_conf_part part = {.doc = doc, .map = map, .optional = FL_CLIENT_DAEMON};
    struct fl_client_conf *conf = calloc(1, sizeof(*conf));
    int rv;

    if (conf == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_conf_read_map(&part, sections, NULL, conf, &conf->file, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = client_conf_choose_kernels(conf, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = check_labels(conf, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = conf;
    return FL_OK;
fail:
    fl_client_conf_free(conf);
    return rv;
}

int fl_client_conf_daemons(const struct fl_client_conf *conf, struct fl_buf *out)
{
    return fl_conf_given(conf->file, FL_CLIENT_DAEMON, "client.", out);
}

bool fl_client_conf_is_daemons(const char *key)
{
    return (fl_conf_key_flags(sections, key) & (unsigned)FL_CLIENT_DAEMON) != 0;
}

uint64_t fl_client_conf_first_limit(const struct fl_client_command *c)
{
    if (c->first_limit_given) {
        return c->first_limit_ms;
    }
    /*
     * An operator who set time_limit, or who disabled the straggler timeout, means the first run
     * too.
     */
    return c->time_limit_given || !(c->straggler_factor > 0.0) ? 0 : FIRST_LIMIT_MS;
}

char **fl_client_conf_environment(const struct fl_client_command *command)
{
    const struct fl_opt_map *map = &command->environment;
    char **list = calloc(map->n + 1, sizeof(*list));
    size_t i;

    for (i = 0; list != NULL && i < map->n; i++) {
        const struct fl_pair *pair = &map->list[i];
        size_t size = strlen(pair->key) + strlen(pair->value) + 2;

        list[i] = malloc(size);
        if (list[i] == NULL) {
            fl_str_list_free(list);
            return NULL;
        }
        (void)snprintf(list[i], size, "%s=%s", pair->key, pair->value);
    }
    return list;
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
