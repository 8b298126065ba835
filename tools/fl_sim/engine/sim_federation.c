/*
 * A simulated federation (sim_federation.h): virtual clock, creation and end. One thread; the
 * clients' work has its own worker pool. The agenda of events is in sim_events.c.
 * Server work is in sim_server.c, clients in clients.c and sim_session.c, transfers in transfer.c.
 */
#include "tools/fl_sim/engine/sim_federation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/work/aggregation_program.h"
#include "server/work/evaluator.h"
#include "server/work/opening.h"
#include "tools/fl_sim/engine/poison.h"
#include "tools/fl_sim/engine/sim_federation_impl.h"

/* The run stops after so many aborted attempts at one round. */
#define ATTEMPTS_MAX 1000
/* It stops after so much time without a committed round, too: clients that come and go can keep the
   agenda full for ever, such as fewer than round.start_clients. */
#define WAIT_MAX_US (UINT64_C(365) * 24 * 3600 * 1000000)

/* --- the clock --- */

static void federation_dispatch(struct fl_fed *fed, struct fl_agenda_event *e)
{
    enum fl__fed_kind kind = (enum fl__fed_kind)(e->rank2 / FL__FED_GROUP);
    uint32_t client = e->rank1 * FL__FED_GROUP + e->rank2 % FL__FED_GROUP;

    switch (kind) {
    case FL__AT_MACHINE:
        fl__fed_machine(fed, client);
        break;
    case FL__AT_BACK:
        fl__fed_back(fed, client);
        break;
    case FL__AT_LINK:
        fl__transfer_link(fed, client);
        break;
    case FL__AT_MESSAGE: {
        struct fl__message *m = e->data;

        if (m->kind == FL__MSG_COMMAND) {
            fl__sim_session_receive(fed, m);
        } else {
            fl__fed_receive(fed, m);
        }
        fl__message_free(m);
        break;
    }
    default:
        fl__session_happens(fed, client, kind, (uint32_t)e->words[0]);
        break;
    }
}

static uint64_t federation_deadline_us(const struct fl_fed *fed)
{
    uint64_t due = fl_coord_deadline(fed->coord);

    return due > UINT64_MAX / 1000 ? UINT64_MAX : due * 1000;
}

/* Note the client that a phase waits for when its deadline passes now. */
static void federation_tick(struct fl_fed *fed)
{
    struct fl_event event = {.type = FL_EV_TICK};
    const char *missing[1] = {""};
    char why[256];
    size_t n = 0;

    fl_coord_why(fed->coord, fed->now_us / 1000, why, sizeof(why), missing, 1, &n);
    if (n > 0) {
        (void)snprintf(fed->account.missing, sizeof(fed->account.missing), "%s", missing[0]);
    }
    fl__push_progress(fed);
    fl__fed_step(fed, &event);
}

static void federation_stuck(struct fl_fed *fed)
{
    const char *missing[1];
    size_t n = 0;

    fl_coord_why(fed->coord, fed->now_us / 1000, fed->why, sizeof(fed->why), missing, 1, &n);
    fed->end = FL_FED_STUCK;
    fed->finished = true;
}

/* Order within one instant: agenda, then transfers, then deadlines. */
static void federation_next_event(struct fl_fed *fed)
{
    const struct fl_agenda_event *first = fl_agenda_peek(&fed->agenda);
    uint64_t event_us = first != NULL ? first->at : UINT64_MAX;
    uint64_t down_us = UINT64_MAX;
    uint64_t up_us = UINT64_MAX;
    uint64_t due_us = federation_deadline_us(fed);
    struct fl_agenda_event e;

    (void)fl_flows_next(fed->down, &down_us);
    (void)fl_flows_next(fed->up, &up_us);
    if (event_us != UINT64_MAX && event_us <= down_us && event_us <= up_us && event_us <= due_us) {
        (void)fl_agenda_pop(&fed->agenda, &e);
        fed->now_us = e.at > fed->now_us ? e.at : fed->now_us;
        federation_dispatch(fed, &e);
    } else if (down_us != UINT64_MAX && down_us <= up_us && down_us <= due_us) {
        fed->now_us = down_us > fed->now_us ? down_us : fed->now_us;
        fl__transfer_done(fed, /* up= */ false);
    } else if (up_us != UINT64_MAX && up_us <= due_us) {
        fed->now_us = up_us > fed->now_us ? up_us : fed->now_us;
        fl__transfer_done(fed, /* up= */ true);
    } else if (due_us != UINT64_MAX) {
        fed->now_us = due_us > fed->now_us ? due_us : fed->now_us;
        federation_tick(fed);
    } else {
        federation_stuck(fed);
    }
}

/* The coordinator has paused; no operator command will resume it. */
static void federation_check_pause(struct fl_fed *fed)
{
    if (fl_coord_phase(fed->coord) == FL_PHASE_PAUSED) {
        fed->end = FL_FED_DIVERGED;
        fed->finished = true;
    } else if (fed->account.sim.n_attempts > ATTEMPTS_MAX ||
               fed->now_us - fed->committed_us > WAIT_MAX_US)
    {
        federation_stuck(fed);
    }
}

int fl_fed_run(struct fl_fed *fed, enum fl_fed_end *ret, struct fl_err *err)
{
    struct fl_event start = {.type = FL_EV_START};

    FL_REQUIRE(!fed->begun);
    fed->begun = true;
    fed->committed_us = fed->now_us;
    fl__fed_step(fed, &start);
    if (!fed->finished) {
        fl__fed_begin_clients(fed);
    }
    while (fed->code == FL_OK && !fed->finished) {
        federation_next_event(fed);
        federation_check_pause(fed);
    }
    if (fed->code != FL_OK) {
        return fl_err_set(err, fed->code, "%s", fl_err_text(&fed->err, fed->code));
    }
    *ret = fed->end;
    return FL_OK;
}

const char *fl_fed_why(const struct fl_fed *fed)
{
    return fed->why;
}

/* --- create and free --- */

static int federation_initial_model(void *ctx, float *theta, struct fl_err *err)
{
    const struct fl_fed *fed = ctx;

    if (fed->conf.first_model != NULL) {
        (void)memcpy(theta, fed->conf.first_model,
                     fl_layout_count(fed->conf.coord.layout) * sizeof(*theta));
        return FL_OK;
    }
    return fl_net_draw(&fed->conf.net,
                       fl_opening_seed(fed->conf.coord.strategy, fed->conf.coord.seed), theta,
                       fl_layout_count(fed->conf.coord.layout), err);
}

/* The server trains on some of its samples, and evaluates on the others. */
static int federation_open_root(struct fl_fed *fed, struct fl_err *err)
{
    const struct fl_wire_training *training = &fed->conf.training;
    const struct fl_root_conf conf = {.data = fed->conf.test,
                                      .net = &fed->conf.net,
                                      .strategy = fed->conf.coord.strategy,
                                      .space = fed->conf.space,
                                      .epochs = training->epochs,
                                      .steps = training->steps,
                                      .batch_size = training->batch_size,
                                      .momentum = training->momentum,
                                      .weight_decay = training->weight_decay,
                                      .seed = fed->conf.coord.seed};
    int rv;

    if (!fl_robust_trusts(conf.strategy->robust) || fed->conf.dry) {
        return FL_OK;
    }
    if (conf.data == NULL) {
        return fl_err_set(err, FL_ECONF,
                          "robust '%s' trains on the server, and the data has no test part",
                          conf.strategy->robust->policy.name);
    }
    rv = fl_root_create(&conf, &fed->federation.root, err);
    if (rv != FL_OK) {
        return rv;
    }
    fed->conf.test = fl_root_rest(fed->federation.root);
    return FL_OK;
}

/* The program of the aggregate. */
static int federation_open_aggregate(struct fl_fed *fed, struct fl_err *err)
{
    const struct fl_strategy *s = fed->conf.coord.strategy;
    const struct fl_aggregation_program_conf conf = {
        .strategy = s,
        .layout = fl_space_updates(fed->conf.space, fed->conf.coord.layout),
        .net = &fed->conf.net,
        .federation = fed->conf.name,
        .log = fed->conf.log};

    return s->aggregate->program != NULL && !fed->conf.dry
               ? fl_aggregation_program_create(&conf, &fed->federation.program, err)
               : FL_OK;
}

static int federation_open_server(struct fl_fed *fed, struct fl_err *err)
{
    struct fl_settings components = {.n = 0};
    const struct fl_settings *settings =
        fed->conf.settings != NULL ? fed->conf.settings : &components;
    const struct fl_opening opening = {.name = fed->conf.name,
                                       .durability = FL_DURABLE_SCRATCH,
                                       .settings = settings,
                                       .first_model = federation_initial_model,
                                       .ctx = fed};
    int rv = fl_uploads_create(&fed->uploads);

    if (rv != FL_OK) {
        goto done;
    }
    fed->federation = (struct fl_federation){.layout = fed->conf.coord.layout,
                                             .space = fed->conf.space,
                                             .strategy = fed->conf.coord.strategy,
                                             .state_dir = fed->server_dir,
                                             .log = fed->conf.log,
                                             .momentum = fed->conf.training.momentum,
                                             .seed = fed->conf.coord.seed,
                                             .retention = fed->conf.retention,
                                             .summary_max = fed->conf.summary_max,
                                             .summary_range = fed->conf.summary_range,
                                             .inputs = fed->conf.inputs,
                                             .classes = fed->conf.classes,
                                             .norm_bound = fed->conf.norm_bound,
                                             .norm_clip = fed->conf.norm_clip,
                                             .share_cap = fed->conf.share_cap,
                                             .uploads = fed->uploads};
    rv = federation_open_root(fed, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = federation_open_aggregate(fed, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_mkdirs(fed->server_dir, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_lock_dir(fed->server_dir, &fed->lock_fd, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_settings_add_strategy(&components, fed->conf.coord.strategy);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_opening_run(&fed->federation, &opening, &fed->progress, &fed->resume, err);
done:
    fl_settings_done(&components);
    return rv;
}

/* With a journal the coordinator starts from round 1: its past is replayed. */
static int federation_open_coordinator(struct fl_fed *fed, struct fl_err *err)
{
    const struct fl_coord_resume nothing = {.committed = 0};
    bool replays = fed->conf.journal != NULL;
    int rv;

    if (replays) {
        rv = fl_journal_open(fed->conf.journal, fed->resume.committed, &fed->journal, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl_coord_create(&fed->conf.coord, replays ? &nothing : &fed->resume, &fed->coord, err);
    if (rv != FL_OK) {
        return rv;
    }
    fed->phase = fl_coord_phase(fed->coord);
    fed->shell = (struct fl_coord_shell){.ops = &fl__fed_ops,
                                         .ctx = fed,
                                         .coord = fed->coord,
                                         .conf = &fed->conf.coord,
                                         .federation = &fed->federation,
                                         .progress = &fed->progress,
                                         .log = fed->conf.log};
    return FL_OK;
}

static int federation_describe(struct fl_fed *fed, struct fl_err *err)
{
    const struct fl_described of = {
        .federation = fed->conf.name,
        .strategy = fed->conf.coord.strategy,
        .layout = fed->conf.coord.layout,
        .net = &fed->conf.net,
        .generation = &fed->federation.generation,
        .model_seed = fed->conf.first_model == NULL
                          ? fl_opening_seed(fed->conf.coord.strategy, fed->conf.coord.seed)
                          : 0,
        .metrics = fed->conf.metrics,
        .training = fed->conf.training};
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    int rv = fl_member_setup(&of, &fed->setup, err);

    if (rv != FL_OK) {
        return rv;
    }
    command.u.welcome = fed->setup->welcome; /* The model is lent to the network. */
    rv = fl_wire_command_encode(&command, &fed->scratch);
    if (rv != FL_OK) {
        return rv;
    }
    fed->welcome_bytes = fed->scratch.len;
    return FL_OK;
}

/* Memory of a client: network, optimiser and batch, which of a program are not known; the received
   model, and the update. */
static int federation_measure_training(struct fl_fed *fed, struct fl_err *err)
{
    uint64_t model = fl_layout_count(fed->conf.coord.layout) * sizeof(float);
    struct fl_net_memory memory;
    struct fl_net *net = NULL;
    int rv;

    fed->training_bytes = 3 * model;
    fed->classes = fed->conf.classes;
    if (fed->conf.net.n_layers == 0) {
        return FL_OK;
    }
    rv = fl_net_create(&fed->conf.net, fed->conf.training.batch_size, &net, err);
    if (rv != FL_OK) {
        return rv;
    }
    memory = fl_net_memory(net);
    fed->training_bytes = memory.all + 3 * model;
    fed->classes = fl_net_classes(net);
    fl_net_free(net);
    return FL_OK;
}

static int federation_open_pool(struct fl_fed *fed, struct fl_err *err)
{
    const struct fl_worker_pool_conf conf = {.threads = fed->conf.threads,
                                             .ranks = fed->conf.ranks,
                                             .sim_clients = fed->conf.sim_clients,
                                             .federation = &fed->federation,
                                             .setup = fed->setup,
                                             .dir = fed->clients_dir,
                                             .dry = fed->conf.dry,
                                             .classes = fed->classes,
                                             .seed = fed->conf.coord.seed,
                                             .kernels = fed->conf.net.kernels,
                                             .log = fed->conf.log};
    int rv = fl_worker_pool_create(&conf, &fed->pool, err);

    if (rv != FL_OK) {
        return rv;
    }
    return FL_OK;
}

/* Does a client put a backdoor into the model? */
static bool federation_has_backdoor(const struct fl_fed *fed)
{
    const struct fl_sim_clients *all = fed->conf.sim_clients;
    struct fl_sim_client client;
    size_t i;

    for (i = 0; i < all->n; i++) {
        all->sim_client(all->ctx, i, &client);
        if (client.attack != NULL && client.attack->kind == FL_ATTACK_KIND_BACKDOOR) {
            return true;
        }
    }
    return false;
}

/* The server has a program of its own, which evaluates on the test part of the data. */
static int federation_open_program(struct fl_fed *fed, struct fl_err *err)
{
    const struct fl_command_conf *program = fed->conf.sim_clients->program;
    const struct fl_dataset *test = fed->conf.test;
    struct fl_persistent_client server = {.name = NULL};
    struct fl_evaluator_program conf = {.argv = program->program.argv,
                                        .environment = program->program.environment,
                                        .federation = fed->conf.name,
                                        .layout = fed->conf.coord.layout,
                                        .net = &fed->conf.net,
                                        .limit_ms = program->time_limit_ms,
                                        .start_limit_ms = program->program.start_limit_ms,
                                        .memory_bytes = program->program.memory_bytes,
                                        .log = fed->conf.log,
                                        .acts_for = &server};

    if (fed->conf.test_folder[0] != '\0') {
        conf.data = server.data = fed->conf.test_folder;
        if (!fed->conf.test_whole) {
            server.test = test->items; /* NULL: the whole test part */
            server.n_test = test->of != NULL ? test->n : 0;
        }
    }
    return fl_evaluator_program(&conf, &fed->evaluator, err);
}

static int federation_open_evaluation(struct fl_fed *fed, struct fl_err *err)
{
    int rv;

    if (fed->conf.test == NULL || fed->conf.dry) {
        return FL_OK;
    }
    if (fed->conf.sim_clients->program != NULL) {
        return federation_open_program(fed, err);
    }
    rv = fl_net_create_evaluator(&fed->conf.net, &fed->net, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (fed->conf.metrics != 0) {
        rv = fl_net_metrics_create(fed->conf.metrics,
                                   fl_net_output_of(fed->conf.net.layers, fed->conf.net.n_layers),
                                   fl_net_classes(fed->net), fed->conf.test->n, &fed->metrics, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return federation_has_backdoor(fed) ? fl_poison_triggered(fed->conf.test, &fed->triggered, err)
                                        : FL_OK;
}

static int federation_open_links(struct fl_fed *fed, struct fl_err *err)
{
    struct fl_world_server link = {0};
    size_t i;
    int rv;

    (void)err;
    if (fed->conf.world != NULL) {
        link = fl_world_server(fed->conf.world);
    }
    fed->unlimited_down = !(link.up > 0);
    fed->unlimited_up = !(link.down > 0);
    rv = fl_flows_create(link.up, &fed->down);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_flows_create(link.down, &fed->up);
    if (rv != FL_OK) {
        return rv;
    }
    fed->clients = calloc(fed->conf.sim_clients->n + 1, sizeof(*fed->clients));
    if (fed->clients == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < fed->conf.sim_clients->n; i++) {
        struct fl_world_client client = {0};

        if (fed->conf.world != NULL) {
            fl_world_client(fed->conf.world, i, &client);
        }
        fed->clients[i].number = UINT32_MAX;
        fed->clients[i].holds = fed->setup->welcome.model_seed != 0;
        fed->clients[i].latency_us = client.latency_us;
    }
    return FL_OK;
}

static int federation_make_paths(struct fl_fed *fed, struct fl_err *err)
{
    const char *dir = fed->conf.dir;

    if (fl_fs_join(fed->server_dir, sizeof(fed->server_dir), dir, "server") != FL_OK ||
        fl_fs_join(fed->clients_dir, sizeof(fed->clients_dir), dir, "clients") != FL_OK)
    {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    return FL_OK;
}

int fl_fed_create(const struct fl_fed_conf *conf, struct fl_fed **ret, struct fl_err *err)
{
    static int (*const steps[])(struct fl_fed *, struct fl_err *) = {
        federation_make_paths,      federation_open_server,      federation_open_coordinator,
        federation_describe,        federation_measure_training, federation_open_pool,
        federation_open_evaluation, federation_open_links};
    struct fl_fed *fed = calloc(1, sizeof(*fed));
    size_t i;
    int rv;

    if (fed == NULL) {
        return FL_ENOMEM;
    }
    FL_REQUIRE(!conf->coord.evaluate_server || conf->test != NULL);
    fed->conf = *conf;
    fed->lock_fd = -1;
    fed->joining = UINT32_MAX;
    fl_buf_init(&fed->scratch, SIZE_MAX / 2);
    fl_sim_account_begin(&fed->account, 0);
    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        rv = steps[i](fed, err);
        if (rv != FL_OK) {
            fl_fed_free(fed);
            return rv;
        }
    }
    *ret = fed;
    return FL_OK;
}

static void federation_free_clients(struct fl_fed *fed)
{
    struct fl_agenda_event e;
    size_t i;

    for (i = 0; fed->clients != NULL && i < fed->conf.sim_clients->n; i++) {
        if (fed->clients[i].active != NULL) {
            fl__active_free(fed, fed->clients[i].active);
        }
    }
    while (fl_agenda_pop(&fed->agenda, &e)) {
        if (e.rank2 / FL__FED_GROUP == FL__AT_MESSAGE) {
            fl__message_free(e.data);
        }
    }
    fl_agenda_done(&fed->agenda);
    free(fed->clients);
    free(fed->by_number);
}

void fl_fed_free(struct fl_fed *fed)
{
    if (fed == NULL) {
        return;
    }
    for (; fed->first < fed->n_queue; fed->first++) {
        fl_coord_job_free(fed->queue[fed->first].job);
    }
    free(fed->queue);
    federation_free_clients(fed);
    fl_flows_free(fed->up);
    fl_flows_free(fed->down);
    fl_model_cache_unref(fed->model_cache);
    fl_worker_pool_free(fed->pool);
    fl_sim_account_done(&fed->account);
    fl__collusion_end(fed);
    fl_buf_done(&fed->scratch);
    fl_journal_close(fed->journal);
    fl_net_free(fed->net);
    fl_evaluator_free(fed->evaluator);
    fl_net_metrics_free(fed->metrics);
    fl_dataset_free(fed->triggered);
    fl_coord_free(fed->coord);
    fl_progress_done(&fed->progress);
    fl_store_resume_done(&fed->resume);
    fl_store_close(fed->federation.store);
    fl_root_free(fed->federation.root);
    fl_aggregation_program_free(fed->federation.program);
    fl_uploads_free(fed->uploads);
    fl_setup_unref(fed->setup);
    if (fed->lock_fd >= 0) {
        (void)close(fed->lock_fd);
    }
    free(fed);
}
