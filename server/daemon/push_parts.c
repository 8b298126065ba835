/* The header of a Push against what was asked: which parts, in what order and coding. */

#include <stdlib.h>
#include <string.h>

#include "server/daemon/front_impl.h"

/* The place of a bundle in an upload; FL_SPOOL_MAX_BUNDLES: none is called that. */
static uint32_t bundle_number(const char *const *sends, const char *name)
{
    uint32_t i;

    if (strcmp(name, "update") == 0) {
        return 0;
    }
    for (i = 0; sends != NULL && sends[i] != NULL; i++) {
        if (strcmp(name, sends[i]) == 0) {
            return i + 1;
        }
    }
    return FL_SPOOL_MAX_BUNDLES;
}

int fl_push_parts(const struct fl_server_conf *conf, const struct fl_wire_push_header *h,
                  const uint8_t *grant, struct fl_spool_part **ret, struct fl_err *err)
{
    const struct fl_strategy *s = conf->strategy;
    const char *const *sends = fl_solver_sends(s->solver, s->options[FL_SLOT_SOLVER]);
    struct fl_spool_form form = {.codec = (uint32_t)s->codec->id,
                                 .n_bundles = 1 + fl_solver_names(sends),
                                 .masked = s->upload->mask != NULL};
    struct fl_spool_part *parts = calloc(h->n_parts > 0 ? h->n_parts : 1, sizeof(*parts));
    size_t i;

    if (parts == NULL) {
        return FL_ENOMEM;
    }
    *ret = parts;
    for (i = 0; i < h->n_parts; i++) {
        const struct fl_wire_part *part = &h->parts[i];

        parts[i] = (struct fl_spool_part){.unit = part->unit,
                                          .bundle = bundle_number(sends, part->bundle),
                                          .codec = part->codec,
                                          .masked = part->masked,
                                          .bytes = part->bytes};
        if (parts[i].bundle == FL_SPOOL_MAX_BUNDLES) {
            return fl_err_set(err, FL_EINVAL, "part %zu: bundle '%s' is none that was asked for", i,
                              part->bundle);
        }
    }
    return fl_spool_check(conf->layout, grant, &form, parts, h->n_parts, err);
}
