#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/base/rng.h"
#include "libfl/sim/flow.h"
#include "tests/lib/suites.h"

#define MAX_FLOWS 4096
#define NEVER     UINT64_MAX

/* --- the same, told plainly: all rates anew after each change --- */

struct plain_flow {
    double left, cap, rate;
    uint64_t bytes, ended;
    bool running;
};

struct plain {
    double hub, now;
    struct plain_flow flows[MAX_FLOWS];
    size_t n;
};

/* Raise the level of all at once; who meets its spoke stays there. */
static void fill(struct plain *p)
{
    double left = p->hub;
    size_t rest = 0;
    bool again = true;
    size_t i;

    for (i = 0; i < p->n; i++) {
        p->flows[i].rate = -1;
        rest += p->flows[i].running;
    }
    while (again) {
        double level = rest > 0 ? left / (double)rest : 0;

        again = false;
        for (i = 0; i < p->n; i++) {
            struct plain_flow *f = &p->flows[i];

            if (f->running && f->rate < 0 && f->cap <= level && isfinite(f->cap)) {
                f->rate = f->cap;
                left -= f->cap;
                rest--;
                again = true;
            }
        }
    }
    for (i = 0; i < p->n; i++) {
        p->flows[i].rate = p->flows[i].rate < 0 ? left / (double)rest : p->flows[i].rate;
    }
}

static double plain_next(struct plain *p)
{
    double at = INFINITY;
    size_t i;

    fill(p);
    for (i = 0; i < p->n; i++) {
        const struct plain_flow *f = &p->flows[i];

        if (f->running) {
            double end = isfinite(f->rate) ? p->now + f->left / f->rate * 1e6 : p->now;

            at = fmin(at, fmax(end, p->now));
        }
    }
    return at;
}

static void plain_run(struct plain *p, uint64_t to)
{
    double now = (double)to;
    size_t i;

    for (;;) {
        double at = fmin(plain_next(p), now);
        bool ended = false;

        for (i = 0; i < p->n; i++) {
            struct plain_flow *f = &p->flows[i];

            if (f->running) {
                f->left -= isfinite(f->rate) ? f->rate * (at - p->now) / 1e6 : f->left;
                if (f->left <= f->rate * 1e-8) {
                    f->running = false;
                    f->ended = (uint64_t)ceil(at);
                    ended = true;
                }
            }
        }
        p->now = at;
        if (!ended && at >= now) {
            return;
        }
    }
}

static double plain_rate(double rate)
{
    return rate > 0 ? fmax(nearbyint(rate * 256), 1) / 256 : (double)INFINITY;
}

/* --- random worlds against it --- */

static struct plain plain;
static uint64_t ids[MAX_FLOWS];
static uint64_t ended[MAX_FLOWS];
static bool gone[MAX_FLOWS];

static void drain(struct fl_flows *flows, uint64_t until)
{
    uint64_t at;
    uint64_t tag;

    while (fl_flows_next(flows, &at) && at <= until) {
        ck_assert(fl_flows_pop(flows, at, &tag));
        ck_assert_uint_eq(ended[tag], NEVER);
        ended[tag] = at;
        gone[tag] = true;
    }
}

static double draw_cap(struct fl_rng *rng)
{
    static const double few[] = {0, 1000, 1000, 25000, 1e6};

    return fl_rng_below(rng, 3) > 0 ? few[fl_rng_below(rng, 5)] : exp(fl_rng_unit(rng) * 10) * 30;
}

static void assert_near(uint64_t a, uint64_t b, uint64_t tolerance)
{
    ck_assert_msg(a <= b + tolerance && b <= a + tolerance, "%" PRIu64 " is not near %" PRIu64, a,
                  b);
}

static void stop_one(struct fl_flows *flows, uint64_t now, size_t i)
{
    uint64_t done = 0;

    if (gone[i]) {
        return;
    }
    fl_flows_stop(flows, now, ids[i], &done);
    ck_assert_uint_le(done, plain.flows[i].bytes);
    assert_near(done, plain.flows[i].bytes - (uint64_t)fmax(plain.flows[i].left, 0), 1);
    plain.flows[i].running = false;
    gone[i] = true;
}

static void begin_one(struct fl_flows *flows, uint64_t now, struct fl_rng *rng)
{
    size_t i = plain.n++;
    double cap = draw_cap(rng);
    uint64_t bytes = fl_rng_below(rng, 20) == 0 ? 0 : fl_rng_below(rng, 300000);

    ck_assert_int_eq(fl_flows_add(flows, now, bytes, cap, i, &ids[i]), FL_OK);
    plain.flows[i] = (struct plain_flow){
        .left = (double)bytes, .cap = plain_rate(cap), .bytes = bytes, .running = true};
    ended[i] = NEVER;
    gone[i] = false;
}

/* What a change of a random kind at `now` does to both. */
static void change(struct fl_flows *flows, uint64_t now, struct fl_rng *rng)
{
    size_t i = plain.n > 0 ? (size_t)fl_rng_below(rng, plain.n) : 0;
    double rate;

    switch (fl_rng_below(rng, 8)) {
    case 1:
        if (plain.n > 0) {
            stop_one(flows, now, i);
        }
        break;
    case 2:
        if (plain.n > 0 && !gone[i]) {
            rate = draw_cap(rng);
            ck_assert_int_eq(fl_flows_set_cap(flows, now, ids[i], rate), FL_OK);
            plain.flows[i].cap = plain_rate(rate);
        }
        break;
    default:
        begin_one(flows, now, rng);
    }
}

TEST_EACH(random_flows_go_as_plain_water_filling_says, 40)
{
    struct fl_flows *flows = NULL;
    struct fl_rng rng;
    uint64_t now = 1000;
    double rate;
    size_t i;
    int k;

    fl_rng_seed(&rng, (uint64_t)_i + 1);
    plain.n = 0;
    plain.now = 0;
    rate = _i % 10 == 9 ? 0 : exp(fl_rng_unit(&rng) * 8) * 1000;
    plain.hub = plain_rate(rate);
    ck_assert_int_eq(fl_flows_create(rate, &flows), FL_OK);
    for (k = 0; k < 400; k++) {
        now += fl_rng_below(&rng, 3) == 0 ? 0 : fl_rng_below(&rng, 2000000);
        drain(flows, now);
        plain_run(&plain, now);
        change(flows, now, &rng);
    }
    drain(flows, NEVER - 1);
    plain_run(&plain, UINT64_C(1) << 50);
    for (i = 0; i < plain.n; i++) {
        ck_assert_msg(gone[i], "flow %zu never ended", i);
        if (ended[i] != NEVER) {
            ck_assert(!plain.flows[i].running);
            assert_near(ended[i], plain.flows[i].ended, 1);
        }
    }
    fl_flows_free(flows);
}

/* --- single rules --- */

static struct fl_flows *made(double hub)
{
    struct fl_flows *flows = NULL;

    ck_assert_int_eq(fl_flows_create(hub, &flows), FL_OK);
    return flows;
}

static uint64_t add(struct fl_flows *flows, uint64_t now, uint64_t bytes, double cap, uint64_t tag)
{
    uint64_t id = 0;

    ck_assert_int_eq(fl_flows_add(flows, now, bytes, cap, tag, &id), FL_OK);
    return id;
}

static void expect(struct fl_flows *flows, uint64_t at, uint64_t tag)
{
    uint64_t next = 0;
    uint64_t got = 0;

    ck_assert(fl_flows_next(flows, &next));
    ck_assert_uint_eq(next, at);
    ck_assert(fl_flows_pop(flows, next, &got));
    ck_assert_uint_eq(got, tag);
}

TEST(a_hundred_uploads_of_a_model_take_the_servers_link_its_time)
{
    struct fl_flows *flows = made(12.5e6); /* 100 Mbit/s */
    uint64_t at = 0;
    uint64_t i;

    for (i = 0; i < 100; i++) {
        (void)add(flows, 7000000, 800000, 2.5e6, 99 - i);
    }
    for (i = 0; i < 100; i++) {
        expect(flows, 7000000 + 6400000, i);
    }
    ck_assert(!fl_flows_next(flows, &at));
    fl_flows_free(flows);
}

TEST(who_is_slow_by_itself_leaves_its_share_to_the_others)
{
    struct fl_flows *flows = made(1000);

    (void)add(flows, 0, 1000, 100, 1); /* 10 s at its own rate */
    (void)add(flows, 0, 4500, 0, 2);   /* 450 each */
    (void)add(flows, 0, 2250, 0, 3);
    expect(flows, 5000000, 3);
    expect(flows, 7500000, 2); /* 2250 more at 900 */
    expect(flows, 10000000, 1);
    fl_flows_free(flows);
}

TEST(a_spoke_is_never_exceeded_and_an_idle_hub_makes_nobody_wait)
{
    struct fl_flows *flows = made(1e9);

    (void)add(flows, 0, 1, 3, 1);
    (void)add(flows, 0, 3000, 1000, 2);
    expect(flows, 333334, 1); /* rounded up: the byte is there, not before */
    expect(flows, 3000000, 2);
    fl_flows_free(flows);
}

TEST(what_goes_through_a_full_hub_is_its_capacity)
{
    struct fl_flows *flows = made(1000);
    struct fl_rng rng;
    uint64_t id[200];
    uint64_t bytes = 0;
    uint64_t done = 0;
    int i;

    fl_rng_seed(&rng, 3);
    for (i = 0; i < 200; i++) {
        id[i] = add(flows, (uint64_t)i * 100, 1000000, 20 + fl_rng_unit(&rng), (uint64_t)i);
    }
    for (i = 0; i < 200; i++) {
        fl_flows_stop(flows, 100000000, id[i], &done);
        bytes += done;
    }
    /* 100 s, less what the first 50 left idle in 5 ms; each loses less than a byte in rounding. */
    ck_assert_uint_le(bytes, 100000);
    ck_assert_uint_ge(bytes, 100000 - 5 - 200);
    fl_flows_free(flows);
}

TEST(no_flow_starves_beside_a_thousand_that_keep_coming)
{
    struct fl_flows *flows = made(1e6);
    uint64_t tag = 0;
    uint64_t at = 0;
    uint64_t i;

    (void)add(flows, 0, 100000, 0, 1 << 20);
    for (i = 0; i < 1000; i++) {
        (void)add(flows, 0, 1000, 0, i);
    }
    /* With 1 001 in the hub all the time it has its thousandth: 100 s. */
    for (i = 1000; tag != 1 << 20; i++) {
        ck_assert(fl_flows_next(flows, &at));
        ck_assert(at < 101 * UINT64_C(1000000));
        ck_assert(fl_flows_pop(flows, at, &tag));
        (void)add(flows, at, 1000, 0, i);
    }
    ck_assert_uint_gt(at, 99 * UINT64_C(1000000));
    fl_flows_free(flows);
}

TEST(the_order_of_what_happens_at_one_instant_means_nothing)
{
    uint64_t first[300][2];
    uint32_t order[300];
    struct fl_rng rng;
    int try;

    fl_rng_seed(&rng, 4);
    for (try = 0; try < 20; try++) {
        struct fl_flows *flows = made(30000.0 / 7);
        uint64_t id = add(flows, 0, 1000000, 500, 1000);
        uint64_t at = 0;
        uint64_t tag = 0;
        uint32_t i;

        for (i = 0; i < 300; i++) {
            order[i] = i;
        }
        fl_rng_shuffle(&rng, order, 300);
        for (i = 0; i < 300; i++) {
            uint32_t k = order[i];

            if (i == (uint32_t)try * 10) {
                fl_flows_stop(flows, 77, id, NULL);
            }
            (void)add(flows, 77, 1000 + k % 7 * 1000, 10.0 + k % 90 / 3.0, k);
        }
        for (i = 0; i < 300; i++) {
            ck_assert(fl_flows_next(flows, &at));
            ck_assert(fl_flows_pop(flows, at, &tag));
            if (try == 0) {
                first[i][0] = at;
                first[i][1] = tag;
            }
            ck_assert_uint_eq(at, first[i][0]);
            ck_assert_uint_eq(tag, first[i][1]);
        }
        fl_flows_free(flows);
    }
}

TEST(a_flow_of_no_bytes_or_without_any_limit_is_complete_at_once)
{
    struct fl_flows *flows = made(10);
    uint64_t tag = 0;

    (void)add(flows, 5, 0, 1, 2);
    (void)add(flows, 5, 0, 0, 1);
    (void)add(flows, 5, 100, 0, 3);
    expect(flows, 5, 1);
    expect(flows, 5, 2);
    ck_assert(!fl_flows_pop(flows, 6, &tag));
    fl_flows_free(flows);
    flows = made(0);
    (void)add(flows, 1000005, 100, 0, 3);
    expect(flows, 1000005, 3);
    (void)add(flows, 1000007, UINT64_MAX, 0, 4);
    expect(flows, 1000007, 4);
    fl_flows_free(flows);
}

TEST(a_stop_tells_what_went_and_leaves_the_rest_to_the_others)
{
    struct fl_flows *flows = made(1000);
    uint64_t a = add(flows, 0, 10000, 0, 1);
    uint64_t b;
    uint64_t done = 0;

    b = add(flows, 0, 10000, 0, 2);
    fl_flows_stop(flows, 3000000, a, &done);
    ck_assert_uint_eq(done, 1500);
    expect(flows, 11500000, 2); /* 8 500 at 1 000 */
    b = add(flows, 12000000, 500, 0, 3);
    fl_flows_stop(flows, 13000000, b, &done); /* it was complete, and is not heard of any more */
    ck_assert_uint_eq(done, 500);
    ck_assert(!fl_flows_next(flows, &done));
    fl_flows_free(flows);
}

TEST(what_ends_with_a_microsecond_is_not_told_one_later)
{
    uint64_t n;

    for (n = 1; n < 200; n++) {
        struct fl_flows *flows = made(1e6); /* a byte each microsecond */
        uint64_t i;

        for (i = 0; i < n; i++) {
            (void)add(flows, i * 13, 1000 + i, 0, i);
        }
        for (i = 0; i < n; i++) {
            uint64_t tag;
            uint64_t at = 0;

            ck_assert(fl_flows_next(flows, &at));
            ck_assert(fl_flows_pop(flows, at, &tag));
            if (i + 1 == n) {
                ck_assert_uint_eq(at, n * 1000 + n * (n - 1) / 2);
            }
        }
        fl_flows_free(flows);
    }
}

TEST(who_looks_late_learns_the_right_times_all_the_same)
{
    struct fl_flows *flows = made(1000);
    uint64_t at = 0;
    uint64_t tag = 0;

    (void)add(flows, 0, 1000, 0, 2);
    (void)add(flows, 0, 3000, 0, 1);
    (void)add(flows, 9000000, 1000, 0, 3);
    ck_assert(fl_flows_next(flows, &at));
    ck_assert_uint_eq(at, 2000000);
    ck_assert(fl_flows_pop(flows, 9000000, &tag) && tag == 2);
    ck_assert(fl_flows_next(flows, &at));
    ck_assert_uint_eq(at, 4000000);
    ck_assert(fl_flows_pop(flows, 9000000, &tag) && tag == 1);
    expect(flows, 10000000, 3);
    fl_flows_free(flows);
}
