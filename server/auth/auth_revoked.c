/* Finds the revoked clients: those whose newest certificate is revoked. */

#include <stdio.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/auth/auth_impl.h"
#include "server/identity/certificates.h"

/* The newest certificate of a name while the certificates are listed. */
struct newest {
    char name[FL_IDENTITY_NAME_MAX]; /* "": none */
    enum fl_certificate_state state;
    const struct fl_revoked *target; /* NULL: any client */
    bool matches;                    /* one of its certificates matches the target */
    fl_auth_revoked_cb *cb;
    void *ctx;
};

static int newest_report(const struct newest *newest)
{
    if (newest->name[0] == '\0' || !newest->matches) {
        return FL_OK;
    }
    switch (newest->state) {
    case FL_CERTIFICATE_REVOKED:
        return newest->cb(newest->ctx, newest->name, FL_REVOKED_KEEPS_NOTHING);
    case FL_CERTIFICATE_EVICTED: /* The client may join again, so its contributions remain. */
        return newest->cb(newest->ctx, newest->name, FL_REVOKED_KEEPS_RECORD);
    case FL_CERTIFICATE_DISABLED:
        return newest->cb(newest->ctx, newest->name, FL_REVOKED_KEEPS_ALL);
    case FL_CERTIFICATE_VALID:
    case FL_CERTIFICATE_LAPSED:
    case FL_CERTIFICATE_OVER:
    case FL_CERTIFICATE_REPLACED:
        break;
    }
    return FL_OK;
}

static bool newest_is_target(const struct fl_revoked *target, const struct fl_certificate *c)
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

static int newest_on_certificate(void *ctx, const struct fl_certificate *c)
{
    struct newest *newest = ctx;
    int rv = FL_OK;

    if (c->role != FL_ROLE_CLIENT) {
        return FL_OK;
    }
    if (strcmp(newest->name, c->name) != 0) {
        rv = newest_report(newest);
        newest->matches = false;
    }
    (void)snprintf(newest->name, sizeof(newest->name), "%s", c->name);
    newest->state = c->state;
    newest->matches = newest->matches || newest_is_target(newest->target, c);
    return rv;
}

int fl_auth_each_revoked(struct fl_authority *authority, const struct fl_revoked *target,
                         fl_auth_revoked_cb *cb, void *ctx, struct fl_err *err)
{
    struct newest newest = {.target = target, .cb = cb, .ctx = ctx};
    int rv = fl_authority_certificates(authority, "", (int64_t)fl_clock_wall_ms(),
                                       newest_on_certificate, &newest, err);

    if (rv != FL_OK) {
        return rv;
    }
    return newest_report(&newest); /* That of the last name. */
}

int fl_auth_revoked(struct fl_auth *auth, fl_auth_revoked_cb *cb, void *ctx, struct fl_err *err)
{
    return fl_auth_each_revoked(fl_auth_authority(auth), NULL, cb, ctx, err);
}
