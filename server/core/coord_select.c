/*
 * Selection of the clients of a round (docs/algorithms.md#events-in-a-round): their
 * number, weights, scores and the draw. On the thread of the coordinator; policies compute, this
 * file feeds them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/sorted.h"

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

size_t fl__coord_population(const struct fl_coord *c)
{
    return c->conf.population != 0 ? c->conf.population : c->clients.n_members;
}

/* min_responders as far as it does not depend on the selection; FL_RESPONDERS_HALF: 0. */
static uint32_t fixed_least(const struct fl_coord *c)
{
    return c->conf.min_responders != FL_RESPONDERS_HALF ? c->conf.min_responders : 0;
}

uint32_t fl__coord_least(const struct fl_coord *c)
{
    return c->conf.min_responders != FL_RESPONDERS_HALF
               ? c->conf.min_responders
               : (uint32_t)((c->round.size.selected + 1) / 2);
}

uint32_t fl__coord_need(const struct fl_coord *c)
{
    uint32_t need = c->conf.min_clients;

    /* With fewer clients than min_responders the attempt would be aborted at once. */
    need = need > fixed_least(c) ? need : fixed_least(c);
    if (c->committed == 0 && c->conf.start_clients > need) {
        need = c->conf.start_clients;
    }
    return need > 0 ? need : 1;
}

/* --- weight of a client --- */

double fl__coord_weight(const struct fl_coord *c, uint32_t client)
{
    double samples = (double)c->clients.recs[client].samples;

    return samples < c->clients.most_samples ? samples : c->clients.most_samples;
}

/* weight_cap times the median of the candidates; of two in the middle the smaller one, so that
   neither of two clients is its own measure. */
static void set_most_samples(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    struct fl_order_at at = {0};
    uint32_t client;
    double most;
    size_t n = 0;

    t->most_samples = (double)INFINITY;
    while ((client = fl_order_next(&t->connected, &at)) != FL__NONE) {
        if (fl__clients_alive(t, client)) {
            t->samples[n++] = (double)t->recs[client].samples;
        }
    }
    if (n == 0 || !(c->conf.weight_cap > 0.0)) {
        return;
    }
    most = floor(c->conf.weight_cap * fl_lower_median(t->samples, n));
    t->most_samples = most > 1.0 ? most : 1.0;
}

static struct fl_score_sums select_sum_scores(const struct fl_coord *c)
{
    struct fl_score_sums sums = {0};
    struct fl_order_at at = {0};
    uint32_t client;

    while ((client = fl_order_next(&c->clients.names, &at)) != FL__NONE) {
        const struct fl_client_rec *rec = &c->clients.recs[client];

        if (rec->scored) {
            sums.scores += rec->score;
            sums.samples += fl__coord_weight(c, client);
        }
    }
    return sums;
}

void fl__coord_add_scores(struct fl_coord *c)
{
    c->clients.sums = select_sum_scores(c);
}

/*
 * Scores are assigned at the draw, not at the connection, so that they depend on the known clients
 * in client order, and not on the order of connections. Scores of the others stay: only shares
 * count, so a new client changes all shares by what it gets.
 */
void fl__coord_ensure_scores(struct fl_coord *c)
{
    const struct fl_selection_ops *ops = c->conf.strategy->selection;
    const struct fl_options *o = c->conf.strategy->options[FL_COMPONENT_SELECTION];
    struct fl_score_sums *sums = &c->clients.sums;
    struct fl_order_at at = {0};
    bool restart;
    uint32_t client;

    if (ops->join == NULL) {
        return;
    }
    *sums = select_sum_scores(c);
    restart = !(sums->scores > 0.0) || !isfinite(sums->scores);
    *sums = restart ? (struct fl_score_sums){0} : *sums;
    while ((client = fl_order_next(&c->clients.names, &at)) != FL__NONE) {
        struct fl_client_rec *rec = &c->clients.recs[client];

        if (rec->samples == 0 || (rec->scored && !restart)) {
            continue;
        }
        rec->score = ops->join(o, fl__coord_weight(c, client), sums);
        rec->scored = true;
        sums->scores += rec->score;
        sums->samples += fl__coord_weight(c, client);
        fl__clients_dirty(&c->clients, client);
    }
}

static void fill_parts(struct fl_coord *c, const uint32_t *chosen)
{
    struct fl__names names = {.used = 0};
    struct fl__round *r = &c->round;
    uint32_t i;

    r->round = c->committed + 1;
    r->attempt = c->attempt;
    for (i = 0; i < r->n; i++) {
        uint32_t id = c->clients.index[chosen[i]];

        r->parts[i].client = id;
        r->parts[i].samples = (uint64_t)fl__coord_weight(c, id);
        if (r->parts[i].samples < c->clients.recs[id].samples) {
            fl__names_add(&names, fl__coord_name(c, id));
        }
        r->parts[i].state = FL_PARTICIPANT_SELECTED;
        c->clients.live[id].part = i;
    }
    r->count[FL_PARTICIPANT_SELECTED] = r->n;
    if (names.total > 0) {
        fl__coord_warn(
            c,
            "round %" PRIu64
            ": weight capped at %.0f samples, %g times the median (round.weight_cap): %s",
            r->round, c->clients.most_samples, c->conf.weight_cap, fl__names_text(&names));
    }
}

/* Number of clients to select: K_t of the fraction, whatever is connected, and at least
   min_responders; to ask: times over_selection. */
static size_t count_wanted(struct fl_coord *c, size_t *ret_ask)
{
    const struct fl_strategy *s = c->conf.strategy;
    double gamma = s->fraction->at(s->options[FL_COMPONENT_FRACTION], c->committed + 1);
    size_t alive = c->clients.n_alive;
    size_t want = fl_fraction_count(gamma, fl__coord_population(c));
    double ask;

    want = want > fixed_least(c) ? want : fixed_least(c);
    if (want > alive) {
        fl__coord_trace(c, "round %" PRIu64 ": %zu clients wanted, only %zu are connected",
                        c->committed + 1, want, alive);
        want = alive;
    }
    ask = ceil((double)want * c->conf.over_selection);
    *ret_ask = ask < (double)alive ? (size_t)ask : alive;
    return want;
}

/* Draw S_t and, when uploads need no feedback, plan them; false without memory. */
static bool select_draw(struct fl_coord *c, size_t want, size_t ask)
{
    const struct fl_strategy *s = c->conf.strategy;
    struct fl__clients *t = &c->clients;
    struct fl_select_input in = {.want = ask,
                                 .scores = t->scores,
                                 .samples = t->samples,
                                 .share_cap = c->conf.share_cap,
                                 .capped = t->capped};
    uint32_t capped;
    struct fl_order_at at = {0};
    struct fl_rng rng;
    size_t members;
    uint32_t client;
    uint32_t i;

    set_most_samples(c);
    fl__coord_ensure_scores(c);
    /* The candidates, in client order. */
    while ((client = fl_order_next(&t->connected, &at)) != FL__NONE) {
        if (fl__clients_alive(t, client)) {
            t->index[in.n] = client;
            t->scores[in.n] = t->recs[client].score;
            t->samples[in.n++] = fl__coord_weight(c, client);
        }
    }
    (void)memset(t->capped, 0, in.n);
    fl_rng_key(&rng, c->conf.seed, FL_RNG_SELECT, c->committed + 1, c->attempt);
    if (s->selection->pick(s->options[FL_COMPONENT_SELECTION], &in, &rng, t->chosen) != FL_OK) {
        return false;
    }
    fill_parts(c, t->chosen);
    capped = fl__share_note_draws(c, &in);
    /* The epoch was to start after an attempt that was aborted since: it starts here. */
    if (t->epoch > c->committed + 1) {
        t->epoch = c->committed + 1;
    }
    /* Clients in the server's mean of client state (SCAFFOLD's control): a fixed N that is larger
     * includes clients that have yet to connect; a smaller one would divide by fewer than are in
     * the sum. */
    members = t->n_counted > c->conf.population ? t->n_counted : c->conf.population;
    c->round.size = (struct fl_round_size){.selected = (uint32_t)want,
                                           .population = (uint32_t)fl__coord_population(c),
                                           .members = (uint32_t)members,
                                           .epoch = t->epoch,
                                           .capped = capped};
    c->round.rec.started_ms = c->wall_ms;
    if (fl__coord_has_feedback(c)) {
        return true;
    }
    for (i = 0; i < c->round.n; i++) {
        t->chosen[i] = i;
    }
    return fl__coord_round_plan(c, t->chosen, c->round.n, false);
}

bool fl__coord_select(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t ask;
    size_t want = count_wanted(c, &ask);
    size_t i;

    if (fl__coord_round_create(&c->round, ask, c->n_units) != FL_OK || !select_draw(c, want, ask)) {
        fl__coord_round_done(c);
        c->not_before_ms = fl__coord_after(c, fl__coord_backoff(c, 1));
        fl__coord_trace(c, "round %" PRIu64 ": out of memory for %zu clients, retrying",
                        c->committed + 1, ask);
        return false;
    }
    /* A client gets a record on disk with its first selection. */
    r->n_records = 0;
    for (i = 0; i < r->n; i++) {
        uint32_t client = r->parts[i].client;

        if (!c->clients.live[client].recorded) {
            c->clients.live[client].recorded = true;
            r->records[r->n_records++] = c->clients.recs[client];
        }
    }
    fl__coord_move(c, FL_PHASE_SELECTING, "%zu of %zu connected clients", ask, c->clients.n_alive);
    fl__coord_work(c, FL__WORK_SELECTION);
    return false;
}
