/* Is an upload any good? Of those in files and of those in memory. */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "server/store/spool_impl.h"

/* Floats that are decoded at a time. */
#define VALIDATE_BLOCK ((size_t)16384)

static const char *reason(int rv)
{
    switch (rv) {
    case FL_EFORMAT:
        return "is not what its codec writes";
    case FL_ENUMERIC:
        return "holds a value that is not finite";
    default:
        return fl_strerror(rv);
    }
}

/* Decode to the end without the norm, which would cost a third more. */
static int drain(struct fl_codec_decoder *d, float *block)
{
    size_t count = fl_layout_unit(d->layout, d->unit)->count;
    int rv = FL_OK;

    while (rv == FL_OK && count > 0) {
        size_t n = count < VALIDATE_BLOCK ? count : VALIDATE_BLOCK;

        rv = fl_codec_add(d, 1.0, NULL, block, n);
        count -= n;
    }
    return rv == FL_OK ? d->ops->close(d) : rv;
}

/* `block` is NULL when the norm is wanted. */
static int validate_part(const struct fl_spool_part *part, struct fl__spool_unit *place,
                         const struct fl_layout *layout, float *block, double *norm_sq,
                         struct fl_err *err)
{
    struct fl_codec_decoder d;
    int rv;

    if (part->unit >= fl_layout_units(layout)) {
        return fl_err_set(err, FL_EFORMAT, "upload holds unit %" PRIu32 " of a model of %zu units",
                          part->unit, fl_layout_units(layout));
    }
    rv = fl__spool_unit_open(place, layout, part, &d);
    if (rv == FL_OK) {
        rv = block != NULL ? drain(&d, block) : fl_codec_validate(&d, norm_sq);
    }
    if (rv == FL_OK) {
        return FL_OK;
    }
    return fl_err_set(err, rv, "unit '%s' of %s %s", fl_layout_unit(layout, part->unit)->name,
                      part->bundle == 0 ? "the upload" : "what is sent beside the upload",
                      reason(rv));
}

int fl__spool_validate(const struct fl__spool_head *head, struct fl__ahead *ahead,
                       const struct fl_layout *layout, double norm_bound, struct fl_err *err)
{
    struct fl__spool_unit place = {.ahead = ahead, .start = head->start};
    float *block = NULL;
    double sum = 0.0;
    double worst = -1.0;
    uint32_t worst_unit = 0;
    size_t i;
    int rv = FL_OK;

    if (!(norm_bound > 0.0)) {
        block = malloc(VALIDATE_BLOCK * sizeof(*block));
        if (block == NULL) {
            return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
        }
    }
    for (i = 0; rv == FL_OK && i < head->n_parts; i++) {
        double norm_sq = 0.0;

        place.bytes = head->parts[i].bytes;
        rv = validate_part(&head->parts[i], &place, layout, block, &norm_sq, err);
        place.start += place.bytes;
        if (head->parts[i].bundle != 0) {
            continue; /* Has a scale of its own: the bound is for what moves the model. */
        }
        sum += norm_sq;
        if (norm_sq > worst) {
            worst = norm_sq;
            worst_unit = head->parts[i].unit;
        }
    }
    fl__ahead_done(ahead);
    free(block);
    /* The sum may be infinite with finite entries: that is over any bound. */
    if (rv == FL_OK && norm_bound > 0.0 && !(sqrt(sum) <= norm_bound)) {
        rv = fl_err_set(err, FL_ERANGE,
                        "the norm %.6g of the upload is over the bound %.6g, most of it in unit "
                        "'%s'",
                        sqrt(sum), norm_bound, fl_layout_unit(layout, worst_unit)->name);
    }
    return rv;
}
