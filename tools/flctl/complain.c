#include <stdarg.h>
#include <stdio.h>

#include "libfl/base/str.h"
#include "tools/flctl/flctl.h"

int fl_ctl_complain(const struct fl_ctl_args *args, int code, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "flctl: %s: %s\n", fl_verbs[args->verb].name, fl_str_clean(text));
    return code;
}
