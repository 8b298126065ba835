/*
 * A Push from its header to its verdict, and the writer of spool files below it. The peer is a
 * foreign client (rawpeer); lane, loop and spool files are the real ones, the coordinator is not
 * there: what it would hear is written down.
 */
#include <check.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/daemon/serverd_conf.h"
#include "server/network/spool_writer.h"
#include "tests/lib/folder.h"
#include "tests/lib/push_body.h"
#include "tests/lib/rawpeer.h"
#include "tests/lib/suites.h"

#define ROUND   3
#define ATTEMPT 2

static char dir[64];
static struct fl_serverd_conf *own;
static const struct fl_server_conf *conf;
static struct fl_frontend frontend;
static struct fl_frontend_client slot;
static struct fl_control_stream stream;
static struct fl_budget budget;
static struct fl_rpc_method methods[2];
static struct rawpeer raw;
static struct fl_buf body;
static uint64_t size; /* of the update */
static char heard[256];

/* What the linker renames. */
void __wrap_fl_frontend_up(struct fl_frontend *f, struct fl_coord_msg *up);
int __real_fl_spool_write(struct fl_spool *spool, uint64_t offset, const void *data, size_t len,
                          struct fl_err *err);
int __wrap_fl_spool_write(struct fl_spool *spool, uint64_t offset, const void *data, size_t len,
                          struct fl_err *err);

int __real_fl_wire_push_decode(const void *data, size_t len, bool *ret_is_header,
                               struct fl_wire_push_header *ret_header,
                               struct fl_wire_chunk *ret_chunk, struct fl_err *err);
int __wrap_fl_wire_push_decode(const void *data, size_t len, bool *ret_is_header,
                               struct fl_wire_push_header *ret_header,
                               struct fl_wire_chunk *ret_chunk, struct fl_err *err);

static unsigned n_decoded, fail_decode; /* 1: the header */
static unsigned n_written, fail_write;  /* 1: the first */
static int fail_code;

void __wrap_fl_frontend_up(struct fl_frontend *f, struct fl_coord_msg *up)
{
    size_t at = strlen(heard);

    ck_assert_ptr_eq(f, &frontend);
    ck_assert_uint_eq(up->client, 0);
    ck_assert_uint_eq(up->round, ROUND);
    ck_assert_uint_eq(up->attempt, ATTEMPT);
    ck_assert(up->type != FL_COORD_MSG_UNSTORED ||
              up->code == (fail_decode > 0 ? FL_ENOMEM : fail_code));
    (void)snprintf(heard + at, sizeof(heard) - at, "%s;",
                   up->type == FL_COORD_MSG_STORED     ? "stored"
                   : up->type == FL_COORD_MSG_INVALID  ? "invalid"
                   : up->type == FL_COORD_MSG_UNSTORED ? "unstored"
                                                       : "?");
    fl_coord_msg_free(up);
}

int __wrap_fl_spool_write(struct fl_spool *spool, uint64_t offset, const void *data, size_t len,
                          struct fl_err *err)
{
    if (++n_written == fail_write) {
        return fl_err_set(err, fail_code, "as the test wants it");
    }
    return __real_fl_spool_write(spool, offset, data, len, err);
}

int __wrap_fl_wire_push_decode(const void *data, size_t len, bool *ret_is_header,
                               struct fl_wire_push_header *ret_header,
                               struct fl_wire_chunk *ret_chunk, struct fl_err *err)
{
    if (++n_decoded == fail_decode) {
        return fl_err_set(err, FL_ENOMEM, "as the test wants it");
    }
    return __real_fl_wire_push_decode(data, len, ret_is_header, ret_header, ret_chunk, err);
}

static void load_conf(void)
{
    struct fl_err err = {0};
    char path[128];
    FILE *yaml;

    (void)snprintf(dir, sizeof(dir), "/tmp/fl-push.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/server.yaml", dir);
    yaml = fopen(path, "w");
    ck_assert_ptr_nonnull(yaml);
    (void)fprintf(yaml,
                  "federation: push\nstate_dir: %s/state\nlisten: [\"unix:%s/sock\"]\n"
                  "insecure: yes\nrounds: 1\nmodel: {preset: dnn60}\n",
                  dir, dir);
    ck_assert_int_eq(fclose(yaml), 0);
    ck_assert_msg(fl_serverd_conf_load(path, NULL, &own, &err) == FL_OK, "%s", err.msg);
    conf = own->conf;
}

static void setup(void)
{
    struct fl_h2_setup server = {.peer = "raw:9", .budget = &budget};
    struct fl_h2 *h2 = NULL;
    size_t n_units;

    load_conf();
    size = push_body_size(conf->layout);
    n_units = fl_layout_units(conf->layout);
    slot = (struct fl_frontend_client){
        .stream = &stream, .grant = {ROUND, ATTEMPT}, .units = calloc(n_units, 1)};
    ck_assert_ptr_nonnull(slot.units);
    (void)memset(slot.units, 1, n_units);
    ck_assert_int_eq(fl_str_copy(stream.name, sizeof(stream.name), "edge"), FL_OK);
    frontend = (struct fl_frontend){
        .setup = {.conf = conf, .state_dir = own->state_dir}, .slots = &slot, .n_slots = 1};
    ck_assert_int_eq(fl_recycled_create(frontend.setup.state_dir, &frontend.recycled, NULL), FL_OK);
    ck_assert_int_eq(fl_loop_create(&frontend.setup.net, NULL), FL_OK);
    ck_assert_int_eq(fl_worker_thread_create("io", &frontend.setup.io, NULL), FL_OK);
    methods[0] =
        (struct fl_rpc_method){"/fl.v1.Federation/Push", FL_WHO_ANYBODY, fl_push_start, &frontend};
    fl_budget_init(&budget, SIZE_MAX, 0, NULL, NULL);
    fl_rpc_limits_default(&server.limits);
    server.methods = methods;
    ck_assert_int_eq(fl_h2_server_create(&server, &h2), FL_OK);
    rawpeer_open(&raw, h2, /* server= */ false, 1 << 20);
    rawpeer_run(&raw);
    fl_buf_init(&body, 16 << 20);
    heard[0] = '\0';
    n_written = fail_write = 0;
    n_decoded = fail_decode = 0;
}

static void on_lane(void *arg)
{
    (void)arg;
}

static void stop_loop(void *arg)
{
    fl_loop_stop(arg);
}

/* Until what the lane has now is done and told. */
static void after_lane(void)
{
    ck_assert_int_eq(fl_worker_thread_submit(frontend.setup.io, on_lane, frontend.setup.net,
                                             stop_loop, frontend.setup.net),
                     FL_OK);
    fl_loop_run(frontend.setup.net);
}

static void wait_at_gate(void *arg)
{
    ck_assert_int_eq(sem_wait(arg), 0);
}

/* The same; what the lane gets meanwhile waits for sem_post(). */
static void after_lane_at(sem_t *gate)
{
    ck_assert_int_eq(sem_init(gate, 0, 0), 0);
    ck_assert_int_eq(fl_worker_thread_submit(frontend.setup.io, on_lane, frontend.setup.net,
                                             stop_loop, frontend.setup.net),
                     FL_OK);
    ck_assert_int_eq(fl_worker_thread_submit(frontend.setup.io, wait_at_gate, NULL, NULL, gate),
                     FL_OK);
    fl_loop_run(frontend.setup.net);
}

/* Until the lane and the connection have nothing to do: a chunk may wait for the credit of others.
 */
static void settle(void)
{
    int i;

    for (i = 0; i < 8; i++) {
        rawpeer_run(&raw);
        after_lane();
    }
    rawpeer_run(&raw);
}

static void teardown(void)
{
    if (raw.session != NULL) {
        rawpeer_close(&raw);
    }
    fl_worker_thread_free(frontend.setup.io);
    frontend.setup.io = NULL;
    fl_loop_free(frontend.setup.net);
    ck_assert(fl_list_is_empty(&frontend.pushes));
    ck_assert_ptr_null(slot.push);
    ck_assert_uint_eq(budget.used, 0);
    fl_recycled_free(frontend.recycled);
    free(slot.units);
    fl_buf_done(&body);
    fl_serverd_conf_free(own);
    folder_remove(dir);
}

static void hang_up(void)
{
    rawpeer_close(&raw);
    raw.session = NULL;
}

/* The header and the first `upto` bytes. */
static void push(uint64_t upto, bool ends)
{
    fl_buf_clear(&body);
    push_body(&body, conf->layout, ROUND, ATTEMPT, upto);
    (void)rawpeer_request(&raw, "/fl.v1.Federation/Push", NULL, body.data, body.len, ends);
}

static uint64_t on_disk(void)
{
    return fl_spool_peek(own->state_dir, ROUND, ATTEMPT, "edge");
}

static void verdict(enum fl_wire_command_type type)
{
    struct fl_net_msg down = {
        .command = {.type = type, .u.verdict = {.round = ROUND, .attempt = ATTEMPT}}};

    fl_push_verdict(&frontend, &down);
    rawpeer_run(&raw);
}

/* --- the call --- */

TEST_CASE("push", setup, teardown);

TEST_EACH(an_update_that_is_there_is_told_and_the_verdict_is_the_answer, 2)
{
    push(size, _i == 1);
    settle();
    ck_assert_str_eq(heard, "stored;");
    ck_assert_uint_eq(slot.stored.round, ROUND);
    ck_assert_ptr_null(strstr(raw.trace, "grpc-status"));
    verdict(FL_WIRE_ACCEPTED);
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=0"));
    ck_assert_uint_eq(slot.accepted.round, ROUND);
}

TEST(a_stream_that_ends_early_is_answered_when_all_of_it_is_written)
{
    push(2000, true);
    rawpeer_run(&raw);
    ck_assert_ptr_null(strstr(raw.trace, "grpc-status")); /* Its file is not even open. */
    settle();
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=0"));
    ck_assert_uint_eq(on_disk(), 2000);
    ck_assert_str_eq(heard, "");
}

TEST(bytes_on_the_disk_are_told_while_it_goes_on)
{
    uint64_t written = 0;

    push(3000, false);
    settle();
    ck_assert(fl_push_written(slot.push, ROUND, ATTEMPT, &written));
    ck_assert_uint_eq(written, 3000);
    ck_assert(!fl_push_written(slot.push, ROUND, ATTEMPT + 1, &written));
}

TEST(bytes_of_a_message_that_is_not_complete_are_progress)
{
    struct fl_push_progress progress = {.bytes = 0};
    uint8_t frame[9 + 100] = {0, 0, 100};
    int32_t id;

    ck_assert(!fl_push_progress(NULL, &progress));
    fl_buf_clear(&body);
    push_body_header(&body, conf->layout, ROUND, ATTEMPT);
    id = rawpeer_request(&raw, "/fl.v1.Federation/Push", NULL, body.data, body.len, false);
    settle();
    fl_buf_clear(&body);
    push_body_chunk(&body, 0, 500);
    frame[8] = (uint8_t)id; /* DATA: the first bytes of a chunk. */
    (void)memcpy(frame + 9, body.data, 100);
    ck_assert_int_eq(rawpeer_bytes(&raw, frame, sizeof(frame)), FL_OK);
    settle();
    ck_assert_uint_eq(n_decoded, 1); /* The header alone is a message. */
    ck_assert(fl_push_progress(slot.push, &progress));
    ck_assert_uint_eq(progress.key.round, ROUND);
    ck_assert_uint_eq(progress.key.attempt, ATTEMPT);
    ck_assert_uint_eq(progress.bytes, 100);
    ck_assert(!progress.held);
    ck_assert(!fl_push_progress(slot.push, &progress));
}

TEST(a_header_alone_is_no_progress)
{
    struct fl_push_progress progress = {.bytes = 0};

    push(0, false);
    settle();
    ck_assert_ptr_nonnull(slot.push);
    ck_assert(!fl_push_progress(slot.push, &progress));
}

TEST(an_upload_that_waits_for_the_server_is_not_late)
{
    struct fl_push_progress progress = {.bytes = 0};

    push(3000, false);
    rawpeer_run(&raw); /* Nothing is written yet. */
    ck_assert(fl_push_progress(slot.push, &progress));
    ck_assert(fl_push_progress(slot.push, &progress));
    ck_assert(progress.held);
    settle();
    ck_assert(!fl_push_progress(slot.push, &progress));
}

TEST(a_newer_push_of_the_same_client_goes_on_where_the_older_one_was)
{
    struct fl_buf rest;

    push(3000, false);
    rawpeer_run(&raw); /* Nothing is written yet, all is on its way to the lane. */
    fl_buf_init(&rest, 16 << 20);
    push_body_header(&rest, conf->layout, ROUND, ATTEMPT);
    push_body_chunk(&rest, 3000, 10);
    (void)rawpeer_request(&raw, "/fl.v1.Federation/Push", NULL, rest.data, rest.len, true);
    settle();
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=10"));
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=0"));
    ck_assert_uint_eq(on_disk(), 3010);
    fl_buf_done(&rest);
}

TEST(a_peer_that_hangs_up_leaves_what_came_and_frees_the_rest)
{
    push(3000, false);
    rawpeer_run(&raw);
    hang_up(); /* While its file is being opened and its chunks wait behind that. */
    ck_assert(fl_list_is_empty(&frontend.pushes));
    ck_assert_ptr_null(slot.push);
}

TEST(what_is_complete_is_judged_though_its_peer_has_hung_up)
{
    uint64_t written = 0;
    sem_t gate;

    push(size, true);
    rawpeer_run(&raw);
    after_lane_at(&gate);
    ck_assert(fl_push_written(slot.push, ROUND, ATTEMPT, &written));
    ck_assert_uint_eq(written, size);
    ck_assert_str_eq(heard, ""); /* It is about to be checked. */
    hang_up();
    ck_assert_int_eq(sem_post(&gate), 0);
    after_lane();
    ck_assert_str_eq(heard, "stored;");
    ck_assert_uint_eq(slot.stored.round, ROUND);
    ck_assert(fl_list_is_empty(&frontend.pushes));
}

TEST(an_update_of_another_shape_is_judged_before_a_byte_is_stored)
{
    slot.units[0] = 0;
    push(1000, false);
    settle();
    ck_assert_str_eq(heard, "invalid;");
    ck_assert_uint_eq(n_written, 0);
    verdict(FL_WIRE_REJECTED);
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=3"));
}

TEST(nothing_is_stored_of_what_was_not_asked_for)
{
    slot.grant.attempt++;
    push(1000, true);
    settle();
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=9"));
    ck_assert_uint_eq(n_written, 0);
    ck_assert_str_eq(heard, "");
}

TEST(what_our_disk_refuses_is_tried_again_and_told)
{
    fail_write = 2;
    fail_code = FL_ENOSPC;
    push(5000, true);
    settle();
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=14"));
    ck_assert_str_eq(heard, "unstored;"); /* Once, whatever waited behind it. */
    ck_assert_uint_eq(on_disk(), 500);
}

/* The log and the operator have the whole path. */
TEST(a_text_for_a_client_does_not_say_where_the_state_folder_is)
{
    char text[1024];
    char out[256];

    (void)snprintf(text, sizeof(text), "cannot write '%s/spool/1.part', '%s' is full",
                   frontend.setup.state_dir, frontend.setup.state_dir);
    ck_assert_str_eq(fl_frontend_public(&frontend, text, out, sizeof(out)),
                     "cannot write 'spool/1.part', '' is full");
    ck_assert_str_eq(fl_frontend_public(&frontend, text, text, sizeof(text)), out);
    ck_assert_str_eq(fl_frontend_public(&frontend, "the round is over", out, 6), "the r");
}

/* INVALID_ARGUMENT (3) would blame the client, and the round would wait for it until its deadline.
 */
TEST_EACH(a_message_that_there_is_no_memory_to_decode_is_our_fault, 3)
{
    fail_decode = 1 + (unsigned)_i;
    push(5000, true);
    settle();
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=14"));
    ck_assert_str_eq(heard, _i == 0 ? "" : "unstored;"); /* Without a header it is nobody's. */
}

/* An upload of an earlier round, whose file may be used again. */
static void leave_upload(const char *client)
{
    const struct fl_spool_part part = {.codec = FL_CODEC_FLOAT32, .bytes = 4};
    struct fl_spool *spool = NULL;
    uint64_t received = 0;

    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){frontend.setup.state_dir, ROUND - 1,
                                                              1, client, &part, 1, NULL},
                                   &spool, &received, NULL),
                     FL_OK);
    ck_assert_int_eq(fl_spool_write(spool, 0, "1234", 4, NULL), FL_OK);
    fl_spool_close(spool);
}

TEST(a_full_disk_takes_the_files_that_are_kept_for_later)
{
    leave_upload("a");
    leave_upload("b");
    ck_assert_int_eq(fl_recycled_collect(frontend.recycled, NULL), FL_OK);
    n_written = 0;
    fail_write = 2;
    fail_code = FL_ENOSPC;
    push(size, true);
    settle();
    ck_assert_str_eq(heard, "stored;");
    ck_assert_uint_eq(on_disk(), size);
    ck_assert_uint_eq(fl_recycled_count(frontend.recycled), 0);
}

TEST(a_chunk_at_another_offset_ends_the_push_out_of_range)
{
    push_body_header(&body, conf->layout, ROUND, ATTEMPT);
    push_body_chunk(&body, 0, 1000);
    push_body_chunk(&body, 2000, 1000);
    (void)rawpeer_request(&raw, "/fl.v1.Federation/Push", NULL, body.data, body.len, true);
    settle();
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=11"));
    ck_assert_uint_eq(on_disk(), 1000);
    ck_assert_str_eq(heard, "");
}

TEST_EACH(the_round_may_close_in_every_state_of_a_push, 3)
{
    push(_i == 2 ? size : 2000, _i > 0);
    if (_i != 1) {
        settle();
    } else {
        rawpeer_run(&raw);
    }
    ck_assert_ptr_nonnull(slot.push);
    fl_push_round_closed(&frontend, ROUND, ATTEMPT);
    settle();
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=9"));
    ck_assert(fl_list_is_empty(&frontend.pushes));
}

/* --- the writer --- */

static struct fl_spool_writer *writer;
static char order[256];
static bool close_at_once;

static void note(const char *what, int code, uint64_t received)
{
    size_t at = strlen(order);

    (void)snprintf(order + at, sizeof(order) - at, "%s %d %llu;", what, code,
                   (unsigned long long)received);
    if (close_at_once) {
        fl_spool_writer_close(writer);
        writer = NULL;
    }
}

static void opened(void *ctx, int code, uint64_t received, const struct fl_err *err)
{
    (void)ctx;
    (void)err;
    note("opened", code, received);
}

static void appended(void *ctx, int code, uint64_t received, size_t memory_len,
                     const struct fl_err *err)
{
    (void)ctx;
    (void)err;
    ck_assert_uint_eq(memory_len, 108);
    note("appended", code, received);
}

static void finished(void *ctx, int code, struct fl_norms *norms, const struct fl_err *err)
{
    (void)ctx;
    (void)norms;
    (void)err;
    note("finished", code, 0);
}

static const struct fl_spool_writer_cbs cbs = {opened, appended, finished};

static void open_writer(size_t n_parts)
{
    const struct fl_session_key key = {ROUND, ATTEMPT};
    struct fl_spool_part *parts = calloc(1, sizeof(*parts));
    const struct fl_spool_writer_setup setup = {.frontend = &frontend,
                                                .key = &key,
                                                .client = "edge",
                                                .parts = parts,
                                                .n_parts = n_parts,
                                                .cbs = &cbs};

    ck_assert_ptr_nonnull(parts);
    parts[0] = (struct fl_spool_part){.codec = FL_CODEC_FLOAT32, .bytes = 200};
    order[0] = '\0';
    close_at_once = false;
    ck_assert_int_eq(fl_spool_writer_open(&setup, &writer), FL_OK);
}

static void append(uint64_t offset)
{
    struct fl_spool_piece piece = {.offset = offset, .len = 100, .memory_len = 108};

    piece.memory = calloc(1, piece.memory_len);
    ck_assert_ptr_nonnull(piece.memory);
    piece.data = piece.memory + 8;
    ck_assert_int_eq(fl_spool_writer_append(writer, &piece), FL_OK);
}

TEST_CASE("writer", setup, teardown);

TEST(completions_come_in_the_order_of_asking_and_later)
{
    open_writer(1);
    append(0);
    append(100);
    ck_assert_int_eq(fl_spool_writer_finish(writer), FL_OK);
    ck_assert_str_eq(order, "");
    ck_assert(!fl_spool_writer_idle(writer));
    settle();
    ck_assert(fl_spool_writer_idle(writer));
    ck_assert_int_eq(strncmp(order, "opened 0 0;appended 0 100;appended 0 200;finished ", 50), 0);
    fl_spool_writer_close(writer);
}

TEST(who_closed_it_hears_nothing_more_and_a_later_one_goes_on)
{
    open_writer(1);
    append(0);
    fl_spool_writer_close(writer);
    open_writer(1);
    settle();
    ck_assert_str_eq(order, "opened 0 100;");
    fl_spool_writer_close(writer);
}

TEST(a_completion_may_close_it_with_more_behind)
{
    open_writer(1);
    append(0);
    append(100);
    close_at_once = true;
    settle();
    ck_assert_str_eq(order, "opened 0 0;");
    ck_assert_ptr_null(writer);
}

TEST(what_waits_behind_an_opening_that_fails_fails_too)
{
    char want[64];

    open_writer(0); /* An upload without parts. */
    append(0);
    settle();
    (void)snprintf(want, sizeof(want), "opened %d 0;appended %d 0;", FL_EINVAL, FL_ESTATE);
    ck_assert_str_eq(order, want);
    fl_spool_writer_close(writer);
}

TEST(without_a_lane_it_is_freed_all_the_same)
{
    struct fl_spool_piece piece = {.memory_len = 108};

    open_writer(1);
    append(0);
    fl_worker_thread_free(frontend.setup.io);
    frontend.setup.io = NULL;
    ck_assert_int_eq(fl_spool_writer_append(writer, &piece), FL_ECLOSED);
    fl_spool_writer_close(writer); /* What the lane has done is heard by nobody. */
}
