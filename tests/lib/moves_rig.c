#include "tests/lib/moves_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

void moves_rig_init(struct moves_rig *rig, const struct fl_layout *layout, const float *first,
                    size_t n)
{
    size_t count = fl_layout_count(layout);
    size_t i;
    size_t k;

    ck_assert_uint_le(n, MOVES_RIG_MAX);
    *rig = (struct moves_rig){.layout = layout, .n = n, .bytes = count * sizeof(float)};
    for (k = 0; k < n; k++) {
        rig->models[k] = calloc(count, sizeof(float));
        ck_assert_ptr_nonnull(rig->models[k]);
        if (k == 0 && first != NULL) {
            (void)memcpy(rig->models[0], first, rig->bytes);
        }
        for (i = 0; k > 0 && i < count; i++) {
            rig->models[k][i] = rig->models[k - 1][i] + (i % 7 == k % 7 ? 0x1p-6f : 0);
        }
        ck_assert_int_eq(fl_versions_digest(layout, rig->models[k], rig->digests[k]), FL_OK);
    }
}

void moves_rig_done(struct moves_rig *rig)
{
    while (rig->n > 0) {
        free(rig->models[--rig->n]);
    }
}

struct fl_step moves_rig_step(const struct moves_rig *rig, uint64_t round)
{
    struct fl_step step;

    ck_assert_int_eq(
        fl_step_make(rig->layout, rig->models[round - 1], rig->models[round], &step, NULL), FL_OK);
    step.round = round;
    (void)memcpy(step.from, rig->digests[round - 1], sizeof(step.from));
    return step;
}

struct fl_versions *moves_rig_versions(const struct moves_rig *rig, uint64_t from, uint64_t to)
{
    struct fl_versions *v = NULL;

    ck_assert_int_eq(fl_versions_create(rig->digests[from], &v), FL_OK);
    while (from < to) {
        struct fl_step step = moves_rig_step(rig, ++from);
        struct fl_versions *longer = NULL;

        ck_assert_int_eq(fl_versions_add(v, &step, &longer), FL_OK);
        fl_versions_unref(v);
        v = longer;
    }
    return v;
}

bool moves_rig_reaches(const struct moves_rig *rig, const struct fl_versions *versions,
                       uint64_t held, uint64_t newest)
{
    struct fl_blob *bytes = NULL;
    float *model;
    int rv =
        moves_difference(versions, rig->layout, rig->models[newest], rig->digests[held], &bytes);

    if (rv != FL_OK) {
        ck_assert_int_eq(rv, FL_ENOENT);
        return false;
    }
    model = malloc(rig->bytes);
    ck_assert_ptr_nonnull(model);
    (void)memcpy(model, rig->models[held], rig->bytes);
    ck_assert_int_eq(
        fl_difference_apply(rig->layout, fl_blob_data(bytes), fl_blob_len(bytes), model, NULL),
        FL_OK);
    ck_assert_mem_eq(model, rig->models[newest], rig->bytes);
    free(model);
    fl_blob_unref(bytes);
    return true;
}

int moves_difference(const struct fl_versions *versions, const struct fl_layout *layout,
                     const float *newest, const uint8_t held[FL_DIGEST_SIZE], struct fl_blob **ret)
{
    const uint8_t *divided = fl_versions_divide(versions, held);
    struct fl_difference rest = {.bytes = NULL};
    struct fl_difference made = {.bytes = NULL};
    struct fl_merger *merger = NULL;
    int rv;

    ck_assert_int_eq(fl_merger_create(layout, &merger), FL_OK);
    rv = divided != NULL ? fl_versions_difference(versions, merger, newest, divided, NULL, &rest)
                         : FL_OK;
    if (rv == FL_OK) {
        rv = fl_versions_difference(versions, merger, newest, held, divided != NULL ? &rest : NULL,
                                    &made);
    }
    if (rv == FL_OK) {
        *ret = fl_blob_ref(made.bytes);
    }
    fl_difference_done(&made);
    fl_difference_done(&rest);
    fl_merger_free(merger);
    return rv;
}

/* All entries are touched. */
static struct fl_moves moves_of(size_t n)
{
    struct fl_moves m = {.n = n,
                         .sums = calloc(n + 1, sizeof(*m.sums)),
                         .touched = calloc(n / 64 + 1, sizeof(*m.touched))};
    size_t i;

    ck_assert(m.sums != NULL && m.touched != NULL);
    for (i = 0; i < n; i++) {
        m.touched[i / 64] |= UINT64_C(1) << i % 64;
    }
    return m;
}

static void moves_done(struct fl_moves *m)
{
    free(m->sums);
    free(m->touched);
}

int moves_encode(const int32_t *moves, size_t n, struct fl_buf *out)
{
    struct fl_moves m = moves_of(n);
    int rv;

    (void)memcpy(m.sums, moves, n * sizeof(*moves));
    rv = fl_moves_encode(&m, false, out);
    moves_done(&m);
    return rv;
}

int moves_decode(const uint8_t *data, size_t len, size_t n, int32_t *sum, size_t *ret_used,
                 struct fl_err *err)
{
    struct fl_moves m = moves_of(n);
    int rv;

    (void)memcpy(m.sums, sum, n * sizeof(*sum));
    rv = fl_moves_decode(data, len, &m, ret_used, err);
    (void)memcpy(sum, m.sums, n * sizeof(*sum));
    moves_done(&m);
    return rv;
}
