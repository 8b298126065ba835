#ifndef FL_SERVERD_HINTS_H
#define FL_SERVERD_HINTS_H

/* Hints about configurations with effects that users may not expect: logged once, at the start. */

#include "libfl/base/log.h"
#include "server/daemon/serverd_conf.h"

void fl_hints_log(const struct fl_serverd_conf *own, const struct fl_log *log);

#endif
