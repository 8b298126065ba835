/*
 * Changes of a whole data set: standardisation, cropping, appending. Runs on the caller's thread
 * before the set is shared; views are not changed.
 */
#include "libfl/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Added to a deviation, in units of the stored values, so that constant values are not divided
 * by 0.
 */
#define LEAST_DEVIATION 0.001

static const char *transform_set_name(const struct fl_dataset *ds)
{
    return ds->source != NULL ? ds->source : ds->format;
}

static int transform_no_memory(const struct fl_dataset *ds, struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot transform it",
                      transform_set_name(ds));
}

/* Takes both arrays. */
static void adopt_norm(struct fl_dataset *ds, float *mean, float *std, size_t n)
{
    free(ds->mean);
    free(ds->std);
    ds->mean = mean;
    ds->std = std;
    ds->n_norm = n;
}

int fl_dataset_set_norm(struct fl_dataset *ds, const float *mean, const float *std, size_t n,
                        struct fl_err *err)
{
    float *means;
    float *stds;
    size_t i;

    FL_REQUIRE(ds->of == NULL);
    if (n != 1 && n != ds->dim && !(ds->n_dims == 3 && n == ds->dims[0])) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': expected one mean, %zu (a channel) or %zu (a value), found %zu",
                          transform_set_name(ds), ds->n_dims == 3 ? ds->dims[0] : 1, ds->dim, n);
    }
    for (i = 0; i < n; i++) {
        if (!isfinite(mean[i]) || !isfinite(std[i]) || !(std[i] > 0.0F)) {
            return fl_err_set(err, FL_ENUMERIC,
                              "'%s': expected finite means and positive deviations, found %g and "
                              "%g at place %zu",
                              transform_set_name(ds), (double)mean[i], (double)std[i], i);
        }
    }
    means = malloc(n * sizeof(*means));
    stds = malloc(n * sizeof(*stds));
    if (means == NULL || stds == NULL) {
        free(means);
        free(stds);
        return transform_no_memory(ds, err);
    }
    (void)memcpy(means, mean, n * sizeof(*means));
    (void)memcpy(stds, std, n * sizeof(*stds));
    adopt_norm(ds, means, stds, n);
    return FL_OK;
}

int fl_dataset_copy_norm(struct fl_dataset *to, const struct fl_dataset *from, struct fl_err *err)
{
    FL_REQUIRE(to->of == NULL);
    if (from->n_norm == 0) {
        adopt_norm(to, NULL, NULL, 0);
        return FL_OK;
    }
    return fl_dataset_set_norm(to, from->mean, from->std, from->n_norm, err);
}

/* Add the stored values of sample `i`, or their squared deviations from `mean`, to `sum`. */
static void add_values(const struct fl_dataset *ds, size_t i, const double *mean, double *sum)
{
    const void *row = fl_dataset_row(ds, i);
    size_t j;

    for (j = 0; j < ds->dim; j++) {
        double v = ds->type == FL_DATA_U8 ? (double)((const uint8_t *)row)[j]
                                          : (double)((const float *)row)[j];

        sum[j] += mean == NULL ? v : (v - mean[j]) * (v - mean[j]);
    }
}

int fl_dataset_norm_pixels(struct fl_dataset *ds, struct fl_err *err)
{
    double *sum = calloc(ds->dim, sizeof(*sum));
    double *squares = calloc(ds->dim, sizeof(*squares));
    float *mean = calloc(ds->dim, sizeof(*mean));
    float *std = calloc(ds->dim, sizeof(*std));
    size_t i;

    FL_REQUIRE(ds->n > 0 && ds->of == NULL);
    if (sum == NULL || squares == NULL || mean == NULL || std == NULL) {
        free(sum);
        free(squares);
        free(mean);
        free(std);
        return transform_no_memory(ds, err);
    }
    for (i = 0; i < ds->n; i++) {
        add_values(ds, i, NULL, sum);
    }
    for (i = 0; i < ds->dim; i++) {
        sum[i] /= (double)ds->n;
    }
    for (i = 0; i < ds->n; i++) {
        add_values(ds, i, sum, squares);
    }
    for (i = 0; i < ds->dim; i++) {
        double deviation = sqrt(squares[i] / (double)ds->n) + LEAST_DEVIATION;

        mean[i] = (float)(sum[i] * (double)ds->scale);
        std[i] = (float)(deviation * (double)ds->scale);
    }
    adopt_norm(ds, mean, std, ds->dim);
    free(sum);
    free(squares);
    return FL_OK;
}

int fl_dataset_norm_cifar(struct fl_dataset *ds, struct fl_err *err)
{
    static const float mean[3] = {0.4914F, 0.4822F, 0.4465F};
    static const float std[3] = {0.2023F, 0.1994F, 0.2010F};

    if (ds->n_dims != 3 || ds->dims[0] != 3) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': the means of CIFAR-10 are for three channels, found %zu x %zu x "
                          "%zu",
                          transform_set_name(ds), ds->dims[0], ds->dims[1], ds->dims[2]);
    }
    return fl_dataset_set_norm(ds, mean, std, 3, err);
}

/* Move the centre of `planes` planes to the front; data only moves to lower addresses. */
static void crop_planes(uint8_t *data, size_t planes, const size_t from[2], size_t side,
                        size_t value_size)
{
    size_t top = (from[0] - side) / 2;
    size_t left = (from[1] - side) / 2;
    uint8_t *to = data;
    size_t p;
    size_t r;

    for (p = 0; p < planes; p++) {
        for (r = 0; r < side; r++) {
            size_t at = (p * from[0] + top + r) * from[1] + left;

            (void)memmove(to, data + at * value_size, side * value_size);
            to += side * value_size;
        }
    }
}

int fl_dataset_crop(struct fl_dataset *ds, size_t side, struct fl_err *err)
{
    const size_t from[2] = {ds->dims[1], ds->dims[2]};
    bool per_value = ds->n_norm == ds->dim && ds->n_norm > 1;
    size_t dim = ds->dims[0] * side * side;
    void *x;

    FL_REQUIRE(ds->of == NULL);
    if (ds->n_dims != 3 || side == 0 || side > from[0] || side > from[1]) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': expected pictures of at least %zu x %zu, found samples of %zu x "
                          "%zu x %zu",
                          transform_set_name(ds), side, side, ds->dims[0], from[0], from[1]);
    }
    crop_planes(ds->x, ds->n * ds->dims[0], from, side, fl_dataset_value_size(ds));
    if (per_value) {
        crop_planes((uint8_t *)ds->mean, ds->dims[0], from, side, sizeof(*ds->mean));
        crop_planes((uint8_t *)ds->std, ds->dims[0], from, side, sizeof(*ds->std));
        ds->n_norm = dim;
    }
    ds->dims[1] = side;
    ds->dims[2] = side;
    ds->dim = dim;
    x = realloc(ds->x, ds->n > 0 ? ds->n * dim * fl_dataset_value_size(ds) : 1);
    ds->x = x != NULL ? x : ds->x; /* A failure to shrink is harmless. */
    return FL_OK;
}

bool fl_dataset_alike(const struct fl_dataset *a, const struct fl_dataset *b)
{
    return a->type == b->type && a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, sizeof(a->dims)) == 0 && a->n_targets == b->n_targets;
}

int fl_dataset_append(struct fl_dataset *ds, const struct fl_dataset *more, struct fl_err *err)
{
    size_t bytes = ds->dim * fl_dataset_value_size(ds);
    size_t n = ds->n + more->n;
    void *x;
    int32_t *y;

    FL_REQUIRE(ds->of == NULL && more->of == NULL && fl_dataset_alike(ds, more));
    if (n > FL_DATA_MAX_SAMPLES || n > FL_DATA_MAX_BYTES / bytes) {
        return fl_err_set(err, FL_ELIMIT, "%zu samples of %zu bytes are more than a set may hold",
                          n, bytes);
    }
    if (more->n == 0) {
        return FL_OK;
    }
    x = realloc(ds->x, n * bytes);
    if (x == NULL) {
        return transform_no_memory(ds, err);
    }
    ds->x = x;
    y = realloc(ds->y, n * sizeof(*y));
    if (y == NULL) {
        return transform_no_memory(ds, err);
    }
    ds->y = y;
    if (ds->n_targets > 0) {
        float *target = realloc(ds->target, n * ds->n_targets * sizeof(*target));

        if (target == NULL) {
            return transform_no_memory(ds, err);
        }
        ds->target = target;
        (void)memcpy(target + ds->n * ds->n_targets, more->target,
                     more->n * ds->n_targets * sizeof(*target));
    }
    (void)memcpy((uint8_t *)x + ds->n * bytes, more->x, more->n * bytes);
    (void)memcpy(y + ds->n, more->y, more->n * sizeof(*y));
    ds->n = n;
    ds->classes = more->classes > ds->classes ? more->classes : ds->classes;
    return FL_OK;
}

int fl_dataset_set_augment(struct fl_dataset *ds, enum fl_data_augment augment, struct fl_err *err)
{
    if (augment != FL_AUGMENT_NONE && (ds->n_dims != 3 || ds->dims[1] < 2 || ds->dims[2] < 2)) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': expected pictures to flip and crop, found samples of %zu x %zu x "
                          "%zu",
                          transform_set_name(ds), ds->dims[0], ds->dims[1], ds->dims[2]);
    }
    ds->augment = augment;
    return FL_OK;
}
