#include "libfl/json/json.h"

#include <math.h>

json_t *fl_json_whole(uint64_t value)
{
    return json_integer((json_int_t)value);
}

json_t *fl_json_real(double value, bool known)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

void fl_json_figures(json_t *object, const struct fl_figures *figures, const void *record,
                     bool totals)
{
    size_t i;

    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];

        if (totals && !f->totals) {
            continue;
        }
        (void)json_object_set_new(
            object, fl_figure_key(f),
            f->type != FL_FIGURE_F64
                ? fl_json_whole(fl_figure_whole(f, record))
                : fl_json_real(fl_figure_real(f, record), fl_figure_known(figures, f, record)));
    }
}

void fl_json_print(json_t *value, FILE *out)
{
    (void)json_dumpf(value, out, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(10));
    (void)fputc('\n', out);
    json_decref(value);
}
