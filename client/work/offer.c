#include "client/work/offer.h"

int fl_offer_make(const struct fl_worker *worker, struct fl_offer *ret)
{
    struct fl_err err = {0};
    int rv;

    *ret = (struct fl_offer){.told = 0};
    fl_buf_init(&ret->data, FL_OFFER_MAX);
    rv = fl_trainer_offer(worker->trainer, worker->seed, &ret->data, &err);
    if (rv != FL_OK) {
        fl_buf_done(&ret->data);
        fl_buf_init(&ret->data, 0);
    }
    if (rv != FL_OK && rv != FL_ENOMEM) {
        fl_log(worker->log, FL_LOG_WARNING, "client",
               "cannot tell the server of the data, taking part without: %s",
               fl_err_text(&err, rv));
    }
    return rv == FL_ENOMEM ? rv : FL_OK;
}

void fl_offer_rewind(struct fl_offer *offer)
{
    offer->told = 0;
    offer->told_all = false;
}

bool fl_offer_next(struct fl_offer *offer, struct fl_wire_offer *ret)
{
    size_t left = offer->data.len - offer->told;

    if (offer->told_all) {
        return false;
    }
    ret->offset = offer->told;
    ret->total = offer->data.len;
    ret->len = left < FL_WIRE_OFFER_PIECE ? left : FL_WIRE_OFFER_PIECE;
    ret->data = ret->len > 0 ? offer->data.data + offer->told : NULL;
    offer->told += ret->len;
    offer->told_all = offer->told == offer->data.len;
    return true;
}

void fl_offer_done(struct fl_offer *offer)
{
    fl_buf_done(&offer->data);
    *offer = (struct fl_offer){.told = 0};
}

int fl_offer_check(const struct fl_setup *setup, bool wants, bool allowed, struct fl_err *err)
{
    if ((!wants && setup->solver->offer == NULL) || allowed) {
        return FL_OK;
    }
    return fl_err_set(err, FL_EPERM,
                      "with the solver '%s' means of this client's samples leave the machine, for "
                      "all other clients, and its configuration does not say 'offers: yes'",
                      setup->solver->policy.name);
}
