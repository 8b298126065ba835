/*
 * IDX, the format of MNIST: big-endian 32-bit numbers (magic, one per dimension), then
 * unsigned bytes. The third byte of the magic is the element type (8 = unsigned byte), the
 * fourth the number of dimensions.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "libfl/data/format.h"

#define IMAGES_MAGIC 0x00000803u
#define LABELS_MAGIC 0x00000801u

/* Read the magic and the `n` numbers after it. */
static int idx_read_header(struct fl_source *src, uint32_t magic, const char *what, uint32_t *ret,
                           size_t n, struct fl_err *err)
{
    uint8_t raw[16];
    uint32_t numbers[4];
    size_t want = 4 * (n + 1);
    size_t got = 0;
    size_t i;
    int rv = fl__source_read(src, raw, want, &got, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i + 4 <= got; i += 4) {
        numbers[i / 4] = (uint32_t)raw[i] << 24 | (uint32_t)raw[i + 1] << 16 |
                         (uint32_t)raw[i + 2] << 8 | raw[i + 3];
    }
    if (got >= 4 && numbers[0] != magic) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': wrong magic: expected 0x%08" PRIx32 " (%s), found 0x%08" PRIx32,
                          src->name, magic, what, numbers[0]);
    }
    if (got < want) {
        return fl__source_truncated(src, want, err);
    }
    for (i = 0; i < n; i++) {
        ret[i] = numbers[i + 1];
    }
    return FL_OK;
}

static int read_labels(struct fl_source *src, uint32_t *ret_n, int32_t **ret, struct fl_err *err)
{
    const uint64_t flat = 1;
    uint32_t n = 0;
    void *raw = NULL;
    int32_t *y = NULL;
    size_t i;
    int rv = idx_read_header(src, LABELS_MAGIC, "labels", &n, 1, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__data_check_size(src->name, n, &flat, 1, 1, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__source_read_new(src, n, &raw, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__source_expect_end(src, err);
    if (rv != FL_OK) {
        goto out;
    }
    y = malloc((size_t)n * sizeof(*y));
    if (y == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its labels", src->name);
        goto out;
    }
    for (i = 0; i < n; i++) {
        y[i] = ((const uint8_t *)raw)[i];
    }
    *ret = y;
    *ret_n = n;
out:
    free(raw);
    return rv;
}

int fl__idx_read(struct fl_source *images, struct fl_source *labels, struct fl_dataset **ret,
                 struct fl_err *err)
{
    uint32_t head[3] = {0};
    uint32_t n_labels = 0;
    int32_t *y = NULL;
    void *x = NULL;
    int rv = idx_read_header(images, IMAGES_MAGIC, "images", head, 3, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv =
        fl__data_check_size(images->name, head[0], (const uint64_t[]){head[1], head[2]}, 2, 1, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = read_labels(labels, &n_labels, &y, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (n_labels != head[0]) {
        rv = fl_err_set(err, FL_ESHAPE,
                        "'%s' holds %" PRIu32 " images but '%s' holds %" PRIu32 " labels",
                        images->name, head[0], labels->name, n_labels);
        goto out;
    }
    rv = fl__source_read_new(images, (uint64_t)head[0] * head[1] * head[2], &x, err);
    if (rv != FL_OK) {
        goto out;
    }
    rv = fl__source_expect_end(images, err);
    if (rv != FL_OK) {
        goto out;
    }
    rv = fl__dataset_adopt(&(struct fl__arrays){.type = FL_DATA_U8,
                                                .n = head[0],
                                                .dims = (const size_t[]){1, head[1], head[2]},
                                                .n_dims = 3,
                                                .x = x,
                                                .y = y},
                           ret, err);
out:
    if (rv != FL_OK) {
        free(x);
        free(y);
    }
    return rv;
}
