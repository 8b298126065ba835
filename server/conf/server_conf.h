#ifndef FL_SERVER_CONF_H
#define FL_SERVER_CONF_H

/*
 * The configuration of a federation on its server: a YAML file, read through option tables.
 * Settings that only a daemon derives from it (addresses, message sizes) are in
 * server/daemon/serverd_conf.h.
 *
 * Ownership: everything belongs to the struct; free with fl_server_conf_free().
 *
 * Errors: FL_ECONF with file, line, key and what was expected.
 */

#include "libfl/base/findings.h"
#include "libfl/conf/http_options.h"
#include "libfl/conf/sections.h"
#include "libfl/nn/net.h"
#include "libfl/strategy/strategy.h"
#include "server/conf/conf_tables.h"
#include "server/core/eligible.h"
#include "server/core/settings.h"

/* Sent to clients when the server stops: about how long a restart takes. */
#define FL_RESTART_MS 2000
/* Longest path in a configuration. */
#define FL_SERVER_PATH_MAX 4096

struct fl_server_conf {
    struct fl_conf_file *file; /* owns what the next ten members point to */
    const struct fl_server_main *main;
    const struct fl_server_model *model;
    const struct fl_server_training *training;
    const struct fl_server_round *round;
    const struct fl_server_eligible *eligible;
    const struct fl_server_evaluation *evaluation;
    const struct fl_server_checkpoints *checkpoints;
    const struct fl_server_limits *limits;
    const struct fl_server_hooks *hooks;
    const struct fl_server_tls *tls;
    const struct fl_server_identity *identity;
    const struct fl_http_conf *http;
    struct fl_eligible rule; /* round.eligible */
    struct fl_strategy *strategy;
    struct fl_layout *layout;
    struct fl_space *space; /* of updates; NULL: they have the layout of the model */
    struct fl_net_spec net; /* n_layers 0: the model came from a file */
    const char **layers;    /* owned: those of `net`, when model.loss adds one; NULL */
    size_t inputs, classes; /* of the network; 0: not known */
    size_t values;          /* that it predicts; 0: a class, or not known */
};

/*
 * The state folder was created with `begun`, which has the same tensors: unless model.units is set
 * its units stay in use, and `*ret` is true. Nothing changes where the tensors differ, or where the
 * network is not from a file. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_server_conf_go_on(struct fl_server_conf *conf, const struct fl_layout *begun,
                                       bool *ret, struct fl_err *err);

/* Are there right and wrong predictions? Not of a network that predicts values by mse or mae. */
bool fl_server_conf_has_accuracy(const struct fl_server_conf *conf);
/* evaluation.metrics: a set of 1u << enum fl_net_metric. */
unsigned fl_server_conf_metrics(const struct fl_server_conf *conf);

/*
 * With `all` (findings.h) errors are added to it, and a configuration that can be checked further
 * is returned with FL_OK nevertheless: fl_findings_first() says whether it may be used. NULL: the
 * first error is returned.
 */
FL_MUST_CHECK int fl_server_conf_load(const char *path, struct fl_findings *all,
                                      struct fl_server_conf **ret, struct fl_err *err);
/* True when an address uses TLS. */
bool fl_server_conf_has_tls(const struct fl_server_conf *conf);
/* Warnings with file, line and key of values that are allowed but probably unintended. */
void fl_server_conf_odd(const struct fl_server_conf *conf, struct fl_findings *notes);
/*
 * Does the vector that the solver sends beside the update (SCAFFOLD's control) cancel the savings
 * of the codec, since it goes as float32? Then the reason, with the bytes, into `out`. For fl-sim;
 * a server reports it through fl_server_conf_odd().
 */
bool fl_server_conf_beside(const struct fl_server_conf *conf, char *out, size_t size);
/*
 * Read the same keys from a mapping of another document, which has to outlive `*ret`; NULL: not
 * given. Settings of a daemon (FL_SERVER_DAEMON, FL_SERVER_NEEDED) are optional; FL_SERVER_DAEMON
 * is not checked beyond its type.
 */
FL_MUST_CHECK int fl_server_conf_read(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                                      struct fl_server_conf **ret, struct fl_err *err);
/* Is it a key or section ("limits.idle", "limits") that only a daemon has? */
bool fl_server_conf_is_daemons(const char *key);
/* Appends those that the file contains, "server.limits.idle, server.tls". FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_server_conf_daemons(const struct fl_server_conf *conf, struct fl_buf *out);
/* Where the file sets a component of the strategy; NULL: it does not, and the preset does.
 * Borrowed. */
const struct fl_conf_node *fl_server_conf_component(const struct fl_server_conf *conf,
                                                    enum fl_component component);
/* Load the model of model.file into theta [layout], when it is set. */
FL_MUST_CHECK int fl_server_conf_model(const struct fl_server_conf *conf, float *theta,
                                       struct fl_err *err);
void fl_server_conf_free(struct fl_server_conf *conf);
/* The configuration of the coordinator; borrows strategy, layout and labels. */
void fl_server_conf_coord(const struct fl_server_conf *conf, struct fl_coord_conf *ret);
/* All keys as Markdown, for `fl-serverd --reference`. */
FL_MUST_CHECK int fl_server_conf_reference(struct fl_buf *out);

/* The settings that the state folder stores; free with fl_settings_done(). FL_ENOMEM. */
FL_MUST_CHECK int fl_server_conf_settings(const struct fl_server_conf *conf,
                                          struct fl_settings *ret);

#endif
