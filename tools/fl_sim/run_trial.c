/*
 * Runs one trial of an experiment: a point of its sweep with one seed. Opens data, results and
 * engine, runs the federation, and writes a row per round. One thread per trial (run_trials.c); the
 * clients' work has its own worker pool (engine/worker_pool.c).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/nn/net.h"
#include "tools/fl_sim/engine/sim_federation.h"
#include "tools/fl_sim/run.h"

/* Room for the names of attackers in a line; one more name and their number fit behind it. */
#define NOTE_NAMES 800

/* --- its clients --- */

struct trial {
    const struct run *run;
    const struct fl_ranks *ranks; /* NULL: a single process */
    struct setting setting;
    const char *label;
    uint64_t seed;
    struct fl_trial *out; /* NULL: the trial is finished */
    struct trial_log log; /* fd -1: not open */
    struct fl_settings settings;
    uint64_t up_bytes, all_bytes;
    struct fl_trial_end end;
    char reason[FL_PAUSE_SIZE];
    char *asked; /* [units], for a row; owned */
    uint64_t round;
    double accuracy;
    double newest[FL_EXPERIMENT_MEAN]; /* accuracies: of evaluation i at i % stop.mean_of */
    size_t evaluations;
    bool interrupted;
    char test_folder[FL_SIM_FOLDER]; /* of a program; "": it knows */
    struct fl_err err;               /* state folder of the results */
    int code;
};

static void trial_client(void *ctx, size_t client, struct fl_sim_client *ret)
{
    const struct trial *t = ctx;
    const struct fl_client_conf *conf = t->setting.point->client;

    *ret = (struct fl_sim_client){.name = fl_sim_data_name(t->setting.data, client)};
    ret->seed = fl_worker_seed(ret->name, (uint64_t)conf->main->seed);
    ret->least_group = (uint64_t)conf->main->least_group;
    if (t->setting.attackers != NULL && t->setting.attackers[client]) {
        ret->attack = &t->setting.point->attackers.attack;
    }
    fl_sim_data_counts(t->setting.data, client, conf->data->validation, &ret->samples,
                       &ret->evaluation_samples);
}

static void trial_release_data(void *ctx, struct fl_sim_client_data *data)
{
    (void)ctx;
    fl_dataset_free(data->of[0]);
    fl_dataset_free(data->of[1]);
}

static int trial_client_data(void *ctx, size_t client, struct fl_sim_client_data *ret,
                             struct fl_err *err)
{
    const struct trial *t = ctx;
    const struct fl_client_conf *conf = t->setting.point->client;
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    int rv = fl_sim_data_client(t->setting.data, client, conf->data->validation,
                                conf->data->augment, &train, &test, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret = (struct fl_sim_client_data){.train = train, .test = test, .of = {train, test}};
    if (t->setting.program.program.argv != NULL) {
        rv =
            fl_sim_data_conf_folder(t->setting.data_conf, fl_sim_data_name(t->setting.data, client),
                                    ret->folder, sizeof(ret->folder), &ret->whole, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    return FL_OK;
fail:
    trial_release_data(ctx, ret);
    return rv;
}

/* --- rows of results --- */

static enum fl_sim_fate trial_client_fate(const struct fl_fed_part *p)
{
    if (p->evaluated) {
        return FL_SIM_FATE_EVALUATED;
    }
    switch (p->state) {
    case FL_PARTICIPANT_ACCEPTED:
        return FL_SIM_FATE_ACCEPTED;
    case FL_PARTICIPANT_EMPTY:
        return FL_SIM_FATE_EMPTY;
    case FL_PARTICIPANT_REJECTED:
        return FL_SIM_FATE_REJECTED;
    default:
        return p->stopped   ? FL_SIM_FATE_STOPPED
               : p->failed  ? FL_SIM_FATE_FAILED
               : p->dropped ? FL_SIM_FATE_DROPPED
                            : FL_SIM_FATE_LATE;
    }
}

static void trial_on_participant(void *ctx, const struct fl_fed_part *p)
{
    struct trial *t = ctx;
    struct fl_sim_client_round row;
    char metrics[FL_EVAL_METRICS_TEXT];
    size_t l;

    if (t->code != FL_OK) {
        return;
    }
    fl_sim_client_init(&row);
    row.round = p->round;
    row.attempt = p->attempt;
    row.samples = p->samples;
    row.steps = p->steps;
    row.train_loss = p->train_loss;
    row.selected_us = p->selected_us;
    row.fetched_us = p->fetched_us;
    row.trained_us = p->trained_us;
    row.reported_us = p->reported_us;
    row.planned_us = p->planned_us;
    row.pushed_us = p->pushed_us;
    row.bytes_up = p->bytes_up;
    row.bytes_down = p->bytes_down;
    if (p->eval != NULL) {
        row.evaluation_samples = p->eval->samples;
        row.received_accuracy = p->eval->received_accuracy;
        row.received_loss = p->eval->received_loss;
        row.personal_accuracy = p->eval->personal_accuracy;
        row.personal_loss = p->eval->personal_loss;
        fl_client_eval_metrics(p->eval, metrics);
        row.metrics = metrics;
    }
    row.name = p->name;
    row.attacker = t->setting.attackers != NULL && t->setting.attackers[p->client];
    row.fate = trial_client_fate(p);
    if (p->units != NULL) {
        for (l = 0; l < p->n_units; l++) {
            t->asked[l] = p->units[l] != 0 ? '1' : '0';
        }
        row.asked = t->asked;
    }
    t->code = fl_trial_client(t->out, &row, &t->err);
}

/* The mean of the newest evaluations, this one included; negative: there are not enough of them. */
static double trial_mean_accuracy(struct trial *t, double accuracy)
{
    size_t n = t->setting.point->stop.mean_of;
    double sum = 0;
    size_t i;

    t->newest[t->evaluations++ % n] = accuracy;
    if (t->evaluations < n) {
        return -1;
    }
    for (i = 0; i < n; i++) {
        sum += t->newest[i];
    }
    return sum / (double)n;
}

/* The stop rule that ends the run now; NULL: none. */
static const char *trial_stop_rule(struct trial *t, const struct fl_round_rec *record,
                                   const struct fl_sim_round *sim)
{
    const struct fl_experiment_stop *stop = &t->setting.point->stop;

    if (t->run->most_rounds > 0 && record->round >= t->run->most_rounds) {
        return "rounds";
    }
    if (stop->accuracy > 0 && record->accuracy >= 0 &&
        trial_mean_accuracy(t, record->accuracy) >= stop->accuracy)
    {
        return "accuracy";
    }
    if (stop->uplink > 0 && t->up_bytes >= stop->uplink) {
        return "uplink";
    }
    if (stop->bytes > 0 && t->all_bytes >= stop->bytes) {
        return "bytes";
    }
    if (stop->time_ms > 0 && sim->time_us / 1000 >= stop->time_ms) {
        return "time";
    }
    return NULL;
}

static bool trial_on_committed(void *ctx, const struct fl_round_rec *record,
                               const struct fl_sim_round *sim)
{
    struct trial *t = ctx;
    struct progress_at at = {.label = t->label,
                             .seed = t->seed,
                             .round = record->round,
                             .rounds = (uint64_t)t->setting.point->stop.rounds,
                             .time_us = sim->time_us,
                             .record = record};
    const char *rule;

    t->up_bytes += record->uplink_bytes;
    t->all_bytes += fl_sim_round_up(sim) + fl_sim_round_down(sim);
    t->round = record->round;
    t->accuracy = record->accuracy >= 0 ? record->accuracy : t->accuracy;
    if (t->code == FL_OK) {
        t->code = fl_trial_round(t->out, record, sim, &t->err);
    }
    at.accuracy = t->accuracy;
    at.bytes_up = t->up_bytes;
    progress_round(t->run->progress, &at);
    rule = trial_stop_rule(t, record, sim);
    if (rule != NULL) {
        t->end = (struct fl_trial_end){.how = FL_TRIAL_STOPPED, .reason = rule};
    }
    t->interrupted = atomic_load(&run_interrupted);
    return rule == NULL && t->code == FL_OK && !t->interrupted;
}

/* --- the run --- */

/* Names the attackers, as many as fit into a line. */
static void trial_note_attackers(const struct trial *t)
{
    const struct setting *s = &t->setting;
    size_t n = fl_sim_data_clients(s->data);
    size_t left = s->n_attackers;
    char text[1024];
    size_t used;
    size_t i;

    used = (size_t)snprintf(text, NOTE_NAMES,
                            "'%.200s', seed %llu: %zu of %zu clients attack (%s):", t->label,
                            (unsigned long long)t->seed, s->n_attackers, n,
                            fl_attack_names[s->point->attackers.attack.kind]);
    for (i = 0; i < n && left > 0 && used < NOTE_NAMES; i++) {
        if (s->attackers[i]) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, " %s",
                                     fl_sim_data_name(s->data, i));
            left--;
        }
    }
    if (left > 0) {
        (void)snprintf(text + used, sizeof(text) - used, " and %zu more", left);
    }
    progress_note(t->run->progress, text);
}

/* Clients that are up at the start. */
static uint32_t trial_count_up(const struct setting *s)
{
    size_t n = fl_sim_data_clients(s->data);
    size_t up = 0;
    uint64_t until;
    size_t i;

    for (i = 0; i < n; i++) {
        up += s->world == NULL || fl_world_up(s->world, i, 0, &until);
    }
    return up > 0 ? (uint32_t)up : 1;
}

/* Keeps all checkpoints that the server's rules keep, when the state is kept (--keep-state). */
static struct fl_retention trial_retention(const struct trial *t)
{
    const struct fl_server_checkpoints *c = t->setting.point->server->checkpoints;

    return t->run->keep_state ? (struct fl_retention){.keep = (uint32_t)c->keep,
                                                      .best = (uint32_t)c->keep_best,
                                                      .every = (uint32_t)c->every,
                                                      .span_ms = c->keep_for_ms,
                                                      .parts = FL_RETENTION_PARTS}
                              : (struct fl_retention){.keep = 1};
}

static struct fl_fed_conf trial_fed_conf(struct trial *t, const struct fl_sim_clients *sim_clients,
                                         const char *journal)
{
    const struct fl_client_limits *limits = t->setting.point->client->limits;
    const struct fl_server_conf *server = t->setting.point->server;
    const struct fl_server_training *training = server->training;
    struct fl_fed_conf conf = {
        .dir = fl_trial_state_dir(t->out),
        .name = server->main->federation[0] != '\0' ? server->main->federation
                                                    : fl_experiment_name(t->run->experiment),
        .space = server->space,
        .net = server->net,
        .training = {.epochs = (uint32_t)training->epochs,
                     .steps = (uint32_t)training->steps,
                     .batch_size = (uint32_t)training->batch_size,
                     .momentum = training->momentum,
                     .weight_decay = training->weight_decay,
                     .client_momentum = training->client_momentum},
        .inputs = server->inputs,
        .classes = server->classes,
        .summary_max = (size_t)server->limits->summary,
        .summary_range = server->limits->summary_range,
        .norm_bound = server->round->norm_bound,
        .norm_clip = server->round->norm_clip,
        .share_cap = server->round->share_cap,
        .retention = trial_retention(t),
        .settings = &t->settings,
        .sim_clients = sim_clients,
        .test = fl_sim_data_server(t->setting.data),
        .metrics = fl_server_conf_metrics(server),
        .test_folder = t->test_folder,
        .world = t->setting.world,
        .upload_rate = (double)limits->upload_rate_per_s,
        .download_rate = (double)limits->download_rate_per_s,
        .journal = journal,
        .dry = t->run->dry,
        .threads = t->run->threads,
        .ranks = t->ranks,
        .keep_records = t->run->keep_state,
        .log = t->log.fd >= 0 ? &t->log.log : NULL,
        .watch = {.part = trial_on_participant, .committed = trial_on_committed, .ctx = t},
    };

    fl_server_conf_coord(server, &conf.coord);
    conf.coord.straggler_rate = 0;    /* No simulated client sends slower on purpose. */
    conf.coord.eligible.n_labels = 0; /* Simulated clients announce no labels. */
    conf.coord.max_clients = (uint32_t)sim_clients->n + 1;
    conf.coord.evaluate_server = conf.test != NULL && !t->run->dry;
    /*
     * A server whose file does not say how many clients to wait for begins with the first. In a
     * simulation all clients connect at once, and a first round with only one of them is not
     * intended.
     */
    if (conf.coord.start_clients <= 1) {
        conf.coord.start_clients = trial_count_up(&t->setting);
    }
    return conf;
}

static struct fl_sim_clients trial_clients(struct trial *t)
{
    return (struct fl_sim_clients){
        .n = fl_sim_data_clients(t->setting.data),
        .sim_client = trial_client,
        .data = trial_client_data,
        .release = trial_release_data,
        .program = t->setting.program.program.argv != NULL ? &t->setting.program : NULL,
        .ctx = t};
}

static int trial_run_federation(struct trial *t, struct fl_err *err)
{
    const struct fl_sim_clients sim_clients = trial_clients(t);
    char journal[4096];
    struct fl_fed_conf conf;
    struct fl_fed *fed = NULL;
    enum fl_fed_end end = FL_FED_DONE;
    float *first = NULL;
    int rv = fl_fs_join(journal, sizeof(journal), fl_trial_state_dir(t->out), "journal");

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "path '%s' is too long", fl_trial_state_dir(t->out));
    }
    conf = trial_fed_conf(t, &sim_clients, t->run->dry ? NULL : journal);
    if (sim_clients.program != NULL) {
        rv = fl_sim_data_conf_folder(t->setting.data_conf, NULL, t->test_folder,
                                     sizeof(t->test_folder), &conf.test_whole, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = setting_model(&t->setting, &first, err);
    if (rv != FL_OK) {
        return rv;
    }
    conf.first_model = first;
    rv = fl_fed_create(&conf, &fed, err);
    free(first);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fed_run(fed, &end, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (end == FL_FED_DIVERGED || end == FL_FED_STUCK) {
        (void)snprintf(t->reason, sizeof(t->reason), "%s", fl_fed_why(fed));
        t->end = (struct fl_trial_end){.how = end == FL_FED_DIVERGED ? FL_TRIAL_DIVERGED
                                                                     : FL_TRIAL_STOPPED,
                                       .round = t->round + 1,
                                       .reason = t->reason};
    }
done:
    fl_fed_free(fed);
    return rv;
}

static int trial_run_local(struct trial *t, struct fl_err *err)
{
    const struct run_watch watch = {.committed = trial_on_committed, .ctx = t};

    return run_local(t->run, &t->setting, fl_trial_state_dir(t->out), &watch, err);
}

static int trial_run_opened(struct trial *t, struct fl_err *err)
{
    int rv = fl_server_conf_settings(t->setting.point->server, &t->settings);

    t->log.fd = -1;
    if (rv != FL_OK) {
        goto done;
    }
    if (t->run->keep_state) {
        rv = trial_log_open(fl_trial_state_dir(t->out), &t->log, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    t->asked = calloc(fl_layout_units(t->setting.point->server->layout) + 1, 1);
    if (t->asked == NULL) {
        rv = FL_ENOMEM;
        goto done;
    }
    rv = t->run->local > 0 ? trial_run_local(t, err) : trial_run_federation(t, err);
done:
    free(t->asked);
    trial_log_close(&t->log);
    fl_settings_done(&t->settings);
    if (t->code != FL_OK) { /* Why the run ended. */
        return fl_err_set(err, t->code, "%s", fl_err_text(&t->err, t->code));
    }
    if (rv != FL_OK) {
        return rv;
    }
    return t->interrupted ? FL_ECANCELED : fl_trial_finish(t->out, &t->end, err);
}

int trial_run(const struct run *run, size_t point, size_t trial, const struct fl_ranks *ranks,
              struct fl_err *err)
{
    struct trial t = {.run = run,
                      .ranks = ranks,
                      .label = fl_experiment_label(run->experiment, point),
                      .seed = fl_experiment_seed(run->experiment, trial),
                      .accuracy = -1};
    int rv = fl_trial_begin(run->results, fl_experiment_slug(run->experiment, point), t.seed,
                            &t.out, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (t.out != NULL) {
        rv = setting_open(run, point, trial, &t.setting, err);
        if (rv != FL_OK) {
            goto done;
        }
        if (t.setting.n_attackers > 0) {
            trial_note_attackers(&t);
        }
        rv = trial_run_opened(&t, err);
        setting_close(&t.setting);
        if (rv != FL_OK) {
            goto done;
        }
    }
    progress_trial(run->progress, t.label, t.seed);
done:
    fl_trial_free(t.out);
    return rv;
}

int trial_serve(const struct run *run, size_t point, size_t trial, const struct fl_ranks *ranks,
                struct fl_err *err)
{
    struct trial t = {.run = run};
    struct fl_sim_clients sim_clients;
    int rv = setting_open(run, point, trial, &t.setting, err);

    if (rv != FL_OK) {
        return rv;
    }
    sim_clients = trial_clients(&t);
    rv = fl_ranks_serve(ranks, &sim_clients, run->kernels, run->threads, NULL, err);
    setting_close(&t.setting);
    return rv;
}
