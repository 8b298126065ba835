/*
 * Solvers that make their steps in their own way, adapting and summaries, by a program that stays:
 * its results are those of the built-in trainer bit for bit, when it is sent all that
 * docs/trainers.md says (tests/lib/nn_engine.c reads nothing else).
 */
#include <jansson.h>

#include "libfl/base/fs.h"
#include "libfl/strategy/personalization/personal.h"
#include "tests/lib/both_rig.h"
#include "tests/lib/suites.h"

#define OWN_SEED 9 /* of this client's summary */

static void set(struct fl_options *o, const char *name, const char *value)
{
    ck_assert_msg(fl_options_set(o, name, value, NULL) == FL_OK, "%s: %s", name, value);
}

/* --- what the program heard --- */

/* The last message of that type; owned. */
static json_t *last_heard(const struct both *f, const char *type)
{
    struct fl_buf text = {0};
    json_t *found = NULL;
    size_t at, end;

    ck_assert_int_eq(fl_fs_read(f->notes, (size_t)1 << 20, &text, NULL), FL_OK);
    for (at = 0; at < text.len; at = end + 1) {
        json_t *json;

        for (end = at; end < text.len && text.data[end] != '\n'; end++) {
        }
        json = json_loadb((const char *)text.data + at, end - at, 0, NULL);
        if (strcmp(json_string_value(json_object_get(json, "type")), type) == 0) {
            json_decref(found);
            found = json_incref(json);
        }
        json_decref(json);
    }
    fl_buf_done(&text);
    ck_assert_msg(found != NULL, "no '%s'", type);
    return found;
}

/* As text with sorted keys, so that a difference can be read. */
static void heard(const json_t *message, const char *key, const char *expected)
{
    json_t *want = json_loads(expected, JSON_DECODE_ANY, NULL);
    char *a = json_dumps(json_object_get(message, key), JSON_SORT_KEYS | JSON_ENCODE_ANY);
    char *b = json_dumps(want, JSON_SORT_KEYS | JSON_ENCODE_ANY);

    ck_assert_ptr_nonnull(want);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    json_decref(want);
}

/* --- summaries --- */

static void add_summary(struct fl_trainer *trainer, uint64_t seed, struct fl_buf *out)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_trainer_summary(trainer, seed, out, &err) == FL_OK, "%s", err.msg);
}

/* What the server collected: this client's in the middle. */
static void personal_model(struct both *f, struct fl_buf *out)
{
    fl_buf_init(out, SIZE_MAX);
    add_summary(f->own, 7, out);
    add_summary(f->own, OWN_SEED, out);
    add_summary(f->own, 8, out);
}

/* --- training --- */

static const struct row {
    const struct fl_solver_ops *solver;
    const char *options[3][2];
    const char *asked; /* `do`: see docs/trainers.md#parts */
    const char *given;
    double learning_rate, momentum, weight_decay;
    uint32_t epochs, steps;
} rows[] = {
    {&fl_solver_pfedme,
     {{"inner_steps", "3"}},
     "{\"pfedme\": {\"inner_steps\": 3, \"inner_learning_rate\": 0.1, \"lambda\": 15.0, "
     "\"personal\": \"theta\"}}",
     "[\"model\"]",
     0.05,
     0,
     0.01,
     2,
     0},
    {&fl_solver_pfedme,
     {{"personal", "w_local"}, {"lambda", "4"}, {"inner_learning_rate", "0.3"}},
     "{\"pfedme\": {\"inner_steps\": 5, \"inner_learning_rate\": 0.3, \"lambda\": 4.0, "
     "\"personal\": \"w_local\"}}",
     "[\"model\"]",
     0.2,
     0,
     0,
     0,
     7},
    {&fl_solver_per_fedavg,
     {{"alpha", "0.05"}},
     "{\"per_fedavg\": {\"variant\": \"fo\", \"alpha\": 0.05}}",
     "[\"model\"]",
     0.1,
     0.9,
     0.01,
     2,
     0},
    {&fl_solver_per_fedavg,
     {{"alpha", "0.05"}}, /* an odd number of steps */
     "{\"per_fedavg\": {\"variant\": \"fo\", \"alpha\": 0.05}}",
     "[\"model\"]",
     0.1,
     0,
     0,
     0,
     5},
    {&fl_solver_per_fedavg,
     {{"variant", "hf"}},
     "{\"per_fedavg\": {\"variant\": \"hf\", \"alpha\": 0.02}}",
     "[\"model\"]",
     0.1,
     0.5,
     0.01,
     1,
     0},
    {&fl_solver_fedmix,
     {{"lambda", "0.2"}},
     "{\"mixup\": {\"lambda\": 0.2, \"q\": \"one_minus_lambda\", \"group\": 0, \"mu\": 0.0, "
     "\"naive\": false, \"seed\": 9}}",
     "[\"model\", \"mixup\"]",
     0.1,
     0.9,
     0,
     1,
     0},
    {&fl_solver_fedmix,
     {{"q", "one"}, {"group", "7"}, {"mu", "0.3"}},
     "{\"pull\": {\"mu\": 0.3}, \"mixup\": {\"lambda\": 0.05, \"q\": \"one\", \"group\": 7, "
     "\"mu\": 0.3, \"naive\": false, \"seed\": 9}}",
     "[\"model\", \"anchor\", \"mixup\"]",
     0.1,
     0,
     0.01,
     0,
     9},
    {&fl_solver_naivemix,
     {{"group", "20"}},
     "{\"mixup\": {\"lambda\": 0.05, \"group\": 20, \"mu\": 0.0, \"naive\": true, \"seed\": 9}}",
     "[\"model\", \"mixup\"]",
     0.1,
     0,
     0,
     1,
     0},
};
#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

static void describe(struct both *f, const struct row *row)
{
    size_t i;

    both_init_all(f, row->solver);
    for (i = 0; i < 3 && row->options[i][0] != NULL; i++) {
        set(f->server.options, row->options[i][0], row->options[i][1]);
    }
    f->server.model.epochs = row->epochs;
    f->server.model.steps = row->steps;
    f->server.model.momentum = row->momentum;
    f->server.model.weight_decay = row->weight_decay;
}

static bool summaries(const struct row *row)
{
    return row->solver->summary != NULL;
}

static struct fl_train_task task_of_row(const struct both *f, const struct row *row,
                                        const float *anchor, const struct fl_solver_bytes *input)
{
    struct fl_train_task task = task_of(&f->server);

    task.asked.key.round = 3;
    task.asked.key.attempt = 1;
    task.asked.learning_rate = row->learning_rate;
    task.asked.order_seed = 1234;
    task.summary_seed = OWN_SEED;
    task.evaluate_trained = true;
    task.anchor = strstr(row->given, "anchor") != NULL ? anchor : NULL;
    task.inputs = summaries(row) ? input : NULL;
    return task;
}

static void same_evaluation(const struct fl_evaluation *a, const struct fl_evaluation *b)
{
    ck_assert_uint_eq(a->samples, b->samples);
    ck_assert_uint_eq(a->correct, b->correct);
    ck_assert_double_eq(a->loss_sum, b->loss_sum);
}

static void same_bits(const struct both *f)
{
    both_same(f);
    ck_assert_mem_eq(f->a.delta, f->b.delta, f->server.count * sizeof(float));
    ck_assert_double_eq(f->a.train_loss, f->b.train_loss);
    ck_assert(f->a.has_trained && f->b.has_trained);
    same_evaluation(&f->a.trained, &f->b.trained);
}

static void heard_task(const struct both *f, const struct row *row)
{
    json_t *said = last_heard(f, "train");

    heard(said, "do", row->asked);
    heard(said, "given", row->given);
    json_decref(said);
}

TEST_EACH(steps_that_a_solver_makes_in_its_own_way_are_the_same_bit_for_bit, N_ROWS)
{
    const struct row *row = &rows[_i];
    struct fl_solver_bytes input = {NULL, 0};
    struct fl_buf means = {0};
    struct fl_train_task task;
    struct both f;
    float *anchor;

    describe(&f, row);
    anchor = calloc(f.server.count, sizeof(*anchor));
    anchor[5] = 0.5F;
    both_prepare(&f);
    if (summaries(row)) {
        personal_model(&f, &means);
        input = (struct fl_solver_bytes){means.data, means.len};
    }
    task = task_of_row(&f, row, anchor, &input);
    both_train(&f, &task);
    same_bits(&f);
    heard_task(&f, row);
    both_done(&f);
    fl_buf_done(&means);
    free(anchor);
}

static struct fl_space *space_of(const struct both *f)
{
    static const struct fl_component_option o[] = {{"size", "20"}, {"redraw", "2"}};
    const struct fl_policy *policy = NULL;
    struct fl_options *options = NULL;
    struct fl_space *ret = NULL;

    ck_assert_int_eq(
        fl_component_by_name(FL_COMPONENT_SPACE, "hashed", o, 2, &policy, &options, NULL), FL_OK);
    ck_assert_int_eq(
        fl_space_create((const void *)policy, options, f->server.model.layout, &ret, NULL), FL_OK);
    fl_options_free(options);
    return ret;
}

/* Its draw is that of the round. */
TEST_EACH(in_a_hashed_space_each_step_of_a_program_is_that_of_the_built_in_trainer, 3)
{
    static const struct row spaces[] = {
        {&fl_solver_sgd,
         {{NULL}},
         "{\"space\": {\"numbers\": 19}}",
         "[\"model\", \"places\"]",
         0.3,
         0.9,
         0.01,
         2,
         0},
        {&fl_solver_prox,
         {{"mu", "0.3"}},
         "{\"pull\": {\"mu\": 0.3}, \"space\": {\"numbers\": 19}}",
         "[\"model\", \"anchor\", \"places\"]",
         0.3,
         0,
         0,
         1,
         0},
        {&fl_solver_per_fedavg,
         {{"alpha", "0.05"}},
         "{\"per_fedavg\": {\"variant\": \"fo\", \"alpha\": 0.05}}",
         "[\"model\"]",
         0.3,
         0,
         0,
         1,
         0},
    };
    const struct row *row = &spaces[_i];
    struct fl_space *space;
    struct fl_train_task task;
    struct both f;

    describe(&f, row);
    space = space_of(&f);
    f.server.model.space = space;
    both_prepare(&f);
    task = task_of_row(&f, row, f.server.theta, NULL);
    task.space = space;
    both_train(&f, &task);
    if (row->solver != &fl_solver_per_fedavg) { /* Its steps are its own. */
        same_bits(&f);
    }
    heard_task(&f, row);
    both_done(&f);
    fl_space_free(space);
}

TEST(a_summary_is_the_same_and_mixes_only_what_others_collection)
{
    struct fl_buf own = {0};
    struct fl_buf theirs = {0};
    struct fl_solver_bytes input;
    struct fl_train_task task;
    struct both f;
    json_t *said;

    describe(&f, &rows[6]);
    both_prepare(&f);
    fl_buf_init(&own, SIZE_MAX);
    fl_buf_init(&theirs, SIZE_MAX);
    add_summary(f.own, OWN_SEED, &own);
    add_summary(f.program, OWN_SEED, &theirs);
    ck_assert_uint_eq(own.len, theirs.len);
    ck_assert_mem_eq(own.data, theirs.data, own.len);
    said = last_heard(&f, "summary");
    heard(said, "seed", "9");
    heard(said, "solver",
          "{\"name\": \"fedmix\", \"options\": {\"lambda\": \"0.05\", \"q\": \"one\", "
          "\"group\": \"7\", \"mu\": \"0.3\"}}");
    json_decref(said);
    /* With its own alone it is as without any. */
    input = (struct fl_solver_bytes){own.data, own.len};
    task = task_of_row(&f, &rows[6], NULL, &input);
    both_train(&f, &task);
    same_bits(&f);
    fl_train_result_done(&f.a);
    input = (struct fl_solver_bytes){NULL, 0};
    ck_assert_int_eq(fl_trainer_run(f.own, &task, &f.a, &f.err), FL_OK);
    same_bits(&f);
    fl_buf_done(&own);
    fl_buf_done(&theirs);
    both_done(&f);
}

/* What is sent as a summary is what summary() makes: others, and another server, would choke on it.
 */
TEST(a_summary_of_a_program_is_checked_as_a_peers)
{
    struct fl_buf out = {0};
    struct fl_trainer *bad;
    struct both f;

    both_begin(&f, &fl_solver_fedmix);
    bad = both_open(&f, "fake_trainer", "good");
    ck_assert_msg(fl_trainer_prepare(bad, &f.server.model, &f.err) == FL_OK, "%s", f.err.msg);
    fl_buf_init(&out, SIZE_MAX);
    ck_assert_int_eq(fl_trainer_summary(bad, OWN_SEED, &out, &f.err), FL_EFORMAT);
    ck_assert_msg(strstr(f.err.msg, "data summary of 5 bytes is shorter than its header of 16") !=
                      NULL,
                  "%s", f.err.msg);
    ck_assert_uint_eq(out.len, 0);
    fl_buf_done(&out);
    fl_trainer_free(bad);
    both_done(&f);
}

/* --- the slots --- */

static void slot_lies(const json_t *memory, const char *name, size_t bytes, bool is_model)
{
    const json_t *slot = json_object_get(json_object_get(memory, "slots"), name);
    json_int_t offset = json_integer_value(json_object_get(slot, "offset"));
    json_int_t len = json_integer_value(json_object_get(slot, "bytes"));
    json_int_t data = json_integer_value(json_object_get(slot, "data"));

    ck_assert_msg(slot != NULL, "no slot '%s'", name);
    ck_assert_int_le(offset + len, json_integer_value(json_object_get(memory, "bytes")));
    if (is_model) {
        ck_assert_int_eq(data % 64, 0);
        ck_assert_int_eq(offset + len - data, (json_int_t)bytes);
    } else {
        ck_assert_int_eq(len, (json_int_t)bytes);
        ck_assert_ptr_null(json_object_get(slot, "data"));
    }
}

/* The slot of the personalized model comes with the task that has one, by a new start. */
TEST(slots_are_those_that_the_parts_need)
{
    size_t bytes;
    struct fl_solver_bytes input;
    struct fl_buf means;
    struct fl_train_task task;
    struct both f;
    json_t *said;

    describe(&f, &rows[6]);
    bytes = f.server.count * sizeof(float);
    both_prepare(&f);
    said = last_heard(&f, "model");
    heard(said, "parts", "[\"pull\", \"mixup\"]");
    slot_lies(json_object_get(said, "weights"), "model", bytes, true);
    slot_lies(json_object_get(said, "weights"), "anchor", bytes, true);
    slot_lies(json_object_get(said, "result"), "model", bytes, true);
    slot_lies(json_object_get(said, "result"), "summary", FL_SUMMARY_MAX, false);
    ck_assert_uint_eq(json_object_size(json_object_get(json_object_get(said, "weights"), "slots")),
                      2);
    json_decref(said);
    personal_model(&f, &means);
    input = (struct fl_solver_bytes){means.data, means.len};
    task = task_of_row(&f, &rows[6], f.server.theta, &input);
    both_train(&f, &task);
    said = last_heard(&f, "model");
    slot_lies(json_object_get(said, "weights"), "mixup", means.len, false);
    json_decref(said);
    fl_buf_done(&means);
    both_done(&f);
}

/* --- adapting --- */

static const struct fl_solver_ops *const adapting[] = {
    &fl_solver_sgd, &fl_solver_prox, &fl_solver_pfedme, &fl_solver_per_fedavg, &fl_solver_fedmix};
static const struct {
    const char *steps, *epochs, *data;
    uint32_t train_epochs, train_steps;
} fits[] = {
    {"0", "0", "train", 2, 0}, {"0", "1", "test", 2, 0}, {"11", "0", "train", 2, 0},
    {"0", "0", "train", 0, 9}, {"4", "3", "test", 0, 9}, {"1", "0", "train", 1, 0},
};
#define N_FITS ((int)(sizeof(fits) / sizeof(fits[0])))

TEST_EACH(a_copy_that_is_fitted_is_judged_the_same, 5 * N_FITS)
{
    const struct fl_solver_ops *solver = adapting[_i / N_FITS];
    struct fl_evaluation received[2], adapted[2];
    struct fl_options *personal = NULL;
    struct fl_train_task task;
    struct both f;
    json_t *said;
    int i = _i % N_FITS;

    both_init_all(&f, solver);
    if (solver == &fl_solver_prox) {
        set(f.server.options, "mu", "0.4");
    }
    ck_assert_int_eq(fl_options_create(fl_personal_adapt.policy.options, &personal), FL_OK);
    set(personal, "steps", fits[i].steps);
    set(personal, "epochs", fits[i].epochs);
    set(personal, "data", fits[i].data);
    f.server.model.epochs = fits[i].train_epochs;
    f.server.model.steps = fits[i].train_steps;
    f.server.model.personal = &fl_personal_adapt;
    f.server.model.personal_options = personal;
    both_prepare(&f);
    task = task_of(&f.server);
    task.asked.key.round = 2;
    task.asked.learning_rate = 0.05;
    task.asked.order_seed = 99;
    ck_assert_msg(fl_trainer_adapt(f.own, &task, &received[0], &adapted[0], &f.err) == FL_OK &&
                      fl_trainer_adapt(f.program, &task, &received[1], &adapted[1], &f.err) ==
                          FL_OK,
                  "%s", f.err.msg);
    same_evaluation(&received[0], &received[1]);
    same_evaluation(&adapted[0], &adapted[1]);
    ck_assert_double_ne(adapted[1].loss_sum, received[1].loss_sum);
    said = last_heard(&f, "adapt");
    heard(said, "on", fits[i].data[1] == 'e' ? "\"test\"" : "\"train\"");
    heard(said, "given", "[\"model\"]");
    json_decref(said);
    fl_options_free(personal);
    both_done(&f);
}
