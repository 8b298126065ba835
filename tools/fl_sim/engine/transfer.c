/*
 * The transfers of a simulated federation: payloads and models down, updates up. One thread, that
 * of the federation. The links are in transfer_links.c.
 */

#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/engine/sim_federation_impl.h"

static bool transfer_same_key(struct fl_round_key a, struct fl_round_key b)
{
    return a.round == b.round && a.attempt == b.attempt;
}

/* --- payloads --- */

/* The SHA-256 of the model that `round` starts with; NULL: it is not known any more. */
static const uint8_t *transfer_digest_of(const struct fl_versions *v, uint64_t round)
{
    size_t n = fl_versions_steps(v);
    size_t i;

    for (i = n; i > 0; i--) {
        if (fl_versions_step(v, i - 1)->round < round) { /* A round may have changed nothing. */
            return fl_versions_step(v, i - 1)->to;
        }
    }
    return round != 1 ? NULL : n > 0 ? fl_versions_step(v, 0)->from : fl_versions_newest(v);
}

/* Bytes of what changed since the model that this client holds, `whole` where that is not known. */
static int transfer_difference_bytes(struct fl_fed *fed, uint32_t client, bool candidate,
                                     uint64_t whole, uint64_t *ret)
{
    struct fl_differences *d = candidate ? fed->progress.next.model.differences
                                         : fed->progress.committed.model.differences;
    const uint8_t *held;
    struct fl_blob *bytes = NULL;
    int rv;

    *ret = whole;
    if (fed->conf.dry || d == NULL) { /* Nothing is learned, so that nothing changes. */
        return FL_OK;
    }
    held = transfer_digest_of(fl_differences_versions(d), fed->clients[client].holds);
    if (held == NULL) {
        return FL_OK;
    }
    if (memcmp(held, fl_differences_digest(d), FL_DIGEST_SIZE) == 0) {
        *ret = 0;
        return FL_OK;
    }
    rv = fl_differences_get(d, held, &bytes);
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    *ret = fl_blob_len(bytes);
    fl_blob_unref(bytes);
    return FL_OK;
}

static int transfer_find_bytes(struct fl_fed *fed, uint32_t client, uint64_t round, bool candidate,
                               uint64_t *bytes, struct fl_err *err)
{
    int rv;

    if (fl__fed_replays(fed)) {
        return fl_journal_take_download(fed->journal, client, round, bytes, err);
    }
    rv = transfer_difference_bytes(fed, client, candidate, *bytes, bytes);
    if (rv != FL_OK || fed->journal == NULL) {
        return rv;
    }
    return fl_journal_put_download(fed->journal, client, round, *bytes);
}

uint64_t fl__fetch_model_bytes(struct fl_fed *fed, uint32_t client, uint64_t round, bool candidate)
{
    uint64_t bytes =
        fl_payload_bytes(fed->federation.strategy, fed->federation.layout, FL_PAYLOAD_IS_MODEL);
    struct fl_err err = {0};
    int rv = FL_OK;

    if (fl_broadcast_sends_moves(fed->federation.strategy->broadcast)) {
        rv = transfer_find_bytes(fed, client, round, candidate, &bytes, &err);
    }
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, &err, "the size of a download");
    }
    return bytes;
}

/* The payloads that this client fetches of those its task lists (client/work/inputs.h). */
static int transfer_choose_payloads(struct fl_fed *fed, struct fl__active *a, struct fl_err *err)
{
    const struct fl_strategy *s = fed->federation.strategy;
    struct fl_payload_name names[FL_PAYLOADS_MAX];
    size_t n = fl_payloads_of(s, names);
    struct fl_inputs listed = {.n = 0};
    struct fl_inputs chosen;
    bool has_own = s->personal->own && a->task.counted.round != 0;
    size_t i;
    int rv;

    for (i = 0; i < n; i++) {
        struct fl_input *in = &listed.list[listed.n];

        if (names[i].kind == FL_PAYLOAD_IS_PERSONAL_MODEL && !a->personal_model) {
            continue;
        }
        *in = (struct fl_input){
            .bytes = names[i].kind == FL_PAYLOAD_IS_SUMMARIES
                         ? fed->collection_bytes
                         : fl_payload_bytes(s, fed->federation.layout, names[i].kind)};
        listed.n += fl_str_copy(in->name, sizeof(in->name), names[i].name) == FL_OK;
    }
    a->fetch = (struct fl__fetch){.n = 0};
    rv = fl_inputs_choose(fed->setup, &listed, has_own, NULL, &chosen, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < chosen.n; i++) {
        const struct fl_input *in = &chosen.list[i];

        if (in->opaque && fed->clients[a->client].has_summaries) {
            continue; /* On its disk since its first session. */
        }
        if (fl_broadcast_sends_moves(s->broadcast) && strcmp(in->name, FL_PAYLOAD_MODEL) == 0) {
            a->fetch.moves = true;
            continue; /* Its size follows when it is asked for. */
        }
        a->fetch.n++;
        *(in->opaque                                         ? &a->fetch.summaries
          : strcmp(in->name, FL_PAYLOAD_MODEL) == 0          ? &a->fetch.model
          : strcmp(in->name, FL_PAYLOAD_PERSONAL_MODEL) == 0 ? &a->fetch.personal_model
                                                             : &a->fetch.state) += in->bytes;
    }
    fl_inputs_done(&chosen);
    return FL_OK;
}

void fl__fetch_begin(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_err err = {0};
    int rv = transfer_choose_payloads(fed, a, &err);

    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, &err, fl__fed_name(fed, a->client));
        return;
    }
    a->awaits_fetch = ++a->stamp;
    fl__fed_at(fed, fed->now_us + fl__fed_latency(fed, a->client), FL__AT_FETCH, a->client,
               a->stamp, NULL);
}

/* Each payload is requested when the one before it has arrived. */
static void transfer_fetch_done(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_sim_round *sim = &fed->account.sim;
    struct fl_fed_part *p = fl__transfer_participant(fed, a, a->task.key);
    uint64_t latency = fl__fed_latency(fed, a->client);
    uint64_t asked = a->fetch.n > 1 ? a->fetch.n - 1 : 0;

    a->down.on = false;
    sim->down_model_bytes += a->fetch.model;
    sim->down_state_bytes += a->fetch.state;
    sim->down_personal_model_bytes += a->fetch.personal_model;
    sim->down_summary_bytes += a->fetch.summaries;
    fed->clients[a->client].has_summaries |= a->fetch.summaries > 0;
    if (p != NULL) {
        p->bytes_down += a->down.bytes;
    }
    fl__fed_at(fed, fed->now_us + latency + 2 * asked * latency, FL__AT_FETCHED, a->client,
               a->awaits_fetch, NULL);
}

static void transfer_fetched(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_fed_part *p = fl__transfer_participant(fed, a, a->task.key);

    a->awaits_fetch = 0;
    fed->clients[a->client].holds = a->task.key.round;
    if (p != NULL) {
        p->fetched_us = fed->now_us;
    }
    fl_session_shell_ended(a->shell, FL_ACTIVITY_FETCH, a->task.key, FL_OK, NULL);
}

/* --- updates --- */

static void transfer_drop_code(struct fl__active *a)
{
    fl_pool_job_free(a->coding);
    a->coding = NULL;
    a->coded = false;
    a->received = 0;
    fl_job_answer_done(&a->code);
}

/* The same upload mask as before: the bytes that the server has remain valid. */
static bool transfer_resumes(const struct fl_fed *fed, const struct fl__active *a,
                             struct fl_round_key key, const uint8_t *units)
{
    size_t n = fl_layout_units(fed->federation.layout);

    return a->coded && transfer_same_key(a->pushing, key) &&
           (a->units == NULL) == (units == NULL) &&
           (units == NULL || memcmp(a->units, units, n) == 0);
}

static bool transfer_take_mask(struct fl_fed *fed, struct fl__active *a, const uint8_t *units,
                               size_t n_units)
{
    size_t n = fl_layout_units(fed->federation.layout);

    free(a->units);
    a->units = NULL;
    if (units != NULL) {
        a->units = calloc(n + 1, 1);
        if (a->units == NULL) {
            fl__fed_fail(fed, FL_ENOMEM, NULL, "a plan");
            return false;
        }
        (void)memcpy(a->units, units, n_units < n ? n_units : n);
    }
    return true;
}

void fl__push_begin(struct fl_fed *fed, struct fl__active *a, struct fl_round_key key,
                    const uint8_t *units, size_t n_units)
{
    if (!transfer_resumes(fed, a, key, units)) {
        transfer_drop_code(a);
        if (!transfer_take_mask(fed, a, units, n_units)) {
            return;
        }
        a->pushing = key;
        if (!fl__fed_replays(fed)) {
            a->coding = fl_worker_pool_code(fed->pool, a->client, key, a->units);
            if (a->coding == NULL) {
                fl__fed_fail(fed, FL_ENOMEM, NULL, "an upload");
            }
        }
    }
    a->awaits_push = ++a->stamp; /* PushStatus, and its answer. */
    fl__fed_at(fed, fed->now_us + 2 * fl__fed_latency(fed, a->client), FL__AT_PUSH, a->client,
               a->stamp, NULL);
}

void fl__push_progress(struct fl_fed *fed)
{
    size_t i;

    for (i = 0; i < fed->conf.sim_clients->n; i++) {
        const struct fl__active *a = fed->clients[i].active;
        struct fl_event event = {.type = FL_EV_UPLOAD_PROGRESS};

        if (a != NULL && a->awaits_push != 0) {
            event.u.upload.client = fed->clients[i].number;
            event.u.upload.round = a->pushing.round;
            event.u.upload.attempt = a->pushing.attempt;
            fl__fed_step(fed, &event);
        }
    }
}

/* False: there is nothing to send; that was reported. */
static bool transfer_take_code(struct fl_fed *fed, struct fl__active *a)
{
    if (a->coded) {
        return true;
    }
    if (fl__fed_take(fed, a->coding, FL_JOB_CODE, a->client, a->pushing, &a->code) != FL_OK) {
        return false;
    }
    fl_pool_job_free(a->coding);
    a->coding = NULL;
    a->coded = true;
    if (a->code.code != FL_OK && !fl_spool_is_bad(a->code.code)) {
        struct fl_err err = {0};

        (void)fl_err_set(&err, a->code.code, "%s", a->code.why);
        fl__fed_fail(fed, a->code.code, &err, fl__fed_name(fed, a->client));
        return false;
    }
    return true;
}

static void transfer_send(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_fed_part *p = fl__transfer_participant(fed, a, a->pushing);
    uint64_t bytes = a->code.bytes > a->received ? a->code.bytes - a->received : 0;
    double share = 1;

    a->down_us = 0;
    if (fed->conf.world != NULL && a->received == 0 &&
        fl_world_drop(fed->conf.world, a->client, a->pushing.round, a->pushing.attempt, &share,
                      &a->down_us))
    {
        bytes = (uint64_t)((double)bytes * share);
        a->down_us += a->down_us == 0;
    }
    if (p != NULL && p->sending_us == 0) {
        p->sending_us = fed->now_us;
    }
    fl__transfer_begin(fed, a, &a->up, bytes, FL__AT_SENT);
}

/* The answer to PushStatus: the offset to resume from, or that the upload is not wanted. */
static void transfer_push_allowed(struct fl_fed *fed, struct fl__active *a)
{
    const uint8_t *grant = NULL;
    struct fl_err err = {0};
    int rv = fl_coord_may_push(fed->coord, fed->clients[a->client].number, a->pushing.round,
                               a->pushing.attempt, &grant, &err);

    a->awaits_push = 0;
    if (rv == FL_EEXIST) {
        fl_session_shell_ended(a->shell, FL_ACTIVITY_PUSH, a->pushing, FL_OK, NULL);
    } else if (rv != FL_OK) {
        fl_session_shell_ended(a->shell, FL_ACTIVITY_PUSH, a->pushing, FL_ESTATE, err.msg);
    } else if (transfer_take_code(fed, a)) {
        a->awaits_push = ++a->stamp;
        transfer_send(fed, a);
    }
}

static void transfer_push_done(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_fed_part *p = fl__transfer_participant(fed, a, a->pushing);
    uint64_t down_us = a->down_us;
    uint32_t client = a->client;

    a->up.on = false;
    a->received += a->up.bytes;
    fl__transfer_count_up(fed, a, a->up.bytes);
    if (down_us != 0) {
        a->down_us = 0;
        fl__fed_drop(fed, client, down_us);
        return;
    }
    if (p != NULL) {
        p->sent_us = fed->now_us;
    }
    fl__fed_at(fed, fed->now_us + fl__fed_latency(fed, client), FL__AT_PUSHED, client,
               a->awaits_push, NULL);
}

static void transfer_pushed(struct fl_fed *fed, struct fl__active *a)
{
    bool good = a->code.code == FL_OK;
    struct fl_event event = {.type = good ? FL_EV_UPLOAD_STORED : FL_EV_UPLOAD_INVALID};
    struct fl_fed_part *p = fl__transfer_participant(fed, a, a->pushing);

    a->awaits_push = 0;
    if (p != NULL) {
        p->pushed_us = fed->now_us;
        fed->account.last_push = (size_t)(p - fed->account.parts);
    }
    event.u.upload.client = fed->clients[a->client].number;
    event.u.upload.round = a->pushing.round;
    event.u.upload.attempt = a->pushing.attempt;
    event.u.upload.bytes = a->code.bytes;
    event.u.upload.reason = good ? NULL : a->code.why;
    event.u.upload.code = a->code.code;
    event.u.upload.norms = a->code.norms.unit != NULL ? &a->code.norms : NULL;
    fl__fed_step(fed, &event);
}

/* --- the model of an evaluation --- */

void fl__model_begin(struct fl_fed *fed, struct fl__active *a)
{
    a->awaits_evaluation = ++a->stamp;
    fl__fed_at(fed, fed->now_us + fl__fed_latency(fed, a->client), FL__AT_MODEL, a->client,
               a->stamp, NULL);
}

static void transfer_model_done(struct fl_fed *fed, struct fl__active *a)
{
    a->model_down.on = false;
    fed->account.sim.down_evaluation_bytes += a->model_down.bytes;
    fed->clients[a->client].holds = a->evaluating + 1;
    fl__fed_at(fed, fed->now_us + fl__fed_latency(fed, a->client), FL__AT_HAVE_MODEL, a->client,
               a->awaits_evaluation, NULL);
}

/* --- events --- */

/* The server is asked for the payloads of a task. */
static void transfer_fetch_asked(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_event event = {.type = FL_EV_MODEL_FETCHED};

    if (a->fetch.moves) {
        a->fetch.model = fl__fetch_model_bytes(fed, a->client, a->task.key.round, false);
        a->fetch.n += a->fetch.model > 0;
    }
    if (a->fetch.moves && a->fetch.model > 0) {
        event.u.upload.client = fed->clients[a->client].number;
        event.u.upload.round = a->task.key.round;
        event.u.upload.attempt = a->task.key.attempt;
        event.u.upload.bytes = a->fetch.model;
        fl__fed_step(fed, &event);
    }
    fl__transfer_begin(fed, a, &a->down,
                       a->fetch.model + a->fetch.state + a->fetch.personal_model +
                           a->fetch.summaries,
                       FL__AT_LOADED);
}

void fl__transfer_happens(struct fl_fed *fed, struct fl__active *a, enum fl__fed_kind kind,
                          uint32_t stamp)
{
    if (kind == FL__AT_FETCH && stamp == a->awaits_fetch) {
        transfer_fetch_asked(fed, a);
    } else if (kind == FL__AT_LOADED && stamp == a->awaits_fetch && a->down.on) {
        transfer_fetch_done(fed, a);
    } else if (kind == FL__AT_FETCHED && stamp == a->awaits_fetch) {
        transfer_fetched(fed, a);
    } else if (kind == FL__AT_PUSH && stamp == a->awaits_push) {
        transfer_push_allowed(fed, a);
    } else if (kind == FL__AT_PUSHED && stamp == a->awaits_push) {
        transfer_pushed(fed, a);
    } else if (kind == FL__AT_MODEL && stamp == a->awaits_evaluation) {
        fl__transfer_begin(
            fed, a, &a->model_down,
            fl__fetch_model_bytes(fed, a->client, a->evaluating, /* candidate= */ true),
            FL__AT_MODEL_LOADED);
    } else if (kind == FL__AT_MODEL_LOADED && stamp == a->awaits_evaluation && a->model_down.on) {
        transfer_model_done(fed, a);
    } else if (kind == FL__AT_SENT && stamp == a->awaits_push && a->up.on) {
        transfer_push_done(fed, a);
    }
}

void fl__transfer_done(struct fl_fed *fed, bool up)
{
    bool model;
    struct fl__active *a = fl__transfer_next(fed, up, &model);

    if (a == NULL) {
        return;
    }
    if (up) {
        transfer_push_done(fed, a);
    } else if (model) {
        transfer_model_done(fed, a);
    } else {
        transfer_fetch_done(fed, a);
    }
}
