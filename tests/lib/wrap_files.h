#ifndef FL_TESTS_WRAP_FILES_H
#define FL_TESTS_WRAP_FILES_H

/* Prototypes for tests that replace file functions at link time (-Wl,--wrap=rename and so on). */

#include <sys/types.h>

#include "tests/lib/wrap_pwrite.h"

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset);

#endif
