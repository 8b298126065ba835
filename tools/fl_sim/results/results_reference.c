/* Prints the figures of a simulation as tables (Markdown). */

#include <stdio.h>

#include "libfl/figures/figures_text.h"
#include "tools/fl_sim/results/result_columns.h"

static void reference_print_rows(const struct fl_figures *figures)
{
    size_t i;

    (void)printf("| key | unit | meaning |\n| --- | --- | --- |\n");
    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];

        (void)printf("| `%s` | %s | %s |\n", fl_figure_key(f), fl_figure_unit_text(f), f->meaning);
    }
}

void fl_sim_print_reference(void)
{
    (void)printf("#### Of a round\n\n");
    reference_print_rows(&fl_sim_round_rows);
    (void)printf(
        "| `waiting_for` | text | Name of the client that determined the end of the round |\n"
        "| `robust_clients` | list | The clients of `robust_out` with the largest scores, at most "
        "16: "
        "`client`, `used`, `score`; in CSV a text |\n"
        "| `metrics` | object | Metrics of the evaluations of the round: of the server's model by "
        "name, of clients with `received/` or `personal/` before it; in CSV a text |\n");
    (void)printf("\n#### Of a client in an attempt at a round\n\n");
    reference_print_rows(&fl_sim_client_rows);
    (void)printf("| `name` | text | Name of the client |\n");
    (void)printf("| `state` | text | Outcome: ");
#define X(name, text)                                          \
    (void)printf("%s`%s`", FL_SIM_FATE_##name > 0 ? ", " : "", \
                 fl_sim_fate_text(FL_SIM_FATE_##name));
    FL_SIM_FATE_MAP(X)
#undef X
    (void)printf(" |\n");
    (void)printf("| `asked` | text | Its upload mask, a digit for each unit: `0110` |\n");
    (void)printf("| `metrics` | object | Metrics of its evaluations, `received/NAME` and "
                 "`personal/NAME` |\n");
    (void)printf("| `attacker` | yes/no | `true` for an attacker; others do not have it |\n");
}
