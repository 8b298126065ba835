/*
 * Charts of participations: which client sent which layer in the last rounds, and the mixing
 * weights of the newest one. Pure. Their table is in parts.c.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/page/overview_impl.h"

/* It is part of the model of its round: with an update, or none was asked. */
static bool part_counts(const struct fl_page_part *p)
{
    if (p->aborted != NULL && p->aborted[0] != '\0') {
        return false;
    }
    return strcmp(p->state, "accepted") == 0 || strcmp(p->state, "empty") == 0;
}

/* Without an upload mask everything was sent, unless nothing was asked. */
static bool part_sent(const struct fl_page_part *p, size_t layer)
{
    if (p->asked == NULL) {
        return strcmp(p->state, "accepted") == 0;
    }
    return layer < strlen(p->asked) && p->asked[layer] == '1';
}

static int part_compare(const void *a, const void *b)
{
    const struct fl_page_part *const *x = a;
    const struct fl_page_part *const *y = b;
    int order = strcmp((*x)->client, (*y)->client);

    return order != 0 ? order : ((*x)->round > (*y)->round) - ((*x)->round < (*y)->round);
}

/* Those that are in the model, by client; NULL: out of memory. `round` 0: of all rounds. */
static const struct fl_page_part **part_sort(const struct fl_page_part *parts, size_t n,
                                             uint64_t round, size_t *ret_n)
{
    const struct fl_page_part **sorted = calloc(n + 1, sizeof(*sorted));
    size_t i;

    *ret_n = 0;
    for (i = 0; sorted != NULL && i < n; i++) {
        if (part_counts(&parts[i]) && (round == 0 || parts[i].round == round)) {
            sorted[(*ret_n)++] = &parts[i];
        }
    }
    if (sorted != NULL) {
        qsort((void *)sorted, *ret_n, sizeof(*sorted), part_compare);
    }
    return sorted;
}

/* --- who sent which layer --- */

/* A row for each client: its share of rounds with each layer. Returns the number of rows. */
static size_t grid_rows(const struct fl_page_part *const *sorted, size_t n, size_t n_layers,
                        const char **rows, double *sent)
{
    size_t n_rows = 0;
    size_t from;
    size_t to;
    size_t l;
    size_t i;

    for (from = 0; from < n; from = to) {
        for (to = from; to < n && strcmp(sorted[to]->client, sorted[from]->client) == 0; to++) {
        }
        for (l = 0; l < n_layers; l++) {
            size_t times = 0;

            for (i = from; i < to; i++) {
                times += part_sent(sorted[i], l);
            }
            sent[n_rows * n_layers + l] = (double)times / (double)(to - from);
        }
        rows[n_rows++] = sorted[from]->client;
    }
    return n_rows;
}

void fl__page_grid(struct fl_html *html, const struct fl_page_overview *o, const char *prefix)
{
    char id[96];
    char headline[80];
    struct fl_heat heat = {
        .head = {.id = id,
                 .title = "Who sent which layer",
                 .headline = headline,
                 .caption = "Share of a client's rounds in which it was asked for the layer and "
                            "sent it.",
                 .unit = FL_CHART_SHARE},
        .row_head = "client",
        .columns = o->layers,
        .n_columns = o->n_layers,
        .full = 1};
    size_t n = 0;
    const struct fl_page_part **sorted = part_sort(o->parts, o->n_parts, 0, &n);
    const char **rows = calloc(n + 1, sizeof(*rows));
    double *sent = calloc(n * o->n_layers + 1, sizeof(*sent));
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    size_t i;

    if (sorted == NULL || rows == NULL || sent == NULL) {
        fl_writer_note(&html->w, FL_ENOMEM);
        goto done;
    }
    for (i = 0; i < n; i++) {
        first = sorted[i]->round < first ? sorted[i]->round : first;
        last = sorted[i]->round > last ? sorted[i]->round : last;
    }
    if (n > 0 && o->n_layers > 0) {
        (void)snprintf(id, sizeof(id), "%sgrid", prefix);
        (void)snprintf(headline, sizeof(headline), "rounds %llu to %llu", (unsigned long long)first,
                       (unsigned long long)last);
        heat.n_rows = grid_rows(sorted, n, o->n_layers, rows, sent);
        heat.rows = rows;
        heat.values = sent;
        fl_chart_heat(html, &heat);
    }
done:
    free((void *)sorted);
    free((void *)rows);
    free(sent);
}

/* --- mixing weights --- */

/* The newest round with any; 0: none has. */
static uint64_t mixing_round(const struct fl_page_part *parts, size_t n, size_t *ret_n)
{
    uint64_t round = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (parts[i].n_mixing > 0 && parts[i].round >= round) {
            round = parts[i].round;
            *ret_n = parts[i].n_mixing;
        }
    }
    return round;
}

void fl__page_mixing(struct fl_html *html, const struct fl_page_part *parts, size_t n,
                     const char *prefix)
{
    char id[96];
    char headline[40];
    size_t n_mixed = 0;
    uint64_t round = mixing_round(parts, n, &n_mixed);
    struct fl_heat heat = {.head = {.id = id,
                                    .title = "Mixing weights",
                                    .headline = headline,
                                    .caption = "Weight of the model of each client (column) in the "
                                               "personalized model of another one (row), or score "
                                               "that its update gets from that of another one.",
                                    .unit = FL_CHART_NUMBER},
                           .row_head = "client"};
    const struct fl_page_part **sorted;
    const char **names = NULL;
    double *weights = NULL;
    size_t n_sorted = 0;
    size_t i;
    size_t k;

    if (round == 0) {
        return;
    }
    sorted = part_sort(parts, n, round, &n_sorted);
    names = calloc(n_mixed, sizeof(*names));
    weights = calloc(n_mixed * n_mixed, sizeof(*weights));
    if (sorted == NULL || names == NULL || weights == NULL) {
        fl_writer_note(&html->w, FL_ENOMEM);
        goto done;
    }
    for (i = 0, k = 0; i < n_sorted && k < n_mixed; i++) {
        size_t j;

        if (strcmp(sorted[i]->state, "accepted") != 0) {
            continue;
        }
        for (j = 0; j < n_mixed; j++) {
            weights[k * n_mixed + j] =
                j < sorted[i]->n_mixing ? (double)sorted[i]->mixing[j] : FL_CHART_UNKNOWN;
        }
        names[k++] = sorted[i]->client;
    }
    if (k == n_mixed) { /* Else clients are missing, and columns would have wrong names. */
        (void)snprintf(id, sizeof(id), "%smixing", prefix);
        (void)snprintf(headline, sizeof(headline), "round %llu", (unsigned long long)round);
        heat.rows = heat.columns = names;
        heat.n_rows = heat.n_columns = n_mixed;
        heat.values = weights;
        fl_chart_heat(html, &heat);
    }
done:
    free((void *)sorted);
    free((void *)names);
    free(weights);
}

/* --- weights of updates --- */

static int weight_compare(const void *a, const void *b)
{
    const struct fl_chart_rank *x = a;
    const struct fl_chart_rank *y = b;

    return x->value != y->value ? (x->value < y->value) - (x->value > y->value)
                                : strcmp(x->label, y->label);
}

void fl__page_weights(struct fl_html *html, const struct fl_page_part *parts, size_t n,
                      const char *prefix)
{
    char id[96];
    char headline[40];
    const struct fl_chart_head head = {.id = id,
                                       .title = "Attention to updates",
                                       .headline = headline,
                                       .unit = FL_CHART_SHARE,
                                       .caption =
                                           "Weight of each update in the aggregation, by the "
                                           "attention between them."};
    struct fl_chart_rank *ranks = calloc(n + 1, sizeof(*ranks));
    uint64_t round = 0;
    size_t known = 0;
    size_t i;

    if (ranks == NULL) {
        fl_writer_note(&html->w, FL_ENOMEM);
        return;
    }
    for (i = 0; i < n; i++) {
        round = parts[i].attention > 0 && parts[i].round > round ? parts[i].round : round;
    }
    for (i = 0; i < n; i++) {
        if (parts[i].attention > 0 && parts[i].round == round) {
            ranks[known++] = (struct fl_chart_rank){parts[i].client, parts[i].attention};
        }
    }
    if (known > 0) {
        qsort(ranks, known, sizeof(*ranks), weight_compare);
        (void)snprintf(id, sizeof(id), "%sweights", prefix);
        (void)snprintf(headline, sizeof(headline), "round %llu", (unsigned long long)round);
        fl_chart_ranks(html, &head, "client", ranks, known);
    }
    free(ranks);
}
