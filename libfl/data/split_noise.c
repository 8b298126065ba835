/*
 * Label noise of a partition (split.h): which clients have it, and which of their training labels
 * are replaced. Symmetric noise as in Zhang et al., "Understanding deep learning requires
 * rethinking generalization", ICLR 2017 (section 2, partially corrupted labels), except that a
 * replaced label never stays what it was, so that the share is exact.
 */
#include "libfl/data/split.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/data/pick.h"

/* A share of `n`, to the nearest whole number. */
static size_t noise_count(double share, size_t n)
{
    size_t count = (size_t)(share * (double)n + 0.5);

    return count < n ? count : n;
}

static int noise_check(const struct fl_dataset *train, struct fl_err *err)
{
    const char *source = train->source != NULL ? train->source : "the data set";

    if (train->n_targets > 0) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': label noise replaces classes, and samples have %zu values to be "
                          "predicted instead: leave out the noise share",
                          source, train->n_targets);
    }
    if (train->classes < 2) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': label noise replaces a label by another class: expected at least "
                          "2 classes, found %zu",
                          source, train->classes);
    }
    return FL_OK;
}

/* Replace labels of client `k`, whose training samples are items[0 … n - 1]. */
static int noise_of_client(const struct fl_dataset *train, const struct fl_split_conf *conf,
                           size_t k, const uint32_t *items, size_t n, struct fl_split_noise *noise,
                           struct fl_err *err)
{
    size_t count = noise_count(conf->noise_share, n);
    uint8_t *marks = NULL;
    struct fl_rng rng;
    size_t i;
    int rv;

    fl_rng_key(&rng, conf->partition.seed, FL_RNG_PARTITION, FL_PICK_NOISE, k);
    rv = fl_pick_marks(&rng, n, count, &marks, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        int32_t old = train->y[items[i]];
        int32_t other;

        if (marks[i] != 0) {
            /* A class among all but `old`. */
            other = (int32_t)fl_rng_below(&rng, train->classes - 1);
            noise->labels[items[i]] = other < old ? other : other + 1;
        }
    }
    noise->noisy[k] = (uint32_t)count;
    noise->n_labels += count;
    free(marks);
    return FL_OK;
}

int fl_split_noise(const struct fl_dataset *train, const struct fl_split_conf *conf,
                   const struct fl_partition *part, struct fl_split_noise *ret, struct fl_err *err)
{
    struct fl_split_noise noise = {.labels = NULL};
    uint8_t *chosen = NULL;
    struct fl_rng rng;
    size_t k;
    int rv;

    if (!(conf->noise_share > 0.0)) {
        *ret = noise;
        return FL_OK;
    }
    rv = noise_check(train, err);
    if (rv != FL_OK) {
        return rv;
    }
    noise.n_clients = noise_count(conf->noise_clients, part->n_clients);
    noise.labels = malloc(train->n * sizeof(*noise.labels));
    noise.noisy = calloc(part->n_clients, sizeof(*noise.noisy));
    if (noise.labels == NULL || noise.noisy == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "label noise for %zu samples: out of memory", train->n);
        goto fail;
    }
    (void)memcpy(noise.labels, train->y, train->n * sizeof(*noise.labels));
    fl_rng_key(&rng, conf->partition.seed, FL_RNG_PARTITION, FL_PICK_NOISY_CLIENTS, 0);
    rv = fl_pick_marks(&rng, part->n_clients, noise.n_clients, &chosen, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (k = 0; k < part->n_clients; k++) {
        size_t n = fl_partition_count(part, k);

        if (chosen[k] == 0) {
            continue;
        }
        rv = noise_of_client(train, conf, k, part->items + part->start[k],
                             n - fl_dataset_split_count(n, conf->test_share), &noise, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    free(chosen);
    *ret = noise;
    return FL_OK;
fail:
    free(chosen);
    fl_split_noise_done(&noise);
    return rv;
}

void fl_split_noise_done(struct fl_split_noise *noise)
{
    free(noise->labels);
    free(noise->noisy);
    *noise = (struct fl_split_noise){.labels = NULL};
}

size_t fl_split_noise_count(const struct fl_split_noise *noise, size_t k)
{
    return noise->noisy != NULL ? noise->noisy[k] : 0;
}
