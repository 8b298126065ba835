/* Central settings on a client: what its owner accepts is in force, and the rest has a reason. */
#include <check.h>
#include <string.h>

#include "client/core/central_rules.h"
#include "tests/lib/suites.h"

static char site[] = "site", rack[] = "rack", berlin[] = "berlin", rome[] = "rome", seven[] = "7";
static const struct fl_pair own[] = {{site, rome}, {rack, seven}};
static const struct fl_pair central[] = {{site, berlin}};
static const struct fl_central_limits limits = {64, 2048};

static struct fl_central_rules decide(bool labels, bool schedule, const char *hours)
{
    char *list[] = {(char *)(uintptr_t)hours};
    const struct fl_central_given given = {
        .labels = central, .n_labels = 1, .hours = list, .n_hours = hours != NULL ? 1 : 0};
    const struct fl_central_accept accept = {.labels = labels, .schedule = schedule};
    struct fl_central_rules rules;

    fl_central_decide(&given, &accept, own, 2, &limits, &rules);
    return rules;
}

TEST(a_central_label_replaces_the_clients_own_of_that_key_and_no_other)
{
    struct fl_pair merged[3];

    ck_assert_uint_eq(fl_central_merge(own, 2, central, 1, merged), 2);
    ck_assert_str_eq(merged[0].key, "rack");
    ck_assert_str_eq(merged[0].value, "7");
    ck_assert_str_eq(merged[1].key, "site");
    ck_assert_str_eq(merged[1].value, "berlin");
    ck_assert_uint_eq(fl_central_merge(own, 2, central, 0, merged), 2);
    ck_assert_str_eq(merged[0].value, "rome");
}

TEST(nothing_is_in_force_that_the_owner_does_not_accept)
{
    struct fl_central_rules rules = decide(false, false, "22:00-06:00");

    ck_assert(!rules.labels);
    ck_assert_uint_eq(rules.n_hours, 0);
    ck_assert_str_eq(rules.refused, "labels (the owner's 'accept' does not name them), schedule "
                                    "(the owner's 'accept' does not name it)");
    rules = decide(true, false, "22:00-06:00");
    ck_assert(rules.labels);
    ck_assert_uint_eq(rules.n_hours, 0);
    ck_assert_str_eq(rules.refused, "schedule (the owner's 'accept' does not name it)");
    rules = decide(false, true, "22:00-06:00");
    ck_assert(!rules.labels);
    ck_assert_uint_eq(rules.n_hours, 1);
    ck_assert_uint_eq(rules.hours[0].from, 22 * 60);
}

TEST(settings_without_hours_need_no_schedule_in_accept)
{
    struct fl_central_rules rules = decide(true, false, NULL);

    ck_assert(rules.labels);
    ck_assert_str_eq(rules.refused, "");
}

TEST(hours_that_cannot_be_read_are_no_schedule)
{
    struct fl_central_rules rules = decide(true, true, "nights");

    ck_assert_uint_eq(rules.n_hours, 0);
    ck_assert_str_eq(rules.refused, "schedule (its hours cannot be read)");
}

TEST(labels_that_do_not_fit_beside_the_clients_own_are_refused)
{
    static const struct fl_central_limits few = {1, 2048}, short_ones = {64, 16};
    const struct fl_central_given given = {.labels = central, .n_labels = 1};
    const struct fl_central_accept accept = {.labels = true, .schedule = true};
    struct fl_central_rules rules;

    fl_central_decide(&given, &accept, own, 2, &few, &rules);
    ck_assert(!rules.labels);
    ck_assert_str_eq(rules.refused, "labels (too many or too long with the client's own)");
    fl_central_decide(&given, &accept, own, 2, &short_ones, &rules);
    ck_assert(!rules.labels);
}

TEST(limits_are_in_force_only_where_the_owner_accepts_them)
{
    static char rate[] = "upload_rate", mbit[] = "1 Mbit/s", odd[] = "memory";
    const struct fl_pair pairs[] = {{rate, mbit}}, unknown[] = {{rate, mbit}, {odd, mbit}};
    struct fl_central_given given = {.limits = pairs, .n_limits = 1};
    struct fl_central_accept accept = {.limits = false};
    struct fl_central_rules rules;

    fl_central_decide(&given, &accept, own, 2, &limits, &rules);
    ck_assert(!rules.limited);
    ck_assert_uint_eq(rules.limits.upload_rate, 0);
    ck_assert_str_eq(rules.refused, "limits (the owner's 'accept' does not name them)");
    accept.limits = true;
    fl_central_decide(&given, &accept, own, 2, &limits, &rules);
    ck_assert(rules.limited);
    ck_assert_uint_eq(rules.limits.upload_rate, 125000);
    ck_assert_str_eq(rules.refused, "");
    /* One that a later server sends is refused with the others: no half of them is in force. */
    given = (struct fl_central_given){.limits = unknown, .n_limits = 2};
    fl_central_decide(&given, &accept, own, 2, &limits, &rules);
    ck_assert(!rules.limited);
    ck_assert_uint_eq(rules.limits.upload_rate, 0);
    ck_assert_str_eq(rules.refused,
                     "limits (this client does not know them all, or cannot read them)");
}
