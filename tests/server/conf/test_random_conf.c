/*
 * Configurations drawn at random, at the ends of what their options take: each is refused when it
 * is read, with its line, or runs: a few rounds of clients that answer, through the parser, the
 * core, the codecs and the aggregation. Nothing that an operator writes trips an assertion.
 * Whole federations with late, forgotten and dying clients, and restarts:
 * tests/sim/test_fed_conf.c.
 *
 *     FL_CONF_SEED=<seed> tests/server/conf/test_random_conf      one of them, and it is printed
 *     FL_CONF_SEEDS=100000 tests/server/conf/test_random_conf     more of them
 */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/base/rng.h"
#include "libfl/strategy/codec/codec_masked.h"
#include "server/conf/conf_tables.h"
#include "tests/lib/conf_drawn.h"
#include "tests/lib/suites.h"

enum { CLIENTS = 7, ROUNDS = 3, STEPS = 2000, UNITS_MAX = 16, PAYLOADS = 3 };

/* --- the configuration --- */

static void add_number(struct fl_buf *yaml, double x, bool whole)
{
    ck_assert_int_eq(fl_buf_printf(yaml, whole ? "%.0f" : "%.17g", x), FL_OK);
}

/* A value of an option: its ends more often than what lies between; sometimes past them. */
static void add_value(struct fl_buf *yaml, struct fl_rng *rng, const struct fl_opt_spec *spec)
{
    bool whole = spec->type != FL_OPT_FLOAT;
    double max = isfinite(spec->max) && spec->max > spec->min ? spec->max : spec->min + 1e12;
    size_t n = 0;

    switch (spec->type) {
    case FL_OPT_BOOL:
        conf_drawn_add(yaml, fl_rng_below(rng, 2) == 0 ? "no" : "yes");
        return;
    case FL_OPT_ENUM:
        for (n = 0; spec->choices[n] != NULL; n++) {
        }
        conf_drawn_add(yaml, spec->choices[fl_rng_below(rng, n)]);
        return;
    case FL_OPT_INT:
    case FL_OPT_FLOAT:
    case FL_OPT_BYTES:
    case FL_OPT_DURATION:
        break;
    case FL_OPT_RATE:
    case FL_OPT_STRING:
    case FL_OPT_STRING_LIST:
    case FL_OPT_INT_LIST:
    case FL_OPT_MAP:
        conf_drawn_add(yaml, spec->def != NULL ? spec->def : "x");
        return;
    }
    switch (fl_rng_below(rng, 64) == 0 ? 6 + fl_rng_below(rng, 2) : fl_rng_below(rng, 6) + 8) {
    case 6:
        add_number(yaml, max + fmax(1, fabs(max)), whole);
        break;
    case 7:
        add_number(yaml, spec->min - 1, whole);
        break;
    case 8:
        add_number(yaml, spec->min, whole);
        break;
    case 9:
        add_number(yaml, max, whole);
        break;
    case 10:
        add_number(yaml, fmin(max, spec->min + 1), whole);
        break;
    case 11:
        add_number(yaml, spec->min + (max - spec->min) * 1e-9, whole);
        break;
    case 12:
        add_number(yaml, fmax(spec->min, fmin(max, (double)fl_rng_below(rng, CLIENTS + 3))), whole);
        break;
    default:
        add_number(yaml, spec->min + (max - spec->min) * pow(fl_rng_unit(rng), 4), whole);
        break;
    }
    if (spec->type == FL_OPT_DURATION) {
        conf_drawn_add(yaml, "ms");
    }
}

/* ", name: value" of some options of a table; `but`: a name that is left out. */
static void add_options(struct fl_buf *yaml, struct fl_rng *rng, const struct fl_opt_spec *specs,
                        const char *but, const char *before)
{
    for (; specs != NULL && specs->name != NULL; specs++) {
        if (strcmp(specs->name, but) != 0 && fl_rng_below(rng, 4) == 0) {
            conf_drawn_add(yaml, before);
            conf_drawn_add(yaml, specs->name);
            conf_drawn_add(yaml, ": ");
            add_value(yaml, rng, specs);
            before = ", ";
        }
    }
}

static void add_section(struct fl_buf *yaml, struct fl_rng *rng, const char *name,
                        const struct fl_opt_spec *specs, const char *but)
{
    conf_drawn_add(yaml, name);
    conf_drawn_add(yaml, ": {");
    add_options(yaml, rng, specs, but, "");
    conf_drawn_add(yaml, "}\n");
}

/* Mostly numbers about as large as the federation: there they meet. */
static void add_round(struct fl_buf *yaml, struct fl_rng *rng)
{
    static const char *const few[] = {"population", "min_responders"};
    size_t i;

    if (fl_rng_below(rng, 8) == 0) {
        add_section(yaml, rng, "round", fl_server_round_specs, "start_clients");
        return;
    }
    conf_drawn_add(yaml, "round: {over_selection: ");
    add_number(yaml, fl_rng_below(rng, 2) == 0 ? 1 : 1 + 9 * fl_rng_unit(rng), false);
    for (i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
        if (fl_rng_below(rng, 2) == 0) {
            ck_assert_int_eq(
                fl_buf_printf(yaml, ", %s: %d", few[i], (int)fl_rng_below(rng, CLIENTS)), FL_OK);
        }
    }
    conf_drawn_add(yaml, fl_rng_below(rng, 2) == 0 ? ", backfill: yes}\n" : "}\n");
}

static void add_component(struct fl_buf *yaml, struct fl_rng *rng, enum fl_component component)
{
    const struct fl_policy *const *policies = fl_strategy_policies(component);
    const struct fl_policy *policy;
    size_t n = 0;

    while (policies[n] != NULL) {
        n++;
    }
    policy = policies[fl_rng_below(rng, n)];
    ck_assert_int_eq(
        fl_buf_printf(yaml, "  %s: {policy: %s", fl_component_name(component), policy->name),
        FL_OK);
    add_options(yaml, rng, policy->options, "", ", ");
    conf_drawn_add(yaml, "}\n");
}

static void draw_conf(struct fl_buf *yaml, struct fl_rng *rng)
{
    static const char *const models[] = {
        "{preset: mlr60}", "{input: [4], layers: [dense 5, bn, relu, dense 3]}",
        "{input: [1], layers: [dense 2]}",
        "{input: [3, 6, 6], layers: [conv 4 3, bn, relu, maxpool 2, flatten, dense 3]}"};
    unsigned components = fl_rng_below(rng, 2) == 0 ? (unsigned)fl_rng_below(rng, 4) : 0;
    unsigned component;

    conf_drawn_add(yaml, "federation: f\nstate_dir: /nowhere/state\ninsecure: yes\n");
    ck_assert_int_eq(fl_buf_printf(yaml, "seed: %" PRIu64 "\nrounds: %d\nmodel: %s\n",
                                   1 + fl_rng_below(rng, 9), ROUNDS,
                                   models[fl_rng_below(rng, sizeof(models) / sizeof(models[0]))]),
                     FL_OK);
    if (fl_rng_below(rng, 4) > 0) {
        conf_drawn_add(yaml, "algorithm: ");
        conf_drawn_add(yaml, conf_drawn_preset(rng));
        if (fl_rng_below(rng, 6) == 0) {
            conf_drawn_add(yaml, "+");
            conf_drawn_add(yaml, conf_drawn_preset(rng));
        }
        conf_drawn_add(yaml, "\n");
    }
    add_section(yaml, rng, "training", fl_server_training_specs, "");
    add_round(yaml, rng);
    add_section(yaml, rng, "evaluation", fl_server_evaluation_specs, "data");
    conf_drawn_add(yaml, components > 0 ? "strategy:\n" : "");
    for (component = 0; components > 0 && component < FL_COMPONENT_COUNT; component++) {
        if (fl_rng_below(rng, FL_COMPONENT_COUNT) < components) {
            add_component(yaml, rng, (enum fl_component)component);
        }
    }
}

/* --- the world --- */

struct rig {
    struct fl_server_conf *conf;
    const struct fl_strategy *s;
    const struct fl_layout *layout;
    size_t units, count, n_state;
    struct fl_coord *coord;
    struct fl_rng rng;
    float *theta, *theta_new, *told;
    float *state[FL_AGG_MAX_STATE], *state_new[FL_AGG_MAX_STATE];
    double distance[CLIENTS];
    struct fl_buf coded[CLIENTS][PAYLOADS][UNITS_MAX];
    struct fl_codec_memory memory[CLIENTS][PAYLOADS];
    uint8_t sent[CLIENTS][UNITS_MAX]; /* by client number: what was granted and coded */
    uint64_t bytes[CLIENTS];
    uint32_t senders[CLIENTS]; /* of the pass: client numbers */
    struct fl_event *queue;
    size_t n_queue, at;
    uint64_t now;
    bool finished;
};

static void later(struct rig *r, const struct fl_event *event)
{
    r->queue = realloc(r->queue, (r->n_queue + 1) * sizeof(*r->queue));
    ck_assert_ptr_nonnull(r->queue);
    r->queue[r->n_queue++] = *event;
}

static float *vector(struct rig *r, double scale)
{
    float *x = calloc(r->count, sizeof(*x));
    size_t i;

    ck_assert_ptr_nonnull(x);
    for (i = 0; i < r->count; i++) {
        x[i] = (float)(scale * fl_rng_normal(&r->rng));
    }
    return x;
}

static void encode_units(struct rig *r, uint32_t client, size_t payload, const float *x,
                         const uint8_t *keep, const uint8_t *units)
{
    const struct fl_codec_ops *codec = payload == 0 ? r->s->codec : &fl_codec_float32;
    struct fl_options *plain = NULL;
    size_t l;

    ck_assert_int_eq(fl_options_create(fl_codec_float32.policy.options, &plain), FL_OK);
    for (l = 0; l < r->units; l++) {
        struct fl_unit_update in = {.delta = x + fl_layout_unit(r->layout, l)->offset,
                                    .keep = payload == 0 ? keep : NULL};
        struct fl_buf *out = &r->coded[client][payload][l];

        fl_buf_clear(out);
        keep += keep != NULL ? fl_neurons(r->layout, l) : 0;
        if (units[l] != 0) {
            ck_assert_int_eq(
                fl_unit_encode(codec, payload == 0 ? r->s->options[FL_COMPONENT_CODEC] : plain,
                               r->layout, l, &in, out),
                FL_OK);
            r->bytes[client] += out->len;
        }
    }
    fl_options_free(plain);
}

/* What the client trained, coded as it would be; then it is on the server's disk. */
static void upload(struct rig *r, const struct fl_effect *e)
{
    struct fl_event ev = {.type = FL_EV_UPLOAD_STORED};
    const char *const *sends = fl_solver_sends(r->s->solver, r->s->options[FL_COMPONENT_SOLVER]);
    size_t n = 1 + fl_solver_names(sends);
    uint8_t *keep = NULL;
    size_t b;

    if (memchr(e->units, 1, r->units) == NULL) {
        return;
    }
    (void)memcpy(r->sent[e->client], e->units, r->units);
    r->bytes[e->client] = 0;
    ck_assert_uint_le(n, PAYLOADS);
    for (b = 0; b < n; b++) {
        float *x = vector(r, fl_rng_below(&r->rng, 8) == 0 ? 0 : 0.01);

        if (b == 0 && r->s->upload->mask != NULL) {
            keep = calloc(fl_neurons_total(r->layout), 1);
            ck_assert_int_eq(r->s->upload->mask(r->s->options[FL_COMPONENT_UPLOAD], r->layout,
                                                r->theta, x, keep),
                             FL_OK);
        }
        encode_units(r, e->client, b, x, b == 0 ? keep : NULL, e->units);
        free(x);
    }
    free(keep);
    ev.u.upload.client = e->client;
    ev.u.upload.round = e->round;
    ev.u.upload.attempt = e->attempt;
    ev.u.upload.bytes = r->bytes[e->client];
    later(r, &ev);
}

static void report(struct rig *r, const struct fl_effect *e)
{
    static float divergence[UNITS_MAX];
    struct fl_event ev = {.type = FL_EV_REPORT};
    size_t l;

    for (l = 0; l < r->units; l++) {
        divergence[l] = (float)(l % 3);
    }
    ev.u.report.client = e->client;
    ev.u.report.round = e->round;
    ev.u.report.attempt = e->attempt;
    ev.u.report.samples = fl_coord_client(r->coord, e->client)->samples;
    ev.u.report.steps = fl_rng_below(&r->rng, 3) * fl_rng_below(&r->rng, UINT64_C(1) << 62);
    ev.u.report.train_loss = fl_rng_unit(&r->rng);
    if (fl_strategy_needs_divergence(r->s)) {
        ev.u.report.divergence = divergence;
        ev.u.report.n_divergence = r->units;
    }
    ev.u.report.previous_dot = fl_rng_normal(&r->rng);
    later(r, &ev);
}

static int open_unit(void *ctx, size_t client, size_t payload, size_t unit,
                     struct fl_codec_decoder *d)
{
    struct rig *r = ctx;
    uint32_t id = r->senders[client];
    const struct fl_buf *coded = &r->coded[id][payload][unit];
    struct fl_codec_memory *memory = &r->memory[id][payload];
    struct fl_codec_reader reader;

    *memory = (struct fl_codec_memory){.data = coded->data, .len = coded->len};
    reader = fl_codec_memory_reader(memory);
    if (payload > 0) {
        return fl_codec_open(d, &fl_codec_float32, r->layout, unit, &reader);
    }
    return r->s->upload->mask != NULL ? fl_masked_open(d, r->s->codec, r->layout, unit, &reader)
                                      : fl_codec_open(d, r->s->codec, r->layout, unit, &reader);
}

static int no_personal_model(void *ctx, size_t client, size_t offset, const float *values, size_t n)
{
    (void)ctx;
    (void)client;
    (void)offset;
    (void)values;
    (void)n;
    return FL_OK;
}

/* As server/work/aggregation.c does it. */
static void aggregate(struct rig *r, const struct fl_effect *e)
{
    const struct fl_server_conf *conf = r->conf;
    struct fl_agg_client clients[CLIENTS];
    struct fl_agg_job job = {.layout = r->layout,
                             .ops = r->s->aggregate,
                             .options = r->s->options[FL_COMPONENT_AGGREGATE],
                             .round = e->round,
                             .members = e->size.members,
                             .n_clients = e->n_parts,
                             .clients = clients,
                             .open = open_unit,
                             .ctx = r,
                             .theta = r->theta,
                             .theta_new = r->theta_new,
                             .extra = r->s->solver->server,
                             .extra_options = r->s->options[FL_COMPONENT_SOLVER],
                             .state = (const float *const *)r->state,
                             .state_new = r->state_new,
                             .personal_model = r->s->aggregate->mixes ? no_personal_model : NULL,
                             .want_distance = e->want_distance,
                             .distance = r->distance};
    struct fl_event ev = {.type = FL_EV_AGGREGATED};
    struct fl_err err = {0};
    size_t who = e->n_parts;
    size_t i;
    int rv;

    ck_assert_uint_le(e->n_parts, CLIENTS);
    for (i = 0; i < e->n_parts; i++) {
        const struct fl_participant_rec *part = &e->parts[i];

        r->senders[i] = part->client;
        clients[i] = (struct fl_agg_client){.weight = (double)part->samples,
                                            .units = r->sent[part->client],
                                            .previous_dot = part->previous_dot};
        if (r->s->solver->factor != NULL) {
            clients[i].factor = r->s->solver->factor(r->s->options[FL_COMPONENT_SOLVER],
                                                     conf->training->learning_rate,
                                                     conf->training->momentum, part->steps);
        }
    }
    rv = fl_aggregate_run(&job, &who, &err);
    ev.u.aggregated.seq = e->seq;
    ev.u.aggregated.distance = e->want_distance ? r->distance : NULL;
    if (rv != FL_OK) { /* Numbers that are too large for the floats: said, not asserted. */
        ck_assert_msg(rv == FL_ENUMERIC, "%s: %s", fl_strerror(rv), err.msg);
        ev = (struct fl_event){.type = FL_EV_WORK_FAILED};
        ev.u.failed_work.seq = e->seq;
        ev.u.failed_work.code = rv;
        ev.u.failed_work.reason = "not finite";
        ev.u.failed_work.client = who < e->n_parts ? e->parts[who].client : UINT32_MAX;
    }
    later(r, &ev);
}

static void swap(float **a, float **b)
{
    float *x = *a;

    *a = *b;
    *b = x;
}

static void answer_seq(struct rig *r, enum fl_event_type type, uint64_t seq)
{
    struct fl_event ev = {.type = type};

    ev.u.seq = seq;
    if (type == FL_EV_EVALUATED) {
        ev.u.evaluated.accuracy = 0.5;
        ev.u.evaluated.loss = 1;
    }
    later(r, &ev);
}

static void round_open(struct rig *r, const struct fl_effect *e)
{
    size_t i;

    for (i = 0; i < r->n_state; i++) {
        fl_strategy_describe(r->s, i, r->state[i], e->size.members, r->told, r->count);
    }
}

static void take_effect(struct rig *r, const struct fl_effect *e)
{
    struct fl_event ev = {.type = FL_EV_EVAL_REPORT};
    size_t i;

    switch (e->type) {
    case FL_EFF_TASK:
        report(r, e);
        if (e->units != NULL) {
            upload(r, e);
        }
        break;
    case FL_EFF_PLAN:
        upload(r, e);
        break;
    case FL_EFF_EVALUATE_CLIENT:
        ev.u.eval.client = e->client;
        ev.u.eval.round = e->round;
        ev.u.eval.result = ev.u.eval.adapted =
            (struct fl_eval_rec){.samples = 10, .correct = 5, .loss_sum = 10};
        later(r, &ev);
        break;
    case FL_EFF_FORGOTTEN:
        break;
    case FL_EFF_FORGET_CLIENTS:
    case FL_EFF_PERSIST_QUARANTINE:
    case FL_EFF_PERSIST_PAUSE:
    case FL_EFF_PERSIST_SELECTION:
    case FL_EFF_PERSIST_PLAN:
    case FL_EFF_PERSIST_UPDATE:
        answer_seq(r, FL_EV_PERSISTED, e->seq);
        break;
    case FL_EFF_AGGREGATE:
        aggregate(r, e);
        break;
    case FL_EFF_EVALUATE:
        answer_seq(r, FL_EV_EVALUATED, e->seq);
        break;
    case FL_EFF_COMMIT:
        swap(&r->theta, &r->theta_new);
        for (i = 0; i < r->n_state; i++) {
            swap(&r->state[i], &r->state_new[i]);
        }
        answer_seq(r, FL_EV_COMMITTED, e->seq);
        break;
    case FL_EFF_ROUND_OPEN:
        round_open(r, e);
        break;
    case FL_EFF_RELEASE:
        ev = (struct fl_event){.type = FL_EV_RELEASED};
        ev.u.client = e->client;
        later(r, &ev);
        break;
    case FL_EFF_FINISHED:
        r->finished = true;
        break;
    default:
        break;
    }
}

static void step(struct rig *r, struct fl_event *ev)
{
    struct fl_effects effects;
    size_t i;

    ev->now_ms = r->now;
    ev->wall_ms = r->now;
    ck_assert_int_eq(fl_coord_step(r->coord, ev, &effects), FL_OK);
    for (i = 0; i < effects.n; i++) {
        take_effect(r, &effects.list[i]);
    }
}

static void join(struct rig *r, unsigned k)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_JOINED};
    char name[16];

    (void)snprintf(name, sizeof(name), "c%u", k);
    ev.u.joined.name = name;
    ev.u.joined.agent = "random";
    ev.u.joined.samples = fl_rng_below(&r->rng, 6) == 0 ? 0 : 1 + fl_rng_below(&r->rng, 1000);
    ev.u.joined.evaluation_samples = 10;
    step(r, &ev);
}

static void rig_init(struct rig *r, struct fl_server_conf *conf, uint64_t seed)
{
    struct fl_coord_conf c;
    struct fl_err err = {0};
    size_t i;
    size_t k;

    *r = (struct rig){.conf = conf, .s = conf->strategy, .layout = conf->layout};
    fl_rng_key(&r->rng, seed, FL_RNG_TEST, 2, 2);
    r->units = fl_layout_units(r->layout);
    r->count = fl_layout_count(r->layout);
    r->n_state = fl_strategy_states(r->s);
    ck_assert_uint_le(r->units, UNITS_MAX);
    ck_assert_uint_le(r->n_state, FL_AGG_MAX_STATE);
    r->theta = vector(r, 1);
    r->theta_new = vector(r, 0);
    r->told = vector(r, 0);
    for (i = 0; i < r->n_state; i++) {
        r->state[i] = vector(r, 0);
        r->state_new[i] = vector(r, 0);
    }
    for (k = 0; k < CLIENTS; k++) {
        for (i = 0; i < (size_t)PAYLOADS * UNITS_MAX; i++) {
            fl_buf_init(&r->coded[k][i / UNITS_MAX][i % UNITS_MAX], 1u << 24);
        }
    }
    fl_server_conf_coord(conf, &c);
    ck_assert_msg(fl_coord_create(&c, NULL, &r->coord, &err) == FL_OK, "%s", err.msg);
}

static void rig_done(struct rig *r)
{
    size_t i;
    size_t k;

    fl_coord_free(r->coord);
    free(r->theta);
    free(r->theta_new);
    free(r->told);
    for (i = 0; i < r->n_state; i++) {
        free(r->state[i]);
        free(r->state_new[i]);
    }
    for (k = 0; k < CLIENTS; k++) {
        for (i = 0; i < (size_t)PAYLOADS * UNITS_MAX; i++) {
            fl_buf_done(&r->coded[k][i / UNITS_MAX][i % UNITS_MAX]);
        }
    }
    free(r->queue);
}

/* Rounds until all are done, or nothing more comes of waiting; somebody joins now and then. */
static uint64_t run(struct rig *r)
{
    struct fl_event start = {.type = FL_EV_START};
    unsigned joined = 1 + (unsigned)fl_rng_below(&r->rng, CLIENTS);
    unsigned k;
    unsigned n;
    uint64_t committed;

    step(r, &start);
    for (k = 0; k < joined; k++) {
        join(r, k);
    }
    for (n = 0; n < STEPS && !r->finished; n++) {
        struct fl_event ev = {.type = FL_EV_TICK};

        if (r->at < r->n_queue) {
            ev = r->queue[r->at++];
        } else if (joined < CLIENTS && fl_rng_below(&r->rng, 4) == 0) {
            join(r, joined++);
            continue;
        } else if (fl_coord_deadline(r->coord) == UINT64_MAX || n > STEPS / 2) {
            break;
        } else {
            r->now = fl_coord_deadline(r->coord);
        }
        step(r, &ev);
    }
    committed = fl_coord_committed(r->coord);
    return committed;
}

/* --- the tests --- */

static struct {
    unsigned refused, ran, finished;
} totals;

static void run_seed(uint64_t seed, bool show)
{
    struct fl_server_conf *conf = conf_drawn_make(draw_conf, seed, show);
    struct rig *r;

    if (conf == NULL) {
        totals.refused++;
        return;
    }
    r = malloc(sizeof(*r));
    ck_assert_ptr_nonnull(r);
    rig_init(r, conf, seed);
    totals.ran += run(r) > 0;
    totals.finished += r->finished;
    rig_done(r);
    free(r);
    fl_server_conf_free(conf);
}

/* An assertion ends the process: _i says in which hundred, FL_CONF_SEED finds it. */
TEST_EACH(a_configuration_is_refused_with_its_line_or_runs, conf_drawn_loops())
{
    if (!conf_drawn_seeds(_i, run_seed)) {
        return;
    }
    /* Neither is the exception. */
    ck_assert_uint_gt(totals.refused, CONF_DRAWN_PER_TEST / 10);
    ck_assert_uint_gt(totals.ran, CONF_DRAWN_PER_TEST / 10);
    ck_assert_uint_gt(totals.finished, 0);
}
