/* Divergences that a report claims and the upload cannot have. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const float moved[] = {1, 2, 3};
static const float least[] = {.5f, .5f, .5f};
static const float hostile[] = {3e38f, 3e38f, 3e38f};

/* Clients a to d in round 1; with fedldf two of them send each layer. */
static struct script *training(const char *preset, bool backfill)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct script *s = script_new(preset);
    unsigned i;

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 4;
    s->conf.min_responders = 2;
    s->conf.rounds = 1;
    s->conf.backfill = backfill;
    script_option(s, FL_COMPONENT_UPLOAD, "n", "2");
    script_create(s, NULL);
    script_start(s);
    for (i = 0; i < 4; i++) {
        script_join(s, names[i], 100);
    }
    script_forget(s);
    return s;
}

/* What a codec that is off by a tenth makes of these norms; negative: not sent. */
static void stored(struct script *s, const char *name, const float norm[SCRIPT_UNITS])
{
    struct fl_unit_norm unit[SCRIPT_UNITS];
    struct fl_norms norms = {.rms = {1}, .unit = unit};
    size_t l;

    for (l = 0; l < SCRIPT_UNITS; l++) {
        unit[l] = (struct fl_unit_norm){norm[l], norm[l] * .9f, norm[l] * 1.1f};
    }
    script_stored_with(s, name, &norms);
}

/* All have reported; `a` what it likes. */
static void reported(struct script *s, const float *of_a)
{
    script_report(s, "a", of_a);
    script_report(s, "b", moved);
    script_report(s, "c", moved);
    script_report(s, "d", least);
}

TEST(a_client_that_claims_more_than_it_sends_is_rejected_and_named)
{
    struct script *s = training("fedldf", false);

    reported(s, hostile);
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_PLANNED);
    stored(s, "a", moved);
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_REJECTED);
    ck_assert_str_eq(s->error, "a: layer 'a' contradicts its report: divergence 3e+38 reported, "
                               "norm 1 uploaded, 0.9 to 1.1 expected; 2 more layers do, too");
    ck_assert_ptr_nonnull(strstr(s->warning, "client 'a' rejected: layer 'a' contradicts"));
    stored(s, "b", moved);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->aggregate.n_parts, 1);
    ck_assert_uint_eq(s->record.n_responders, 3); /* c and d send nothing. */
    ck_assert_uint_eq(s->clients[script_id(s, "a")].n_rejected, 1);
    ck_assert_uint_eq(s->clients[script_id(s, "a")].counted_round, 0);
    script_free(s);
}

TEST(with_backfill_its_layers_are_asked_of_the_next_client)
{
    struct script *s = training("fedldf", true);

    reported(s, hostile);
    stored(s, "a", moved);
    stored(s, "b", moved);
    ck_assert_int_eq(script_state(s, "c"), FL_PARTICIPANT_PLANNED);
    ck_assert_int_eq(script_state(s, "d"), FL_PARTICIPANT_EMPTY);
    stored(s, "c", moved);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->aggregate.n_parts, 2);
    script_free(s);
}

TEST_EACH(what_the_codec_allows_is_no_contradiction_and_what_is_not_sent_is_not_compared, 5)
{
    static const struct {
        float sent[SCRIPT_UNITS];
        enum fl_participant_state state;
    } rows[] = {
        {{1, 2, 3}, FL_PARTICIPANT_ACCEPTED},    {{.92f, 2.2f, 2.8f}, FL_PARTICIPANT_ACCEPTED},
        {{-1, 2, -1}, FL_PARTICIPANT_ACCEPTED},  {{1, 2, 2.7f}, FL_PARTICIPANT_REJECTED},
        {{1, 2.3f, 3}, FL_PARTICIPANT_REJECTED}, /* It claimed less. */
    };
    struct script *s = training("fedldf", false);

    reported(s, moved);
    s->manual = true;
    stored(s, "a", rows[_i].sent);
    if (rows[_i].state == FL_PARTICIPANT_ACCEPTED) {
        script_answer(s);
    }
    ck_assert_int_eq(script_state(s, "a"), rows[_i].state);
    script_free(s);
}

/* A residual makes any norm of any displacement: only the client knows it. */
TEST(with_a_residual_nothing_is_compared)
{
    struct fl_err err = {0};
    struct script *s = script_new("lean");

    ck_assert_int_eq(
        fl_options_set(s->strategy->options[FL_COMPONENT_CODEC], "residual", "yes", &err), FL_OK);
    s->conf.start_clients = 1;
    s->conf.rounds = 1;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_report(s, "a", hostile);
    stored(s, "a", moved);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_free(s);
}

/* AdaFL takes the divergences for its distances; the upload may be there before the report. */
TEST_EACH(a_report_after_the_upload_is_compared_with_it, 2)
{
    struct script *s = training("attn+random_layer", false);

    script_option(s, FL_COMPONENT_UPLOAD, "n", "4");
    stored(s, "a", moved);
    script_report(s, "a", _i == 0 ? hostile : moved);
    ck_assert_int_eq(script_state(s, "a"),
                     _i == 0 ? FL_PARTICIPANT_REJECTED : FL_PARTICIPANT_ACCEPTED);
    script_free(s);
}

/* A program may train another model from the same one; it is the first report that was planned. */
TEST_EACH(a_second_report_of_another_training_leaves_room_of_a_factor_of_two_and_no_more, 3)
{
    static const struct {
        const float first[SCRIPT_UNITS];
        enum fl_participant_state state;
    } rows[] = {
        {{1.5f, 3, 4}, FL_PARTICIPANT_ACCEPTED},
        {{3e38f, 3e38f, 3e38f}, FL_PARTICIPANT_REJECTED},
        {{2.5f, 5, 8}, FL_PARTICIPANT_REJECTED},
    };
    struct script *s = training("fedldf", false);

    reported(s, rows[_i].first);
    script_report(s, "a", moved);
    s->manual = true;
    stored(s, "a", moved);
    if (rows[_i].state == FL_PARTICIPANT_ACCEPTED) {
        script_answer(s);
    }
    ck_assert_int_eq(script_state(s, "a"), rows[_i].state);
    script_free(s);
}

/* Killed after the plan: the report of then is what the upload is compared with. */
TEST(a_server_that_comes_back_rejects_the_same_client)
{
    struct fl_client_rec clients[] = {
        {.id = 0, .name = "a", .samples = 100},
        {.id = 1, .name = "b", .samples = 100},
    };
    uint8_t units[] = {1, 1, 1};
    float claims[2][SCRIPT_UNITS] = {{3e38f, 3e38f, 3e38f}, {1, 2, 3}};
    struct fl_participant_rec parts[] = {
        {.client = 0,
         .state = FL_PARTICIPANT_PLANNED,
         .samples = 100,
         .units = units,
         .divergence = claims[0]},
        {.client = 1,
         .state = FL_PARTICIPANT_PLANNED,
         .samples = 100,
         .units = units,
         .divergence = claims[1]},
    };
    const struct fl_coord_resume resume = {.clients = clients,
                                           .n_clients = 2,
                                           .open_round = 1,
                                           .open_attempt = 1,
                                           .planned = true,
                                           .parts = parts,
                                           .n_parts = 2};
    struct script *s = script_new("fedldf");

    s->conf.start_clients = 2;
    s->conf.rounds = 1;
    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    stored(s, "a", moved);
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_REJECTED);
    stored(s, "b", moved);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 1);
    script_free(s);
}
