/* The setting of a trial: its data, network and device model, and model; and whether these fit each
   other. Read-only after setting_open(), any thread. It runs nothing. */
#include <math.h>
#include <stdlib.h>

#include "client/work/data_summary.h"
#include "libfl/base/str.h"
#include "libfl/nn/net.h"
#include "tools/fl_sim/engine/sim_federation.h"
#include "tools/fl_sim/run.h"

/* The same clients in all points of a trial that have as many attackers. */
static int setting_choose_attackers(struct setting *s, struct fl_err *err)
{
    const struct fl_experiment_attackers *a = &s->point->attackers;
    size_t n = fl_sim_data_clients(s->data);

    if (a->node == NULL) {
        return FL_OK;
    }
    s->n_attackers = a->share >= 0 ? fl_attack_count(a->share, n) : a->clients;
    if (s->n_attackers > n) {
        return fl_conf_error(fl_conf_get(a->node, "clients"), err,
                             "expected at most %zu, the number of clients in the data, found %zu",
                             n, s->n_attackers);
    }
    s->attackers = calloc(n + 1, sizeof(*s->attackers));
    return s->attackers != NULL ? fl_attack_choose(a->attack.seed, n, s->n_attackers, s->attackers)
                                : FL_ENOMEM;
}

/* --- the program that trains --- */

static int setting_open_program(struct setting *s, struct fl_err *err)
{
    const struct fl_client_command *c = s->point->client->command;
    struct fl_err why = {0};
    int rv;

    if (s->point->client->main->trainer != FL_TRAINER_COMMAND) {
        return !fl_sim_data_conf_of_program(s->data_conf)
                   ? FL_OK
                   : fl_conf_error(
                         s->point->data, err,
                         "'clients' alone is the data of a program, but client.trainer is "
                         "not 'command': expected 'path' or 'set'");
    }
    rv = fl_trainer_command_find(c->program.list, &why);
    if (rv != FL_OK) {
        return fl_conf_error(fl_conf_field(s->point->client->file, &c->program), err, "%s",
                             fl_err_text(&why, rv));
    }
    s->environment = fl_client_conf_environment(c);
    if (s->environment == NULL) {
        return FL_ENOMEM;
    }
    s->program =
        (struct fl_command_conf){.program = {.argv = c->program.list,
                                             .environment = (const char *const *)s->environment,
                                             .memory_bytes = c->memory_limit,
                                             .memory_of = c->memory_of,
                                             .client = "fl-sim",
                                             .purpose = "simulate",
                                             .start_limit_ms = c->start_limit_ms,
                                             .cancel_grace_ms = c->cancel_grace_ms},
                                 .time_limit_ms = c->time_limit_ms,
                                 .first_limit_ms = fl_client_conf_first_limit(c)};
    return FL_OK;
}

/* Asks one program for the counts of all clients, and for those of the server. */
static int setting_count(void *ctx, size_t client, const char *name, size_t clients,
                         uint64_t *ret_train, uint64_t *ret_test, struct fl_err *err)
{
    struct fl_persistent_client who = {
        .name = name, .number = name != NULL ? client : 0, .of = name != NULL ? clients : 0};
    struct fl_persistent *program = ctx;
    int rv = fl_persistent_act_for(program, &who, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_persistent_count(program, ret_train, ret_test, err);
}

static int setting_open_data(const struct run *run, uint64_t seed, struct setting *s,
                             struct fl_err *err)
{
    struct fl_persistent_conf conf = s->program.program;
    struct fl_persistent *program = NULL;
    int rv;

    if (!fl_sim_data_conf_of_program(s->data_conf)) {
        return fl_sim_data_get(run->data, s->data_conf, seed, &s->data, err);
    }
    rv = fl_persistent_create(&conf, &program, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_sim_data_conf_ask(s->data_conf, setting_count, program);
    rv = fl_sim_data_get(run->data, s->data_conf, seed, &s->data, err);
    fl_persistent_stop(program);
    fl_persistent_free(program);
    return rv;
}

bool setting_has_program(const struct setting *s)
{
    return s->program.program.argv != NULL ||
           s->point->server->strategy->aggregate->program != NULL;
}

int setting_open(const struct run *run, size_t point, size_t trial, struct setting *ret,
                 struct fl_err *err)
{
    uint64_t seed = fl_experiment_seed(run->experiment, trial);
    int rv;

    *ret = (struct setting){.point = NULL};
    rv = fl_experiment_open(run->experiment, point, trial, &ret->point, err);
    if (rv != FL_OK) {
        goto done;
    }
    ret->point->server->net.kernels = run->kernels;
    rv = fl_sim_data_conf_read(ret->point->doc, ret->point->data, run->base, &ret->data_conf, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = setting_open_program(ret, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = setting_open_data(run, seed, ret, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (ret->point->world != NULL) {
        const struct fl_world_ask ask = {.node = ret->point->world,
                                         .dir = run->base,
                                         .seed = seed,
                                         .n = fl_sim_data_clients(ret->data),
                                         .horizon_us = ret->point->stop.time_ms * 1000};

        rv = fl_world_load(&ask, &ret->world, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = setting_choose_attackers(ret, err);
done:
    if (rv != FL_OK) {
        setting_close(ret);
    }
    return rv;
}

void setting_close(struct setting *s)
{
    fl_world_free(s->world);
    fl_sim_data_put(s->data);
    fl_sim_data_conf_free(s->data_conf);
    fl_experiment_close(s->point);
    free(s->attackers);
    fl_str_list_free(s->environment);
    *s = (struct setting){.point = NULL};
}

int setting_memory(const struct setting *s, unsigned threads, uint64_t *ret, struct fl_err *err)
{
    const struct fl_server_conf *server = s->point->server;
    const struct fl_strategy *strategy = server->strategy;
    size_t clients = fl_sim_data_clients(s->data);
    double share = strategy->fraction->at(strategy->options[FL_COMPONENT_FRACTION],
                                          (uint64_t)server->main->rounds + 1);
    uint64_t round = (uint64_t)ceil(share * (double)clients * server->round->over_selection);
    uint64_t sent =
        fl_solver_names(fl_solver_sends(strategy->solver, strategy->options[FL_COMPONENT_SOLVER]));
    uint64_t model = fl_layout_count(server->layout) * sizeof(float);
    struct fl_net_memory memory = {.all = 0};
    struct fl_net *net = NULL;
    int rv;

    if (s->program.program.argv == NULL) {
        rv = fl_net_create(&server->net, (size_t)server->training->batch_size, &net, err);
        if (rv != FL_OK) {
            return rv;
        }
        memory = fl_net_memory(net);
        fl_net_free(net);
    }
    round = round < clients ? round : clients;
    if (s->n_attackers > 0 &&
        (fl_attack_effects(s->point->attackers.attack.kind) & FL_ATTACK_COLLUDES) != 0)
    {
        sent += 1; /* Attackers have a copy of each honest update. */
    }
    /* Per client of a round: its update and the copy that is sent; the server's vectors; an engine
       for each thread. */
    *ret =
        model * (round * (2 + 2 * sent) + 8) + clients * 2048 + threads * (memory.all + 4 * model);
    return FL_OK;
}

int setting_model(const struct setting *s, float **ret, struct fl_err *err)
{
    const struct fl_server_conf *server = s->point->server;
    float *theta;
    int rv;

    *ret = NULL;
    if (server->model->file[0] == '\0') {
        return FL_OK;
    }
    theta = malloc(fl_layout_count(server->layout) * sizeof(*theta));
    rv = theta != NULL ? fl_server_conf_model(server, theta, err) : FL_ENOMEM;
    if (rv != FL_OK) {
        free(theta);
        return rv;
    }
    *ret = theta;
    return FL_OK;
}

/* --- consistency checks --- */

/* What the clients would refuse. */
static int setting_check_summaries(const struct setting *s, struct fl_err *err)
{
    const struct fl_strategy *strategy = s->point->server->strategy;
    const struct fl_client_conf *client = s->point->client;
    const struct fl_worker_terms terms = {.summaries = true,
                                          .least_group = (uint64_t)client->main->least_group};
    struct fl_err why = {0};

    if (strategy->solver->summary == NULL) {
        return FL_OK;
    }
    if (!client->main->summaries) {
        return fl_conf_error(
            fl_conf_field(client->file, &client->main->summaries), err,
            "expected client.summaries: yes, as the solver '%s' needs clients to send "
            "means of their samples",
            strategy->solver->policy.name);
    }
    return fl_data_summary_allowed(&terms, strategy->solver, strategy->options[FL_COMPONENT_SOLVER],
                                   &why) == FL_OK
               ? FL_OK
               : fl_conf_error(fl_conf_field(client->file, &client->main->least_group), err, "%s",
                               why.msg);
}

/* A robust rule that trusts the server trains on some of its samples. */
static int setting_check_root(const struct setting *s, struct fl_err *err)
{
    const struct fl_server_conf *server = s->point->server;
    const struct fl_strategy *strategy = server->strategy;
    const struct fl_dataset *data = fl_sim_data_server(s->data);
    const struct fl_conf_node *node =
        fl_conf_get(fl_conf_get(fl_conf_file_map(server->file), "strategy"), "robust");
    const struct fl_robust_root_options *o;

    if (!fl_robust_trusts(strategy->robust)) {
        return FL_OK;
    }
    if (data == NULL) {
        return fl_conf_error(node, err,
                             "robust '%s' trains on the server, but the data has no test part",
                             strategy->robust->policy.name);
    }
    o = fl_options_values(strategy->options[FL_COMPONENT_ROBUST]);
    return (uint64_t)o->samples < data->n
               ? FL_OK
               : fl_conf_error(node, err,
                               "robust '%s' trains on %lld samples of the test part of the data, "
                               "which has %zu: set samples to less, so that some are left to "
                               "evaluate on",
                               strategy->robust->policy.name, (long long)o->samples, data->n);
}

/* The network of the built-in engine, and the samples that it reads. */
static int setting_check_network(const struct setting *s, struct fl_err *err)
{
    const struct fl_server_conf *server = s->point->server;
    const struct fl_dataset *samples = fl_sim_data_samples(s->data);
    const struct fl_conf_node *node = fl_conf_section(server->file, server->model);

    if (server->net.n_layers == 0) {
        return fl_conf_error(node, err,
                             "expected preset or layers: a model from a file has no layers, which "
                             "the built-in engine needs; a program of yours trains it with "
                             "client.trainer: command");
    }
    if (server->inputs != samples->dim) {
        return fl_conf_error(node, err,
                             "the network takes %zu inputs, a sample of the data has %zu values",
                             server->inputs, samples->dim);
    }
    if (server->values != samples->n_targets) {
        return fl_conf_error(node, err,
                             "the network predicts %zu values (0: a class), the data has %zu: "
                             "model.loss and the labels do not fit",
                             server->values, samples->n_targets);
    }
    if (server->classes < samples->classes) {
        return fl_conf_error(node, err, "the network has %zu classes, the data has %zu",
                             server->classes, samples->classes);
    }
    return FL_OK;
}

/* What a program cannot do: its samples are not ours. */
static int setting_check_program(const struct setting *s, struct fl_err *err)
{
    const struct fl_experiment_attackers *a = &s->point->attackers;
    char folder[FL_SIM_FOLDER];
    bool whole;

    if (s->n_attackers > 0 && (fl_attack_effects(a->attack.kind) & FL_ATTACK_POISONS) != 0) {
        return fl_conf_error(a->node, err,
                             "'%s' changes training samples, which are those of the program: "
                             "expected an attack on the update or on its figures",
                             fl_attack_names[a->attack.kind]);
    }
    if (fl_robust_trusts(s->point->server->strategy->robust)) {
        return fl_conf_error(fl_conf_section(s->point->server->file, s->point->server->model), err,
                             "robust '%s' trains on the server with the built-in engine: it cannot "
                             "be combined with client.trainer: command in a simulation",
                             s->point->server->strategy->robust->policy.name);
    }
    return fl_sim_data_conf_folder(s->data_conf, NULL, folder, sizeof(folder), &whole, err);
}

int setting_check(const struct setting *s, struct fl_err *err)
{
    const struct fl_server_conf *server;
    const struct fl_server_round *round;
    const int64_t *needs;
    float *first = NULL;
    bool start;
    size_t n;
    int rv;

    rv = s->program.program.argv != NULL ? setting_check_program(s, err)
                                         : setting_check_network(s, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = setting_model(s, &first, err);
    free(first);
    if (rv != FL_OK) {
        return rv;
    }
    /* Enough clients that a round can begin. */
    server = s->point->server;
    round = server->round;
    start = round->start_clients > round->min_clients;
    needs = start ? &round->start_clients : &round->min_clients;
    n = fl_sim_data_clients(s->data);
    rv = (uint64_t)*needs <= n
             ? FL_OK
             : fl_conf_error(fl_conf_field(server->file, needs), err,
                             "expected at most %zu, the number of clients in the data, found %lld",
                             n, (long long)*needs);
    if (rv != FL_OK) {
        return rv;
    }
    rv = setting_check_root(s, err);
    if (rv != FL_OK) {
        return rv;
    }
    return setting_check_summaries(s, err);
}
