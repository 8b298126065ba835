/* The option tables of fl-serverd, and the reference that is printed from them. */

#include "server/daemon/conf_tables.h"

#include <stdio.h>

#include "libfl/base/buf.h"
#include "server/daemon/conf.h"

static const char *const log_levels[] = {"error", "warning", "notice", "info", "debug", NULL};
static const char *const durabilities[] = {"process", "power", NULL};
static const char *const finish_choices[] = {"stay", "exit", NULL};

const struct fl_opt_spec fl_serverd_main_specs[] = {
    {.name = "federation",
     .type = FL_OPT_STRING,
     .flags = FL_OPT_REQUIRED,
     .help = "Name of the federation: 1 to 127 of A-Z a-z 0-9 . _ -"},
    {.name = "state_dir",
     .type = FL_OPT_STRING,
     .flags = FL_OPT_REQUIRED,
     .help = "Folder for the database, checkpoints and the upload spool; made when missing"},
    {.name = "listen",
     .type = FL_OPT_STRING_LIST,
     .def = "127.0.0.1:7800",
     .help = "Addresses for clients: host:port, [v6]:port or unix:/path; port 0 picks a free one"},
    {.name = "insecure",
     .type = FL_OPT_BOOL,
     .def = "no",
     .help = "Plaintext; needed as long as this version has no TLS, and only for loopback"},
    {.name = "insecure_remote",
     .type = FL_OPT_BOOL,
     .def = "no",
     .help = "Plaintext on other addresses too: anybody on the way can read and change updates"},
    {.name = "admin_socket",
     .type = FL_OPT_STRING,
     .help = "Unix socket for flctl; default: admin.sock in state_dir"},
    {.name = "log_level",
     .type = FL_OPT_ENUM,
     .def = "info",
     .choices = log_levels,
     .help = "Lines above this level are not written"},
    {.name = "durability",
     .type = FL_OPT_ENUM,
     .def = "process",
     .choices = durabilities,
     .help = "What an accepted update survives: a kill -9 (process) or a power cut (power)"},
    {.name = "seed",
     .type = FL_OPT_INT,
     .def = "1",
     .min = 0,
     .max = 9e15,
     .help = "Master seed: same seed and same responders give the same model, bit for bit"},
    {.name = "rounds",
     .type = FL_OPT_INT,
     .def = "0",
     .min = 0,
     .max = 1e9,
     .help = "Rounds to run; 0 goes on for ever"},
    {.name = "when_finished",
     .type = FL_OPT_ENUM,
     .def = "stay",
     .choices = finish_choices,
     .help = "After the last round: stay (flctl still answers) or exit"},
    {.name = "heartbeat",
     .type = FL_OPT_DURATION,
     .def = "10s",
     .min = 200,
     .max = 3600000,
     .help = "Interval of heartbeats; silence for three of them ends a session"},
    FL_OPT_END};

const struct fl_opt_spec fl_serverd_model_specs[] = {
    {.name = "preset",
     .type = FL_OPT_STRING,
     .help = "A named network (fl-serverd --help lists them)"},
    {.name = "input",
     .type = FL_OPT_INT_LIST,
     .min = 1,
     .max = 1e6,
     .help = "Input of a network of your own: [features] or [channels, height, width]"},
    {.name = "layers",
     .type = FL_OPT_STRING_LIST,
     .help = "Its layers, such as [dense 200, relu, dense 10]"},
    {.name = "file",
     .type = FL_OPT_STRING,
     .help = "A safetensors file: the first model, and its shape when no network is given"},
    FL_OPT_END};

const struct fl_opt_spec fl_serverd_training_specs[] = {
    {.name = "epochs",
     .type = FL_OPT_INT,
     .def = "1",
     .min = 0,
     .max = 10000,
     .help = "Passes over the local data per round; 0: use steps"},
    {.name = "steps",
     .type = FL_OPT_INT,
     .def = "0",
     .min = 0,
     .max = 1e9,
     .help = "Mini-batch steps per round when epochs is 0"},
    {.name = "batch_size",
     .type = FL_OPT_INT,
     .def = "10",
     .min = 1,
     .max = 65536,
     .help = "Samples of a mini-batch"},
    {.name = "learning_rate",
     .type = FL_OPT_FLOAT,
     .def = "0.05",
     .min = 0,
     .max = 1000,
     .help = "Client step size of the first round"},
    {.name = "learning_rate_decay",
     .type = FL_OPT_FLOAT,
     .def = "1",
     .min = 0,
     .max = 1,
     .help = "Factor on the step size from round to round"},
    {.name = "momentum",
     .type = FL_OPT_FLOAT,
     .def = "0",
     .min = 0,
     .max = 0.9999,
     .help = "Heavy-ball momentum of the client, new in every round"},
    {.name = "weight_decay",
     .type = FL_OPT_FLOAT,
     .def = "0",
     .min = 0,
     .max = 10,
     .help = "Added to the gradient as this times the parameter"},
    FL_OPT_END};

const struct fl_opt_spec fl_serverd_round_specs[] = {
    {.name = "population",
     .type = FL_OPT_INT,
     .def = "0",
     .min = 0,
     .max = 1e6,
     .help =
         "Number of clients that fractions are taken of; 0: those that are connected, and those "
         "that took part before and are not forgotten (forget_after)"},
    {.name = "forget_after",
     .type = FL_OPT_DURATION,
     .def = "720h",
     .min = 0,
     .max = 3.2e11,
     .help =
         "A client that is away for so long (720h: 30 days) is forgotten, and new when it "
         "comes back: longer "
         "than holidays and repairs, so that who left for good does not count for ever. Time "
         "during which the server was down does not count, and setting the clock of the machine "
         "makes nobody older. The last error of a name that nobody has goes as late. 0: never"},
    {.name = "start_clients",
     .type = FL_OPT_INT,
     .def = "1",
     .min = 1,
     .max = 1e6,
     .help = "Connected clients before the very first round begins"},
    {.name = "min_clients",
     .type = FL_OPT_INT,
     .def = "1",
     .min = 1,
     .max = 1e6,
     .help = "Connected clients before any round begins"},
    {.name = "min_responders",
     .type = FL_OPT_INT,
     .min = 0,
     .max = 1e6,
     .help = "Fewer responders than this repeat the round; not set: half of the clients that the "
             "round wants, rounded up"},
    {.name = "over_selection",
     .type = FL_OPT_FLOAT,
     .def = "1",
     .min = 1,
     .max = 10,
     .help = "Select this many times more clients than the fraction says"},
    {.name = "train_deadline",
     .type = FL_OPT_DURATION,
     .def = "1h",
     .min = 100,
     .max = 6.048e8,
     .help = "From the task to the report of a client"},
    {.name = "patience",
     .type = FL_OPT_FLOAT,
     .def = "10",
     .min = 0,
     .max = 1e6,
     .help = "Once half of the reports are in, the others have this many times as long as those "
             "took, more with more samples; 0: the whole train_deadline"},
    {.name = "patience_least",
     .type = FL_OPT_DURATION,
     .def = "2m",
     .min = 0,
     .max = 6.048e8,
     .help = "And so long at least"},
    {.name = "upload_deadline",
     .type = FL_OPT_DURATION,
     .def = "1h",
     .min = 100,
     .max = 6.048e8,
     .help = "From the plan to the accepted upload"},
    {.name = "lost_grace",
     .type = FL_OPT_DURATION,
     .def = "10s",
     .min = 0,
     .max = 6.048e8,
     .help = "A disconnected client may come back into its round for so long"},
    {.name = "retry",
     .type = FL_OPT_DURATION,
     .def = "5s",
     .min = 10,
     .max = 3.6e6,
     .help = "First pause before a round is repeated, doubled up to 64 times"},
    {.name = "backfill",
     .type = FL_OPT_BOOL,
     .def = "no",
     .help = "Ask the next-ranked client once when a planned uploader goes silent"},
    {.name = "norm_bound",
     .type = FL_OPT_FLOAT,
     .def = "0",
     .min = 0,
     .max = 1e30,
     .help = "Reject updates with a larger Euclidean norm; 0: no bound"},
    FL_OPT_END};

const struct fl_opt_spec fl_serverd_evaluation_specs[] = {
    {.name = "every",
     .type = FL_OPT_INT,
     .def = "1",
     .min = 0,
     .max = 1e6,
     .help = "Evaluate every so many rounds, and the last one; 0: never"},
    {.name = "data",
     .type = FL_OPT_STRING,
     .help = "Folder whose test part the server evaluates on"},
    {.name = "clients",
     .type = FL_OPT_BOOL,
     .def = "no",
     .help = "Ask the connected clients to evaluate on their own test data"},
    {.name = "deadline",
     .type = FL_OPT_DURATION,
     .def = "5m",
     .min = 100,
     .max = 6.048e8,
     .help = "Until the evaluations of the clients must be in"},
    FL_OPT_END};

const struct fl_opt_spec fl_serverd_checkpoint_specs[] = {
    {.name = "keep",
     .type = FL_OPT_INT,
     .def = "3",
     .min = 1,
     .max = 1e6,
     .help = "Newest checkpoints that stay, however fast rounds come"},
    {.name = "keep_for",
     .type = FL_OPT_DURATION,
     .def = "24h",
     .min = 0,
     .max = 3.2e11,
     .help = "Of each of keep_parts parts of this span the last one stays too; 0: none"},
    {.name = "keep_parts",
     .type = FL_OPT_INT,
     .def = "8",
     .min = 1,
     .max = 10000,
     .help = "Parts of keep_for: at most so many checkpoints and one more take disk space for it"},
    {.name = "keep_best",
     .type = FL_OPT_INT,
     .def = "1",
     .min = 0,
     .max = 1000,
     .help = "Checkpoints with the best accuracy that stay; 0: none"},
    {.name = "every",
     .type = FL_OPT_INT,
     .def = "0",
     .min = 0,
     .max = 1e6,
     .help = "Every so many-th checkpoint stays for good; 0: none"},
    FL_OPT_END};

const struct fl_opt_spec fl_serverd_limit_specs[] = {
    {.name = "clients",
     .type = FL_OPT_INT,
     .def = "10000",
     .min = 1,
     .max = 1e6,
     .help = "Connections at once, as far as descriptors allow (two for each); one more takes the "
             "place of the oldest that is no client's, or is closed"},
    {.name = "known_clients",
     .type = FL_OPT_INT,
     .def = "100000",
     .min = 1,
     .max = 1e7,
     .help =
         "Client names that are known at once, connected or having taken part; more are refused, "
         "but those that never took part and are away go first"},
    {.name = "streams",
     .type = FL_OPT_INT,
     .def = "16",
     .min = 3,
     .max = 1000,
     .help = "Calls at once on a connection"},
    {.name = "header_bytes",
     .type = FL_OPT_BYTES,
     .def = "16K",
     .min = 1024,
     .max = 1048576,
     .help = "Headers of a call"},
    {.name = "upload_memory",
     .type = FL_OPT_BYTES,
     .def = "32M",
     .min = 1048576,
     .max = 1099511627776.0,
     .help = "Uploads held in memory when all expected clients (round.population or start_clients) "
             "push at once; sizes chunks and windows"},
    {.name = "memory",
     .type = FL_OPT_BYTES,
     .def = "0",
     .min = 0,
     .max = 1099511627776.0,
     .help = "Held for all connections together: unfinished messages, replies that are not read, "
             "old models that a transfer keeps. Past it connections without a client go first, "
             "those that hold most before others. 0: four times upload_memory"},
    {.name = "peer_memory",
     .type = FL_OPT_BYTES,
     .def = "16M",
     .min = 65536,
     .max = 1099511627776.0,
     .help = "The same for one connection: what is in flight (connection_window), as much again "
             "that waits for it"},
    {.name = "offer",
     .type = FL_OPT_BYTES,
     .def = "1M",
     .min = 1024,
     .max = 67108864,
     .help = "What one client may tell of its data before the first round (solver fedmix)"},
    {.name = "connection_window",
     .type = FL_OPT_BYTES,
     .def = "8M",
     .min = 65536,
     .max = 1073741824,
     .help = "Bytes in flight from a connection"},
    {.name = "handshake",
     .type = FL_OPT_DURATION,
     .def = "10s",
     .min = 100,
     .max = 600000,
     .help = "From accepting a connection to HTTP/2"},
    {.name = "idle",
     .type = FL_OPT_DURATION,
     .def = "60s",
     .min = 100,
     .max = 3.6e6,
     .help = "A connection without calls, a call that waits for its client, a client that does "
             "not take what waits for it: ended after once to twice this"},
    {.name = "resets",
     .type = FL_OPT_INT,
     .def = "100",
     .min = 1,
     .max = 1e6,
     .help = "Calls a connection may cancel in a second"},
    FL_OPT_END};

static int reference_slot(enum fl_slot slot, struct fl_buf *out)
{
    const struct fl_policy *const *p = fl_strategy_policies(slot);
    char prefix[2 * FL_NAME_MAX];
    int rv = FL_OK;

    for (; rv == FL_OK && *p != NULL; p++) {
        rv = fl_buf_printf(out, "\n`%s` policy `%s`: %s (%s)\n\n", fl_slot_name(slot), (*p)->name,
                           (*p)->help, (*p)->source);
        if (rv == FL_OK && (*p)->options != NULL && (*p)->options[0].name != NULL) {
            (void)snprintf(prefix, sizeof(prefix), "strategy.%s", fl_slot_name(slot));
            rv = fl_buf_printf(out, "| key | type | default | range | meaning |\n"
                                    "| --- | --- | --- | --- | --- |\n");
            if (rv == FL_OK) {
                rv = fl_conf_reference((*p)->options, prefix, out);
            }
        }
    }
    return rv;
}

int fl_server_conf_reference(struct fl_buf *out)
{
    static const struct {
        const char *name;
        const struct fl_opt_spec *specs;
    } specs[] = {{"model", fl_serverd_model_specs},
                 {"training", fl_serverd_training_specs},
                 {"round", fl_serverd_round_specs},
                 {"evaluation", fl_serverd_evaluation_specs},
                 {"checkpoints", fl_serverd_checkpoint_specs},
                 {"limits", fl_serverd_limit_specs}};
    const struct fl_preset *preset;
    char prefix[FL_NAME_MAX];
    size_t i;
    int rv = fl_buf_printf(out, "| key | type | default | range | meaning |\n"
                                "| --- | --- | --- | --- | --- |\n");

    if (rv == FL_OK) {
        rv = fl_conf_reference(fl_serverd_main_specs, "", out);
    }
    for (i = 0; rv == FL_OK && i < sizeof(specs) / sizeof(specs[0]); i++) {
        (void)snprintf(prefix, sizeof(prefix), "%s", specs[i].name);
        rv = fl_conf_reference(specs[i].specs, prefix, out);
    }
    if (rv == FL_OK) {
        rv = fl_buf_printf(out, "\n`algorithm` is one of:\n\n| preset | what it is | source |\n"
                                "| --- | --- | --- |\n");
    }
    for (preset = fl_strategy_presets(); rv == FL_OK && preset->name != NULL; preset++) {
        rv = fl_buf_printf(out, "| `%s` | %s | %s |\n", preset->name, preset->help, preset->source);
    }
    for (i = 0; rv == FL_OK && i < FL_SLOT_COUNT; i++) {
        rv = reference_slot((enum fl_slot)i, out);
    }
    return rv;
}
