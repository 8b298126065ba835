#ifndef FL_FIGURES_FIGURES_H
#define FL_FIGURES_FIGURES_H

/*
 * Figures: what is counted and measured of a round (round_figures.h) and of a client
 * (client_figures.h), one row per figure. Members of the records, SQL columns, fields on the wire,
 * JSON, text and log lines are generated from the rows; CONTRIBUTING.md#a-figure lists what a new
 * one needs.
 *
 * A row begins X(type, member, wire, …): its C type, the member of the record, which is also the
 * SQL column, and its field in the message of proto/fl/v1/admin.proto. The rest are members of
 * struct fl_figure.
 *
 * Threading: constants and pure functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fl_figure_type { FL_FIGURE_U64, FL_FIGURE_U32, FL_FIGURE_F64 };

#define FL_FIGURE_C_U64 uint64_t
#define FL_FIGURE_C_U32 uint32_t
#define FL_FIGURE_C_F64 double

/* Value of FL_UNIT_INSTANT: unknown, or it did not happen. */
#define FL_FIGURE_NEVER UINT64_MAX

/* The members of a record: FL_ROUND_FIGURES(FL_FIGURE_MEMBER). */
#define FL_FIGURE_MEMBER(type, member, ...) FL_FIGURE_C_##type member;

enum fl_figure_unit {
    FL_UNIT_COUNT,
    FL_UNIT_BYTES,
    FL_UNIT_MS,    /* wall clock, since 1970 */
    FL_UNIT_SHARE, /* 0 to 1; negative: unknown */
    FL_UNIT_WEIGHT,
    FL_UNIT_LOSS,
    FL_UNIT_US,     /* duration in microseconds */
    FL_UNIT_SPAN,   /* duration in milliseconds */
    FL_UNIT_INSTANT /* microseconds since a start; FL_FIGURE_NEVER: unknown */
};

/* How the totals over rounds are computed from the values of each round. */
enum fl_figure_over {
    FL_OVER_LAST = 0, /* value of the last round */
    FL_OVER_KNOWN,    /* value of the last round in which its lead is known */
    FL_OVER_FIRST,
    FL_OVER_SUM,
    FL_OVER_ROUNDS /* number of rounds */
};

/* Where the figure is shown. */
enum fl_figure_shown {
    FL_SHOWN_COLUMN = 1, /* a column of a list; "-" when unknown */
    FL_SHOWN_BEHIND = 2, /* "label=value" after the columns, when known */
    FL_SHOWN_LOG = 4     /* "label=value" in the log line of a committed round, when known */
};

struct fl_figure {
    const char *member;
    const char *key; /* key in JSON; NULL: the member */
    enum fl_figure_type type;
    size_t offset;
    enum fl_figure_unit unit;
    enum fl_figure_over over;
    bool totals; /* its totals are reported (flctl status) */
    /*
     * Index of the row whose value determines whether this figure is known: not negative for
     * FL_UNIT_SHARE, else above 0. 0, which is never a lead: always known.
     */
    unsigned lead;
    unsigned shown;      /* enum fl_figure_shown */
    const char *label;   /* header of the column, name in lines */
    int width, decimals; /* width of the column, decimals of a real number */
    const char *meaning; /* for the documents; one sentence without full stop */
};

struct fl_figures {
    const struct fl_figure *rows;
    size_t n;
    size_t size; /* of the record */
};

/* The value of a FL_FIGURE_U64 or FL_FIGURE_U32. */
uint64_t fl_figure_whole(const struct fl_figure *figure, const void *record);
/* The value of a FL_FIGURE_F64. */
double fl_figure_real(const struct fl_figure *figure, const void *record);
/* Set the value; an integer that is too large for its type becomes the largest. */
void fl_figure_put_whole(const struct fl_figure *figure, void *record, uint64_t value);
void fl_figure_put_real(const struct fl_figure *figure, void *record, double value);
const char *fl_figure_key(const struct fl_figure *figure);
bool fl_figure_known(const struct fl_figures *figures, const struct fl_figure *figure,
                     const void *record);
/* Initialise a record: all values 0 or unknown. */
void fl_figures_init(const struct fl_figures *figures, void *record);
/* Add the newest record to the totals of `n` records, which began with fl_figures_init(). */
void fl_figures_add(const struct fl_figures *figures, uint64_t n, void *totals, const void *record);

#endif
