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

#include "client/store/cache.h"
#include "libfl/base/fs.h"
#include "libfl/nn/net.h"
#include "server/work/differences.h"
#include "tests/lib/folder.h"
#include "tests/lib/member_open.h"
#include "tests/sim/fed.h"

/*
 * --- death at a write: what is renamed or unlinked is done or not, of what is written into a
 * spool file a part is there or all, and nothing follows ---
 */

static struct fed_writer *writer;  /* who is at work; NULL: nobody is */
static bool tears;                 /* what it writes into files may be half there */
static struct fed_client *working; /* the same when it is a client */

int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlink(const char *path);
int __real_fl_fs_pwrite(int fd, const void *data, size_t len, uint64_t offset);
int __wrap_fl_fs_pwrite(int fd, const void *data, size_t len, uint64_t offset);

void fed_writes(struct fed_writer *w)
{
    writer = w;
}

bool fed_write(void)
{
    struct fed_writer *w = writer;
    bool done = w == NULL || !w->dead;

    if (w != NULL && !w->dead && ++w->n_writes == w->die_at) {
        w->dead = true;
        done = w->die_after;
    }
    if (!done) {
        errno = EIO;
    }
    return done;
}

static void work(struct fed_client *c)
{
    working = c;
    writer = c != NULL ? &c->writer : NULL;
}

const struct fed_client *fed_working(void)
{
    return working;
}

int __wrap_rename(const char *from, const char *to)
{
    return fed_write() ? __real_rename(from, to) : -1;
}

int __wrap_unlink(const char *path)
{
    return fed_write() ? __real_unlink(path) : -1;
}

void fed_tears(bool on)
{
    tears = on;
}

int __wrap_fl_fs_pwrite(int fd, const void *data, size_t len, uint64_t offset)
{
    bool lived = writer == NULL || !writer->dead;
    bool done = !tears || fed_write();

    if (!done && lived) { /* Anywhere: nothing of it, one byte, all but one, and between. */
        const size_t cuts[] = {0, 1, len / 8, len / 2, len - len / 8, len > 0 ? len - 1 : 0};

        (void)__real_fl_fs_pwrite(fd, data, cuts[writer->n_writes % 6], offset);
    }
    return done ? __real_fl_fs_pwrite(fd, data, len, offset) : FL_EIO;
}

/* --- what all clients share --- */

static const char *const layers[] = {"dense 1", "dense 1", "dense 2"};
static const struct fl_net_spec spec = {
    .input = {1}, .n_input = 1, .layers = layers, .n_layers = FED_UNITS};

void fed_draw(const struct fed *fed, float ret[FED_FLOATS])
{
    ck_assert_int_eq(fl_net_draw(&spec, fed->plan.seed, ret, FED_FLOATS, NULL), FL_OK);
}

struct fl_layout *fed_work_layout(void)
{
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
    bool own = fed->plan.own;
    struct fl_wire_welcome w = {.federation = fl_str_dup("fed"),
                                .layout = fed_work_layout(),
                                .classes = 2,
                                .solver = {.name = fl_str_dup(own ? "sgd" : "scaffold")},
                                .codec = {.name = fl_str_dup("float32")},
                                .training = {.steps = 1, .batch_size = 1}};
    struct fl_err err = {0};
    size_t i;

    if (fed->plan.broadcast != NULL) {
        w.broadcast.name = fl_str_dup(fed->plan.broadcast);
        w.model_seed = fed->plan.draws ? fed->plan.seed : 0;
    }
    if (own) {
        w.personal.name = fl_str_dup("own");
    } else {
        w.solver.options = calloc(1, sizeof(*w.solver.options));
        w.solver.options[w.solver.n_options++] = (struct fl_pair){
            fl_str_dup("rebuild_dc"), fl_str_dup(fed->plan.rebuild ? "yes" : "no")};
    }
    w.input = malloc(sizeof(*w.input));
    w.layers = calloc(FED_UNITS, sizeof(*w.layers));
    w.input[w.n_input++] = 1;
    for (i = 0; i < FED_UNITS; i++) {
        w.layers[w.n_layers++] = fl_str_dup(layers[i]);
    }
    ck_assert_msg(fl_setup_create(&w, &fed->setup, &err) == FL_OK, "%s", err.msg);
    fed->setup->solver = own ? &fed_solver_own : &fed_solver;
}

/* Nothing of what is kept gets lost here but by a death, which is no reason to warn of. */
static void sink(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    struct fed *fed = ctx;

    (void)level;
    (void)component;
    if (writer == NULL || !writer->dead) {
        fed_fail(fed, "%s: %s", working != NULL ? working->name : "server", text);
    }
}

void fed_work_init(struct fed *fed)
{
    size_t dims[3] = {1, 1, 1};

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 1, dims, 1, &fed->data, NULL), FL_OK);
    fed->data->classes = 1;
    fed->work_log = (struct fl_log){.level = FL_LOG_WARNING, .sink = sink, .ctx = fed};
    open_setup(fed);
    ck_assert(folder_make("fl-fed", fed->dir));
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

    ck_assert_int_eq(fl_trainer_builtin(fed->data, NULL, NULL, &trainer, &err), FL_OK);
    ck_assert_msg(member_open(ret, dir, trainer, &fed->work_log, 1, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_worker_prepare(&ret->worker, fed->setup, &err) == FL_OK, "%s", err.msg);
}

static void path_of(const struct fed *fed, const char *name, char out[FED_PATH])
{
    ck_assert_int_eq(fl_fs_join(out, FED_PATH, fed->dir, name), FL_OK);
}

/* The held model stays, is missing, or is an unknown one: from a backup, say. */
static void lose_model(const struct fed_client *c, const char *dir)
{
    static const float other[FED_FLOATS] = {1};
    uint64_t what = fed_hash(c->fed->plan.seed + c->index, c->generation) % 4;

    if (what == 0) {
        fl_cache_drop(dir, FL_CACHE_MODEL);
    } else if (what == 1) {
        ck_assert_int_eq(fl_cache_save(dir, FL_CACHE_MODEL, other, sizeof(other), NULL), FL_OK);
    }
}

void fed_work_open(struct fed_client *c)
{
    char dir[FED_PATH];

    path_of(c->fed, c->name, dir);
    ck_assert_int_eq(fl_fs_mkdirs(dir, NULL), FL_OK);
    c->writer.dead = false;
    if (c->fed->plan.loses_models) {
        lose_model(c, dir);
    }
    open_in(c->fed, dir, &c->member);
}

void fed_work_close(struct fed_client *c)
{
    fl_member_close(&c->member);
}

/* What was done is not heard of by anybody when the client died of it. */
static bool over(struct fed_client *c, int rv, const struct fl_err *err, const char *what)
{
    work(NULL);
    if (c->writer.dead) {
        fed_dies(c->fed, FED_CLIENT0 + c->index);
        return false;
    }
    if (rv != FL_OK) {
        fed_fail(c->fed, "%s: %s: %s", c->name, what, fl_err_text(err, rv));
    }
    return rv == FL_OK;
}

/* The answer of the server as it is now: since it sent the task, it may have stopped or committed.
 */
static struct fl_blob *changed(void *ctx, const uint8_t held[FL_DIGEST_SIZE])
{
    const struct fed_client *c = ctx;
    const struct fed_server *s = &c->fed->server;
    struct fl_differences *d = s->progress.committed.model.differences;
    struct fl_blob *bytes = NULL;
    uint8_t listed[FL_DIGEST_SIZE];

    ck_assert_int_eq(fl_versions_digest(s->layout, c->task.payloads.model, listed), FL_OK);
    if (s->coord == NULL || d == NULL ||
        memcmp(listed, fl_differences_digest(d), sizeof(listed)) != 0 ||
        fl_differences_get(d, held, &bytes) != FL_OK)
    {
        return NULL;
    }
    c->fed->n_changed++;
    return bytes;
}

bool fed_work_fetch(struct fed_client *c)
{
    const struct fl_broadcast_ops *broadcast = c->fed->setup->broadcast;
    const struct fed_payloads *from = &c->task.payloads;
    const size_t size = sizeof(from->model);
    uint8_t model[sizeof(from->model)];
    struct member_payload payloads[4] = {
        {"model", model, (size_t)fl_broadcast_bytes(broadcast, c->fed->setup->layout),
         fl_broadcast_sends_moves(broadcast)}};
    struct fl_err err = {0};
    size_t n = 1;
    int rv;

    ck_assert_int_eq(fl_broadcast_encode(broadcast, c->fed->setup->layout, from->model, model),
                     FL_OK);

    if (!c->fed->plan.own) {
        payloads[n++] = (struct member_payload){"control", from->control, size, false};
        payloads[n++] = (struct member_payload){"told", from->told, size, false};
    }
    if (from->has_personal_model) {
        payloads[n++] =
            (struct member_payload){"personal_model", from->personal_model, size, false};
    }
    work(c);
    rv = member_fetch(&c->member, &c->task.task, &(struct member_server){payloads, n, changed, c},
                      &err);
    return over(c, rv, &err, "cannot fetch");
}

bool fed_work_train(struct fed_client *c)
{
    struct fl_err err = {0};
    int rv;

    work(c);
    rv = fl_member_train(&c->member, &err);
    return over(c, rv, &err, "cannot train");
}

void fed_work_drop(struct fed_client *c)
{
    work(c);
    fl_pending_result_drop(&c->member.held, fl_pending_result_key(&c->member.held));
    (void)over(c, FL_OK, NULL, "");
}

/* As a Push goes over the line. */
static void fill_push(const struct fl_code *code, struct fed_push *push)
{
    size_t n = fl_blob_len(code->bytes);
    size_t i;

    ck_assert_uint_le(n, sizeof(push->bytes));
    ck_assert_uint_le(code->n_parts, FED_PARTS);
    (void)memcpy(push->bytes, fl_blob_data(code->bytes), n);
    push->n_bytes = n;
    push->n_parts = code->n_parts;
    for (i = 0; i < code->n_parts; i++) {
        push->parts[i] = code->parts[i];
    }
}

bool fed_work_code(struct fed_client *c, const uint8_t *units)
{
    struct fl_round_key key = fl_pending_result_key(&c->member.held);
    struct fl_err err = {0};
    struct fl_code code;
    int rv;

    c->push = (struct fed_push){.key = key};
    (void)memcpy(c->push.units, units, FED_UNITS);
    work(c);
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
    int rv = fl_client_state_load(m->worker.keeps, name, &data, NULL);

    (void)memset(to, 0, FED_FLOATS * sizeof(*to));
    if (rv == FL_OK) {
        (void)memcpy(to, data, FED_FLOATS * sizeof(*to));
    } else if (rv != FL_ENOENT) {
        fed_fail(fed, "what is kept as '%s' cannot be read", name);
    }
    free(data);
}

void fed_work_settled(struct fed *fed, uint32_t i, struct fl_round_key counted, uint64_t epoch,
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
    rv = fl_client_state_settle(m.worker.keeps, (struct fl_round_key){UINT64_MAX, 1}, counted,
                                epoch, NULL);
    ck_assert_int_eq(rv, FL_OK);
    load(fed, &m, "sim.control", ret->control);
    load(fed, &m, "sim.scaffold", ret->scaffold);
    load(fed, &m, FL_KEEP_PERSONAL, ret->own);
    fl_member_close(&m);
    folder_remove(dir);
}
