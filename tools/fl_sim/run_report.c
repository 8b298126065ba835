/* Writes report.html at the end of a run: the results, with the names of the layers. */
#include <stdlib.h>

#include "libfl/model/layout.h"
#include "libfl/page/page.h"
#include "tools/fl_sim/results/report.h"
#include "tools/fl_sim/run.h"

static int run_report_layers(const struct fl_experiment_point *point, struct fl_report_layers *ret)
{
    const struct fl_layout *layout = point->server->layout;
    size_t n = fl_layout_units(layout);
    const char **names = calloc(n + 1, sizeof(*names));
    size_t i;

    if (names == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        names[i] = fl_layout_unit(layout, i)->name;
    }
    *ret = (struct fl_report_layers){names, n};
    return FL_OK;
}

int run_report(const struct fl_experiment *experiment, const char *dir, struct fl_err *err)
{
    struct fl_experiment_point *points[FL_PAGE_REPORT_POINTS] = {0};
    struct fl_report_layers layers[FL_PAGE_REPORT_POINTS] = {0};
    size_t n = fl_experiment_points(experiment);
    size_t i;
    int rv = FL_OK;

    n = n < FL_PAGE_REPORT_POINTS ? n : FL_PAGE_REPORT_POINTS;
    for (i = 0; i < n; i++) {
        rv = fl_experiment_open(experiment, i, 0, &points[i], err);
        if (rv != FL_OK) {
            goto done;
        }
        rv = run_report_layers(points[i], &layers[i]);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl_report_write(dir, layers, n, err);
done:
    for (i = 0; i < n; i++) {
        free((void *)(uintptr_t)layers[i].names);
        fl_experiment_close(points[i]);
    }
    return rv;
}
