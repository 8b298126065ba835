/* The update that a server trains on its root data set (server/work/root_training.h). */
#include "server/work/root_training.h"

#include "tests/client/train/train_fixture.h"
#include "tests/lib/suites.h"

enum { DATA = 60, ROUNDS = 3 };

static struct rig {
    struct server s;
    struct fl_strategy *strategy;
    struct fl_dataset *data;
    struct fl_space *space;
    struct fl_root_conf conf;
    float *update, *other;
} rig;

static void setup(void)
{
    struct fl_err err = {0};

    rig = (struct rig){.data = make_data(DATA, INPUTS, CLASSES, 5)};
    server_init(&rig.s);
    ck_assert_int_eq(fl_strategy_create("fedavg", &rig.strategy, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(rig.strategy, FL_COMPONENT_ROBUST, "fltrust", &err), FL_OK);
    ck_assert_int_eq(
        fl_options_set(rig.strategy->options[FL_COMPONENT_ROBUST], "samples", "23", &err), FL_OK);
    rig.conf = (struct fl_root_conf){.data = rig.data,
                                     .net = &rig.s.model.net,
                                     .strategy = rig.strategy,
                                     .epochs = 2,
                                     .batch_size = 10,
                                     .momentum = 0.5,
                                     .weight_decay = 0.01,
                                     .seed = 9};
    rig.update = calloc(rig.s.count, sizeof(float));
    rig.other = calloc(rig.s.count, sizeof(float));
}

static void teardown(void)
{
    fl_space_free(rig.space);
    server_done(&rig.s);
    fl_strategy_free(rig.strategy);
    fl_dataset_free(rig.data);
    free(rig.update);
    free(rig.other);
}

static struct fl_root *root_of(void)
{
    struct fl_root *root = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_root_create(&rig.conf, &root, &err) == FL_OK, "%s", err.msg);
    return root;
}

/* A hashed space has a draw of two rounds. */
static uint64_t draw_of(uint64_t round)
{
    return (round - 1) / 2;
}

static void train(struct fl_root *root, uint64_t round, float *update)
{
    const struct fl_root_task task = {
        .round = round, .draw = draw_of(round), .learning_rate = 0.1, .model = rig.s.theta};
    struct fl_err err = {0};

    ck_assert_msg(fl_root_train(root, &task, update, &err) == FL_OK, "%s", err.msg);
}

static size_t update_bytes(void)
{
    const struct fl_layout *layout = fl_space_updates(rig.space, fl_net_layout(rig.s.net));

    return fl_layout_count(layout) * sizeof(float);
}

TEST_CASE("root", setup, teardown);

TEST(root_data_set_and_rest_are_all_samples_each_once_and_follow_from_the_seed)
{
    struct fl_root *root = root_of();
    struct fl_root *same = root_of();
    struct fl_root *another;
    uint8_t seen[DATA] = {0};
    size_t i;

    rig.conf.seed++;
    another = root_of();
    ck_assert_uint_eq(fl_root_data(root)->n, 23);
    ck_assert_uint_eq(fl_root_rest(root)->n, DATA - 23);
    for (i = 0; i < DATA; i++) {
        seen[i < 23 ? fl_dataset_place(fl_root_data(root), i)
                    : fl_dataset_place(fl_root_rest(root), i - 23)]++;
    }
    for (i = 0; i < DATA; i++) {
        ck_assert_uint_eq(seen[i], 1);
    }
    ck_assert_mem_eq(fl_root_data(root)->items, fl_root_data(same)->items, 23 * sizeof(uint32_t));
    ck_assert_mem_ne(fl_root_data(root)->items, fl_root_data(another)->items,
                     23 * sizeof(uint32_t));
    fl_root_free(root);
    fl_root_free(same);
    fl_root_free(another);
}

/* What the client's engine makes of the same data, model and seed. */
static void train_as_client(const struct fl_root *root, uint64_t round, float *ret)
{
    struct fl_train_task task = {.asked.key.round = round,
                                 .model = rig.s.theta,
                                 .space = rig.space,
                                 .asked.learning_rate = 0.1};
    struct fl_train_result result = {0};
    struct fl_trainer *trainer = NULL;
    struct fl_space_map map;
    struct fl_err err = {0};
    struct fl_rng rng;

    rig.s.model.epochs = rig.conf.epochs;
    rig.s.model.steps = rig.conf.steps;
    rig.s.model.momentum = rig.conf.momentum;
    rig.s.model.weight_decay = rig.conf.weight_decay;
    fl_rng_key(&rng, rig.conf.seed, FL_RNG_ROOT, round, 2);
    task.asked.seed = fl_rng_u64(&rng);
    fl_rng_key(&rng, rig.conf.seed, FL_RNG_ROOT, 0, 1);
    task.asked.draw = draw_of(round);
    task.asked.order_seed = fl_rng_u64(&rng);
    ck_assert_int_eq(fl_trainer_builtin(fl_root_data(root), NULL, NULL, &trainer, &err), FL_OK);
    ck_assert_msg(fl_trainer_prepare(trainer, &rig.s.model, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_trainer_run(trainer, &task, &result, &err) == FL_OK, "%s", err.msg);
    if (rig.space != NULL) {
        ck_assert_int_eq(fl_space_map_make(rig.space, draw_of(round), &map), FL_OK);
        fl_space_fold(&map, result.delta, ret);
        fl_space_map_done(&map);
    } else {
        (void)memcpy(ret, result.delta, rig.s.count * sizeof(*ret));
    }
    fl_train_result_done(&result);
    fl_trainer_free(trainer);
}

/* Passes, steps that continue in the next round, and the same in a hashed space. */
TEST_EACH(the_server_trains_bit_for_bit_as_a_client_with_its_root_data_set, 4)
{
    struct fl_root *root;
    struct fl_err err = {0};
    uint64_t round;

    if (_i % 2 == 1) {
        rig.conf.epochs = 0;
        rig.conf.steps = 7;
    }
    if (_i / 2 == 1) {
        ck_assert_int_eq(fl_strategy_set(rig.strategy, FL_COMPONENT_SPACE, "hashed", &err), FL_OK);
        ck_assert_int_eq(
            fl_options_set(rig.strategy->options[FL_COMPONENT_SPACE], "size", "80", &err), FL_OK);
        ck_assert_msg(fl_space_create(rig.strategy->space,
                                      rig.strategy->options[FL_COMPONENT_SPACE],
                                      fl_net_layout(rig.s.net), &rig.space, &err) == FL_OK,
                      "%s", err.msg);
        ck_assert_ptr_nonnull(rig.space);
        rig.conf.space = rig.space;
    }
    root = root_of();
    for (round = 1; round <= ROUNDS; round++) {
        train(root, round, rig.update);
        train_as_client(root, round, rig.other);
        ck_assert_mem_eq(rig.update, rig.other, update_bytes());
    }
    fl_root_free(root);
}

TEST(a_server_that_restarts_in_a_round_trains_the_same_bits_and_other_ones_in_another_round)
{
    struct fl_root *root = root_of();
    struct fl_root *restarted = root_of();

    train(root, 1, rig.update);
    train(root, 2, rig.update);
    train(restarted, 2, rig.other);
    ck_assert_mem_eq(rig.update, rig.other, update_bytes());
    train(restarted, 3, rig.other);
    ck_assert_mem_ne(rig.update, rig.other, update_bytes());
    fl_root_free(root);
    fl_root_free(restarted);
}

TEST(steps_of_the_rule_replace_those_of_clients)
{
    struct fl_root *root;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_options_set(rig.strategy->options[FL_COMPONENT_ROBUST], "steps", "4", &err),
                     FL_OK);
    root = root_of();
    train(root, 2, rig.update);
    rig.conf.epochs = 0;
    rig.conf.steps = 4;
    train_as_client(root, 2, rig.other);
    ck_assert_mem_eq(rig.update, rig.other, update_bytes());
    fl_root_free(root);
}

TEST(a_training_of_the_server_ends_when_it_is_cancelled_and_when_it_diverges)
{
    struct fl_root *root = root_of();
    atomic_bool cancel;
    struct fl_root_task task = {
        .round = 1, .learning_rate = 1e30, .model = rig.s.theta, .cancel = &cancel};
    struct fl_err err = {0};

    atomic_init(&cancel, true);
    ck_assert_int_eq(fl_root_train(root, &task, rig.update, &err), FL_ECANCELED);
    atomic_store(&cancel, false);
    ck_assert_int_eq(fl_root_train(root, &task, rig.update, &err), FL_ENUMERIC);
    ck_assert_ptr_nonnull(strstr(err.msg, "training on the server's root data set: "));
    fl_root_free(root);
}

TEST(data_that_leaves_nothing_to_evaluate_on_or_that_does_not_fit_is_refused)
{
    const size_t inputs[] = {INPUTS + 1};
    struct fl_net_spec spec = rig.s.model.net;
    struct fl_root *root = NULL;
    struct fl_err err = {0};

    (void)memcpy(spec.input, inputs, sizeof(inputs));
    rig.conf.net = &spec;
    ck_assert_int_eq(fl_root_create(&rig.conf, &root, &err), FL_ESHAPE);
    ck_assert_int_eq(
        fl_options_set(rig.strategy->options[FL_COMPONENT_ROBUST], "samples", "60", &err), FL_OK);
    ck_assert_int_eq(fl_root_create(&rig.conf, &root, &err), FL_ECONF);
    ck_assert_str_eq(err.msg,
                     "robust 'fltrust' trains on 60 samples of the server's data, which has 60: "
                     "set samples of the rule to less, so that some are left to evaluate on");
}
