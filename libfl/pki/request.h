#ifndef FL_PKI_REQUEST_H
#define FL_PKI_REQUEST_H

/* Signing requests (PKCS #10): what a client sends to get a certificate for the key it keeps. */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/base/err.h"
#include "libfl/pki/key.h"

/* One of RSA 8192 has 2.3 KB; ours have 230 bytes. */
#define FL_CSR_MAX 4096

/* Append the DER; `name` becomes the common name, cut to the 64 characters that it may have. */
FL_MUST_CHECK int fl_csr_make(const struct fl_key *key, const char *name, struct fl_buf *der);
/*
 * Does the sender have the private key (the request is signed with it), and is it of a kind that we
 * certify, encoded as everybody encodes it? Only then is its hash a name for it: one key must not
 * have two. On FL_OK `*ret` is the public key, to be unreferenced; nothing else in the request
 * counts. FL_EFORMAT, FL_EPERM, FL_ELIMIT.
 */
FL_MUST_CHECK int fl_csr_check(const void *der, size_t len, struct fl_key **ret,
                               struct fl_err *err);

#endif
