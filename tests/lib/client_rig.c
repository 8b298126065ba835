#include "tests/lib/client_rig.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/model/digest.h"
#include "tests/client/train/train_fixture.h"

#define TEST_SAMPLES 70

/* --- the server's description --- */

static void take_option(struct fl_wire_component *component, const char *word)
{
    const char *equals = strchr(word, '=');
    struct fl_pair *grown =
        realloc(component->options, (component->n_options + 1) * sizeof(*component->options));
    struct fl_pair *pair;

    ck_assert_ptr_nonnull(grown);
    ck_assert_ptr_nonnull(equals);
    component->options = grown;
    pair = &component->options[component->n_options++];
    pair->key = strndup(word, (size_t)(equals - word));
    pair->value = fl_str_dup(equals + 1);
}

static struct fl_wire_component component_of(const char *text)
{
    struct fl_wire_component component = {0};
    char *copy = fl_str_dup(text);
    char *rest = copy;
    char *word;

    while ((word = strsep(&rest, " ")) != NULL) {
        if (component.name == NULL) {
            component.name = fl_str_dup(word);
        } else {
            take_option(&component, word);
        }
    }
    free(copy);
    return component;
}

static bool is_norm(void *ctx, const struct fl_layout *layout, const struct fl_tensor *tensor)
{
    (void)ctx;
    (void)layout;
    return strncmp(tensor->name, "bn", 2) == 0;
}

static bool is_head(void *ctx, const struct fl_layout *layout, const struct fl_tensor *tensor)
{
    (void)ctx;
    return tensor->unit + 1 == fl_layout_units(layout);
}

static void take_network(const struct rig_server *server, struct fl_wire_welcome *w)
{
    bool head = server->personal != NULL && strncmp(server->personal, "head", 4) == 0;
    char first[32];
    const char *layers[] = {first, "bn", train_layers[1], train_layers[2]};
    size_t n = server->norm ? 4 : 3;
    struct fl_net_spec spec = {.input = {INPUTS}, .n_input = 1, .layers = layers, .n_layers = n};
    struct fl_net *net = NULL;
    size_t i;

    if (!server->norm) {
        layers[1] = train_layers[1];
        layers[2] = train_layers[2];
    }
    (void)snprintf(first, sizeof(first), "dense %zu", server->hidden != 0 ? server->hidden : 16);
    ck_assert_int_eq(fl_net_create(&spec, 1, &net, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_copy(fl_net_layout(net),
                                    server->local ? is_norm : (head ? is_head : NULL), NULL,
                                    &w->layout, NULL),
                     FL_OK);
    fl_net_free(net);
    w->input = malloc(sizeof(*w->input));
    w->layers = calloc(n, sizeof(*w->layers));
    w->input[w->n_input++] = INPUTS;
    for (i = 0; i < n; i++) {
        w->layers[w->n_layers++] = fl_str_dup(layers[i]);
    }
}

struct fl_wire_welcome rig_welcome(const struct rig_server *server)
{
    struct fl_wire_welcome w = {
        .federation = fl_str_dup(server->federation != NULL ? server->federation : "rig"),
        .classes = CLASSES,
        .solver = component_of(server->solver != NULL ? server->solver : "sgd"),
        .codec = component_of(server->codec != NULL ? server->codec : "float32"),
        .wants_previous_dot = server->wants_previous_dot,
        .model_seed = server->model_seed,
        .generation = {server->generation},
        .state_generation = {server->state_generation},
        .heartbeat_ms = 1000,
        .training = {.epochs = server->epochs != 0 ? server->epochs : 1,
                     .batch_size = 10,
                     .client_momentum = server->client_momentum}};

    if (server->upload != NULL) {
        w.upload = component_of(server->upload);
    }
    if (server->personal != NULL) {
        w.personal = component_of(server->personal);
    }
    if (server->broadcast != NULL) {
        w.broadcast = component_of(server->broadcast);
    }
    if (server->space != NULL) {
        w.space = component_of(server->space);
    }
    take_network(server, &w);
    return w;
}

struct fl_setup *rig_setup(const struct rig_server *server)
{
    struct fl_wire_welcome w = rig_welcome(server);
    struct fl_setup *setup = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_setup_create(&w, &setup, &err) == FL_OK, "%s", err.msg);
    return setup;
}

/* --- setup and cleanup --- */

static void sink(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    struct rig *r = ctx;
    size_t len = strlen(r->lines);

    (void)component;
    (void)snprintf(r->lines + len, sizeof(r->lines) - len, "%d %s\n", (int)level, text);
}

static void begin_process(struct rig *r)
{
    r->worker = (struct fl_worker){.state_dir = r->dir, .log = &r->log, .seed = RIG_SEED};
    ck_assert_int_eq(fl_trainer_builtin(r->train, r->test, NULL, &r->worker.trainer, &r->err),
                     FL_OK);
    ck_assert_msg(fl_client_state_open(r->dir, &r->log, &r->worker.keeps, &r->err) == FL_OK, "%s",
                  r->err.msg);
}

static void take_model(struct rig *r)
{
    struct fl_rng rng;
    size_t i;

    free(r->theta);
    r->count = fl_layout_count(r->setup->layout);
    r->theta = malloc(r->count * sizeof(*r->theta));
    ck_assert_ptr_nonnull(r->theta);
    fl_rng_seed(&rng, 1);
    for (i = 0; i < r->count; i++) {
        r->theta[i] = 0.1f * (float)fl_rng_normal(&rng);
    }
}

void rig_use(struct rig *r, struct fl_setup *setup)
{
    fl_setup_unref(r->setup);
    r->setup = setup;
    take_model(r);
    ck_assert_msg(fl_worker_prepare(&r->worker, r->setup, &r->err) == FL_OK, "%s", r->err.msg);
}

void rig_describe(struct rig *r, const struct rig_server *server)
{
    rig_use(r, rig_setup(server));
}

void client_rig_init(struct rig *r, const struct rig_server *server, bool with_test)
{
    (void)memset(r, 0, sizeof(*r));
    (void)snprintf(r->dir, sizeof(r->dir), "/tmp/fl-rig-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(r->dir));
    r->log = (struct fl_log){.level = FL_LOG_NOTICE, .sink = sink, .ctx = r};
    r->train = make_data(SAMPLES, INPUTS, CLASSES, 3);
    r->test = with_test ? make_data(TEST_SAMPLES, INPUTS, CLASSES, 4) : NULL;
    begin_process(r);
    rig_describe(r, server);
}

void rig_restart(struct rig *r)
{
    fl_worker_done(&r->worker);
    begin_process(r);
    ck_assert_msg(fl_worker_prepare(&r->worker, r->setup, &r->err) == FL_OK, "%s", r->err.msg);
}

void rig_done(struct rig *r)
{
    fl_worker_done(&r->worker);
    fl_setup_unref(r->setup);
    fl_dataset_free(r->train);
    if (r->test != NULL) {
        fl_dataset_free(r->test);
    }
    free(r->theta);
    folder_remove(r->dir);
}

const char *client_rig_path(const struct rig *r, const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", r->dir, name);
    return path;
}

bool rig_has_file(const struct rig *r, const char *name)
{
    struct stat st;

    return stat(client_rig_path(r, name), &st) == 0;
}

/* --- a task --- */

float *rig_filled(const struct rig *r, float value)
{
    float *data = malloc(r->count * sizeof(*data));
    size_t i;

    ck_assert_ptr_nonnull(data);
    for (i = 0; i < r->count; i++) {
        data[i] = value;
    }
    return data;
}

struct fl_task rig_task(uint64_t round, uint64_t counted_round)
{
    return (struct fl_task){.key = {round, 1},
                            .counted = {counted_round, counted_round != 0},
                            .learning_rate = 0.1,
                            .seed = 77};
}

void rig_list(const struct rig_payload *payloads, size_t n, struct fl_inputs *ret)
{
    struct fl_wire_payload wire[FL_WIRE_MAX_PAYLOADS] = {{0}};
    struct fl_wire_task task = {.payloads = wire, .n_payloads = n};
    size_t i;

    for (i = 0; i < n; i++) {
        wire[i].name = fl_wire_lend(payloads[i].name);
        wire[i].bytes = payloads[i].len;
        wire[i].has_digest = payloads[i].has_digest;
        ck_assert_int_eq(fl_sha256(payloads[i].data, payloads[i].len, wire[i].digest), FL_OK);
    }
    fl_inputs_list(ret, &task);
}

static size_t receive(const struct rig_payload *payloads, size_t n, struct fl_inputs *inputs)
{
    size_t fetched = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        struct fl_input *in = fl_inputs_find(inputs, payloads[i].name);

        if (in != NULL && in->data == NULL) {
            in->data = malloc(payloads[i].len + 1);
            ck_assert_ptr_nonnull(in->data);
            (void)memcpy(in->data, payloads[i].data, payloads[i].len);
            in->have = in->bytes;
            fetched++;
        }
    }
    return fetched;
}

/* Returns the result of choosing. */
static int settle(struct rig *r, const struct fl_task *task, struct fl_inputs *listed,
                  struct fl_inputs *ret)
{
    struct fl_settling s;
    int rv = FL_OK;

    if (fl_settling_begin(&r->worker, r->setup, listed, task, &s)) {
        rv = fl_settling_run(&s, &r->worker, &r->err);
    }
    if (rv == FL_OK) {
        rv = fl_settling_choose(&s, listed, &r->log, ret, &r->err);
    }
    fl_settling_done(&s);
    return rv;
}

size_t rig_fetch(struct rig *r, const struct fl_task *task, const struct rig_payload *payloads,
                 size_t n, struct fl_inputs *ret)
{
    struct fl_inputs listed = {.n = 0};
    int rv;

    rig_list(payloads, n, &listed);
    rv = settle(r, task, &listed, ret);
    ck_assert_msg(rv == FL_OK, "%d: %s", rv, r->err.msg);
    fl_inputs_done(&listed);
    return receive(payloads, n, ret);
}

int rig_try(struct rig *r, const struct fl_task *task, const struct rig_payload *payloads, size_t n,
            struct fl_result **ret)
{
    struct fl_inputs listed = {.n = 0};
    struct fl_inputs inputs = {.n = 0};
    struct fl_training *t = NULL;
    int rv;

    r->err = (struct fl_err){0};
    rig_list(payloads, n, &listed);
    rv = settle(r, task, &listed, &inputs);
    fl_inputs_done(&listed);
    if (rv != FL_OK) {
        return rv;
    }
    (void)receive(payloads, n, &inputs);
    ck_assert_int_eq(fl_training_new(&r->worker, task, &inputs, NULL, NULL, &t, &r->err), FL_OK);
    rv = fl_training_run(t, &r->err);
    if (rv == FL_OK) {
        *ret = fl_training_take(t);
    } else {
        ck_assert_ptr_null(fl_training_take(t)); /* A partial result is discarded. */
    }
    fl_training_free(t);
    return rv;
}

struct fl_result *rig_train(struct rig *r, const struct fl_task *task,
                            const struct rig_payload *payloads, size_t n)
{
    struct fl_result *result = NULL;
    int rv = rig_try(r, task, payloads, n, &result);

    ck_assert_msg(rv == FL_OK, "%d: %s", rv, r->err.msg);
    ck_assert_ptr_nonnull(result);
    return result;
}

struct fl_result *rig_train_plain(struct rig *r, const struct fl_task *task)
{
    struct rig_payload model = {"model", r->theta, r->count * sizeof(float), false};

    return rig_train(r, task, &model, 1);
}

struct fl_code rig_code(struct rig *r, struct fl_result *result, const uint8_t *units)
{
    struct fl_code code;

    ck_assert_int_eq(
        fl_code_begin(&code, &r->worker, result, units, fl_layout_units(r->setup->layout)), FL_OK);
    return code;
}

void rig_grant(struct rig *r, struct fl_result *result)
{
    struct fl_code code = rig_code(r, result, NULL);

    ck_assert_msg(fl_code_run(&code, &r->err) == FL_OK, "%s", r->err.msg);
    fl_code_done(&code);
}

float *rig_kept(struct rig *r, const char *name)
{
    float *data = NULL;

    ck_assert_msg(fl_client_state_load(r->worker.keeps, name, &data, &r->err) == FL_OK, "%s: %s",
                  name, r->err.msg);
    return data;
}
