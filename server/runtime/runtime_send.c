/*
 * Messages of the coordinator to the network front end, answers to operators among them. None is
 * dropped: out of memory the process ends. Coordinator thread.
 */

#include <stdlib.h>
#include <string.h>

#include "server/runtime/runtime_impl.h"

struct fl_net_msg *fl_net_msg_new(struct fl_runtime *runtime, enum fl_net_msg_type type)
{
    struct fl_net_msg *down = calloc(1, sizeof(*down));

    if (down == NULL) {
        fl_serverd_no_memory(runtime->setup.log, "a command");
    }
    down->type = type;
    return down;
}

void fl_runtime_down(struct fl_runtime *runtime, struct fl_net_msg *down)
{
    runtime->setup.send(runtime->setup.ctx, down);
}

void *fl_net_msg_copy(const struct fl_runtime *runtime, const void *data, size_t len)
{
    void *copy = data != NULL ? malloc(len > 0 ? len : 1) : NULL;

    if (data != NULL && copy == NULL) {
        fl_serverd_no_memory(runtime->setup.log, "a command");
    }
    return copy != NULL ? memcpy(copy, data, len) : NULL;
}

char *fl_net_msg_text(const struct fl_runtime *runtime, const char *text)
{
    return text != NULL ? fl_net_msg_copy(runtime, text, strlen(text) + 1) : NULL;
}

void fl_runtime_answer(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    struct fl_net_msg *down;

    if (request->done != NULL) {
        request->done(request);
        return;
    }
    down = fl_net_msg_new(runtime, FL_NET_MSG_ADMIN);
    down->request = request;
    fl_runtime_down(runtime, down);
}

void fl_runtime_forgot(struct fl_runtime *runtime, struct fl_admin_request *request,
                       const char *why)
{
    if (why != NULL && request->code == FL_OK) {
        request->code =
            fl_err_set(&request->err, FL_EIO,
                       "the clients take no part any more, but that is not on disk yet: %.300s; a "
                       "crash now would restore them: free some space, and repeat the command",
                       why);
    }
    if (--request->n_waits > 0) {
        return;
    }
    if (request->code == FL_OK) {
        fl_log(runtime->setup.log, FL_LOG_NOTICE, "server", "the operator forgets %llu clients",
               (unsigned long long)request->forgotten.forgotten);
        FL_ADMIN_REPLY(request, fl_wire_forgotten_encode, &request->forgotten);
    }
    fl_runtime_answer(runtime, request);
}
