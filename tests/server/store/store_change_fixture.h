#ifndef FL_TESTS_STORE_CHANGE_FIXTURE_H
#define FL_TESTS_STORE_CHANGE_FIXTURE_H

/* A state folder that is left with a round open, and opened again under other settings or an older
 * model. */

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/store/store_files.h"
#include "server/store/store_rollback.h"
#include "tests/lib/coord_script.h"
#include "tests/lib/store_rig.h"

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

static inline void setup(void)
{
    struct script *s = script_new("fedavg");

    dir = rig_dir();
    layout = s->layout; /* The folder has the model of the script. */
    s->layout = NULL;
    s->conf.layout = NULL;
    script_free(s);
}

static inline void teardown(void)
{
    fl_layout_free(layout);
    rig_remove();
}

static inline struct fl_store *open_store(void)
{
    struct fl_store *s = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_store_open(dir, "fed", layout, FL_DURABLE_PROCESS, &s, &err) == FL_OK, "%s",
                  err.msg);
    return s;
}

static inline struct fl_settings settings_of(const struct fl_strategy *strategy, const char *rate)
{
    struct fl_settings s = {.n = 0};

    ck_assert_int_eq(fl_settings_add_strategy(&s, strategy), FL_OK);
    ck_assert_int_eq(fl_settings_add(&s, FL_SETTING_FIGURE, "training.learning_rate", rate), FL_OK);
    return s;
}

static inline struct fl_strategy *strategy_of(const char *preset)
{
    struct fl_strategy *s = NULL;

    ck_assert_int_eq(fl_strategy_create(preset, &s, NULL), FL_OK);
    return s;
}

/* What entering under a preset says; the texts of the differences are gone with it. */
static inline struct fl_store_entered enter(struct fl_store *store, const char *preset,
                                            const char *rate)
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

static inline void put_clients(struct fl_store *store)
{
    struct fl_client_rec c = {.samples = 100, .score = 0.25, .scored = true};
    uint32_t id;

    for (id = 0; id < 2; id++) {
        c.id = id;
        (void)snprintf(c.name, sizeof(c.name), "%c", (char)('a' + (char)id));
        ck_assert_int_eq(fl_store_put_clients(store, &c, 1, NULL), FL_OK);
    }
}

static inline void commit(struct fl_store *store, uint64_t round, uint32_t attempt)
{
    struct fl_round_rec rec = {.round = round, .attempt = attempt, .accuracy = 0.95};

    ck_assert_int_eq(fl_store_commit(store, &rec, NULL, 0, NULL, NULL), FL_OK);
}

static inline void write_upload(uint64_t round, uint32_t attempt)
{
    struct fl_spool_part part = {.codec = FL_CODEC_FLOAT32, .bytes = 16};
    struct fl_spool *spool = NULL;
    uint64_t received = 0;

    ck_assert_int_eq(
        fl_spool_open(&(struct fl_spool_opening){dir, round, attempt, "a", &part, 1, NULL}, &spool,
                      &received, NULL),
        FL_OK);
    if (received == 0) {
        ck_assert_int_eq(fl_spool_write(spool, 0, "0123456789abcdef", 16, NULL), FL_OK);
    }
    fl_spool_close(spool);
}

static inline bool has_upload(uint64_t round, uint32_t attempt)
{
    return fl_spool_peek(dir, round, attempt, "a") > 0;
}

/* Round `round` is open: b has still to answer, the update of a is accepted. */
static inline void leave_open(struct fl_store *store, uint64_t round, uint32_t attempt,
                              bool feedback)
{
    float divergence[SCRIPT_UNITS] = {1.0f, 2.0f, 3.0f};
    uint8_t units[SCRIPT_UNITS] = {1, 1, 1};
    struct fl_participant_rec parts[2] = {
        {.client = 0, .state = FL_PARTICIPANT_SELECTED, .samples = 100},
        {.client = 1, .state = FL_PARTICIPANT_SELECTED, .samples = 100}};

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
        parts[0].state = parts[1].state = FL_PARTICIPANT_PLANNED;
        ck_assert_int_eq(fl_store_put_plan(store, round, attempt, parts, 2, NULL), FL_OK);
    }
    parts[0].state = FL_PARTICIPANT_ACCEPTED;
    parts[0].upload_bytes = 56;
    parts[0].train_loss = 1.5;
    ck_assert_int_eq(fl_store_put_update(store, round, attempt, &parts[0], NULL), FL_OK);
    write_upload(round, attempt);
}

static inline void left_by(const char *preset)
{
    struct fl_strategy *s = strategy_of(preset);
    struct fl_store *store = open_store();
    struct fl_store_entered e = enter(store, preset, "0.1");

    ck_assert(e.first && !e.new_generation && !e.state_restarted);
    put_clients(store);
    commit(store, 1, 1);
    leave_open(store, 2, 1, s->upload->needs_feedback);
    fl_store_close(store);
    fl_strategy_free(s);
}

/* --- copies of a folder --- */

static struct fl_buf saved;

static inline void save_folder(void)
{
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_fs_read(rig_path(path, "federation.db"), 1u << 24, &saved, NULL), FL_OK);
}

static inline void restore_folder(void)
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

static inline int watch(struct fl_coord *coord, const struct fl_event *ev, struct fl_effects *ret)
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
static inline uint32_t finish_round(const char *preset, const struct fl_coord_resume *resume)
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
            const struct fl_participant_rec *part = fl_coord_part(s->coord, (uint32_t)who);
            const char *name = who == 0 ? "a" : "b";

            if (part != NULL && part->state == FL_PARTICIPANT_SELECTED) {
                script_report(s, name, divergence);
            } else if (part != NULL && (part->state == FL_PARTICIPANT_REPORTED ||
                                        part->state == FL_PARTICIPANT_PLANNED))
            {
                script_stored(s, name);
            }
        }
    }
    ck_assert_msg(fl_coord_committed(s->coord) == 2, "%s: round 2 does not end", preset);
    attempt = s->record.attempt;
    script_free(s);
    return attempt;
}

/* --- what the record says --- */

static char text[2048];

static inline int add_change(void *ctx, const struct fl_change_rec *c)
{
    size_t used = strlen(text);

    (void)ctx;
    (void)snprintf(text + used, sizeof(text) - used, "%llu/%llu %s: %s -> %s\n",
                   (unsigned long long)c->round, (unsigned long long)c->generation, c->name,
                   c->before, c->after);
    return FL_OK;
}

static inline int add_pin(void *ctx, const struct fl_pin_rec *h)
{
    size_t used = strlen(text);

    (void)ctx;
    (void)snprintf(text + used, sizeof(text) - used, "pin %llu %s\n", (unsigned long long)h->round,
                   h->reason);
    return FL_OK;
}

static inline const char *record(struct fl_store *store)
{
    text[0] = '\0';
    ck_assert_int_eq(fl_store_changes(store, 0, 99, add_change, NULL, NULL), FL_OK);
    ck_assert_int_eq(fl_store_pins(store, add_pin, NULL, NULL), FL_OK);
    return text;
}

#endif
