/* The ring of events: order, what it keeps, what it skips. */

#include <stdio.h>
#include <string.h>

#include "server/http/event_log.h"
#include "tests/lib/suites.h"

static struct fl_event_log *events;
static unsigned n_added;

static void event_added(void *ctx)
{
    (void)ctx;
    n_added++;
}

static void events_setup(void)
{
    n_added = 0;
    ck_assert_int_eq(fl_event_log_create(&events), FL_OK);
    fl_event_log_watch(events, event_added, NULL);
}

static void events_tear_down(void)
{
    fl_event_log_free(events);
}

static void add_events(size_t n)
{
    const struct fl_event_line line = {.round = 7, .kind = FL_EVENT_CLIENT, .client = "edge-1"};
    size_t i;

    for (i = 0; i < n; i++) {
        fl_event_log_add(events, &line, "it came");
    }
}

TEST_CASE("events", events_setup, events_tear_down);

TEST(events_are_numbered_from_one_without_gaps)
{
    struct fl_event_line line;

    ck_assert_uint_eq(fl_event_log_newest(events), 0);
    ck_assert(!fl_event_log_next(events, 0, &line));
    add_events(2);
    ck_assert_uint_eq(n_added, 2);
    ck_assert(fl_event_log_next(events, 0, &line));
    ck_assert_uint_eq(line.id, 1);
    ck_assert_uint_eq(line.round, 7);
    ck_assert_str_eq(line.client, "edge-1");
    ck_assert_str_eq(line.text, "it came");
    ck_assert(fl_event_log_next(events, 1, &line));
    ck_assert_uint_eq(line.id, 2);
    ck_assert(!fl_event_log_next(events, 2, &line));
    ck_assert(!fl_event_log_next(events, UINT64_MAX, &line));
}

TEST(a_full_ring_keeps_the_newest_and_a_late_reader_skips_the_others)
{
    struct fl_event_line line;
    uint64_t after = 0;
    size_t n = 0;

    add_events(FL_EVENT_LOG_MAX + 10);
    while (fl_event_log_next(events, after, &line)) {
        ck_assert_uint_eq(line.id, after == 0 ? 11 : after + 1);
        after = line.id;
        n++;
    }
    ck_assert_uint_eq(n, FL_EVENT_LOG_MAX);
    ck_assert_uint_eq(after, FL_EVENT_LOG_MAX + 10);
}

TEST(a_long_or_unclean_text_is_bounded_and_clean)
{
    struct fl_event_line line = {.kind = FL_EVENT_SERVER};
    char text[2 * FL_EVENT_TEXT_MAX];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    text[0] = '\n';
    fl_event_log_add(events, &line, text);
    ck_assert(fl_event_log_next(events, 0, &line));
    ck_assert_uint_lt(strlen(line.text), FL_EVENT_TEXT_MAX);
    ck_assert_int_eq(line.text[0], '?');
}

TEST(without_a_log_an_event_is_dropped)
{
    fl_event_log_add(NULL, &(struct fl_event_line){.id = 0}, "nothing");
}
