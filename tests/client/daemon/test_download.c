/*
 * Downloads of payloads against a connection that the test plays: what is asked of the server, what
 * follows from its chunks and from the status that ends a call, retries and cancelling. Calls, the
 * training thread and the session are replaced at link time.
 */

#include "client/daemon/download.h"
#include "tests/client/work/moves_fixture.h"
#include "tests/lib/moves_rig.h"
#include "tests/lib/suites.h"

TESTS_APART("each begins with statics that are zero");

/* --- calls: one at a time --- */

static struct {
    const struct fl_call_handler *handler; /* NULL: no call is open */
    void *ctx;
    struct fl_wire_fetch asked; /* of the newest call */
    unsigned n_calls;
    bool cancelled;
    int code; /* of starting a call */
    int send; /* of sending its request */
} wire;

static char call_memory; /* its address is the call */

int __wrap_fl_connection_call(struct fl_connection *connection, const char *path,
                              uint64_t timeout_ms, const struct fl_call_handler *handler, void *ctx,
                              struct fl_call **ret);
int __wrap_fl_connection_call(struct fl_connection *connection, const char *path,
                              uint64_t timeout_ms, const struct fl_call_handler *handler, void *ctx,
                              struct fl_call **ret)
{
    (void)connection;
    (void)timeout_ms;
    ck_assert_str_eq(path, "/fl.v1.Federation/Fetch");
    ck_assert_ptr_null(wire.handler);
    if (wire.code != FL_OK) {
        return wire.code;
    }
    wire.handler = handler;
    wire.ctx = ctx;
    wire.cancelled = false;
    wire.n_calls++;
    *ret = (struct fl_call *)(void *)&call_memory;
    return FL_OK;
}

struct fl_wire_session __wrap_fl_connection_token(const struct fl_connection *connection);
struct fl_wire_session __wrap_fl_connection_token(const struct fl_connection *connection)
{
    (void)connection;
    return (struct fl_wire_session){.id = {3}};
}

int __wrap_fl_call_send(struct fl_call *call, const struct fl_piece *pieces, size_t n);
int __wrap_fl_call_send(struct fl_call *call, const struct fl_piece *pieces, size_t n)
{
    (void)call;
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(fl_wire_fetch_decode(pieces->data, pieces->len, &wire.asked, NULL), FL_OK);
    ck_assert_uint_eq(wire.asked.session.id[0], 3);
    return wire.send;
}

void __wrap_fl_call_end(struct fl_call *call);
void __wrap_fl_call_end(struct fl_call *call)
{
    (void)call;
}

void __wrap_fl_call_set_bulk(struct fl_call *call, enum fl_call_bulk bulk);
void __wrap_fl_call_set_bulk(struct fl_call *call, enum fl_call_bulk bulk)
{
    (void)call;
    ck_assert_int_eq(bulk, FL_CALL_TAKES_BULK);
}

void __wrap_fl_call_cancel(struct fl_call *call);
void __wrap_fl_call_cancel(struct fl_call *call)
{
    (void)call;
    wire.cancelled = true;
}

static void server_ends(enum fl_grpc_status status, const char *message)
{
    const struct fl_call_handler *handler = wire.handler;

    ck_assert_ptr_nonnull(handler);
    wire.handler = NULL;
    handler->on_closed((struct fl_call *)(void *)&call_memory, wire.ctx, status, message);
}

static void server_sends(uint64_t offset, const void *data, size_t len)
{
    uint8_t *chunk = malloc(len + 64);
    size_t n;

    ck_assert_ptr_nonnull(chunk);
    n = fl_wire_chunk_head(offset, len, chunk);
    (void)memcpy(chunk + n, data, len);
    ck_assert(
        wire.handler->on_message((struct fl_call *)(void *)&call_memory, wire.ctx, chunk, n + len));
    free(chunk);
}

/* --- the training thread --- */

static struct {
    fl_loop_cb work, done;
    void *arg;
    int code; /* of submitting */
} job;

int __wrap_fl_worker_thread_submit(struct fl_worker_thread *thread, fl_loop_cb work,
                                   struct fl_loop *loop, fl_loop_cb done, void *arg);
int __wrap_fl_worker_thread_submit(struct fl_worker_thread *thread, fl_loop_cb work,
                                   struct fl_loop *loop, fl_loop_cb done, void *arg)
{
    (void)thread;
    (void)loop;
    ck_assert_ptr_null(job.arg);
    if (job.code == FL_OK) {
        job.work = work;
        job.done = done;
        job.arg = arg;
    }
    return job.code;
}

static void thread_runs(void)
{
    void *arg = job.arg;

    ck_assert_ptr_nonnull(arg);
    job.work(arg);
    job.arg = NULL;
    job.done(arg);
}

/* --- the session --- */

static struct {
    unsigned n_ended, n_failed, n_evaluations;
    enum fl_activity activity;
    uint64_t round;
    enum fl_fault fault;
    char why[256];
    bool stopped;
    struct fl_inputs evaluated;
} session;

void __wrap_fl_session_shell_ended(struct fl_session_shell *shell, enum fl_activity activity,
                                   struct fl_round_key key, int code, const char *why);
void __wrap_fl_session_shell_ended(struct fl_session_shell *shell, enum fl_activity activity,
                                   struct fl_round_key key, int code, const char *why)
{
    (void)shell;
    ck_assert_int_eq(activity, FL_ACTIVITY_FETCH);
    ck_assert_int_eq(code, FL_OK);
    ck_assert_ptr_null(why);
    session.n_ended++;
    session.round = key.round;
}

void __wrap_fl_session_shell_failed(struct fl_session_shell *shell, enum fl_activity activity,
                                    struct fl_round_key key, enum fl_fault fault, const char *why);
void __wrap_fl_session_shell_failed(struct fl_session_shell *shell, enum fl_activity activity,
                                    struct fl_round_key key, enum fl_fault fault, const char *why)
{
    (void)shell;
    session.n_failed++;
    session.activity = activity;
    session.round = key.round;
    session.fault = fault;
    ck_assert_int_eq(fl_str_copy(session.why, sizeof(session.why), why), FL_OK);
}

bool __wrap_fl_session_shell_stopped(const struct fl_session_shell *shell);
bool __wrap_fl_session_shell_stopped(const struct fl_session_shell *shell)
{
    (void)shell;
    return session.stopped;
}

void __wrap_fl_evaluations_begin(struct fl_evaluations *evaluations, uint64_t round, double rate,
                                 const struct fl_task *task, struct fl_inputs *inputs);
void __wrap_fl_evaluations_begin(struct fl_evaluations *evaluations, uint64_t round, double rate,
                                 const struct fl_task *task, struct fl_inputs *inputs)
{
    (void)evaluations;
    (void)rate;
    (void)task;
    session.n_evaluations++;
    session.round = round;
    session.evaluated = *inputs;
    *inputs = (struct fl_inputs){.n = 0};
}

/* --- a client: lattice, or float32 with two payloads --- */

static struct fl_jobs jobs;
static struct fl_wanted wanted;
static struct fl_downloads d;

static const struct rig_server plain, scaffold = {.solver = "scaffold"};

static void start(const struct rig_server *of)
{
    begin(of);
    jobs = (struct fl_jobs){.log = &r.log};
    d = (struct fl_downloads){.jobs = &jobs, .worker = &r.worker, .wanted = &wanted};
}

static void stop(void)
{
    ck_assert_ptr_null(wire.handler);
    ck_assert_ptr_null(job.arg);
    fl_downloads_cancel_task(&d);
    ck_assert_ptr_null(d.model);
    fl_inputs_done(&session.evaluated);
    fl_wanted_done(&wanted);
    end();
}

/* The server lists model `k` with its digest where that is of use, and a control for SCAFFOLD. */
static void list(size_t k, bool has_digest)
{
    struct fl_input model = listed_model(k);

    fl_inputs_done(&wanted.listed);
    wanted.task = rig_task(k + 1, 0);
    model.has_digest = has_digest;
    wanted.listed.list[wanted.listed.n++] = model;
    if (r.setup->solver->inputs != NULL) {
        wanted.listed.list[wanted.listed.n++] =
            (struct fl_input){.name = "control", .bytes = bytes};
    }
}

static void begin_task(size_t k)
{
    struct fl_err err = {0};

    list(k, fl_broadcast_sends_moves(r.setup->broadcast));
    ck_assert_msg(fl_downloads_begin_task(&d, wanted.task.key, &err) == FL_OK, "%s", err.msg);
    if (job.arg != NULL) {
        thread_runs();
    }
}

static void begin_model(size_t k)
{
    struct fl_err err = {0};

    wanted.evaluation.round = k;
    wanted.evaluation.payload = listed_model(k);
    ck_assert_msg(fl_downloads_begin_model(&d, &err) == FL_OK, "%s", err.msg);
    if (job.arg != NULL) {
        thread_runs();
    }
}

static void send_model(size_t k, size_t from, size_t to)
{
    server_sends(from, (const uint8_t *)server.models[k] + from, to - from);
}

static void expect_failure(enum fl_fault fault, const char *why)
{
    ck_assert_uint_eq(session.n_failed, 1);
    ck_assert_uint_eq(session.n_ended + session.n_evaluations, 0);
    ck_assert_int_eq(session.fault, fault);
    ck_assert_str_eq(session.why, why);
    session.n_failed = 0;
}

/* The task is complete, with model 2 as the client will train from it. */
static void expect_task(bool whole)
{
    struct fl_inputs in;

    ck_assert_uint_eq(session.n_failed, 0);
    ck_assert_uint_eq(session.n_ended, 1);
    ck_assert_uint_eq(session.round, 3);
    fl_downloads_take(&d, &in);
    ck_assert_int_eq(!in.list[0].has_held, whole);
    ck_assert_int_eq(decode(&in), FL_OK);
    ck_assert_mem_eq(in.list[0].data, server.models[2], bytes);
    fl_inputs_done(&in);
}

TEST(a_whole_model_is_fetched_in_chunks)
{
    start(&plain);
    begin_task(2);
    ck_assert_str_eq(wire.asked.payload, "model");
    ck_assert(wire.asked.round == 3 && wire.asked.offset == 0 && !wire.asked.has_held);
    send_model(2, 0, 100);
    send_model(2, 100, bytes);
    ck_assert_uint_eq(session.n_ended, 0);
    server_ends(FL_GRPC_OK, NULL);
    expect_task(true);
    ck_assert_uint_eq(wire.n_calls, 1);
    stop();
}

TEST(payloads_are_fetched_one_after_the_other)
{
    start(&scaffold);
    begin_task(2);
    send_model(2, 0, bytes);
    server_ends(FL_GRPC_OK, NULL);
    ck_assert_str_eq(wire.asked.payload, "control");
    ck_assert_uint_eq(session.n_ended, 0);
    send_model(1, 0, bytes);
    server_ends(FL_GRPC_OK, NULL);
    expect_task(true);
    stop();
}

/* --- what changed --- */

static struct fl_blob *moves_since(size_t k)
{
    struct fl_blob *moves = NULL;

    ck_assert_int_eq(
        moves_difference(versions, r.setup->layout, server.models[2], server.digests[k], &moves),
        FL_OK);
    return moves;
}

TEST(what_changed_ends_where_the_call_does)
{
    struct fl_blob *moves;

    start(&unseeded);
    hold(0);
    begin_task(2);
    ck_assert(wire.asked.has_held);
    ck_assert_mem_eq(wire.asked.held, server.digests[0], FL_DIGEST_SIZE);
    moves = moves_since(0);
    server_sends(0, fl_blob_data(moves), fl_blob_len(moves));
    server_ends(FL_GRPC_OK, NULL);
    expect_task(false);
    fl_blob_unref(moves);
    stop();
}

TEST(the_listed_model_is_not_fetched)
{
    start(&unseeded);
    hold(2);
    begin_task(2);
    ck_assert_uint_eq(wire.n_calls, 0);
    expect_task(false);
    stop();
}

/* Refused before any byte; after some, by a server that was restarted; and the offset is refused.
 */
TEST_EACH(a_server_that_refuses_what_changed_is_asked_for_the_whole_model_at_once, 3)
{
    start(&unseeded);
    hold(0);
    begin_task(2);
    if (_i > 0) {
        server_sends(0, "some", 4);
        server_ends(FL_GRPC_UNAVAILABLE, "restarting");
        expect_failure(FL_FAULT_PASSING, "restarting");
        begin_task(2);
        ck_assert(wire.asked.has_held && wire.asked.offset == 4);
    }
    server_ends(_i == 2 ? FL_GRPC_OUT_OF_RANGE : FL_GRPC_FAILED_PRECONDITION, "no");
    ck_assert(!wire.asked.has_held && wire.asked.offset == 0);
    send_model(2, 0, bytes);
    server_ends(FL_GRPC_OK, NULL);
    expect_task(true);
    stop();
}

/* More than a whole model; another offset; no chunk. */
TEST_EACH(what_changed_that_cannot_be_is_replaced_by_the_whole_model, 3)
{
    start(&unseeded);
    hold(0);
    begin_task(2);
    if (_i == 0) {
        send_model(0, 0, bytes);
        server_sends(bytes, "x", 1);
    } else if (_i == 1) {
        server_sends(9, "x", 1);
    } else {
        ck_assert(wire.handler->on_message(NULL, wire.ctx, (const uint8_t *)"\xff\xff", 2));
    }
    ck_assert(wire.cancelled);
    ck_assert_ptr_nonnull(strstr(r.lines, "bad chunk from the server"));
    server_ends(FL_GRPC_CANCELLED, NULL);
    ck_assert(!wire.asked.has_held && wire.asked.offset == 0);
    send_model(2, 0, bytes);
    server_ends(FL_GRPC_OK, NULL);
    expect_task(true);
    stop();
}

TEST(a_refused_whole_model_is_not_asked_for_again_at_once)
{
    start(&unseeded);
    hold(0);
    begin_task(2);
    server_ends(FL_GRPC_FAILED_PRECONDITION, "no");
    server_ends(FL_GRPC_FAILED_PRECONDITION, "no");
    expect_failure(FL_FAULT_PASSING, "no");
    ck_assert_uint_eq(wire.n_calls, 2);
    stop();
}

/* --- what ends a call --- */

static const struct {
    enum fl_grpc_status status;
    const char *message, *why;
    enum fl_fault fault;
} statuses[] = {
    {FL_GRPC_NOT_FOUND, "the round has ended", "the round has ended", FL_FAULT_LASTING},
    {FL_GRPC_OUT_OF_RANGE, NULL, "OUT_OF_RANGE", FL_FAULT_LASTING},
    {FL_GRPC_OK, NULL, "the server sent fewer bytes than it announced", FL_FAULT_PASSING},
    {FL_GRPC_UNAVAILABLE, "", "UNAVAILABLE", FL_FAULT_PASSING},
    {FL_GRPC_RESOURCE_EXHAUSTED, "no memory", "no memory", FL_FAULT_PASSING},
    {FL_GRPC_DEADLINE_EXCEEDED, NULL, "DEADLINE_EXCEEDED", FL_FAULT_PASSING},
    {FL_GRPC_UNAUTHENTICATED, NULL, "UNAUTHENTICATED", FL_FAULT_PASSING},
    {FL_GRPC_CANCELLED, NULL, "CANCELLED", FL_FAULT_PASSING},
    {FL_GRPC_FAILED_PRECONDITION, NULL, "FAILED_PRECONDITION", FL_FAULT_PASSING},
    {FL_GRPC_INTERNAL, NULL, "INTERNAL", FL_FAULT_PASSING},
};

/* The bytes that were received stay, and the next attempt continues behind them. */
TEST_EACH(a_call_that_ended_early_is_continued, ARRAY_LEN(statuses))
{
    start(&plain);
    begin_task(2);
    send_model(2, 0, 100);
    server_ends(statuses[_i].status, statuses[_i].message);
    expect_failure(statuses[_i].fault, statuses[_i].why);
    ck_assert_int_eq(session.activity, FL_ACTIVITY_FETCH);
    ck_assert_ptr_nonnull(strstr(r.lines, "interrupted at 100 of"));
    begin_task(2);
    ck_assert_uint_eq(wire.asked.offset, 100);
    send_model(2, 100, bytes);
    server_ends(FL_GRPC_OK, NULL);
    expect_task(true);
    stop();
}

/* One byte too many, a gap, and bytes that were sent before: the call ends, nothing is stored. */
TEST_EACH(a_chunk_that_is_not_the_next_one_ends_the_call, 3)
{
    const uint64_t at[] = {100, 101, 99};
    const size_t len[] = {bytes - 99, 1, 1};
    uint8_t *junk;

    start(&plain);
    junk = calloc(1, bytes);
    ck_assert_ptr_nonnull(junk);
    begin_task(2);
    send_model(2, 0, 100);
    server_sends(at[_i], junk, _i == 0 ? bytes - 99 : len[_i]);
    ck_assert(wire.cancelled);
    server_ends(FL_GRPC_CANCELLED, NULL);
    expect_failure(FL_FAULT_PASSING, "CANCELLED");
    begin_task(2);
    ck_assert_uint_eq(wire.asked.offset, 100);
    send_model(2, 100, bytes);
    server_ends(FL_GRPC_OK, NULL);
    expect_task(true);
    free(junk);
    stop();
}

/* Another size than the model has: refused before a byte is asked for. */
TEST(a_payload_of_another_size_is_not_fetched)
{
    struct fl_err err = {0};

    start(&plain);
    list(2, false);
    wanted.listed.list[0].bytes++;
    ck_assert_int_eq(fl_downloads_begin_task(&d, wanted.task.key, &err), FL_EPROTO);
    ck_assert_uint_eq(wire.n_calls, 0);
    ck_assert_ptr_nonnull(strstr(r.lines, "fetching the payloads of round 3 failed: payload "
                                          "'model' has"));
    stop();
}

TEST(bytes_of_another_round_are_not_continued)
{
    start(&plain);
    begin_task(1);
    send_model(1, 0, 100);
    server_ends(FL_GRPC_UNAVAILABLE, NULL);
    session.n_failed = 0;
    begin_task(2);
    ck_assert(wire.asked.round == 3 && wire.asked.offset == 0);
    send_model(2, 0, bytes);
    server_ends(FL_GRPC_OK, NULL);
    expect_task(true);
    stop();
}

TEST(without_a_connection_the_attempt_fails_and_the_next_one_starts_a_call)
{
    struct fl_err err = {0};

    start(&plain);
    list(2, false);
    wire.code = FL_ECLOSED;
    ck_assert_int_eq(fl_downloads_begin_task(&d, wanted.task.key, &err), FL_ECLOSED);
    wire.code = FL_OK;
    begin_task(2);
    send_model(2, 0, bytes);
    server_ends(FL_GRPC_OK, NULL);
    expect_task(true);
    stop();
}

TEST(a_request_that_is_not_sent_ends_with_its_call)
{
    start(&plain);
    wire.send = FL_ELIMIT;
    begin_task(2);
    ck_assert(wire.cancelled);
    server_ends(FL_GRPC_CANCELLED, NULL);
    expect_failure(FL_FAULT_PASSING, "CANCELLED");
    wire.send = FL_OK;
    stop();
}

/* --- cancelling --- */

/* While its call is open; between attempts; while the training thread looks for the held model. */
TEST_EACH(a_cancelled_download_says_nothing_and_is_freed, 3)
{
    struct fl_err err = {0};

    start(&unseeded);
    hold(0);
    list(2, true);
    ck_assert_int_eq(fl_downloads_begin_task(&d, wanted.task.key, &err), FL_OK);
    if (_i < 2) {
        thread_runs();
    }
    if (_i == 1) {
        server_ends(FL_GRPC_UNAVAILABLE, NULL);
        session.n_failed = 0;
    }
    fl_downloads_cancel_task(&d);
    ck_assert_ptr_null(d.task);
    if (_i == 0) {
        ck_assert(wire.cancelled);
        server_sends(0, "late", 4); /* It was on its way. */
        server_ends(FL_GRPC_CANCELLED, NULL);
    } else if (_i == 2) {
        thread_runs();
        ck_assert_uint_eq(wire.n_calls, 0);
    }
    ck_assert_uint_eq(session.n_failed + session.n_ended, 0);
    stop();
}

/* A task that replaces one whose call is still open; the old call ends afterwards. */
TEST(a_newer_task_cancels_the_call_of_the_one_before)
{
    const struct fl_call_handler *handler;
    void *old;

    start(&plain);
    begin_task(1);
    send_model(1, 0, 100);
    handler = wire.handler;
    old = wire.ctx;
    wire.handler = NULL;
    begin_task(2);
    ck_assert_ptr_ne(old, wire.ctx);
    handler->on_closed(NULL, old, FL_GRPC_CANCELLED, NULL);
    ck_assert_uint_eq(session.n_failed, 0);
    send_model(2, 0, bytes);
    server_ends(FL_GRPC_OK, NULL);
    expect_task(true);
    stop();
}

TEST(a_client_that_ends_starts_no_call)
{
    struct fl_err err = {0};

    start(&unseeded);
    hold(0);
    list(2, true);
    ck_assert_int_eq(fl_downloads_begin_task(&d, wanted.task.key, &err), FL_OK);
    session.stopped = true;
    thread_runs();
    ck_assert_uint_eq(wire.n_calls, 0);
    stop();
}

TEST(a_training_thread_without_memory_fails_the_attempt)
{
    struct fl_err err = {0};

    start(&unseeded);
    list(2, true);
    job.code = FL_ENOMEM;
    ck_assert_int_eq(fl_downloads_begin_task(&d, wanted.task.key, &err), FL_ENOMEM);
    wanted.evaluation.payload = listed_model(2);
    ck_assert_int_eq(fl_downloads_begin_model(&d, &err), FL_ENOMEM);
    ck_assert_ptr_null(d.model);
    stop();
}

/* --- evaluations --- */

TEST_EACH(the_model_of_an_evaluation_is_fetched_beside_a_task_and_starts_it, 3)
{
    struct fl_blob *moves;
    struct fl_err err = {0};

    start(&unseeded);
    hold(_i == 0 ? 2 : 0);
    begin_model(2);
    if (_i > 0) {
        ck_assert_int_eq(fl_downloads_begin_model(&d, &err), FL_ESTATE);
        ck_assert(wire.asked.has_held && wire.asked.round == 2);
        moves = moves_since(0);
        if (_i == 1) {
            server_sends(0, fl_blob_data(moves), fl_blob_len(moves));
        } else {
            server_ends(FL_GRPC_FAILED_PRECONDITION, NULL);
            send_model(2, 0, bytes);
        }
        server_ends(FL_GRPC_OK, NULL);
        fl_blob_unref(moves);
    }
    ck_assert_uint_eq(session.n_evaluations, 1);
    ck_assert_int_eq(decode(&session.evaluated), FL_OK);
    ck_assert_mem_eq(session.evaluated.list[0].data, server.models[2], bytes);
    stop();
}

TEST(an_evaluation_that_cannot_be_fetched_fails_and_the_next_one_may_begin)
{
    start(&unseeded);
    begin_model(1);
    server_ends(FL_GRPC_NOT_FOUND, NULL);
    expect_failure(FL_FAULT_LASTING, "NOT_FOUND");
    ck_assert_int_eq(session.activity, FL_ACTIVITY_EVALUATION);
    begin_model(2);
    send_model(2, 0, bytes);
    server_ends(FL_GRPC_OK, NULL);
    ck_assert_uint_eq(session.n_evaluations, 1);
    stop();
}
