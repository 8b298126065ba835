/*
 * Partition methods: the table of methods with their options, and parsing of option texts
 * (partition.h). The methods are in part_*.c, what they share is in part_common.c.
 */
#include "libfl/data/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/data/partition_impl.h"

/* clang-format off */
#define COUNT(field, name, lo, hi, def, help) \
    {name, help, FL_PARTITION_COUNT, offsetof(struct fl_partition_conf, field), lo, hi, def, NULL}
#define REAL(field, name, lo, hi, def, help) \
    {name, help, FL_PARTITION_REAL, offsetof(struct fl_partition_conf, field), lo, hi, def, NULL}
/* The first choice is the default. */
#define CHOICE(field, name, choices, help) \
    {name, help, FL_PARTITION_CHOICE, offsetof(struct fl_partition_conf, field), 0, 0, 0, choices}

static const char *const priors[] = {
    [FL_PARTITION_RHO_OVER_C] = "rho_over_C", [FL_PARTITION_RHO] = "rho", NULL};

static const char *const variants[] = {
    [FL_PARTITION_PAPER] = "no", [FL_PARTITION_FMNIST] = "fmnist", [FL_PARTITION_CIFAR] = "cifar",
    NULL};

static const struct fl_partition_option iid_options[] = {
    COUNT(samples, "samples", 0, 2147483648.0, 0,
          "samples of each client; 0: all there are, shared equally"),
    {.name = NULL}
};
static const struct fl_partition_option shards_options[] = {
    COUNT(shards_per_client, "shards-per-client", 1, 1000000, 2,
          "shards of (nearly) one label that each client gets"),
    {.name = NULL}
};
static const struct fl_partition_option dirichlet_options[] = {
    REAL(alpha, "alpha", 1e-4, 1e6, 1.0,
         "concentration: small is skewed, large is even"),
    COUNT(min_samples, "min-samples", 1, 2147483648.0, 10,
          "draw again until every client has so many"),
    {.name = NULL}
};
static const struct fl_partition_option silo_options[] = {
    COUNT(shards_per_client, "shards-per-client", 1, 1000000, 2,
          "shards that each client gets, no label in two of them"),
    COUNT(shard_size, "shard-size", 0, 2147483648.0, 0,
          "samples of a shard; 0: clients times shards of equal size from all samples"),
    {.name = NULL}
};
static const struct fl_partition_option device_options[] = {
    REAL(rho, "rho", 1e-4, 1e6, 1.0,
         "concentration of a client's label shares: small is skewed, large is even"),
    CHOICE(prior, "dirichlet-prior", priors,
           "concentration per label: rho divided by the labels, or rho itself"),
    COUNT(samples, "samples", 0, 2147483648.0, 0,
          "samples of each client; 0: as many as all can have"),
    {.name = NULL}
};
static const struct fl_partition_option pairs_options[] = {
    COUNT(size_seed, "size-seed", 0, 4294967295.0, 1,
          "of the sizes; 1: the sizes of the paper"),
    CHOICE(variant, "as-released", variants,
           "the rule of the paper, or what its released program does"),
    {.name = NULL}
};
static const struct fl_partition_option lognormal_sizes_options[] = {
    REAL(sigma, "sigma", 0.0, 10.0, 1.0,
         "standard deviation of the logarithm of the sizes; 0: equal sizes"),
    COUNT(min_samples, "min-samples", 1, 2147483648.0, 10,
          "samples that a client has at least"),
    {.name = NULL}
};
static const struct fl_partition_option dirichlet_sizes_options[] = {
    REAL(alpha, "alpha", 1e-4, 1e6, 1.0,
         "concentration: small is unequal sizes, large is equal sizes"),
    COUNT(min_samples, "min-samples", 1, 2147483648.0, 10,
          "samples that a client has at least"),
    {.name = NULL}
};

static const struct fl_partition_ops methods[] = {
    {"iid", "a random share of all samples, as equal as it goes", iid_options, false, 0.0,
     fl__partition_iid},
    {"shards", "sort by label, cut into shards, deal them out (McMahan et al.)", shards_options,
     false, 0.0, fl__partition_shards},
    {"dirichlet", "share each class out by a Dirichlet draw over the clients (FedLDF)",
     dirichlet_options, false, 0.0, fl__partition_dirichlet},
    {"silo", "shards of different labels for each client (IGFL, cross-silo)", silo_options,
     false, 0.0, fl__partition_silo},
    {"device", "equal sizes, label shares by a Dirichlet draw per client (IGFL, cross-device)",
     device_options, false, 0.0, fl__partition_device},
    {"pairs", "two labels and very unequal sizes; shares out the test part too (FedMCSA)",
     pairs_options, true, 0.25, fl__partition_pairs},
    {"lognormal-sizes", "random samples, sizes of the clients by a log-normal law",
     lognormal_sizes_options, false, 0.0, fl__partition_lognormal_sizes},
    {"dirichlet-sizes", "random samples, sizes of the clients by one Dirichlet draw",
     dirichlet_sizes_options, false, 0.0, fl__partition_dirichlet_sizes},
};
/* clang-format on */

#define N_METHODS (sizeof(methods) / sizeof(methods[0]))

const struct fl_partition_ops *fl_partition_at(size_t i)
{
    return i < N_METHODS ? &methods[i] : NULL;
}

const struct fl_partition_ops *fl_partition_find(const char *name)
{
    size_t i;

    for (i = 0; i < N_METHODS; i++) {
        if (strcmp(methods[i].name, name) == 0) {
            return &methods[i];
        }
    }
    return NULL;
}

static void partition_store_option(const struct fl_partition_option *option,
                                   struct fl_partition_conf *conf, double value)
{
    char *at = (char *)conf + option->offset;
    uint64_t count = (uint64_t)value;

    if (option->type == FL_PARTITION_REAL) {
        (void)memcpy(at, &value, sizeof(value));
    } else {
        (void)memcpy(at, &count, sizeof(count));
    }
}

void fl_partition_conf_init(struct fl_partition_conf *conf)
{
    const struct fl_partition_option *option;
    size_t i;

    *conf = (struct fl_partition_conf){.n_clients = 0};
    for (i = 0; i < N_METHODS; i++) {
        for (option = methods[i].options; option->name != NULL; option++) {
            partition_store_option(option, conf, option->def);
        }
    }
}

int fl_partition_option_set(const struct fl_partition_option *option,
                            struct fl_partition_conf *conf, const char *text, struct fl_err *err)
{
    bool real = option->type == FL_PARTITION_REAL;
    uint64_t count = 0;
    double value = 0.0;

    if (option->type == FL_PARTITION_CHOICE) {
        char known[128] = "";
        size_t used = 0;
        size_t i;

        for (i = 0; option->choices[i] != NULL; i++) {
            if (strcmp(option->choices[i], text) == 0) {
                partition_store_option(option, conf, (double)i);
                return FL_OK;
            }
            if (used < sizeof(known)) {
                used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
                                         i > 0 ? ", " : "", option->choices[i]);
            }
        }
        return fl_err_set(err, FL_EINVAL, "%s: expected one of %s, found '%s'", option->name, known,
                          text);
    }
    if (real ? fl_str_to_double(text, &value) != FL_OK : fl_str_to_u64(text, &count) != FL_OK) {
        return fl_err_set(err, FL_EINVAL, "%s: expected a %s, found '%s'", option->name,
                          real ? "number" : "whole number", text);
    }
    value = real ? value : (double)count;
    if (!(value >= option->min && value <= option->max)) {
        return fl_err_set(err, FL_ERANGE, "%s: expected %.10g to %.10g, found '%s'", option->name,
                          option->min, option->max, text);
    }
    partition_store_option(option, conf, value);
    return FL_OK;
}

static int partition_by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

int fl_partition_make(const struct fl_partition_ops *ops, const struct fl_partition_conf *conf,
                      const int32_t *y, size_t n, size_t classes, struct fl_partition *ret,
                      struct fl_err *err)
{
    struct fl_partition part = {.n_clients = conf->n_clients};
    size_t k;
    int rv;

    if (conf->n_clients < 1 || conf->n_clients > FL_PARTITION_MAX_CLIENTS) {
        return fl_err_set(err, FL_ERANGE, "expected 1 to %zu clients, found %zu",
                          FL_PARTITION_MAX_CLIENTS, conf->n_clients);
    }
    if (n < conf->n_clients) {
        return fl_err_set(err, FL_ERANGE, "%zu clients cannot share %zu samples", conf->n_clients,
                          n);
    }
    part.start = calloc(conf->n_clients + 1, sizeof(*part.start));
    if (part.start == NULL) {
        return fl__partition_no_memory(err);
    }
    rv = ops->make(conf, y, n, classes, &part, err);
    if (rv != FL_OK) {
        fl_partition_done(&part);
        return rv;
    }
    for (k = 0; k < part.n_clients; k++) {
        qsort(part.items + part.start[k], fl_partition_count(&part, k), sizeof(*part.items),
              partition_by_number);
    }
    *ret = part;
    return FL_OK;
}

void fl_partition_done(struct fl_partition *part)
{
    free(part->start);
    free(part->items);
    *part = (struct fl_partition){.n_clients = 0};
}
