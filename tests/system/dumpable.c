/* Preloaded: each prctl(PR_SET_DUMPABLE) of the process is a line of the file $FL_DUMPABLE. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

int prctl(int option, ...)
{
    static int (*real)(int, ...);
    unsigned long a[4];
    va_list ap;
    int i;

    va_start(ap, option);
    for (i = 0; i < 4; i++) {
        a[i] = va_arg(ap, unsigned long);
    }
    va_end(ap);
    if (option == PR_SET_DUMPABLE && getenv("FL_DUMPABLE") != NULL) {
        FILE *f = fopen(getenv("FL_DUMPABLE"), "ae");

        if (f != NULL) {
            (void)fprintf(f, "dumpable %lu\n", a[0]);
            (void)fclose(f);
        }
    }
    if (real == NULL) {
        *(void **)(&real) = dlsym(RTLD_NEXT, "prctl");
    }
    return real(option, a[0], a[1], a[2], a[3]);
}
