/* Participations for the status pages (page_parts.h). No I/O. */

#include "server/http/page_parts.h"

#include <stdlib.h>

#include "libfl/base/grow.h"

static struct fl_page_eval parts_accuracy(double accuracy, double loss)
{
    return (struct fl_page_eval){.accuracy = accuracy, .loss = loss};
}

static struct fl_page_part parts_of(const struct fl_wire_participation *p)
{
    const struct fl_part_figures *f = &p->figures;

    return (struct fl_page_part){.client = p->client,
                                 .round = f->round,
                                 .attempt = f->attempt,
                                 .state = p->state,
                                 .asked = p->asked[0] != '\0' ? p->asked : NULL,
                                 .bytes_up = f->uplink_bytes,
                                 .bytes_down = f->downlink_bytes,
                                 .train_loss = f->train_loss,
                                 .remark = p->remark,
                                 .aborted = p->aborted,
                                 .received = parts_accuracy(f->received_accuracy, f->received_loss),
                                 .personal = parts_accuracy(f->personal_accuracy, f->personal_loss),
                                 .metrics = p->metrics,
                                 .mixing = p->mixing,
                                 .n_mixing = p->n_mixing,
                                 .attention = f->attention};
}

int fl_page_parts_take(struct fl_page_parts *parts, struct fl_admin_request *asked,
                       struct fl_err *err)
{
    const uint8_t *data;
    size_t len;
    size_t i;

    while (fl_replies_next(&asked->replies, &data, &len)) {
        int rv = fl_grow(&parts->list, &parts->cap, parts->n, sizeof(*parts->list));

        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_wire_participation_decode(data, len, &parts->list[parts->n], err);
        if (rv != FL_OK) {
            return rv;
        }
        parts->n++;
    }
    parts->parts = calloc(parts->n + 1, sizeof(*parts->parts));
    if (parts->parts == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < parts->n; i++) {
        parts->parts[i] = parts_of(&parts->list[i]);
    }
    return FL_OK;
}

void fl_page_parts_newest(struct fl_page_parts *parts, bool cut)
{
    uint64_t newest = parts->n > 0 ? parts->list[0].figures.round : 0;
    uint64_t oldest = newest > FL_PAGE_PARTS_ROUNDS ? newest - FL_PAGE_PARTS_ROUNDS + 1 : 1;
    uint64_t last = parts->n > 0 ? parts->list[parts->n - 1].figures.round : 0;

    if (cut && last < newest && last >= oldest) {
        oldest = last + 1;
    }
    while (parts->n > 0 && parts->list[parts->n - 1].figures.round < oldest) {
        fl_wire_participation_done(&parts->list[--parts->n]);
    }
}

void fl_page_parts_done(struct fl_page_parts *parts)
{
    size_t i;

    for (i = 0; i < parts->n; i++) {
        fl_wire_participation_done(&parts->list[i]);
    }
    free(parts->list);
    free(parts->parts);
    *parts = (struct fl_page_parts){.n = 0};
}
