#ifndef FL_SIM_EXTEND_H
#define FL_SIM_EXTEND_H

/*
 * Extends a folder of results: the same experiment with a later end, more trials or more points.
 * Every other change is refused with the key that changed, as results of two settings would be
 * mixed under one name.
 *
 * Threading: one thread.
 */

#include "libfl/base/checksum.h"
#include "tools/fl_sim/experiment/experiment.h"
#include "tools/fl_sim/results/results.h"

struct extend;

/*
 * Kinds of runs, whose results have different fingerprints. EXTEND_LOCAL + N: with the daemons of N
 * clients.
 */
#define EXTEND_TRAINED UINT64_C(0)
#define EXTEND_DRY     UINT64_C(1) /* --no-training */
#define EXTEND_LOCAL   UINT64_C(1)

/*
 * Compares the contents of `dir` with `now`; `*ret` NULL: the folder is
 * empty, holds the same experiment, or something that fl_results_check() refuses. FL_EEXIST with
 * the reason: another experiment, an earlier end, or fewer trials or points.
 */
FL_MUST_CHECK int extend_plan(const char *dir, const struct fl_experiment *now, uint64_t kind,
                              struct extend **ret, struct fl_err *err);
/* The fingerprint in the folder; borrowed. */
const char *extend_from(const struct extend *extend);
/*
 * fl_run_info.extend, called under the lock of the folder: renames the folders of points, and
 * reopens trials that a rule ended which ends later now; they continue where their state was kept.
 * Lists these on stderr. Idempotent.
 */
FL_MUST_CHECK int extend_apply(void *extend, struct fl_err *err);
void extend_free(struct extend *extend); /* NULL is allowed. */

/* The fingerprint as results store it. */
const char *extend_fingerprint(const struct fl_experiment *experiment, uint64_t kind,
                               char out[FL_CHECKSUM_TEXT]);

#endif
