#ifndef FL_BASE_FINDINGS_H
#define FL_BASE_FINDINGS_H

/*
 * The findings of a check, in order: all errors of a configuration at once, instead of only the
 * first.
 *
 * A check that can continue after an error passes it to fl_findings_keep() and continues with
 * FL_OK; without a list (NULL) the first error ends the check. So a start, which needs only the
 * first error, and `--check-config` use the same code.
 *
 * Threading: none; the struct belongs to its caller.
 */

#include <stddef.h>

#include "libfl/base/err.h"

/* Further findings are only counted, to keep the output readable. */
#define FL_FINDINGS_MAX 32

struct fl_findings {
    size_t n; /* in `list` */
    size_t left_out;
    struct fl_err list[FL_FINDINGS_MAX];
};

/*
 * Moves the error `rv` with its message in `err` to `all` and returns FL_OK, with `err` cleared.
 * Returns `rv` unchanged when it is FL_OK or FL_ENOMEM, which is no finding, or when `all` is NULL.
 */
FL_MUST_CHECK int fl_findings_keep(struct fl_findings *all, int rv, struct fl_err *err);
/* Add a finding that is no error, such as a warning; does nothing when `all` is NULL. */
FL_PRINTF(2, 3) void fl_findings_note(struct fl_findings *all, const char *fmt, ...);
/* Calls `say` with each finding, in order, then with the number of those left out. */
void fl_findings_each(const struct fl_findings *all, void (*say)(void *ctx, const char *text),
                      void *ctx);
/* Copies the first finding to `err` and returns its code; FL_OK: no finding, or no list. */
FL_MUST_CHECK int fl_findings_first(const struct fl_findings *all, struct fl_err *err);

#endif
