/* The file of `fl-sim run`: what is refused and where, and which points come of it. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/experiment/experiment.h"

/* The least that loads; 4 lines. */
#define HEAD "server:\n  model: {preset: mlr60}\n  rounds: 5\ndata: {synthetic: {clients: 10}}\n"

static int load_set(const char *text, const char *const *set, size_t n, struct fl_experiment **ret,
                    struct fl_err *err)
{
    return fl_experiment_parse("dir/x.yaml", text, strlen(text), set, n, ret, err);
}

static struct fl_experiment *load(const char *text)
{
    struct fl_experiment *e = NULL;
    struct fl_err err = {0};

    ck_assert_msg(load_set(text, NULL, 0, &e, &err) == FL_OK, "%s", err.msg);
    return e;
}

static struct fl_experiment_point *open_point(const struct fl_experiment *e, size_t point,
                                              size_t trial)
{
    struct fl_experiment_point *p = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_experiment_open(e, point, trial, &p, &err) == FL_OK, "%s", err.msg);
    return p;
}

static char *text_of(const struct fl_experiment *e, size_t point)
{
    struct fl_buf buf;

    fl_buf_init(&buf, 1u << 20);
    ck_assert_int_eq(fl_experiment_text(e, point, &buf), FL_OK);
    ck_assert_int_eq(fl_buf_add(&buf, "", 1), FL_OK);
    return (char *)buf.data;
}

/* --- what is refused --- */

static const struct {
    const char *text, *message;
} bad[] = {
    {"server: {}\n", "x.yaml:1: the required key 'data' is missing"},
    {"data: {}\n", "x.yaml:1: the required key 'server' is missing"},
    {"server:\ndata: {}\n", "x.yaml:1: key 'server': the required key 'server' is missing"},
    {"server: 3\ndata: {}\n", "x.yaml:1: key 'server': expected a section"},
    {HEAD "wrold: lte\n", "x.yaml:5: unknown key 'wrold', did you mean 'world'?"},
    {HEAD "name: ../etc\n", "x.yaml:5: key 'name': expected 1 to 127 characters"},
    {"server:\n  model: {preset: mlr60}\n  rounds: 5\n  round:\n    train_dedline: 3s\ndata: {}\n",
     "x.yaml:5: key 'server.round': unknown key 'train_dedline', did you mean 'train_deadline'?"},
    {"server:\n  rounds: 5\ndata: {}\n",
     "x.yaml:1: key 'server': expected one of preset, layers (with input) or file"},
    {"server:\n  model: {preset: mlr60}\n  algorithm: fedvag\n  rounds: 5\ndata: {}\n",
     "x.yaml:3: key 'server.algorithm': "},
    {"server: &a\n  model: {preset: mlr60}\ndata: *a\n", "x.yaml:1: anchors and aliases are not"},
    /* The client's part. */
    {HEAD "client:\n  trainer: command\n",
     "x.yaml:6: key 'client.trainer': the required key 'command.program' is missing"},
    {HEAD "client:\n  data: {path: /x}\n",
     "x.yaml:6: key 'client.data.path': the data of simulated"},
    {HEAD "client:\n  data: {augment: flop}\n",
     "x.yaml:6: key 'client.data.augment': expected one"},
    {HEAD "client: {summary: yes}\n",
     "x.yaml:5: key 'client': unknown key 'summary', did you mean"},
    /* What ends it. */
    {"server:\n  model: {preset: mlr60}\ndata: {}\n",
     "x.yaml:1: key 'server': the run would never end"},
    {"server:\n  model: {preset: mlr60}\ndata: {}\nstop: {rounds: 0}\n",
     "x.yaml:4: key 'stop': the run would never end"},
    {HEAD "stop: {rounds: -1}\n", "x.yaml:5: key 'stop.rounds': expected a whole number, 0 to"},
    {HEAD "stop: {accuracy: 95}\n", "x.yaml:5: key 'stop.accuracy': expected a number, 0 to 1"},
    {HEAD "stop: {time: 5}\n", "add a unit"},
    {HEAD "stop: {uplink: -1M}\n", "x.yaml:5: key 'stop.uplink': expected a size"},
    {HEAD "stop: {round: 3}\n",
     "x.yaml:5: key 'stop': unknown key 'round', did you mean 'rounds'?"},
    {HEAD "stop: 5\n", "x.yaml:5: key 'stop': expected a section"},
    {"server:\n  model: {preset: mlr60}\n  evaluation: {every: 0}\ndata: {}\nstop:\n  accuracy: "
     "0.9\n",
     "x.yaml:6: key 'stop.accuracy': server.evaluation.every is 0"},
    /* Trials. */
    {HEAD "trials: 0\n", "x.yaml:5: key 'trials.count': expected a whole number, 1 to 100000"},
    {HEAD "trials: many\n", "x.yaml:5: key 'trials.count': expected a whole number"},
    {HEAD "trials: [1, 2]\n", "x.yaml:5: key 'trials': expected a section"},
    {HEAD "trials:\n  seeds: [1,\n    2,\n    1]\n",
     "x.yaml:8: key 'trials.seeds[2]': duplicate seed 1"},
    {HEAD "trials: {seeds: []}\n", "x.yaml:5: key 'trials.seeds': expected 1 to 100000 seeds"},
    {HEAD "trials: {seeds: [1], count: 2}\n",
     "x.yaml:5: key 'trials.seeds': expected either seeds"},
    {HEAD "trials: {seeds: [-1]}\n",
     "x.yaml:5: key 'trials.seeds[0]': expected a list of whole numbers"},
    {"server:\n  model: {preset: mlr60}\n  seed: 4\n  rounds: 1\ndata: {}\ntrials: {seed: 3}\n",
     "x.yaml:3: key 'server.seed': the seeds are given by trials (line 6)"},
    {"server:\n  model: {preset: mlr60}\n  seed: x\n  rounds: 1\ndata: {}\n",
     "x.yaml:3: key 'server.seed': expected a whole number"},
    /* The sweep. */
    {HEAD "sweep: 3\n", "x.yaml:5: key 'sweep': expected keys with lists of values, or a list"},
    {HEAD "sweep: []\n", "x.yaml:5: key 'sweep': the list is empty"},
    {HEAD "sweep:\n  server.rounds: []\n",
     "x.yaml:6: key 'sweep.server.rounds': the list is empty"},
    {HEAD "sweep:\n  server.rounds: 3\n",
     "x.yaml:6: key 'sweep.server.rounds': expected a list of values"},
    {HEAD "sweep:\n  algorithm: [fedavg]\n",
     "x.yaml:6: key 'sweep.algorithm': unknown key 'algorithm': keys are written in full"},
    {HEAD "sweep:\n  trials: [1, 2]\n",
     "x.yaml:6: key 'sweep.trials': 'trials' is the same for all"},
    {HEAD "sweep:\n  name: [a, b]\n", "x.yaml:6: key 'sweep.name': 'name' is the same for all"},
    {HEAD "sweep:\n- {sweep: 1}\n", "x.yaml:6: key 'sweep[0].sweep': 'sweep' is the same for all"},
    {HEAD "sweep:\n  server.seed: [1, 2]\n", "x.yaml:6: key 'sweep.server.seed': the seeds of all"},
    {HEAD "sweep:\n- server: {rounds: 3}\n- server:\n    seed: 3\n",
     "x.yaml:8: key 'sweep[1].server.seed': the seeds of all points"},
    {HEAD "sweep:\n  server.listen: [a, b]\n", "'server.listen' is for a daemon only"},
    {HEAD "sweep:\n  server.limits: [{idle: 3s}]\n", "'server.limits.idle' is for a daemon only"},
    {HEAD "sweep:\n- {client: {labels: {a: b}}}\n", "'client.labels' is for a daemon only"},
    {HEAD "sweep:\n  client.reconnect.first: [1s]\n",
     "'client.reconnect.first' is for a daemon only"},
    {HEAD "sweep:\n  server.training.lerning_rate: [0.1, 0.2]\n",
     "x.yaml:6: key 'server.training': unknown key 'lerning_rate', did you mean 'learning_rate'? "
     "(in "
     "the point 'lerning_rate=0.1')"},
    {HEAD "sweep:\n  server.training.learning_rate:\n  - 0.1\n  - fast\n",
     "x.yaml:8: key 'server.training.learning_rate': expected a number"},
    {HEAD "sweep:\n  server.rounds.x: [1]\n",
     "x.yaml:6: 'server.rounds' is a single value (dir/x.yaml:3), nothing can be set below it"},
    {HEAD "sweep:\n  server: [3]\n", "x.yaml:6: key 'sweep.server[0]': expected a section"},
    {HEAD "sweep:\n  server.rounds:\n  - 1\n  - 2\n  - 1\n",
     "x.yaml:9: key 'sweep.server.rounds[2]': points 1 and 3 are equal"},
    {HEAD "sweep:\n- {server.rounds: 3}\n- {label: x, server: {rounds: 3}}\n",
     "x.yaml:7: key 'sweep[1]': points 1 and 2 are equal ('x')"},
    {HEAD "sweep:\n- {label: a, server.rounds: 3}\n- {label: a, server.rounds: 4}\n",
     "x.yaml:7: key 'sweep[1]': points 1 and 2 have the same name 'a'"},
    {HEAD "sweep:\n- {label: '', server.rounds: 3}\n", "x.yaml:6: key 'sweep[0].label': expected"},
    {HEAD "sweep:\n- fedavg\n", "x.yaml:6: key 'sweep[0]': expected a point such as"},
    {HEAD "trials: 60000\nsweep:\n  server.rounds: [1, 2]\n", "more than 100000 runs"},
    /* Attackers. */
    {HEAD "attackers:\n  share: 1.2\n  attack: sign_flip\n",
     "x.yaml:6: key 'attackers.share': expected a share of the clients from 0 to 1, such as 20% "
     "or"},
    {HEAD "attackers: {share: 101%, attack: sign_flip}\n", "x.yaml:5: key 'attackers.share': exp"},
    {HEAD "attackers: {share: -1, attack: sign_flip}\n", "x.yaml:5: key 'attackers.share': exp"},
    {HEAD "attackers: {share: 1%%, attack: sign_flip}\n", "x.yaml:5: key 'attackers.share': exp"},
    {HEAD "attackers: {clients: -1, attack: sign_flip}\n",
     "x.yaml:5: key 'attackers.clients': exp"},
    {HEAD "attackers: {attack: sign_flip}\n",
     "x.yaml:5: key 'attackers': expected either 'share' or 'clients'"},
    {HEAD "attackers: {share: 1%, clients: 1, attack: sign_flip}\n",
     "x.yaml:5: key 'attackers': expected either 'share' or 'clients'"},
    {HEAD "attackers: {share: 20%}\n", "x.yaml:5: key 'attackers': the required key 'attack' is"},
    {HEAD "attackers:\n  share: 20%\n  attack: sign_flp\n", "did you mean 'sign_flip'?"},
    {HEAD "attackers: {share: 20%, attack: sign_flip, scael: 3}\n",
     "x.yaml:5: key 'attackers': unknown key 'scael', did you mean 'scale'?"},
    {HEAD "attackers:\n  share: 20%\n  attack: alie\n  z: 1\n  scale: 3\n",
     "x.yaml:9: key 'attackers.scale': the attack 'alie' does not use this option"},
    {HEAD "attackers: {share: 20%, attack: sign_flip, z: 1}\n",
     "x.yaml:5: key 'attackers.z': the attack 'sign_flip' does not use this option"},
    {HEAD "attackers: {share: 20%, attack: mimic, epsilon: 1}\n",
     "x.yaml:5: key 'attackers.epsilon': the attack 'mimic' does not use this option"},
    {HEAD "attackers: {share: 20%, attack: ipm, perturbation: inverse_std}\n",
     "x.yaml:5: key 'attackers.perturbation': the attack 'ipm' does not use this option"},
    {HEAD "sweep:\n- {label: x, attackers: {share: 1, attack: sclaing}}\n",
     "x.yaml:6: key 'attackers.attack': expected one of sign_flip, "},
    {"server:\n  model: {preset: mlr60}\n  algorithm: fedmcsa\n  rounds: 5\ndata: {}\n"
     "attackers: {share: 1, attack: sign_flip}\n",
     "x.yaml:6: key 'attackers.attack': 'sign_flip' changes updates, and the clients of this"},
    {HEAD "sweep:\n  server.rounds: [1]\n  server.rounds: [2]\n",
     "x.yaml:7: key 'sweep.server.rounds'"
     ": given twice"},
};

TEST_EACH(a_bad_file_is_refused_with_line_and_reason, ARRAY_LEN(bad))
{
    struct fl_experiment *e = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(load_set(bad[_i].text, NULL, 0, &e, &err), FL_ECONF);
    ck_assert_msg(strncmp(err.msg, "dir/x.yaml:", 11) == 0, "%s", err.msg);
    ck_assert_msg(strstr(err.msg, bad[_i].message) != NULL, "found: %s\nexpected: %s", err.msg,
                  bad[_i].message);
    ck_assert_ptr_null(e);
}

static const struct {
    const char *set, *message;
} bad_set[] = {
    {"server.training.learning_rate=fast",
     "--set server.training.learning_rate: expected a number"},
    {"server.training.lerning_rate=1",
     "--set server.training.lerning_rate: key 'server.training': unknown key 'lerning_rate'"},
    {"algorithm=fedavg", "--set algorithm: unknown key 'algorithm', known:"},
    {"server=3", "--set server: expected a section"},
    {"stop.rounds=-1", "--set stop.rounds: expected a whole number, 0 to"},
    {"trials=0", "--set trials: key 'trials.count': expected a whole number, 1 to"},
    {"data=", "--set data: the required key 'data' is missing"},
    {"server.rounds", "--set: expected key=value, found 'server.rounds'"},
};

TEST_EACH(a_bad_set_is_named_in_place_of_a_line, ARRAY_LEN(bad_set))
{
    struct fl_experiment *e = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(load_set(HEAD, &bad_set[_i].set, 1, &e, &err), FL_ECONF);
    ck_assert_msg(strncmp(err.msg, bad_set[_i].message, strlen(bad_set[_i].message)) == 0,
                  "found: %s\nexpected: %s", err.msg, bad_set[_i].message);
}

/* --- what comes of a file --- */

TEST(a_file_without_sweep_is_one_point_and_one_trial)
{
    static const char text[] = HEAD "world: lte\nclient: {summaries: yes}\n";
    struct fl_experiment *e = load(text);
    struct fl_experiment_point *p = open_point(e, 0, 0);

    ck_assert_str_eq(fl_experiment_name(e), "x");
    ck_assert_uint_eq(fl_experiment_points(e), 1);
    ck_assert_uint_eq(fl_experiment_trials(e), 1);
    ck_assert_str_eq(fl_experiment_label(e, 0), "base");
    ck_assert_str_eq(fl_experiment_slug(e, 0), "base");
    ck_assert_uint_eq(fl_experiment_seed(e, 0), 1);
    ck_assert_int_eq(p->server->main->seed, 1);
    ck_assert_int_eq(p->stop.rounds, 5);
    ck_assert_uint_eq(p->server->inputs, 60);
    ck_assert(p->client->main->summaries);
    ck_assert_str_eq(fl_conf_text(p->world), "lte");
    ck_assert_str_eq(fl_conf_path(p->data), "data");
    fl_experiment_free(e);
    ck_assert_str_eq(p->server->strategy->algorithm, "fedavg"); /* It needs no experiment. */
    fl_experiment_close(p);
}

/* --- each key of a daemon's file --- */

/* Keys that a simulation obeys, each by code that reads it. */
static const char *const obeyed[] = {
    "server.federation", "server.seed", "server.rounds", "server.model.preset",
    "server.model.input", "server.model.layers", "server.model.file", "server.model.norm",
    "server.model.local", "server.model.loss", "server.training.client_momentum",
    "server.training.epochs", "server.training.steps", "server.training.batch_size",
    "server.training.learning_rate", "server.training.learning_rate_decay",
    "server.training.learning_rate_every", "server.training.learning_rate_warmup",
    "server.training.learning_rate_rounds", "server.training.learning_rate_end",
    "server.training.momentum", "server.training.weight_decay", "server.round.population",
    "server.round.forget_after", "server.round.start_clients", "server.round.min_clients",
    "server.round.min_responders", "server.round.over_selection", "server.round.over_selected",
    "server.round.train_deadline", "server.round.straggler_factor", "server.round.straggler_min",
    "server.round.upload_deadline", "server.round.lost_grace", "server.round.retry",
    "server.round.backfill", "server.round.norm_bound", "server.round.norm_cap",
    "server.round.norm_clip", "server.round.weight_cap", "server.round.share_cap",
    "server.round.quarantine_after", "server.round.quarantine_window",
    "server.round.quarantine_time", "server.round.eligible.hours",
    "server.round.eligible.utc_offset", "server.evaluation.every", "server.evaluation.metrics",
    "server.evaluation.clients", "server.evaluation.deadline",
    /* With --keep-state. */
    "server.checkpoints.keep", "server.checkpoints.keep_for", "server.checkpoints.keep_best",
    "server.checkpoints.every", "server.limits.summary", "server.limits.summary_range",
    "client.summaries", "client.least_group", "client.seed", "client.data.validation",
    "client.data.augment", "client.limits.upload_rate", "client.limits.download_rate",
    "client.trainer", "client.command.program", "client.command.time_limit",
    "client.command.first_limit", "client.command.memory_limit", "client.command.memory_of",
    "client.command.persistent", "client.command.start_limit", "client.command.cancel_grace",
    "client.command.environment", NULL};
/* And those that it refuses. */
static const char *const refused[] = {"server.model.units", "server.evaluation.command",
                                      "client.data.path", NULL};

static bool is_in(const char *const *list, const char *key)
{
    while (*list != NULL && strcmp(*list, key) != 0) {
        list++;
    }
    return *list != NULL;
}

/* A value for a row of a reference: its default, or one of its type. */
static const char *value_for(const char *key, const char *type, const char *def)
{
    static const char *const values[][2] = {
        {"text", "x"},          {"list of texts", "[x]"},
        {"map of texts", "{}"}, {"map of texts or lists of texts", "{}"},
        {"integer", "1"},       {"duration", "1h"},
        {"rate", "1Mbit/s"}};
    size_t i;

    if (strcmp(key, "client.trainer") == 0) {
        return "command";
    }
    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (def[0] == '\0' && strcmp(type, values[i][0]) == 0) {
            return values[i][1];
        }
    }
    return def;
}

static void check_row(const char *key, const char *type, const char *def)
{
    struct fl_experiment *e = NULL;
    struct fl_experiment_point *p;
    struct fl_err err = {0};
    struct fl_buf named;
    char set[256];
    const char *const sets[] = {set};

    if (is_in(obeyed, key)) {
        return;
    }
    (void)snprintf(set, sizeof(set), "%s=%s", key, value_for(key, type, def));
    if (is_in(refused, key)) {
        ck_assert_msg(load_set(HEAD, sets, 1, &e, &err) == FL_ECONF, "%s is taken", set);
        return;
    }
    ck_assert_msg(load_set(HEAD, sets, 1, &e, &err) == FL_OK, "%s: %s", set, err.msg);
    p = open_point(e, 0, 0);
    fl_buf_init(&named, 4096);
    ck_assert_int_eq(fl_experiment_without_effect(p, true, &named), FL_OK);
    ck_assert_int_eq(fl_buf_add(&named, "", 1), FL_OK);
    ck_assert_msg(named.len > 1 && strncmp(key, (const char *)named.data, named.len - 1) == 0,
                  "'%s' is neither obeyed by a simulation, refused, nor named as one without "
                  "effect (found: '%s'): flag its row FL_SERVER_DAEMON or FL_CLIENT_DAEMON, or "
                  "make fl-sim obey it and list it in this test",
                  key, (const char *)named.data);
    fl_buf_done(&named);
    fl_experiment_close(p);
    fl_experiment_free(e);
}

/* Text between `from` and the next `end`, without the quotes of a key; returns what follows. */
static char *cut(char *from, const char *end, char **ret)
{
    char *stop = strstr(from, end);

    ck_assert_ptr_nonnull(stop);
    *stop = '\0';
    *ret = from + (from[0] == '`');
    if (from[0] == '`') {
        stop[-1] = '\0';
    }
    return stop + strlen(end);
}

/* All rows of a daemon's tables, out of the reference that is printed from them. */
/* Of the tables of keys, which stand before the presets and components. */
static size_t check_rows(int (*reference)(struct fl_buf *), const char *daemon)
{
    struct fl_buf text;
    char *line;
    char *next;
    size_t n = 0;

    fl_buf_init(&text, 1u << 20);
    ck_assert_int_eq(reference(&text), FL_OK);
    ck_assert_int_eq(fl_buf_add(&text, "\n`", 3), FL_OK);
    for (line = (char *)text.data; *line != '`'; line = next) {
        char key[128];
        char *name;
        char *type;
        char *def;

        next = strchr(line, '\n') + 1;
        next[-1] = '\0';
        if (strncmp(line, "| `", 3) == 0) {
            (void)cut(cut(cut(line + 2, " | ", &name), " | ", &type), " | ", &def);
            (void)snprintf(key, sizeof(key), "%.6s.%.100s", daemon, name);
            check_row(key, type, strcmp(def, "required") == 0 ? "" : def);
            n++;
        }
    }
    fl_buf_done(&text);
    return n;
}

TEST(each_key_of_a_daemon_is_obeyed_refused_or_named_as_one_without_effect)
{
    ck_assert_uint_gt(check_rows(fl_server_conf_reference, "server"), 70);
    ck_assert_uint_gt(check_rows(fl_client_conf_reference, "client"), 30);
}

TEST(a_program_that_evaluates_is_refused_with_its_line)
{
    struct fl_experiment *e = NULL;
    struct fl_err err = {0};
    static const char text[] =
        "server:\n  model: {preset: mlr60}\n  rounds: 5\n  evaluation:\n    command: [x]\n"
        "data: {}\n";

    ck_assert_int_eq(load_set(text, NULL, 0, &e, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "x.yaml:5: key 'server.evaluation.command': a simulated "
                                          "server evaluates with what its clients train with"));
}

TEST(what_only_a_daemon_has_changes_nothing)
{
    static const char own[] =
        "server:\n  federation: ab\n  state_dir: /x\n  listen: []\n  insecure: no\n"
        "  limits: {clients: 1, known_clients: 1, memory: 1}\n  round: {start_clients: 9}\n"
        "  model: {preset: mlr60}\n  rounds: 5\ndata: {synthetic: {clients: 10}}\n"
        "client:\n  server: nowhere\n  name: a b\n  state_dir: /x\n  reconnect: {first: 1s}\n";
    struct fl_experiment *e = load(own);

    fl_experiment_free(e);
}

TEST(a_grid_has_all_combinations_and_its_first_key_is_the_slowest)
{
    static const char text[] = HEAD "sweep:\n  server.algorithm: [fedavg, fedldf]\n"
                                    "  server.training.learning_rate: [0.05, 0.1, 0.2]\n";
    static const char *const labels[] = {
        "algorithm=fedavg learning_rate=0.05", "algorithm=fedavg learning_rate=0.1",
        "algorithm=fedavg learning_rate=0.2",  "algorithm=fedldf learning_rate=0.05",
        "algorithm=fedldf learning_rate=0.1",  "algorithm=fedldf learning_rate=0.2"};
    struct fl_experiment *e = load(text);
    struct fl_experiment_point *p = open_point(e, 4, 0);
    size_t i;

    ck_assert_uint_eq(fl_experiment_points(e), 6);
    for (i = 0; i < 6; i++) {
        ck_assert_str_eq(fl_experiment_label(e, i), labels[i]);
    }
    ck_assert_str_eq(fl_experiment_slug(e, 4), "5-algorithm=fedldf_learning_rate=0.1");
    ck_assert_str_eq(p->server->strategy->algorithm, "fedldf");
    ck_assert_double_eq(p->server->training->learning_rate, 0.1);
    fl_experiment_close(p);
    fl_experiment_free(e);
}

TEST(a_list_of_points_sets_on_top_and_is_labelled)
{
    static const char text[] =
        HEAD "sweep:\n"
             "- {}\n"
             "- {server: {algorithm: fedprox, strategy: {solver: {mu: 0.1}}}}\n"
             "- {label: my own / name, server.training: {epochs: 2}, world: {base: lte}}\n"
             "- {server.model: {preset: mlp200}, client.seed: 7, data: {path: [/x, y]}}\n";
    struct fl_experiment *e = load(text);
    struct fl_experiment_point *p = open_point(e, 3, 0);

    ck_assert_uint_eq(fl_experiment_points(e), 4);
    ck_assert_str_eq(fl_experiment_label(e, 0), "base");
    ck_assert_str_eq(fl_experiment_label(e, 1), "algorithm=fedprox mu=0.1");
    ck_assert_str_eq(fl_experiment_label(e, 2), "my own / name");
    ck_assert_str_eq(fl_experiment_slug(e, 2), "3-my_own_-_name");
    ck_assert_str_eq(fl_experiment_label(e, 3), "preset=mlp200 seed=7 data={path:[/x,y]}");
    ck_assert_int_eq(p->server->main->rounds, 5);
    ck_assert_int_eq(p->client->main->seed, 7);
    ck_assert_uint_eq(fl_conf_size(p->data), 1); /* It takes the place of the file's. */
    fl_experiment_close(p);
    fl_experiment_free(e);
}

TEST(keys_in_labels_are_as_long_as_they_have_to_be)
{
    static const char text[] = HEAD "sweep:\n  server.round.train_deadline: [1m, 2m]\n"
                                    "  server.evaluation.every: [1, 2]\n"
                                    "  server.checkpoints.every: [0, 3]\n";
    struct fl_experiment *e = load(text);

    ck_assert_str_eq(fl_experiment_label(e, 7),
                     "train_deadline=2m evaluation.every=2 checkpoints.every=3");
    fl_experiment_free(e);
}

TEST(attackers_of_a_point_replace_those_of_the_file_and_an_attack_has_its_own_default)
{
    struct fl_experiment *e =
        load(HEAD "attackers: {share: 20%, attack: sign_flip}\ntrials: {seed: 7}\n"
                  "sweep:\n- {}\n- {attackers.share: 0.4}\n"
                  "- {label: scaled, attackers: {clients: 3, attack: scaling}}\n"
                  "- {attackers.scale: 5}\n");
    static const struct {
        double share;
        size_t clients;
        enum fl_attack_kind kind;
        double scale;
    } expected[] = {{0.2, 0, FL_ATTACK_KIND_SIGN_FLIP, 1},
                    {0.4, 0, FL_ATTACK_KIND_SIGN_FLIP, 1},
                    {-1, 3, FL_ATTACK_KIND_SCALING, 10},
                    {0.2, 0, FL_ATTACK_KIND_SIGN_FLIP, 5}};
    size_t i;

    ck_assert_uint_eq(fl_experiment_points(e), ARRAY_LEN(expected));
    ck_assert_str_eq(fl_experiment_label(e, 2), "scaled");
    for (i = 0; i < ARRAY_LEN(expected); i++) {
        struct fl_experiment_point *p = open_point(e, i, 0);

        ck_assert_double_eq(p->attackers.share, expected[i].share);
        ck_assert_uint_eq(p->attackers.clients, expected[i].clients);
        ck_assert_int_eq((int)p->attackers.attack.kind, (int)expected[i].kind);
        ck_assert_double_eq(p->attackers.attack.scale, expected[i].scale);
        ck_assert_uint_eq(p->attackers.attack.seed, 7);
        fl_experiment_close(p);
    }
    fl_experiment_free(e);
}

TEST(all_points_have_the_seeds_of_the_trials)
{
    static const struct {
        const char *trials;
        size_t n;
        uint64_t first, last;
    } cases[] = {{"", 1, 1, 1},
                 {"trials: 3\n", 3, 1, 3},
                 {"trials: {count: 4, seed: 11}\n", 4, 11, 14},
                 {"trials: {seeds: [7, 3]}\n", 2, 7, 3},
                 {"trials: {seeds: 9}\n", 1, 9, 9}};
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        struct fl_experiment *e;
        struct fl_experiment_point *p;
        size_t n = cases[i].n;

        (void)snprintf(text, sizeof(text), HEAD "%ssweep: {server.algorithm: [fedavg, fedldf]}\n",
                       cases[i].trials);
        e = load(text);
        ck_assert_uint_eq(fl_experiment_trials(e), n);
        ck_assert_uint_eq(fl_experiment_seed(e, 0), cases[i].first);
        ck_assert_uint_eq(fl_experiment_seed(e, n - 1), cases[i].last);
        p = open_point(e, 1, n - 1);
        ck_assert_uint_eq((uint64_t)p->server->main->seed, cases[i].last);
        fl_experiment_close(p);
        fl_experiment_free(e);
    }
}

TEST(the_first_seed_is_the_servers_when_the_trials_say_none)
{
    static const char text[] = "server: {model: {preset: mlr60}, rounds: 1, seed: 40}\ndata: {}\n"
                               "trials: 2\n";
    struct fl_experiment *e = load(text);

    ck_assert_uint_eq(fl_experiment_seed(e, 1), 41);
    fl_experiment_free(e);
}

TEST(the_smaller_number_of_rounds_ends_a_run)
{
    static const struct {
        const char *set;
        int64_t rounds;
    } cases[] = {{"stop={rounds: 3}", 3},
                 {"stop={rounds: 9}", 5},
                 {"stop={time: 2h}", 5},
                 {"stop.rounds=0", 5}};
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fl_experiment *e = NULL;
        struct fl_experiment_point *p;

        ck_assert_int_eq(load_set(HEAD, &cases[i].set, 1, &e, NULL), FL_OK);
        p = open_point(e, 0, 0);
        ck_assert_int_eq(p->stop.rounds, cases[i].rounds);
        ck_assert_int_eq(p->server->main->rounds, cases[i].rounds);
        fl_experiment_close(p);
        fl_experiment_free(e);
    }
}

TEST(what_is_set_counts_for_all_points)
{
    static const char *const set[] = {
        "server.training.learning_rate=0.1", "stop={accuracy: 0.95, uplink: 100M, time: 2h}",
        "server.training.learning_rate=0.3", "trials=2", "client.data.augment=flip_crop"};
    struct fl_experiment *e = NULL;
    struct fl_experiment_point *p;
    struct fl_err err = {0};

    ck_assert_msg(
        load_set(HEAD "sweep: {server.algorithm: [fedavg, fedldf]}\n", set, 5, &e, &err) == FL_OK,
        "%s", err.msg);
    p = open_point(e, 1, 1);
    ck_assert_double_eq(p->server->training->learning_rate, 0.3);
    ck_assert_double_eq(p->stop.accuracy, 0.95);
    ck_assert_uint_eq(p->stop.uplink, 104857600);
    ck_assert_uint_eq(p->stop.time_ms, 7200000);
    ck_assert_int_eq(p->client->data->augment, FL_AUGMENT_FLIP_CROP);
    fl_experiment_close(p);
    fl_experiment_free(e);
}

/* --- texts --- */

TEST(the_text_of_a_point_runs_it_again)
{
    static const char text[] = HEAD "client: {labels: {\"a b\": 'yes'}}\ntrials: {seeds: [5, 9]}\n"
                                    "sweep:\n- {label: a, server.algorithm: fedldf}\n"
                                    "- {label: b, world: {uplink: \"2 Mbit/s\"}, stop.rounds: 2}\n";
    struct fl_experiment *e = load(text);
    struct fl_experiment *again;
    struct fl_experiment_point *p;
    char *first = text_of(e, 1);
    char *second;

    ck_assert_str_eq(first, "name: x\nserver:\n  model:\n    preset: mlr60\n  rounds: 5\n"
                            "client:\n  labels:\n    a b: yes\ndata:\n  synthetic:\n"
                            "    clients: 10\nworld:\n  uplink: 2 Mbit/s\nstop:\n  rounds: 2\n"
                            "trials:\n  seeds: [5, 9]\n");
    again = load(first);
    second = text_of(again, 0);
    ck_assert_str_eq(second, first);
    ck_assert_uint_eq(fl_experiment_seed(again, 1), 9);
    p = open_point(again, 0, 1);
    ck_assert_int_eq(p->stop.rounds, 2);
    fl_experiment_close(p);
    fl_experiment_free(again);
    fl_experiment_free(e);
    free(first);
    free(second);
}

TEST(the_text_of_a_point_has_its_seeds_once)
{
    struct fl_experiment *e =
        load("server: {model: {preset: mlr60}, rounds: 1, seed: 40}\ndata: {}\ntrials: 2\n");
    char *text = text_of(e, 0);
    struct fl_experiment *again = load(text);

    ck_assert_str_eq(text, "name: x\nserver:\n  model:\n    preset: mlr60\n  rounds: 1\ndata: {}\n"
                           "trials:\n  count: 2\n  seed: 40\n");
    ck_assert_uint_eq(fl_experiment_seed(again, 1), 41);
    fl_experiment_free(again);
    fl_experiment_free(e);
    free(text);
}

static uint64_t fingerprint(const char *text)
{
    struct fl_experiment *e = load(text);
    uint64_t value = fl_experiment_fingerprint(e);

    fl_experiment_free(e);
    return value;
}

TEST(another_experiment_has_another_fingerprint)
{
    static const char *const set = "server.rounds=6";
    uint64_t value = fingerprint(HEAD);
    struct fl_experiment *e = NULL;

    /* The same. */
    ck_assert_uint_eq(fingerprint("# a comment\n" HEAD "name: other\n"), value);
    ck_assert_uint_eq(fingerprint("data:\n  synthetic:\n    \"clients\": 10\n"
                                  "server: {model: {preset: mlr60}, rounds: 5}\n"),
                      value);
    ck_assert_uint_eq(fingerprint(HEAD "trials: {count: 1, seed: 1}\n"), value);
    /* Others. */
    ck_assert_uint_ne(fingerprint(HEAD "trials: 2\n"), value);
    ck_assert_uint_ne(fingerprint(HEAD "world: lan\n"), value);
    ck_assert_uint_ne(fingerprint(HEAD "sweep: {server.rounds: [5, 6]}\n"), value);
    ck_assert_uint_ne(fingerprint(HEAD "sweep: {server.rounds: [6, 5]}\n"),
                      fingerprint(HEAD "sweep: {server.rounds: [5, 6]}\n"));
    ck_assert_int_eq(load_set(HEAD, &set, 1, &e, NULL), FL_OK);
    ck_assert_uint_ne(fl_experiment_fingerprint(e), value);
    fl_experiment_free(e);
}

TEST(a_name_is_the_files_without_its_end)
{
    static const struct {
        const char *path, *name;
    } cases[] = {{"a/b/lines.yaml", "lines"},
                 {"lines.yml", "lines"},
                 {"my lines.yaml", "my-lines"},
                 {".yaml", "-yaml"},
                 {"dir.yaml/x", "x"},
                 {"a/b/", "experiment"},
                 {"-", "-"},
                 {"x.y.yaml", "x.y"}};
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fl_experiment *e = NULL;

        ck_assert_int_eq(fl_experiment_parse(cases[i].path, HEAD, strlen(HEAD), NULL, 0, &e, NULL),
                         FL_OK);
        ck_assert_str_eq(fl_experiment_name(e), cases[i].name);
        fl_experiment_free(e);
    }
}

TEST(the_example_of_the_documents_loads)
{
    const char *srcdir = getenv("FL_SRCDIR");
    struct fl_buf page;
    struct fl_buf text;
    char path[4096];
    char *line;
    struct fl_experiment *e;

    fl_buf_init(&text, 1u << 20);
    ck_assert_ptr_nonnull(srcdir);
    ck_assert_int_eq(fl_fs_join(path, sizeof(path), srcdir, "docs/simulation.md"), FL_OK);
    ck_assert_int_eq(fl_fs_read(path, 1u << 20, &page, NULL), FL_OK);
    ck_assert_int_eq(fl_buf_add(&page, "", 1), FL_OK);
    line = strstr((char *)page.data, "\n## The experiment file\n");
    ck_assert_ptr_nonnull(line);
    line = strstr(line, "\n    ");
    ck_assert_ptr_nonnull(line);
    for (line++; strncmp(line, "    ", 4) == 0; line = strchr(line, '\n') + 1) {
        ck_assert_int_eq(fl_buf_add(&text, line + 4, (size_t)(strchr(line, '\n') + 1 - line) - 4),
                         FL_OK);
    }
    ck_assert_int_eq(fl_buf_add(&text, "", 1), FL_OK);
    e = load((const char *)text.data);
    ck_assert_str_eq(fl_experiment_name(e), "lines");
    ck_assert_uint_eq(fl_experiment_points(e), 4);
    ck_assert_uint_eq(fl_experiment_trials(e), 3);
    fl_experiment_free(e);
    fl_buf_done(&text);
    fl_buf_done(&page);
}
