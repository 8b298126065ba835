#ifndef FL_LIB_CONF_DRAWN_H
#define FL_LIB_CONF_DRAWN_H

/* Configurations of the server that a test draws at random. */

#include "libfl/base/buf.h"
#include "libfl/base/rng.h"
#include "server/daemon/conf.h"

void conf_drawn_add(struct fl_buf *yaml, const char *text);
const char *conf_drawn_preset(struct fl_rng *rng);
/* Read as the server reads its file; NULL: refused, with the file and the line, else the test
 * fails. */
struct fl_server_conf *conf_drawn_load(const struct fl_buf *yaml, uint64_t seed);
/* A whole number of the environment. */
uint64_t conf_drawn_env(const char *name, uint64_t otherwise);

#endif
