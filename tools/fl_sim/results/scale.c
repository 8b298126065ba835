#include "tools/fl_sim/results/scale.h"

/* The largest unit of `n`, sorted from small to large, that is not above the value. */
static struct fl_scale scale_pick(const struct fl_scale *scales, size_t n, double largest)
{
    size_t i = n - 1;

    while (i > 0 && !(largest >= scales[i].per)) {
        i--;
    }
    return scales[i];
}

/* A unit starts at several times its size: ten minutes are shown in minutes, two hours in hours. */
static struct fl_scale scale_of_time(double largest)
{
    static const struct fl_scale scales[] = {{1.0, "us"},   {1e3, "ms"},   {1e6, "s"},
                                             {60e6, "min"}, {3600e6, "h"}, {86400e6, "days"}};

    return largest > 0.0 ? scale_pick(scales, sizeof(scales) / sizeof(scales[0]), largest / 2.0)
                         : scales[2];
}

struct fl_scale fl_scale_unit(enum fl_figure_unit unit, double largest)
{
    static const struct fl_scale scales[] = {
        {1.0, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}};

    switch (unit) {
    case FL_UNIT_BYTES:
        return scale_pick(scales, sizeof(scales) / sizeof(scales[0]), largest);
    case FL_UNIT_US:
    case FL_UNIT_INSTANT:
        return scale_of_time(largest);
    case FL_UNIT_SPAN:
        return (struct fl_scale){1.0, "ms"};
    case FL_UNIT_SHARE:
        return (struct fl_scale){0.01, "%"};
    case FL_UNIT_COUNT:
    case FL_UNIT_MS:
    case FL_UNIT_WEIGHT:
    case FL_UNIT_LOSS:
        break;
    }
    return (struct fl_scale){1.0, ""};
}

struct fl_scale fl_scale_axis(enum fl_axis axis, double largest)
{
    static const enum fl_figure_unit units[FL_N_AXES] = {[FL_AXIS_UPLINK] = FL_UNIT_BYTES,
                                                         [FL_AXIS_BYTES] = FL_UNIT_BYTES,
                                                         [FL_AXIS_TIME] = FL_UNIT_US};

    return fl_scale_unit(units[axis], largest);
}
