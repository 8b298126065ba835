#ifndef FL_RESULTS_ROW_H
#define FL_RESULTS_ROW_H

/*
 * A round of a trial as a line of JSON and of CSV, and back. Numbers are read back as the same
 * bits; unknown ones are null, and empty in CSV.
 *
 * Threading: pure functions.
 */

#include "libfl/json/json.h"

#include "libfl/base/writer.h"
#include "tools/fl_sim/results/result_columns.h"

struct fl_row {
    struct fl_round_rec record;
    struct fl_sim_round sim;
};

/* A figure of a row: one of the server's, one of the simulation's, or a metric. */
struct fl_row_figure {
    const struct fl_figures *figures; /* NULL: a metric */
    const struct fl_figure *figure;   /* its unit; of a metric any number */
    const char *metric;               /* key of a metric of a round; borrowed; NULL: a figure */
};

/* Find by the key of JSON, of a metric "metrics.NAME"; false: there is none. */
bool fl_row_find(const char *key, struct fl_row_figure *ret);
/* Its name: of a metric without "metrics.". */
const char *fl_row_key(const struct fl_row_figure *figure);
/* The nearest key, or NULL (fl_str_nearest()). */
const char *fl_row_nearest(const char *key);
/* NAN when it is unknown. */
double fl_row_value(const struct fl_row_figure *figure, const struct fl_row *row);

/* Each appends a line with its line end. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_row_json(struct fl_buf *out, const struct fl_row *row);
FL_MUST_CHECK int fl_row_csv(struct fl_buf *out, const struct fl_row *row);
FL_MUST_CHECK int fl_row_csv_head(struct fl_buf *out);
FL_MUST_CHECK int fl_row_client_json(struct fl_buf *out, const struct fl_sim_client_round *client);
/* Read the object of a line of fl_row_json(). FL_EFORMAT: it has no round. */
FL_MUST_CHECK int fl_row_read(const json_t *object, struct fl_row *ret);
/* Append a field of CSV, quoted if necessary. */
void fl_csv_add(struct fl_writer *w, const char *text);

#endif
