#ifndef FL_CLIENT_KEEP_READ_H
#define FL_CLIENT_KEEP_READ_H

/*
 * Reads the client state (client_state.h) without taking part: for a command beside the daemon.
 *
 * Nothing is locked, changed or removed. The daemon may run: blocks never change, and the index is
 * replaced atomically, so a missing block means a newer index, which is read again.
 *
 * Threading: no globals; any thread.
 */

#include "client/core/session.h"
#include "libfl/model/layout.h"

/*
 * A requested value: a whole model, or only its local tensors, packed (client/work/local_model.h).
 */
struct fl_client_state_request {
    const char *name;
    bool local;
};

struct fl_client_state_found {
    size_t request; /* index of the request */
    char federation[FL_NAME_MAX];
    struct fl_round_key key;  /* the round of the value */
    bool pending;             /* the server has not yet confirmed that it aggregated that round */
    struct fl_layout *layout; /* owned */
    float *data;              /* owned, free() */
};

/*
 * The newest value of the first of `requests` that is kept or pending. FL_ENOENT: none of them;
 * FL_EFORMAT, FL_EVERSION, FL_EIO and other errors of the disk, with the file in `err`. Free with
 * fl_client_state_found_done(), also after an error.
 */
FL_MUST_CHECK int fl_client_state_read(const char *state_dir,
                                       const struct fl_client_state_request *requests, size_t n,
                                       struct fl_client_state_found *ret, struct fl_err *err);
void fl_client_state_found_done(struct fl_client_state_found *found);

#endif
