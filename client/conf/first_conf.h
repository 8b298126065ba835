#ifndef FL_CLIENT_CONF_FIRST_H
#define FL_CLIENT_CONF_FIRST_H

/*
 * The first configuration of a client: what whoever joined it knows, as a file that an operator
 * goes on with. An existing file is never touched.
 */

#include "libfl/conf/options.h"

struct fl_client_first {
    const char *server, *name, *state_dir;
    const char *data;                 /* folder; NULL: one to be filled in */
    const struct fl_opt_pair *labels; /* [n_labels], may be NULL */
    size_t n_labels;
};

/* Where `data` lies unless it is said. */
#define FL_CLIENT_FIRST_DATA "/srv/fl/data"

/*
 * After any crash there is the whole file or none; its folder is made when it is missing.
 * FL_EEXIST: there is one, which stays as it is. Everybody may read it, for it holds no secret.
 */
FL_MUST_CHECK int fl_client_first_write(const char *path, const struct fl_client_first *first,
                                        struct fl_err *err);

#endif
