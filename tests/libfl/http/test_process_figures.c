/* Figures of the own process: what the kernel tells, also after a change. */

#include <fcntl.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/http/process_figures.h"
#include "tests/lib/suites.h"

TEST(open_descriptors_are_counted)
{
    struct fl_process_figures before, after;
    int fds[3];
    size_t i;

    fl_process_figures_read(&before);
    for (i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        ck_assert_int_ge(fds[i], 0);
    }
    fl_process_figures_read(&after);
    ck_assert_uint_eq(after.descriptors, before.descriptors + ARRAY_LEN(fds));
    ck_assert_uint_ge(after.descriptors_max, after.descriptors);
    for (i = 0; i < ARRAY_LEN(fds); i++) {
        (void)close(fds[i]);
    }
}

TEST(memory_threads_and_start_are_plausible)
{
    struct fl_process_figures f;

    fl_process_figures_read(&f);
    ck_assert_uint_gt(f.resident_bytes, 100000);
    ck_assert_uint_gt(f.virtual_bytes, f.resident_bytes);
    ck_assert_uint_ge(f.threads, 1);
    ck_assert_uint_le(f.started_ms, fl_clock_wall_ms() + 1000);
    ck_assert_uint_gt(f.started_ms + 86400000, fl_clock_wall_ms());
}
