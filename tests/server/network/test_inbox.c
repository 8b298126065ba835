/* Events of many streams before one queue: a stream that sends without end delays no other. */
#include <check.h>
#include <string.h>

#include "server/network/inbox.h"
#include "tests/lib/suites.h"

#define N_STREAMS 3
#define FLOOD     100000

/* The queue to the coordinator: streams in the order of posting. */
struct queue {
    unsigned stream[N_STREAMS * FL_INBOX_POSTED];
    size_t n;
};

struct rig {
    struct fl_inbox box[N_STREAMS];
    struct queue queue;
    struct fl_buf next;
    size_t handled[N_STREAMS];
    uint32_t expected[N_STREAMS]; /* the number that the next event of a stream must have */
    uint32_t sent[N_STREAMS];
};

static void post(struct rig *rig, unsigned stream)
{
    ck_assert_uint_lt(rig->queue.n, sizeof(rig->queue.stream) / sizeof(rig->queue.stream[0]));
    rig->queue.stream[rig->queue.n++] = stream;
}

static int send_event(struct rig *rig, unsigned stream)
{
    uint32_t number = rig->sent[stream];
    bool now = false;
    int rv = fl_inbox_put(&rig->box[stream], &number, sizeof(number), &now);

    if (rv == FL_OK) {
        rig->sent[stream]++;
        if (now) {
            ck_assert_uint_eq(number, rig->expected[stream]++);
            post(rig, stream);
        }
    }
    return rv;
}

/* The coordinator takes the oldest one; the stream posts its next. */
static void take(struct rig *rig)
{
    unsigned stream = rig->queue.stream[0];
    uint32_t number;

    ck_assert_uint_gt(rig->queue.n, 0);
    rig->queue.n--;
    (void)memmove(rig->queue.stream, rig->queue.stream + 1,
                  rig->queue.n * sizeof(rig->queue.stream[0]));
    rig->handled[stream]++;
    fl_inbox_taken(&rig->box[stream]);
    if (fl_inbox_next(&rig->box[stream], &rig->next) == FL_OK) {
        ck_assert_uint_eq(rig->next.len, sizeof(number));
        (void)memcpy(&number, rig->next.data, sizeof(number));
        ck_assert_uint_eq(number, rig->expected[stream]++);
        post(rig, stream);
    }
}

static void rig_init(struct rig *rig)
{
    size_t i;

    (void)memset(rig, 0, sizeof(*rig));
    for (i = 0; i < N_STREAMS; i++) {
        fl_inbox_init(&rig->box[i]);
    }
    fl_buf_init(&rig->next, SIZE_MAX);
}

static void rig_done(struct rig *rig)
{
    size_t i;

    for (i = 0; i < N_STREAMS; i++) {
        fl_inbox_done(&rig->box[i]);
    }
    fl_buf_done(&rig->next);
}

TEST(an_event_waits_for_no_more_than_a_few_of_a_flood)
{
    struct rig rig;
    size_t before;
    int i;

    rig_init(&rig);
    for (i = 0; i < 100; i++) {
        while (send_event(&rig, 0) == FL_OK && rig.sent[0] < FLOOD) { /* all that it can */
        }
        before = rig.handled[0];
        ck_assert_int_eq(send_event(&rig, 1), FL_OK);
        while (rig.handled[1] < rig.sent[1]) {
            take(&rig);
            (void)send_event(&rig, 0);
        }
        ck_assert_uint_le(rig.handled[0] - before, FL_INBOX_POSTED);
    }
    rig_done(&rig);
}

TEST(events_keep_their_order_and_none_is_lost)
{
    struct rig rig;
    unsigned i;

    rig_init(&rig);
    for (i = 0; i < 1000; i++) {
        ck_assert_int_eq(send_event(&rig, i % N_STREAMS), FL_OK);
        if (i % 7 == 0) {
            take(&rig);
        }
    }
    while (rig.queue.n > 0) {
        take(&rig);
    }
    for (i = 0; i < N_STREAMS; i++) {
        ck_assert_uint_eq(rig.handled[i], rig.sent[i]);
        ck_assert_uint_eq(rig.box[i].waiting.len, 0);
    }
    rig_done(&rig);
}

TEST(what_waits_is_bounded_but_one_message_of_any_length_may)
{
    static uint8_t large[4u << 20];
    struct fl_inbox box;
    bool now = false;
    size_t n;
    int rv = FL_OK;

    fl_inbox_init(&box);
    for (n = 0; n < FL_INBOX_POSTED; n++) {
        ck_assert_int_eq(fl_inbox_put(&box, "x", 1, &now), FL_OK);
        ck_assert(now);
    }
    ck_assert_int_eq(fl_inbox_put(&box, large, sizeof(large), &now), FL_OK);
    ck_assert(!now);
    ck_assert_int_eq(fl_inbox_put(&box, "x", 1, &now), FL_ELIMIT);
    fl_inbox_done(&box);
    fl_inbox_init(&box);
    for (n = 0; rv == FL_OK; n++) {
        ck_assert_uint_lt(n, FLOOD);
        rv = fl_inbox_put(&box, "xy", 2, &now);
    }
    ck_assert_int_eq(rv, FL_ELIMIT);
    ck_assert_uint_le(box.waiting.len, FL_INBOX_WAITING + 2 * (sizeof(uint32_t) + 2));
    fl_inbox_done(&box);
}
