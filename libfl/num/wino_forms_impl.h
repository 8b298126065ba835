#ifndef FL_NUM_WINO_FORMS_IMPL_H
#define FL_NUM_WINO_FORMS_IMPL_H

/*
 * The forms of wino_kern.h for one instruction set: the general functions with a constant `side`.
 */

#include "libfl/num/wino_impl.h"
#include "libfl/num/wino_weights_impl.h"

/* The functions of a form; `side` is a constant in each. */
#define FORM(form_, title, points_, kernel_, outputs_, inputs_, inset_)                           \
    static const struct side side_##form_ = {.points = (points_),                                 \
                                             .kernel = (kernel_),                                 \
                                             .outputs = (outputs_),                               \
                                             .inputs = (inputs_),                                 \
                                             .inset = (inset_)};                                  \
    static __attribute__((noinline)) void input_tile_##form_(float *v, size_t plane,              \
                                                             const float *const *at, size_t n)    \
    {                                                                                             \
        input_tile(side_##form_, v, plane, at, n);                                                \
    }                                                                                             \
    static __attribute__((noinline)) void gradient_tile_##form_(float *v, size_t plane,           \
                                                                const float *const *at, size_t n) \
    {                                                                                             \
        gradient_tile(side_##form_, v, plane, at, n);                                             \
    }                                                                                             \
    static void input_##form_(const struct fl_conv *conv, float *v, size_t plane, const float *x, \
                              size_t ldx, size_t first, size_t n)                                 \
    {                                                                                             \
        input_tiles(side_##form_, input_tile_##form_, conv, v, plane, x, ldx, first, n);          \
    }                                                                                             \
    static void output_##form_(const struct fl_conv *conv, float *y, size_t ldy, const float *m,  \
                               size_t plane, size_t first, size_t n, size_t k, size_t width,      \
                               const float *bias, bool relu)                                      \
    {                                                                                             \
        output_tiles(side_##form_, conv, y, ldy, m, plane, first, n, k, width, bias, relu);       \
    }                                                                                             \
    static void gradient_##form_(const struct fl_conv *conv, float *m, size_t plane,              \
                                 const float *dy, size_t lddy, size_t first, size_t n)            \
    {                                                                                             \
        gradient_tiles(side_##form_, gradient_tile_##form_, conv, m, plane, dy, lddy, first, n);  \
    }                                                                                             \
    static void scatter_##form_(const struct fl_conv *conv, float *dx, size_t lddx,               \
                                const float *v, size_t plane, size_t first, size_t n, size_t c,   \
                                size_t width)                                                     \
    {                                                                                             \
        scatter_tiles(side_##form_, conv, dx, lddx, v, plane, first, n, c, width);                \
    }                                                                                             \
    static void weights_##form_(float *u, const float *w, size_t rows, size_t width)              \
    {                                                                                             \
        weights_rows(side_##form_, u, w, rows, width);                                            \
    }                                                                                             \
    static void weights_adjoint_##form_(float *g, const float *u, size_t rows, size_t width)      \
    {                                                                                             \
        weights_adjoint_rows(side_##form_, g, u, rows, width);                                    \
    }                                                                                             \
    static const struct fl__wino_form wino_##form_ = {                                            \
        .name = (title),                                                                          \
        .points = (points_) * (points_),                                                          \
        .r = (kernel_),                                                                           \
        .m = (outputs_),                                                                          \
        .input = input_##form_,                                                                   \
        .output = output_##form_,                                                                 \
        .gradient = gradient_##form_,                                                             \
        .scatter = scatter_##form_,                                                               \
        .weights = weights_##form_,                                                               \
        .weights_adjoint = weights_adjoint_##form_,                                               \
    };

FORM(kernel3, "3x3", 6, 3, 4, 6, 0)
FORM(kernel5, "5x5", 6, 5, 2, 6, 0)
/* The outer ones of four inputs are padding. */
FORM(map2, "2x2 map", 3, 3, 2, 2, 1)

#endif
