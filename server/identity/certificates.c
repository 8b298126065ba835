#include "server/identity/certificates.h"

#include <stdio.h>
#include <string.h>

#include "server/identity/issuing_impl.h"

const char *fl_certificate_state_text(enum fl_certificate_state state)
{
    static const char *const texts[] = {
        [FL_CERTIFICATE_VALID] = "valid",       [FL_CERTIFICATE_LAPSED] = "lapsed",
        [FL_CERTIFICATE_OVER] = "over",         [FL_CERTIFICATE_REVOKED] = "revoked",
        [FL_CERTIFICATE_EVICTED] = "evicted",   [FL_CERTIFICATE_REPLACED] = "replaced",
        [FL_CERTIFICATE_DISABLED] = "disabled",
    };

    return texts[state];
}

static enum fl_certificate_state certificate_state_of(const struct fl_authority *a,
                                                      const struct fl__certificate *c, int verb,
                                                      int64_t now)
{
    static const enum fl_certificate_state revoked[] = {
        [FL_REVOCATION_REVOKED] = FL_CERTIFICATE_REVOKED,
        [FL_REVOCATION_EVICTED] = FL_CERTIFICATE_EVICTED,
        [FL_REVOCATION_REPLACED] = FL_CERTIFICATE_REPLACED,
        [FL_REVOCATION_DISABLED] = FL_CERTIFICATE_DISABLED,
    };

    if (verb != 0) {
        return revoked[verb];
    }
    return now <= c->not_after                         ? FL_CERTIFICATE_VALID
           : now <= c->not_after + a->conf.spans.grace ? FL_CERTIFICATE_LAPSED
                                                       : FL_CERTIFICATE_OVER;
}

static int certificate_report(struct fl_authority *a, const struct fl__certificate *c,
                              int64_t now_ms, fl_certificate_cb *cb, void *ctx, struct fl_err *err)
{
    struct fl_certificate out = {.role = c->role,
                                 .serial_len = c->serial_len,
                                 .issued_ms = c->issued_ms,
                                 .not_before = c->not_before,
                                 .not_after = c->not_after,
                                 .by = c->by};
    const struct fl_revoked whom = {
        .name = c->name, .serial = c->serial, .serial_len = c->serial_len, .key = c->key};
    struct fl__revoked_state revoked;
    int rv = fl__revoked_by(a, &whom, &revoked, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(out.name, c->name, sizeof(out.name));
    (void)memcpy(out.serial, c->serial, sizeof(out.serial));
    (void)memcpy(out.key, c->key, sizeof(out.key));
    out.why = revoked.why;
    out.state = certificate_state_of(a, c, revoked.verb, now_ms / 1000);
    return cb(ctx, &out);
}

int fl_authority_certificates(struct fl_authority *authority, const char *name, int64_t now_ms,
                              fl_certificate_cb *cb, void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&authority->db, FL__SQL_GET_CERTIFICATES);
    struct fl__certificate c;
    int rv;

    fl_query_text(&q, name);
    while ((rv = fl__certificate_next(&q, &c, err)) == FL_OK) {
        rv = certificate_report(authority, &c, now_ms, cb, ctx, err);
        fl__certificate_done(&c);
        if (rv != FL_OK) {
            break;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}
