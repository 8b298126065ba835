#include "server/work/welcome.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/nn/net_metrics.h"

/* Name and option texts of a component that runs on the client. */
static int welcome_fill_component(const struct fl_policy *policy, const struct fl_options *options,
                                  struct fl_wire_component *component)
{
    const struct fl_opt_spec *spec;
    size_t n = 0;

    component->name = fl_wire_lend(policy->name);
    for (spec = policy->options; spec != NULL && spec->name != NULL; spec++) {
        n++;
    }
    component->options = calloc(n > 0 ? n : 1, sizeof(*component->options));
    if (component->options == NULL) {
        return FL_ENOMEM;
    }
    for (spec = policy->options; spec != NULL && spec->name != NULL; spec++) {
        char text[FL_WIRE_MAX_TEXT];

        component->options[component->n_options].key = fl_wire_lend(spec->name);
        component->options[component->n_options].value =
            fl_str_dup(fl_options_show(options, spec, text, sizeof(text)));
        if (component->options[component->n_options].value == NULL) {
            return FL_ENOMEM;
        }
        component->n_options++;
    }
    return FL_OK;
}

int fl_welcome_describe(const struct fl_described *of, struct fl_wire_welcome *ret)
{
    struct fl_wire_welcome w = {.version = FL_WIRE_VERSION,
                                .federation = fl_wire_lend(of->federation),
                                .layout = (struct fl_layout *)(uintptr_t)of->layout,
                                .wants_previous_dot = fl_strategy_needs_previous_dot(of->strategy),
                                .training = of->training};
    const struct fl_strategy *s = of->strategy;
    const struct {
        const struct fl_policy *policy;
        size_t component;
        struct fl_wire_component *out;
    } all[] = {{&s->solver->policy, FL_COMPONENT_SOLVER, &w.solver},
               {&s->codec->policy, FL_COMPONENT_CODEC, &w.codec},
               {&s->upload->policy, FL_COMPONENT_UPLOAD, &w.upload},
               {&s->personal->policy, FL_COMPONENT_PERSONAL, &w.personal},
               {&s->broadcast->policy, FL_COMPONENT_BROADCAST, &w.broadcast},
               {&s->space->policy, FL_COMPONENT_SPACE, &w.space}};
    const struct fl_net_spec *net = of->net;
    size_t i;
    int rv = FL_ENOMEM;

    w.model_seed = fl_broadcast_sends_moves(s->broadcast) ? of->model_seed : 0;
    w.input = calloc(net->n_input + 1, sizeof(*w.input));
    w.layers = calloc(net->n_layers + 1, sizeof(*w.layers));
    w.metrics = calloc(FL_NET_METRIC_N, sizeof(*w.metrics));
    if (w.input == NULL || w.layers == NULL || w.metrics == NULL) {
        goto fail;
    }
    for (i = 0; i < FL_NET_METRIC_N; i++) {
        if ((of->metrics & 1u << i) != 0) {
            w.metrics[w.n_metrics++] = fl_wire_lend(fl_net_metric_names[i]);
        }
    }
    for (i = 0; i < net->n_input; i++) {
        w.input[w.n_input++] = (uint32_t)net->input[i];
    }
    for (i = 0; i < net->n_layers; i++) {
        w.layers[w.n_layers++] = fl_wire_lend(net->layers[i]);
    }
    (void)memcpy(w.generation, of->generation->tag, sizeof(w.generation));
    (void)memcpy(w.state_generation, of->generation->kept_tag, sizeof(w.state_generation));
    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        rv = welcome_fill_component(all[i].policy, s->options[all[i].component], all[i].out);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = w;
    return FL_OK;
fail:
    fl_welcome_done(&w);
    return rv;
}

static void welcome_component_done(struct fl_wire_component *component)
{
    size_t i;

    for (i = 0; i < component->n_options; i++) {
        free(component->options[i].value);
    }
    free(component->options);
}

void fl_welcome_done(struct fl_wire_welcome *w)
{
    welcome_component_done(&w->solver);
    welcome_component_done(&w->codec);
    welcome_component_done(&w->upload);
    welcome_component_done(&w->personal);
    welcome_component_done(&w->broadcast);
    welcome_component_done(&w->space);
    free(w->input);
    free(w->layers);
    free(w->metrics);
    *w = (struct fl_wire_welcome){.version = 0};
}
