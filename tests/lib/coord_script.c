#include "tests/lib/coord_script.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fl_layout *make_layout(void)
{
    struct fl_layout *layout = NULL;
    size_t four = 4;
    size_t six = 6;
    size_t two = 2;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "a", "a.weight", &four, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "b", "b.weight", &six, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "b", "b.mean", &two, 1, true, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "c", "c.weight", &two, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    return layout;
}

struct script *script_new(const char *preset)
{
    struct script *s = calloc(1, sizeof(*s));
    struct fl_err err = {0};

    ck_assert_ptr_nonnull(s);
    s->layout = make_layout();
    ck_assert_msg(fl_strategy_create(preset, &s->strategy, &err) == FL_OK, "%s", err.msg);
    s->conf = (struct fl_coord_conf){
        .seed = 1,
        .start_clients = 1,
        .min_clients = 1,
        .min_responders = 1,
        .over_selection = 1.0,
        .train_ms = 1000,
        .upload_ms = 1000,
        .evaluate_ms = 1000,
        .lost_grace_ms = 100,
        .restart_ms = 50,
        .retry_ms = 50,
        .learning_rate = 0.5,
        .learning_rate_decay = 1.0,
        .strategy = s->strategy,
        .layout = s->layout,
    };
    s->accuracy = 0.5;
    s->loss = 1.0;
    fl_buf_init(&s->log, 64u << 20);
    coord_check_init(&s->check);
    return s;
}

void script_free(struct script *s)
{
    fl_coord_free(s->coord);
    fl_strategy_free(s->strategy);
    fl_layout_free(s->layout);
    fl_buf_done(&s->log);
    coord_check_done(&s->check);
    free(s);
}

void script_option(struct script *s, enum fl_component component, const char *name,
                   const char *value)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_options_set(s->strategy->options[component], name, value, &err) == FL_OK, "%s",
                  err.msg);
}

void script_create(struct script *s, const struct fl_coord_resume *resume)
{
    static const struct fl_coord_resume nothing = {.committed = 0};
    struct fl_err err = {0};

    fl_coord_free(s->coord);
    s->coord = NULL;
    s->n_works = 0;
    ck_assert_msg(fl_coord_create(&s->conf, resume, &s->coord, &err) == FL_OK, "%s", err.msg);
    coord_check_resume(&s->check, resume != NULL ? resume : &nothing);
}

static const char *name_of(const struct script *s, uint32_t client)
{
    const struct fl_client_rec *rec = fl_coord_part_client(s->coord, client);

    return rec != NULL ? rec->name : "*";
}

FL_PRINTF(2, 3) static void put(struct script *s, const char *fmt, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ck_assert_int_eq(fl_buf_printf(&s->log, "%s", text), FL_OK);
}

static void put_units(struct script *s, const uint8_t *units)
{
    if (units != NULL) {
        put(s, " units %d%d%d", units[0], units[1], units[2]);
    }
}

static void put_parts(struct script *s, const struct fl_effect *e)
{
    size_t i;

    for (i = 0; e->type != FL_EFF_COMMIT && i < e->n_parts; i++) {
        const struct fl_participant_rec *p = &e->parts[i];

        put(s, " %s:%s", name_of(s, p->client), fl_part_state_name(p->state));
        if (p->units != NULL) {
            put(s, ":%d%d%d", p->units[0], p->units[1], p->units[2]);
        }
    }
}

static void put_work(struct script *s, const struct fl_effect *e, const char *what)
{
    put(s, "%s %" PRIu64 ".%" PRIu32, what, e->round, e->attempt);
    put_parts(s, e);
    if (e->want_distance) {
        put(s, " with distances");
    }
}

static void put_tell(struct script *s, const struct fl_effect *e, const char *what)
{
    put(s, "%s %s %" PRIu64 ".%" PRIu32, name_of(s, e->client), what, e->round, e->attempt);
    put_units(s, e->units);
    if (e->task.deadline_ms > 0) {
        put(s, " within %" PRIu64, e->task.deadline_ms);
    }
    if (e->text != NULL) {
        put(s, " (%s)", e->text);
    }
}

/* Commands to clients, and work. */
static const char *const names[] = {
    [FL_EFF_TASK] = "TASK",
    [FL_EFF_PLAN] = "PLAN",
    [FL_EFF_ACCEPTED] = "ACCEPTED",
    [FL_EFF_REJECTED] = "REJECTED",
    [FL_EFF_DISMISSED] = "DISMISSED",
    [FL_EFF_EVALUATE_CLIENT] = "EVALUATE",
    [FL_EFF_DRAIN_CLIENTS] = "DRAIN",
    [FL_EFF_PERSIST_SELECTION] = "persist selection",
    [FL_EFF_PERSIST_PLAN] = "persist plan",
    [FL_EFF_PERSIST_UPDATE] = "persist update",
    [FL_EFF_AGGREGATE] = "aggregate",
    [FL_EFF_EVALUATE] = "evaluate",
    [FL_EFF_COMMIT] = "commit",
};

static void put_forgotten(struct script *s, const struct fl_effect *e)
{
    size_t i;

    put(s, "forget");
    for (i = 0; i < e->n_clients; i++) {
        put(s, " %s%s", e->clients[i].name, e->clients[i].forgotten ? " (marked)" : "");
    }
}

static void put_quarantine(struct script *s, const struct fl_effect *e)
{
    size_t i;
    size_t n;

    put(s, "persist");
    for (i = 0; i < e->n_clients; i++) {
        const struct fl_client_rec *rec = &e->clients[i];

        for (n = 0; n < FL_OFFENCES_MAX && rec->offences[n].kind != 0; n++) {
        }
        put(s, " %s:%zu%s", rec->name, n, rec->quarantine[0] != '\0' ? ":quarantined" : "");
        if (rec->id < SCRIPT_CLIENTS) {
            s->quarantines[rec->id] = *rec;
        }
    }
}

static void put_answer(struct script *s, const struct fl_effect *e)
{
    bool refused = e->code == FL_ESTATE || e->code == FL_ENOENT;
    const char *how = e->code == FL_OK ? "" : refused ? " (no)" : " (but)";

    put(s, "answer%s: %s", how, e->text);
}

static void put_effect(struct script *s, const struct fl_effect *e)
{
    if (e->type == FL_EFF_CLIENT_ERROR) { /* Not part of the text: a trace line covers it. */
        (void)snprintf(s->error, sizeof(s->error), "%s: %s", name_of(s, e->client), e->text);
        return;
    }
    put(s, "[%5" PRIu64 "] ", s->now);
    switch (e->type) {
    case FL_EFF_TASK:
    case FL_EFF_PLAN:
    case FL_EFF_ACCEPTED:
    case FL_EFF_REJECTED:
    case FL_EFF_DISMISSED:
    case FL_EFF_EVALUATE_CLIENT:
    case FL_EFF_DRAIN_CLIENTS:
        put_tell(s, e, names[e->type]);
        break;
    case FL_EFF_CLIENT_ID:
        put(s, "%s is client %" PRIu32, name_of(s, e->client), e->client);
        break;
    case FL_EFF_RELEASE:
        put(s, "client %" PRIu32 " is nobody's%s%s", e->client, e->text[0] != '\0' ? ": " : "",
            e->text);
        break;
    case FL_EFF_FORGET_CLIENTS:
        put_forgotten(s, e);
        break;
    case FL_EFF_FORGOTTEN:
        put(s, "client %" PRIu32 " is forgotten%s%s", e->client, e->text != NULL ? ", but: " : "",
            e->text != NULL ? e->text : "");
        break;
    case FL_EFF_PERSIST_SELECTION:
    case FL_EFF_PERSIST_PLAN:
    case FL_EFF_PERSIST_UPDATE:
    case FL_EFF_AGGREGATE:
    case FL_EFF_EVALUATE:
    case FL_EFF_COMMIT:
        put_work(s, e, names[e->type]);
        break;
    case FL_EFF_ROUND_OPEN:
        put(s, "open %" PRIu64 ".%" PRIu32, e->round, e->attempt);
        break;
    case FL_EFF_ROUND_CLOSED:
        put(s, "closed %" PRIu64 ".%" PRIu32, e->round, e->attempt);
        break;
    case FL_EFF_TRACE:
        if (e->warning) {
            (void)snprintf(s->warning, sizeof(s->warning), "%s", e->text);
        }
        put(s, "- %s", e->text);
        break;
    case FL_EFF_CLIENT_ERROR:
        break;
    case FL_EFF_FINISHED:
        put(s, "FINISHED");
        break;
    case FL_EFF_STOPPED:
        put(s, "STOPPED");
        break;
    case FL_EFF_PERSIST_QUARANTINE:
        put_quarantine(s, e);
        break;
    case FL_EFF_PERSIST_PAUSE:
        put(s, "persist %s%s", e->text != NULL ? "pause: " : "no pause",
            e->text != NULL ? e->text : "");
        break;
    case FL_EFF_ANSWER:
        put_answer(s, e);
        break;
    }
    put(s, "\n");
}

/* "a accepted, b lost: timed out … (fewer than 2 can still respond)" */
static void keep_ended(struct script *s, const struct fl_effect *e)
{
    size_t used = 0;
    size_t i;

    for (i = 0; i < e->n_ended && !s->quiet; i++) {
        const struct fl_participant_rec *p = &e->ended[i];

        used += (size_t)snprintf(s->ended + used, sizeof(s->ended) - used, "%s%s %s%s%s",
                                 i > 0 ? ", " : "", fl_coord_part_client(s->coord, p->client)->name,
                                 fl_part_state_name(p->state), p->remark != NULL ? ": " : "",
                                 p->remark != NULL ? p->remark : "");
        ck_assert_uint_lt(used, sizeof(s->ended));
    }
    if (used > 0) {
        (void)snprintf(s->ended + used, sizeof(s->ended) - used, " (%s)", e->text);
    }
}

/* "a accepted 111 56 up 56 down, b lost - 0 up 56 down: timed out …" */
static void keep_taken(struct script *s, const struct fl_effect *e)
{
    size_t used = 0;
    size_t i;

    for (i = 0; i < e->n_parts; i++) {
        const struct fl_participant_rec *p = &e->parts[i];
        char units[16] = "-";

        ck_assert_uint_eq(e->clients[i].id, p->client);
        if (p->units != NULL) {
            (void)snprintf(units, sizeof(units), "%d%d%d", p->units[0], p->units[1], p->units[2]);
        }
        used += (size_t)snprintf(
            s->taken + used, sizeof(s->taken) - used,
            "%s%s %s %s %" PRIu64 " up %" PRIu64 " down%s%s", i > 0 ? ", " : "", e->clients[i].name,
            fl_part_state_name(p->state), units,
            p->state == FL_PARTICIPANT_ACCEPTED ? p->upload_bytes : 0, p->download_bytes,
            p->remark != NULL ? ": " : "", p->remark != NULL ? p->remark : "");
        ck_assert_uint_lt(used, sizeof(s->taken));
    }
}

static void keep_evals(struct script *s, const struct fl_effect *e)
{
    size_t used = 0;
    size_t i;

    s->evals[0] = '\0';
    for (i = 0; i < e->n_evals && used < sizeof(s->evals); i++) {
        const struct fl_client_eval *v = &e->evals[i];
        const char *metrics[] = {v->received_metrics, v->personal_metrics};

        used += (size_t)snprintf(s->evals + used, sizeof(s->evals) - used,
                                 "%s %" PRIu64 " received %.3f %.3f %s personal %.3f %.3f %s\n",
                                 v->name, v->samples, v->received_accuracy, v->received_loss,
                                 metrics[0] != NULL ? metrics[0] : "-", v->personal_accuracy,
                                 v->personal_loss, metrics[1] != NULL ? metrics[1] : "-");
    }
}

static void keep_work(struct script *s, const struct fl_effect *e)
{
    if (e->seq != 0) {
        ck_assert_uint_lt(s->n_works, SCRIPT_WORKS);
        s->works[s->n_works++] = (struct script_work){e->type, e->seq, e->n_parts, e->epoch};
    }
    if (e->type == FL_EFF_COMMIT) {
        size_t i;

        s->record = *e->record;
        keep_evals(s, e);
        if (!s->quiet) {
            keep_taken(s, e);
        }
        s->n_written = e->n_clients;
        for (i = 0; i < e->n_clients; i++) {
            if (e->clients[i].id < SCRIPT_CLIENTS) {
                s->clients[e->clients[i].id] = e->clients[i];
            }
        }
    } else if (e->type == FL_EFF_PERSIST_SELECTION) {
        s->n_selected_records = e->n_clients;
        keep_ended(s, e);
    } else if (e->type == FL_EFF_TASK) {
        s->task = *e;
        s->task.units = NULL;
    } else if (e->type == FL_EFF_AGGREGATE) {
        s->aggregate = *e;
        s->aggregate.parts = NULL;
    }
}

static void step(struct script *s, struct fl_event *ev)
{
    struct fl_event released = {.type = FL_EV_RELEASED};
    uint32_t *numbers;
    struct fl_effects effects;
    size_t n = 0;
    size_t i;

    ev->now_ms = s->now;
    ev->wall_ms = 1000000 + s->now + s->wall_ahead;
    ev->traffic = s->traffic;
    coord_check_event(&s->check, ev);
    ck_assert_int_eq((s->take != NULL ? s->take : fl_coord_step)(s->coord, ev, &effects), FL_OK);
    numbers = calloc(effects.n + 1, sizeof(*numbers));
    ck_assert_ptr_nonnull(numbers);
    for (i = 0; i < effects.n; i++) {
        if (!s->quiet) {
            put_effect(s, &effects.list[i]);
        }
        keep_work(s, &effects.list[i]);
        if (effects.list[i].type == FL_EFF_RELEASE) {
            numbers[n++] = effects.list[i].client;
        }
    }
    coord_check_effects(&s->check, s->coord, ev, &effects);
    ck_assert_msg(s->check.broken[0] == '\0', "%s", s->check.broken);
    for (i = 0; i < n; i++) {
        released.u.client = numbers[i];
        step(s, &released);
    }
    free(numbers);
}

void script_step(struct script *s, struct fl_event *ev)
{
    step(s, ev);
    if (!s->manual) {
        script_answer_all(s);
    }
}

static struct script_work take_work(struct script *s)
{
    struct script_work w = s->works[0];

    ck_assert_uint_gt(s->n_works, 0);
    s->n_works--;
    (void)memmove(&s->works[0], &s->works[1], s->n_works * sizeof(s->works[0]));
    return w;
}

void script_answer(struct script *s)
{
    struct script_work w = take_work(s);
    struct fl_event ev = {.type = FL_EV_PERSISTED};
    double *distance = calloc(w.n_parts + 1, sizeof(*distance));
    size_t i;

    ck_assert_ptr_nonnull(distance);
    if (w.type == FL_EFF_AGGREGATE) {
        ev.type = FL_EV_AGGREGATED;
        ev.u.aggregated.seq = w.seq;
        for (i = 0; i < w.n_parts; i++) {
            distance[i] = 1.0 + (double)i;
        }
        ev.u.aggregated.distance = distance;
        ev.u.aggregated.collection_bytes = s->collection_bytes;
        ev.u.aggregated.effective = s->effective;
        ev.u.aggregated.self_weight = s->self_weight;
        ev.u.aggregated.robust_clients = s->robust_clients;
    } else if (w.type == FL_EFF_EVALUATE) {
        ev.type = FL_EV_EVALUATED;
        ev.u.evaluated.seq = w.seq;
        ev.u.evaluated.accuracy = s->accuracy;
        ev.u.evaluated.loss = s->loss;
        ev.u.evaluated.metrics = s->metrics;
    } else {
        ev.type = w.type == FL_EFF_COMMIT ? FL_EV_COMMITTED : FL_EV_PERSISTED;
        ev.u.seq = w.seq;
    }
    step(s, &ev);
    free(distance);
}

void script_answer_all(struct script *s)
{
    while (s->n_works > 0) {
        script_answer(s);
    }
}

void script_fail(struct script *s, int code, const char *reason, uint32_t client)
{
    struct script_work w = take_work(s);
    struct fl_event ev = {.type = FL_EV_WORK_FAILED};

    ev.u.failed_work.seq = w.seq;
    ev.u.failed_work.code = code;
    ev.u.failed_work.reason = reason;
    ev.u.failed_work.client = client;
    step(s, &ev);
}

uint32_t script_id(const struct script *s, const char *name)
{
    return fl_coord_find(s->coord, name);
}

void script_start(struct script *s)
{
    script_simple(s, FL_EV_START);
}

void script_simple(struct script *s, enum fl_event_type type)
{
    script_wish(s, type, NULL);
}

void script_wish(struct script *s, enum fl_event_type type, const char *reason)
{
    struct fl_event ev = {.type = type, .u.reason = reason};

    script_step(s, &ev);
}

void script_of_client(struct script *s, enum fl_event_type type, const char *name,
                      const char *reason)
{
    struct fl_event ev = {.type = type, .u.of_client = {name, reason}};

    script_step(s, &ev);
}

void script_join(struct script *s, const char *name, uint64_t samples)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_JOINED};

    ev.u.joined.name = name;
    ev.u.joined.agent = "script 1";
    ev.u.joined.samples = samples;
    ev.u.joined.evaluation_samples = samples / 10;
    script_step(s, &ev);
}

void script_join_unavailable(struct script *s, const char *name, uint64_t samples,
                             const char *reason)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_JOINED};

    ev.u.joined.name = name;
    ev.u.joined.samples = samples;
    ev.u.joined.unavailable = reason;
    script_step(s, &ev);
}

void script_join_waiting(struct script *s, const char *name, uint64_t samples)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_JOINED};

    ev.u.joined.name = name;
    ev.u.joined.samples = samples;
    ev.u.joined.summary_missing = true;
    script_step(s, &ev);
}

void script_summary(struct script *s, const char *name, const char *said)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_SUMMARY};

    ev.u.summary.client = script_id(s, name);
    ev.u.summary.name = said;
    script_step(s, &ev);
}

static void script_lose(struct script *s, const char *name, bool silent)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_LOST};

    ev.u.lost.client = script_id(s, name);
    ev.u.lost.silent = silent;
    script_step(s, &ev);
}

void script_lost(struct script *s, const char *name)
{
    script_lose(s, name, /* silent= */ false);
}

void script_silent(struct script *s, const char *name)
{
    script_lose(s, name, /* silent= */ true);
}

void script_forget_client(struct script *s, const char *name)
{
    struct fl_event ev = {.type = FL_EV_FORGET};

    ev.u.client = script_id(s, name);
    script_step(s, &ev);
}

void script_exclude(struct script *s, const char *name)
{
    struct fl_event ev = {.type = FL_EV_EXCLUDE};

    ev.u.excluded.client = script_id(s, name);
    ev.u.excluded.reason = "its certificate is revoked";
    script_step(s, &ev);
}

void script_evict(struct script *s, const char *name)
{
    struct fl_event ev = {.type = FL_EV_EXCLUDE};

    ev.u.excluded.client = script_id(s, name);
    ev.u.excluded.reason = "its certificate is revoked";
    ev.u.excluded.leaves = true;
    script_step(s, &ev);
}

void script_report_of(struct script *s, const char *name, uint64_t round, uint32_t attempt,
                      uint64_t samples, double loss, const float *d, size_t n)
{
    struct fl_event ev = {.type = FL_EV_REPORT};

    ev.u.report.client = script_id(s, name);
    ev.u.report.round = round;
    ev.u.report.attempt = attempt;
    ev.u.report.samples = samples;
    ev.u.report.steps = 5;
    ev.u.report.train_loss = loss;
    ev.u.report.divergence = d;
    ev.u.report.n_divergence = n;
    script_step(s, &ev);
}

void script_report(struct script *s, const char *name, const float *d)
{
    uint32_t id = script_id(s, name);

    script_report_of(s, name, fl_coord_round(s->coord), fl_coord_attempt(s->coord),
                     fl_coord_client(s->coord, id)->samples, 2.0, d, d != NULL ? SCRIPT_UNITS : 0);
}

void script_stored(struct script *s, const char *name)
{
    struct fl_event ev = {.type = FL_EV_UPLOAD_STORED};
    const uint8_t *units = NULL;
    size_t l;

    ev.u.upload.client = script_id(s, name);
    ev.u.upload.round = fl_coord_round(s->coord);
    ev.u.upload.attempt = fl_coord_attempt(s->coord);
    if (fl_coord_may_push(s->coord, ev.u.upload.client, ev.u.upload.round, ev.u.upload.attempt,
                          &units, NULL) == FL_OK)
    {
        for (l = 0; l < SCRIPT_UNITS; l++) {
            ev.u.upload.bytes += units[l] != 0 ? 4 * fl_layout_unit(s->layout, l)->count : 0;
        }
    }
    script_step(s, &ev);
}

void script_stored_with(struct script *s, const char *name, const struct fl_norms *norms)
{
    struct fl_event ev = {.type = FL_EV_UPLOAD_STORED};

    ev.u.upload.client = script_id(s, name);
    ev.u.upload.round = fl_coord_round(s->coord);
    ev.u.upload.attempt = fl_coord_attempt(s->coord);
    ev.u.upload.bytes = 56;
    ev.u.upload.norms = norms;
    script_step(s, &ev);
}

void script_invalid(struct script *s, const char *name, const char *reason)
{
    struct fl_event ev = {.type = FL_EV_UPLOAD_INVALID};

    ev.u.upload.client = script_id(s, name);
    ev.u.upload.round = fl_coord_round(s->coord);
    ev.u.upload.attempt = fl_coord_attempt(s->coord);
    ev.u.upload.reason = reason;
    script_step(s, &ev);
}

void script_progress(struct script *s, const char *name, uint64_t bytes)
{
    struct fl_event ev = {.type = FL_EV_UPLOAD_PROGRESS};

    ev.u.upload.bytes = bytes;
    ev.u.upload.client = script_id(s, name);
    ev.u.upload.round = fl_coord_round(s->coord);
    ev.u.upload.attempt = fl_coord_attempt(s->coord);
    script_step(s, &ev);
}

void script_unstored(struct script *s, const char *name, int code, const char *reason)
{
    struct fl_event ev = {.type = FL_EV_UPLOAD_UNSTORED};

    ev.u.upload.client = script_id(s, name);
    ev.u.upload.round = fl_coord_round(s->coord);
    ev.u.upload.attempt = fl_coord_attempt(s->coord);
    ev.u.upload.code = code;
    ev.u.upload.reason = reason;
    script_step(s, &ev);
}

static void tell_failed(struct script *s, const char *name, const char *reason, bool diverged,
                        bool unavailable)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_FAILED};

    ev.u.failed.client = script_id(s, name);
    ev.u.failed.round = fl_coord_round(s->coord);
    ev.u.failed.attempt = fl_coord_attempt(s->coord);
    ev.u.failed.reason = reason;
    ev.u.failed.diverged = diverged;
    ev.u.failed.unavailable = unavailable;
    script_step(s, &ev);
}

void script_failed(struct script *s, const char *name, const char *reason)
{
    tell_failed(s, name, reason, false, false);
}

void script_diverged(struct script *s, const char *name, const char *reason)
{
    tell_failed(s, name, reason, true, false);
}

void script_unavailable(struct script *s, const char *name, const char *reason)
{
    tell_failed(s, name, reason, false, true);
}

void script_run_to(struct script *s, uint64_t now)
{
    while (fl_coord_deadline(s->coord) <= now) {
        s->now = fl_coord_deadline(s->coord);
        script_simple(s, FL_EV_TICK);
    }
    s->now = now;
}

void script_forget(struct script *s)
{
    fl_buf_clear(&s->log);
}

void script_expect(struct script *s, const char *text)
{
    ck_assert_int_eq(fl_buf_add(&s->log, "", 1), FL_OK);
    if (strcmp((const char *)s->log.data, text) != 0) {
        ck_abort_msg("it went like this:\n%s\nexpected was:\n%s", (const char *)s->log.data, text);
    }
    fl_buf_clear(&s->log);
}

void script_why(struct script *s, const char *text)
{
    const char *missing[4];
    char out[512];
    size_t n = 0;

    fl_coord_why(s->coord, s->now, out, sizeof(out), missing, 4, &n);
    ck_assert_str_eq(out, text);
}

struct script *script_fedavg(void)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    return s;
}

void script_set(struct script *s, enum fl_component component, const char *name)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_strategy_set(s->strategy, component, name, &err) == FL_OK, "%s", err.msg);
}

void script_begin(struct script *s, unsigned n)
{
    static const char *const first[] = {"a", "b", "c"};
    unsigned i;

    s->conf.start_clients = n;
    script_create(s, NULL);
    script_start(s);
    for (i = 0; i < n; i++) {
        script_join(s, first[i], 100);
    }
}

void script_respond(struct script *s, const char *name)
{
    script_report(s, name, NULL);
    script_stored(s, name);
}

struct script *script_of_two(const char *preset)
{
    struct script *s = script_new(preset);

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 300);
    script_join(s, "b", 100);
    script_forget(s);
    return s;
}

struct script *script_fedldf(void)
{
    struct script *s = script_new("fedldf");

    script_option(s, FL_COMPONENT_UPLOAD, "n", "1");
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    return s;
}

enum fl_participant_state script_state(const struct script *s, const char *name)
{
    return fl_coord_part(s->coord, script_id(s, name))->state;
}
