#ifndef FL_STORE_LINE_IMPL_H
#define FL_STORE_LINE_IMPL_H

/* Shared by generation.c, generation_row.c and restored_folder.c. */

#include "server/store/generation.h"
#include "server/store/store_impl.h"

FL_MUST_CHECK int fl__generation_read(struct fl_store *store, struct fl__folder *rec,
                                      struct fl_err *err);
FL_MUST_CHECK int fl__generation_write(struct fl_store *store, const struct fl__folder *rec,
                                       struct fl_err *err);
FL_MUST_CHECK int fl__generation_of(const struct fl__folder *row, struct fl_generation *ret);
FL_MUST_CHECK int fl__generation_put_change(struct fl_store *store, const struct fl_change_rec *rec,
                                            struct fl_err *err);

#endif
