/* The option tables of fl-serverd, and the reference that is printed from them
   (docs/configuration.md). No state and no I/O; reading and checking a file is in server_conf.c. */

#include "server/conf/conf_tables.h"

#include <stdio.h>

#include "libfl/base/buf.h"
#include "libfl/base/rate.h"
#include "libfl/base/writer.h"
#include "libfl/num/kernels.h"
#include "server/conf/server_conf_impl.h"

static const char *const durabilities[] = {
    [FL_DURABLE_PROCESS] = "process", [FL_DURABLE_POWER] = "power", NULL};
static const char *const norm_choices[] = {
    [FL_NORM_SHARED] = "shared", [FL_NORM_LOCAL] = "local", NULL};
/* Beyond the first they are the words that end a network's layers (libfl/nn/net.h). */
const char *const fl__loss_choices[] = {"cross_entropy", "mse", "mae", "bce", NULL};
static const char *const over_choices[] = {
    [FL_OVER_STOP] = "stop", [FL_OVER_GRACE] = "grace", NULL};
static const char *const finish_choices[] = {
    [FL_FINISHED_STAY] = "stay", [FL_FINISHED_EXIT] = "exit", NULL};

const struct fl_opt_spec fl_server_main_specs[] = {
    {FL_OPT(struct fl_server_main, STRING, federation),
     .flags = FL_OPT_REQUIRED | FL_SERVER_NEEDED | FL_OPT_BASIC,
     .help = "Name of the federation: 1 to 127 of A-Z a-z 0-9 . _ -"},
    {FL_OPT(struct fl_server_main, STRING, state_dir),
     .flags = FL_OPT_REQUIRED | FL_SERVER_DAEMON | FL_OPT_BASIC,
     .help = "Folder for the database, checkpoints and the upload spool; created when missing"},
    {FL_OPT(struct fl_server_main, STRING_LIST, listen), .flags = FL_SERVER_DAEMON | FL_OPT_BASIC,
     .def = "127.0.0.1:7800",
     .help = "Addresses for clients: host:port, [v6]:port or unix:/path; port 0 picks a free one. "
             "Mutual TLS, unless `insecure` is set"},
    {FL_OPT(struct fl_server_main, STRING_LIST, listen_insecure), .flags = FL_SERVER_DAEMON,
     .help = "Plaintext addresses for clients in addition to `listen`, for a federation that has "
             "both; loopback only without insecure_remote. A client name that has a certificate or "
             "is revoked is rejected there (docs/security.md)"},
    {FL_OPT(struct fl_server_main, STRING_LIST, listen_admin), .flags = FL_SERVER_DAEMON,
     .help = "Addresses for flctl over TLS with an admin certificate; none by default"},
    {FL_OPT(struct fl_server_main, STRING_LIST, proxy_protocol_from), .flags = FL_SERVER_DAEMON,
     .help =
         "Addresses and ranges (10.0.0.0/8) of TCP load balancers whose connections begin with a "
         "header of the PROXY protocol, version 2, so that logs, limits and the audit have the "
         "address of the client; at most 64. Connections from there without the header are "
         "closed, and a header from elsewhere is not read (docs/network.md)"},
    {FL_OPT(struct fl_server_main, BOOL, insecure), .flags = FL_SERVER_DAEMON | FL_OPT_BASIC,
     .def = "no",
     .help = "Plaintext on all of `listen`. No TLS, no authentication: every client is trusted by "
             "the name it sends, so use it on loopback only"},
    {FL_OPT(struct fl_server_main, BOOL, insecure_remote), .flags = FL_SERVER_DAEMON, .def = "no",
     .help = "Allow plaintext on other addresses than loopback: anyone on the network path can "
             "read and change updates"},
    {FL_OPT(struct fl_server_main, STRING, admin_socket), .flags = FL_SERVER_DAEMON,
     .help = "Unix socket for flctl; default: admin.sock in state_dir"},
    {FL_OPT(struct fl_server_main, STRING, admin_group), .flags = FL_SERVER_DAEMON,
     .help = "Group whose members have full access to the admin socket, like root and the server's "
             "own user; default: fl-admin, if that group exists"},
    {FL_OPT(struct fl_server_main, STRING, admin_viewers), .flags = FL_SERVER_DAEMON,
     .help =
         "Group whose members have read-only access to the admin socket; every local user can then "
         "connect to the socket, and others are rejected after they connect. Default: none"},
    {FL_OPT(struct fl_server_main, ENUM, log_level), .flags = FL_SERVER_DAEMON | FL_OPT_BASIC,
     .def = "info", .choices = fl_log_names,
     .help = "Log lines less severe than this are not written"},
    {FL_OPT(struct fl_server_main, ENUM, log_format), .flags = FL_SERVER_DAEMON, .def = "text",
     .choices = fl_log_formats,
     .help = "Plain text lines, or one JSON object per line with each key=value as a member"},
    {FL_OPT(struct fl_server_main, ENUM, durability), .flags = FL_SERVER_DAEMON, .def = "process",
     .choices = durabilities,
     .help = "What an accepted update survives: a kill -9 (process) or a power cut (power)"},
    {FL_OPT(struct fl_server_main, INT, seed), .flags = FL_SERVER_FIGURE | FL_OPT_BASIC, .def = "1",
     .min = 0, .max = 9e15,
     .help = "Master seed: same seed and same responders give the same model, bit for bit"},
    {FL_OPT(struct fl_server_main, INT, rounds), .flags = FL_SERVER_FIGURE | FL_OPT_BASIC,
     .def = "0", .min = 0, .max = 1e9, .help = "Rounds to run; 0: no limit"},
    {FL_OPT(struct fl_server_main, ENUM, when_finished), .flags = FL_SERVER_DAEMON, .def = "stay",
     .choices = finish_choices, .help = "After the last round: stay (flctl still works) or exit"},
    {FL_OPT(struct fl_server_main, DURATION, heartbeat), .flags = FL_SERVER_DAEMON, .def = "10s",
     .min = 200, .max = 3600000,
     .help =
         "Interval of heartbeats; a session is disconnected after three missed ones. Below half of "
         "the shortest idle timeout of proxies and firewalls on the way, often 60 s "
         "(docs/network.md)"},
    {FL_OPT(struct fl_server_main, ENUM, instructions), .flags = FL_SERVER_DAEMON | FL_OPT_DEBUG,
     .def = "auto", .choices = fl_kernels_names,
     .help = "CPU instruction set that the built-in engine evaluates with; one that the processor "
             "lacks is an error. auto: the fastest that it has (docs/kernels.md)"},
    FL_OPT_END_OF(struct fl_server_main)};

const struct fl_opt_spec fl_server_model_specs[] = {
    {FL_OPT(struct fl_server_model, STRING, preset), .flags = FL_OPT_BASIC,
     .help = "A named network (fl-serverd --help lists them)"},
    {FL_OPT(struct fl_server_model, INT_LIST, input), .flags = FL_OPT_BASIC, .min = 1, .max = 1e6,
     .help = "Input of a network of your own: [features] or [channels, height, width]"},
    {FL_OPT(struct fl_server_model, STRING_LIST, layers), .flags = FL_OPT_BASIC,
     .help = "Layers of that network, such as [dense 200, relu, dense 10]"},
    {FL_OPT(struct fl_server_model, ENUM, loss), .def = "cross_entropy",
     .choices = fl__loss_choices,
     .help = "What the network is trained for: a class (cross_entropy), or values, whose last "
             "layer has one output for each (mse: squared error, mae: absolute error, bce: several "
             "labels of 0 or 1). Accuracy is then 0 with mse and mae, and with bce the share of "
             "samples with all labels right (docs/models.md)"},
    {FL_OPT(struct fl_server_model, STRING, file), .flags = FL_SERVER_FIGURE | FL_OPT_BASIC,
     .help = "A safetensors file with the first model; also its shape when no network is given"},
    {FL_OPT(struct fl_server_model, STRING_LIST, units),
     .help = "Layers of a model from a file, which layer-wise algorithms request separately: "
             "patterns over its tensor names, [NAME=]GLOB with * and {} (docs/models.md). "
             "Default: one for each layer, with the batch-norm that follows it"},
    {FL_OPT(struct fl_server_model, ENUM, norm), .def = "shared", .choices = norm_choices,
     .help = "Batch-norms are averaged like the other layers (shared), or stay on each client "
             "(local: FedBN), for clients with differently distributed data"},
    {FL_OPT(struct fl_server_model, STRING_LIST, local),
     .help = "With norm: local, globs of further tensors that stay on each client, such as those "
             "of a layer-norm"},
    FL_OPT_END_OF(struct fl_server_model)};

const struct fl_opt_spec fl_server_training_specs[] = {
    {FL_OPT(struct fl_server_training, INT, epochs),
     FL_OPT_GIVEN(struct fl_server_training, epochs), .flags = FL_OPT_BASIC, .def = "1", .min = 0,
     .max = 10000, .help = "Passes over the local data per round; 0: use steps"},
    {FL_OPT(struct fl_server_training, INT, steps), .def = "0", .min = 0, .max = 1e9,
     .help = "Mini-batch steps per round, with epochs: 0"},
    {FL_OPT(struct fl_server_training, INT, batch_size), .flags = FL_OPT_BASIC, .def = "10",
     .min = 1, .max = 65536, .help = "Samples per mini-batch"},
    {FL_OPT(struct fl_server_training, FLOAT, learning_rate),
     .flags = FL_SERVER_RATE | FL_OPT_BASIC, .def = "0.05", .min = 0, .max = 1000,
     .help = "Learning rate of the clients in the first round"},
    {FL_OPT(struct fl_server_training, FLOAT, learning_rate_decay), .flags = FL_SERVER_RATE,
     .def = "1", .min = 0, .max = 1,
     .help =
         "Factor on the learning rate from round to round, or every learning_rate_every rounds"},
    {FL_OPT(struct fl_server_training, INT, learning_rate_every), .flags = FL_SERVER_RATE,
     .def = "1", .min = 1, .max = 1e9,
     .help = "Rounds from one time that learning_rate_decay applies to the next: above 1 the "
             "learning rate falls in steps"},
    {FL_OPT(struct fl_server_training, INT, learning_rate_warmup), .flags = FL_SERVER_RATE,
     .def = "0", .min = 0, .max = 1e9,
     .help = "Rounds in which the learning rate rises, in round t the share t / "
             "learning_rate_warmup of it; 0: none"},
    {FL_OPT(struct fl_server_training, INT, learning_rate_rounds), .flags = FL_SERVER_RATE,
     .def = "0", .min = 0, .max = 1e9,
     .help = "Rounds in which the learning rate falls along half a cosine to learning_rate_end; 0: "
             "it does not"},
    {FL_OPT(struct fl_server_training, FLOAT, learning_rate_end), .flags = FL_SERVER_RATE,
     .def = "0", .min = 0, .max = 1,
     .help = "Share of the learning rate after learning_rate_rounds rounds"},
    {FL_OPT(struct fl_server_training, FLOAT, momentum), .flags = FL_SERVER_RATE, .def = "0",
     .min = 0, .max = 0.9999,
     .help = "Heavy-ball momentum of the clients, reset to zero in every round"},
    {FL_OPT(struct fl_server_training, FLOAT, weight_decay), .def = "0", .min = 0, .max = 10,
     .help = "L2 regularization: adds this times the parameter to the gradient"},
    {FL_OPT(struct fl_server_training, FLOAT, client_momentum), .def = "0", .min = 0, .max = 0.9999,
     .help = "Clients keep a momentum of their updates over the rounds and upload it instead of "
             "the update (for robust rules); 0: the update"},
    FL_OPT_END_OF(struct fl_server_training)};

const struct fl_opt_spec fl_server_round_specs[] = {
    {FL_OPT(struct fl_server_round, INT, population), .def = "0", .min = 0, .max = 1e6,
     .help = "Number of clients that fractions are taken of; 0: the connected clients, and the "
             "disconnected ones that took part before and are not forgotten (forget_after)"},
    {FL_OPT(struct fl_server_round, DURATION, forget_after), .def = "720h", .min = 0, .max = 3.2e11,
     .help =
         "A client that is disconnected for this long (720h: 30 days) is forgotten, and "
         "treated as new when it reconnects. Longer than holidays and repairs, so that only "
         "clients that left permanently no longer count. Time while the server is down does not "
         "count, and setting the clock of the machine ages no client. The last error of a name "
         "without a client is deleted after the same time. 0: never"},
    {FL_OPT(struct fl_server_round, INT, start_clients), .flags = FL_OPT_BASIC, .def = "1",
     .min = 1, .max = 1e6, .help = "Connected clients needed to start the first round"},
    {FL_OPT(struct fl_server_round, INT, min_clients), .flags = FL_OPT_BASIC, .def = "1", .min = 1,
     .max = 1e6, .help = "Connected clients needed to start any round"},
    {FL_OPT(struct fl_server_round, INT, min_responders),
     FL_OPT_GIVEN(struct fl_server_round, min_responders), .min = 0, .max = 1e6,
     .help = "A round with fewer responders is aborted and retried; not set: half of the clients "
             "that the round selects, rounded up"},
    {FL_OPT(struct fl_server_round, FLOAT, over_selection), .def = "1", .min = 1, .max = 10,
     .help = "Select this many times the K clients that the fraction gives, rounded up, as a "
             "reserve against stragglers (docs/algorithms.md#over-selection)"},
    {FL_OPT(struct fl_server_round, ENUM, over_selected), .def = "stop", .choices = over_choices,
     .help = "Once K clients of an over-selected round are in, the others are stopped (stop), or "
             "are aggregated too if they arrive within lost_grace (grace)"},
    {FL_OPT(struct fl_server_round, FLOAT, weight_cap), .def = "100", .min = 0, .max = 1e12,
     .help =
         "Upper bound of a client's weight: this many times the samples of the median client, in "
         "the draw, the aggregation and the figures of evaluations "
         "(docs/algorithms.md#the-weight-of-a-client); 0: no bound"},
    {FL_OPT(struct fl_server_round, FLOAT, norm_clip), .def = "4", .min = 0, .max = 1e30,
     .help = "Shorten updates to this many times the median norm of the round, with at least 3 "
             "updates (docs/algorithms.md#an-update-that-is-longer-than-others); 0: no limit"},
    {FL_OPT(struct fl_server_round, FLOAT, norm_cap), .def = "100", .min = 0, .max = 1e30,
     .help =
         "Leave out updates whose norm is more than this many times the median norm of the round, "
         "with at least 3 updates (docs/algorithms.md#the-norm-of-an-update); 0: no limit"},
    {FL_OPT(struct fl_server_round, FLOAT, share_cap), .def = "1.5", .min = 0, .max = 1e6,
     .help = "Upper bound of what one client gets by its own figures, this many times its fair "
             "share: of the draws by 'attention', of the layers of plans by divergence ('ldf'), of "
             "the weight in an attention between updates "
             "(docs/algorithms.md#the-share-of-one-client). 1 or more; 0: no bound"},
    {FL_OPT(struct fl_server_round, INT, quarantine_after), .def = "3", .min = 0,
     .max = FL_OFFENCES_MAX,
     .help = "A client with this many offences in the last quarantine_window rounds is "
             "quarantined: it is not selected until it is released. An offence is an upload that "
             "contradicts its report, is not valid, or is left out by norm_cap, once in an attempt "
             "(docs/security.md#quarantine); 0: no client is, except by flctl clients quarantine"},
    {FL_OPT(struct fl_server_round, INT, quarantine_window), .def = "20", .min = 1, .max = 1e9,
     .help = "Rounds in which offences count, the open one included"},
    {FL_OPT(struct fl_server_round, DURATION, quarantine_time), .def = "24h", .min = 0,
     .max = 3.2e11,
     .help = "How long a quarantine lasts, unless flctl clients release ends it. Time while the "
             "server is down does not count, and setting the clock of the machine releases no "
             "client. 0: only flctl clients release ends it"},
    {FL_OPT(struct fl_server_round, DURATION, train_deadline), .def = "1h", .min = 100,
     .max = 6.048e8, .help = "Deadline from the task to the report of a client"},
    {FL_OPT(struct fl_server_round, FLOAT, straggler_factor), .def = "10", .min = 0, .max = 1e6,
     .help = "Straggler timeout. Once half of the reports are in, the other clients have this many "
             "times as long as those took, longer in proportion to their samples. Once half of the "
             "uploads are in, a client is lost when its upload stalls for this many times as long "
             "as those took, or is too slow (straggler_rate); before that, only when all uploads "
             "stall. Evaluations of clients are timed as reports are. 0: the whole deadlines"},
    {FL_OPT(struct fl_server_round, DURATION, straggler_min), .def = "2m", .min = 0, .max = 6.048e8,
     .help =
         "Least straggler timeout; more than two heartbeats, which report the progress of uploads"},
    {FL_OPT(struct fl_server_round, RATE, straggler_rate), .flags = FL_SERVER_DAEMON,
     .def = "4kbit/s", .min = 0, .max = (double)FL_RATE_MAX,
     .help = "Minimum rate of an upload. Once half of the uploads are in, a client is also lost "
             "when its upload, over one straggler timeout, is slower than this rate and slower "
             "than the slowest of that half divided by straggler_factor. The default lets a link "
             "of 20 kbit/s be down most of the time; a federation on fast links can set more. "
             "none: any byte is enough"},
    {FL_OPT(struct fl_server_round, DURATION, upload_deadline), .def = "1h", .min = 100,
     .max = 6.048e8,
     .help = "Deadline from the upload plan to the accepted upload, also for slow uploads that "
             "make progress. Where the server has not yet written what it received of an upload, "
             "that client has straggler_min more, repeatedly, up to twice the deadline"},
    {FL_OPT(struct fl_server_round, DURATION, lost_grace), .def = "10s", .min = 0, .max = 6.048e8,
     .help = "How long a disconnected client can still reconnect to its round"},
    {FL_OPT(struct fl_server_round, DURATION, retry), .def = "5s", .min = 10, .max = 3.6e6,
     .help = "Wait before an aborted round is retried, doubled up to 64 times"},
    {FL_OPT(struct fl_server_round, BOOL, backfill), .def = "yes",
     .help = "When a planned uploader is lost, or its claim was false, ask the next-ranked client "
             "for its layers, once per round"},
    {FL_OPT(struct fl_server_round, FLOAT, norm_bound), .def = "0", .min = 0, .max = 1e30,
     .help = "Reject updates with a larger Euclidean norm; 0: no bound"},
    FL_OPT_END_OF(struct fl_server_round)};

const struct fl_opt_spec fl_server_eligible_specs[] = {
    {FL_OPT(struct fl_server_eligible, MAP, labels), .flags = FL_SERVER_DAEMON | FL_OPT_MANY,
     .help = "Only clients that announced these labels are selected; of several values of a label "
             "one has to match, and each label has to (docs/operating.md#schedules-of-a-fleet). "
             "Default: all clients"},
    {FL_OPT(struct fl_server_eligible, STRING_LIST, hours),
     .help = "Rounds start only within these hours of the day, such as [22:00-06:00, "
             "12:00-13:00], up to 16 spans; 24:00 is midnight at the end of the day. An open round "
             "is finished also after them. Default: at any time"},
    {FL_OPT(struct fl_server_eligible, STRING, utc_offset), .def = "+00:00",
     .help = "How far the time of hours is ahead of UTC, such as +01:00 or -03:30. It does not "
             "change with daylight saving time"},
    FL_OPT_END_OF(struct fl_server_eligible)};

const struct fl_opt_spec fl_server_evaluation_specs[] = {
    {FL_OPT(struct fl_server_evaluation, INT, every), .def = "1", .min = 0, .max = 1e6,
     .help = "Evaluate every this many rounds, and after the last one; 0: never"},
    {FL_OPT(struct fl_server_evaluation, STRING, data), .flags = FL_SERVER_DAEMON | FL_OPT_BASIC,
     .help =
         "Data folder; the server evaluates on its test set, and with robust 'fltrust' trains on "
         "some of it"},
    {FL_OPT(struct fl_server_evaluation, BOOL, clients), .flags = FL_OPT_BASIC, .def = "no",
     .help = "Ask the connected clients to evaluate on their own test data"},
    {FL_OPT(struct fl_server_evaluation, DURATION, deadline), .def = "5m", .min = 100,
     .max = 6.048e8,
     .help = "Deadline for the evaluations of the clients; round.straggler_factor may end "
             "it earlier"},
    {FL_OPT(struct fl_server_evaluation, STRING_LIST, metrics),
     .help =
         "Metrics that the built-in engine computes beside loss and accuracy, on the server and "
         "on clients, a list of "
         "'macro_f1', 'class_accuracy' (of each class, at most 29), 'worst_class' (the "
         "smallest of these) and 'auc' (models of 2 classes); of networks that predict values "
         "'mae' and 'mse'"},
    {FL_OPT(struct fl_server_evaluation, STRING_LIST, command),
     .help = "External program and arguments that evaluates instead of the built-in engine, for "
             "models that the engine does not support; started once, with the folder of 'data' "
             "(docs/trainers.md)"},
    {FL_OPT(struct fl_server_evaluation, DURATION, command_limit), .flags = FL_SERVER_DAEMON,
     .def = "10m", .min = 100, .max = 6.048e8,
     .help = "Time limit of one evaluation by that program: after it the evaluation is cancelled, "
             "and the round continues without accuracy"},
    {FL_OPT(struct fl_server_evaluation, DURATION, command_start_limit), .flags = FL_SERVER_DAEMON,
     .def = "2m", .min = 100, .max = 6.048e8,
     .help = "Time limit for that program to become ready"},
    {FL_OPT(struct fl_server_evaluation, BYTES, command_memory), .flags = FL_SERVER_DAEMON,
     .def = "0", .min = 0, .max = 1.1e12,
     .help = "Memory limit of that program (resident); it is killed above it. 0: no limit"},
    FL_OPT_END_OF(struct fl_server_evaluation)};

const struct fl_opt_spec fl_server_hook_specs[] = {
    {FL_OPT(struct fl_server_hooks, STRING_LIST, round_committed),
     .help = "Program and arguments that run after each committed round, with the round in its "
             "environment (docs/operating.md#hooks). The federation never waits for a hook"},
    {FL_OPT(struct fl_server_hooks, STRING_LIST, paused),
     .help = "The same when the federation pauses, by an operator or because a round diverged"},
    {FL_OPT(struct fl_server_hooks, STRING_LIST, finished),
     .help = "The same when all rounds are done"},
    {FL_OPT(struct fl_server_hooks, STRING_LIST, client_quarantined),
     .help = "The same when a client is quarantined"},
    {FL_OPT(struct fl_server_hooks, STRING_LIST, certificate_expiring),
     .help = "The same, once a day, when the certificate of the server is in the last quarter of "
             "its validity, or in its last 30 days"},
    {FL_OPT(struct fl_server_hooks, DURATION, limit), .def = "1m", .min = 100, .max = 6.048e8,
     .help = "Time limit of a hook: after it the program is ended"},
    {FL_OPT(struct fl_server_hooks, BYTES, memory), .def = "256M", .min = 0, .max = 1.1e12,
     .help = "Memory limit of a hook (resident); it is killed above it. 0: no limit"},
    FL_OPT_END_OF(struct fl_server_hooks)};

const struct fl_opt_spec fl_server_checkpoint_specs[] = {
    {FL_OPT(struct fl_server_checkpoints, INT, keep), .def = "3", .min = 1, .max = 1e6,
     .help = "Number of newest checkpoints to keep, however fast rounds are"},
    {FL_OPT(struct fl_server_checkpoints, DURATION, keep_for), .def = "24h", .min = 0,
     .max = 3.2e11,
     .help = "Also keep the last checkpoint of each eighth of this time span: 9 at most; 0: none"},
    {FL_OPT(struct fl_server_checkpoints, INT, keep_best), .def = "1", .min = 0, .max = 1000,
     .help = "Number of checkpoints with the best accuracy to keep; 0: none"},
    {FL_OPT(struct fl_server_checkpoints, INT, every), .def = "0", .min = 0, .max = 1e6,
     .help = "Keep the checkpoint of every this many rounds permanently; 0: none"},
    FL_OPT_END_OF(struct fl_server_checkpoints)};

const struct fl_opt_spec fl_server_limit_specs[] = {
    {FL_OPT(struct fl_server_limits, INT, clients), .flags = FL_SERVER_DAEMON, .def = "10000",
     .min = 1, .max = 1e6,
     .help = "Simultaneous connections, as far as file descriptors allow (two for each); one more "
             "replaces a connection that is not a client's (from the same address first, else the "
             "oldest), or is closed"},
    {FL_OPT(struct fl_server_limits, INT, client_connections), .flags = FL_SERVER_DAEMON,
     .def = "4", .min = 1, .max = 1000,
     .help = "Simultaneous connections of one client; one more closes its oldest. A client needs "
             "one, and a second while it reconnects"},
    {FL_OPT(struct fl_server_limits, INT, known_clients), .flags = FL_SERVER_DAEMON,
     .def = "100000", .min = 1, .max = 1e7,
     .help = "Known client names, connected or having taken part; further names are refused, but "
             "disconnected clients that never took part are forgotten first"},
    {FL_OPT(struct fl_server_limits, INT, streams), .flags = FL_SERVER_DAEMON | FL_OPT_DEBUG,
     .def = "16", .min = 3, .max = 1000,
     .help = "Simultaneous calls on one connection, and of one client over all its connections"},
    {FL_OPT(struct fl_server_limits, BYTES, header_bytes), .flags = FL_SERVER_DAEMON | FL_OPT_DEBUG,
     .def = "16K", .min = 1024, .max = 1048576, .help = "Size of the headers of a call"},
    {FL_OPT(struct fl_server_limits, BYTES, upload_memory), .flags = FL_SERVER_DAEMON, .def = "32M",
     .min = 1048576, .max = 1099511627776.0,
     .help = "Memory for uploads when all expected clients (round.population or start_clients) "
             "upload at once; determines chunk and window sizes"},
    {FL_OPT(struct fl_server_limits, BYTES, memory), .flags = FL_SERVER_DAEMON, .def = "0",
     .min = 0, .max = 1099511627776.0,
     .help = "Memory for all connections together: unfinished messages, unread replies, old models "
             "that a transfer still sends, TLS send buffers. With half of it used TLS buffers "
             "less; above it connections without a client are closed first, those with the most "
             "memory before others; a quarter of it is reserved for clients. All connections of "
             "one client share one fair share. 0: four times upload_memory"},
    {FL_OPT(struct fl_server_limits, BYTES, peer_memory), .flags = FL_SERVER_DAEMON | FL_OPT_DEBUG,
     .def = "16M", .min = 65536, .max = 1099511627776.0,
     .help = "The same for one connection: bytes in flight (connection_window), and as much again "
             "waiting"},
    {FL_OPT(struct fl_server_limits, BYTES, summary), .def = "1M", .min = 1024, .max = 67108864,
     .help = "Size of the data summary of one client, sent before the first round (solver fedmix)"},
    {FL_OPT(struct fl_server_limits, FLOAT, summary_range), .def = "10", .min = 0, .max = 1e30,
     .help =
         "Largest value of a data summary (solver fedmix), as a multiple of the median of the "
         "other summaries' largest values: a summary above it is left out, and its client takes "
         "part without it. With fewer than three summaries none is left out. 0: no bound"},
    {FL_OPT(struct fl_server_limits, BYTES, connection_window),
     .flags = FL_SERVER_DAEMON | FL_OPT_DEBUG, .def = "8M", .min = 65536, .max = 1073741824,
     .help = "Bytes in flight from a connection"},
    {FL_OPT(struct fl_server_limits, DURATION, handshake), .flags = FL_SERVER_DAEMON | FL_OPT_DEBUG,
     .def = "10s", .min = 100, .max = 600000,
     .help = "Timeout from accepting a connection to the end of the TLS and HTTP/2 handshake"},
    {FL_OPT(struct fl_server_limits, DURATION, idle), .flags = FL_SERVER_DAEMON, .def = "60s",
     .min = 100, .max = 3.6e6,
     .help = "Idle timeout: a connection without calls, a call that waits for its client, or a "
             "client that does not read is closed after once to twice this time"},
    {FL_OPT(struct fl_server_limits, DURATION, ping_after), .flags = FL_SERVER_DAEMON, .def = "30s",
     .min = 0, .max = 3.6e6,
     .help = "When nothing arrives for so long on a connection with open calls, the server sends "
             "an HTTP/2 ping, so that proxies, firewalls and NAT keep it open, whatever the "
             "heartbeat is (docs/network.md#idle-connections); 0: never"},
    {FL_OPT(struct fl_server_limits, DURATION, ping_limit),
     .flags = FL_SERVER_DAEMON | FL_OPT_DEBUG, .def = "20s", .min = 10, .max = 600000,
     .help = "When nothing arrives for so long after a ping, the connection is closed as dead"},
    FL_OPT_END_OF(struct fl_server_limits)};

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
    {FL_CONF_SECTION("round.eligible", fl_server_eligible_specs, struct fl_server_conf, eligible,
                     struct fl_server_eligible),
     .flags = FL_SERVER_FIGURE},
    {FL_CONF_SECTION("evaluation", fl_server_evaluation_specs, struct fl_server_conf, evaluation,
                     struct fl_server_evaluation),
     .flags = FL_SERVER_FIGURE},
    {FL_CONF_SECTION("checkpoints", fl_server_checkpoint_specs, struct fl_server_conf, checkpoints,
                     struct fl_server_checkpoints)},
    {FL_CONF_SECTION("limits", fl_server_limit_specs, struct fl_server_conf, limits,
                     struct fl_server_limits)},
    {FL_CONF_SECTION("hooks", fl_server_hook_specs, struct fl_server_conf, hooks,
                     struct fl_server_hooks),
     .flags = FL_SERVER_DAEMON},
    {FL_CONF_SECTION("tls", fl_server_tls_specs, struct fl_server_conf, tls, struct fl_server_tls),
     .flags = FL_SERVER_DAEMON},
    {FL_CONF_SECTION("identity", fl_server_identity_specs, struct fl_server_conf, identity,
                     struct fl_server_identity),
     .flags = FL_SERVER_DAEMON},
    {FL_CONF_SECTION("http", fl_http_specs, struct fl_server_conf, http, struct fl_http_conf),
     .flags = FL_SERVER_DAEMON},
    {.name = NULL}};

int fl_server_conf_reference(struct fl_buf *out)
{
    struct fl_writer w = {.out = out};
    const struct fl_preset *preset;
    const struct fl_policy *const *p;
    char prefix[2 * FL_NAME_MAX];
    int i;

    fl_writer_note(&w, fl_conf_sections_reference(fl__server_sections, out));
    fl_writer_printf(&w, "\n`algorithm` is one of:\n\n| preset | what it is | source |\n"
                         "| --- | --- | --- |\n");
    for (preset = fl_strategy_presets(); preset->name != NULL; preset++) {
        fl_writer_printf(&w, "| `%s` | %s | %s |\n", preset->name, preset->help, preset->source);
    }
    for (i = 0; i < FL_COMPONENT_COUNT; i++) {
        const char *name = fl_component_name((enum fl_component)i);

        (void)snprintf(prefix, sizeof(prefix), "strategy.%s", name);
        for (p = fl_strategy_policies((enum fl_component)i); *p != NULL; p++) {
            fl_writer_printf(&w, "\n`%s` policy `%s`: %s (%s)\n\n", name, (*p)->name, (*p)->help,
                             (*p)->source);
            if ((*p)->options != NULL && (*p)->options[0].name != NULL) {
                fl_writer_printf(&w, "| key | type | default | range | meaning |\n"
                                     "| --- | --- | --- | --- | --- |\n");
                fl_writer_note(&w, fl_conf_reference((*p)->options, prefix, out));
            }
        }
    }
    return w.code;
}
