/*
 * The aggregation of a round in a hashed space, against a plain computation: numbers are averaged,
 * rounded to whole steps with what waits, and move the entries that share them.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/broadcast/lattice.h"
#include "libfl/strategy/space/bucket.h"
#include "server/work/aggregation.h"
#include "tests/lib/suites.h"

enum { CLIENTS = 3, ENTRIES = 400, NUMBERS = 32, BUFFERS = 5, GRID = 131072 /* 0.125 */ };
#define BETA 0.5

static struct fl_layout *layout;
static struct fl_space *space;
static struct fl_strategy *strategy;
static struct fl_uploads *uploads;
static struct fl_federation fed;
static struct fl_model_state model;
static struct fl_participant_rec parts[CLIENTS];
static struct fl_client_rec clients[CLIENTS];
/* The plain computation: what waits and the velocity of each number, and the model. */
static double rest[NUMBERS], velocity[NUMBERS];
static float entries[ENTRIES];
static float sent[CLIENTS][NUMBERS + BUFFERS];

static void option(enum fl_component component, const char *name, const char *value)
{
    ck_assert_int_eq(fl_options_set(strategy->options[component], name, value, NULL), FL_OK);
}

static void set(enum fl_component component, const char *name)
{
    ck_assert_int_eq(fl_strategy_set(strategy, component, name, NULL), FL_OK);
}

static void begin_versions(void)
{
    struct fl_versions *versions = NULL;
    uint8_t digest[FL_DIGEST_SIZE];

    ck_assert_int_eq(fl_versions_digest(layout, fl_blob_floats(model.theta), digest), FL_OK);
    ck_assert_int_eq(fl_versions_create(digest, &versions), FL_OK);
    ck_assert_int_eq(fl_differences_create(layout, versions, model.theta, &model.differences),
                     FL_OK);
}

static void setup(void)
{
    static const size_t dims[] = {ENTRIES, BUFFERS};
    struct fl_rng rng;
    size_t i;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "fc", "fc.weight", &dims[0], 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "fc", "fc.mean", &dims[1], 1, true, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    ck_assert_int_eq(fl_strategy_create("fedavgm", &strategy, NULL), FL_OK);
    option(FL_COMPONENT_AGGREGATE, "beta", "0.5");
    set(FL_COMPONENT_BROADCAST, "lattice");
    option(FL_COMPONENT_BROADCAST, "step", "0.125");
    set(FL_COMPONENT_SPACE, "hashed");
    option(FL_COMPONENT_SPACE, "size", "32");
    option(FL_COMPONENT_SPACE, "redraw", "3");
    ck_assert_int_eq(fl_strategy_check(strategy, NULL), FL_OK);
    ck_assert_int_eq(fl_space_create(strategy->space, strategy->options[FL_COMPONENT_SPACE], layout,
                                     &space, NULL),
                     FL_OK);
    ck_assert_int_eq(fl_uploads_create(&uploads), FL_OK);
    fed = (struct fl_federation){
        .layout = layout, .space = space, .strategy = strategy, .uploads = uploads};
    fl_federation_name_states(&fed);
    ck_assert_uint_eq(fed.n_state, 2);
    ck_assert_int_eq(fl_model_state_new(&fed, &model), FL_OK);
    fl_rng_seed(&rng, 3);
    for (i = 0; i < ENTRIES + BUFFERS; i++) {
        fl_blob_fill_floats(model.theta)[i] = (float)(0.1 * fl_rng_normal(&rng));
    }
    fl__lattice_place(NULL, fl_blob_fill_floats(model.theta), ENTRIES);
    for (i = 0; i < fed.n_state; i++) {
        (void)memset(fl_blob_fill(model.state[i]), 0, fl_blob_len(model.state[i]));
    }
    (void)memcpy(entries, fl_blob_data(model.theta), sizeof(entries));
    (void)memset(rest, 0, sizeof(rest));
    (void)memset(velocity, 0, sizeof(velocity));
    begin_versions();
    for (i = 0; i < CLIENTS; i++) {
        parts[i] = (struct fl_participant_rec){.client = (uint32_t)i, .samples = 100 * (i + 1)};
        clients[i].id = (uint32_t)i;
        (void)snprintf(clients[i].name, sizeof(clients[i].name), "edge-%zu", i);
    }
}

static void teardown(void)
{
    fl_model_state_done(&model);
    fl_uploads_free(uploads);
    fl_space_free(space);
    fl_strategy_free(strategy);
    fl_layout_free(layout);
}

static void upload(uint64_t round, size_t k)
{
    const struct fl_spool_part part = {.codec = FL_CODEC_FLOAT32, .bytes = sizeof(sent[k])};
    struct fl_upload *made = NULL;
    struct fl_blob *bytes = NULL;
    struct fl_err err = {0};
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, 100 * round + k);
    for (i = 0; i < NUMBERS + BUFFERS; i++) {
        sent[k][i] = (float)(0.2 * fl_rng_normal(&rng));
    }
    ck_assert_int_eq(fl_blob_create(sizeof(sent[k]), &bytes), FL_OK);
    (void)memcpy(fl_blob_fill(bytes), sent[k], sizeof(sent[k]));
    ck_assert_msg(fl_upload_make(&part, 1, bytes, space->updates, 0, &made, &err) == FL_OK, "%s",
                  err.msg);
    ck_assert_int_eq(fl_uploads_put(uploads, round, 1, clients[k].name, made), FL_OK);
    fl_blob_unref(bytes);
}

static double mean_of(size_t i)
{
    double sum = 0;
    size_t k;

    for (k = 0; k < CLIENTS; k++) {
        sum += (double)(k + 1) / 6 * (double)sent[k][i];
    }
    return sum;
}

/* Draws of three rounds. */
static struct fl_draw draw_of_round(uint64_t round)
{
    return fl_space_draw(strategy->space, strategy->options[FL_COMPONENT_SPACE], NULL, round);
}

/* v = beta v + mean, z += v: whole steps of 0.125 at 0.6 of one. */
static void plain_round(uint64_t round)
{
    const struct fl_buckets b =
        fl_buckets_of(fl_space_seed(space, draw_of_round(round).number), 0, ENTRIES, NUMBERS);
    const double scale = sqrt((double)NUMBERS / ENTRIES);
    double steps[NUMBERS];
    size_t i;

    for (i = 0; i < NUMBERS; i++) {
        double away;

        velocity[i] = BETA * velocity[i] + mean_of(i);
        away = rest[i] + velocity[i];
        steps[i] = fabs(away) < 0.6 * 0.125 ? 0 : copysign(floor(fabs(away) / 0.125 + 0.4), away);
        rest[i] = away - 0.125 * steps[i];
    }
    for (i = 0; i < ENTRIES; i++) {
        bool negative = false;
        double move = steps[fl_bucket(&b, i, &negative)] * rint(GRID * scale) / 1048576;

        entries[i] = (float)((double)entries[i] + (negative ? -move : move));
    }
}

static void run_round(uint64_t round)
{
    struct fl_aggregation a = {.round = round,
                               .draw = draw_of_round(round),
                               .attempt = 1,
                               .members = CLIENTS,
                               .learning_rate = 1,
                               .parts = parts,
                               .clients = clients,
                               .n_parts = CLIENTS,
                               .model = &model};
    struct fl_err err = {0};
    size_t k;

    for (k = 0; k < CLIENTS; k++) {
        upload(round, k);
    }
    ck_assert_msg(fl_aggregation_run(&fed, &a, &err) == FL_OK, "%s", err.msg);
    fl_model_state_done(&model);
    model = a.next.model;
    a.next.model = (struct fl_model_state){.theta = NULL};
    fl_aggregation_done(&a);
}

TEST_CASE("aggregation", setup, teardown);

/* Rounds 1 to 3 have one draw; the fourth begins the next one, with vectors of zero. */
TEST(numbers_are_averaged_rounded_and_move_their_entries_as_computed_plainly)
{
    double buffers[BUFFERS];
    uint64_t round;
    size_t i;

    for (i = 0; i < BUFFERS; i++) {
        buffers[i] = (double)fl_blob_floats(model.theta)[ENTRIES + i];
    }
    for (round = 1; round <= 7; round++) {
        const float *theta;

        run_round(round);
        if (round == 4 || round == 7) {
            (void)memset(rest, 0, sizeof(rest));
            (void)memset(velocity, 0, sizeof(velocity));
        }
        plain_round(round);
        theta = fl_blob_floats(model.theta);
        ck_assert_mem_eq(theta, entries, sizeof(entries));
        for (i = 0; i < BUFFERS; i++) { /* Batch-norm statistics move by the mean. */
            buffers[i] += mean_of(NUMBERS + i);
            ck_assert_double_eq_tol(theta[ENTRIES + i], buffers[i], 1e-5);
        }
        ck_assert_uint_eq(fl_versions_steps(fl_differences_versions(model.differences)), round);
    }
}

/* What a client downloads that has the model of an earlier draw. */
TEST(a_client_of_an_earlier_draw_gets_the_new_model_bit_for_bit)
{
    uint8_t held[FL_DIGEST_SIZE];
    struct fl_blob *d = NULL;
    float first[ENTRIES + BUFFERS];
    struct fl_err err = {0};
    uint64_t round;

    (void)memcpy(first, fl_blob_data(model.theta), sizeof(first));
    ck_assert_int_eq(fl_versions_digest(layout, first, held), FL_OK);
    for (round = 1; round <= 5; round++) {
        run_round(round);
    }
    ck_assert_int_eq(fl_differences_get(model.differences, held, &d), FL_OK);
    ck_assert_uint_lt(fl_blob_len(d), 160);
    ck_assert_int_eq(fl_difference_apply(layout, fl_blob_data(d), fl_blob_len(d), first, &err),
                     FL_OK);
    ck_assert_mem_eq(first, fl_blob_data(model.theta), sizeof(first));
    fl_blob_unref(d);
}

TEST(a_number_that_leaves_the_lattice_is_an_error_of_the_round)
{
    struct fl_aggregation a = {.round = 1,
                               .attempt = 1,
                               .members = 1,
                               .learning_rate = 1,
                               .parts = parts,
                               .clients = clients,
                               .n_parts = 1,
                               .model = &model};
    struct fl_upload *made = NULL;
    struct fl_blob *bytes = NULL;
    const struct fl_spool_part part = {.codec = FL_CODEC_FLOAT32, .bytes = sizeof(sent[0])};
    struct fl_err err = {0};

    upload(1, 0);
    sent[0][7] = 1000;
    ck_assert_int_eq(fl_blob_create(sizeof(sent[0]), &bytes), FL_OK);
    (void)memcpy(fl_blob_fill(bytes), sent[0], sizeof(sent[0]));
    ck_assert_int_eq(fl_upload_make(&part, 1, bytes, space->updates, 0, &made, &err), FL_OK);
    ck_assert_int_eq(fl_uploads_put(uploads, 1, 1, clients[0].name, made), FL_OK);
    fl_blob_unref(bytes);
    ck_assert_int_eq(fl_aggregation_run(&fed, &a, &err), FL_ENUMERIC);
    ck_assert_uint_eq(a.bad_client, FL_NO_CLIENT);
    fl_aggregation_done(&a);
}
