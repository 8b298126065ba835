#ifndef FL_SERVER_CONF_H
#define FL_SERVER_CONF_H

/*
 * What is configured of a federation on the side of its server: a YAML file, read through option
 * tables. What a daemon alone makes of it (addresses, sizes of messages) is
 * server/daemon/serverd_conf.h.
 *
 * Ownership: everything belongs to the struct; free with fl_server_conf_free().
 * Errors: FL_ECONF with file, line, key and what was expected.
 */

#include "libfl/base/findings.h"
#include "libfl/conf/sections.h"
#include "libfl/nn/net.h"
#include "libfl/strategy/strategy.h"
#include "server/conf/conf_tables.h"
#include "server/core/settings.h"

/* Told to clients when the server stops: about how long a restart takes. */
#define FL_RESTART_MS 2000

struct fl_server_conf {
    struct fl_conf_file *file; /* owns what the next nine point to */
    const struct fl_server_main *main;
    const struct fl_server_model *model;
    const struct fl_server_training *training;
    const struct fl_server_round *round;
    const struct fl_server_evaluation *evaluation;
    const struct fl_server_checkpoints *checkpoints;
    const struct fl_server_limits *limits;
    const struct fl_server_tls *tls;
    const struct fl_server_identity *identity;
    struct fl_strategy *strategy;
    struct fl_layout *layout;
    struct fl_net_spec net; /* n_layers 0: the model came from a file */
    size_t inputs, classes; /* of the network; 0: not known */
};

/*
 * A state folder was begun with `begun`, which has the same tensors: unless model.units says
 * otherwise its units stand, and `*ret` is true. Nothing changes where the tensors are others, or
 * where the network is not from a file. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_server_conf_go_on(struct fl_server_conf *conf, const struct fl_layout *begun,
                                       bool *ret, struct fl_err *err);

/*
 * With `all` (findings.h) errors are put there, and a configuration that can be looked at further
 * is returned with FL_OK nevertheless: fl_findings_first() says whether it may be used. NULL: the
 * first error is returned.
 */
FL_MUST_CHECK int fl_server_conf_load(const char *path, struct fl_findings *all,
                                      struct fl_server_conf **ret, struct fl_err *err);
/* Values that are allowed and hardly meant, as warnings with file, line and key. */
void fl_server_conf_odd(const struct fl_server_conf *conf, struct fl_findings *notes);
/*
 * Whether what the solver sends beside the update (SCAFFOLD's control) takes away what the codec
 * saves, since it goes as float32: then why, with the bytes, into `out`. For fl-sim; a server says
 * it by fl_server_conf_odd().
 */
bool fl_server_conf_beside(const struct fl_server_conf *conf, char *out, size_t size);
/*
 * The same keys below a mapping of another document, which has to outlive `*ret`; NULL: not given.
 * What only a daemon has (FL_SERVER_DAEMON, FL_SERVER_NEEDED) need not be there; FL_SERVER_DAEMON
 * is not checked beyond its type.
 */
FL_MUST_CHECK int fl_server_conf_read(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                                      struct fl_server_conf **ret, struct fl_err *err);
/* Is it a key, or a section ("limits.idle", "limits"), that only a daemon has? */
bool fl_server_conf_is_daemons(const char *key);
/* Those that the file gives, "server.limits.idle, server.tls"; appends. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_server_conf_daemons(const struct fl_server_conf *conf, struct fl_buf *out);
/* The model of model.file into theta [layout], when it is set. */
FL_MUST_CHECK int fl_server_conf_model(const struct fl_server_conf *conf, float *theta,
                                       struct fl_err *err);
void fl_server_conf_free(struct fl_server_conf *conf);
/* The coordinator's part; strategy and layout are referenced. */
void fl_server_conf_coord(const struct fl_server_conf *conf, struct fl_coord_conf *ret);
/* All keys as Markdown, for `fl-serverd --reference`. */
FL_MUST_CHECK int fl_server_conf_reference(struct fl_buf *out);

/* What the state folder remembers of it; free with fl_settings_done(). FL_ENOMEM. */
FL_MUST_CHECK int fl_server_conf_settings(const struct fl_server_conf *conf,
                                          struct fl_settings *ret);

#endif
