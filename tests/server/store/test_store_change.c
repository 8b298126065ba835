/*
 * A state folder that is opened under other settings than it was left under: no update of
 * before counts where it would mean something else, for every pair of presets.
 */

#include "tests/lib/each_preset.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/suites.h"
#include "tests/server/store/store_change_fixture.h"

static bool same_meaning(const struct fl_strategy *a, const struct fl_strategy *b)
{
    static const enum fl_component components[] = {FL_COMPONENT_SOLVER, FL_COMPONENT_UPLOAD,
                                                   FL_COMPONENT_CODEC, FL_COMPONENT_AGGREGATE,
                                                   FL_COMPONENT_PERSONAL};
    bool same = true;
    size_t i;

    for (i = 0; i < sizeof(components) / sizeof(components[0]); i++) {
        struct fl_buf x;
        struct fl_buf y;

        fl_buf_init(&x, 4096);
        fl_buf_init(&y, 4096);
        ck_assert_int_eq(fl_strategy_component_text(a, components[i], &x), FL_OK);
        ck_assert_int_eq(fl_strategy_component_text(b, components[i], &y), FL_OK);
        same = same && x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
        fl_buf_done(&x);
        fl_buf_done(&y);
    }
    return same;
}

static bool keeps_the_same(const struct fl_strategy *a, const struct fl_strategy *b)
{
    struct fl_buf x;
    struct fl_buf y;
    bool same;

    fl_buf_init(&x, 4096);
    fl_buf_init(&y, 4096);
    ck_assert_int_eq(fl_strategy_kept_text(a, &x), FL_OK);
    ck_assert_int_eq(fl_strategy_kept_text(b, &y), FL_OK);
    same = x.len == y.len && (x.len == 0 || memcmp(x.data, y.data, x.len) == 0);
    fl_buf_done(&x);
    fl_buf_done(&y);
    return same;
}

static void check_pair(const char *from, const char *to, const struct fl_generation *before)
{
    struct fl_strategy *a = strategy_of(from);
    struct fl_strategy *b = strategy_of(to);
    struct fl_store *store = open_store();
    struct fl_store_entered e = enter(store, to, "0.1");
    struct fl_coord_resume r;
    bool same = same_meaning(a, b);
    uint32_t attempt;

    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert_int_eq(fl_store_clean_spool(dir, &r, NULL), FL_OK);
    attempt = finish_round(to, &r);
    if (same) {
        ck_assert_msg(!e.new_generation && r.n_parts == 2, "%s -> %s drops a good attempt", from,
                      to);
        ck_assert_int_eq(memcmp(e.generation.tag, before->tag, FL_GENERATION_TAG), 0);
        ck_assert(has_upload(2, 1));
        ck_assert_uint_eq(attempt, 1);
    } else {
        ck_assert_msg(e.new_generation && r.n_parts == 0 && r.open_attempt == 2,
                      "%s -> %s goes on with an update of before", from, to);
        ck_assert_int_ne(memcmp(e.generation.tag, before->tag, FL_GENERATION_TAG), 0);
        ck_assert_uint_eq(e.dropped_round, 2);
        ck_assert_uint_eq(e.dropped_updates, 1);
        ck_assert_uint_eq(e.pinned, 1);
        ck_assert(!has_upload(2, 1));
        ck_assert_uint_eq(attempt, 2);
        ck_assert_msg(n_foreign == 0, "%s -> %s aggregates an update of before", from, to);
    }
    ck_assert_uint_eq(n_aggregated, 1);
    /* What clients keep goes on only where the server's part of it does. */
    ck_assert_int_eq(e.state_restarted, !keeps_the_same(a, b));
    ck_assert_int_eq(memcmp(e.generation.kept_tag, before->kept_tag, FL_GENERATION_TAG) != 0,
                     e.state_restarted);
    ck_assert_uint_eq(e.generation.kept_since, e.state_restarted ? 1 : 0);
    fl_store_resume_done(&r);
    fl_store_close(store);
    fl_strategy_free(a);
    fl_strategy_free(b);
}

TEST_CASE("pairs", setup, teardown);

/*
 * _i: the preset that left the folder. Plain deploy/test.sh takes each third or sixth one
 * after it, so that each is left and entered.
 */
TEST_EACH(no_pair_of_presets_aggregates_what_meant_something_else, each_preset_count())
{
    const char *from = each_preset(_i);
    struct fl_generation generation;
    struct fl_store *store;
    size_t stride = everyday_stride(3, 6);
    size_t i;

    left_by(from);
    store = open_store();
    ck_assert_int_eq(fl_store_generation(store, &generation, NULL), FL_OK);
    fl_store_close(store);
    save_folder();
    for (i = (size_t)_i % stride; i < (size_t)each_preset_count(); i += stride) {
        restore_folder();
        check_pair(from, each_preset((int)i), &generation);
    }
    fl_buf_done(&saved);
}

/* --- one change --- */

TEST_CASE("rules", setup, teardown);

TEST(a_change_stands_in_the_record_with_what_followed)
{
    struct fl_strategy *scaffold = strategy_of("scaffold");
    struct fl_store *store;
    struct fl_store_entered e;
    struct fl_buf solver;
    char expected[1024];

    fl_buf_init(&solver, 1024);
    ck_assert_int_eq(fl_strategy_component_text(scaffold, FL_COMPONENT_SOLVER, &solver), FL_OK);
    (void)snprintf(expected, sizeof(expected),
                   "2/2 algorithm: fedavg -> scaffold\n"
                   "2/2 strategy.solver: sgd -> %.*s\n"
                   "2/2 state of solver and clients: kept -> started again\n"
                   "2/2 attempt: 1 with 1 updates -> dropped\n"
                   "pin 1 before strategy.solver changed\n",
                   (int)solver.len, (const char *)solver.data);
    fl_buf_done(&solver);
    fl_strategy_free(scaffold);
    left_by("fedavg");
    store = open_store();
    e = enter(store, "scaffold", "0.1");
    ck_assert(e.new_generation && e.state_restarted && !e.first && !e.unknown);
    ck_assert_str_eq(record(store), expected);
    e = enter(store, "scaffold", "0.1"); /* The next start finds nothing new. */
    ck_assert(!e.new_generation && !e.state_restarted && !e.verdict.rewrite);
    ck_assert_uint_eq(e.dropped_round, 0);
    ck_assert_int_eq(fl_store_unpin(store, 1, NULL), FL_OK);
    ck_assert_int_eq(fl_store_unpin(store, 1, NULL), FL_ENOENT);
    fl_store_close(store);
}

TEST(a_rate_is_recorded_and_drops_nothing)
{
    struct fl_store *store;
    struct fl_store_entered e;
    struct fl_coord_resume r;

    left_by("scaffold");
    store = open_store();
    e = enter(store, "scaffold", "0.05");
    ck_assert(!e.new_generation && !e.state_restarted);
    ck_assert_str_eq(record(store), "2/1 training.learning_rate: 0.1 -> 0.05\n");
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.n_parts, 2);
    fl_store_resume_done(&r);
    fl_store_close(store);
}

TEST(a_change_and_back_gives_other_lines)
{
    struct fl_store *store;
    struct fl_generation first;
    struct fl_store_entered e;

    left_by("scaffold");
    store = open_store();
    ck_assert_int_eq(fl_store_generation(store, &first, NULL), FL_OK);
    (void)enter(store, "fedavg", "0.1");
    e = enter(store, "scaffold", "0.1");
    ck_assert_uint_eq(e.generation.number, 3);
    ck_assert_int_ne(memcmp(e.generation.tag, first.tag, FL_GENERATION_TAG), 0);
    ck_assert_int_ne(memcmp(e.generation.kept_tag, first.kept_tag, FL_GENERATION_TAG), 0);
    fl_store_close(store);
}

TEST(two_folders_never_have_the_same_line)
{
    struct fl_store *store = open_store();
    struct fl_generation one;
    struct fl_generation two;
    char path[RIG_PATH_MAX];

    one = enter(store, "fedavg", "0.1").generation;
    fl_store_close(store);
    ck_assert_int_eq(unlink(rig_path(path, "federation.db")), 0);
    store = open_store();
    two = enter(store, "fedavg", "0.1").generation;
    fl_store_close(store);
    ck_assert_uint_eq(one.number, two.number);
    ck_assert_int_ne(memcmp(one.tag, two.tag, FL_GENERATION_TAG), 0);
    ck_assert_int_ne(memcmp(one.kept_tag, two.kept_tag, FL_GENERATION_TAG), 0);
}

TEST(an_open_attempt_of_another_meaning_is_never_loaded)
{
    struct fl_store *store;
    struct fl_coord_resume r;

    left_by("fedavg");
    /* A program that changed the one and died before the other could not be ours; still. */
    rig_sql("UPDATE federation SET meaning = zeroblob(32)");
    store = open_store();
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.n_parts, 0);
    ck_assert_uint_eq(r.open_attempt, 2);
    fl_store_resume_done(&r);
    fl_store_close(store);
}

TEST(a_folder_that_does_not_say_what_it_is_begins_its_attempt_again)
{
    struct fl_store *store;
    struct fl_store_entered e;

    left_by("scaffold");
    rig_sql("UPDATE federation SET meaning = NULL; DELETE FROM setting");
    store = open_store();
    e = enter(store, "scaffold", "0.1");
    ck_assert(e.unknown && e.new_generation && e.state_restarted && !e.first);
    ck_assert_uint_eq(e.dropped_round, 2);
    fl_store_close(store);
}

TEST(summaries_made_for_other_options_are_forgotten)
{
    struct fl_store *store;

    left_by("fedmix");
    store = open_store();
    ck_assert_int_eq(fl_summaries_put(dir, "a", "means", 5, NULL), FL_OK);
    ck_assert(!enter(store, "fedmix", "0.05").verdict.summary);
    ck_assert(fl_summaries_has(dir, "a"));
    ck_assert(enter(store, "fedavg", "0.05").verdict.summary);
    ck_assert(!fl_summaries_has(dir, "a"));
    fl_store_close(store);
}

TEST(scores_of_another_selection_are_forgotten)
{
    struct fl_store *store;
    struct fl_coord_resume r;

    left_by("adafl");
    store = open_store();
    ck_assert(!enter(store, "attn", "0.1").verdict.score);
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert(r.clients[0].scored);
    fl_store_resume_done(&r);
    ck_assert(enter(store, "fedavg", "0.1").verdict.score);
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert(!r.clients[0].scored);
    fl_store_resume_done(&r);
    fl_store_close(store);
}
