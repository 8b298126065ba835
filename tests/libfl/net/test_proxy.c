/* Connecting through a proxy that the test plays: end 0 accepts, and answers with `out`. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/net/proxy.h"
#include "libfl/net/proxy_answer.h"
#include "tests/lib/ends.h"
#include "tests/lib/suites.h"

#define TARGET "fl.example.org:7443"

/* The answer. */

static int take(struct fl_proxy_answer *a, const char *text, size_t cut, size_t *ret_used)
{
    size_t len = strlen(text);
    size_t at = 0;
    int rv = FL_OK;

    *a = (struct fl_proxy_answer){.done = false};
    while (rv == FL_OK && at < len && !a->done) {
        size_t n = cut < len - at ? cut : len - at;
        size_t used = 0;

        rv = fl_proxy_answer_take(a, (const uint8_t *)text + at, n, &used);
        at += used;
    }
    *ret_used = at;
    return rv;
}

static const struct {
    const char *text;
    int rv;
    unsigned status;
    const char *reason, *schemes;
    bool done;
    size_t rest;
} answers[] = {
    {"HTTP/1.1 200 Connection established\r\n\r\nrest", FL_OK, 200, "Connection established", "",
     true, 4},
    {"HTTP/1.0 200\r\n\r\n", FL_OK, 200, "", "", true, 0},
    {"HTTP/1.0 200 OK\nVia: x\n\n", FL_OK, 200, "OK", "", true, 0},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 x\r\n\r\n", FL_OK, 204, "x", "", true, 0},
    {"HTTP/1.1 407 Nope\r\nProxy-Authenticate: Basic realm=\"a, b\"\r\n\r\n<html>", FL_OK, 407,
     "Nope", "Basic", true, 6},
    {"HTTP/1.1 407 No\r\nproxy-authenticate:NTLM\r\nProxy-Authenticate:  Negotiate\r\n\r\n", FL_OK,
     407, "No", "NTLM, Negotiate", true, 0},
    {"HTTP/1.1 502 a\x1b[31mb\r\n\r\n", FL_OK, 502, "a?[31mb", "", true, 0},
    {"HTTP/1.1 200 OK\r\nVia: x\r\n", FL_OK, 200, "OK", "", false, 0},
    {"HTTP/1.1 20", FL_OK, 0, "", "", false, 0},
    {"HTTP/1.1 20 OK\r\n\r\n", FL_EPROTO, 0, "", "", false, 0},
    {"HTTP/1.1 999 OK\r\n\r\n", FL_EPROTO, 0, "", "", false, 0},
    {"HTTP/1.1 2000\r\n\r\n", FL_EPROTO, 0, "", "", false, 0},
    {"HTTP/2.0 200 OK\r\n", FL_EPROTO, 0, "", "", false, 0},
    {"SSH-2.0-OpenSSH_9.2", FL_EPROTO, 0, "", "", false, 0},
    {"\x15\x03\x03", FL_EPROTO, 0, "", "", false, 0},
    {"\r\n\r\n", FL_EPROTO, 0, "", "", false, 0},
};

TEST_EACH(an_answer_is_read_however_it_is_cut, ARRAY_LEN(answers))
{
    size_t cut;

    for (cut = 1; cut < 80; cut++) {
        struct fl_proxy_answer a;
        size_t used;

        ck_assert_int_eq(take(&a, answers[_i].text, cut, &used), answers[_i].rv);
        ck_assert_int_eq(a.done, answers[_i].done);
        ck_assert_uint_eq(a.status, answers[_i].status);
        if (answers[_i].rv == FL_OK) {
            ck_assert_str_eq(a.reason, answers[_i].reason);
            ck_assert_str_eq(a.schemes, answers[_i].schemes);
            ck_assert_uint_eq(strlen(answers[_i].text) - used, answers[_i].rest);
        }
    }
}

TEST(an_answer_without_end_is_refused)
{
    struct fl_proxy_answer a = {.done = false};
    const char *start = "HTTP/1.1 200 OK\r\nX: ";
    uint8_t line[1000];
    size_t used;
    int rv;
    int i;

    (void)memset(line, 'a', sizeof(line));
    rv = fl_proxy_answer_take(&a, (const uint8_t *)start, strlen(start), &used);
    for (i = 0; rv == FL_OK && i < 1000; i++) {
        rv = fl_proxy_answer_take(&a, line, sizeof(line), &used);
    }
    ck_assert_int_eq(rv, FL_ELIMIT);
    ck_assert_uint_le(a.bytes, FL_PROXY_ANSWER_MAX);
}

/* The stream. */

/* What went over the connection of the newest dial(), to the proxy. */
static struct fl_traffic dialed;

static struct end *dial(struct world *world, const struct fl_proxy_rule *rule, uint32_t timeout_ms)
{
    struct end *end = &world->end[CLIENT];
    struct fl_err err = {0};

    end->world = world;
    world->inside = true;
    atomic_store(&dialed.in, 0);
    atomic_store(&dialed.out, 0);
    ck_assert_msg(fl_proxy_connect(world->loop, TARGET, rule, timeout_ms, &dialed, &end->stream,
                                   &err) == FL_OK,
                  "%s", err.msg);
    fl_stream_start(end->stream, &ends_cbs, end);
    world->inside = false;
    return end;
}

static struct fl_proxy_rule rule_of(const struct world *world)
{
    return (struct fl_proxy_rule){world->address, "", "'proxy'", "'proxy_credentials'"};
}

static void answer(struct world *world, const char *text)
{
    world->end[0].out = (const uint8_t *)text;
    world->end[0].out_len = strlen(text);
    world->end[0].in = calloc(1, 1000);
    world->end[0].in_cap = 999;
    world->end[CLIENT].in = calloc(1, 1000);
    world->end[CLIENT].in_cap = 999;
}

static bool client_has_five(struct world *world)
{
    return world->end[CLIENT].in_len == 5 && strstr((char *)world->end[0].in, "hello") != NULL;
}

TEST(through_a_tunnel_both_sides_send_and_receive)
{
    struct world world = {.done = client_has_five};
    struct fl_proxy_rule rule;
    struct end *client;
    char peer[200];

    ends_begin(&world, "127.0.0.1:0");
    answer(&world, "HTTP/1.1 200 OK\r\n\r\nearly");
    rule = rule_of(&world);
    client = &world.end[CLIENT];
    client->out = (const uint8_t *)"hello";
    client->out_len = 5;
    (void)dial(&world, &rule, 600000);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(client->opened, 1);
    ck_assert_mem_eq(client->in, "early", 5);
    ck_assert_str_eq((char *)world.end[0].in,
                     "CONNECT " TARGET " HTTP/1.1\r\nHost: " TARGET "\r\n\r\nhello");
    ck_assert_uint_eq(atomic_load(&dialed.in), strlen((const char *)world.end[0].out));
    ck_assert_uint_eq(atomic_load(&dialed.out), strlen((char *)world.end[0].in));
    (void)snprintf(peer, sizeof(peer), TARGET " through proxy %s", world.address);
    ck_assert_str_eq(fl_stream_peer(client->stream), peer);
    ends_end(&world);
}

static bool client_woken(struct world *world)
{
    if (world->end[CLIENT].opened > 0 && world->end[CLIENT].woken == 0) {
        /* Twice: what the proxy sent behind its answer stays until the user reads again. */
        fl_stream_pause(world->end[CLIENT].stream, true);
        fl_stream_wake(world->end[CLIENT].stream);
    }
    return world->end[CLIENT].woken > 0;
}

static bool client_has_input(struct world *world)
{
    return world->end[CLIENT].in_len == 5;
}

TEST(bytes_behind_the_answer_wait_while_the_user_pauses)
{
    struct world world = {.done = client_woken};
    struct fl_proxy_rule rule;
    struct end *client;

    ends_begin(&world, "127.0.0.1:0");
    answer(&world, "HTTP/1.1 200 OK\r\n\r\nearly");
    rule = rule_of(&world);
    client = dial(&world, &rule, 600000);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(client->in_len, 0);
    world.done = client_has_input;
    fl_stream_pause(client->stream, false);
    fl_loop_run(world.loop);
    ck_assert_mem_eq(client->in, "early", 5);
    ends_end(&world);
}

static const struct {
    const char *text;
    int code;
    const char *says;
} refusals[] = {
    {"HTTP/1.1 407 Nope\r\nProxy-Authenticate: Basic realm=x\r\n\r\n", FL_EPERM,
     "407 Nope: it asks for user and password: write the line USER:PASSWORD into a file and name "
     "it in 'proxy_credentials'"},
    {"HTTP/1.1 407 Nope\r\nProxy-Authenticate: NTLM\r\n\r\n", FL_EPERM,
     "407 Nope: it asks for authentication by NTLM, and only Basic is supported"},
    {"HTTP/1.1 403 Filtered\r\n\r\n", FL_EPERM,
     "403 Filtered: it does not allow connections to " TARGET},
    {"HTTP/1.1 502 Bad Gateway\r\n\r\n", FL_EUNAVAIL,
     "502 Bad Gateway: it cannot reach " TARGET ": check that the server runs"},
    {"HTTP/1.1 302 Found\r\nLocation: http://portal/\r\n\r\n", FL_EUNAVAIL,
     "302 Found: it opens no tunnel to " TARGET},
    {"SSH-2.0-OpenSSH_9.2\r\n", FL_EPROTO, "it does not answer CONNECT " TARGET " with HTTP"},
    {NULL, FL_EUNAVAIL, "it closed the connection without an answer to CONNECT " TARGET},
};

TEST_EACH(an_answer_that_opens_no_tunnel_says_what_to_do, ARRAY_LEN(refusals))
{
    struct world world = {.done = ends_client_closed};
    struct fl_proxy_rule rule;
    struct end *client;
    char name[100];

    ends_begin(&world, "127.0.0.1:0");
    answer(&world, refusals[_i].text != NULL ? refusals[_i].text : "");
    world.end[0].close_in = refusals[_i].text != NULL ? NULL : "on_data";
    rule = rule_of(&world);
    client = dial(&world, &rule, 600000);
    fl_loop_run(world.loop);
    (void)snprintf(name, sizeof(name), "proxy %s of 'proxy': ", world.address);
    ck_assert_int_eq(client->code, refusals[_i].code);
    ck_assert_msg(strstr(client->text, refusals[_i].says) != NULL, "%s", client->text);
    ck_assert_int_eq(strncmp(client->text, name, strlen(name)), 0);
    ck_assert_uint_eq(client->opened, 0);
    ends_end(&world);
}

TEST(a_proxy_that_does_not_answer_is_given_up_in_time)
{
    struct world world = {.done = ends_client_closed};
    struct fl_proxy_rule rule;
    struct end *client;

    ends_begin(&world, "127.0.0.1:0");
    answer(&world, "");
    rule = rule_of(&world);
    client = dial(&world, &rule, 50);
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_ETIMEOUT);
    ck_assert_msg(strstr(client->text, "timed out after 50 ms") != NULL, "%s", client->text);
    ck_assert_ptr_nonnull(strstr(client->text, "proxy "));
    ends_end(&world);
}

TEST(a_proxy_that_is_not_there_is_named)
{
    struct world world = {.done = ends_client_closed};
    struct fl_proxy_rule rule = {"127.0.0.1:1", "", "https_proxy", "'proxy_credentials'"};
    struct end *client;

    ends_begin(&world, NULL);
    client = dial(&world, &rule, 600000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_EUNAVAIL);
    ck_assert_ptr_nonnull(
        strstr(client->text, "proxy 127.0.0.1:1 of https_proxy: cannot connect to 127.0.0.1:1"));
    ends_end(&world);
}

TEST(a_user_that_closes_early_gets_its_close)
{
    static const char *const when[] = {"on_data", "on_open"};
    size_t i;

    for (i = 0; i < ARRAY_LEN(when); i++) {
        struct world world = {.done = ends_client_closed};
        struct fl_proxy_rule rule;
        struct end *client;

        ends_begin(&world, "127.0.0.1:0");
        answer(&world, "HTTP/1.1 200 OK\r\n\r\nearly");
        world.end[CLIENT].close_in = when[i];
        rule = rule_of(&world);
        client = dial(&world, &rule, 600000);
        fl_loop_run(world.loop);
        ck_assert_int_eq(client->code, FL_OK);
        ck_assert_uint_eq(client->closed, 1);
        ends_end(&world);
    }
}

TEST(a_stream_that_is_closed_while_it_connects_is_freed)
{
    struct world world = {.done = NULL};
    struct fl_proxy_rule rule;
    struct fl_stream *stream = NULL;

    ends_begin(&world, "127.0.0.1:0");
    rule = rule_of(&world);
    (void)dial(&world, &rule, 600000);
    fl_stream_close_flushed(world.end[CLIENT].stream, 10);
    ck_assert_int_eq(fl_proxy_connect(world.loop, TARGET, &rule, 10, NULL, &stream, NULL), FL_OK);
    fl_stream_close(stream); /* never started */
    ends_end(&world);
}
