/*
 * The life cycle of calls to the federation's authority, and the calls Join and Renew. Requests are
 * decoded and answered on the network loop; their work runs on the identity thread. Operator calls
 * are in identity_admin.c and identity_revoke.c.
 */

#include "server/admin/identity_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/pki/when.h"

/*
 * Requests of unauthenticated peers submitted to the identity thread at a time: each of them signs
 * and waits for the disk. Further peers are refused and retry after their back-off.
 */
#define UNAUTHENTICATED_MAX 64

static bool identity_is_unauthenticated(const struct fl_identity_request *r)
{
    return (r->is & (FL_WHO_LOCAL | FL_WHO_ADMIN | FL_WHO_VIEWER)) == 0;
}

static void identity_request_free(struct fl_identity_request *r)
{
    if (r->asked && r->kind->done != NULL) {
        r->kind->done(r);
    }
    fl_replies_done(&r->replies);
    free(r);
}

int fl_identity_reply(struct fl_identity_request *r, const struct fl_buf *message)
{
    int rv = fl_replies_add(&r->replies, message);

    if (rv == FL_ELIMIT) {
        return fl_err_set(&r->err, rv, "the answer would be longer than %u MB",
                          FL_REPLIES_MAX >> 20);
    }
    return rv;
}

int fl_identity_chains(const struct fl_joined *joined, struct fl_wire_chain *chain,
                       struct fl_wire_chain *roots)
{
    int rv = fl_joined_wire(joined->chain, chain);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_joined_wire(joined->roots, roots);
}

/* --- the answer --- */

static void identity_answer_send(struct fl_identity_request *r)
{
    int rv = r->code;

    if (r->code == FL_OK) {
        rv = fl_replies_send(&r->replies, r->call);
        if (rv == FL_ELIMIT) {
            return; /* identity_on_writable() continues. */
        }
    }
    if (rv != FL_OK && identity_is_unauthenticated(r)) {
        fl_frontend_finish(r->admin->setup.frontend, r->call, fl_grpc_status_from_err(rv),
                           fl_err_text(&r->err, rv));
    } else if (rv != FL_OK) {
        fl_frontend_fail(r->call, rv, &r->err);
    } else {
        fl_call_finish(r->call, FL_GRPC_OK, NULL);
    }
}

static void identity_request_run(struct fl_authority *authority, void *arg)
{
    struct fl_identity_request *r = arg;

    if (identity_is_unauthenticated(r) && atomic_load(&r->left)) {
        r->code = FL_ECLOSED; /* The certificate cannot be delivered; the peer reconnects and asks
                                 again. */
        return;
    }
    r->kind->work(authority, r);
}

static void identity_request_done(void *arg)
{
    struct fl_identity_request *r = arg;

    r->admin->n_unauthenticated -= identity_is_unauthenticated(r);
    r->submitted = false;
    if (r->certified[0] != '\0') {
        fl_control_stream_certified(r->admin->setup.frontend, r->certified);
    }
    if (r->code == FL_OK && r->kind->landed != NULL) {
        r->kind->landed(r);
    }
    r->answered = true;
    if (r->call == NULL) {
        identity_request_free(r);
    } else {
        identity_answer_send(r);
    }
}

/* --- the call --- */

/* FL_OK: submitted to the identity thread. */
static int identity_request_submit(struct fl_identity_request *r)
{
    struct fl_admin *admin = r->admin;
    struct fl_auth *auth = admin->setup.auth;
    int rv;

    if (auth == NULL) {
        return fl_err_set(&r->err, FL_ESTATE,
                          "no address of this server uses TLS: it has no certificates and no "
                          "invitations (docs/security.md)");
    }
    if (identity_is_unauthenticated(r) && admin->n_unauthenticated >= UNAUTHENTICATED_MAX) {
        return fl_err_set(&r->err, FL_EAGAIN,
                          "too many requests for certificates in progress, retry later");
    }
    r->expelled = fl_frontend_expelled(admin->setup.frontend);
    rv = fl_auth_submit(auth, identity_request_run, identity_request_done, r);
    if (rv != FL_OK) {
        return rv;
    }
    r->submitted = true;
    admin->n_unauthenticated += identity_is_unauthenticated(r);
    return FL_OK;
}

static bool identity_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_identity_request *r = ctx;
    int rv;

    if (r->asked) { /* The identity thread may be working on the first request. */
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "a second request");
        return true;
    }
    fl_call_set_patient(call, true);
    rv = r->kind->decode(r, data, len);
    if (rv != FL_OK) {
        fl_frontend_fail(call, rv, &r->err);
        return true;
    }
    r->asked = true;
    rv = identity_request_submit(r);
    if (rv != FL_OK) {
        fl_frontend_fail(call, rv, &r->err);
    }
    return true;
}

static void identity_on_writable(struct fl_call *call, void *ctx)
{
    struct fl_identity_request *r = ctx;

    (void)call;
    if (r->answered) {
        identity_answer_send(r);
    }
}

static void identity_on_end(struct fl_call *call, void *ctx)
{
    const struct fl_identity_request *r = ctx;

    if (!r->asked) {
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "the request is missing");
    }
}

static void identity_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                               const char *message)
{
    struct fl_identity_request *r = ctx;

    (void)call;
    (void)status;
    (void)message;
    r->call = NULL;
    atomic_store(&r->left, true);
    if (!r->submitted) {
        identity_request_free(r);
    }
}

static const struct fl_call_handler handler = {.on_message = identity_on_message,
                                               .on_end = identity_on_end,
                                               .on_writable = identity_on_writable,
                                               .on_closed = identity_on_closed};

static void identity_start(struct fl_call *call, struct fl_admin *admin,
                           const struct fl_identity_rpc *kind, enum fl_verb verb)
{
    const struct fl_identity *who = fl_call_identity(call);
    struct fl_identity_request *r = calloc(1, sizeof(*r));

    if (r == NULL) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    r->kind = kind;
    r->verb = verb;
    r->admin = admin;
    r->call = call;
    r->is = fl_call_who(call);
    r->known = who != NULL;
    if (who != NULL) {
        r->who = *who;
    }
    (void)snprintf(r->peer, sizeof(r->peer), "%s", fl_call_peer(call));
    fl_replies_init(&r->replies);
    fl_call_set_handler(call, &handler, r);
}

/* --- Join, Renew --- */

/* A client that got a certificate: `time_ms` is its clock. It may be wrong without any refusal. */
static void identity_compare_clocks(const struct fl_identity_request *r, const char *name,
                                    uint64_t time_ms)
{
    char text[FL_CLOCKS_TEXT];

    if (fl_clocks_text(text, (int64_t)fl_clock_wall_ms(), "client", time_ms) != NULL) {
        fl_log_peer(r->admin->setup.log, FL_LOG_WARNING, "identity", name, "client '%s' (%s): %s",
                    name, r->peer, text);
    }
}

static int decode_join(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_join_decode(data, len, &r->in.join, &r->err);
}

static void done_join(struct fl_identity_request *r)
{
    fl_wire_join_done(&r->in.join);
}

static void work_join(struct fl_authority *authority, struct fl_identity_request *r)
{
    const struct fl_wire_join *join = &r->in.join;
    struct fl_joined joined = {.name = ""};
    struct fl_wire_joined reply = {.time_ms = 0};

    r->code = fl_authority_join(authority,
                                &(struct fl_joining){.token = join->token,
                                                     .name = join->name,
                                                     .request = join->request.data,
                                                     .request_len = join->request.len,
                                                     .address = r->peer},
                                (int64_t)fl_clock_wall_ms(), &joined, &r->err);
    if (r->code != FL_OK) {
        /* An unknown token is a permission error, not a missing object. */
        r->code = r->code == FL_ENOENT ? FL_EPERM : r->code;
        goto done;
    }
    (void)snprintf(r->certified, sizeof(r->certified), "%s", joined.name);
    identity_compare_clocks(r, joined.name, join->time_ms);
    reply.labels.list = joined.labels;
    reply.labels.n = joined.n_labels;
    reply.time_ms = fl_clock_wall_ms();
    (void)snprintf(reply.name, sizeof(reply.name), "%s", joined.name);
    (void)snprintf(reply.federation, sizeof(reply.federation), "%s",
                   r->admin->setup.conf->main->federation);
    r->code = fl_identity_chains(&joined, &reply.chain, &reply.roots);
    if (r->code != FL_OK) {
        goto done;
    }
    FL_IDENTITY_REPLY(r, fl_wire_joined_encode, &reply);
done:
    fl_wire_chain_done(&reply.chain);
    fl_wire_chain_done(&reply.roots);
    fl_joined_done(&joined);
}

static int decode_renew(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_renew_decode(data, len, &r->in.renew, &r->err);
}

static void done_renew(struct fl_identity_request *r)
{
    fl_wire_renew_done(&r->in.renew);
}

/* The identity of the same peer according to its newest certificate. */
static void identity_refresh_peer(struct fl_identity_request *r, const struct fl_chain *chain)
{
    struct fl_cert_info info;

    fl_chain_info(chain, 0, &info);
    r->fresh = r->who;
    r->fresh.lapsed = false;
    (void)memcpy(r->fresh.serial, info.serial, sizeof(r->fresh.serial));
    r->fresh.serial_len = info.serial_len;
    (void)memcpy(r->fresh.key, info.key, sizeof(r->fresh.key));
    r->fresh.not_before = info.not_before;
    r->fresh.not_after = info.not_after;
}

static void work_renew(struct fl_authority *authority, struct fl_identity_request *r)
{
    const struct fl_wire_renew *renew = &r->in.renew;
    struct fl_wire_renewed reply = {.time_ms = fl_clock_wall_ms()};
    struct fl_joined renewed = {.name = ""};

    r->code =
        fl_authority_renew(authority, &r->who,
                           &(struct fl_der){.data = renew->request.data, .len = renew->request.len},
                           r->peer, (int64_t)fl_clock_wall_ms(), &renewed, &r->err);
    if (r->code != FL_OK) {
        goto done;
    }
    identity_refresh_peer(r, renewed.chain);
    identity_compare_clocks(r, r->who.name, renew->time_ms);
    r->code = fl_identity_chains(&renewed, &reply.chain, &reply.roots);
    if (r->code != FL_OK) {
        goto done;
    }
    FL_IDENTITY_REPLY(r, fl_wire_renewed_encode, &reply);
done:
    fl_wire_chain_done(&reply.chain);
    fl_wire_chain_done(&reply.roots);
    fl_joined_done(&renewed);
}

/*
 * The running session outlives the certificate that it began with. A peer that connected with an
 * expired certificate has to reconnect: it was allowed to renew and nothing else.
 */
static void landed_renew(struct fl_identity_request *r)
{
    if (r->call != NULL && (r->is & FL_WHO_CLIENT) != 0 &&
        fl_call_set_identity(r->call, &r->fresh) != FL_OK)
    {
        fl_log(r->admin->setup.log, FL_LOG_WARNING, "identity",
               "%s: out of memory for its renewed certificate: the session ends when the old one "
               "expires",
               r->peer);
    }
}

static const struct fl_identity_rpc identity_join = {
    .decode = decode_join, .work = work_join, .done = done_join};
static const struct fl_identity_rpc identity_renew = {
    .decode = decode_renew, .work = work_renew, .landed = landed_renew, .done = done_renew};

static void identity_start_client(struct fl_call *call, void *ctx)
{
    const struct fl_identity_method *method = ctx;

    identity_start(call, method->admin, method->kind, FL_VERB_N);
}

struct fl_rpc_method *fl_identity_client_methods(struct fl_admin *admin, struct fl_rpc_method *m)
{
    struct fl_identity_method *join = &admin->identity_methods[0];
    struct fl_identity_method *renew = &admin->identity_methods[1];

    *join = (struct fl_identity_method){admin, &identity_join};
    *renew = (struct fl_identity_method){admin, &identity_renew};
    *m++ = (struct fl_rpc_method){"/fl.v1.Identity/Join",
                                  FL_WHO_UNAUTHENTICATED | FL_WHO_LAPSED | FL_WHO_CLIENT,
                                  identity_start_client, join};
    *m++ = (struct fl_rpc_method){"/fl.v1.Identity/Renew", FL_WHO_LAPSED | FL_WHO_CLIENT,
                                  identity_start_client, renew};
    return m;
}

/* --- the verbs --- */

/* NULL: a verb that the coordinator answers. */
#define IDENTITY_ON_CORE(handler)        NULL
#define IDENTITY_ON_COORDINATOR(handler) NULL
#define IDENTITY_ON_DB(handler)          NULL
#define IDENTITY_ON_IDENTITY(handler)    &fl_identity_rpc_##handler
#define IDENTITY_RPC_OF(id, name, method, access, audit, thread, handler, ...) \
    [FL_VERB_##id] = IDENTITY_ON_##thread(handler),

static const struct fl_identity_rpc *const identity_rpcs[FL_VERB_N] = {FL_VERBS(IDENTITY_RPC_OF)};

static void identity_start_verb(struct fl_call *call, void *ctx)
{
    const struct fl_admin_method *method = ctx;

    identity_start(call, method->admin, identity_rpcs[method->verb], method->verb);
}

struct fl_rpc_method *fl_identity_admin_methods(struct fl_admin *admin, struct fl_rpc_method *m)
{
    int verb;

    for (verb = 0; verb < FL_VERB_N; verb++) {
        if (identity_rpcs[verb] != NULL) {
            m = fl_admin_add_method(admin, (enum fl_verb)verb, identity_start_verb, m);
        }
    }
    return m;
}
