#include "libfl/base/writer.h"

#include <stdarg.h>

void fl_writer_note(struct fl_writer *w, int rv)
{
    if (w->code == FL_OK) {
        w->code = rv;
    }
}

void fl_writer_printf(struct fl_writer *w, const char *fmt, ...)
{
    va_list ap;

    if (w->code == FL_OK) {
        va_start(ap, fmt);
        w->code = fl_buf_vprintf(w->out, fmt, ap);
        va_end(ap);
    }
}

void fl_writer_add(struct fl_writer *w, const void *data, size_t len)
{
    if (w->code == FL_OK) {
        w->code = fl_buf_add(w->out, data, len);
    }
}

void fl_writer_escape(struct fl_writer *w, const char *text, char special, char before)
{
    const char *p;

    for (p = text; *p != '\0'; p++) {
        if (*p == special) {
            fl_writer_add(w, &before, 1);
        }
        fl_writer_add(w, p, 1);
    }
}
