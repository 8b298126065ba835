#include "libfl/base/findings.h"

#include <stdarg.h>
#include <stdio.h>

/* The next free entry; NULL: the list is full. */
static struct fl_err *findings_next(struct fl_findings *all)
{
    if (all->n == FL_FINDINGS_MAX) {
        all->left_out++;
        return NULL;
    }
    return &all->list[all->n++];
}

int fl_findings_keep(struct fl_findings *all, int rv, struct fl_err *err)
{
    struct fl_err *kept;

    if (rv == FL_OK || rv == FL_ENOMEM || all == NULL) {
        return rv;
    }
    kept = findings_next(all);
    if (kept != NULL) {
        (void)fl_err_set(kept, rv, "%s", fl_err_text(err, rv));
    }
    if (err != NULL) {
        *err = (struct fl_err){.code = FL_OK};
    }
    return FL_OK;
}

void fl_findings_note(struct fl_findings *all, const char *fmt, ...)
{
    struct fl_err *kept = all != NULL ? findings_next(all) : NULL;
    va_list ap;

    if (kept == NULL) {
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(kept->msg, sizeof(kept->msg), fmt, ap);
    va_end(ap);
}

int fl_findings_first(const struct fl_findings *all, struct fl_err *err)
{
    if (all == NULL || all->n == 0) {
        return FL_OK;
    }
    if (err != NULL) {
        *err = all->list[0];
    }
    return all->list[0].code;
}

void fl_findings_each(const struct fl_findings *all, void (*say)(void *ctx, const char *text),
                      void *ctx)
{
    char more[64];
    size_t i;

    for (i = 0; i < all->n; i++) {
        say(ctx, all->list[i].msg);
    }
    if (all->left_out > 0) {
        (void)snprintf(more, sizeof(more), "and %zu more", all->left_out);
        say(ctx, more);
    }
}
