#ifndef FL_TESTS_EACH_PRESET_H
#define FL_TESTS_EACH_PRESET_H

/* For tests of every preset: TEST_EACH(name, each_preset_count()), with each_preset(_i). */

#include <stddef.h>

#include "libfl/strategy/strategy.h"

static inline const char *each_preset(int i)
{
    return fl_strategy_presets()[i].name;
}

static inline int each_preset_count(void)
{
    int n = 0;

    while (each_preset(n) != NULL) {
        n++;
    }
    return n;
}

#endif
