/* Numbers of neurons of a unit and of a model (upload.h). */
#include "libfl/strategy/upload/upload.h"

size_t fl_neurons(const struct fl_layout *layout, size_t l)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    size_t n = 0;
    size_t i;

    for (i = 0; i < unit->n_tensors; i++) {
        const struct fl_tensor *t = fl_layout_tensor(layout, unit->first_tensor + i);
        size_t first = t->n_dims > 0 ? t->dims[0] : 1;

        if (i > 0 && first != n) {
            return 1;
        }
        n = first;
    }
    return n;
}

size_t fl_neurons_total(const struct fl_layout *layout)
{
    size_t total = 0;
    size_t l;

    for (l = 0; l < fl_layout_units(layout); l++) {
        total += fl_neurons(layout, l);
    }
    return total;
}
