#ifndef FL_SIM_EXPERIMENT_IMPL_H
#define FL_SIM_EXPERIMENT_IMPL_H

/* Shared by the files of this folder only. */

#include "libfl/base/writer.h"
#include "libfl/conf/edit.h"
#include "tools/fl_sim/experiment/experiment.h"

/* Maximum number of keys of a sweep; each is compared with each other for its shortest name. */
#define FL__SWEEP_KEYS 64

/* One value of a point. */
struct fl__setting {
    const char *path;                 /* borrowed from the tree, or `own` */
    const struct fl_conf_node *value; /* borrowed from the tree */
    char *own;                        /* owned, or NULL */
};

struct fl__point {
    struct fl__setting *settings;
    size_t n, cap;
    const struct fl_conf_node *node; /* location of the sweep, for messages; NULL: no sweep */
    char label[FL_EXPERIMENT_LABEL];
    char slug[FL_EXPERIMENT_SLUG];
};

struct fl_experiment {
    struct fl_conf_doc *doc;  /* the file with the changes of --set */
    struct fl_conf_doc *base; /* the values of all points: no sweep, no trials */
    char name[FL_NAME_MAX];
    struct fl__point *points;
    size_t n_points;
    uint64_t *seeds;
    size_t n_seeds;
    uint64_t fingerprint;
};

/* --- trials.c --- */

extern const struct fl_opt_spec fl__trials_specs[];
/* The seeds, and the base without the keys that give them. */
FL_MUST_CHECK int fl__trials_read(struct fl_experiment *e, struct fl_err *err);

/* --- sweep.c --- */

/* The points, without labels. */
FL_MUST_CHECK int fl__sweep_read(struct fl_experiment *e, struct fl_err *err);
void fl__sweep_free(struct fl_experiment *e);

/* --- label.c --- */

/* Labels and slugs of the points. */
FL_MUST_CHECK int fl__label_points(struct fl_experiment *e, struct fl_err *err);
/* Fails when two different points have the same label. */
FL_MUST_CHECK int fl__label_check(struct fl_experiment *e, struct fl_err *err);

/* --- attackers.c --- */

extern const struct fl_opt_spec fl__attackers_specs[];
/* The section of the point; its server was read. */
FL_MUST_CHECK int fl__attackers_read(struct fl_experiment_point *p, struct fl_err *err);

/* --- point.c --- */

extern const struct fl_opt_spec fl__stop_specs[];
/* The tree of a point, without a seed. */
FL_MUST_CHECK int fl__point_doc(const struct fl_experiment *e, size_t point,
                                struct fl_conf_doc **ret, struct fl_err *err);

#endif
