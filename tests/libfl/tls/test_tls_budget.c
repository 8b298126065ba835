/* What a TLS stream holds for its peer is charged to the account that it is given. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/tls/tls_impl.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlstalk.h"

#define LEN (2 * FL__TLS_BATCH)

static struct tlsrig rig;
static struct tlstalk talk;
static struct fl_budget budget;
static struct fl_account account[2];
static unsigned evicted;

static void begin(void)
{
    tlsrig_begin(&rig);
}

static void end(void)
{
    tlsrig_end(&rig);
}

static void close_it(void *ctx, struct fl_account *goes, enum fl_evict why)
{
    const struct end *owner = goes->owner;

    (void)ctx;
    (void)why;
    evicted++;
    fl_stream_close(owner->stream);
}

static void talk_begin(size_t limit)
{
    evicted = 0;
    fl_budget_init(&budget, limit, 0, close_it, NULL);
    fl_account_open(&account[TLSRIG_CLIENT], &budget, 0, &talk.world.end[CLIENT]);
    fl_account_open(&account[TLSRIG_SERVER], &budget, 0, &talk.world.end[0]);
    tlstalk_account[TLSRIG_CLIENT] = &account[TLSRIG_CLIENT];
    tlstalk_account[TLSRIG_SERVER] = &account[TLSRIG_SERVER];
    tlstalk_begin(&talk, &rig, true, true);
}

/* An account may be gone as soon as on_close has returned; nothing is left in one. */
static void talk_end(void)
{
    tlstalk_end(&talk);
    ck_assert_uint_eq(budget.used, 0);
    fl_account_close(&account[TLSRIG_CLIENT]);
    fl_account_close(&account[TLSRIG_SERVER]);
}

TEST_CASE("all", begin, end);

TEST(what_was_encrypted_is_charged_until_all_of_it_is_taken)
{
    uint8_t *bytes = ends_random_bytes(LEN);
    const struct fl__tls_stream *s;
    unsigned waited = 0;

    talk_begin(SIZE_MAX);
    tlstalk_run(&talk);
    tlstalk_check_up(&talk);
    ck_assert_uint_eq(budget.used, 0);
    s = (const struct fl__tls_stream *)talk.client->stream;
    talk.link.end[MEMLINK_CLIENT].take = 1000;
    tlstalk_expect(talk.server, LEN);
    tlstalk_send(talk.client, bytes, LEN);
    while (talk.client->sent < LEN) {
        ck_assert(memlink_turn(&talk.link));
        waited += s->out.len > 0 ? 1 : 0;
        ck_assert_uint_eq(account[TLSRIG_CLIENT].used, s->out.len > 0 ? FL__TLS_BATCH_BYTES : 0);
    }
    ck_assert_uint_gt(waited, 100);
    ck_assert_uint_eq(account[TLSRIG_CLIENT].used, 0);
    tlstalk_run(&talk);
    ck_assert_mem_eq(talk.server->in, bytes, LEN);
    talk_end();
    free(bytes);
}

TEST(a_small_batch_takes_as_much_memory_as_it_needs)
{
    uint8_t *bytes = ends_random_bytes(LEN);
    const size_t len = 3 * FL__TLS_RECORD;

    talk_begin(SIZE_MAX);
    tlstalk_run(&talk);
    talk.link.end[MEMLINK_CLIENT].take = 1000;
    tlstalk_expect(talk.server, LEN);
    tlstalk_send(talk.client, bytes, len);
    while (talk.client->sent < len) {
        ck_assert(memlink_turn(&talk.link));
        ck_assert_uint_le(account[TLSRIG_CLIENT].used, FL__TLS_WIRE_BYTES(len));
    }
    talk_end();
    free(bytes);
}

static bool pause_at_the_first(struct world *world)
{
    if (talk.server->in_len > 0) {
        fl_stream_pause(talk.server->stream, true);
        world->done = NULL;
    }
    return false;
}

TEST(what_waits_for_the_end_of_a_pause_is_charged)
{
    uint8_t *bytes = ends_random_bytes(LEN);

    talk_begin(SIZE_MAX);
    tlstalk_expect(talk.server, LEN);
    tlstalk_run(&talk);
    talk.world.done = pause_at_the_first;
    tlstalk_send(talk.client, bytes, LEN);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.server->in_len, FL__TLS_RECORD); /* the first of many that came */
    ck_assert_uint_ge(account[TLSRIG_SERVER].used, FL__TLS_BATCH - FL__TLS_RECORD);
    fl_stream_pause(talk.server->stream, false);
    tlstalk_run(&talk);
    ck_assert_uint_eq(account[TLSRIG_SERVER].used, 0);
    ck_assert_uint_eq(talk.server->in_len, LEN);
    talk_end();
    free(bytes);
}

TEST(batches_are_small_where_memory_is_scarce_and_all_arrives)
{
    uint8_t *bytes = ends_random_bytes(LEN);
    struct fl_account greedy;

    talk_begin(1024 * 1024);
    tlstalk_run(&talk);
    fl_account_open(&greedy, &budget, 0, NULL);
    fl_account_add(&greedy, 600 * 1024);
    talk.link.end[MEMLINK_CLIENT].take = 1000;
    tlstalk_expect(talk.server, LEN);
    tlstalk_send(talk.client, bytes, LEN);
    while (talk.client->sent < LEN) {
        ck_assert(memlink_turn(&talk.link));
        ck_assert_uint_le(account[TLSRIG_CLIENT].used, FL__TLS_WIRE_BYTES(FL__TLS_BATCH_LEAST));
    }
    tlstalk_run(&talk);
    ck_assert_mem_eq(talk.server->in, bytes, LEN);
    ck_assert_uint_eq(evicted, 0);
    fl_account_close(&greedy);
    talk_end();
    free(bytes);
}

TEST(who_goes_for_what_is_held_ends_once)
{
    uint8_t *bytes = ends_random_bytes(LEN);
    struct fl_account others;

    talk_begin(1024 * 1024);
    tlstalk_run(&talk);
    fl_account_open(&others, &budget, 0, NULL);
    fl_account_vouch(&others, true);
    fl_account_add(&others, 1024 * 1024);
    tlstalk_send(talk.client, bytes, LEN);
    tlstalk_run(&talk);
    ck_assert_uint_eq(evicted, 1);
    ck_assert_uint_eq(talk.client->closed, 1);
    ck_assert_int_eq(talk.client->code, FL_OK);
    fl_account_close(&others);
    talk_end();
    free(bytes);
}
