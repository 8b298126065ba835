/* The copy that the status pages show: what is taken from answers, and in which order. */
#include <check.h>
#include <stdio.h>

#include "server/admin/admin_request.h"
#include "server/http/page_snapshot.h"
#include "tests/lib/suites.h"

static struct fl_admin_request *answer(enum fl_verb verb)
{
    struct fl_admin_request *asked = fl_admin_request_new(verb);

    ck_assert_ptr_nonnull(asked);
    return asked;
}

static void add_round(struct fl_admin_request *asked, uint64_t round)
{
    struct fl_wire_round r = {.abandoned_by = fl_wire_lend(""),
                              .robust_clients = fl_wire_lend(""),
                              .metrics = fl_wire_lend("")};

    r.figures.round = round;
    r.figures.attempt = 1;
    FL_ADMIN_REPLY(asked, fl_wire_round_encode, &r);
    ck_assert_int_eq(asked->code, FL_OK);
}

static void add_client(struct fl_admin_request *asked, unsigned number)
{
    char name[32];
    struct fl_wire_client c = {.agent = fl_wire_lend(""),
                               .state = fl_wire_lend("idle"),
                               .last_error = fl_wire_lend(""),
                               .quarantine = fl_wire_lend("")};

    (void)snprintf(name, sizeof(name), "c%05u", number);
    c.name = fl_wire_lend(name);
    FL_ADMIN_REPLY(asked, fl_wire_client_encode, &c);
    ck_assert_int_eq(asked->code, FL_OK);
}

TEST(rounds_come_newest_first_and_are_shown_oldest_first)
{
    struct fl_page_snapshot s = {.asked_ms = 1};
    struct fl_admin_request *asked = answer(FL_VERB_ROUNDS);
    uint64_t round;

    for (round = 5; round >= 1; round--) {
        add_round(asked, round);
    }
    ck_assert_int_eq(fl_page_snapshot_take(&s, asked, NULL), FL_OK);
    ck_assert_uint_eq(s.n_rounds, 5);
    for (round = 1; round <= 5; round++) {
        ck_assert_uint_eq(s.rounds[round - 1].figures.round, round);
    }
    fl_admin_request_free(asked);
    fl_page_snapshot_done(&s);
}

static void add_part(struct fl_admin_request *asked, uint64_t id, uint64_t round)
{
    struct fl_wire_participation p = {.id = id,
                                      .client = fl_wire_lend("a"),
                                      .state = fl_wire_lend("accepted"),
                                      .asked = fl_wire_lend(round % 2 == 0 ? "" : "01"),
                                      .remark = fl_wire_lend(""),
                                      .aborted = fl_wire_lend(""),
                                      .figures = {.round = round}};

    FL_ADMIN_REPLY(asked, fl_wire_participation_encode, &p);
    ck_assert_int_eq(asked->code, FL_OK);
}

/* The answer has FL_PAGE_PARTS_NEWEST participations, `each` of a round. */
static struct fl_page_snapshot newest_parts(uint64_t newest, unsigned each)
{
    struct fl_page_snapshot s = {.asked_ms = 1};
    struct fl_admin_request *asked = answer(FL_VERB_PARTICIPATIONS);
    unsigned i;

    for (i = 0; i < FL_PAGE_PARTS_NEWEST; i++) {
        add_part(asked, 5000 - i, newest - i / each);
    }
    ck_assert_int_eq(fl_page_snapshot_take(&s, asked, NULL), FL_OK);
    fl_admin_request_free(asked);
    return s;
}

TEST(the_grid_is_of_the_last_twenty_rounds)
{
    struct fl_page_snapshot s = newest_parts(100, 10);

    ck_assert_uint_eq(s.parts.n, FL_PAGE_PARTS_ROUNDS * 10);
    ck_assert_uint_eq(s.parts.parts[0].round, 100);
    ck_assert_ptr_null(s.parts.parts[0].asked);
    ck_assert_str_eq(s.parts.parts[10].asked, "01");
    fl_page_snapshot_done(&s);
}

TEST(a_round_of_which_only_a_part_was_asked_for_is_not_shown_unless_it_is_the_only_one)
{
    struct fl_page_snapshot s = newest_parts(100, 300);

    ck_assert_uint_eq(s.parts.n, 900);
    fl_page_snapshot_done(&s);
    s = newest_parts(100, FL_PAGE_PARTS_NEWEST);
    ck_assert_uint_eq(s.parts.n, FL_PAGE_PARTS_NEWEST);
    fl_page_snapshot_done(&s);
}

TEST(clients_of_several_answers_are_added_up_to_the_limit)
{
    struct fl_page_snapshot s = {.asked_ms = 1};
    unsigned number = 0;

    while (number < FL_PAGE_CLIENTS_MAX + 1000) {
        struct fl_admin_request *asked = answer(FL_VERB_CLIENTS);
        unsigned i;

        for (i = 0; i < 1000; i++) {
            add_client(asked, number++);
        }
        ck_assert_int_eq(fl_page_snapshot_take(&s, asked, NULL), FL_OK);
        fl_admin_request_free(asked);
    }
    ck_assert_uint_eq(s.n_clients, FL_PAGE_CLIENTS_MAX);
    ck_assert_str_eq(s.clients[1999].name, "c01999");
    fl_page_snapshot_done(&s);
}

TEST(an_answer_that_is_cut_is_an_error_and_nothing_leaks)
{
    struct fl_page_snapshot s = {.asked_ms = 1};
    struct fl_admin_request *asked = answer(FL_VERB_STATUS);
    const uint8_t broken[] = {0x0a, 0x7f, 'x'};
    struct fl_buf message;

    fl_buf_init(&message, 16);
    ck_assert_int_eq(fl_buf_add(&message, broken, sizeof(broken)), FL_OK);
    ck_assert_int_eq(fl_admin_reply(asked, &message), FL_OK);
    fl_buf_done(&message);
    ck_assert_int_ne(fl_page_snapshot_take(&s, asked, NULL), FL_OK);
    fl_admin_request_free(asked);
    fl_page_snapshot_done(&s);
}

TEST(the_newest_warnings_and_clients_are_shown_newest_first)
{
    struct fl_page_snapshot s = {.asked_ms = 1};
    struct fl_event_log *log = NULL;
    char text[32];
    int i;

    ck_assert_int_eq(fl_event_log_create(&log), FL_OK);
    for (i = 1; i <= 3 * FL_PAGE_EVENTS; i++) {
        const struct fl_event_line line = {.kind = i % 2 == 0 ? FL_EVENT_CLIENT : FL_EVENT_ROUND,
                                           .warning = i == 3 * FL_PAGE_EVENTS - 1};

        (void)snprintf(text, sizeof(text), "event %d", i);
        fl_event_log_add(log, &line, text);
    }
    ck_assert_int_eq(fl_page_snapshot_events(&s, log), FL_OK);
    ck_assert_uint_eq(s.n_events, FL_PAGE_EVENTS);
    ck_assert_str_eq(s.events[0].text, "event 150");
    ck_assert_str_eq(s.events[1].text, "event 149"); /* of a round, a warning */
    ck_assert_str_eq(s.events[2].text, "event 148");
    ck_assert_str_eq(s.events[3].text, "event 146");
    fl_page_snapshot_done(&s);
    fl_event_log_free(log);
}
