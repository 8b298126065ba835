/*
 * Generations of the model and of client state: applying the settings of a start, rollback to an
 * earlier round, the record of changes, pins. On the thread that owns the store. Checkpoint files
 * are not touched here (models_abandon.c).
 */

#include "server/store/generation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/str.h"
#include "server/store/generation_impl.h"
#include "server/store/store_files.h"

int fl_store_generation(struct fl_store *store, struct fl_generation *ret, struct fl_err *err)
{
    struct fl__folder row;
    int rv = fl__generation_read(store, &row, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl__generation_of(&row, ret);
}

/* --- settings --- */

static int read_settings(struct fl_store *store, struct fl_settings *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_SETTINGS);
    struct fl__setting_rec setting;
    int rv;

    while ((rv = fl__setting_next(&q, &setting, err)) == FL_OK) {
        /* An unknown kind is treated as a figure, which is only reported. */
        bool known = setting.kind >= FL_SETTING_FIGURE && setting.kind <= FL_SETTING_SCORE;

        rv = fl_settings_add(ret, known ? setting.kind : FL_SETTING_FIGURE, setting.name,
                             setting.value);
        if (rv != FL_OK) {
            fl_query_reset(&q);
            return fl_err_set(err, rv, "%s", fl_strerror(rv));
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

/* --- applying settings --- */

static int write_pin(struct fl_store *store, const struct fl_pin_rec *rec, struct fl_err *err)
{
    return fl__pin_put(&store->db, FL__DB_PUT_PIN, rec, err);
}

/* Drop the open attempt: the next attempt of its round starts without participants. */
static int drop_open(struct fl_store *store, struct fl_store_entered *e, uint64_t wall_ms,
                     struct fl_err *err)
{
    char text[96];
    struct fl_change_rec change;
    int rv = fl__store_open_attempt(store, &e->dropped_round, &e->dropped_attempt,
                                    &e->dropped_updates, err);

    if (rv != FL_OK || e->dropped_round == 0) {
        return rv;
    }
    rv = fl__store_run(store, FL__DB_DROP_PARTS, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_run(store, FL__DB_REOPEN, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(text, sizeof(text), "%" PRIu32 " with %" PRIu64 " updates", e->dropped_attempt,
                   e->dropped_updates);
    change = (struct fl_change_rec){
        e->dropped_round, e->generation.number, wall_ms, "attempt", text, "dropped"};
    return fl__generation_put_change(store, &change, err);
}

static int put_differences(struct fl_store *store, const struct fl_store_entered *e,
                           uint64_t wall_ms, struct fl_err *err)
{
    const struct fl_settings_verdict *v = &e->verdict;
    struct fl_change_rec change = {
        .round = e->committed + 1, .generation = e->generation.number, .at_ms = wall_ms};
    size_t i;

    for (i = 0; i < v->n; i++) {
        int rv;

        change.name = v->list[i].name;
        change.before = v->list[i].before;
        change.after = v->list[i].after;
        rv = fl__generation_put_change(store, &change, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (!e->state_restarted || e->first) {
        return FL_OK;
    }
    change.name = "state of solver and clients";
    change.before = "kept";
    change.after = "started again";
    return fl__generation_put_change(store, &change, err);
}

/* Pin the checkpoint before a change of the settings, so that an operator can roll back to it. */
static int pin_before_change(struct fl_store *store, struct fl_store_entered *e, uint64_t wall_ms,
                             struct fl_err *err)
{
    char reason[FL_NAME_MAX + 64];
    size_t i = 0;

    if (e->committed == 0 || !e->verdict.update) {
        return FL_OK;
    }
    while (i < e->verdict.n && !e->verdict.list[i].update) {
        i++;
    }
    (void)snprintf(reason, sizeof(reason), "before %s changed",
                   i < e->verdict.n ? e->verdict.list[i].name : "the settings");
    e->pinned = e->committed;
    return write_pin(
        store, &(struct fl_pin_rec){.round = e->committed, .at_ms = wall_ms, .reason = reason},
        err);
}

static int apply_changed_settings(struct fl_store *store, struct fl__folder *row,
                                  const struct fl_settings *now, uint64_t wall_ms,
                                  struct fl_store_entered *e, struct fl_err *err)
{
    size_t i;
    int rv = fl__generation_write(store, row, err);

    if (rv != FL_OK || !(e->first || e->unknown || e->verdict.rewrite)) {
        return rv;
    }
    rv = fl__store_run(store, FL__DB_DROP_SETTINGS, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < now->n; i++) {
        const struct fl__setting_rec setting = {
            .name = now->list[i].name, .value = now->list[i].value, .kind = now->list[i].kind};

        rv = fl__setting_put(&store->db, FL__DB_PUT_SETTING, &setting, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    /* Clear before the change is durable: after that a restart would not detect it again. */
    rv = e->verdict.summary ? fl_summaries_clear(store->dir, err) : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    rv = put_differences(store, e, wall_ms, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = e->new_generation ? drop_open(store, e, wall_ms, err) : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    rv = e->new_generation ? pin_before_change(store, e, wall_ms, err) : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    return e->verdict.score ? fl__store_run(store, FL__DB_DROP_SCORES, err) : FL_OK;
}

static int enter_settings(struct fl_store *store, const struct fl_settings *now, uint64_t wall_ms,
                          struct fl_store_entered *e, struct fl_err *err)
{
    const char *keeps = fl_settings_find(now, "kept");
    struct fl__folder row;
    int rv = fl__store_last_round(store, &e->committed, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__generation_read(store, &row, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = read_settings(store, &e->before, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (row.meaning_len == sizeof(row.meaning)) {
        rv = fl_settings_compare(&e->before, now, &e->verdict);
    } else {
        rv = fl__store_is_new(store, &e->first, err);
        e->unknown = !e->first;
    }
    if (rv != FL_OK) {
        return rv;
    }
    e->new_generation = e->unknown || e->verdict.update;
    e->state_restarted = e->verdict.kept || (e->unknown && keeps != NULL && keeps[0] != '\0');
    row.generation += e->new_generation;
    if (e->state_restarted) {
        row.state_generation++;
        row.kept_since = e->committed;
    }
    rv = fl_settings_meaning(now, store->layout, row.meaning);
    if (rv != FL_OK) {
        return rv;
    }
    row.meaning_len = sizeof(row.meaning);
    rv = fl__generation_of(&row, &e->generation);
    if (rv != FL_OK) {
        return rv;
    }
    return apply_changed_settings(store, &row, now, wall_ms, e, err);
}

int fl_store_enter(struct fl_store *store, const struct fl_settings *now, uint64_t wall_ms,
                   struct fl_store_entered *ret, struct fl_err *err)
{
    struct fl_store_entered e = {.committed = 0};
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_db_end(&store->db, enter_settings(store, now, wall_ms, &e, err), err);
    if (rv != FL_OK) {
        fl_store_entered_done(&e);
        return rv;
    }
    *ret = e;
    return FL_OK;
}

void fl_store_entered_done(struct fl_store_entered *entered)
{
    fl_settings_verdict_done(&entered->verdict);
    fl_settings_done(&entered->before);
}

int fl_store_clean_spool(const char *dir, const struct fl_coord_resume *resume, struct fl_err *err)
{
    return fl_spool_clean(dir, resume->n_parts > 0 ? resume->open_round : 0, resume->open_attempt,
                          err);
}

/* --- rollback --- */

/* Record the highest round and attempt after `round` that clients may have received. */
static int note_used(struct fl_store *store, uint64_t round, struct fl__folder *row,
                     struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_LAST_ATTEMPT);
    struct fl__folder used;
    int rv;

    fl_query_u64(&q, round);
    rv = fl__folder_one(&q, &used, err);
    if (rv != FL_OK) {
        return rv;
    }
    row->used_round = used.used_round > row->used_round ? used.used_round : row->used_round;
    row->used_attempt =
        used.used_attempt > row->used_attempt ? used.used_attempt : row->used_attempt;
    return FL_OK;
}

int fl__store_rewind(struct fl_store *store, uint64_t round, const struct fl_rewind *why,
                     struct fl_err *err)
{
    /* The clients' aggregated marks too: round numbers are reused after a rollback. */
    static const enum fl__db_statement abandon[] = {FL__DB_ABANDON_ROUNDS, FL__DB_DROP_ROUNDS,
                                                    FL__DB_DROP_PARTICIPATIONS, FL__DB_UNCOUNT};
    char before[32];
    char after[256];
    uint64_t last = 0;
    struct fl__folder row;
    struct fl_change_rec change;
    size_t i;
    int rv = fl__store_last_round(store, &last, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__generation_read(store, &row, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = note_used(store, round, &row, err);
    if (rv != FL_OK) {
        return rv;
    }
    row.generation++;
    row.state_generation += why->restart_state;
    /* Rounds up to kept_since are run again, with the current client states. */
    row.kept_since = why->restart_state || row.kept_since > round ? round : row.kept_since;
    rv = fl__generation_write(store, &row, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(before, sizeof(before), "%" PRIu64, last);
    (void)snprintf(after, sizeof(after), "%" PRIu64 ": %s", round, why->reason);
    change =
        (struct fl_change_rec){round + 1, row.generation, why->wall_ms, "the model", before, after};
    rv = fl__generation_put_change(store, &change, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < sizeof(abandon) / sizeof(abandon[0]); i++) {
        rv = fl__store_run_with(store, abandon[i], round, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl__store_drop_open(store, err);
}

int fl_store_rewind(struct fl_store *store, uint64_t round, const struct fl_rewind *why,
                    struct fl_err *err)
{
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_end(&store->db, fl__store_rewind(store, round, why, err), err);
}

/* --- changes and pins --- */

int fl_store_changes(struct fl_store *store, uint64_t first, uint64_t last, fl_store_change_cb cb,
                     void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_CHANGES);
    struct fl_change_rec change;
    int rv;

    fl_query_u64(&q, first);
    fl_query_u64(&q, last);
    while ((rv = fl__change_next(&q, &change, err)) == FL_OK) {
        rv = cb(ctx, &change);
        if (rv != FL_OK) {
            fl_query_reset(&q);
            return rv;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

int fl_store_pin(struct fl_store *store, uint64_t round, const char *reason, uint64_t wall_ms,
                 struct fl_err *err)
{
    const struct fl_pin_rec pin = {.round = round, .at_ms = wall_ms, .reason = reason};
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_end(&store->db, write_pin(store, &pin, err), err);
}

int fl_store_unpin(struct fl_store *store, uint64_t round, struct fl_err *err)
{
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_run_with(store, FL__DB_DROP_PIN, round, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (fl_db_changes(&store->db) == 0) {
        rv = fl_err_set(err, FL_ENOENT, "the checkpoint of round %" PRIu64 " is not pinned", round);
    }
done:
    return fl_db_end(&store->db, rv, err);
}

int fl_store_pins(struct fl_store *store, fl_store_pin_cb cb, void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_PINS);
    struct fl_pin_rec pin;
    int rv;

    while ((rv = fl__pin_next(&q, &pin, err)) == FL_OK) {
        rv = cb(ctx, &pin);
        if (rv != FL_OK) {
            fl_query_reset(&q);
            return rv;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}
