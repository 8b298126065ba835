/* Welcome: what a joining client is told about the model, its slots and the limits. */

#include <stdlib.h>
#include <string.h>

#include "server/daemon/front_impl.h"

/* Name and option texts of a slot that the client fills. */
static int fill_slot(const struct fl_policy *policy, const struct fl_options *options,
                     struct fl_wire_slot *slot)
{
    const struct fl_opt_spec *spec;
    size_t n = 0;

    slot->name = fl_wire_lend(policy->name);
    for (spec = policy->options; spec != NULL && spec->name != NULL; spec++) {
        n++;
    }
    slot->options = calloc(n > 0 ? n : 1, sizeof(*slot->options));
    if (slot->options == NULL) {
        return FL_ENOMEM;
    }
    for (spec = policy->options; spec != NULL && spec->name != NULL; spec++) {
        char text[FL_WIRE_MAX_TEXT];

        slot->options[slot->n_options].key = fl_wire_lend(spec->name);
        slot->options[slot->n_options].value =
            fl_str_dup(fl_options_show(options, spec, text, sizeof(text)));
        if (slot->options[slot->n_options].value == NULL) {
            return FL_ENOMEM;
        }
        slot->n_options++;
    }
    return FL_OK;
}

static void free_slot(struct fl_wire_slot *slot)
{
    size_t i;

    for (i = 0; i < slot->n_options; i++) {
        free(slot->options[i].value);
    }
    free(slot->options);
}

static void describe(const struct fl_server_conf *conf, struct fl_wire_welcome *w,
                     uint32_t input[FL_NET_MAX_INPUT_DIMS], char **layers)
{
    size_t i;

    w->layout = conf->layout;
    for (i = 0; i < conf->net.n_input; i++) {
        input[i] = (uint32_t)conf->net.input[i];
    }
    for (i = 0; i < conf->net.n_layers; i++) {
        layers[i] = fl_wire_lend(conf->net.layers[i]);
    }
    w->input = input;
    w->n_input = conf->net.n_input;
    w->layers = layers;
    w->n_layers = conf->net.n_layers;
    w->limits = (struct fl_wire_limits){.chunk_bytes = conf->chunk_bytes,
                                        .message_bytes = (uint32_t)conf->rpc.message_bytes,
                                        .streams = conf->rpc.streams,
                                        .idle_ms = conf->rpc.idle_ms};
    w->training = (struct fl_wire_training){.epochs = (uint32_t)conf->training->epochs,
                                            .steps = (uint32_t)conf->training->steps,
                                            .batch_size = (uint32_t)conf->training->batch_size,
                                            .momentum = conf->training->momentum,
                                            .weight_decay = conf->training->weight_decay};
}

void fl_attend_welcome(struct fl_attend *attend)
{
    const struct fl_serverd *srv = attend->front->srv;
    const struct fl_strategy *s = srv->conf->strategy;
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    struct fl_wire_welcome *w = &command.u.welcome;
    uint32_t input[FL_NET_MAX_INPUT_DIMS];
    char *layers[FL_NET_MAX_LAYERS];
    int rv;

    w->version = FL_WIRE_VERSION;
    w->federation = fl_wire_lend(srv->federation);
    w->session = attend->token;
    w->heartbeat_ms = (uint32_t)srv->conf->main->heartbeat_ms;
    w->wants_previous_dot = fl_strategy_needs_previous_dot(s);
    w->wants_offer = attend->wants_offer;
    (void)memcpy(w->line, srv->line->tag, sizeof(w->line));
    (void)memcpy(w->kept_line, srv->line->kept_tag, sizeof(w->kept_line));
    describe(srv->conf, w, input, layers);
    rv = fill_slot(&s->solver->policy, s->options[FL_SLOT_SOLVER], &w->solver);
    if (rv == FL_OK) {
        rv = fill_slot(&s->codec->policy, s->options[FL_SLOT_CODEC], &w->codec);
    }
    if (rv == FL_OK) {
        rv = fill_slot(&s->upload->policy, s->options[FL_SLOT_UPLOAD], &w->upload);
    }
    if (rv == FL_OK) {
        rv = fill_slot(&s->personal->policy, s->options[FL_SLOT_PERSONAL], &w->personal);
    }
    if (rv == FL_OK) {
        fl_attend_command(attend, &command);
    } else {
        fl_call_finish(attend->call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
    }
    free_slot(&w->solver);
    free_slot(&w->codec);
    free_slot(&w->upload);
    free_slot(&w->personal);
}
