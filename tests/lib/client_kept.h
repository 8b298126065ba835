#ifndef FL_TEST_CLIENT_KEPT_H
#define FL_TEST_CLIENT_KEPT_H

#include <stdbool.h>
#include <stdlib.h>

#include "client/store/client_state.h"

/* Is a committed value of `name` there, and readable? */
static inline bool client_kept(struct fl_client_state *keeps, const char *name)
{
    struct fl_err err = {0};
    float *data = NULL;
    int rv = fl_client_state_load(keeps, name, &data, &err);

    free(data);
    return rv == FL_OK;
}

#endif
