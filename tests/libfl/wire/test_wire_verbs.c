/* The verbs of operators are the methods of fl.v1.Admin: no verb without a method, no method
 * without a verb. */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "libfl/wire/verbs.h"
#include "tests/lib/suites.h"

static const ProtobufCServiceDescriptor *const service = &fl__v1__admin__descriptor;

static const char *path_of(unsigned method, char out[128])
{
    (void)snprintf(out, 128, "/%s/%s", service->name, service->methods[method].name);
    return out;
}

TEST(every_method_of_the_proto_has_a_verb)
{
    char path[128];
    unsigned i;

    for (i = 0; i < service->n_methods; i++) {
        int verb = 0;

        (void)path_of(i, path);
        while (verb < FL_VERB_N && strcmp(fl_verbs[verb].path, path) != 0) {
            verb++;
        }
        ck_assert_msg(verb < FL_VERB_N, "%s has no row in libfl/wire/verbs.h", path);
    }
}

TEST(every_verb_has_its_method_in_the_proto)
{
    char path[128];
    int verb;

    for (verb = 0; verb < FL_VERB_N; verb++) {
        unsigned i = 0;

        while (i < service->n_methods && strcmp(path_of(i, path), fl_verbs[verb].path) != 0) {
            i++;
        }
        ck_assert_msg(i < service->n_methods, "flctl %s: proto/ has no %s", fl_verbs[verb].name,
                      fl_verbs[verb].path);
    }
}

TEST(verbs_of_one_method_stand_together_and_names_are_unique)
{
    int a;
    int b;

    for (a = 0; a < FL_VERB_N; a++) {
        for (b = a + 1; b < FL_VERB_N; b++) {
            ck_assert_str_ne(fl_verbs[a].name, fl_verbs[b].name);
            if (strcmp(fl_verbs[a].path, fl_verbs[b].path) == 0) {
                ck_assert_str_eq(fl_verbs[b - 1].path, fl_verbs[b].path);
                ck_assert_int_eq(fl_verbs[a].access, fl_verbs[b].access);
            }
        }
    }
}

TEST(verbs_that_change_something_are_recorded_and_others_are_not)
{
    int verb;

    for (verb = 0; verb < FL_VERB_N; verb++) {
        ck_assert_msg((fl_verbs[verb].audit != NULL) == (fl_verbs[verb].access == FL_VERB_ACTS),
                      "flctl %s", fl_verbs[verb].name);
    }
}
