#include "libfl/rpc/call.h"

void fl_rpc_limits_default(struct fl_rpc_limits *limits)
{
    *limits = (struct fl_rpc_limits){
        /* A client needs three calls at a time (control, one transfer each way); 100 is
           the least that RFC 9113 section 6.5.2 advises, for foreign peers that multiplex. */
        .streams = 100,
        /* The default of gRPC implementations for all metadata of a call. */
        .header_bytes = 8 * 1024,
        /*
         * Chunks are at most 1 MiB (the wire contract); twice that leaves room for the message
         * around the chunk and for an adjacent version.
         */
        .message_bytes = 2u * 1024 * 1024,
        /* Two full messages: one on its way to the socket and the next already waiting. */
        .queue_bytes = 4u * 1024 * 1024 + 64 * 1024,
        /*
         * Two full messages, so that a sender is never stopped in the middle of one while its
         * predecessor is still being processed.
         */
        .stream_window = 4u * 1024 * 1024 + 64 * 1024,
        /*
         * Three stalled transfers must not stop the control stream. It also bounds what one
         * connection makes us hold.
         */
        .conn_window = 16u * 1024 * 1024,
        /* The bytes in flight, and as many again queued for the peer. */
        .memory = 32u * 1024 * 1024,
        /*
         * Above 256 KiB throughput hardly grows any more, while everything else on the connection
         * waits for the frame being sent.
         */
        .frame_bytes = 256 * 1024,
        /* A lost SYN costs 1 + 2 + 4 s; slower peers are not supported. */
        .handshake_ms = 10 * 1000,
        /*
         * Our peers keep their control stream open, so a connection without any call is abandoned;
         * five minutes are enough for manual use of grpcurl.
         */
        .idle_ms = 5 * 60 * 1000,
        /*
         * Cancelling is rare among well-behaved peers: a client that aborts every call of a full
         * stream table once a second is the worst known case.
         */
        .resets = 100,
    };
}
