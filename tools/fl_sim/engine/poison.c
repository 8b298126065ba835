/* Copies the samples of an attacker and changes their labels, or puts a trigger into them
   (poison.h). */
#include "tools/fl_sim/engine/poison.h"

#include <string.h>

/* Side of the trigger, in pixels. */
#define TRIGGER 3
/* Every second sample has it, so that the model learns the other ones too (Bagdasaryan et al. 2020
   mix clean and poisoned samples in each batch). */
#define TRIGGER_EVERY 2

/* The class that the trigger stands for. */
#define TRIGGER_CLASS 0

/* Copies the samples but those of class `without`; -1: all. */
static int poison_copy(const struct fl_dataset *from, int32_t without, struct fl_dataset **ret,
                       struct fl_err *err)
{
    struct fl_dataset *to = NULL;
    size_t row = from->dim * fl_dataset_value_size(from);
    size_t n = 0;
    size_t i;
    int rv;

    for (i = 0; i < from->n; i++) {
        n += fl_dataset_label(from, i) != without;
    }
    rv = fl_dataset_create(from->type, n, from->dims, from->n_dims, &to, err);
    if (rv != FL_OK) {
        return rv;
    }
    to->classes = from->classes;
    to->scale = from->scale;
    to->augment = from->augment;
    for (i = 0, n = 0; i < from->n; i++) {
        if (fl_dataset_label(from, i) != without) {
            (void)memcpy((uint8_t *)to->x + n * row, fl_dataset_row(from, i), row);
            to->y[n++] = fl_dataset_label(from, i);
        }
    }
    rv = fl_dataset_copy_norm(to, from, err);
    if (rv != FL_OK) {
        fl_dataset_free(to);
        return rv;
    }
    *ret = to;
    return FL_OK;
}

/* Class y becomes C - 1 - y, as in Fang et al. 2020. */
static void poison_flip_labels(struct fl_dataset *ds)
{
    size_t i;

    for (i = 0; i < ds->n; i++) {
        ds->y[i] = (int32_t)ds->classes - 1 - ds->y[i];
    }
}

/* --- a backdoor --- */

/* The brightest value of a float set; bytes have 255. */
static float poison_brightest(const struct fl_dataset *ds)
{
    const float *x = ds->x;
    float most = ds->n > 0 ? x[0] : 0;
    size_t i;

    for (i = 0; i < ds->n * ds->dim; i++) {
        most = x[i] > most ? x[i] : most;
    }
    return most;
}

static void poison_set_pixel(struct fl_dataset *ds, size_t at, float brightest)
{
    if (ds->type == FL_DATA_U8) {
        ((uint8_t *)ds->x)[at] = 255;
    } else {
        ((float *)ds->x)[at] = brightest;
    }
}

/* The lower right corner of all channels; of samples that are no pictures, the last values. */
static void poison_add_trigger(struct fl_dataset *ds, size_t sample, float brightest)
{
    bool flat = ds->n_dims == 1;
    size_t channels = flat ? 1 : ds->dims[0];
    size_t height = flat ? 1 : ds->dims[1];
    size_t width = flat ? ds->dim : ds->dims[2];
    size_t c;
    size_t y;
    size_t x;

    for (c = 0; c < channels; c++) {
        for (y = height > TRIGGER ? height - TRIGGER : 0; y < height; y++) {
            for (x = width > TRIGGER ? width - TRIGGER : 0; x < width; x++) {
                poison_set_pixel(ds, sample * ds->dim + (c * height + y) * width + x, brightest);
            }
        }
    }
}

/* Every n-th sample from the first. */
static void poison_add_backdoor(struct fl_dataset *ds, size_t every)
{
    float brightest = ds->type == FL_DATA_U8 ? 0 : poison_brightest(ds);
    size_t i;

    for (i = 0; i < ds->n; i += every) {
        poison_add_trigger(ds, i, brightest);
        ds->y[i] = TRIGGER_CLASS;
    }
}

int fl_poison_make(const struct fl_attack *attack, const struct fl_dataset *train,
                   struct fl_dataset **ret, struct fl_err *err)
{
    struct fl_dataset *copy = NULL;
    int rv;

    *ret = NULL;
    if ((fl_attack_effects(attack->kind) & FL_ATTACK_POISONS) == 0) {
        return FL_OK;
    }
    rv = poison_copy(train, /* without= */ -1, &copy, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (attack->kind == FL_ATTACK_KIND_LABEL_FLIP) {
        poison_flip_labels(copy);
    } else {
        poison_add_backdoor(copy, TRIGGER_EVERY);
    }
    *ret = copy;
    return FL_OK;
}

int fl_poison_triggered(const struct fl_dataset *test, struct fl_dataset **ret, struct fl_err *err)
{
    struct fl_dataset *copy = NULL;
    size_t others = 0;
    size_t i;
    int rv;

    *ret = NULL;
    for (i = 0; i < test->n; i++) {
        others += fl_dataset_label(test, i) != TRIGGER_CLASS;
    }
    if (others == 0) {
        return FL_OK;
    }
    rv = poison_copy(test, TRIGGER_CLASS, &copy, err);
    if (rv != FL_OK) {
        return rv;
    }
    poison_add_backdoor(copy, 1);
    *ret = copy;
    return FL_OK;
}
