#include "tests/lib/enrol_server.h"

#include <check.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/pki/request.h"

static int64_t now_of(void *ctx)
{
    (void)ctx;
    return enrol_server_now();
}

int64_t enrol_server_now(void)
{
    return (int64_t)(fl_clock_wall_ms() / 1000);
}

static void send(struct fl_call *call, struct fl_buf *buf)
{
    struct fl_piece piece = {.data = buf->data, .len = buf->len};

    ck_assert_int_eq(fl_call_send(call, &piece, 1), FL_OK);
    fl_call_finish(call, FL_GRPC_OK, NULL);
    fl_buf_done(buf);
}

/* False: the call is dealt with. */
static bool answers(struct enrol_server *s, struct fl_call *call)
{
    enum enrol_mode mode = s->mode;

    if (s->modes_left > 0 && --s->modes_left == 0) {
        s->mode = ENROL_ANSWERS;
    }
    switch (mode) {
    case ENROL_ANSWERS:
        return true;
    case ENROL_LOSES:
        fl_call_cancel(call);
        return false;
    case ENROL_IS_BUSY:
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "come later");
        return false;
    case ENROL_DENIES:
        fl_call_finish(call, FL_GRPC_PERMISSION_DENIED, "this invitation is over");
        return false;
    case ENROL_EXPIRED:
        fl_call_finish(call, FL_GRPC_FAILED_PRECONDITION, "this invitation has expired");
        return false;
    }
    return false;
}

static struct fl_chain *issue_for(struct enrol_server *s, const struct fl_wire_bytes *request,
                                  uint8_t hash[FL_KEY_HASH])
{
    int64_t now = enrol_server_now();
    struct fl_issue issue = rig_pki_issue("demo", FL_ROLE_CLIENT, "edge-001", now, 1);
    struct fl_key *key = NULL;
    struct fl_chain *chain;

    ck_assert_int_eq(fl_csr_check(request->data, request->len, &key, NULL), FL_OK);
    fl_key_hash(key, hash);
    issue.not_before = now - s->begun_s;
    issue.not_after = now + s->validity_s;
    chain = rig_pki_leaf(&s->rig->pki, key, &issue);
    fl_key_unref(key);
    return chain;
}

static bool on_join(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct enrol_server *s = ctx;
    struct fl_wire_join join = {.agent = NULL};
    struct fl_wire_joined reply = {.name = "edge-001", .federation = "demo"};
    uint8_t key[FL_KEY_HASH];
    struct fl_chain *chain;
    struct fl_buf buf;

    ck_assert_int_eq(fl_wire_join_decode(data, len, &join, NULL), FL_OK);
    ck_assert_mem_eq(join.token, s->rig->invite.token, sizeof(join.token));
    chain = issue_for(s, &join.request, key);
    ck_assert(!s->bound || memcmp(key, s->key, sizeof(key)) == 0);
    s->bound = true;
    (void)memcpy(s->key, key, sizeof(key));
    s->joins++;
    fl_wire_join_done(&join);
    if (answers(s, call)) {
        rig_identity_wire(chain, &reply.chain);
        rig_identity_wire(s->rig->pki.root, &reply.roots);
        reply.time_ms = fl_clock_wall_ms();
        fl_buf_init(&buf, FL_WIRE_MAX_IDENTITY);
        ck_assert_int_eq(fl_wire_joined_encode(&reply, &buf), FL_OK);
        send(call, &buf);
        fl_wire_joined_done(&reply);
    }
    fl_chain_unref(chain);
    return true;
}

static void told(struct enrol_server *s)
{
    if (s->after != NULL) {
        s->after(s->after_ctx);
    }
}

static bool on_renew(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct enrol_server *s = ctx;
    struct fl_wire_renew renew = {.time_ms = 0};
    struct fl_wire_renewed reply = {.time_ms = fl_clock_wall_ms()};
    uint8_t key[FL_KEY_HASH];
    struct fl_chain *chain;
    struct fl_buf buf;

    ck_assert_int_eq(fl_wire_renew_decode(data, len, &renew, NULL), FL_OK);
    chain = issue_for(s, &renew.request, key);
    s->renewals++;
    fl_wire_renew_done(&renew);
    if (answers(s, call)) {
        rig_identity_wire(chain, &reply.chain);
        rig_identity_wire(s->rig->pki.root, &reply.roots);
        fl_buf_init(&buf, FL_WIRE_MAX_IDENTITY);
        ck_assert_int_eq(fl_wire_renewed_encode(&reply, &buf), FL_OK);
        send(call, &buf);
        fl_wire_renewed_done(&reply);
    }
    fl_chain_unref(chain);
    told(s);
    return true;
}

static bool on_event(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    (void)ctx;
    (void)data;
    (void)len;
    return true;
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    (void)call;
    (void)ctx;
    (void)status;
    (void)message;
}

static void on_attend_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                             const char *message)
{
    struct enrol_server *s = ctx;

    (void)call;
    (void)status;
    (void)message;
    s->attending--;
}

static const struct fl_call_handler join_handler = {.on_message = on_join, .on_closed = on_closed};
static const struct fl_call_handler renew_handler = {.on_message = on_renew,
                                                     .on_closed = on_closed};
static const struct fl_call_handler attend_handler = {.on_message = on_event,
                                                      .on_closed = on_attend_closed};

static void start_join(struct fl_call *call, void *ctx)
{
    fl_call_set_handler(call, &join_handler, ctx);
}

static void start_renew(struct fl_call *call, void *ctx)
{
    fl_call_set_handler(call, &renew_handler, ctx);
}

static void start_attend(struct fl_call *call, void *ctx)
{
    struct enrol_server *s = ctx;

    s->attends++;
    s->attending++;
    fl_call_set_handler(call, &attend_handler, ctx);
    told(s);
}

static uint32_t who(void *ctx, const struct fl_identity *identity, const char **why)
{
    (void)ctx;
    *why = "who knows";
    if (identity == NULL || identity->kind != FL_IDENTITY_CERTIFICATE) {
        return FL_WHO_UNAUTHENTICATED;
    }
    return identity->lapsed ? FL_WHO_LAPSED : FL_WHO_CLIENT;
}

void enrol_server_begin(struct enrol_server *s, struct rig_identity *rig, const struct rig_pki *pki,
                        struct fl_loop *loop)
{
    const struct fl_trust_setup trusted = {
        .roots = pki->root, .federation = "demo", .grace_s = 60 * RIG_DAY};
    struct fl_trust *trust = NULL;
    struct fl_grpc_server_setup setup = {.loop = loop, .max_connections = 10};
    struct fl_err err = {0};
    unsigned port = 0;

    *s =
        (struct enrol_server){.rig = rig, .loop = loop, .validity_s = 30 * RIG_DAY, .begun_s = 600};
    ck_assert_int_eq(fl_trust_create(&trusted, &trust, NULL), FL_OK);
    ck_assert_msg(fl_tls_create(&(struct fl_tls_setup){.server = true,
                                                       .chain = pki->server,
                                                       .key = pki->server_key,
                                                       .trust = trust,
                                                       .ask = true,
                                                       .now = now_of},
                                &s->tls, &err) == FL_OK,
                  "%s", err.msg);
    fl_trust_unref(trust);
    s->filter = fl_tls_filter(s->tls);
    s->methods[0] =
        (struct fl_rpc_method){"/fl.v1.Identity/Join", FL_WHO_UNAUTHENTICATED, start_join, s};
    s->methods[1] = (struct fl_rpc_method){"/fl.v1.Identity/Renew", FL_WHO_CLIENT | FL_WHO_LAPSED,
                                           start_renew, s};
    s->methods[2] =
        (struct fl_rpc_method){"/fl.v1.Federation/Attend", FL_WHO_CLIENT, start_attend, s};
    fl_rpc_limits_default(&setup.limits);
    setup.methods = s->methods;
    ck_assert_int_eq(fl_grpc_server_create(&setup, &s->server, NULL), FL_OK);
    ck_assert_msg(
        fl_grpc_server_listen(
            s->server,
            &(struct fl_grpc_listen){.address = "127.0.0.1:0", .filter = &s->filter, .who = who},
            &port, &err) == FL_OK,
        "%s", err.msg);
    (void)snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", port);
    (void)snprintf(rig->invite.addresses[0].host, sizeof(rig->invite.addresses[0].host),
                   "127.0.0.1");
    rig->invite.addresses[0].port = (uint16_t)port;
    rig->invite.n_addresses = 1;
}

static void closed(void *ctx)
{
    struct enrol_server *s = ctx;

    fl_loop_stop(s->loop);
}

void enrol_server_end(struct enrol_server *s)
{
    fl_grpc_server_close(s->server, 0, closed, s);
    fl_loop_run(s->loop);
    fl_tls_unref(s->tls);
}
