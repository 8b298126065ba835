/*
 * What a transfer keeps of the server when nobody reads it: a model that all share while it is
 * served, the whole of it afterwards, and of a file only what is queued. Files are read and
 * differences are made on the io lane. The peer is a foreign client (rawpeer); the front is as much
 * of one as a Fetch looks at.
 */
#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/network/frontend_impl.h"
#include "tests/lib/moves_rig.h"
#include "tests/lib/rawpeer.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

#define KIB     ((size_t)1024)
#define MIB     (KIB * KIB)
#define IDLE_MS 1000

static struct fl_frontend frontend;
static struct fl_download_counts served; /* of all tests */
static struct fl_frontend_client slot;
static struct fl_control_stream stream;
static struct fl_budget budget;
static struct fl_rpc_method methods[3];
static struct rawpeer raw;
static unsigned n_freed;
static size_t n_read; /* bytes of files; of the lane, but while it stands still */
static unsigned n_reads;
static bool read_by_loop;
static int read_code;
static pthread_t loop_thread;
static sem_t disk; /* posted for each read that may happen, where `slow` */
static atomic_bool slow;
static char notice[300];
static char counted[300]; /* "CLIENT ROUND BYTES;" for each download that was */

/* What the linker renames. */
int __real_fl_file_read(const struct fl_file *file, uint64_t offset, void *out, size_t len);
int __wrap_fl_file_read(const struct fl_file *file, uint64_t offset, void *out, size_t len);

int __wrap_fl_file_read(const struct fl_file *file, uint64_t offset, void *out, size_t len)
{
    read_by_loop = read_by_loop || pthread_equal(pthread_self(), loop_thread) != 0;
    if (atomic_load(&slow)) {
        (void)sem_wait(&disk);
    }
    n_read += len;
    n_reads++;
    if (read_code != FL_OK) {
        return read_code;
    }
    return __real_fl_file_read(file, offset, out, len);
}

int __real_fl_differences_get(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE],
                              struct fl_blob **ret);
int __wrap_fl_differences_get(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE],
                              struct fl_blob **ret);
void __wrap_fl_frontend_up(struct fl_frontend *f, struct fl_coord_msg *up);

int __wrap_fl_differences_get(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE],
                              struct fl_blob **ret)
{
    read_by_loop = read_by_loop || pthread_equal(pthread_self(), loop_thread) != 0;
    if (atomic_load(&slow)) {
        (void)sem_wait(&disk);
    }
    n_reads++;
    return read_code != FL_OK ? read_code : __real_fl_differences_get(d, held, ret);
}

void __wrap_fl_frontend_up(struct fl_frontend *f, struct fl_coord_msg *up)
{
    size_t at = strlen(counted);

    ck_assert_ptr_eq(f, &frontend);
    ck_assert_int_eq(up->type, FL_COORD_MSG_FETCHES);
    (void)snprintf(counted + at, sizeof(counted) - at, "%u %u %u;", (unsigned)up->client,
                   (unsigned)up->round, (unsigned)up->bytes);
    fl_coord_msg_free(up);
}

static void on_evict(void *ctx, struct fl_account *account, enum fl_evict why)
{
    (void)why;
    (void)ctx;
    (void)account;
    ck_abort_msg("nobody has to go: the connection's own limit comes first");
}

static void on_notice(void *ctx, const struct fl_call *call, const char *reason, const char *text)
{
    (void)ctx;
    (void)call;
    (void)reason;
    ck_assert_int_eq(fl_str_copy(notice, sizeof(notice), text), FL_OK);
}

static void begin(size_t peer_memory, uint32_t window)
{
    struct fl_h2_setup setup = {.peer = "raw:9", .budget = &budget, .notice = on_notice};
    struct fl_h2 *server = NULL;

    memset(&stream, 0, sizeof(stream)); /* Client 0, token of zeros. */
    slot = (struct fl_frontend_client){.stream = &stream};
    frontend = (struct fl_frontend){.slots = &slot, .n_slots = 1, .setup.downloads = &served};
    methods[0] = (struct fl_rpc_method){"/fl.v1.Federation/Fetch", FL_WHO_ANYBODY, fl_fetch_start,
                                        &frontend};
    methods[1] = (struct fl_rpc_method){"/fl.v1.Federation/PushStatus", FL_WHO_ANYBODY,
                                        fl_push_status_start, &frontend};
    fl_budget_init(&budget, 64 * MIB, 0, on_evict, NULL);
    fl_rpc_limits_default(&setup.limits);
    setup.limits.idle_ms = IDLE_MS;
    setup.limits.message_bytes = 64 * KIB;
    setup.limits.stream_window = 128 * KIB;
    setup.limits.conn_window = 128 * KIB;
    setup.limits.memory = peer_memory;
    setup.methods = methods;
    n_read = n_reads = n_freed = 0;
    read_by_loop = slow = false;
    read_code = FL_OK;
    loop_thread = pthread_self();
    ck_assert_int_eq(sem_init(&disk, 0, 0), 0);
    notice[0] = counted[0] = '\0';
    ck_assert_int_eq(fl_loop_create(&frontend.setup.net, NULL), FL_OK);
    ck_assert_int_eq(fl_worker_thread_create("io", &frontend.setup.io, NULL), FL_OK);
    ck_assert_int_eq(fl_h2_server_create(&setup, &server), FL_OK);
    rawpeer_open(&raw, server, /* server= */ false, window);
    rawpeer_run(&raw);
}

static void hang_up(void)
{
    if (raw.session != NULL) {
        rawpeer_close(&raw);
        raw.session = NULL;
    }
    ck_assert_uint_eq(budget.used, 0);
    ck_assert(fl_list_is_empty(&frontend.fetches));
}

static void end(void)
{
    size_t i;

    hang_up();
    fl_worker_thread_free(frontend.setup.io);
    frontend.setup.io = NULL;
    ck_assert(!read_by_loop);
    for (i = 0; i < FL_FRONTEND_MAX_PAYLOADS; i++) {
        fl_bytes_done(&frontend.payloads[i].bytes);
        fl_differences_unref(frontend.payloads[i].differences);
    }
    fl_loop_free(frontend.setup.net);
}

static void on_freed(void *ctx)
{
    n_freed++;
    free(ctx);
}

static struct fl_blob *new_blob(size_t len)
{
    void *data = calloc(1, len);
    struct fl_blob *blob = NULL;

    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq(fl_blob_wrap(data, len, on_freed, data, &blob), FL_OK);
    return blob;
}

static void stop_loop(void *arg)
{
    fl_loop_stop(arg);
}

static void on_lane(void *arg)
{
    (void)arg;
}

/* Until lane and connection have nothing more to do. */
static void settle(void)
{
    do {
        rawpeer_run(&raw);
        ck_assert_int_eq(fl_worker_thread_submit(frontend.setup.io, on_lane, frontend.setup.net,
                                                 stop_loop, frontend.setup.net),
                         FL_OK);
        fl_loop_run(frontend.setup.net);
        rawpeer_run(&raw);
    } while (frontend.disk.n_submitted > 0);
}

/* As the coordinator does when a round begins; takes what is in `bytes`. */
static void serve_with(const char *name, uint64_t round, struct fl_bytes bytes,
                       struct fl_differences *differences)
{
    struct fl_net_msg *down = calloc(1, sizeof(*down));

    ck_assert_ptr_nonnull(down);
    *down = (struct fl_net_msg){.type = FL_NET_MSG_PAYLOAD,
                                .frontend = &frontend,
                                .client = FL_EVERYBODY,
                                .round = round,
                                .text = fl_str_dup(name),
                                .bytes = bytes,
                                .differences = differences};
    fl_frontend_post(&frontend, down);
    ck_assert_int_eq(fl_loop_post(frontend.setup.net, stop_loop, frontend.setup.net), FL_OK);
    fl_loop_run(frontend.setup.net);
}

static void serve(const char *name, uint64_t round, struct fl_bytes bytes)
{
    serve_with(name, round, bytes, NULL);
}

static void serve_blob(const char *name, uint64_t round, size_t len)
{
    serve(name, round, (struct fl_bytes){.blob = len > 0 ? new_blob(len) : NULL});
}

static void ask_for(struct fl_wire_fetch request, const char *name, unsigned n, bool ends)
{
    struct fl_buf buf;
    uint8_t message[512] = {0};
    size_t len = 0;

    ck_assert_int_eq(fl_str_copy(request.payload, sizeof(request.payload), name), FL_OK);
    fl_buf_init(&buf, sizeof(message) / 2 - 5);
    ck_assert_int_eq(fl_wire_fetch_encode(&request, &buf), FL_OK);
    for (; n > 0; n--) {
        message[len + 4] = (uint8_t)buf.len;
        (void)memcpy(message + len + 5, buf.data, buf.len);
        len += 5 + buf.len;
    }
    (void)rawpeer_request(&raw, "/fl.v1.Federation/Fetch", NULL, message, len, ends);
    rawpeer_run(&raw);
    fl_buf_done(&buf);
}

static void ask(const char *name, uint64_t round, bool ends)
{
    ask_for((struct fl_wire_fetch){.round = round}, name, 1, ends);
}

static void fetch(const char *name, uint64_t round)
{
    ask(name, round, /* ends= */ true);
}

static void fetch_file(const char *name, uint64_t round)
{
    fetch(name, round);
    settle();
}

/* As a link does, until that time. */
static void tick_until(uint64_t until_ms)
{
    uint64_t now_ms;

    for (now_ms = 1; now_ms <= until_ms; now_ms++) {
        if (fl_h2_deadline(raw.other) <= now_ms) {
            fl_h2_tick(raw.other, now_ms);
        }
        rawpeer_run(&raw);
    }
}

TEST(a_model_that_is_served_costs_those_who_do_not_read_it_little)
{
    begin(16 * MIB, 0);
    serve_blob("model", 1, 8 * MIB);
    fetch("model", 1);
    fetch("model", 1);
    ck_assert_uint_eq(fl_h2_calls(raw.other), 2);
    ck_assert_uint_gt(budget.used, 0);
    ck_assert_uint_lt(budget.used, 16 * KIB);
    end();
}

/* How many are served to `shown` (NULL: who shows nothing) by a session of `of` (likewise). */
static size_t served_to(const char *shown, const char *of)
{
    struct fl_identity identity = {.kind = FL_IDENTITY_CERTIFICATE, .role = FL_ROLE_CLIENT};
    size_t n;

    begin(16 * MIB, 0);
    stream.verified = of != NULL;
    (void)snprintf(stream.name, sizeof(stream.name), "%s", of != NULL ? of : "edge-1");
    (void)snprintf(identity.name, sizeof(identity.name), "%s", shown != NULL ? shown : "");
    ck_assert_int_eq(
        fl_h2_identify(raw.other, FL_WHO_ANYBODY, NULL, shown != NULL ? &identity : NULL), FL_OK);
    serve_blob("model", 1, MIB);
    fetch("model", 1);
    n = fl_h2_calls(raw.other);
    end();
    return n;
}

TEST(a_session_is_worth_nothing_on_the_connection_of_somebody_else)
{
    ck_assert_uint_eq(served_to("edge-1", "edge-1"), 1);
    ck_assert_uint_eq(served_to("edge-2", "edge-1"), 0);
    ck_assert_uint_eq(served_to(NULL, "edge-1"), 0);
    ck_assert_uint_eq(served_to("edge-1", NULL), 0);
    ck_assert_uint_eq(served_to(NULL, NULL), 1);
}

TEST(a_model_that_is_no_longer_served_costs_each_transfer_all_of_it_until_it_ends)
{
    begin(20 * MIB, 0);
    serve_blob("model", 1, 8 * MIB);
    fetch("model", 1);
    fetch("model", 1);
    serve_blob("model", 2, 8 * MIB);
    ck_assert_uint_ge(budget.used, 16 * MIB);
    ck_assert_uint_lt(budget.used, 16 * MIB + 16 * KIB);
    ck_assert_uint_eq(n_freed, 0);
    tick_until(2 * IDLE_MS + 2);
    ck_assert_str_eq(notice, "timed out: the client has taken nothing of what is sent for 1000 ms");
    ck_assert(fl_list_is_empty(&frontend.fetches));
    ck_assert_uint_eq(n_freed, 1);
    ck_assert_uint_eq(budget.used, 0);
    end();
    ck_assert_uint_eq(n_freed, 2);
}

TEST(a_transfer_that_would_keep_too_much_of_what_is_no_longer_served_ends)
{
    begin(12 * MIB, 0);
    serve_blob("model", 1, 8 * MIB);
    fetch("model", 1);
    serve_blob("model", 2, 8 * MIB);
    fetch("model", 2);
    ck_assert_uint_eq(n_freed, 0);
    serve_blob("model", 3, 8 * MIB); /* One of the two old ones is room for. */
    rawpeer_run(&raw);
    ck_assert_uint_eq(n_freed, 1);
    ck_assert(!fl_list_is_empty(&frontend.fetches));
    ck_assert_uint_eq(fl_h2_calls(raw.other), 1);
    ck_assert_uint_lt(budget.used, 8 * MIB + 16 * KIB);
    serve_blob("model", 0, 0); /* None is served any more. */
    ck_assert_uint_eq(n_freed, 2);
    end();
    ck_assert_uint_eq(n_freed, 3);
}

TEST(what_is_served_under_another_name_too_is_not_superseded)
{
    struct fl_blob *blob;

    begin(20 * MIB, 0);
    blob = new_blob(8 * MIB);
    serve("candidate", 1, (struct fl_bytes){.blob = fl_blob_ref(blob)});
    serve("model", 2, (struct fl_bytes){.blob = blob});
    fetch("candidate", 1);
    serve_blob("candidate", 2, 8 * MIB);
    ck_assert_uint_lt(budget.used, 16 * KIB);
    serve_blob("model", 3, 8 * MIB);
    ck_assert_uint_ge(budget.used, 8 * MIB);
    end();
}

static uint8_t file_byte(uint64_t at)
{
    return (uint8_t)(at * 31 + (at >> 9));
}

/* A file of `len` bytes, already without a name. */
static struct fl_bytes new_file(size_t len)
{
    char path[] = "/tmp/fl-fetch.XXXXXX";
    int fd = mkstemp(path);
    struct fl_bytes bytes = {.blob = NULL};
    uint8_t *data = malloc(len);
    size_t i;

    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_nonnull(data);
    for (i = 0; i < len; i++) {
        data[i] = file_byte(i);
    }
    ck_assert_int_eq(fl_fs_pwrite(fd, data, len, 0), FL_OK);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(fl_file_open(path, &bytes.file, NULL), FL_OK);
    ck_assert_int_eq(unlink(path), 0);
    free(data);
    return bytes;
}

TEST(of_a_file_that_nobody_reads_a_short_queue_is_held_and_ends_after_the_idle_time)
{
    begin(16 * MIB, 0);
    serve("personal_model", 1, new_file(8 * MIB));
    fetch_file("personal_model", 1);
    fetch_file("personal_model", 1);
    ck_assert_uint_gt(n_read, 512 * KIB);
    ck_assert_uint_gt(budget.used, n_read); /* Nothing is read that is not counted. */
    ck_assert_uint_le(budget.used, 2 * 512 * KIB + 16 * KIB);
    tick_until(2 * IDLE_MS + 2);
    ck_assert(fl_list_is_empty(&frontend.fetches));
    ck_assert_uint_eq(budget.used, 0);
    end();
}

TEST(a_file_arrives_whole_and_in_order_where_it_is_read)
{
    size_t len = 3 * MIB + 17;
    struct fl_buf got;
    uint64_t at = 0;
    size_t next;
    size_t i;

    begin(16 * MIB, 1 << 20);
    fl_buf_init(&got, 4 * MIB);
    raw.mute = true;
    raw.sink = &got;
    serve("personal_model", 1, new_file(len));
    fetch_file("personal_model", 1);
    ck_assert_uint_eq(n_read, len);
    for (next = 0; next < got.len;) {
        const uint8_t *m = got.data + next;
        size_t n = (size_t)m[1] << 24 | (size_t)m[2] << 16 | (size_t)m[3] << 8 | m[4];
        struct fl_wire_chunk chunk;

        ck_assert_int_eq(fl_wire_chunk_decode(m + 5, n, &chunk, NULL), FL_OK);
        ck_assert_uint_eq(chunk.offset, at);
        for (i = 0; i < chunk.len; i++) {
            ck_assert_uint_eq(chunk.data[i], file_byte(at + i));
        }
        at += chunk.len;
        next += 5 + n;
    }
    ck_assert_uint_eq(at, len);
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=0"));
    ck_assert(fl_list_is_empty(&frontend.fetches));
    fl_buf_done(&got);
    end();
}

TEST(a_slow_disk_holds_up_nobody_else)
{
    begin(16 * MIB, 1 << 20);
    raw.mute = true;
    slow = true;
    serve("personal_model", 1, new_file(MIB));
    serve_blob("model", 1, 100 * KIB);
    ask("personal_model", 1, /* ends= */ false);
    ck_assert_uint_ge(budget.used, 128 * KIB); /* What is to be read is counted. */
    fetch("model", 1);
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=0"));
    ck_assert_uint_eq(n_read, 0);
    tick_until(2 * IDLE_MS + 2); /* It is our turn: nobody is late. */
    ck_assert_uint_eq(fl_h2_calls(raw.other), 1);
    slow = false;
    ck_assert_int_eq(sem_post(&disk), 0);
    settle();
    ck_assert_uint_eq(n_read, MIB);
    ck_assert_uint_eq(fl_h2_calls(raw.other), 0);
    end();
}

TEST(of_peers_that_hang_up_while_the_disk_is_slow_little_is_left)
{
    int i;

    begin(16 * MIB, 1 << 20);
    slow = true;
    serve("personal_model", 1, new_file(MIB));
    for (i = 0; i < 20; i++) {
        fetch("personal_model", 1);
    }
    ck_assert_uint_le(fl_worker_thread_pending(frontend.setup.io), 2);
    hang_up(); /* One read is on its way, one is next. */
    slow = false;
    ck_assert_int_eq(sem_post(&disk), 0);
    end();
    ck_assert_uint_le(n_reads, 2);
}

TEST(files_are_read_in_turn)
{
    begin(16 * MIB, 1 << 20);
    raw.mute = true;
    serve("personal_model", 1, new_file(256 * KIB));
    serve("summaries", 1, new_file(3 * MIB));
    fetch("summaries", 1);
    fetch("summaries", 1);
    fetch("summaries", 1);
    fetch("personal_model", 1);
    while (fl_h2_calls(raw.other) == 4) {
        ck_assert_int_eq(fl_worker_thread_submit(frontend.setup.io, on_lane, frontend.setup.net,
                                                 stop_loop, frontend.setup.net),
                         FL_OK);
        fl_loop_run(frontend.setup.net);
        rawpeer_run(&raw);
    }
    ck_assert_uint_lt(n_read, 2 * MIB); /* The short one was done before the long ones. */
    settle();
    ck_assert_uint_eq(fl_h2_calls(raw.other), 0);
    end();
}

TEST(a_file_that_cannot_be_read_ends_its_call)
{
    begin(16 * MIB, 1 << 20);
    read_code = FL_EIO;
    serve("personal_model", 1, new_file(MIB));
    fetch_file("personal_model", 1);
    ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=14"));
    ck_assert(fl_list_is_empty(&frontend.fetches));
    end();
}

TEST_EACH(where_an_upload_goes_on_is_asked_of_its_file_on_the_lane_too, 2)
{
    struct fl_wire_push_status request = {.round = 1, .attempt = 1};
    struct fl_wire_push_status reply = {.received = 1};
    uint8_t message[256] = {0};
    struct fl_buf buf;
    struct fl_buf got;

    begin(16 * MIB, 1 << 20);
    frontend.setup.state_dir = "/nowhere";
    ck_assert_int_eq(fl_str_copy(stream.name, sizeof(stream.name), "edge"), FL_OK);
    fl_buf_init(&buf, sizeof(message) - 5);
    fl_buf_init(&got, 1000);
    raw.sink = &got;
    ck_assert_int_eq(fl_wire_push_status_request_encode(&request, &buf), FL_OK);
    message[4] = (uint8_t)buf.len;
    (void)memcpy(message + 5, buf.data, buf.len);
    (void)rawpeer_request(&raw, "/fl.v1.Federation/PushStatus", NULL, message, 5 + buf.len, true);
    rawpeer_run(&raw);
    ck_assert_uint_eq(got.len, 0);
    if (_i == 0) {
        settle();
        ck_assert_ptr_nonnull(strstr(raw.trace, "grpc-status=0"));
        ck_assert_uint_ge(got.len, 5);
        ck_assert_int_eq(fl_wire_push_status_reply_decode(got.data + 5, got.len - 5, &reply, NULL),
                         FL_OK);
        ck_assert_uint_eq(reply.received, 0);
    }
    fl_buf_done(&buf);
    fl_buf_done(&got);
    end(); /* Otherwise the peer hangs up while the file is asked. */
}

/* --- what changed since a model that the client holds --- */

#define NEWEST 3

static struct fl_layout *layout;
static struct moves_rig server;
static struct fl_buf arrived;

static void serve_model(const char *name, uint64_t round)
{
    struct fl_bytes bytes = {.blob = NULL};
    struct fl_differences *d = NULL;

    ck_assert_int_eq(fl_blob_create(server.bytes, &bytes.blob), FL_OK);
    (void)memcpy(fl_blob_fill(bytes.blob), server.models[NEWEST], server.bytes);
    ck_assert_int_eq(
        fl_differences_create(layout, moves_rig_versions(&server, 1, NEWEST), bytes.blob, &d),
        FL_OK);
    serve_with(name, round, bytes, d);
}

static void begin_moves(uint32_t window)
{
    begin(16 * MIB, window);
    layout = rig_layout();
    moves_rig_init(&server, layout, NULL, NEWEST + 1);
    fl_buf_init(&arrived, 1 << 20);
    raw.mute = true;
    raw.sink = &arrived;
    serve_model("model", 7);
}

static void end_moves(void)
{
    end();
    fl_buf_done(&arrived);
    moves_rig_done(&server);
    fl_layout_free(layout);
}

static void ask_moves(const char *name, size_t held, uint64_t offset, unsigned n)
{
    struct fl_wire_fetch request = {.round = 7, .offset = offset, .has_held = true};

    (void)memcpy(request.held, server.digests[held], sizeof(request.held));
    ask_for(request, name, n, /* ends= */ true);
}

static void fetch_moves(const char *name, size_t held, uint64_t offset)
{
    ask_moves(name, held, offset, 1);
    settle();
}

/* The bytes of the chunks from `offset` on; returns their number. */
static size_t chunks(uint64_t offset, uint8_t *ret)
{
    size_t next = 0;
    size_t n = 0;

    while (next < arrived.len) {
        const uint8_t *m = arrived.data + next;
        size_t len = (size_t)m[1] << 24 | (size_t)m[2] << 16 | (size_t)m[3] << 8 | m[4];
        struct fl_wire_chunk chunk;

        ck_assert_int_eq(fl_wire_chunk_decode(m + 5, len, &chunk, NULL), FL_OK);
        ck_assert_uint_eq(chunk.offset, offset + n);
        (void)memcpy(ret + n, chunk.data, chunk.len);
        n += chunk.len;
        next += 5 + len;
    }
    arrived.len = 0;
    return n;
}

static bool answered(const char *status)
{
    return strstr(raw.trace, status) != NULL && fl_h2_calls(raw.other) == 0;
}

/* The model and a candidate; of the newest model nothing moves. */
TEST_EACH(a_client_that_holds_an_earlier_model_is_sent_what_changed, 4)
{
    size_t held = _i == 3 ? NEWEST : 1;
    const char *name = _i == 1 ? "candidate" : "model";
    uint8_t bytes[64 * KIB];
    char count[64];
    float *model;
    size_t n;

    begin_moves(1 << 20);
    serve_model("candidate", 7);
    fetch_moves(name, held, 0);
    ck_assert(answered("grpc-status=0"));
    n = chunks(0, bytes);
    model = malloc(server.bytes);
    ck_assert_ptr_nonnull(model);
    (void)memcpy(model, server.models[held], server.bytes);
    ck_assert_int_eq(fl_difference_apply(layout, bytes, n, model, NULL), FL_OK);
    ck_assert_mem_eq(model, server.models[NEWEST], server.bytes);
    ck_assert_uint_lt(n, server.bytes / 8);
    (void)snprintf(count, sizeof(count), "0 7 %zu;", n);
    ck_assert_str_eq(counted, _i == 1 ? "" : count); /* No participant downloads a candidate. */
    ck_assert_uint_ge(served.sent[FL_DOWNLOAD_DIFFERENCE], n);
    free(model);
    end_moves();
}

TEST(a_whole_model_is_counted_when_it_is_fetched_from_its_start)
{
    char count[64];

    begin_moves(1 << 20);
    fetch("model", 7);
    (void)snprintf(count, sizeof(count), "0 7 %zu;", server.bytes);
    ck_assert_str_eq(counted, count);
    ask_for((struct fl_wire_fetch){.round = 7, .offset = 4}, "model", 1, true);
    ck_assert_str_eq(counted, count);
    end_moves();
}

TEST(a_download_of_what_changed_goes_on_where_it_broke)
{
    uint8_t whole[64 * KIB];
    uint8_t rest[64 * KIB];
    size_t n;

    begin_moves(1 << 20);
    fetch_moves("model", 1, 0);
    n = chunks(0, whole);
    counted[0] = '\0';
    fetch_moves("model", 1, 5);
    ck_assert_uint_eq(chunks(5, rest), n - 5);
    ck_assert_mem_eq(rest, whole + 5, n - 5);
    ck_assert_str_eq(counted, "");
    raw.trace[0] = '\0';
    fetch_moves("model", 1, n); /* All but the end was received. */
    ck_assert(answered("grpc-status=0"));
    fetch_moves("model", 1, n + 1);
    ck_assert(answered("grpc-status=11"));
    end_moves();
}

/* Model 0 is older than what the server knows; the other payload is sent as a whole only. */
TEST_EACH(where_what_changed_is_not_known_the_client_fetches_the_whole_model, 2)
{
    begin_moves(1 << 20);
    serve_blob("control", 7, KIB);
    fetch_moves(_i == 0 ? "model" : "control", 0, 0);
    ck_assert(answered("grpc-status=9"));
    ck_assert_uint_eq(arrived.len, 0);
    ck_assert_str_eq(counted, "");
    fetch("model", 7);
    ck_assert_uint_gt(arrived.len, server.bytes);
    end_moves();
}

TEST(without_memory_what_changed_is_not_sent_and_the_client_tries_again)
{
    begin_moves(1 << 20);
    read_code = FL_ENOMEM;
    fetch_moves("model", 1, 0);
    ck_assert(answered("grpc-status=14"));
    read_code = FL_OK;
    fetch_moves("model", 1, 0);
    ck_assert(answered("grpc-status=0"));
    end_moves();
}

TEST(what_changed_is_added_up_on_the_io_thread)
{
    begin_moves(1 << 20);
    slow = true;
    serve_blob("control", 7, KIB);
    ask_moves("model", 1, 0, 1);
    fetch("control", 7);
    ck_assert_uint_eq(fl_h2_calls(raw.other), 1);
    tick_until(2 * IDLE_MS + 2);
    ck_assert_uint_eq(fl_h2_calls(raw.other), 1);
    slow = false;
    ck_assert_int_eq(sem_post(&disk), 0);
    settle();
    ck_assert(answered("grpc-status=0"));
    end_moves();
}

TEST(a_peer_that_hangs_up_while_its_download_is_prepared_leaves_nothing)
{
    int i;

    begin_moves(1 << 20);
    slow = true;
    for (i = 0; i < 20; i++) {
        ask_moves("model", 1, 0, 1);
    }
    hang_up();
    slow = false;
    ck_assert_int_eq(sem_post(&disk), 0);
    end_moves();
    ck_assert_uint_le(n_reads, 2);
}

TEST(a_second_request_while_the_download_is_prepared_ends_the_call)
{
    begin_moves(1 << 20);
    slow = true;
    ask_moves("model", 1, 0, 2);
    ck_assert(answered("grpc-status=3"));
    slow = false;
    ck_assert_int_eq(sem_post(&disk), 0);
    settle();
    ck_assert_uint_eq(arrived.len, 0);
    ck_assert_str_eq(counted, "");
    end_moves();
}

/* It is the download that the client asked for, and costs the connection what it takes. */
TEST(a_model_that_is_superseded_while_its_download_is_prepared_is_charged_as_one_before)
{
    size_t used[2];
    int k;

    for (k = 0; k < 2; k++) {
        begin_moves(0);
        slow = k == 1;
        ask_moves("model", 1, 0, 1);
        if (k == 0) {
            settle();
        }
        serve_blob("model", 8, MIB);
        if (k == 1) {
            slow = false;
            ck_assert_int_eq(sem_post(&disk), 0);
            settle();
        }
        ck_assert_uint_eq(fl_h2_calls(raw.other), 1); /* It is not read. */
        used[k] = budget.used;
        end_moves();
    }
    ck_assert_uint_eq(used[0], used[1]);
}
