/*
 * What a server wants of a client, what the client tells of its data, and what an error of its work
 * means for the task.
 */

#include <check.h>
#include <string.h>

#include "client/work/data_summary.h"
#include "client/work/fault.h"
#include "client/work/wanted.h"
#include "tests/lib/client_rig.h"
#include "tests/lib/suites.h"

static const struct rig_server plain, mixing = {.solver = "fedmix"};

/* --- tasks and evaluations --- */

TEST(the_newest_task_takes_the_place_of_the_one_before)
{
    struct fl_wire_payload payloads[] = {{.name = fl_wire_lend("model"), .bytes = 8},
                                         {.name = fl_wire_lend("control"), .bytes = 8}};
    struct fl_wire_task first = {.payloads = payloads, .n_payloads = 2, .task.key = {1, 1}};
    struct fl_wire_task second = {.payloads = payloads,
                                  .n_payloads = 1,
                                  .task = {.key = {9, 3},
                                           .counted = {7, 2},
                                           .learning_rate = 0.25,
                                           .seed = 5,
                                           .order_seed = 6,
                                           .deadline_ms = 1000,
                                           .n_selected = 4,
                                           .population = 40}};
    struct fl_wanted wanted = {.task = {.seed = 0}};

    fl_wanted_task(&wanted, &first);
    ck_assert_uint_eq(wanted.listed.n, 2);
    fl_wanted_task(&wanted, &second);
    ck_assert_uint_eq(wanted.task.key.round, 9);
    ck_assert_uint_eq(wanted.task.key.attempt, 3);
    ck_assert_uint_eq(wanted.task.counted.round, 7);
    ck_assert_uint_eq(wanted.task.counted.attempt, 2);
    ck_assert_double_eq(wanted.task.learning_rate, 0.25);
    ck_assert_uint_eq(wanted.task.seed, 5);
    ck_assert_uint_eq(wanted.task.order_seed, 6);
    ck_assert_uint_eq(wanted.task.deadline_ms, 1000);
    ck_assert_uint_eq(wanted.task.n_selected, 4);
    ck_assert_uint_eq(wanted.task.population, 40);
    ck_assert_uint_eq(wanted.listed.n, 1);
    ck_assert_ptr_null(fl_inputs_find(&wanted.listed, "control"));
    fl_wanted_done(&wanted);
}

TEST(an_evaluation_of_a_payload_without_a_possible_name_changes_nothing)
{
    struct fl_wire_evaluate evaluate = {
        .round = 3, .payload = {.name = fl_wire_lend("model"), .bytes = 8}, .learning_rate = 0.5};
    struct fl_wanted wanted = {.task = {.seed = 0}};
    char longest[FL_NAME_MAX + 1];

    ck_assert_int_eq(fl_wanted_evaluate(&wanted, &evaluate), FL_OK);
    (void)memset(longest, 'x', FL_NAME_MAX);
    longest[FL_NAME_MAX] = '\0';
    evaluate = (struct fl_wire_evaluate){
        .round = 4, .payload = {.name = longest, .bytes = 9}, .learning_rate = 0.1};
    ck_assert_int_eq(fl_wanted_evaluate(&wanted, &evaluate), FL_EPROTO);
    ck_assert_uint_eq(wanted.evaluation.round, 3);
    ck_assert_double_eq(wanted.evaluation.rate, 0.5);
    ck_assert_str_eq(wanted.evaluation.payload.name, "model");
    ck_assert_uint_eq(wanted.evaluation.payload.bytes, 8);
}

TEST(only_what_every_other_try_would_give_again_lasts)
{
    static const struct {
        int code;
        enum fl_fault fault;
    } rows[] = {
        {FL_ENUMERIC, FL_FAULT_DIVERGED}, {FL_EPROTO, FL_FAULT_LASTING},
        {FL_ESTATE, FL_FAULT_LASTING},    {FL_ENOMEM, FL_FAULT_PASSING},
        {FL_EIO, FL_FAULT_PASSING},       {FL_ECANCELED, FL_FAULT_PASSING},
        {FL_ECLOSED, FL_FAULT_PASSING},   {FL_ENOSPC, FL_FAULT_PASSING},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_int_eq(fl_fault_of(rows[i].code), rows[i].fault);
    }
}

/* --- summaries --- */

TEST(a_summary_goes_out_in_pieces_that_make_it_up_and_starts_over_in_each_session)
{
    static uint8_t bytes[2 * FL_WIRE_SUMMARY_PIECE + 5];
    static const size_t lens[] = {FL_WIRE_SUMMARY_PIECE, FL_WIRE_SUMMARY_PIECE, 5};
    struct fl_wire_data_summary piece;
    struct fl_data_summary summary = {.sent = 0};
    size_t pass;
    size_t i;

    fl_buf_init(&summary.data, sizeof(bytes));
    ck_assert_int_eq(fl_buf_add(&summary.data, bytes, sizeof(bytes)), FL_OK);
    for (pass = 0; pass < 2; pass++) {
        size_t at = 0;

        for (i = 0; i < 3; i++) {
            ck_assert(fl_data_summary_next(&summary, &piece));
            ck_assert_uint_eq(piece.offset, at);
            ck_assert_uint_eq(piece.total, sizeof(bytes));
            ck_assert_uint_eq(piece.len, lens[i]);
            ck_assert_ptr_eq(piece.data, summary.data.data + at);
            at += piece.len;
        }
        ck_assert(!fl_data_summary_next(&summary, &piece));
        fl_data_summary_rewind(&summary);
    }
    fl_data_summary_done(&summary);
}

TEST(an_empty_summary_is_one_empty_piece)
{
    struct fl_data_summary summary = {.sent = 0};
    struct fl_wire_data_summary piece;

    ck_assert(fl_data_summary_next(&summary, &piece));
    ck_assert_uint_eq(piece.total, 0);
    ck_assert_uint_eq(piece.len, 0);
    ck_assert_ptr_null(piece.data);
    ck_assert(!fl_data_summary_next(&summary, &piece));
}

TEST(who_cannot_summary_takes_part_with_an_empty_summary_and_says_so)
{
    struct fl_data_summary summary;
    struct rig r;

    client_rig_init(&r, &plain, false); /* This solver has no summary. */
    ck_assert_int_eq(fl_data_summary_make(&r.worker, &summary, &r.err), FL_OK);
    ck_assert_uint_eq(summary.data.len, 0);
    ck_assert_ptr_nonnull(strstr(r.lines, "no data summary is sent, taking part without one: "));
    fl_data_summary_done(&summary);
    rig_done(&r);
}

TEST(nothing_is_told_of_the_data_unless_the_operator_allows_it)
{
    static const struct {
        const struct rig_server *server;
        bool wants, allowed;
        int code;
    } rows[] = {
        {&plain, false, false, FL_OK},     {&plain, true, false, FL_EPERM},
        {&mixing, false, false, FL_EPERM}, {&mixing, true, false, FL_EPERM},
        {&plain, true, true, FL_OK},       {&mixing, true, true, FL_OK},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;

        client_rig_init(&r, rows[i].server, false);
        r.worker.terms = (struct fl_worker_terms){.summaries = rows[i].allowed, .least_group = 2};
        r.err.msg[0] = '\0';
        ck_assert_int_eq(fl_data_summary_check(&r.worker, rows[i].wants, &r.err), rows[i].code);
        ck_assert((strstr(r.err.msg, "does not allow that ('summaries: yes')") != NULL) ==
                  (rows[i].code == FL_EPERM));
        rig_done(&r);
    }
}
