#ifndef FL_CLIENT_WORK_CODE_H
#define FL_CLIENT_WORK_CODE_H

/* An update as the bytes of a Push. Threading: of the lane; done on the loop. */

#include "client/work/worker.h"

struct fl_code {
    struct fl_setup *setup;        /* a reference */
    struct fl_client_state *keeps; /* bound to the layout of `setup` */
    struct fl_result *result;      /* a reference, made under `setup` */
    uint8_t *units;                /* [units], granted; owned */
    struct fl_wire_part *parts;
    size_t n_parts;
    struct fl_blob *bytes;
};

/*
 * Of `result`, made under the setup of `worker`: `units` [n_units] that are granted, NULL: all; one
 * past n_units is not. Takes references. FL_ENOMEM, with nothing to be done.
 */
FL_MUST_CHECK int fl_code_begin(struct fl_code *code, const struct fl_worker *worker,
                                struct fl_result *result, const uint8_t *units, size_t n_units);
/*
 * The granted units as the bytes of a Push, and what the push leaves behind made pending: on
 * the lane. FL_ESTATE: the result is not one of this setup, or what belongs to it is not kept
 * any more.
 */
FL_MUST_CHECK int fl_code_run(struct fl_code *code, struct fl_err *err);
void fl_code_done(struct fl_code *code);

#endif
