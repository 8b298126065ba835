/* Every allocation of a connection's life fails once: nothing crashes, leaks or stays open.
   Leaks show when the sanitizers are on. */
#include <check.h>
#include <stdint.h>
#include <string.h>

#include "tests/lib/callpair.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"

static struct callpair pair;

/* Connect, four kinds of calls, drain, close. No assertions: they allocate. */
static bool life(void)
{
    static const char *const paths[] = {"/t.T/Echo", "/t.T/Fail", "/t.T/Nothing", "/t.T/Hold"};
    struct call_log *logs[4] = {NULL, NULL, NULL, NULL};
    bool all = true;
    int rv;

    rv = callpair_try_open(&pair);
    if (rv != FL_OK) {
        return rv == FL_ENOMEM;
    }
    pair.pipe.step = 3000; /* messages in parts */
    for (int i = 0; i < 4 && rv == FL_OK; i++) {
        rv = callpair_try_call(&pair, paths[i], 5000, &logs[i]);
        if (rv == FL_OK) {
            rv = i == 1 ? callpair_send_text(logs[i], "\7no", 3) : callpair_send(logs[i], 20000);
            fl_call_end(logs[i]->call);
        }
    }
    mempipe_run(&pair.pipe);
    pair.now_ms += 10;
    fl_h2_tick(pair.client, pair.now_ms);
    fl_h2_tick(pair.server, pair.now_ms);
    if (pair.served[0].call != NULL) {
        fl_call_consume(pair.served[0].call, 20000);
    }
    fl_h2_drain(pair.server);
    mempipe_run(&pair.pipe);
    /* A failure was told as what it was, here or at a dead session. */
    all = rv == FL_OK || rv == FL_ENOMEM || rv == FL_ECLOSED;
    for (int dir = 0; dir < 2; dir++) {
        int code = pair.pipe.code[dir];

        all = all && (code == FL_OK || code == FL_ENOMEM || code == FL_EPROTO);
    }
    mempipe_done(&pair.pipe);
    for (unsigned i = 0; i < pair.n_calls; i++) {
        all = all && pair.calls[i].closes == 1 && pair.calls[i].after_close == 0;
        all = all && pair.calls[i].wrong == 0;
    }
    for (unsigned i = 0; i < pair.n_served; i++) {
        all = all && pair.served[i].closes == 1 && pair.served[i].after_close == 0;
    }
    return all;
}

TEST_EACH(every_allocation_may_fail, 2)
{
    bool and_all_later = _i == 1;
    size_t n;
    size_t i;
    bool ok;

    mempipe_own_memory = failmalloc_pause;
    callpair_init(&pair);
    failmalloc_start(SIZE_MAX, false);
    ok = life();
    n = failmalloc_stop();
    ck_assert(ok);
    ck_assert_int_eq(pair.calls[0].status, FL_GRPC_OK);
    ck_assert_uint_eq(pair.calls[0].bytes, 20000);
    ck_assert_int_eq(pair.calls[1].status, FL_GRPC_PERMISSION_DENIED);
    ck_assert_int_eq(pair.calls[2].status, FL_GRPC_UNIMPLEMENTED);
    ck_assert_int_eq(pair.calls[3].status, FL_GRPC_OK);
    ck_assert_uint_gt(n, 100);
    for (i = 0; i < n; i++) {
        callpair_init(&pair);
        failmalloc_start(i, and_all_later);
        ok = life();
        (void)failmalloc_stop();
        ck_assert_msg(ok, "allocation %zu of %zu", i, n);
    }
}
