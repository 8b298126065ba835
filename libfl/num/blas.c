#include "libfl/num/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* Written once, by whoever comes first; everybody else reads behind the same pthread_once(). */
static struct {
    pthread_once_t once;
    struct fl__blas functions;
    bool loaded;
    struct fl_err why; /* it is not */
} blas = {.once = PTHREAD_ONCE_INIT};

/* ISO C has no cast from what dlsym() returns to a function; POSIX has that both are alike. */
static bool find(void *library, const char *name, void *ret_function)
{
    void *found = dlsym(library, name);

    (void)memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

static void load(void)
{
    /* Never closed: what is loaded now is used until the end. */
    void *library = dlopen(FL_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    struct fl__blas *f = &blas.functions;

    blas.loaded = library != NULL && find(library, "cblas_sgemm", &f->sgemm) &&
                  find(library, "openblas_set_num_threads", &f->set_num_threads) &&
                  find(library, "openblas_get_parallel", &f->get_parallel) &&
                  find(library, "openblas_get_corename", &f->get_corename);
    if (!blas.loaded) {
        (void)fl_err_set(&blas.why, FL_ENOENT,
                         "training and evaluating need OpenBLAS, which cannot be loaded: %.200s: "
                         "install it (Debian: apt-get install libopenblas0-serial)",
                         dlerror());
        return;
    }
    f->set_num_threads(1);
}

int fl__blas_load(struct fl_err *err)
{
    (void)pthread_once(&blas.once, load);
    return blas.loaded ? FL_OK
                       : fl_err_set(err, FL_ENOENT, "%s", fl_err_text(&blas.why, FL_ENOENT));
}

const struct fl__blas *fl__blas(void)
{
    return blas.loaded ? &blas.functions : NULL;
}
