#ifndef FL_SERVER_IDENTITY_ISSUING_IMPL_H
#define FL_SERVER_IDENTITY_ISSUING_IMPL_H

/* What joining, renewing and certificates of admins have in common. */

#include "server/identity/authority_impl.h"
#include "server/identity/joining.h"

/* Certificates for one name within a day, or within the validity of one, which may be shorter. */
#define FL__NAME_BURST 24
#define FL__BY_MAX     161

struct fl__certificate {
    uint8_t serial[FL_SERIAL_MAX];
    size_t serial_len;
    char name[FL_IDENTITY_NAME_MAX];
    enum fl_role role;
    uint8_t key[FL_KEY_HASH];
    int64_t issued_ms, not_before, not_after;
    char by[FL__BY_MAX];
    struct fl_buf der;
};

/* The columns FL__CERTIFICATE_COLUMNS of a row; der is owned: fl__certificate_done(). */
FL_MUST_CHECK int fl__certificate_read(struct fl_query *q, struct fl__certificate *ret);
void fl__certificate_done(struct fl__certificate *certificate);

struct fl__wanted {
    enum fl_role role;
    const char *name;
    const struct fl_key *key;
    int64_t span_s;
    const char *by;
    const uint8_t *parent; /* the serial that is renewed; NULL */
    size_t parent_len;
    bool joined;
};

/* Inside a transaction: make it and write it down. Sets `ret->chain` and `roots`, both owned. */
FL_MUST_CHECK int fl__issue(struct fl_authority *a, const struct fl__wanted *wanted, int64_t now_ms,
                            struct fl_joined *ret, struct fl_cert_info *ret_info,
                            struct fl_err *err);
/* What was issued before. */
FL_MUST_CHECK int fl__give_again(struct fl_authority *a, const struct fl__certificate *certificate,
                                 struct fl_joined *ret, struct fl_err *err);
/* FL_EAGAIN: too many for this name lately. */
FL_MUST_CHECK int fl__check_burst(struct fl_authority *a, const char *name, int64_t now_ms,
                                  struct fl_err *err);
/* FL_EEXIST: this key has, or had lately, another name. */
FL_MUST_CHECK int fl__check_key(struct fl_authority *a, const uint8_t *key, const char *name,
                                int64_t now_ms, struct fl_err *err);
/*
 * FL_EEXIST: the name is somebody else's. An invitation for just this name that was made at
 * `made_ms`, after the name was last joined under, takes it: `*ret_replaces`. made_ms -1: none.
 */
FL_MUST_CHECK int fl__check_name(struct fl_authority *a, const char *name, const uint8_t *key,
                                 int64_t made_ms, int64_t now_ms, bool *ret_replaces,
                                 struct fl_err *err);

/* Is it an answer to who asked, and not something that went wrong here? */
bool fl__is_refusal(int rv);

#endif
