#ifndef FL_CLIENT_CACHE_H
#define FL_CLIENT_CACHE_H

/*
 * The bundle that is the same in every round (what all clients told of their data), kept as
 * <state_dir>/offered.bin under its SHA-256, so that it is fetched once and not once a
 * round. It can always be fetched again: a file that is damaged or of another SHA-256 is none.
 */

#include "libfl/model/layout.h"

/* Owned bytes, free(). FL_ENOENT: not there, or not these. */
FL_MUST_CHECK int fl_cache_load(const char *state_dir, const uint8_t digest[FL_DIGEST_SIZE],
                                size_t len, uint8_t **ret);
FL_MUST_CHECK int fl_cache_save(const char *state_dir, const void *data, size_t len,
                                struct fl_err *err);

#endif
