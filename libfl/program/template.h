#ifndef FL_PROGRAM_TEMPLATE_H
#define FL_PROGRAM_TEMPLATE_H

/*
 * Files to start from: training scripts and configurations that a command writes once. A template
 * is its lines without line ends, NULL-terminated; tools/templates.awk makes it from a file.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"

/*
 * Write a new file at `path`; each "@NAME@" in it becomes `name` (NULL: they stay). Nothing at
 * `path` is ever replaced. FL_EEXIST; errors of writing, after which there is no file.
 */
FL_MUST_CHECK int fl_template_write(const char *const *lines, const char *path, const char *name,
                                    struct fl_err *err);
/*
 * A script of this name would be imported by Python in place of a package that it needs, since the
 * folder of the script is searched first.
 */
bool fl_template_hides_package(const char *path);

#endif
