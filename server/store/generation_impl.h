#ifndef FL_STORE_LINE_IMPL_H
#define FL_STORE_LINE_IMPL_H

/* Shared by generation.c, generation_row.c and restored_folder.c. */

#include "server/store/generation.h"
#include "server/store/store_impl.h"

/* The generation columns of the federation row. */
struct fl__generation_row {
    uint8_t identity[FL__IDENTITY], kept_identity[FL__IDENTITY];
    uint8_t meaning[FL_DIGEST_SIZE];
    bool known; /* `meaning` is recorded */
    uint64_t line, state_generation, kept_since;
    uint64_t used_round, used_attempt;
};

FL_MUST_CHECK int fl__generation_read(struct fl_store *store, struct fl__generation_row *rec,
                                      struct fl_err *err);
FL_MUST_CHECK int fl__generation_write(struct fl_store *store, const struct fl__generation_row *rec,
                                       struct fl_err *err);
FL_MUST_CHECK int fl__generation_of(const struct fl__generation_row *row,
                                    struct fl_generation *ret);
FL_MUST_CHECK int fl__generation_put_change(struct fl_store *store, const struct fl_change_rec *rec,
                                            struct fl_err *err);

#endif
