/* The sending half of a call: its queue, and what the transport takes from it. */
#include <string.h>

#include "libfl/rpc/call_impl.h"

/* Overhead of a message: its blob, and a ring entry for each run. */
#define MESSAGE_COST 64
#define RUN_COST     (2 * sizeof(struct fl_seg))

/* gRPC's length field has four bytes; less where the sum with the overhead would overflow. */
#define LONGEST (UINT32_MAX < SIZE_MAX / 2 ? UINT32_MAX : SIZE_MAX / 2)

struct size {
    size_t total;  /* bytes on the wire */
    size_t copied; /* of those, bytes to copy */
    size_t cost;   /* memory that is held for this peer only */
};

/* FL_ELIMIT: too large for a message. */
static int measure_message(const struct fl_piece *pieces, size_t n, struct size *ret)
{
    size_t total = 0;
    size_t copied = 0;
    size_t cost = MESSAGE_COST + RUN_COST + FL_FRAME_PREFIX;
    size_t i;

    for (i = 0; i < n; i++) {
        if (pieces[i].len > LONGEST - total) {
            return FL_ELIMIT;
        }
        total += pieces[i].len;
        copied += pieces[i].blob == NULL ? pieces[i].len : 0;
        cost += pieces[i].blob == NULL || pieces[i].own ? pieces[i].len : 0;
        cost += pieces[i].blob != NULL ? RUN_COST : 0;
    }
    *ret = (struct size){.total = total + FL_FRAME_PREFIX, .copied = copied, .cost = cost};
    return FL_OK;
}

static void take_back(struct fl_call *call, size_t cost)
{
    call->queue_cost -= cost;
    fl_account_give(&call->conn->account, cost);
}

int fl_call_send(struct fl_call *call, const struct fl_piece *pieces, size_t n)
{
    struct fl_blob *blob = NULL;
    struct size size;
    uint8_t *fill;
    size_t i;
    size_t limit;
    int rv;

    FL_REQUIRE(call->magic == FL_CALL_MAGIC);
    if (call->sm.state != FL_CALL_OPEN || call->local_end) {
        return FL_ECLOSED;
    }
    rv = measure_message(pieces, n, &size);
    if (rv != FL_OK) {
        return rv;
    }
    /* Check the room in the call's queue, then charge the connection's account. */
    limit = call->queue_bytes;
    if (size.total > limit || call->queued > limit - size.total ||
        (call->queued > 0 && call->queue_cost > limit - (size.cost < limit ? size.cost : limit)))
    {
        call->was_full = true;
        return FL_ELIMIT;
    }
    rv = fl_account_take(&call->conn->account, size.cost);
    if (rv != FL_OK) {
        fl__call_over(call, rv, "queueing a message");
        return FL_ECLOSED;
    }
    call->queue_cost += size.cost;
    rv = fl_segq_reserve(&call->out, n + 1);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_blob_create(FL_FRAME_PREFIX + size.copied, &blob);
    if (rv != FL_OK) {
        goto fail;
    }
    fill = fl_blob_fill(blob);
    fl_frame_prefix(fill, (uint32_t)(size.total - FL_FRAME_PREFIX));
    fl_segq_push(&call->out, fill, FL_FRAME_PREFIX, blob, 0);
    fill += FL_FRAME_PREFIX;
    for (i = 0; i < n; i++) {
        if (pieces[i].blob != NULL) {
            fl_segq_push(&call->out, pieces[i].data, pieces[i].len, pieces[i].blob, 0);
        } else if (pieces[i].len > 0) {
            if (pieces[i].secret) {
                fl_blob_set_secret(blob);
            }
            (void)memcpy(fill, pieces[i].data, pieces[i].len);
            fl_segq_push(&call->out, fill, pieces[i].len, blob, 0);
            fill += pieces[i].len;
        }
    }
    fl_blob_unref(blob);
    call->progressed = call->progressed || call->queued == 0;
    call->queued += size.total;
    call->was_full = call->was_full || call->queued > call->queue_bytes / 2;
    call->conn->ops->output(call->stream);
    return FL_OK;
fail:
    take_back(call, size.cost);
    return rv;
}

size_t fl_call_out_bytes(const struct fl_call *call)
{
    return call->out.bytes;
}

bool fl_call_out_end(const struct fl_call *call)
{
    return call->server ? call->sm.state == FL_CALL_ENDING : call->local_end;
}

int fl_call_out_take(struct fl_call *call, struct fl_segq *to, size_t n, uint32_t tag)
{
    return fl_segq_move(to, &call->out, n, tag);
}

void fl_call_out_sent(struct fl_call *call, size_t n)
{
    FL_REQUIRE(n <= call->queued);
    /* The message of each byte is unknown here: every byte has the same share of the memory. */
    take_back(call, n == call->queued ? call->queue_cost
                                      : (size_t)((uint64_t)call->queue_cost * n / call->queued));
    call->queued -= n;
    call->progressed = call->progressed || n > 0;
    if (call->was_full && call->queued < call->queue_bytes / 2) {
        call->was_full = false;
        call->writable = true;
        call->conn->ops->due(call->stream);
    }
}

enum fl_grpc_status fl_call_out_status(const struct fl_call *call, const char **ret_message)
{
    *ret_message = call->status_message;
    return call->status;
}

void fl_call_out_status_sent(struct fl_call *call)
{
    fl__call_close(call, FL_GRPC_OK, "");
}
