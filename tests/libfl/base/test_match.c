/* Patterns of names, and conditions on labels. */
#include <check.h>

#include "libfl/base/match.h"
#include "tests/lib/suites.h"

TEST(patterns_match_as_they_say)
{
    ck_assert(fl_name_matches("edge-*", "edge-"));
    ck_assert(fl_name_matches("edge-*", "edge-1"));
    ck_assert(fl_name_matches("*-a-*b", "x-a-a-bb"));
    ck_assert(fl_name_matches("e?ge", "edge"));
    ck_assert(!fl_name_matches("e?ge", "ege"));
    ck_assert(!fl_name_matches("edge-*", "edge"));
    ck_assert(!fl_name_matches("edge", "edge-1"));
    ck_assert(!fl_name_matches("*a", "b"));
    ck_assert(fl_name_matches("*", "anything"));
    ck_assert(fl_name_matches("**?", "a"));
}

TEST(a_name_without_star_or_question_mark_is_no_pattern)
{
    ck_assert(fl_name_is_pattern("edge-*"));
    ck_assert(fl_name_is_pattern("edge-?"));
    ck_assert(!fl_name_is_pattern("edge-1"));
}

static char site[] = "site", rack[] = "rack", berlin[] = "berlin", paris[] = "paris", seven[] = "7";

TEST(values_of_one_key_are_alternatives_and_each_key_has_to_be_fulfilled)
{
    const struct fl_pair wanted[] = {{site, berlin}, {rack, seven}, {site, paris}};
    const struct fl_pair both[] = {{rack, seven}, {site, paris}};
    const struct fl_pair other[] = {{rack, seven}, {site, seven}};

    ck_assert(fl_labels_match(wanted, 3, both, 2));
    ck_assert(!fl_labels_match(wanted, 3, both, 1));
    ck_assert(!fl_labels_match(wanted, 3, other, 2));
    ck_assert(!fl_labels_match(wanted, 3, NULL, 0));
    ck_assert(fl_labels_match(wanted, 1, (const struct fl_pair[]){{site, berlin}}, 1));
}

TEST(without_conditions_all_labels_match)
{
    const struct fl_pair has[] = {{site, berlin}};

    ck_assert(fl_labels_match(NULL, 0, has, 1));
    ck_assert(fl_labels_match(NULL, 0, NULL, 0));
}
