/*
 * A persistent trainer for the small problem of tests/client/train/train_fixture.h with our own
 * network:
 *
 *     nn_trainer [FILE]
 *
 * Steps with `pull`, `gradient` and `drift` use the formula of docs/trainers.md#parts;
 * steps of other solvers and all other tasks use the built-in trainer (nn_engine.h). Each received
 * message is logged as a line of FILE; without FILE it declares only the capabilities of that
 * formula.
 */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/num/vec.h"
#include "libfl/program/fields.h"

/* Check's own speak to the test that runs, and here none does. */
#undef ck_assert
#undef ck_assert_int_eq
#define ck_assert(ok)          ((ok) ? (void)0 : abort())
#define ck_assert_int_eq(a, b) ck_assert((a) == (b))
#include "tests/client/train/train_fixture.h"
#include "tests/lib/nn_engine.h"

enum slot { MODEL, ANCHOR, GRADIENT, DRIFT, PLACES, SLOTS };
static const char *const slot_names[] = {"model", "anchor", "gradient", "drift", "places"};

static struct {
    int sock, weights, result;
    struct fl_net *net;
    struct fl_dataset *train, *test;
    const uint8_t *read;
    uint8_t *write;
    size_t at[SLOTS], made, block;
    size_t mixup, mixup_bytes, summary, summary_bytes;
    struct nn_engine engine;
    const char *notes; /* NULL: a small program */
} me;

/* The steps of one task; vectors in internal order, NULL: not this part. */
static struct {
    float lr, momentum, decay, mu;
    float *velocity, *anchor, *gradient, *drift, *places, *start, *g;
    size_t numbers;
} how;

static void transfer(bool out, void *data, size_t len)
{
    char *p = data;

    while (len > 0) {
        ssize_t n = out ? write(me.sock, p, len) : read(me.sock, p, len);

        if (n <= 0) {
            exit(0);
        }
        p += n;
        len -= (size_t)n;
    }
}

static void say(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    uint32_t len = (uint32_t)strlen(text);

    transfer(true, &len, sizeof(len));
    transfer(true, text, len);
    free(text);
    json_decref(json);
}

static void note(const char *text, size_t len)
{
    FILE *f = me.notes != NULL ? fopen(me.notes, "a") : NULL;

    if (f != NULL) {
        (void)fwrite(text, 1, len, f);
        (void)fputc('\n', f);
        (void)fclose(f);
    }
}

static json_t *hear(void)
{
    uint32_t len;
    char *text;
    json_t *json;

    transfer(false, &len, sizeof(len));
    text = malloc(len);
    transfer(false, text, len);
    note(text, len);
    json = json_loadb(text, len, 0, NULL);
    free(text);
    return json;
}

static size_t whole(const json_t *json, const char *key)
{
    return (size_t)json_integer_value(json_object_get(json, key));
}

static double real(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

/* It accepts only its own model. */
static bool is_ours(const json_t *m)
{
    json_t *units = fl_field_units(fl_net_layout(me.net), true);
    bool same = json_equal(units, json_object_get(m, "units")) != 0;

    json_decref(units);
    return same;
}

static void on_model(json_t *m)
{
    const json_t *w = json_object_get(m, "weights");
    const json_t *r = json_object_get(m, "result");
    const json_t *slots = json_object_get(w, "slots");
    const json_t *made = json_object_get(r, "slots");
    size_t i;

    if (!is_ours(m)) {
        say(json_pack("{s:s, s:s}", "type", "failed", "error", "these are not my tensors"));
        return;
    }
    for (i = 0; i < SLOTS; i++) {
        me.at[i] = whole(json_object_get(slots, slot_names[i]), "data");
    }
    me.made = whole(json_object_get(made, "model"), "data");
    me.mixup = whole(json_object_get(slots, "mixup"), "offset");
    me.mixup_bytes = whole(json_object_get(slots, "mixup"), "bytes");
    me.summary = whole(json_object_get(made, "summary"), "offset");
    me.summary_bytes = whole(json_object_get(made, "summary"), "bytes");
    json_decref(me.engine.described);
    me.engine.described = json_incref(m);
    me.read = mmap(NULL, whole(w, "bytes"), PROT_READ, MAP_SHARED, me.weights, 0);
    me.write = mmap(NULL, whole(r, "bytes"), PROT_READ | PROT_WRITE, MAP_SHARED, me.result, 0);
    ck_assert(me.read != MAP_FAILED && me.write != MAP_FAILED);
    say(json_pack("{s:s}", "type", "accepted"));
}

static const float *slot(enum slot which)
{
    return (const float *)(const void *)(me.read + me.at[which]);
}

static json_t *evaluated(void)
{
    size_t piece = fl_net_piece(me.net);
    float *x = calloc(piece * INPUTS, sizeof(float));
    int32_t *y = calloc(piece, sizeof(int32_t));
    uint32_t *idx = calloc(piece, sizeof(uint32_t));
    double loss_sum = 0;
    size_t correct = 0;
    size_t at;
    size_t i;

    for (at = 0; at < me.test->n; at += piece) {
        size_t n = me.test->n - at < piece ? me.test->n - at : piece;
        size_t right = 0;
        double loss = 0;

        for (i = 0; i < n; i++) {
            idx[i] = (uint32_t)(at + i);
        }
        fl_dataset_gather(me.test, idx, n, x, y);
        fl_net_evaluate(me.net, x, y, n, &loss, &right);
        loss_sum += loss;
        correct += right;
    }
    free(x);
    free(y);
    free(idx);
    return json_pack("{s:I, s:I, s:f}", "samples", (json_int_t)me.test->n, "correct",
                     (json_int_t)correct, "loss_sum", loss_sum);
}

/* g <- g + gradient + mu (x - anchor) + wd x;  v <- m v + g;  x <- x - eta v */
static void update(void *ctx, size_t offset, size_t n, float *x, const float *grad)
{
    float *g = how.g;
    size_t i;

    (void)ctx;
    (void)memcpy(g, grad, n * sizeof(*g));
    if (how.gradient != NULL) {
        fl_vec_axpy(g, 1, how.gradient + offset, n);
    }
    for (i = 0; how.anchor != NULL && i < n; i++) {
        g[i] += how.mu * (x[i] - how.anchor[offset + i]);
    }
    if (how.decay > 0) {
        fl_vec_axpy(g, how.decay, x, n);
    }
    if (how.momentum > 0) {
        for (i = 0; i < n; i++) {
            how.velocity[offset + i] = how.momentum * how.velocity[offset + i] + g[i];
        }
        g = how.velocity + offset;
    }
    fl_vec_axpy(x, -how.lr, g, n);
}

static float *internal(bool there, enum slot which)
{
    float *block = there ? calloc(me.block, sizeof(float)) : NULL;

    if (there) {
        fl_net_import(me.net, block, slot(which));
    }
    return block;
}

static bool is_given(const json_t *m, const char *name)
{
    const json_t *list = json_object_get(m, "given");
    size_t i;

    for (i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0) {
            return true;
        }
    }
    return false;
}

static void begin_steps(const json_t *m)
{
    const json_t *parts = json_object_get(m, "do");
    const json_t *pull = json_object_get(parts, "pull");

    how.lr = (float)real(m, "learning_rate");
    how.momentum = (float)real(m, "momentum");
    how.decay = (float)real(m, "weight_decay");
    how.mu = (float)real(pull, "mu");
    how.anchor = internal(pull != NULL, is_given(m, "anchor") ? ANCHOR : MODEL);
    how.gradient = internal(json_object_get(parts, "gradient") != NULL, GRADIENT);
    how.drift = internal(json_object_get(parts, "drift") != NULL, DRIFT);
    how.places = internal(json_object_get(parts, "space") != NULL, PLACES);
    how.start = internal(how.places != NULL, MODEL);
    how.numbers = whole(json_object_get(parts, "space"), "numbers");
    how.velocity = calloc(me.block, sizeof(float));
    how.g = calloc(me.block, sizeof(float));
}

static void end_steps(void)
{
    free(how.anchor);
    free(how.gradient);
    free(how.drift);
    free(how.places);
    free(how.start);
    free(how.velocity);
    free(how.g);
}

/* The displacement becomes the mean, but for signs, within each number. */
static void back_into_space(float *x)
{
    float *sums = calloc(how.numbers + 1, sizeof(*sums));
    float *counts = calloc(how.numbers + 1, sizeof(*counts));
    size_t i;

    for (i = 0; i < me.block; i++) {
        size_t place = (size_t)how.places[i];

        sums[place / 2] += place % 2 == 0 ? x[i] - how.start[i] : how.start[i] - x[i];
        counts[place / 2]++;
    }
    for (i = 0; i < me.block; i++) {
        size_t place = (size_t)how.places[i];
        float mean = sums[place / 2] * (1 / counts[place / 2]);

        if (place > 0) {
            x[i] = how.start[i] + (place % 2 == 0 ? mean : -mean);
        }
    }
    free(sums);
    free(counts);
}

/* In the order of the built-in trainer's epochs, so that the results can be compared. */
static double walk(const json_t *m, size_t batch, size_t n_steps)
{
    size_t n = me.train->n;
    size_t in_pass = (n + batch - 1) / batch;
    uint32_t *order = calloc(n, sizeof(*order));
    float *x = calloc(batch * INPUTS, sizeof(*x));
    int32_t *y = calloc(batch, sizeof(*y));
    double loss = 0;
    size_t seen = 0;
    size_t step;
    size_t i;

    for (step = 0; step < n_steps; step++) {
        size_t at = step % in_pass * batch;
        size_t k = n - at < batch ? n - at : batch;
        struct fl_rng rng;

        if (at == 0) {
            for (i = 0; i < n; i++) {
                order[i] = (uint32_t)i;
            }
            fl_rng_key(&rng, whole(m, "seed"), FL_RNG_BATCH, step / in_pass, 0);
            fl_rng_shuffle(&rng, order, n);
        }
        fl_dataset_gather(me.train, order + at, k, x, y);
        loss += (double)k * fl_net_step(me.net, x, y, k, update, NULL);
        seen += k;
        if (how.drift != NULL) {
            fl_vec_axpy(fl_net_params(me.net), 1.0f / (float)n_steps, how.drift, me.block);
        }
        if (how.places != NULL) {
            back_into_space(fl_net_params(me.net));
        }
    }
    free(order);
    free(x);
    free(y);
    return loss / (double)seen;
}

/* --- tasks --- */

/* Takes `fields`. */
static void answer(const json_t *m, json_t *fields)
{
    (void)json_object_set_new(fields, "type", json_string("done"));
    (void)json_object_set_new(fields, "id", json_integer((json_int_t)whole(m, "id")));
    say(fields);
}

static struct nn_given given_of(const json_t *m)
{
    struct nn_given given = {.model = slot(MODEL)};

    if (is_given(m, "anchor")) {
        given.anchor = slot(ANCHOR);
    }
    if (is_given(m, "mixup")) {
        given.mixup = me.read + me.mixup;
        given.mixup_len = me.mixup_bytes;
    }
    return given;
}

static bool has_own_steps(const json_t *m)
{
    const json_t *parts = json_object_get(m, "do");

    return json_object_get(parts, "pfedme") != NULL || json_object_get(parts, "mixup") != NULL ||
           json_object_get(parts, "per_fedavg") != NULL;
}

static void on_train(const json_t *m)
{
    size_t batch = whole(m, "batch_size");
    size_t n_steps = whole(m, "epochs") * ((me.train->n + batch - 1) / batch);
    struct nn_given given = given_of(m);
    json_t *received;
    double loss;

    if (has_own_steps(m)) {
        answer(m, nn_engine_train(&me.engine, m, &given, (float *)(void *)(me.write + me.made)));
        return;
    }
    fl_net_set(me.net, slot(MODEL));
    received = evaluated();
    begin_steps(m);
    loss = walk(m, batch, n_steps);
    end_steps();
    fl_net_get(me.net, (float *)(void *)(me.write + me.made));
    answer(m, json_pack("{s:I, s:I, s:f, s:o, s:o}", "samples", (json_int_t)me.train->n, "steps",
                        (json_int_t)n_steps, "train_loss", loss, "received", received, "trained",
                        evaluated()));
}

static void on_task(const char *type, const json_t *m)
{
    struct nn_given given;

    if (strcmp(type, "train") == 0) {
        on_train(m);
    } else if (strcmp(type, "adapt") == 0) {
        given = given_of(m);
        answer(m, nn_engine_adapt(&me.engine, m, &given));
    } else if (strcmp(type, "summary") == 0) {
        answer(m, nn_engine_summary(&me.engine, m, me.write + me.summary, me.summary_bytes));
    } else if (strcmp(type, "evaluate") == 0) {
        fl_net_set(me.net, slot(MODEL));
        answer(m, json_pack("{s:o}", "received", evaluated()));
    } else {
        exit(0); /* `bye` */
    }
}

static json_t *ready(void)
{
    bool all = me.notes != NULL;
    json_t *can = all ? json_pack("[s, s, s, s]", "train", "evaluate", "adapt", "summary")
                      : json_pack("[s, s]", "train", "evaluate");
    json_t *parts = all ? json_pack("[s, s, s, s, s, s, s]", "pull", "gradient", "drift", "pfedme",
                                    "per_fedavg", "mixup", "space")
                        : json_pack("[s, s, s]", "pull", "gradient", "drift");

    return json_pack("{s:s, s:i, s:o, s:o, s:i, s:i, s:s}", "type", "ready", "protocol", 1, "can",
                     can, "parts", parts, "samples", SAMPLES, "test_samples", 40, "software",
                     "libfl/nn");
}

static void on_message(const char *type, json_t *m)
{
    if (strcmp(type, "start") == 0) {
        say(ready());
    } else if (strcmp(type, "model") == 0) {
        on_model(m);
    } else if (strcmp(type, "cancel") != 0)
    { /* The message belongs to a task that was answered meanwhile. */
        on_task(type, m);
    }
}

int main(int argc, char **argv)
{
    struct server server;

    me.notes = argc > 1 ? argv[1] : NULL;
    me.sock = (int)strtol(getenv("FL_TRAINER_SOCKET"), NULL, 10);
    me.weights = (int)strtol(getenv("FL_TRAINER_WEIGHTS"), NULL, 10);
    me.result = (int)strtol(getenv("FL_TRAINER_RESULT"), NULL, 10);
    server_init(&server);
    ck_assert_int_eq(fl_net_create(&server.model.net, 64, &me.net, NULL), FL_OK);
    me.block = fl_net_block(me.net);
    me.train = make_data(SAMPLES, INPUTS, CLASSES, 3);
    me.test = make_data(40, INPUTS, CLASSES, 4);
    me.engine = (struct nn_engine){.model = server.model, .train = me.train, .test = me.test};
    for (;;) {
        json_t *m = hear();

        on_message(json_string_value(json_object_get(m, "type")), m);
        json_decref(m);
    }
}
