#ifndef FL_SIM_EXTEND_H
#define FL_SIM_EXTEND_H

/*
 * A folder of results goes on with more rounds, trials or points than it was begun with. Every
 * other change is refused with the key that changed: results of two settings would lie under one
 * name.
 *
 * Threading: one thread.
 */

#include "libfl/base/checksum.h"
#include "tools/fl_sim/experiment/experiment.h"
#include "tools/fl_sim/results/results.h"

struct extend;

/*
 * What `dir` holds, against `now`; `dry`: --no-training. `*ret` NULL: nothing is there, or the same
 * experiment, or what fl_results_check() refuses. FL_EEXIST with the reason: another experiment, or
 * less of it.
 */
FL_MUST_CHECK int extend_plan(const char *dir, const struct fl_experiment *now, bool dry,
                              struct extend **ret, struct fl_err *err);
/* The fingerprint that the folder has; borrowed. */
const char *extend_from(const struct extend *extend);
/*
 * fl_run_info.extend, under the lock of the folder: folders of points get their new names, and
 * trials that ended by their rounds are begun again, from where their state was kept. Says on
 * stderr which. Done twice it changes nothing more.
 */
FL_MUST_CHECK int extend_apply(void *extend, struct fl_err *err);
void extend_free(struct extend *extend); /* NULL is allowed. */

/* The fingerprint as results have it. */
const char *extend_fingerprint(const struct fl_experiment *experiment, bool dry,
                               char out[FL_CHECKSUM_TEXT]);

#endif
