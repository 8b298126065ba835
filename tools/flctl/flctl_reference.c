/* flctl --reference: the figures of rounds and clients as tables (Markdown). */
#include <stdio.h>

#include "libfl/figures/client_figures.h"
#include "libfl/figures/figures_text.h"
#include "libfl/figures/round_figures.h"
#include "tools/flctl/flctl.h"

/* How `flctl status` combines the figures of all rounds. */
static const char *reference_combined_by(const struct fl_figure *f)
{
    if (!f->totals) {
        return "";
    }
    return f->over == FL_OVER_SUM ? "sum" : "newest";
}

static void reference_print_table(const struct fl_figures *figures, bool totals)
{
    size_t i;

    (void)printf("| key | unit |%s meaning |\n| --- | --- |%s --- |\n", totals ? " `status` |" : "",
                 totals ? " --- |" : "");
    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];

        (void)printf("| `%s` | %s |", fl_figure_key(f), fl_figure_unit_text(f));
        if (totals) {
            (void)printf(" %s |", reference_combined_by(f));
        }
        (void)printf(" %s |\n", f->meaning);
    }
}

void fl_ctl_reference(void)
{
    (void)printf("## A committed round\n\n");
    reference_print_table(&fl_round_rows, /* totals= */ true);
    (void)printf("\n## A client\n\n");
    reference_print_table(&fl_client_rows, /* totals= */ false);
}
