/* A certificate is renewed through the session that stands; one that is over before anything else.
 */

#include <check.h>
#include <string.h>

#include "client/daemon/clientd_conf.h"
#include "client/daemon/renewal.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "tests/lib/enrol_server.h"
#include "tests/lib/suites.h"

/* --- the wall clock of this process --- */

static int64_t skew_ms;

uint64_t __real_fl_clock_wall_ms(void);
uint64_t __wrap_fl_clock_wall_ms(void);

uint64_t __wrap_fl_clock_wall_ms(void)
{
    return (uint64_t)((int64_t)__real_fl_clock_wall_ms() + skew_ms);
}

/* --- a daemon that connects, attends and renews, and does nothing else --- */

static struct rig_identity rig;
static struct enrol_server server;
static struct fl_loop *loop;
static struct fl_client_conf *conf;
static struct fl_client_credentials *credentials;
static struct fl_connection *connection;
static struct fl_session_shell *shell;
static struct fl_timer *timer;
static struct fl_renewal *renewal;
static struct fl_session_conf session = {
    .seed = 1, .backoff_ms = 20, .backoff_max_ms = 40, .refused_ms = 3600000};
static char lines[8192]; /* of its log */
static char exit_text[FL_ERR_BUF_SIZE];
static char notice[FL_ERR_BUF_SIZE];

static bool (*is_over)(void);

static void look(void *ctx)
{
    (void)ctx;
    if (is_over != NULL && is_over()) {
        fl_loop_stop(loop);
    }
}

static void keep_line(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    size_t len = strlen(lines);

    (void)ctx;
    (void)level;
    (void)component;
    (void)snprintf(lines + len, sizeof(lines) - len, "%s\n", text);
    look(NULL);
}

static const struct fl_log logs = {.level = FL_LOG_INFO, .sink = keep_line};

static uint64_t now_ms(void *ctx)
{
    (void)ctx;
    return fl_clock_ms();
}

static void set_timer(void *ctx, uint64_t at_ms)
{
    uint64_t now = fl_clock_ms();

    (void)ctx;
    if (at_ms == UINT64_MAX) {
        fl_timer_stop(timer);
    } else {
        fl_timer_start(timer, at_ms > now ? at_ms - now : 0);
    }
}

static void on_session_timer(void *ctx)
{
    (void)ctx;
    fl_session_shell_tick(shell);
}

static int session_begins(void *ctx, enum fl_activity activity, const struct fl_session_effect *e,
                          struct fl_err *err)
{
    int rv = FL_OK;

    (void)ctx;
    (void)e;
    if (activity == FL_ACTIVITY_CONNECTION && fl_renewal_may_connect(renewal)) {
        rv = fl_connection_open(connection, err);
    }
    look(NULL);
    return rv;
}

static void session_cancels(void *ctx, enum fl_activity activity, const char *why)
{
    (void)ctx;
    (void)activity;
    (void)why;
    look(NULL);
}

static void session_sends(void *ctx, struct fl_wire_event *message)
{
    (void)ctx;
    (void)message;
    look(NULL);
}

static void session_logs(void *ctx, enum fl_log_level level, const char *text)
{
    (void)ctx;
    if (level == FL_LOG_NOTICE) {
        (void)snprintf(notice, sizeof(notice), "%s", text);
    }
    look(NULL);
}

static void session_leaves(void *ctx, int code, const char *why)
{
    (void)ctx;
    (void)code;
    (void)snprintf(exit_text, sizeof(exit_text), "%s", why);
    look(NULL);
}

/* No command arrives, so there is neither a task nor a result. */
static const struct fl_session_ops ops = {.now_ms = now_ms,
                                          .set_timer = set_timer,
                                          .begin = session_begins,
                                          .cancel = session_cancels,
                                          .send = session_sends,
                                          .log = session_logs,
                                          .leave = session_leaves};

static bool on_channel(void *ctx)
{
    (void)ctx;
    return fl_renewal_up(renewal);
}

static void on_up(void *ctx)
{
    (void)ctx;
    fl_session_shell_ended(shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0}, FL_OK, NULL);
}

static void on_message(void *ctx, const uint8_t *data, size_t len)
{
    (void)ctx;
    (void)data;
    (void)len;
}

static void on_writable(void *ctx)
{
    (void)ctx;
}

static void on_ended(void *ctx, enum fl_grpc_status status, const char *message)
{
    (void)ctx;
    (void)status;
    (void)message;
}

static void on_down(void *ctx, bool refused, const char *why)
{
    (void)ctx;
    fl_renewal_down(renewal, refused);
    fl_session_shell_failed(shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0},
                            refused ? FL_FAULT_LASTING : FL_FAULT_PASSING, why);
}

static const struct fl_connection_cbs cbs = {.on_channel = on_channel,
                                             .on_up = on_up,
                                             .on_message = on_message,
                                             .on_writable = on_writable,
                                             .on_ended = on_ended,
                                             .on_down = on_down};

/* The identity that the rig has now; its session begins when the loop runs. */
static void begin(void)
{
    char path[FOLDER_PATH + 16];
    char text[512];
    static const struct fl_device_limits unlimited = {0};
    struct fl_err err = {0};
    int exit_code;

    (void)snprintf(path, sizeof(path), "%s/c.yaml", rig.state);
    (void)snprintf(text, sizeof(text), "server: \"%s\"\nstate_dir: \"%s\"\ndata: {path: x}\n",
                   server.address, rig.state);
    ck_assert_int_eq(fl_fs_replace(path, text, strlen(text), false, NULL), FL_OK);
    ck_assert_msg(fl_clientd_conf_load(path, NULL, &conf, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_credentials_open(conf, &logs, &credentials, &exit_code, &err) == FL_OK, "%s",
                  err.msg);
    ck_assert_int_eq(fl_session_shell_create(&session, &ops, NULL, &shell), FL_OK);
    ck_assert_int_eq(fl_timer_create(loop, on_session_timer, NULL, &timer), FL_OK);
    ck_assert_int_eq(
        fl_connection_create(
            &(struct fl_connection_conf){.loop = loop,
                                         .log = &logs,
                                         .servers = conf->main->server.list,
                                         .n_servers = conf->main->server.n,
                                         .filters = fl_credentials_filters(credentials),
                                         .timeout_ms = 600000,
                                         .limits = &unlimited,
                                         .cbs = cbs},
            &connection),
        FL_OK);
    ck_assert_int_eq(fl_renewal_create(loop, &logs, credentials, connection, shell, &renewal),
                     FL_OK);
    fl_session_shell_key(shell, FL_CEV_START, (struct fl_round_key){0});
}

static void run_until(bool (*over)(void))
{
    if (over()) {
        return;
    }
    is_over = over;
    fl_loop_run(loop);
    is_over = NULL;
}

static void setup(void)
{
    skew_ms = 0;
    session.backoff_max_ms = 40;
    lines[0] = notice[0] = exit_text[0] = '\0';
    rig_identity_now = enrol_server_now();
    rig_identity_setup(&rig);
    ck_assert_int_eq(fl_loop_create(&loop, NULL), FL_OK);
    enrol_server_begin(&server, &rig, &rig.pki, loop);
    server.after = look;
}

static void teardown(void)
{
    fl_session_shell_stop(shell);
    fl_timer_close(timer);
    fl_renewal_stop(renewal);
    fl_connection_free(connection);
    server.after = NULL;
    enrol_server_end(&server);
    fl_loop_free(loop);
    fl_renewal_free(renewal);
    fl_credentials_free(credentials);
    fl_session_shell_free(shell);
    fl_client_conf_free(conf);
    rig_identity_teardown(&rig);
}

/* A certificate that began so long ago and ends in so long. */
static void has_identity(int64_t begun_s, int64_t left_s)
{
    struct fl_enrolling *enrolling = NULL;
    struct fl_issue issue =
        rig_pki_issue("demo", FL_ROLE_CLIENT, "edge-001", enrol_server_now(), 1);
    struct fl_err err = {0};

    issue.not_before = enrol_server_now() - begun_s;
    issue.not_after = enrol_server_now() + left_s;
    ck_assert_int_eq(fl_enrolling_join(rig.dir, &rig.invite, "", &enrolling, NULL), FL_OK);
    rig_identity_answer(&rig, enrolling, &issue, rig.pki.root);
    ck_assert_msg(fl_enrolling_done(enrolling,
                                    &(struct fl_enrolling_reply){&rig.chain, &rig.roots, 0},
                                    enrol_server_now(), NULL, &err) == FL_OK,
                  "%s", err.msg);
    fl_enrolling_free(enrolling);
}

static int64_t not_after(void)
{
    return fl_credentials_identity(credentials)->who.not_after;
}

/* --- */

static bool renewed(void)
{
    return strstr(lines, "certificate renewed: name=edge-001") != NULL;
}

static bool attends(void)
{
    return server.attends > 0;
}

TEST_CASE("all", setup, teardown);

TEST(a_certificate_that_is_due_is_renewed_through_the_session_that_stands)
{
    has_identity(/* begun_s= */ 500, /* left_s= */ 100);
    begin();
    run_until(renewed);
    ck_assert_uint_eq(server.renewals, 1);
    ck_assert_uint_eq(server.attends, 1);
    ck_assert_uint_eq(server.attending, 1); /* It goes on. */
    ck_assert_uint_eq(fl_grpc_server_connections(server.server), 1);
    ck_assert_int_gt(not_after(), enrol_server_now() + 29 * RIG_DAY);
}

static bool renewed_late(void)
{
    return server.renewals > 0;
}

/* One that begins now is due when two thirds are over: 12 to 15 seconds. */
TEST(a_certificate_that_becomes_due_while_the_session_stands_is_renewed)
{
    has_identity(/* begun_s= */ 12, /* left_s= */ 8);
    begin();
    run_until(renewed_late);
    ck_assert_uint_eq(server.attends, 1);
}

TEST(a_fresh_certificate_is_left_alone)
{
    has_identity(/* begun_s= */ 500, /* left_s= */ 29 * RIG_DAY);
    begin();
    server.after = look;
    run_until(attends);
    ck_assert_uint_eq(server.renewals, 0);
}

TEST(a_lost_reply_is_asked_for_again_after_a_pause)
{
    has_identity(/* begun_s= */ 500, /* left_s= */ 20);
    server.mode = ENROL_LOSES;
    server.modes_left = 1;
    begin();
    run_until(renewed);
    ck_assert_uint_eq(server.renewals, 2);
    ck_assert_ptr_nonnull(strstr(lines, "certificate renewal failed, retrying in"));
    ck_assert_uint_eq(server.attends, 1);
}

TEST(a_certificate_that_is_over_is_renewed_before_anything_else)
{
    has_identity(/* begun_s= */ 500, /* left_s= */ -10);
    begin();
    run_until(renewed);
    ck_assert_uint_eq(server.attends, 0);
    run_until(attends); /* With the new one. */
    ck_assert_uint_eq(server.renewals, 1);
}

static bool kept_away(void)
{
    return notice[0] != '\0' || exit_text[0] != '\0';
}

TEST(who_is_not_renewed_any_more_is_told_which_command_helps)
{
    has_identity(/* begun_s= */ 500, /* left_s= */ -10);
    server.mode = ENROL_DENIES;
    begin();
    run_until(kept_away);
    ck_assert_uint_eq(server.attends, 0);
    ck_assert_msg(strstr(notice, "fl-clientd --join") != NULL, "%s", notice);
    ck_assert_msg(strstr(notice, "reconnecting in") != NULL, "%s", notice);
    ck_assert_msg(strstr(lines, "this invitation is over") != NULL, "%s", lines);
}

TEST(a_certificate_beyond_all_grace_is_a_refusal_that_names_the_command)
{
    has_identity(/* begun_s= */ 500, /* left_s= */ -10);
    skew_ms = 61 * RIG_DAY * 1000; /* Of both sides. */
    begin();
    run_until(kept_away);
    ck_assert_msg(strstr(lines, "fl-clientd --join") != NULL, "%s", lines);
}

/* --- files that somebody replaced --- */

static bool taken_up(void)
{
    return strstr(lines, "certificate loaded: name=edge-001") != NULL;
}

TEST(files_that_were_replaced_are_taken_up_without_an_end_of_the_session)
{
    int64_t before;

    has_identity(/* begun_s= */ 500, /* left_s= */ 10 * RIG_DAY);
    begin();
    run_until(attends);
    before = not_after();
    rig_identity_invite(&rig);
    has_identity(/* begun_s= */ 500, /* left_s= */ 20 * RIG_DAY);
    run_until(taken_up);
    ck_assert_int_gt(not_after(), before);
    ck_assert_uint_eq(server.attending, 1);
}

TEST(files_that_are_wrong_are_refused_and_the_old_ones_stay_in_use)
{
    struct fl_err err = {0};
    int64_t before;

    has_identity(/* begun_s= */ 500, /* left_s= */ 10 * RIG_DAY);
    begin();
    run_until(attends);
    before = not_after();
    ck_assert_int_eq(fl_fs_replace(rig_identity_path(&rig, "client.pem"), "x", 1, false, NULL),
                     FL_OK);
    ck_assert_int_ne(fl_renewal_reload(renewal, &err), FL_OK);
    ck_assert_msg(strstr(err.msg, "client.pem") != NULL, "%s", err.msg);
    ck_assert_int_eq(not_after(), before);
}

static bool attends_again(void)
{
    return server.attends > 0 && server.renewals > 0;
}

/* An operator joined it again: the wait ends, were it long, and retries do not hide the new files.
 */
TEST_EACH(a_new_certificate_ends_the_wait_after_a_refusal, 2)
{
    session.backoff_max_ms = _i == 0 ? 40 : 3600000;
    has_identity(/* begun_s= */ 500, /* left_s= */ -10);
    server.mode = ENROL_DENIES;
    begin();
    run_until(kept_away);
    rig_identity_invite(&rig);
    has_identity(/* begun_s= */ 500, /* left_s= */ 10 * RIG_DAY);
    run_until(attends_again);
}

/* --- the clock --- */

static bool waits_for_clock(void)
{
    return strstr(lines, "waiting for the time service") != NULL;
}

TEST(a_host_that_begins_in_1970_waits_for_its_clock_and_says_so)
{
    has_identity(/* begun_s= */ 500, /* left_s= */ 10 * RIG_DAY);
    skew_ms = -enrol_server_now() * 1000;
    begin();
    run_until(waits_for_clock);
    ck_assert_ptr_nonnull(strstr(lines, "1970-01-01"));
    ck_assert_uint_eq(server.attends, 0);
    skew_ms = 0; /* The time service did it. */
    run_until(attends);
    ck_assert_ptr_nonnull(strstr(lines, "the clock of this host is set, connecting"));
}

/* A certificate looks over to who is too far ahead; the server's as well. */
TEST(a_clock_that_is_set_right_ends_the_wait_after_a_refusal)
{
    session.backoff_max_ms = 3600000;
    has_identity(/* begun_s= */ 500, /* left_s= */ 10 * RIG_DAY);
    skew_ms = 365 * RIG_DAY * 1000;
    begin();
    run_until(kept_away);
    ck_assert_uint_eq(server.attends, 0);
    skew_ms = 0;
    run_until(attends);
    ck_assert_ptr_nonnull(strstr(lines, "the clock of this host was set back by"));
}
