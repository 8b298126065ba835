#include "server/core/client_accuracy.h"

#include <float.h>
#include <math.h>

#include "libfl/base/sorted.h"

double fl_bounded_add(double sum, double x)
{
    sum += x;
    return sum > DBL_MAX ? DBL_MAX : sum < -DBL_MAX ? -DBL_MAX : sum;
}

static double client_accuracy_average(const double *x, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum = fl_bounded_add(sum, x[i]);
    }
    return sum / (double)n;
}

void fl_client_accuracy_put(double *accuracies, double *losses, size_t n, struct fl_round_rec *rec)
{
    double squares = 0;
    size_t i;

    if (n == 0) {
        rec->client_accuracy_mean = rec->client_accuracy_std = -1.0;
        rec->client_accuracy_worst_tenth = rec->client_accuracy_median = -1.0;
        rec->client_loss_mean = 0.0;
        return;
    }
    fl_sort(accuracies, n);
    fl_sort(losses, n);
    rec->client_accuracy_mean = client_accuracy_average(accuracies, n);
    for (i = 0; i < n; i++) {
        double d = accuracies[i] - rec->client_accuracy_mean;

        squares += d * d;
    }
    rec->client_accuracy_std = sqrt(squares / (double)n);
    rec->client_accuracy_worst_tenth = client_accuracy_average(accuracies, (n + 9) / 10);
    rec->client_accuracy_median =
        n % 2 == 1 ? accuracies[n / 2] : (accuracies[n / 2 - 1] + accuracies[n / 2]) / 2;
    rec->client_loss_mean = client_accuracy_average(losses, n);
}
