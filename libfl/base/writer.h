#ifndef FL_BASE_WRITER_H
#define FL_BASE_WRITER_H

/*
 * Appends to a buffer and keeps the first error, after which nothing is appended: a text or a
 * message of many pieces is tested once, at its end.
 *
 *     struct fl_writer w = {.out = out};
 *
 *     fl_writer_printf(&w, "%s,", name);
 *     fl_writer_printf(&w, "%u\n", count);
 *     return w.code;
 *
 * Threading: as the buffer.
 */

#include "libfl/base/buf.h"

struct fl_writer {
    struct fl_buf *out; /* borrowed */
    int code;           /* FL_ENOMEM, FL_ELIMIT */
};

FL_PRINTF(2, 3) void fl_writer_printf(struct fl_writer *w, const char *fmt, ...);
void fl_writer_add(struct fl_writer *w, const void *data, size_t len);
/* Append `text` with `before` in front of each `special`. */
void fl_writer_escape(struct fl_writer *w, const char *text, char special, char before);
/* Note the result of another function that appended to `out`. */
void fl_writer_note(struct fl_writer *w, int rv);

#endif
