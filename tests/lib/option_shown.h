#ifndef FL_TESTS_OPTION_SHOWN_H
#define FL_TESTS_OPTION_SHOWN_H

/* The value of an option as text, by its name in the configuration. */

#include <check.h>
#include <string.h>

#include "libfl/conf/options.h"

/* Valid until the next call. */
static inline const char *option_shown(const struct fl_options *options, const char *name)
{
    static char text[256];
    const struct fl_opt_spec *spec = fl_options_specs(options);

    while (spec->name != NULL && strcmp(spec->name, name) != 0) {
        spec++;
    }
    ck_assert_msg(spec->name != NULL, "no option '%s'", name);
    return fl_options_show(options, spec, text, sizeof(text));
}

#endif
