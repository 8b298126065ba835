/* What two configurations differ in, and what follows from it. */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "server/core/settings.h"
#include "tests/lib/suites.h"

static struct fl_settings list_of(enum fl_setting_kind kind, const char *name, const char *value)
{
    struct fl_settings s = {.n = 0};

    ck_assert_int_eq(fl_settings_add(&s, kind, name, value), FL_OK);
    return s;
}

/* What comes of the change, as letters: update, kept, summary, score, and told. */
static const char *verdict(const struct fl_settings *a, const struct fl_settings *b)
{
    static char text[128];
    struct fl_settings_verdict v;

    ck_assert_int_eq(fl_settings_compare(a, b, &v), FL_OK);
    (void)snprintf(text, sizeof(text), "%s%s%s%s", v.update ? "u" : "", v.kept ? "k" : "",
                   v.summary ? "o" : "", v.score ? "s" : "");
    if (v.n > 0) {
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s: %s -> %s",
                       v.list[0].name, v.list[0].before, v.list[0].after);
    }
    fl_settings_verdict_done(&v);
    return text;
}

TEST_EACH(each_kind_has_its_consequence, 5)
{
    static const struct {
        enum fl_setting_kind kind;
        const char *expected;
    } rows[] = {
        {FL_SETTING_FIGURE, " x: 1 -> 2"},
        {FL_SETTING_UPDATE, "u x: 1 -> 2"},
        {FL_SETTING_KEPT, "k"},
        {FL_SETTING_SUMMARY, "o"},
        {FL_SETTING_SCORE, "s"},
    };
    struct fl_settings a = list_of(rows[_i].kind, "x", "1");
    struct fl_settings b = list_of(rows[_i].kind, "x", "2");

    ck_assert_str_eq(verdict(&a, &b), rows[_i].expected);
    ck_assert_str_eq(verdict(&a, &a), "");
    fl_settings_done(&a);
    fl_settings_done(&b);
}

TEST(a_rate_counts_as_an_update_where_either_side_divides_by_it)
{
    struct fl_settings a = list_of(FL_SETTING_UPDATE, "rate", "0.1");
    struct fl_settings b = list_of(FL_SETTING_FIGURE, "rate", "0.2");

    ck_assert_str_eq(verdict(&a, &b), "u rate: 0.1 -> 0.2");
    ck_assert_str_eq(verdict(&b, &a), "u rate: 0.2 -> 0.1");
    fl_settings_done(&a);
    fl_settings_done(&b);
}

TEST(an_option_that_only_one_version_knows_changed_nothing)
{
    struct fl_settings none = {.n = 0};
    struct fl_settings figure = list_of(FL_SETTING_FIGURE, "x", "1");
    struct fl_settings component = list_of(FL_SETTING_UPDATE, "x", "1");
    struct fl_settings_verdict v;

    ck_assert_str_eq(verdict(&none, &figure), "");
    ck_assert_str_eq(verdict(&figure, &none), "");
    ck_assert_str_eq(verdict(&none, &component), "u x:  -> 1");
    ck_assert_str_eq(verdict(&component, &none), "u x: 1 -> ");
    /* It is written down all the same, for the next comparison. */
    ck_assert_int_eq(fl_settings_compare(&none, &figure, &v), FL_OK);
    ck_assert(v.rewrite && v.n == 0);
    fl_settings_verdict_done(&v);
    fl_settings_done(&figure);
    fl_settings_done(&component);
}

TEST(the_digest_is_of_the_layout_and_of_what_an_update_means)
{
    static const uint8_t one[FL_DIGEST_SIZE] = {1};
    static const uint8_t two[FL_DIGEST_SIZE] = {2};
    struct fl_settings a = list_of(FL_SETTING_UPDATE, "x", "1");
    struct fl_settings b = list_of(FL_SETTING_UPDATE, "x", "1");
    struct fl_settings c = list_of(FL_SETTING_UPDATE, "x1", "");
    uint8_t da[FL_DIGEST_SIZE];
    uint8_t db[FL_DIGEST_SIZE];

    ck_assert_int_eq(fl_settings_add(&b, FL_SETTING_FIGURE, "rounds", "9"), FL_OK);
    ck_assert_int_eq(fl_settings_meaning(&a, one, da), FL_OK);
    ck_assert_int_eq(fl_settings_meaning(&b, one, db), FL_OK);
    ck_assert_int_eq(memcmp(da, db, sizeof(da)), 0);
    ck_assert_int_eq(fl_settings_meaning(&b, two, db), FL_OK);
    ck_assert_int_ne(memcmp(da, db, sizeof(da)), 0);
    ck_assert_int_eq(fl_settings_meaning(&c, one, db), FL_OK);
    ck_assert_int_ne(memcmp(da, db, sizeof(da)), 0);
    fl_settings_done(&a);
    fl_settings_done(&b);
    fl_settings_done(&c);
}

TEST_EACH(a_strategy_says_what_is_kept_and_collection, 9)
{
    static const struct {
        const char *preset, *kept;
        bool summaries, scales;
    } rows[] = {
        {"fedavg", "", false, false},
        {"scaffold", "scaffold.control", false, false},
        {"feddyn", "feddyn.displacement_sum", false, true},
        {"ditto", "own.personal", false, false},
        {"fedrep", "", false, false}, /* The head follows from the layout: kept.local. */
        {"lean", "", false, false},
        {"fedmcsa", "own.personal", false, false},
        {"fedmix", "", true, false},
        {"igfl_ta", "igfl_c.displacement update.previous", false, false},
    };
    struct fl_settings s = {.n = 0};
    struct fl_strategy *strategy = NULL;

    ck_assert_int_eq(fl_strategy_create(rows[_i].preset, &strategy, NULL), FL_OK);
    ck_assert_int_eq(fl_settings_add_strategy(&s, strategy), FL_OK);
    ck_assert_str_eq(fl_settings_find(&s, "kept"), rows[_i].kept);
    ck_assert_int_eq(fl_settings_find(&s, "summary")[0] != '\0', rows[_i].summaries);
    ck_assert_int_eq(fl_strategy_scales_updates(strategy), rows[_i].scales);
    fl_settings_done(&s);
    fl_strategy_free(strategy);
}

TEST(no_two_policies_keep_state_under_one_name)
{
    const struct fl_policy *const *p;
    const struct fl_policy *const *q;
    const char *seen[64];
    size_t n = 0;
    size_t i;
    size_t j;

    /* A checkpoint's files are found by these names, whatever components wrote them. */
    for (p = fl_strategy_policies(FL_COMPONENT_AGGREGATE); *p != NULL; p++) {
        const struct fl_aggregate_ops *a = (const void *)*p;

        for (i = 0; i < a->n_state; i++) {
            ck_assert_uint_lt(n, sizeof(seen) / sizeof(seen[0]));
            seen[n++] = a->state_names[i];
        }
    }
    for (q = fl_strategy_policies(FL_COMPONENT_SOLVER); *q != NULL; q++) {
        const struct fl_solver_ops *s = (const void *)*q;

        for (i = 0; s->server != NULL && i < s->server->n_state; i++) {
            ck_assert_uint_lt(n, sizeof(seen) / sizeof(seen[0]));
            seen[n++] = s->server->state_names[i];
        }
    }
    ck_assert_uint_gt(n, 3);
    for (i = 0; i < n; i++) {
        for (j = 0; j < i; j++) {
            ck_assert_str_ne(seen[i], seen[j]);
        }
    }
}
