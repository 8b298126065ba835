/* The size of a terminal (screen_lines.h). */
#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "libfl/base/str.h"
#include "tools/screen/screen_lines.h"

static void size_from(const char *text, size_t *ret)
{
    uint64_t n;

    if (text != NULL && fl_str_to_u64(text, &n) == FL_OK && n > 0 && n < SHRT_MAX) {
        *ret = (size_t)n;
    }
}

void fl_terminal_size(int fd, size_t *columns, size_t *rows)
{
    struct winsize size = {0};

    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        *columns = size.ws_col;
        *rows = size.ws_row;
        return;
    }
    size_from(getenv("COLUMNS"), columns);
    size_from(getenv("LINES"), rows);
}
