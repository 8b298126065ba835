#ifndef FL_LIB_STATES_PAGE_H
#define FL_LIB_STATES_PAGE_H

/* The tables of docs/clients.md. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The word of the cell `column` (the first after the state: 0) in the row of `state`, below
 * `heading`; fails the test when the page lacks it.
 */
static inline void states_page_word(const char *heading, const char *state, size_t column,
                                    char *out, size_t size)
{
    static char page[65536];
    char path[4096];
    char row[64];
    char *save = NULL;
    char *at;
    size_t n;
    size_t i;
    FILE *f;

    ck_assert_ptr_nonnull(getenv("FL_SRCDIR"));
    (void)snprintf(path, sizeof(path), "%s/docs/clients.md", getenv("FL_SRCDIR"));
    f = fopen(path, "r");
    ck_assert_msg(f != NULL, "no %s", path);
    n = fread(page, 1, sizeof(page) - 1, f);
    page[n] = '\0';
    (void)fclose(f);
    at = strstr(page, heading);
    ck_assert_msg(at != NULL, "no heading '%s' in %s", heading, path);
    (void)snprintf(row, sizeof(row), "\n| %s | ", state);
    at = strstr(at, row);
    ck_assert_msg(at != NULL, "no row of state %s", state);
    at += strlen(row);
    *strchr(at, '\n') = '\0';
    at = strtok_r(at, "| ", &save);
    for (i = 0; i < column && at != NULL; i++) {
        at = strtok_r(NULL, "| ", &save);
    }
    ck_assert_msg(at != NULL, "no cell %zu in the row of state %s", column, state);
    (void)snprintf(out, size, "%s", at);
}

#endif
