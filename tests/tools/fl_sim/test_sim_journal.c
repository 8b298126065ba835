/* What a run writes down of its arithmetic: rules of tools/fl_sim/engine/journal.h. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/folder.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/engine/journal.h"

#define N_UNITS 3

struct rig {
    char dir[FOLDER_PATH], path[FOLDER_PATH + 16];
    struct fl_journal *journal;
    struct fl_err err;
};

static const float divergence[N_UNITS] = {0.5F, -0.0F, 1e-38F};
static const struct fl_unit_norm norms[N_UNITS] = {{1, -0.0F, 3}, {-1, 0, 0}, {0, 1e-38F, 2}};

static void rig_init(struct rig *rig)
{
    *rig = (struct rig){.journal = NULL};
    ck_assert(folder_make("fl-journal", rig->dir));
    (void)snprintf(rig->path, sizeof(rig->path), "%s/journal", rig->dir);
}

static void rig_done(struct rig *rig)
{
    fl_journal_close(rig->journal);
    folder_remove(rig->dir);
}

static void reopen(struct rig *rig, uint64_t committed)
{
    fl_journal_close(rig->journal);
    rig->journal = NULL;
    ck_assert_msg(fl_journal_open(rig->path, committed, &rig->journal, &rig->err) == FL_OK, "%s",
                  rig->err.msg);
}

/* The result of a training with all that a job may have, which no job has at once. */
static struct fl_job_answer answer_of(uint64_t round)
{
    struct fl_job_answer answer = {
        .code = FL_ENUMERIC,
        .why = "it diverged",
        .event = {.type = FL_WIRE_REPORT},
        .bytes = 1234,
        .norms = {.rms = {0.5, 0.0, 0.25}, .unit = malloc(sizeof(norms))},
        .n_units = N_UNITS};
    struct fl_wire_report *report = &answer.event.u.report;

    *report = (struct fl_wire_report){.round = round,
                                      .attempt = 1,
                                      .samples = 40 + round,
                                      .steps = 3,
                                      .train_loss = 0.1 * (double)round,
                                      .previous_dot = -2,
                                      .has_trained = true,
                                      .trained = {8, 7, 0.25},
                                      .has_kept = true,
                                      .kept_round = round - 1,
                                      .divergence = malloc(sizeof(divergence)),
                                      .n_divergence = N_UNITS};
    ck_assert_ptr_nonnull(answer.norms.unit);
    ck_assert_ptr_nonnull(report->divergence);
    (void)memcpy(report->divergence, divergence, sizeof(divergence));
    (void)memcpy(answer.norms.unit, norms, sizeof(norms));
    return answer;
}

/* A training, an aggregation, an evaluation and the commit. */
static void put_round(struct rig *rig, uint64_t round)
{
    static double distance[2] = {3, 0.125};
    static double left[2] = {1, 0.5};
    static const struct fl_journal_evaluated evaluation = {{0.875, 0.5, "macro_f1=0.75"}, 0.25};
    struct fl_job_answer answer = answer_of(round);
    struct fl_event event = {.type = FL_EV_AGGREGATED};

    event.u.aggregated.effective = 1.5;
    event.u.aggregated.self_weight = 0.75;
    event.u.aggregated.collection_bytes = 99;
    event.u.aggregated.distance = round % 2 == 1 ? distance : NULL;
    event.u.aggregated.influence = 1.25;
    event.u.aggregated.left = left;
    event.u.aggregated.robust_clients = "edge-3 0 12.5";
    ck_assert_int_eq(
        fl_journal_put(rig->journal, FL_JOB_TRAIN, 5, (struct fl_round_key){round, 1}, &answer),
        FL_OK);
    ck_assert_int_eq(fl_journal_put_aggregated(rig->journal, &event, 2), FL_OK);
    ck_assert_int_eq(fl_journal_put_evaluated(rig->journal, &evaluation), FL_OK);
    ck_assert_int_eq(fl_journal_put_commit(rig->journal, round, &rig->err), FL_OK);
    fl_job_answer_done(&answer);
}

static int take_training(struct rig *rig, uint64_t round, struct fl_job_answer *ret)
{
    *ret = (struct fl_job_answer){.code = FL_OK};
    return fl_journal_take(rig->journal, FL_JOB_TRAIN, 5, (struct fl_round_key){round, 1}, ret,
                           &rig->err);
}

static void take_round(struct rig *rig, uint64_t round)
{
    struct fl_job_answer wanted = answer_of(round);
    struct fl_job_answer answer;
    const struct fl_wire_report *report = &answer.event.u.report;
    struct fl_event event = {.type = FL_EV_AGGREGATED};
    double *numbers = NULL;
    struct fl_journal_evaluated evaluated = {0};

    ck_assert(fl_journal_replays(rig->journal));
    ck_assert_msg(take_training(rig, round, &answer) == FL_OK, "%s", rig->err.msg);
    ck_assert_int_eq(answer.code, wanted.code);
    ck_assert_str_eq(answer.why, wanted.why);
    ck_assert_int_eq(answer.event.type, FL_WIRE_REPORT);
    ck_assert_uint_eq(report->samples, wanted.event.u.report.samples);
    ck_assert_uint_eq(report->steps, wanted.event.u.report.steps);
    ck_assert_double_eq(report->train_loss, wanted.event.u.report.train_loss);
    ck_assert_double_eq(report->previous_dot, wanted.event.u.report.previous_dot);
    ck_assert(report->has_trained && !report->has_received);
    ck_assert_uint_eq(report->trained.correct, 7);
    ck_assert(report->has_kept);
    ck_assert_uint_eq(report->kept_round, round - 1);
    ck_assert_uint_eq(report->n_divergence, N_UNITS);
    ck_assert_mem_eq(report->divergence, divergence, sizeof(divergence));
    ck_assert_uint_eq(answer.bytes, 1234);
    ck_assert_uint_eq(answer.n_units, N_UNITS);
    ck_assert_mem_eq(answer.norms.unit, norms, sizeof(norms));
    ck_assert_double_eq(answer.norms.rms[2], 0.25);
    ck_assert_int_eq(fl_journal_take_aggregated(rig->journal, &event, &numbers, &rig->err), FL_OK);
    ck_assert_double_eq(event.u.aggregated.effective, 1.5);
    ck_assert_double_eq(event.u.aggregated.self_weight, 0.75);
    ck_assert_uint_eq(event.u.aggregated.collection_bytes, 99);
    ck_assert_str_eq(event.u.aggregated.robust_clients, "edge-3 0 12.5");
    ck_assert_double_eq(event.u.aggregated.influence, 1.25);
    ck_assert_double_eq(event.u.aggregated.left[0], 1);
    ck_assert_double_eq(event.u.aggregated.left[1], 0.5);
    if (round % 2 == 1) {
        ck_assert_double_eq(event.u.aggregated.distance[0], 3);
        ck_assert_double_eq(event.u.aggregated.distance[1], 0.125);
    } else {
        ck_assert_ptr_null(event.u.aggregated.distance);
    }
    ck_assert_int_eq(fl_journal_take_evaluated(rig->journal, &evaluated, &rig->err), FL_OK);
    ck_assert_double_eq(evaluated.found.accuracy, 0.875);
    ck_assert_double_eq(evaluated.found.loss, 0.5);
    ck_assert_double_eq(evaluated.backdoor_success, 0.25);
    ck_assert_str_eq(evaluated.found.metrics, "macro_f1=0.75");
    ck_assert_int_eq(fl_journal_take_commit(rig->journal, round, &rig->err), FL_OK);
    free(numbers);
    fl_job_answer_done(&answer);
    fl_job_answer_done(&wanted);
}

TEST(what_was_written_is_taken_bit_for_bit_and_then_it_is_written_on)
{
    struct rig rig;

    rig_init(&rig);
    reopen(&rig, 0);
    ck_assert(!fl_journal_replays(rig.journal));
    put_round(&rig, 1);
    put_round(&rig, 2);
    reopen(&rig, 2);
    take_round(&rig, 1);
    take_round(&rig, 2);
    ck_assert(!fl_journal_replays(rig.journal));
    put_round(&rig, 3);
    reopen(&rig, 3);
    take_round(&rig, 1);
    take_round(&rig, 2);
    take_round(&rig, 3);
    rig_done(&rig);
}

static off_t size_of(const struct rig *rig)
{
    struct stat st;

    ck_assert_int_eq(stat(rig->path, &st), 0);
    return st.st_size;
}

TEST(what_is_behind_the_last_committed_round_is_cut_off_and_written_anew)
{
    struct rig rig;
    off_t first;

    rig_init(&rig);
    reopen(&rig, 0);
    put_round(&rig, 1);
    first = size_of(&rig);
    put_round(&rig, 2); /* of which the folder beside it knows nothing */
    reopen(&rig, 1);
    ck_assert_int_eq(size_of(&rig), first);
    take_round(&rig, 1);
    ck_assert(!fl_journal_replays(rig.journal));
    put_round(&rig, 2);
    reopen(&rig, 2);
    take_round(&rig, 1);
    take_round(&rig, 2);
    rig_done(&rig);
}

TEST(a_record_that_is_cut_short_anywhere_counts_as_none)
{
    struct rig rig;
    off_t first;
    off_t both;
    off_t at;

    rig_init(&rig);
    reopen(&rig, 0);
    put_round(&rig, 1);
    first = size_of(&rig);
    put_round(&rig, 2);
    both = size_of(&rig);
    for (at = both - 1; at >= first; at--) {
        ck_assert_int_eq(truncate(rig.path, at), 0);
        fl_journal_close(rig.journal);
        rig.journal = NULL;
        ck_assert_int_eq(fl_journal_open(rig.path, 2, &rig.journal, &rig.err), FL_ESTATE);
        ck_assert_ptr_nonnull(strstr(rig.err.msg, "ends before round 2"));
    }
    reopen(&rig, 1);
    take_round(&rig, 1);
    ck_assert(!fl_journal_replays(rig.journal));
    rig_done(&rig);
}

TEST(an_answer_that_is_cut_or_longer_is_refused)
{
    struct fl_job_answer answer = answer_of(3);
    struct fl_job_answer read = {.code = FL_OK};
    struct fl_buf bytes;
    size_t n;

    fl_buf_init(&bytes, SIZE_MAX / 2);
    ck_assert_int_eq(fl_job_answer_encode(&answer, &bytes), FL_OK);
    for (n = 0; n < bytes.len; n++) {
        ck_assert_int_ne(fl_job_answer_decode(bytes.data, n, &read, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_job_answer_decode(bytes.data, bytes.len, &read, NULL), FL_OK);
    fl_job_answer_done(&read);
    ck_assert_int_eq(fl_buf_add(&bytes, "", 1), FL_OK);
    ck_assert_int_eq(fl_job_answer_decode(bytes.data, bytes.len, &read, NULL), FL_EFORMAT);
    fl_buf_done(&bytes);
    fl_job_answer_done(&answer);
}

TEST(a_byte_that_changed_ends_it_where_it_stands)
{
    struct rig rig;
    FILE *file;
    off_t size;
    off_t at;

    rig_init(&rig);
    reopen(&rig, 0);
    put_round(&rig, 1);
    size = size_of(&rig);
    fl_journal_close(rig.journal);
    rig.journal = NULL;
    for (at = 0; at < size; at++) {
        int byte;

        file = fopen(rig.path, "r+be");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(fseeko(file, at, SEEK_SET), 0);
        byte = fgetc(file);
        ck_assert_int_eq(fseeko(file, at, SEEK_SET), 0);
        ck_assert_int_eq(fputc(byte ^ 0x40, file), byte ^ 0x40);
        ck_assert_int_eq(fclose(file), 0);
        ck_assert_int_eq(fl_journal_open(rig.path, 1, &rig.journal, &rig.err),
                         at < 4096 ? FL_EFORMAT : FL_ESTATE);
        file = fopen(rig.path, "r+be");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(fseeko(file, at, SEEK_SET), 0);
        ck_assert_int_eq(fputc(byte, file), byte);
        ck_assert_int_eq(fclose(file), 0);
    }
    reopen(&rig, 1);
    take_round(&rig, 1);
    rig_done(&rig);
}

TEST(what_comes_in_another_order_or_from_another_client_is_refused)
{
    struct fl_job_answer answer = {.code = FL_OK};
    const struct fl_round_key other = {1, 2};
    const struct fl_round_key first = {1, 1};
    struct fl_journal_evaluated evaluated;
    struct rig rig;

    rig_init(&rig);
    reopen(&rig, 0);
    put_round(&rig, 1);
    reopen(&rig, 1);
    ck_assert_int_eq(fl_journal_take_evaluated(rig.journal, &evaluated, &rig.err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(rig.err.msg, "remove the trial's folder"));
    reopen(&rig, 1);
    ck_assert_int_eq(fl_journal_take(rig.journal, FL_JOB_TRAIN, 6, first, &answer, &rig.err),
                     FL_ESTATE);
    reopen(&rig, 1);
    ck_assert_int_eq(fl_journal_take(rig.journal, FL_JOB_CODE, 5, first, &answer, &rig.err),
                     FL_ESTATE);
    reopen(&rig, 1);
    ck_assert_int_eq(fl_journal_take(rig.journal, FL_JOB_TRAIN, 5, other, &answer, &rig.err),
                     FL_ESTATE);
    rig_done(&rig);
}

TEST(a_journal_that_is_missing_or_is_none_says_what_to_do)
{
    struct rig rig;
    FILE *file;

    rig_init(&rig);
    ck_assert_int_eq(fl_journal_open(rig.path, 4, &rig.journal, &rig.err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(rig.err.msg, "has committed 4 rounds: remove the trial's folder"));
    file = fopen(rig.path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("not a journal at all", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(fl_journal_open(rig.path, 4, &rig.journal, &rig.err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(rig.err.msg, "is not a journal of fl-sim"));
    rig_done(&rig);
}
