/*
 * Loads OpenBLAS on first use (blas.h). Any thread may call; pthread_once() makes it happen once
 * per process.
 */
#include "libfl/num/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* Written once under pthread_once(), then read by all threads. */
static struct {
    pthread_once_t once;
    struct fl__blas functions;
    bool loaded;
    struct fl_err why; /* the error when it could not be loaded */
} blas = {.once = PTHREAD_ONCE_INIT};

/*
 * ISO C has no cast from an object pointer to a function pointer; POSIX guarantees that
 * dlsym()'s result can be copied.
 */
static bool blas_find_symbol(void *library, const char *name, void *ret_function)
{
    void *found = dlsym(library, name);

    (void)memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

static void blas_load_library(void)
{
    /* Never closed: the library is used until the process ends. */
    void *library = dlopen(FL_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    struct fl__blas *f = &blas.functions;

    blas.loaded = library != NULL && blas_find_symbol(library, "cblas_sgemm", &f->sgemm) &&
                  blas_find_symbol(library, "openblas_set_num_threads", &f->set_num_threads) &&
                  blas_find_symbol(library, "openblas_get_parallel", &f->get_parallel) &&
                  blas_find_symbol(library, "openblas_get_corename", &f->get_corename);
    if (!blas.loaded) {
        (void)fl_err_set(&blas.why, FL_ENOENT,
                         "training and evaluation need OpenBLAS, which cannot be loaded: %.200s: "
                         "install it (Debian: apt-get install libopenblas0-serial)",
                         dlerror());
        return;
    }
    f->set_num_threads(1);
}

int fl__blas_load(struct fl_err *err)
{
    (void)pthread_once(&blas.once, blas_load_library);
    return blas.loaded ? FL_OK
                       : fl_err_set(err, FL_ENOENT, "%s", fl_err_text(&blas.why, FL_ENOENT));
}

const struct fl__blas *fl__blas(void)
{
    return blas.loaded ? &blas.functions : NULL;
}
