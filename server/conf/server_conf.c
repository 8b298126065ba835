/*
 * Loads the configuration of a federation: reads the file through the option tables, loads strategy
 * and model, checks what spans sections, and derives the configuration of the coordinator. Runs on
 * the thread of its caller, before the daemon starts; it opens no sockets or state.
 */
#include "server/conf/server_conf_impl.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/nn/net_metrics.h"

/* The largest number of clients that a round waits for, and its key. */
static int64_t conf_clients_needed(const struct fl_server_conf *conf, const int64_t **ret_field)
{
    const struct fl_server_round *r = conf->round;

    *ret_field = &r->min_clients;
    if (r->start_clients > **ret_field) {
        *ret_field = &r->start_clients;
    }
    if (r->min_responders_given && r->min_responders > **ret_field) {
        *ret_field = &r->min_responders;
    }
    return **ret_field;
}

/* A round must be able to start within the limits of connections and names. */
static int conf_check_clients(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_limits *l = conf->limits;
    const int64_t *least = l->clients < l->known_clients ? &l->clients : &l->known_clients;
    const int64_t *field;
    int64_t needs = conf_clients_needed(conf, &field);

    if (needs > *least) {
        return fl_conf_error(fl_conf_field(conf->file, least), err,
                             "expected at least round.%s, %lld, found %lld",
                             field == &conf->round->min_clients     ? "min_clients"
                             : field == &conf->round->start_clients ? "start_clients"
                                                                    : "min_responders",
                             (long long)needs, (long long)*least);
    }
    return FL_OK;
}

static int check_training(const struct fl_server_conf *conf, struct fl_err *err)
{
    if (conf->training->epochs == 0 && conf->training->steps == 0) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->training->epochs), err,
                             "expected epochs or steps above 0, found 0 for both");
    }
    if (conf->training->epochs > 0 && conf->training->steps > 0) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->training->steps), err,
                             "expected epochs or steps, found %lld steps and %lld epochs%s: set "
                             "epochs: 0 to train in steps",
                             (long long)conf->training->steps, (long long)conf->training->epochs,
                             conf->training->epochs_given ? "" : " (the default)");
    }
    if (conf->evaluation->data[0] != '\0' && conf->net.n_layers == 0 &&
        conf->evaluation->command.n == 0)
    {
        return fl_conf_error(
            fl_conf_field(conf->file, &conf->evaluation->data), err,
            "the built-in engine evaluates only networks given as preset or layers, not a model "
            "from a file; set evaluation.command to an evaluating program");
    }
    return FL_OK;
}

static int conf_check_program(const struct fl_server_conf *conf, const struct fl_opt_texts *command,
                              struct fl_err *err)
{
    return command->n == 0 || command->list[0][0] != '\0'
               ? FL_OK
               : fl_conf_error(fl_conf_field(conf->file, command), err,
                               "expected a program and its arguments, found an empty name");
}

static int conf_check_hooks(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_hooks *h = conf->hooks;
    const struct fl_opt_texts *const commands[] = {&h->round_committed, &h->paused, &h->finished,
                                                   &h->client_quarantined,
                                                   &h->certificate_expiring};
    size_t i;

    for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        int rv = conf_check_program(conf, commands[i], err);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* A program computes what it wants: the list is for the built-in engine. */
static int conf_check_metrics(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_opt_texts *metrics = &conf->evaluation->metrics;
    const struct fl_conf_node *at = fl_conf_field(conf->file, metrics);
    struct fl_err why = {0};
    unsigned which = 0;
    int rv;

    if (metrics->n == 0) {
        return FL_OK;
    }
    rv = fl_net_metrics_parse(metrics->list, metrics->n, &which, &why);
    if (rv != FL_OK) {
        return fl_conf_error(at, err, "%s", why.msg);
    }
    if (conf->evaluation->command.n > 0 || conf->net.n_layers == 0) {
        return fl_conf_error(at, err,
                             "expected no metrics where a program evaluates: it returns its own "
                             "(docs/trainers.md#metrics)");
    }
    rv = fl_net_metrics_check(which, fl_net_output_of(conf->net.layers, conf->net.n_layers),
                              conf->classes, &why);
    return rv == FL_OK ? FL_OK : fl_conf_error(at, err, "%s", why.msg);
}

static int conf_check_evaluation(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_opt_texts *command = &conf->evaluation->command;
    size_t i;
    int rv = conf_check_program(conf, command, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < command->n; i++) {
        if (strstr(command->list[i], "{task}") != NULL) {
            return fl_conf_error(fl_conf_field(conf->file, command), err,
                                 "a persistent program has no task file for '{task}': it receives "
                                 "its tasks in messages (docs/trainers.md)");
        }
    }
    return conf_check_metrics(conf, err);
}

static int check_rate(const struct fl_server_conf *conf, struct fl_err *err)
{
    struct fl_err why = {0};
    int rv = fl_strategy_check_training(conf->strategy, conf->training->learning_rate,
                                        conf->training->momentum, &why);

    if (rv != FL_OK) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->training->learning_rate), err, "%s",
                             why.msg);
    }
    return FL_OK;
}

/* Momentum of clients needs updates whose history is that of one model
 * (docs/algorithms.md#momentum-of-a-client). */
static int conf_check_momentum(const struct fl_server_conf *conf, struct fl_err *err)
{
    struct fl_err why = {0};
    int rv = conf->training->client_momentum > 0 ? fl_strategy_check_momentum(conf->strategy, &why)
                                                 : FL_OK;

    if (rv != FL_OK) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->training->client_momentum), err, "%s",
                             why.msg);
    }
    return FL_OK;
}

const struct fl_conf_node *fl_server_conf_component(const struct fl_server_conf *conf,
                                                    enum fl_component component)
{
    return fl_conf_get(fl_conf_get(fl_conf_file_map(conf->file), "strategy"),
                       fl_component_name(component));
}

/* Of the component in the file: a rule comes from there, as no preset has one. */
static const struct fl_conf_node *conf_robust_node(const struct fl_server_conf *conf)
{
    return fl_server_conf_component(conf, FL_COMPONENT_ROBUST);
}

/* A robust rule needs senders, so a round must not end with fewer. */
static int conf_check_robust(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_strategy *s = conf->strategy;
    const struct fl_options *o = s->options[FL_COMPONENT_ROBUST];
    size_t needs = fl_robust_needs(s->robust, o);

    if (needs <= 1 || fl_robust_reports(s->robust, o) ||
        (conf->round->min_responders_given && (uint64_t)conf->round->min_responders >= needs))
    {
        return FL_OK;
    }
    return fl_conf_error(conf_robust_node(conf), err,
                         "robust '%s' with these options needs %zu senders of every layer: set "
                         "round.min_responders to %zu or more, so that no round ends with fewer",
                         s->robust->policy.name, needs, needs);
}

/* Data summaries are means of samples with their classes. */
static int conf_check_values(const struct fl_server_conf *conf, struct fl_err *err)
{
    if (conf->values > 0 && conf->strategy->solver->summary != NULL) {
        return fl_conf_error(fl_conf_section(conf->file, conf->model), err,
                             "solver '%s' mixes the classes of samples, and the network predicts "
                             "values: expected loss: cross_entropy with it",
                             conf->strategy->solver->policy.name);
    }
    return FL_OK;
}

/* A rule that trusts the server needs what the server trains with: labelled data, the built-in
   engine, and a model all of whose tensors the server has. */
static int conf_check_root(const struct fl_server_conf *conf, bool daemon, struct fl_err *err)
{
    const char *rule = conf->strategy->robust->policy.name;

    if (!fl_robust_trusts(conf->strategy->robust)) {
        return FL_OK;
    }
    if (conf->net.n_layers == 0) {
        return fl_conf_error(conf_robust_node(conf), err,
                             "robust '%s' trains on the server with the built-in engine, which "
                             "trains only networks given as preset or layers, not a model from a "
                             "file",
                             rule);
    }
    if (fl_layout_local(conf->layout) > 0) {
        return fl_conf_error(conf_robust_node(conf), err,
                             "robust '%s' trains on the server, which has only the first values of "
                             "what stays on the clients (model.norm: local, model.local, or the "
                             "head of personal 'head')",
                             rule);
    }
    if (conf->evaluation->command.n > 0) {
        return fl_conf_error(conf_robust_node(conf), err,
                             "robust '%s' takes its samples from evaluation.data, and the program "
                             "of evaluation.command would evaluate on them: leave it out",
                             rule);
    }
    if (daemon && conf->evaluation->data[0] == '\0') {
        return fl_conf_error(conf_robust_node(conf), err,
                             "robust '%s' trains on the server, which has no labelled data: set "
                             "evaluation.data to a folder with a test set",
                             rule);
    }
    return FL_OK;
}

/* The buckets follow from the seed, which clients must not know. */
static int conf_check_buckets(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_strategy *s = conf->strategy;

    if (!fl_robust_draws(s->robust, s->options[FL_COMPONENT_ROBUST]) || conf->main->seed != 1) {
        return FL_OK;
    }
    return fl_conf_error(
        conf_robust_node(conf), err,
        "robust mix 'bucketing' draws its buckets from the seed, and a client that "
        "knows it can choose its bucket: set 'seed' to a large random number, not "
        "to its default, 1");
}

/* A learning rate of 0 is for simulations that compare: a federation with it never learns. */
static int check_steps(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_training *t = conf->training;
    const double *zero = t->learning_rate == 0.0         ? &t->learning_rate
                         : t->learning_rate_decay == 0.0 ? &t->learning_rate_decay
                                                         : NULL;
    int64_t rounds = conf->main->rounds;

    if (t->learning_rate_rounds > 0 && t->learning_rate_end == 0.0 &&
        (rounds == 0 || rounds > t->learning_rate_rounds))
    {
        return fl_conf_error(fl_conf_field(conf->file, &t->learning_rate_rounds), err,
                             "with a learning rate of 0 after round %lld no client changes the "
                             "model: expected 'rounds' of at most that, or a learning_rate_end "
                             "above 0",
                             (long long)t->learning_rate_rounds);
    }
    return zero == NULL ? FL_OK
                        : fl_conf_error(fl_conf_field(conf->file, zero), err,
                                        "expected a number above 0: with %s no client changes the "
                                        "model",
                                        zero == &t->learning_rate ? "a learning rate of 0"
                                                                  : "a learning rate of 0 from the "
                                                                    "second round on");
}

/* `daemon`: also check what only a daemon needs. */
static int conf_check_name(const struct fl_server_conf *conf, bool daemon, struct fl_err *err)
{
    const char *name = conf->main->federation;

    if ((daemon || name[0] != '\0') && !fl_name_allowed(name)) {
        return fl_conf_error(
            fl_conf_field(conf->file, &conf->main->federation), err,
            "expected 1 to %d characters of A-Z a-z 0-9 . _ -, the first a letter, "
            "a digit or _, found '%s'",
            FL_NAME_MAX - 1, name);
    }
    return FL_OK;
}

static int conf_check_share(const struct fl_server_conf *conf, struct fl_err *err)
{
    double cap = conf->round->share_cap;

    if (cap > 0 && cap < 1) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->round->share_cap), err,
                             "expected 0 (no bound) or a number of at least 1, a client's fair "
                             "share, found %g",
                             cap);
    }
    return FL_OK;
}

static int conf_check(const struct fl_server_conf *conf, bool daemon, struct fl_findings *all,
                      struct fl_err *err)
{
    static const struct {
        int (*check)(const struct fl_server_conf *conf, struct fl_err *err);
        bool daemon; /* not for simulations */
    } checks[] = {{check_training, false},      {conf_check_evaluation, false},
                  {conf_check_hooks, false},    {conf_check_clients, true},
                  {check_steps, true},          {check_rate, false},
                  {conf_check_momentum, false}, {conf_check_robust, false},
                  {conf_check_share, false},    {conf_check_buckets, true}};
    size_t i;
    int rv = fl_findings_keep(all, conf_check_name(conf, daemon, err), err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_findings_keep(all, conf_check_values(conf, err), err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_findings_keep(all, conf_check_root(conf, daemon, err), err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (checks[i].daemon && !daemon) {
            continue;
        }
        rv = fl_findings_keep(all, checks[i].check(conf, err), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* The instruction set is stored in the network spec; results do not depend on it. */
static int conf_choose_kernels(struct fl_server_conf *conf, struct fl_err *err)
{
    const int *instructions = &conf->main->instructions;
    struct fl_err why = {0};
    int rv = fl_kernels_named(fl_kernels_names[*instructions], &conf->net.kernels, &why);

    if (rv != FL_OK) {
        return fl_conf_error(fl_conf_field(conf->file, instructions), err, "%s", why.msg);
    }
    return FL_OK;
}

/* Checks the sections that were read into `conf`; takes it. */
static int conf_finish(struct fl_server_conf *conf, bool daemon, struct fl_findings *all,
                       struct fl_server_conf **ret, struct fl_err *err)
{
    const struct fl_conf_node *map = fl_conf_file_map(conf->file);
    int rv = fl_strategy_load(fl_conf_file_doc(conf->file), fl_conf_get(map, "algorithm"),
                              fl_conf_get(map, "strategy"), &conf->strategy, err);

    rv = fl_findings_keep(all, rv, err);
    if (rv != FL_OK) {
        goto fail;
    }
    /* Checks that span sections are meaningless while one of them is invalid. */
    rv = fl_findings_first(all, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_findings_keep(all, fl__server_conf_model(conf, err), err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_findings_keep(all, fl__server_conf_eligible(conf, err), err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_findings_keep(all, conf_choose_kernels(conf, err), err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = conf_check(conf, daemon, all, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = conf;
    return FL_OK;
fail:
    fl_server_conf_free(conf);
    return rv;
}

/* Top-level keys outside of all sections. */
static const char *const top_level_keys[] = {"algorithm", "strategy", NULL};

int fl_server_conf_load(const char *path, struct fl_findings *all, struct fl_server_conf **ret,
                        struct fl_err *err)
{
    struct fl_server_conf *conf = calloc(1, sizeof(*conf));
    int rv = conf != NULL ? fl_conf_read(path, fl__server_sections, top_level_keys, all, conf,
                                         &conf->file, err)
                          : FL_ENOMEM;

    if (rv != FL_OK) {
        fl_server_conf_free(conf);
        return rv;
    }
    return conf_finish(conf, /* daemon= */ true, all, ret, err);
}

int fl_server_conf_read(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                        struct fl_server_conf **ret, struct fl_err *err)
{
    const struct fl_conf_part part = {
        .doc = doc, .map = map, .optional = FL_SERVER_DAEMON | FL_SERVER_NEEDED};
    struct fl_server_conf *conf = calloc(1, sizeof(*conf));
    int rv = conf != NULL ? fl_conf_read_map(&part, fl__server_sections, top_level_keys, conf,
                                             &conf->file, err)
                          : FL_ENOMEM;

    if (rv != FL_OK) {
        fl_server_conf_free(conf);
        return rv;
    }
    return conf_finish(conf, /* daemon= */ false, NULL, ret, err);
}

int fl_server_conf_daemons(const struct fl_server_conf *conf, struct fl_buf *out)
{
    return fl_conf_given(conf->file, FL_SERVER_DAEMON, "server.", out);
}

bool fl_server_conf_is_daemons(const char *key)
{
    return (fl_conf_key_flags(fl__server_sections, key) & (unsigned)FL_SERVER_DAEMON) != 0;
}

void fl_server_conf_free(struct fl_server_conf *conf)
{
    if (conf == NULL) {
        return;
    }
    fl_strategy_free(conf->strategy);
    fl_space_free(conf->space);
    fl_layout_free(conf->layout);
    free(conf->layers);
    fl_conf_file_free(conf->file);
    free(conf);
}

bool fl_server_conf_has_accuracy(const struct fl_server_conf *conf)
{
    return fl_net_output_of(conf->net.layers, conf->net.n_layers) != FL_NET_OUTPUT_VALUES;
}

unsigned fl_server_conf_metrics(const struct fl_server_conf *conf)
{
    const struct fl_opt_texts *metrics = &conf->evaluation->metrics;
    unsigned which = 0;

    /* The list was checked when the file was read. */
    FL_REQUIRE(fl_net_metrics_parse(metrics->list, metrics->n, &which, NULL) == FL_OK);
    return which;
}

void fl_server_conf_coord(const struct fl_server_conf *conf, struct fl_coord_conf *ret)
{
    const struct fl_server_round *r = conf->round;

    *ret = (struct fl_coord_conf){
        .seed = (uint64_t)conf->main->seed,
        .rounds = (uint64_t)conf->main->rounds,
        .no_accuracy = !fl_server_conf_has_accuracy(conf),
        .population = (uint32_t)r->population,
        .start_clients = (uint32_t)r->start_clients,
        .min_clients = (uint32_t)r->min_clients,
        .min_responders =
            r->min_responders_given ? (uint32_t)r->min_responders : FL_RESPONDERS_HALF,
        .straggler_factor = r->straggler_factor,
        .straggler_min_ms = r->straggler_min_ms,
        .straggler_rate = r->straggler_rate_per_s,
        .over_selection = r->over_selection,
        .weight_cap = r->weight_cap,
        .norm_cap = r->norm_cap,
        .share_cap = r->share_cap,
        .quarantine_after = (uint32_t)r->quarantine_after,
        .quarantine_window = (uint64_t)r->quarantine_window,
        .quarantine_ms = r->quarantine_time_ms,
        .eligible = conf->rule,
        .over_grace = r->over_selected == FL_OVER_GRACE,
        .train_ms = r->train_deadline_ms,
        .upload_ms = r->upload_deadline_ms,
        .lost_grace_ms = r->lost_grace_ms,
        .evaluate_ms = conf->evaluation->deadline_ms,
        .restart_ms = FL_RESTART_MS,
        .retry_ms = r->retry_ms,
        .evaluate_every = (uint32_t)conf->evaluation->every,
        .evaluate_server = conf->evaluation->data[0] != '\0' || conf->evaluation->command.n > 0,
        .evaluate_clients = conf->evaluation->clients,
        .forget_after_ms = r->forget_after_ms,
        .max_clients = (uint32_t)conf->limits->known_clients,
        .learning_rate = conf->training->learning_rate,
        .learning_rate_decay = conf->training->learning_rate_decay,
        .learning_rate_every = (uint32_t)conf->training->learning_rate_every,
        .learning_rate_warmup = (uint32_t)conf->training->learning_rate_warmup,
        .learning_rate_rounds = (uint32_t)conf->training->learning_rate_rounds,
        .learning_rate_end = conf->training->learning_rate_end,
        .backfill = r->backfill,
        .strategy = conf->strategy,
        .layout = conf->layout,
    };
}

bool fl_server_conf_has_tls(const struct fl_server_conf *conf)
{
    const struct fl_server_main *m = conf->main;

    return (m->listen.n > 0 && !m->insecure) || m->listen_admin.n > 0;
}
