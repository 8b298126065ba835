#ifndef FL_DATA_SPLIT_H
#define FL_DATA_SPLIT_H

/* fl-data split: what the command line says, and the work (split.c). */

#include "libfl/data/partition.h"
#include "tools/fl_data/fl_data.h"

enum standardise { STANDARDISE_AS_INPUT, STANDARDISE_NONE, STANDARDISE_PIXEL, STANDARDISE_CIFAR };
enum pool { POOL_AS_METHOD, POOL_NO, POOL_YES };

struct split {
    const char *input, *output;
    const struct fl_partition_ops *method;
    struct fl_partition_conf conf;
    double test_share;
    enum standardise standardise;
    enum pool pool;
    uint64_t crop; /* 0: none */
    bool force;
    struct fl_dataset *train; /* what is shared out */
    struct fl_dataset *test;  /* the server's; NULL when the input has none or it was pooled */
    bool pooled;
    size_t n_client_test; /* of all clients together */
    struct fl_partition part;
};

/* split_args.c: false when the command ends here with *ret_status. */
bool split_parse(struct split *s, int argc, char **argv, int *ret_status);

#endif
