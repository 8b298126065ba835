/*
 * The verbs revoke, evict, disable and enable. Decoding and landing run on
 * the network loop, the work on the identity thread. Sessions are ended by fl_frontend_review(),
 * not here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/admin/identity_calls.h"
#include "server/auth/auth.h"
#include "server/identity/certificates.h"
#include "server/identity/invitations.h"
#include "server/network/no_memory.h"
#include "server/store/store.h"

static int64_t revocation_now_ms(void)
{
    return (int64_t)fl_clock_wall_ms();
}

static int revocation_decode(struct fl_identity_request *r, const void *data, size_t len)
{
    int rv = fl_wire_revoke_decode(data, len, &r->in.revoke, &r->err);

    if (rv != FL_OK) {
        return rv;
    }
    if (r->in.revoke.what == FL_WIRE_REVOKE_NAME) {
        r->connected = fl_frontend_is_connected(r->admin->setup.frontend, r->in.revoke.name);
    }
    return FL_OK;
}

static void revocation_done(struct fl_identity_request *r)
{
    fl_wire_revoke_done(&r->in.revoke);
}

#define FL_REVOKE_TARGET (2 * FL_NAME_MAX)

/* "'edge-04'", "the certificate 5f0a…", "the key 01ab…" */
static const char *target_text(const struct fl_wire_revoke *revoke, char out[FL_REVOKE_TARGET])
{
    const uint8_t *data = revoke->what == FL_WIRE_REVOKE_KEY ? revoke->key : revoke->serial;
    size_t n = revoke->what == FL_WIRE_REVOKE_KEY ? sizeof(revoke->key) : revoke->serial_len;
    size_t at;
    size_t i;

    if (revoke->what == FL_WIRE_REVOKE_NAME) {
        (void)snprintf(out, FL_REVOKE_TARGET, "'%s'", revoke->name);
        return out;
    }
    at = (size_t)snprintf(out, FL_REVOKE_TARGET, "%s ",
                          revoke->what == FL_WIRE_REVOKE_KEY ? "the key" : "the certificate");
    for (i = 0; i < n; i++) {
        (void)snprintf(out + at + 2 * i, 3, "%02x", data[i]);
    }
    return out;
}

/* Number of known names that are compared with a misspelled one. */
#define NAMES_MAX 10000

struct names {
    char *list[NAMES_MAX]; /* owned */
    size_t n;
};

static int on_name(void *ctx, const struct fl_certificate *c)
{
    struct names *names = ctx;
    char *copy;

    if (names->n == NAMES_MAX || (names->n > 0 && strcmp(names->list[names->n - 1], c->name) == 0))
    {
        return FL_OK;
    }
    copy = fl_str_dup(c->name);
    if (copy == NULL) {
        return FL_ENOMEM;
    }
    names->list[names->n++] = copy;
    return FL_OK;
}

static void find_near(struct fl_authority *authority, struct fl_identity_request *r)
{
    struct names *names = calloc(1, sizeof(*names));
    const char *near = NULL;
    size_t i;

    if (names != NULL && fl_authority_certificates(authority, "", revocation_now_ms(), on_name,
                                                   names, NULL) == FL_OK)
    {
        near = fl_str_nearest(r->in.revoke.name, (const char *const *)names->list, names->n);
    }
    if (near != NULL && strcmp(near, r->in.revoke.name) != 0) {
        (void)snprintf(r->near, sizeof(r->near), "%s", near);
    }
    for (i = 0; names != NULL && i < names->n; i++) {
        free(names->list[i]);
    }
    free(names);
}

static int on_excluded(void *ctx, const char *name, enum fl_revoked_keeps keeps)
{
    struct fl_identity_request *r = ctx;

    (void)snprintf(r->excluded, sizeof(r->excluded), "%s", name);
    r->keeps = keeps;
    return FL_OK;
}

/* --- unknown names --- */

struct target_search {
    const struct fl_revoked *whom;
    bool found;
};

static int search_certificate(void *ctx, const struct fl_certificate *c)
{
    struct target_search *s = ctx;
    const struct fl_revoked *whom = s->whom;

    s->found = s->found ||
               (whom->name != NULL     ? strcmp(whom->name, c->name) == 0
                : whom->serial_len > 0 ? whom->serial_len == c->serial_len &&
                                             memcmp(whom->serial, c->serial, c->serial_len) == 0
                                       : memcmp(whom->key, c->key, sizeof(c->key)) == 0);
    return FL_OK;
}

static int search_invitation(void *ctx, const struct fl_invitation_info *info)
{
    struct target_search *s = ctx;

    s->found = s->found || strcmp(s->whom->name, info->name) == 0;
    return FL_OK;
}

/*
 * Revoking a misspelled name would go unnoticed, and a revocation is permanent: a target that has
 * no certificate, invitation or record needs `force`. Serial numbers and keys of the operator's own
 * PKI are not known here.
 */
static int check_known(struct fl_authority *authority, const struct fl_identity_request *r,
                       const struct fl_revoked *whom, const char *verb, struct fl_err *err)
{
    const struct fl_admin_setup *setup = &r->admin->setup;
    const struct fl_wire_revoke *request = &r->in.revoke;
    struct target_search s = {.whom = whom, .found = r->connected};
    char target[FL_REVOKE_TARGET];
    int rv;

    if (request->force || (whom->name == NULL && fl_auth_own_pki(setup->conf))) {
        return FL_OK;
    }
    rv = fl_authority_certificates(authority, whom->name != NULL ? whom->name : "",
                                   revocation_now_ms(), search_certificate, &s, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (whom->name != NULL && !s.found) {
        rv = fl_authority_invitations(authority, revocation_now_ms(), search_invitation, &s, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (s.found || (whom->name != NULL && fl_store_knows_client(setup->state_dir, whom->name))) {
        return FL_OK;
    }
    return fl_err_set(
        err, FL_ENOENT,
        "%s is not known here: it has no certificate, no invitation and no record (flctl "
        "certificates and flctl clients list those there are); to %s it all the same, add --force",
        target_text(request, target), verb);
}

/* As fl_authority_revoke(); an enabling takes no reason. */
static int revocation_change(struct fl_authority *authority, const struct fl_identity_request *r,
                             const struct fl_revoked *target, size_t *ret_n, struct fl_err *err)
{
    const char *reason = r->in.revoke.reason;
    int64_t now = revocation_now_ms();
    char who[FL_BY_TEXT];

    (void)fl_identity_by(r->known ? &r->who : NULL, r->peer, who);
    switch (r->verb) {
    case FL_VERB_REVOKE:
        return fl_authority_revoke(authority, target, reason, who, now, ret_n, err);
    case FL_VERB_EVICT:
        return fl_authority_evict(authority, target, reason, who, now, ret_n, err);
    case FL_VERB_DISABLE:
        return fl_authority_disable(authority, target, reason, who, now, ret_n, err);
    default:
        return fl_authority_enable(authority, target, who, now, ret_n, err);
    }
}

static int revocation_execute(struct fl_authority *authority, struct fl_identity_request *r)
{
    const struct fl_wire_revoke *revoke = &r->in.revoke;
    const struct fl_revoked target = {
        .name = revoke->what == FL_WIRE_REVOKE_NAME ? revoke->name : NULL,
        .serial = revoke->serial,
        .serial_len = revoke->what == FL_WIRE_REVOKE_SERIAL ? revoke->serial_len : 0,
        .key = revoke->what == FL_WIRE_REVOKE_KEY ? revoke->key : NULL};
    struct fl_err why = {0};
    int rv;

    if (r->verb == FL_VERB_REVOKE || r->verb == FL_VERB_DISABLE) {
        rv = check_known(authority, r, &target, fl_verbs[r->verb].name, &r->err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = revocation_change(authority, r, &target, &r->n_revoked, &r->err);
    if (rv != FL_OK) {
        return rv;
    }
    if (r->verb == FL_VERB_ENABLE) {
        return FL_OK;
    }
    /* The clients whose update of the open round is no longer aggregated. With an operator's own
     * PKI only names are known. */
    if (target.name != NULL) {
        /* The record of an evicted client stays: its contributions remain. */
        (void)on_excluded(r, target.name,
                          r->verb == FL_VERB_REVOKE    ? FL_REVOKED_KEEPS_NOTHING
                          : r->verb == FL_VERB_DISABLE ? FL_REVOKED_KEEPS_ALL
                                                       : FL_REVOKED_KEEPS_RECORD);
        return FL_OK;
    }
    rv = fl_auth_each_revoked(authority, &target, on_excluded, r, &why);
    if (rv != FL_OK) {
        fl_log(r->admin->setup.log, FL_LOG_ERROR, "identity",
               "the revocation does not affect the open round, only the next start applies it: %s",
               fl_err_text(&why, rv));
    }
    return FL_OK;
}

static void revocation_work(struct fl_authority *authority, struct fl_identity_request *r)
{
    struct fl_err inner;

    r->code = revocation_execute(authority, r);
    if (r->in.revoke.what == FL_WIRE_REVOKE_NAME &&
        (r->code == FL_ENOENT || (r->code == FL_OK && r->n_revoked == 0)))
    {
        find_near(authority, r);
    }
    if (r->code == FL_ENOENT && r->near[0] != '\0') {
        inner = r->err;
        (void)fl_err_set(&r->err, FL_ENOENT, "%s; did you mean '%s'?",
                         fl_err_text(&inner, FL_ENOENT), r->near);
    }
}

/* Describe the effect of the verb on this target. */
static void verb_text(const struct fl_identity_request *r, const char *target, char *out,
                      size_t size)
{
    const struct fl_wire_revoke *request = &r->in.revoke;
    bool name = request->what == FL_WIRE_REVOKE_NAME;

    if (r->verb == FL_VERB_REVOKE) {
        (void)snprintf(out, size, "%s is revoked permanently%s", target,
                       name ? " and no client can join by this name again"
                            : "; with another key and a new invitation its name may join again");
    } else if (r->verb == FL_VERB_EVICT) {
        (void)snprintf(out, size, "%s is evicted; flctl invite %s lets it join again", target,
                       request->name);
    } else if (r->verb == FL_VERB_DISABLE) {
        (void)snprintf(out, size, "%s is disabled until flctl enable", target);
    } else {
        (void)snprintf(out, size,
                       "%s is enabled and may connect at its next attempt: within a minute "
                       "(`longest` of its `reconnect`)",
                       target);
    }
}

/*
 * Network loop, when the revocation is in effect: only now the number of ended sessions is known.
 */
static void revocation_landed(struct fl_identity_request *r)
{
    const struct fl_wire_revoke *request = &r->in.revoke;
    struct fl_wire_revoke_reply reply = {
        .certificates = (uint32_t)r->n_revoked,
        .sessions = (uint32_t)(fl_frontend_expelled(r->admin->setup.frontend) - r->expelled)};
    bool enabled = r->verb == FL_VERB_ENABLE;
    char target[FL_REVOKE_TARGET];
    char what[512];
    char text[FL_WIRE_MAX_TEXT];
    int n;

    if (r->excluded[0] != '\0' &&
        fl_frontend_exclude(r->admin->setup.frontend, r->excluded, r->keeps) != FL_OK)
    {
        fl_serverd_no_memory(r->admin->setup.log, "the revocation of a client");
    }
    verb_text(r, target_text(request, target), what, sizeof(what));
    n = snprintf(text, sizeof(text), "%s: %zu certificate%s", what, r->n_revoked,
                 r->n_revoked == 1 ? "" : "s");
    if (!enabled && n > 0 && (size_t)n < sizeof(text)) {
        n += snprintf(text + n, sizeof(text) - (size_t)n,
                      reply.sessions > 0
                          ? ", %u session%s; it ends within a second, and what it was uploading "
                            "is not aggregated"
                          : ", %u session%s",
                      reply.sessions, reply.sessions == 1 ? "" : "s");
    }
    if (!enabled && r->n_revoked == 0 && n > 0 && (size_t)n < sizeof(text)) {
        (void)snprintf(
            text + n, sizeof(text) - (size_t)n, "; it has no valid certificate issued here%s%s%s",
            r->near[0] != '\0' ? ", did you mean '" : "", r->near, r->near[0] != '\0' ? "'?" : "");
    }
    reply.text = text;
    FL_IDENTITY_REPLY(r, fl_wire_revoke_reply_encode, &reply);
}

/* Of all four verbs. */
const struct fl_identity_rpc fl_identity_rpc_revoke = {.decode = revocation_decode,
                                                       .work = revocation_work,
                                                       .landed = revocation_landed,
                                                       .done = revocation_done};
