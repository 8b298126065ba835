#ifndef FL_SERVER_IDENTITY_ISSUING_IMPL_H
#define FL_SERVER_IDENTITY_ISSUING_IMPL_H

/* Shared by joining, renewal and admin certificates. */

#include "server/identity/authority_impl.h"
#include "server/identity/joining.h"

/*
 * Most certificates for one name within a day, or within the validity of one, if that is shorter.
 */
#define FL__NAME_BURST 24
#define FL__BY_MAX     161

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

/* Inside a transaction: issue and store it. Sets `ret->chain` and `roots`, both owned. */
FL_MUST_CHECK int fl__issue(struct fl_authority *a, const struct fl__wanted *wanted, int64_t now_ms,
                            struct fl_joined *ret, struct fl_cert_info *ret_info,
                            struct fl_err *err);
/* Return a certificate that was issued before. */
FL_MUST_CHECK int fl__issued_before(struct fl_authority *a,
                                    const struct fl__certificate *certificate,
                                    struct fl_joined *ret, struct fl_err *err);
/* FL_EAGAIN: too many for this name within the period. */
FL_MUST_CHECK int fl__check_burst(struct fl_authority *a, const char *name, int64_t now_ms,
                                  struct fl_err *err);
/* FL_EEXIST: this key has, or recently had, another name. */
FL_MUST_CHECK int fl__check_key(struct fl_authority *a, const uint8_t *key, const char *name,
                                int64_t now_ms, struct fl_err *err);
/* FL_ENOENT: no other key than `key` has the name. */
FL_MUST_CHECK int fl__holder_of(struct fl_authority *a, const char *name, const uint8_t *key,
                                int64_t now_ms, struct fl__holder *ret, struct fl_err *err);
/*
 * FL_EEXIST: the name belongs to another key. An invitation for exactly this name that was created
 * at `made_ms`, after the last join under the name, takes it over: `*ret_replaces`. made_ms -1:
 * none.
 */
FL_MUST_CHECK int fl__check_name(struct fl_authority *a, const char *name, const uint8_t *key,
                                 int64_t made_ms, int64_t now_ms, bool *ret_replaces,
                                 struct fl_err *err);

/* True for an answer to the peer, false for a failure of the server. */
bool fl__is_refusal(int rv);

#endif
