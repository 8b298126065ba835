#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/net/address.h"
#include "libfl/net/conn.h"
#include "tests/lib/suites.h"

/* Addresses. */

static const struct {
    const char *text;
    enum fl_address_kind kind;
    const char *host;
    unsigned port;
    bool loopback;
} good[] = {
    {"127.0.0.1:80", FL_ADDRESS_IP4, "127.0.0.1", 80, true},
    {"127.9.8.7:0", FL_ADDRESS_IP4, "127.9.8.7", 0, true},
    {"10.0.0.1:65535", FL_ADDRESS_IP4, "10.0.0.1", 65535, false},
    {"[::1]:50051", FL_ADDRESS_IP6, "::1", 50051, true},
    {"[::ffff:127.0.0.1]:1", FL_ADDRESS_IP6, "::ffff:127.0.0.1", 1, true},
    {"[2001:db8::2]:1", FL_ADDRESS_IP6, "2001:db8::2", 1, false},
    {"*:7", FL_ADDRESS_ANY, "", 7, false},
    {"localhost:7", FL_ADDRESS_NAME, "localhost", 7, true},
    {"a-b.example_1.org:7", FL_ADDRESS_NAME, "a-b.example_1.org", 7, false},
};

/* Of invitations: a host with or without a port, as a certificate and a firewall need them. */
TEST(a_host_may_have_a_port_of_its_own)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
    } hosts[] = {{"fl.example.org", "fl.example.org", 0},
                 {"fl.example.org:443", "fl.example.org", 443},
                 {"10.0.0.7:7443", "10.0.0.7", 7443},
                 {"2001:db8::7", "2001:db8::7", 0},
                 {"[2001:db8::7]:443", "2001:db8::7", 443}};
    static const char *const none[] = {
        "fl.example.org:0", "fl.example.org:port",    "*:443",
        "unix:/run/fl",     "https://fl.example.org", "[2001:db8::7]"};
    struct fl_address a;
    size_t i;

    for (i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        ck_assert_msg(fl_address_parse_host(hosts[i].text, &a, NULL) == FL_OK, "%s", hosts[i].text);
        ck_assert_str_eq(a.host, hosts[i].host);
        ck_assert_uint_eq(a.port, hosts[i].port);
    }
    for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        ck_assert_msg(fl_address_parse_host(none[i], &a, NULL) == FL_EINVAL, "%s", none[i]);
    }
}

TEST_EACH(each_form_of_address_is_understood, ARRAY_LEN(good))
{
    struct fl_address address;

    ck_assert_int_eq(fl_address_parse(good[_i].text, &address, NULL), FL_OK);
    ck_assert_int_eq((int)address.kind, (int)good[_i].kind);
    ck_assert_str_eq(address.host, good[_i].host);
    ck_assert_uint_eq(address.port, good[_i].port);
    ck_assert_int_eq(fl_address_is_loopback(good[_i].text), good[_i].loopback);
}

TEST(a_unix_path_is_absolute_and_fits)
{
    struct fl_address address;
    struct fl_err err = {0};
    char path[256];

    ck_assert_int_eq(fl_address_parse("unix:/run/fl/x.sock", &address, NULL), FL_OK);
    ck_assert_int_eq((int)address.kind, (int)FL_ADDRESS_UNIX);
    ck_assert_str_eq(address.path, "/run/fl/x.sock");
    ck_assert(fl_address_is_loopback("unix:/x"));
    (void)memset(path, 'a', sizeof(path));
    (void)memcpy(path, "unix:/", 6);
    path[5 + 107] = '\0';
    ck_assert_int_eq(fl_address_parse(path, &address, NULL), FL_OK);
    ck_assert_uint_eq(strlen(address.path), 107);
    path[5 + 107] = 'a';
    path[5 + 108] = '\0';
    ck_assert_int_eq(fl_address_parse(path, &address, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "107 bytes"));
}

static const struct {
    const char *text;
    const char *why;
} bad[] = {
    {"", "the port is missing"},
    {"localhost", "the port is missing"},
    {":80", "the host is missing"},
    {"[]:80", "the host is missing"},
    {"[::1]", "\"]:port\" is missing"},
    {"[::1]80", "\"]:port\" is missing"},
    {"[::1:80", "\"]:port\" is missing"},
    {"::1:80", "needs brackets"},
    {"[localhost]:80", "not an IPv6 address"},
    {"300.1.1.1:80", "not an IPv4 address"},
    {"127.1:80", "not an IPv4 address"},
    {"a b:80", "not a host name"},
    {"a..b:80", "not a host name"},
    {"-a:80", "not a host name"},
    {"a:", "a number from 0 to 65535"},
    {"a:65536", "a number from 0 to 65535"},
    {"a:1x", "a number from 0 to 65535"},
    {"a:-1", "a number from 0 to 65535"},
    {"unix:rel/x", "must be absolute"},
    {"unix:", "must be absolute"},
};

TEST_EACH(a_bad_address_is_refused_with_what_is_wrong, ARRAY_LEN(bad))
{
    struct fl_address address;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_address_parse(bad[_i].text, &address, &err), FL_EINVAL);
    ck_assert_msg(strstr(err.msg, bad[_i].why) != NULL, "%s", err.msg);
    ck_assert(!fl_address_is_loopback(bad[_i].text));
}

TEST(a_host_name_that_is_too_long_is_refused)
{
    struct fl_address address;
    struct fl_err err = {0};
    char text[600];

    (void)memset(text, 'a', sizeof(text));
    (void)memcpy(text + 500, ":1", 3);
    ck_assert_int_eq(fl_address_parse(text, &address, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "too long"));
}

/* Loops. */

static struct fl_loop *new_loop(void)
{
    struct fl_loop *loop = NULL;

    ck_assert_int_eq(fl_loop_create(&loop, NULL), FL_OK);
    return loop;
}

static void stop_loop(void *arg)
{
    fl_loop_stop(arg);
}

#define THREADS 4
#define POSTS   5000

struct order {
    struct fl_loop *loop;
    pthread_t loop_thread;
    unsigned next[THREADS];
    unsigned total;
    bool wrong;
};

struct note {
    struct order *order;
    unsigned thread;
    unsigned number;
};

struct poster {
    struct order *order;
    unsigned thread;
    struct note notes[POSTS];
};

static void on_note(void *arg)
{
    const struct note *note = arg;
    struct order *order = note->order;

    order->wrong = order->wrong || order->next[note->thread] != note->number ||
                   !pthread_equal(pthread_self(), order->loop_thread);
    order->next[note->thread] = note->number + 1;
    if (++order->total == THREADS * POSTS) {
        fl_loop_stop(order->loop);
    }
}

static void post_many(void *arg)
{
    struct poster *poster = arg;
    unsigned i;

    for (i = 0; i < POSTS; i++) {
        poster->notes[i] = (struct note){poster->order, poster->thread, i};
        if (fl_loop_post(poster->order->loop, on_note, &poster->notes[i]) != FL_OK) {
            abort();
        }
    }
}

TEST(posts_of_each_thread_run_in_its_order_on_the_loops_thread)
{
    static struct poster posters[THREADS];
    struct order order = {.loop = new_loop(), .loop_thread = pthread_self()};
    struct fl_thread *threads[THREADS];
    unsigned i;

    for (i = 0; i < THREADS; i++) {
        posters[i].order = &order;
        posters[i].thread = i;
        ck_assert_int_eq(fl_thread_create("poster", post_many, &posters[i], &threads[i], NULL),
                         FL_OK);
    }
    fl_loop_run(order.loop);
    for (i = 0; i < THREADS; i++) {
        fl_thread_join(threads[i]);
    }
    fl_loop_free(order.loop);
    ck_assert(!order.wrong);
    ck_assert_uint_eq(order.total, THREADS * POSTS);
}

static void count_up(void *arg)
{
    ++*(unsigned *)arg;
}

TEST(a_post_never_runs_inside_the_call_and_freeing_runs_what_is_left)
{
    struct fl_loop *loop = new_loop();
    unsigned count = 0;

    ck_assert_int_eq(fl_loop_post(loop, count_up, &count), FL_OK);
    ck_assert_int_eq(fl_loop_post(loop, count_up, &count), FL_OK);
    ck_assert_uint_eq(count, 0);
    fl_loop_free(loop);
    ck_assert_uint_eq(count, 2);
}

TEST(a_stop_before_the_run_ends_it_once)
{
    struct fl_loop *loop = new_loop();

    fl_loop_stop(loop);
    fl_loop_run(loop);
    /* The second run needs a stop of its own. */
    ck_assert_int_eq(fl_loop_post(loop, stop_loop, loop), FL_OK);
    fl_loop_run(loop);
    fl_loop_free(loop);
}

struct ticks {
    struct fl_loop *loop;
    unsigned fired;
    uint64_t at_ns;
};

static void on_tick(void *arg)
{
    struct ticks *ticks = arg;

    ticks->fired++;
    ticks->at_ns = fl_clock_ns();
    fl_loop_stop(ticks->loop);
}

TEST(a_timer_fires_once_and_not_early)
{
    struct ticks ticks = {.loop = new_loop()};
    struct ticks other = {.loop = ticks.loop};
    struct fl_timer *timer = NULL;
    struct fl_timer *stopped = NULL;
    struct fl_timer *closed = NULL;
    uint64_t begin_ns = fl_clock_ns();

    ck_assert_int_eq(fl_timer_create(ticks.loop, on_tick, &ticks, &timer), FL_OK);
    ck_assert_int_eq(fl_timer_create(ticks.loop, on_tick, &other, &stopped), FL_OK);
    ck_assert_int_eq(fl_timer_create(ticks.loop, on_tick, &other, &closed), FL_OK);
    fl_timer_start(timer, 1);
    fl_timer_start(timer, 20); /* Takes the place of the first. */
    fl_timer_start(stopped, 1);
    fl_timer_start(closed, 1);
    fl_timer_stop(stopped);
    fl_timer_close(closed);
    fl_loop_run(ticks.loop);
    ck_assert_uint_eq(ticks.fired, 1);
    ck_assert_uint_eq(other.fired, 0);
    /* One millisecond of grain. */
    ck_assert_uint_ge(ticks.at_ns - begin_ns, 19 * 1000 * 1000);
    ck_assert_uint_le(fl_loop_now(ticks.loop), fl_clock_ms() + 1000);
    fl_timer_close(timer);
    fl_timer_close(stopped);
    fl_timer_close(NULL);
    fl_loop_free(ticks.loop);
}

TEST_ROW(freeing_a_loop_with_an_open_timer_is_a_bug_that_shows, SIGABRT, 0, 0, 1)
{
    struct fl_loop *loop = new_loop();
    struct fl_timer *timer = NULL;

    ck_assert_int_eq(fl_timer_create(loop, on_tick, NULL, &timer), FL_OK);
    fl_loop_free(loop);
}

static void on_signal(void *arg, int signum)
{
    ck_assert_int_eq(signum, SIGUSR1);
    fl_loop_stop(arg);
}

static void raise_usr1(void *arg)
{
    (void)arg;
    (void)kill(getpid(), SIGUSR1);
}

TEST(a_write_past_the_limit_of_file_sizes_is_an_error_and_no_end)
{
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    static const char bytes[8192];
    struct fl_loop *loop = NULL;
    struct fl_err err = {0};
    char path[] = "/tmp/fl-net-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fl_loop_create(&loop, &err), FL_OK);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(fl_fs_pwrite(fd, bytes, sizeof(bytes), 0), FL_ENOSPC);
    (void)close(fd);
    (void)unlink(path);
    fl_loop_free(loop);
}

TEST(a_signal_reaches_the_loop)
{
    struct fl_loop *loop = new_loop();
    struct fl_signal *sig = NULL;

    ck_assert_int_eq(fl_signal_create(loop, SIGKILL, on_signal, loop, &sig), FL_EINVAL);
    ck_assert_int_eq(fl_signal_create(loop, SIGUSR1, on_signal, loop, &sig), FL_OK);
    ck_assert_int_eq(fl_loop_post(loop, raise_usr1, NULL), FL_OK);
    fl_loop_run(loop);
    fl_signal_close(sig);
    fl_signal_close(NULL);
    fl_loop_free(loop);
}

/* Lanes. */

#define JOBS 100

struct lane_test {
    struct fl_loop *loop;
    struct fl_worker_thread *thread;
    pthread_t here;
    unsigned worked;
    unsigned done;
    bool wrong;
};

struct lane_job {
    struct lane_test *test;
    unsigned number;
};

static void work(void *arg)
{
    struct lane_job *job = arg;
    struct lane_test *test = job->test;

    /* Only the lane's thread touches `worked`: posting hands it over. */
    test->wrong =
        test->wrong || test->worked != job->number || pthread_equal(pthread_self(), test->here);
    test->worked++;
}

static void work_done(void *arg)
{
    struct lane_job *job = arg;
    struct lane_test *test = job->test;

    if (test->done != job->number || !pthread_equal(pthread_self(), test->here)) {
        abort();
    }
    if (++test->done == JOBS) {
        fl_loop_stop(test->loop);
    }
}

TEST(a_lane_does_its_jobs_in_order_and_tells_the_loop)
{
    struct lane_test test = {.loop = new_loop(), .here = pthread_self()};
    struct lane_job jobs[JOBS];
    unsigned i;

    ck_assert_int_eq(fl_worker_thread_create("a name longer than sixteen", &test.thread, NULL),
                     FL_OK);
    for (i = 0; i < JOBS; i++) {
        jobs[i] = (struct lane_job){&test, i};
        ck_assert_int_eq(fl_worker_thread_submit(test.thread, work, test.loop, work_done, &jobs[i]),
                         FL_OK);
    }
    fl_loop_run(test.loop);
    ck_assert_uint_eq(fl_worker_thread_pending(test.thread), 0);
    fl_worker_thread_free(test.thread);
    fl_loop_free(test.loop);
    ck_assert_uint_eq(test.worked, JOBS);
    ck_assert_uint_eq(test.done, JOBS);
    ck_assert(!test.wrong);
}

static void wait_for_gate(void *arg)
{
    pthread_mutex_t *gate = arg;

    (void)pthread_mutex_lock(gate);
    (void)pthread_mutex_unlock(gate);
}

TEST(a_lane_says_how_long_its_job_has_been_running)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    struct fl_worker_thread *thread = NULL;

    ck_assert_uint_eq(fl_worker_thread_busy_ms(NULL), 0);
    ck_assert_int_eq(fl_worker_thread_create("lane", &thread, NULL), FL_OK);
    ck_assert_uint_eq(fl_worker_thread_busy_ms(thread), 0);
    (void)pthread_mutex_lock(&gate);
    ck_assert_int_eq(fl_worker_thread_submit(thread, wait_for_gate, NULL, NULL, &gate), FL_OK);
    while (fl_worker_thread_busy_ms(thread) < 3) { /* It only grows. */
        (void)sched_yield();
    }
    ck_assert_uint_eq(fl_worker_thread_waiting_ms(thread), 0); /* It runs. */
    ck_assert_int_eq(fl_worker_thread_submit(thread, wait_for_gate, NULL, NULL, &gate), FL_OK);
    ck_assert_uint_ge(fl_worker_thread_waiting_ms(thread), 1);
    while (fl_worker_thread_waiting_ms(thread) < 3) {
        (void)sched_yield();
    }
    (void)pthread_mutex_unlock(&gate);
    while (fl_worker_thread_pending(thread) > 0) {
        (void)sched_yield();
    }
    ck_assert_uint_eq(fl_worker_thread_busy_ms(thread), 0);
    ck_assert_uint_eq(fl_worker_thread_waiting_ms(thread), 0);
    ck_assert_uint_eq(fl_worker_thread_waiting_ms(NULL), 0);
    fl_worker_thread_free(thread);
}

TEST(freeing_a_lane_finishes_what_is_queued)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    struct fl_worker_thread *thread = NULL;
    unsigned count = 0;
    unsigned i;

    ck_assert_int_eq(fl_worker_thread_create("lane", &thread, NULL), FL_OK);
    (void)pthread_mutex_lock(&gate);
    ck_assert_int_eq(fl_worker_thread_submit(thread, wait_for_gate, NULL, NULL, &gate), FL_OK);
    for (i = 0; i < 10; i++) {
        ck_assert_int_eq(fl_worker_thread_submit(thread, count_up, NULL, NULL, &count), FL_OK);
    }
    ck_assert_uint_eq(fl_worker_thread_pending(thread), 11);
    (void)pthread_mutex_unlock(&gate);
    fl_worker_thread_free(thread);
    fl_worker_thread_free(NULL);
    ck_assert_uint_eq(count, 10);
}

static void read_mask(void *arg)
{
    (void)pthread_sigmask(SIG_SETMASK, NULL, arg);
}

TEST(our_threads_take_no_signals)
{
    struct fl_thread *thread = NULL;
    sigset_t mask;

    (void)sigemptyset(&mask);
    ck_assert_int_eq(fl_thread_create("thread", read_mask, &mask, &thread, NULL), FL_OK);
    fl_thread_join(thread);
    ck_assert_int_eq(sigismember(&mask, SIGTERM), 1);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ck_assert_int_eq(sigismember(&mask, SIGTERM), 0);
}
