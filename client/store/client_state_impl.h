#ifndef FL_CLIENT_KEEP_IMPL_H
#define FL_CLIENT_KEEP_IMPL_H

/*
 * Private to client_state.c (what is kept and when), client_state_file.c (file formats) and
 * client_state_read.c.
 */

#include "client/store/client_state.h"

#define FL__CLIENT_STATE_PATH 4096

struct fl__client_state_entry {
    char name[FL_NAME_MAX];
    uint64_t kept, pending; /* serials of the files, 0: none */
};

/* The index file in memory. All zero: nothing. */
struct fl__client_state_index {
    char federation[FL_NAME_MAX];
    uint8_t layout[FL_DIGEST_SIZE], generation[FL_DIGEST_SIZE];
    struct fl_round_key kept, pending; /* of which round; round 0: none */
    uint64_t serial;                   /* the last used serial */
    size_t n_units;
    uint8_t *granted; /* upload mask [n_units] of the pending round; owned; NULL: n_units is 0 */
    size_t n;
    struct fl__client_state_entry entries[FL_CLIENT_STATE_MAX];
};

/* The expected contents of the head of a block. */
struct fl__client_state_block {
    const char *name;
    struct fl_round_key key; /* written, not checked */
    const uint8_t *layout;   /* [FL_DIGEST_SIZE] */
    size_t n_floats;
};

/* Copies with a mask of its own; FL_ENOMEM. */
FL_MUST_CHECK int fl__client_state_index_copy(const struct fl__client_state_index *from,
                                              struct fl__client_state_index *ret);
void fl__client_state_index_done(struct fl__client_state_index *index);
/* NULL: not found. */
struct fl__client_state_entry *fl__client_state_find(struct fl__client_state_index *index,
                                                     const char *name);
/* Does the upload mask of the pending round select any layer? */
bool fl__client_state_any_granted(const struct fl__client_state_index *index);
/* Clear the pending set and its upload mask. */
void fl__client_state_clear_pending(struct fl__client_state_index *index);

FL_MUST_CHECK int fl__client_state_index_write(const char *dir,
                                               const struct fl__client_state_index *index,
                                               bool sync, struct fl_err *err);
/* FL_ENOENT: none; FL_EFORMAT: damaged; FL_EVERSION: of a later version. */
FL_MUST_CHECK int fl__client_state_index_read(const char *dir, struct fl__client_state_index *ret,
                                              struct fl_err *err);
FL_MUST_CHECK int fl__client_state_block_write(const char *dir,
                                               const struct fl__client_state_block *block,
                                               uint64_t serial, const float *data, bool sync,
                                               struct fl_err *err);
/* Owned, free(). FL_ENOENT: missing. FL_EFORMAT: damaged. */
FL_MUST_CHECK int fl__client_state_block_read(const char *dir,
                                              const struct fl__client_state_block *block,
                                              uint64_t serial, float **ret, struct fl_err *err);
/*
 * The textual layout of the blocks, <dir>/layout: only for readers of the folder without a server
 * (client_state_read.h). Written when missing or different; read only when it has this digest:
 * FL_ENOENT, FL_EFORMAT.
 */
FL_MUST_CHECK int fl__client_state_layout_write(const char *dir, const struct fl_layout *layout,
                                                bool sync, struct fl_err *err);
FL_MUST_CHECK int fl__client_state_layout_read(const char *dir,
                                               const uint8_t digest[FL_DIGEST_SIZE],
                                               struct fl_layout **ret, struct fl_err *err);
/* Remove every block and temporary file that the index does not name. */
void fl__client_state_sweep(const char *dir, const struct fl__client_state_index *index);

#endif
