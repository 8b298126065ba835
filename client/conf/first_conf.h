#ifndef FL_CLIENT_CONF_FIRST_H
#define FL_CLIENT_CONF_FIRST_H

/*
 * Writes the first configuration of a client after joining, for an operator to edit. An existing
 * file is never changed.
 */

#include "libfl/conf/options.h"

struct fl_client_first {
    const char *proxy, *proxy_credentials; /* "": not set */
    const char *const *servers;            /* [n_servers], addresses in the order of trying */
    size_t n_servers;
    const char *name, *state_dir;
    const char *data; /* data folder; NULL: FL_CLIENT_FIRST_DATA with a note to edit it */
    const struct fl_pair *labels; /* [n_labels], may be NULL */
    size_t n_labels;
};

/* The default of `data`. */
#define FL_CLIENT_FIRST_DATA "/srv/fl/data"

/*
 * Write the file, whole or not at all after a crash; its folder is created when missing. FL_EEXIST:
 * the file exists and is unchanged. The file is readable by every user, because it holds no secret.
 */
FL_MUST_CHECK int fl_client_first_write(const char *path, const struct fl_client_first *first,
                                        struct fl_err *err);

#endif
