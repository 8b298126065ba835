#ifndef FL_STORE_STORE_IMPL_H
#define FL_STORE_STORE_IMPL_H

/* Private to server/store. */

#include "server/store/store.h"
#include "server/store/store_db.h"

/* Longest path in the state folder. */
#define FL__STORE_PATH_MAX 4096
#define FL__STORE_ID_SIZE  ((FL_STORE_ID_TEXT - 1) / 2)

/* A file in a restored folder until its first start: a line for operators and a random id of this
 * restore. */
#define FL__RESTORED_NOTE "restored"
#define FL__RESTORED_NAME 32

/* Length of the random identity of a state folder. */
#define FL__IDENTITY 16

struct fl_store {
    struct fl_db db;
    size_t n_units;
    uint64_t epoch; /* as it is on disk, after fl_store_load() */
    char id[FL_STORE_ID_TEXT];
    uint8_t layout[FL_DIGEST_SIZE];
    char dir[FL__STORE_PATH_MAX];
};

/*
 * store_rebuild.c: FL_ESTATE when the folder holds files of a federation whose database `what` ("is
 * missing"): a new federation must not start over them.
 */
FL_MUST_CHECK int fl__store_check_new(const char *dir, const char *what, struct fl_err *err);
/*
 * `rebuild` (or NULL): a database without a federation becomes this one, with that id, whatever
 * other files the folder holds.
 */
FL_MUST_CHECK int fl__store_open_path(const char *dir, const char *path, const char *federation,
                                      const struct fl_layout *layout, enum fl_durability durability,
                                      const uint8_t *rebuild, struct fl_store **ret,
                                      struct fl_err *err);
/* Make `round` the last one, with an empty record when it has none. */
FL_MUST_CHECK int fl__store_restore(struct fl_store *store, uint64_t round, struct fl_err *err);

/* The single number that a statement returns. */
FL_MUST_CHECK int fl__store_number(struct fl_store *store, enum fl__db_statement which,
                                   uint64_t *ret, struct fl_err *err);
/* The last committed round, 0: none. */
FL_MUST_CHECK int fl__store_last_round(struct fl_store *store, uint64_t *ret, struct fl_err *err);
/* true: no client, no round and no open round. */
FL_MUST_CHECK int fl__store_is_new(struct fl_store *store, bool *ret, struct fl_err *err);
/* store_load.c: read the figures of a round, which are the first columns of its statements. */
void fl__store_read_round(struct fl_query *q, struct fl_round_rec *r);
/* store_load.c: the open attempt and the number of its accepted updates. FL_ENOENT: none is open,
 * or it has no participants. */
FL_MUST_CHECK int fl__store_open_attempt(struct fl_store *store, uint64_t *ret_round,
                                         uint32_t *ret_attempt, uint64_t *ret_updates,
                                         struct fl_err *err);
struct fl_rewind;
/* generation.c: as fl_store_rewind(), within a transaction. */
FL_MUST_CHECK int fl__store_rewind(struct fl_store *store, uint64_t round,
                                   const struct fl_rewind *why, struct fl_err *err);

#endif
