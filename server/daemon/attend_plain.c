/*
 * Sessions without TLS beside others with it (`listen_insecure`). Such a peer is believed by the
 * name that it sends, unless that name has a certificate or is denied: else anybody who reaches the
 * plaintext address could take over the session of a client with a certificate. The database of
 * certificates belongs to the guard's lane, so a plaintext hello waits for its answer. What changes
 * later ends a session: a denial at the next review, a certificate for the name at its issue.
 *
 * Threading: the network loop; look_up() runs on the guard's lane.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/daemon/driver.h"
#include "server/daemon/front_impl.h"
#include "server/daemon/guard.h"
#include "server/identity/plain_names.h"

/* A name on the guard's lane. */
struct plain_name {
    struct fl_front *front;
    uint64_t session;
    struct fl_up *up; /* owned; NULL: the name was shown with a certificate */
    char name[FL_NAME_MAX];
    int64_t not_after;
    int code;
    struct fl_err err;
};

static struct plain_name *plain_name_new(const struct fl_attend *attend)
{
    struct plain_name *p = calloc(1, sizeof(*p));

    if (p != NULL) {
        p->front = attend->front;
        p->session = attend->id;
        (void)memcpy(p->name, attend->name, sizeof(p->name));
    }
    return p;
}

static bool is_plain(const struct fl_attend *attend)
{
    return attend->call != NULL && attend->greeted && !attend->verified;
}

/* A session with a certificate, however far its hello has come. */
static bool is_in_use(const struct fl_front *front, const char *name)
{
    const struct fl_attend *a = front->n_verified > 0 ? front->attends : NULL;

    while (a != NULL && !(a->verified && a->greeted && strcmp(a->name, name) == 0)) {
        a = a->next;
    }
    return a != NULL;
}

static void look_up(struct fl_authority *authority, void *arg)
{
    struct plain_name *p = arg;

    p->code = fl_authority_check_plain(authority, p->name, &p->err);
}

static void on_looked_up(void *arg)
{
    struct plain_name *p = arg;
    struct fl_attend *attend = fl_attend_find(p->front, p->session);

    if (p->code == FL_OK && is_in_use(p->front, p->name)) {
        p->code =
            fl_err_set(&p->err, FL_EPERM,
                       "'%s' is connected with a certificate and is refused without TLS", p->name);
    }
    if (attend == NULL || attend->call == NULL || attend->ended) {
        fl_up_free(p->up);
    } else if (p->code == FL_OK) {
        fl_attend_ask(attend, p->up);
    } else {
        fl_up_free(p->up);
        if (p->code == FL_EPERM) {
            fl_attend_refuse(attend, FL_WIRE_REASON_DENIED, 0, p->err.msg);
        } else {
            fl_front_finish(p->front, attend->call, fl_grpc_status_from_err(p->code),
                            fl_err_text(&p->err, p->code));
        }
    }
    free(p);
}

void fl_attend_ask_plain(struct fl_attend *attend, struct fl_up *up)
{
    struct plain_name *p = plain_name_new(attend);
    int rv = FL_ENOMEM;

    if (p != NULL) {
        p->up = up;
        rv = fl_guard_submit(attend->front->srv->guard, look_up, on_looked_up, p);
    }
    if (rv != FL_OK) {
        fl_up_free(up);
        free(p);
        fl_call_finish(attend->call,
                       rv == FL_ENOMEM ? FL_GRPC_RESOURCE_EXHAUSTED : FL_GRPC_UNAVAILABLE,
                       rv == FL_ENOMEM ? "out of memory" : "the server is stopping");
    }
}

/* --- names that are shown with a certificate of an operator's own PKI --- */

static void note(struct fl_authority *authority, void *arg)
{
    struct plain_name *p = arg;

    p->code = fl_authority_note_shown(authority, p->name, p->not_after, &p->err);
}

static void on_noted(void *arg)
{
    struct plain_name *p = arg;

    if (p->code != FL_OK) {
        fl_log(p->front->srv->log, FL_LOG_WARNING, "identity",
               "the certificate of '%s' is not noted, a client without TLS may use the name once "
               "'%s' is disconnected: %s",
               p->name, p->name, fl_err_text(&p->err, p->code));
    }
    free(p);
}

void fl_attend_shown(const struct fl_attend *attend, const struct fl_identity *identity)
{
    struct fl_front *front = attend->front;
    struct plain_name *p;
    int rv = FL_ENOMEM;

    fl_attend_certified(front, attend->name);
    if (!fl_guard_own_pki(front->srv->own)) {
        return; /* Its issue is in the database. */
    }
    p = plain_name_new(attend);
    if (p != NULL) {
        p->not_after = identity->not_after;
        rv = fl_guard_submit(front->srv->guard, note, on_noted, p);
    }
    if (rv == FL_ENOMEM) { /* With its next session. */
        fl_log(front->srv->log, FL_LOG_WARNING, "identity",
               "out of memory to note the certificate of '%s'", attend->name);
    }
    if (rv != FL_OK) {
        free(p);
    }
}

/* --- sessions that may not go on --- */

static void end_plain(struct fl_attend *attend, const char *why)
{
    fl_log_peer(attend->front->srv->log, FL_LOG_WARNING, "attend", fl_call_peer(attend->call),
                "client '%s' at %s without TLS, ending its session: %s", attend->name,
                fl_call_peer(attend->call), why);
    fl_call_finish(attend->call, FL_GRPC_PERMISSION_DENIED, why);
}

void fl_attend_certified(struct fl_front *front, const char *name)
{
    struct fl_attend *a = front->n_plain > 0 ? front->attends : NULL;
    char why[FL_NAME_MAX + sizeof(FL_PLAIN_NAME_REFUSED)];

    for (; a != NULL; a = a->next) {
        if (is_plain(a) && !a->ended && strcmp(a->name, name) == 0) {
            a->ended = true;
            (void)snprintf(why, sizeof(why), FL_PLAIN_NAME_REFUSED, name);
            end_plain(a, why);
        }
    }
}

void fl_attend_review_plain(struct fl_front *front)
{
    struct fl_attend *a = front->n_plain > 0 ? front->attends : NULL;
    const char *why = NULL;

    if (front->srv->guard == NULL) {
        return;
    }
    for (; a != NULL; a = a->next) {
        if (is_plain(a) && !a->ended && fl_guard_denies(front->srv->guard, a->name, &why)) {
            a->ended = true;
            end_plain(a, why);
        }
    }
}
