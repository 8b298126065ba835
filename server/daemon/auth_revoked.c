/* Which clients are denied: whose newest certificate is. */

#include <stdio.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/daemon/auth_impl.h"
#include "server/identity/certificates.h"

/* The newest certificate of a name, as far as they have come. */
struct newest {
    char name[FL_IDENTITY_NAME_MAX]; /* "": none */
    enum fl_certificate_state state;
    const struct fl_revoked *target; /* NULL: anybody */
    bool meant;                      /* one of its certificates is the target */
    fl_auth_revoked_cb *cb;
    void *ctx;
};

static int tell(const struct newest *newest)
{
    if (newest->name[0] == '\0' || !newest->meant) {
        return FL_OK;
    }
    switch (newest->state) {
    case FL_CERTIFICATE_REVOKED:
        return newest->cb(newest->ctx, newest->name, FL_DENIED_KEEPS_NOTHING);
    case FL_CERTIFICATE_EVICTED: /* It may join again, and what it contributed stays known. */
        return newest->cb(newest->ctx, newest->name, FL_DENIED_KEEPS_RECORD);
    case FL_CERTIFICATE_DISABLED:
        return newest->cb(newest->ctx, newest->name, FL_DENIED_KEEPS_ALL);
    case FL_CERTIFICATE_VALID:
    case FL_CERTIFICATE_LAPSED:
    case FL_CERTIFICATE_OVER:
    case FL_CERTIFICATE_REPLACED:
        break;
    }
    return FL_OK;
}

static bool is_meant(const struct fl_revoked *target, const struct fl_certificate *c)
{
    if (target == NULL) {
        return true;
    }
    if (target->name != NULL) {
        return strcmp(target->name, c->name) == 0;
    }
    if (target->key != NULL) {
        return memcmp(target->key, c->key, sizeof(c->key)) == 0;
    }
    return target->serial_len == c->serial_len &&
           memcmp(target->serial, c->serial, c->serial_len) == 0;
}

static int on_certificate(void *ctx, const struct fl_certificate *c)
{
    struct newest *newest = ctx;
    int rv = FL_OK;

    if (c->role != FL_ROLE_CLIENT) {
        return FL_OK;
    }
    if (strcmp(newest->name, c->name) != 0) {
        rv = tell(newest);
        newest->meant = false;
    }
    (void)snprintf(newest->name, sizeof(newest->name), "%s", c->name);
    newest->state = c->state;
    newest->meant = newest->meant || is_meant(newest->target, c);
    return rv;
}

int fl_auth_each_revoked(struct fl_authority *authority, const struct fl_revoked *target,
                         fl_auth_revoked_cb *cb, void *ctx, struct fl_err *err)
{
    struct newest newest = {.target = target, .cb = cb, .ctx = ctx};
    int rv = fl_authority_certificates(authority, "", (int64_t)fl_clock_wall_ms(), on_certificate,
                                       &newest, err);

    return rv == FL_OK ? tell(&newest) : rv;
}

int fl_auth_revoked(struct fl_auth *auth, fl_auth_revoked_cb *cb, void *ctx, struct fl_err *err)
{
    return fl_auth_each_revoked(fl_auth_authority(auth), NULL, cb, ctx, err);
}
