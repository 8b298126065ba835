#ifndef FL_SERVERD_CONF_H
#define FL_SERVERD_CONF_H

/*
 * The configuration of fl-serverd: one YAML file, read through option tables.
 *
 * Ownership: everything belongs to the struct; free with fl_server_conf_free().
 * Errors: FL_ECONF with file, line, key and what was expected.
 */

#include "libfl/nn/net.h"
#include "libfl/rpc/call.h"
#include "libfl/strategy/strategy.h"
#include "server/core/settings.h"
#include "server/store/store.h"

/* Longest path of a configuration. */
#define FL_SERVER_PATH_MAX 4096

struct fl_server_conf {
    struct fl_conf_doc *doc;
    struct fl_options *main;
    struct fl_options *model;
    struct fl_options *training;
    struct fl_options *round;
    struct fl_options *evaluation;
    struct fl_options *checkpoints;
    struct fl_options *limits;
    struct fl_strategy *strategy;

    char state_dir[FL_SERVER_PATH_MAX]; /* from the root on */
    char admin[FL_SERVER_PATH_MAX];     /* address of the admin socket */
    struct fl_layout *layout;
    struct fl_net_spec net; /* n_layers 0: the model came from a file */
    size_t inputs, classes; /* of the network; 0: not known */
    const char **layers;    /* memory of net.layers when it is not a preset */
    struct fl_rpc_limits rpc;
    uint64_t memory;      /* of all connections together */
    uint32_t chunk_bytes; /* data of one chunk of an upload, told in Welcome */
    enum fl_durability durability;
};

FL_MUST_CHECK int fl_server_conf_load(const char *path, struct fl_server_conf **ret,
                                      struct fl_err *err);
void fl_server_conf_free(struct fl_server_conf *conf);
/* Where a key stands, for messages: the section or the whole file when it is not given. */
const struct fl_conf_node *fl_server_conf_node(const struct fl_server_conf *conf,
                                               const char *section, const char *key);
/* The coordinator's part; strategy and layout are referenced. */
void fl_server_conf_coord(const struct fl_server_conf *conf, struct fl_coord_conf *ret);
/* All keys as Markdown, for `fl-serverd --reference`. */
FL_MUST_CHECK int fl_server_conf_reference(struct fl_buf *out);

/* What the state folder remembers of it; free with fl_settings_done(). FL_ENOMEM. */
FL_MUST_CHECK int fl_server_conf_settings(const struct fl_server_conf *conf,
                                          struct fl_settings *ret);

#endif
