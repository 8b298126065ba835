/* The data summary of a client: which one is sent, and when none is. */

#include <check.h>
#include <string.h>
#include <unistd.h>

#include "client/work/data_summary.h"
#include "libfl/base/fs.h"
#include "libfl/container/container.h"
#include "tests/client/train/train_fixture.h"
#include "tests/lib/client_rig.h"
#include "tests/lib/suites.h"

static const struct rig_server mixing = {.solver = "fedmix group=20"};

static void start(struct rig *r, const struct rig_server *server)
{
    client_rig_init(r, server, false);
    r->worker.terms = (struct fl_worker_terms){.summaries = true, .least_group = 10};
}

static struct fl_data_summary made(struct rig *r)
{
    struct fl_data_summary summary;

    ck_assert_msg(fl_data_summary_make(&r->worker, &summary, &r->err) == FL_OK, "%s", r->err.msg);
    return summary;
}

/* As a server describes it that asks for a summary; FL_OK or FL_EPERM. */
static int asked(struct rig *r, const struct rig_server *server)
{
    rig_describe(r, server);
    return fl_data_summary_check(&r->worker, true, &r->err);
}

/* The samples of a client that lost some of them, as data that changed. */
static struct fl_dataset *fewer(size_t n)
{
    struct fl_dataset *ds = make_data(n, INPUTS, CLASSES, 3);

    return ds;
}

TEST_EACH(the_first_summary_is_sent_for_ever, 3)
{
    static const struct rig_server others[] = {
        {.solver = "naivemix group=20"},
        {.solver = "fedmix group=20", .federation = "other"},
        {.solver = "fedmix group=20 lambda=0.3", .generation = 3},
    };
    struct rig r;
    struct fl_dataset *less;
    struct fl_data_summary first, again;

    start(&r, &mixing);
    first = made(&r);
    ck_assert_uint_gt(first.data.len, 0);
    ck_assert(rig_has_file(&r, "summary.bin")); /* Before a byte of it is sent. */
    rig_restart(&r);
    r.worker.terms = (struct fl_worker_terms){.summaries = true, .least_group = 10};
    ck_assert_msg(asked(&r, &others[_i]) == FL_OK, "%s", r.err.msg);
    /* Data that changed, another name: the difference of two summaries would tell of samples. */
    less = fewer(SAMPLES - 1);
    ck_assert_int_eq(fl_trainer_set_data(r.worker.trainer, less, NULL, &r.err), FL_OK);
    r.worker.seed++;
    again = made(&r);
    ck_assert_uint_eq(again.data.len, first.data.len);
    ck_assert_mem_eq(again.data.data, first.data.data, first.data.len);
    fl_data_summary_done(&first);
    fl_data_summary_done(&again);
    rig_done(&r);
    fl_dataset_free(less);
}

TEST(another_group_than_that_of_the_summary_is_refused)
{
    static const struct rig_server other = {.solver = "fedmix group=21"};
    static const struct rig_server all = {.solver = "naivemix"};
    static const struct rig_server plain = {.solver = "sgd"};
    struct fl_data_summary first;
    struct rig r;

    start(&r, &mixing);
    ck_assert_int_eq(asked(&r, &other), FL_OK); /* Nothing was sent yet. */
    ck_assert_int_eq(asked(&r, &mixing), FL_OK);
    first = made(&r);
    ck_assert_int_eq(asked(&r, &other), FL_EPERM);
    ck_assert_msg(strstr(r.err.msg, "requests means with strategy.solver.group 21, and this client "
                                    "sent its data summary with 20") != NULL,
                  "%s", r.err.msg);
    ck_assert_int_eq(asked(&r, &all), FL_EPERM);
    ck_assert_int_eq(asked(&r, &mixing), FL_OK);
    rig_describe(&r, &plain);
    ck_assert_int_eq(fl_data_summary_check(&r.worker, false, &r.err), FL_OK);
    fl_data_summary_done(&first);
    rig_done(&r);
}

TEST_EACH(a_server_that_asks_for_less_than_the_least_group_is_refused, 5)
{
    static const struct {
        struct rig_server server;
        uint64_t least;
        int code;
    } rows[] = {
        {{.solver = "fedmix group=9"}, 10, FL_EPERM},
        {{.solver = "naivemix group=2"}, 10, FL_EPERM},
        {{.solver = "fedmix group=10"}, 10, FL_OK},
        {{.solver = "fedmix group=9"}, 9, FL_OK},
        {{.solver = "fedmix"}, 10, FL_OK}, /* all samples of the client */
    };
    struct rig r;

    start(&r, &mixing);
    r.worker.terms.least_group = rows[_i].least;
    ck_assert_int_eq(asked(&r, &rows[_i].server), rows[_i].code);
    if (rows[_i].code != FL_OK) {
        ck_assert_msg(strstr(r.err.msg, "fewer than 'least_group' of this client, 10") != NULL,
                      "%s", r.err.msg);
    }
    r.worker.terms.summaries = false;
    ck_assert_int_eq(asked(&r, &rows[_i].server), FL_EPERM);
    ck_assert_msg(strstr(r.err.msg, "does not allow that ('summaries: yes')") != NULL, "%s",
                  r.err.msg);
    rig_done(&r);
}

/* A mean of one sample is that sample. */
TEST_EACH(a_client_with_fewer_samples_than_the_least_group_sends_nothing, 2)
{
    static const struct rig_server servers[] = {{.solver = "fedmix"},
                                                {.solver = "fedmix group=20"}};
    struct fl_dataset *few = make_data(9, INPUTS, CLASSES, 3);
    struct fl_dataset *enough = make_data(10, INPUTS, CLASSES, 3);
    struct fl_data_summary summary;
    struct rig r;

    start(&r, &servers[_i]);
    ck_assert_int_eq(fl_trainer_set_data(r.worker.trainer, few, NULL, &r.err), FL_OK);
    summary = made(&r);
    ck_assert_uint_eq(summary.data.len, 0);
    ck_assert(!rig_has_file(&r, "summary.bin"));
    ck_assert_msg(strstr(r.lines, "a mean needs at least 10 samples") != NULL, "%s", r.lines);
    fl_data_summary_done(&summary);
    ck_assert_int_eq(fl_trainer_set_data(r.worker.trainer, enough, NULL, &r.err), FL_OK);
    summary = made(&r);
    ck_assert_uint_eq(fl_solver_fedmix.summary_means(summary.data.data, summary.data.len), 1);
    fl_data_summary_done(&summary);
    rig_done(&r);
    fl_dataset_free(few);
    fl_dataset_free(enough);
}

static uint64_t one_too_many(const void *data, size_t len)
{
    return fl_solver_fedmix.summary_means(data, len) + 1;
}

/* A program that trains makes its own summary. */
TEST(a_summary_with_a_short_group_is_not_sent)
{
    struct fl_solver_ops loose = fl_solver_fedmix;
    struct fl_data_summary summary;
    struct rig r;

    start(&r, &mixing);
    loose.summary_means = one_too_many;
    r.setup->solver = &loose;
    summary = made(&r);
    ck_assert_uint_eq(summary.data.len, 0);
    ck_assert(!rig_has_file(&r, "summary.bin"));
    ck_assert_msg(strstr(r.lines, "a short last group has to be merged") != NULL, "%s", r.lines);
    fl_data_summary_done(&summary);
    rig_done(&r);
}

static void damage(struct rig *r, long at)
{
    struct fl_buf file;

    ck_assert_int_eq(fl_fs_read(client_rig_path(r, "summary.bin"), 1 << 20, &file, NULL), FL_OK);
    if (at < 0) {
        file.len -= 1;
    } else {
        file.data[at] ^= 1;
    }
    ck_assert_int_eq(
        fl_fs_replace(client_rig_path(r, "summary.bin"), file.data, file.len, false, NULL), FL_OK);
    fl_buf_done(&file);
}

/* What was sent is not known any more, and a new one could tell of single samples. */
TEST_EACH(without_the_summary_that_was_sent_none_is_made, 7)
{
    static const long at[] = {0, 8, 20, 40, 70, FL_CONTAINER_PAGE + 4, -1};
    struct fl_data_summary summary;
    struct rig r;

    start(&r, &mixing);
    summary = made(&r);
    fl_data_summary_done(&summary);
    damage(&r, at[_i]);
    summary = made(&r);
    ck_assert_uint_eq(summary.data.len, 0);
    ck_assert_msg(strstr(r.lines, "no data summary is sent, taking part without") != NULL, "%s",
                  r.lines);
    fl_data_summary_done(&summary);
    rig_done(&r);
}

TEST(a_summary_that_cannot_be_kept_is_not_sent)
{
    struct fl_data_summary summary;
    struct rig r;

    start(&r, &mixing);
    r.worker.state_dir = "/proc/no-such-folder";
    ck_assert_int_ne(fl_data_summary_make(&r.worker, &summary, &r.err), FL_OK);
    ck_assert_uint_eq(summary.data.len, 0);
    ck_assert_msg(strstr(r.err.msg, "summary.bin") != NULL, "%s", r.err.msg);
    fl_data_summary_done(&summary);
    r.worker.state_dir = r.dir;
    rig_done(&r);
}

/* With its own summary alone there is nothing to mix with. */
TEST(the_summary_that_was_sent_is_left_out_when_the_data_has_changed)
{
    static const struct rig_server plain = {.solver = "sgd"};
    const struct fl_task task = rig_task(1, 0);
    struct rig_payload list[2];
    struct fl_result *mixed, *alone;
    struct fl_dataset *less;
    struct fl_data_summary summary;
    struct rig r;

    start(&r, &mixing);
    summary = made(&r);
    less = fewer(SAMPLES / 2);
    ck_assert_int_eq(fl_trainer_set_data(r.worker.trainer, less, NULL, &r.err), FL_OK);
    list[0] = (struct rig_payload){"model", r.theta, r.count * sizeof(float), false};
    list[1] = (struct rig_payload){"mixup", summary.data.data, summary.data.len, true};
    mixed = rig_train(&r, &task, list, 2);
    rig_describe(&r, &plain);
    list[0].data = r.theta;
    alone = rig_train(&r, &task, list, 1);
    ck_assert_mem_eq(mixed->delta, alone->delta, r.count * sizeof(float));
    fl_result_unref(mixed);
    fl_result_unref(alone);
    fl_data_summary_done(&summary);
    rig_done(&r);
    fl_dataset_free(less);
}
