#ifndef FL_SERVERD_PREFLIGHT_H
#define FL_SERVERD_PREFLIGHT_H

/*
 * What a start needs beside a well-formed file: folders, sockets, data, a model. `fl-serverd
 * --check-config` and the start ask the same functions, so they agree. Nothing is made or
 * changed.
 *
 * Errors name file, line and key; `*ret_exit` is the exit code of a start that fails so.
 */

#include "libfl/base/findings.h"
#include "server/daemon/serverd_conf.h"
#include "server/work/evaluator.h"

/* Is what the state folder holds, records and identity, of this federation? FL_ESTATE. */
FL_MUST_CHECK int fl_preflight_federation(const struct fl_serverd_conf *own, struct fl_err *err);
/*
 * What a check found. A start has none (NULL): its first error ends it, and it binds its addresses
 * itself.
 */
struct fl_preflight_report {
    struct fl_findings errors;
    struct fl_findings notes; /* whole lines: what a start would say, and go on */
};

/*
 * What comes before anything is made: the state folder is of this federation and model, it and the
 * places of sockets can be used, the first model is there and fits when the folder is new. With a
 * report the addresses are tried, too, as far as no running server of this folder has them.
 */
FL_MUST_CHECK int fl_preflight_places(const struct fl_serverd_conf *own,
                                      struct fl_preflight_report *report, int *ret_exit,
                                      struct fl_err *err);
/*
 * Who evaluates, by evaluation.command or evaluation.data; NULL with neither. A program is started,
 * and told of the model, with a log; without one it is only looked for, and `*ret` is NULL.
 */
FL_MUST_CHECK int fl_preflight_evaluation(const struct fl_server_conf *conf,
                                          const struct fl_log *log, struct fl_evaluator **ret,
                                          struct fl_err *err);
/*
 * Connections for which there is room in `descriptors`, limits.clients at most. FL_ELIMIT: fewer
 * than a round begins with. `fewer` says so when they are fewer than limits.clients, else "".
 */
FL_MUST_CHECK int fl_preflight_connections(const struct fl_server_conf *conf, uint64_t descriptors,
                                           uint64_t *ret, char *fewer, size_t size,
                                           struct fl_err *err);
/*
 * All of them; `*ret_exit` is of the first error. Run it as the user of the daemon: what that one
 * may read and write is part of it. An error that is not in the report: FL_ENOMEM.
 */
FL_MUST_CHECK int fl_preflight(const struct fl_serverd_conf *own,
                               struct fl_preflight_report *report, int *ret_exit,
                               struct fl_err *err);

#endif
