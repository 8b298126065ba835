/* The option tables of fl-serverd, and the reference that is printed from them. */

#include "server/conf/conf_tables.h"

#include <stdio.h>

#include "libfl/base/buf.h"
#include "libfl/base/rate.h"
#include "libfl/num/kernels.h"
#include "server/conf/server_conf_impl.h"

static const char *const durabilities[] = {
    [FL_DURABLE_PROCESS] = "process", [FL_DURABLE_POWER] = "power", NULL};
static const char *const norm_choices[] = {
    [FL_NORM_SHARED] = "shared", [FL_NORM_LOCAL] = "local", NULL};
static const char *const over_choices[] = {
    [FL_OVER_STOP] = "stop", [FL_OVER_GRACE] = "grace", NULL};
static const char *const finish_choices[] = {
    [FL_FINISHED_STAY] = "stay", [FL_FINISHED_EXIT] = "exit", NULL};

const struct fl_opt_spec fl_server_main_specs[] = {
    {FL_OPT(struct fl_server_main, STRING, federation), .flags = FL_OPT_REQUIRED | FL_SERVER_NEEDED,
     .help = "Name of the federation: 1 to 127 of A-Z a-z 0-9 . _ -"},
    {FL_OPT(struct fl_server_main, STRING, state_dir), .flags = FL_OPT_REQUIRED | FL_SERVER_DAEMON,
     .help = "Folder for the database, checkpoints and the upload spool; made when missing"},
    {FL_OPT(struct fl_server_main, STRING_LIST, listen), .flags = FL_SERVER_DAEMON,
     .def = "127.0.0.1:7800",
     .help = "Addresses for clients: host:port, [v6]:port or unix:/path; port 0 picks a free one. "
             "TLS on both sides, unless `insecure` says otherwise"},
    {FL_OPT(struct fl_server_main, STRING_LIST, listen_insecure), .flags = FL_SERVER_DAEMON,
     .help = "Addresses for clients in plaintext beside those of `listen`, for a federation that "
             "has both; loopback only without insecure_remote. A name that has a certificate or "
             "is denied is refused there (docs/access.md)"},
    {FL_OPT(struct fl_server_main, STRING_LIST, listen_admin), .flags = FL_SERVER_DAEMON,
     .help = "Addresses where flctl may come over TLS with an admin's certificate; none by "
             "default"},
    {FL_OPT(struct fl_server_main, BOOL, insecure), .flags = FL_SERVER_DAEMON, .def = "no",
     .help = "Plaintext on all of `listen`: whoever reaches it is believed by the name that he "
             "says, so only for loopback"},
    {FL_OPT(struct fl_server_main, BOOL, insecure_remote), .flags = FL_SERVER_DAEMON, .def = "no",
     .help = "Plaintext on other addresses too: anybody on the way can read and change updates"},
    {FL_OPT(struct fl_server_main, STRING, admin_socket), .flags = FL_SERVER_DAEMON,
     .help = "Unix socket for flctl; default: admin.sock in state_dir"},
    {FL_OPT(struct fl_server_main, STRING, admin_group), .flags = FL_SERVER_DAEMON,
     .help = "Group whose members may do everything at the admin socket, as root and the server's "
             "own user; default: fl-admin, when there is such a group"},
    {FL_OPT(struct fl_server_main, STRING, admin_viewers), .flags = FL_SERVER_DAEMON,
     .help = "Group whose members may look there, and nothing else; the socket is open to all "
             "local users then, and others are turned away as they come. Default: nobody"},
    {FL_OPT(struct fl_server_main, ENUM, log_level), .flags = FL_SERVER_DAEMON, .def = "info",
     .choices = fl_log_names, .help = "Lines above this level are not written"},
    {FL_OPT(struct fl_server_main, ENUM, log_format), .flags = FL_SERVER_DAEMON, .def = "text",
     .choices = fl_log_formats,
     .help = "Lines for people, or an object of JSON each, whose key=value are its members"},
    {FL_OPT(struct fl_server_main, ENUM, durability), .flags = FL_SERVER_DAEMON, .def = "process",
     .choices = durabilities,
     .help = "What an accepted update survives: a kill -9 (process) or a power cut (power)"},
    {FL_OPT(struct fl_server_main, INT, seed), .flags = FL_SERVER_FIGURE, .def = "1", .min = 0,
     .max = 9e15,
     .help = "Master seed: same seed and same responders give the same model, bit for bit"},
    {FL_OPT(struct fl_server_main, INT, rounds), .flags = FL_SERVER_FIGURE, .def = "0", .min = 0,
     .max = 1e9, .help = "Rounds to run; 0 goes on for ever"},
    {FL_OPT(struct fl_server_main, ENUM, when_finished), .flags = FL_SERVER_DAEMON, .def = "stay",
     .choices = finish_choices, .help = "After the last round: stay (flctl still answers) or exit"},
    {FL_OPT(struct fl_server_main, DURATION, heartbeat), .flags = FL_SERVER_DAEMON, .def = "10s",
     .min = 200, .max = 3600000,
     .help = "Interval of heartbeats; silence for three of them ends a session"},
    {FL_OPT(struct fl_server_main, ENUM, instructions), .flags = FL_SERVER_DAEMON, .def = "auto",
     .choices = fl_kernels_names,
     .help = "Of this machine's processor, that the built-in engine evaluates with; one that the "
             "processor lacks is refused. auto: the fastest there are (docs/kernels.md)"},
    FL_OPT_END_OF(struct fl_server_main)};

const struct fl_opt_spec fl_server_model_specs[] = {
    {FL_OPT(struct fl_server_model, STRING, preset),
     .help = "A named network (fl-serverd --help lists them)"},
    {FL_OPT(struct fl_server_model, INT_LIST, input), .min = 1, .max = 1e6,
     .help = "Input of a network of your own: [features] or [channels, height, width]"},
    {FL_OPT(struct fl_server_model, STRING_LIST, layers),
     .help = "Its layers, such as [dense 200, relu, dense 10]"},
    {FL_OPT(struct fl_server_model, STRING, file), .flags = FL_SERVER_FIGURE,
     .help = "A safetensors file: the first model, and its shape when no network is given"},
    {FL_OPT(struct fl_server_model, STRING_LIST, units),
     .help = "Units of a model from a file, which layer-wise algorithms ask for one by one: "
             "patterns over the names of its tensors, [NAME=]GLOB with * and {} "
             "(docs/networks.md). Default: a unit for each layer, with the batch-norm that "
             "follows it"},
    {FL_OPT(struct fl_server_model, ENUM, norm), .def = "shared", .choices = norm_choices,
     .help = "Batch-norms are averaged like the rest, or stay on each client (local: FedBN), "
             "for clients whose data look different"},
    {FL_OPT(struct fl_server_model, STRING_LIST, local),
     .help = "Globs of further tensors that stay on each client with norm: local, such as those "
             "of a layer-norm"},
    FL_OPT_END_OF(struct fl_server_model)};

const struct fl_opt_spec fl_server_training_specs[] = {
    {FL_OPT(struct fl_server_training, INT, epochs), .def = "1", .min = 0, .max = 10000,
     .help = "Passes over the local data per round; 0: use steps"},
    {FL_OPT(struct fl_server_training, INT, steps), .def = "0", .min = 0, .max = 1e9,
     .help = "Mini-batch steps per round when epochs is 0"},
    {FL_OPT(struct fl_server_training, INT, batch_size), .def = "10", .min = 1, .max = 65536,
     .help = "Samples of a mini-batch"},
    {FL_OPT(struct fl_server_training, FLOAT, learning_rate), .flags = FL_SERVER_RATE,
     .def = "0.05", .min = 0, .max = 1000, .help = "Client step size of the first round"},
    {FL_OPT(struct fl_server_training, FLOAT, learning_rate_decay), .flags = FL_SERVER_RATE,
     .def = "1", .min = 0, .max = 1, .help = "Factor on the step size from round to round"},
    {FL_OPT(struct fl_server_training, FLOAT, momentum), .flags = FL_SERVER_RATE, .def = "0",
     .min = 0, .max = 0.9999, .help = "Heavy-ball momentum of the client, new in every round"},
    {FL_OPT(struct fl_server_training, FLOAT, weight_decay), .def = "0", .min = 0, .max = 10,
     .help = "Added to the gradient as this times the parameter"},
    FL_OPT_END_OF(struct fl_server_training)};

const struct fl_opt_spec fl_server_round_specs[] = {
    {FL_OPT(struct fl_server_round, INT, population), .def = "0", .min = 0, .max = 1e6,
     .help =
         "Number of clients that fractions are taken of; 0: those that are connected, and those "
         "that took part before and are not forgotten (forget_after)"},
    {FL_OPT(struct fl_server_round, DURATION, forget_after), .def = "720h", .min = 0, .max = 3.2e11,
     .help =
         "A client that is away for so long (720h: 30 days) is forgotten, and new when it "
         "comes back: longer "
         "than holidays and repairs, so that who left for good does not count for ever. Time "
         "during which the server was down does not count, and setting the clock of the machine "
         "makes nobody older. The last error of a name that nobody has goes as late. 0: never"},
    {FL_OPT(struct fl_server_round, INT, start_clients), .def = "1", .min = 1, .max = 1e6,
     .help = "Connected clients before the very first round begins"},
    {FL_OPT(struct fl_server_round, INT, min_clients), .def = "1", .min = 1, .max = 1e6,
     .help = "Connected clients before any round begins"},
    {FL_OPT(struct fl_server_round, INT, min_responders),
     FL_OPT_GIVEN(struct fl_server_round, min_responders), .min = 0, .max = 1e6,
     .help = "Fewer responders than this repeat the round; not set: half of the clients that the "
             "round wants, rounded up"},
    {FL_OPT(struct fl_server_round, FLOAT, over_selection), .def = "1", .min = 1, .max = 10,
     .help = "Select this many times more clients than the K that the fraction says, rounded up, "
             "against stragglers (docs/algorithms.md#over-selection)"},
    {FL_OPT(struct fl_server_round, ENUM, over_selected), .def = "stop", .choices = over_choices,
     .help = "Once K clients of an over-selected round are in: the others are told to stop, or "
             "are aggregated too when they arrive within lost_grace (grace)"},
    {FL_OPT(struct fl_server_round, FLOAT, weight_cap), .def = "100", .min = 0, .max = 1e12,
     .help = "A client counts with this many times the samples of the median client at most, in "
             "the draw and in the aggregation (docs/formulas.md#the-weight-of-a-client); 0: no "
             "bound"},
    {FL_OPT(struct fl_server_round, FLOAT, norm_cap), .def = "100", .min = 0, .max = 1e30,
     .help = "Leave out updates whose norm is more than this many times the median one of the "
             "round, of 3 at least (docs/formulas.md#the-norm-of-an-update); 0: none"},
    {FL_OPT(struct fl_server_round, DURATION, train_deadline), .def = "1h", .min = 100,
     .max = 6.048e8, .help = "From the task to the report of a client"},
    {FL_OPT(struct fl_server_round, FLOAT, straggler_factor), .def = "10", .min = 0, .max = 1e6,
     .help = "Straggler timeout. Once half of the reports are in, the others have this many times "
             "as long as those took, more with more samples. Once half of the uploads are in, a "
             "client that sends nothing of its upload for this many times as long as those took is "
             "lost (or too little, patience_rate); before, only when no upload moves. 0: the whole "
             "deadlines"},
    {FL_OPT(struct fl_server_round, DURATION, straggler_min), .def = "2m", .min = 0, .max = 6.048e8,
     .help = "And so long at least; more than two heartbeats, which tell of uploads"},
    {FL_OPT(struct fl_server_round, RATE, patience_rate), .flags = FL_SERVER_DAEMON,
     .def = "4kbit/s", .min = 0, .max = (double)FL_RATE_MAX,
     .help = "Least rate of an upload. Once half of the uploads are in, a client is lost, too, "
             "when over such a time its upload is slower than this and than the slowest of that "
             "half divided by patience. The default lets a link of 20 kbit/s be down for most of "
             "the time; a federation on fast links can set more. none: any byte is enough"},
    {FL_OPT(struct fl_server_round, DURATION, upload_deadline), .def = "1h", .min = 100,
     .max = 6.048e8,
     .help = "From the plan to the accepted upload, also for a client whose bytes arrive slowly"},
    {FL_OPT(struct fl_server_round, DURATION, lost_grace), .def = "10s", .min = 0, .max = 6.048e8,
     .help = "A disconnected client may come back into its round for so long"},
    {FL_OPT(struct fl_server_round, DURATION, retry), .def = "5s", .min = 10, .max = 3.6e6,
     .help = "First pause before a round is repeated, doubled up to 64 times"},
    {FL_OPT(struct fl_server_round, BOOL, backfill), .def = "no",
     .help = "Ask the next-ranked client once when a planned uploader goes silent"},
    {FL_OPT(struct fl_server_round, FLOAT, norm_bound), .def = "0", .min = 0, .max = 1e30,
     .help = "Reject updates with a larger Euclidean norm; 0: no bound"},
    FL_OPT_END_OF(struct fl_server_round)};

const struct fl_opt_spec fl_server_evaluation_specs[] = {
    {FL_OPT(struct fl_server_evaluation, INT, every), .def = "1", .min = 0, .max = 1e6,
     .help = "Evaluate every so many rounds, and the last one; 0: never"},
    {FL_OPT(struct fl_server_evaluation, STRING, data), .flags = FL_SERVER_DAEMON,
     .help = "Folder whose test part the server evaluates on"},
    {FL_OPT(struct fl_server_evaluation, BOOL, clients), .def = "no",
     .help = "Ask the connected clients to evaluate on their own test data"},
    {FL_OPT(struct fl_server_evaluation, DURATION, deadline), .def = "5m", .min = 100,
     .max = 6.048e8, .help = "Until the evaluations of the clients must be in"},
    {FL_OPT(struct fl_server_evaluation, STRING_LIST, command),
     .help = "Program and arguments: it evaluates in place of the built-in engine, for models that "
             "this does not know; started once, and told of 'data' (docs/trainer-protocol.md)"},
    {FL_OPT(struct fl_server_evaluation, DURATION, command_limit), .flags = FL_SERVER_DAEMON,
     .def = "10m", .min = 100, .max = 6.048e8,
     .help = "An evaluation of that program is ended after it: the round goes on "
             "without accuracy"},
    {FL_OPT(struct fl_server_evaluation, DURATION, command_start_limit), .flags = FL_SERVER_DAEMON,
     .def = "2m", .min = 100, .max = 6.048e8, .help = "Until that program must be ready"},
    {FL_OPT(struct fl_server_evaluation, BYTES, command_memory), .flags = FL_SERVER_DAEMON,
     .def = "0", .min = 0, .max = 1.1e12,
     .help = "That program is ended when it has more in memory; 0: no limit"},
    FL_OPT_END_OF(struct fl_server_evaluation)};

const struct fl_opt_spec fl_server_checkpoint_specs[] = {
    {FL_OPT(struct fl_server_checkpoints, INT, keep), .def = "3", .min = 1, .max = 1e6,
     .help = "Newest checkpoints that stay, however fast rounds come"},
    {FL_OPT(struct fl_server_checkpoints, DURATION, keep_for), .def = "24h", .min = 0,
     .max = 3.2e11,
     .help = "Of each of keep_parts parts of this span the last one stays too; 0: none"},
    {FL_OPT(struct fl_server_checkpoints, INT, keep_parts), .def = "8", .min = 1, .max = 10000,
     .help = "Parts of keep_for: at most so many checkpoints and one more take disk space for it"},
    {FL_OPT(struct fl_server_checkpoints, INT, keep_best), .def = "1", .min = 0, .max = 1000,
     .help = "Checkpoints with the best accuracy that stay; 0: none"},
    {FL_OPT(struct fl_server_checkpoints, INT, every), .def = "0", .min = 0, .max = 1e6,
     .help = "Every so many-th checkpoint stays for good; 0: none"},
    FL_OPT_END_OF(struct fl_server_checkpoints)};

const struct fl_opt_spec fl_server_limit_specs[] = {
    {FL_OPT(struct fl_server_limits, INT, clients), .flags = FL_SERVER_DAEMON, .def = "10000",
     .min = 1, .max = 1e6,
     .help = "Connections at once, as far as descriptors allow (two for each); one more takes the "
             "place of one that is no client's (from the same address first, else the oldest), or "
             "is closed"},
    {FL_OPT(struct fl_server_limits, INT, client_connections), .flags = FL_SERVER_DAEMON,
     .def = "4", .min = 1, .max = 1000,
     .help = "Connections at once of one client, and so `streams` times as many calls; one more "
             "closes its oldest. A client needs one, and a second while it reconnects"},
    {FL_OPT(struct fl_server_limits, INT, known_clients), .flags = FL_SERVER_DAEMON,
     .def = "100000", .min = 1, .max = 1e7,
     .help =
         "Client names that are known at once, connected or having taken part; more are refused, "
         "but those that never took part and are away go first"},
    {FL_OPT(struct fl_server_limits, INT, streams), .flags = FL_SERVER_DAEMON, .def = "16",
     .min = 3, .max = 1000, .help = "Calls at once on a connection"},
    {FL_OPT(struct fl_server_limits, BYTES, header_bytes), .flags = FL_SERVER_DAEMON, .def = "16K",
     .min = 1024, .max = 1048576, .help = "Headers of a call"},
    {FL_OPT(struct fl_server_limits, BYTES, upload_memory), .flags = FL_SERVER_DAEMON, .def = "32M",
     .min = 1048576, .max = 1099511627776.0,
     .help = "Uploads held in memory when all expected clients (round.population or start_clients) "
             "push at once; sizes chunks and windows"},
    {FL_OPT(struct fl_server_limits, BYTES, memory), .flags = FL_SERVER_DAEMON, .def = "0",
     .min = 0, .max = 1099511627776.0,
     .help = "Held for all connections together: unfinished messages, replies that are not read, "
             "old models that a transfer keeps, what TLS has ready for a client. With half of it "
             "used TLS makes less ready; past it connections without a client go first, those that "
             "hold most before others; a quarter of it is for clients only. All connections of "
             "one client have one fair share. 0: four times upload_memory"},
    {FL_OPT(struct fl_server_limits, BYTES, peer_memory), .flags = FL_SERVER_DAEMON, .def = "16M",
     .min = 65536, .max = 1099511627776.0,
     .help = "The same for one connection: what is in flight (connection_window), as much again "
             "that waits for it"},
    {FL_OPT(struct fl_server_limits, BYTES, offer), .def = "1M", .min = 1024, .max = 67108864,
     .help = "What one client may tell of its data before the first round (solver fedmix)"},
    {FL_OPT(struct fl_server_limits, FLOAT, offer_range), .def = "10", .min = 0, .max = 1e30,
     .help = "Largest value of a data summary (solver fedmix), as a multiple of the median of the "
             "others' largest values: a summary with a larger one is left out, its client takes "
             "part without. With fewer than three summaries none is. 0: without a bound"},
    {FL_OPT(struct fl_server_limits, BYTES, connection_window), .flags = FL_SERVER_DAEMON,
     .def = "8M", .min = 65536, .max = 1073741824, .help = "Bytes in flight from a connection"},
    {FL_OPT(struct fl_server_limits, DURATION, handshake), .flags = FL_SERVER_DAEMON, .def = "10s",
     .min = 100, .max = 600000, .help = "From accepting a connection to HTTP/2"},
    {FL_OPT(struct fl_server_limits, DURATION, idle), .flags = FL_SERVER_DAEMON, .def = "60s",
     .min = 100, .max = 3.6e6,
     .help = "A connection without calls, a call that waits for its client, a client that does "
             "not take what waits for it: ended after once to twice this"},
    {FL_OPT(struct fl_server_limits, INT, resets), .flags = FL_SERVER_DAEMON, .def = "100",
     .min = 1, .max = 1e6, .help = "Calls a connection may cancel in a second"},
    FL_OPT_END_OF(struct fl_server_limits)};

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

const struct fl_conf_section fl__server_sections[] = {
    {FL_CONF_SECTION("", fl_server_main_specs, struct fl_server_conf, main, struct fl_server_main)},
    {FL_CONF_SECTION("model", fl_server_model_specs, struct fl_server_conf, model,
                     struct fl_server_model)},
    {FL_CONF_SECTION("training", fl_server_training_specs, struct fl_server_conf, training,
                     struct fl_server_training),
     .flags = FL_SERVER_FIGURE},
    {FL_CONF_SECTION("round", fl_server_round_specs, struct fl_server_conf, round,
                     struct fl_server_round),
     .flags = FL_SERVER_FIGURE},
    {FL_CONF_SECTION("evaluation", fl_server_evaluation_specs, struct fl_server_conf, evaluation,
                     struct fl_server_evaluation),
     .flags = FL_SERVER_FIGURE},
    {FL_CONF_SECTION("checkpoints", fl_server_checkpoint_specs, struct fl_server_conf, checkpoints,
                     struct fl_server_checkpoints)},
    {FL_CONF_SECTION("limits", fl_server_limit_specs, struct fl_server_conf, limits,
                     struct fl_server_limits)},
    {FL_CONF_SECTION("tls", fl_server_tls_specs, struct fl_server_conf, tls, struct fl_server_tls),
     .flags = FL_SERVER_DAEMON},
    {FL_CONF_SECTION("identity", fl_server_identity_specs, struct fl_server_conf, identity,
                     struct fl_server_identity),
     .flags = FL_SERVER_DAEMON},
    {.name = NULL}};

int fl_server_conf_reference(struct fl_buf *out)
{
    const struct fl_preset *preset;
    size_t i;
    int rv = fl_conf_sections_reference(fl__server_sections, out);

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
