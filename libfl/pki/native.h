#ifndef FL_PKI_NATIVE_H
#define FL_PKI_NATIVE_H

/* The OpenSSL objects, for libfl/tls only. */

#include <stddef.h>

#include "libfl/base/err.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/key.h"

struct evp_pkey_st;
struct x509_st;
struct stack_st_X509;

/* Borrowed; must not be changed. */
struct evp_pkey_st *fl_key_native(const struct fl_key *key);
struct x509_st *fl_chain_native(const struct fl_chain *chain, size_t i);
/*
 * The chain that a peer sent, leaf first; borrows `certs`. FL_ELIMIT: more or larger certificates
 * than a chain may have; FL_EFORMAT: none, or an invalid serial number or date.
 */
FL_MUST_CHECK int fl_chain_from_native(const struct stack_st_X509 *certs, const char *origin,
                                       struct fl_chain **ret, struct fl_err *err);

#endif
