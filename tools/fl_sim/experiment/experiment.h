#ifndef FL_SIM_EXPERIMENT_H
#define FL_SIM_EXPERIMENT_H

/*
 * The file of `fl-sim run` (docs/simulation.md#the-experiment-file): what the server and the
 * clients are configured as, their data and their world, what ends a run, and what is compared.
 * Each point of the sweep is run once with each seed of the trials: the same seeds for all points,
 * so that they can be compared in pairs.
 *
 * A file that loads has only points that load: each one is read once, through the daemons' own
 * tables. What the data and the world mean is read by their rooms, from the nodes of a point.
 *
 * Ownership: everything belongs to the experiment or the point; a point does not need the
 * experiment any more.
 * Errors: FL_ECONF with file, line (or the --set), key and what was expected; FL_ENOMEM; errors of
 * reading the file, and a model file that server.model.file names.
 * Threading: read-only once it was loaded; points may be opened by several threads.
 */

#include "client/conf/client_conf.h"
#include "libfl/base/buf.h"
#include "server/conf/server_conf.h"

/* Runs of one experiment, points times trials. */
#define FL_EXPERIMENT_RUNS 100000
/* Texts of a point, with their NUL. */
#define FL_EXPERIMENT_LABEL 256
#define FL_EXPERIMENT_SLUG  128

struct fl_experiment;

/* What ends a run, whichever comes first. 0: none of it; one of them is set. */
struct fl_experiment_stop {
    int64_t rounds;   /* committed; what the coordinator is told, too (server->main->rounds) */
    double accuracy;  /* of the server's model, in an evaluation; at least this */
    uint64_t uplink;  /* bytes from clients to the server; at least these */
    uint64_t bytes;   /* in both directions */
    uint64_t time_ms; /* simulated */
};

/* One point with the seed of one trial. */
struct fl_experiment_point {
    struct fl_conf_doc *doc;       /* owns the nodes, and what the configurations refer to */
    struct fl_server_conf *server; /* main->seed is the trial's */
    struct fl_client_conf *client; /* of all clients; without data.path */
    const struct fl_conf_node *data;
    const struct fl_conf_node *world; /* NULL: not given, there is nothing between them */
    struct fl_experiment_stop stop;
};

/*
 * Load a file; `set` [n_set] are changes to it, as "server.rounds=10", in this order. A mapping
 * that is set takes the place of all that was there.
 */
FL_MUST_CHECK int fl_experiment_load(const char *path, const char *const *set, size_t n_set,
                                     struct fl_experiment **ret, struct fl_err *err);
/* The same from memory; `path` stands in messages, and gives the name. */
FL_MUST_CHECK int fl_experiment_parse(const char *path, const void *text, size_t len,
                                      const char *const *set, size_t n_set,
                                      struct fl_experiment **ret, struct fl_err *err);
void fl_experiment_free(struct fl_experiment *experiment); /* NULL is allowed. */

/* `name`, or the file's name without its end: a name that may become a folder. */
const char *fl_experiment_name(const struct fl_experiment *experiment);
/* At least 1 each; together at most FL_EXPERIMENT_RUNS. */
size_t fl_experiment_points(const struct fl_experiment *experiment);
size_t fl_experiment_trials(const struct fl_experiment *experiment);
uint64_t fl_experiment_seed(const struct fl_experiment *experiment, size_t trial);
/*
 * What is different about a point, for people: "algorithm=fedldf learning_rate=0.1", the label that
 * the file gives it, or "base" for a point without values of its own.
 */
const char *fl_experiment_label(const struct fl_experiment *experiment, size_t point);
/* The same as the name of a folder, another one for each point: "2-algorithm=fedldf". */
const char *fl_experiment_slug(const struct fl_experiment *experiment, size_t point);
/*
 * What the file means, as a number: another one when any value, trial or point is another, whether
 * in the file or by `set`; the name, comments and the way of writing do not count.
 */
uint64_t fl_experiment_fingerprint(const struct fl_experiment *experiment);
/*
 * A file that runs this point alone, with all trials and with what was set: appended to `out`.
 * Paths are as they were written: relative ones want the file in the folder of the experiment's.
 * FL_ENOMEM, FL_ELIMIT of the buffer.
 */
FL_MUST_CHECK int fl_experiment_text(const struct fl_experiment *experiment, size_t point,
                                     struct fl_buf *out);

FL_MUST_CHECK int fl_experiment_open(const struct fl_experiment *experiment, size_t point,
                                     size_t trial, struct fl_experiment_point **ret,
                                     struct fl_err *err);
/*
 * The keys of this point that a simulation has no use for, "server.listen, client.tls"; the same
 * for all points, since they cannot be swept. Appends. FL_ENOMEM, FL_ELIMIT of the buffer.
 */
FL_MUST_CHECK int fl_experiment_without_effect(const struct fl_experiment_point *point,
                                               struct fl_buf *out);
void fl_experiment_close(struct fl_experiment_point *point); /* NULL is allowed. */

/* The keys of the file that are not the daemons', as Markdown; appended to `out`. */
FL_MUST_CHECK int fl_experiment_reference(struct fl_buf *out);

#endif
