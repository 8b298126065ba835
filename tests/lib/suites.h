#ifndef FL_LIB_SUITES_H
#define FL_LIB_SUITES_H

/*
 * The unit tests of one room are one program, tests/server/core/server_core, with a suite for each
 * file.
 * suites.c has its main(): run under the name of a file (a link, as make check does) it runs the
 * suite of this file, under its own name all.
 */

#include <check.h>

/* The file whose suite `make` creates; at most SUITES_MAX of them. */
void suites_add(const char *file, Suite *(*make)(void));

/* Instead of main(): SUITE() { Suite *s = suite_create("name"); …; return s; } */
#define SUITE()                                                                \
    static Suite *suite_of_this_file(void);                                    \
    __attribute__((constructor)) static void suite_of_this_file_is_known(void) \
    {                                                                          \
        suites_add(__FILE__, suite_of_this_file);                              \
    }                                                                          \
    static Suite *suite_of_this_file(void)

#endif
