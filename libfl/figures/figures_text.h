#ifndef FL_FIGURES_TEXT_H
#define FL_FIGURES_TEXT_H

/* Figures as lines for people. What has an `out` returns it; what does not fit is cut. */

#include "libfl/figures/figures.h"

/* Room for any value, whatever diverged. */
#define FL_FIGURE_TEXT 336
/* Room for the columns of a record, or for what stands behind them. */
#define FL_FIGURES_LINE 2048

/* What the value is, for the documents: "share, 0 to 1". */
const char *fl_figure_unit_text(const struct fl_figure *figure);
/* The value with `decimals` (at most 16), or "-" when it is not known. */
const char *fl_figure_text(const struct fl_figures *figures, const struct fl_figure *figure,
                           const void *record, int decimals, char out[FL_FIGURE_TEXT]);
/* The columns of a list, a blank between them; `record` NULL: their heads. */
const char *fl_figures_columns(const struct fl_figures *figures, const void *record, char *out,
                               size_t size);
/* "  personal=0.7500 mean=0.7000  received=0.5000": what is known of FL_SHOWN_BEHIND. */
const char *fl_figures_behind(const struct fl_figures *figures, const void *record, char *out,
                              size_t size);
/* " accuracy=0.5000 loss=2.0000": what is known of FL_SHOWN_LOG. */
const char *fl_figures_log(const struct fl_figures *figures, const void *record, char *out,
                           size_t size);

#endif
