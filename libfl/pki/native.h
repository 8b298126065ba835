#ifndef FL_PKI_NATIVE_H
#define FL_PKI_NATIVE_H

/* What lies underneath, for libfl/tls only. */

#include <stddef.h>

#include "libfl/base/err.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/key.h"

struct evp_pkey_st;
struct x509_st;
struct stack_st_X509;

/* Borrowed; not to be changed. */
struct evp_pkey_st *fl_key_native(const struct fl_key *key);
struct x509_st *fl_chain_native(const struct fl_chain *chain, size_t i);
/*
 * What a peer sent, leaf first; `certs` is borrowed. FL_ELIMIT: more or larger ones than a chain
 * may have; FL_EFORMAT: none, or a serial number or a date that is none.
 */
FL_MUST_CHECK int fl_chain_from_native(const struct stack_st_X509 *certs, const char *origin,
                                       struct fl_chain **ret, struct fl_err *err);

#endif
