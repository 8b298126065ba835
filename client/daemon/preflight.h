#ifndef FL_CLIENTD_PREFLIGHT_H
#define FL_CLIENTD_PREFLIGHT_H

/*
 * What a start needs beside a well-formed file: a state folder, data or a program. `fl-clientd
 * --check-config` and the start ask the same functions, so they agree. Nothing is made or changed.
 *
 * Errors name file, line and key; `*ret_exit` is the exit code of a start that fails so.
 */

#include "client/daemon/conf.h"

/* What costs nothing: the state folder can be used; the program, or what the built-in one needs, is
 * there. */
FL_MUST_CHECK int fl_client_preflight_places(const struct fl_client_conf *conf, int *ret_exit,
                                             struct fl_err *err);
/*
 * The training part of data.path as it is trained on, and the part to evaluate on: the folder's,
 * or the share that data.validation keeps back; NULL: none. Returns both owned.
 */
FL_MUST_CHECK int fl_client_open_data(const struct fl_client_conf *conf,
                                      struct fl_dataset **ret_train, struct fl_dataset **ret_test,
                                      struct fl_err *err);
/* All of them. */
FL_MUST_CHECK int fl_client_preflight(const struct fl_client_conf *conf, int *ret_exit,
                                      struct fl_err *err);

#endif
