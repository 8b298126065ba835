#ifndef FL_STORE_MODELS_IMPL_H
#define FL_STORE_MODELS_IMPL_H

/* Shared by models.c (saving, loading, pruning), models_draft.c and models_quarantine.c. */

#include "libfl/model/safetensors.h"
#include "server/store/store_impl.h"
#include "server/store/store_rollback.h"

#define FL__MODELS_PREFIX "round-"
#define FL__MODELS_SUFFIX ".safetensors"
/* Metadata: which database a file belongs to. */
#define FL__MODELS_DATABASE_KEY "fl.database"
/* "name:checksum" of the state vectors, one a vector, with blanks between. */
#define FL__MODELS_STATES_KEY "fl.states"
#define FL__MODELS_STATES_MAX 1024
/* The seal of the mixtures. */
#define FL__MODELS_MIXED_KEY "fl.mixtures"

/* Path and metadata of one file of a checkpoint; borrows what it is made of. */
struct fl__models_one {
    char path[FL__STORE_PATH_MAX];
    char round[24];
    struct fl_st_meta meta[5];
    size_t n;
};
/* `state_name` NULL: the model's, with its vectors as `states` has them. */
FL_MUST_CHECK int fl__models_describe(const char *dir, uint64_t round,
                                      const struct fl_models_tag *tag, const char *state_name,
                                      const char *states, struct fl__models_one *ret,
                                      struct fl_err *err);
/* Append a vector to `states`: with that checksum, and with that of its file. */
FL_MUST_CHECK int fl__models_put_state(const char *name, const char *checksum, char *states,
                                       size_t size, struct fl_err *err);
FL_MUST_CHECK int fl__models_add_state(const char *dir, uint64_t round, const char *name,
                                       char *states, size_t size, struct fl_err *err);
/* Where they lie, made when it is missing. */
FL_MUST_CHECK int fl__models_folder(const char *dir, struct fl_err *err);

/* "round-000012.momentum.safetensors", or with more behind it, is of round 12. */
bool fl__models_round_of(const char *name, uint64_t *ret);

typedef int (*fl__models_cb)(void *ctx, const char *folder, const char *name, uint64_t round);
/*
 * models_abandon.c: checkpoints of rounds behind `after` are taken out of the way, those of the
 * rounds in `kept` as "….line-N", the others for good. Can be done again.
 */
FL_MUST_CHECK int fl__models_abandon(const char *dir, uint64_t after, uint64_t line,
                                     const uint64_t *kept, size_t n_kept, struct fl_err *err);

/* Every file of a round. A missing folder has none. */
FL_MUST_CHECK int fl__models_each(const char *folder, fl__models_cb cb, void *ctx,
                                  struct fl_err *err);

#endif
