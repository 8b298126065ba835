#ifndef FL_IMPORT_IMPORT_IMPL_H
#define FL_IMPORT_IMPORT_IMPL_H

/*
 * The readers of libfl/import, one file each. `schema` is that of the set: with `derive` it is
 * empty but for `kind` and is filled (also partly on error), else it is followed. Returns an owned
 * set.
 */

#include "libfl/data/format.h"
#include "libfl/import/import.h"

#define FL__IMPORT_PATH 4096

FL_MUST_CHECK int fl__images_read(const char *folder, const struct fl_import_conf *conf,
                                  bool derive, struct fl_schema *schema, struct fl_dataset **ret,
                                  struct fl_err *err);
FL_MUST_CHECK int fl__next_char_read(struct fl_source *src, const struct fl_import_conf *conf,
                                     bool derive, struct fl_schema *schema, struct fl_dataset **ret,
                                     struct fl_err *err);
/* *skipped is increased by the rows that were left out. */
FL_MUST_CHECK int fl__table_import(struct fl_source *src, const struct fl_import_conf *conf,
                                   bool derive, struct fl_schema *schema, size_t *skipped,
                                   struct fl_dataset **ret, struct fl_err *err);

#endif
