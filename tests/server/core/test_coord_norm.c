/* Updates that are far larger than those of the other clients. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const float moved[] = {1, 2, 3};

/* Clients a to e, as many as `n`, train in round 1, and so many of them have to answer. */
static struct script *training(const char *preset, unsigned n, uint32_t min_responders, double cap)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct script *s = script_new(preset);
    unsigned i;

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = n;
    s->conf.min_responders = min_responders;
    s->conf.rounds = 1;
    s->conf.norm_cap = cap;
    script_create(s, NULL);
    script_start(s);
    for (i = 0; i < n; i++) {
        script_join(s, names[i], 100);
    }
    script_forget(s);
    return s;
}

static void stored(struct script *s, const char *name, size_t kind, double norm)
{
    struct fl_unit_norm unit[SCRIPT_UNITS] = {{1, 0, INFINITY}, {2, 0, INFINITY}, {3, 0, INFINITY}};
    struct fl_norms norms = {.rms = {1, 1, 1, 1, 1}, .unit = unit};

    norms.rms[kind] = norm;
    script_stored_with(s, name, &norms);
}

static void sent(struct script *s, const char *name, double norm)
{
    script_report(s, name, NULL);
    stored(s, name, 0, norm);
}

static void not_finite(struct script *s, const char *name)
{
    struct fl_event ev = {.type = FL_EV_UPLOAD_INVALID};

    ev.u.upload.client = script_id(s, name);
    ev.u.upload.round = fl_coord_round(s->coord);
    ev.u.upload.attempt = fl_coord_attempt(s->coord);
    ev.u.upload.code = FL_ENUMERIC;
    ev.u.upload.reason = "unit 'b' of the upload holds a value that is not finite";
    script_step(s, &ev);
}

static size_t aggregated(const struct script *s)
{
    size_t i;

    for (i = s->n_works; i-- > 0;) {
        if (s->works[i].type == FL_EFF_AGGREGATE) {
            return s->works[i].n_parts;
        }
    }
    return 0;
}

TEST_EACH(the_round_goes_on_without_an_update_beyond_the_cap, 3)
{
    static const double norms[] = {3.4e38, 1e30, 3.5e3};
    struct script *s = training("fedavg", 4, 3, 1000);
    const char *missing[4];
    size_t n_missing = 0;
    char why[512];

    s->manual = true;
    sent(s, "b", norms[_i]);
    sent(s, "a", 2);
    sent(s, "d", 3);
    sent(s, "c", 4);
    script_answer(s);
    script_answer(s);
    script_answer(s);
    ck_assert_int_eq(script_state(s, "b"), FL_PARTICIPANT_ACCEPTED); /* All are to be in first. */
    script_answer(s);
    ck_assert_int_eq(script_state(s, "b"), FL_PARTICIPANT_REJECTED);
    ck_assert_str_eq(s->error, "b: update left out: its norm is far above the median of the "
                               "round (round.norm_cap)");
    ck_assert_ptr_nonnull(strstr(s->warning, "round 1: updates left out, norm above 1000 times the "
                                             "median (round.norm_cap): b; largest 'b': update, "
                                             "RMS norm "));
    ck_assert_ptr_nonnull(strstr(s->warning, ", median 3"));
    ck_assert_uint_eq(aggregated(s), 3);
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 3);
    ck_assert_uint_eq(s->record.n_left_out, 1);
    ck_assert_double_eq(s->record.norm_ratio, norms[_i] / 3);
    ck_assert_uint_eq(s->clients[script_id(s, "b")].n_rejected, 1);
    ck_assert_uint_eq(s->clients[script_id(s, "b")].counted_round, 0);
    ck_assert_uint_eq(s->clients[script_id(s, "c")].counted_round, 1);
    fl_coord_why(s->coord, s->now, why, sizeof(why), missing, 4, &n_missing);
    ck_assert_ptr_nonnull(strstr(why, "; in round 1: 1 updates left out (round.norm_cap)"));
    script_free(s);
}

/* A cap that none reaches, no cap, and too few to compare with. */
TEST_EACH(updates_within_the_cap_without_one_or_of_two_clients_stay, 3)
{
    static const struct {
        unsigned n;
        double cap, norm, ratio;
    } cases[] = {{3, 100, 200, 100}, {3, 0, 3.4e38, 1.7e38}, {2, 100, 1e30, 0}};
    struct script *s = training("fedavg", cases[_i].n, 1, cases[_i].cap);

    sent(s, "a", 2);
    if (cases[_i].n > 2) {
        sent(s, "c", 2);
    }
    sent(s, "b", cases[_i].norm);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, cases[_i].n);
    ck_assert_uint_eq(s->record.n_left_out, 0);
    ck_assert_double_eq(s->record.norm_ratio, cases[_i].ratio);
    script_free(s);
}

TEST_EACH(what_is_sent_beside_the_update_and_its_buffers_have_their_own_median, 2)
{
    struct script *s = training("fedavg", 4, 3, 100);
    size_t kind = _i == 0 ? 1 : FL_NORMS_BUFFERS;

    sent(s, "a", 1);
    sent(s, "b", 1);
    sent(s, "c", 1);
    script_report(s, "d", NULL);
    stored(s, "d", kind, 101);
    ck_assert_uint_eq(s->record.n_responders, 3);
    ck_assert_int_eq(s->clients[script_id(s, "d")].n_rejected, 1);
    script_free(s);
}

TEST(one_that_is_tiny_or_zero_is_not_the_measure)
{
    struct script *s = training("fedavg", 5, 3, 100);

    sent(s, "a", 0);
    sent(s, "b", 0);
    sent(s, "c", 1e-30);
    sent(s, "d", 1);
    sent(s, "e", 1.5);
    ck_assert_uint_eq(s->record.n_responders, 5);
    ck_assert_double_eq(s->record.norm_ratio, 1.5);
    script_free(s);
}

#define TOO_FEW                                                                                    \
    "round 1 is PAUSED: round 1 attempt 1 diverged: 1 of 3 clients report NaN or infinite values " \
    "in "                                                                                          \
    "training, or sent an update that is not finite or too large; client 'b' deviates most: "
#define WHAT_TO_DO "; lower training.learning_rate and restart the server; 'flctl resume' continues"

TEST(with_too_few_others_the_pause_names_the_client_its_norm_and_the_median)
{
    struct script *s = training("fedavg", 3, 3, 100);

    sent(s, "a", 2);
    sent(s, "c", 3);
    sent(s, "b", 1e30);
    script_why(s,
               TOO_FEW "update, RMS norm 1e+30, median 3 ('flctl disable' excludes it)" WHAT_TO_DO);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 0);
    script_free(s);
}

TEST(an_update_that_is_not_finite_pauses_with_too_few_others_and_the_pause_names_its_client)
{
    struct script *s = training("fedavg", 3, 3, 100);

    sent(s, "a", 2);
    script_report(s, "b", NULL);
    not_finite(s, "b");
    script_why(s, TOO_FEW
               "its update contains NaN or infinity ('flctl disable' excludes it)" WHAT_TO_DO);
    script_free(s);
}

TEST(an_update_that_is_not_finite_does_not_pause_when_enough_others_are_there)
{
    struct script *s = training("fedavg", 3, 2, 100);

    sent(s, "a", 2);
    script_report(s, "b", NULL);
    not_finite(s, "b");
    sent(s, "c", 3);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(s->record.n_left_out, 0); /* It was not accepted. */
    script_free(s);
}

TEST(a_model_that_is_not_finite_pauses_and_the_pause_names_the_client_that_deviates_most)
{
    struct script *s = training("fedavg", 2, 2, 100);

    sent(s, "b", 3.4e38);
    s->manual = true;
    sent(s, "a", 2);
    script_answer(s);
    script_fail(s, FL_ENUMERIC, "the new model is not finite in unit 'b'", UINT32_MAX);
    script_answer_all(s);
    script_why(s, "round 1 is PAUSED: round 1 attempt 1 diverged: the new model is not finite in "
                  "unit 'b'; client 'b' deviates most: update, RMS norm 3.4e+38, median 2 ('flctl "
                  "disable' excludes it)" WHAT_TO_DO);
    script_free(s);
}

TEST(an_excluded_client_is_not_compared_with)
{
    struct script *s = training("fedavg", 5, 2, 100);

    sent(s, "a", 200);
    sent(s, "b", 1);
    sent(s, "c", 1);
    script_exclude(s, "b");
    script_exclude(s, "c");
    sent(s, "d", 1.5);
    sent(s, "e", 150);
    ck_assert_uint_eq(s->record.n_responders, 3); /* With them the median would be 1.5. */
    ck_assert_uint_eq(s->record.n_left_out, 0);
    script_free(s);
}

/* The layer of the one that is left out is asked of another client. */
TEST(with_backfill_another_client_is_asked_for_what_was_left_out)
{
    static const float large[] = {9, 9, 9};
    struct script *s = script_new("fedldf");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_option(s, FL_COMPONENT_UPLOAD, "share", "0.6");
    s->conf.start_clients = 5;
    s->conf.min_responders = 2;
    s->conf.rounds = 1;
    s->conf.norm_cap = 100;
    s->conf.backfill = true;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_join(s, "c", 100);
    script_join(s, "d", 100);
    script_join(s, "e", 100);
    script_report(s, "a", large);
    script_report(s, "b", large);
    script_report(s, "c", large);
    script_report(s, "d", moved);
    script_report(s, "e", moved);
    ck_assert_int_eq(script_state(s, "d"), FL_PARTICIPANT_EMPTY);
    stored(s, "a", 0, 1e30);
    stored(s, "b", 0, 1);
    stored(s, "c", 0, 1);
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_REJECTED);
    ck_assert_int_eq(script_state(s, "d"), FL_PARTICIPANT_PLANNED);
    stored(s, "d", 0, 1.5);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 4); /* e sends nothing. */
    ck_assert_uint_eq(s->record.n_left_out, 1);
    script_free(s);
}

/* Killed before that the update is left out was on disk (0), or after it (1). */
TEST_EACH(a_server_that_comes_back_leaves_out_the_same_update, 2)
{
    struct fl_client_rec clients[] = {
        {.id = 0, .name = "a", .samples = 100},
        {.id = 1, .name = "b", .samples = 100},
        {.id = 2, .name = "c", .samples = 100},
    };
    uint8_t units[] = {1, 1, 1};
    struct fl_participant_rec parts[] = {
        {.client = 0, .state = FL_PARTICIPANT_ACCEPTED, .samples = 100, .units = units, .rms = {2}},
        {.client = 1,
         .state = _i == 0 ? FL_PARTICIPANT_ACCEPTED : FL_PARTICIPANT_REJECTED,
         .samples = 100,
         .units = units,
         .rms = {1e30}},
        {.client = 2, .state = FL_PARTICIPANT_ACCEPTED, .samples = 100, .units = units, .rms = {3}},
    };
    const struct fl_coord_resume resume = {.clients = clients,
                                           .n_clients = 3,
                                           .open_round = 1,
                                           .open_attempt = 1,
                                           .parts = parts,
                                           .n_parts = 3};
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 3;
    s->conf.min_responders = 2;
    s->conf.rounds = 1;
    s->conf.norm_cap = 100;
    script_create(s, &resume);
    script_start(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(s->record.n_left_out, 1);
    ck_assert_double_eq(s->record.norm_ratio, 1e30 / 3);
    script_free(s);
}
