#ifndef FL_BASE_FINDINGS_H
#define FL_BASE_FINDINGS_H

/*
 * What a check found, in order: all errors of a configuration at once, not one after each attempt.
 *
 * A check that can go on after an error hands it to fl_findings_keep() and goes on with FL_OK;
 * without a list (NULL) the first error ends it. So a start, which needs only the first one, and
 * `--check-config` are the same code.
 *
 * Threading: none; the struct belongs to its caller.
 */

#include <stddef.h>

#include "libfl/base/err.h"

/* More than these are only counted: a wrong file must not fill a screen. */
#define FL_FINDINGS_MAX 32

struct fl_findings {
    size_t n; /* in `list` */
    size_t left_out;
    struct fl_err list[FL_FINDINGS_MAX];
};

/*
 * Puts what `err` says of `rv` into `all` and returns FL_OK with `err` empty. `rv` as it is: FL_OK,
 * FL_ENOMEM, which is no finding, and without `all`.
 */
FL_MUST_CHECK int fl_findings_keep(struct fl_findings *all, int rv, struct fl_err *err);
/* A finding that is no error, such as a warning; without `all` nothing. */
FL_PRINTF(2, 3) void fl_findings_note(struct fl_findings *all, const char *fmt, ...);
/* `say` with each of them, in order, then how many there was no room for. */
void fl_findings_each(const struct fl_findings *all, void (*say)(void *ctx, const char *text),
                      void *ctx);
/* The first one into `err`, and its code; FL_OK: there is none, or no list. */
FL_MUST_CHECK int fl_findings_first(const struct fl_findings *all, struct fl_err *err);

#endif
