#ifndef FL_FLCTL_SCREEN_H
#define FL_FLCTL_SCREEN_H

/*
 * The screen of `flctl watch` as lines of text: the open round, its figures, the sentence of `flctl
 * why`, the newest rounds, and the clients with what became of each. watch_cmd.c asks the server
 * and shows it.
 *
 * Pure: no I/O, the time is an argument.
 */

#include "libfl/base/buf.h"
#include "tools/flctl/look.h"

/* The smallest screen with every part; a smaller one is cut. */
#define FL_SCREEN_COLUMNS 80
#define FL_SCREEN_ROWS    24

struct fl_screen {
    size_t columns, rows;
    uint64_t now_ms;     /* since 1970 */
    const char *trouble; /* the server does not answer: a line for it; NULL: it does */
};

/*
 * At most screen->rows lines of at most screen->columns characters, each with its '\n'. `look` has
 * a status. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_screen_draw(const struct fl_screen *screen, const struct fl_ctl_look *look,
                                 struct fl_buf *out);

#endif
