#ifndef FL_PAGE_OWN_PAGE_H
#define FL_PAGE_OWN_PAGE_H

/*
 * The page of a client for the owner of its device: sentences, facts, the last tasks, limits,
 * errors. Every text is escaped. Pointers are borrowed for the call. Pure.
 */

#include "libfl/page/page.h"

struct fl_page_own_task {
    uint64_t round;
    char asked[64];
    uint64_t began_ms, ended_ms; /* since 1970; ended_ms 0: it is unfinished */
    uint64_t bytes_down, bytes_up, cpu_ms;
    const char *result, *reason; /* reason "": none */
    bool bad;                    /* it failed or was rejected */
};

/* Name, value and a note: a fact at the top, a limit, or an error. */
struct fl_page_own_row {
    const char *name, *value, *note;
};

struct fl_page_own {
    const char *client, *version;
    const char *now, *story, *next;
    bool needs_owner;
    const struct fl_page_own_row *facts, *limits, *errors;
    size_t n_facts, n_limits, n_errors;
    const struct fl_page_own_task *tasks; /* newest first */
    size_t n_tasks;
    const char *kept; /* how many tasks are kept, and since when; one sentence */
};

/* Appends the document. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_page_own(const struct fl_page_own *page, struct fl_buf *out);

#endif
