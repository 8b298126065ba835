/* The figures of a simulation as tables (Markdown). */

#include <stdio.h>

#include "libfl/figures/figures_text.h"
#include "tools/fl_sim/results/result_columns.h"

static void print_rows(const struct fl_figures *figures)
{
    size_t i;

    (void)printf("| key | unit | meaning |\n| --- | --- | --- |\n");
    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];

        (void)printf("| `%s` | %s | %s |\n", fl_figure_key(f), fl_figure_unit_text(f), f->meaning);
    }
}

static void print_fates(void)
{
    (void)printf("| `state` | text | What became of it: ");
#define X(name, text)                                          \
    (void)printf("%s`%s`", FL_SIM_FATE_##name > 0 ? ", " : "", \
                 fl_sim_fate_text(FL_SIM_FATE_##name));
    FL_SIM_FATE_MAP(X)
#undef X
    (void)printf(" |\n");
}

void fl_sim_print_reference(void)
{
    (void)printf("#### Of a round\n\n");
    print_rows(&fl_sim_round_rows);
    (void)printf("| `waiting_for` | text | Name of the client that the round ended with |\n");
    (void)printf("\n#### Of a client in an attempt at a round\n\n");
    print_rows(&fl_sim_client_rows);
    (void)printf("| `name` | text | Its name |\n");
    print_fates();
    (void)printf("| `asked` | text | The units that it was asked for, a digit each: `0110` |\n");
}
