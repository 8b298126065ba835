#ifndef FL_PKI_KEY_H
#define FL_PKI_KEY_H

/*
 * Private keys, and the public keys of signing requests. We generate EC P-256; an operator's own
 * PKI may also use EC P-384, RSA of 2048 to 8192 bits and Ed25519.
 *
 * Threading: immutable after creation, the reference count is atomic: may be shared between
 * threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

#define FL_KEY_HASH 32
/* Larger files are rejected: a key of RSA 8192 has 6.4 KB. */
#define FL_KEY_FILE_MAX 16384

struct fl_key;

/* Generates an EC P-256 key; FL_ENOMEM. */
FL_MUST_CHECK int fl_key_make(struct fl_key **ret);
/*
 * Loads a PEM file with one private key; other blocks in it (certificates, EC parameters) are
 * skipped. FL_EPERM: other users can read it. The file must belong to our user without permissions
 * for group and others, or to root with at most read permission for its group (systemd's
 * credentials, secrets of Kubernetes). FL_EFORMAT: no key, a truncated key, a passphrase, an
 * unsupported kind.
 */
FL_MUST_CHECK int fl_key_load(const char *path, struct fl_key **ret, struct fl_err *err);
/* The same from memory; `origin` is the file's name in messages. */
FL_MUST_CHECK int fl_key_parse(const void *pem, size_t len, const char *origin, struct fl_key **ret,
                               struct fl_err *err);
/*
 * Replaces `path`, mode 0600 from its first byte on, as PKCS #8: after any crash the file has the
 * old or the new key (`sync`: after a power failure too). FL_REQUIRE: `key` has its private half.
 */
FL_MUST_CHECK int fl_key_save(const struct fl_key *key, const char *path, bool sync,
                              struct fl_err *err);
/* SHA-256 of the SubjectPublicKeyInfo. */
void fl_key_hash(const struct fl_key *key, uint8_t out[FL_KEY_HASH]);
bool fl_key_is_private(const struct fl_key *key);
/* The file that it came from; "" when it was generated here. */
const char *fl_key_origin(const struct fl_key *key);
struct fl_key *fl_key_ref(struct fl_key *key);
void fl_key_unref(struct fl_key *key); /* NULL is allowed. */

#endif
