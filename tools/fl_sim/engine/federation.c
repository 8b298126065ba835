#include "tools/fl_sim/engine/federation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/work/offer.h"
#include "libfl/base/fs.h"
#include "server/work/offers.h"
#include "server/work/opening.h"
#include "tools/fl_sim/engine/federation_impl.h"

/* --- events under way --- */

int fl__fed_grow(void **list, size_t n, size_t *cap, size_t size)
{
    size_t more = *cap == 0 ? 64 : *cap * 2;
    void *grown;

    if (n < *cap) {
        return FL_OK;
    }
    grown = realloc(*list, more * size);
    if (grown == NULL) {
        return FL_ENOMEM;
    }
    *list = grown;
    *cap = more;
    return FL_OK;
}

void fl__fed_fail(struct fl_fed *fed, int code, const struct fl_err *err, const char *what)
{
    if (fed->code == FL_OK) {
        fed->code = fl_err_set(&fed->err, code, "%s: %s", what, fl_err_text(err, code));
    }
}

struct fl__fed_event *fl__fed_event(struct fl_fed *fed, enum fl_event_type type)
{
    void *list = fed->queue;
    struct fl__fed_event *e;

    if (fed->first > 0 && fed->first == fed->n_queue) { /* All were taken: begin anew. */
        fed->first = fed->n_queue = 0;
    }
    if (fl__fed_grow(&list, fed->n_queue, &fed->cap_queue, sizeof(*fed->queue)) != FL_OK) {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "the events under way");
        return NULL;
    }
    fed->queue = list;
    e = &fed->queue[fed->n_queue++];
    *e = (struct fl__fed_event){.event = {.type = type}};
    return e;
}

static void event_done(struct fl__fed_event *e)
{
    fl_result_unref(e->result);
    free(e->distance);
}

/* --- effects --- */

static size_t client_of(const struct fl_fed *fed, uint32_t number)
{
    size_t i = 0;

    while (i < fed->n_clients && fed->clients[i]->number != number) {
        i++;
    }
    return i;
}

static void tell_client(struct fl_fed *fed, const struct fl_effect *e)
{
    size_t i = client_of(fed, e->client);
    const struct fl_round_key key = {e->round, e->attempt};

    if (i == fed->n_clients) {
        return;
    }
    switch (e->type) {
    case FL_EFF_TASK:
        fl__fed_task(fed, i, e);
        break;
    case FL_EFF_PLAN:
        fl__fed_push(fed, i, e);
        break;
    case FL_EFF_EVALUATE_CLIENT:
        fl__fed_evaluate(fed, i, e);
        break;
    default: /* Accepted, rejected, dismissed: it is of no more use. */
        fl_held_drop(&fed->clients[i]->member.held, key);
        break;
    }
}

static void release(struct fl_fed *fed, const struct fl_effect *e)
{
    struct fl__fed_event *answer = fl__fed_event(fed, FL_EV_RELEASED);
    size_t i = client_of(fed, e->client);

    if (i < fed->n_clients) {
        fed->clients[i]->number = UINT32_MAX;
    }
    if (answer != NULL) {
        answer->event.u.client = e->client;
    }
}

static void admit(struct fl_fed *fed, const struct fl_effect *e)
{
    if (fed->joining == NULL) {
        return;
    }
    fed->joining->number = e->client;
    if (e->client == UINT32_MAX) {
        fl__fed_fail(fed, FL_ESTATE, NULL, e->text != NULL ? e->text : "a client is not admitted");
    }
}

static void close_round(struct fl_fed *fed)
{
    struct fl_err err = {0};
    int rv = fl_spool_clean(fed->server_dir, 0, 0, &err);

    fl__fed_close_round(fed);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, &err, "uploads that are over");
    }
}

static void carry_out(struct fl_fed *fed, const struct fl_effect *e)
{
    switch (e->type) {
    case FL_EFF_TASK:
    case FL_EFF_PLAN:
    case FL_EFF_ACCEPTED:
    case FL_EFF_REJECTED:
    case FL_EFF_DISMISSED:
    case FL_EFF_EVALUATE_CLIENT:
        tell_client(fed, e);
        break;
    case FL_EFF_CLIENT_ID:
        admit(fed, e);
        break;
    case FL_EFF_RELEASE:
        release(fed, e);
        break;
    case FL_EFF_FORGET_CLIENTS:
    case FL_EFF_PERSIST_PAUSE:
    case FL_EFF_PERSIST_SELECTION:
    case FL_EFF_PERSIST_PLAN:
    case FL_EFF_PERSIST_UPDATE:
        fl__fed_persist(fed, e);
        break;
    case FL_EFF_AGGREGATE:
        fl__fed_aggregate(fed, e);
        break;
    case FL_EFF_COMMIT:
        fl__fed_commit(fed, e);
        break;
    case FL_EFF_ROUND_OPEN:
        fl__fed_open_round(fed, e);
        break;
    case FL_EFF_ROUND_CLOSED:
        close_round(fed);
        break;
    case FL_EFF_FINISHED:
        fed->finished = true;
        break;
    case FL_EFF_TRACE:
        fl_log(fed->conf.log, e->warning ? FL_LOG_WARNING : FL_LOG_DEBUG, "round", "%s", e->text);
        break;
    case FL_EFF_EVALUATE: /* There is no test set. */
    case FL_EFF_STOPPED:  /* There is no operator. */
    case FL_EFF_ANSWER:
    case FL_EFF_FORGOTTEN:
    case FL_EFF_DRAIN_CLIENTS:
    case FL_EFF_CLIENT_ERROR:
        break;
    }
}

static int step(struct fl_fed *fed, struct fl_event *event)
{
    struct fl_effects effects = {0};
    size_t i;
    int rv;

    event->now_ms = ++fed->now_ms;
    event->wall_ms = event->now_ms;
    rv = fl_coord_step(fed->coord, event, &effects);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, NULL, "the coordinator cannot go on");
    }
    for (i = 0; fed->code == FL_OK && i < effects.n; i++) {
        carry_out(fed, &effects.list[i]);
    }
    return fed->code;
}

/* --- the run --- */

/* As the server collects it of who joins, before the first round. */
static int offer(struct fl_fed *fed, struct fl__fed_client *c)
{
    struct fl_err err = {0};
    struct fl_offer made;
    int rv;

    if (!fl_offering_waits(&fed->federation, &fed->progress, c->name)) {
        return FL_OK;
    }
    rv = fl_offer_make(&c->member.worker, &made);
    if (rv == FL_OK) {
        rv = fl_offering_take(&fed->federation, c->name, made.data.data, made.data.len, &err);
    }
    fl_offer_done(&made);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, &err, c->name);
    }
    return rv;
}

static int join(struct fl_fed *fed, struct fl__fed_client *c)
{
    struct fl_event event = {.type = FL_EV_CLIENT_JOINED};
    int rv = offer(fed, c);

    if (rv == FL_OK) {
        event.u.joined.name = c->name;
        event.u.joined.agent = "fl-sim";
        event.u.joined.samples = c->samples;
        event.u.joined.evaluation_samples = c->evaluation_samples;
        fed->joining = c;
        rv = step(fed, &event);
        fed->joining = NULL;
    }
    return rv;
}

/* Nothing is under way: time passes. */
static int pass_time(struct fl_fed *fed)
{
    uint64_t due = fl_coord_deadline(fed->coord);
    struct fl_event tick = {.type = FL_EV_TICK};
    const char *missing[1];
    char why[256];
    size_t n = 0;

    if (due == UINT64_MAX) {
        fl_coord_why(fed->coord, fed->now_ms, why, sizeof(why), missing, 1, &n);
        fl__fed_fail(fed, FL_ESTATE, NULL, why);
        return fed->code;
    }
    fed->now_ms = due > fed->now_ms ? due : fed->now_ms;
    return step(fed, &tick);
}

static int take_next(struct fl_fed *fed)
{
    struct fl__fed_event e = fed->queue[fed->first++];
    int rv;

    switch (e.event.type) {
    case FL_EV_WORK_FAILED:
        e.event.u.failed_work.reason = e.err.msg;
        break;
    case FL_EV_CLIENT_FAILED:
        e.event.u.failed.reason = e.err.msg;
        break;
    case FL_EV_UPLOAD_INVALID:
        e.event.u.upload.reason = e.err.msg;
        break;
    default:
        break;
    }
    rv = step(fed, &e.event);
    event_done(&e);
    return rv;
}

int fl_fed_run(struct fl_fed *fed, struct fl_err *err)
{
    struct fl_event start = {.type = FL_EV_START};
    int rv = step(fed, &start);
    size_t i;

    for (i = 0; rv == FL_OK && i < fed->n_clients; i++) {
        rv = join(fed, fed->clients[i]);
    }
    while (rv == FL_OK && !fed->finished) {
        rv = fed->first < fed->n_queue ? take_next(fed) : pass_time(fed);
    }
    return rv == FL_OK ? rv : fl_err_set(err, rv, "%s", fl_err_text(&fed->err, rv));
}

/* --- life --- */

static int first_model(void *ctx, float *theta, struct fl_err *err)
{
    const struct fl_fed *fed = ctx;

    return fl_opening_draw(&fed->conf.net, fed->conf.coord.seed, theta, err);
}

static int open_server(struct fl_fed *fed, struct fl_err *err)
{
    struct fl_settings settings = {.n = 0};
    const struct fl_opening opening = {.name = fed->conf.name,
                                       .durability = FL_DURABLE_PROCESS,
                                       .settings = &settings,
                                       .first_model = first_model,
                                       .ctx = fed};
    int rv = fl_fs_mkdirs(fed->server_dir, err);

    fed->federation = (struct fl_federation){.layout = fed->conf.coord.layout,
                                             .strategy = fed->conf.coord.strategy,
                                             .state_dir = fed->server_dir,
                                             .log = fed->conf.log,
                                             .momentum = fed->conf.training.momentum,
                                             .retention = {.keep = 1},
                                             .offer_max = fed->conf.offer_max,
                                             .inputs = fed->conf.inputs,
                                             .classes = fed->conf.classes};
    rv = rv == FL_OK ? fl_fs_lock_dir(fed->server_dir, &fed->lock_fd, err) : rv;
    rv = rv == FL_OK ? fl_settings_add_strategy(&settings, fed->conf.coord.strategy) : rv;
    if (rv == FL_OK) {
        rv = fl_opening_run(&fed->federation, &opening, &fed->progress, &fed->resume, err);
    }
    fl_settings_done(&settings);
    return rv == FL_OK ? fl_coord_create(&fed->conf.coord, &fed->resume, &fed->coord, err) : rv;
}

static int describe(struct fl_fed *fed, struct fl_err *err)
{
    const struct fl_described of = {.federation = fed->conf.name,
                                    .strategy = fed->conf.coord.strategy,
                                    .layout = fed->conf.coord.layout,
                                    .net = &fed->conf.net,
                                    .line = &fed->federation.line,
                                    .training = fed->conf.training};

    return fl_member_setup(&of, &fed->setup, err);
}

int fl_fed_create(const struct fl_fed_conf *conf, struct fl_fed **ret, struct fl_err *err)
{
    struct fl_fed *fed = calloc(1, sizeof(*fed));
    int rv;

    if (fed == NULL) {
        return FL_ENOMEM;
    }
    FL_REQUIRE(!conf->coord.evaluate_server);
    fed->conf = *conf;
    fed->lock_fd = -1;
    rv = fl_fs_join(fed->server_dir, sizeof(fed->server_dir), conf->dir, "server") == FL_OK
             ? open_server(fed, err)
             : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", conf->dir);
    rv = rv == FL_OK ? describe(fed, err) : rv;
    if (rv != FL_OK) {
        fl_fed_free(fed);
        return rv;
    }
    *ret = fed;
    return FL_OK;
}

void fl_fed_free(struct fl_fed *fed)
{
    size_t i;

    if (fed == NULL) {
        return;
    }
    for (i = fed->first; i < fed->n_queue; i++) {
        event_done(&fed->queue[i]);
    }
    free(fed->queue);
    for (i = 0; i < fed->n_clients; i++) {
        fl_member_close(&fed->clients[i]->member);
        free(fed->clients[i]);
    }
    free(fed->clients);
    fl__fed_close_round(fed);
    free(fed->bundles);
    fl_coord_free(fed->coord);
    fl_progress_done(&fed->progress);
    fl_store_resume_done(&fed->resume);
    fl_store_close(fed->federation.store);
    fl_setup_unref(fed->setup);
    if (fed->lock_fd >= 0) {
        (void)close(fed->lock_fd);
    }
    free(fed);
}

/* The process of a client begins in its folder. */
static int open_member(struct fl_fed *fed, const char *name, struct fl_trainer *trainer,
                       uint64_t seed, struct fl_member *ret, struct fl_err *err)
{
    char dir[512];
    int n = snprintf(dir, sizeof(dir), "%s/clients/%s", fed->conf.dir, name);
    int rv = !fl_name_valid(name) ? fl_err_set(err, FL_EINVAL, "'%s' is no name of a client", name)
             : n < 0 || (size_t)n >= sizeof(dir)
                 ? fl_err_set(err, FL_ELIMIT, "path '%s' is too long", fed->conf.dir)
                 : fl_fs_mkdirs(dir, err);

    if (rv != FL_OK) {
        fl_trainer_free(trainer);
        return rv;
    }
    rv = fl_member_open(ret, dir, trainer, fed->conf.log, seed, err);
    rv = rv == FL_OK ? fl_worker_prepare(&ret->worker, fed->setup, err) : rv;
    if (rv == FL_OK && fl_member_unfit(ret) != NULL) {
        fl_held_drop(&ret->held, ret->held.result->key);
    }
    return rv;
}

int fl_fed_add(struct fl_fed *fed, const char *name, struct fl_trainer *trainer, uint64_t samples,
               uint64_t evaluation_samples, uint64_t seed, struct fl_err *err)
{
    struct fl__fed_client *c = calloc(1, sizeof(*c));
    void *list = fed->clients;
    int rv = c != NULL
                 ? fl__fed_grow(&list, fed->n_clients, &fed->cap_clients, sizeof(*fed->clients))
                 : FL_ENOMEM;

    fed->clients = list;
    if (rv != FL_OK) {
        free(c);
        fl_trainer_free(trainer);
        return rv;
    }
    c->samples = samples;
    c->evaluation_samples = evaluation_samples;
    c->number = UINT32_MAX;
    rv = open_member(fed, name, trainer, seed, &c->member, err);
    rv = rv == FL_OK ? fl_str_copy(c->name, sizeof(c->name), name) : rv;
    if (rv != FL_OK) {
        fl_member_close(&c->member);
        free(c);
        return rv;
    }
    fed->clients[fed->n_clients++] = c;
    return FL_OK;
}
