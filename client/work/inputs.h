#ifndef FL_CLIENT_WORK_INPUTS_H
#define FL_CLIENT_WORK_INPUTS_H

/* The payloads of a task: which ones this client needs, their sizes and their digests. */

#include "client/work/setup.h"
#include "libfl/base/log.h"

/* A payload: as a task lists it, and the received part of it. */
struct fl_input {
    char name[FL_NAME_MAX];
    uint64_t bytes, have;
    bool has_digest;
    uint8_t digest[FL_DIGEST_SIZE];
    bool opaque; /* not a block of floats in the model's shape */
    bool coded;  /* the server's model in the form of the broadcast */
    bool moves;  /* the server's model, which can be fetched as what changed since an earlier one */
    bool has_held; /* `moves`: this client holds the model `held`; `data` is what changed since */
    uint8_t held[FL_DIGEST_SIZE];
    bool ended;    /* the whole of what changed was received */
    bool cached;   /* found on disk */
    bool lent;     /* `data` is borrowed and only read */
    uint8_t *data; /* [bytes]; owned unless `lent`; or NULL */
};

/* The inputs of a training. */
struct fl_inputs {
    struct fl_setup *setup; /* the setup they were chosen for; a reference; NULL: only listed */
    uint64_t round;         /* of the task; 0: no task */
    size_t n;
    struct fl_input list[FL_WIRE_MAX_PAYLOADS];
    float *own; /* the client's own model when training starts from it; owned */
};

void fl_inputs_done(struct fl_inputs *inputs);
/* NULL: not found. */
struct fl_input *fl_inputs_find(struct fl_inputs *inputs, const char *name);
/* Overwrite `listed` with a payload as a message lists it. FL_ELIMIT: its name is too long. */
FL_MUST_CHECK int fl_input_list(struct fl_input *listed, const struct fl_wire_payload *payload);
/* Replace the contents of `listed` by the payloads that a task lists. */
void fl_inputs_list(struct fl_inputs *listed, const struct fl_wire_task *task);
/*
 * Initialise `ret` with the listed payloads that a client of `setup` needs; `has_own`: the client
 * has a model of its own. FL_EPROTO: a payload has an impossible size or is missing.
 */
FL_MUST_CHECK int fl_inputs_choose(struct fl_setup *setup, struct fl_inputs *listed, bool has_own,
                                   const struct fl_log *log, struct fl_inputs *ret,
                                   struct fl_err *err);
/* Initialise `ret` with `payload` alone: the model of an evaluation. FL_EPROTO. */
FL_MUST_CHECK int fl_inputs_choose_model(struct fl_setup *setup, const struct fl_input *payload,
                                         struct fl_inputs *ret, struct fl_err *err);
/*
 * Move received data of `old` to the same payloads of the same round in `now`, so that it is not
 * fetched twice; frees the rest of `old`.
 */
void fl_inputs_reuse(struct fl_inputs *now, struct fl_inputs *old);
/* The first incomplete payload, with memory allocated; NULL: all are complete. FL_ENOMEM. */
FL_MUST_CHECK int fl_inputs_next(struct fl_inputs *inputs, struct fl_input **ret);
/*
 * Append bytes at `offset`. FL_EPROTO: `offset` is not the end of the received bytes, or there are
 * too many bytes.
 */
FL_MUST_CHECK int fl_input_add(struct fl_input *input, uint64_t offset, const void *data,
                               size_t len, struct fl_err *err);
/*
 * Set the whole data of an empty payload to memory of the caller. It is not copied and has to
 * outlive the inputs and everything made of them.
 */
void fl_input_lend(struct fl_input *input, const void *data);
/* Drop the received data. */
void fl_input_drop(struct fl_input *input);
/* Copy lent data, so that it may be changed. FL_ENOMEM. */
FL_MUST_CHECK int fl_input_own(struct fl_input *input);
/*
 * Check a complete payload against its digest; on a mismatch it is fetched from the start.
 * FL_EFORMAT, FL_ENOMEM.
 */
FL_MUST_CHECK int fl_input_check(struct fl_input *input, struct fl_err *err);
/* The model that this client holds is `held`, NULL: none; before any data is received. */
void fl_input_hold(struct fl_input *input, const uint8_t *held);
/* A transfer has ended with success; the payload may have no end before. */
void fl_input_end(struct fl_input *input);
/* Has it all of its data, or none to fetch? */
bool fl_input_is_complete(const struct fl_input *input);
/* The server has not what changed: drops the data, the whole model is fetched. */
void fl_input_want_whole(struct fl_input *input);
/*
 * Decode a complete model, as its user does before it reads `data` as floats; others do not change.
 * A model that can be fetched as what changed is checked by its digest and saved in `state_dir`;
 * NULL: it is not saved.
 * FL_EFORMAT, FL_ENUMERIC: the bytes are no model, or not the one that was listed; FL_ENOENT: the
 * held one is missing or damaged: in these cases a later task fetches what changed since the first
 * model, or a whole one; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_input_decode(struct fl_input *input, const struct fl_setup *setup,
                                  const char *state_dir, const struct fl_log *log,
                                  struct fl_err *err);
/* Save on disk what is the same in the next round, so that it is not fetched again. */
void fl_inputs_save(const struct fl_inputs *inputs, const char *state_dir,
                    const struct fl_log *log);

#endif
