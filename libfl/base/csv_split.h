#ifndef FL_BASE_CSV_SPLIT_H
#define FL_BASE_CSV_SPLIT_H

/*
 * Splits comma-separated text into fields and rows while it arrives, in pieces of any size; a long
 * row needs no memory beyond its longest field. Lines end with LF or CRLF, the last one may lack
 * it; blank lines are skipped, as is a byte order mark, which spreadsheets write before UTF-8.
 * Quotes have a meaning only with `quotes` (RFC 4180): a field that begins with one ends at the
 * next, two stand for one, and commas and line ends between them are part of the field.
 *
 * Threading: none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* Maximum bytes of a field. */
#define FL_CSV_TEXT ((size_t)4096)

/*
 * `text` is without blanks around it, with a NUL behind it, and may be changed by the callee; a NUL
 * of the file is kept. `len` FL_CSV_TEXT + 1: it is longer, and `text` is its beginning.
 */
typedef int fl_csv_text_cb(void *ctx, char *text, size_t len);

struct fl_csv {
    /* Any error ends the reading and is returned. */
    fl_csv_text_cb *field;
    int (*row)(void *ctx);   /* after its last field */
    fl_csv_text_cb *comment; /* a line that begins with '#', commas included; NULL: it is a row */
    void *ctx;
    bool quotes;
    uint64_t line; /* current line, from 1 */
    size_t col;    /* in `field`: its index; in `row`: their number */
    /* Private, initially 0. */
    bool begun, in_comment;
    bool in_quotes;      /* at the end of the text: a quote was not closed, */
    uint64_t quote_line; /* opened in this line */
    bool after_quote;    /* the last character closed a quote, or is the first of two */
    size_t len;
    char text[FL_CSV_TEXT + 1];
};

/* The caller sets the callbacks, and `line` to 1. Returns the error of a callback. */
FL_MUST_CHECK int fl_csv_feed(struct fl_csv *csv, const char *text, size_t len);
/* The end of the text. */
FL_MUST_CHECK int fl_csv_end(struct fl_csv *csv);

#endif
