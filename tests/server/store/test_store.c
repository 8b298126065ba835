#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/suites.h"
#include "tests/server/store/store_fixture.h"

#define N_CLIENTS 3

static int put_selection(struct fl_store *store, uint64_t round, uint32_t attempt,
                         const struct fl_participant_rec *parts, size_t n, struct fl_err *err)
{
    const struct fl_selection selection = {
        .round = round, .attempt = attempt, .parts = parts, .n_parts = n};

    return fl_store_put_selection(store, &selection, err);
}

static struct fl_store *reopen(struct fl_store *s)
{
    fl_store_close(s);
    rig_check_db();
    return store_open();
}

static struct fl_client_rec client(uint32_t id)
{
    struct fl_client_rec c = {
        .id = id,
        .agent = "fl-clientd/0.1.0",
        .samples = 600 + id,
        .score = 0.25 * id,
        .scored = id % 2 == 1,
        .n_selected = 10 + id,
        .n_accepted = 7,
        .n_rejected = 2,
        .n_lost = UINT64_MAX - id,
        .last_loss = 0.5,
        .last_seen_ms = 1700000000000 + id,
        .capped_round = 4 + id,
        .layer_credit = -0.1 * id,
    };

    (void)snprintf(c.name, sizeof(c.name), "edge-%02u", (unsigned)id);
    return c;
}

static void put_clients(struct fl_store *s)
{
    uint32_t i;

    for (i = 0; i < N_CLIENTS; i++) {
        struct fl_client_rec c = client(i);

        ck_assert_int_eq(fl_store_put_clients(s, &c, 1, NULL), FL_OK);
    }
}

static void same_client(const struct fl_client_rec *a, const struct fl_client_rec *b)
{
    ck_assert_uint_eq(a->id, b->id);
    ck_assert_str_eq(a->name, b->name);
    ck_assert_str_eq(a->agent, b->agent);
    ck_assert_uint_eq(a->samples, b->samples);
    ck_assert_double_eq(a->score, b->score);
    ck_assert(a->scored == b->scored);
    ck_assert_uint_eq(a->n_selected, b->n_selected);
    ck_assert_uint_eq(a->n_accepted, b->n_accepted);
    ck_assert_uint_eq(a->n_rejected, b->n_rejected);
    ck_assert_uint_eq(a->n_lost, b->n_lost);
    ck_assert_double_eq(a->last_loss, b->last_loss);
    ck_assert_uint_eq(a->last_seen_ms, b->last_seen_ms);
    ck_assert_uint_eq(a->capped_round, b->capped_round);
    ck_assert_double_eq(a->layer_credit, b->layer_credit);
}

static struct fl_round_rec round_rec(uint64_t round)
{
    return (struct fl_round_rec){
        .round = round,
        .attempt = 2,
        .n_selected = 4,
        .n_responders = 3,
        .accuracy = round % 2 == 0 ? 0.5 + 0.01 * (double)round : -1.0,
        .loss = 1.0 / (double)round,
        .train_loss = 2.0 / (double)round,
        .uplink_bytes = 1000 * round,
        .feedback_bytes = 12,
        .uplink_bytes_full = 5000,
        .downlink_bytes = 7000,
        .started_ms = 100 * round,
        .ended_ms = 100 * round + 50,
        .robust_clients = "b 0 12.5, a 0.01 3",
        .metrics = "macro_f1=0.75 received/auc=0.5",
    };
}

static void commit(struct fl_store *s, uint64_t round)
{
    struct fl_round_rec r = round_rec(round);
    struct fl_client_rec clients[N_CLIENTS];
    struct fl_err err = {0};
    uint32_t i;

    for (i = 0; i < N_CLIENTS; i++) {
        clients[i] = client(i);
        clients[i].n_selected = round;
    }
    ck_assert_msg(fl_store_commit(s, &r, clients, N_CLIENTS, NULL, &err) == FL_OK, "%s", err.msg);
}

/* Two parts, the higher number first: the order of the selection is kept. */
static void select_two(struct fl_store *s, uint64_t round, uint32_t attempt)
{
    const struct fl_participant_rec parts[] = {
        {.client = 2, .state = FL_PARTICIPANT_SELECTED},
        {.client = 0, .state = FL_PARTICIPANT_SELECTED},
    };
    struct fl_err err = {0};

    ck_assert_msg(put_selection(s, round, attempt, parts, 2, &err) == FL_OK, "%s", err.msg);
}

static float divergence[RIG_UNITS] = {0.5f, 0.25f, 1e-20f};
static uint8_t grant[RIG_UNITS] = {1, 0, 1};
static uint8_t nothing[RIG_UNITS];

static void plan_two(struct fl_store *s, uint64_t round, uint32_t attempt)
{
    const struct fl_participant_rec parts[] = {
        {.client = 2,
         .state = FL_PARTICIPANT_PLANNED,
         .capped = FL_SHARE_LAYERS,
         .samples = 602,
         .steps = 61,
         .train_loss = 0.75,
         .divergence = divergence,
         .units = grant},
        {.client = 0, .state = FL_PARTICIPANT_EMPTY, .divergence = divergence, .units = nothing},
    };

    ck_assert_int_eq(fl_store_put_plan(s, round, attempt, parts, 2, NULL), FL_OK);
}

static void accept_one(struct fl_store *s, uint64_t round, uint32_t attempt)
{
    const struct fl_participant_rec part = {
        .client = 2,
        .state = FL_PARTICIPANT_ACCEPTED,
        .samples = 602,
        .steps = 61,
        .train_loss = (double)NAN,
        .divergence = divergence,
        .units = grant,
        .upload_bytes = 33688,
        .received = {10, 5, 2.5, "f1=0.5 errors+=3:9"},
    };

    ck_assert_int_eq(fl_store_put_update(s, round, attempt, &part, NULL), FL_OK);
}

TEST_CASE("records", store_setup, store_teardown);

TEST(a_new_folder_has_nothing_to_resume)
{
    struct fl_store *s = store_open();
    struct fl_coord_resume r;
    struct stat st;
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 0);
    ck_assert_uint_eq(r.n_clients, 0);
    ck_assert_uint_eq(r.n_parts, 0);
    fl_store_resume_done(&r);
    ck_assert_int_eq(stat(rig_path(path, "models"), &st), 0);
    ck_assert_int_eq(stat(rig_path(path, "spool"), &st), 0);
    fl_store_close(s);
    fl_store_close(NULL);
}

TEST(clients_come_back_in_the_order_of_their_numbers)
{
    struct fl_store *s = store_open();
    struct fl_client_rec c = client(1);
    struct fl_coord_resume r;
    uint32_t i;

    put_clients(s);
    c.score = -0.125;
    c.last_loss = (double)NAN;
    (void)snprintf(c.agent, sizeof(c.agent), "it's; \"quoted\"");
    ck_assert_int_eq(fl_store_put_clients(s, &c, 1, NULL), FL_OK);
    s = reopen(s);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.n_clients, N_CLIENTS);
    ck_assert(isnan(r.clients[1].last_loss));
    ck_assert_str_eq(r.clients[1].agent, c.agent);
    ck_assert_double_eq(r.clients[1].score, -0.125);
    for (i = 0; i < N_CLIENTS; i += 2) {
        struct fl_client_rec want = client(i);

        same_client(&r.clients[i], &want);
    }
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(a_restart_after_the_selection_finds_it)
{
    struct fl_store *s = store_open();
    struct fl_coord_resume r;

    put_clients(s);
    commit(s, 1);
    select_two(s, 2, 1);
    select_two(s, 2, 2); /* the first attempt was aborted */
    s = reopen(s);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 1);
    ck_assert_uint_eq(r.open_round, 2);
    ck_assert_uint_eq(r.open_attempt, 2);
    ck_assert(!r.planned && r.n_parts == 2);
    ck_assert_uint_eq(r.parts[0].client, 2);
    ck_assert_uint_eq(r.parts[1].client, 0);
    ck_assert_int_eq(r.parts[0].state, FL_PARTICIPANT_SELECTED);
    ck_assert_ptr_null(r.parts[0].units);
    ck_assert_ptr_null(r.parts[0].divergence);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(a_restart_after_the_plan_finds_it)
{
    struct fl_store *s = store_open();
    struct fl_coord_resume r;

    put_clients(s);
    select_two(s, 1, 1);
    plan_two(s, 1, 1);
    s = reopen(s);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert(r.planned && r.n_parts == 2);
    ck_assert_uint_eq(r.parts[0].client, 2);
    ck_assert_int_eq(r.parts[0].state, FL_PARTICIPANT_PLANNED);
    ck_assert_uint_eq(r.parts[0].samples, 602);
    ck_assert_uint_eq(r.parts[0].steps, 61);
    ck_assert_uint_eq(r.parts[0].capped, FL_SHARE_LAYERS);
    ck_assert_double_eq(r.parts[0].train_loss, 0.75);
    ck_assert_mem_eq(r.parts[0].divergence, divergence, sizeof(divergence));
    ck_assert_mem_eq(r.parts[0].units, grant, sizeof(grant));
    ck_assert_int_eq(r.parts[1].state, FL_PARTICIPANT_EMPTY);
    ck_assert_mem_eq(r.parts[1].units, nothing, sizeof(nothing));
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(a_restart_after_some_updates_finds_them)
{
    struct fl_store *s = store_open();
    struct fl_coord_resume r;

    put_clients(s);
    select_two(s, 1, 1);
    plan_two(s, 1, 1);
    accept_one(s, 1, 1);
    s = reopen(s);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.n_parts, 2);
    ck_assert_int_eq(r.parts[0].state, FL_PARTICIPANT_ACCEPTED);
    ck_assert_uint_eq(r.parts[0].upload_bytes, 33688);
    ck_assert_str_eq(r.parts[0].received.metrics, "f1=0.5 errors+=3:9");
    ck_assert(isnan(r.parts[0].train_loss));
    ck_assert_int_eq(r.parts[1].state, FL_PARTICIPANT_EMPTY);
    ck_assert(r.planned);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(a_commit_closes_the_round_and_keeps_the_clients)
{
    struct fl_store *s = store_open();
    struct fl_coord_resume r;

    put_clients(s);
    select_two(s, 1, 1);
    plan_two(s, 1, 1);
    accept_one(s, 1, 1);
    commit(s, 1);
    s = reopen(s);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 1);
    ck_assert_uint_eq(r.open_round, 0);
    ck_assert_uint_eq(r.n_parts, 0);
    ck_assert_ptr_null(r.parts);
    ck_assert(!r.planned);
    ck_assert_uint_eq(r.clients[2].n_selected, 1);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(what_does_not_fit_the_open_round_changes_nothing)
{
    struct fl_store *s = store_open();
    struct fl_participant_rec part = {
        .client = 2, .state = FL_PARTICIPANT_ACCEPTED, .units = grant};
    struct fl_round_rec done = round_rec(1);
    struct fl_client_rec far = client(7);
    struct fl_client_rec twin = client(3);
    struct fl_coord_resume r;
    struct fl_err err = {0};

    put_clients(s);
    ck_assert_int_eq(fl_store_put_update(s, 1, 1, &part, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "no round is open, round 1 was meant");
    commit(s, 1);
    select_two(s, 2, 1);
    ck_assert_int_eq(fl_store_put_plan(s, 2, 2, &part, 1, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "round 2 attempt 2 is not open, 2 attempt 1 is");
    ck_assert_int_eq(fl_store_put_update(s, 3, 1, &part, &err), FL_ESTATE);
    ck_assert_int_eq(put_selection(s, 1, 5, &part, 1, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "round 1 is committed, the last is 1");
    ck_assert_int_eq(fl_store_commit(s, &done, NULL, 0, NULL, &err), FL_ESTATE);
    far.id = FL_CLIENT_NUMBERS;
    ck_assert_int_eq(fl_store_put_clients(s, &far, 1, &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "client 'edge-07' has number 16777216");
    (void)snprintf(twin.name, sizeof(twin.name), "edge-01");
    ck_assert_int_eq(fl_store_put_clients(s, &twin, 1, &err), FL_ESTATE);
    part.client = 9;
    ck_assert_int_eq(fl_store_put_plan(s, 2, 1, &part, 1, &err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "FOREIGN KEY"));

    s = reopen(s);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 1);
    ck_assert_uint_eq(r.n_clients, N_CLIENTS);
    ck_assert_uint_eq(r.open_round, 2);
    ck_assert(!r.planned);
    ck_assert_uint_eq(r.n_parts, 2);
    ck_assert_int_eq(r.parts[0].state, FL_PARTICIPANT_SELECTED);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

struct seen {
    uint64_t rounds[16];
    size_t n;
    size_t stop_at;
};

static int see(void *ctx, const struct fl_round_rec *r)
{
    struct seen *seen = ctx;
    struct fl_round_rec want = round_rec(r->round);

    ck_assert_uint_eq(r->attempt, want.attempt);
    ck_assert_uint_eq(r->n_selected, want.n_selected);
    ck_assert_uint_eq(r->n_responders, want.n_responders);
    ck_assert_double_eq(r->accuracy, want.accuracy);
    ck_assert_double_eq(r->loss, want.loss);
    ck_assert_double_eq(r->train_loss, want.train_loss);
    ck_assert_uint_eq(r->uplink_bytes, want.uplink_bytes);
    ck_assert_uint_eq(r->feedback_bytes, want.feedback_bytes);
    ck_assert_uint_eq(r->uplink_bytes_full, want.uplink_bytes_full);
    ck_assert_uint_eq(r->downlink_bytes, want.downlink_bytes);
    ck_assert_uint_eq(r->started_ms, want.started_ms);
    ck_assert_uint_eq(r->ended_ms, want.ended_ms);
    ck_assert_str_eq(r->robust_clients, want.robust_clients);
    ck_assert_str_eq(r->metrics, want.metrics);
    seen->rounds[seen->n++] = r->round;
    return seen->n == seen->stop_at ? FL_ECANCELED : FL_OK;
}

TEST(the_newest_rounds_come_in_rising_order)
{
    struct fl_store *s = store_open();
    struct seen seen = {.n = 0};
    uint64_t t;

    put_clients(s);
    ck_assert_int_eq(fl_store_rounds(s, 0, see, &seen, NULL), FL_OK);
    ck_assert_uint_eq(seen.n, 0);
    for (t = 1; t <= 9; t++) {
        commit(s, t);
    }
    ck_assert_int_eq(fl_store_rounds(s, 3, see, &seen, NULL), FL_OK);
    ck_assert_uint_eq(seen.n, 3);
    ck_assert_uint_eq(seen.rounds[0], 7);
    ck_assert_uint_eq(seen.rounds[2], 9);
    seen = (struct seen){.n = 0};
    ck_assert_int_eq(fl_store_rounds_before(s, 5, 2, see, &seen, NULL), FL_OK);
    ck_assert(seen.n == 2 && seen.rounds[0] == 4 && seen.rounds[1] == 3); /* a page, backwards */
    seen = (struct seen){.n = 0};
    ck_assert_int_eq(fl_store_rounds(s, 0, see, &seen, NULL), FL_OK);
    ck_assert_uint_eq(seen.n, 9);
    seen = (struct seen){.stop_at = 2};
    ck_assert_int_eq(fl_store_rounds(s, 0, see, &seen, NULL), FL_ECANCELED);
    ck_assert_uint_eq(seen.n, 2);
    fl_store_close(s);
}

TEST(a_restart_knows_the_losses_of_all_rounds)
{
    struct fl_store *s = store_open();
    struct fl_coord_resume resume;
    struct fl_plateau want = {.n = 0};
    struct fl_loss_trend trend = {.n = 0};
    uint64_t t;

    put_clients(s);
    for (t = 1; t <= 40; t++) {
        commit(s, t);
        fl_plateau_add(&want, t, round_rec(t).train_loss);
        fl_loss_trend_add(&trend, t, round_rec(t).train_loss);
    }
    ck_assert_uint_eq(want.n, 40);
    ck_assert_int_eq(fl_store_load(s, &resume, NULL), FL_OK);
    ck_assert_mem_eq(&resume.plateau, &want, sizeof(want));
    ck_assert_mem_eq(&resume.trend, &trend, sizeof(trend));
    fl_store_resume_done(&resume);
    fl_store_close(s);
}

TEST(totals_are_the_sums_of_all_rounds)
{
    struct fl_store *s = store_open();
    struct fl_round_rec sum;
    uint64_t t;

    put_clients(s);
    ck_assert_int_eq(fl_store_totals(s, &sum, NULL), FL_OK);
    ck_assert_uint_eq(sum.round, 0);
    ck_assert_uint_eq(sum.uplink_bytes, 0);
    ck_assert_double_lt(sum.accuracy, 0.0);
    for (t = 1; t <= 5; t++) {
        commit(s, t);
    }
    ck_assert_int_eq(fl_store_totals(s, &sum, NULL), FL_OK);
    ck_assert_uint_eq(sum.round, 5);
    ck_assert_uint_eq(sum.attempt, 5);
    ck_assert_uint_eq(sum.n_selected, 20);
    ck_assert_uint_eq(sum.n_responders, 15);
    ck_assert_uint_eq(sum.uplink_bytes, 15000);
    ck_assert_uint_eq(sum.feedback_bytes, 60);
    ck_assert_uint_eq(sum.uplink_bytes_full, 25000);
    ck_assert_uint_eq(sum.downlink_bytes, 35000);
    ck_assert_double_eq(sum.accuracy, 0.5 + 0.01 * 4.0);
    ck_assert_double_eq(sum.loss, 0.25);
    ck_assert_double_eq(sum.train_loss, 0.4);
    ck_assert_uint_eq(sum.started_ms, 100);
    ck_assert_uint_eq(sum.ended_ms, 550);
    fl_store_close(s);
}

/* --- folders that are not ours, and disks that fail --- */

static void refused(const char *federation, const struct fl_layout *l, int code, const char *words)
{
    struct fl_store *s = NULL;
    struct fl_err err = {0};
    int rv = fl_store_open(dir, federation, l, FL_DURABLE_POWER, &s, &err);

    ck_assert_msg(rv == code, "%s: %s", fl_strerror(rv), err.msg);
    ck_assert_ptr_null(s);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' is not in '%s'", words, err.msg);
    ck_assert_ptr_nonnull(strstr(err.msg, dir));
}

TEST_CASE("faults", store_setup, store_teardown);

TEST(the_folder_of_another_federation_is_refused)
{
    struct fl_store *s = store_open();

    fl_store_close(s);
    refused("other", layout, FL_ESTATE, "belongs to federation 'fed', not 'other'");
    rig_check_db();
    fl_store_close(store_open());
}

TEST(the_folder_of_another_model_is_refused)
{
    struct fl_layout *other = NULL;
    const size_t dims[] = {7};
    struct fl_store *s = store_open();

    fl_store_close(s);
    ck_assert_int_eq(fl_layout_create(&other), FL_OK);
    ck_assert_int_eq(fl_layout_add(other, "a", "a.w", dims, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(other, NULL), FL_OK);
    refused("fed", other, FL_ESTATE, "belongs to another model (3 units, 8832 values, digest ");
    fl_layout_free(other);
    rig_check_db();
    fl_store_close(store_open());
}

TEST(a_forgotten_client_leaves_a_number_for_another)
{
    struct fl_store *s = store_open();
    struct fl_client_rec gone = client(1);
    struct fl_client_rec in_round = client(2);
    struct fl_client_rec other = client(1);
    struct fl_coord_resume r;
    struct fl_err err = {0};

    put_clients(s);
    select_two(s, 1, 1);
    ck_assert_int_eq(fl_store_put_epoch(s, 7, &err), FL_OK);
    ck_assert_int_eq(fl_store_forget(s, &gone, 1, &err), FL_OK);
    ck_assert_int_eq(fl_store_forget(s, &in_round, 1, &err), FL_ESTATE);
    s = reopen(s);
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_OK);
    ck_assert_uint_eq(r.n_clients, N_CLIENTS - 1);
    ck_assert_uint_eq(r.epoch, 7);
    ck_assert_uint_eq(r.clients[1].id, 2);
    fl_store_resume_done(&r);
    (void)snprintf(other.name, sizeof(other.name), "edge-77");
    ck_assert_int_eq(fl_store_put_clients(s, &other, 1, &err), FL_OK);
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_OK);
    ck_assert_uint_eq(r.n_clients, N_CLIENTS);
    ck_assert_str_eq(r.clients[1].name, "edge-77");
    fl_store_resume_done(&r);
    fl_store_close(s);
}

/* Of client 1, which has a record, and of 9, which has none. */
static void quarantine_two(struct fl_store *s)
{
    struct fl_client_rec c[2] = {client(1), client(9)};
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < 2; i++) {
        c[i].offences[0] = (struct fl_offence){4, 1, FL_OFFENCE_CLAIM};
        c[i].offences[1] = (struct fl_offence){UINT64_MAX, UINT32_MAX, FL_OFFENCE_UPDATE};
        (void)snprintf(c[i].quarantine, sizeof(c[i].quarantine), "reason %zu", i);
        c[i].quarantined_ms = 5000;
        c[i].quarantined_up_ms = 300;
    }
    c[0].samples = 12345; /* Not written: its record has its own. */
    c[0].counted_round = 77;
    ck_assert_msg(fl_store_put_quarantine(s, c, 2, &err) == FL_OK, "%s", err.msg);
}

TEST(a_quarantine_comes_back_after_a_restart_and_leaves_the_rest_of_the_record)
{
    struct fl_store *s = store_open();
    struct fl_client_rec released = client(1);
    const struct fl_client_rec *got;
    struct fl_coord_resume r;
    struct fl_err err = {0};
    unsigned i;

    put_clients(s);
    quarantine_two(s);
    s = reopen(s);
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_OK);
    ck_assert_uint_eq(r.n_clients, N_CLIENTS + 1);
    for (i = 0; i < 2; i++) {
        got = &r.clients[i == 0 ? 1 : N_CLIENTS];
        ck_assert_str_eq(got->quarantine, i == 0 ? "reason 0" : "reason 1");
        ck_assert_uint_eq(got->quarantined_ms, 5000);
        ck_assert_uint_eq(got->quarantined_up_ms, 300);
        ck_assert_uint_eq(got->offences[0].round, 4);
        ck_assert_uint_eq(got->offences[0].kind, FL_OFFENCE_CLAIM);
        ck_assert_uint_eq(got->offences[1].round, UINT64_MAX);
        ck_assert_uint_eq(got->offences[1].attempt, UINT32_MAX);
        ck_assert_uint_eq(got->offences[2].kind, 0);
    }
    ck_assert_uint_eq(r.clients[1].samples, client(1).samples);
    ck_assert_uint_eq(r.clients[1].counted_round, client(1).counted_round);
    ck_assert_str_eq(r.clients[2].quarantine, "");
    fl_store_resume_done(&r);
    ck_assert_int_eq(fl_store_put_quarantine(s, &released, 1, &err), FL_OK);
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_OK);
    ck_assert_str_eq(r.clients[1].quarantine, "");
    ck_assert_uint_eq(r.clients[1].offences[0].kind, 0);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST_EACH(offences_that_cannot_be_are_damage, 2)
{
    static const char *const sql[] = {"UPDATE client SET offences = x'00' WHERE id = 1",
                                      "UPDATE client SET offences = zeroblob(16) WHERE id = 1"};
    struct fl_store *s = store_open();
    struct fl_coord_resume r;
    struct fl_err err = {0};

    put_clients(s);
    fl_store_close(s);
    rig_sql(sql[_i]);
    s = store_open();
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "offence"));
    fl_store_close(s);
}

TEST(a_selection_brings_new_clients_and_how_many_there_are)
{
    struct fl_store *s = store_open();
    const struct fl_participant_rec part = {.client = 1, .state = FL_PARTICIPANT_SELECTED};
    struct fl_client_rec c = client(1);
    struct fl_selection sel = {
        .round = 1, .attempt = 1, .parts = &part, .n_parts = 1, .expected = 12345};
    struct fl_coord_resume r;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_store_put_selection(s, &sel, &err), FL_ESTATE); /* of nobody */
    sel.clients = &c;
    sel.n_clients = 1;
    ck_assert_int_eq(fl_store_put_selection(s, &sel, &err), FL_OK);
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_OK);
    ck_assert_uint_eq(r.expected, 12345);
    ck_assert_uint_eq(r.n_clients, 1);
    ck_assert_uint_eq(r.n_parts, 1);
    same_client(&r.clients[0], &c);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(a_newer_schema_is_refused)
{
    fl_store_close(store_open());
    rig_sql("INSERT INTO migration (version, applied_ms) VALUES (99, 0)");
    refused("fed", layout, FL_EVERSION, "has schema version 99, this program knows up to ");
    rig_check_db();
}

TEST(a_database_of_another_program_is_refused)
{
    rig_sql("CREATE TABLE cats (name TEXT)");
    refused("fed", layout, FL_ESTATE, "is a database of another program");
    rig_check_db();
}

TEST(a_file_that_is_no_database_is_refused)
{
    char path[RIG_PATH_MAX];
    char junk[4096];
    int fd = open(rig_path(path, "federation.db"), O_WRONLY | O_CREAT, 0640);

    (void)memset(junk, 'x', sizeof(junk));
    ck_assert_int_eq(write(fd, junk, sizeof(junk)), (ssize_t)sizeof(junk));
    (void)close(fd);
    refused("fed", layout, FL_EFORMAT, "not a database");
}

TEST(a_damaged_database_is_refused)
{
    struct fl_store *s = store_open();
    char path[RIG_PATH_MAX];
    uint64_t t;

    put_clients(s);
    for (t = 1; t <= 200; t++) {
        commit(s, t);
    }
    fl_store_close(s);
    rig_damage(rig_path(path, "federation.db"), 2 * 4096, 3 * 4096);
    refused("fed", layout, FL_EFORMAT, "federation.db");
}

TEST(a_record_that_makes_no_sense_is_refused)
{
    struct fl_store *s = store_open();
    struct fl_coord_resume r;
    struct fl_err err = {0};

    put_clients(s);
    select_two(s, 1, 1);
    plan_two(s, 1, 1);
    rig_sql("UPDATE part SET units = x'01' WHERE client = 2");
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "is damaged: a part is of another model"));
    rig_sql("UPDATE part SET units = NULL, state = 77 WHERE client = 2");
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "is damaged: column 'state' of table 'part'"));
    rig_sql("DELETE FROM part; UPDATE client SET name = '../x' WHERE id = 1");
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "is damaged: a client has a bad name"));
    rig_sql("UPDATE client SET id = 16777216, name = 'x' WHERE id = 1");
    ck_assert_int_eq(fl_store_load(s, &r, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "is damaged: column 'id' of table 'client'"));
    fl_store_close(s);
}

TEST(a_folder_that_cannot_be_written_is_refused)
{
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(mkdir(rig_path(path, "models"), 0777), 0);
    ck_assert_int_eq(mkdir(rig_path(path, "spool"), 0777), 0);
    ck_assert_int_eq(chmod(dir, 0555), 0);
    rig_drop_root();
    refused("fed", layout, FL_EPERM, "cannot use state folder '");
    /* Give the rights back, for the clean-up. */
    rig_regain_root();
    ck_assert_int_eq(chmod(dir, 0777), 0);
}

TEST(a_file_where_the_folder_should_be_is_refused)
{
    char path[RIG_PATH_MAX];
    int fd = open(rig_path(path, "models"), O_WRONLY | O_CREAT, 0640);

    (void)close(fd);
    refused("fed", layout, FL_EEXIST, "is not a folder");
}

TEST(a_database_that_is_read_only_is_refused)
{
    char path[RIG_PATH_MAX];

    fl_store_close(store_open());
    ck_assert_int_eq(chmod(rig_path(path, "federation.db"), 0444), 0);
    ck_assert_int_eq(chmod(rig_path(path, "models"), 0777), 0);
    ck_assert_int_eq(chmod(rig_path(path, "spool"), 0777), 0);
    rig_drop_root();
    refused("fed", layout, FL_EPERM, "cannot write state database '");
    rig_regain_root();
    rig_check_db();
}

TEST(a_full_disk_loses_no_record_that_was_taken)
{
    struct fl_store *s = store_open();
    struct fl_coord_resume r;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    uint64_t t;
    uint64_t failed = 0;

    put_clients(s);
    commit(s, 1);
    rig_limit_files(rig_size(rig_path(path, "federation.db-wal")) + 60000);
    for (t = 2; t < 100 && failed == 0; t++) {
        struct fl_round_rec rec = round_rec(t);
        int rv = fl_store_commit(s, &rec, NULL, 0, NULL, &err);

        failed = rv != FL_OK ? t : 0;
    }
    ck_assert_uint_gt(failed, 2);
    ck_assert_ptr_nonnull(strstr(err.msg, "federation.db"));
    /* The same store goes on as soon as there is room again. */
    rig_limit_files(0);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, failed - 1);
    fl_store_resume_done(&r);
    commit(s, failed);
    s = reopen(s);
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, failed);
    fl_store_resume_done(&r);
    fl_store_close(s);
}

TEST(what_was_persisted_survives_a_kill)
{
    struct fl_store *s;
    struct fl_coord_resume r;
    int fds[2];
    char byte = 0;
    pid_t pid;
    int status;

    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        s = store_open();
        put_clients(s);
        commit(s, 1);
        select_two(s, 2, 1);
        plan_two(s, 2, 1);
        accept_one(s, 2, 1);
        (void)!write(fds[1], "x", 1);
        for (;;) {
            (void)pause();
        }
    }
    ck_assert_int_eq(read(fds[0], &byte, 1), 1);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    s = store_open();
    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 1);
    ck_assert_uint_eq(r.open_round, 2);
    ck_assert(r.planned);
    ck_assert_int_eq(r.parts[0].state, FL_PARTICIPANT_ACCEPTED);
    fl_store_resume_done(&r);
    fl_store_close(s);
    rig_check_db();
}
