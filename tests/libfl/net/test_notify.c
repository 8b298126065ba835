/* What systemd hears of a daemon: who feeds the watchdog, what status says and how often, pauses.
 */

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libfl/net/failed_start.h"
#include "libfl/net/systemd_status.h"
#include "libfl/net/watchdog.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

/* Without libsystemd nobody is told anything. */
#ifdef HAVE_SYSTEMD
#define TELLS true
#else
#define TELLS false
#endif

static char folder[FOLDER_PATH];
static int manager = -1; /* systemd's end */

static void setup(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    ck_assert(folder_make("notify", folder));
    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/notify", folder);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(manager, 0);
    ck_assert_int_eq(bind(manager, (const struct sockaddr *)&addr, sizeof(addr)), 0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", addr.sun_path, 1), 0);
    ck_assert_int_eq(setenv("RUNTIME_DIRECTORY", folder, 1), 0);
    ck_assert_int_eq(setenv("WATCHDOG_USEC", "4000", 1), 0);
    ck_assert_int_eq(unsetenv("WATCHDOG_PID"), 0);
}

static void tear_down(void)
{
    (void)close(manager);
    folder_remove(folder);
}

/* How many messages hold `text`; all that are there are taken. The last one stays in `last`. */
static char last[512];
static unsigned heard(const char *text)
{
    char message[512];
    unsigned n = 0;
    ssize_t len;

    while ((len = recv(manager, message, sizeof(message) - 1, 0)) > 0) {
        message[len] = '\0';
        if (strstr(message, text) != NULL) {
            (void)snprintf(last, sizeof(last), "%s", message);
            n++;
        }
    }
    return n;
}

/* Turns of a loop that asks, in steps of a millisecond. */
static struct fl_loop *loop, *other;
static struct fl_timer *turn;
static unsigned turns;
static bool (*enough)(void);

static void on_turn(void *arg)
{
    (void)arg;
    turns++;
    if (enough()) {
        fl_loop_stop(loop);
    } else {
        fl_timer_start(turn, 1);
    }
}

static void run_until(bool (*fn)(void))
{
    enough = fn;
    turns = 0;
    fl_timer_start(turn, 1);
    fl_loop_run(loop);
}

static unsigned n_fed; /* meanwhile */

static bool fifty(void)
{
    n_fed = (turns > 1 ? n_fed : 0) + heard("WATCHDOG=1");
    return turns >= 50;
}

static bool fed(void)
{
    return heard("WATCHDOG=1") > 0;
}

static void open_loops(void)
{
    ck_assert_int_eq(fl_loop_create(&loop, NULL), FL_OK);
    ck_assert_int_eq(fl_loop_create(&other, NULL), FL_OK);
    ck_assert_int_eq(fl_timer_create(loop, on_turn, NULL, &turn), FL_OK);
}

static void close_loops(void)
{
    fl_timer_close(turn);
    fl_loop_free(other);
    fl_loop_free(loop);
}

TEST_CASE("manager", setup, tear_down);

TEST_IF(a_loop_that_turns_feeds_the_watchdog, TELLS)
{
    struct fl_watchdog *watchdog = NULL;

    open_loops();
    ck_assert_int_eq(fl_watchdog_create(loop, NULL, &watchdog), FL_OK);
    run_until(fed);
    ck_assert_str_eq(last, "WATCHDOG=1");
    fl_watchdog_close(watchdog);
    close_loops();
}

static void stop_other(void *arg)
{
    fl_loop_stop(arg);
}

TEST_IF(a_loop_that_hangs_beside_one_that_turns_is_not_fed, TELLS)
{
    struct fl_watchdog *watchdog = NULL;

    open_loops();
    ck_assert_int_eq(fl_watchdog_create(loop, other, &watchdog), FL_OK);
    run_until(fifty); /* more than ten spans */
    ck_assert_uint_eq(n_fed, 0);
    ck_assert_int_eq(fl_loop_post(other, stop_other, other), FL_OK);
    fl_loop_run(other); /* It answers the one question that was asked. */
    run_until(fed);
    run_until(fifty);
    ck_assert_uint_eq(n_fed, 0);
    fl_watchdog_close(watchdog);
    close_loops(); /* and the question that waits there frees what was closed */
}

static bool is_healthy;

static bool healthy(void *ctx)
{
    return *(bool *)ctx;
}

TEST_IF(the_watchdog_is_not_fed_while_the_daemon_is_not_healthy, TELLS)
{
    struct fl_watchdog *watchdog = NULL;

    open_loops();
    ck_assert_int_eq(fl_watchdog_create(loop, NULL, &watchdog), FL_OK);
    fl_watchdog_heed(watchdog, healthy, &is_healthy);
    is_healthy = false;
    run_until(fifty);
    ck_assert_uint_eq(n_fed, 0);
    is_healthy = true;
    run_until(fed);
    fl_watchdog_close(watchdog);
    close_loops();
}

TEST(nobody_is_fed_who_was_not_asked_to)
{
    struct fl_watchdog *watchdog = NULL;

    ck_assert_int_eq(unsetenv("WATCHDOG_USEC"), 0);
    open_loops();
    ck_assert_int_eq(fl_watchdog_create(loop, NULL, &watchdog), FL_OK);
    run_until(fifty);
    ck_assert_uint_eq(n_fed, 0);
    fl_watchdog_close(watchdog);
    close_loops();
}

static unsigned n_filled;
static const char *line;

static void fill(void *ctx, char *out, size_t size)
{
    (void)ctx;
    n_filled++;
    (void)snprintf(out, size, "%s", line);
}

static bool told_ninth(void)
{
    return heard("STATUS=the ninth") > 0;
}

TEST_IF(the_status_is_told_when_it_changes_and_not_with_every_event, TELLS)
{
    static const char *const lines[] = {"first", "first", "second", "third", "the ninth"};
    struct fl_status *status = NULL;
    size_t i;

    open_loops();
    ck_assert_int_eq(fl_status_create(loop, fill, NULL, &status), FL_OK);
    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        line = lines[i];
        fl_status_changed(status);
    }
    ck_assert_uint_eq(n_filled, 1);
    ck_assert_uint_eq(heard("STATUS="), 1);
    ck_assert_str_eq(last, "STATUS=first");
    run_until(told_ninth); /* as things stand when the pause is over, without another event */
    ck_assert_uint_eq(n_filled, 2);
    fl_status_changed(status);
    fl_status_close(status);
    close_loops();
    ck_assert_uint_eq(heard("STATUS="), 0);
}

TEST_CASE("starts", setup, tear_down);

TEST(pauses_between_failed_starts_grow_to_the_longest)
{
    static const uint64_t want[] = {0, 0, 2000, 4000, 8000, 16000, 30000, 30000};
    unsigned i;

    for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        ck_assert_uint_eq(fl_start_pause_ms(i, 30000), want[i]);
    }
    ck_assert_uint_eq(fl_start_pause_ms(UINT32_MAX, 300000), 300000);
}

static char logged[256];

static void sink(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    (void)ctx;
    (void)level;
    (void)component;
    (void)snprintf(logged, sizeof(logged), "%s", text);
}

static struct fl_log log_ = {.level = FL_LOG_INFO, .sink = sink};

TEST(the_first_failure_ends_at_once_and_a_signal_ends_the_pause_of_the_second)
{
    sigset_t set;

    /* What comes to be waiting is heard by the pause, however soon it begins. */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);

    ck_assert(fl_start_failed(&log_, 300000));
    ck_assert_str_eq(logged, "");
    ck_assert_int_eq(raise(SIGTERM), 0);
    ck_assert(!fl_start_failed(&log_, 300000));
    ck_assert_ptr_nonnull(strstr(logged, "failures=2 pause_s=2"));
    ck_assert_uint_eq(heard("EXTEND_TIMEOUT_USEC=62000000"), TELLS ? 1 : 0);
    logged[0] = '\0';
    ck_assert(fl_start_failed(&log_, 300000)); /* a first one again */
    ck_assert_str_eq(logged, "");
}

TEST(a_start_that_succeeds_ends_the_series)
{
    ck_assert(fl_start_failed(&log_, 300000));
    fl_start_succeeded();
    ck_assert(fl_start_failed(&log_, 300000));
    ck_assert_str_eq(logged, "");
}

TEST(without_a_service_manager_nobody_counts)
{
    ck_assert_int_eq(unsetenv("RUNTIME_DIRECTORY"), 0);
    ck_assert(fl_start_failed(&log_, 300000));
    ck_assert(fl_start_failed(&log_, 300000));
    ck_assert_str_eq(logged, "");
}
