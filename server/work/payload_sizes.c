#include "server/work/payload_sizes.h"

#include <stdlib.h>
#include <string.h>

static const char *const *strategy_sends(const struct fl_strategy *s)
{
    return fl_solver_sends(s->solver, s->options[FL_COMPONENT_SOLVER]);
}

size_t fl_sent_place(const struct fl_strategy *strategy, const char *payload)
{
    const char *const *names = strategy_sends(strategy);
    size_t i;

    if (strcmp(payload, "update") == 0) {
        return 0;
    }
    for (i = 0; names != NULL && names[i] != NULL; i++) {
        if (strcmp(payload, names[i]) == 0) {
            return 1 + i;
        }
    }
    return FL_SPOOL_MAX_PAYLOADS;
}

int fl_sent_parts(const struct fl_layout *layout, const struct fl_strategy *strategy,
                  const struct fl_wire_push_header *header, const uint8_t *grant,
                  struct fl_spool_part **ret, struct fl_err *err)
{
    struct fl_spool_form form = {.codec = (uint32_t)strategy->codec->id,
                                 .n_payloads = 1 + fl_solver_names(strategy_sends(strategy)),
                                 .masked = strategy->upload->mask != NULL};
    struct fl_spool_part *parts = calloc(header->n_parts > 0 ? header->n_parts : 1, sizeof(*parts));
    size_t i;
    int rv;

    if (parts == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    for (i = 0; i < header->n_parts; i++) {
        const struct fl_wire_part *part = &header->parts[i];
        size_t place = fl_sent_place(strategy, part->payload);

        if (place == FL_SPOOL_MAX_PAYLOADS) {
            rv = fl_err_set(err, FL_EINVAL,
                            "upload: section %zu has payload '%s', which was not requested", i,
                            part->payload);
            goto fail;
        }
        parts[i] = (struct fl_spool_part){.unit = part->unit,
                                          .payload = (uint32_t)place,
                                          .codec = part->codec,
                                          .masked = part->masked,
                                          .bytes = part->bytes};
    }
    rv = fl_spool_check(layout, grant, &form, parts, header->n_parts, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = parts;
    return FL_OK;
fail:
    free(parts);
    return rv;
}
