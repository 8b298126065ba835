/*
 * What a client of a simulated federation does with a task: the rooms of the real one (settling,
 * training, the held result, coding, files) on a folder, with a solver whose numbers are whole and
 * known. It may die at any of its writes.
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/nn/net.h"
#include "tests/lib/folder.h"
#include "tests/sim/fed.h"

/* --- death at a write: what is renamed or unlinked is done or not, and nothing follows --- */

static struct fed_client *writing; /* the client that is at work; NULL: nobody is */

int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlink(const char *path);

/* Whether this write is carried out. */
static bool lives(void)
{
    struct fed_client *c = writing;
    bool done = c == NULL || !c->dead;

    if (c != NULL && !c->dead && ++c->n_writes == c->die_at) {
        c->dead = true;
        done = c->die_after;
    }
    if (!done) {
        errno = EIO;
    }
    return done;
}

int __wrap_rename(const char *from, const char *to)
{
    return lives() ? __real_rename(from, to) : -1;
}

int __wrap_unlink(const char *path)
{
    return lives() ? __real_unlink(path) : -1;
}

/* --- the solver --- */

struct fl_solver {
    struct fl_net *net;
    float model[FED_FLOATS]; /* where it starts */
    float control[FED_FLOATS], told[FED_FLOATS], kept[2][FED_FLOATS];
    uint64_t made;
    uint64_t round;
};

static void take(const struct fl_solver_bytes *bytes, float to[FED_FLOATS])
{
    (void)memset(to, 0, FED_FLOATS * sizeof(*to));
    if (bytes->len > 0) {
        ck_assert_uint_eq(bytes->len, FED_FLOATS * sizeof(*to));
        (void)memcpy(to, bytes->data, bytes->len);
    }
}

static int sim_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                      struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *s = calloc(1, sizeof(*s));

    (void)o;
    (void)err;
    ck_assert_ptr_nonnull(s);
    s->net = setup->net;
    fl_net_get(s->net, s->model);
    take(&setup->inputs[0], s->control);
    take(&setup->inputs[1], s->told);
    take(&setup->kept[0], s->kept[0]);
    take(&setup->kept[1], s->kept[1]);
    *ret = s;
    return FL_OK;
}

static void sim_destroy(struct fl_solver *s)
{
    free(s);
}

static double sim_step(struct fl_solver *s, const float *x, const int32_t *y, size_t batch)
{
    float params[FED_FLOATS];

    (void)x;
    (void)y;
    (void)batch;
    s->made = fed_update_of(writing->name, writing->member.task.key.round,
                            writing->member.task.key.attempt, s->model);
    fed_floats(s->made, params);
    fl_net_set(s->net, params);
    return 1.0 + writing->index;
}

static void put(struct fl_buf *out, const float block[FED_FLOATS])
{
    ck_assert_int_eq(fl_buf_add(out, block, FED_FLOATS * sizeof(*block)), FL_OK);
}

/* A whole number that depends on all that went into the training. */
static float change_of(const struct fl_solver *s, unsigned l)
{
    float both[] = {s->kept[0][fed_at(l)], s->control[fed_at(l)]};

    return (float)((int)(fed_hash(fl_hash64(both, sizeof(both)), s->made + l) % 2001) - 1000);
}

/* As solver_scaffold.c ends a round whose mean gradient is `pull`. */
static int sim_finish(struct fl_solver *s, struct fl_buf *kept, struct fl_buf *sent,
                      struct fl_err *err)
{
    float change[FED_FLOATS] = {0};
    float pull[FED_FLOATS] = {0};
    float dc[FED_FLOATS] = {0};
    unsigned l;

    (void)err;
    for (l = 0; l < FED_UNITS; l++) {
        unsigned at = fed_at(l);

        change[at] = change_of(s, l);
        pull[at] = (float)(fed_hash(s->made, l) % 2001) / 1000 - 1;
        dc[at] = (float)(-(double)s->told[at] + (double)pull[at]);
        s->kept[0][at] += change[at];
        s->kept[1][at] = (float)((double)s->kept[1][at] + (double)dc[at]);
    }
    put(&kept[0], s->kept[0]);
    put(&kept[1], s->kept[1]);
    put(&sent[0], change);
    put(&sent[1], pull);
    put(&sent[2], dc);
    return FL_OK;
}

static const char *const sim_inputs[] = {"control", "told", NULL};
static const char *const sim_sends[] = {"change", "pull", "dc", NULL};
static const struct fl_keep sim_keeps[] = {{"control", true}, {"scaffold", true}, {NULL, false}};
static const struct fl_opt_spec sim_options[] = {FL_OPT_END};

static const struct fl_solver_ops sim_solver = {
    .policy = {.name = "sim", .help = "whole numbers", .source = "tests", .options = sim_options},
    .inputs = sim_inputs,
    .sends = sim_sends,
    .keeps = sim_keeps,
    .create = sim_create,
    .destroy = sim_destroy,
    .step = sim_step,
    .finish = sim_finish,
};

/* --- what all clients share --- */

static const char *const layers[] = {"dense 1", "dense 1", "dense 2"};

struct fl_layout *fed_work_layout(void)
{
    struct fl_net_spec spec = {.input = {1}, .n_input = 1, .layers = layers, .n_layers = FED_UNITS};
    struct fl_layout *layout = NULL;
    struct fl_net *net = NULL;
    struct fl_buf text;

    ck_assert_int_eq(fl_net_create(&spec, 1, &net, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_text(fl_net_layout(net), &text), FL_OK);
    ck_assert_int_eq(fl_layout_from_text((const char *)text.data, text.len, &layout, NULL), FL_OK);
    fl_buf_done(&text);
    fl_net_free(net);
    ck_assert_uint_eq(fl_layout_units(layout), FED_UNITS);
    ck_assert_uint_eq(fl_layout_count(layout), FED_FLOATS);
    return layout;
}

static void open_setup(struct fed *fed)
{
    struct fl_wire_welcome w = {.federation = fl_str_dup("fed"),
                                .layout = fed_work_layout(),
                                .classes = 2,
                                .solver = {.name = fl_str_dup("sgd")},
                                .codec = {.name = fl_str_dup("float32")},
                                .training = {.steps = 1, .batch_size = 1}};
    struct fl_err err = {0};
    size_t i;

    if (fed->plan.own) {
        w.personal.name = fl_str_dup("own");
    }
    w.input = malloc(sizeof(*w.input));
    w.layers = calloc(FED_UNITS, sizeof(*w.layers));
    w.input[w.n_input++] = 1;
    for (i = 0; i < FED_UNITS; i++) {
        w.layers[w.n_layers++] = fl_str_dup(layers[i]);
    }
    ck_assert_msg(fl_setup_create(&w, &fed->setup, &err) == FL_OK, "%s", err.msg);
    fed->setup->solver = &sim_solver;
}

/* In memory where there is a place for that: a test does not wait for a disk. */
static void make_folder(struct fed *fed)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
    char path[sizeof(fed->dir)];

    (void)snprintf(path, sizeof(path), "%s/fl-fed-XXXXXX", base != NULL ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(path));
    (void)memcpy(fed->dir, path, sizeof(path));
}

/* Nothing of what is kept gets lost here but by a death, which is no reason to warn of. */
static void sink(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    struct fed *fed = ctx;

    (void)level;
    (void)component;
    if (writing == NULL || !writing->dead) {
        fed_fail(fed, "%s: %s", writing != NULL ? writing->name : "disk", text);
    }
}

void fed_work_init(struct fed *fed)
{
    size_t dims[3] = {1, 1, 1};

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 1, dims, 1, &fed->data, NULL), FL_OK);
    fed->data->classes = 1;
    fed->work_log = (struct fl_log){.level = FL_LOG_WARNING, .sink = sink, .ctx = fed};
    open_setup(fed);
    make_folder(fed);
}

void fed_work_done(struct fed *fed)
{
    unsigned i;

    for (i = 0; i < fed->plan.n_clients; i++) {
        fl_member_close(&fed->clients[i].member);
    }
    fl_setup_unref(fed->setup);
    fl_dataset_free(fed->data);
    folder_remove(fed->dir);
}

/* --- a client --- */

static void open_in(struct fed *fed, const char *dir, struct fl_member *ret)
{
    struct fl_trainer *trainer = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_trainer_builtin(fed->data, NULL, &trainer, &err), FL_OK);
    ck_assert_msg(fl_member_open(ret, dir, trainer, &fed->work_log, 1, &err) == FL_OK, "%s",
                  err.msg);
    ck_assert_msg(fl_worker_prepare(&ret->worker, fed->setup, &err) == FL_OK, "%s", err.msg);
}

static void path_of(const struct fed *fed, const char *name, char out[FED_PATH])
{
    ck_assert_int_eq(fl_fs_join(out, FED_PATH, fed->dir, name), FL_OK);
}

void fed_work_open(struct fed_client *c)
{
    char dir[FED_PATH];

    path_of(c->fed, c->name, dir);
    ck_assert_int_eq(fl_fs_mkdirs(dir, NULL), FL_OK);
    c->dead = false;
    open_in(c->fed, dir, &c->member);
}

void fed_work_close(struct fed_client *c)
{
    fl_member_close(&c->member);
}

struct fl_round_key fed_work_held(const struct fed_client *c)
{
    return c->member.held.result != NULL ? c->member.held.result->key : (struct fl_round_key){0};
}

/* What was done is not heard of by anybody when the client died of it. */
static bool over(struct fed_client *c, int rv, const struct fl_err *err, const char *what)
{
    writing = NULL;
    if (c->dead) {
        fed_dies(c->fed, FED_CLIENT0 + c->index);
        return false;
    }
    if (rv != FL_OK) {
        fed_fail(c->fed, "%s: %s: %s", c->name, what, fl_err_text(err, rv));
    }
    return rv == FL_OK;
}

bool fed_work_fetch(struct fed_client *c)
{
    const struct fed_msg *msg = &c->task;
    const struct fl_task task = {.key = {msg->round, msg->attempt},
                                 .counted = {msg->counted_round, msg->counted_attempt},
                                 .learning_rate = 0.1};
    float blocks[4][FED_FLOATS] = {{0}};
    const size_t size = sizeof(blocks[0]);
    const struct fl_member_bundle bundles[] = {{"model", blocks[0], size, false},
                                               {"control", blocks[1], size, false},
                                               {"told", blocks[2], size, false},
                                               {"mixture", blocks[3], size, false}};
    struct fl_err err = {0};
    unsigned l;
    int rv;

    fed_floats(msg->theta, blocks[0]);
    fed_floats(msg->mixture, blocks[3]);
    for (l = 0; l < FED_UNITS; l++) {
        blocks[1][fed_at(l)] = (float)(int64_t)msg->control[l];
        blocks[2][fed_at(l)] = msg->told[l];
    }
    writing = c;
    rv = fl_member_fetch(&c->member, &task, bundles, msg->has_mixture ? 4 : 3, &err);
    return over(c, rv, &err, "cannot fetch");
}

bool fed_work_train(struct fed_client *c)
{
    struct fl_err err = {0};
    int rv;

    writing = c;
    rv = fl_member_train(&c->member, &err);
    return over(c, rv, &err, "cannot train");
}

void fed_work_drop(struct fed_client *c)
{
    writing = c;
    fl_held_drop(&c->member.held, fed_work_held(c));
    (void)over(c, FL_OK, NULL, "");
}

/* A part of a push as the server's decoder finds it. */
static void decode(const struct fl_layout *layout, const struct fl_wire_part *part,
                   const uint8_t *bytes, float to[FED_FLOATS])
{
    const struct fl_unit *unit = fl_layout_unit(layout, part->unit);

    ck_assert_uint_eq(part->codec, FL_CODEC_FLOAT32);
    ck_assert_uint_eq(part->bytes, unit->count * sizeof(float));
    (void)memcpy(to + unit->offset, bytes, (size_t)part->bytes);
}

static void fill_push(const struct fl_code *code, struct fed_msg *msg)
{
    static const char *const names[] = {"update", "change", "pull", "dc"};
    float blocks[4][FED_FLOATS] = {{0}};
    uint64_t at = 0;
    size_t i;
    unsigned l;

    for (i = 0; i < code->n_parts; i++) {
        size_t b = 0;

        while (strcmp(names[b], code->parts[i].bundle) != 0) {
            ck_assert_uint_lt(++b, 4);
        }
        decode(code->setup->layout, &code->parts[i], fl_blob_data(code->bytes) + at, blocks[b]);
        at += code->parts[i].bytes;
    }
    (void)memcpy(msg->update, blocks[0], sizeof(msg->update));
    for (l = 0; l < FED_UNITS; l++) {
        msg->control[l] = (uint64_t)(int64_t)blocks[1][fed_at(l)];
        msg->pull[l] = blocks[2][fed_at(l)];
        msg->change[l] = blocks[3][fed_at(l)];
    }
}

bool fed_work_code(struct fed_client *c, const uint8_t *units)
{
    struct fl_round_key key = fed_work_held(c);
    struct fl_err err = {0};
    struct fl_code code;
    int rv;

    c->push = (struct fed_msg){.type = FED_PUSH, .round = key.round, .attempt = key.attempt};
    (void)memcpy(c->push.units, units, FED_UNITS);
    writing = c;
    rv = fl_member_code(&c->member, units, &code, &err);
    if (rv == FL_OK) {
        fill_push(&code, &c->push);
    }
    fl_code_done(&code);
    return over(c, rv, &err, "cannot code");
}

/* --- what its disk holds --- */

static int link_one(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    char from[FED_PATH];
    char to[FED_PATH];

    (void)err;
    if (name[0] != '.') {
        ck_assert_int_eq(fl_fs_join(from, sizeof(from), folder, name), FL_OK);
        ck_assert_int_eq(fl_fs_join(to, sizeof(to), ctx, name), FL_OK);
        ck_assert_int_eq(link(from, to), 0);
    }
    return FL_OK;
}

static void load(struct fed *fed, struct fl_member *m, const char *name, float to[FED_FLOATS])
{
    float *data = NULL;
    int rv = fl_keeps_load(m->worker.keeps, name, &data, NULL);

    (void)memset(to, 0, FED_FLOATS * sizeof(*to));
    if (rv == FL_OK) {
        (void)memcpy(to, data, FED_FLOATS * sizeof(*to));
    } else if (rv != FL_ENOENT) {
        fed_fail(fed, "what is kept as '%s' cannot be read", name);
    }
    free(data);
}

void fed_work_settled(struct fed *fed, uint32_t i, struct fl_round_key counted,
                      struct fed_kept *ret)
{
    struct fl_member m;
    char from[FED_PATH];
    char dir[FED_PATH];
    char keep[FED_PATH];
    char of_client[32];
    int rv;

    (void)snprintf(of_client, sizeof(of_client), "%s/keep", fed->clients[i].name);
    path_of(fed, of_client, from);
    path_of(fed, "after", dir);
    path_of(fed, "after/keep", keep);
    ck_assert_int_eq(fl_fs_mkdirs(keep, NULL), FL_OK);
    ck_assert_int_eq(fl_fs_each(from, link_one, keep, NULL), FL_OK);
    open_in(fed, dir, &m);
    rv = fl_keeps_settle(m.worker.keeps, (struct fl_round_key){UINT64_MAX, 1}, counted, NULL);
    ck_assert_int_eq(rv, FL_OK);
    load(fed, &m, "sim.control", ret->control);
    load(fed, &m, "sim.scaffold", ret->scaffold);
    load(fed, &m, FL_KEEP_PERSONAL, ret->own);
    fl_member_close(&m);
    folder_remove(dir);
}
