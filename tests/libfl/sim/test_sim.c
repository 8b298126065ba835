#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "tests/lib/sim.h"
#include "tests/lib/suites.h"

/* Nodes that write down what happens to them. */
static void on_start(void *ctx, struct fl_sim *sim, uint32_t node)
{
    ck_assert_int_eq(
        fl_buf_printf(ctx, "[%" PRIu64 "] %" PRIu32 " starts\n", fl_sim_now(sim), node), FL_OK);
}

static void on_timer(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag)
{
    ck_assert_int_eq(fl_buf_printf(ctx, "[%" PRIu64 "] %" PRIu32 " timer %" PRIu64 "\n",
                                   fl_sim_now(sim), node, tag),
                     FL_OK);
}

static void on_disk(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag)
{
    ck_assert_int_eq(fl_buf_printf(ctx, "[%" PRIu64 "] %" PRIu32 " disk %" PRIu64 "\n",
                                   fl_sim_now(sim), node, tag),
                     FL_OK);
}

static void on_message(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t from,
                       const void *data, size_t len)
{
    ck_assert_int_eq(fl_buf_printf(ctx, "[%" PRIu64 "] %" PRIu32 " from %" PRIu32 ": %.*s\n",
                                   fl_sim_now(sim), node, from, (int)len, (const char *)data),
                     FL_OK);
}

static void on_link(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t peer, bool up)
{
    ck_assert_int_eq(fl_buf_printf(ctx, "[%" PRIu64 "] %" PRIu32 " link to %" PRIu32 " %s\n",
                                   fl_sim_now(sim), node, peer, up ? "up" : "down"),
                     FL_OK);
}

static void on_crash(void *ctx, struct fl_sim *sim, uint32_t node)
{
    ck_assert_int_eq(fl_buf_printf(ctx, "[%" PRIu64 "] %" PRIu32 " dies\n", fl_sim_now(sim), node),
                     FL_OK);
}

static const struct fl_sim_node_cbs cbs = {
    .on_start = on_start,
    .on_timer = on_timer,
    .on_disk = on_disk,
    .on_message = on_message,
    .on_link = on_link,
    .on_crash = on_crash,
};

struct world {
    struct fl_sim *sim;
    struct fl_buf log;
};

static void open_world(struct world *w, uint64_t seed, unsigned n)
{
    uint32_t node;

    fl_buf_init(&w->log, 1u << 20);
    ck_assert_int_eq(fl_sim_create(seed, &w->sim), FL_OK);
    while (n-- > 0) {
        ck_assert_int_eq(fl_sim_add(w->sim, &cbs, &w->log, &node), FL_OK);
    }
}

static void close_world(struct world *w)
{
    fl_sim_free(w->sim);
    fl_buf_done(&w->log);
}

static void run(struct world *w)
{
    while (fl_sim_step(w->sim)) {
    }
}

static void expect(struct world *w, const char *text)
{
    ck_assert_int_eq(fl_buf_add(&w->log, "", 1), FL_OK);
    ck_assert_str_eq((const char *)w->log.data, text);
    fl_buf_clear(&w->log);
}

TEST(events_happen_in_the_promised_order)
{
    struct fl_sim_link link = {.latency_ms = 5};
    struct world w;

    open_world(&w, 1, 2);
    fl_sim_start(w.sim, 0);
    fl_sim_start(w.sim, 1);
    fl_sim_set_link(w.sim, 0, 1, &link);
    run(&w);
    fl_buf_clear(&w.log);
    fl_sim_set_disk_latency(w.sim, 0, 5);
    fl_sim_set_disk_latency(w.sim, 1, 5);
    fl_sim_send(w.sim, 0, 1, "b", 1);
    fl_sim_send(w.sim, 1, 0, "a", 1);
    fl_sim_write(w.sim, 1, 1, "x", 1);
    fl_sim_write(w.sim, 0, 2, "y", 1);
    fl_sim_timer(w.sim, 1, 10, 3);
    fl_sim_timer(w.sim, 0, 10, 4);
    fl_sim_timer(w.sim, 0, 10, 5);
    fl_sim_timer(w.sim, 1, 7, 6);
    run(&w);
    expect(&w, "[7] 1 timer 6\n"
               "[10] 0 timer 4\n"
               "[10] 0 timer 5\n"
               "[10] 0 disk 2\n"
               "[10] 0 from 1: a\n"
               "[10] 1 timer 3\n"
               "[10] 1 disk 1\n"
               "[10] 1 from 0: b\n");
    close_world(&w);
}

TEST(messages_keep_their_order_and_take_their_time)
{
    struct fl_sim_link link = {.latency_ms = 10, .jitter_ms = 50, .bytes_per_s = 1000};
    struct world w;

    open_world(&w, 7, 2);
    fl_sim_start(w.sim, 0);
    fl_sim_start(w.sim, 1);
    fl_sim_set_link(w.sim, 0, 1, &link);
    run(&w);
    fl_buf_clear(&w.log);
    link.jitter_ms = 0;
    fl_sim_set_link(w.sim, 0, 1, &link);
    fl_sim_send(w.sim, 0, 1, "one", 3);    /* 3 ms on the wire */
    fl_sim_send(w.sim, 0, 1, "twotwo", 6); /* 6 more */
    run(&w);
    expect(&w, "[23] 1 from 0: one\n[29] 1 from 0: twotwo\n");
    close_world(&w);
}

TEST(a_crash_loses_what_was_not_durable)
{
    struct world w;
    size_t len = 0;

    open_world(&w, 1, 1);
    fl_sim_set_disk_latency(w.sim, 0, 10);
    fl_sim_start(w.sim, 0);
    fl_sim_write(w.sim, 0, 1, "first", 5);
    run(&w);
    fl_sim_write(w.sim, 0, 2, "second", 6);
    fl_sim_timer(w.sim, 0, 50, 9);
    fl_sim_crash(w.sim, 0);
    ck_assert(!fl_sim_alive(w.sim, 0));
    fl_sim_start(w.sim, 0);
    run(&w);
    expect(&w, "[0] 0 starts\n[10] 0 disk 1\n[10] 0 dies\n[10] 0 starts\n");
    ck_assert_uint_eq(fl_sim_disk_count(w.sim, 0), 1);
    ck_assert_mem_eq(fl_sim_disk_record(w.sim, 0, 0, &len), "first", 5);
    close_world(&w);
}

TEST_EACH(a_crash_can_be_put_before_or_after_a_write, 2)
{
    struct world w;
    bool after = _i == 1;

    open_world(&w, 1, 1);
    fl_sim_start(w.sim, 0);
    fl_sim_crash_at_write(w.sim, 0, 2, after);
    fl_sim_write(w.sim, 0, 1, "1", 1);
    fl_sim_write(w.sim, 0, 2, "2", 1);
    fl_sim_write(w.sim, 0, 3, "3", 1);
    run(&w);
    expect(&w, "[0] 0 starts\n[0] 0 disk 1\n[0] 0 dies\n");
    ck_assert_uint_eq(fl_sim_disk_count(w.sim, 0), after ? 2 : 1);
    fl_sim_start(w.sim, 0);
    fl_sim_write(w.sim, 0, 4, "4", 1); /* The next life is not cursed. */
    run(&w);
    expect(&w, "[0] 0 starts\n[0] 0 disk 4\n");
    close_world(&w);
}

TEST(a_cut_link_loses_what_is_under_way_and_both_hear_of_it)
{
    struct fl_sim_link link = {.latency_ms = 5};
    struct world w;

    open_world(&w, 1, 2);
    fl_sim_start(w.sim, 0);
    fl_sim_start(w.sim, 1);
    fl_sim_set_link(w.sim, 0, 1, &link);
    run(&w);
    fl_sim_send(w.sim, 0, 1, "lost", 4);
    fl_sim_partition(w.sim, 1, 0, true);
    fl_sim_send(w.sim, 0, 1, "nowhere", 7);
    run(&w);
    fl_sim_partition(w.sim, 0, 1, false);
    run(&w);
    fl_sim_send(w.sim, 0, 1, "here", 4);
    run(&w);
    expect(&w, "[0] 0 starts\n[0] 1 starts\n"
               "[5] 0 link to 1 up\n[5] 1 link to 0 up\n"
               "[10] 0 link to 1 down\n[10] 1 link to 0 down\n"
               "[15] 0 link to 1 up\n[15] 1 link to 0 up\n"
               "[20] 1 from 0: here\n");
    close_world(&w);
}

TEST(a_dead_node_breaks_its_links_and_mends_them_when_it_lives)
{
    struct fl_sim_link link = {.latency_ms = 1};
    struct world w;

    open_world(&w, 1, 2);
    fl_sim_set_link(w.sim, 0, 1, &link);
    fl_sim_start(w.sim, 0);
    fl_sim_start(w.sim, 1);
    run(&w);
    fl_sim_crash(w.sim, 1);
    run(&w);
    fl_sim_start(w.sim, 1);
    run(&w);
    expect(&w, "[0] 0 starts\n[0] 1 starts\n"
               "[1] 0 link to 1 up\n[1] 1 link to 0 up\n"
               "[1] 1 dies\n[2] 0 link to 1 down\n"
               "[2] 1 starts\n[3] 0 link to 1 up\n[3] 1 link to 0 up\n");
    close_world(&w);
}

TEST(a_link_that_broke_stands_again_a_round_trip_later)
{
    struct fl_sim_link link = {.latency_ms = 3, .break_rate = 1.0};
    struct world w;

    open_world(&w, 1, 2);
    fl_sim_set_link(w.sim, 0, 1, &link);
    fl_sim_start(w.sim, 0);
    fl_sim_start(w.sim, 1);
    run(&w);
    fl_buf_clear(&w.log);
    fl_sim_send(w.sim, 0, 1, "x", 1);
    run(&w);
    expect(&w, "[6] 0 link to 1 down\n[6] 1 link to 0 down\n"
               "[13] 0 link to 1 up\n[13] 1 link to 0 up\n");
    close_world(&w);
}

/* A busy world as text. */
static void busy(struct world *w, uint64_t seed)
{
    struct fl_sim_link link = {.latency_ms = 2, .jitter_ms = 9, .break_rate = 0.1};
    unsigned i;

    open_world(w, seed, 3);
    fl_sim_set_link(w->sim, 0, 1, &link);
    fl_sim_set_link(w->sim, 2, 0, &link);
    for (i = 0; i < 3; i++) {
        fl_sim_start(w->sim, i);
    }
    for (i = 0; i < 200; i++) {
        fl_sim_send(w->sim, i % 3, (i + 1) % 3, "x", 1);
        (void)fl_sim_step(w->sim);
    }
    run(w);
}

TEST(the_same_seed_gives_the_same_world)
{
    struct world a;
    struct world b;
    struct world c;

    busy(&a, 5);
    busy(&b, 5);
    busy(&c, 6);
    ck_assert_uint_eq(a.log.len, b.log.len);
    ck_assert_mem_eq(a.log.data, b.log.data, a.log.len);
    ck_assert(a.log.len != c.log.len || memcmp(a.log.data, c.log.data, a.log.len) != 0);
    close_world(&a);
    close_world(&b);
    close_world(&c);
}
