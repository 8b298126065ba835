#ifndef FL_BENCH_ANCHORS_H
#define FL_BENCH_ANCHORS_H

/*
 * Experiment files and the federations they describe, in this process: see experiments/ for the
 * form, anchors.c for the program, anchors_run.c for the rounds.
 */

#include "libfl/conf/yaml.h"
#include "libfl/data/synthetic.h"
#include "libfl/strategy/strategy.h"
#include "server/conf/conf_tables.h"

struct anchor_figures {
    double paper, ours; /* percent */
    const char *where;
};

struct anchor_row {
    const char *name;
    const struct fl_conf_node *node;
    const struct fl_conf_node *algorithm, *strategy; /* of its server map, for fl_strategy_load() */
    const struct fl_server_training *training;
    const struct anchor_figures *figures;
    struct fl_options *options[2]; /* own the two */
};

struct anchor_file {
    struct fl_conf_doc *doc;
    const char *title, *preset;
    struct fl_synthetic_conf data;
    double test_share;
    uint64_t rounds;
    struct anchor_row *rows;
    size_t n_rows;
};

/* FL_ECONF with file and line; FL_ENOENT and others of reading. */
FL_MUST_CHECK int anchor_file_load(const char *path, struct anchor_file *ret, struct fl_err *err);
void anchor_file_done(struct anchor_file *file);
/* The row's own settings as "key: value, …" in `out`. */
void anchor_settings(const struct anchor_row *row, char *out, size_t size);

struct anchor_result {
    double weighted, unweighted; /* best over the rounds, 0 to 1 */
};

FL_MUST_CHECK int anchor_run(const struct anchor_file *file, const struct anchor_row *row,
                             uint64_t rounds, uint64_t seed, struct anchor_result *ret,
                             struct fl_err *err);

#endif
