/* Welcome: what a joining client is told of the federation and of its session. */

#include "server/daemon/front_impl.h"
#include "server/work/welcome.h"

void fl_attend_welcome(struct fl_attend *attend)
{
    const struct fl_serverd *srv = attend->front->srv;
    const struct fl_server_conf *conf = srv->conf;
    const struct fl_described of = {.federation = srv->federation,
                                    .strategy = conf->strategy,
                                    .layout = conf->layout,
                                    .net = &conf->net,
                                    .line = srv->line,
                                    .training = {.epochs = (uint32_t)conf->training->epochs,
                                                 .steps = (uint32_t)conf->training->steps,
                                                 .batch_size = (uint32_t)conf->training->batch_size,
                                                 .momentum = conf->training->momentum,
                                                 .weight_decay = conf->training->weight_decay}};
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    struct fl_wire_welcome *w = &command.u.welcome;

    if (fl_welcome_describe(&of, w) != FL_OK) {
        fl_call_finish(attend->call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    w->session = attend->token;
    w->heartbeat_ms = (uint32_t)conf->main->heartbeat_ms;
    w->wants_offer = attend->wants_offer;
    w->limits = (struct fl_wire_limits){.chunk_bytes = conf->chunk_bytes,
                                        .message_bytes = (uint32_t)conf->rpc.message_bytes,
                                        .streams = conf->rpc.streams,
                                        .idle_ms = conf->rpc.idle_ms};
    fl_attend_command(attend, &command);
    fl_welcome_done(w);
}
