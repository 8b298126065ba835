#ifndef FL_CLIENT_HTTP_CLIENT_REPORT_H
#define FL_CLIENT_HTTP_CLIENT_REPORT_H

/*
 * What a client tells its owner, in sentences that need no knowledge of federated learning: what it
 * does now, what it was asked and sent, what to do next. The page, the terminal (fl-clientd
 * --status) and systemd's STATUS take their sentences from here.
 *
 * Threading: pure functions.
 */

#include "client/core/task_history.h"
#include "libfl/base/buf.h"

#define FL_OWNER_TEXT   800
#define FL_OWNER_WHY    256
#define FL_OWNER_LIMITS 20

/* A limit in force: what it bounds, its value in words, the key of the configuration. */
struct fl_owner_limit {
    const char *what;
    char value[160];
    const char *key;
};

/* A copy of what the daemon knows; no pointers into it. */
struct fl_owner_facts {
    char client[FL_NAME_MAX];
    char server[FL_OWNER_WHY];
    enum fl_session_state state;
    uint64_t now_ms, started_ms; /* since 1970 */
    uint64_t samples;
    uint64_t least_group; /* data summaries are allowed, of at least so many samples; 0: none */
    /* Each "" when it does not apply. */
    char unavailable[FL_OWNER_WHY];                /* the owner does not lend the device now: why */
    char data_trouble[FL_OWNER_WHY];               /* why the data cannot be trained on */
    char trainer[FL_OWNER_WHY];                    /* why the training program does not start */
    bool trainer_starts;                           /* the training program is being started */
    uint64_t certificate_begin_ms, certificate_ms; /* its validity; 0: none, plaintext */
    bool certificate_renews;                       /* without its owner */
    bool kept;                                     /* the history is on disk */
    struct fl_owner_limit limits[FL_OWNER_LIMITS];
    size_t n_limits;
    struct fl_task_history history;
};

struct fl_owner_report {
    char now[FL_OWNER_TEXT]; /* one sentence: what it does, and why not more */
    char
        story[2 * FL_OWNER_TEXT]; /* what it takes part in, its last task, what leaves the device */
    char next[FL_OWNER_TEXT];     /* what its owner can do */
    bool needs_owner;
};

void fl_owner_report(const struct fl_owner_facts *facts, struct fl_owner_report *ret);

/* --- words for a task --- */

#define FL_OWNER_WORDS 64
/* "train, send 3 of 8 layers". Returns `out`. */
const char *fl_owner_asked(const struct fl_task_record *record, char out[FL_OWNER_WORDS]);
/* "accepted", "unfinished" (it runs, or its result waits), … */
const char *fl_owner_result(const struct fl_task_record *record);
/* "12.3 s", "4 min". Returns `out`. */
const char *fl_owner_span(uint64_t ms, char out[FL_OWNER_WORDS]);
/* "2026-11-29 04:33 UTC"; "never" for 0. Returns `out`. */
const char *fl_owner_time(uint64_t ms, char out[FL_OWNER_WORDS]);

/* The report with limits and a table of the last tasks, for a terminal. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_owner_text(const struct fl_owner_facts *facts, struct fl_buf *out);
/* The same as JSON (docs/http.md#tasks). */
FL_MUST_CHECK int fl_owner_json(const struct fl_owner_facts *facts, struct fl_buf *out);
/* The tables of its members (Markdown). */
FL_MUST_CHECK int fl_owner_reference(struct fl_buf *out);
/* The page at "/" of a client. */
FL_MUST_CHECK int fl_owner_page(const struct fl_owner_facts *facts, struct fl_buf *out);

#endif
