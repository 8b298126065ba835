#ifndef FL_FIGURES_FIGURES_H
#define FL_FIGURES_FIGURES_H

/*
 * What is counted and measured of a round (round_figures.h) and of a client (client.h), one row a
 * figure. Members of the records, SQL columns, fields on the wire, JSON, text and log lines come
 * from the rows: CONTRIBUTING.md#a-figure says what a new one takes.
 *
 * A row begins X(type, member, wire, …): its C type, the member of the record, which is also the
 * SQL column, and where it lies in the message of proto/fl/v1/admin.proto. What follows are members
 * of struct fl_figure.
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

/* Of FL_UNIT_INSTANT: it did not happen. */
#define FL_FIGURE_NEVER UINT64_MAX

/* The members of a record: FL_ROUND_FIGURES(FL_FIGURE_MEMBER). */
#define FL_FIGURE_MEMBER(type, member, ...) FL_FIGURE_C_##type member;

enum fl_figure_unit {
    FL_UNIT_COUNT,
    FL_UNIT_BYTES,
    FL_UNIT_MS,    /* wall clock, since 1970 */
    FL_UNIT_SHARE, /* 0 to 1; negative: not known */
    FL_UNIT_WEIGHT,
    FL_UNIT_LOSS,
    FL_UNIT_US,     /* how long, in microseconds */
    FL_UNIT_INSTANT /* when, in microseconds since a start; FL_FIGURE_NEVER: not known */
};

/* How the totals over rounds come from those of each. */
enum fl_figure_over {
    FL_OVER_LAST = 0, /* that of the last round */
    FL_OVER_KNOWN,    /* that of the last round in which its lead is known */
    FL_OVER_FIRST,
    FL_OVER_SUM,
    FL_OVER_ROUNDS /* how many rounds there were */
};

/* Where people see it. */
enum fl_figure_shown {
    FL_SHOWN_COLUMN = 1, /* of a list; "-" when it is not known */
    FL_SHOWN_BEHIND = 2, /* "label=value" behind the columns, when it is known */
    FL_SHOWN_LOG = 4     /* "label=value" in the line of a committed round, when it is known */
};

struct fl_figure {
    const char *member;
    const char *key; /* in JSON; NULL: as the member */
    enum fl_figure_type type;
    size_t offset;
    enum fl_figure_unit unit;
    enum fl_figure_over over;
    bool totals; /* the totals of it are told (flctl status) */
    /*
     * Number of the row whose value says whether this one is known: not negative for
     * FL_UNIT_SHARE, else above 0. 0, which leads nobody: it always is.
     */
    unsigned lead;
    unsigned shown;      /* enum fl_figure_shown */
    const char *label;   /* head of the column, name in lines */
    int width, decimals; /* of the column, of a real number */
    const char *meaning; /* for people; one sentence without its full stop */
};

struct fl_figures {
    const struct fl_figure *rows;
    size_t n;
    size_t size; /* of the record */
};

/* Of FL_FIGURE_U64 and FL_FIGURE_U32. */
uint64_t fl_figure_whole(const struct fl_figure *figure, const void *record);
/* Of FL_FIGURE_F64. */
double fl_figure_real(const struct fl_figure *figure, const void *record);
/* Set it; a whole number that is too large for its type becomes the largest. */
void fl_figure_put_whole(const struct fl_figure *figure, void *record, uint64_t value);
void fl_figure_put_real(const struct fl_figure *figure, void *record, double value);
const char *fl_figure_key(const struct fl_figure *figure);
bool fl_figure_known(const struct fl_figures *figures, const struct fl_figure *figure,
                     const void *record);
/* A record of which nothing is known. */
void fl_figures_init(const struct fl_figures *figures, void *record);
/* Count one more record, the newest, into the totals of `n`, which began with fl_figures_init(). */
void fl_figures_add(const struct fl_figures *figures, uint64_t n, void *totals, const void *record);

#endif
