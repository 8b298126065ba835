#ifndef FL_PKI_REQUEST_H
#define FL_PKI_REQUEST_H

/* Certificate signing requests (PKCS #10): a client sends one to get a certificate for its key. */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/base/err.h"
#include "libfl/pki/key.h"

/* One of RSA 8192 has 2.3 KB; ours have 230 bytes. */
#define FL_CSR_MAX 4096

/* Appends the DER; `name` becomes the common name, truncated to its maximum of 64 characters. */
FL_MUST_CHECK int fl_csr_make(const struct fl_key *key, const char *name, struct fl_buf *der);
/*
 * Checks that the sender has the private key (the request is signed with it), and that the key is
 * of a supported kind in the usual encoding. Only then its hash identifies it: one key must not
 * have two hashes. On FL_OK `*ret` is the public key, to be unreferenced; nothing else of the
 * request is used. FL_EFORMAT, FL_EPERM, FL_ELIMIT.
 */
FL_MUST_CHECK int fl_csr_check(const void *der, size_t len, struct fl_key **ret,
                               struct fl_err *err);

#endif
