#ifndef FL_CLIENTD_CONF_H
#define FL_CLIENTD_CONF_H

/*
 * The configuration of fl-clientd: one YAML file, read through option tables.
 *
 * Ownership: everything belongs to the struct; free with fl_client_conf_free().
 */

#include "libfl/conf/yaml.h"
#include "libfl/data/dataset.h"

struct fl_client_conf {
    struct fl_conf_doc *doc;
    struct fl_options *main;
    struct fl_options *data;
    struct fl_options *command;
    struct fl_options *reconnect;
};

FL_MUST_CHECK int fl_client_conf_load(const char *path, struct fl_client_conf **ret,
                                      struct fl_err *err);
void fl_client_conf_free(struct fl_client_conf *conf);
/* Where a key stands, for messages: the section or the whole file when it is not given. */
const struct fl_conf_node *fl_client_conf_node(const struct fl_client_conf *conf,
                                               const char *section, const char *key);
/* trainer: command */
bool fl_client_conf_command(const struct fl_client_conf *conf);
/* What data.augment says. */
enum fl_data_augment fl_client_conf_augment(const struct fl_client_conf *conf);
FL_MUST_CHECK int fl_client_conf_reference(struct fl_buf *out);

#endif
