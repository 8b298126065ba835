/*
 * The step of the coordinator: one event in, effects out; also creation, resuming after a restart,
 * and the dispatch of events to the other coord_*.c files. On the one thread of the coordinator. It
 * does no I/O: the caller carries out the effects.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

static int coord_check_conf(const struct fl_coord_conf *conf, struct fl_err *err)
{
    if (!(conf->over_selection >= 1.0) || !isfinite(conf->over_selection)) {
        return fl_err_set(err, FL_ECONF,
                          "round.over_selection: expected a number of at least 1, found %g",
                          conf->over_selection);
    }
    if (conf->share_cap < 1.0 && conf->share_cap != 0.0) {
        return fl_err_set(err, FL_ECONF,
                          "round.share_cap: expected 0 or a number of at least 1, found %g",
                          conf->share_cap);
    }
    if (!isfinite(conf->learning_rate) || !isfinite(conf->learning_rate_decay) ||
        !isfinite(conf->learning_rate_end))
    {
        return fl_err_set(err, FL_ECONF,
                          "training: learning_rate %g with learning_rate_decay %g and "
                          "learning_rate_end %g is not finite, expected finite numbers",
                          conf->learning_rate, conf->learning_rate_decay, conf->learning_rate_end);
    }
    return FL_OK;
}

/* Restore one client record. After a rollback, marks of later rounds are void. */
static int resume_client(struct fl_coord *c, const struct fl_coord_resume *resume, size_t i,
                         struct fl_err *err)
{
    const struct fl_client_rec *from = &resume->clients[i];
    uint64_t committed = resume->committed;
    struct fl__clients *t = &c->clients;
    struct fl_client_rec *rec;
    struct fl__client *live;
    int rv = fl_order_reserve(&t->names);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "state database: out of memory for client %zu", i);
    }
    if (from->id >= FL_CLIENT_NUMBERS || !fl_name_valid(from->name) ||
        fl__clients_used(t, from->id) || fl__clients_find(t, from->name) != FL__NONE)
    {
        return fl_err_set(err, FL_EFORMAT,
                          "state database: client %zu (number %" PRIu32
                          ") is invalid or duplicated",
                          i, from->id);
    }
    (void)fl__clients_add(t, from->name, from->id);
    rec = &t->recs[from->id];
    live = &t->live[from->id];
    *rec = *from;
    if (rec->counted_round > committed) {
        rec->counted_round = 0;
        rec->counted_attempt = 0;
        rec->counted_update = false;
    }
    rec->capped_round = rec->capped_round <= committed ? rec->capped_round : 0;
    fl__quarantine_resume_client(rec, committed);
    live->recorded = true;
    live->ineligible = resume->ineligible != NULL && resume->ineligible[i];
    live->accepted_round = rec->counted_round; /* The client may have missed its ACCEPTED. */
    live->accepted_attempt = rec->counted_attempt;
    fl__clients_count(t, rec->id);
    return FL_OK;
}

struct seen {
    uint64_t seen_ms; /* on the clock of seen_up_ms */
    uint32_t client;
};

static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a;
    const struct seen *y = b;

    if (x->seen_ms != y->seen_ms) {
        return x->seen_ms < y->seen_ms ? -1 : 1;
    }
    return (x->client > y->client) - (x->client < y->client);
}

/* Restored clients are all disconnected, ordered by the times in their records. */
static int resume_clients(struct fl_coord *c, const struct fl_coord_resume *resume,
                          struct fl_err *err)
{
    size_t n = resume->n_clients;
    struct seen *seen;
    size_t most = 0;
    size_t i;
    int rv;

    c->clients.epoch = resume->epoch != 0 ? resume->epoch : c->clients.epoch;
    for (i = 0; i < resume->n_clients; i++) {
        size_t id = resume->clients[i].id;

        most = id >= most && id < FL_CLIENT_NUMBERS ? id + 1 : most;
    }
    rv = fl__clients_reserve_numbers(&c->clients, most);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%zu clients", resume->n_clients);
    }
    for (i = 0; i < resume->n_clients; i++) {
        rv = resume_client(c, resume, i, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    c->expected = (size_t)resume->expected;
    seen = malloc((n > 0 ? n : 1) * sizeof(*seen));
    if (seen == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%zu clients", n);
    }
    for (i = 0; i < n; i++) {
        seen[i] = (struct seen){resume->clients[i].seen_up_ms, resume->clients[i].id};
    }
    qsort(seen, n, sizeof(*seen), compare_seen);
    for (i = 0; i < n; i++) {
        fl__clients_disconnected(c, seen[i].client);
    }
    /* The clock continues from where it stopped: time while the server was down does not count. */
    c->up_ms = n > 0 && seen[n - 1].seen_ms > resume->up_ms ? seen[n - 1].seen_ms : resume->up_ms;
    free(seen);
    return fl__quarantine_resume(c, resume);
}

/* Restore one participant; what was not persisted restarts where its client does. */
static void resume_part(struct fl_coord *c, size_t i, const struct fl_participant_rec *from,
                        bool planned)
{
    struct fl__round *r = &c->round;
    struct fl_participant_rec *part = &r->parts[i];
    size_t n = c->n_units;

    *part = *from;
    part->divergence = NULL;
    part->units = NULL;
    part->remark = NULL;
    part->received = fl__eval_take(c, part->client, "received", &from->received);
    part->trained = fl__eval_take(c, part->client, "trained", &from->trained);
    if (from->divergence != NULL) {
        part->divergence = r->divergence + i * n;
        (void)memcpy(part->divergence, from->divergence, n * sizeof(float));
    }
    if (from->units != NULL) {
        part->units = r->units + i * n;
        (void)memcpy(part->units, from->units, n);
    }
    fl__quarantine_resume_part(c, part);
    if (fl__participant_waiting(c, i) && c->clients.recs[part->client].forgotten) {
        part->state = FL_PARTICIPANT_LOST; /* A forgotten client cannot answer. */
    } else if (fl__participant_waiting(c, i)) {
        bool asked = planned && from->state == FL_PARTICIPANT_PLANNED;

        /* Every participant has a decision once the plan exists; undecided ones were not in it. */
        part->state = asked     ? FL_PARTICIPANT_PLANNED
                      : planned ? FL_PARTICIPANT_LOST
                                : FL_PARTICIPANT_SELECTED;
        r->unusable = r->unusable || (part->units == NULL && (asked || !fl__coord_has_feedback(c)));
    }
    /* With backfill a participant with an empty mask may still get units. */
    if (part->state == FL_PARTICIPANT_ACCEPTED ||
        (part->state == FL_PARTICIPANT_EMPTY && !c->conf.backfill))
    {
        c->clients.live[part->client].accepted_round = r->round;
        c->clients.live[part->client].accepted_attempt = r->attempt;
    }
    r->live[i].reported =
        part->state != FL_PARTICIPANT_SELECTED && part->state != FL_PARTICIPANT_LOST;
    r->count[part->state]++;
    c->clients.live[part->client].part = (uint32_t)i;
}

static int resume_parts(struct fl_coord *c, const struct fl_coord_resume *resume,
                        struct fl_err *err)
{
    struct fl__round *r = &c->round;
    struct fl_order_at at = {0};
    uint32_t all = (uint32_t)resume->n_parts;
    uint32_t client;
    size_t n = 0;
    size_t i;
    int rv = fl__coord_round_create(r, resume->n_parts, c->n_units);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "coordinator: out of memory for %zu participants",
                          resume->n_parts);
    }
    r->round = resume->open_round;
    r->attempt = resume->open_attempt;
    /* Counts within what the participants allow. The population stays: a configured one may be
     * smaller than the number of participants. */
    r->size = resume->size;
    r->size.selected = r->size.selected > 0 && r->size.selected < all ? r->size.selected : all;
    r->size.members = r->size.members > all ? r->size.members : all;
    r->planned = resume->planned && fl__coord_has_feedback(c);
    r->unusable = resume->planned && !fl__coord_has_feedback(c);
    for (i = 0; i < resume->n_parts; i++) {
        const struct fl_participant_rec *part = &resume->parts[i];

        if (!fl__clients_used(&c->clients, part->client) || part->state < FL_PARTICIPANT_SELECTED ||
            part->state > FL_PARTICIPANT_LOST || c->clients.live[part->client].part != FL__NONE)
        {
            return fl_err_set(
                err, FL_EFORMAT,
                "state database: participant %zu of the open round is invalid or duplicated", i);
        }
        c->clients.live[part->client].part = (uint32_t)i;
    }
    /* In client order, whatever the order on disk. */
    while ((client = fl_order_next(&c->clients.names, &at)) != FL__NONE) {
        uint32_t from = c->clients.live[client].part;

        if (from != FL__NONE) {
            resume_part(c, n++, &resume->parts[from], r->planned);
        }
    }
    return FL_OK;
}

static int take_resume(struct fl_coord *c, const struct fl_coord_resume *resume, struct fl_err *err)
{
    int rv = resume_clients(c, resume, err);

    if (rv != FL_OK) {
        return rv;
    }
    c->restarted = resume->n_clients > 0;
    c->pause.on = resume->pause[0] != '\0';
    (void)memcpy(c->pause.reason, resume->pause, sizeof(c->pause.reason));
    c->committed = resume->committed;
    c->bounds = resume->bounds;
    c->plateau = resume->plateau;
    c->trend = resume->trend;
    c->used_round = resume->used_round;
    c->used_attempt = resume->used_attempt;
    c->attempt = fl__coord_first_attempt(c, c->committed + 1);
    if (resume->open_round == 0 || resume->open_round <= resume->committed) {
        return FL_OK; /* Leftovers of a committed round are ignored. */
    }
    if (resume->n_parts == 0 && resume->open_round != resume->committed + 1) {
        return FL_OK; /* After a rollback: that round has to wait. */
    }
    if (resume->open_round != resume->committed + 1 || resume->open_attempt == 0) {
        return fl_err_set(err, FL_EFORMAT,
                          "state database: open round %" PRIu64 " attempt %" PRIu32
                          " does not follow the committed round %" PRIu64,
                          resume->open_round, resume->open_attempt, resume->committed);
    }
    c->attempt = resume->open_attempt;
    if (resume->open_attempt > fl__coord_first_attempt(c, resume->open_round)) {
        c->n_aborts = resume->open_attempt - fl__coord_first_attempt(c, resume->open_round);
    } else {
        c->n_aborts = 0;
    }
    return resume->n_parts > 0 ? resume_parts(c, resume, err) : FL_OK;
}

int fl_coord_create(const struct fl_coord_conf *conf, const struct fl_coord_resume *resume,
                    struct fl_coord **ret, struct fl_err *err)
{
    struct fl_coord *c;
    size_t i;
    int rv = coord_check_conf(conf, err);

    if (rv != FL_OK) {
        return rv;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return fl_err_set(err, FL_ENOMEM, "coordinator: out of memory");
    }
    c->conf = *conf;
    c->n_units = fl_layout_units(conf->layout);
    c->full_bytes = 4 * (uint64_t)fl_layout_count(conf->layout);
    c->model_bytes = fl_broadcast_bytes(conf->strategy->broadcast, conf->layout);
    c->needs_divergence = fl_strategy_needs_divergence(conf->strategy);
    c->compares_claims = fl__claims_compared(conf->strategy);
    c->needs_previous_dot = fl_strategy_needs_previous_dot(conf->strategy);
    c->n_model_inputs = fl_solver_names(conf->strategy->solver->inputs) -
                        (conf->strategy->solver->collection != NULL);
    c->attempt = 1;
    c->clients.epoch = 1;
    c->clients.most_samples = (double)INFINITY;
    c->clients.first_dirty = c->clients.first_deletion = c->clients.unwritten.first = FL__NONE;
    fl__coord_sm_init(c);
    fl__coord_round_done(c);
    if (resume != NULL) {
        rv = take_resume(c, resume, err);
        if (rv != FL_OK) {
            fl_coord_free(c);
            return rv;
        }
        for (i = 0; i < resume->n_clients; i++) { /* Last: participants are found by name before. */
            if (resume->clients[i].forgotten) {
                fl__coord_resume_forgotten(c, resume->clients[i].id);
            }
        }
        fl__coord_add_scores(c);
    }
    *ret = c;
    return FL_OK;
}

void fl_coord_free(struct fl_coord *c)
{
    if (c == NULL) {
        return;
    }
    fl__coord_round_done(c);
    fl__clients_done(&c->clients);
    free(c->pending);
    free(c->effects);
    free(c);
}

/* Is `seq` the phase's current work? */
static bool is_work(const struct fl_coord *c, uint64_t seq)
{
    return c->work.kind != FL__WORK_NONE && seq != 0 && c->work.seq == seq;
}

static void coord_persisted(struct fl_coord *c, uint64_t seq)
{
    struct fl__pending p;

    if (fl__coord_unpend(c, seq, &p)) {
        if (p.kind == FL__PENDING_UPDATE) {
            fl__coord_update_persisted(c, p.client, seq);
        } else if (p.kind == FL__PENDING_PAUSE) {
            fl__coord_pause_persisted(c);
        } else if (p.kind == FL__PENDING_QUARANTINE) {
            fl__quarantine_persisted(c);
        } else {
            fl__coord_deletion_done(c);
        }
        return;
    }
    if (!is_work(c, seq)) {
        return;
    }
    if (c->work.kind == FL__WORK_SELECTION) {
        fl__coord_selected(c);
    } else if (c->work.kind == FL__WORK_PLAN) {
        fl__coord_planned(c);
    } else if (c->work.kind == FL__WORK_CLOSE) {
        fl__coord_closed(c);
    }
}

static void work_failed(struct fl_coord *c, const struct fl_event *ev)
{
    const char *reason = ev->u.failed_work.reason;
    uint64_t seq = ev->u.failed_work.seq;
    struct fl__pending p;

    if (fl__coord_unpend(c, seq, &p)) {
        if (p.kind == FL__PENDING_UPDATE) {
            fl__coord_update_failed(c, p.client, seq, reason);
        } else if (p.kind == FL__PENDING_PAUSE) {
            fl__coord_pause_failed(c, reason);
        } else if (p.kind == FL__PENDING_QUARANTINE) {
            fl__quarantine_failed(c, reason);
        } else {
            fl__coord_deletion_failed(c, reason);
        }
        return;
    }
    if (!is_work(c, seq)) {
        return;
    }
    if (c->work.kind == FL__WORK_AGGREGATE) {
        fl__coord_aggregate_failed(c, ev);
    } else if (c->work.kind == FL__WORK_EVALUATE) {
        fl__coord_eval_failed(c, reason);
    } else {
        bool closing = c->work.kind == FL__WORK_CLOSE;

        fl__coord_work_failed(c, reason);
        if (closing) {
            fl__coord_abort_closed(c, reason);
        }
    }
}

/* After a restart the first client to reconnect would make a round of one. The other known
   clients have the grace of a disconnected client to reconnect first. */
static bool coord_awaits_known(const struct fl_coord *c)
{
    size_t known = c->clients.n_members;

    /* Connected clients that were never counted have no record: `expected` includes them. */
    known = c->expected > known ? c->expected : known;
    return c->now_ms < c->settle_ms && c->clients.n_alive < known;
}

/* Between rounds: stop, pause, or begin the next one. */
static bool coord_idle(struct fl_coord *c)
{
    if (c->round.closing) {
        fl__coord_write_close(c);
        return false;
    }
    c->finished = c->conf.rounds != 0 && c->committed >= c->conf.rounds;
    if (c->finished || c->draining) {
        fl__coord_begin_drain(c);
        return true;
    }
    if (c->pause.on) {
        fl__coord_move(c, FL_PHASE_PAUSED, "%s", c->pause.reason);
        return false;
    }
    if (c->now_ms < c->not_before_ms || c->clients.n_alive < fl__coord_need(c) ||
        coord_awaits_known(c) || !fl__eligible_open(c))
    {
        return false;
    }
    return fl__coord_select(c);
}

/* Advance until an event is needed. */
static void coord_advance(struct fl_coord *c)
{
    bool more = c->started;

    while (more) {
        switch ((enum fl_phase)c->sm.state) {
        case FL_PHASE_IDLE:
            more = coord_idle(c);
            break;
        case FL_PHASE_TRAINING:
            more = fl__coord_aborting(c) || fl__coord_training(c);
            break;
        case FL_PHASE_UPLOADING:
            more =
                (c->work.kind == FL__WORK_NONE && fl__coord_aborting(c)) || fl__coord_uploading(c);
            break;
        /* Not while a worker thread reads files that an abort would remove. */
        case FL_PHASE_AGGREGATING:
            more = c->work.retry_ms != 0 && fl__coord_aborting(c);
            break;
        case FL_PHASE_EVALUATING:
            more = fl__coord_evaluating(c);
            break;
        case FL_PHASE_PAUSED:
            more = fl__coord_paused(c);
            break;
        case FL_PHASE_DRAINING:
            more = fl__coord_draining(c);
            break;
        case FL_PHASE_SELECTING: /* These wait for their work. */
        case FL_PHASE_PLANNING:
        case FL_PHASE_COMMITTING:
        case FL_PHASE_STOPPED:
        case FL_PHASE_COUNT:
            more = false;
            break;
        }
    }
}

/* Events that concern the presence of a client. */
static void coord_take_presence(struct fl_coord *c, const struct fl_event *ev)
{
    uint32_t client = ev->u.client;

    switch (ev->type) {
    case FL_EV_CLIENT_JOINED:
        fl__coord_joined(c, ev);
        break;
    case FL_EV_CLIENT_SUMMARY:
        fl__coord_summary(c, ev);
        break;
    case FL_EV_CLIENT_LOST:
        fl__coord_lost(c, client, ev->u.lost.silent);
        break;
    case FL_EV_CLIENT_HEARD:
        if (fl_coord_client(c, client) != NULL) {
            fl__clients_seen(c, client);
        }
        break;
    case FL_EV_FORGET:
        if (fl_coord_client(c, client) != NULL) {
            fl__coord_trace(c, "client '%s' is forgotten by the operator",
                            fl__coord_name(c, client));
            fl__coord_forget_for(c, client, "forgotten by the operator");
        }
        break;
    case FL_EV_EXCLUDE:
        if (fl_coord_client(c, ev->u.excluded.client) != NULL) {
            fl__coord_exclude(c, ev->u.excluded.client, ev->u.excluded.reason);
            if (ev->u.excluded.leaves) {
                fl__coord_leave_sum(c, ev->u.excluded.client);
            }
        }
        break;
    case FL_EV_RELEASED:
        fl__coord_released(c, client);
        break;
    default:
        FL_REQUIRE(false);
    }
}

/* Contributions of a client to a round. */
static void coord_take_contribution(struct fl_coord *c, const struct fl_event *ev)
{
    if (c->stopping) {
        return;
    }
    switch (ev->type) {
    case FL_EV_REPORT:
        fl__coord_report(c, ev);
        break;
    case FL_EV_CLIENT_FAILED:
        fl__coord_client_failed(c, ev);
        break;
    case FL_EV_UPLOAD_STORED:
        fl__coord_upload_stored(c, ev);
        break;
    case FL_EV_UPLOAD_INVALID:
        fl__coord_upload_invalid(c, ev);
        break;
    case FL_EV_UPLOAD_UNSTORED:
        fl__coord_upload_unstored(c, ev);
        break;
    case FL_EV_UPLOAD_PROGRESS:
        fl__straggler_progress(c, ev);
        break;
    case FL_EV_MODEL_FETCHED:
        fl__coord_count_download(c, ev);
        break;
    case FL_EV_EVAL_REPORT:
        fl__coord_eval_report(c, ev);
        break;
    default:
        FL_REQUIRE(false);
    }
}

/* Results of work that an effect started; results of abandoned work are ignored. */
static void coord_take_result(struct fl_coord *c, const struct fl_event *ev)
{
    switch (ev->type) {
    case FL_EV_PERSISTED:
        coord_persisted(c, ev->u.seq);
        break;
    case FL_EV_AGGREGATED:
        if (c->work.kind == FL__WORK_AGGREGATE && is_work(c, ev->u.aggregated.seq)) {
            fl__coord_aggregated(c, ev);
        }
        break;
    case FL_EV_EVALUATED:
        if (c->work.kind == FL__WORK_EVALUATE && is_work(c, ev->u.evaluated.seq)) {
            fl__coord_evaluated(c, ev);
        }
        break;
    case FL_EV_COMMITTED:
        if (c->work.kind == FL__WORK_COMMIT && is_work(c, ev->u.seq)) {
            fl__coord_committed(c);
        }
        break;
    case FL_EV_WORK_FAILED:
        work_failed(c, ev);
        break;
    default:
        FL_REQUIRE(false);
    }
}

#define COORD_TAKE_COMMAND(event, rule)    \
    case FL_EV_##event:                    \
        fl__coord_##rule(c, ev->u.reason); \
        break;

#define COORD_TAKE_CLIENT_COMMAND(event, rule)                             \
    case FL_EV_##event:                                                    \
        fl__coord_##rule(c, ev->u.of_client.name, ev->u.of_client.reason); \
        break;

/* No default: the compiler reports a missing event. */
static void coord_take_event(struct fl_coord *c, const struct fl_event *ev)
{
    switch (ev->type) {
    case FL_EV_START:
        if (c->started) {
            break;
        }
        c->started = true;
        if (c->restarted) {
            c->settle_ms = fl__coord_after(c, c->conf.lost_grace_ms);
        }
        if (c->round.round != 0) {
            fl__coord_resume_round(c);
        }
        break;
    case FL_EV_TICK:
        break;
    case FL_EV_CLIENT_JOINED:
    case FL_EV_CLIENT_SUMMARY:
    case FL_EV_CLIENT_LOST:
    case FL_EV_CLIENT_HEARD:
    case FL_EV_FORGET:
    case FL_EV_EXCLUDE:
    case FL_EV_RELEASED:
        coord_take_presence(c, ev);
        break;
    case FL_EV_REPORT:
    case FL_EV_CLIENT_FAILED:
    case FL_EV_UPLOAD_STORED:
    case FL_EV_UPLOAD_INVALID:
    case FL_EV_UPLOAD_UNSTORED:
    case FL_EV_UPLOAD_PROGRESS:
    case FL_EV_MODEL_FETCHED:
    case FL_EV_EVAL_REPORT:
        coord_take_contribution(c, ev);
        break;
    case FL_EV_PERSISTED:
    case FL_EV_AGGREGATED:
    case FL_EV_EVALUATED:
    case FL_EV_COMMITTED:
    case FL_EV_WORK_FAILED:
        coord_take_result(c, ev);
        break;
        FL_COORD_COMMANDS(COORD_TAKE_COMMAND)
        FL_COORD_CLIENT_COMMANDS(COORD_TAKE_CLIENT_COMMAND)
    case FL_EV_STOP:
        fl__coord_stop(c, ev->u.reason);
        break;
    }
}

int fl_coord_step(struct fl_coord *c, const struct fl_event *ev, struct fl_effects *ret)
{
    uint64_t span = ev->now_ms > c->now_ms ? ev->now_ms - c->now_ms : 0;
    int rv = fl__clients_reserve(&c->clients, c->round.n);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__coord_reserve(c);
    if (rv != FL_OK) {
        return rv;
    }
    c->n_effects = 0;
    c->n_texts = 0;
    /* The monotonic time never goes back and starts with the first event; the wall clock may jump.
     */
    c->up_ms += c->clocked ? span : 0;
    c->ticking = ev->type == FL_EV_TICK;
    c->now_ms += span;
    if (!c->clocked) {
        fl__coord_times_begin(c);
    }
    c->clocked = true;
    c->wall_ms = ev->wall_ms;
    c->traffic = ev->traffic;
    coord_take_event(c, ev);
    if (c->stopping) {
        fl__coord_stopping(c);
    } else {
        if (c->work.retry_ms != 0 && c->now_ms >= c->work.retry_ms) {
            fl__coord_work(c, c->work.kind);
        }
        fl__coord_age(c);
        fl__quarantine_age(c);
        fl__coord_delete_queued(c);
        fl__coord_write_pause(c);
        coord_advance(c);
        fl__quarantine_write(c); /* After the decisions of this step. */
    }
    *ret = (struct fl_effects){.list = c->effects, .n = c->n_effects};
    return FL_OK;
}
