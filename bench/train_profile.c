#include "bench/train_profile.h"

#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/clock.h"

struct times {
    uint64_t last; /* when the previous part ended */
    uint64_t steps;
    double ns[FL_NET_MAX_LAYERS][FL_NET_PARTS];
};

static void count(void *ctx, enum fl_net_part part, size_t layer)
{
    struct times *times = ctx;
    uint64_t now = fl_clock_ns();

    times->ns[layer][part] += (double)(now - times->last);
    times->steps += part == FL_NET_EXTERNAL ? 1 : 0;
    times->last = now;
}

static double total(const struct times *times)
{
    double sum = 0.0;
    size_t i;
    size_t part;

    for (i = 0; i < FL_NET_MAX_LAYERS; i++) {
        for (part = 0; part < FL_NET_PARTS; part++) {
            sum += times->ns[i][part];
        }
    }
    return sum;
}

/* One layer; those that another one does took no time and have no line. */
static void print_layer(const struct train_work *work, const struct times *times, size_t i,
                        double all)
{
    const double *ns = times->ns[i];
    double steps = (double)times->steps;
    double forward = ns[FL_NET_FORWARD] / steps;
    double backward = ns[FL_NET_BACKWARD] / steps;
    double update = ns[FL_NET_UPDATE] / steps;
    double flops = fl_net_layer_flops(work->net, i) * (double)work->batch;
    double back = i > fl_net_first(work->net) ? 2.0 : 1.0;

    if (forward + backward <= 0.0) {
        return;
    }
    (void)printf("profile: %2zu %-24s %10.4f %10.4f %10.4f %7.1f", i + 1, work->spec.layers[i],
                 forward * 1e-6, backward * 1e-6, update * 1e-6,
                 100.0 * (forward + backward + update) * steps / all);
    if (flops > 0.0) {
        (void)printf(" %7.1f %7.1f", flops / forward, back * flops / backward);
    }
    (void)printf("\n");
}

static void print_rest(const char *name, double ns, const struct times *times, double all)
{
    (void)printf("profile:    %-24s %10.4f %29.1f\n", name, ns / (double)times->steps * 1e-6,
                 100.0 * ns / all);
}

void train_profile(struct train_work *work, double seconds)
{
    struct times *times = train_alloc(1, sizeof(*times));
    double all;
    size_t i;

    times->last = fl_clock_ns();
    fl_net_watch(work->net, count, times);
    (void)train_work_rate(work, seconds);
    fl_net_watch(work->net, NULL, NULL);
    all = total(times);
    (void)printf("profile: milliseconds a pass; GFLOP/s of the direct algorithm\n"
                 "profile:    %-24s %10s %10s %10s %7s %7s %7s\n",
                 "layer", "forward", "backward", "update", "share", "GF fwd", "GF back");
    for (i = 0; i < work->spec.n_layers; i++) {
        print_layer(work, times, i, all);
    }
    print_rest("loss", times->ns[0][FL_NET_LOSS], times, all);
    print_rest("outside the network", times->ns[0][FL_NET_EXTERNAL], times, all);
    print_rest("all", all, times, all);
    free(times);
}
