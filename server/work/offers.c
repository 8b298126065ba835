#include "server/work/offers.h"

#include <stdlib.h>
#include <string.h>

bool fl_offering_wanted(const struct fl_federation *federation, const struct fl_progress *progress)
{
    return federation->strategy->solver->offer != NULL && progress->offered.file == NULL;
}

bool fl_offering_waits(const struct fl_federation *federation, const struct fl_progress *progress,
                       const char *client)
{
    return fl_offering_wanted(federation, progress) &&
           !fl_offers_has(federation->state_dir, client);
}

static int check(void *ctx, const void *data, size_t len, struct fl_err *err)
{
    const struct fl_federation *f = ctx;
    const struct fl_strategy *s = f->strategy;

    return s->solver->offer_check != NULL ? s->solver->offer_check(s->options[FL_SLOT_SOLVER], data,
                                                                   len, f->inputs, f->classes, err)
                                          : FL_OK;
}

int fl_offering_take(const struct fl_federation *federation, const char *client, const void *data,
                     size_t len, struct fl_err *err)
{
    int rv = len > 0 ? check((void *)(uintptr_t)federation, data, len, err) : FL_OK;

    return rv == FL_OK ? fl_offers_put(federation->state_dir, client, data, len, err) : rv;
}

bool fl_offering_is_theirs(int code)
{
    return code == FL_EFORMAT || code == FL_ENUMERIC || code == FL_ESHAPE || code == FL_ELIMIT ||
           code == FL_EINVAL;
}

static int open_fixed(const struct fl_federation *f, struct fl_offered *ret, struct fl_err *err)
{
    int rv = fl_offers_open(f->state_dir, &ret->file, ret->digest, err);

    if (rv == FL_OK && !fl_file_checked(ret->file)) {
        fl_log(f->log, FL_LOG_NOTICE, "server",
               "what clients offered was fixed by an earlier version and carries no checksums");
    }
    return rv;
}

int fl_offering_open(const struct fl_federation *federation, struct fl_offered *ret,
                     struct fl_err *err)
{
    int rv;

    if (federation->strategy->solver->offer == NULL) {
        return FL_OK;
    }
    rv = open_fixed(federation, ret, err);
    if (rv == FL_EFORMAT) {
        fl_log(federation->log, FL_LOG_WARNING, "server",
               "what clients offered is put together again before the next round: %s",
               fl_err_text(err, rv));
        rv = fl_offers_set_aside(federation->state_dir, err);
    }
    return rv == FL_ENOENT ? FL_OK : rv;
}

static int fix(const struct fl_federation *f, struct fl_offered *ret, struct fl_err *err)
{
    size_t bad = 0;
    int rv = fl_offers_fix(f->state_dir, f->offer_max, check, (void *)(uintptr_t)f, &bad, err);

    if (rv == FL_OK && bad > 0) {
        fl_log(f->log, FL_LOG_WARNING, "round",
               "%zu offers do not fit this configuration and are left out", bad);
    }
    return rv == FL_OK ? open_fixed(f, ret, err) : rv;
}

int fl_offering_select(const struct fl_federation *federation, const struct fl_selection *selection,
                       struct fl_offered *offers, struct fl_err *err)
{
    int rv = offers != NULL && selection->n_parts > 0 ? fix(federation, offers, err) : FL_OK;

    return rv == FL_OK ? fl_store_put_selection(federation->store, selection, err) : rv;
}
