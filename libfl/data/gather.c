/*
 * Converts stored samples to batches of floats, with standardisation and augmentation. Runs once
 * per training step on the training thread and allocates nothing.
 */
#include "libfl/data/dataset.h"

#include <string.h>

/* Maximum offset of a crop in pixels, as usual for CIFAR-10. */
#define MARGIN 4

/*
 * Convert or standardise one plane of values. The inner loops have a constant length and no
 * branches, so that a compiler at -O2, which does not vectorise loops with a remainder, emits
 * vector code.
 */
#define LANES 16

static void convert_u8(float *restrict out, const uint8_t *restrict in, size_t n, float scale)
{
    size_t i;
    size_t k;

    for (i = 0; i + LANES <= n; i += LANES) {
        for (k = 0; k < LANES; k++) {
            out[i + k] = (float)in[i + k] * scale;
        }
    }
    for (; i < n; i++) {
        out[i] = (float)in[i] * scale;
    }
}

static void convert_f32(float *restrict out, const float *restrict in, size_t n, float scale)
{
    size_t i;
    size_t k;

    for (i = 0; i + LANES <= n; i += LANES) {
        for (k = 0; k < LANES; k++) {
            out[i + k] = in[i + k] * scale;
        }
    }
    for (; i < n; i++) {
        out[i] = in[i] * scale;
    }
}

static void standardise_plane(float *x, size_t n, float mean, float std)
{
    size_t i;
    size_t k;

    for (i = 0; i + LANES <= n; i += LANES) {
        for (k = 0; k < LANES; k++) {
            x[i + k] = (x[i + k] - mean) / std;
        }
    }
    for (; i < n; i++) {
        x[i] = (x[i] - mean) / std;
    }
}

static void standardise_values(float *restrict x, size_t n, const float *restrict mean,
                               const float *restrict std)
{
    size_t i;
    size_t k;

    for (i = 0; i + LANES <= n; i += LANES) {
        for (k = 0; k < LANES; k++) {
            x[i + k] = (x[i + k] - mean[i + k]) / std[i + k];
        }
    }
    for (; i < n; i++) {
        x[i] = (x[i] - mean[i]) / std[i];
    }
}

static void gather_standardise(const struct fl_dataset *ds, float *x)
{
    size_t plane;
    size_t c;

    if (ds->n_norm == ds->dim) {
        standardise_values(x, ds->dim, ds->mean, ds->std);
        return;
    }
    plane = ds->n_norm > 0 ? ds->dim / ds->n_norm : 0;
    for (c = 0; c < ds->n_norm; c++) {
        standardise_plane(x + c * plane, plane, ds->mean[c], ds->std[c]);
    }
}

/* Convert `n` stored values, starting at `at`, to floats. */
static void gather_convert(const struct fl_dataset *ds, size_t at, size_t n, float *out)
{
    if (ds->type == FL_DATA_U8) {
        convert_u8(out, (const uint8_t *)ds->x + at, n, ds->scale);
    } else {
        convert_f32(out, (const float *)ds->x + at, n, ds->scale);
    }
}

void fl_dataset_gather(const struct fl_dataset *ds, const uint32_t *idx, size_t n, float *x,
                       int32_t *y)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float *out = x + i * ds->dim;
        size_t at;

        FL_REQUIRE(idx[i] < ds->n);
        at = fl_dataset_place(ds, idx[i]);
        gather_convert(ds, at * ds->dim, ds->dim, out);
        gather_standardise(ds, out);
        if (y != NULL) {
            y[i] = ds->n_targets > 0 ? (int32_t)at : ds->y[at];
        }
    }
}

/*
 * Random crop and mirroring of a sample: row y of the result is row y + down of the picture,
 * column x its column x + right, black (0) outside of the picture; then mirrored.
 */
static void flip_crop(const struct fl_dataset *ds, struct fl_rng *rng, size_t sample, float *out)
{
    size_t height = ds->dims[1];
    size_t width = ds->dims[2];
    bool flip = fl_rng_below(rng, 2) == 1;
    ptrdiff_t down = (ptrdiff_t)fl_rng_below(rng, 2 * MARGIN + 1) - MARGIN;
    ptrdiff_t right = (ptrdiff_t)fl_rng_below(rng, 2 * MARGIN + 1) - MARGIN;
    size_t shift = (size_t)(right < 0 ? -right : right);
    size_t kept = shift < width ? width - shift : 0; /* columns inside of the picture */
    size_t rows = ds->dims[0] * height;
    size_t r;

    for (r = 0; r < rows; r++, out += width) {
        ptrdiff_t from = (ptrdiff_t)(r % height) + down;
        size_t at = sample * ds->dim + (r - r % height + (size_t)from) * width;

        (void)memset(out, 0, width * sizeof(*out));
        if (from < 0 || from >= (ptrdiff_t)height) {
            continue;
        }
        if (right < 0) {
            gather_convert(ds, at, kept, out + (width - kept));
        } else {
            gather_convert(ds, at + (width - kept), kept, out);
        }
        if (flip) {
            size_t i;

            for (i = 0; i < width / 2; i++) {
                float left = out[i];

                out[i] = out[width - 1 - i];
                out[width - 1 - i] = left;
            }
        }
    }
}

void fl_dataset_gather_train(const struct fl_dataset *ds, struct fl_rng *rng, const uint32_t *idx,
                             size_t n, float *x, int32_t *y)
{
    size_t i;

    if (ds->augment == FL_AUGMENT_NONE) {
        fl_dataset_gather(ds, idx, n, x, y);
        return;
    }
    for (i = 0; i < n; i++) {
        float *out = x + i * ds->dim;
        size_t at;

        FL_REQUIRE(idx[i] < ds->n);
        at = fl_dataset_place(ds, idx[i]);
        flip_crop(ds, rng, at, out);
        gather_standardise(ds, out);
        if (y != NULL) {
            y[i] = ds->n_targets > 0 ? (int32_t)at : ds->y[at];
        }
    }
}
