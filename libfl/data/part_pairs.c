/*
 * Clients with two labels each and very unequal sizes, the image federations of FedMCSA
 * (docs/models.md#the-splits-of-the-papers). The sizes are those of the program that its authors
 * released: each class is cut by a chain of draws from numpy's legacy generator, so the result
 * depends only on the numbers of samples of the classes and the generator's seed. Samples are dealt
 * in the order of the file.
 */
#include "libfl/data/partition_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/data/numpy_rng.h"

#define LABELS 2 /* of a client */
/* Numbers of clients and classes in the released programs for Fashion-MNIST and CIFAR. */
#define RELEASED_CLIENTS 20
#define RELEASED_CLASSES 10

/* A slot is a client's first or second label: slot 2 i + j is label number j of client i. */
struct pairs {
    struct fl_numpy_rng rng;
    const size_t *first; /* [classes + 1]: where each class starts, sorted by label */
    size_t classes;
    size_t n_slots;
    size_t *sizes; /* [n_slots] */
};

/*
 * Cut the samples of class `c` into `count` parts, stored in sizes[0], sizes[stride], ...: each
 * part is drawn between 1/(count + 1) and half of the remaining samples; the last part takes the
 * rest.
 */
static int cut_class(struct pairs *p, size_t c, size_t count, size_t *sizes, size_t stride,
                     struct fl_err *err)
{
    size_t left = p->first[c + 1] - p->first[c];
    size_t i;

    for (i = 0; i + 1 < count; i++) {
        size_t lo = left / (count + 1);
        size_t hi = left / 2;

        if (lo >= hi) {
            return fl_err_set(err, FL_ERANGE,
                              "label %zu has %zu samples, too few to be cut for %zu clients", c,
                              p->first[c + 1] - p->first[c], count);
        }
        sizes[i * stride] = lo + fl_numpy_rng_below(&p->rng, (uint32_t)(hi - lo));
        left -= sizes[i * stride];
    }
    sizes[i * stride] = left;
    return FL_OK;
}

/* Slot s has label s mod C; the parts of a label are assigned to its slots in order. */
static int cut_in_turn(struct pairs *p, struct fl_err *err)
{
    size_t c;
    int rv;

    for (c = 0; c < p->classes && c < p->n_slots; c++) {
        size_t count = (p->n_slots - c + p->classes - 1) / p->classes;

        rv = cut_class(p, c, count, p->sizes + c, p->classes, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/*
 * The released program for Fashion-MNIST only considers the labels 0 and 1 when it counts the
 * clients of each label: two classes are cut, into twenty parts each, for all forty slots.
 */
static int cut_two_classes(struct pairs *p, struct fl_err *err)
{
    size_t j;
    int rv;

    for (j = 0; j < LABELS; j++) {
        rv = cut_class(p, j, p->n_slots / LABELS, p->sizes + j, LABELS, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int pairs_deal(const struct pairs *p, uint64_t variant, const uint32_t *sorted,
                      struct fl_partition *ret, struct fl_err *err)
{
    size_t *used = calloc(p->classes, sizeof(*used));
    size_t total = 0;
    size_t s;

    if (used == NULL) {
        return fl__partition_no_memory(err);
    }
    for (s = 0; s < p->n_slots; s++) {
        size_t client = s / LABELS;
        /* Both released programs pair labels (i, i + 1) with sizes drawn for other labels. */
        size_t c = (variant == FL_PARTITION_PAPER ? s : client + s % LABELS) % p->classes;
        size_t class_size = p->first[c + 1] - p->first[c];

        if (s % LABELS == 0) {
            ret->start[client] = total;
        }
        /*
         * The released programs differ in whether the class has enough samples left: the one for
         * Fashion-MNIST never takes the last one.
         */
        if (variant == FL_PARTITION_FMNIST ? used[c] + p->sizes[s] < class_size
                                           : used[c] + p->sizes[s] <= class_size)
        {
            (void)memcpy(ret->items + total, sorted + p->first[c] + used[c],
                         p->sizes[s] * sizeof(*sorted));
            used[c] += p->sizes[s];
            total += p->sizes[s];
        }
        if (s % LABELS == LABELS - 1 && total == ret->start[client]) {
            free(used);
            return fl_err_set(err, FL_ERANGE,
                              "client %zu would get no samples: the classes are too small for %zu "
                              "clients",
                              client, ret->n_clients);
        }
    }
    ret->start[ret->n_clients] = total;
    free(used);
    return FL_OK;
}

int fl__partition_pairs(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                        size_t classes, struct fl_partition *ret, struct fl_err *err)
{
    struct pairs p = {.classes = classes, .n_slots = conf->n_clients * LABELS};
    uint32_t *sorted = NULL;
    size_t *first = NULL;
    int rv;

    if (classes < LABELS) {
        return fl_err_set(err, FL_ERANGE,
                          "clients with two labels need data with two labels, found %zu", classes);
    }
    if (conf->variant != FL_PARTITION_PAPER &&
        (conf->n_clients != RELEASED_CLIENTS || classes != RELEASED_CLASSES))
    {
        return fl_err_set(err, FL_ERANGE,
                          "as released there are %d clients and %d labels, found %zu and %zu",
                          RELEASED_CLIENTS, RELEASED_CLASSES, conf->n_clients, classes);
    }
    p.sizes = calloc(p.n_slots, sizeof(*p.sizes));
    ret->items = malloc(n * sizeof(*ret->items));
    if (p.sizes == NULL || ret->items == NULL ||
        fl__partition_sort(y, n, classes, &sorted, &first) != FL_OK)
    {
        rv = fl__partition_no_memory(err);
        goto done;
    }
    p.first = first;
    fl_numpy_rng_seed(&p.rng, (uint32_t)conf->size_seed);
    rv = conf->variant == FL_PARTITION_FMNIST ? cut_two_classes(&p, err) : cut_in_turn(&p, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = pairs_deal(&p, conf->variant, sorted, ret, err);
done:
    free(p.sizes);
    free(sorted);
    free(first);
    return rv;
}
