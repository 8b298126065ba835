#ifndef FL_MODEL_DIGEST_H
#define FL_MODEL_DIGEST_H

/* SHA-256. The only user of OpenSSL outside libfl/net/tls*. */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

FL_MUST_CHECK int fl_sha256(const void *data, size_t len, uint8_t out[32]);
/* Incremental SHA-256. */
struct fl_sha256;
FL_MUST_CHECK int fl_sha256_new(struct fl_sha256 **ret); /* FL_ENOMEM */
void fl_sha256_free(struct fl_sha256 *sha);              /* NULL is allowed. */
FL_MUST_CHECK int fl_sha256_add(struct fl_sha256 *sha, const void *data, size_t len);
/* The digest of all bytes added; afterwards only fl_sha256_free() is allowed. */
FL_MUST_CHECK int fl_sha256_end(struct fl_sha256 *sha, uint8_t out[32]);
/* Unguessable bytes for session tokens. */
FL_MUST_CHECK int fl_random_bytes(void *out, size_t len);
/* Lower-case hex with NUL; `out` has 2 * len + 1 bytes. Returns `out`. */
const char *fl_hex(char *out, const void *data, size_t len);

#endif
