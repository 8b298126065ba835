#ifndef FL_SERVER_CONF_IMPL_H
#define FL_SERVER_CONF_IMPL_H

/* Internals shared by the files of server/conf. */

#include "libfl/conf/sections.h"
#include "server/conf/server_conf.h"

/* All sections, in the order of the reference; terminated by a row without name. */
extern const char *const fl__loss_choices[];
extern const struct fl_conf_section fl__server_sections[];

/* Read hours and offset of round.eligible into conf->rule. */
FL_MUST_CHECK int fl__server_conf_eligible(struct fl_server_conf *conf, struct fl_err *err);
/* Load network and layout of the model section; the strategy is already loaded. */
FL_MUST_CHECK int fl__server_conf_model(struct fl_server_conf *conf, struct fl_err *err);

#endif
