/*
 * The table of the open round: the participants and their states, their upload masks, and the
 * counts by state. On the thread of the coordinator; when a state changes is decided in
 * coord_round.c and coord_report.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

static void free_arrays(struct fl__round *r)
{
    size_t i;

    for (i = 0; r->parts != NULL && i < r->n; i++) {
        fl__eval_done(&r->parts[i].received);
        fl__eval_done(&r->parts[i].trained);
    }
    fl__coord_forget_figures(r);
    free(r->parts);
    free(r->remarks);
    free(r->live);
    free(r->divergence);
    free(r->sent);
    free(r->units);
    free(r->grant);
    free(r->feedback);
    free(r->distance);
    free(r->listed);
    free(r->saved);
    free(r->records);
}

int fl__coord_round_create(struct fl__round *r, size_t n, size_t n_units)
{
    struct fl__round fresh = {.n = n, .not_finite = FL__NONE};

    if (n > SIZE_MAX / n_units / sizeof(*fresh.sent)) {
        return FL_ENOMEM;
    }
    fresh.parts = calloc(n, sizeof(*fresh.parts));
    fresh.remarks = calloc(n, sizeof(*fresh.remarks));
    fresh.live = calloc(n, sizeof(*fresh.live));
    fresh.divergence = calloc(n * n_units, sizeof(*fresh.divergence));
    fresh.sent = calloc(n * n_units, sizeof(*fresh.sent));
    fresh.units = calloc(n * n_units, sizeof(*fresh.units));
    fresh.grant = calloc(n * n_units, sizeof(*fresh.grant));
    fresh.feedback = calloc(n * n_units, sizeof(*fresh.feedback));
    fresh.distance = calloc(n, sizeof(*fresh.distance));
    fresh.listed = calloc(n, sizeof(*fresh.listed));
    fresh.saved = calloc(n, sizeof(*fresh.saved));
    fresh.records = calloc(n + FL__DIRTY_STEP, sizeof(*fresh.records));
    if (fresh.parts == NULL || fresh.remarks == NULL || fresh.live == NULL ||
        fresh.divergence == NULL || fresh.sent == NULL || fresh.units == NULL ||
        fresh.grant == NULL || fresh.feedback == NULL || fresh.distance == NULL ||
        fresh.listed == NULL || fresh.saved == NULL || fresh.records == NULL)
    {
        free_arrays(&fresh);
        return FL_ENOMEM;
    }
    fresh.deadline_ms = FL__NEVER;
    fresh.grace_ms = FL__NEVER;
    fresh.quiet_ms = FL__NEVER;
    fresh.store_retry_ms = FL__NEVER;
    fl_figures_init(&fl_round_rows, &fresh.rec);
    *r = fresh;
    return FL_OK;
}

bool fl__coord_round_drawn(const struct fl_coord *c)
{
    const struct fl__round *r = &c->round;

    return r->n > 0 && fl__clients_used(&c->clients, r->parts[0].client) &&
           c->clients.live[r->parts[0].client].part == 0;
}

void fl__coord_round_done(struct fl_coord *c)
{
    size_t i;

    for (i = 0; i < c->round.n; i++) {
        uint32_t client = c->round.parts[i].client;

        if (fl__clients_used(&c->clients, client) && c->clients.live[client].part == i)
        { /* A draw that failed for lack of memory has no participants. */
            c->clients.live[client].part = FL__NONE;
            fl__clients_recycle(&c->clients, client);
        }
    }
    fl__coord_unpend_updates(c);
    fl__coord_forget_answers(c);
    free_arrays(&c->round);
    c->round = (struct fl__round){
        .round = 0, .deadline_ms = FL__NEVER, .grace_ms = FL__NEVER, .not_finite = FL__NONE};
    c->round.store_retry_ms = FL__NEVER;
    c->round.quiet_ms = FL__NEVER;
}

void fl__participant_set(struct fl_coord *c, size_t i, enum fl_participant_state state)
{
    struct fl__round *r = &c->round;

    r->count[r->parts[i].state]--;
    r->count[state]++;
    r->parts[i].state = state;
}

bool fl__participant_waiting(const struct fl_coord *c, size_t i)
{
    switch (c->round.parts[i].state) {
    case FL_PARTICIPANT_SELECTED:
    case FL_PARTICIPANT_REPORTED:
    case FL_PARTICIPANT_PLANNED:
        return true;
    case FL_PARTICIPANT_ACCEPTED:
    case FL_PARTICIPANT_EMPTY:
    case FL_PARTICIPANT_REJECTED:
    case FL_PARTICIPANT_LOST:
        break;
    }
    return false;
}

bool fl__participant_stored(const struct fl_coord *c, size_t i)
{
    return c->round.live[i].stored && c->round.parts[i].state != FL_PARTICIPANT_SELECTED;
}

enum fl_participant_state fl__coord_round_wanted(const struct fl_coord *c)
{
    if (c->sm.state == FL_PHASE_TRAINING) {
        return FL_PARTICIPANT_SELECTED;
    }
    return c->conf.strategy->upload->needs_feedback ? FL_PARTICIPANT_PLANNED
                                                    : FL_PARTICIPANT_REPORTED;
}

size_t fl__coord_round_waiting(const struct fl_coord *c)
{
    const size_t *count = c->round.count;

    return count[FL_PARTICIPANT_SELECTED] + count[FL_PARTICIPANT_REPORTED] +
           count[FL_PARTICIPANT_PLANNED];
}

size_t fl__coord_round_responders(const struct fl_coord *c)
{
    return c->round.count[FL_PARTICIPANT_ACCEPTED] + c->round.count[FL_PARTICIPANT_EMPTY];
}

bool fl__units_empty(const uint8_t *units, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (units[i] != 0) {
            return false;
        }
    }
    return true;
}

bool fl__coord_round_plan(struct fl_coord *c, const uint32_t *chosen, size_t n, bool feedback)
{
    const struct fl_strategy *s = c->conf.strategy;
    struct fl__round *r = &c->round;
    struct fl_upload_input in = {
        .n_clients = n, .n_selected = r->size.selected, .n_units = c->n_units};
    struct fl_rng rng;
    size_t i;

    if (n == 0) {
        return true;
    }
    for (i = 0; i < n; i++) {
        c->clients.samples[i] = (double)r->parts[chosen[i]].samples;
        if (feedback) {
            (void)memcpy(r->feedback + i * c->n_units, r->parts[chosen[i]].divergence,
                         c->n_units * sizeof(float));
        }
    }
    in.samples = c->clients.samples;
    in.divergence = feedback ? r->feedback : NULL;
    fl__share_plan(c, chosen, &in);
    fl_rng_key(&rng, c->conf.seed, FL_RNG_PLAN, r->round, r->attempt);
    if (s->upload->plan(s->options[FL_COMPONENT_UPLOAD], &in, &rng, r->grant) != FL_OK) {
        return false;
    }
    for (i = 0; i < n; i++) {
        uint8_t *units = r->units + chosen[i] * c->n_units;

        (void)memcpy(units, r->grant + i * c->n_units, c->n_units);
        r->parts[chosen[i]].units = units;
    }
    fl__share_note_layers(c, chosen, &in);
    return true;
}

void fl__coord_forget_norms(struct fl_participant_rec *part)
{
    size_t kind;

    for (kind = 0; kind < FL_NORMS_N; kind++) {
        part->rms[kind] = 0.0;
    }
}

void fl__coord_list_accepted(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t i;

    r->n_listed = 0;
    for (i = 0; i < r->n; i++) {
        if (r->parts[i].state == FL_PARTICIPANT_ACCEPTED) {
            r->listed[r->n_listed++] = r->parts[i];
        }
    }
}

void fl__participant_lose(struct fl_coord *c, size_t i)
{
    uint32_t client = c->round.parts[i].client;

    fl__participant_set(c, i, FL_PARTICIPANT_LOST);
    c->round.live[i].store_retry_ms = 0;
    if (c->clients.live[client].connected) {
        (void)fl__coord_effect_for(c, FL_EFF_DISMISSED, client);
    }
}

void fl__participant_reject(struct fl_coord *c, size_t i, const char *reason)
{
    uint32_t client = c->round.parts[i].client;
    char clean[FL__CLEAN_SIZE];
    struct fl_effect *e;

    fl__participant_set(c, i, FL_PARTICIPANT_REJECTED);
    fl__coord_forget_norms(&c->round.parts[i]);
    c->round.live[i].store_retry_ms = 0;
    fl__coord_warn(c, "client '%s' rejected: %s", fl__coord_name(c, client),
                   fl__coord_clean(clean, sizeof(clean), reason));
    reason = fl__coord_text(c, "%s", clean);
    fl__coord_client_error(c, client, reason);
    if (c->clients.live[client].connected) {
        e = fl__coord_effect_for(c, FL_EFF_REJECTED, client);
        e->text = reason;
    }
}

const char *fl__diverged_text(const struct fl_coord *c, char *out, size_t size)
{
    out[0] = '\0';
    if (c->round.n_diverged > 0) {
        (void)snprintf(out, size, ", %zu diverged", c->round.n_diverged);
    }
    return out;
}

void fl__coord_round_account(struct fl_coord *c)
{
    size_t i;

    for (i = 0; i < c->round.n; i++) {
        uint32_t client = c->round.parts[i].client;
        struct fl_client_rec *rec = &c->clients.recs[client];

        fl__clients_uncount(&c->clients, client);
        rec->n_selected++;
        rec->n_accepted += c->round.parts[i].state == FL_PARTICIPANT_ACCEPTED;
        rec->n_rejected += c->round.parts[i].state == FL_PARTICIPANT_REJECTED;
        rec->n_lost +=
            c->round.parts[i].state == FL_PARTICIPANT_LOST && !c->round.live[i].blameless;
        fl__clients_count(&c->clients, client);
        fl__clients_relist(c, client);
        fl__clients_dirty(&c->clients, client);
    }
}
