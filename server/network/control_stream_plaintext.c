/*
 * Sessions without TLS on a server that also listens with TLS (`listen_insecure`). The name that
 * such a peer sends is accepted, unless a certificate exists for it or it is revoked: otherwise any
 * peer that reaches the plaintext address could take over the session of a client with a
 * certificate. The database of certificates belongs to the identity thread, so a plaintext Hello
 * waits for its answer. Later changes end a session: a revocation at the next review, a certificate
 * for the name when it is issued.
 *
 * Threading: the network loop; plain_name_look_up() runs on the identity thread.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth/auth.h"
#include "server/identity/plain_names.h"
#include "server/network/frontend_impl.h"

/* A name being looked up on the identity thread. */
struct plain_name {
    struct fl_frontend *frontend;
    uint64_t session;
    struct fl_coord_msg *up; /* owned; NULL: the name was authenticated by a certificate */
    char name[FL_NAME_MAX];
    int64_t not_after;
    int code;
    struct fl_err err;
};

static struct plain_name *plain_name_new(const struct fl_control_stream *stream)
{
    struct plain_name *p = calloc(1, sizeof(*p));

    if (p != NULL) {
        p->frontend = stream->frontend;
        p->session = stream->id;
        (void)memcpy(p->name, stream->name, sizeof(p->name));
    }
    return p;
}

static bool is_plain(const struct fl_control_stream *stream)
{
    return stream->call != NULL && stream->greeted && !stream->verified;
}

/* True for a session with a certificate, also before its Hello is answered. */
static bool is_in_use(const struct fl_frontend *frontend, const char *name)
{
    const struct fl_control_stream *a;

    if (frontend->n_verified == 0) {
        return false;
    }
    FL_LIST_FOREACH (a, &frontend->streams, struct fl_control_stream, link) {
        if (a->verified && a->greeted && strcmp(a->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void plain_name_look_up(struct fl_authority *authority, void *arg)
{
    struct plain_name *p = arg;

    p->code = fl_authority_check_plain(authority, p->name, &p->err);
}

static void plain_name_looked_up(void *arg)
{
    struct plain_name *p = arg;
    struct fl_control_stream *stream = fl_control_stream_find(p->frontend, p->session);

    if (p->code == FL_OK && is_in_use(p->frontend, p->name)) {
        p->code =
            fl_err_set(&p->err, FL_EPERM,
                       "'%s' is connected with a certificate and is refused without TLS", p->name);
    }
    if (stream == NULL || stream->call == NULL || stream->ended) {
        fl_coord_msg_free(p->up);
    } else if (p->code == FL_OK) {
        fl_control_stream_ask(stream, p->up);
    } else {
        fl_coord_msg_free(p->up);
        if (p->code == FL_EPERM) {
            fl_control_stream_refuse(stream, FL_WIRE_REASON_REVOKED, 0, p->err.msg);
        } else {
            fl_frontend_finish(p->frontend, stream->call, fl_grpc_status_from_err(p->code),
                               fl_err_text(&p->err, p->code));
        }
    }
    free(p);
}

void fl_control_stream_ask_plain(struct fl_control_stream *stream, struct fl_coord_msg *up)
{
    struct plain_name *p = plain_name_new(stream);
    int rv = FL_ENOMEM;

    if (p != NULL) {
        p->up = up;
        rv = fl_auth_submit(stream->frontend->setup.auth, plain_name_look_up, plain_name_looked_up,
                            p);
    }
    if (rv != FL_OK) {
        fl_coord_msg_free(up);
        free(p);
        fl_call_finish(stream->call,
                       rv == FL_ENOMEM ? FL_GRPC_RESOURCE_EXHAUSTED : FL_GRPC_UNAVAILABLE,
                       rv == FL_ENOMEM ? "out of memory" : "the server is stopping");
    }
}

/* --- names authenticated by a certificate of an operator's own PKI --- */

static void plain_name_record(struct fl_authority *authority, void *arg)
{
    struct plain_name *p = arg;

    p->code = fl_authority_note_shown(authority, p->name, p->not_after, &p->err);
}

static void on_noted(void *arg)
{
    struct plain_name *p = arg;

    if (p->code != FL_OK) {
        fl_log(p->frontend->setup.log, FL_LOG_WARNING, "identity",
               "the certificate of '%s' is not recorded, a client without TLS may use the name "
               "once '%s' is disconnected: %s",
               p->name, p->name, fl_err_text(&p->err, p->code));
    }
    free(p);
}

void fl_control_stream_shown(const struct fl_control_stream *stream,
                             const struct fl_identity *identity)
{
    struct fl_frontend *frontend = stream->frontend;
    struct plain_name *p;
    int rv = FL_ENOMEM;

    fl_control_stream_certified(frontend, stream->name);
    if (!fl_auth_own_pki(frontend->setup.conf)) {
        return; /* The database has it since its issue. */
    }
    p = plain_name_new(stream);
    if (p != NULL) {
        p->not_after = identity->not_after;
        rv = fl_auth_submit(frontend->setup.auth, plain_name_record, on_noted, p);
    }
    if (rv == FL_ENOMEM) { /* The next session retries. */
        fl_log(frontend->setup.log, FL_LOG_WARNING, "identity",
               "out of memory to record the certificate of '%s'", stream->name);
    }
    if (rv != FL_OK) {
        free(p);
    }
}

/* --- ending plaintext sessions --- */

static void end_plain(struct fl_control_stream *stream, const char *why)
{
    fl_log_peer(stream->frontend->setup.log, FL_LOG_WARNING, "session", fl_call_peer(stream->call),
                "client '%s' at %s without TLS refused, ending its session: %s", stream->name,
                fl_call_peer(stream->call), why);
    fl_call_finish(stream->call, FL_GRPC_PERMISSION_DENIED, why);
}

void fl_control_stream_certified(struct fl_frontend *frontend, const char *name)
{
    char why[FL_NAME_MAX + sizeof(FL_PLAIN_NAME_REFUSED)];
    struct fl_control_stream *a;

    if (frontend->n_plain == 0) {
        return;
    }
    FL_LIST_FOREACH (a, &frontend->streams, struct fl_control_stream, link) {
        if (is_plain(a) && !a->ended && strcmp(a->name, name) == 0) {
            a->ended = true;
            (void)snprintf(why, sizeof(why), FL_PLAIN_NAME_REFUSED, name);
            end_plain(a, why);
        }
    }
}

void fl_control_stream_review_plain(struct fl_frontend *frontend)
{
    struct fl_control_stream *a;
    const char *why = NULL;

    if (frontend->setup.auth == NULL || frontend->n_plain == 0) {
        return;
    }
    FL_LIST_FOREACH (a, &frontend->streams, struct fl_control_stream, link) {
        if (is_plain(a) && !a->ended && fl_auth_is_revoked(frontend->setup.auth, a->name, &why)) {
            a->ended = true;
            end_plain(a, why);
        }
    }
}
