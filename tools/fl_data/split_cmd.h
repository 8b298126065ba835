#ifndef FL_DATA_SPLIT_COMMAND_H
#define FL_DATA_SPLIT_COMMAND_H

/* fl-data split: the parsed command line, and the work (split_cmd.c). */

#include "libfl/data/split.h"
#include "libfl/import/import.h"
#include "tools/fl_data/fl_data.h"

struct split {
    const char *input, *output;
    struct input_args reading;
    struct fl_import_conf import;
    struct input in; /* its parts are in `set` */
    struct fl_split_conf conf;
    bool force;
    struct fl_split_set set;
    struct fl_partition part;
    struct fl_split_noise noise;
    size_t n_client_test; /* number of all clients' samples */
};

/* split_args.c: false when the command ends here with *ret_status. */
bool split_parse(struct split *s, int argc, char **argv, int *ret_status);

#endif
