/*
 * A state folder that is opened under other settings than it was left under: no update of
 * before counts where it would mean something else, for every pair of presets.
 */

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/store/files.h"
#include "server/store/rollback.h"
#include "tests/lib/coord_script.h"
#include "tests/lib/store_rig.h"

#define N_PRESETS 43

/* Two thousand folders: what a power cut leaves is not asked here, so nothing waits for a disk. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

static struct fl_layout *layout;
static const char *dir;

static void setup(void)
{
    struct script *s = script_new("fedavg");

    dir = rig_dir();
    layout = s->layout; /* The folder has the model of the script. */
    s->layout = NULL;
    s->conf.layout = NULL;
    script_free(s);
}

static void teardown(void)
{
    fl_layout_free(layout);
    rig_remove();
}

static struct fl_store *open_store(void)
{
    struct fl_store *s = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_store_open(dir, "fed", layout, FL_DURABLE_PROCESS, &s, &err) == FL_OK, "%s",
                  err.msg);
    return s;
}

static struct fl_settings settings_of(const struct fl_strategy *strategy, const char *rate)
{
    struct fl_settings s = {.n = 0};

    ck_assert_int_eq(fl_settings_add_strategy(&s, strategy), FL_OK);
    ck_assert_int_eq(fl_settings_add(&s, FL_SETTING_FIGURE, "training.learning_rate", rate), FL_OK);
    return s;
}

static struct fl_strategy *strategy_of(const char *preset)
{
    struct fl_strategy *s = NULL;

    ck_assert_int_eq(fl_strategy_create(preset, &s, NULL), FL_OK);
    return s;
}

/* What entering under a preset says; the texts of the differences are gone with it. */
static struct fl_store_entered enter(struct fl_store *store, const char *preset, const char *rate)
{
    struct fl_strategy *strategy = strategy_of(preset);
    struct fl_settings now = settings_of(strategy, rate);
    struct fl_settings_verdict verdict;
    struct fl_store_entered e;
    struct fl_err err = {0};
    int rv = fl_store_enter(store, &now, 1000, &e, &err);

    ck_assert_msg(rv == FL_OK, "%s", err.msg);
    verdict = e.verdict;
    fl_store_entered_done(&e);
    e.verdict = verdict;
    e.verdict.list = NULL;
    fl_settings_done(&now);
    fl_strategy_free(strategy);
    return e;
}

/* --- a round that is open, with an accepted update --- */

static void put_clients(struct fl_store *store)
{
    struct fl_client_rec c = {.samples = 100, .score = 0.25, .scored = true};
    uint32_t id;

    for (id = 0; id < 2; id++) {
        c.id = id;
        (void)snprintf(c.name, sizeof(c.name), "%c", (char)('a' + (char)id));
        ck_assert_int_eq(fl_store_put_clients(store, &c, 1, NULL), FL_OK);
    }
}

static void commit(struct fl_store *store, uint64_t round, uint32_t attempt)
{
    struct fl_round_rec rec = {.round = round, .attempt = attempt, .accuracy = 0.95};

    ck_assert_int_eq(fl_store_commit(store, &rec, NULL, 0, NULL), FL_OK);
}

static void write_upload(uint64_t round, uint32_t attempt)
{
    struct fl_spool_part part = {.codec = FL_CODEC_FLOAT32, .bytes = 16};
    struct fl_spool *spool = NULL;
    uint64_t received = 0;

    ck_assert_int_eq(fl_spool_open(dir, round, attempt, "a", &part, 1, &spool, &received, NULL),
                     FL_OK);
    if (received == 0) {
        ck_assert_int_eq(fl_spool_write(spool, 0, "0123456789abcdef", 16, NULL), FL_OK);
    }
    fl_spool_close(spool);
}

static bool has_upload(uint64_t round, uint32_t attempt)
{
    return fl_spool_peek(dir, round, attempt, "a") > 0;
}

/* Round `round` is open: b has still to answer, the update of a is accepted. */
static void leave_open(struct fl_store *store, uint64_t round, uint32_t attempt, bool feedback)
{
    float divergence[SCRIPT_UNITS] = {1.0f, 2.0f, 3.0f};
    uint8_t units[SCRIPT_UNITS] = {1, 1, 1};
    struct fl_part_rec parts[2] = {{.client = 0, .state = FL_PART_SELECTED, .samples = 100},
                                   {.client = 1, .state = FL_PART_SELECTED, .samples = 100}};

    parts[0].units = parts[1].units = feedback ? NULL : units;
    ck_assert_int_eq(fl_store_put_selection(store,
                                            &(struct fl_selection){.round = round,
                                                                   .attempt = attempt,
                                                                   .parts = parts,
                                                                   .n_parts = 2,
                                                                   .size = {.selected = 2},
                                                                   .expected = 2},
                                            NULL),
                     FL_OK);
    parts[0].units = parts[1].units = units;
    parts[0].divergence = parts[1].divergence = divergence;
    if (feedback) {
        parts[0].state = parts[1].state = FL_PART_PLANNED;
        ck_assert_int_eq(fl_store_put_plan(store, round, attempt, parts, 2, NULL), FL_OK);
    }
    parts[0].state = FL_PART_ACCEPTED;
    parts[0].upload_bytes = 56;
    parts[0].train_loss = 1.5;
    ck_assert_int_eq(fl_store_put_update(store, round, attempt, &parts[0], NULL), FL_OK);
    write_upload(round, attempt);
}

static void left_by(const char *preset)
{
    struct fl_strategy *s = strategy_of(preset);
    struct fl_store *store = open_store();
    struct fl_store_entered e = enter(store, preset, "0.1");

    ck_assert(e.first && !e.new_line && !e.kept_anew);
    put_clients(store);
    commit(store, 1, 1);
    leave_open(store, 2, 1, s->upload->needs_feedback);
    fl_store_close(store);
    fl_strategy_free(s);
}

/* --- copies of a folder --- */

static struct fl_buf saved;

static void save_folder(void)
{
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_fs_read(rig_path(path, "federation.db"), 1u << 24, &saved, NULL), FL_OK);
}

static void restore_folder(void)
{
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(
        fl_fs_replace(rig_path(path, "federation.db"), saved.data, saved.len, false, NULL), FL_OK);
    write_upload(2, 1);
}

/* --- going on under another preset --- */

/* Who delivered in this life; an update in the aggregation that did not is one of before. */
static bool delivered[2];
static size_t n_foreign, n_aggregated;

static int watch(struct fl_coord *coord, const struct fl_event *ev, struct fl_effects *ret)
{
    size_t i;
    size_t p;
    int rv;

    if (ev->type == FL_EV_UPLOAD_STORED) {
        delivered[ev->u.upload.client] = true;
    }
    rv = fl_coord_step(coord, ev, ret);
    for (i = 0; rv == FL_OK && i < ret->n; i++) {
        if (ret->list[i].type != FL_EFF_AGGREGATE) {
            continue;
        }
        n_aggregated++;
        for (p = 0; p < ret->list[i].n_parts; p++) {
            n_foreign += !delivered[ret->list[i].parts[p].client];
        }
    }
    return rv;
}

/* Both clients answer until round 2 is committed; the attempt that it was committed with. */
static uint32_t finish_round(const char *preset, const struct fl_coord_resume *resume)
{
    static const float divergence[SCRIPT_UNITS] = {1.0f, 2.0f, 3.0f};
    struct script *s = script_new(preset);
    uint32_t attempt;
    int turns;
    int who;

    n_foreign = n_aggregated = 0;
    delivered[0] = delivered[1] = false;
    s->quiet = true;
    s->take = watch;
    s->conf.rounds = 2;
    s->conf.lost_grace_ms = 50;
    script_create(s, resume);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    for (turns = 0; turns < 40 && fl_coord_committed(s->coord) < 2; turns++) {
        script_run_to(s, s->now + 10);
        for (who = 0; who < 2; who++) {
            const struct fl_part_rec *part = fl_coord_part(s->coord, (uint32_t)who);
            const char *name = who == 0 ? "a" : "b";

            if (part != NULL && part->state == FL_PART_SELECTED) {
                script_report(s, name, divergence);
            } else if (part != NULL &&
                       (part->state == FL_PART_REPORTED || part->state == FL_PART_PLANNED)) {
                script_stored(s, name);
            }
        }
    }
    ck_assert_msg(fl_coord_committed(s->coord) == 2, "%s: round 2 does not end", preset);
    attempt = s->record.attempt;
    script_free(s);
    return attempt;
}

static bool same_meaning(const struct fl_strategy *a, const struct fl_strategy *b)
{
    static const enum fl_slot slots[] = {FL_SLOT_SOLVER, FL_SLOT_UPLOAD, FL_SLOT_CODEC,
                                         FL_SLOT_AGGREGATE, FL_SLOT_PERSONAL};
    bool same = true;
    size_t i;

    for (i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
        struct fl_buf x;
        struct fl_buf y;

        fl_buf_init(&x, 4096);
        fl_buf_init(&y, 4096);
        ck_assert_int_eq(fl_strategy_slot_text(a, slots[i], &x), FL_OK);
        ck_assert_int_eq(fl_strategy_slot_text(b, slots[i], &y), FL_OK);
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

static void check_pair(const char *from, const char *to, const struct fl_line *before)
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
        ck_assert_msg(!e.new_line && r.n_parts == 2, "%s -> %s drops a good attempt", from, to);
        ck_assert_int_eq(memcmp(e.line.tag, before->tag, FL_LINE_TAG), 0);
        ck_assert(has_upload(2, 1));
        ck_assert_uint_eq(attempt, 1);
    } else {
        ck_assert_msg(e.new_line && r.n_parts == 0 && r.open_attempt == 2,
                      "%s -> %s goes on with an update of before", from, to);
        ck_assert_int_ne(memcmp(e.line.tag, before->tag, FL_LINE_TAG), 0);
        ck_assert_uint_eq(e.dropped_round, 2);
        ck_assert_uint_eq(e.dropped_updates, 1);
        ck_assert_uint_eq(e.held, 1);
        ck_assert(!has_upload(2, 1));
        ck_assert_uint_eq(attempt, 2);
        ck_assert_msg(n_foreign == 0, "%s -> %s aggregates an update of before", from, to);
    }
    ck_assert_uint_eq(n_aggregated, 1);
    /* What clients keep goes on only where the server's part of it does. */
    ck_assert_int_eq(e.kept_anew, !keeps_the_same(a, b));
    ck_assert_int_eq(memcmp(e.line.kept_tag, before->kept_tag, FL_LINE_TAG) != 0, e.kept_anew);
    ck_assert_uint_eq(e.line.kept_since, e.kept_anew ? 1 : 0);
    fl_store_resume_done(&r);
    fl_store_close(store);
    fl_strategy_free(a);
    fl_strategy_free(b);
}

/* _i: the preset that left the folder. */
START_TEST(no_pair_of_presets_aggregates_what_meant_something_else)
{
    const struct fl_preset *presets = fl_strategy_presets();
    struct fl_line line;
    struct fl_store *store;
    size_t i;

    left_by(presets[_i].name);
    store = open_store();
    ck_assert_int_eq(fl_store_line(store, &line, NULL), FL_OK);
    fl_store_close(store);
    save_folder();
    for (i = 0; i < N_PRESETS; i++) {
        restore_folder();
        check_pair(presets[_i].name, presets[i].name, &line);
    }
    ck_assert_ptr_null(presets[i].name);
    fl_buf_done(&saved);
}
END_TEST

/* --- one change --- */

static char text[2048];

static int add_change(void *ctx, const struct fl_change_rec *c)
{
    size_t used = strlen(text);

    (void)ctx;
    (void)snprintf(text + used, sizeof(text) - used, "%llu/%llu %s: %s -> %s\n",
                   (unsigned long long)c->round, (unsigned long long)c->line, c->name, c->before,
                   c->after);
    return FL_OK;
}

static int add_hold(void *ctx, const struct fl_hold_rec *h)
{
    size_t used = strlen(text);

    (void)ctx;
    (void)snprintf(text + used, sizeof(text) - used, "hold %llu %s\n", (unsigned long long)h->round,
                   h->reason);
    return FL_OK;
}

static const char *record(struct fl_store *store)
{
    text[0] = '\0';
    ck_assert_int_eq(fl_store_changes(store, 0, 99, add_change, NULL, NULL), FL_OK);
    ck_assert_int_eq(fl_store_holds(store, add_hold, NULL, NULL), FL_OK);
    return text;
}

START_TEST(a_change_stands_in_the_record_with_what_followed)
{
    struct fl_strategy *scaffold = strategy_of("scaffold");
    struct fl_store *store;
    struct fl_store_entered e;
    struct fl_buf solver;
    char expected[1024];

    fl_buf_init(&solver, 1024);
    ck_assert_int_eq(fl_strategy_slot_text(scaffold, FL_SLOT_SOLVER, &solver), FL_OK);
    (void)snprintf(expected, sizeof(expected),
                   "2/2 algorithm: fedavg -> scaffold\n"
                   "2/2 strategy.solver: sgd -> %.*s\n"
                   "2/2 state of solver and clients: kept -> begun anew\n"
                   "2/2 attempt: 1 with 1 updates -> dropped\n"
                   "hold 1 before strategy.solver changed\n",
                   (int)solver.len, (const char *)solver.data);
    fl_buf_done(&solver);
    fl_strategy_free(scaffold);
    left_by("fedavg");
    store = open_store();
    e = enter(store, "scaffold", "0.1");
    ck_assert(e.new_line && e.kept_anew && !e.first && !e.unknown);
    ck_assert_str_eq(record(store), expected);
    e = enter(store, "scaffold", "0.1"); /* The next start finds nothing new. */
    ck_assert(!e.new_line && !e.kept_anew && !e.verdict.rewrite);
    ck_assert_uint_eq(e.dropped_round, 0);
    ck_assert_int_eq(fl_store_release(store, 1, NULL), FL_OK);
    ck_assert_int_eq(fl_store_release(store, 1, NULL), FL_ENOENT);
    fl_store_close(store);
}
END_TEST

START_TEST(a_rate_is_recorded_and_drops_nothing)
{
    struct fl_store *store;
    struct fl_store_entered e;
    struct fl_coord_resume r;

    left_by("scaffold");
    store = open_store();
    e = enter(store, "scaffold", "0.05");
    ck_assert(!e.new_line && !e.kept_anew);
    ck_assert_str_eq(record(store), "2/1 training.learning_rate: 0.1 -> 0.05\n");
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.n_parts, 2);
    fl_store_resume_done(&r);
    fl_store_close(store);
}
END_TEST

START_TEST(a_change_and_back_gives_other_lines)
{
    struct fl_store *store;
    struct fl_line first;
    struct fl_store_entered e;

    left_by("scaffold");
    store = open_store();
    ck_assert_int_eq(fl_store_line(store, &first, NULL), FL_OK);
    (void)enter(store, "fedavg", "0.1");
    e = enter(store, "scaffold", "0.1");
    ck_assert_uint_eq(e.line.number, 3);
    ck_assert_int_ne(memcmp(e.line.tag, first.tag, FL_LINE_TAG), 0);
    ck_assert_int_ne(memcmp(e.line.kept_tag, first.kept_tag, FL_LINE_TAG), 0);
    fl_store_close(store);
}
END_TEST

START_TEST(two_folders_never_have_the_same_line)
{
    struct fl_store *store = open_store();
    struct fl_line one;
    struct fl_line two;
    char path[RIG_PATH_MAX];

    one = enter(store, "fedavg", "0.1").line;
    fl_store_close(store);
    ck_assert_int_eq(unlink(rig_path(path, "federation.db")), 0);
    store = open_store();
    two = enter(store, "fedavg", "0.1").line;
    fl_store_close(store);
    ck_assert_uint_eq(one.number, two.number);
    ck_assert_int_ne(memcmp(one.tag, two.tag, FL_LINE_TAG), 0);
    ck_assert_int_ne(memcmp(one.kept_tag, two.kept_tag, FL_LINE_TAG), 0);
}
END_TEST

START_TEST(an_open_attempt_of_another_meaning_is_never_loaded)
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
END_TEST

START_TEST(a_folder_that_does_not_say_what_it_is_begins_its_attempt_again)
{
    struct fl_store *store;
    struct fl_store_entered e;

    left_by("scaffold");
    rig_sql("UPDATE federation SET meaning = NULL; DELETE FROM setting");
    store = open_store();
    e = enter(store, "scaffold", "0.1");
    ck_assert(e.unknown && e.new_line && e.kept_anew && !e.first);
    ck_assert_uint_eq(e.dropped_round, 2);
    fl_store_close(store);
}
END_TEST

START_TEST(offers_made_for_other_options_are_forgotten)
{
    struct fl_store *store;

    left_by("fedmix");
    store = open_store();
    ck_assert_int_eq(fl_offers_put(dir, "a", "means", 5, NULL), FL_OK);
    ck_assert(!enter(store, "fedmix", "0.05").verdict.offer);
    ck_assert(fl_offers_has(dir, "a"));
    ck_assert(enter(store, "fedavg", "0.05").verdict.offer);
    ck_assert(!fl_offers_has(dir, "a"));
    fl_store_close(store);
}
END_TEST

START_TEST(scores_of_another_selection_are_forgotten)
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
END_TEST

/* --- going back --- */

START_TEST(attempts_of_rounds_that_come_again_are_new)
{
    const struct fl_rewind why = {.reason = "a test", .keep_anew = true};
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
    ck_assert_uint_eq(e.line.number, 2);
    ck_assert_uint_eq(e.line.kept_since, 1);
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
END_TEST

/* Of such a round the server has what goes with the clients' part: it must not be taken for older.
 */
START_TEST(rounds_that_come_again_are_behind_what_began_anew_before_them)
{
    const struct fl_rewind back = {.reason = "a test"};
    struct fl_store *store;
    struct fl_store_entered e;
    struct fl_line line;

    left_by("fedavg");
    store = open_store();
    commit(store, 2, 2);
    commit(store, 3, 1);
    e = enter(store, "fedmcsa", "0.1");
    ck_assert_uint_eq(e.line.kept_since, 3);
    commit(store, 4, 1);
    ck_assert_int_eq(fl_store_rewind(store, 3, &back, NULL), FL_OK);
    ck_assert_int_eq(fl_store_line(store, &line, NULL), FL_OK);
    ck_assert_uint_eq(line.kept_since, 3);
    ck_assert_int_eq(fl_store_rewind(store, 1, &back, NULL), FL_OK);
    ck_assert_int_eq(fl_store_line(store, &line, NULL), FL_OK);
    ck_assert_uint_eq(line.kept_since, 1);
    ck_assert_uint_eq(line.kept_number, e.line.kept_number);
    fl_store_close(store);
}
END_TEST

static void save_model(struct fl_store *store, uint64_t round)
{
    static const float theta[4096];
    const struct fl_models_tag tag = {.database = fl_store_id(store)};

    ck_assert_uint_le(fl_layout_count(layout), 4096);
    ck_assert_int_eq(fl_models_save(dir, round, &tag, layout, theta, NULL, NULL, 0, false, NULL),
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
    ck_assert_int_eq(fl_store_hold(store, 3, "by the operator", 0, NULL), FL_OK);
    ck_assert_int_eq(fl_store_hold(store, 1, "by the operator", 0, NULL), FL_OK);
    ck_assert_int_eq(fl_store_ask_rollback(store, 2, 1000, NULL), FL_OK);
    return store;
}

/* A program that died `_i` steps after the wish was on disk, and is started again. */
START_TEST(a_rollback_survives_death_at_any_step)
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
                                    rig_path(to, "models/round-000004.safetensors.line-1")),
                             0);
        }
        store = open_store();
    }
    ck_assert_int_eq(fl_store_asked_rollback(store, &round, NULL), FL_ENOENT);
    ck_assert_int_eq(fl_store_finish_rollback(store, NULL), FL_OK);
    ck_assert_int_eq(fl_store_finish_rollback(store, NULL), FL_OK);
    ck_assert_uint_eq(enter(store, "scaffold", "0.1").line.number, 2);
    ck_assert_int_eq(fl_store_load(store, &r, NULL), FL_OK);
    ck_assert_uint_eq(r.committed, 2);
    ck_assert_uint_eq(r.open_round, 0);
    ck_assert_uint_eq(r.used_round, 5);
    ck_assert_uint_eq(r.used_attempt, 2);
    fl_store_resume_done(&r);
    ck_assert_str_eq(record(store), "3/2 the model: 4 -> 2: rolled back to round 2, rounds 3 to 4 "
                                    "abandoned\nhold 1 by the operator\n");
    ck_assert(has_model("models/round-000002.safetensors"));
    ck_assert(!has_model("models/round-000003.safetensors"));
    ck_assert(!has_model("models/round-000004.safetensors"));
    ck_assert_int_eq(fl_models_abandoned(dir, &left, &n, NULL), FL_OK);
    ck_assert_uint_eq(n, 2); /* The newest, and one that was held. */
    ck_assert(left[0].round == 3 && left[0].line == 1 && left[1].round == 4 && left[1].line == 1);
    free(left);
    ck_assert_int_eq(fl_models_release_abandoned(dir, 4, NULL), FL_OK);
    ck_assert_int_eq(fl_models_release_abandoned(dir, 4, NULL), FL_ENOENT);
    ck_assert(!has_model("models/round-000004.safetensors.line-1"));
    fl_store_close(store);
    rig_sql("INSERT INTO hold SELECT round, 'kept', 0 FROM abandoned WHERE line = 1");
    store = open_store();
    ck_assert_ptr_nonnull(strstr(record(store), "hold 3 kept\nhold 4 kept\n"));
    fl_store_close(store);
}
END_TEST

START_TEST(a_rollback_that_is_dropped_changes_nothing)
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
END_TEST

static int add_abandoned(void *ctx, const struct fl_abandoned_round *r)
{
    size_t used = strlen(text);

    (void)ctx;
    (void)snprintf(text + used, sizeof(text) - used, "%u/%u.%u %.2f at %u: %s\n", (unsigned)r->line,
                   (unsigned)r->round.round, (unsigned)r->round.attempt, r->round.accuracy,
                   (unsigned)r->at_ms, r->by);
    return FL_OK;
}

static const char *abandoned(struct fl_store *store, uint32_t last)
{
    text[0] = '\0';
    ck_assert_int_eq(fl_store_abandoned(store, last, add_abandoned, NULL, NULL), FL_OK);
    return text;
}

/* Rounds 3 and 4 twice, and round 2 of the first line by the second rollback. */
START_TEST(an_abandoned_round_names_the_rollback_that_gave_it_up)
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
END_TEST

int main(void)
{
    Suite *suite = suite_create("store change");
    TCase *pairs = tcase_create("pairs");
    TCase *rules = tcase_create("rules");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(pairs, setup, teardown);
    tcase_set_timeout(pairs, 600);
    tcase_add_loop_test(pairs, no_pair_of_presets_aggregates_what_meant_something_else, 0,
                        N_PRESETS);
    tcase_add_checked_fixture(rules, setup, teardown);
    tcase_set_timeout(rules, 600);
    tcase_add_test(rules, a_change_stands_in_the_record_with_what_followed);
    tcase_add_test(rules, a_rate_is_recorded_and_drops_nothing);
    tcase_add_test(rules, a_change_and_back_gives_other_lines);
    tcase_add_test(rules, two_folders_never_have_the_same_line);
    tcase_add_test(rules, an_open_attempt_of_another_meaning_is_never_loaded);
    tcase_add_test(rules, a_folder_that_does_not_say_what_it_is_begins_its_attempt_again);
    tcase_add_test(rules, offers_made_for_other_options_are_forgotten);
    tcase_add_test(rules, scores_of_another_selection_are_forgotten);
    tcase_add_test(rules, attempts_of_rounds_that_come_again_are_new);
    tcase_add_test(rules, rounds_that_come_again_are_behind_what_began_anew_before_them);
    tcase_add_loop_test(rules, a_rollback_survives_death_at_any_step, 0, 3);
    tcase_add_test(rules, a_rollback_that_is_dropped_changes_nothing);
    tcase_add_test(rules, an_abandoned_round_names_the_rollback_that_gave_it_up);
    suite_add_tcase(suite, pairs);
    suite_add_tcase(suite, rules);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
