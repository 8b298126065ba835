#include "server/work/measure.h"

#include <stdlib.h>

struct piece {
    size_t size;
    float *x;
    int32_t *y;
    uint32_t *idx;
};

int fl_measure(struct fl_net *net, const struct fl_dataset *test, const float *theta,
               const atomic_bool *cancel, double *ret_accuracy, double *ret_loss)
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
        fl_net_set(net, theta);
        fl_net_set_targets(net, test->target);
        for (at = 0; at < test->n && !atomic_load(cancel); at += p.size) {
            size_t n = test->n - at < p.size ? test->n - at : p.size;
            double loss_sum = 0.0;
            size_t good = 0;
            size_t i;

            for (i = 0; i < n; i++) {
                p.idx[i] = (uint32_t)(at + i);
            }
            fl_dataset_gather(test, p.idx, n, p.x, p.y);
            fl_net_evaluate(net, p.x, p.y, n, &loss_sum, &good);
            loss += loss_sum;
            correct += good;
        }
        *ret_accuracy = (double)correct / (double)test->n;
        *ret_loss = loss / (double)test->n;
    }
    free(p.x);
    free(p.y);
    free(p.idx);
    return have ? FL_OK : FL_ENOMEM;
}
