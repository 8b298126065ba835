/* Messages with a length in front, and what they say. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libfl/program/message.h"
#include "libfl/program/program_frame.h"
#include "tests/lib/suites.h"

struct pair {
    int fds[2];
    struct fl_framed a, b;
};

static void pair_init(struct pair *p)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fds), 0);
    fl_framed_init(&p->a, p->fds[0]);
    fl_framed_init(&p->b, p->fds[1]);
}

static void pair_done(struct pair *p)
{
    fl_framed_done(&p->a);
    fl_framed_done(&p->b);
    (void)close(p->fds[0]);
    (void)close(p->fds[1]);
}

TEST(a_message_comes_whole_however_it_was_cut)
{
    static const char wire[] = "\3\0\0\0abc\1\0\0\0x\0\0";
    const char *text = NULL;
    struct pair p;
    size_t len = 0;
    size_t i;
    size_t n = 0;

    pair_init(&p);
    for (i = 0; i < sizeof(wire) - 1; i++) {
        ck_assert_int_eq(write(p.fds[0], wire + i, 1), 1);
        ck_assert(fl_framed_fill(&p.b));
        if (fl_framed_next(&p.b, &text, &len, NULL) == FL_OK) {
            ck_assert_uint_eq(i, n == 0 ? 6 : 11);
            ck_assert_uint_eq(len, n == 0 ? 3 : 1);
            ck_assert_mem_eq(text, n == 0 ? "abc" : "x", len);
            n++;
        }
    }
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(fl_framed_pending(&p.b), 2);
    pair_done(&p);
}

TEST(a_length_that_is_not_allowed_is_refused_before_its_bytes_come)
{
    static const uint8_t heads[][4] = {
        {0}, {1, 0, 16, 0}, {0xff, 0xff, 0xff, 0xff}, {'e', 'p', 'o', 'c'}};
    static const uint8_t longest[4] = {0, 0, 16, 0};
    size_t len = 0;
    size_t i;

    for (i = 0; i < 4; i++) {
        ck_assert_int_eq(fl_framed_parse(heads[i], 4, &len, NULL), FL_EPROTO);
        ck_assert_int_eq(fl_framed_parse(heads[i], 3, &len, NULL), FL_EAGAIN);
    }
    ck_assert_int_eq(fl_framed_parse(longest, 4, &len, NULL), FL_EAGAIN);
    ck_assert_uint_eq(len, FL_FRAMED_MAX);
}

TEST(one_who_reads_nothing_does_not_hold_us_up)
{
    static char text[FL_FRAMED_MAX];
    const char *got = NULL;
    struct pair p;
    size_t len = 0;
    int rv;

    pair_init(&p);
    (void)memset(text, 'x', sizeof(text));
    ck_assert_int_eq(fl_framed_put(&p.a, text, sizeof(text)), FL_OK);
    fl_framed_flush(&p.a);
    ck_assert_uint_gt(p.a.out.len, 0);
    do {
        fl_framed_flush(&p.a);
        (void)fl_framed_fill(&p.b);
        rv = fl_framed_next(&p.b, &got, &len, NULL);
    } while (rv == FL_EAGAIN);
    ck_assert_int_eq(rv, FL_OK);
    ck_assert_uint_eq(len, sizeof(text));
    ck_assert_uint_eq(p.a.out.len, 0);
    ck_assert_int_eq(fl_framed_put(&p.a, text, 0), FL_ELIMIT);
    pair_done(&p);
}

TEST(more_may_be_sent_than_is_taken)
{
    static char text[FL_FRAMED_SENT_MAX + 1];
    const char *got = NULL;
    struct pair p;
    size_t len = 0;
    int rv;

    pair_init(&p);
    (void)memset(text, 'x', sizeof(text));
    ck_assert_int_eq(fl_framed_put(&p.a, text, FL_FRAMED_SENT_MAX + 1), FL_ELIMIT);
    ck_assert_int_eq(fl_framed_put(&p.a, text, FL_FRAMED_SENT_MAX), FL_OK);
    ck_assert_int_eq(fl_framed_put(&p.a, text, FL_FRAMED_MAX), FL_OK); /* Behind it. */
    fl_framed_flush(&p.a);
    do {
        (void)fl_framed_fill(&p.b);
        rv = fl_framed_next(&p.b, &got, &len, NULL);
    } while (rv == FL_EAGAIN);
    ck_assert_int_eq(rv, FL_EPROTO);
    pair_done(&p);
}

TEST(what_was_said_before_the_end_is_heard)
{
    const char *text = NULL;
    struct pair p;
    size_t len = 0;

    pair_init(&p);
    ck_assert_int_eq(fl_framed_put(&p.a, "bye", 3), FL_OK);
    fl_framed_flush(&p.a);
    (void)shutdown(p.fds[0], SHUT_RDWR);
    ck_assert(fl_framed_fill(&p.b));
    ck_assert_int_eq(fl_framed_next(&p.b, &text, &len, NULL), FL_OK);
    ck_assert(!fl_framed_fill(&p.b) && p.b.closed);
    /* And to write to one who is gone is no signal. */
    ck_assert_int_eq(fl_framed_put(&p.b, "x", 1), FL_OK);
    fl_framed_flush(&p.b);
    pair_done(&p);
}

static const struct {
    enum fl_persistent_kind asked;
    const char *text;
    const char *says; /* NULL: it is fine */
} answers[] = {
    {FL_PERSISTENT_TRAIN, "{\"type\": \"accepted\", \"more\": [1, {}]}", NULL},
    {FL_PERSISTENT_TRAIN,
     "{\"type\": \"done\", \"id\": 1, \"samples\": 3, \"steps\": 0, \"train_loss\": 0}", NULL},
    {FL_PERSISTENT_TRAIN, "{\"type\": \"progress\", \"id\": 1, \"done\": \"half\"}", NULL},
    {FL_PERSISTENT_TRAIN, "[1]", "not a JSON object"},
    {FL_PERSISTENT_TRAIN, "{\"type\": 5}", "not a JSON object with a 'type'"},
    {FL_PERSISTENT_TRAIN, "{\"type\": \"done\", \"type\": \"done\"}", "not JSON"},
    {FL_PERSISTENT_TRAIN, "{\"type\": \"done\"} {}", "not JSON"},
    {FL_PERSISTENT_TRAIN,
     "{\"type\": \"done\", \"id\": 1, \"samples\": 0, \"steps\": 1, \"train_loss\": 0}",
     "'samples' is 0"},
    {FL_PERSISTENT_TRAIN, "{\"type\": \"done\", \"id\": 1, \"samples\": 9007199254740992}",
     "'samples'"},
    {FL_PERSISTENT_TRAIN, "{\"type\": \"done\", \"id\": 1, \"samples\": -1}", "'samples'"},
    {FL_PERSISTENT_TRAIN, "{\"type\": \"done\", \"id\": 1, \"samples\": 1, \"steps\": 1.5}",
     "'steps'"},
    {FL_PERSISTENT_EVALUATE, "{\"type\": \"done\", \"id\": 1}", "'received' is missing"},
    {FL_PERSISTENT_EVALUATE,
     "{\"type\": \"done\", \"received\": {\"samples\": 1, \"correct\": 2, \"loss_sum\": 1}}",
     "more correct predictions than samples"},
#define METRICS(text)                                                                       \
    "{\"type\": \"done\", \"received\": {\"samples\": 3, \"correct\": 2, \"loss_sum\": 1, " \
    "\"metrics\": " text "}}"
    {FL_PERSISTENT_EVALUATE,
     METRICS("{\"f1\": 0.5, \"errors\": {\"value\": 1, \"over\": \"sum\", \"samples\": 2}}"), NULL},
    {FL_PERSISTENT_EVALUATE, METRICS("null"), NULL},
    {FL_PERSISTENT_EVALUATE, METRICS("[1]"), "'metrics' is not an object of at most 32 names"},
    {FL_PERSISTENT_EVALUATE, METRICS("{\"f 1\": 1}"), "metric 'f 1' is no name of a metric"},
    {FL_PERSISTENT_EVALUATE, METRICS("{\"loss\": 1}"), "metric 'loss' is the name of a number"},
    {FL_PERSISTENT_EVALUATE, METRICS("{\"personal/f1\": 1}"), "begins with received/ or personal/"},
    {FL_PERSISTENT_EVALUATE, METRICS("{\"f1\": \"high\"}"), "metric 'f1' is not a finite number"},
    {FL_PERSISTENT_EVALUATE, METRICS("{\"f1\": NaN}"), "not JSON"},
    {FL_PERSISTENT_EVALUATE, METRICS("{\"f1\": 1e999}"), "not JSON"},
    {FL_PERSISTENT_EVALUATE, METRICS("{\"f1\": {\"value\": 1, \"over\": \"max\"}}"),
     "'over' is not \"mean\" or \"sum\""},
    {FL_PERSISTENT_EVALUATE, METRICS("{\"f1\": {\"value\": 1, \"samples\": 4}}"),
     "'samples' is not a count from 1 to those of the evaluation"},
    {FL_PERSISTENT_ADAPT,
     "{\"type\": \"done\", \"received\": {\"samples\": 2, \"correct\": 2, \"loss_sum\": 1}}",
     "'adapted' is missing"},
    {FL_PERSISTENT_SUMMARY, "{\"type\": \"done\", \"id\": 1}", "'bytes' is missing"},
    {FL_PERSISTENT_AGGREGATE, "{\"type\": \"done\", \"id\": 1}", "'state_bytes' is missing"},
    {FL_PERSISTENT_AGGREGATE, "{\"type\": \"done\", \"id\": 1, \"state_bytes\": -1}",
     "'state_bytes'"},
    {FL_PERSISTENT_TRAIN, "{\"type\": \"ready\"}", "'protocol' is missing"},
    {FL_PERSISTENT_TRAIN, "{\"type\": \"ready\", \"protocol\": 1, \"can\": \"train\"}",
     "'can' is missing or not a list"},
    {FL_PERSISTENT_TRAIN,
     "{\"type\": \"ready\", \"protocol\": 1, \"can\": [1, \"train\"], \"parts\": [], "
     "\"samples\": 1}",
     "'test_samples'"},
    {FL_PERSISTENT_TRAIN, "{\"type\": \"failed\"}", NULL},
};

TEST_EACH(an_answer_is_checked_field_by_field, ARRAY_LEN(answers))
{
    struct fl_answer a;
    struct fl_err err = {0};
    int rv =
        fl_answer_parse(answers[_i].text, strlen(answers[_i].text), answers[_i].asked, &a, &err);

    ck_assert_msg(rv == (answers[_i].says == NULL ? FL_OK : FL_EPROTO), "%s: %s", answers[_i].text,
                  err.msg);
    ck_assert_msg(answers[_i].says == NULL || strstr(err.msg, answers[_i].says) != NULL, "%s: %s",
                  answers[_i].text, err.msg);
}

TEST(a_task_says_what_the_page_says)
{
    const float x = 0;
    struct fl_persistent_task task = {.kind = FL_PERSISTENT_TRAIN,
                                      .given = {&x, NULL, &x, NULL},
                                      .asked = {.key = {3, 1},
                                                .learning_rate = 0.05,
                                                .seed = (UINT64_C(5) << 53) + 1234,
                                                .order_seed = 99},
                                      .epochs = 1,
                                      .batch_size = 20,
                                      .parts = "{\"gradient\": {}}",
                                      .limit_ms = 600000};
    char *text = fl_message_task(&task, 7);
    json_t *got = json_loads(text, 0, NULL);
    json_t *want = json_loads(
        "{\"type\": \"train\", \"id\": 7, \"round\": 3, \"attempt\": 1, \"seed\": 1234, "
        "\"order_seed\": 99, \"learning_rate\": 0.05, \"momentum\": 0.0, \"weight_decay\": 0.0, "
        "\"epochs\": 1, \"steps\": 0, \"batch_size\": 20, \"time_limit_ms\": 600000, "
        "\"evaluate_trained\": false, \"given\": [\"model\", \"gradient\"], \"do\": {\"gradient\": "
        "{}}}",
        0, NULL);

    ck_assert_ptr_nonnull(want);
    ck_assert_msg(json_equal(got, want), "%s", text);
    json_decref(got);
    json_decref(want);
    free(text);
}

TEST(more_fields_take_nothing_from_a_task)
{
    const float x = 0;
    struct fl_persistent_task task = {.kind = FL_PERSISTENT_EVALUATE,
                                      .given = {&x},
                                      .more = "{\"x\": {\"y\": 1}, \"id\": 8, \"type\": \"bye\"}"};
    char *text = fl_message_task(&task, 7);
    json_t *got = json_loads(text, 0, NULL);
    json_t *want = json_loads("{\"type\": \"evaluate\", \"id\": 7, \"given\": [\"model\"], "
                              "\"x\": {\"y\": 1}}",
                              0, NULL);

    ck_assert_ptr_nonnull(want);
    ck_assert_msg(json_equal(got, want), "%s", text);
    json_decref(got);
    json_decref(want);
    free(text);
    task.more = "no JSON";
    ck_assert_ptr_null(fl_message_task(&task, 7));
}
