#ifndef FL_SCREEN_SCREEN_LINES_H
#define FL_SCREEN_SCREEN_LINES_H

/*
 * Lines of text for a terminal, cut to its size: what `flctl watch` and `fl-sim run` show. Pure.
 */

#include "libfl/base/buf.h"
#include "libfl/figures/round_figures.h"

/* Lines that were added, and those that fit. Errors are kept, the first one. */
struct fl_term_lines {
    size_t columns, rows; /* at most */
    struct fl_buf *out;   /* borrowed */
    size_t used;          /* rows so far */
    int rv;
};

/* Width of the labels in front of lines. */
#define FL_TERM_INDENT 10

/* Add one line; control characters are replaced, what does not fit is cut or left out. */
FL_PRINTF(2, 3) void fl_term_lines_add(struct fl_term_lines *lines, const char *fmt, ...);
/* Add a text over several lines, broken at blanks; what does not fit ends with "...". */
void fl_term_lines_wrapped(struct fl_term_lines *lines, const char *label, const char *text);
/* A table of the newest of these rounds, oldest first. */
#define FL_TERM_ROUNDS 5
void fl_term_lines_rounds(struct fl_term_lines *lines, const struct fl_round_rec *const *rounds,
                          size_t n);
/* "3 s", "12 min", "5 h", "9 d". Returns `out`. */
const char *fl_term_lines_span(uint64_t ms, char out[32]);

/* The size of the terminal at `fd`, else $COLUMNS and $LINES; sets only what is known. */
void fl_terminal_size(int fd, size_t *columns, size_t *rows);

#endif
