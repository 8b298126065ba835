/* Who may call what: a server's methods by what the peer of a connection is. */

#include <check.h>
#include <string.h>

#include "tests/lib/gworld.h"
#include "tests/lib/suites.h"

static uint32_t is;         /* what every peer is */
static const char *because; /* it is nothing */

static uint32_t who(void *ctx, const struct fl_identity *identity, const char **why)
{
    (void)ctx;
    ck_assert_ptr_null(identity);
    *why = because;
    return is;
}

static enum fl_grpc_status status_of(const char *path, uint32_t peer, const char *why)
{
    struct world world = {.done = gworld_calls_closed, .who = who};
    struct client *client = &world.client[0];
    enum fl_grpc_status status;
    unsigned calls;

    is = peer;
    because = why;
    gworld_begin(&world, "127.0.0.1:0");
    client->call_on_up = true;
    client->path = path;
    client->side.blob = gworld_blob(10);
    client->side.to_send = 1;
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    status = client->side.status;
    calls = world.server_calls;
    ck_assert_uint_eq(world.notices, status == FL_GRPC_OK ? 0 : 1);
    gworld_end(&world);
    ck_assert_uint_eq(calls, status == FL_GRPC_OK ? 1 : 0);
    return status;
}

TEST(a_method_is_for_those_that_its_row_names)
{
    ck_assert_int_eq(status_of("/t.T/Members", FL_WHO_CLIENT, NULL), FL_GRPC_OK);
    ck_assert_int_eq(status_of("/t.T/Members", FL_WHO_ADMIN, NULL), FL_GRPC_PERMISSION_DENIED);
    ck_assert_int_eq(status_of("/t.T/Members", FL_WHO_PLAIN, NULL), FL_GRPC_PERMISSION_DENIED);
}

TEST(a_method_without_anybody_is_for_nobody)
{
    ck_assert_int_eq(status_of("/t.T/Nobody", FL_WHO_ANYBODY, NULL), FL_GRPC_UNAUTHENTICATED);
    ck_assert_int_eq(status_of("/t.T/Nobody", FL_WHO_LOCAL, NULL), FL_GRPC_PERMISSION_DENIED);
}

TEST(who_has_to_show_a_certificate_first_is_told_so)
{
    ck_assert_int_eq(status_of("/t.T/Members", FL_WHO_UNAUTHENTICATED, NULL),
                     FL_GRPC_UNAUTHENTICATED);
    ck_assert_int_eq(status_of("/t.T/Members", FL_WHO_LAPSED, NULL), FL_GRPC_UNAUTHENTICATED);
}

TEST(a_peer_that_is_nothing_is_told_why)
{
    ck_assert_int_eq(status_of("/t.T/Echo", 0, "disabled"), FL_GRPC_PERMISSION_DENIED);
    ck_assert_int_eq(status_of("/t.T/Echo", FL_WHO_DISOWNED, "revoked"), FL_GRPC_UNAUTHENTICATED);
}

static unsigned expected;

static bool they_hold(struct world *world)
{
    return world->server_calls == expected;
}

static bool first_is_gone(struct world *world)
{
    return world->client[0].side.closed > 0 && world->client[0].down > 0;
}

static unsigned asked;

/* The first that is asked about in a review has lost what it had. */
static uint32_t one_is_expelled(void *ctx, const struct fl_identity *identity, const char **why)
{
    (void)ctx;
    (void)identity;
    asked++;
    if (asked == 4) { /* Two have come; the newest is looked at first. */
        *why = "its certificate is over";
        return FL_WHO_LAPSED;
    }
    return FL_WHO_CLIENT;
}

TEST(a_review_ends_the_calls_of_those_that_have_lost_something_and_of_nobody_else)
{
    struct world world = {.done = they_hold, .who = one_is_expelled};

    asked = 0;
    gworld_begin(&world, "127.0.0.1:0");
    for (expected = 1; expected <= 2; expected++) {
        struct client *client = &world.client[expected - 1];

        client->call_on_up = true;
        client->path = "/t.T/Hold";
        (void)gworld_connect(&world, world.address, 5000);
        fl_loop_run(world.loop);
    }
    fl_grpc_server_review(world.server);
    world.done = first_is_gone;
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.client[0].side.status, FL_GRPC_PERMISSION_DENIED);
    ck_assert_uint_eq(world.client[1].side.closed, 0);
    ck_assert_uint_eq(world.client[1].down, 0);
    ck_assert_ptr_nonnull(strstr(world.notice, "its certificate is over"));
    gworld_end(&world);
}
