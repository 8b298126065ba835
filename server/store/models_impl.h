#ifndef FL_STORE_MODELS_IMPL_H
#define FL_STORE_MODELS_IMPL_H

/* Shared by models.c (saving, loading, pruning), models_draft.c, models_abandon.c and
 * models_quarantine.c. */

#include "libfl/base/checksum.h"
#include "libfl/model/safetensors.h"
#include "server/store/store_impl.h"
#include "server/store/store_rollback.h"

#define FL__MODELS_PREFIX "round-"
#define FL__MODELS_SUFFIX ".safetensors"
/* Metadata key: id of the database that wrote the file. */
#define FL__MODELS_DATABASE_KEY "fl.database"
/* Metadata key: "name:checksum" of each state vector, separated by spaces. */
#define FL__MODELS_STATES_KEY "fl.states"
#define FL__MODELS_STATES_MAX 1024
/* Metadata key: seal of the personalized models. */
#define FL__MODELS_MIXED_KEY "fl.personal_models"
/* Metadata key: checksum of the bytes beside the vectors, or FL__MODELS_NO_KEPT. */
#define FL__MODELS_KEPT_KEY "fl.kept"
#define FL__MODELS_NO_KEPT  "0000000000000000"

/* Path and metadata of one file of a checkpoint; borrows the strings it was made from. */
struct fl__models_one {
    char path[FL__STORE_PATH_MAX];
    char round[24], kept[FL_CHECKSUM_TEXT];
    struct fl_st_meta meta[6];
    size_t n;
};
/* `state_name` NULL: the model's file, with the state vectors listed in `states`,
   and with tag.keeps the checksum `kept`. */
FL_MUST_CHECK int fl__models_describe(const struct fl_models_checkpoint *c, const char *state_name,
                                      const char *states, const char *kept,
                                      struct fl__models_one *ret, struct fl_err *err);
/* Append a vector to `states`: with the given checksum, or with the one in its file. */
FL_MUST_CHECK int fl__models_put_state(const char *name, const char *checksum, char *states,
                                       size_t size, struct fl_err *err);
FL_MUST_CHECK int fl__models_add_state(const char *dir, uint64_t round, const char *name,
                                       char *states, size_t size, struct fl_err *err);
/* Save the bytes of a checkpoint, and their checksum into `ret` (models_kept.c). */
FL_MUST_CHECK int fl__models_save_kept(const struct fl_models_checkpoint *c, bool sync,
                                       char ret[FL_CHECKSUM_TEXT], struct fl_err *err);
/* Create the checkpoint folder when it is missing. */
FL_MUST_CHECK int fl__models_folder(const char *dir, struct fl_err *err);

/* The round in a file name such as "round-000012.momentum.safetensors", with any further suffix;
 * false: not a checkpoint. */
bool fl__models_round_of(const char *name, uint64_t *ret);

typedef int (*fl__models_cb)(void *ctx, const char *folder, const char *name, uint64_t round);
/*
 * models_abandon.c: of the checkpoints of rounds after `after`, those in `kept` are renamed to
 * "….generation-N", the others removed. Can be repeated after a crash.
 */
FL_MUST_CHECK int fl__models_abandon(const char *dir, uint64_t after, uint64_t generation,
                                     const uint64_t *kept, size_t n_kept, struct fl_err *err);

/* Calls `cb` for every file in `dir`/models that belongs to a round. A missing folder is empty. */
FL_MUST_CHECK int fl__models_each(const char *dir, fl__models_cb cb, void *ctx, struct fl_err *err);
/* Makes renamed files of `dir`/models durable, if there is such a folder. */
FL_MUST_CHECK int fl__models_sync(const char *dir, struct fl_err *err);

#endif
