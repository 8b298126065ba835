#ifndef FL_LIB_CONF_DRAWN_H
#define FL_LIB_CONF_DRAWN_H

/* Configurations of the server that a test draws at random. */

#include <check.h>

#include "libfl/base/buf.h"
#include "libfl/base/rng.h"
#include "server/conf/server_conf.h"

void conf_drawn_add(struct fl_buf *yaml, const char *text);
const char *conf_drawn_preset(struct fl_rng *rng);
/* Read as the server reads its file; NULL: refused, with the file and the line, else the test
 * fails. */
struct fl_server_conf *conf_drawn_load(const struct fl_buf *yaml, uint64_t seed);

#define CONF_DRAWN_PER_TEST 100
/*
 * The seeds of the test's loop `i`, a hundred of them; or FL_CONF_SEED alone, shown, in the first
 * loop: then false, and nothing is to be said of how often what happened.
 */
bool conf_drawn_seeds(int i, void (*run)(uint64_t seed, bool show));
/* main() of a suite of one such test, looped over FL_CONF_SEEDS (1000) of them. */
int conf_drawn_main(const char *suite, const TTest *test);

#endif
