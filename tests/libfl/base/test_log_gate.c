/* How many lines peers can cause, and what is said of the rest. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/log.h"
#include "tests/lib/suites.h"

static const char reason[] = "bad event";
static const char other_reason[] = "refused";
static struct fl_log_gate gate;
static struct fl_log_gate_place left;

static void setup(void)
{
    gate = (struct fl_log_gate){0};
}

static unsigned passed(uint64_t now_ms, const char *peer, const char *why, unsigned n)
{
    unsigned count = 0;

    while (n-- > 0) {
        count += fl_log_gate_pass(&gate, now_ms, peer, why, "a line") ? 1 : 0;
    }
    return count;
}

TEST_CASE("log_gate", setup, NULL);

TEST(one_peer_and_reason_has_so_many_lines_in_a_span)
{
    ck_assert_uint_eq(passed(1000, "10.0.0.1:1", reason, 100), FL_LOG_GATE_LINES);
    ck_assert_uint_eq(passed(1000 + FL_LOG_GATE_SPAN_MS - 1, "10.0.0.1:1", reason, 5), 0);
    ck_assert(!fl_log_gate_due(&gate, 1000 + FL_LOG_GATE_SPAN_MS - 1, &left));
    ck_assert(fl_log_gate_due(&gate, 1000 + FL_LOG_GATE_SPAN_MS, &left));
    ck_assert_str_eq(left.peer, "10.0.0.1");
    ck_assert_uint_eq(left.left_out, 105 - FL_LOG_GATE_LINES);
    ck_assert_str_eq(left.sample, "a line");
    ck_assert(!fl_log_gate_due(&gate, 1000 + FL_LOG_GATE_SPAN_MS, &left));
    ck_assert_uint_eq(passed(1000 + FL_LOG_GATE_SPAN_MS, "10.0.0.1:1", reason, 100),
                      FL_LOG_GATE_LINES);
}

TEST(other_peers_and_other_reasons_have_their_own)
{
    ck_assert_uint_eq(passed(0, "10.0.0.1:1", reason, 100), FL_LOG_GATE_LINES);
    ck_assert_uint_eq(passed(0, "10.0.0.1:1", other_reason, 100), FL_LOG_GATE_LINES);
    ck_assert_uint_eq(passed(0, "10.0.0.2:1", reason, 100), FL_LOG_GATE_LINES);
    ck_assert_uint_eq(passed(0, "[::1]:5", reason, 100), FL_LOG_GATE_LINES);
    ck_assert_uint_eq(passed(0, "unix", reason, 100), FL_LOG_GATE_LINES);
}

TEST(another_port_is_the_same_peer)
{
    char peer[32];
    unsigned n = 0;
    unsigned i;

    for (i = 1; i <= 1000; i++) {
        (void)snprintf(peer, sizeof(peer), "10.0.0.1:%u", i);
        n += passed(i, peer, reason, 1);
    }
    ck_assert_uint_eq(n, FL_LOG_GATE_LINES);
}

TEST(any_number_of_peers_has_so_many_lines_together)
{
    uint64_t all = 0;
    char peer[32];
    unsigned n = 0;
    unsigned i;

    for (i = 0; i < 100000; i++) {
        (void)snprintf(peer, sizeof(peer), "client-%u", i);
        n += passed(5, peer, reason, 1);
    }
    ck_assert_uint_le(n, FL_LOG_GATE_ALL);
    ck_assert_uint_gt(n, FL_LOG_GATE_PLACES / 2);
    /* What was left out is counted, all of it, in no more lines than there are places. */
    for (i = 0; fl_log_gate_due(&gate, FL_LOG_GATE_SPAN_MS + 5, &left); i++) {
        all += left.left_out;
    }
    ck_assert_uint_eq(all, 100000 - n);
    ck_assert_uint_le(i, FL_LOG_GATE_PLACES + 1);
}

TEST(a_quiet_peer_gives_its_place_up)
{
    char peer[32];
    unsigned i;

    for (i = 0; i < 100000; i++) {
        (void)snprintf(peer, sizeof(peer), "client-%u", i);
        ck_assert_uint_eq(passed((uint64_t)i * 100, peer, reason, 1), 1);
    }
    ck_assert(!fl_log_gate_due(&gate, UINT64_MAX, &left));
}

static char written[4096];

static void sink(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    (void)ctx;
    (void)level;
    (void)snprintf(written + strlen(written), sizeof(written) - strlen(written), "%s: %s\n",
                   component, text);
}

TEST(a_log_says_what_it_left_out)
{
    struct fl_log_limit limit = FL_LOG_LIMIT_INIT;
    struct fl_log log = {.level = FL_LOG_INFO, .sink = sink, .limit = &limit};
    unsigned i;

    for (i = 0; i < FL_LOG_GATE_LINES + 7; i++) {
        fl_log_peer(&log, FL_LOG_WARNING, "x", "10.0.0.1:9", "number %u", i);
        fl_log_peer(&log, FL_LOG_DEBUG, "x", "10.0.0.1:9", "not for this level");
    }
    ck_assert_ptr_nonnull(strstr(written, "x: number 0\n"));
    ck_assert_ptr_null(strstr(written, "number 20"));
    written[0] = '\0';
    fl_log_left_out(&log, false); /* the span goes on */
    ck_assert_str_eq(written, "");
    fl_log_left_out(&log, true);
    ck_assert_str_eq(written, "log: 7 more lines like this one from 10.0.0.1 in 10 s: "
                              "number 20...\n");
}
