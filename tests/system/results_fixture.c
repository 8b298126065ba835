/*
 * results_fixture DIR [--still]: results of a simulation that never ran, for test_results.sh;
 * still: one without time.
 */

#include <stdlib.h>

#include "tests/lib/results_rig.h"

int main(int argc, char **argv)
{
    struct fl_err err = {0};

    if (argc < 2 || rig_write_run(argv[1], argc == 2 ? 1 : 0, &err) != FL_OK) {
        (void)fprintf(stderr, "results_fixture: %s\n", argc < 2 ? "expected a folder" : err.msg);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
