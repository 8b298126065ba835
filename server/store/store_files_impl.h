#ifndef FL_STORE_FILES_IMPL_H
#define FL_STORE_FILES_IMPL_H

/* Shared between the files of this room only. */

#include "server/store/store_files.h"

/*
 * A part of a whole file, which lives as long as its parts; NULL without memory. Takes `sums`
 * (server_vectors.h, of the part's bytes) in any case; NULL: what is read of it is not checked.
 */
struct fl_file *fl__file_part(struct fl_file *file, uint64_t start, uint64_t size, uint64_t *sums);
uint64_t fl__file_start(const struct fl_file *file);
int fl__file_fd(const struct fl_file *file);

#define FL__PERSONAL_MODELS_SUFFIX ".mix"
/* The file of a round, with `more` behind its name. */
FL_MUST_CHECK int fl__personal_models_path(const char *dir, uint64_t round, const char *more,
                                           char *out, size_t size, struct fl_err *err);

#endif
