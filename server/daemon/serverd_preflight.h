#ifndef FL_SERVERD_PREFLIGHT_H
#define FL_SERVERD_PREFLIGHT_H

/*
 * The requirements of a start beside a well-formed file: folders, sockets, data, a model.
 * `fl-serverd --check-config` and the start call the same functions, so they agree. Nothing is
 * created or changed.
 *
 * Errors name file, line and key; `*ret_exit` is the exit code of a start with that error.
 */

#include "libfl/base/findings.h"
#include "server/daemon/serverd_conf.h"
#include "server/work/aggregation_program.h"
#include "server/work/evaluator.h"
#include "server/work/root_training.h"

/* FL_ESTATE: the records or the identity in the state folder are those of another federation. */
FL_MUST_CHECK int fl_preflight_federation(const struct fl_serverd_conf *own, struct fl_err *err);
/*
 * A start of a server with TLS has an identity, or certificates of the operator's own PKI. A start
 * checks this before it creates anything: the state database records the name of the federation,
 * and --init would then refuse any other one.
 */
FL_MUST_CHECK int fl_preflight_identity(const struct fl_serverd_conf *own, int *ret_exit,
                                        struct fl_err *err);
/*
 * The result of a check. A start passes NULL: its first error ends it, and it binds its addresses
 * itself.
 */
struct fl_preflight_report {
    struct fl_findings errors;
    struct fl_findings notes; /* whole lines: the warnings of a start */
};

/*
 * The checks before anything is created: the state folder belongs to this federation and model, it
 * and the paths of sockets are usable, the first model exists and fits when the folder is new. With
 * a report the addresses are tried, too, except those of a running server of this folder.
 */
FL_MUST_CHECK int fl_preflight_places(const struct fl_serverd_conf *own,
                                      struct fl_preflight_report *report, int *ret_exit,
                                      struct fl_err *err);
/*
 * What trains on the root data set of evaluation.data, with a robust rule that trusts the server;
 * else NULL. Returns owned.
 */
FL_MUST_CHECK int fl_preflight_root(const struct fl_server_conf *conf, struct fl_root **ret,
                                    struct fl_err *err);
/*
 * The evaluator of evaluation.command or evaluation.data; NULL with neither. With a log the program
 * is started and gets the model's description; without one only its file is checked, and `*ret` is
 * NULL. With `root`, which it borrows, it evaluates on the samples that are not trained on.
 */
FL_MUST_CHECK int fl_preflight_evaluation(const struct fl_server_conf *conf,
                                          const struct fl_root *root, const struct fl_log *log,
                                          struct fl_evaluator **ret, struct fl_err *err);
/*
 * The program of the aggregate, if it has one; else NULL. With a log it is started; without one
 * only its file is checked, and `*ret` is NULL. Returns owned.
 */
FL_MUST_CHECK int fl_preflight_program(const struct fl_server_conf *conf, const struct fl_log *log,
                                       struct fl_aggregation_program **ret, struct fl_err *err);
/*
 * Connections that `descriptors` allow, limits.clients at most. FL_ELIMIT: fewer than a round
 * begins with. `fewer`: a warning when they are fewer than limits.clients, else "".
 */
FL_MUST_CHECK int fl_preflight_connections(const struct fl_server_conf *conf, uint64_t descriptors,
                                           uint64_t *ret, char *fewer, size_t size,
                                           struct fl_err *err);
/*
 * All checks; `*ret_exit` belongs to the first error. Run it as the user of the daemon, whose
 * permissions it checks. An error that is not in the report: FL_ENOMEM.
 */
FL_MUST_CHECK int fl_preflight(const struct fl_serverd_conf *own,
                               struct fl_preflight_report *report, int *ret_exit,
                               struct fl_err *err);

#endif
