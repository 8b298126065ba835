#ifndef FL_SRV_CONF_TABLES_H
#define FL_SRV_CONF_TABLES_H

/* The option tables of fl-serverd's YAML file, one per section. */

#include "libfl/conf/options.h"

extern const struct fl_opt_spec fl_srv_main_specs[];
extern const struct fl_opt_spec fl_srv_model_specs[];
extern const struct fl_opt_spec fl_srv_training_specs[];
extern const struct fl_opt_spec fl_srv_round_specs[];
extern const struct fl_opt_spec fl_srv_evaluation_specs[];
extern const struct fl_opt_spec fl_srv_checkpoint_specs[];
extern const struct fl_opt_spec fl_srv_limit_specs[];

#endif
