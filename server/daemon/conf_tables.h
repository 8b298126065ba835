#ifndef FL_SERVERD_CONF_TABLES_H
#define FL_SERVERD_CONF_TABLES_H

/* The option tables of fl-serverd's YAML file, one per section. */

#include "libfl/conf/options.h"

extern const struct fl_opt_spec fl_serverd_main_specs[];
extern const struct fl_opt_spec fl_serverd_model_specs[];
extern const struct fl_opt_spec fl_serverd_training_specs[];
extern const struct fl_opt_spec fl_serverd_round_specs[];
extern const struct fl_opt_spec fl_serverd_evaluation_specs[];
extern const struct fl_opt_spec fl_serverd_checkpoint_specs[];
extern const struct fl_opt_spec fl_serverd_limit_specs[];

#endif
