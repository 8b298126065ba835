/* Numbers that the papers and the formulas fix exactly (docs/algorithms.md#what-is-checked). */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static void join_many(struct script *s, unsigned n)
{
    char name[32];
    unsigned i;

    /* Not in order of names: order must not matter. */
    for (i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "client-%03u", i * 37 % n);
        script_join(s, name, 600);
    }
}

static bool selected(const struct script *s, uint32_t id)
{
    return fl_coord_part(s->coord, id) != NULL;
}

/* Every selected client reports and uploads what it is asked for. */
static void run_round(struct script *s, float scale)
{
    uint64_t round = fl_coord_round(s->coord);
    uint32_t todo[128];
    size_t n = 0;
    uint32_t i;

    for (i = 0; i < fl_coord_n_known(s->coord); i++) {
        if (selected(s, i)) {
            todo[n++] = i;
        }
    }
    for (i = 0; i < n; i++) {
        const char *name = fl_coord_client(s->coord, todo[i])->name;
        float d[3] = {scale * (float)(1 + todo[i] % 7), (float)(todo[i] % 5), (float)todo[i]};

        script_report(s, name, d);
    }
    for (i = 0; i < n; i++) {
        const uint8_t *units = NULL;

        if (fl_coord_may_push(s->coord, todo[i], round, 1, &units, NULL) == FL_OK) {
            script_stored(s, fl_coord_client(s->coord, todo[i])->name);
        }
    }
    ck_assert_uint_eq(fl_coord_committed(s->coord), round);
}

static const struct {
    const char *every;
    uint64_t t[3];
    uint64_t units[3];
} schedules[] = {
    {"200", {423, 683, 761}, {6690, 15320, 18440}},
    {"300", {951, 1103, 1485}, {20040, 26120, 44250}},
};

TEST_EACH(adafl_asks_exactly_as_often_as_its_schedule_says, 2)
{
    struct script *s = script_new("adafl");
    uint64_t sum = 0;
    size_t hit = 0;

    script_option(s, FL_COMPONENT_FRACTION, "every", schedules[_i].every);
    s->conf.start_clients = 100;
    s->quiet = true;
    script_create(s, NULL);
    script_start(s);
    join_many(s, 100);
    while (hit < 3) {
        run_round(s, 1);
        sum += s->record.n_selected;
        if (s->record.round == schedules[_i].t[hit]) {
            ck_assert_uint_eq(sum, schedules[_i].units[hit]);
            hit++;
        }
    }
    script_free(s);
}

/* uplink = n 4 (d + s) + |R_t| 4 L, exactly. */
TEST(fedldf_sends_its_share_and_the_feedback_to_the_byte)
{
    struct script *s = script_new("fedldf");
    unsigned i;

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "0.4");
    script_option(s, FL_COMPONENT_UPLOAD, "n", "4");
    s->conf.start_clients = 50;
    s->quiet = true;
    script_create(s, NULL);
    script_start(s);
    join_many(s, 50);
    for (i = 0; i < 20; i++) {
        run_round(s, (float)(i % 3));
        ck_assert_uint_eq(s->record.n_selected, 20);
        ck_assert_uint_eq(s->record.n_responders, 20);
        ck_assert_uint_eq(s->record.feedback_bytes, 20 * 4 * SCRIPT_UNITS);
        ck_assert_uint_eq(s->record.uplink_bytes, 4 * 56 + 20 * 4 * SCRIPT_UNITS);
        ck_assert_uint_eq(s->record.uplink_bytes_full, 20 * 56);
        ck_assert_uint_eq(s->record.downlink_bytes, 20 * 56);
    }
    script_free(s);
}

TEST(fedldf_with_all_uploaders_sends_what_fedavg_sends_and_the_feedback)
{
    struct script *s = script_new("fedldf");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_option(s, FL_COMPONENT_UPLOAD, "share", "1");
    s->conf.start_clients = 10;
    s->quiet = true;
    script_create(s, NULL);
    script_start(s);
    join_many(s, 10);
    run_round(s, 1);
    ck_assert_uint_eq(s->record.uplink_bytes - s->record.feedback_bytes,
                      s->record.uplink_bytes_full);
    script_free(s);
}

TEST(random_layers_send_the_same_share_without_feedback)
{
    struct script *s = script_new("fedldf");
    struct fl_err err = {0};
    unsigned i;

    ck_assert_int_eq(fl_strategy_set(s->strategy, FL_COMPONENT_UPLOAD, "random_layer", &err),
                     FL_OK);
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_option(s, FL_COMPONENT_UPLOAD, "n", "2");
    s->conf.start_clients = 10;
    s->quiet = true;
    script_create(s, NULL);
    script_start(s);
    join_many(s, 10);
    for (i = 0; i < 5; i++) {
        run_round(s, 1);
        ck_assert_uint_eq(s->record.n_responders, 10);
        ck_assert_uint_eq(s->record.uplink_bytes, 2 * 56);
        ck_assert_uint_eq(s->record.feedback_bytes, 0);
    }
    script_free(s);
}

static double score_of(const struct script *s, const char *name)
{
    return fl_coord_score(s->coord, script_id(s, name));
}

TEST(attention_moves_by_the_reported_divergence_under_partial_uploads)
{
    struct script *s = script_new("adafl+fedldf");

    script_option(s, FL_COMPONENT_FRACTION, "start", "1");
    script_option(s, FL_COMPONENT_FRACTION, "end", "1");
    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "b", 100);
    script_join(s, "a", 300);
    ck_assert_double_eq(score_of(s, "a"), 0.75);
    script_report(s, "a", (const float[]){0, 3, 4}); /* d = 5 */
    script_report(s, "b", (const float[]){15, 0, 0});
    script_stored(s, "a");
    script_stored(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq_tol(score_of(s, "a"), 0.9 * 0.75 + 0.1 * 0.25, 1e-12);
    ck_assert_double_eq_tol(score_of(s, "b"), 0.9 * 0.25 + 0.1 * 0.75, 1e-12);
    script_free(s);
}

TEST(a_silent_client_keeps_its_attention)
{
    struct script *s = script_new("adafl");

    script_option(s, FL_COMPONENT_FRACTION, "start", "1");
    script_option(s, FL_COMPONENT_FRACTION, "end", "1");
    s->conf.start_clients = 3;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_join(s, "c", 200);
    script_report(s, "a", NULL);
    script_report(s, "c", NULL);
    script_stored(s, "a");
    script_stored(s, "c");
    script_failed(s, "b", "no power");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq(score_of(s, "b"), 0.25);
    /* The script's distances: 1 for a, 2 for c. */
    ck_assert_double_eq_tol(score_of(s, "a"), 0.9 * 0.25 + 0.1 * 0.75 / 3, 1e-12);
    ck_assert_double_eq_tol(score_of(s, "c"), 0.9 * 0.50 + 0.1 * 0.75 * 2 / 3, 1e-12);
    script_free(s);
}

/* Same seed, clients that come in another order: same choice, same tasks, same scores. */
TEST(who_came_first_does_not_matter)
{
    struct script *a = script_new("adafl");
    struct script *b = script_new("adafl");
    char name[32];
    unsigned round;
    unsigned i;

    a->conf.start_clients = b->conf.start_clients = 20;
    a->quiet = b->quiet = true;
    script_option(a, FL_COMPONENT_FRACTION, "start", "0.3");
    script_option(b, FL_COMPONENT_FRACTION, "start", "0.3");
    script_create(a, NULL);
    script_create(b, NULL);
    script_start(a);
    script_start(b);
    for (i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof(name), "client-%u", i);
        script_join(a, name, 10 + i);
    }
    for (i = 20; i-- > 0;) {
        (void)snprintf(name, sizeof(name), "client-%u", i);
        script_join(b, name, 10 + i);
    }
    for (round = 0; round < 10; round++) {
        for (i = 0; i < 20; i++) {
            (void)snprintf(name, sizeof(name), "client-%u", i);
            ck_assert_int_eq(selected(a, script_id(a, name)), selected(b, script_id(b, name)));
            ck_assert_double_eq(score_of(a, name), score_of(b, name));
        }
        run_round(a, 1);
        run_round(b, 1);
    }
    script_free(a);
    script_free(b);
}

TEST(a_task_has_its_rate_and_a_seed_of_round_and_name)
{
    struct script *s = script_new("fedavg");
    struct fl_event ev = {.type = FL_EV_CLIENT_JOINED};
    struct fl_effects effects;
    struct fl_rng rng;
    const struct fl_effect *task = NULL;
    size_t i;

    s->conf.learning_rate = 0.1;
    s->conf.learning_rate_decay = 0.5;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 10);
    script_report(s, "a", NULL);
    script_stored(s, "a");
    ck_assert_uint_eq(fl_coord_round(s->coord), 2);
    ev.u.joined.name = "a";
    ev.u.joined.samples = 10;
    ck_assert_int_eq(fl_coord_step(s->coord, &ev, &effects), FL_OK);
    for (i = 0; i < effects.n; i++) {
        if (effects.list[i].type == FL_EFF_TASK) {
            task = &effects.list[i];
        }
    }
    ck_assert_ptr_nonnull(task);
    ck_assert_double_eq(task->task.learning_rate, 0.1 * 0.5);
    fl_rng_key(&rng, s->conf.seed, FL_RNG_BATCH, 2, fl_hash64("a", 1));
    ck_assert_uint_eq(task->task.seed, fl_rng_u64(&rng));
    /* What stays the same in every round is of the federation's seed and the name alone. */
    fl_rng_key(&rng, s->conf.seed, FL_RNG_BATCH, 0, fl_hash64("a", 1));
    ck_assert_uint_eq(task->task.order_seed, fl_rng_u64(&rng));
    script_free(s);
}

TEST_EACH(the_rate_of_a_round_follows_decay_warmup_and_cosine, 12)
{
    static const struct {
        uint32_t every, warmup, rounds;
        double decay, end;
        uint64_t round;
        double share;
    } rows[] = {
        {0, 0, 0, 0.5, 0, 3, 0.25}, /* from round to round */
        {1, 0, 0, 0.5, 0, 3, 0.25},
        {10, 0, 0, 0.5, 0, 10, 1},
        {10, 0, 0, 0.5, 0, 11, 0.5},
        {10, 0, 0, 0.5, 0, 21, 0.25},
        {0, 4, 0, 1, 0, 1, 0.25},
        {0, 4, 0, 1, 0, 4, 1},
        {0, 0, 20, 1, 0.2, 1, 1},
        {0, 0, 20, 1, 0.2, 11, 0.6},
        {0, 0, 20, 1, 0.2, 21, 0.2},
        {0, 0, 20, 1, 0.2, UINT64_MAX, 0.2},
        {2, 4, 20, 0.5, 0, 3, 0.5 * 0.75 * 0.97552825814757682},
    };
    const struct fl_coord_conf conf = {.learning_rate = 0.3,
                                       .learning_rate_decay = rows[_i].decay,
                                       .learning_rate_every = rows[_i].every,
                                       .learning_rate_warmup = rows[_i].warmup,
                                       .learning_rate_rounds = rows[_i].rounds,
                                       .learning_rate_end = rows[_i].end};

    ck_assert_double_eq_tol(fl_coord_learning_rate(&conf, rows[_i].round), 0.3 * rows[_i].share,
                            1e-12);
}

TEST(a_later_client_gets_its_score_at_the_next_selection)
{
    struct script *s = script_new("adafl");
    double sum = 0;
    uint32_t i;

    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_join(s, "c", 200);
    ck_assert(!fl_coord_client(s->coord, script_id(s, "c"))->scored);
    run_round(s, 1);
    for (i = 0; i < 3; i++) {
        ck_assert(fl_coord_client(s->coord, i)->scored);
        sum += fl_coord_score(s->coord, i);
    }
    ck_assert_double_eq_tol(sum, 1.0, 1e-12);
    ck_assert_double_eq_tol(score_of(s, "c"), 0.5, 1e-12);
    script_free(s);
}

TEST(participation_is_counted_once_an_attempt_is_over)
{
    struct script *s = script_new("fedavg");
    const struct fl_client_rec *a;

    s->conf.min_responders = 2;
    s->conf.start_clients = 2;
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_report(s, "a", NULL);
    script_stored(s, "a");
    a = fl_coord_client(s->coord, 0);
    ck_assert_uint_eq(a->n_selected + a->n_accepted, 0);
    script_failed(s, "b", "no");
    a = fl_coord_client(s->coord, 0);
    ck_assert_uint_eq(a->n_selected, 1);
    ck_assert_uint_eq(a->n_accepted, 1);
    ck_assert_uint_eq(fl_coord_client(s->coord, 1)->n_lost, 1);
    ck_assert_double_eq(a->last_loss, 2.0);
    script_free(s);
}

/* --- summaries --- */

TEST(who_has_not_told_of_its_data_is_not_selected_before_it_has)
{
    struct script *s = script_new("fedavg");

    script_create(s, NULL);
    script_start(s);
    script_join_waiting(s, "a", 70);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->samples, 0);
    script_why(s,
               "round 1 is IDLE: 0 of 1 clients are connected; 1 connected clients have not sent "
               "their data summary yet (solver 'sgd' needs it before they can be selected)");
    script_summary(s, "a", "b"); /* The number was another's. */
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_lost(s, "a");
    script_join_waiting(s, "a", 70);
    script_summary(s, "a", "a");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->samples, 70);
    script_forget(s);
    script_summary(s, "a", "a"); /* Once. */
    script_expect(s, "");
    script_free(s);
}

/* --- the weight of a client --- */

#define MANY (UINT64_C(1) << 40)

static struct script *weighing(const char *preset, double cap)
{
    struct script *s = script_new(preset);

    script_option(s, FL_COMPONENT_FRACTION, strcmp(preset, "adafl") == 0 ? "start" : "fraction",
                  "1");
    s->conf.start_clients = 3;
    s->conf.weight_cap = cap;
    script_create(s, NULL);
    script_start(s);
    return s;
}

static uint64_t weight_of(const struct script *s, const char *name)
{
    return fl_coord_part(s->coord, script_id(s, name))->samples;
}

static void report_samples(struct script *s, const char *name, uint64_t samples, double loss)
{
    script_report_of(s, name, fl_coord_round(s->coord), fl_coord_attempt(s->coord), samples, loss,
                     NULL, 0);
}

TEST(a_report_counts_with_no_more_samples_than_were_announced)
{
    struct script *s = weighing("fedavg", 10);

    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_join(s, "c", 100);
    report_samples(s, "a", 100, 1);
    report_samples(s, "b", 40, 1); /* It trained on a part of them. */
    report_samples(s, "c", MANY, 4);
    ck_assert_uint_eq(weight_of(s, "b"), 40);
    ck_assert_uint_eq(weight_of(s, "c"), 100);
    ck_assert_str_eq(
        s->warning,
        "client 'c' reports 1099511627776 samples but announced 100: round 1 counts it with 100");
    ck_assert_str_eq(
        s->error,
        "c: reports more samples than it announced; the round counts the announced number");
    script_stored(s, "a");
    script_stored(s, "b");
    script_stored(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_capped, 1);
    ck_assert_double_eq_tol(s->record.train_loss, (100 + 40 + 400) / 240.0, 1e-12);
    ck_assert_uint_eq(weight_of(s, "c"), 1000); /* In the next draw the cap holds. */
    script_free(s);
}

TEST(the_weight_of_a_client_is_capped_at_a_multiple_of_the_median)
{
    struct script *s = weighing("fedavg", 10);

    script_join(s, "a", 100);
    script_join(s, "b", 120);
    script_join(s, "c", MANY);
    ck_assert_uint_eq(weight_of(s, "c"), 1200);
    ck_assert_str_eq(
        s->warning,
        "round 1: weight capped at 1200 samples, 10 times the median (round.weight_cap): c");
    report_samples(s, "c", MANY, 1);
    ck_assert_uint_eq(weight_of(s, "c"), 1200);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    script_stored(s, "b");
    script_stored(s, "c");
    ck_assert_uint_eq(s->record.n_capped, 1);
    script_free(s);
}

TEST(of_two_clients_the_smaller_one_is_the_measure)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 2;
    s->conf.weight_cap = 3;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", MANY);
    ck_assert_uint_eq(weight_of(s, "b"), 300);
    script_free(s);
}

TEST_EACH(without_a_cap_and_below_it_weights_stay, 2)
{
    static const double caps[] = {0, 50};
    struct script *s = weighing("fedavg", caps[_i]);

    script_join(s, "a", 10);
    script_join(s, "b", 100);
    script_join(s, "c", 5000);
    ck_assert_uint_eq(weight_of(s, "a"), 10);
    ck_assert_uint_eq(weight_of(s, "b"), 100);
    ck_assert_uint_eq(weight_of(s, "c"), 5000);
    script_free(s);
}

TEST_EACH(the_cap_holds_for_attention_whoever_comes_first, 2)
{
    struct script *s = weighing("adafl", 10);

    script_join(s, "a", _i == 0 ? MANY : 100);
    script_join(s, "b", 100);
    script_join(s, "c", _i == 0 ? 100 : MANY);
    ck_assert_double_eq_tol(fl_coord_score(s->coord, script_id(s, _i == 0 ? "a" : "c")),
                            1000.0 / 1200, 1e-12);
    script_free(s);
}
