/* Validates an upload and measures its norms, for uploads in files and in memory. */

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "server/store/spool_impl.h"

_Static_assert(FL_NORMS_PAYLOADS == FL_SPOOL_MAX_PAYLOADS, "each payload has a norm");

static int validate_part(const struct fl_spool_part *part, struct fl__spool_unit *place,
                         const struct fl_layout *layout, struct fl_codec_size *ret,
                         struct fl_err *err)
{
    struct fl_codec_decoder d;
    int rv;

    if (part->unit >= fl_layout_units(layout)) {
        return fl_err_set(err, FL_EFORMAT, "upload holds unit %" PRIu32 " of a model of %zu units",
                          part->unit, fl_layout_units(layout));
    }
    rv = fl__spool_unit_open(place, layout, part, &d);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_codec_measure(&d, ret);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    return fl_err_set(err, rv, "unit '%s' of %s %s", fl_layout_unit(layout, part->unit)->name,
                      part->payload == 0 ? "the upload" : "what is sent beside the upload",
                      rv == FL_EFORMAT    ? "is not what its codec writes"
                      : rv == FL_ENUMERIC ? "holds a value that is not finite"
                                          : fl_strerror(rv));
}

/* Sums of squares, and the numbers of summed entries. */
struct sums {
    double square[FL_NORMS_N];
    double n[FL_NORMS_N];
};

/* Values above FLT_MAX become infinite. */
static float float_of(double x)
{
    return x <= (double)FLT_MAX ? (float)x : INFINITY;
}

/* Only the update is bounded: the solver's payloads have scales of their own. */
static int check_bound(const struct fl_layout *layout, const struct fl_norms *norms, double norm,
                       double bound, struct fl_err *err)
{
    size_t worst = 0;
    size_t l;

    if (!(bound > 0.0) || norm <= bound) {
        return FL_OK;
    }
    for (l = 1; l < fl_layout_units(layout); l++) {
        worst = norms->unit[l].norm > norms->unit[worst].norm ? l : worst;
    }
    return fl_err_set(err, FL_ERANGE,
                      "the norm %.6g of the upload exceeds the bound %.6g, most of it in unit '%s'",
                      norm, bound, fl_layout_unit(layout, worst)->name);
}

void fl__norms_done(struct fl_norms *norms)
{
    free(norms->unit);
    *norms = (struct fl_norms){.unit = NULL};
}

int fl__spool_validate(const struct fl__spool_head *head, struct fl__ahead *ahead,
                       const struct fl_layout *layout, double norm_bound, struct fl_norms *ret,
                       struct fl_err *err)
{
    struct fl__spool_unit place = {.ahead = ahead, .start = head->file.start};
    struct sums sums = {.n = {0}};
    size_t n_units = fl_layout_units(layout);
    struct fl_norms norms = {.unit = malloc(n_units * sizeof(*norms.unit))};
    size_t i;
    int rv;

    if (norms.unit == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    for (i = 0; i < n_units; i++) {
        norms.unit[i] = (struct fl_unit_norm){.norm = -1.0f};
    }
    for (i = 0; i < head->n_parts; i++) {
        const struct fl_spool_part *part = &head->parts[i];
        struct fl_codec_size size = {.n = 0};

        place.bytes = part->bytes;
        rv = validate_part(part, &place, layout, &size, err);
        if (rv != FL_OK) {
            goto fail;
        }
        place.start += place.bytes;
        sums.square[part->payload] += size.norm_sq;
        sums.n[part->payload] += (double)size.n;
        if (part->payload == 0) {
            sums.square[FL_NORMS_BUFFERS] += size.buffers_sq;
            sums.n[FL_NORMS_BUFFERS] += (double)size.n_buffers;
            norms.unit[part->unit] = (struct fl_unit_norm){.norm = float_of(sqrt(size.norm_sq)),
                                                           .low = float_of(size.low),
                                                           .high = float_of(size.high)};
        }
    }
    for (i = 0; i < FL_NORMS_N; i++) {
        norms.rms[i] = sums.n[i] > 0.0 ? sqrt(sums.square[i] / sums.n[i]) : 0.0;
    }
    rv = check_bound(layout, &norms, sqrt(sums.square[0]), norm_bound, err);
    if (rv != FL_OK) {
        goto fail;
    }
    fl__ahead_done(ahead);
    fl__norms_done(ret);
    *ret = norms;
    return FL_OK;
fail:
    fl__ahead_done(ahead);
    fl__norms_done(&norms);
    return rv;
}
