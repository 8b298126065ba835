/* Charts of the scores of clients: the largest, and how they are spread. Pure. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/page/overview_impl.h"

static int score_compare(const void *a, const void *b)
{
    const struct fl_chart_rank *x = a;
    const struct fl_chart_rank *y = b;

    return x->value != y->value ? (x->value < y->value) - (x->value > y->value)
                                : strcmp(x->label, y->label);
}

/* Clients by how many equal shares they have; the last bound is none. */
static void score_spread(struct fl_html *html, const struct fl_chart_rank *ranks, size_t n,
                         const char *prefix)
{
    static const struct {
        const char *label;
        double below;
    } bins[] = {{"below 1/8", 0.125}, {"1/8 to 1/4", 0.25},
                {"1/4 to 1/2", 0.5},  {"1/2 to 1", 1},
                {"1 to 2", 2},        {"2 to 4", 4},
                {"4 to 8", 8},        {"8 and more", (double)INFINITY}};
    struct fl_chart_rank counts[sizeof(bins) / sizeof(bins[0])];
    struct fl_chart_head head = {.title = "Spread of the attention",
                                 .unit = FL_CHART_COUNT,
                                 .caption = "Number of clients by their score, in equal shares: 1 "
                                            "is what each would have if all had the same."};
    char id[96];
    size_t i;
    size_t k;

    for (k = 0; k < sizeof(bins) / sizeof(bins[0]); k++) {
        counts[k] = (struct fl_chart_rank){bins[k].label, 0};
    }
    for (i = 0; i < n; i++) {
        double shares = ranks[i].value * (double)n;

        for (k = 0; k + 1 < sizeof(bins) / sizeof(bins[0]) && shares >= bins[k].below; k++) {
        }
        counts[k].value++;
    }
    (void)snprintf(id, sizeof(id), "%sspread", prefix);
    head.id = id;
    fl_chart_ranks(html, &head, "equal shares", counts, sizeof(bins) / sizeof(bins[0]));
}

void fl__page_scores(struct fl_html *html, const struct fl_page_overview *o, const char *prefix)
{
    struct fl_chart_rank *ranks = calloc(o->n_clients + 1, sizeof(*ranks));
    struct fl_chart_head head = {.title = "Attention to clients",
                                 .unit = FL_CHART_SHARE,
                                 .caption = "Score of each client as a share of the sum: "
                                            "attention, or what the selection uses."};
    size_t known = 0;
    char id[96];
    size_t i;

    if (ranks == NULL) {
        fl_writer_note(&html->w, FL_ENOMEM);
        return;
    }
    for (i = 0; i < o->n_clients; i++) {
        double score = o->clients[i].figures.score;

        if (isfinite(score) && score > 0) {
            ranks[known++] = (struct fl_chart_rank){o->clients[i].name, score};
        }
    }
    if (known > 0) {
        qsort(ranks, known, sizeof(*ranks), score_compare);
        (void)snprintf(id, sizeof(id), "%sscores", prefix);
        head.id = id;
        fl_chart_ranks(html, &head, "client", ranks, known);
        score_spread(html, ranks, known, prefix);
    }
    free(ranks);
}
