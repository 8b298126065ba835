#ifndef FL_PAGE_OVERVIEW_IMPL_H
#define FL_PAGE_OVERVIEW_IMPL_H

/* What pages have in common: frame, texts, and the views of a federation. */

#include "libfl/page/chart.h"
#include "libfl/page/page.h"

/* Begin a document up to <main>; `live`: it is fetched again by the script. */
void fl__page_begin(struct fl_html *html, const char *title, const char *federation, bool live);
void fl__page_end(struct fl_html *html, const char *version);

/* The value of a figure of a round; FL_CHART_UNKNOWN when it is not known. */
double fl__page_figure(const struct fl_round_rec *record, enum fl_round_figure figure);

/* A time of the page: a date, or simulated time. */
void fl__page_time(struct fl_html *html, const struct fl_page_overview *o, uint64_t ms);
/* How long ago that is; "–" for 0. Returns `out`. */
const char *fl__page_age(const struct fl_page_overview *o, uint64_t ms, char out[FL_CHART_TEXT]);

/*
 * The charts of a federation, its grid, attention and mixing weights. `prefix` makes their ids
 * unique in a page with several. FL_ENOMEM is noted in the writer.
 */
void fl__page_charts(struct fl_html *html, const struct fl_page_overview *o, const char *prefix);
/* Tables: rounds, events, clients (at most `most`). */
void fl__page_rounds(struct fl_html *html, const struct fl_page_overview *o, const char *prefix);
void fl__page_events(struct fl_html *html, const struct fl_page_overview *o, const char *prefix);
void fl__page_members(struct fl_html *html, const struct fl_page_overview *o, const char *prefix,
                      size_t most);
/* The table of clients itself, in the order of `order`. */
void fl__page_client_table(struct fl_html *html, const struct fl_page_overview *o, const char *id,
                           const uint32_t *order, size_t n);

#endif
