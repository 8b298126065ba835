/*
 * A server without memory: what can be refused is refused, and no message that a client or the
 * coordinator waits for is dropped silently. The coordinator runtime makes the messages, the
 * network front end below it (server/network) takes them.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/log_out.h"
#include "server/daemon/serverd_exit.h"
#include "server/network/frontend_impl.h"
#include "server/runtime/runtime_impl.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"

/* What the linker renames: what the coordinator hears. */
void __wrap_fl_frontend_up(struct fl_frontend *frontend, struct fl_coord_msg *up);

static struct fl_log_out out = {.fd = STDERR_FILENO};
static struct fl_log log_ = {.level = FL_LOG_INFO, .sink = fl_log_out_sink, .ctx = &out};
static struct fl_runtime runtime = {.setup = {.log = &log_}};
static struct fl_frontend frontend = {.setup = {.log = &log_}, .n_units = 2};
static struct fl_coord_msg *heard;

void __wrap_fl_frontend_up(struct fl_frontend *to, struct fl_coord_msg *up)
{
    ck_assert_ptr_eq(to, &frontend);
    ck_assert_ptr_null(heard);
    heard = up;
}

static void tear_down(void)
{
    fl_coord_msg_free(heard);
    heard = NULL;
    if (frontend.n_slots > 0) {
        free(frontend.slots[0].units);
    }
    free(frontend.slots);
    frontend.slots = NULL;
    frontend.n_slots = 0;
}

TEST_CASE("serverd_memory", NULL, tear_down);

/* Each of these ends the process with FL_EXIT_FAILURE; the test fails when it comes back. */
TEST_ROW(a_command_ends_the_server_rather_than_to_be_lost, 0, FL_EXIT_FAILURE, 0, 5)
{
    const uint8_t units[2] = {1, 0};
    struct fl_net_msg grant = {.type = FL_NET_MSG_COMMAND,
                               .command = {.type = FL_WIRE_PLAN},
                               .units = (uint8_t *)(uintptr_t)units};

    failmalloc_start(0, true);
    switch (_i) {
    case 0:
        (void)fl_net_msg_new(&runtime, FL_NET_MSG_COMMAND);
        break;
    case 1: /* The plan of a Task; without it the Task would say another thing. */
        (void)fl_net_msg_copy(&runtime, units, sizeof(units));
        break;
    case 2:
        (void)fl_net_msg_text(&runtime, "why");
        break;
    case 3: /* The client is not here yet, and will push by this grant. */
        fl_control_stream_down(&frontend, &grant);
        break;
    default: /* The session is gone, and there is no way to say so. */
        grant.text = (char *)(uintptr_t) "edge";
        fl_control_stream_joined(&frontend, &grant);
        break;
    }
    (void)failmalloc_stop();
}

TEST(what_is_not_there_is_not_copied)
{
    ck_assert_ptr_null(fl_net_msg_text(&runtime, NULL));
    ck_assert_ptr_null(fl_net_msg_copy(&runtime, NULL, 5));
}

TEST(a_grant_needs_no_memory_of_its_own)
{
    struct fl_net_msg down = {
        .type = FL_NET_MSG_COMMAND,
        .command = {.type = FL_WIRE_PLAN, .u.plan = {.round = 7, .attempt = 2}}};
    uint8_t *units = calloc(2, 1);
    size_t n;

    ck_assert_ptr_nonnull(units);
    ck_assert_ptr_nonnull(fl_frontend_client_at(&frontend, 0));
    down.units = units;
    failmalloc_start(0, true);
    fl_control_stream_down(&frontend, &down);
    n = failmalloc_stop();
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_null(down.units);
    ck_assert_ptr_eq(frontend.slots[0].units, units);
    ck_assert_uint_eq(frontend.slots[0].grant.round, 7);
    ck_assert_uint_eq(frontend.slots[0].grant.attempt, 2);
}

TEST(a_session_that_finds_no_place_is_told_as_lost)
{
    char name[] = "edge";
    struct fl_net_msg down = {.type = FL_NET_MSG_JOINED, .client = 3, .text = name};

    failmalloc_start(0, false); /* Its place; then there is memory again. */
    fl_control_stream_joined(&frontend, &down);
    (void)failmalloc_stop();
    ck_assert_ptr_nonnull(heard);
    ck_assert_int_eq(heard->type, FL_COORD_MSG_LOST);
    ck_assert_uint_eq(heard->client, 3);
}
