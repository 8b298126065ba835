#ifndef FL_SIM_EXPERIMENT_H
#define FL_SIM_EXPERIMENT_H

/*
 * The file of `fl-sim run` (docs/simulation.md#the-experiment-file): configurations of the server
 * and of the clients, their data, their network and device model, the stop rules, and the compared
 * settings. Each point of the sweep is run once with each seed of the trials: the same seeds for
 * all points, so that points can be compared in pairs.
 *
 * A file that loads has only points that load: each is read once, with the tables of the daemons.
 * The nodes of data and network and device model are interpreted by their own folders.
 *
 * Ownership: everything belongs to the experiment or the point; a point does not depend on the
 * experiment.
 * Errors: FL_ECONF with file, line (or the --set), key and what was expected; FL_ENOMEM; errors of
 * reading the file, and of a model file that server.model.file names.
 * Threading: read-only once it is loaded; points may be opened by several threads.
 */

#include "client/conf/client_conf.h"
#include "libfl/base/buf.h"
#include "server/conf/server_conf.h"
#include "tools/fl_sim/attack/attack.h"

/* Maximum number of runs of one experiment, points times trials. */
#define FL_EXPERIMENT_RUNS 100000
/* Size of texts of a point, with their NUL. */
#define FL_EXPERIMENT_LABEL 256
#define FL_EXPERIMENT_SLUG  128
/* Maximum number of evaluations of a mean. */
#define FL_EXPERIMENT_MEAN 1000

struct fl_experiment;

/* Stop rules of a run, whichever comes first. 0: not used; at least one is set. */
struct fl_experiment_stop {
    int64_t rounds;   /* committed rounds; also set in the coordinator (server->main->rounds) */
    double accuracy;  /* of the server's model, the mean of `mean_of` evaluations; at least this */
    size_t mean_of;   /* 1 to FL_EXPERIMENT_MEAN */
    uint64_t uplink;  /* bytes from clients to the server; at least these */
    uint64_t bytes;   /* in both directions */
    uint64_t time_ms; /* simulated */
};

/* Clients that attack the federation. */
struct fl_experiment_attackers {
    const struct fl_conf_node *node; /* NULL: there are none */
    double share;                    /* of the clients; negative: `clients` of them */
    size_t clients;
    struct fl_attack attack; /* with the seed of the trial */
};

/* One point with the seed of one trial. */
struct fl_experiment_point {
    struct fl_conf_doc *doc;       /* owns the nodes, and the texts of the configurations */
    struct fl_server_conf *server; /* main->seed is the trial's */
    struct fl_client_conf *client; /* of all clients; without data.path */
    const struct fl_conf_node *data;
    const struct fl_conf_node *world; /* NULL: not given, no network delays */
    struct fl_experiment_stop stop;
    struct fl_experiment_attackers attackers;
};

/*
 * Load a file; `set` [n_set] are changes to it, as "server.rounds=10", applied in order. A mapping
 * that is set replaces the mapping that was there.
 */
FL_MUST_CHECK int fl_experiment_load(const char *path, const char *const *set, size_t n_set,
                                     struct fl_experiment **ret, struct fl_err *err);
/* The same from memory; `path` is used in messages and as the name. */
FL_MUST_CHECK int fl_experiment_parse(const char *path, const void *text, size_t len,
                                      const char *const *set, size_t n_set,
                                      struct fl_experiment **ret, struct fl_err *err);
void fl_experiment_free(struct fl_experiment *experiment); /* NULL is allowed. */

/* `name`, or the file's name without its extension: valid as the name of a folder. */
const char *fl_experiment_name(const struct fl_experiment *experiment);
/* At least 1 each; their product is at most FL_EXPERIMENT_RUNS. */
size_t fl_experiment_points(const struct fl_experiment *experiment);
size_t fl_experiment_trials(const struct fl_experiment *experiment);
uint64_t fl_experiment_seed(const struct fl_experiment *experiment, size_t trial);
/*
 * The label of a point, for display: its own values as "algorithm=fedldf learning_rate=0.1", the
 * label in the file, or "base" for a point without values of its own.
 */
const char *fl_experiment_label(const struct fl_experiment *experiment, size_t point);
/* The name of the point's folder, unique in the experiment: "2-algorithm=fedldf". */
const char *fl_experiment_slug(const struct fl_experiment *experiment, size_t point);
/*
 * The digest of the experiment: it changes with any value, trial or point, in the file or by `set`;
 * name, comments and formatting do not count.
 */
uint64_t fl_experiment_fingerprint(const struct fl_experiment *experiment);
/*
 * Appends a file to `out` that runs this point alone, with all trials and --set changes. Paths are
 * unchanged: relative ones require the file in the folder of the experiment's file. FL_ENOMEM,
 * FL_ELIMIT of the buffer.
 */
FL_MUST_CHECK int fl_experiment_text(const struct fl_experiment *experiment, size_t point,
                                     struct fl_buf *out);

FL_MUST_CHECK int fl_experiment_open(const struct fl_experiment *experiment, size_t point,
                                     size_t trial, struct fl_experiment_point **ret,
                                     struct fl_err *err);
/*
 * Appends the keys of this point that have no effect in a simulation, "server.listen, client.tls".
 * With `keep_state` checkpoints are kept, and their rules have one. FL_ENOMEM, FL_ELIMIT of the
 * buffer.
 */
FL_MUST_CHECK int fl_experiment_without_effect(const struct fl_experiment_point *point,
                                               bool keep_state, struct fl_buf *out);
void fl_experiment_close(struct fl_experiment_point *point); /* NULL is allowed. */

/* Appends the keys of the file that are not those of the daemons, as Markdown, to `out`. */
FL_MUST_CHECK int fl_experiment_reference(struct fl_buf *out);

#endif
