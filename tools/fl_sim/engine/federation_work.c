/* What the two sides of a federation in one process do, by the work rooms of the daemons. */

#include <stdlib.h>
#include <string.h>

#include "client/work/evaluation.h"
#include "server/work/aggregation.h"
#include "server/work/persist.h"
#include "tools/fl_sim/engine/federation_impl.h"

/* --- the server --- */

/* As the coordinator hears of work that failed: it judges whose fault it is. */
static void failed(struct fl_fed *fed, uint64_t seq, int code, const struct fl_err *err,
                   uint32_t client)
{
    struct fl__fed_event *answer = fl__fed_event(fed, FL_EV_WORK_FAILED);

    if (answer != NULL) {
        (void)fl_err_set(&answer->err, code, "%s", fl_err_text(err, code));
        answer->event.u.failed_work.seq = seq;
        answer->event.u.failed_work.code = code;
        answer->event.u.failed_work.client = client;
    }
}

static void done(struct fl_fed *fed, enum fl_event_type type, uint64_t seq, int rv,
                 const struct fl_err *err)
{
    struct fl__fed_event *answer;

    if (rv != FL_OK) {
        failed(fed, seq, rv, err, FL_NO_CLIENT);
        return;
    }
    answer = fl__fed_event(fed, type);
    if (answer != NULL) {
        answer->event.u.seq = seq;
    }
}

void fl__fed_persist(struct fl_fed *fed, const struct fl_effect *e)
{
    bool offers = fl_offering_wanted(&fed->federation, &fed->progress);
    struct fl_offered offered = {.file = NULL};
    struct fl_err err = {0};
    int rv = fl_persist_run(&fed->federation, e, offers ? &offered : NULL, &err);

    fl_progress_offered(&fed->progress, &offered);
    fl_file_unref(offered.file);
    done(fed, FL_EV_PERSISTED, e->seq, rv, &err);
}

static void aggregated(struct fl_fed *fed, const struct fl_effect *e, struct fl_aggregation *a)
{
    struct fl__fed_event *answer = fl__fed_event(fed, FL_EV_AGGREGATED);

    if (answer != NULL) {
        answer->event = fl_aggregation_take(a, &fed->progress);
        answer->event.u.aggregated.seq = e->seq;
        answer->distance = a->distance;
        a->distance = NULL;
    }
}

void fl__fed_aggregate(struct fl_fed *fed, const struct fl_effect *e)
{
    struct fl_client_rec *clients = calloc(e->n_parts + 1, sizeof(*clients));
    struct fl_aggregation a = fl_aggregation_of(
        e, clients, fl_coord_learning_rate(&fed->conf.coord, e->round), &fed->progress);
    struct fl_err err = {0};
    size_t i;
    int rv = FL_ENOMEM;

    if (clients != NULL) {
        for (i = 0; i < e->n_parts; i++) {
            clients[i] = *fl_coord_part_client(fed->coord, e->parts[i].client);
        }
        rv = fl_aggregation_run(&fed->federation, &a, &err);
    }
    if (rv == FL_OK) {
        aggregated(fed, e, &a);
    } else {
        failed(fed, e->seq, rv, &err, a.bad_client);
    }
    fl_aggregation_done(&a);
    free(clients);
}

void fl__fed_commit(struct fl_fed *fed, const struct fl_effect *e)
{
    const struct fl_commit commit = {.progress = &fed->progress,
                                     .record = e->record,
                                     .clients = e->clients,
                                     .n_clients = e->n_clients,
                                     .wall_ms = fed->now_ms};
    struct fl_err err = {0};
    int rv = fl_commit_run(&fed->federation, &commit, &err);

    if (rv == FL_OK) {
        fl_progress_committed(&fed->progress, e->record);
        if (fed->conf.watch.committed != NULL) {
            fed->conf.watch.committed(fed->conf.watch.ctx, e->record);
        }
    }
    done(fed, FL_EV_COMMITTED, e->seq, rv, &err);
}

/* --- what may be fetched in the open round --- */

static int take_bytes(const struct fl_bytes *bytes, struct fl__fed_bundle *ret)
{
    ret->len = (size_t)fl_bytes_len(bytes);
    ret->data = malloc(ret->len + 1);
    if (ret->data == NULL) {
        return FL_ENOMEM;
    }
    if (bytes->file != NULL) {
        return fl_file_read(bytes->file, 0, ret->data, ret->len);
    }
    (void)memcpy(ret->data, fl_blob_data(bytes->blob), ret->len);
    return FL_OK;
}

static void take_bundle(void *ctx, const struct fl_bundle *bundle)
{
    struct fl_fed *fed = ctx;
    void *list = fed->bundles;
    struct fl__fed_bundle *b;
    int rv = fl__fed_grow(&list, fed->n_bundles, &fed->cap_bundles, sizeof(*fed->bundles));

    fed->bundles = list;
    if (rv == FL_OK) {
        b = &fed->bundles[fed->n_bundles++];
        *b = (struct fl__fed_bundle){.has_digest = bundle->digest != NULL};
        rv = take_bytes(&bundle->bytes, b);
        rv = rv == FL_OK ? fl_str_copy(b->name, sizeof(b->name), bundle->name) : rv;
        rv = rv == FL_OK && bundle->client != NULL
                 ? fl_str_copy(b->client, sizeof(b->client), bundle->client)
                 : rv;
    }
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, NULL, bundle->name);
    }
}

void fl__fed_open_round(struct fl_fed *fed, const struct fl_effect *e)
{
    int rv;

    fl__fed_close_round(fed);
    rv = fl_bundles_open(&fed->federation, &fed->progress, e->size.members, take_bundle, fed);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, NULL, "what clients fetch");
    }
}

void fl__fed_close_round(struct fl_fed *fed)
{
    while (fed->n_bundles > 0) {
        free(fed->bundles[--fed->n_bundles].data);
    }
}

/* --- a client --- */

/* The open round's bundles that this client may fetch; returns how many. */
static size_t list_bundles(const struct fl_fed *fed, const struct fl__fed_client *c,
                           struct fl_member_bundle list[FL_BUNDLES_MAX])
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < fed->n_bundles && n < FL_BUNDLES_MAX; i++) {
        const struct fl__fed_bundle *b = &fed->bundles[i];

        if (b->client[0] == '\0' || strcmp(b->client, c->name) == 0) {
            list[n++] = (struct fl_member_bundle){b->name, b->data, b->len, b->has_digest};
        }
    }
    return n;
}

static int train(struct fl_fed *fed, struct fl__fed_client *c, const struct fl_effect *e,
                 struct fl_err *err)
{
    struct fl_member_bundle list[FL_BUNDLES_MAX];
    const struct fl_task task = {.key = {e->round, e->attempt},
                                 .counted = {e->counted_round, e->counted_attempt},
                                 .learning_rate = e->learning_rate,
                                 .seed = e->client_seed,
                                 .order_seed = e->order_seed,
                                 .deadline_ms = e->deadline_ms,
                                 .n_selected = e->size.selected,
                                 .population = e->size.population};
    int rv = fl_member_fetch(&c->member, &task, list, list_bundles(fed, c, list), err);

    return rv == FL_OK ? fl_member_train(&c->member, err) : rv;
}

static struct fl_eval_rec eval_rec(bool has, const struct fl_result_evaluation *e)
{
    return has ? (struct fl_eval_rec){e->samples, e->correct, e->loss_sum}
               : (struct fl_eval_rec){0};
}

static void report(struct fl_fed *fed, size_t client)
{
    struct fl__fed_client *c = fed->clients[client];
    struct fl_result *r = c->member.held.result;
    struct fl__fed_event *up = fl__fed_event(fed, FL_EV_REPORT);

    if (up == NULL) {
        return;
    }
    up->result = fl_result_ref(r);
    up->event.u.report.client = c->number;
    up->event.u.report.round = r->key.round;
    up->event.u.report.attempt = r->key.attempt;
    up->event.u.report.samples = r->samples;
    up->event.u.report.steps = r->steps;
    up->event.u.report.train_loss = r->train_loss;
    up->event.u.report.divergence = r->divergence;
    up->event.u.report.n_divergence = r->n_units;
    up->event.u.report.previous_dot = r->previous_dot;
    up->event.u.report.received = eval_rec(r->has_received, &r->received);
    up->event.u.report.trained = eval_rec(r->has_trained, &r->trained);
    if (fed->conf.watch.reported != NULL) {
        fed->conf.watch.reported(fed->conf.watch.ctx, client, r);
    }
}

void fl__fed_task(struct fl_fed *fed, size_t client, const struct fl_effect *e)
{
    struct fl__fed_client *c = fed->clients[client];
    struct fl_err err = {0};
    int rv = FL_OK;

    if (!fl_held_is(&c->member.held, (struct fl_round_key){e->round, e->attempt})) {
        rv = train(fed, c, e, &err);
    }
    if (rv == FL_OK) {
        report(fed, client);
        if (e->units != NULL) {
            fl__fed_push(fed, client, e);
        }
    } else if (rv == FL_ENUMERIC) {
        struct fl__fed_event *up = fl__fed_event(fed, FL_EV_CLIENT_FAILED);

        if (up != NULL) {
            up->err = err;
            up->event.u.failed.client = c->number;
            up->event.u.failed.round = e->round;
            up->event.u.failed.attempt = e->attempt;
            up->event.u.failed.diverged = true;
        }
    } else {
        fl__fed_fail(fed, rv, &err, c->name);
    }
}

void fl__fed_push(struct fl_fed *fed, size_t client, const struct fl_effect *e)
{
    struct fl__fed_client *c = fed->clients[client];
    size_t units = fl_layout_units(fed->federation.layout);
    struct fl__fed_event *up;
    struct fl_err err = {0};
    struct fl_code code = {.setup = NULL};
    uint64_t bytes = 0;
    int rv = FL_OK;

    if (!fl_held_is(&c->member.held, (struct fl_round_key){e->round, e->attempt}) ||
        memchr(e->units, 1, units) == NULL)
    {
        return; /* It is over for this client, or nothing is asked of it. */
    }
    rv = fl_member_code(&c->member, e->units, &code, &err);
    if (rv == FL_OK) {
        bytes = fl_blob_len(code.bytes);
        rv = fl_member_upload(&fed->federation, c->name, &code, &err);
    }
    fl_code_done(&code);
    if (rv != FL_OK && !fl_spool_is_bad(rv)) {
        fl__fed_fail(fed, rv, &err, c->name);
        return;
    }
    up = fl__fed_event(fed, rv == FL_OK ? FL_EV_UPLOAD_STORED : FL_EV_UPLOAD_INVALID);
    if (up != NULL) {
        up->err = err;
        up->event.u.upload.client = c->number;
        up->event.u.upload.round = e->round;
        up->event.u.upload.attempt = e->attempt;
        up->event.u.upload.bytes = bytes;
    }
}

static struct fl_eval_rec measured(const struct fl_train_evaluation *e)
{
    return (struct fl_eval_rec){e->samples, e->correct, e->loss_sum};
}

void fl__fed_evaluate(struct fl_fed *fed, size_t client, const struct fl_effect *e)
{
    struct fl__fed_client *c = fed->clients[client];
    const float *model = fl_blob_floats(fl_progress_model(&fed->progress)->theta);
    struct fl__fed_event *up = fl__fed_event(fed, FL_EV_EVAL_REPORT);
    struct fl_evaluation found = {.received = {0}};
    struct fl_task task = c->member.task;
    struct fl_err err = {0};
    int rv;

    if (up == NULL) {
        return;
    }
    task.key = (struct fl_round_key){.round = e->round};
    rv = fl_evaluation_run(&c->member.worker, fed->setup, &task, model,
                           fl_coord_learning_rate(&fed->conf.coord, e->round), NULL, &found, &err);
    if (rv != FL_OK) { /* As a client says that none comes. */
        fl_log(fed->conf.log, FL_LOG_WARNING, "client", "%s: %s", c->name, fl_err_text(&err, rv));
        found = (struct fl_evaluation){.received = {0}};
    }
    up->event.u.eval.client = c->number;
    up->event.u.eval.round = e->round;
    up->event.u.eval.result = measured(&found.received);
    up->event.u.eval.adapted = measured(&found.adapted);
    if (fed->conf.watch.evaluated != NULL) {
        fed->conf.watch.evaluated(fed->conf.watch.ctx, client, &up->event.u.eval.result,
                                  &up->event.u.eval.adapted);
    }
}
