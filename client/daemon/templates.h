#ifndef FL_CLIENTD_TEMPLATES_H
#define FL_CLIENTD_TEMPLATES_H

/* client/python/templates/ by line, without line ends, NULL-terminated; made by the build. */

#include <stddef.h>

extern const char *const fl_template_numpy[];
extern const char *const fl_template_pytorch[];

#endif
