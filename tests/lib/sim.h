#ifndef FL_TEST_SIM_H
#define FL_TEST_SIM_H

/*
 * Deterministic simulation for tests: virtual time, nodes, a network with latency, bandwidth,
 * connection failures and partitions, and a disk per node with latency and crashes (durable writes
 * survive, other state is lost). Generic: nodes are callbacks, payloads are opaque bytes.
 *
 * Order of events: lower time first; at equal time lower node; at equal node timer before disk
 * before network; then order of scheduling. The same seed gives the same run.
 *
 * A link is a connection like TCP: it is up when both nodes are alive and it is not cut, delivers
 * in order and without loss while it is up, and loses all messages in flight when it breaks. A link
 * that broke at random is up again a round trip later. Both ends are notified by on_link(), one
 * latency later; callbacks never run inside a call of a node.
 *
 * Out of memory ends the process (FL_REQUIRE): this is for tests and simulations only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

struct fl_sim;

struct fl_sim_node_cbs {
    /* The node (re)starts: its memory is lost, its disk is kept. */
    void (*on_start)(void *ctx, struct fl_sim *sim, uint32_t node);
    void (*on_timer)(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag);
    /* A write has become durable. */
    void (*on_disk)(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag);
    void (*on_message)(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t from,
                       const void *data, size_t len);
    /* The link to `peer` went down (connection lost) or up. */
    void (*on_link)(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t peer, bool up);
    /* The node crashes now: free its memory. */
    void (*on_crash)(void *ctx, struct fl_sim *sim, uint32_t node);
};

struct fl_sim_link {
    uint64_t latency_ms, jitter_ms;
    uint64_t bytes_per_s; /* 0: infinite */
    /* probability per message that the connection breaks (the message is lost) */
    double break_rate;
};

FL_MUST_CHECK int fl_sim_create(uint64_t seed, struct fl_sim **ret);
void fl_sim_free(struct fl_sim *sim);
/* Add a node, not started yet (fl_sim_start()). Numbers start at 0. */
FL_MUST_CHECK int fl_sim_add(struct fl_sim *sim, const struct fl_sim_node_cbs *cbs, void *ctx,
                             uint32_t *ret_node);
uint64_t fl_sim_now(const struct fl_sim *sim);
/* Create or change the link between two nodes; without a link messages are lost. */
void fl_sim_set_link(struct fl_sim *sim, uint32_t a, uint32_t b, const struct fl_sim_link *link);
void fl_sim_set_disk_latency(struct fl_sim *sim, uint32_t node, uint64_t latency_ms);

/* From node callbacks: */
void fl_sim_timer(struct fl_sim *sim, uint32_t node, uint64_t at_ms, uint64_t tag);
/* Copies `data`. In order per direction of a link; lost when the link is down. */
void fl_sim_send(struct fl_sim *sim, uint32_t from, uint32_t to, const void *data, size_t len);
/* Write a record; on_disk(tag) when durable. A crash before that loses it. */
void fl_sim_write(struct fl_sim *sim, uint32_t node, uint64_t tag, const void *data, size_t len);
/* Durable records of a node in order of writing. */
size_t fl_sim_disk_count(const struct fl_sim *sim, uint32_t node);
const void *fl_sim_disk_record(const struct fl_sim *sim, uint32_t node, size_t i, size_t *ret_len);

/* Control by the test: */
void fl_sim_crash(struct fl_sim *sim, uint32_t node);
void fl_sim_start(struct fl_sim *sim, uint32_t node);
bool fl_sim_alive(const struct fl_sim *sim, uint32_t node);
void fl_sim_partition(struct fl_sim *sim, uint32_t a, uint32_t b, bool cut);
/* Run one event; false when none is left. */
bool fl_sim_step(struct fl_sim *sim);
/*
 * Crash `node` right before (or after) its n-th disk write from now (1: the next) becomes
 * durable; after: it is durable, but on_disk() is not called.
 */
void fl_sim_crash_at_write(struct fl_sim *sim, uint32_t node, uint64_t n, bool after);

#endif
