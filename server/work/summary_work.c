/*
 * Data summaries of clients: which are taken, when they are fixed, how one is removed. Runs on the
 * store's thread, apart from the two questions that begin it.
 */
#include "server/work/summary_work.h"

#include <stdlib.h>
#include <string.h>

bool fl_collection_wanted(const struct fl_federation *federation,
                          const struct fl_progress *progress)
{
    return federation->strategy->solver->summary != NULL && progress->collection.file == NULL;
}

bool fl_collection_waits(const struct fl_federation *federation, const struct fl_progress *progress,
                         const char *client)
{
    return fl_collection_wanted(federation, progress) &&
           !fl_summaries_has(federation->state_dir, client);
}

/* Log lines about left-out summaries of one collection; further ones are only counted. */
#define LINES_MAX 16

struct ruling {
    const struct fl_federation *f;
    size_t n_left_out;
};

static int summary_check_data(const struct fl_federation *f, const void *data, size_t len,
                              struct fl_err *err)
{
    const struct fl_strategy *s = f->strategy;

    if (s->solver->summary_check == NULL) {
        return FL_OK;
    }
    return s->solver->summary_check(s->options[FL_COMPONENT_SOLVER], data, len, f->inputs,
                                    f->classes, err);
}

static int summary_check_one(void *ctx, const void *data, size_t len, double *ret_largest,
                             struct fl_err *err)
{
    const struct ruling *r = ctx;
    int rv = summary_check_data(r->f, data, len, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (r->f->strategy->solver->summary_largest != NULL) {
        *ret_largest = r->f->strategy->solver->summary_largest(data, len);
    }
    return FL_OK;
}

static void left_out(void *ctx, const struct fl_data_summary_info *info, const char *why)
{
    struct ruling *r = ctx;

    if (r->n_left_out++ >= LINES_MAX) {
        return;
    }
    if (info->state == FL_SUMMARY_OUT_OF_RANGE) {
        fl_log(r->f->log, FL_LOG_WARNING, "round",
               "data summary of client '%s' left out: its largest value %g is above %g, %g times "
               "the median of the others (limits.summary_range); the client takes part without it",
               info->client, info->largest, info->bound, r->f->summary_range);
    } else {
        fl_log(r->f->log, FL_LOG_WARNING, "round",
               "data summary of client '%s' left out, the client takes part without it: %s",
               info->client, why);
    }
}

static struct fl_summaries_rule rule_of(struct ruling *ruling)
{
    return (struct fl_summaries_rule){.max = ruling->f->summary_max,
                                      .range = ruling->f->summary_range,
                                      .ctx = ruling,
                                      .check = summary_check_one,
                                      .left_out = left_out};
}

static void summary_log_left_out(const struct ruling *r)
{
    if (r->n_left_out > LINES_MAX) {
        fl_log(r->f->log, FL_LOG_WARNING, "round",
               "%zu data summaries left out in total; 'flctl summaries' lists them", r->n_left_out);
    }
}

int fl_collection_take(const struct fl_federation *federation, const char *client, const void *data,
                       size_t len, struct fl_err *err)
{
    int rv;

    if (len > 0) {
        rv = summary_check_data(federation, data, len, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (fl_summaries_dropped(federation->state_dir, client)) {
        fl_log(federation->log, FL_LOG_NOTICE, "round",
               "data summary of client '%s' ignored: an operator dropped it", client);
        return FL_OK;
    }
    rv = fl_summaries_put(federation->state_dir, client, data, len, err);
    return rv == FL_EEXIST ? FL_OK : rv; /* Too late: the collection is fixed. */
}

bool fl_collection_is_theirs(int code)
{
    return code == FL_EFORMAT || code == FL_ENUMERIC || code == FL_ESHAPE || code == FL_ELIMIT ||
           code == FL_EINVAL;
}

/* Rebuild the collection from the summaries of the clients, also when a removal was interrupted. */
static int summary_renew(const struct fl_federation *f, bool *ret_new, struct fl_err *err)
{
    struct ruling ruling = {.f = f};
    struct fl_summaries_rule rule = rule_of(&ruling);
    int rv = fl_summaries_renew(f->state_dir, &rule, ret_new, err);

    summary_log_left_out(&ruling);
    if (rv != FL_OK) {
        return rv;
    }
    if (*ret_new) {
        fl_log(f->log, FL_LOG_NOTICE, "round",
               "collection of data summaries rebuilt: clients receive it in the next round");
    }
    return FL_OK;
}

int fl_collection_open(const struct fl_federation *federation, struct fl_collection *ret,
                       struct fl_err *err)
{
    bool made = false;
    int rv;

    if (federation->strategy->solver->summary == NULL) {
        return FL_OK;
    }
    rv = fl_summaries_open(federation->state_dir, &ret->file, ret->digest, err);
    if (rv == FL_EFORMAT) {
        fl_log(federation->log, FL_LOG_WARNING, "server",
               "collection of data summaries is damaged and quarantined, rebuilding it before the "
               "next round: %s",
               fl_err_text(err, rv));
        rv = fl_summaries_quarantine(federation->state_dir, err);
        goto done;
    }
    if (rv != FL_OK) {
        goto done;
    }
    rv = summary_renew(federation, &made, err);
    if (made) {
        fl_file_unref(ret->file);
        ret->file = NULL;
        rv = fl_summaries_open(federation->state_dir, &ret->file, ret->digest, err);
    }
done:
    return rv == FL_ENOENT ? FL_OK : rv; /* There is none yet. */
}

static int renew_for(const struct fl_federation *f, struct fl_collection *ret, struct fl_err *err)
{
    bool made = false;
    int rv = summary_renew(f, &made, err);

    if (rv != FL_OK || !made) {
        return rv;
    }
    return fl_summaries_open(f->state_dir, &ret->file, ret->digest, err);
}

int fl_collection_forget(const struct fl_federation *federation,
                         const struct fl_client_rec *clients, size_t n, struct fl_collection *ret,
                         struct fl_err *err)
{
    bool removed = false;
    size_t i;

    if (federation->strategy->solver->summary == NULL) {
        return FL_OK;
    }
    for (i = 0; i < n; i++) {
        int rv =
            fl_summaries_remove(federation->state_dir, clients[i].name, /* stays= */ false, err);

        if (rv == FL_ENOENT) {
            continue;
        }
        if (rv != FL_OK) {
            return rv;
        }
        removed = true;
        fl_log(federation->log, FL_LOG_NOTICE, "round",
               "data summary of client '%s' removed: the client was forgotten", clients[i].name);
    }
    if (!removed) {
        return FL_OK;
    }
    return renew_for(federation, ret, err);
}

int fl_collection_drop(const struct fl_federation *federation, const char *client,
                       struct fl_collection *ret, struct fl_err *err)
{
    int rv;

    if (federation->strategy->solver->summary == NULL) {
        return fl_err_set(err, FL_ESTATE,
                          "data summaries: the configured algorithm does not use them");
    }
    rv = fl_summaries_remove(federation->state_dir, client, /* stays= */ true, err);
    if (rv != FL_OK) {
        return rv;
    }
    return renew_for(federation, ret, err);
}

int fl_collection_list(const struct fl_federation *federation, fl_summaries_list_cb *cb, void *ctx,
                       struct fl_err *err)
{
    struct ruling ruling = {.f = federation};
    struct fl_summaries_rule rule = rule_of(&ruling);

    return federation->strategy->solver->summary != NULL
               ? fl_summaries_list(federation->state_dir, &rule, cb, ctx, err)
               : fl_err_set(err, FL_ESTATE,
                            "data summaries: the configured algorithm does not use them");
}

int fl_collection_select(const struct fl_federation *federation,
                         const struct fl_selection *selection, struct fl_collection *summaries,
                         struct fl_err *err)
{
    const char *dir = federation->state_dir;
    struct ruling ruling = {.f = federation};
    struct fl_summaries_rule rule = rule_of(&ruling);
    bool made = false;
    int rv;

    if (summaries != NULL && selection->n_parts > 0) {
        rv = fl_summaries_fix(dir, &rule, err);
        summary_log_left_out(&ruling);
        if (rv != FL_OK) {
            return rv;
        }
        rv = summary_renew(federation, &made, err); /* Completes an interrupted removal. */
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_summaries_open(dir, &summaries->file, summaries->digest, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_store_put_selection(federation->store, selection, err);
}
