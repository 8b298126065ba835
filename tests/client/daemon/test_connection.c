/* Several servers: in which order they are tried, and when the session learns of it. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/connection.h"
#include "tests/lib/suites.h"

/* Nothing listens there, as only root could. */
#define CLOSED "127.0.0.1:1"

static struct {
    struct fl_loop *loop;
    struct fl_grpc_server *server; /* offers nothing: Attend ends, and no Welcome comes */
    struct fl_connection *connection;
    char address[64];
    char lines[2048];
    unsigned up, ended, down;
    bool refused;
    char why[512];
    bool channel_only; /* on_channel says that the channel is not for Attend */
} rig;

static void sink(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    size_t len = strlen(rig.lines);

    (void)ctx;
    (void)level;
    (void)component;
    (void)snprintf(rig.lines + len, sizeof(rig.lines) - len, "%s\n", text);
}

static bool on_channel(void *ctx)
{
    (void)ctx;
    if (rig.channel_only) {
        fl_connection_close(rig.connection);
    }
    return !rig.channel_only;
}

static void on_up(void *ctx)
{
    (void)ctx;
    rig.up++;
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
    (void)message;
    ck_assert_int_eq(status, FL_GRPC_UNIMPLEMENTED);
    rig.ended++;
}

static void on_down(void *ctx, bool refused, const char *why)
{
    (void)ctx;
    rig.down++;
    rig.refused = refused;
    (void)snprintf(rig.why, sizeof(rig.why), "%s", why);
    fl_loop_stop(rig.loop);
}

static void on_server_closed(void *arg)
{
    fl_loop_stop(arg);
}

static void begin(const char *const *servers, size_t n)
{
    static const struct fl_device_limits limits = {0};
    static struct fl_log log = {.level = FL_LOG_DEBUG, .sink = sink};
    const struct fl_connection_conf conf = {
        .loop = rig.loop,
        .log = &log,
        .servers = servers,
        .n_servers = n,
        .pause_ms = 3,
        .timeout_ms = 600000,
        .limits = &limits,
        .cbs = {on_channel, on_up, on_message, on_writable, on_ended, on_down}};

    ck_assert_int_eq(fl_connection_create(&conf, &rig.connection), FL_OK);
}

static void open_once(void)
{
    rig.lines[0] = '\0';
    ck_assert_int_eq(fl_connection_open(rig.connection, NULL), FL_OK);
    ck_assert_int_eq(fl_connection_open(rig.connection, NULL), FL_OK); /* has begun already */
    fl_loop_run(rig.loop);
}

static void setup(void)
{
    static const struct fl_rpc_method none[] = {{.path = NULL}};
    struct fl_grpc_server_setup setup = {.max_connections = 4, .methods = none};
    struct fl_grpc_listen listen = {.address = "127.0.0.1:0"};
    unsigned port = 0;

    (void)memset(&rig, 0, sizeof(rig));
    ck_assert_int_eq(fl_loop_create(&rig.loop, NULL), FL_OK);
    setup.loop = rig.loop;
    fl_rpc_limits_default(&setup.limits);
    ck_assert_int_eq(fl_grpc_server_create(&setup, &rig.server, NULL), FL_OK);
    ck_assert_int_eq(fl_grpc_server_listen(rig.server, &listen, &port, NULL), FL_OK);
    (void)snprintf(rig.address, sizeof(rig.address), "127.0.0.1:%u", port);
}

static void teardown(void)
{
    fl_connection_free(rig.connection);
    fl_grpc_server_close(rig.server, 0, on_server_closed, rig.loop);
    fl_loop_run(rig.loop);
    fl_loop_free(rig.loop);
}

TEST_CASE("several servers", setup, teardown);

TEST(the_connection_is_down_when_the_last_server_has_failed)
{
    static const char *const servers[] = {CLOSED, "127.0.0.2:1", "127.0.0.3:1"};
    const char *first;
    const char *second;
    const char *third;
    int i;

    begin(servers, 3);
    for (i = 1; i < 3; i++) {
        open_once();
        first = strstr(rig.lines, "no connection to '127.0.0.1:1': cannot connect");
        second = strstr(rig.lines, "no connection to '127.0.0.2:1': cannot connect");
        third = strstr(rig.lines, "no connection to '127.0.0.3:1': cannot connect");
        ck_assert_ptr_nonnull(first);
        ck_assert_ptr_nonnull(strstr(first, "; trying '127.0.0.2:1' next\n"));
        ck_assert(second != NULL && second > first && third != NULL && third > second);
        ck_assert_ptr_nonnull(strstr(rig.why, "127.0.0.3:1"));
        ck_assert_int_eq(rig.down, i);
        ck_assert(!rig.refused);
        ck_assert_str_eq(fl_connection_server(rig.connection), CLOSED);
    }
}

TEST(the_first_server_that_is_reached_is_taken)
{
    const char *const servers[] = {CLOSED, rig.address, "127.0.0.3:1"};

    begin(servers, 3);
    open_once();
    ck_assert_uint_eq(rig.up, 1);
    ck_assert_uint_eq(rig.ended, 1);
    ck_assert_uint_eq(rig.down, 1);
    ck_assert_ptr_null(strstr(rig.lines, "127.0.0.3:1"));
}

TEST(after_a_server_without_welcome_the_next_one_follows)
{
    const char *const servers[] = {rig.address, "127.0.0.3:1"};

    begin(servers, 2);
    open_once();
    ck_assert_uint_eq(rig.up, 1);
    ck_assert_str_eq(fl_connection_server(rig.connection), "127.0.0.3:1");
    open_once();
    ck_assert_uint_eq(rig.up, 1);
    ck_assert_ptr_nonnull(strstr(rig.lines, "no connection to '127.0.0.3:1'"));
    open_once();
    ck_assert_uint_eq(rig.up, 2);
}

TEST(after_a_connection_for_another_call_the_first_server_follows)
{
    const char *const servers[] = {rig.address, "127.0.0.3:1"};

    rig.channel_only = true;
    begin(servers, 2);
    open_once();
    ck_assert_uint_eq(rig.up, 0);
    ck_assert_str_eq(fl_connection_server(rig.connection), rig.address);
}

TEST(an_address_that_cannot_be_used_does_not_keep_from_the_next)
{
    const char *const servers[] = {"nonsense", rig.address};

    begin(servers, 2);
    open_once();
    ck_assert_uint_eq(rig.up, 1);
    ck_assert_ptr_nonnull(strstr(rig.lines, "no connection to 'nonsense'"));
}

TEST(a_connection_that_is_closed_while_it_pauses_is_not_down)
{
    const char *const servers[] = {"nonsense", "127.0.0.3:1"};

    begin(servers, 2);
    ck_assert_int_eq(fl_connection_open(rig.connection, NULL), FL_OK);
    fl_connection_close(rig.connection);
    ck_assert_str_eq(fl_connection_server(rig.connection), "nonsense");
    ck_assert_int_eq(fl_connection_open(rig.connection, NULL), FL_OK);
    fl_connection_free(rig.connection);
    rig.connection = NULL;
    ck_assert_uint_eq(rig.down, 0);
}
