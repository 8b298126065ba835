/* Memory that is missing while a message is decoded says nothing about the message. */

#include <check.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/base/err.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"
#include "tests/lib/wire_samples.h"

TEST(an_allocation_that_fails_is_never_blamed_on_the_message)
{
    const struct wire_sample *sample;

    for (sample = wire_samples; sample->name != NULL; sample++) {
        struct fl_buf whole;
        size_t fail_at = 0;
        int rv = FL_ENOMEM;

        fl_buf_init(&whole, 1u << 20);
        ck_assert_int_eq(sample->encode(&whole), FL_OK);
        while (rv != FL_OK) {
            struct fl_err err = {0};
            struct fl_buf out;

            fl_buf_init(&out, 1u << 20);
            failmalloc_start(fail_at, /* and_all_later= */ false);
            rv = sample->recode(whole.data, whole.len, &out, &err);
            (void)failmalloc_stop();
            ck_assert_msg(rv == FL_OK || rv == FL_ENOMEM, "%s: allocation %zu fails: %d (%s)",
                          sample->name, fail_at, rv, fl_err_text(&err, rv));
            fl_buf_done(&out);
            fail_at++;
        }
        fl_buf_done(&whole);
    }
}
