/* Who is denied when the server starts. */

#include <stdio.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/daemon/guard_impl.h"
#include "server/identity/certificates.h"

/* The newest certificate of a name, as far as they have come. */
struct newest {
    char name[FL_IDENTITY_NAME_MAX]; /* "": none */
    enum fl_certificate_state state;
    fl_guard_denied_cb *cb;
    void *ctx;
};

static int tell(const struct newest *newest)
{
    switch (newest->state) {
    case FL_CERTIFICATE_REVOKED:
    case FL_CERTIFICATE_EVICTED:
        return newest->cb(newest->ctx, newest->name, /* forgets= */ true);
    case FL_CERTIFICATE_DISABLED:
        return newest->cb(newest->ctx, newest->name, /* forgets= */ false);
    case FL_CERTIFICATE_VALID:
    case FL_CERTIFICATE_LAPSED:
    case FL_CERTIFICATE_OVER:
    case FL_CERTIFICATE_REPLACED:
        break;
    }
    return FL_OK;
}

static int on_certificate(void *ctx, const struct fl_certificate *c)
{
    struct newest *newest = ctx;
    int rv = FL_OK;

    if (c->role != FL_ROLE_CLIENT) {
        return FL_OK;
    }
    if (newest->name[0] != '\0' && strcmp(newest->name, c->name) != 0) {
        rv = tell(newest);
    }
    (void)snprintf(newest->name, sizeof(newest->name), "%s", c->name);
    newest->state = c->state;
    return rv;
}

int fl_guard_denied(struct fl_guard *guard, fl_guard_denied_cb *cb, void *ctx, struct fl_err *err)
{
    struct newest newest = {.cb = cb, .ctx = ctx};
    int rv = fl_authority_certificates(fl_guard_authority(guard), "", (int64_t)fl_clock_wall_ms(),
                                       on_certificate, &newest, err);

    return rv == FL_OK && newest.name[0] != '\0' ? tell(&newest) : rv;
}
