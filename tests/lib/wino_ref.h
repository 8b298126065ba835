#ifndef FL_TESTS_LIB_WINO_REF_H
#define FL_TESTS_LIB_WINO_REF_H

/*
 * Winograd convolutions in plain double precision, from the matrices of Lavin and Gray (2016):
 * y = A' ((G g G') * (B' d B)) A for a tile. The oracle of the kernels in libfl/num/wino_kern.h.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/wino_kern.h"

#define WINO_REF_SIDE  6
#define WINO_REF_TILE  (WINO_REF_SIDE * WINO_REF_SIDE)
#define WINO_REF_KERNS 3

struct wino_ref {
    size_t points, r, m, inputs; /* along one side */
    size_t inset;                /* padding inputs before the first, not stored */
    double bt[WINO_REF_TILE];    /* [points][inputs] */
    double g[WINO_REF_TILE];     /* [points][r] */
    double at[WINO_REF_TILE];    /* [m][points] */
};

struct wino_ref wino_ref(enum fl__wino_forms form);

/* out = a in a' for a of rows x cols; a' in a when `turned`. */
void wino_ref_both(double *out, const double *a, size_t rows, size_t cols, bool turned,
                   const double *in);

/* The tiles of an image; where pixel i, j of the square of a tile's inputs (outputs) lies in a
 * batch with rows of `ld` floats, channel 0. False: outside the map. */
size_t wino_ref_tiles(const struct wino_ref *ref, const struct fl_conv *conv);
bool wino_ref_input_at(const struct wino_ref *ref, const struct fl_conv *conv, size_t ld,
                       size_t tile, size_t i, size_t j, size_t *ret_place);
bool wino_ref_output_at(const struct wino_ref *ref, const struct fl_conv *conv, size_t ld,
                        size_t tile, size_t i, size_t j, size_t *ret_place);

/* Place of a weight in panels. */
size_t wino_ref_weight(const struct fl_conv *conv, size_t k, size_t c, size_t tap);

/* The convolution without any transform, weights in panels: y[batch][oh][ow][k]. */
void wino_ref_direct(const struct fl_conv *conv, double *y, const float *x, size_t ldx,
                     const float *w, size_t batch);
/* The i-th kernels, NULL when this processor lacks their instruction set; their name. */
const struct fl__wino_kern *wino_ref_kern(size_t i);
const char *wino_ref_kern_name(size_t i);

#endif
