#include "client/store/pending_result.h"

int fl_pending_result_load(struct fl_pending_result *held, struct fl_err *err)
{
    int rv =
        held->state_dir != NULL ? fl_result_load(held->state_dir, &held->result, err) : FL_ENOENT;

    if (rv == FL_EFORMAT) {
        fl_log(held->log, FL_LOG_WARNING, "client", "%s, ignoring the file", fl_err_text(err, rv));
    }
    return rv == FL_ENOENT || rv == FL_EFORMAT ? FL_OK : rv;
}

struct fl_round_key fl_pending_result_key(const struct fl_pending_result *held)
{
    return held->result != NULL ? held->result->key : (struct fl_round_key){0};
}

bool fl_pending_result_is(const struct fl_pending_result *held, struct fl_round_key key)
{
    return held->result != NULL && held->result->key.round == key.round &&
           held->result->key.attempt == key.attempt;
}

void fl_pending_result_put(struct fl_pending_result *held, struct fl_result *result)
{
    fl_result_unref(held->result);
    held->result = result;
}

void fl_pending_result_drop(struct fl_pending_result *held, struct fl_round_key key)
{
    struct fl_err err = {0};
    int rv;

    if (!fl_pending_result_is(held, key)) {
        return;
    }
    fl_pending_result_put(held, NULL);
    rv = held->state_dir != NULL ? fl_result_remove(held->state_dir, &err) : FL_OK;
    if (rv != FL_OK) {
        fl_log(held->log, FL_LOG_WARNING, "client", "%s, ignoring", fl_err_text(&err, rv));
    }
}

void fl_pending_result_done(struct fl_pending_result *held)
{
    fl_pending_result_put(held, NULL);
}
