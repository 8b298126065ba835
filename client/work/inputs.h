#ifndef FL_CLIENT_WORK_INPUTS_H
#define FL_CLIENT_WORK_INPUTS_H

/* The bundles of a task: which of them this client needs, and what they have to look like. */

#include "client/work/setup.h"
#include "libfl/base/log.h"

/* A bundle: as a task lists it, then with what of it is here. */
struct fl_input {
    char name[FL_NAME_MAX];
    uint64_t bytes, have;
    bool has_digest;
    uint8_t digest[FL_DIGEST_SIZE];
    bool opaque;   /* not a block of floats in the model's shape */
    bool cached;   /* found on the disk */
    bool lent;     /* `data` is another's, and only read */
    uint8_t *data; /* [bytes], owned but when lent, or NULL */
};

/* What a training starts from. */
struct fl_inputs {
    struct fl_setup *setup; /* they were chosen for; a reference, NULL: only listed */
    uint64_t round;         /* of the task that they are for; 0: of none */
    size_t n;
    struct fl_input list[FL_WIRE_MAX_BUNDLES];
    float *own; /* the client's own model, when that is where it starts; owned */
};

void fl_inputs_done(struct fl_inputs *inputs);
/* NULL: not there. */
struct fl_input *fl_inputs_find(struct fl_inputs *inputs, const char *name);
/* Remember what a task lists, in place of what `listed` has. */
void fl_inputs_list(struct fl_inputs *listed, const struct fl_wire_task *task);
/*
 * The bundles that a client of `setup` needs of those that are `listed`, into `ret` (initialised
 * here); `has_own`: it has a model of its own. FL_EPROTO: one that cannot be what it says.
 */
FL_MUST_CHECK int fl_inputs_choose(struct fl_setup *setup, struct fl_inputs *listed, bool has_own,
                                   const struct fl_log *log, struct fl_inputs *ret,
                                   struct fl_err *err);
/* `bundle` alone, into `ret` (initialised here): the model of an evaluation. FL_EPROTO. */
FL_MUST_CHECK int fl_inputs_choose_model(struct fl_setup *setup, const struct fl_input *bundle,
                                         struct fl_inputs *ret, struct fl_err *err);
/*
 * Keep of `old` what is also in `now`, of the same round, so that it is not fetched twice; frees
 * the rest.
 */
void fl_inputs_reuse(struct fl_inputs *now, struct fl_inputs *old);
/* The first that is not whole, with memory for it; NULL: all are. FL_ENOMEM. */
FL_MUST_CHECK int fl_inputs_next(struct fl_inputs *inputs, struct fl_input **ret);
/* The bytes from `offset` on, which is where those before ended. FL_EPROTO: it is not, or too many.
 */
FL_MUST_CHECK int fl_input_add(struct fl_input *input, uint64_t offset, const void *data,
                               size_t len, struct fl_err *err);
/*
 * All of one of which nothing is here, as it lies in memory: it is not copied, and has to stay
 * until the inputs are done with, or what was made of them.
 */
void fl_input_lend(struct fl_input *input, const void *data);
/* Nothing of it is here any more. */
void fl_input_drop(struct fl_input *input);
/* A lent one is the caller's own from now on. FL_ENOMEM. */
FL_MUST_CHECK int fl_input_own(struct fl_input *input);
/* A whole one: is it what its digest says? Else it is begun anew. FL_EFORMAT, FL_ENOMEM. */
FL_MUST_CHECK int fl_input_check(struct fl_input *input, struct fl_err *err);
/* What is the same in the next round goes to the disk, so that it need not come again. */
void fl_inputs_save(const struct fl_inputs *inputs, const char *state_dir,
                    const struct fl_log *log);

#endif
