/*
 * What a client tells its owner in each situation: the sentence, what to do, whether it needs its
 * owner; and that page, terminal and JSON say the same.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/http/client_report.h"
#include "tests/lib/suites.h"

#define NOW_MS UINT64_C(1795928832699)
#define DAY_MS UINT64_C(86400000)

static struct fl_owner_facts *f;
static struct fl_owner_report report;
static struct fl_buf text;

static void report_setup(void)
{
    f = calloc(1, sizeof(*f));
    ck_assert_ptr_nonnull(f);
    *f = (struct fl_owner_facts){.client = "edge-01",
                                 .server = "fl.example.org:7800",
                                 .state = FL_SESSION_READY,
                                 .now_ms = NOW_MS,
                                 .kept = true,
                                 .history = {.federation = "fed"}};
    fl_buf_init(&text, 1u << 20);
}

static void report_teardown(void)
{
    fl_buf_done(&text);
    free(f);
}

static void has_task(uint64_t round, enum fl_task_end end, const char *reason)
{
    struct fl_task_record *r = &f->history.records[f->history.n_records++];

    *r = (struct fl_task_record){.round = round,
                                 .attempt = 1,
                                 .began_ms = NOW_MS - 60000,
                                 .ended_ms = end == FL_TASK_OPEN ? 0 : NOW_MS - 30000,
                                 .bytes_down = 3000000,
                                 .bytes_up = 400000,
                                 .cpu_ms = 12300,
                                 .end = (uint32_t)end,
                                 .plan = FL_TASK_SOME_LAYERS,
                                 .layers_asked = 3,
                                 .layers = 8};
    (void)snprintf(r->reason, sizeof(r->reason), "%s", reason);
}

static void link_is(enum fl_session_state state, enum fl_task_link link, const char *why)
{
    f->state = state;
    f->history.link = link;
    (void)snprintf(f->history.trouble, sizeof(f->history.trouble), "%s", why);
}

/* The report has this sentence, and `next` in what its owner can do. */
static void says_now(const char *now, const char *next, bool needs_owner)
{
    fl_owner_report(f, &report);
    ck_assert_str_eq(report.now, now);
    ck_assert_msg(strstr(report.next, next) != NULL, "'%s' is not in '%s'", next, report.next);
    ck_assert_int_eq(report.needs_owner, needs_owner);
}

static const char *as_text(int (*make)(const struct fl_owner_facts *facts, struct fl_buf *out))
{
    fl_buf_clear(&text);
    ck_assert_int_eq(make(f, &text), FL_OK);
    ck_assert_int_eq(fl_buf_add(&text, "", 1), FL_OK);
    return (const char *)text.data;
}

static void contains(const char *all, const char *part)
{
    ck_assert_msg(strstr(all, part) != NULL, "'%s' is not in: %s", part, all);
}

TEST_CASE("report", report_setup, report_teardown);

TEST(waiting_names_the_server_and_the_last_task)
{
    says_now("Waiting for a task from fl.example.org:7800.", "Nothing.", false);
    has_task(12, FL_TASK_ACCEPTED, "");
    says_now("Waiting for a task from fl.example.org:7800; last task: round 12, accepted.",
             "Nothing.", false);
    ck_assert_str_eq(
        report.story,
        "This device takes part in federation 'fed' as 'edge-01'. Last task, of 2026-11-29 05:06 "
        "UTC: train, send 3 of 8 layers (round 12). It received 3.0 MB, sent 400.0 kB and used "
        "12.3 s of processor time; result: accepted. The data itself stays on this device: it "
        "sends changes of the model, the number of its samples and how well the model fits them.");
}

TEST(a_running_task_says_what_it_does)
{
    has_task(13, FL_TASK_OPEN, "");
    /* Of an earlier process, or after a lost connection: whether it runs is not claimed. */
    says_now("Waiting for a task from fl.example.org:7800; last task: round 13, unfinished.",
             "Nothing.", false);
    f->state = FL_SESSION_TRAINING;
    says_now("Round 13: training on the data of this device.", "Nothing.", false);
    f->state = FL_SESSION_PUSHING;
    says_now("Round 13: sending the result.", "Nothing.", false);
}

TEST(all_rounds_done_is_no_trouble)
{
    f->state = FL_SESSION_DONE;
    says_now("All rounds are done, waiting for more from fl.example.org:7800.", "Nothing.", false);
}

TEST(outside_when_it_is_connected_without_tasks_or_disconnected_as_its_owner_set)
{
    (void)snprintf(f->unavailable, sizeof(f->unavailable), "it is 12:00, outside its hours");
    says_now("Connected to fl.example.org:7800, gets no tasks now: it is 12:00, "
             "outside its hours.",
             "'when'", false);
    link_is(FL_SESSION_OFFLINE, FL_TASK_LINK_LEFT, "not available: it is 12:00");
    says_now("Disconnected from fl.example.org:7800 by itself: it is 12:00, outside its hours.",
             "Nothing", false);
}

TEST(limits_of_a_day_are_no_trouble)
{
    link_is(FL_SESSION_OFFLINE, FL_TASK_LINK_LEFT, "it trained in 2 rounds today");
    says_now("Disconnected from fl.example.org:7800 by itself: it trained in 2 rounds today.",
             "Nothing", false);
}

TEST(an_unreachable_server_needs_the_owner_between_the_attempts_too)
{
    static const enum fl_session_state states[] = {FL_SESSION_OFFLINE, FL_SESSION_CONNECTING,
                                                   FL_SESSION_GREETING};
    size_t i;

    for (i = 0; i < ARRAY_LEN(states); i++) {
        link_is(states[i], FL_TASK_LINK_LOST, "connection refused");
        says_now("Not connected to fl.example.org:7800, trying again: connection refused.",
                 "check the network", true);
    }
    link_is(FL_SESSION_CONNECTING, FL_TASK_LINK_OK, "");
    says_now("Connecting to fl.example.org:7800.", "Nothing.", false);
}

TEST(a_refused_client_asks_the_operator)
{
    link_is(FL_SESSION_OFFLINE, FL_TASK_LINK_REFUSED, "the client is disabled");
    says_now("The server fl.example.org:7800 refused this client: the client is disabled.",
             "Ask the operator", true);
}

TEST(missing_data_needs_the_owner)
{
    link_is(FL_SESSION_OFFLINE, FL_TASK_LINK_LOST, "the data is missing");
    (void)snprintf(f->data_trouble, sizeof(f->data_trouble), "'/srv/data' is missing");
    says_now("Not connected, as there is no data to train on: '/srv/data' is missing.", "data.path",
             true);
}

TEST(a_training_program_that_does_not_start_needs_the_owner)
{
    f->trainer_starts = true;
    says_now("Starting the training program.", "Nothing.", false);
    (void)snprintf(f->trainer, sizeof(f->trainer), "no such file");
    says_now("The training program does not start, trying again: no such file.", "--try-trainer",
             true);
}

/* Validity of so many days, of which so many are left: is it trouble? */
static const struct {
    uint64_t whole, left;
    bool renews, trouble;
} certificates[] = {
    {30, 8, true, false},    {30, 7, true, true},    {365, 60, false, false},
    {365, 15, false, false}, {365, 14, false, true}, {1, 1, true, false},
};

TEST_EACH(a_certificate_that_is_late_needs_the_owner, ARRAY_LEN(certificates))
{
    f->certificate_ms = NOW_MS + certificates[_i].left * DAY_MS;
    f->certificate_begin_ms = f->certificate_ms - certificates[_i].whole * DAY_MS;
    f->certificate_renews = certificates[_i].renews;
    fl_owner_report(f, &report);
    ck_assert_int_eq(report.needs_owner, certificates[_i].trouble);
    ck_assert_int_eq(strstr(report.now, " Its certificate expires 2026-12-") != NULL,
                     certificates[_i].trouble);
    if (certificates[_i].trouble) {
        contains(report.next, certificates[_i].renews ? "--join" : "tls.certificate");
    }
}

TEST(an_expired_certificate_says_so)
{
    f->certificate_ms = NOW_MS - DAY_MS;
    f->certificate_begin_ms = NOW_MS - 31 * DAY_MS;
    link_is(FL_SESSION_OFFLINE, FL_TASK_LINK_REFUSED, "certificate expired");
    fl_owner_report(f, &report);
    contains(report.now, "Its certificate expired 2026-11-28");
    ck_assert(report.needs_owner);
}

TEST(data_summaries_are_named_where_they_are_allowed)
{
    f->least_group = 10;
    fl_owner_report(f, &report);
    contains(report.story, "means of at least 10 samples each ('summaries: yes')");
}

TEST(page_terminal_and_json_have_the_sentence_and_the_tasks)
{
    const char *out;

    has_task(12, FL_TASK_REJECTED, "not finite");
    f->limits[0] = (struct fl_owner_limit){"rounds a day", "3", "limits.rounds_per_day"};
    f->n_limits = 1;
    out = as_text(fl_owner_text);
    contains(out, "Waiting for a task from fl.example.org:7800; last task: round 12, rejected.\n");
    contains(out, "train, send 3 of 8 layers");
    contains(out, "rejected: not finite\n");
    contains(out, "3 (limits.rounds_per_day)\n");
    out = as_text(fl_owner_json);
    contains(out, "\"needs_owner\": false");
    contains(out, "\"result\": \"rejected\"");
    contains(out, "\"layers_asked\": 3");
    contains(out, "\"limits.rounds_per_day\": \"3\"");
    out = as_text(fl_owner_page);
    contains(out, "last task: round 12, rejected.</p>");
    contains(out, "rejected: not finite</td>");
    contains(out, "The last 50 tasks are kept, also over a restart.");
    f->kept = false;
    contains(as_text(fl_owner_page), "could not be saved");
}

TEST(the_page_escapes_what_a_server_sends)
{
    has_task(12, FL_TASK_REJECTED, "<script>alert(1)</script>");
    (void)snprintf(f->history.federation, sizeof(f->history.federation), "<b>&\"");
    ck_assert_ptr_null(strstr(as_text(fl_owner_page), "<script>alert"));
    contains((const char *)text.data, "&lt;script&gt;alert(1)");
    contains((const char *)text.data, "&lt;b&gt;&amp;&quot;");
}

TEST(texts_of_the_greatest_length_are_cut_and_never_lost)
{
    (void)memset(f->server, 's', sizeof(f->server) - 1);
    (void)memset(f->unavailable, 'u', sizeof(f->unavailable) - 1);
    (void)memset(f->history.federation, 'f', sizeof(f->history.federation) - 1);
    has_task(UINT64_MAX, FL_TASK_FAILED, "");
    (void)memset(f->history.records[0].reason, 'r', FL_TASK_TEXT - 1);
    f->certificate_ms = NOW_MS;
    f->certificate_begin_ms = NOW_MS - DAY_MS;
    f->least_group = UINT64_MAX;
    fl_owner_report(f, &report);
    ck_assert_uint_lt(strlen(report.now), sizeof(report.now) - 1);
    ck_assert_uint_lt(strlen(report.story), sizeof(report.story) - 1);
    contains(report.story, "('summaries: yes').");
}
