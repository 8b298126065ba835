/* Checks the manifest of an upload against the upload mask and the required form. */

#include <inttypes.h>

#include "server/store/spool_impl.h"

/* Check the section of one unit in one payload. */
static int check_part(const struct fl_layout *layout, const struct fl_spool_form *form, size_t unit,
                      const struct fl_spool_part *part, struct fl_err *err)
{
    const char *name = fl_layout_unit(layout, unit)->name;
    const struct fl_codec_ops *ops =
        part->payload == 0 ? fl_codec_by_id((int)form->codec) : &fl_codec_float32;
    bool masked = part->payload == 0 && form->masked;

    if (part->codec != (uint32_t)ops->id) {
        return fl_err_set(err, FL_ESHAPE, "unit '%s' comes in codec %" PRIu32 ", not %s", name,
                          part->codec, ops->policy.name);
    }
    if (part->masked != masked) {
        return fl_err_set(err, FL_ESHAPE, "unit '%s' comes %s a mask of its neurons, it has to %s",
                          name, part->masked ? "with" : "without",
                          masked ? "have one" : "be whole");
    }
    if (part->bytes > fl__spool_max_size(layout, part)) {
        return fl_err_set(err, FL_ESHAPE,
                          "unit '%s' has %" PRIu64 " bytes, at most %" PRIu64 " are possible", name,
                          part->bytes, fl__spool_max_size(layout, part));
    }
    return FL_OK;
}

int fl_spool_check(const struct fl_layout *layout, const uint8_t *grant,
                   const struct fl_spool_form *form, const struct fl_spool_part *parts,
                   size_t n_parts, struct fl_err *err)
{
    size_t n_units = fl_layout_units(layout);
    size_t i = 0;
    size_t l;
    size_t b;

    FL_REQUIRE(form->codec <= INT32_MAX && fl_codec_by_id((int)form->codec) != NULL &&
               form->n_payloads >= 1 && form->n_payloads <= FL_SPOOL_MAX_PAYLOADS);
    for (l = 0; l < n_units; l++) {
        for (b = 0; grant[l] != 0 && b < form->n_payloads; b++) {
            int rv;

            if (i >= n_parts || parts[i].unit != l || parts[i].payload != b) {
                return fl_err_set(
                    err, FL_ESHAPE, "unit '%s'%s was asked for and is not in its place",
                    fl_layout_unit(layout, l)->name, b == 0 ? "" : " of what the solver sends");
            }
            rv = check_part(layout, form, l, &parts[i], err);
            if (rv != FL_OK) {
                return rv;
            }
            i++;
        }
    }
    if (i < n_parts) {
        return fl_err_set(err, FL_ESHAPE, "%zu units that were not asked for are in the upload",
                          n_parts - i);
    }
    return FL_OK;
}
