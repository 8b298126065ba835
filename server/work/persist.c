#include "server/work/persist.h"

int fl_persist_run(const struct fl_federation *federation, const struct fl_effect *effect,
                   struct fl_collection *summaries, struct fl_err *err)
{
    const struct fl_effect *e = effect;
    struct fl_store *store = federation->store;
    /* A simulation records participations itself. */
    const struct fl_participations ended = {.parts = e->ended,
                                            .n = federation->scratch ? 0 : e->n_ended,
                                            .clients = e->clients,
                                            .attempt = e->attempt - 1,
                                            .aborted = e->text};
    int rv = fl_store_put_epoch(store, e->epoch, err);

    if (rv != FL_OK) {
        return rv;
    }
    switch (e->type) {
    case FL_EFF_FORGET_CLIENTS:
        /* The record is deleted last: as long as it exists a failed deletion is retried. */
        if (summaries != NULL) {
            rv = fl_collection_forget(federation, e->clients, e->n_clients, summaries, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
        return fl_store_forget(store, e->clients, e->n_clients, err);
    case FL_EFF_PERSIST_QUARANTINE:
        return fl_store_put_quarantine(store, e->clients, e->n_clients, err);
    case FL_EFF_PERSIST_PAUSE:
        return fl_store_put_pause(store, e->text, err);
    case FL_EFF_PERSIST_SELECTION:
        return fl_collection_select(federation,
                                    &(struct fl_selection){.round = e->round,
                                                           .attempt = e->attempt,
                                                           .parts = e->parts,
                                                           .n_parts = e->n_parts,
                                                           .clients = e->clients,
                                                           .n_clients = e->n_clients,
                                                           .size = e->size,
                                                           .ended = ended.n > 0 ? &ended : NULL,
                                                           .expected = e->expected},
                                    summaries, err);
    case FL_EFF_PERSIST_PLAN:
        return fl_store_put_plan(store, e->round, e->attempt, e->parts, e->n_parts, err);
    case FL_EFF_PERSIST_UPDATE:
        return fl_store_put_update(store, e->round, e->attempt, &e->parts[0], err);
    default:
        return fl_err_set(err, FL_EINVAL, "persist: the effect names no record");
    }
}
