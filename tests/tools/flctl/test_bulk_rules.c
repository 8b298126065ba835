/* Which clients the verbs of flctl with a pattern or labels are for. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suites.h"
#include "tools/flctl/bulk_rules.h"

static char site[] = "site", berlin[] = "berlin", paris[] = "paris";
static const struct fl_pair in_berlin[] = {{site, berlin}}, in_paris[] = {{site, paris}};

TEST(pattern_and_labels_both_have_to_match)
{
    const struct fl_bulk_choice choice = {.pattern = "edge-*", .labels = in_berlin, .n_labels = 1};
    struct fl_bulk_client c = {
        .name = "edge-1", .state = "idle", .labels = in_berlin, .n_labels = 1};

    ck_assert(fl_bulk_chosen(&choice, FL_VERB_CLIENTS_QUARANTINE, &c));
    c.labels = in_paris;
    ck_assert(!fl_bulk_chosen(&choice, FL_VERB_CLIENTS_QUARANTINE, &c));
    c.n_labels = 0;
    ck_assert(!fl_bulk_chosen(&choice, FL_VERB_CLIENTS_QUARANTINE, &c));
    c = (struct fl_bulk_client){
        .name = "core-1", .state = "idle", .labels = in_berlin, .n_labels = 1};
    ck_assert(!fl_bulk_chosen(&choice, FL_VERB_CLIENTS_QUARANTINE, &c));
}

TEST(clients_for_which_the_verb_changes_nothing_are_not_chosen)
{
    static const struct {
        enum fl_verb verb;
        const char *state;
        bool chosen;
    } cases[] = {
        {FL_VERB_CLIENTS_RELEASE, "quarantined", true}, {FL_VERB_CLIENTS_RELEASE, "idle", false},
        {FL_VERB_CLIENTS_QUARANTINE, "idle", true},     {FL_VERB_CLIENTS_QUARANTINE, "gone", false},
        {FL_VERB_SUMMARIES_DROP, "gone", false},        {FL_VERB_CLIENTS_FORGET, "gone", true}};
    const struct fl_bulk_choice all = {.pattern = "*"};
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct fl_bulk_client c = {.name = "a", .state = cases[i].state};

        ck_assert_msg(fl_bulk_chosen(&all, cases[i].verb, &c) == cases[i].chosen, "case %zu", i);
    }
}

TEST(certificates_are_chosen_by_role_and_state)
{
    static const struct {
        enum fl_verb verb;
        const char *role, *state;
        bool chosen;
    } cases[] = {{FL_VERB_REVOKE, "client", "valid", true},
                 {FL_VERB_REVOKE, "client", "lapsed", true},
                 {FL_VERB_REVOKE, "client", "disabled", true},
                 {FL_VERB_REVOKE, "client", "revoked", false},
                 {FL_VERB_REVOKE, "client", "replaced", false},
                 {FL_VERB_REVOKE, "admin", "valid", false},
                 {FL_VERB_DISABLE, "admin", "valid", false},
                 {FL_VERB_DISABLE, "client", "valid", true},
                 {FL_VERB_DISABLE, "client", "disabled", false},
                 {FL_VERB_ENABLE, "client", "disabled", true},
                 {FL_VERB_ENABLE, "client", "valid", false},
                 {FL_VERB_EVICT, "client", "valid", true},
                 {FL_VERB_EVICT, "client", "over", false}};
    const struct fl_bulk_choice all = {.pattern = "*"};
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct fl_bulk_client c = {
            .name = "a", .role = cases[i].role, .state = cases[i].state};

        ck_assert_msg(fl_bulk_chosen(&all, cases[i].verb, &c) == cases[i].chosen, "case %zu", i);
    }
}

TEST(names_are_sorted_and_each_stands_once)
{
    const char *names[] = {"b", "a", "b", "c", "a"};

    ck_assert_uint_eq(fl_bulk_sort(names, 5), 3);
    ck_assert_str_eq(names[0], "a");
    ck_assert_str_eq(names[1], "b");
    ck_assert_str_eq(names[2], "c");
    ck_assert_uint_eq(fl_bulk_sort(NULL, 0), 0);
}

TEST(a_long_list_of_names_is_cut_with_its_length)
{
    const char *names[] = {"a", "b", "c", "d"};
    char text[64];

    ck_assert_str_eq(fl_bulk_text(names, 4, 2, text, sizeof(text)), "a, b and 2 more");
    ck_assert_str_eq(fl_bulk_text(names, 4, 4, text, sizeof(text)), "a, b, c, d");
    ck_assert_str_eq(fl_bulk_text(names, 4, 3, text, 6), "a, b,");
}

TEST(a_label_is_split_at_its_first_equals_sign)
{
    struct fl_pair pair;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_bulk_label("site=a=b", &pair, &err), FL_OK);
    ck_assert_str_eq(pair.key, "site");
    ck_assert_str_eq(pair.value, "a=b");
    free(pair.key);
    free(pair.value);
    ck_assert_int_eq(fl_bulk_label("=a", &pair, &err), FL_EINVAL);
    ck_assert_int_eq(fl_bulk_label("site", &pair, &err), FL_EINVAL);
    ck_assert_msg(strstr(err.msg, "expected KEY=VALUE") != NULL, "%s", err.msg);
}
