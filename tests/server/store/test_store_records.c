/* What rounds and clients have beside the records of test_store.c, and the file of a start that was
 * killed. */

#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/figures/share.h"
#include "server/store/generation.h"
#include "server/store/store_rollback.h"
#include "tests/lib/suites.h"
#include "tests/server/store/store_fixture.h"

static int put_selection(struct fl_store *store, uint64_t round, uint32_t attempt,
                         const struct fl_participant_rec *parts, size_t n, struct fl_err *err)
{
    const struct fl_selection selection = {
        .round = round,
        .attempt = attempt,
        .parts = parts,
        .n_parts = n,
        .size = {.selected = 1, .population = 7, .members = 9, .capped = 2}};

    return fl_store_put_selection(store, &selection, err);
}

static void put_client(struct fl_store *s, uint32_t id, uint64_t counted)
{
    struct fl_client_rec c = {.id = id,
                              .samples = 5,
                              .counted_round = counted,
                              .counted_attempt = (uint32_t)counted + 1,
                              .counted_update = counted % 2 == 1};
    struct fl_err err = {0};

    (void)snprintf(c.name, sizeof(c.name), "edge-%02u", id);
    ck_assert_msg(fl_store_put_clients(s, &c, 1, &err) == FL_OK, "%s", err.msg);
}

static struct fl_round_rec round_rec(uint64_t round, double personal)
{
    return (struct fl_round_rec){.round = round,
                                 .attempt = 1,
                                 .accuracy = -1.0,
                                 .personal_accuracy = personal,
                                 .personal_mean = personal - 0.125,
                                 .received_accuracy = personal - 0.25,
                                 .received_mean = personal - 0.375,
                                 .n_personal = 7,
                                 .effective = personal > 0.0 ? 3.5 : 0.0,
                                 .self_weight = 0.25,
                                 .n_capped = 2,
                                 .norm_ratio = 2.5,
                                 .n_left_out = 1};
}

static void commit(struct fl_store *s, const struct fl_round_rec *r)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_store_commit(s, r, NULL, 0, NULL, &err) == FL_OK, "%s", err.msg);
}

static int one_round(void *ctx, const struct fl_round_rec *r)
{
    *(struct fl_round_rec *)ctx = *r;
    return FL_OK;
}

TEST_CASE("records", store_setup, store_teardown);

TEST(what_counted_a_client_comes_back)
{
    struct fl_store *s = store_open();
    struct fl_coord_resume r;

    put_client(s, 0, 6);
    put_client(s, 1, 3);
    put_client(s, 1, 7);
    fl_store_close(s);
    s = store_open();
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.clients[0].counted_round, 6);
    ck_assert_uint_eq(r.clients[0].counted_attempt, 7);
    ck_assert(!r.clients[0].counted_update);
    ck_assert_uint_eq(r.clients[1].counted_round, 7);
    ck_assert_uint_eq(r.clients[1].counted_attempt, 8);
    ck_assert(r.clients[1].counted_update);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(going_back_uncounts_the_rounds_that_are_run_again)
{
    struct fl_store *s = store_open();
    struct fl_round_rec one = round_rec(1, 0.5);
    struct fl_round_rec two = round_rec(2, 0.5);
    struct fl_coord_resume r;

    put_client(s, 0, 1);
    put_client(s, 1, 2);
    commit(s, &one);
    commit(s, &two);
    ck_assert_int_eq(fl_store_rewind(s, 1, &(struct fl_rewind){.reason = "damage"}, NULL), FL_OK);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.clients[0].counted_round, 1);
    ck_assert(r.clients[0].counted_update);
    ck_assert_uint_eq(r.clients[1].counted_round, 0);
    ck_assert_uint_eq(r.clients[1].counted_attempt, 0);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

/* --- participations --- */

/* A round of edge-00 (accepted), edge-01 (lost) and edge-02 (accepted). */
static void commit_taken(struct fl_store *s, uint64_t round)
{
    uint8_t units[64] = {1, 0, 1};
    const struct fl_participant_rec parts[] = {
        {.client = 0,
         .state = FL_PARTICIPANT_ACCEPTED,
         .samples = 5,
         .steps = 2,
         .train_loss = 0.5,
         .units = units,
         .upload_bytes = 100,
         .download_bytes = 200},
        {.client = 1,
         .state = FL_PARTICIPANT_LOST,
         .upload_bytes = 70,
         .download_bytes = 200,
         .remark = "timed out"},
        {.client = 2, .state = FL_PARTICIPANT_ACCEPTED, .units = units, .upload_bytes = 100}};
    const double mixing[] = {0.75, 0.25, 0.5, 0.5};
    struct fl_client_rec clients[3] = {{.id = 0}, {.id = 1}, {.id = 2}};
    const struct fl_participations taken = {.parts = parts,
                                            .n = 3,
                                            .clients = clients,
                                            .attempt = 1,
                                            .mixing = mixing,
                                            .n_mixing = 2,
                                            .attention = mixing,
                                            .n_attention = 2};
    struct fl_round_rec r = round_rec(round, 0.5);
    struct fl_err err = {0};
    unsigned i;

    for (i = 0; i < 3; i++) {
        (void)snprintf(clients[i].name, sizeof(clients[i].name), "edge-%02u", i);
    }
    ck_assert_msg(fl_store_commit(s, &r, clients, 3, &taken, &err) == FL_OK, "%s", err.msg);
}

struct seen_parts {
    char text[1024]; /* "2:edge-00:accepted …" */
    struct fl_participation last;
    float mixing[2];
    char asked[8], remark[32], aborted[32], metrics[64];
    size_t n;
};

static int see_part(void *ctx, const struct fl_participation *p)
{
    struct seen_parts *seen = ctx;
    size_t used = strlen(seen->text);

    if (seen->n < 12) {
        (void)snprintf(seen->text + used, sizeof(seen->text) - used, "%s%d:%s:%s",
                       used > 0 ? " " : "", (int)p->figures.round, p->client,
                       fl_part_state_name(p->state));
    }
    seen->last = *p;
    (void)memcpy(seen->mixing, p->mixing != NULL ? p->mixing : seen->mixing,
                 p->mixing_len < sizeof(seen->mixing) ? p->mixing_len : sizeof(seen->mixing));
    (void)snprintf(seen->asked, sizeof(seen->asked), "%.3s", p->asked);
    (void)snprintf(seen->remark, sizeof(seen->remark), "%s", p->remark);
    (void)snprintf(seen->aborted, sizeof(seen->aborted), "%s", p->aborted);
    (void)snprintf(seen->metrics, sizeof(seen->metrics), "%s", p->metrics);
    seen->n++;
    return FL_OK;
}

static struct seen_parts look(struct fl_store *s, const struct fl_participation_query *query)
{
    struct seen_parts seen = {.n = 0};
    struct fl_err err = {0};

    ck_assert_msg(fl_store_participations(s, query, see_part, &seen, &err) == FL_OK, "%s", err.msg);
    return seen;
}

TEST(who_took_part_is_found_again_by_round_and_by_client_after_a_restart)
{
    struct fl_store *s = store_open();
    struct fl_participation_query by_client = {.client = "edge-01", .most = 9};
    struct seen_parts seen;

    commit_taken(s, 1);
    commit_taken(s, 2);
    fl_store_close(s);
    s = store_open();
    seen = look(s, &(struct fl_participation_query){.most = 9});
    ck_assert_str_eq(seen.text, "2:edge-00:accepted 2:edge-01:lost 2:edge-02:accepted "
                                "1:edge-00:accepted 1:edge-01:lost 1:edge-02:accepted");
    seen = look(s, &(struct fl_participation_query){.round = 1, .most = 1});
    ck_assert_str_eq(seen.text, "1:edge-00:accepted");
    ck_assert_uint_eq(seen.last.figures.uplink_bytes, 100);
    ck_assert_uint_eq(seen.last.figures.downlink_bytes, 200);
    ck_assert_double_eq(seen.last.figures.train_loss, 0.5);
    ck_assert_double_eq(seen.last.figures.attention, 0.75);
    ck_assert_str_eq(seen.asked, "101");
    ck_assert_uint_eq(seen.last.mixing_len, 2 * sizeof(float));
    ck_assert(seen.mixing[0] > 0.7F && seen.mixing[1] < 0.3F);
    seen = look(s, &(struct fl_participation_query){
                       .round = 1, .before = seen.last.id, .most = 1}); /* The next page. */
    ck_assert_str_eq(seen.text, "1:edge-01:lost");
    ck_assert_uint_eq(seen.last.figures.uplink_bytes, 0); /* What it sent was not accepted. */
    ck_assert_str_eq(seen.remark, "timed out");
    ck_assert_uint_eq(seen.last.mixing_len, 0);
    ck_assert_double_eq(seen.last.figures.attention, 0);
    seen = look(s, &by_client);
    ck_assert_str_eq(seen.text, "2:edge-01:lost 1:edge-01:lost");
    fl_store_close(s);
}

/* Of edge-02 and edge-09; the first one took part. */
static void commit_evaluated(struct fl_store *s, uint64_t round)
{
    const struct fl_participant_rec parts[] = {{.client = 1, .state = FL_PARTICIPANT_LOST},
                                               {.client = 2, .state = FL_PARTICIPANT_ACCEPTED}};
    const struct fl_client_rec clients[] = {{.id = 1, .name = "edge-01"},
                                            {.id = 2, .name = "edge-02"}};
    const struct fl_client_eval evals[] = {{.client = 2,
                                            .name = "edge-02",
                                            .samples = 10,
                                            .received_accuracy = 0.5,
                                            .received_loss = 1.5,
                                            .received_metrics = "f1=0.25 auc=0.75",
                                            .personal_accuracy = 0.75,
                                            .personal_metrics = "f1=0.5"},
                                           {.client = 9,
                                            .name = "edge-09",
                                            .samples = 20,
                                            .received_accuracy = FL_SHARE_NONE,
                                            .received_loss = 2.5,
                                            .personal_accuracy = FL_SHARE_UNKNOWN}};
    const struct fl_participations taken = {
        .parts = parts, .n = 2, .clients = clients, .evals = evals, .n_evals = 2, .attempt = 1};
    struct fl_round_rec r = round_rec(round, 0.5);
    struct fl_err err = {0};

    ck_assert_msg(fl_store_commit(s, &r, clients, 2, &taken, &err) == FL_OK, "%s", err.msg);
}

TEST(the_evaluations_of_each_client_are_kept_with_its_participation_or_alone)
{
    struct fl_store *s = store_open();
    struct seen_parts seen;

    commit_evaluated(s, 1);
    fl_store_close(s);
    s = store_open();
    seen = look(s, &(struct fl_participation_query){.round = 1, .most = 9});
    ck_assert_str_eq(seen.text, "1:edge-01:lost 1:edge-02:accepted 1:edge-09:evaluated");
    ck_assert_uint_eq(seen.last.figures.evaluation_samples, 20);
    ck_assert_double_eq(seen.last.figures.received_accuracy, FL_SHARE_NONE);
    ck_assert_double_eq(seen.last.figures.received_loss, 2.5);
    ck_assert_double_eq(seen.last.figures.personal_accuracy, FL_SHARE_UNKNOWN);
    ck_assert_str_eq(seen.metrics, "");
    seen = look(s, &(struct fl_participation_query){.round = 1, .most = 9, .selected = true});
    ck_assert_str_eq(seen.text, "1:edge-01:lost 1:edge-02:accepted");
    seen = look(s, &(struct fl_participation_query){.client = "edge-02", .most = 9});
    ck_assert_double_eq(seen.last.figures.received_accuracy, 0.5);
    ck_assert_double_eq(seen.last.figures.received_loss, 1.5);
    ck_assert_double_eq(seen.last.figures.personal_accuracy, 0.75);
    ck_assert_str_eq(seen.metrics, "received/f1=0.25 received/auc=0.75 personal/f1=0.5");
    seen = look(s, &(struct fl_participation_query){.client = "edge-01", .most = 9});
    ck_assert_double_eq(seen.last.figures.received_accuracy, FL_SHARE_UNKNOWN);
    ck_assert_uint_eq(seen.last.figures.evaluation_samples, 0);
    fl_store_close(s);
}

/* Many clients that evaluate do not push out who took part. */
TEST(of_clients_that_only_evaluated_only_the_newest_are_kept)
{
    enum { CROWD = FL_PARTICIPATIONS_EVALUATED - 1 };
    struct fl_client_eval *evals = calloc(CROWD, sizeof(*evals));
    const struct fl_participations taken = {.evals = evals, .n_evals = CROWD, .attempt = 1};
    struct fl_store *s = store_open();
    struct seen_parts seen;
    uint64_t round;
    uint32_t i;

    ck_assert(evals != NULL);
    for (i = 0; i < CROWD; i++) {
        evals[i] = (struct fl_client_eval){.client = i, .name = "many", .samples = 1};
    }
    commit_evaluated(s, 1);
    for (round = 2; round <= 3; round++) {
        struct fl_round_rec r = round_rec(round, 0.5);

        ck_assert_int_eq(fl_store_commit(s, &r, NULL, 0, &taken, NULL), FL_OK);
    }
    ck_assert_uint_eq(look(s, &(struct fl_participation_query){.round = 3, .most = UINT32_MAX}).n,
                      CROWD);
    ck_assert_uint_eq(look(s, &(struct fl_participation_query){.round = 2, .most = UINT32_MAX}).n,
                      FL_PARTICIPATIONS_EVALUATED - CROWD);
    seen = look(s, &(struct fl_participation_query){.round = 1, .most = 9});
    ck_assert_str_eq(seen.text, "1:edge-01:lost 1:edge-02:accepted");
    fl_store_close(s);
    free(evals);
}

static void end_attempt(struct fl_store *s, uint64_t round, uint32_t attempt)
{
    const struct fl_participant_rec part = {
        .client = 0, .state = FL_PARTICIPANT_LOST, .remark = "timed out"};
    const struct fl_client_rec client = {.id = 0, .name = "edge-00"};
    const struct fl_participations ended = {.parts = &part,
                                            .n = 1,
                                            .clients = &client,
                                            .attempt = attempt,
                                            .aborted = "too few reports"};
    const struct fl_selection next = {.round = round, .attempt = attempt + 1, .ended = &ended};
    struct fl_err err = {0};

    ck_assert_msg(fl_store_put_selection(s, &next, &err) == FL_OK, "%s", err.msg);
}

TEST(an_aborted_attempt_keeps_who_was_asked_and_why_it_ended)
{
    struct fl_store *s = store_open();
    struct seen_parts seen;
    uint32_t attempt;

    commit_taken(s, 1);
    end_attempt(s, 2, 1);
    seen = look(s, &(struct fl_participation_query){.round = 2, .most = 9});
    ck_assert_str_eq(seen.text, "2:edge-00:lost");
    ck_assert_uint_eq(seen.last.figures.attempt, 1);
    ck_assert_str_eq(seen.remark, "timed out");
    ck_assert_str_eq(seen.aborted, "too few reports");
    /* A round that fails for days leaves those of others, and of its own only the newest. */
    for (attempt = 2; attempt <= 3 * FL_PARTICIPATIONS_ABORTED; attempt++) {
        end_attempt(s, 2, attempt);
    }
    seen = look(s, &(struct fl_participation_query){.round = 2, .most = 99});
    ck_assert_uint_eq(seen.n, FL_PARTICIPATIONS_ABORTED);
    ck_assert_uint_eq(seen.last.figures.attempt, 2 * FL_PARTICIPATIONS_ABORTED + 1);
    commit_taken(s, 2);
    seen = look(s, &(struct fl_participation_query){.round = 2, .most = 1});
    ck_assert_str_eq(seen.aborted, "");
    ck_assert_uint_eq(look(s, &(struct fl_participation_query){.round = 1, .most = 99}).n, 3);
    fl_store_close(s);
}

TEST(a_rollback_removes_the_participations_of_the_abandoned_rounds)
{
    struct fl_store *s = store_open();

    commit_taken(s, 1);
    commit_taken(s, 2);
    ck_assert_int_eq(fl_store_rewind(s, 1, &(struct fl_rewind){.reason = "damage"}, NULL), FL_OK);
    ck_assert_str_eq(look(s, &(struct fl_participation_query){.most = 9}).text,
                     "1:edge-00:accepted 1:edge-01:lost 1:edge-02:accepted");
    fl_store_close(s);
}

TEST(only_the_newest_participations_are_kept)
{
    enum { CROWD = FL_PARTICIPATIONS_MAX / 2 + 1 };
    struct fl_participant_rec *parts = calloc(CROWD, sizeof(*parts));
    struct fl_client_rec *clients = calloc(CROWD, sizeof(*clients));
    const struct fl_participations taken = {
        .parts = parts, .n = CROWD, .clients = clients, .attempt = 1};
    struct fl_store *s = store_open();
    struct seen_parts seen;
    uint64_t round;
    uint32_t i;

    ck_assert(parts != NULL && clients != NULL);
    for (i = 0; i < CROWD; i++) {
        parts[i] =
            (struct fl_participant_rec){.client = i, .state = FL_PARTICIPANT_LOST, .remark = "x"};
        clients[i].id = i;
        (void)snprintf(clients[i].name, sizeof(clients[i].name), "c%05u", i);
    }
    for (round = 1; round <= 2; round++) {
        struct fl_round_rec r = round_rec(round, 0.5);

        ck_assert_int_eq(fl_store_commit(s, &r, clients, CROWD, &taken, NULL), FL_OK);
    }
    seen = look(s, &(struct fl_participation_query){.most = UINT32_MAX});
    ck_assert_uint_eq(seen.n, FL_PARTICIPATIONS_MAX);
    /* Of round 1 the last ones by name are gone. */
    ck_assert_uint_eq(seen.last.figures.round, 1);
    ck_assert_uint_eq(look(s, &(struct fl_participation_query){.round = 2, .most = UINT32_MAX}).n,
                      CROWD);
    fl_store_close(s);
    free(parts);
    free(clients);
}

TEST(a_part_keeps_what_the_client_measured)
{
    struct fl_store *s = store_open();
    struct fl_participant_rec part = {.client = 0,
                                      .state = FL_PARTICIPANT_REPORTED,
                                      .samples = 5,
                                      .previous_dot = -0.625,
                                      .rms = {3.4e38, 0.5, 0, 0, 2},
                                      .received = {10, 4, 12.5},
                                      .trained = {11, 9, (double)NAN}};
    struct fl_coord_resume r;

    put_client(s, 0, 0);
    ck_assert_int_eq(put_selection(s, 1, 1, &part, 1, NULL), FL_OK);
    part.trained.correct = 10;
    part.state = FL_PARTICIPANT_EMPTY;
    ck_assert_int_eq(fl_store_put_update(s, 1, 1, &part, NULL), FL_OK);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.n_parts, 1);
    ck_assert_uint_eq(r.size.selected, 1);
    ck_assert_uint_eq(r.size.population, 7);
    ck_assert_uint_eq(r.size.members, 9);
    ck_assert_uint_eq(r.size.capped, 2);
    ck_assert_double_eq(r.parts[0].previous_dot, -0.625);
    ck_assert_mem_eq(r.parts[0].rms, part.rms, sizeof(part.rms));
    ck_assert_uint_eq(r.parts[0].received.samples, 10);
    ck_assert_uint_eq(r.parts[0].received.correct, 4);
    ck_assert_double_eq(r.parts[0].received.loss_sum, 12.5);
    ck_assert_uint_eq(r.parts[0].trained.samples, 11);
    ck_assert_uint_eq(r.parts[0].trained.correct, 10);
    ck_assert(isnan(r.parts[0].trained.loss_sum));
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(a_round_keeps_the_figures_of_personal_models)
{
    struct fl_store *s = store_open();
    struct fl_round_rec known = round_rec(1, 0.75);
    struct fl_round_rec unknown = round_rec(2, -1.0);
    struct fl_round_rec got = {0};

    ck_assert_int_eq(fl_store_totals(s, &got, NULL), FL_OK);
    ck_assert_double_eq(got.personal_accuracy, -1.0);
    ck_assert_double_eq(got.received_accuracy, -1.0);
    commit(s, &known);
    ck_assert_int_eq(fl_store_rounds(s, 0, one_round, &got, NULL), FL_OK);
    ck_assert_double_eq(got.personal_accuracy, 0.75);
    ck_assert_double_eq(got.personal_mean, 0.625);
    ck_assert_double_eq(got.received_accuracy, 0.5);
    ck_assert_double_eq(got.received_mean, 0.375);
    ck_assert_uint_eq(got.n_personal, 7);
    ck_assert_double_eq(got.effective, 3.5);
    ck_assert_double_eq(got.self_weight, 0.25);
    ck_assert_uint_eq(got.n_capped, 2);
    ck_assert_double_eq(got.norm_ratio, 2.5);
    ck_assert_uint_eq(got.n_left_out, 1);
    /* The totals keep the newest that is known. */
    commit(s, &unknown);
    ck_assert_int_eq(fl_store_totals(s, &got, NULL), FL_OK);
    ck_assert_uint_eq(got.round, 2);
    ck_assert_double_eq(got.personal_accuracy, 0.75);
    ck_assert_double_eq(got.personal_mean, 0.625);
    ck_assert_double_eq(got.received_mean, 0.375);
    ck_assert_uint_eq(got.n_personal, 7);
    ck_assert_double_eq(got.effective, 3.5);
    fl_store_close(s);
}

/* Each member of a record has a value of its own. */
#define FILL(type, member, ...) rec.member = (FL_FIGURE_C_##type)value++;
#define SAME(type, member, ...) \
    ck_assert_msg(want->member == got->member, "%s came back as another", #member);

static struct fl_round_rec filled_round(uint64_t round)
{
    struct fl_round_rec rec;
    unsigned value = 1;

    FL_ROUND_FIGURES(FILL)
    rec.round = round;
    return rec;
}

static int same_round(void *ctx, const struct fl_round_rec *got)
{
    const struct fl_round_rec *want = ctx;

    FL_ROUND_FIGURES(SAME)
    return FL_OK;
}

static int same_abandoned(void *ctx, const struct fl_abandoned_round *got)
{
    return same_round(ctx, &got->round);
}

TEST(every_figure_of_a_round_comes_back)
{
    struct fl_store *s = store_open();
    struct fl_round_rec one = filled_round(1);
    struct fl_round_rec two = filled_round(2);
    struct fl_round_rec got = {0};

    commit(s, &one);
    commit(s, &two);
    ck_assert_int_eq(fl_store_round(s, 2, &got, NULL), FL_OK);
    (void)same_round(&two, &got);
    ck_assert_int_eq(fl_store_rounds(s, 1, same_round, &two, NULL), FL_OK);
    ck_assert_int_eq(fl_store_rewind(s, 1, &(struct fl_rewind){.reason = "damage"}, NULL), FL_OK);
    ck_assert_int_eq(fl_store_rounds(s, 0, same_round, &one, NULL), FL_OK);
    ck_assert_int_eq(fl_store_abandoned(s, 0, same_abandoned, &two, NULL), FL_OK);
    fl_store_close(s);
}

TEST(every_figure_of_a_client_comes_back)
{
    struct fl_store *s = store_open();
    struct fl_client_rec rec = {.id = 0, .name = "edge-00", .agent = "x"};
    const struct fl_client_rec *want = &rec;
    const struct fl_client_rec *got;
    struct fl_coord_resume r;
    unsigned value;
    unsigned i;

    for (i = 0; i < 2; i++) { /* A new one, a known one. */
        value = 1 + i;
        FL_CLIENT_FIGURES(FILL)
        FL_CLIENT_STATE(FILL)
        ck_assert_int_eq(fl_store_put_clients(s, &rec, 1, NULL), FL_OK);
        ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
        ck_assert_uint_eq(r.n_clients, 1);
        got = &r.clients[0];
        FL_CLIENT_FIGURES(SAME)
        FL_CLIENT_STATE(SAME)
        fl_store_resume_done(&r);
    }
    fl_store_close(s);
}

TEST(a_pause_outlives_rounds_and_restarts_until_it_ends)
{
    struct fl_coord_resume r;
    struct fl_round_rec round = {.round = 1, .attempt = 1};
    struct fl_store *s = store_open();

    ck_assert_int_eq(fl_store_put_pause(s, "one", NULL), FL_OK);
    ck_assert_int_eq(fl_store_put_pause(s, "new data", NULL), FL_OK);
    ck_assert_int_eq(fl_store_commit(s, &round, NULL, 0, NULL, NULL), FL_OK);
    fl_store_close(s);
    s = store_open();
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_str_eq(r.pause, "new data");
    fl_store_resume_done(&r);
    ck_assert_int_eq(fl_store_put_pause(s, NULL, NULL), FL_OK);
    ck_assert_int_eq(fl_store_put_pause(s, NULL, NULL), FL_OK);
    fl_store_close(s);
    s = store_open();
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_str_eq(r.pause, "");
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(a_restart_knows_which_bounds_acted_in_the_newest_round)
{
    struct fl_coord_resume r;
    struct fl_store *s = store_open();

    commit(s, &(struct fl_round_rec){.round = 1, .attempt = 1, .n_capped = 9});
    commit(s, &(struct fl_round_rec){.round = 2,
                                     .attempt = 1,
                                     .n_capped = 1,
                                     .n_clipped = 2,
                                     .n_left_out = 3,
                                     .n_robust_out = 4});
    fl_store_close(s);
    s = store_open();
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.bounds.round, 2);
    ck_assert_uint_eq(r.bounds.n_capped, 1);
    ck_assert_uint_eq(r.bounds.n_clipped, 2);
    ck_assert_uint_eq(r.bounds.n_left_out, 3);
    ck_assert_uint_eq(r.bounds.n_robust_out, 4);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

struct seen {
    char text[512];
    unsigned n;
    uint64_t first_ms;
};

static int see(void *ctx, const struct fl_client_error *error)
{
    struct seen *seen = ctx;

    seen->first_ms = seen->n == 0 ? error->at_ms : seen->first_ms;
    seen->n++;
    (void)snprintf(seen->text, sizeof(seen->text), "%s %llu %s", error->name,
                   (unsigned long long)error->at_ms, error->text);
    return FL_OK;
}

static void put_error(struct fl_store *s, unsigned client, uint64_t at_ms, const char *text)
{
    struct fl_client_error e = {.at_ms = at_ms};
    struct fl_err err = {0};

    (void)snprintf(e.name, sizeof(e.name), "edge-%u", client);
    (void)snprintf(e.text, sizeof(e.text), "%s", text);
    ck_assert_msg(fl_store_put_error(s, &e, &err) == FL_OK, "%s", err.msg);
}

TEST(the_last_errors_of_clients_come_back_and_the_oldest_go)
{
    struct fl_store *s = store_open();
    const struct fl_client_error gone[] = {{.name = "edge-1"}, {.name = "nobody"}};
    struct seen seen = {.n = 0};
    struct fl_err err = {0};
    unsigned i;

    put_error(s, 1, 1, "no power");
    put_error(s, 1, 2, "no data");
    fl_store_close(s);
    s = store_open();
    ck_assert_int_eq(fl_store_errors(s, see, &seen, &err), FL_OK);
    ck_assert_uint_eq(seen.n, 1);
    ck_assert_str_eq(seen.text, "edge-1 2 no data");
    put_error(s, 2, 3, "late");
    ck_assert_int_eq(fl_store_drop_errors(s, gone, 2, &err), FL_OK);
    seen.n = 0;
    ck_assert_int_eq(fl_store_errors(s, see, &seen, &err), FL_OK);
    ck_assert_uint_eq(seen.n, 1);
    ck_assert_str_eq(seen.text, "edge-2 3 late");
    for (i = 2; i < FL_ERRORS_MAX + 12; i++) {
        put_error(s, i, i + 1, "late");
    }
    seen.n = 0;
    ck_assert_int_eq(fl_store_errors(s, see, &seen, &err), FL_OK);
    ck_assert_uint_eq(seen.n, FL_ERRORS_MAX);
    ck_assert_uint_eq(seen.first_ms, 13);
    fl_store_close(s);
}

static int see_labels(void *ctx, uint32_t client, const void *data, size_t len)
{
    struct seen *seen = ctx;
    size_t used = strlen(seen->text);

    (void)snprintf(seen->text + used, sizeof(seen->text) - used, "%u:%.*s ", client, (int)len,
                   (const char *)data);
    return FL_OK;
}

static int see_central(void *ctx, const char *name, const void *data, size_t len)
{
    struct seen *seen = ctx;
    size_t used = strlen(seen->text);

    (void)snprintf(seen->text + used, sizeof(seen->text) - used, "%s:%.*s ", name, (int)len,
                   (const char *)data);
    return FL_OK;
}

TEST(labels_are_stored_with_the_record_of_their_client_and_deleted_with_it)
{
    struct fl_store *s = store_open();
    const struct fl_labels_row rows[] = {
        {"edge-01", "one", 3}, {"nobody", "none", 4}, {"edge-02", "two", 3}};
    const struct fl_labels_row later = {"edge-02", "2", 1};
    struct seen seen = {.n = 0};
    struct fl_err err = {0};

    put_client(s, 1, 0);
    put_client(s, 2, 0);
    ck_assert_msg(fl_store_put_labels(s, rows, 3, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_store_put_labels(s, &later, 1, &err), FL_OK);
    fl_store_close(s);
    s = store_open();
    ck_assert_msg(fl_store_labels(s, see_labels, &seen, &err) == FL_OK, "%s", err.msg);
    ck_assert_str_eq(seen.text, "1:one 2:2 ");
    ck_assert_int_eq(fl_store_forget(s, (const struct fl_client_rec[]){{.id = 1}}, 1, &err), FL_OK);
    seen.text[0] = '\0';
    ck_assert_int_eq(fl_store_labels(s, see_labels, &seen, &err), FL_OK);
    ck_assert_str_eq(seen.text, "2:2 ");
    fl_store_close(s);
}

TEST(central_settings_need_no_record_and_stay_until_they_are_deleted)
{
    struct fl_store *s = store_open();
    struct seen seen = {.n = 0};
    struct fl_err err = {0};

    ck_assert_msg(fl_store_put_central(s, "b", "first", 5, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_store_put_central(s, "a", "other", 5, &err), FL_OK);
    ck_assert_int_eq(fl_store_put_central(s, "b", "second", 6, &err), FL_OK);
    fl_store_close(s);
    s = store_open();
    ck_assert_msg(fl_store_central(s, see_central, &seen, &err) == FL_OK, "%s", err.msg);
    ck_assert_str_eq(seen.text, "a:other b:second ");
    ck_assert_int_eq(fl_store_put_central(s, "a", NULL, 0, &err), FL_OK);
    ck_assert_int_eq(fl_store_put_central(s, "a", NULL, 0, &err), FL_OK);
    seen.text[0] = '\0';
    ck_assert_int_eq(fl_store_central(s, see_central, &seen, &err), FL_OK);
    ck_assert_str_eq(seen.text, "b:second ");
    fl_store_close(s);
}

/* What the database takes on the disk once its log is written back. */
static uint64_t size_on_disk(struct fl_store **s)
{
    char path[4200];
    struct stat st;

    fl_store_close(*s);
    (void)snprintf(path, sizeof(path), "%s/federation.db", dir);
    ck_assert_int_eq(stat(path, &st), 0);
    *s = store_open();
    return (uint64_t)st.st_size;
}

TEST(a_flood_of_names_with_an_error_each_takes_no_more_of_the_disk_than_the_newest)
{
    struct fl_store *s = store_open();
    struct seen seen = {.n = 0};
    struct fl_err err = {0};
    uint64_t full;
    unsigned i;

    for (i = 0; i < FL_ERRORS_MAX + 100; i++) { /* The clock stands, or goes back. */
        put_error(s, i, 9, "it does not fit");
    }
    full = size_on_disk(&s);
    for (; i < 4 * FL_ERRORS_MAX; i++) {
        put_error(s, i, i % 2, "it does not fit");
    }
    ck_assert_int_eq(fl_store_errors(s, see, &seen, &err), FL_OK);
    ck_assert_uint_eq(seen.n, FL_ERRORS_MAX);
    ck_assert_str_eq(seen.text, "edge-16383 1 it does not fit");
    ck_assert_uint_le(size_on_disk(&s), full + full / 4);
    fl_store_close(s);
}

TEST(an_empty_file_left_by_a_crash_becomes_a_database)
{
    char path[RIG_PATH_MAX];
    int fd = open(rig_path(path, "federation.db"), O_WRONLY | O_CREAT, 0640);

    (void)close(fd);
    fl_store_close(store_open());
    rig_check_db();
}
