#ifndef FL_CLIENT_KEEP_READ_H
#define FL_CLIENT_KEEP_READ_H

/*
 * Reading what a client keeps (data_cache.h) without taking part: for a command beside the daemon.
 *
 * Nothing is locked, changed or removed. The daemon may run: blocks never change, and the index is
 * replaced in one step, so a block that is gone means a newer index, which is read again.
 *
 * Threading: pure of globals; any thread.
 */

#include "client/core/session.h"
#include "libfl/model/layout.h"

/* What is looked for: a whole model, or only its local tensors, packed (client/work/local_model.h).
 */
struct fl_client_state_request {
    const char *name;
    bool local;
};

struct fl_client_state_found {
    size_t wish; /* which of the wishes */
    char federation[FL_NAME_MAX];
    struct fl_round_key key;  /* the round that it is of */
    bool pending;             /* the server has not yet said that it aggregated that round */
    struct fl_layout *layout; /* owned */
    float *data;              /* owned, free() */
};

/*
 * The newest value of the first of `wishes` that is kept or pending. FL_ENOENT: nothing of them is
 * kept; FL_EFORMAT, FL_EVERSION, FL_EIO and others of the disk, with the file in `err`. Free with
 * fl_client_state_found_done(), also after an error.
 */
FL_MUST_CHECK int fl_client_state_read(const char *state_dir,
                                       const struct fl_client_state_request *wishes, size_t n,
                                       struct fl_client_state_found *ret, struct fl_err *err);
void fl_client_state_found_done(struct fl_client_state_found *found);

#endif
