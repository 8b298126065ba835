#include "server/work/measure.h"

#include <stdlib.h>

struct piece {
    size_t size;
    float *x;
    int32_t *y;
    uint32_t *idx;
};

static void measure_logits(void *ctx, const float *logits, size_t ld, const int32_t *y, size_t n)
{
    fl_net_metrics_add(ctx, logits, ld, y, n);
}

int fl_measure(struct fl_net *net, const struct fl_dataset *test, const float *theta,
               struct fl_net_metrics *metrics, const atomic_bool *cancel, struct fl_evaluated *ret)
{
    struct piece p = {.size = fl_net_piece(net)};
    double loss = 0.0;
    size_t correct = 0;
    size_t at;
    bool have;

    p.x = malloc(p.size * test->dim * sizeof(*p.x));
    p.y = malloc(p.size * sizeof(*p.y));
    p.idx = malloc(p.size * sizeof(*p.idx));
    have = p.x != NULL && p.y != NULL && p.idx != NULL;
    if (have) {
        if (metrics != NULL) {
            fl_net_metrics_clear(metrics, test->target);
        }
        fl_net_set(net, theta);
        fl_net_set_targets(net, test->target);
        for (at = 0; at < test->n && !atomic_load(cancel); at += p.size) {
            size_t n = test->n - at < p.size ? test->n - at : p.size;
            struct fl_net_found found;
            size_t i;

            for (i = 0; i < n; i++) {
                p.idx[i] = (uint32_t)(at + i);
            }
            fl_dataset_gather(test, p.idx, n, p.x, p.y);
            found = fl_net_evaluate_logits(net, p.x, p.y, n,
                                           metrics != NULL ? measure_logits : NULL, metrics);
            loss += found.loss_sum;
            correct += found.correct;
        }
        ret->accuracy = (double)correct / (double)test->n;
        ret->loss = loss / (double)test->n;
        ret->metrics[0] = '\0';
        if (metrics != NULL) {
            fl_net_metrics_put(metrics, ret->metrics);
        }
    }
    free(p.x);
    free(p.y);
    free(p.idx);
    return have ? FL_OK : FL_ENOMEM;
}
