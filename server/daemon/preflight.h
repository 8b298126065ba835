#ifndef FL_SERVERD_PREFLIGHT_H
#define FL_SERVERD_PREFLIGHT_H

/*
 * What a start needs beside a well-formed file: folders, sockets, data, a model. `fl-serverd
 * --check-config` and the start ask the same functions, so they agree. Nothing is made, bound or
 * changed.
 *
 * Errors name file, line and key; `*ret_exit` is the exit code of a start that fails so.
 */

#include "server/daemon/conf.h"
#include "server/work/evaluator.h"

/*
 * What comes before anything is made: the state folder and the places of sockets can be used, the
 * first model is there and fits when the folder is new.
 */
FL_MUST_CHECK int fl_preflight_places(const struct fl_serverd_conf *own, int *ret_exit,
                                      struct fl_err *err);
/*
 * Who evaluates, by evaluation.command or evaluation.data; NULL with neither. A program is started,
 * and told of the model, with a log; without one it is only looked for, and `*ret` is NULL.
 */
FL_MUST_CHECK int fl_preflight_evaluation(const struct fl_server_conf *conf,
                                          const struct fl_log *log, struct fl_evaluator **ret,
                                          struct fl_err *err);
/* The first model of model.file into theta [layout], when it is set. */
FL_MUST_CHECK int fl_preflight_model(const struct fl_server_conf *conf, float *theta,
                                     struct fl_err *err);
/*
 * Connections for which there is room in `descriptors`, limits.clients at most. FL_ELIMIT: fewer
 * than a round begins with. `fewer` says so when they are fewer than limits.clients, else "".
 */
FL_MUST_CHECK int fl_preflight_connections(const struct fl_server_conf *conf, uint64_t descriptors,
                                           uint64_t *ret, char *fewer, size_t size,
                                           struct fl_err *err);
/* What a start says and goes on; "": nothing. */
struct fl_preflight_notes {
    char fewer[FL_ERR_BUF_SIZE]; /* connections than limits.clients, as above */
    char dates[FL_ERR_BUF_SIZE]; /* of certificates that are over, or soon will be */
};

/* All of them. */
FL_MUST_CHECK int fl_preflight(const struct fl_serverd_conf *own, int *ret_exit,
                               struct fl_preflight_notes *ret_notes, struct fl_err *err);

#endif
