#ifndef FL_CLIENT_WORK_TRANSFER_END_H
#define FL_CLIENT_WORK_TRANSFER_END_H

/* What a client does when the transfer of a payload has ended. */

#include "client/work/fault.h"
#include "client/work/inputs.h"

/* How it ended. */
enum fl_transfer {
    FL_TRANSFER_DONE,     /* the server sent all that it has */
    FL_TRANSFER_NOT_HELD, /* it does not know what changed since the model that was named */
    FL_TRANSFER_PAST_END, /* it has fewer bytes than the client received before a break */
    FL_TRANSFER_REMOVED,  /* it has no such payload any more */
    FL_TRANSFER_BAD,      /* it sent what this payload cannot have */
    FL_TRANSFER_BROKEN    /* anything else: the connection, the memory of one side */
};

enum fl_transfer_next {
    FL_TRANSFER_COMPLETE, /* check the payload and go on with the next one */
    FL_TRANSFER_AGAIN,    /* fetch the whole model instead of what changed, at once */
    FL_TRANSFER_FAILED    /* the fault says whether a retry from the received bytes may help */
};

/*
 * What follows. What changed since a held model is replaced by the whole model, at most once, when
 * the server refuses it or sends what it cannot be: a retry would get the same. `ret_fault` and
 * `ret_why` (NULL: the status of the call says it) are set with FL_TRANSFER_FAILED only.
 */
enum fl_transfer_next fl_transfer_ended(struct fl_input *input, enum fl_transfer how,
                                        enum fl_fault *ret_fault, const char **ret_why);

#endif
