#ifndef FL_CLIENT_CACHE_H
#define FL_CLIENT_CACHE_H

/*
 * The cache of the payload that is the same in every round (the collected data summaries of all
 * clients), <state_dir>/summaries.bin, so that it is fetched once and not once a round. It can
 * always be fetched again: a file that is damaged or has another SHA-256 counts as missing.
 */

#include "libfl/model/layout.h"

/* Owned bytes, free(). FL_ENOENT: missing, or of another digest. */
FL_MUST_CHECK int fl_cache_load(const char *state_dir, const uint8_t digest[FL_DIGEST_SIZE],
                                size_t len, uint8_t **ret);
FL_MUST_CHECK int fl_cache_save(const char *state_dir, const void *data, size_t len,
                                struct fl_err *err);

#endif
