/*
 * Checkpoints written in pieces: values are written while they are computed, so that a commit waits
 * only for the headers and for the rest of the disk writes. One thread at a time, blocking.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "server/store/models_impl.h"

struct fl_models_draft {
    struct fl_models_checkpoint c; /* `tag` only while it begins and while it is sealed */
    bool sync;
    struct fl_st_draft *of[1 + FL_AGG_MAX_STATE]; /* the model, then its vectors */
    size_t next;                                  /* the next entry to write */
    bool broken; /* a write failed or was out of order: sealing fails */
};

int fl_models_draft_begin(const struct fl_models_checkpoint *c, bool sync,
                          struct fl_models_draft **ret, struct fl_err *err)
{
    struct fl_models_draft *d = calloc(1, sizeof(*d));
    char states[FL__MODELS_STATES_MAX] = "";
    size_t i;
    int rv;

    if (d == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    d->c = *c;
    d->sync = sync;
    rv = fl__models_folder(c->dir, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < c->n_state; i++) { /* Placeholders of the final length. */
        rv = fl__models_put_state(c->state_names[i], "0123456789abcdef", states, sizeof(states),
                                  err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    for (i = 0; i <= c->n_state; i++) {
        struct fl__models_one one;

        rv = fl__models_describe(&d->c, i > 0 ? d->c.state_names[i - 1] : NULL, states,
                                 FL__MODELS_NO_KEPT, &one, err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl_st_draft_begin(one.path, d->c.layout, one.meta, one.n, sync, &d->of[i], err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    d->c.tag = NULL;
    *ret = d;
    return FL_OK;
fail:
    fl_models_draft_free(d);
    return rv;
}

void fl_models_draft_write(struct fl_models_draft *draft, const float *theta,
                           const float *const *state, size_t offset, size_t n)
{
    size_t i;

    draft->broken = draft->broken || offset != draft->next;
    for (i = 0; !draft->broken && i <= draft->c.n_state; i++) {
        const float *from = i > 0 ? state[i - 1] : theta;

        draft->broken = fl_st_draft_write(draft->of[i], from + offset, n, NULL) != FL_OK;
    }
    draft->next += n;
}

static int seal_one(const struct fl_models_draft *d, size_t i, const float *values,
                    const char *states, const char *kept, struct fl_err *err)
{
    struct fl__models_one one;
    int rv =
        fl__models_describe(&d->c, i > 0 ? d->c.state_names[i - 1] : NULL, states, kept, &one, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_st_draft_seal(d->of[i], values, one.meta, one.n, err);
}

int fl_models_draft_seal(struct fl_models_draft *draft, uint64_t round,
                         const struct fl_models_tag *tag, const float *theta,
                         const float *const *state, struct fl_err *err)
{
    char states[FL__MODELS_STATES_MAX] = "";
    char kept[FL_CHECKSUM_TEXT] = FL__MODELS_NO_KEPT;
    size_t i;
    int rv;

    if (draft->broken || draft->c.round != round) {
        return fl_err_set(err, FL_ESTATE, "the checkpoint of round %" PRIu64 " was not drafted",
                          round);
    }
    draft->broken = true; /* A draft is sealed at most once. */
    draft->c.tag = tag;
    for (i = 1; i <= draft->c.n_state; i++) {
        rv = seal_one(draft, i, state[i - 1], NULL, NULL, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl__models_add_state(draft->c.dir, round, draft->c.state_names[i - 1], states,
                                  sizeof(states), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl__models_save_kept(&draft->c, draft->sync, kept, err);
    if (rv != FL_OK) {
        return rv;
    }
    return seal_one(draft, 0, theta, states, kept, err);
}

void fl_models_draft_free(struct fl_models_draft *draft)
{
    size_t i;

    for (i = 0; draft != NULL && i <= draft->c.n_state; i++) {
        fl_st_draft_free(draft->of[i]);
    }
    free(draft);
}
