#ifndef FL_TESTS_STRATEGY_FIXTURE_H
#define FL_TESTS_STRATEGY_FIXTURE_H

/* Options of a policy from "name=value" texts, ended by NULL. */

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libfl/strategy/policy.h"

static inline struct fl_options *options_of(const struct fl_policy *policy, ...)
{
    struct fl_options *o = NULL;
    struct fl_err err = {0};
    const char *text;
    va_list ap;

    ck_assert_int_eq(fl_options_create(policy->options, &o), FL_OK);
    va_start(ap, policy);
    while ((text = va_arg(ap, const char *)) != NULL) {
        char name[64];
        const char *eq = strchr(text, '=');

        ck_assert_ptr_nonnull(eq);
        (void)snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text);
        ck_assert_msg(fl_options_set(o, name, eq + 1, &err) == FL_OK, "%s", err.msg);
    }
    va_end(ap);
    return o;
}

#endif
