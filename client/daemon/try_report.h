#ifndef FL_CLIENTD_TRY_REPORT_H
#define FL_CLIENTD_TRY_REPORT_H

/*
 * The report of --try-trainer: one line for each check as it ends, or one JSON object at the end.
 */

#include <stddef.h>
#include <stdio.h>

#include "libfl/json/json.h"

enum fl_try_result {
    FL_TRY_OK,
    FL_TRY_WARNING,   /* the program can take part nevertheless */
    FL_TRY_NOT_TRIED, /* the text says why */
    FL_TRY_FAILED
};

struct fl_try_report {
    FILE *out; /* borrowed */
    bool json;
    json_t *object, *checks; /* `checks` is in `object` at the end; NULL when memory was short */
    size_t n[FL_TRY_FAILED + 1];
};

void fl_try_report_begin(struct fl_try_report *report, FILE *out, bool json);
/* Report one check: `what` names it, the text is the result. */
FL_PRINTF(4, 5)
void fl_try_say(struct fl_try_report *report, enum fl_try_result result, const char *what,
                const char *fmt, ...);
/* Text output only: a detail line below the last check. */
FL_PRINTF(2, 3)
void fl_try_add_line(struct fl_try_report *report, const char *fmt, ...);
/* JSON output only: set a member of the object. Takes `value`; NULL leaves it out. */
void fl_try_set(struct fl_try_report *report, const char *key, json_t *value);
/* Print the summary line or the JSON object. True: nothing failed. */
bool fl_try_report_end(struct fl_try_report *report);

#endif
