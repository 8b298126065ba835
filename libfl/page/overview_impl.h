#ifndef FL_PAGE_OVERVIEW_IMPL_H
#define FL_PAGE_OVERVIEW_IMPL_H

/* What pages have in common: frame, texts, and the views of a federation. */

#include "libfl/page/chart.h"
#include "libfl/page/page.h"

enum fl__page_kind {
    FL_PAGE_FILE, /* no links to other pages */
    FL_PAGE_FIXED,
    FL_PAGE_LIVE, /* fetched again by the script */
    FL_PAGE_ALONE /* likewise, and the only page of its port */
};
/* Begin a document up to <main>. */
void fl__page_begin(struct fl_html *html, const char *title, const char *federation,
                    enum fl__page_kind kind);
void fl__page_end(struct fl_html *html, const char *version);

/* The value of a figure of a round; FL_CHART_UNKNOWN when it is not known. */
double fl__page_figure(const struct fl_round_rec *record, enum fl_round_figure figure);

/* The phases of a round that its figures have, in the order in which they happen. */
#define FL_PAGE_PHASES(X)            \
    X(selecting_ms, "selecting")     \
    X(training_ms, "training")       \
    X(planning_ms, "planning")       \
    X(uploading_ms, "uploading")     \
    X(aggregating_ms, "aggregating") \
    X(evaluating_ms, "evaluating")
enum fl__page_phase {
#define X(member, text) FL_PAGE_PHASE_##member,
    FL_PAGE_PHASES(X)
#undef X
        FL_PAGE_PHASE_commit,
    FL_PAGE_PHASE_N
};
extern const char *const fl__page_phase_names[FL_PAGE_PHASE_N];
/*
 * The durations in microseconds. The record of the following round has that of the commit; NULL: it
 * is not known.
 */
void fl__page_phase_times(const struct fl_round_rec *round, const struct fl_round_rec *next,
                          double us[FL_PAGE_PHASE_N]);

/* A time of the page: a date, or simulated time. */
void fl__page_time(struct fl_html *html, const struct fl_page_overview *o, uint64_t ms);
/* How long ago that is; "–" for 0. Returns `out`. */
const char *fl__page_age(const struct fl_page_overview *o, uint64_t ms, char out[FL_CHART_TEXT]);

/*
 * The charts of a federation, its grid, attention and mixing weights. `prefix` makes their ids
 * unique in a page with several. FL_ENOMEM is noted in the writer.
 */
void fl__page_charts(struct fl_html *html, const struct fl_page_overview *o, const char *prefix);
/* Of them, where something is known: scores of the clients (score_charts.c), and of the
   participations which client sent which layer, and mixing weights (part_charts.c). */
void fl__page_scores(struct fl_html *html, const struct fl_page_overview *o, const char *prefix);
void fl__page_grid(struct fl_html *html, const struct fl_page_overview *o, const char *prefix);
void fl__page_mixing(struct fl_html *html, const struct fl_page_part *parts, size_t n,
                     const char *prefix);
void fl__page_weights(struct fl_html *html, const struct fl_page_part *parts, size_t n,
                      const char *prefix);
/* Tables: rounds, events, clients (at most `most`). */
void fl__page_rounds(struct fl_html *html, const struct fl_page_overview *o, const char *prefix);
void fl__page_events(struct fl_html *html, const struct fl_page_overview *o, const char *prefix);
void fl__page_members(struct fl_html *html, const struct fl_page_overview *o, const char *prefix,
                      size_t most);
/* Columns of the table of clients. */
#define FL_PAGE_COLUMNS(X)            \
    X(name, "Client", true)           \
    X(state, "State", true)           \
    X(contact, "Last contact", false) \
    X(samples, "Samples", false)      \
    X(selected, "Selected", false)    \
    X(accepted, "Accepted", false)    \
    X(rejected, "Rejected", false)    \
    X(lost, "Lost", false)            \
    X(score, "Score", false)          \
    X(loss, "Loss", false)            \
    X(remarks, "Remarks", true)

enum fl__page_column {
#define X(key, head, text) FL_PAGE_COLUMN_##key,
    FL_PAGE_COLUMNS(X)
#undef X
        FL_PAGE_COLUMN_N
};

struct fl__page_column_row {
    const char *key, *head;
    bool text; /* aligned to the left, sorted as text */
};
extern const struct fl__page_column_row fl__page_column_rows[FL_PAGE_COLUMN_N];

/* The rows of clients, in the order of `order`. */
void fl__page_client_rows(struct fl_html *html, const struct fl_page_overview *o,
                          const uint32_t *order, size_t n);
/* The state that is shown of a client. */
const char *fl__page_client_state(const struct fl_wire_client *client);
/* What went wrong with it last, and why it is not selected. */
void fl__page_client_note(struct fl_html *html, const struct fl_page_overview *o,
                          const struct fl_wire_client *c);

/* The table of participations. */
struct fl__page_parts {
    const char *id;
    const struct fl_page_part *parts;
    size_t n;
    const char *const *layers; /* names of the digits of the masks */
    size_t n_layers;
    bool clients, rounds; /* these columns */
    bool links;
};
void fl__page_parts(struct fl_html *html, const struct fl__page_parts *table);

/* Name, value and a note, between <dl> and </dl>. */
void fl__page_fact(struct fl_html *html, const char *name, const char *value, const char *note);
/* A list of commands with what they do: [n][2]. */
void fl__page_commands(struct fl_html *html, const char *const (*commands)[2], size_t n);

#endif
