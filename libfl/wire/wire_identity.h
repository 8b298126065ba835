#ifndef FL_WIRE_IDENTITY_H
#define FL_WIRE_IDENTITY_H

/*
 * Messages of fl.v1.Identity: joining, and new certificates. As messages.h; certificates and
 * requests are DER bytes, which libfl/pki parses.
 */

#include "libfl/wire/messages.h"

/* Length of a token in bytes; the first ones are public and identify an invitation in lists. */
#define FL_WIRE_TOKEN 21
/* Maximum size of a certificate request (PKCS #10): one for an RSA 8192 key fits. */
#define FL_WIRE_MAX_CSR 4096
/* Maximum size of a certificate: room for many names of a server. */
#define FL_WIRE_MAX_CERTIFICATE 16384
/* Maximum certificates of a chain, and trusted roots. */
#define FL_WIRE_MAX_CHAIN 8
/* The longest message of the service has two full chains and labels. */
#define FL_WIRE_MAX_IDENTITY (320u << 10)
/*
 * Maximum time in ms since 1970: the end of the year 9999, the last one that a certificate can
 * hold.
 */
#define FL_WIRE_MAX_TIME_MS UINT64_C(253402300799999)

struct fl_wire_bytes {
    uint8_t *data; /* owned when decoded, borrowed when encoded */
    size_t len;
};

/* Certificates, DER. */
struct fl_wire_chain {
    struct fl_wire_bytes *list;
    size_t n; /* 1 to FL_WIRE_MAX_CHAIN, each 1 to FL_WIRE_MAX_CERTIFICATE bytes */
};

/* clang-format off */

#define FL_WIRE_ROWS_labels(X)                                                                     \
    X(LABEL_LIST, list, labels)

/* JoinRequest; done() wipes the token. */
#define FL_WIRE_ROWS_join(X)                                                                       \
    X(SECRET, token, token, FL_WIRE_TOKEN)                                                         \
    X(OPTIONAL_NAME, name, name) /* "": the name of the invitation */                              \
    X(BYTES, request, request, .min = 1, .max = FL_WIRE_MAX_CSR)                                   \
    X(TEXT, agent, agent)                                                                          \
    X(U64, time_ms, time_ms, .max = FL_WIRE_MAX_TIME_MS) /* 0: not sent */

/* JoinReply. */
#define FL_WIRE_ROWS_joined(X)                                                                     \
    X(NAME_BUF, name, name)                                                                        \
    X(NAME_BUF, federation, federation)                                                            \
    X(CHAIN, chain, chain)                                                                         \
    X(CHAIN, roots, roots)                                                                         \
    X(LABELS, labels, labels)                                                                      \
    X(U64, time_ms, time_ms, .max = FL_WIRE_MAX_TIME_MS)

/* RenewRequest. */
#define FL_WIRE_ROWS_renew(X)                                                                      \
    X(BYTES, request, request, .min = 1, .max = FL_WIRE_MAX_CSR)                                   \
    X(U64, time_ms, time_ms, .max = FL_WIRE_MAX_TIME_MS) /* 0: not sent */

/* RenewReply. */
#define FL_WIRE_ROWS_renewed(X)                                                                    \
    X(CHAIN, chain, chain)                                                                         \
    X(CHAIN, roots, roots)                                                                         \
    X(U64, time_ms, time_ms, .max = FL_WIRE_MAX_TIME_MS)

#define FL_WIRE_IDENTITY(X)                                                                         \
    X(TYPE, labels, Labels, labels, 0)                                                              \
    X(OWNER, join, JoinRequest, join_request, FL_WIRE_MAX_IDENTITY)                                 \
    X(OWNER, joined, JoinReply, join_reply, FL_WIRE_MAX_IDENTITY)                                   \
    X(OWNER, renew, RenewRequest, renew_request, FL_WIRE_MAX_IDENTITY)                              \
    X(OWNER, renewed, RenewReply, renew_reply, FL_WIRE_MAX_IDENTITY)
FL_WIRE_IDENTITY(FL_WIRE_DECLARE)

/* clang-format on */

/* Copy; FL_ENOMEM. The caller frees `ret->data`. */
FL_MUST_CHECK int fl_wire_bytes_copy(const void *data, size_t len, struct fl_wire_bytes *ret);
void fl_wire_chain_done(struct fl_wire_chain *chain);
FL_WIRE_DONE(labels)
/*
 * Checks the name pattern of an invitation: 1 to FL_NAME_MAX - 1 of [A-Za-z0-9._-], * for any
 * characters and ? for one; not starting with a dot.
 */
bool fl_wire_pattern_valid(const char *pattern);

#endif
