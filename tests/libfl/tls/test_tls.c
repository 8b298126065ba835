#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/tls/tls_impl.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlstalk.h"

static struct tlsrig rig;
static struct tlstalk talk;

static void begin(void)
{
    tlsrig_begin(&rig);
}

static void end(void)
{
    tlsrig_end(&rig);
}

/* --- bytes --- */

#define LEN ((size_t)100001)

static const size_t steps[] = {0, 1, 2, 3, 5, 7, 64, 1000, 16384};
#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

/* Cut at all places that are `first` behind a multiple of `step`: with all of them, at every place.
 */
static void exchange(size_t step, size_t first, size_t take, size_t run)
{
    bool small = (step > 0 && step < 64) || take == 1 || (run > 0 && run < 64);
    /* More than a record each way. */
    size_t len = small && sanitized_short() ? 20001 : LEN;
    uint8_t *bytes = ends_random_bytes(len);
    int i;

    tlstalk_begin(&talk, &rig, true, true);
    for (i = 0; i < 2; i++) {
        talk.link.end[i].step = step;
        talk.link.end[i].first = first;
        talk.link.end[i].take = take;
    }
    talk.server->echo = true;
    talk.client->run = run;
    talk.server->run = run;
    tlstalk_expect(talk.client, len);
    tlstalk_expect(talk.server, len);
    tlstalk_send(talk.client, bytes, len);
    tlstalk_run(&talk);
    tlstalk_check_up(&talk);
    ck_assert_uint_eq(talk.client->sent, len);
    ck_assert_uint_eq(talk.server->sent, len);
    ck_assert_uint_eq(talk.client->in_len, len);
    ck_assert_mem_eq(talk.client->in, bytes, len);
    tlstalk_end(&talk);
    free(bytes);
}

TEST_CASE("bytes", begin, end);

TEST_EACH(what_is_sent_comes_back_whole_however_it_is_cut, N_STEPS)
{
    size_t step = steps[_i];
    size_t first;

    for (first = 0; first < (step < 8 ? step : 8) + 1; first += everyday_stride(3, 8)) {
        exchange(step, first, 0, 0);
    }
}

TEST_EACH(small_runs_share_records_and_writes_may_take_any_part, 18)
{
    static const size_t runs[] = {1, 14, 1000, 16383, 16384, 16385};
    static const size_t takes[] = {1, 1000, 16406};

    exchange(0, 0, takes[_i % 3], runs[_i / 3]);
}

TEST(a_small_run_does_not_cost_a_record_of_its_own)
{
    uint8_t *bytes = ends_random_bytes(LEN);
    size_t before;

    tlstalk_begin(&talk, &rig, true, true);
    talk.client->run = 10;
    tlstalk_run(&talk);
    before = talk.link.end[MEMLINK_CLIENT].sent;
    tlstalk_send(talk.client, bytes, 600);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.server->in_len, 600);
    ck_assert_uint_eq(talk.link.end[MEMLINK_CLIENT].sent - before, 600 + 22);
    tlstalk_end(&talk);
    free(bytes);
}

TEST(no_more_is_pulled_than_a_batch_and_sent_comes_when_it_is_taken)
{
    const struct memend *below = &talk.link.end[MEMLINK_CLIENT];
    size_t shaken;

    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_run(&talk);
    shaken = below->sent;
    talk.link.end[MEMLINK_CLIENT].take = 1000;
    talk.client->endless = true;
    tlstalk_send(talk.client, "", 0);
    while (talk.client->sent < 4 * FL__TLS_BATCH) {
        ck_assert_uint_eq(talk.client->sent % FL__TLS_BATCH, 0);
        ck_assert_uint_ge(below->sent - shaken, talk.client->sent);
        ck_assert_uint_le(below->sent - shaken, talk.client->sent + FL__TLS_BATCH_BYTES);
        ck_assert(memlink_turn(&talk.link));
    }
    talk.client->endless = false;
    tlstalk_end(&talk);
}

TEST_EACH(keys_change_on_the_way, 2)
{
    rig.tls[TLSRIG_CLIENT]->rekey_records = 2;
    rig.tls[TLSRIG_SERVER]->rekey_records = 3;
    exchange(_i == 0 ? 0 : 777, 0, 0, 0);
}

TEST(an_idle_stream_holds_no_buffer)
{
    const struct fl__tls_stream *s;
    int i;

    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_send(talk.client, "hello", 5);
    tlstalk_run(&talk);
    tlstalk_send(talk.server, "hello", 5);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.client->in_len, 5);
    for (i = 0; i < 2; i++) {
        s = (const struct fl__tls_stream *)(i == 0 ? talk.client : talk.server)->stream;
        ck_assert_ptr_null(s->out.data);
        ck_assert_ptr_null(s->later.data);
        ck_assert_ptr_null(s->kept);
    }
    ck_assert_uint_lt(sizeof(*s), 2048);
    tlstalk_end(&talk);
}

/* --- pause and wake --- */

TEST_EACH(a_paused_stream_delivers_nothing_until_it_goes_on, 3)
{
    uint8_t *bytes = ends_random_bytes(LEN);
    size_t before;

    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_expect(talk.server, LEN);
    tlstalk_run(&talk);
    tlstalk_send(talk.client, bytes, LEN);
    talk.link.end[MEMLINK_CLIENT].step = (size_t)_i;
    while (talk.server->in_len == 0) {
        ck_assert(memlink_turn(&talk.link));
        if (_i == 0 && talk.link.end[MEMLINK_CLIENT].start == 0) {
            talk.link.end[MEMLINK_CLIENT].step = 40000;
        }
    }
    fl_stream_pause(talk.server->stream, true);
    before = talk.server->in_len;
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.server->in_len, before);
    talk.server->woken = 0;
    fl_stream_wake(talk.server->stream);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.server->woken, 1);
    ck_assert_uint_eq(talk.server->in_len, before);
    fl_stream_pause(talk.server->stream, false);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.server->in_len, LEN);
    ck_assert_mem_eq(talk.server->in, bytes, LEN);
    tlstalk_end(&talk);
    free(bytes);
}

static struct fl_stream *pausing;

static bool pause_now(struct world *world)
{
    (void)world;
    if (pausing != NULL && talk.server->in_len > 0) {
        fl_stream_pause(pausing, true);
        pausing = NULL;
    }
    return false;
}

TEST(a_pause_in_on_data_keeps_the_rest)
{
    uint8_t *bytes = ends_random_bytes(LEN);
    size_t before = 0;

    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_expect(talk.server, LEN);
    tlstalk_send(talk.client, bytes, LEN);
    talk.world.done = pause_now;
    while (talk.server->in_len < LEN) {
        pausing = talk.server->stream;
        tlstalk_run(&talk);
        /* One record each time, of the many that came at once. */
        ck_assert_uint_gt(talk.server->in_len, before);
        ck_assert_uint_le(talk.server->in_len, before + FL__TLS_RECORD);
        before = talk.server->in_len;
        fl_stream_pause(talk.server->stream, false);
    }
    ck_assert_mem_eq(talk.server->in, bytes, LEN);
    tlstalk_end(&talk);
    free(bytes);
}

TEST(nothing_is_told_and_nothing_is_asked_before_the_handshake_is_over)
{
    tlstalk_begin(&talk, &rig, true, true);
    talk.link.end[MEMLINK_SERVER].held = true;
    tlstalk_send(talk.client, "hello", 5);
    fl_stream_wake(talk.server->stream);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.client->opened, 0);
    ck_assert_uint_eq(talk.client->woken, 0);
    ck_assert_uint_eq(talk.server->woken, 0);
    ck_assert_ptr_null(fl_stream_identity(talk.client->stream));
    ck_assert_ptr_null(fl_stream_identity(talk.server->stream));
    talk.link.end[MEMLINK_SERVER].held = false;
    tlstalk_run(&talk);
    tlstalk_check_up(&talk);
    ck_assert_uint_gt(talk.client->woken, 0);
    ck_assert_uint_eq(talk.server->in_len, 5);
    tlstalk_end(&talk);
}

TEST(a_pause_before_the_handshake_is_over_holds_what_comes_behind_it)
{
    tlstalk_begin(&talk, &rig, true, true);
    fl_stream_pause(talk.server->stream, true);
    tlstalk_send(talk.client, "hello", 5);
    tlstalk_run(&talk);
    tlstalk_check_up(&talk);
    ck_assert_uint_eq(talk.server->in_len, 0);
    fl_stream_pause(talk.server->stream, false);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.server->in_len, 5);
    tlstalk_end(&talk);
}

/* --- ends --- */

TEST_CASE("ends", begin, end);

TEST_EACH(a_flushed_close_sends_all_and_says_goodbye, 3)
{
    uint8_t *bytes = ends_random_bytes(LEN);
    struct memend *below = &talk.link.end[MEMLINK_SERVER];
    size_t before;

    tlstalk_begin(&talk, &rig, true, true);
    below->take = (size_t)_i;
    tlstalk_expect(talk.client, LEN);
    tlstalk_run(&talk);
    before = below->sent;
    tlstalk_send(talk.server, bytes, LEN);
    fl_stream_close_flushed(talk.server->stream, 5000);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.client->in_len, LEN);
    ck_assert_mem_eq(talk.client->in, bytes, LEN);
    /* Seven records and the close_notify. */
    ck_assert_uint_eq(below->sent - before, LEN + 7 * 22 + 24);
    ck_assert_uint_eq(talk.client->closed, 1);
    ck_assert_int_eq(talk.client->code, FL_OK);
    ck_assert_int_eq(talk.server->code, FL_OK);
    tlstalk_end(&talk);
    free(bytes);
}

static const char *const closers[] = {"on_open", "on_data", "on_wake", "output", "sent"};

TEST_EACH(closing_from_any_callback_ends_with_one_on_close, 2 * ARRAY_LEN(closers))
{
    tlstalk_begin(&talk, &rig, true, true);
    talk.client->close_in = closers[_i / 2];
    talk.client->flush = _i % 2 != 0;
    tlstalk_send(talk.client, "hello", 5);
    tlstalk_send(talk.server, "hello", 5);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.client->closed, 1);
    ck_assert_int_eq(talk.client->code, FL_OK);
    ck_assert_uint_eq(talk.server->closed, 1);
    tlstalk_end(&talk);
}

TEST_EACH(closing_at_any_point_of_the_handshake_ends_with_on_close_alone, 4)
{
    unsigned turns;

    for (turns = 0; turns < 20; turns++) {
        struct end *closer;
        unsigned i;

        tlstalk_begin(&talk, &rig, true, true);
        closer = _i % 2 == 0 ? talk.client : talk.server;
        for (i = 0; i < turns; i++) {
            (void)memlink_turn(&talk.link);
        }
        talk.world.inside = true;
        if (_i / 2 == 0) {
            fl_stream_close(closer->stream);
        } else {
            fl_stream_close_flushed(closer->stream, 1000);
        }
        talk.world.inside = false;
        tlstalk_run(&talk);
        ck_assert_uint_eq(closer->closed, 1);
        ck_assert_int_eq(closer->code, FL_OK);
        ck_assert_uint_eq(talk.client->closed + talk.server->closed, 2);
        tlstalk_end(&talk);
    }
}

TEST(a_stream_that_was_not_started_is_gone_at_once)
{
    struct fl_stream *stream;

    memlink_init(&talk.link);
    stream = &talk.link.end[0].stream;
    ck_assert_int_eq(fl_stream_wrap(&rig.filter[TLSRIG_CLIENT], &stream), FL_OK);
    fl_stream_close(stream);
    ck_assert(talk.link.end[0].closing);
}

TEST(a_code_from_output_closes_with_it)
{
    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_run(&talk);
    talk.client->output_code = FL_EPROTO;
    fl_stream_wake(talk.client->stream);
    tlstalk_run(&talk);
    ck_assert_int_eq(talk.client->code, FL_EPROTO);
    tlstalk_end(&talk);
}

/* --- a network that lies --- */

/* Bytes of each direction until both sides have said hello. */
static void measure(size_t sent[2])
{
    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_send(talk.client, "hello", 5);
    tlstalk_send(talk.server, "hello", 5);
    tlstalk_run(&talk);
    tlstalk_check_up(&talk);
    sent[0] = talk.link.end[0].sent;
    sent[1] = talk.link.end[1].sent;
    tlstalk_end(&talk);
}

static void say_hello(int dir, size_t damage, size_t cut)
{
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_CLIENT);

    tlsrig_replace(&rig, TLSRIG_CLIENT, &setup); /* No session to resume. */
    tlstalk_begin(&talk, &rig, true, true);
    talk.link.end[dir].damage = damage;
    talk.link.end[dir].cut = cut;
    tlstalk_expect(talk.client, 5);
    tlstalk_expect(talk.server, 5);
    tlstalk_send(talk.client, "hello", 5);
    tlstalk_send(talk.server, "world", 5);
    tlstalk_run(&talk);
}

static void check_not_fooled(void)
{
    ck_assert(talk.server->in_len == 0 ||
              (talk.server->in_len == 5 && memcmp(talk.server->in, "hello", 5) == 0));
    ck_assert(talk.client->in_len == 0 ||
              (talk.client->in_len == 5 && memcmp(talk.client->in, "world", 5) == 0));
}

/* Every so many bytes, beginning at another place in each run of the test. */
#define STRIDE 8
/* A signature has 70 to 72 bytes and now and then fewer, in each certificate too, so the last
   places are not there each time. */
#define SURE(sent) ((sent)-24)

TEST_CASE("liar", begin, end);

TEST_EACH(a_damaged_byte_anywhere_ends_the_stream_and_fools_nobody,
          2 * STRIDE / (int)everyday_stride(4, 16))
{
    int dir = _i % 2;
    size_t sent[2];
    size_t at;

    measure(sent);
    for (at = (size_t)_i / 2; at < SURE(sent[dir]); at += STRIDE) {
        bool up;

        say_hello(dir, at, SIZE_MAX);
        check_not_fooled();
        /* A length that grew makes a side wait for what never comes; else both know. */
        up = talk.client->in_len == 5 && talk.server->in_len == 5;
        ck_assert_msg(!up || at < 3, "byte %zu of %zu, direction %d", at, sent[dir], dir);
        if (talk.client->closed > 0) {
            ck_assert_int_ne(talk.client->code, FL_OK);
        }
        tlstalk_end(&talk);
    }
}

TEST_EACH(a_stream_that_is_cut_anywhere_ends_on_both_sides,
          2 * STRIDE / (int)everyday_stride(4, 16))
{
    int dir = _i % 2;
    size_t sent[2];
    size_t at;

    measure(sent);
    for (at = (size_t)_i / 2; at < SURE(sent[dir]); at += STRIDE) {
        say_hello(dir, SIZE_MAX, at);
        check_not_fooled();
        ck_assert_uint_eq(talk.client->closed, 1);
        ck_assert_uint_eq(talk.server->closed, 1);
        if (talk.client->opened == 0) {
            ck_assert_int_eq(talk.client->code, FL_EUNAVAIL);
            ck_assert_ptr_nonnull(strstr(talk.client->text, "10.0.0.1:7443: it closed"));
        } else {
            ck_assert_int_eq(talk.client->code, FL_OK);
        }
        tlstalk_end(&talk);
    }
}
