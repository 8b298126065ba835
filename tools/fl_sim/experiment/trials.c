/* Reads the master seeds of the trials, which are the same for all points. One thread, while the
   experiment is loaded. */

#include <stdlib.h>

#include "tools/fl_sim/experiment/experiment_impl.h"

struct trials {
    int64_t count, seed;
    struct fl_opt_ints seeds;
    bool count_given, seed_given, seeds_given;
};

/* The range of a master seed is that of server.seed. */
#define SEED_MAX 9e15
/* Leaves room for the seeds after the first one. */
#define FIRST_MAX 8e15

const struct fl_opt_spec fl__trials_specs[] = {
    {FL_OPT(struct trials, INT, count), FL_OPT_GIVEN(struct trials, count), .def = "1", .min = 1,
     .max = FL_EXPERIMENT_RUNS,
     .help = "Runs of each point, one for each seed; `trials: 3` is short for it"},
    {FL_OPT(struct trials, INT, seed), FL_OPT_GIVEN(struct trials, seed), .min = 0,
     .max = FIRST_MAX,
     .help = "The first seed, each next one is larger by 1; not set: server.seed, or 1"},
    {FL_OPT(struct trials, INT_LIST, seeds), FL_OPT_GIVEN(struct trials, seeds), .min = 0,
     .max = SEED_MAX, .help = "List of seeds, instead of count and seed"},
    FL_OPT_END_OF(struct trials)};

struct seed {
    int64_t value;
    size_t at;
};

static int trials_by_value(const void *a, const void *b)
{
    const struct seed *x = a;
    const struct seed *y = b;

    if (x->value != y->value) {
        return x->value < y->value ? -1 : 1;
    }
    return x->at < y->at ? -1 : x->at > y->at;
}

static int trials_check_duplicates(const struct fl_opt_ints *seeds, const struct fl_conf_node *node,
                                   struct fl_err *err)
{
    struct seed *sorted = calloc(seeds->n, sizeof(*sorted));
    size_t i;
    int rv = FL_OK;

    if (sorted == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < seeds->n; i++) {
        sorted[i] = (struct seed){seeds->list[i], i};
    }
    qsort(sorted, seeds->n, sizeof(*sorted), trials_by_value);
    for (i = 1; i < seeds->n; i++) {
        if (sorted[i].value == sorted[i - 1].value) {
            rv = fl_conf_error(fl_conf_at(node, sorted[i].at), err, "duplicate seed %lld",
                               (long long)sorted[i].value);
            goto done;
        }
    }
done:
    free(sorted);
    return rv;
}

static int trials_take_list(struct fl_experiment *e, const struct trials *t,
                            const struct fl_conf_node *node, struct fl_err *err)
{
    const struct fl_conf_node *seeds = fl_conf_get(node, "seeds");
    size_t i;
    int rv;

    if (t->count_given || t->seed_given) {
        return fl_conf_error(seeds, err, "expected either seeds or count and seed, found both");
    }
    if (t->seeds.n == 0 || t->seeds.n > FL_EXPERIMENT_RUNS) {
        return fl_conf_error(seeds, err, "expected 1 to %d seeds, found %zu", FL_EXPERIMENT_RUNS,
                             t->seeds.n);
    }
    /* A single value in place of a list is a list of one. */
    rv = t->seeds.n > 1 ? trials_check_duplicates(&t->seeds, seeds, err) : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    e->seeds = calloc(t->seeds.n, sizeof(*e->seeds));
    if (e->seeds == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < t->seeds.n; i++) {
        e->seeds[i] = (uint64_t)t->seeds.list[i];
    }
    e->n_seeds = t->seeds.n;
    return FL_OK;
}

/* server.seed, as its table reads it; 1 when it is not given. */
static int trials_server_seed(const struct fl_conf_node *node, uint64_t *ret, struct fl_err *err)
{
    int64_t value = 1;

    if (node != NULL &&
        (fl_conf_text(node) == NULL || fl_str_to_i64(fl_conf_text(node), &value) != FL_OK ||
         value < 0 || (double)value > FIRST_MAX))
    {
        return fl_conf_error(node, err, "expected a whole number, 0 to %.0f", FIRST_MAX);
    }
    *ret = (uint64_t)value;
    return FL_OK;
}

static int trials_take_count(struct fl_experiment *e, const struct trials *t,
                             const struct fl_conf_node *given, struct fl_err *err)
{
    uint64_t first = (uint64_t)t->seed;
    size_t i;
    int rv = t->seed_given ? FL_OK : trials_server_seed(given, &first, err);

    if (rv != FL_OK) {
        return rv;
    }
    e->n_seeds = (size_t)t->count;
    e->seeds = calloc(e->n_seeds, sizeof(*e->seeds));
    for (i = 0; e->seeds != NULL && i < e->n_seeds; i++) {
        e->seeds[i] = first + i;
    }
    return e->seeds != NULL ? FL_OK : FL_ENOMEM;
}

/* `trials: 3` becomes {count: 3}. */
static int trials_expand_count(struct fl_conf_doc *doc, struct fl_err *err)
{
    const struct fl_conf_node *node = fl_conf_get(fl_conf_root(doc), "trials");

    if (node == NULL || fl_conf_text(node) == NULL || fl_conf_text(node)[0] == '\0') {
        return FL_OK;
    }
    fl_conf_drop(doc, "trials");
    return fl_conf_put(doc, "trials.count", node, err);
}

int fl__trials_read(struct fl_experiment *e, struct fl_err *err)
{
    const struct fl_conf_node *server = fl_conf_get(fl_conf_root(e->doc), "server");
    const struct fl_conf_node *given = fl_conf_get(server, "seed");
    const struct fl_conf_node *node;
    const struct trials *t;
    struct fl_options *options = NULL;
    int rv = trials_expand_count(e->doc, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_options_create(fl__trials_specs, &options);
    if (rv != FL_OK) {
        return rv;
    }
    node = fl_conf_get(fl_conf_root(e->doc), "trials");
    t = fl_options_values(options);
    rv = fl_conf_apply(e->doc, node, "trials", NULL, options, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (given != NULL && (t->seed_given || t->seeds_given)) {
        rv = fl_conf_error(given, err,
                           "the seeds are given by trials (line %zu); remove one of them",
                           fl_conf_line(node));
        goto done;
    }
    rv = t->seeds_given ? trials_take_list(e, t, node, err) : trials_take_count(e, t, given, err);
done:
    fl_options_free(options);
    return rv;
}
