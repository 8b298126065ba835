/* fl-sim compare: compares two results, paired by the seeds of their trials. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/results/compare.h"

#define COMMAND "compare"

static void compare_print_help(void)
{
    (void)puts(
        "Usage: fl-sim compare A B\n\n"
        "Compare two results, each the folder of a run (DIR) or of one of its points (DIR/POINT), "
        "on\n"
        "the seeds that are finished in both: best and last accuracy, and uplink bytes, all bytes\n"
        "and simulated time to the two largest of the accuracies 0.5, 0.6, 0.7, 0.8, 0.9, 0.95,\n"
        "0.97, 0.98 and 0.99 that all these trials reached. Each with the mean of the differences "
        "of\n"
        "the pairs, its standard error and Student's 95 % interval; a difference whose interval "
        "holds\n"
        "0 is within noise. Of two runs with several points those of the same name are "
        "compared.\n\n"
        "  --help            print this and exit\n\n"
        "Exit status: 0 done, 1 failed (the reason is on stderr), 2 wrong usage.");
}

static int compare_points(const struct fl_read_set *set, const struct fl_read_point *a,
                          const struct fl_read_point *b, struct fl_err *err)
{
    struct fl_comparison c;
    struct fl_buf text;
    char label_a[512];
    char label_b[512];
    int rv = fl_compare(a, b, fl_read_quality(set), &c, err);

    if (rv != FL_OK) {
        return rv;
    }
    fl_buf_init(&text, 1 << 20);
    rv =
        fl_comparison_text(&text, &c, fl_read_label(set, set->runs[0], a, label_a, sizeof(label_a)),
                           fl_read_label(set, set->runs[1], b, label_b, sizeof(label_b)));
    return print_text(&text, rv, err);
}

static int compare_runs(const struct fl_read_set *set, struct fl_err *err)
{
    const struct fl_read_run *a = set->runs[0];
    const struct fl_read_run *b = set->runs[1];
    size_t n = 0;
    size_t i;
    size_t k;
    int rv;

    if (a->n_points == 1 && b->n_points == 1) {
        return compare_points(set, &a->points[0], &b->points[0], err);
    }
    for (i = 0; i < a->n_points; i++) {
        for (k = 0; k < b->n_points && strcmp(b->points[k].slug, a->points[i].slug) != 0; k++) {
        }
        if (k == b->n_points) {
            continue;
        }
        (void)printf("%s", n++ > 0 ? "\n" : "");
        rv = compare_points(set, &a->points[i], &b->points[k], err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return n > 0 ? FL_OK
                 : fl_err_set(err, FL_ENOENT,
                              "'%s' (%zu points) and '%s' (%zu) have no point of the same name: "
                              "choose one of each, DIR/POINT",
                              a->path, a->n_points, b->path, b->n_points);
}

int cmd_compare(int argc, char **argv)
{
    struct fl_read_set set = {0};
    struct fl_err err = {0};
    int i;
    int rv;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            compare_print_help();
            return EXIT_SUCCESS;
        }
        if (argv[i][0] == '-') {
            return usage_error(COMMAND, "unknown option '%s'", argv[i]);
        }
    }
    if (argc != 3) {
        return usage_error(COMMAND, "expected two results, found %d", argc - 1);
    }
    rv = fl_read_all(argv + 1, 2, &set, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = compare_runs(&set, &err);
done:
    fl_read_set_done(&set);
    return command_end(COMMAND, rv, &err);
}
