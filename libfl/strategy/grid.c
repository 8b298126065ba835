#include "libfl/strategy/grid.h"

#include <math.h>

int fl_grid_check(double step, int multiple, const char *why, struct fl_err *err)
{
    double unit = multiple * FL_GRID;
    double near = rint(step / unit) * unit;

    if (step / unit == floor(step / unit)) {
        return FL_OK;
    }
    return fl_err_set(err, FL_ECONF,
                      "'step': %.10g is not a multiple of 2^-%d%s; the nearest one is %.20g, and a "
                      "short one near it is %.10g",
                      step, multiple == 2 ? 19 : 20, why, near,
                      rint(step * 256) > 0 ? rint(step * 256) / 256 : near);
}
