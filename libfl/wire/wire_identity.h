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

struct fl_wire_labels {
    struct fl_wire_pair *list;
    size_t n; /* at most FL_WIRE_MAX_PAIRS, and FL_WIRE_LABELS_BYTES */
};

/* JoinRequest. */
struct fl_wire_join {
    uint8_t token[FL_WIRE_TOKEN];
    char name[FL_NAME_MAX]; /* "": the name of the invitation */
    struct fl_wire_bytes request;
    char *agent;
    uint64_t time_ms; /* 0: not sent */
};

/* JoinReply. */
struct fl_wire_joined {
    char name[FL_NAME_MAX], federation[FL_NAME_MAX];
    struct fl_wire_chain chain, roots;
    struct fl_wire_labels labels;
    uint64_t time_ms;
};

/* RenewRequest. */
struct fl_wire_renew {
    struct fl_wire_bytes request;
    uint64_t time_ms; /* 0: not sent */
};

/* RenewReply. */
struct fl_wire_renewed {
    struct fl_wire_chain chain, roots;
    uint64_t time_ms;
};

FL_MUST_CHECK int fl_wire_join_encode(const struct fl_wire_join *join, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_join_decode(const void *data, size_t len, struct fl_wire_join *ret,
                                      struct fl_err *err);
/* The token is wiped. */
void fl_wire_join_done(struct fl_wire_join *join);
FL_MUST_CHECK int fl_wire_joined_encode(const struct fl_wire_joined *reply, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_joined_decode(const void *data, size_t len, struct fl_wire_joined *ret,
                                        struct fl_err *err);
void fl_wire_joined_done(struct fl_wire_joined *reply);
FL_MUST_CHECK int fl_wire_renew_encode(const struct fl_wire_renew *renew, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_renew_decode(const void *data, size_t len, struct fl_wire_renew *ret,
                                       struct fl_err *err);
void fl_wire_renew_done(struct fl_wire_renew *renew);
FL_MUST_CHECK int fl_wire_renewed_encode(const struct fl_wire_renewed *reply, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_renewed_decode(const void *data, size_t len, struct fl_wire_renewed *ret,
                                         struct fl_err *err);
void fl_wire_renewed_done(struct fl_wire_renewed *reply);

/* Copy; FL_ENOMEM. Free with fl_wire_bytes_done(), which also takes a zeroed struct. */
FL_MUST_CHECK int fl_wire_bytes_copy(const void *data, size_t len, struct fl_wire_bytes *ret);
void fl_wire_bytes_done(struct fl_wire_bytes *bytes);
void fl_wire_chain_done(struct fl_wire_chain *chain);
void fl_wire_labels_done(struct fl_wire_labels *labels);
/*
 * Checks the name pattern of an invitation: 1 to FL_NAME_MAX - 1 of [A-Za-z0-9._-], * for any
 * characters and ? for one; not starting with a dot.
 */
bool fl_wire_pattern_valid(const char *pattern);

#endif
