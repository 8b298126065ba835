#ifndef FL_STORE_FILES_IMPL_H
#define FL_STORE_FILES_IMPL_H

/* Private to server/store. */

#include "server/store/store_files.h"

/*
 * A section of a whole file; holds a reference to it. NULL: out of memory. Takes `sums`
 * (libfl/container/block_sums.h, checksums of the section) in any case; `sums` NULL: reads are not
 * checked.
 */
struct fl_file *fl__file_part(struct fl_file *file, uint64_t start, uint64_t size, uint64_t *sums);
uint64_t fl__file_start(const struct fl_file *file);
int fl__file_fd(const struct fl_file *file);

#define FL__PERSONAL_MODELS_SUFFIX ".mix"
/* Path of the file of a round, with the suffix `more`. */
FL_MUST_CHECK int fl__personal_models_path(const char *dir, uint64_t round, const char *more,
                                           char *out, size_t size, struct fl_err *err);

#endif
