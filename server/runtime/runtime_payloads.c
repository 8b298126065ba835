/* Publishes the payloads that clients may fetch in a round. Coordinator thread. */

#include <stdlib.h>
#include <string.h>

#include "server/runtime/runtime_impl.h"

struct opening {
    struct fl_runtime *runtime;
    uint64_t round;
};

static void payload_publish(void *ctx, const struct fl_payload *payload)
{
    const struct opening *o = ctx;
    uint32_t client =
        payload->client != NULL ? fl_coord_find(o->runtime->coord, payload->client) : FL_EVERYBODY;
    struct fl_net_msg *down;

    if (payload->client != NULL && client == UINT32_MAX) {
        return; /* The client was forgotten since. */
    }
    down = fl_net_msg_new(o->runtime, FL_NET_MSG_PAYLOAD);
    down->text = fl_net_msg_text(o->runtime, payload->name);
    down->client = client;
    down->round = o->round;
    down->bytes = fl_bytes_ref(&payload->bytes);
    down->differences = fl_differences_ref(payload->differences);
    down->has_digest = payload->digest != NULL;
    if (down->has_digest) {
        (void)memcpy(down->digest, payload->digest, sizeof(down->digest));
    }
    fl_runtime_down(o->runtime, down);
}

void fl_runtime_publish_candidate(struct fl_runtime *runtime, uint64_t round)
{
    struct opening o = {runtime, round};
    const struct fl_payload candidate =
        fl_payload_of_model(FL_PAYLOAD_CANDIDATE, &runtime->progress.next.model);

    payload_publish(&o, &candidate);
}

void fl_runtime_round_open(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;
    struct opening o = {runtime, e->round};

    if (fl_payloads_open(&runtime->federation, &runtime->progress, e->round, &e->size,
                         payload_publish, &o) != FL_OK)
    {
        fl_serverd_no_memory(runtime->setup.log, "publishing a payload");
    }
}

void fl_runtime_round_payloads_closed(struct fl_runtime *runtime, uint64_t round)
{
    struct opening o = {runtime, round};
    struct fl_payload_name list[FL_PAYLOADS_MAX];
    size_t n = fl_payloads_of(runtime->federation.strategy, list);
    size_t i;

    for (i = 0; i < n; i++) {
        if (list[i].kind != FL_PAYLOAD_IS_PERSONAL_MODEL) { /* The round identifies it. */
            payload_publish(&o, &(struct fl_payload){.name = list[i].name});
        }
    }
    payload_publish(&o, &(struct fl_payload){.name = FL_PAYLOAD_CANDIDATE});
}
