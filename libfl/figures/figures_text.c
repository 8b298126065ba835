/*
 * Figures as text: columns of lists, "label=value" after the columns, and "label=value" of log
 * lines.
 */

#include "libfl/figures/figures_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *fl_figure_unit_text(const struct fl_figure *figure)
{
    static const char *const units[] = {
        [FL_UNIT_COUNT] = "number",
        [FL_UNIT_BYTES] = "bytes",
        [FL_UNIT_MS] = "ms since 1970",
        [FL_UNIT_SHARE] = "share, 0 to 1",
        [FL_UNIT_WEIGHT] = "weight, 0 to 1",
        [FL_UNIT_LOSS] = "loss",
        [FL_UNIT_US] = "microseconds",
        [FL_UNIT_SPAN] = "milliseconds",
        [FL_UNIT_INSTANT] = "microseconds since the start",
    };

    return units[figure->unit];
}

const char *fl_figure_text(const struct fl_figures *figures, const struct fl_figure *figure,
                           const void *record, int decimals, char out[FL_FIGURE_TEXT])
{
    if (!fl_figure_known(figures, figure, record)) {
        (void)snprintf(out, FL_FIGURE_TEXT, "-");
    } else if (figure->type == FL_FIGURE_F64) {
        (void)snprintf(out, FL_FIGURE_TEXT, "%.*f", decimals, fl_figure_real(figure, record));
    } else {
        (void)snprintf(out, FL_FIGURE_TEXT, "%" PRIu64, fl_figure_whole(figure, record));
    }
    return out;
}

const char *fl_figures_columns(const struct fl_figures *figures, const void *record, char *out,
                               size_t size)
{
    char text[FL_FIGURE_TEXT];
    size_t used = 0;
    size_t i;

    out[0] = '\0';
    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];

        if ((f->shown & FL_SHOWN_COLUMN) == 0) {
            continue;
        }
        (void)snprintf(out + used, size - used, "%s%*s", used > 0 ? " " : "", f->width,
                       record != NULL ? fl_figure_text(figures, f, record, f->decimals, text)
                                      : f->label);
        used += strlen(out + used);
    }
    return out;
}

/*
 * Format the known figures shown there as "label=value"; a lead begins a group and is preceded
 * by two blanks.
 */
static const char *figures_text_pairs(const struct fl_figures *figures, const void *record,
                                      unsigned shown, char *out, size_t size)
{
    bool behind = shown == FL_SHOWN_BEHIND;
    char text[FL_FIGURE_TEXT];
    size_t used = 0;
    size_t i;

    out[0] = '\0';
    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];
        bool begins = f->lead == 0 || f->lead == i;

        if ((f->shown & shown) == 0 || !fl_figure_known(figures, f, record)) {
            continue;
        }
        (void)snprintf(out + used, size - used, "%s%s=%s", behind && begins ? "  " : " ", f->label,
                       fl_figure_text(figures, f, record, behind ? f->decimals : 4, text));
        used += strlen(out + used);
    }
    return out;
}

const char *fl_figures_behind(const struct fl_figures *figures, const void *record, char *out,
                              size_t size)
{
    return figures_text_pairs(figures, record, FL_SHOWN_BEHIND, out, size);
}

const char *fl_figures_log(const struct fl_figures *figures, const void *record, char *out,
                           size_t size)
{
    return figures_text_pairs(figures, record, FL_SHOWN_LOG, out, size);
}
