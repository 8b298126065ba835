/* The last errors of clients: one each, by name, and no more than there is room for. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "server/runtime/client_errors.h"
#include "tests/lib/suites.h"

static struct fl_client_error error_of(unsigned client, uint64_t at_ms, const char *text)
{
    struct fl_client_error e = {.at_ms = at_ms, .up_ms = at_ms};

    (void)snprintf(e.name, sizeof(e.name), "client-%u", client);
    (void)snprintf(e.text, sizeof(e.text), "%s", text);
    return e;
}

TEST(the_last_error_of_a_client_replaces_the_one_before)
{
    struct fl_errors errors = {.n = 0};
    struct fl_client_error e = error_of(7, 1, "first");

    ck_assert_ptr_null(fl_errors_find(&errors, "client-7"));
    ck_assert_int_eq(fl_errors_set(&errors, &e), FL_OK);
    e = error_of(7, 2, "second");
    ck_assert_int_eq(fl_errors_set(&errors, &e), FL_OK);
    ck_assert_uint_eq(errors.n, 1);
    ck_assert_str_eq(fl_errors_find(&errors, "client-7")->text, "second");
    ck_assert_ptr_null(fl_errors_find(&errors, "client-70"));
    fl_errors_done(&errors);
}

TEST(without_room_the_oldest_goes)
{
    struct fl_errors errors = {.n = 0};
    unsigned i;

    for (i = 0; i < FL_ERRORS_MAX + 10; i++) {
        /* Names come in another order than times. */
        struct fl_client_error e = error_of((i * 7919) % 100000, i, "late");

        ck_assert_int_eq(fl_errors_set(&errors, &e), FL_OK);
    }
    ck_assert_uint_eq(errors.n, FL_ERRORS_MAX);
    for (i = 0; i < FL_ERRORS_MAX + 10; i++) {
        struct fl_client_error e = error_of((i * 7919) % 100000, i, "");
        const struct fl_client_error *found = fl_errors_find(&errors, e.name);

        ck_assert_int_eq(found != NULL, i >= 10);
        ck_assert(found == NULL || found->at_ms == i);
    }
    fl_errors_done(&errors);
}

TEST(a_dropped_error_is_gone_and_the_others_stay)
{
    struct fl_errors errors = {.n = 0};
    unsigned i;

    fl_errors_drop(&errors, "client-1");
    for (i = 0; i < 3; i++) {
        struct fl_client_error e = error_of(i, i, "late");

        ck_assert_int_eq(fl_errors_set(&errors, &e), FL_OK);
    }
    fl_errors_drop(&errors, "client-1");
    fl_errors_drop(&errors, "client-10");
    ck_assert_uint_eq(errors.n, 2);
    ck_assert_ptr_nonnull(fl_errors_find(&errors, "client-0"));
    ck_assert_ptr_null(fl_errors_find(&errors, "client-1"));
    ck_assert_ptr_nonnull(fl_errors_find(&errors, "client-2"));
    fl_errors_done(&errors);
}

static bool is_second(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "client-2") == 0;
}

TEST(old_errors_are_those_of_names_that_nobody_has)
{
    struct fl_client_error old[4];
    struct fl_errors errors = {.n = 0};
    unsigned i;

    for (i = 1; i <= 4; i++) { /* Of the times 100 to 400; the wall clock says nothing. */
        struct fl_client_error e = error_of(i, 100 * i, "late");

        e.at_ms = i == 4 ? 0 : 1u << 30;
        ck_assert_int_eq(fl_errors_set(&errors, &e), FL_OK);
    }
    ck_assert_uint_eq(fl_errors_old(&errors, 1099, 1000, is_second, NULL, old), 0);
    ck_assert_uint_eq(fl_errors_old(&errors, 1300, 1000, is_second, NULL, old), 2);
    ck_assert_str_eq(old[0].name, "client-1");
    ck_assert_str_eq(old[1].name, "client-3");
    ck_assert_uint_eq(fl_errors_old(&errors, 50, 1, is_second, NULL, old), 0);
    fl_errors_done(&errors);
}
