/*
 * Reports, failures and uploads of clients within a round. Any of them may come at any time, twice,
 * or too late. On the thread of the coordinator; the bytes of an upload are checked and stored by
 * the caller, its record is written in coord_update.c.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

static bool in_round(const struct fl_coord *c)
{
    return c->sm.state == FL_PHASE_TRAINING || c->sm.state == FL_PHASE_UPLOADING;
}

/* Rejects all non-finite numbers, except in evaluations, which only describe a model: those are
   ignored, see report_take_evaluation(). */
static const char *check_report(struct fl_coord *c, const struct fl_event *ev)
{
    size_t n = ev->u.report.n_divergence;
    size_t l;

    if (ev->u.report.samples == 0) {
        return "report: 0 samples, expected at least 1";
    }
    if (!isfinite(ev->u.report.train_loss)) {
        return "report: the training loss is NaN or infinite";
    }
    if (c->needs_previous_dot && !isfinite(ev->u.report.previous_dot)) {
        return "report: the inner product with the previous update is NaN or infinite";
    }
    if (n != c->n_units && (c->needs_divergence || n != 0)) {
        return fl__coord_text(c, "report: %zu divergences, expected %zu, one per layer", n,
                              c->n_units);
    }
    for (l = 0; l < n; l++) {
        float d = ev->u.report.divergence[l];

        if (!isfinite(d) || d < 0.0f) {
            return fl__coord_text(
                c, "report: the divergence of layer %zu is not a finite number >= 0", l);
        }
    }
    return NULL;
}

/* An unusable evaluation does not make the update unusable. */
static struct fl_eval_rec report_take_evaluation(struct fl_coord *c, uint32_t client,
                                                 const char *what, const struct fl_eval_rec *eval)
{
    struct fl__client *live = &c->clients.live[client];
    const char *bad;

    if (!live->evaluates && live->evaluation_samples == 0) {
        live->evaluation_samples = eval->samples;
    }
    bad = fl__eval_bad(c, client, eval);
    if (bad != NULL) {
        fl__coord_trace(c, "client '%s': evaluation of the %s model ignored: %s",
                        fl__coord_name(c, client), what, bad);
        return (struct fl_eval_rec){0};
    }
    return fl__eval_take(c, client, what, eval);
}

/*
 * A round counts a client with the samples that it announced before the draw: a larger number in a
 * report counts from the next draw on, where the weight cap applies. A report of fewer samples (it
 * trained on some of them) counts with those.
 */
static void report_take_samples(struct fl_coord *c, struct fl_participant_rec *part,
                                uint64_t samples)
{
    struct fl_client_rec *rec = &c->clients.recs[part->client];

    if (samples > part->samples && samples > rec->samples) {
        fl__coord_warn(c,
                       "client '%s' reports %" PRIu64 " samples but announced %" PRIu64
                       ": round %" PRIu64 " counts it with %" PRIu64,
                       rec->name, samples, rec->samples, c->round.round, part->samples);
        fl__coord_client_error(
            c, part->client,
            "reports more samples than it announced; the round counts the announced number");
    } else if (samples != rec->samples) {
        fl__coord_trace(c, "client '%s' has %" PRIu64 " samples, it had %" PRIu64 "", rec->name,
                        samples, rec->samples);
    }
    part->samples = samples < part->samples ? samples : part->samples;
    /* Its data may have changed since it connected. */
    fl__clients_uncount(&c->clients, part->client);
    rec->samples = samples;
    fl__clients_count(&c->clients, part->client);
}

/* Did the client train with the generation of client state that the server counts on? If not,
   its lost state is still in the server's sum while the client starts from zero. */
static void check_kept(struct fl_coord *c, uint32_t client, const struct fl_event *ev)
{
    const struct fl_client_rec *rec = &c->clients.recs[client];

    if (!ev->u.report.has_kept || !fl__coord_is_summed(c, client) ||
        (ev->u.report.kept_round == rec->counted_round &&
         ev->u.report.kept_attempt == rec->counted_attempt))
    {
        return;
    }
    fl__coord_client_error(
        c, client,
        fl__coord_text(c,
                       "lost its client state of round %" PRIu64
                       ": was its state folder removed, or replaced by an older copy?",
                       rec->counted_round));
    fl__coord_begin_epoch(c, "client '%s' lost its control, which is in the sum of controls",
                          fl__coord_name(c, client));
}

/* What it uploaded is false or cannot be used: this counts towards its quarantine. A report that is
   invalid by itself does not: nothing was taken of it. */
static void report_reject_false(struct fl_coord *c, size_t i, enum fl_offence_kind kind,
                                const char *reason)
{
    fl__participant_reject(c, i, reason);
    fl__coord_offence(c, i, kind, reason);
}

static void take_report(struct fl_coord *c, size_t i, const struct fl_event *ev)
{
    struct fl__round *r = &c->round;
    struct fl_participant_rec *part = &r->parts[i];
    const char *bad = check_report(c, ev);

    if (bad != NULL) {
        fl__participant_reject(c, i, bad);
        return;
    }
    report_take_samples(c, part, ev->u.report.samples);
    part->steps = ev->u.report.steps;
    part->train_loss = ev->u.report.train_loss;
    part->previous_dot = c->needs_previous_dot ? ev->u.report.previous_dot : 0.0;
    part->received = report_take_evaluation(c, part->client, "received", &ev->u.report.received);
    if (c->conf.strategy->personal->trained) {
        part->trained = report_take_evaluation(c, part->client, "trained", &ev->u.report.trained);
    }
    r->live[i].reported = true;
    check_kept(c, part->client, ev);
    if (ev->u.report.n_divergence > 0) {
        part->divergence = r->divergence + i * c->n_units;
        (void)memcpy(part->divergence, ev->u.report.divergence, c->n_units * sizeof(float));
    }
    c->clients.recs[part->client].last_loss = part->train_loss;
    fl__participant_set(c, i, FL_PARTICIPANT_REPORTED);
    if (fl__coord_has_feedback(c)) {
        return;
    }
    fl__straggler_asked(c, i);
    if (fl__units_empty(part->units, c->n_units)) {
        r->live[i].stored = true; /* Empty upload mask: its report is its update. */
    }
    bad = fl__claim_bad(c, i);
    if (bad != NULL) {
        report_reject_false(c, i, FL_OFFENCE_CLAIM, bad);
    } else if (r->live[i].stored) {
        fl__coord_persist_update(c, i);
    }
}

void fl__coord_report(struct fl_coord *c, const struct fl_event *ev)
{
    uint32_t client = ev->u.report.client;
    uint32_t i = fl__coord_participant(c, client, ev->u.report.round, ev->u.report.attempt);

    if (i == FL__NONE) {
        return;
    }
    switch (c->round.parts[i].state) {
    case FL_PARTICIPANT_SELECTED:
        if (c->sm.state == FL_PHASE_TRAINING) {
            take_report(c, i, ev);
        }
        break;
    case FL_PARTICIPANT_PLANNED: /* It reconnected and reports again: it missed its plan. */
        fl__claim_repeated(c, i, ev);
        if (c->sm.state == FL_PHASE_UPLOADING && c->work.kind != FL__WORK_PLAN) {
            fl__coord_effect_for(c, FL_EFF_PLAN, client)->units = c->round.parts[i].units;
        }
        break;
    case FL_PARTICIPANT_EMPTY:
        if (fl__coord_empty_confirmed(c)) {
            fl__coord_accepted(c, i);
        }
        break;
    case FL_PARTICIPANT_ACCEPTED:
        fl__coord_accepted(c, i);
        break;
    case FL_PARTICIPANT_REPORTED: /* A repeated report; the first one counts. */
        fl__claim_repeated(c, i, ev);
        break;
    case FL_PARTICIPANT_REJECTED:
    case FL_PARTICIPANT_LOST:
        break;
    }
}

static void client_does_not_fit(struct fl_coord *c, const struct fl_event *ev)
{
    uint32_t client = ev->u.failed.client;
    char clean[FL__CLEAN_SIZE];

    if (!fl__clients_used(&c->clients, client) || !c->clients.live[client].connected ||
        c->clients.live[client].unfit)
    {
        return;
    }
    c->clients.live[client].unfit = true;
    (void)fl__coord_clean(clean, sizeof(clean), ev->u.failed.reason);
    fl__coord_warn(c, "client '%s' cannot take part: %s", fl__coord_name(c, client), clean);
    fl__coord_client_error(c, client, fl__coord_text(c, "%s", clean));
}

/* Not a failure: the owner needs the device itself. */
static void participant_unavailable(struct fl_coord *c, uint32_t i, const struct fl_event *ev)
{
    uint32_t client = ev->u.failed.client;
    char clean[FL__CLEAN_SIZE];

    (void)fl__coord_clean(clean, sizeof(clean), ev->u.failed.reason);
    fl__coord_trace(c,
                    "client '%s' is not available: %s; it leaves the round, which does not count "
                    "against it",
                    fl__coord_name(c, client), clean);
    fl__coord_client_error(c, client, fl__coord_text(c, "not available: %s", clean));
    fl__clients_uncount(&c->clients, client); /* Not selected until a Hello says otherwise. */
    c->clients.live[client].unavailable = true;
    c->clients.live[client].evaluates = false;
    fl__clients_count(&c->clients, client);
    fl__participant_set(c, i, FL_PARTICIPANT_LOST);
    c->round.live[i].blameless = true;
}

void fl__coord_client_failed(struct fl_coord *c, const struct fl_event *ev)
{
    uint32_t client = ev->u.failed.client;
    char clean[FL__CLEAN_SIZE];
    uint32_t i;

    if (ev->u.failed.round == 0) {
        client_does_not_fit(c, ev);
        return;
    }
    i = fl__coord_participant(c, client, ev->u.failed.round, ev->u.failed.attempt);
    if (i == FL__NONE || !in_round(c) || !fl__participant_waiting(c, i) ||
        fl__participant_stored(c, i)) {
        return;
    }
    if (ev->u.failed.unavailable) {
        participant_unavailable(c, i, ev);
        return;
    }
    fl__coord_warn(c, "client '%s' %s: %s", fl__coord_name(c, client),
                   ev->u.failed.diverged ? "diverged" : "failed",
                   fl__coord_clean(clean, sizeof(clean), ev->u.failed.reason));
    fl__coord_client_error(c, client, fl__coord_text(c, "%s", clean));
    c->round.n_diverged += ev->u.failed.diverged;
    fl__participant_set(c, i, FL_PARTICIPANT_LOST);
}

/* An upload is allowed once the participant has a mask; without feedback it may overtake the
   report, which is on another stream. */
static bool welcome_upload(const struct fl_coord *c, size_t i)
{
    enum fl_participant_state state = c->round.parts[i].state;

    if (!in_round(c) || c->work.kind == FL__WORK_PLAN) {
        return false;
    }
    return fl__coord_has_feedback(c)
               ? state == FL_PARTICIPANT_PLANNED
               : state == FL_PARTICIPANT_SELECTED || state == FL_PARTICIPANT_REPORTED;
}

void fl__coord_upload_stored(struct fl_coord *c, const struct fl_event *ev)
{
    uint32_t i =
        fl__coord_participant(c, ev->u.upload.client, ev->u.upload.round, ev->u.upload.attempt);
    struct fl__participant *live;
    const char *bad;

    if (i == FL__NONE) {
        return;
    }
    if (c->round.parts[i].state == FL_PARTICIPANT_ACCEPTED) {
        fl__coord_accepted(c, i);
        return;
    }
    live = &c->round.live[i];
    if (!welcome_upload(c, i) || live->stored) {
        return;
    }
    live->stored = true;
    live->blameless = false;
    fl__straggler_stored(c, i, ev->u.upload.bytes);
    c->round.store_error[0] = '\0';
    live->stored_bytes = ev->u.upload.bytes;
    if (ev->u.upload.norms != NULL) {
        (void)memcpy(c->round.parts[i].rms, ev->u.upload.norms->rms, sizeof(c->round.parts[i].rms));
        fl__claim_take(c, i, ev->u.upload.norms);
    }
    bad = fl__claim_bad(c, i);
    if (bad != NULL) {
        report_reject_false(c, i, FL_OFFENCE_CLAIM, bad);
    } else if (c->round.parts[i].state != FL_PARTICIPANT_SELECTED) {
        fl__coord_persist_update(c, i);
    }
}

void fl__coord_upload_invalid(struct fl_coord *c, const struct fl_event *ev)
{
    uint32_t i =
        fl__coord_participant(c, ev->u.upload.client, ev->u.upload.round, ev->u.upload.attempt);

    if (i == FL__NONE || !welcome_upload(c, i) || c->round.live[i].stored) {
        return;
    }
    if (ev->u.upload.code == FL_ENUMERIC) {
        c->round.n_diverged++;
        c->round.n_unusable++;
        c->round.not_finite =
            c->round.not_finite == FL__NONE ? ev->u.upload.client : c->round.not_finite;
    }
    report_reject_false(c, i, FL_OFFENCE_UPDATE,
                        ev->u.upload.reason != NULL ? ev->u.upload.reason : "bad upload");
}

/*
 * The server's own trouble is not the clients' fault: from its last occurrence on, each client that
 * still has to upload has the whole time again. Not the surplus clients, when enough are in. An I/O
 * error concerns the file of this client alone: it moves no deadline, and the others do not wait
 * for that file.
 */
void fl__coord_upload_unstored(struct fl_coord *c, const struct fl_event *ev)
{
    struct fl__round *r = &c->round;
    uint32_t i =
        fl__coord_participant(c, ev->u.upload.client, ev->u.upload.round, ev->u.upload.attempt);
    uint64_t until = fl__coord_after(c, c->conf.upload_ms);
    bool first = r->store_error[0] == '\0';
    char reason[FL__CLEAN_SIZE];

    if (i == FL__NONE || !welcome_upload(c, i) || r->live[i].stored || r->grace_only || r->expired)
    {
        return;
    }
    (void)fl__coord_clean(reason, sizeof(reason),
                          ev->u.upload.reason != NULL ? ev->u.upload.reason : "unknown reason");
    if (ev->u.upload.code == FL_EIO) {
        r->live[i].blameless = true;
        fl__coord_warn(c, "upload of client '%s' could not be stored, the client retries: %s",
                       fl__coord_name(c, ev->u.upload.client), reason);
        return;
    }
    (void)memcpy(r->store_error, reason, sizeof(r->store_error));
    r->deadline_ms = until > r->deadline_ms ? until : r->deadline_ms;
    fl__straggler_excuse(c);
    if (first) {
        fl__coord_trace(c,
                        "round %" PRIu64
                        ": uploads cannot be stored, upload deadline extended to %" PRIu64
                        " ms after the last failure: %s",
                        r->round, c->conf.upload_ms, r->store_error);
    }
}
