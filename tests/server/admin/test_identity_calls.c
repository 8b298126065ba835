/*
 * Authentication with an authority of its own, and the calls about identities that it answers:
 * identity thread, loop and files are real, the peers are raw HTTP/2 clients (rawpeer). The
 * identity thread is blocked where many calls have to wait.
 */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/pki/request.h"
#include "server/admin/identity_calls.h"
#include "server/identity/invitations.h"
#include "server/network/frontend_impl.h"
#include "tests/lib/auth_rig.h"
#include "tests/lib/rawpeer.h"
#include "tests/lib/suites.h"

/* Limit of calls of unauthenticated peers that wait. */
#define WAITING 64

static struct auth_rig rig;
static struct fl_frontend frontend;
static struct fl_admin admin;
static struct fl_budget budget;
static unsigned n_changed;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static bool blocked; /* the identity thread; under `mutex` */

static void on_changed(void *arg)
{
    (void)arg;
    n_changed++;
}

static void setup(void)
{
    struct fl_err err = {0};

    auth_rig_folder(&rig);
    auth_rig_conf(&rig, "identity: {hosts: [localhost], grace: 60m}");
    ck_assert_msg(fl_auth_init(&rig.setup, /* renew_root= */ false, &err) == FL_OK, "%s", err.msg);
    n_changed = 0;
    auth_rig_open(&rig, on_changed);
    frontend =
        (struct fl_frontend){.setup = {.conf = rig.conf->conf, .state_dir = rig.conf->state_dir}};
    admin = (struct fl_admin){.setup = {.conf = rig.conf->conf,
                                        .state_dir = rig.conf->state_dir,
                                        .log = &rig.log,
                                        .net = rig.loop,
                                        .auth = rig.auth,
                                        .frontend = &frontend}};
    fl_budget_init(&budget, SIZE_MAX, 0, NULL, NULL);
}

static void teardown(void)
{
    auth_rig_done(&rig);
    ck_assert_uint_eq(admin.n_unauthenticated, 0);
    ck_assert_uint_eq(budget.used, 0);
}

static void wait_until_unblocked(struct fl_authority *authority, void *arg)
{
    (void)authority;
    (void)arg;
    (void)pthread_mutex_lock(&mutex);
    while (blocked) {
        (void)pthread_cond_wait(&moved, &mutex);
    }
    (void)pthread_mutex_unlock(&mutex);
}

static void block_identity_thread(void)
{
    blocked = true;
    ck_assert_int_eq(fl_auth_submit(rig.auth, wait_until_unblocked, NULL, NULL), FL_OK);
}

static void unblock_identity_thread(void)
{
    (void)pthread_mutex_lock(&mutex);
    blocked = false;
    (void)pthread_cond_signal(&moved);
    (void)pthread_mutex_unlock(&mutex);
}

/* --- authentication --- */

static struct fl_identity certificate_of(enum fl_role role, int64_t ends_in_s)
{
    int64_t now = (int64_t)(fl_clock_wall_ms() / 1000);
    struct fl_identity identity = {.kind = FL_IDENTITY_CERTIFICATE,
                                   .role = role,
                                   .name = "edge-001",
                                   .serial = {7},
                                   .serial_len = 1,
                                   .not_before = now - 86400,
                                   .not_after = now + ends_in_s};

    return identity;
}

TEST_CASE("authentication", setup, teardown);

TEST(a_certificate_gives_its_role_until_it_expires)
{
    static const struct {
        enum fl_role role;
        int64_t ends_in_s;
        uint32_t is;
        const char *why;
    } cases[] = {{FL_ROLE_CLIENT, 3600, FL_WHO_CLIENT, NULL},
                 {FL_ROLE_ADMIN, 3600, FL_WHO_ADMIN, NULL},
                 {FL_ROLE_CLIENT, -1800, FL_WHO_LAPSED, "it may be renewed"},
                 {FL_ROLE_CLIENT, -7200, 0, "a new invitation is needed"},
                 {FL_ROLE_ADMIN, -1800, 0, "a new invitation is needed"}};
    const struct fl_identity local = {.kind = FL_IDENTITY_LOCAL};
    const char *why = NULL;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fl_identity who = certificate_of(cases[i].role, cases[i].ends_in_s);

        why = NULL;
        ck_assert_uint_eq(fl_auth_who(rig.auth, &who, &why), cases[i].is);
        ck_assert(cases[i].why != NULL ? strstr(why, cases[i].why) != NULL : why == NULL);
    }
    ck_assert_uint_eq(fl_auth_who(rig.auth, NULL, &why), FL_WHO_UNAUTHENTICATED);
    ck_assert_uint_eq(fl_auth_who(rig.auth, &local, &why), FL_WHO_UNAUTHENTICATED);
}

struct revoking {
    pthread_t thread;
    struct fl_identity who;
    const char *why;
    int code;
    uint32_t before, after;
};

static void revoke_one(struct fl_authority *authority, void *arg)
{
    struct revoking *r = arg;
    struct fl_err err = {0};

    r->thread = pthread_self();
    r->code =
        fl_authority_revoke(authority, &(struct fl_revoked){.name = "edge-001"}, "stolen",
                            "uid 0 (root)", (int64_t)fl_clock_wall_ms(), /* ret_n= */ NULL, &err);
}

static void revoked(void *arg)
{
    struct revoking *r = arg;

    r->after = fl_auth_who(rig.auth, &r->who, &r->why);
    fl_loop_stop(rig.loop);
}

TEST(a_revocation_is_in_effect_when_it_is_reported)
{
    struct revoking r = {.who = certificate_of(FL_ROLE_CLIENT, 3600), .why = ""};

    r.before = fl_auth_who(rig.auth, &r.who, &r.why);
    ck_assert_int_eq(fl_auth_submit(rig.auth, revoke_one, revoked, &r), FL_OK);
    fl_loop_run(rig.loop);
    ck_assert_int_eq(r.code, FL_OK);
    ck_assert(!pthread_equal(r.thread, pthread_self()));
    ck_assert_uint_eq(r.before, FL_WHO_CLIENT);
    ck_assert_uint_eq(r.after, FL_WHO_DISOWNED);
    ck_assert_msg(strstr(r.why, "stolen") != NULL, "%s", r.why);
    ck_assert_uint_eq(n_changed, 1);
}

static void append(struct fl_authority *authority, void *arg)
{
    char *letters = arg;
    size_t at = strlen(letters);

    (void)authority;
    letters[at] = (char)('a' + at);
}

TEST(a_close_finishes_submitted_jobs_and_accepts_no_more)
{
    static char letters[8];
    int i;

    block_identity_thread();
    for (i = 0; i < 5; i++) {
        ck_assert_int_eq(fl_auth_submit(rig.auth, append, NULL, letters), FL_OK);
    }
    unblock_identity_thread();
    fl_auth_close(rig.auth);
    ck_assert_str_eq(letters, "abcde");
    ck_assert_int_eq(fl_auth_submit(rig.auth, append, NULL, letters), FL_ECLOSED);
    ck_assert_str_eq(letters, "abcde");
}

/* --- calls --- */

struct peer {
    struct rawpeer raw;
    struct fl_rpc_method methods[40];
};

static void peer_begin(struct peer *p, uint32_t who)
{
    struct fl_h2_setup setup = {.peer = "192.0.2.7:5000", .budget = &budget};
    struct fl_h2 *h2 = NULL;

    (void)memset(p, 0, sizeof(*p));
    *(who == FL_WHO_LOCAL ? fl_identity_admin_methods(&admin, p->methods)
                          : fl_identity_client_methods(&admin, p->methods)) =
        (struct fl_rpc_method){.path = NULL};
    fl_rpc_limits_default(&setup.limits);
    setup.limits.streams = 2 * WAITING;
    setup.methods = p->methods;
    ck_assert_int_eq(fl_h2_server_create(&setup, &h2), FL_OK);
    ck_assert_int_eq(fl_h2_identify(h2, who, NULL, NULL), FL_OK);
    rawpeer_open(&p->raw, h2, /* server= */ false, 1 << 20);
    p->raw.mute = true;
    rawpeer_run(&p->raw);
}

/* How often the peer has received `what` since the previous call. */
static unsigned received(struct peer *p, const char *what)
{
    const char *at = p->raw.trace;
    unsigned n = 0;

    rawpeer_run(&p->raw);
    while ((at = strstr(at, what)) != NULL) {
        at += strlen(what);
        n++;
    }
    return n;
}

static char prefix[FL_TOKEN_PREFIX_TEXT]; /* of the last invitation */

static int keep_line(void *ctx, size_t i, const struct fl_invited *invited)
{
    ck_assert_uint_eq(i, 0);
    (void)memcpy(prefix, invited->prefix, sizeof(prefix));
    return fl_invite_parse(invited->line, strlen(invited->line), ctx, NULL);
}

static void invite(struct fl_authority *authority, void *arg)
{
    struct fl_invitation in = {.name = "edge-001", .uses = 1};
    struct fl_err err = {0};

    ck_assert_msg(
        fl_authority_invite(authority,
                            &(struct fl_invitations){.list = &in, .n = 1, .by = "uid 0 (root)"},
                            (int64_t)fl_clock_wall_ms(), keep_line, arg, &err) == FL_OK,
        "%s", err.msg);
}

static void frame(struct fl_buf *message, struct fl_buf *body)
{
    const uint8_t head[5] = {0, (uint8_t)(message->len >> 24), (uint8_t)(message->len >> 16),
                             (uint8_t)(message->len >> 8), (uint8_t)message->len};

    fl_buf_init(body, 1 << 16);
    ck_assert_int_eq(fl_buf_add(body, head, sizeof(head)), FL_OK);
    ck_assert_int_eq(fl_buf_add(body, message->data, message->len), FL_OK);
    fl_buf_done(message);
}

static void make_invitation(struct fl_invite *line)
{
    ck_assert_int_eq(fl_auth_submit(rig.auth, invite, NULL, line), FL_OK);
    auth_rig_run(&rig);
}

/* One join with a new key. */
static void join_by(const struct fl_invite *line, struct fl_buf *body)
{
    char agent[] = "test";
    struct fl_wire_join join = {.name = "", .agent = agent};
    struct fl_key *key = NULL;
    struct fl_buf der;
    struct fl_buf message;

    ck_assert_int_eq(fl_key_make(&key), FL_OK);
    fl_buf_init(&der, FL_CSR_MAX);
    ck_assert_int_eq(fl_csr_make(key, "unused", &der), FL_OK);
    (void)memcpy(join.token, line->token, sizeof(join.token));
    join.request = (struct fl_wire_bytes){der.data, der.len};
    fl_buf_init(&message, 1 << 16);
    ck_assert_int_eq(fl_wire_join_encode(&join, &message), FL_OK);
    frame(&message, body);
    fl_buf_done(&der);
    fl_key_unref(key);
}

/* With a valid invitation: a retry with the same key gets the same certificate. */
static void join_body(struct fl_buf *body)
{
    struct fl_invite line;

    make_invitation(&line);
    join_by(&line, body);
    fl_invite_done(&line);
}

static void ask(struct peer *p, const char *path, const struct fl_buf *body)
{
    (void)rawpeer_request(&p->raw, path, NULL, body->data, body->len, true);
    rawpeer_run(&p->raw);
}

TEST_CASE("calls", setup, teardown);

/* A call above the limit gets UNAVAILABLE; the waiting calls and those of operators are answered.
 */
TEST(calls_of_unauthenticated_peers_wait_up_to_a_limit)
{
    struct peer unauthenticated;
    struct peer operator;
    struct fl_buf join;
    struct fl_buf nothing;
    struct fl_buf empty;
    unsigned i;

    join_body(&join);
    fl_buf_init(&nothing, 16);
    frame(&nothing, &empty);
    peer_begin(&unauthenticated, FL_WHO_UNAUTHENTICATED);
    peer_begin(&operator, FL_WHO_LOCAL);
    block_identity_thread();
    for (i = 0; i < WAITING; i++) {
        ask(&unauthenticated, "/fl.v1.Identity/Join", &join);
    }
    ck_assert_uint_eq(received(&unauthenticated, "grpc-status"), 0);
    ck_assert_uint_eq(admin.n_unauthenticated, WAITING);
    ask(&unauthenticated, "/fl.v1.Identity/Join", &join);
    ck_assert_uint_eq(received(&unauthenticated, "grpc-status=14"), 1); /* UNAVAILABLE */
    ck_assert_uint_eq(received(&unauthenticated, "too many requests for certificates"), 1);
    ask(&operator, "/fl.v1.Admin/ListInvitations", &empty);
    ck_assert_uint_eq(received(&operator, "grpc-status"), 0);
    unblock_identity_thread();
    auth_rig_run(&rig);
    ck_assert_uint_eq(received(&unauthenticated, "grpc-status=0"), WAITING);
    ck_assert_uint_eq(received(&operator, "grpc-status=0"), 1);
    ask(&unauthenticated, "/fl.v1.Identity/Join", &join); /* There is room again. */
    auth_rig_run(&rig);
    ck_assert_uint_eq(received(&unauthenticated, "grpc-status=0"), WAITING + 1);
    rawpeer_close(&unauthenticated.raw);
    rawpeer_close(&operator.raw);
    fl_buf_done(&join);
    fl_buf_done(&empty);
}

/* Not even a use of its invitation, which is valid for one key. */
TEST(a_peer_that_disconnects_while_it_waits_leaves_nothing_behind)
{
    struct peer joining;
    struct peer other;
    struct fl_invite line;
    struct fl_buf join;
    struct fl_buf another;

    make_invitation(&line);
    join_by(&line, &join);
    join_by(&line, &another);
    peer_begin(&joining, FL_WHO_UNAUTHENTICATED);
    peer_begin(&other, FL_WHO_UNAUTHENTICATED);
    block_identity_thread();
    ask(&joining, "/fl.v1.Identity/Join", &join);
    ck_assert_uint_eq(admin.n_unauthenticated, 1);
    rawpeer_close(&joining.raw);
    unblock_identity_thread();
    auth_rig_run(&rig);
    ck_assert_uint_eq(admin.n_unauthenticated, 0); /* and teardown() checks memory */
    ask(&other, "/fl.v1.Identity/Join", &another);
    auth_rig_run(&rig);
    ck_assert_uint_eq(received(&other, "grpc-status=0"), 1);
    rawpeer_close(&other.raw);
    fl_buf_done(&join);
    fl_buf_done(&another);
    fl_invite_done(&line);
}

TEST(a_command_of_an_operator_who_disconnected_is_carried_out)
{
    struct peer operator;
    struct peer joining;
    struct fl_buf message;
    struct fl_buf withdraw;
    struct fl_buf join;

    join_body(&join);
    fl_buf_init(&message, 64);
    ck_assert_int_eq(fl_wire_withdraw_encode(prefix, &message), FL_OK);
    frame(&message, &withdraw);
    peer_begin(&operator, FL_WHO_LOCAL);
    peer_begin(&joining, FL_WHO_UNAUTHENTICATED);
    block_identity_thread();
    ask(&operator, "/fl.v1.Admin/WithdrawInvitation", &withdraw);
    rawpeer_close(&operator.raw);
    unblock_identity_thread();
    auth_rig_run(&rig);
    ask(&joining, "/fl.v1.Identity/Join", &join);
    auth_rig_run(&rig);
    ck_assert_uint_eq(received(&joining, "grpc-status=9"), 1); /* FAILED_PRECONDITION */
    rawpeer_close(&joining.raw);
    fl_buf_done(&withdraw);
    fl_buf_done(&join);
}
