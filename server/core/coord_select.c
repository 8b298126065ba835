/* Who takes part: the count, the scores, the draw (ALGORITHMS 2.4, 3, 5). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/core/coord_impl.h"

/* Clients that can take part at all: what a fraction is taken of. */
static size_t population(const struct fl_coord *c)
{
    size_t n = 0;
    size_t i;

    if (c->conf.population != 0) {
        return c->conf.population;
    }
    for (i = 0; i < c->clients.n_recorded; i++) {
        n += c->clients.recs[i].samples > 0;
    }
    return n;
}

/*
 * Clients whose mean a solver's part keeps (SCAFFOLD's control): a fixed N that is larger stands
 * for clients that have yet to come; a smaller one would make the mean of fewer than are in it.
 * Who was counted once is in it for good, with or without data.
 */
static size_t members(const struct fl_coord *c)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < c->clients.n_recorded; i++) {
        const struct fl_client_rec *rec = &c->clients.recs[i];

        n += rec->samples > 0 || rec->counted_round != 0;
    }
    return n > c->conf.population ? n : c->conf.population;
}

struct fl_round_size fl__coord_size(const struct fl_coord *c, size_t selected)
{
    return (struct fl_round_size){.selected = (uint32_t)selected,
                                  .population = (uint32_t)population(c),
                                  .members = (uint32_t)members(c)};
}

/* How many responders are asked for whoever is selected; half of them are no number of their own.
 */
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

    /* With fewer than can be enough the attempt would be aborted as it begins. */
    need = need > fixed_least(c) ? need : fixed_least(c);
    if (c->committed == 0 && c->conf.start_clients > need) {
        need = c->conf.start_clients;
    }
    return need > 0 ? need : 1;
}

size_t fl__coord_gather_scores(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    size_t n = 0;
    size_t i;

    for (i = 0; i < t->n; i++) {
        const struct fl_client_rec *rec = &t->recs[t->order[i]];

        if (rec->scored) {
            t->index[n] = rec->id;
            t->scores[n] = rec->score;
            t->samples[n] = (double)rec->samples;
            n++;
        }
    }
    return n;
}

void fl__coord_scatter_scores(struct fl_coord *c, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        c->clients.recs[c->clients.index[i]].score = c->clients.scores[i];
    }
}

static size_t mark_scored(struct fl_coord *c)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < c->clients.n_recorded; i++) {
        struct fl_client_rec *rec = &c->clients.recs[i];

        rec->scored = rec->scored || rec->samples > 0;
        n += rec->scored;
    }
    return n;
}

/*
 * Scores are given out where they are needed, not where a client comes: so they depend on
 * who is known, in client order, and not on who came first.
 */
void fl__coord_ensure_scores(struct fl_coord *c)
{
    const struct fl_selection_ops *ops = c->conf.strategy->selection;
    const struct fl_options *o = c->conf.strategy->options[FL_SLOT_SELECTION];
    size_t n = fl__coord_gather_scores(c);
    size_t i;

    if (n == 0) {
        n = mark_scored(c);
        (void)fl__coord_gather_scores(c);
        if (n > 0) {
            ops->init(o, c->clients.samples, n, c->clients.scores);
            fl__coord_scatter_scores(c, n);
        }
        return;
    }
    for (i = 0; i < c->clients.n; i++) {
        struct fl_client_rec *rec = &c->clients.recs[c->clients.order[i]];
        size_t at = 0;

        if (rec->scored || rec->samples == 0 || rec->id >= c->clients.n_recorded) {
            continue;
        }
        rec->scored = true;
        rec->score = 0.0;
        n = fl__coord_gather_scores(c);
        while (c->clients.index[at] != rec->id) {
            at++;
        }
        ops->join(o, c->clients.samples, n, at, c->clients.scores);
        fl__coord_scatter_scores(c, n);
    }
}

/* Connected clients with samples in client order, into index, scores and samples. */
static size_t gather_candidates(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    size_t n = 0;
    size_t i;

    for (i = 0; i < t->n; i++) {
        const struct fl_client_rec *rec = &t->recs[t->order[i]];

        if (t->live[rec->id].connected && rec->samples > 0 && rec->id < t->n_recorded) {
            t->index[n] = rec->id;
            t->scores[n] = rec->score;
            t->samples[n] = (double)rec->samples;
            n++;
        }
    }
    return n;
}

static void fill_parts(struct fl_coord *c, const uint32_t *chosen)
{
    struct fl__round *r = &c->round;
    uint32_t i;

    r->round = c->committed + 1;
    r->attempt = c->attempt;
    for (i = 0; i < r->n; i++) {
        uint32_t id = c->clients.index[chosen[i]];

        r->parts[i].client = id;
        r->parts[i].samples = c->clients.recs[id].samples;
        r->parts[i].state = FL_PART_SELECTED;
        c->clients.live[id].part = i;
    }
    r->count[FL_PART_SELECTED] = r->n;
}

static bool plan_all(struct fl_coord *c)
{
    uint32_t i;

    if (fl__coord_has_feedback(c)) {
        return true;
    }
    for (i = 0; i < c->round.n; i++) {
        c->clients.who[i] = i;
    }
    return fl__coord_round_plan(c, c->clients.who, c->round.n, false);
}

size_t fl__coord_count(const struct fl_coord *c)
{
    const struct fl_strategy *s = c->conf.strategy;
    double gamma = s->fraction->at(s->options[FL_SLOT_FRACTION], c->committed + 1);

    size_t want = fl_fraction_count(gamma, population(c));

    return want > fixed_least(c) ? want : fixed_least(c);
}

/* How many are asked: the fraction's K_t, and more of them when some are known to fail. */
static size_t count_wanted(struct fl_coord *c, size_t *ret_ask)
{
    size_t alive = c->clients.n_alive;
    size_t want = fl__coord_count(c);
    double ask;

    if (want > alive) {
        fl__coord_trace(c, "round %" PRIu64 ": %zu clients are wanted, %zu are alive",
                        c->committed + 1, want, alive);
        want = alive;
    }
    ask = ceil((double)want * c->conf.over_selection);
    *ret_ask = ask < (double)alive ? (size_t)ask : alive;
    return want;
}

/* Draw S_t and, when uploads need no feedback, plan them; false without memory. */
static bool draw(struct fl_coord *c, size_t want, size_t ask)
{
    const struct fl_strategy *s = c->conf.strategy;
    struct fl_select_input in = {.want = ask};
    struct fl_rng rng;

    fl__coord_ensure_scores(c);
    in.n = gather_candidates(c);
    in.scores = c->clients.scores;
    in.samples = c->clients.samples;
    fl_rng_key(&rng, c->conf.seed, FL_RNG_SELECT, c->committed + 1, c->attempt);
    if (s->selection->pick(s->options[FL_SLOT_SELECTION], &in, &rng, c->clients.who) != FL_OK) {
        return false;
    }
    fill_parts(c, c->clients.who);
    c->round.size = fl__coord_size(c, want);
    c->round.rec.started_ms = c->wall_ms;
    return plan_all(c);
}

bool fl__coord_select(struct fl_coord *c)
{
    size_t ask;
    size_t want = count_wanted(c, &ask);

    if (fl__coord_round_create(&c->round, ask, c->n_units) != FL_OK || !draw(c, want, ask)) {
        fl__coord_round_done(c);
        c->not_before_ms = fl__coord_after(c, fl__coord_backoff(c, 1));
        fl__coord_trace(c, "round %" PRIu64 ": no memory for %zu clients, put off",
                        c->committed + 1, ask);
        return false;
    }
    fl__coord_move(c, FL_PHASE_SELECTING, "%zu of %zu clients that are alive", ask,
                   c->clients.n_alive);
    fl__coord_persist_dirty(c);
    fl__coord_work(c, FL__WORK_SELECTION);
    return false;
}
