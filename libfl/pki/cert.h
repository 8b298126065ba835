#ifndef FL_PKI_CERT_H
#define FL_PKI_CERT_H

/*
 * Certificates as chains, leaf first, or as roots in the order of their file. Nothing here verifies
 * a chain: libfl/pki/trust.h does.
 *
 * Limits: FL_CHAIN_MAX certificates of FL_CERT_MAX bytes each. Threading: immutable after creation,
 * the reference count is atomic: may be shared between threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/base/err.h"
#include "libfl/base/identity.h"
#include "libfl/pki/key.h"

/* A leaf, intermediates, a root and the old root during a change; or the roots of one file. */
#define FL_CHAIN_MAX 16
/* One certificate in DER: ours have 600 bytes, one with 100 names has 4 KB. */
#define FL_CERT_MAX 16384
/* Upper bound of fl_chain_pem(), and the largest file. */
#define FL_CHAIN_FILE_MAX 262144

struct fl_chain;

struct fl_cert_info {
    char subject[96]; /* for messages, truncated: "CN=edge-001"; control characters are '?' */
    char serial_text[2 * FL_SERIAL_MAX + 1]; /* hex */
    uint8_t serial[FL_SERIAL_MAX];           /* big endian, no leading zero */
    size_t serial_len;
    uint8_t key[FL_KEY_HASH];      /* SHA-256 of the SubjectPublicKeyInfo */
    int64_t not_before, not_after; /* seconds since 1970 */
    bool is_ca;
    bool self_issued; /* subject and issuer are the same name: a root */
};

/* Bytes in memory of the caller. */
struct fl_der {
    const uint8_t *data;
    size_t len;
};

/*
 * Loads all certificates of a PEM file (other blocks, such as a key, are skipped) or the one of a
 * DER file. The error names the file, the line of the bad block, and what to do.
 */
FL_MUST_CHECK int fl_chain_load(const char *path, struct fl_chain **ret, struct fl_err *err);
FL_MUST_CHECK int fl_chain_parse(const void *pem, size_t len, const char *origin,
                                 struct fl_chain **ret, struct fl_err *err);
/* From DER, as messages carry it; `origin` names the source in messages. n of 1 to FL_CHAIN_MAX. */
FL_MUST_CHECK int fl_chain_from_der(const struct fl_der *certs, size_t n, const char *origin,
                                    struct fl_chain **ret, struct fl_err *err);
/* `n` certificates of `chain` from index `first` on. FL_REQUIRE: they exist. */
FL_MUST_CHECK int fl_chain_part(const struct fl_chain *chain, size_t first, size_t n,
                                struct fl_chain **ret);
/* The certificates of `a`, then those of `b`; one that is in both occurs once. FL_ELIMIT. */
FL_MUST_CHECK int fl_chain_join(const struct fl_chain *a, const struct fl_chain *b,
                                struct fl_chain **ret);
/* Replaces `path` with the chain as PEM, mode 0640 like all our files. */
FL_MUST_CHECK int fl_chain_save(const struct fl_chain *chain, const char *path, bool sync,
                                struct fl_err *err);
/* Appends PEM; `out` has its own limit, FL_CHAIN_FILE_MAX is enough. */
FL_MUST_CHECK int fl_chain_pem(const struct fl_chain *chain, struct fl_buf *out);
/* Appends the DER of certificate `i` < fl_chain_len(). */
FL_MUST_CHECK int fl_chain_der(const struct fl_chain *chain, size_t i, struct fl_buf *out);
size_t fl_chain_len(const struct fl_chain *chain);
void fl_chain_info(const struct fl_chain *chain, size_t i, struct fl_cert_info *ret);
/* The index of the certificate with this key hash, from `first` on, or -1. */
int fl_chain_find_key(const struct fl_chain *chain, size_t first, const uint8_t hash[FL_KEY_HASH]);
/* The file or peer that it came from; "" when it was created here. */
const char *fl_chain_origin(const struct fl_chain *chain);
struct fl_chain *fl_chain_ref(struct fl_chain *chain);
void fl_chain_unref(struct fl_chain *chain); /* NULL is allowed. */

/* FL_ECONF when the key does not belong to the leaf; the message names both files. */
FL_MUST_CHECK int fl_chain_fits(const struct fl_chain *chain, const struct fl_key *key,
                                struct fl_err *err);
/*
 * Loads the certificate and key that one side presents: checks each file, then whether they belong
 * together, and whether the chain is in order, each certificate issued by the next.
 */
FL_MUST_CHECK int fl_credentials_load(const char *certificate, const char *key_path,
                                      struct fl_chain **ret_chain, struct fl_key **ret_key,
                                      struct fl_err *err);
/*
 * Checks the dates of certificate `i` (0: the leaf) before it is used: FL_EPERM when it has expired
 * or is not valid yet at `now`, FL_EAGAIN when it expires within `soon_s` (0: not checked). The
 * message names both times, the difference and what to do; `renew` is the command that gets a new
 * one.
 */
FL_MUST_CHECK int fl_chain_dated(const struct fl_chain *chain, size_t i, int64_t now,
                                 int64_t soon_s, const char *renew, struct fl_err *err);

#endif
