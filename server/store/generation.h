#ifndef FL_STORE_LINE_H
#define FL_STORE_LINE_H

/*
 * The settings and the generation under which the records, checkpoints and updates of a state
 * folder were made, and the effect of a start with other settings (docs/operating.md).
 *
 * A *generation* is a sequence of rounds with compatible updates that build on each other.
 * Its number only increases; a new generation starts when the meaning of an update changes and when
 * the federation is rolled back to an older checkpoint. Client state has a generation of its own
 * (`state_generation`), which restarts only together with the server's share of that state. Clients
 * receive tags of both (Welcome.generation, Welcome.state_generation) and discard data of other
 * generations.
 *
 * Threading and errors: as store.h. Every function here is one transaction.
 */

#include "server/core/settings.h"
#include "server/store/store.h"

#define FL_GENERATION_TAG 32

struct fl_generation {
    uint64_t number, kept_number;
    char made[24 + 2 * FL_DIGEST_SIZE]; /* "NUMBER MEANING", for fl_models_save() */
    uint64_t kept_since; /* the last committed round when the client states were last reset */
    /* Unguessable and never reused, even when the folder is removed and created again. */
    uint8_t tag[FL_GENERATION_TAG], kept_tag[FL_GENERATION_TAG];
};

struct fl_store_entered {
    struct fl_generation generation;
    bool first;   /* a new folder: no settings were recorded before */
    bool unknown; /* the database was rebuilt: the recorded settings are lost */
    bool new_generation, state_restarted;
    struct fl_settings before; /* owned; the texts of the verdict point into it */
    struct fl_settings_verdict verdict;
    uint64_t committed;
    /* The open attempt that was dropped, with the number of its accepted updates. */
    uint64_t dropped_round;
    uint32_t dropped_attempt;
    uint64_t dropped_updates;
    uint64_t pinned; /* the round whose checkpoint was pinned; 0: none */
};

/*
 * Continue the federation with the settings `now`: compares them with the recorded ones and records
 * the changes and their consequences. At every start, before fl_store_load(). `now` must outlive
 * the result; free that with fl_store_entered_done().
 */
FL_MUST_CHECK int fl_store_enter(struct fl_store *store, const struct fl_settings *now,
                                 uint64_t wall_ms, struct fl_store_entered *ret,
                                 struct fl_err *err);
void fl_store_entered_done(struct fl_store_entered *entered);
FL_MUST_CHECK int fl_store_generation(struct fl_store *store, struct fl_generation *ret,
                                      struct fl_err *err);

/*
 * Remove every upload except those of the open attempt. At the start: the numbers of finished
 * attempts may be reused.
 */
FL_MUST_CHECK int fl_store_clean_spool(const char *dir, const struct fl_coord_resume *resume,
                                       struct fl_err *err);

/* The reason of a rollback, for the record of changes. */
struct fl_rewind {
    const char *reason; /* "checkpoint of round 7 is damaged" */
    bool restart_state; /* reset the client states: they belong to abandoned rounds */
    uint64_t wall_ms;
};

/*
 * Abandon all rounds after `round`, whose records move to table `abandoned`, drop the open round
 * and start a new generation. Attempt numbers of repeated rounds continue after the highest ever
 * used for them.
 */
FL_MUST_CHECK int fl_store_rewind(struct fl_store *store, uint64_t round,
                                  const struct fl_rewind *why, struct fl_err *err);

/* --- a folder that was restored from a backup (backup.h) --- */

struct fl_restored {
    char note[96];
    uint64_t committed;
    /* The open attempt that was dropped, with the number of its accepted updates; 0: none. */
    uint64_t dropped_round;
    uint32_t dropped_attempt;
    uint64_t dropped_updates;
};
/*
 * Carry out the note of fl_backup_restore(): start a new generation under a new identity, so that
 * no client confuses a coming round with one that it knows. The open attempt continues, as its
 * accepted updates were made from this model; but with `restart_state` the state shared by clients
 * and server restarts at zero, and the attempt is dropped. FL_ENOENT: no note, or it was carried
 * out already and only the note was left after a crash or power failure.
 */
FL_MUST_CHECK int fl_store_carry_restored(struct fl_store *store, bool restart_state,
                                          uint64_t wall_ms, struct fl_restored *ret,
                                          struct fl_err *err);

/* --- the record of changes --- */

struct fl_change_rec {
    uint64_t round; /* the first that it holds for */
    uint64_t generation;
    uint64_t at_ms;
    const char *name, *before, *after; /* borrowed for the call */
};

typedef int (*fl_store_change_cb)(void *ctx, const struct fl_change_rec *change);
/* Changes that hold from one of the rounds first to last on, oldest first. A callback's error
   ends it. */
FL_MUST_CHECK int fl_store_changes(struct fl_store *store, uint64_t first, uint64_t last,
                                   fl_store_change_cb cb, void *ctx, struct fl_err *err);

/* --- checkpoints that stay until they are released --- */

struct fl_pin_rec {
    uint64_t round;
    uint64_t at_ms;
    const char *reason; /* borrowed for the call */
};

typedef int (*fl_store_pin_cb)(void *ctx, const struct fl_pin_rec *pin);
FL_MUST_CHECK int fl_store_pin(struct fl_store *store, uint64_t round, const char *reason,
                               uint64_t wall_ms, struct fl_err *err);
/* FL_ENOENT: not pinned. */
FL_MUST_CHECK int fl_store_unpin(struct fl_store *store, uint64_t round, struct fl_err *err);
FL_MUST_CHECK int fl_store_pins(struct fl_store *store, fl_store_pin_cb cb, void *ctx,
                                struct fl_err *err);

#endif
