#ifndef FL_CLIENT_WORK_CODE_H
#define FL_CLIENT_WORK_CODE_H

/*
 * Encodes an update as the bytes of a Push. Threading: fl_code_run() on the training thread, the
 * rest on the loop.
 */

#include "client/work/worker.h"

struct fl_code {
    struct fl_setup *setup;        /* a reference */
    struct fl_client_state *keeps; /* borrowed, bound to the layout of `setup` */
    struct fl_result *result;      /* a reference; made for `setup` */
    uint64_t seed;           /* of the client: random rounding follows from it and the round */
    uint8_t *units;          /* upload mask [units]; owned */
    struct fl_space_map map; /* with a hashed space, while it runs */
    float *folded;           /* the displacement in the layout of updates; NULL: the result's */
    struct fl_wire_part *parts;
    size_t n_parts;
    struct fl_blob *bytes;
};

/*
 * Prepare encoding `result`, made for the setup of `worker`. `units` [n_units] is the upload mask,
 * NULL: all layers; layers past n_units are not selected. Takes references. FL_ENOMEM: nothing to
 * free.
 */
FL_MUST_CHECK int fl_code_begin(struct fl_code *code, const struct fl_worker *worker,
                                struct fl_result *result, const uint8_t *units, size_t n_units);
/*
 * Encode the selected layers, and make mask and residual part of the pending client state: on the
 * training thread. FL_ESTATE: the result does not belong to this setup, or its client state no
 * longer exists.
 */
FL_MUST_CHECK int fl_code_run(struct fl_code *code, struct fl_err *err);
void fl_code_done(struct fl_code *code);

#endif
