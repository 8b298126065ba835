#include <math.h>
#include <stdlib.h>

#include "tests/lib/suites.h"
#include "tests/lib/world_rig.h"

#define S UINT64_C(1000000)

static struct fl_world_client client_of(const struct fl_world *world, uint64_t i)
{
    struct fl_world_client c;

    fl_world_client(world, i, &c);
    return c;
}

static void assert_near(double a, double b)
{
    ck_assert_msg(fabs(a - b) <= 1e-9 * fabs(b), "%.17g is not %.17g", a, b);
}

TEST(units_are_what_they_say_and_rates_count_in_thousands)
{
    struct fl_world *w = world_of("{uplink: 2Mbit/s, downlink: 3 MB/s, latency: 40ms,\n"
                                  "        memory: 1.5GB, train: {fixed: 2s, samples_per_s: 500},\n"
                                  "        drop: {chance: 5%},\n"
                                  "        server: {uplink: 1Gbit/s, downlink: unlimited}}",
                                  1, 3);
    struct fl_world_client c = client_of(w, 2);

    assert_near(c.up, 250000);
    assert_near(c.down, 3e6);
    ck_assert_uint_eq(c.latency_us, 40000);
    ck_assert_uint_eq(c.memory, 1500000000);
    ck_assert_uint_eq(c.train_us, 2 * S);
    assert_near(c.samples_per_s, 500);
    assert_near(c.drop_chance, 0.05);
    assert_near(fl_world_server(w).up, 125e6);
    ck_assert(fl_world_server(w).down <= 0);
    ck_assert_uint_eq(fl_world_train_us(w, 0, 7, 1000), 4 * S);
    fl_world_free(w);
}

TEST(nothing_said_is_a_world_without_limits)
{
    struct fl_world_ask ask = {.n = 2};
    struct fl_world *w = NULL;
    struct fl_world_client c;
    uint64_t until = 0;
    double share;

    ck_assert_int_eq(fl_world_load(&ask, &w, NULL), FL_OK);
    c = client_of(w, 1);
    ck_assert(c.up <= 0 && c.down <= 0 && c.samples_per_s <= 0);
    ck_assert(c.latency_us == 0 && c.train_us == 0 && c.memory == 0);
    ck_assert(fl_world_up(w, 0, 5 * S, &until) && until == UINT64_MAX);
    ck_assert_uint_eq(fl_world_train_us(w, 0, 1, 1000000), 0);
    ck_assert(!fl_world_drop(w, 0, 1, 0, &share, &until));
    fl_world_free(w);
}

TEST(what_is_given_replaces_what_the_base_says_and_nothing_else)
{
    struct fl_world *lte = world_of("lte", 5, 10);
    struct fl_world *w = world_of("{base: lte, uplink: 2Mbit/s, server: {downlink: 5MB/s}}", 5, 10);

    assert_near(client_of(w, 3).up, 250000);
    assert_near(client_of(w, 3).down, client_of(lte, 3).down);
    ck_assert_uint_eq(client_of(w, 3).latency_us, client_of(lte, 3).latency_us);
    assert_near(fl_world_server(w).down, 5e6);
    assert_near(fl_world_server(w).up, 125e6);
    fl_world_free(lte);
    fl_world_free(w);
}

TEST(a_client_is_the_same_whatever_the_others_are)
{
    static const char *const text =
        "{uplink: {lognormal: {median: 6Mbit/s, sigma: 0.7}}, latency: {uniform: [10ms, 90ms]},\n"
        "        train: {samples_per_s: {exponential: 400}, jitter: 0.3},\n"
        "        drop: {chance: 0.5, away: {exponential: 10m}},\n"
        "        availability: {every: 24h, from: {uniform: [0h, 24h]}, up_for: {exponential: "
        "5h}}}";
    struct fl_world *few = world_of(text, 9, 5);
    struct fl_world *many = world_of(text, 9, 1000000);
    struct fl_world *other = world_of(text, 10, 5);
    struct fl_world_client a;
    struct fl_world_client b;
    uint64_t until[2];
    uint64_t away[2] = {0};
    double share[2] = {0};
    uint64_t i;
    uint64_t r;

    ck_assert(client_of(other, 0).up < client_of(few, 0).up ||
              client_of(other, 0).up > client_of(few, 0).up);
    for (i = 5; i-- > 0;) {
        a = client_of(few, i);
        b = client_of(many, i);
        ck_assert_mem_eq(&a, &b, sizeof(a));
        for (r = 0; r < 20; r++) {
            ck_assert_uint_eq(fl_world_train_us(few, i, r, 100),
                              fl_world_train_us(many, i, r, 100));
            ck_assert(fl_world_drop(few, i, r, 0, &share[0], &away[0]) ==
                      fl_world_drop(many, i, r, 0, &share[1], &away[1]));
            ck_assert_uint_eq(away[0], away[1]);
            ck_assert(fl_world_up(few, i, r * 5000 * S, &until[0]) ==
                      fl_world_up(many, i, r * 5000 * S, &until[1]));
            ck_assert_uint_eq(until[0], until[1]);
        }
    }
    fl_world_free(few);
    fl_world_free(many);
    fl_world_free(other);
}

/* Mean over clients, and the share of them below `at`. */
static void of_uplinks(const char *yaml, double at, double *ret_mean, double *ret_below)
{
    struct fl_world *w = world_of(yaml, 3, 100000);
    double sum = 0;
    uint64_t below = 0;
    uint64_t i;

    for (i = 0; i < 100000; i++) {
        double up = client_of(w, i).up;

        sum += up;
        below += up < at;
    }
    *ret_mean = sum / 100000;
    *ret_below = (double)below / 100000;
    fl_world_free(w);
}

TEST(distributions_are_the_ones_of_their_names)
{
    double mean;
    double below;

    of_uplinks("{uplink: {uniform: [1MB/s, 3MB/s]}}", 1.5e6, &mean, &below);
    ck_assert(fabs(mean - 2e6) < 1e4 && fabs(below - 0.25) < 0.01);
    of_uplinks("{uplink: {lognormal: {median: 1MB/s, sigma: 1}}}", exp(-1) * 1e6, &mean, &below);
    ck_assert(fabs(mean - exp(0.5) * 1e6) < 5e4 && fabs(below - 0.1587) < 0.01);
    of_uplinks("{uplink: {exponential: 1MB/s}}", 1e6, &mean, &below);
    ck_assert(fabs(mean - 1e6) < 2e4 && fabs(below - 0.6321) < 0.01);
    of_uplinks("{uplink: {choice: [1MB/s, 2MB/s, 5MB/s], weights: [1, 0, 3]}}", 1.5e6, &mean,
               &below);
    ck_assert(fabs(mean - 4e6) < 4e4 && fabs(below - 0.25) < 0.01);
}

TEST(columns_of_a_table_come_from_one_row_for_one_client)
{
    struct fl_world *w;
    uint64_t seen = 0;
    uint64_t i;

    world_file("t.csv", "\xef\xbb\xbf# a comment\r\n# source: a test, 2024\r\n"
                        "uplink [Mbit/s], downlink [kB/s], latency [ms]\r\n"
                        "8, 1, 1\r\n16, 2, 2\r\n\r\n24, 3, 3");
    w = world_of("{uplink: {table: t.csv, column: uplink}, latency: {table: t.csv, column: "
                 "latency},\n"
                 "        downlink: {table: t.csv, column: downlink}}",
                 4, 200);
    for (i = 0; i < 200; i++) {
        struct fl_world_client c = client_of(w, i);

        assert_near(c.up, (double)c.latency_us * 1000);
        assert_near(c.down, (double)c.latency_us);
        seen |= UINT64_C(1) << c.latency_us / 1000;
    }
    ck_assert_uint_eq(seen, 14); /* each row is somebody's */
    fl_world_free(w);
    w = world_of("{uplink: {table: t.csv, column: uplink, assign: in_order}}", 4, 3);
    assert_near(client_of(w, 0).up, 1e6);
    assert_near(client_of(w, 2).up, 3e6);
    fl_world_free(w);
}

TEST(training_times_vary_by_round_around_the_one_that_is_given)
{
    struct fl_world *w = world_of("{train: {fixed: 1s, samples_per_s: 100, jitter: 0.2}}", 1, 1);
    uint64_t below = 0;
    uint64_t r;

    for (r = 0; r < 10000; r++) {
        below += fl_world_train_us(w, 0, r, 300) < 4 * S;
    }
    ck_assert(below > 4800 && below < 5200);
    ck_assert_uint_eq(fl_world_train_us(w, 0, 5, 300), fl_world_train_us(w, 0, 5, 300));
    fl_world_free(w);
}

TEST(drops_come_with_their_chance_somewhere_in_the_upload)
{
    struct fl_world *w =
        world_of("{drop: {chance: 20%, at: {uniform: [10%, 30%]}, away: 5m}}", 1, 10000);
    double share = 0;
    double sum = 0;
    uint64_t away = 0;
    uint64_t n = 0;
    uint64_t i;

    for (i = 0; i < 10000; i++) {
        if (fl_world_drop(w, i, 3, 1, &share, &away)) {
            ck_assert(share >= 0.1 && share <= 0.3);
            ck_assert_uint_eq(away, 300 * S);
            sum += share;
            n++;
        }
    }
    ck_assert(n > 1850 && n < 2150);
    ck_assert(fabs(sum / (double)n - 0.2) < 0.01);
    fl_world_free(w);
}

/* Walk from answer to answer: they must fit a look at each second. Returns seconds up. */
static uint64_t walk(const struct fl_world *w, uint64_t client, uint64_t seconds)
{
    uint64_t until = 0;
    uint64_t sum = 0;
    uint64_t unused;
    uint64_t t = 0;

    while (t < seconds * S) {
        bool up = fl_world_up(w, client, t, &until);

        ck_assert_uint_gt(until, t);
        until = until < seconds * S ? until : seconds * S;
        ck_assert(fl_world_up(w, client, t + (until - t) / 2, &unused) == up);
        ck_assert(fl_world_up(w, client, until - 1, &unused) == up);
        sum += up ? until - t : 0;
        t = until;
    }
    return sum / S;
}

TEST(a_client_is_up_in_its_window_of_each_period)
{
    struct fl_world *w = world_of("{availability: {every: 100s, from: 90s, up_for: 30s}}", 1, 100);
    uint64_t until = 0;

    ck_assert(fl_world_up(w, 0, 0, &until) && until == 20 * S); /* began before time 0 */
    ck_assert(!fl_world_up(w, 0, 20 * S, &until) && until == 90 * S);
    ck_assert(fl_world_up(w, 0, 119 * S, &until) && until == 120 * S);
    fl_world_free(w);
    w = world_of("{availability: {every: 100s, from: {uniform: [0s, 100s]}, "
                 "up_for: {uniform: [0s, 50s]}}}",
                 1, 100);
    ck_assert_uint_gt(walk(w, 1, 100000), 23000);
    ck_assert_uint_lt(walk(w, 2, 100000), 27000);
    fl_world_free(w);
}

static const char up_trace[] = "# source: a test, 2024\n# length: 100s\n"
                               "client, up_from [s], up_until [s]\n"
                               "1, 20, 40\n0, 10, 30\n1, 50, 100\n0, 90, 100\n";

TEST(a_trace_says_who_is_up_and_begins_again_when_told_to)
{
    struct fl_world *w;
    uint64_t until = 0;

    world_file("up.csv", up_trace);
    w = world_of("{availability: {trace: up.csv, repeat: yes, assign: in_order}}", 1, 2);
    ck_assert(!fl_world_up(w, 0, 0, &until) && until == 10 * S);
    ck_assert(fl_world_up(w, 0, 10 * S, &until) && until == 30 * S);
    ck_assert(!fl_world_up(w, 0, 30 * S, &until) && until == 90 * S);
    ck_assert(fl_world_up(w, 0, 395 * S, &until) && until == 400 * S);
    ck_assert(!fl_world_up(w, 1, 45 * S, &until) && until == 50 * S);
    ck_assert_uint_eq(walk(w, 0, 1000), 300);
    ck_assert_uint_eq(walk(w, 1, 1000), 700);
    fl_world_free(w);
    world_horizon = 100 * S;
    w = world_of("{availability: {trace: up.csv, assign: in_order}}", 1, 2);
    ck_assert(!fl_world_up(w, 0, 100 * S, &until) && until == UINT64_MAX);
    fl_world_free(w);
    world_horizon = 0;
    w = world_of("{availability: {trace: up.csv, repeat: yes}}", 1, 1000);
    ck_assert(walk(w, 999, 100) == 30 || walk(w, 999, 100) == 70);
    fl_world_free(w);
}

TEST(a_bandwidth_trace_changes_rates_in_time_for_the_directions_it_has)
{
    struct fl_world *w;
    uint64_t until = 0;
    double up = 0;
    double down = 0;

    world_file("bw.csv", "# source: a test, 2024\nclient, from [s], until [s], uplink [kB/s]\n"
                         "0, 0, 60, 5\n0, 60, 90, 7\n");
    w = world_of("{downlink: 1MB/s, uplink: 9MB/s,\n"
                 "        bandwidth: {trace: bw.csv, repeat: yes}}",
                 1, 3);
    fl_world_link(w, 2, 59 * S, &up, &down, &until);
    assert_near(up, 5000);
    assert_near(down, 1e6);
    ck_assert_uint_eq(until, 60 * S);
    fl_world_link(w, 2, 150 * S, &up, &down, &until);
    assert_near(up, 7000);
    ck_assert_uint_eq(until, 180 * S);
    fl_world_free(w);
    w = world_of("{uplink: 9MB/s}", 1, 3);
    fl_world_link(w, 2, 59 * S, &up, &down, &until);
    assert_near(up, 9e6);
    ck_assert_uint_eq(until, UINT64_MAX);
    fl_world_free(w);
}

TEST(every_named_world_loads_and_tells_its_source)
{
    size_t i;

    for (i = 0; fl_world_named(i) != NULL; i++) {
        struct fl_world *w = world_of(fl_world_named(i)->name, 1, 100);

        ck_assert_uint_gt(strlen(fl_world_named(i)->source), 10);
        ck_assert(i == 0 || (client_of(w, 99).up > 0 && client_of(w, 99).down > 0 &&
                             client_of(w, 99).latency_us > 0 && fl_world_server(w).up > 0));
        fl_world_free(w);
    }
    ck_assert_uint_eq(i, 6);
}

TEST(the_example_of_the_documents_loads)
{
    const char *src = getenv("FL_SRCDIR");
    char path[4096];
    struct fl_conf_doc *doc = NULL;
    struct fl_world_ask ask = {.n = 50};
    struct fl_world *w = NULL;
    struct fl_err err = {0};
    struct fl_buf page;
    char *begin;
    char *end;

    ck_assert_int_eq(fl_fs_join(path, sizeof(path), src != NULL ? src : ".", "docs/simulation.md"),
                     FL_OK);
    ck_assert_int_eq(fl_fs_read(path, 1 << 20, &page, &err), FL_OK);
    ck_assert_int_eq(fl_buf_add(&page, "", 1), FL_OK);
    begin = strstr((char *)page.data, "    world:\n      base:");
    ck_assert_ptr_nonnull(begin);
    end = strstr(begin, "\n\n");
    ck_assert_int_eq(fl_conf_parse("docs", begin, (size_t)(end - begin), &doc, &err), FL_OK);
    ask.node = fl_conf_get(fl_conf_root(doc), "world");
    ck_assert_msg(fl_world_load(&ask, &w, &err) == FL_OK, "%s", err.msg);
    assert_near(client_of(w, 49).up, 250000);
    fl_world_free(w);
    fl_conf_free(doc);
    fl_buf_done(&page);
}

TEST_EACH(times_take_every_unit, 7)
{
    static const struct {
        const char *yaml;
        uint64_t us;
    } times[] = {{"{latency: 7us}", 7},
                 {"{latency: 7ms}", 7000},
                 {"{latency: 1.5s}", 1500000},
                 {"{latency: 1m}", 60000000},
                 {"{latency: 1min}", 60000000},
                 {"{latency: 1h}", UINT64_C(3600000000)},
                 {"{latency: 1d}", UINT64_C(86400000000)}};
    struct fl_world *w = world_of(times[_i].yaml, 1, 1);

    ck_assert_uint_eq(client_of(w, 0).latency_us, times[_i].us);
    fl_world_free(w);
}
