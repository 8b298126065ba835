/* Joining over a real connection: what is lost is asked for again, what is refused is not. */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/daemon/enrol.h"
#include "tests/lib/enrol_server.h"

static struct rig_identity rig;
static struct enrol_server server;
static struct fl_loop *loop;
static struct fl_enrolled enrolled;
static struct fl_err err;
static bool local;

static void setup(void)
{
    rig_identity_now = enrol_server_now();
    rig_identity_setup(&rig);
    ck_assert_int_eq(fl_loop_create(&loop, NULL), FL_OK);
    enrol_server_begin(&server, &rig, &rig.pki, loop);
    err = (struct fl_err){0};
}

static void teardown(void)
{
    fl_enrolled_done(&enrolled);
    enrol_server_end(&server);
    fl_loop_free(loop);
    rig_identity_teardown(&rig);
}

static int join(unsigned tries)
{
    struct fl_enrol_setup enrol = {.loop = loop,
                                   .dir = rig.dir,
                                   .invite = &rig.invite,
                                   .name = "",
                                   .first_ms = 10,
                                   .longest_ms = 20,
                                   .connect_timeout_ms = 600000,
                                   .tries = tries};

    return fl_enrol_run(&enrol, &enrolled, &local, &err);
}

static bool has_identity(void)
{
    struct fl_client_identity identity = {.chain = NULL};
    int rv = fl_client_identity_load(&rig.files, &identity, NULL);

    fl_client_identity_done(&identity);
    return rv == FL_OK;
}

START_TEST(an_invitation_becomes_an_identity)
{
    ck_assert_msg(join(1) == FL_OK, "%s", err.msg);
    ck_assert_str_eq(enrolled.who.name, "edge-001");
    ck_assert_str_eq(enrolled.who.federation, "demo");
    ck_assert(has_identity());
    ck_assert_uint_eq(server.joins, 1);
}
END_TEST

/* The server insists on the first key that an invitation was used with. */
START_TEST(a_lost_reply_is_asked_for_again_with_the_same_key)
{
    server.mode = ENROL_LOSES;
    server.modes_left = 2;
    ck_assert_msg(join(3) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(server.joins, 3);
    ck_assert(has_identity());
}
END_TEST

START_TEST(a_server_that_has_no_time_is_asked_again)
{
    server.mode = ENROL_IS_BUSY;
    server.modes_left = 1;
    ck_assert_msg(join(0) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(server.joins, 2);
}
END_TEST

START_TEST(a_refusal_is_final_and_the_servers_words_are_told)
{
    server.mode = ENROL_DENIES;
    ck_assert_int_eq(join(0), FL_EPERM);
    ck_assert_msg(strstr(err.msg, "this invitation is over") != NULL, "%s", err.msg);
    ck_assert_uint_eq(server.joins, 1);
    ck_assert(!local);
    ck_assert(!has_identity());
}
END_TEST

START_TEST(a_server_with_another_root_never_sees_the_token)
{
    struct rig_pki other;

    rig_pki_make(&other, "demo", enrol_server_now());
    enrol_server_end(&server);
    enrol_server_begin(&server, &rig, &other, loop);
    ck_assert_int_eq(join(0), FL_EPERM);
    ck_assert_uint_eq(server.joins, 0);
    ck_assert_msg(strstr(err.msg, server.address) != NULL, "%s", err.msg);
    rig_pki_free(&other);
}
END_TEST

START_TEST(a_server_that_is_away_is_tried_as_often_as_wanted)
{
    enrol_server_end(&server);
    ck_assert_int_eq(join(3), FL_EUNAVAIL);
    ck_assert(!local);
    enrol_server_begin(&server, &rig, &rig.pki, loop);
    ck_assert_msg(join(1) == FL_OK, "%s", err.msg);
}
END_TEST

START_TEST(a_folder_that_others_can_write_to_ends_it_before_anybody_is_asked)
{
    ck_assert_int_eq(mkdir(rig.dir, 0700), 0);
    ck_assert_int_eq(chmod(rig.dir, 0777), 0);
    ck_assert_int_eq(join(0), FL_EPERM);
    ck_assert(local);
    ck_assert_uint_eq(server.joins, 0);
}
END_TEST

static void stop(void *arg)
{
    fl_loop_stop(arg);
}

START_TEST(it_can_be_stopped_and_goes_on_with_the_same_line)
{
    struct fl_timer *timer = NULL;

    server.mode = ENROL_LOSES;
    ck_assert_int_eq(fl_timer_create(loop, stop, loop, &timer), FL_OK);
    fl_timer_start(timer, 50);
    ck_assert_int_eq(join(0), FL_ECANCELED);
    fl_timer_close(timer);
    server.mode = ENROL_ANSWERS;
    ck_assert_msg(join(1) == FL_OK, "%s", err.msg);
}
END_TEST

START_TEST(an_address_of_six_has_brackets)
{
    struct fl_invite invite = {.host = "2001:db8::1", .port = 7800};
    char address[FL_ENROL_ADDRESS_MAX];

    ck_assert_str_eq(fl_enrol_address(&invite, address), "[2001:db8::1]:7800");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clientd_enrol");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_invitation_becomes_an_identity);
    tcase_add_test(tc, a_lost_reply_is_asked_for_again_with_the_same_key);
    tcase_add_test(tc, a_server_that_has_no_time_is_asked_again);
    tcase_add_test(tc, a_refusal_is_final_and_the_servers_words_are_told);
    tcase_add_test(tc, a_server_with_another_root_never_sees_the_token);
    tcase_add_test(tc, a_server_that_is_away_is_tried_as_often_as_wanted);
    tcase_add_test(tc, a_folder_that_others_can_write_to_ends_it_before_anybody_is_asked);
    tcase_add_test(tc, it_can_be_stopped_and_goes_on_with_the_same_line);
    tcase_add_test(tc, an_address_of_six_has_brackets);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
