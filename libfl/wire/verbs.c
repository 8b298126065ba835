#include "libfl/wire/verbs.h"

#include <stddef.h>

#define VERB_ROW(id_, name_, method_, access_, audit_, thread_, handler_, request_, answer_, \
                 help_)                                                                      \
    [FL_VERB_##id_] = {.name = (name_),                                                      \
                       .path = "/fl.v1.Admin/" #method_,                                     \
                       .audit = (audit_),                                                    \
                       .help = (help_),                                                      \
                       .access = FL_VERB_##access_},

const struct fl_verb_row fl_verbs[FL_VERB_N] = {FL_VERBS(VERB_ROW)};
