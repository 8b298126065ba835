#ifndef FL_LIB_CONF_REFUSED_H
#define FL_LIB_CONF_REFUSED_H

/* An invalid configuration value and the expected error: file, line, key, expected value. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "tests/lib/folder.h"

struct refused {
    const char *line; /* of the section, at the end of the file */
    const char *says; /* message after "FILE:LINE: " */
};

/* Writes `head` followed by the line; `ret` is the path of the file, in its own folder. */
static inline void refused_write(const char *head, const char *line, char ret[FOLDER_PATH + 32])
{
    char folder[FOLDER_PATH];
    struct fl_buf text;

    ck_assert(folder_make("refused", folder));
    (void)snprintf(ret, FOLDER_PATH + 32, "%s/some.yaml", folder);
    fl_buf_init(&text, 4096);
    ck_assert_int_eq(fl_buf_add(&text, head, strlen(head)), FL_OK);
    ck_assert_int_eq(fl_buf_add(&text, line, strlen(line)), FL_OK);
    ck_assert_int_eq(fl_buf_add(&text, "\n", 1), FL_OK);
    ck_assert_int_eq(fl_fs_replace(ret, text.data, text.len, false, NULL), FL_OK);
    fl_buf_done(&text);
}

/* The whole message, and the line is the last one. */
static inline void refused_says(const char *head, const struct refused *row, const char *path,
                                const struct fl_err *err)
{
    char expected[1024];
    unsigned line = 1;

    for (; *head != '\0'; head++) {
        line += *head == '\n';
    }
    (void)snprintf(expected, sizeof(expected), "%s:%u: %s", path, line, row->says);
    ck_assert_str_eq(err->msg, expected);
}

#endif
