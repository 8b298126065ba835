#ifndef FL_STORE_STORE_IMPL_H
#define FL_STORE_STORE_IMPL_H

/* Private to server/store. */

#include "server/store/store.h"
#include "server/store/store_db.h"

/* Longest path in the state folder. */
#define FL__STORE_PATH_MAX 4096

/* A file in a restored folder until its first start: a line for operators and a random id of this
 * restore. */
#define FL__RESTORED_NOTE "restored"
#define FL__RESTORED_NAME 32

struct fl_store {
    struct fl_db db;
    size_t n_units;
    uint64_t epoch; /* as it is on disk, after fl_store_load() */
    char id[FL_STORE_ID_TEXT];
    uint8_t layout[FL_DIGEST_SIZE];
    char dir[FL__STORE_PATH_MAX];
};

/* "a/b". FL_ELIMIT, with the folder in the message. */
FL_MUST_CHECK int fl__store_join(char out[FL__STORE_PATH_MAX], const char *a, const char *b,
                                 struct fl_err *err);
/* After a failed system call: sets "WHAT 'PATH': " and the text of errno, returns its code. */
int fl__store_fail(struct fl_err *err, const char *what, const char *path);

struct fl__store_opening {
    const char *dir;  /* the state folder */
    const char *path; /* the database */
    const char *federation;
    const struct fl_layout *layout;
    enum fl_durability durability;
    /* A database without a federation becomes this one, with that id, whatever other files the
     * folder holds. NULL: with a random id, in a folder without such files. */
    const uint8_t *rebuild;
};
FL_MUST_CHECK int fl__store_open_path(const struct fl__store_opening *o, struct fl_store **ret,
                                      struct fl_err *err);
/* store.c: write the record of a round, within a transaction. */
FL_MUST_CHECK int fl__store_put_round(struct fl_store *store, const struct fl_round_rec *rec,
                                      struct fl_err *err);

/* store_participations.c: write who took part, within a transaction. */
FL_MUST_CHECK int fl__store_put_participations(struct fl_store *store, uint64_t round,
                                               const struct fl_participations *taken,
                                               struct fl_err *err);

/* --- store_query.c --- */

/* A statement without values, and one with a number. */
FL_MUST_CHECK int fl__store_run(struct fl_store *store, enum fl__db_statement which,
                                struct fl_err *err);
FL_MUST_CHECK int fl__store_run_with(struct fl_store *store, enum fl__db_statement which,
                                     uint64_t number, struct fl_err *err);
/* Remove the open round and its participants. */
FL_MUST_CHECK int fl__store_drop_open(struct fl_store *store, struct fl_err *err);
/* The single number that a statement returns. */
FL_MUST_CHECK int fl__store_number(struct fl_store *store, enum fl__db_statement which,
                                   uint64_t *ret, struct fl_err *err);
/* The last committed round, 0: none. */
FL_MUST_CHECK int fl__store_last_round(struct fl_store *store, uint64_t *ret, struct fl_err *err);
/* true: no client, no round and no open round. */
FL_MUST_CHECK int fl__store_is_new(struct fl_store *store, bool *ret, struct fl_err *err);
/* The open attempt and the number of its accepted updates; nothing is set when none is open, or it
 * has no participants. */
FL_MUST_CHECK int fl__store_open_attempt(struct fl_store *store, uint64_t *ret_round,
                                         uint32_t *ret_attempt, uint64_t *ret_updates,
                                         struct fl_err *err);

struct fl_rewind;
/* generation.c: as fl_store_rewind(), within a transaction. */
FL_MUST_CHECK int fl__store_rewind(struct fl_store *store, uint64_t round,
                                   const struct fl_rewind *why, struct fl_err *err);

#endif
