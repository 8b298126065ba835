#ifndef FL_LIB_CONF_DRAWN_H
#define FL_LIB_CONF_DRAWN_H

/* Random server configurations for tests. */

#include <check.h>

#include "libfl/base/buf.h"
#include "libfl/base/rng.h"
#include "server/conf/server_conf.h"

void conf_drawn_add(struct fl_buf *yaml, const char *text);
const char *conf_drawn_preset(struct fl_rng *rng);
/*
 * The configuration that draw() writes with a generator of this seed, read as the server reads its
 * file; `show`: it is printed. NULL: rejected with file and line; a rejection without them fails
 * the test.
 */
struct fl_server_conf *conf_drawn_make(void (*draw)(struct fl_buf *yaml, struct fl_rng *rng),
                                       uint64_t seed, bool show);

#define CONF_DRAWN_PER_TEST 100
/*
 * The hundred seeds of loop `i`; or only FL_CONF_SEED, printed, in the first loop: then returns
 * false, and the test must not check frequencies.
 */
bool conf_drawn_seeds(int i, void (*run)(uint64_t seed, bool show));
/* Such loops in FL_CONF_SEEDS (1000) of them. */
int conf_drawn_loops(void);

#endif
