#ifndef FL_CLIENTD_PREFLIGHT_H
#define FL_CLIENTD_PREFLIGHT_H

/*
 * What a start needs beside a well-formed file: a state folder, data or a program. `fl-clientd
 * --check-config` and the start ask the same functions, so they agree. Nothing is made or changed.
 *
 * Errors name file, line and key; `*ret_exit` is the exit code of a start that fails so.
 */

#include "client/daemon/clientd_conf.h"
#include "libfl/base/findings.h"

/* What costs nothing: the state folder can be used; the program, or what the built-in one needs, is
 * there. `all` (may be NULL): errors go there, and the next check follows. */
FL_MUST_CHECK int fl_client_preflight_places(const struct fl_client_conf *conf,
                                             struct fl_findings *all, int *ret_exit,
                                             struct fl_err *err);
/*
 * The training part of data.path as it is trained on, and the part to evaluate on: the folder's,
 * or the share that data.validation keeps back; NULL: none. Returns both owned.
 */
FL_MUST_CHECK int fl_client_open_data(const struct fl_client_conf *conf,
                                      struct fl_dataset **ret_train, struct fl_dataset **ret_test,
                                      struct fl_err *err);
/* All of them; errors go to `all` (may be NULL) too, `*ret_exit` is of the first one. */
FL_MUST_CHECK int fl_client_preflight(const struct fl_client_conf *conf, struct fl_findings *all,
                                      int *ret_exit, struct fl_err *err);

#endif
