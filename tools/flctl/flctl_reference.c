/* Tables of the documents (Markdown): the figures of rounds and clients, and who may call what. */
#include <stdio.h>
#include <string.h>

#include "libfl/figures/client_figures.h"
#include "libfl/figures/figures_text.h"
#include "libfl/figures/round_figures.h"
#include "tools/flctl/flctl.h"

static void reference_print_table(const struct fl_figures *figures, bool totals)
{
    size_t i;

    (void)printf("| key | unit |%s meaning |\n| --- | --- |%s --- |\n", totals ? " `status` |" : "",
                 totals ? " --- |" : "");
    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];

        (void)printf("| `%s` | %s |", fl_figure_key(f), fl_figure_unit_text(f));
        if (totals) {
            /* How `flctl status` combines the figures of all rounds. */
            (void)printf(" %s |", !f->totals ? "" : f->over == FL_OVER_SUM ? "sum" : "newest");
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
    (void)printf("\n## A participation\n\n");
    reference_print_table(&fl_part_rows, /* totals= */ false);
}

void fl_ctl_access(void)
{
    int verb;
    int last;

    (void)printf("| calls | `flctl` | admin | local | viewer | audit |\n"
                 "| --- | --- | --- | --- | --- | --- |\n");
    for (verb = 0; verb < FL_VERB_N; verb = last + 1) {
        const struct fl_verb_row *row = &fl_verbs[verb];
        const char *method = strrchr(row->path, '/');
        int i;

        /* The verbs of one method are rows side by side. */
        for (last = verb; last + 1 < FL_VERB_N && strcmp(row->path, fl_verbs[last + 1].path) == 0;
             last++) {
        }
        (void)printf("| `%.*s`: %s |", (int)(method - row->path - 1), row->path + 1, method + 1);
        for (i = verb; i <= last; i++) {
            (void)printf("%s`%s`", i == verb ? " " : ", ", fl_verbs[i].name);
        }
        (void)printf(" | yes | yes |%s |", row->access == FL_VERB_LOOKS ? " yes" : "");
        for (i = verb; i <= last && row->audit != NULL; i++) {
            (void)printf("%s%s", i == verb ? " " : ", ", fl_verbs[i].audit);
        }
        (void)printf(" |\n");
    }
}
