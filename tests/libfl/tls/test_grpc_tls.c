#include <check.h>
#include <string.h>

#include "tests/lib/gworld.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlsrig.h"

/* Servers and channels over TLS on real sockets; what every stream does over it is in test_grpc. */

static struct tlsrig rig;

static void begin(void)
{
    tlsrig_begin(&rig);
    gworld_filter = &rig.filter[TLSRIG_SERVER];
    gworld_dial_filter = &rig.filter[TLSRIG_CLIENT];
}

static void end(void)
{
    tlsrig_end(&rig);
}

static bool client_up(struct world *world)
{
    return world->client[0].up > 0;
}

static bool client_down(struct world *world)
{
    return world->client[0].down > 0;
}

static bool told_on_both_sides(struct world *world)
{
    return world->client[0].down > 0 && world->notices > 0;
}

TEST_CASE("grpc_tls", begin, end);

TEST(a_client_without_tls_at_an_address_with_it_is_told_on_both_sides)
{
    struct world world = {.done = told_on_both_sides};

    gworld_dial_filter = NULL;
    gworld_begin(&world, "127.0.0.1:0");
    (void)gworld_connect(&world, world.address, 60000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.client[0].code, FL_EPERM);
    ck_assert_msg(strstr(world.client[0].text, "the peer speaks TLS, and `insecure` is set here") !=
                      NULL,
                  "%s", world.client[0].text);
    ck_assert_msg(strstr(world.notice, "speaks HTTP/2 without TLS") != NULL, "%s", world.notice);
    gworld_end(&world);
}

TEST(a_client_with_tls_at_an_address_without_it_is_told_on_both_sides)
{
    struct world world = {.done = told_on_both_sides};

    gworld_filter = NULL;
    gworld_begin(&world, "127.0.0.1:0");
    (void)gworld_connect(&world, world.address, 60000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.client[0].code, FL_EPERM);
    ck_assert_msg(strstr(world.client[0].text, "speaks HTTP/2 without TLS") != NULL, "%s",
                  world.client[0].text);
    ck_assert_msg(strstr(world.notice, "the peer speaks TLS, and this address is `insecure`") !=
                      NULL,
                  "%s", world.notice);
    gworld_end(&world);
}

TEST(what_a_stream_holds_is_in_the_budget_of_the_server)
{
    struct world world = {.done = client_up};

    gworld_begin(&world, "127.0.0.1:0");
    (void)gworld_connect(&world, world.address, 60000);
    fl_loop_run(world.loop);
    /* No call has begun: only the handshake can have been there. */
    ck_assert_uint_gt(fl_grpc_server_budget(world.server)->peak, 1000);
    gworld_end(&world);
}

TEST(a_refused_client_goes_down_for_good_with_the_servers_reason)
{
    struct world world = {.done = client_down};

    rig.now += 60 * TLSRIG_DAY;
    /* The client's own clock is right about the server, which has a new certificate. */
    {
        struct fl_chain *chain =
            tlsrig_leaf(&rig.ca, rig.key[TLSRIG_SERVER],
                        &(struct tlsrig_leaf){FL_ROLE_SERVER, "main", TLSRIG_HOST, rig.now - 1,
                                              rig.now + TLSRIG_DAY, NULL});

        tlsrig_renew(&rig, TLSRIG_SERVER, chain, NULL);
        fl_chain_unref(chain);
    }
    gworld_begin(&world, "127.0.0.1:0");
    (void)gworld_connect(&world, world.address, 60000);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.client[0].up, 0);
    ck_assert_int_eq(world.client[0].code, FL_EPERM);
    ck_assert_msg(strstr(world.client[0].text, "expired or is not valid yet") != NULL, "%s",
                  world.client[0].text);
    ck_assert_int_eq(strncmp(world.client[0].text, world.address, strlen(world.address)), 0);
    ck_assert_uint_eq(rig.notices[TLSRIG_SERVER], 1);
    ck_assert_str_eq(rig.reason[TLSRIG_SERVER], "expired");
    gworld_end(&world);
}

TEST(a_refused_server_is_named_before_anything_is_sent)
{
    struct world world = {.done = client_down};
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_CLIENT);

    setup.host = "elsewhere.example.org";
    tlsrig_replace(&rig, TLSRIG_CLIENT, &setup);
    gworld_begin(&world, "127.0.0.1:0");
    world.client[0].call_on_up = true;
    (void)gworld_connect(&world, world.address, 60000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.client[0].code, FL_EPERM);
    ck_assert_ptr_nonnull(strstr(world.client[0].text, "elsewhere.example.org"));
    ck_assert_uint_eq(world.server_calls, 0);
    gworld_end(&world);
}

/* Whom the server took its peers for, in order. */
static struct fl_identity seen[8];
static unsigned n_seen;

static uint32_t who(void *ctx, const struct fl_identity *identity, const char **why)
{
    (void)ctx;
    (void)why;
    ck_assert_ptr_nonnull(identity);
    ck_assert_uint_lt(n_seen, 8);
    seen[n_seen++] = *identity;
    return FL_WHO_CLIENT;
}

static bool under_way(struct world *world)
{
    return world->client[0].side.messages > 2;
}

TEST(new_credentials_are_for_new_connections_and_those_under_way_go_on)
{
    static struct world world;
    struct fl_chain *chain;
    unsigned i;

    world = (struct world){.done = under_way, .who = who};
    n_seen = 0;
    gworld_begin(&world, "127.0.0.1:0");
    for (i = 0; i < 2; i++) {
        world.client[i].side.blob = gworld_blob(MIB);
        world.client[i].side.to_send = 20;
        world.client[i].call_on_up = true;
    }
    (void)gworld_connect(&world, world.address, 60000);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.client[0].side.closed, 0);
    fl_key_unref(rig.key[TLSRIG_CLIENT]);
    ck_assert_int_eq(fl_key_make(&rig.key[TLSRIG_CLIENT]), FL_OK);
    chain = tlsrig_leaf(&rig.ca, rig.key[TLSRIG_CLIENT],
                        &(struct tlsrig_leaf){FL_ROLE_CLIENT, "edge-002", NULL, TLSRIG_NOW - 1,
                                              TLSRIG_NOW + TLSRIG_DAY, NULL});
    tlsrig_renew(&rig, TLSRIG_CLIENT, chain, NULL);
    tlsrig_renew(&rig, TLSRIG_SERVER, NULL, NULL);
    (void)gworld_connect(&world, world.address, 60000);
    world.done = gworld_calls_closed;
    fl_loop_run(world.loop);
    for (i = 0; i < 2; i++) {
        ck_assert_int_eq((int)world.client[i].side.status, (int)FL_GRPC_OK);
        ck_assert_uint_eq(world.client[i].side.messages, 20);
        ck_assert(world.client[i].side.intact);
    }
    ck_assert_uint_eq(n_seen, 2);
    ck_assert_str_eq(seen[0].name, "edge-001");
    ck_assert_str_eq(seen[1].name, "edge-002");
    ck_assert_str_eq(seen[1].federation, "fed");
    gworld_end(&world);
    fl_chain_unref(chain);
}

static bool one_call_closed(struct world *world)
{
    return world->client[world->n_clients - 1].side.closed > 0;
}

TEST(who_a_peer_is_comes_with_its_first_connection_and_with_resumed_ones)
{
    static struct world world;
    unsigned i;

    world = (struct world){.done = one_call_closed, .who = who};
    n_seen = 0;
    gworld_begin(&world, "127.0.0.1:0");
    for (i = 0; i < 3; i++) {
        world.client[i].side.blob = gworld_blob(10);
        world.client[i].side.to_send = 1;
        world.client[i].call_on_up = true;
        (void)gworld_connect(&world, world.address, 60000);
        fl_loop_run(world.loop);
        ck_assert_int_eq((int)world.client[i].side.status, (int)FL_GRPC_OK);
        ck_assert_mem_eq(&seen[i], &seen[0], sizeof(seen[0]));
    }
    ck_assert_uint_eq(n_seen, 3);
    ck_assert_str_eq(seen[0].name, "edge-001");
    gworld_end(&world);
}
