/* Describes the first difference between two layouts, and the first fault of trained values. */

#include <stdio.h>
#include <string.h>

#include "libfl/model/layout.h"
#include "libfl/model/shape.h"
#include "libfl/num/vec.h"

/* Describe the first difference within unit `i`, which both layouts have. False: none. */
static bool diff_unit(const struct fl_layout *have, const struct fl_layout *want, size_t i,
                      char *out, size_t size)
{
    const struct fl_unit *h = fl_layout_unit(have, i);
    const struct fl_unit *w = fl_layout_unit(want, i);
    char h_dims[FL__SHAPE_TEXT_MAX];
    char w_dims[FL__SHAPE_TEXT_MAX];
    size_t j;

    if (strcmp(h->name, w->name) != 0) {
        (void)snprintf(out, size, "unit %zu is '%s', expected '%s'", i + 1, h->name, w->name);
        return true;
    }
    for (j = 0; j < h->n_tensors && j < w->n_tensors; j++) {
        const struct fl_tensor *ht = fl_layout_tensor(have, h->first_tensor + j);
        const struct fl_tensor *wt = fl_layout_tensor(want, w->first_tensor + j);

        if (strcmp(ht->name, wt->name) != 0) {
            (void)snprintf(out, size, "unit %zu '%s': tensor %zu is '%s', expected '%s'", i + 1,
                           h->name, j + 1, ht->name, wt->name);
            return true;
        }
        if (!(ht->n_dims == wt->n_dims &&
              memcmp(ht->dims, wt->dims, ht->n_dims * sizeof(ht->dims[0])) == 0))
        {
            (void)snprintf(out, size, "unit %zu '%s': tensor '%s' is %s, expected %s", i + 1,
                           h->name, ht->name,
                           fl__shape_text(h_dims, sizeof(h_dims), ht->dims, ht->n_dims),
                           fl__shape_text(w_dims, sizeof(w_dims), wt->dims, wt->n_dims));
            return true;
        }
        if (ht->buffer != wt->buffer) {
            (void)snprintf(out, size, "unit %zu '%s': tensor '%s' is %s, expected %s", i + 1,
                           h->name, ht->name, ht->buffer ? "a buffer" : "trainable",
                           wt->buffer ? "a buffer" : "trainable");
            return true;
        }
        if (ht->local != wt->local) {
            (void)snprintf(out, size, "unit %zu '%s': tensor '%s' is %s, expected %s", i + 1,
                           h->name, ht->name, ht->local ? "local to clients" : "exchanged",
                           wt->local ? "local to clients" : "exchanged");
            return true;
        }
    }
    if (h->n_tensors != w->n_tensors) {
        (void)snprintf(out, size, "unit %zu '%s' has %zu tensors, expected %zu", i + 1, h->name,
                       h->n_tensors, w->n_tensors);
        return true;
    }
    return false;
}

void fl_layout_diff(const struct fl_layout *have, const struct fl_layout *want, char *out,
                    size_t size)
{
    size_t i;

    for (i = 0; i < fl_layout_units(have) && i < fl_layout_units(want); i++) {
        if (diff_unit(have, want, i, out, size)) {
            return;
        }
    }
    if (fl_layout_units(have) != fl_layout_units(want)) {
        (void)snprintf(out, size, "%zu units, expected %zu", fl_layout_units(have),
                       fl_layout_units(want));
        return;
    }
    (void)snprintf(out, size, "no difference");
}

int fl_layout_check_trained(const struct fl_layout *layout, const float *trained,
                            struct fl_err *err)
{
    size_t l;

    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);

        if (!fl_vec_finite(trained + unit->offset, unit->count)) {
            return fl_err_set(err, FL_ENUMERIC,
                              "the trained model is not finite in unit '%s': training diverged; a "
                              "smaller learning rate helps",
                              unit->name);
        }
    }
    return FL_OK;
}
