#include "server/admin/audit_note.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/clock.h"
#include "libfl/wire/wire_admin.h"
#include "server/identity/audit.h"

struct note {
    const struct fl_log *log;
    bool known;
    struct fl_identity who;
    char peer[64];
    char what[64], object[FL_WIRE_MAX_REASON + 64], result[FL_ERR_BUF_SIZE];
    fl_loop_cb then;
    void *arg;
    int code;
    struct fl_err err;
};

static const char *identity_user_name(uint32_t uid, char *buf, size_t size)
{
    struct passwd entry;
    struct passwd *found = NULL;

    return getpwuid_r(uid, &entry, buf, size, &found) == 0 && found != NULL ? found->pw_name : "?";
}

const char *fl_identity_by(const struct fl_identity *who, const char *peer, char out[FL_BY_TEXT])
{
    char buf[4096];
    char serial[2 * FL_SERIAL_MAX + 1] = "";
    size_t i;

    if (who != NULL && who->kind == FL_IDENTITY_LOCAL) {
        (void)snprintf(out, FL_BY_TEXT, "uid %u (%.100s)", who->uid,
                       identity_user_name(who->uid, buf, sizeof(buf)));
    } else if (who != NULL && who->kind == FL_IDENTITY_CERTIFICATE) {
        for (i = 0; i < who->serial_len; i++) {
            (void)snprintf(serial + 2 * i, 3, "%02x", who->serial[i]);
        }
        (void)snprintf(out, FL_BY_TEXT, "%s %s, serial %s",
                       who->role == FL_ROLE_ADMIN ? "admin" : "client", who->name, serial);
    } else {
        (void)snprintf(out, FL_BY_TEXT, "%s", peer);
    }
    return out;
}

/* Runs on the network loop, so it does not look up user names. */
static void log_note(const struct note *n)
{
    char who[64];

    if (n->known && n->who.kind == FL_IDENTITY_LOCAL) {
        (void)snprintf(who, sizeof(who), "uid %u", n->who.uid);
    } else {
        (void)snprintf(who, sizeof(who), "%s", n->peer);
    }
    fl_log(n->log, FL_LOG_NOTICE, "audit", "audit: %s%s%s: %s by=\"%s\"", n->what,
           n->object[0] != '\0' ? " " : "", n->object, n->result, who);
}

static void audit_note_write(struct fl_authority *authority, void *arg)
{
    struct note *n = arg;
    char who[FL_BY_TEXT];

    n->code =
        fl_authority_audit(authority, fl_identity_by(n->known ? &n->who : NULL, n->peer, who),
                           n->what, n->object, n->result, (int64_t)fl_clock_wall_ms(), &n->err);
}

static void audit_note_written(void *arg)
{
    struct note *n = arg;

    if (n->code != FL_OK) { /* The action has succeeded; the log at least records who did it. */
        fl_log(n->log, FL_LOG_ERROR, "audit", "audit entry not written: %s",
               fl_err_text(&n->err, n->code));
        log_note(n);
    }
    if (n->then != NULL) {
        n->then(n->arg);
    }
    free(n);
}

void fl_audit_note(struct fl_auth *auth, const struct fl_log *log, const struct fl_audit_note *note,
                   fl_loop_cb then, void *arg)
{
    struct note *n = calloc(1, sizeof(*n));

    if (n == NULL) {
        fl_log(log, FL_LOG_ERROR, "audit", "out of memory for an audit entry: %s %s", note->what,
               note->object);
        if (then != NULL) {
            then(arg);
        }
        return;
    }
    n->log = log;
    n->known = note->who != NULL;
    if (n->known) {
        n->who = *note->who;
    }
    (void)snprintf(n->peer, sizeof(n->peer), "%s", note->peer);
    (void)snprintf(n->what, sizeof(n->what), "%s", note->what);
    (void)snprintf(n->object, sizeof(n->object), "%s", note->object);
    (void)snprintf(n->result, sizeof(n->result), "%s", note->result);
    n->then = then;
    n->arg = arg;
    if (auth != NULL && fl_auth_submit(auth, audit_note_write, audit_note_written, n) == FL_OK) {
        return;
    }
    log_note(n);
    if (then != NULL) {
        then(arg);
    }
    free(n);
}
