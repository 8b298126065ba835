/*
 * The setup of a federation, made from a Welcome: looks up the algorithm's components with their
 * options, and compares setups and results with it. Immutable after creation, so any thread may use
 * it. It prepares neither trainer nor client state (worker.c).
 */

#include "client/work/setup.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/nn/net.h"
#include "libfl/nn/net_metrics.h"

/* --- components --- */

/*
 * Makes a component from its wire form; `named`: the policy where the server names none. Names the
 * component that this client does not support.
 */
static int prepare_component(enum fl_component component, const struct fl_wire_component *w,
                             const char *named, const struct fl_policy **ret,
                             struct fl_options **ret_options, struct fl_err *err)
{
    const char *name = w->name != NULL ? w->name : named;
    struct fl_component_option *o = calloc(w->n_options > 0 ? w->n_options : 1, sizeof(*o));
    size_t i;
    int rv;

    if (o == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < w->n_options; i++) {
        o[i].name = w->options[i].key;
        o[i].value = w->options[i].value;
    }
    rv = fl_component_by_name(component, name, o, w->n_options, ret, ret_options, err);
    free(o);
    return rv == FL_OK || rv == FL_ENOMEM
               ? rv
               : fl_err_wrap(err, rv, "the server's %s is '%s', which this client does not support",
                             fl_component_name(component), name);
}

/* --- life --- */

static void welcome_done(struct fl_wire_welcome *welcome)
{
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};

    command.u.welcome = *welcome;
    fl_wire_command_done(&command);
    *welcome = (struct fl_wire_welcome){0};
}

static int setup_make_space(struct fl_setup *s, struct fl_err *err)
{
    const struct fl_policy *policy = NULL;
    struct fl_options *options = NULL;
    int rv =
        prepare_component(FL_COMPONENT_SPACE, &s->welcome.space, "full", &policy, &options, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_space_create((const void *)policy, options, s->layout, &s->space, err);
    fl_options_free(options);
    return rv;
}

/* Names that this client does not know are those of a newer server. */
static unsigned setup_metrics(const struct fl_wire_welcome *w)
{
    unsigned which = 0;
    size_t i;
    size_t k;

    for (i = 0; i < w->n_metrics; i++) {
        for (k = 0; k < FL_NET_METRIC_N; k++) {
            which |= strcmp(w->metrics[i], fl_net_metric_names[k]) == 0 ? 1u << k : 0;
        }
    }
    return which;
}

int fl_setup_create(struct fl_wire_welcome *welcome, struct fl_setup **ret, struct fl_err *err)
{
    struct fl_setup *s = calloc(1, sizeof(*s));
    const struct fl_policy *policy;
    int rv;

    if (s == NULL) {
        welcome_done(welcome);
        return FL_ENOMEM;
    }
    atomic_init(&s->refs, 1);
    s->welcome = *welcome;
    s->layout = s->welcome.layout;
    *welcome = (struct fl_wire_welcome){0};
    if (s->welcome.n_layers > FL_NET_MAX_LAYERS || s->welcome.n_input > FL_NET_MAX_INPUT_DIMS) {
        rv = fl_err_set(err, FL_ELIMIT,
                        "a network of %zu layers and %zu input dimensions exceeds the limits of "
                        "this client",
                        s->welcome.n_layers, s->welcome.n_input);
        goto fail;
    }
    rv = prepare_component(FL_COMPONENT_SOLVER, &s->welcome.solver, NULL, &policy,
                           &s->solver_options, err);
    if (rv != FL_OK) {
        goto fail;
    }
    s->solver = (const void *)policy;
    rv = prepare_component(FL_COMPONENT_CODEC, &s->welcome.codec, NULL, &policy, &s->codec_options,
                           err);
    if (rv != FL_OK) {
        goto fail;
    }
    s->codec = (const void *)policy;
    rv = prepare_component(FL_COMPONENT_UPLOAD, &s->welcome.upload, "full", &policy,
                           &s->upload_options, err);
    if (rv != FL_OK) {
        goto fail;
    }
    s->upload = (const void *)policy;
    rv = prepare_component(FL_COMPONENT_PERSONAL, &s->welcome.personal, "none", &policy,
                           &s->personal_options, err);
    if (rv != FL_OK) {
        goto fail;
    }
    s->personal = (const void *)policy;
    rv = prepare_component(FL_COMPONENT_BROADCAST, &s->welcome.broadcast, "float32", &policy,
                           &s->broadcast_options, err);
    if (rv != FL_OK) {
        goto fail;
    }
    s->broadcast = (const void *)policy;
    rv = setup_make_space(s, err);
    if (rv != FL_OK) {
        goto fail;
    }
    s->metrics = setup_metrics(&s->welcome);
    *ret = s;
    return FL_OK;
fail:
    fl_setup_unref(s);
    return rv;
}

struct fl_setup *fl_setup_ref(struct fl_setup *setup)
{
    (void)atomic_fetch_add(&setup->refs, 1);
    return setup;
}

void fl_setup_unref(struct fl_setup *setup)
{
    if (setup == NULL || atomic_fetch_sub(&setup->refs, 1) > 1) {
        return;
    }
    fl_options_free(setup->solver_options);
    fl_options_free(setup->codec_options);
    fl_options_free(setup->upload_options);
    fl_options_free(setup->personal_options);
    fl_options_free(setup->broadcast_options);
    fl_space_free(setup->space);
    welcome_done(&setup->welcome);
    free(setup);
}

struct fl_net_spec fl_setup_net(const struct fl_setup *setup)
{
    const struct fl_wire_welcome *w = &setup->welcome;
    struct fl_net_spec net = {
        .n_input = w->n_input, .layers = (const char *const *)w->layers, .n_layers = w->n_layers};
    size_t i;

    for (i = 0; i < w->n_input; i++) {
        net.input[i] = w->input[i];
    }
    return net;
}

/* --- comparing --- */

static bool same_component(const struct fl_wire_component *a, const struct fl_wire_component *b)
{
    size_t i;

    if ((a->name == NULL) != (b->name == NULL) || a->n_options != b->n_options ||
        (a->name != NULL && strcmp(a->name, b->name) != 0))
    {
        return false;
    }
    for (i = 0; i < a->n_options; i++) {
        if (strcmp(a->options[i].key, b->options[i].key) != 0 ||
            strcmp(a->options[i].value, b->options[i].value) != 0)
        {
            return false;
        }
    }
    return true;
}

static bool same_network(const struct fl_wire_welcome *a, const struct fl_wire_welcome *b)
{
    size_t i;

    if (a->n_layers != b->n_layers || a->n_input != b->n_input) {
        return false;
    }
    for (i = 0; i < a->n_input; i++) {
        if (a->input[i] != b->input[i]) {
            return false;
        }
    }
    for (i = 0; i < a->n_layers; i++) {
        if (strcmp(a->layers[i], b->layers[i]) != 0) {
            return false;
        }
    }
    return fl_layout_equal(a->layout, b->layout);
}

bool fl_setup_is(const struct fl_setup *setup, const struct fl_wire_welcome *b)
{
    const struct fl_wire_welcome *a = &setup->welcome;

    return strcmp(a->federation, b->federation) == 0 && same_network(a, b) &&
           same_component(&a->solver, &b->solver) && same_component(&a->codec, &b->codec) &&
           same_component(&a->upload, &b->upload) && same_component(&a->personal, &b->personal) &&
           same_component(&a->broadcast, &b->broadcast) && same_component(&a->space, &b->space) &&
           setup->metrics == setup_metrics(b) && a->model_seed == b->model_seed &&
           a->wants_previous_dot == b->wants_previous_dot &&
           memcmp(a->generation, b->generation, sizeof(a->generation)) == 0 &&
           memcmp(a->state_generation, b->state_generation, sizeof(a->state_generation)) == 0 &&
           a->training.epochs == b->training.epochs && a->training.steps == b->training.steps &&
           a->training.batch_size == b->training.batch_size &&
           memcmp(&a->training.momentum, &b->training.momentum, sizeof(double)) == 0 &&
           memcmp(&a->training.client_momentum, &b->training.client_momentum, sizeof(double)) ==
               0 &&
           memcmp(&a->training.weight_decay, &b->training.weight_decay, sizeof(double)) == 0;
}

const char *fl_setup_unfit(const struct fl_setup *setup, const struct fl_result *result)
{
    size_t n_mask = setup->upload->mask != NULL ? fl_neurons_total(setup->layout) : 0;

    if (memcmp(result->digest, fl_layout_digest(setup->layout), FL_DIGEST_SIZE) != 0 ||
        result->n_units != fl_layout_units(setup->layout) ||
        result->n_floats != fl_layout_count(setup->layout))
    {
        return "it is for another model";
    }
    if (memcmp(result->generation, setup->welcome.generation, sizeof(result->generation)) != 0) {
        return "it was made with other settings of the federation, or before the server rolled "
               "back to an older model";
    }
    if (result->n_sent != fl_solver_names(fl_solver_sends(setup->solver, setup->solver_options)) ||
        result->n_mask != n_mask)
    {
        return "it is for another algorithm";
    }
    return NULL;
}
