/*
 * What ends a call by the clock: the client's timeout, and a peer that leaves its call waiting. The
 * time is known at ticks only, so a span is measured from the tick that saw something move.
 */
#include <stdio.h>

#include "libfl/rpc/call_impl.h"

void fl_call_set_timeout(struct fl_call *call, uint64_t now_ms, uint64_t timeout_ms)
{
    call->has_timeout = true;
    call->anchored = true;
    call->deadline = timeout_ms > UINT64_MAX - 1 - now_ms ? UINT64_MAX - 1 : now_ms + timeout_ms;
}

/* Before the headers are complete, and when the outcome is known, nothing is waited for. */
static bool is_live(const struct fl_call *call)
{
    return call->sm.state == FL_CALL_OPEN || call->sm.state == FL_CALL_ENDING;
}

static bool waits_for_peer(const struct fl_call *call)
{
    if (!call->server || call->conn->limits.idle_ms == 0) {
        return false;
    }
    return call->queued > 0 || call->sm.state == FL_CALL_ENDING ||
           (!call->patient && !call->remote_end && call->held == 0);
}

uint64_t fl_call_deadline(const struct fl_call *call)
{
    uint64_t deadline = UINT64_MAX;

    if (!is_live(call)) {
        return UINT64_MAX;
    }
    if (call->has_timeout) {
        deadline = call->anchored ? call->deadline : 0;
    }
    /* What moved since is found out when that time has come: not every byte needs a tick. */
    if (waits_for_peer(call) && call->idle_at < deadline) {
        deadline = call->idle_at;
    }
    return deadline;
}

static void end_idle(struct fl_call *call)
{
    bool silent = call->queued == 0 && call->sm.state == FL_CALL_OPEN;
    char text[80];

    (void)snprintf(text, sizeof(text), "the client %s for %u ms",
                   silent ? "has sent nothing" : "has taken nothing of what is sent",
                   (unsigned)call->conn->limits.idle_ms);
    if (call->conn->notice != NULL) {
        call->conn->notice(call->conn->notice_ctx, call, silent ? "silent" : "unread", text);
    }
    if (silent) {
        fl__call_fail(call, FL_GRPC_DEADLINE_EXCEEDED, "%s", text);
        return;
    }
    /* A status would only join what is not taken. */
    call->conn->ops->reset(call->stream, /* cancel= */ true);
    fl__call_close(call, FL_GRPC_DEADLINE_EXCEEDED, text);
}

static void tick_idle(struct fl_call *call, uint64_t now_ms)
{
    if (!waits_for_peer(call)) {
        call->idle_at = 0;
    } else if (call->idle_at == 0 || call->stirred) {
        call->idle_at = now_ms + call->conn->limits.idle_ms;
    } else if (now_ms >= call->idle_at) {
        end_idle(call);
    }
    call->stirred = false;
}

void fl_call_tick(struct fl_call *call, uint64_t now_ms)
{
    if (!is_live(call)) {
        return;
    }
    tick_idle(call, now_ms);
    if (!call->has_timeout || !is_live(call)) {
        return;
    }
    if (!call->anchored) {
        fl_call_set_timeout(call, now_ms, call->timeout_ms);
    }
    if (now_ms >= call->deadline) {
        fl__call_fail(call, FL_GRPC_DEADLINE_EXCEEDED, "deadline exceeded");
    }
}
