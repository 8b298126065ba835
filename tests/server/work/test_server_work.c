/* What a server does for its federation, from real spool files and without a daemon. */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/strategy/codec/codec.h"
#include "server/store/store.h"
#include "server/work/aggregation.h"
#include "server/work/measure.h"
#include "server/work/norms.h"
#include "server/work/payload_sizes.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

enum { CLIENTS = 3, ROUND = 7, ATTEMPT = 2 };

static struct fl_layout *layout;
static struct fl_strategy *strategy;
static struct fl_federation fed;
static struct fl_model_state model;
static float *update;
static size_t n_floats;
static struct fl_participant_rec parts[CLIENTS];
static struct fl_client_rec clients[CLIENTS];

static void setup(void)
{
    size_t i;

    layout = rig_layout();
    n_floats = fl_layout_count(layout);
    update = calloc(n_floats, sizeof(*update));
    ck_assert_ptr_nonnull(update);
    fed = (struct fl_federation){.layout = layout, .state_dir = rig_dir()};
    (void)memset(parts, 0, sizeof(parts));
    (void)memset(clients, 0, sizeof(clients));
    for (i = 0; i < CLIENTS; i++) {
        parts[i] =
            (struct fl_participant_rec){.client = (uint32_t)(10 + i), .samples = 100 * (i + 1)};
        clients[i].id = parts[i].client;
        (void)snprintf(clients[i].name, sizeof(clients[i].name), "edge-%zu", i);
    }
}

static void teardown(void)
{
    fl_model_state_done(&model);
    fl_strategy_free(strategy);
    strategy = NULL;
    fl_layout_free(layout);
    free(update);
    rig_remove();
}

/* A model of ones and vectors beside it of twos. */
static void begin(const char *algorithm)
{
    struct fl_err err = {0};
    size_t s;
    size_t i;

    ck_assert_msg(fl_strategy_create(algorithm, &strategy, &err) == FL_OK, "%s", err.msg);
    fed.strategy = strategy;
    fl_federation_name_states(&fed);
    ck_assert_int_eq(fl_model_state_new(&fed, &model), FL_OK);
    for (i = 0; i < n_floats; i++) {
        fl_blob_fill_floats(model.theta)[i] = 1.0f;
        for (s = 0; s < fed.n_state; s++) {
            fl_blob_fill_floats(model.state[s])[i] = 2.0f;
        }
    }
}

/* The first `n_units` units of client k, every entry `value`; then `extra` payloads of it. */
static void upload(size_t k, size_t n_units, float value, size_t extra)
{
    struct fl_spool_part list[RIG_UNITS * 2];
    struct fl_spool *s = NULL;
    struct fl_err err = {0};
    uint64_t received = 0;
    uint64_t at = 0;
    size_t n = 0;
    size_t b;
    size_t l;
    size_t i;

    for (l = 0; l < n_units; l++) {
        for (b = 0; b <= extra; b++) {
            list[n++] =
                (struct fl_spool_part){.unit = (uint32_t)l,
                                       .payload = (uint32_t)b,
                                       .codec = FL_CODEC_FLOAT32,
                                       .bytes = fl_layout_unit(layout, l)->count * sizeof(float)};
        }
    }
    for (i = 0; i < n_floats; i++) {
        update[i] = value;
    }
    ck_assert_msg(fl_spool_open(&(struct fl_spool_opening){fed.state_dir, ROUND, ATTEMPT,
                                                           clients[k].name, list, n, NULL},
                                &s, &received, &err) == FL_OK,
                  "%s", err.msg);
    for (i = 0; i < n; i++) {
        ck_assert_int_eq(fl_spool_write(s, at, update, (size_t)list[i].bytes, &err), FL_OK);
        at += list[i].bytes;
    }
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, &err), FL_OK);
    fl_spool_close(s);
}

static struct fl_aggregation aggregation_of(size_t n)
{
    return (struct fl_aggregation){.round = ROUND,
                                   .attempt = ATTEMPT,
                                   .members = n,
                                   .learning_rate = 0.1,
                                   .parts = parts,
                                   .clients = clients,
                                   .n_parts = n,
                                   .model = &model};
}

static void expect_unit(const struct fl_model_state *m, size_t l, double want)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    const float *theta = fl_blob_floats(m->theta) + unit->offset;
    size_t i;

    for (i = 0; i < unit->count; i++) {
        ck_assert_msg(fabs((double)theta[i] - want) < 1e-6, "unit %zu entry %zu: %g, want %g", l, i,
                      (double)theta[i], want);
    }
}

TEST_CASE("aggregation", setup, teardown);

TEST(the_next_model_is_the_weighted_mean_of_the_uploads)
{
    struct fl_aggregation a = aggregation_of(2);
    struct fl_err err = {0};

    begin("fedavg");
    upload(0, RIG_UNITS, 0.3f, 0);
    upload(1, RIG_UNITS, 0.6f, 0);
    ck_assert_msg(fl_aggregation_run(&fed, &a, &err) == FL_OK, "%s", err.msg);
    expect_unit(&a.next.model, 0, 1.0 + (100 * 0.3 + 200 * 0.6) / 300);
    expect_unit(&a.next.model, 2, 1.0 + (100 * 0.3 + 200 * 0.6) / 300);
    expect_unit(&model, 0, 1.0);
    ck_assert_ptr_null(a.next.personal_models);
    fl_aggregation_done(&a);
}

static bool is_norm(void *ctx, const struct fl_layout *of, const struct fl_tensor *tensor)
{
    (void)ctx;
    (void)of;
    return strncmp(tensor->name, "bn.", 3) == 0;
}

/* Two units with a batch-norm; the second client sends the first alone. */
TEST(norms_are_as_far_apart_as_the_running_means_of_those_that_sent_them)
{
    static const char text[] =
        "unit a\na.w 3\nbn.running_mean 2 buffer\nbn.running_var 2 buffer\n"
        "unit b\nb.w 1\nbn2.running_mean 1 buffer\nbn2.running_var 1 buffer\n";
    static const float sent[CLIENTS] = {0.5f, 2.5f, 1.5f};
    const float theta[10] = {9, 9, 9, 7, 7, 2, 2, 9, 7, 0.5f};
    struct fl_spool_reader *readers[CLIENTS] = {NULL};
    struct fl_layout *local = NULL;
    double apart = -1;
    size_t k;

    fl_layout_free(layout);
    layout = NULL;
    ck_assert_int_eq(fl_layout_from_text(text, strlen(text), &layout, NULL), FL_OK);
    fed.layout = layout;
    n_floats = fl_layout_count(layout);
    ck_assert_uint_eq(n_floats, 10);
    for (k = 0; k < CLIENTS; k++) {
        upload(k, k == 1 ? 1 : 2, sent[k], 0);
        ck_assert_int_eq(fl_spool_reader_open(fed.state_dir, ROUND, ATTEMPT, clients[k].name,
                                              layout, &readers[k], NULL),
                         FL_OK);
    }
    /* Variances of 1 over 2, twice, and of 0.5 over 0.5. */
    ck_assert_int_eq(fl_norms_apart(layout, readers, CLIENTS, theta, &apart), FL_OK);
    ck_assert_double_eq_tol(apart, (0.5 + 0.5 + 1) / 3, 1e-4);
    ck_assert_int_eq(fl_norms_apart(layout, readers, 1, theta, &apart), FL_OK);
    ck_assert_double_eq(apart, 0);
    /* What stays on clients is compared no more. */
    ck_assert_int_eq(fl_layout_copy(layout, is_norm, NULL, &local, NULL), FL_OK);
    ck_assert_int_eq(fl_norms_apart(local, readers, CLIENTS, theta, &apart), FL_OK);
    ck_assert_double_eq_tol(apart, 1, 1e-4);
    for (k = 0; k < CLIENTS; k++) {
        fl_spool_reader_close(readers[k]);
    }
    fl_layout_free(local);
}

TEST(it_is_looked_at_in_rounds_4_8_16_and_so_on)
{
    uint64_t round;
    size_t n = 0;

    for (round = 0; round <= 64; round++) {
        n += fl_norms_round(round);
    }
    ck_assert_uint_eq(n, 5);
    ck_assert(fl_norms_round(4) && fl_norms_round(64) && !fl_norms_round(2));
}

TEST(a_unit_that_nobody_sent_stays_as_it_was)
{
    struct fl_aggregation a = aggregation_of(2);
    struct fl_err err = {0};

    begin("fedavg");
    upload(0, 1, 0.5f, 0);
    upload(1, 2, 0.25f, 0);
    ck_assert_msg(fl_aggregation_run(&fed, &a, &err) == FL_OK, "%s", err.msg);
    expect_unit(&a.next.model, 0, 1.0 + (100 * 0.5 + 200 * 0.25) / 300);
    expect_unit(&a.next.model, 1, 1.25);
    expect_unit(&a.next.model, 2, 1.0);
    fl_aggregation_done(&a);
}

/*
 * An aggregation of FedLDF with norm_clip 4. The RMS norms of the whole updates are given, as the
 * coordinator has them. Client 0 sends its first `n_first` layers, the others send all.
 */
static struct fl_aggregation aggregate_partial(const double rms[3], size_t n_first,
                                               const float values[3])
{
    struct fl_aggregation a = aggregation_of(3);
    struct fl_err err = {0};
    size_t k;

    begin("fedldf");
    fed.norm_clip = 4;
    for (k = 0; k < 3; k++) {
        parts[k].rms[0] = rms[k];
        upload(k, k == 0 ? n_first : RIG_UNITS, values[k], 0);
    }
    ck_assert_msg(fl_aggregation_run(&fed, &a, &err) == FL_OK, "%s", err.msg);
    return a;
}

/* Layer 0 has three senders, layer 2 has two: there the norms of whole updates decide. */
TEST(with_partial_uploads_a_layer_is_shortened_by_the_median_of_its_senders)
{
    struct fl_aggregation a =
        aggregate_partial((double[]){0.25, 0.25, 2}, 2, (float[]){0.25f, 0.25f, 32});

    ck_assert_uint_eq(a.n_clipped, 1);
    ck_assert_double_eq(a.clip[0], 1);
    ck_assert_double_eq_tol(a.clip[2], 1.0 / 32, 1e-9);
    expect_unit(&a.next.model, 0, 1 + (300 * 0.25 + 300 * 1) / 600);
    expect_unit(&a.next.model, 2, 1 + (200 * 0.25 + 300 * 16) / 500);
    fl_aggregation_done(&a);
}

/* The first client was asked only for a layer that moves far in all updates. */
TEST(with_partial_uploads_an_update_of_a_layer_that_moves_far_in_all_is_not_shortened)
{
    struct fl_aggregation a = aggregate_partial((double[]){8, 1, 1}, 1, (float[]){8, 8, 8});

    ck_assert_uint_eq(a.n_clipped, 0);
    expect_unit(&a.next.model, 0, 9);
    fl_aggregation_done(&a);
}

TEST(distances_are_told_when_they_are_wanted)
{
    struct fl_aggregation a = aggregation_of(2);
    struct fl_err err = {0};

    begin("adafl");
    a.want_distance = true;
    upload(0, RIG_UNITS, 0.1f, 0);
    upload(1, RIG_UNITS, 0.4f, 0);
    ck_assert_msg(fl_aggregation_run(&fed, &a, &err) == FL_OK, "%s", err.msg);
    /* The mean is 0.3: the first is twice as far from it as the second. */
    ck_assert_double_eq_tol(a.distance[0] / a.distance[1], 2.0, 1e-5);
    fl_aggregation_done(&a);
}

/* Krum takes the second client; the third is farther from the others than the first. */
TEST(clients_that_a_robust_rule_would_leave_out_are_listed_with_the_largest_score_first)
{
    struct fl_aggregation a = aggregation_of(3);
    struct fl_progress progress = {.totals = {.round = 0}};
    struct fl_robust_client client;
    struct fl_event event;
    struct fl_err err = {0};
    const char *at;

    begin("fedavg");
    ck_assert_int_eq(fl_strategy_set(strategy, FL_COMPONENT_ROBUST, "krum", &err), FL_OK);
    ck_assert_int_eq(fl_options_set(strategy->options[FL_COMPONENT_ROBUST], "report", "yes", &err),
                     FL_OK);
    upload(0, RIG_UNITS, 0.1f, 0);
    upload(1, RIG_UNITS, 0.2f, 0);
    upload(2, RIG_UNITS, 5.0f, 0);
    ck_assert_msg(fl_aggregation_run(&fed, &a, &err) == FL_OK, "%s", err.msg);
    expect_unit(&a.next.model, 0, 1.0 + (100 * 0.1 + 200 * 0.2 + 300 * 5) / 600);
    ck_assert_uint_eq(a.info.robust_out, 2);
    event = fl_aggregation_take(&a, &progress);
    at = event.u.aggregated.robust_clients;
    ck_assert(fl_robust_clients_next(&at, &client));
    ck_assert_str_eq(client.name, clients[2].name);
    ck_assert_double_eq(client.used, 0);
    ck_assert_double_eq_tol(client.score, sqrt((4.9 * 4.9 + 4.8 * 4.8) / (4.9 * 4.9 + 0.01)), 0.01);
    ck_assert(fl_robust_clients_next(&at, &client));
    ck_assert_str_eq(client.name, clients[0].name);
    ck_assert_str_eq(at, "");
    fl_aggregation_done(&a);
    fl_outcome_done(&progress.next);
}

TEST(what_the_core_asked_for_is_aggregated_and_told_to_it)
{
    struct fl_progress progress = {.totals = {.round = 0}};
    const struct fl_effect effect = {.type = FL_EFF_AGGREGATE,
                                     .round = ROUND,
                                     .attempt = ATTEMPT,
                                     .size = {.members = 2},
                                     .parts = parts,
                                     .n_parts = 2,
                                     .want_distance = true};
    struct fl_aggregation a;
    struct fl_event event;
    struct fl_err err = {0};

    begin("adafl");
    progress.committed.model = model;
    upload(0, RIG_UNITS, 0.1f, 0);
    upload(1, RIG_UNITS, 0.4f, 0);
    a = fl_aggregation_of(&effect, clients, 0.1, &progress);
    ck_assert_uint_eq(a.bad_client, FL_NO_CLIENT);
    ck_assert_msg(fl_aggregation_run(&fed, &a, &err) == FL_OK, "%s", err.msg);
    event = fl_aggregation_take(&a, &progress);
    ck_assert_int_eq(event.type, FL_EV_AGGREGATED);
    ck_assert_double_eq_tol(event.u.aggregated.distance[0] / event.u.aggregated.distance[1], 2.0,
                            1e-5);
    ck_assert_uint_eq(event.u.aggregated.collection_bytes, 0);
    ck_assert_ptr_null(a.next.model.theta);
    expect_unit(fl_progress_model(&progress), 0, 1.3);
    fl_aggregation_done(&a);
    fl_outcome_done(&progress.next);
}

TEST(what_the_solver_sends_beside_moves_the_vector_beside_the_model)
{
    struct fl_aggregation a = aggregation_of(1);
    struct fl_err err = {0};
    size_t last;

    begin("scaffold");
    ck_assert_uint_gt(fed.n_state, 0);
    last = fed.n_state - 1;
    upload(0, RIG_UNITS, 0.5f, 1);
    ck_assert_msg(fl_aggregation_run(&fed, &a, &err) == FL_OK, "%s", err.msg);
    ck_assert_double_eq_tol((double)fl_blob_floats(a.next.model.state[last])[0], 2.5, 1e-6);
    ck_assert_double_eq_tol((double)fl_blob_floats(model.state[last])[0], 2.0, 1e-9);
    fl_aggregation_done(&a);
}

TEST(personal_models_are_made_for_those_that_sent_a_whole_model)
{
    struct fl_aggregation a = aggregation_of(3);
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    begin("fedmcsa");
    upload(0, RIG_UNITS, 0.5f, 0);
    ck_assert_int_eq(mkdir(rig_path(path, "personal_models"), 0700), 0);
    upload(1, RIG_UNITS, 0.6f, 0);
    upload(2, 1, 0.7f, 0);
    ck_assert_msg(fl_aggregation_run(&fed, &a, &err) == FL_OK, "%s", err.msg);
    ck_assert_ptr_nonnull(a.next.personal_models);
    ck_assert_uint_eq(fl_personal_models_count(a.next.personal_models), 2);
    ck_assert_str_eq(fl_personal_models_name(a.next.personal_models, 0), "edge-0");
    ck_assert_str_eq(fl_personal_models_name(a.next.personal_models, 1), "edge-1");
    fl_aggregation_done(&a);
}

TEST(an_upload_that_is_damaged_on_the_disk_names_its_client)
{
    struct fl_aggregation a = aggregation_of(2);
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    begin("fedavg");
    upload(0, RIG_UNITS, 0.5f, 0);
    upload(1, RIG_UNITS, 0.6f, 0);
    rig_damage(rig_path(path, "spool/edge-1.upload"), 20000, 4);
    ck_assert_int_eq(fl_aggregation_run(&fed, &a, &err), FL_EFORMAT);
    ck_assert_uint_eq(a.bad_client, 11);
    fl_aggregation_done(&a);
}

TEST(an_upload_that_is_gone_names_its_client_and_the_file)
{
    struct fl_aggregation a = aggregation_of(2);
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    begin("fedavg");
    upload(0, RIG_UNITS, 0.5f, 0);
    upload(1, RIG_UNITS, 0.6f, 0);
    ck_assert_int_eq(unlink(rig_path(path, "spool/edge-0.upload")), 0);
    ck_assert_int_eq(fl_aggregation_run(&fed, &a, &err), FL_ENOENT);
    ck_assert_uint_eq(a.bad_client, 10);
    ck_assert_ptr_nonnull(strstr(err.msg, "edge-0"));
    fl_aggregation_done(&a);
}

TEST(what_fails_without_a_client_blames_nobody)
{
    struct fl_aggregation a = aggregation_of(1);
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    int rv;

    begin("fedmcsa");
    upload(0, RIG_UNITS, 0.5f, 0);
    ck_assert_int_eq(mkdir(rig_path(path, "personal_models"), 0700), 0);
    rig_limit_files(
        20000); /* A full disk for the personalized models, and none yet for what Check writes. */
    rv = fl_aggregation_run(&fed, &a, &err);
    rig_limit_files(0);
    ck_assert_int_ne(rv, FL_OK);
    ck_assert_uint_eq(a.bad_client, FL_NO_CLIENT);
    fl_aggregation_done(&a);
}

/* --- what is sent up --- */

/* Announces `n` parts of `payloads`, one unit after the other; all units are granted. */
static int announce(const char *const *payloads, size_t n, struct fl_spool_part **ret,
                    struct fl_err *err)
{
    const uint8_t grant[RIG_UNITS] = {1, 1, 1};
    struct fl_wire_part list[RIG_UNITS * 2] = {0};
    struct fl_wire_push_header header = {.parts = list, .n_parts = n};
    size_t n_payloads = n / RIG_UNITS;
    size_t i;

    for (i = 0; i < n; i++) {
        uint32_t unit = (uint32_t)(i / n_payloads);

        ck_assert_int_eq(
            fl_str_copy(list[i].payload, sizeof(list[i].payload), payloads[i % n_payloads]), FL_OK);
        list[i].unit = unit;
        list[i].codec = FL_CODEC_FLOAT32;
        list[i].bytes = fl_layout_unit(layout, unit)->count * sizeof(float);
    }
    return fl_sent_parts(layout, strategy, &header, grant, ret, err);
}

TEST_CASE("sent", setup, teardown);

TEST(payloads_stand_in_an_upload_as_the_solver_sends_them)
{
    const char *payloads[2] = {"update", NULL};
    struct fl_spool_part *list = NULL;
    struct fl_err err = {0};
    size_t i;

    begin("scaffold");
    payloads[1] = fl_solver_sends(strategy->solver, strategy->options[FL_COMPONENT_SOLVER])[0];
    ck_assert_uint_eq(fl_sent_place(strategy, "update"), 0);
    ck_assert_uint_eq(fl_sent_place(strategy, payloads[1]), 1);
    ck_assert_uint_eq(fl_sent_place(strategy, "model"), FL_SPOOL_MAX_PAYLOADS);
    ck_assert_msg(announce(payloads, 2 * RIG_UNITS, &list, &err) == FL_OK, "%s", err.msg);
    for (i = 0; i < 2 * RIG_UNITS; i++) {
        ck_assert_uint_eq(list[i].unit, i / 2);
        ck_assert_uint_eq(list[i].payload, i % 2);
    }
    free(list);
}

TEST(an_announcement_of_other_payloads_or_units_is_refused)
{
    const char *const unknown[] = {"model"};
    const char *const alone[] = {"update"};
    struct fl_spool_part *list = NULL;
    struct fl_err err = {0};

    begin("fedavg");
    ck_assert_int_eq(announce(unknown, RIG_UNITS, &list, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "'model'"));
    teardown();
    setup();
    begin("scaffold");
    ck_assert_int_eq(announce(alone, RIG_UNITS, &list, &err), FL_ESHAPE);
    ck_assert_ptr_null(list);
}

/* --- evaluation --- */

static struct fl_dataset *two_points(void)
{
    const size_t dims[] = {2};
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    float *x;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 2, dims, 1, &ds, &err), FL_OK);
    x = ds->x;
    x[0] = 1.0f; /* (1, 0) is of class 0, (0, 1) of class 1 */
    x[3] = 1.0f;
    ds->y[0] = 0;
    ds->y[1] = 1;
    ds->classes = 2;
    return ds;
}

TEST_CASE("measure", NULL, NULL);

TEST(a_model_is_measured_on_all_samples)
{
    const char *layers[] = {"dense 2"};
    struct fl_net_spec spec = {.input = {2}, .n_input = 1, .layers = layers, .n_layers = 1};
    struct fl_dataset *ds = two_points();
    struct fl_net *net = NULL;
    struct fl_err err = {0};
    const float right[6] = {5, 0, 0, 5, 0, 0};
    const float half[6] = {5, 5, 0, 0, 0, 0}; /* always class 0 */
    atomic_bool cancel;
    struct fl_net_metrics *metrics = NULL;
    struct fl_evaluated found;

    atomic_init(&cancel, false);
    ck_assert_int_eq(fl_net_metrics_create(1u << FL_NET_METRIC_CLASS_ACCURACY, FL_NET_OUTPUT_CLASS,
                                           2, ds->n, &metrics, &err),
                     FL_OK);
    ck_assert_msg(fl_net_create_evaluator(&spec, &net, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_measure(net, ds, right, NULL, &cancel, &found), FL_OK);
    ck_assert_double_eq_tol(found.accuracy, 1.0, 1e-9);
    ck_assert_str_eq(found.metrics, "");
    ck_assert_double_eq_tol(found.loss, log(1.0 + exp(-5.0)), 1e-6);
    ck_assert_int_eq(fl_measure(net, ds, half, metrics, &cancel, &found), FL_OK);
    ck_assert_double_eq_tol(found.accuracy, 0.5, 1e-9);
    ck_assert_str_eq(found.metrics, "class_accuracy/0=1 class_accuracy/1=0");
    /* The next evaluation begins with nothing. */
    ck_assert_int_eq(fl_measure(net, ds, right, metrics, &cancel, &found), FL_OK);
    ck_assert_str_eq(found.metrics, "class_accuracy/0=1 class_accuracy/1=1");
    fl_net_metrics_free(metrics);
    fl_net_free(net);
    fl_dataset_free(ds);
}
