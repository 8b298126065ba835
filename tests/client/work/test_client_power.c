/*
 * A client with broadcast: lattice that loses its power at any write of two tasks: afterwards it
 * gets the model of the server bit for bit, by what changed or as a whole, and trains the same
 * result.
 */

#include "tests/client/work/moves_fixture.h"
#include "tests/lib/power_disk.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/suites.h"

static struct fl_result *train(size_t k)
{
    struct fl_task task = rig_task(k + 1, 0);
    struct fl_inputs in = {.n = 0};
    struct fl_training *t = NULL;
    struct fl_result *result;

    choose(k, false, &in);
    (void)fetch(k, &in);
    ck_assert_int_eq(fl_training_new(&r.worker, &task, &in, NULL, NULL, &t, &r.err), FL_OK);
    ck_assert_msg(fl_training_run(t, &r.err) == FL_OK, "%s", r.err.msg);
    result = fl_training_take(t);
    fl_training_free(t);
    return result;
}

static void run_tasks(void)
{
    rig_restart(&r);
    fl_result_unref(train(1));
    fl_result_unref(train(2));
}

/* Before the first task it holds no model, or the first one; with each kind of loss. */
TEST_EACH(a_power_loss_at_any_write_leaves_a_held_model_or_a_whole_download, 2 * POWER_LOSSES)
{
    enum power_loss how = (enum power_loss)(_i / 2);
    unsigned n_got[WHOLE + 1] = {0};
    struct fl_result *want;
    bool lost = true;
    long n;

    begin(&unseeded);
    power_disk_watch(r.dir);
    want = train(2);
    power_disk_restore();
    if (_i % 2 == 1) {
        hold(0);
        power_disk_watch(r.dir);
    }
    for (n = 0; lost; n += (long)everyday_stride(1, 5)) {
        struct fl_result *again;

        lost = power_disk_loses(n, how, run_tasks);
        rig_restart(&r);
        n_got[receive(2, n % 2 == 1)]++;
        again = train(2);
        ck_assert_mem_eq(again->delta, want->delta, bytes);
        fl_result_unref(again);
        power_disk_restore();
    }
    ck_assert_uint_gt(n_got[NOTHING], 0);
    ck_assert_uint_gt(n_got[WHAT_CHANGED], 0);
    ck_assert(_i % 2 == 1 ? n_got[WHOLE] == 0 : n_got[WHOLE] > 0);
    fl_result_unref(want);
    end();
}
