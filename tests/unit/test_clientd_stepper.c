/*
 * The session on a loop: what fails while effects are carried out is heard after them, with its
 * reason, and needs no memory for that.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/stepper.h"
#include "tests/lib/failmalloc.h"

static struct world {
    struct fl_loop *loop;
    struct fl_stepper *stepper;
    bool in_effect;
    unsigned connects;
    char lost[256]; /* the trace of the move to OFFLINE */
} w;

/* The first attempt to connect cannot even be begun. */
static void carry_out(void *ctx, const struct fl_session_effect *e)
{
    struct world *world = ctx;

    world->in_effect = true;
    if (e->type == FL_CEFF_CONNECT && ++world->connects == 1) {
        char reason[] = "no route";

        fl_stepper_failed(world->stepper, FL_CEV_DISCONNECTED, (struct fl_round_key){0},
                          FL_FAULT_PASSING, reason);
        (void)memset(reason, 'x', sizeof(reason) - 1); /* The caller's text goes away. */
        world->in_effect = fl_session_state(fl_stepper_session(world->stepper)) ==
                           FL_SESSION_CONNECTING; /* Not heard yet. */
    }
    if (e->type == FL_CEFF_CONNECT && world->connects == 2) {
        fl_loop_stop(world->loop);
    }
    if (e->type == FL_CEFF_TRACE && strstr(e->text, "-> OFFLINE") != NULL) {
        (void)snprintf(world->lost, sizeof(world->lost), "%s", e->text);
    }
}

static void set_up(void)
{
    const struct fl_session_conf conf = {.backoff_ms = 1, .backoff_max_ms = 1};

    (void)memset(&w, 0, sizeof(w));
    ck_assert_int_eq(fl_loop_create(&w.loop, NULL), FL_OK);
    ck_assert_int_eq(fl_stepper_create(&conf, w.loop, carry_out, &w, &w.stepper), FL_OK);
}

static void tear_down(void)
{
    fl_stepper_stop(w.stepper);
    fl_loop_free(w.loop);
    fl_stepper_free(w.stepper);
}

START_TEST(what_fails_at_once_is_heard_after_the_effects_and_without_memory)
{
    struct fl_session_event event = {.type = FL_CEV_START};

    failmalloc_start(0, true);
    fl_stepper_step(w.stepper, &event);
    fl_loop_run(w.loop); /* Until it connects again. */
    (void)failmalloc_stop();
    ck_assert(w.in_effect);
    ck_assert_uint_eq(w.connects, 2);
    ck_assert_ptr_nonnull(strstr(w.lost, "no connection: no route"));
}
END_TEST

START_TEST(one_that_is_stopped_hears_nothing)
{
    struct fl_session_event event = {.type = FL_CEV_START};

    fl_stepper_stop(w.stepper);
    ck_assert(fl_stepper_stopped(w.stepper));
    fl_stepper_step(w.stepper, &event);
    ck_assert_uint_eq(w.connects, 0);
    fl_stepper_stop(w.stepper);
    fl_stepper_stop(NULL);
    fl_stepper_free(NULL);
}
END_TEST

START_TEST(without_memory_there_is_none)
{
    const struct fl_session_conf conf = {.backoff_ms = 1, .backoff_max_ms = 1};
    struct fl_stepper *other = NULL;
    size_t i = 0;
    int rv;

    do {
        failmalloc_start(i++, false);
        rv = fl_stepper_create(&conf, w.loop, carry_out, &w, &other);
        (void)failmalloc_stop();
        ck_assert(rv == FL_OK || rv == FL_ENOMEM);
    } while (rv != FL_OK);
    ck_assert_uint_eq(i, 1 + 3); /* Itself, the session, the timer. */
    fl_stepper_stop(other);
    fl_stepper_free(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clientd_stepper");
    TCase *tc = tcase_create("clientd_stepper");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_fails_at_once_is_heard_after_the_effects_and_without_memory);
    tcase_add_test(tc, one_that_is_stopped_hears_nothing);
    tcase_add_test(tc, without_memory_there_is_none);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
