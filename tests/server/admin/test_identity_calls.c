/*
 * The guard with an authority of its own, and the calls that it answers: lane, loop and files are
 * the real ones, the peers are foreign ones (rawpeer). The lane is held where many have to wait.
 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/pki/request.h"
#include "server/admin/identity_calls.h"
#include "server/daemon/serverd_conf.h"
#include "server/identity/invitations.h"
#include "server/network/frontend_impl.h"
#include "tests/lib/folder.h"
#include "tests/lib/rawpeer.h"
#include "tests/lib/suites.h"

/* As many strangers as may wait. */
#define WAITING 64

static char dir[FOLDER_PATH];
static struct fl_serverd_conf *own;
static struct fl_loop *net;
static struct fl_auth *guard;
static struct fl_frontend frontend;
static struct fl_admin admin;
static struct fl_budget budget;
static unsigned n_changed;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static bool held; /* the lane; under `mutex` */

static void on_changed(void *arg)
{
    (void)arg;
    n_changed++;
}

static void load_conf(void)
{
    struct fl_err err = {0};
    char path[FOLDER_PATH + 16];
    FILE *yaml;

    (void)snprintf(path, sizeof(path), "%s/server.yaml", dir);
    yaml = fopen(path, "w");
    ck_assert_ptr_nonnull(yaml);
    (void)fprintf(yaml,
                  "federation: guarded\nstate_dir: %s/state\nlisten: [\"127.0.0.1:7443\"]\n"
                  "rounds: 1\nmodel: {preset: mlr60}\nidentity: {hosts: [localhost], grace: 60m}\n",
                  dir);
    ck_assert_int_eq(fclose(yaml), 0);
    ck_assert_msg(fl_serverd_conf_load(path, NULL, &own, &err) == FL_OK, "%s", err.msg);
}

static void setup(void)
{
    static const struct fl_log log = {.level = FL_LOG_ERROR};
    struct fl_auth_setup auth;
    struct fl_err err = {0};

    ck_assert(folder_make("fl-guard", dir));
    load_conf();
    auth = (struct fl_auth_setup){.conf = own->conf, .state_dir = own->state_dir, .log = &log};
    ck_assert_msg(fl_auth_init(&auth, /* renew_root= */ false, &err) == FL_OK, "%s", err.msg);
    n_changed = 0;
    ck_assert_int_eq(fl_loop_create(&net, NULL), FL_OK);
    ck_assert_msg(fl_auth_create(&auth, net, on_changed, NULL, &guard, &err) == FL_OK, "%s",
                  err.msg);
    frontend = (struct fl_frontend){.setup = {.conf = own->conf, .state_dir = own->state_dir}};
    admin = (struct fl_admin){.setup = {.conf = own->conf,
                                        .state_dir = own->state_dir,
                                        .log = &log,
                                        .net = net,
                                        .auth = guard,
                                        .frontend = &frontend}};
    fl_budget_init(&budget, SIZE_MAX, 0, NULL, NULL);
}

static void teardown(void)
{
    fl_auth_close(guard);
    fl_loop_free(net);
    fl_auth_free(guard);
    ck_assert_uint_eq(admin.n_unauthenticated, 0);
    ck_assert_uint_eq(budget.used, 0);
    fl_serverd_conf_free(own);
    folder_remove(dir);
}

static void stop_loop(void *arg)
{
    fl_loop_stop(arg);
}

static void nothing(struct fl_authority *authority, void *arg)
{
    (void)authority;
    (void)arg;
}

/* Until what the lane has now is done and told. */
static void after_lane(void)
{
    ck_assert_int_eq(fl_auth_submit(guard, nothing, stop_loop, net), FL_OK);
    fl_loop_run(net);
}

static void hold(struct fl_authority *authority, void *arg)
{
    (void)authority;
    (void)arg;
    (void)pthread_mutex_lock(&mutex);
    while (held) {
        (void)pthread_cond_wait(&moved, &mutex);
    }
    (void)pthread_mutex_unlock(&mutex);
}

static void hold_lane(void)
{
    held = true;
    ck_assert_int_eq(fl_auth_submit(guard, hold, NULL, NULL), FL_OK);
}

static void let_go(void)
{
    (void)pthread_mutex_lock(&mutex);
    held = false;
    (void)pthread_cond_signal(&moved);
    (void)pthread_mutex_unlock(&mutex);
}

/* --- the guard --- */

static struct fl_identity somebody(enum fl_role role, int64_t ends_in_s)
{
    int64_t now = (int64_t)(fl_clock_wall_ms() / 1000);
    struct fl_identity who = {.kind = FL_IDENTITY_CERTIFICATE,
                              .role = role,
                              .name = "edge-001",
                              .serial = {7},
                              .serial_len = 1,
                              .not_before = now - 86400,
                              .not_after = now + ends_in_s};

    return who;
}

TEST_CASE("guard", setup, teardown);

TEST(a_peer_is_what_its_certificate_says_as_long_as_it_lasts)
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
        struct fl_identity who = somebody(cases[i].role, cases[i].ends_in_s);

        why = NULL;
        ck_assert_uint_eq(fl_auth_who(guard, &who, &why), cases[i].is);
        ck_assert(cases[i].why != NULL ? strstr(why, cases[i].why) != NULL : why == NULL);
    }
    ck_assert_uint_eq(fl_auth_who(guard, NULL, &why), FL_WHO_UNAUTHENTICATED);
    ck_assert_uint_eq(fl_auth_who(guard, &local, &why), FL_WHO_UNAUTHENTICATED);
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

    r->after = fl_auth_who(guard, &r->who, &r->why);
    fl_loop_stop(net);
}

TEST(what_the_lane_has_changed_is_in_force_when_it_is_told)
{
    struct revoking r = {.who = somebody(FL_ROLE_CLIENT, 3600), .why = ""};

    r.before = fl_auth_who(guard, &r.who, &r.why);
    ck_assert_int_eq(fl_auth_submit(guard, revoke_one, revoked, &r), FL_OK);
    fl_loop_run(net);
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

TEST(one_that_ends_finishes_what_it_has_and_takes_no_more)
{
    static char letters[8];
    int i;

    hold_lane();
    for (i = 0; i < 5; i++) {
        ck_assert_int_eq(fl_auth_submit(guard, append, NULL, letters), FL_OK);
    }
    let_go();
    fl_auth_close(guard);
    ck_assert_str_eq(letters, "abcde");
    ck_assert_int_eq(fl_auth_submit(guard, append, NULL, letters), FL_ECLOSED);
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

/* How often the peer has heard this since it was asked last. */
static unsigned heard(struct peer *p, const char *what)
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
    ck_assert_int_eq(fl_auth_submit(guard, invite, NULL, line), FL_OK);
    after_lane();
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
    ck_assert_int_eq(fl_csr_make(key, "whoever", &der), FL_OK);
    (void)memcpy(join.token, line->token, sizeof(join.token));
    join.request = (struct fl_wire_bytes){der.data, der.len};
    fl_buf_init(&message, 1 << 16);
    ck_assert_int_eq(fl_wire_join_encode(&join, &message), FL_OK);
    frame(&message, body);
    fl_buf_done(&der);
    fl_key_unref(key);
}

/* With a good invitation: who asks again with the same key has the same certificate. */
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

/* The one too many hears to come again, those who wait are answered, and so are operators. */
TEST(so_many_strangers_wait_and_no_more)
{
    struct peer strangers;
    struct peer operator;
    struct fl_buf join;
    struct fl_buf nobody;
    struct fl_buf empty;
    unsigned i;

    join_body(&join);
    fl_buf_init(&nobody, 16);
    frame(&nobody, &empty);
    peer_begin(&strangers, FL_WHO_UNAUTHENTICATED);
    peer_begin(&operator, FL_WHO_LOCAL);
    hold_lane();
    for (i = 0; i < WAITING; i++) {
        ask(&strangers, "/fl.v1.Identity/Join", &join);
    }
    ck_assert_uint_eq(heard(&strangers, "grpc-status"), 0);
    ck_assert_uint_eq(admin.n_unauthenticated, WAITING);
    ask(&strangers, "/fl.v1.Identity/Join", &join);
    ck_assert_uint_eq(heard(&strangers, "grpc-status=14"), 1); /* UNAVAILABLE */
    ck_assert_uint_eq(heard(&strangers, "too many requests for certificates"), 1);
    ask(&operator, "/fl.v1.Admin/ListInvitations", &empty);
    ck_assert_uint_eq(heard(&operator, "grpc-status"), 0);
    let_go();
    after_lane();
    ck_assert_uint_eq(heard(&strangers, "grpc-status=0"), WAITING);
    ck_assert_uint_eq(heard(&operator, "grpc-status=0"), 1);
    ask(&strangers, "/fl.v1.Identity/Join", &join); /* There is room again. */
    after_lane();
    ck_assert_uint_eq(heard(&strangers, "grpc-status=0"), WAITING + 1);
    rawpeer_close(&strangers.raw);
    rawpeer_close(&operator.raw);
    fl_buf_done(&join);
    fl_buf_done(&empty);
}

/* Not even a use of his invitation, which is good for one key. */
TEST(one_who_goes_away_while_he_waits_leaves_nothing_behind)
{
    struct peer stranger;
    struct peer other;
    struct fl_invite line;
    struct fl_buf join;
    struct fl_buf another;

    make_invitation(&line);
    join_by(&line, &join);
    join_by(&line, &another);
    peer_begin(&stranger, FL_WHO_UNAUTHENTICATED);
    peer_begin(&other, FL_WHO_UNAUTHENTICATED);
    hold_lane();
    ask(&stranger, "/fl.v1.Identity/Join", &join);
    ck_assert_uint_eq(admin.n_unauthenticated, 1);
    rawpeer_close(&stranger.raw);
    let_go();
    after_lane();
    ck_assert_uint_eq(admin.n_unauthenticated, 0); /* and teardown() looks for memory */
    ask(&other, "/fl.v1.Identity/Join", &another);
    after_lane();
    ck_assert_uint_eq(heard(&other, "grpc-status=0"), 1);
    rawpeer_close(&other.raw);
    fl_buf_done(&join);
    fl_buf_done(&another);
    fl_invite_done(&line);
}

TEST(what_an_operator_asked_for_is_done_though_he_went_away)
{
    struct peer operator;
    struct peer stranger;
    struct fl_buf message;
    struct fl_buf withdraw;
    struct fl_buf join;

    join_body(&join);
    fl_buf_init(&message, 64);
    ck_assert_int_eq(fl_wire_withdraw_encode(prefix, &message), FL_OK);
    frame(&message, &withdraw);
    peer_begin(&operator, FL_WHO_LOCAL);
    peer_begin(&stranger, FL_WHO_UNAUTHENTICATED);
    hold_lane();
    ask(&operator, "/fl.v1.Admin/WithdrawInvitation", &withdraw);
    rawpeer_close(&operator.raw);
    let_go();
    after_lane();
    ask(&stranger, "/fl.v1.Identity/Join", &join);
    after_lane();
    ck_assert_uint_eq(heard(&stranger, "grpc-status=9"), 1); /* FAILED_PRECONDITION */
    rawpeer_close(&stranger.raw);
    fl_buf_done(&withdraw);
    fl_buf_done(&join);
}
