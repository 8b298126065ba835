#ifndef FL_FIGURES_TEXT_H
#define FL_FIGURES_TEXT_H

/* Figures as text. Functions with `out` return it; text that does not fit is truncated. */

#include "libfl/figures/figures.h"

/* Size for any value, also after divergence. */
#define FL_FIGURE_TEXT 336
/* Size for the columns of a record, or for the text after them. */
#define FL_FIGURES_LINE 2048

/* Unit of the value, for the documents: "share, 0 to 1". */
const char *fl_figure_unit_text(const struct fl_figure *figure);
/* The value with `decimals` (at most 16), or "-" when unknown. */
const char *fl_figure_text(const struct fl_figures *figures, const struct fl_figure *figure,
                           const void *record, int decimals, char out[FL_FIGURE_TEXT]);
/* The columns of a list, separated by blanks; `record` NULL: their headers. */
const char *fl_figures_columns(const struct fl_figures *figures, const void *record, char *out,
                               size_t size);
/* The known figures of FL_SHOWN_BEHIND: "  personal=0.7500 mean=0.7000  received=0.5000". */
const char *fl_figures_behind(const struct fl_figures *figures, const void *record, char *out,
                              size_t size);
/* The known figures of FL_SHOWN_LOG: " accuracy=0.5000 loss=2.0000". */
const char *fl_figures_log(const struct fl_figures *figures, const void *record, char *out,
                           size_t size);

#endif
