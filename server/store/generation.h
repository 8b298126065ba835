#ifndef FL_STORE_LINE_H
#define FL_STORE_LINE_H

/*
 * Under what the records, checkpoints and updates of a state folder were made, and what a
 * start under other settings does to them (docs/changing.md).
 *
 * A *line* is a run of rounds whose updates mean the same and follow on each other. It has a
 * number that only rises; another one begins when an update comes to mean something else,
 * and when the federation goes back to an older checkpoint. What clients keep between rounds
 * has a line of its own, which begins anew only together with the server's part of it.
 * Clients are told tags of both (Welcome.line, Welcome.kept_line) and drop what they hold of
 * others.
 *
 * Threading and errors: as store.h. Everything here is one transaction.
 */

#include "server/core/settings.h"
#include "server/store/store.h"

#define FL_GENERATION_TAG 32

struct fl_generation {
    uint64_t number, kept_number;
    char made[24 + 2 * FL_DIGEST_SIZE]; /* "NUMBER MEANING", for fl_models_save() */
    uint64_t kept_since; /* the last committed round when clients began to keep anew */
    /* Unguessable and never the same again, also not after the folder was removed and made anew. */
    uint8_t tag[FL_GENERATION_TAG], kept_tag[FL_GENERATION_TAG];
};

struct fl_store_entered {
    struct fl_generation line;
    bool first;   /* a new folder: nothing was written down before */
    bool unknown; /* the database was rebuilt, and what was written down is lost */
    bool new_line, kept_anew;
    struct fl_settings before; /* owned; what the texts of the verdict point to */
    struct fl_settings_verdict verdict;
    uint64_t committed;
    /* The attempt that was open and does not count any more, with the updates it had accepted. */
    uint64_t dropped_round;
    uint32_t dropped_attempt;
    uint64_t dropped_updates;
    uint64_t held; /* the checkpoint that is kept from now on; 0: none */
};

/*
 * The federation goes on under `now`: compares it with what was written down, writes down
 * what changed and its consequences. Before fl_store_load(), at every start.
 * `now` must outlive the result; free that with fl_store_entered_done().
 */
FL_MUST_CHECK int fl_store_enter(struct fl_store *store, const struct fl_settings *now,
                                 uint64_t wall_ms, struct fl_store_entered *ret,
                                 struct fl_err *err);
void fl_store_entered_done(struct fl_store_entered *entered);
FL_MUST_CHECK int fl_store_generation(struct fl_store *store, struct fl_generation *ret,
                                      struct fl_err *err);

/*
 * Remove every upload but those of the open attempt: at the start, for those of attempts that
 * are over may have numbers that come again.
 */
FL_MUST_CHECK int fl_store_clean_spool(const char *dir, const struct fl_coord_resume *resume,
                                       struct fl_err *err);

/* Why a federation goes back, for the record. */
struct fl_rewind {
    const char *reason; /* "checkpoint of round 7 is damaged" */
    bool keep_anew;     /* what clients keep belongs to rounds that do not count any more */
    uint64_t wall_ms;
};

/*
 * Go back behind all rounds after `round`, whose records go to table `abandoned`, and drop the
 * open one; begin another line: attempts of the rounds that come again go on behind the highest
 * that was ever used for them.
 */
FL_MUST_CHECK int fl_store_rewind(struct fl_store *store, uint64_t round,
                                  const struct fl_rewind *why, struct fl_err *err);

/* --- a folder that was restored from a backup (backup_cmd.h) --- */

struct fl_restored {
    char note[96];
    uint64_t committed;
    /* The attempt that was open and is dropped, with the updates it had accepted; 0: none. */
    uint64_t dropped_round;
    uint32_t dropped_attempt;
    uint64_t dropped_updates;
};
/*
 * Carry out what fl_backup_restore() noted: begin another line under another identity, so that no
 * client takes a round to come for one that it knows. The open attempt goes on, as what was
 * accepted for it was made of this model; but with `keep_anew` what clients and the server keep
 * together restarts at zero, and it is dropped. FL_ENOENT: nothing is noted, or it
 * was carried out already and only the note was left, by a kill or a power loss.
 */
FL_MUST_CHECK int fl_store_carry_restored(struct fl_store *store, bool keep_anew, uint64_t wall_ms,
                                          struct fl_restored *ret, struct fl_err *err);

/* --- the record --- */

struct fl_change_rec {
    uint64_t round; /* the first that it holds for */
    uint64_t line;
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

typedef int (*fl_store_pin_cb)(void *ctx, const struct fl_pin_rec *hold);
FL_MUST_CHECK int fl_store_pin(struct fl_store *store, uint64_t round, const char *reason,
                               uint64_t wall_ms, struct fl_err *err);
/* FL_ENOENT: it is not held. */
FL_MUST_CHECK int fl_store_unpin(struct fl_store *store, uint64_t round, struct fl_err *err);
FL_MUST_CHECK int fl_store_pins(struct fl_store *store, fl_store_pin_cb cb, void *ctx,
                                struct fl_err *err);

#endif
