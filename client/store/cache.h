#ifndef FL_CLIENT_CACHE_H
#define FL_CLIENT_CACHE_H

/*
 * Payloads on disk that are of use in later rounds, <state_dir>/<name>: the collected data
 * summaries of all clients, so that they are fetched once and not once a round, and the newest
 * model, where the server sends what changed since. They can always be fetched again: a file that
 * is damaged or has another SHA-256 counts as missing.
 */

#include "libfl/model/layout.h"

#define FL_CACHE_SUMMARIES "summaries.bin"
#define FL_CACHE_MODEL     "model.bin"

/* The SHA-256 of what is there, of `len` bytes; their damage is not found. FL_ENOENT: none. */
FL_MUST_CHECK int fl_cache_find(const char *state_dir, const char *name, size_t len,
                                uint8_t ret[FL_DIGEST_SIZE]);
/* Owned bytes, free(). FL_ENOENT: missing, or of another digest. */
FL_MUST_CHECK int fl_cache_load(const char *state_dir, const char *name,
                                const uint8_t digest[FL_DIGEST_SIZE], size_t len, uint8_t **ret);
FL_MUST_CHECK int fl_cache_save(const char *state_dir, const char *name, const void *data,
                                size_t len, struct fl_err *err);
/* Remove the file, if it is there; an error is ignored. */
void fl_cache_drop(const char *state_dir, const char *name);

#endif
