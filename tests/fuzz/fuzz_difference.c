/*
 * Any bytes as what changed between two models, and as the moves of a step on disk. Checked:
 * nothing outside the bytes is read; a model that comes out is finite and within the range of the
 * lattice.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/broadcast/lattice.h"
#include "libfl/strategy/broadcast/versions.h"

#define WEIGHTS 300
#define MEANS   3
#define COUNT   (WEIGHTS + MEANS + 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool fact)
{
    if (!fact) {
        abort();
    }
}

static struct fl_layout *layout_new(void)
{
    size_t n[3] = {WEIGHTS, MEANS, COUNT - WEIGHTS - MEANS};
    struct fl_layout *layout = NULL;

    expect(fl_layout_create(&layout) == FL_OK &&
           fl_layout_add(layout, "u", "u.weight", &n[0], 1, false, NULL) == FL_OK &&
           fl_layout_add(layout, "u", "u.mean", &n[1], 1, true, NULL) == FL_OK &&
           fl_layout_add(layout, "v", "v.weight", &n[2], 1, false, NULL) == FL_OK &&
           fl_layout_finish(layout, NULL) == FL_OK);
    return layout;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_layout *layout = layout_new();
    struct fl_step step = {.round = 1};
    uint8_t *copy = malloc(size > 0 ? size : 1); /* Of exactly that length, for the sanitizer. */
    float model[COUNT];
    size_t i;

    expect(copy != NULL && fl_blob_create(size, &step.moves) == FL_OK);
    for (i = 0; i < COUNT; i++) {
        model[i] = (float)i / 64;
    }
    if (size > 0) {
        (void)memcpy(copy, data, size);
        (void)memcpy(fl_blob_fill(step.moves), data, size);
    }
    if (fl_difference_apply(layout, copy, size, model, NULL) == FL_OK) {
        for (i = 0; i < COUNT; i++) {
            bool mean = i >= WEIGHTS && i < WEIGHTS + MEANS;

            expect(isfinite(model[i]) && (mean || fabs((double)model[i]) < FL_LATTICE_RANGE));
        }
    }
    (void)!fl_step_check(layout, &step, NULL);
    fl_step_done(&step);
    free(copy);
    fl_layout_free(layout);
    return 0;
}
