#ifndef FL_CLIENTD_PREFLIGHT_H
#define FL_CLIENTD_PREFLIGHT_H

/*
 * What a start needs besides a valid configuration: a state folder, and data or a training program.
 * `fl-clientd --check-config` and the start call the same functions, so they agree. Nothing is
 * created or changed.
 *
 * Errors name file, line and key; `*ret_exit` is the exit code of a start that fails with this
 * error.
 */

#include "client/daemon/clientd_conf.h"
#include "libfl/base/findings.h"

/*
 * The cheap checks: the state folder is usable, the proxy is one, and the training program or the
 * library of the built-in trainer exists. `all` (may be NULL) collects errors, and the next check
 * follows.
 */
FL_MUST_CHECK int fl_client_preflight_places(const struct fl_client_conf *conf,
                                             struct fl_findings *all, int *ret_exit,
                                             struct fl_err *err);
/*
 * The training data of data.path, and the data to evaluate on: that of the folder, or the share
 * that data.validation sets aside; NULL: none. Returns both owned.
 */
FL_MUST_CHECK int fl_client_open_data(const struct fl_client_conf *conf,
                                      struct fl_dataset **ret_train, struct fl_dataset **ret_test,
                                      struct fl_err *err);
/*
 * All checks. `all` (may be NULL) collects errors; `*ret_exit` is the exit code of the first one.
 */
FL_MUST_CHECK int fl_client_preflight(const struct fl_client_conf *conf, struct fl_findings *all,
                                      int *ret_exit, struct fl_err *err);

#endif
