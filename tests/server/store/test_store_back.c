/* Going back to an older model: nothing of the rounds that are abandoned counts, and they stay
 * known. */

#include "tests/lib/suites.h"
#include "tests/server/store/store_change_fixture.h"

TEST_CASE("rules", setup, teardown);

TEST(attempts_of_rounds_that_come_again_are_new)
{
    const struct fl_rewind why = {.reason = "a test", .restart_state = true};
    struct fl_store *store;
    struct fl_store_entered e;
    struct fl_coord_resume r;

    left_by("scaffold");
    store = open_store();
    commit(store, 2, 3);
    commit(store, 3, 1);
    leave_open(store, 4, 2, false);
    ck_assert_int_eq(fl_store_rewind(store, 1, &why, NULL), FL_OK);
    e = enter(store, "scaffold", "0.1");
    ck_assert_uint_eq(e.generation.number, 2);
    ck_assert_uint_eq(e.generation.kept_since, 1);
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 1);
    ck_assert_uint_eq(r.open_round, 0);
    ck_assert_uint_eq(r.used_round, 4);
    ck_assert_uint_eq(r.used_attempt, 3);
    ck_assert_uint_eq(finish_round("scaffold", &r), 4);
    fl_store_resume_done(&r);
    ck_assert_str_eq(record(store), "2/2 the model: 3 -> 1: a test\n");
    fl_store_close(store);
}

/* Of such a round the server has what goes with the clients' part: it must not be taken for older.
 */
TEST(rounds_that_come_again_are_behind_what_began_anew_before_them)
{
    const struct fl_rewind back = {.reason = "a test"};
    struct fl_store *store;
    struct fl_store_entered e;
    struct fl_generation generation;

    left_by("fedavg");
    store = open_store();
    commit(store, 2, 2);
    commit(store, 3, 1);
    e = enter(store, "fedmcsa", "0.1");
    ck_assert_uint_eq(e.generation.kept_since, 3);
    commit(store, 4, 1);
    ck_assert_int_eq(fl_store_rewind(store, 3, &back, NULL), FL_OK);
    ck_assert_int_eq(fl_store_generation(store, &generation, NULL), FL_OK);
    ck_assert_uint_eq(generation.kept_since, 3);
    ck_assert_int_eq(fl_store_rewind(store, 1, &back, NULL), FL_OK);
    ck_assert_int_eq(fl_store_generation(store, &generation, NULL), FL_OK);
    ck_assert_uint_eq(generation.kept_since, 1);
    ck_assert_uint_eq(generation.kept_number, e.generation.kept_number);
    fl_store_close(store);
}

/* Rounds that are abandoned do not undo what their clients did. */
TEST(a_rollback_leaves_quarantines_and_offences_as_they_are)
{
    const struct fl_rewind back = {.reason = "a test"};
    struct fl_client_rec c = {
        .id = 0, .name = "a", .quarantine = "3 offences", .quarantined_ms = 5};
    struct fl_store *store;
    struct fl_coord_resume r;

    c.offences[0] = (struct fl_offence){3, 1, FL_OFFENCE_NORM};
    left_by("fedavg");
    store = open_store();
    commit(store, 2, 1);
    commit(store, 3, 1);
    ck_assert_int_eq(fl_store_put_quarantine(store, &c, 1, NULL), FL_OK);
    ck_assert_int_eq(fl_store_rewind(store, 1, &back, NULL), FL_OK);
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 1);
    ck_assert_str_eq(r.clients[0].quarantine, "3 offences");
    ck_assert_uint_eq(r.clients[0].quarantined_ms, 5);
    ck_assert_uint_eq(r.clients[0].offences[0].round, 3);
    fl_store_resume_done(&r);
    fl_store_close(store);
}

static void save_model(struct fl_store *store, uint64_t round)
{
    static const float theta[4096];
    const struct fl_models_tag tag = {.database = fl_store_id(store)};

    ck_assert_uint_le(fl_layout_count(layout), 4096);
    ck_assert_int_eq(
        fl_models_save(&(struct fl_models_checkpoint){dir, round, &tag, layout, NULL, 0}, theta,
                       NULL, false, NULL),
        FL_OK);
}

static bool has_model(const char *name)
{
    char path[RIG_PATH_MAX];

    return fl_fs_exists(rig_path(path, name));
}

/* Rounds 1 to 4 with models, the fifth is open, and an operator wants to go back to 2. */
static struct fl_store *asked_to_go_back(void)
{
    struct fl_store *store;
    uint64_t round;

    left_by("scaffold");
    store = open_store();
    save_model(store, 1);
    for (round = 2; round <= 4; round++) {
        commit(store, round, 1);
        save_model(store, round);
    }
    leave_open(store, 5, 2, false);
    ck_assert_int_eq(fl_store_pin(store, 3, "by the operator", 0, NULL), FL_OK);
    ck_assert_int_eq(fl_store_pin(store, 1, "by the operator", 0, NULL), FL_OK);
    ck_assert_int_eq(fl_store_ask_rollback(store, 2, 1000, NULL), FL_OK);
    return store;
}

/* A program that died `_i` steps after the wish was on disk, and is started again. */
TEST_EACH(a_rollback_survives_death_at_any_step, 3)
{
    struct fl_store *store = asked_to_go_back();
    struct fl_rolled_back done = {.round = 0};
    struct fl_abandoned *left = NULL;
    struct fl_coord_resume r;
    uint64_t round = 0;
    size_t n = 0;

    fl_store_close(store);
    store = open_store();
    ck_assert_int_eq(fl_store_asked_rollback(store, &round, NULL), FL_OK);
    ck_assert_uint_eq(round, 2);
    ck_assert_int_eq(fl_store_roll_back(store, true, 2000, &done, NULL), FL_OK);
    ck_assert_uint_eq(done.round, 2);
    ck_assert_uint_eq(done.last, 4);
    ck_assert_uint_eq(done.dropped_round, 5);
    ck_assert_uint_eq(done.dropped_attempt, 2);
    ck_assert_uint_eq(done.dropped_updates, 1);
    if (_i >= 1) { /* After the transaction, and with some of the files moved. */
        fl_store_close(store);
        if (_i >= 2) {
            char from[RIG_PATH_MAX];
            char to[RIG_PATH_MAX];

            ck_assert_int_eq(rename(rig_path(from, "models/round-000004.safetensors"),
                                    rig_path(to, "models/round-000004.safetensors.generation-1")),
                             0);
        }
        store = open_store();
    }
    ck_assert_int_eq(fl_store_asked_rollback(store, &round, NULL), FL_ENOENT);
    ck_assert_int_eq(fl_store_finish_rollback(store, NULL), FL_OK);
    ck_assert_int_eq(fl_store_finish_rollback(store, NULL), FL_OK);
    ck_assert_uint_eq(enter(store, "scaffold", "0.1").generation.number, 2);
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 2);
    ck_assert_uint_eq(r.open_round, 0);
    ck_assert_uint_eq(r.used_round, 5);
    ck_assert_uint_eq(r.used_attempt, 2);
    fl_store_resume_done(&r);
    ck_assert_str_eq(record(store), "3/2 the model: 4 -> 2: rolled back to round 2, rounds 3 to 4 "
                                    "abandoned\npin 1 by the operator\n");
    ck_assert(has_model("models/round-000002.safetensors"));
    ck_assert(!has_model("models/round-000003.safetensors"));
    ck_assert(!has_model("models/round-000004.safetensors"));
    ck_assert_int_eq(fl_models_abandoned(dir, &left, &n, NULL), FL_OK);
    ck_assert_uint_eq(n, 2); /* The newest, and one that was pinned. */
    ck_assert(left[0].round == 3 && left[0].generation == 1 && left[1].round == 4 &&
              left[1].generation == 1);
    free(left);
    ck_assert_int_eq(fl_models_release_abandoned(dir, 4, NULL), FL_OK);
    ck_assert_int_eq(fl_models_release_abandoned(dir, 4, NULL), FL_ENOENT);
    ck_assert(!has_model("models/round-000004.safetensors.generation-1"));
    fl_store_close(store);
    rig_sql("INSERT INTO pin (round, reason, at_ms) SELECT round, 'kept', 0 FROM abandoned WHERE "
            "generation = 1");
    store = open_store();
    ck_assert_ptr_nonnull(strstr(record(store), "pin 3 kept\npin 4 kept\n"));
    fl_store_close(store);
}

TEST(a_rollback_that_is_dropped_changes_nothing)
{
    struct fl_store *store = asked_to_go_back();
    struct fl_coord_resume r;
    uint64_t round = 0;

    ck_assert_int_eq(fl_store_drop_rollback(store, NULL), FL_OK);
    ck_assert_int_eq(fl_store_asked_rollback(store, &round, NULL), FL_ENOENT);
    ck_assert_int_eq(fl_store_finish_rollback(store, NULL), FL_OK);
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 4);
    ck_assert_uint_eq(r.open_round, 5);
    fl_store_resume_done(&r);
    ck_assert(has_model("models/round-000004.safetensors"));
    fl_store_close(store);
}

static int add_abandoned(void *ctx, const struct fl_abandoned_round *r)
{
    size_t used = strlen(text);

    (void)ctx;
    (void)snprintf(text + used, sizeof(text) - used, "%u/%u.%u %.2f at %u: %s\n",
                   (unsigned)r->generation, (unsigned)r->round.round, (unsigned)r->round.attempt,
                   r->round.accuracy, (unsigned)r->at_ms, r->by);
    return FL_OK;
}

static const char *abandoned(struct fl_store *store, uint32_t last)
{
    text[0] = '\0';
    ck_assert_int_eq(fl_store_abandoned(store, last, add_abandoned, NULL, NULL), FL_OK);
    return text;
}

/* Rounds 3 and 4 twice, and round 2 of the first generation by the second rollback. */
TEST(an_abandoned_round_names_the_rollback_that_gave_it_up)
{
    struct fl_store *store = asked_to_go_back();
    struct fl_rolled_back done;

    ck_assert_str_eq(abandoned(store, 0), "");
    ck_assert_int_eq(fl_store_roll_back(store, true, 2000, &done, NULL), FL_OK);
    commit(store, 3, 2);
    commit(store, 4, 2);
    ck_assert_int_eq(fl_store_ask_rollback(store, 1, 2500, NULL), FL_OK);
    ck_assert_int_eq(fl_store_roll_back(store, true, 3000, &done, NULL), FL_OK);
    ck_assert_str_eq(abandoned(store, 0),
                     "1/2.1 0.95 at 3000: rolled back to round 1, rounds 2 to 4 abandoned\n"
                     "1/3.1 0.95 at 2000: rolled back to round 2, rounds 3 to 4 abandoned\n"
                     "1/4.1 0.95 at 2000: rolled back to round 2, rounds 3 to 4 abandoned\n"
                     "2/3.2 0.95 at 3000: rolled back to round 1, rounds 2 to 4 abandoned\n"
                     "2/4.2 0.95 at 3000: rolled back to round 1, rounds 2 to 4 abandoned\n");
    ck_assert_str_eq(abandoned(store, 1),
                     "2/4.2 0.95 at 3000: rolled back to round 1, rounds 2 to 4 abandoned\n");
    fl_store_close(store);
}
