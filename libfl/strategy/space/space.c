/*
 * space: full, hashed (docs/algorithms.md#hashed-spaces)
 *
 * The numbers of all units are divided by the square roots of their trainable entries d_l:
 *
 *     n_l = size sqrt(d_l) / sum_j sqrt(d_j), rounded down; at least 1; d_l when above d_l / 2
 *
 * Options: size, start, growth, redraw, seed. State: none. Cost: a pass over the model per local
 * step.
 */
#include "libfl/strategy/space/space.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/strategy/space/bucket.h"

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct fl_space_options, INT, size), .def = "8000", .min = 1, .max = 4000000,
     .help = "How many numbers are trained, in all units together; at most a quarter of the "
             "trained parameters."},
    {FL_OPT(struct fl_space_options, INT, start), .def = "0", .min = 0, .max = 4000000,
     .help = "Numbers of the first assignment; 0: as many as `size`."},
    {FL_OPT(struct fl_space_options, FLOAT, growth), .def = "1.25", .min = 1, .max = 16,
     .help =
         "Each assignment has this many times the numbers of the one before, up to `size`: 1, or "
         "1.01 and more."},
    {FL_OPT(struct fl_space_options, STRING, redraw), .def = "25",
     .help = "For how many rounds an assignment of entries to numbers is in use, or 'plateau': "
             "until the training loss has not fallen for 20 rounds; 0: for all."},
    {FL_OPT(struct fl_space_options, INT, seed), .def = "1", .min = 0, .max = 1e9,
     .help = "Seed of the assignments."},
    FL_OPT_END_OF(struct fl_space_options),
};

#define LEAST_GROWTH      1.01
#define SPACE_MOST_ROUNDS INT64_C(1000000000)

static bool space_waits_for_plateau(const struct fl_space_options *v)
{
    return strcmp(v->redraw, "plateau") == 0;
}

/* Rounds of a draw; 0: all, or none is named. */
static uint64_t space_redraw(const struct fl_space_options *v)
{
    int64_t rounds = 0;

    return fl_str_to_i64(v->redraw, &rounds) == FL_OK ? (uint64_t)rounds : 0;
}

static int hashed_check(const struct fl_options *o, struct fl_err *err)
{
    const struct fl_space_options *v = fl_options_values(o);
    int64_t rounds = 0;

    if (!space_waits_for_plateau(v) &&
        (fl_str_to_i64(v->redraw, &rounds) != FL_OK || rounds < 0 || rounds > SPACE_MOST_ROUNDS))
    {
        return fl_err_set(err, FL_ECONF,
                          "'redraw': expected 'plateau' or rounds from 0 to 1000000000, found '%s'",
                          v->redraw);
    }
    if (v->start > v->size) {
        return fl_err_set(err, FL_ECONF, "'start' %" PRId64 " is above 'size' %" PRId64, v->start,
                          v->size);
    }
    if (v->start > 0 && v->start < v->size && !space_waits_for_plateau(v) && rounds == 0) {
        return fl_err_set(err, FL_ECONF,
                          "'start' %" PRId64 " is below 'size' %" PRId64
                          ", but with 'redraw' 0 there is no next draw with more numbers: set "
                          "'redraw' to rounds or to 'plateau', or 'start' to 0",
                          v->start, v->size);
    }
    /* So that the numbers of any draw are computed in some thousand multiplications. */
    if (v->growth > 1 && v->growth < LEAST_GROWTH) {
        return fl_err_set(err, FL_ECONF, "'growth': expected 1, or %g to 16, found %.12g",
                          LEAST_GROWTH, v->growth);
    }
    return FL_OK;
}

const struct fl_space_ops fl_space_full = {
    .policy =
        {
            .name = "full",
            .help = "all entries of the model",
            .source = "FedAvg",
            .options = fl_opt_none,
        },
};

const struct fl_space_ops fl_space_hashed = {
    .policy =
        {
            .name = "hashed",
            .help = "few numbers, to which all entries are assigned by a hash that changes",
            .source = "Chen et al. 2015 (hashing), Gressmann et al. 2020 (redrawing); ours",
            .options = options,
            .check = hashed_check,
        },
    .hashed = true,
};

/* --- layout of updates --- */

/* IEEE 754 operations only: server and clients compute the same number. */
static size_t space_numbers(const struct fl_layout *layout, size_t l, int64_t size)
{
    size_t d = fl_layout_unit(layout, l)->n_trainable;
    double sum = 0;
    double n;
    size_t i;

    for (i = 0; i < fl_layout_units(layout); i++) {
        sum += sqrt((double)fl_layout_unit(layout, i)->n_trainable);
    }
    n = (double)size * sqrt((double)d) / sum;
    return d == 0 ? 0 : n > (double)d / 2 ? d : n < 1 ? 1 : (size_t)n;
}

static int space_add_unit(struct fl_layout *updates, const struct fl_layout *layout, size_t l,
                          size_t numbers, struct fl_err *err)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    char name[FL_NAME_MAX];
    size_t t;
    int n = snprintf(name, sizeof(name), "%.*s.hashed", (int)sizeof(name) - 8, unit->name);
    int rv;

    FL_REQUIRE(n > 0 && n < (int)sizeof(name));
    if (numbers > 0) {
        rv = fl_layout_add(updates, unit->name, name, &numbers, 1, /* buffer= */ false, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        if (!fl_tensor_counts(tensor)) {
            rv = fl_layout_add_like(updates, unit->name, tensor, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

int fl_space_create(const struct fl_space_ops *ops, const struct fl_options *o,
                    const struct fl_layout *layout, struct fl_space **ret, struct fl_err *err)
{
    struct fl_space *s;
    int64_t most;
    size_t l;
    int rv;

    *ret = NULL;
    if (!ops->hashed) {
        return FL_OK;
    }
    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return FL_ENOMEM;
    }
    s->layout = layout;
    s->options = *(const struct fl_space_options *)fl_options_values(o);
    s->options.redraw = NULL; /* Of `o`, and the server's own business: fl_space_draw(). */
    most = (int64_t)(fl_layout_trainable(layout) / 4);
    s->options.size = s->options.size < most ? s->options.size : most;
    rv = fl_layout_create(&s->updates);
    if (rv != FL_OK) {
        goto fail;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        rv = space_add_unit(s->updates, layout, l, space_numbers(layout, l, s->options.size), err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl_layout_finish(s->updates, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (fl_layout_count(s->updates) > FL_SPACE_MAX) {
        rv =
            fl_err_set(err, FL_ECONF,
                       "space 'hashed' has %zu numbers, with entries that are not trained, at most "
                       "%zu are possible: choose a smaller 'size', or space 'full'",
                       fl_layout_count(s->updates), FL_SPACE_MAX);
        goto fail;
    }
    *ret = s;
    return FL_OK;
fail:
    fl_space_free(s);
    return rv;
}

void fl_space_free(struct fl_space *space)
{
    if (space != NULL) {
        fl_layout_free(space->updates);
        free(space);
    }
}

/* --- draws --- */

struct fl_draw fl_space_draw(const struct fl_space_ops *ops, const struct fl_options *o,
                             const struct fl_plateau *plateau, uint64_t round)
{
    const struct fl_space_options *v = ops->hashed ? fl_options_values(o) : NULL;
    uint64_t rounds;
    uint64_t number;

    if (v == NULL) {
        return (struct fl_draw){0, 1};
    }
    if (space_waits_for_plateau(v)) {
        return (struct fl_draw){plateau->count, plateau->newest + 1};
    }
    rounds = space_redraw(v);
    number = rounds > 0 && round > 0 ? (round - 1) / rounds : 0;
    return (struct fl_draw){number, number * rounds + 1};
}

uint32_t fl_space_seed(const struct fl_space *space, uint64_t draw)
{
    uint64_t seed = fl_rng_mix((uint64_t)space->options.seed + 1) + draw;

    return (uint32_t)(fl_rng_mix(seed) >> 32);
}

/* Multiplied one by one, so that server and clients round alike. */
static int64_t space_size(const struct fl_space *space, uint64_t draw)
{
    const struct fl_space_options *o = &space->options;
    double size = (double)(o->start > 0 ? o->start : o->size);

    for (; draw > 0 && o->growth > 1 && size < (double)o->size; draw--) {
        size *= o->growth;
    }
    return size < (double)o->size ? (int64_t)size : o->size;
}

size_t fl_space_numbers(const struct fl_space *space, size_t l, uint64_t draw)
{
    return space_numbers(space->layout, l, space_size(space, draw));
}

double fl_space_scale(const struct fl_space *space, size_t l)
{
    double n = (double)fl_space_numbers(space, l, 0);

    return sqrt(n / (double)fl_layout_unit(space->layout, l)->n_trainable);
}

/* Entries and numbers of unit `l`; `others`: where those that are not trained go. */
static void space_map_unit(const struct fl_space *space, size_t l, uint64_t draw,
                           struct fl_space_map *map)
{
    const struct fl_unit *unit = fl_layout_unit(space->layout, l);
    const struct fl_unit *to = fl_layout_unit(space->updates, l);
    const struct fl_buckets buckets =
        fl_buckets_of(fl_space_seed(space, draw), l, unit->n_trainable,
                      (uint32_t)fl_space_numbers(space, l, draw));
    float scale = (float)fl_space_scale(space, l);
    size_t other = to->offset + to->n_trainable;
    size_t trained = 0;
    size_t t;
    size_t i;

    for (t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(space->layout, t);
        bool counts = fl_tensor_counts(tensor);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            bool negative = false;
            size_t at = counts ? to->offset + fl_bucket(&buckets, trained++, &negative) : other++;

            map->place[i] = (uint32_t)(at + 1) << 1 | negative;
            map->share[at] += 1;
        }
    }
    for (i = 0; i < to->count; i++) {
        map->scale[to->offset + i] = i < to->n_trainable ? scale : 1.0f;
    }
}

int fl_space_map_make(const struct fl_space *space, uint64_t draw, struct fl_space_map *ret)
{
    struct fl_space_map map = {.entries = fl_layout_count(space->layout),
                               .numbers = fl_layout_count(space->updates)};
    size_t i;

    map.place = malloc((map.entries + 1) * sizeof(*map.place));
    map.scale = malloc((map.numbers + 1) * sizeof(*map.scale));
    map.share = calloc(map.numbers + 1, sizeof(*map.share));
    if (map.place == NULL || map.scale == NULL || map.share == NULL) {
        fl_space_map_done(&map);
        return FL_ENOMEM;
    }
    for (i = 0; i < fl_layout_units(space->layout); i++) {
        space_map_unit(space, i, draw, &map);
    }
    for (i = 0; i < map.numbers; i++) {
        map.share[i] = map.share[i] > 0 ? 1 / map.share[i] : 0;
    }
    *ret = map;
    return FL_OK;
}

void fl_space_map_done(struct fl_space_map *map)
{
    free(map->place);
    free(map->scale);
    free(map->share);
    *map = (struct fl_space_map){.entries = 0};
}

/* x, or -x when the lowest bit of `place` is 1: without a branch, which no processor could predict.
 */
static inline float space_signed(float x, uint32_t place)
{
    uint32_t bits;

    (void)memcpy(&bits, &x, sizeof(bits));
    bits ^= place << 31;
    (void)memcpy(&x, &bits, sizeof(x));
    return x;
}

void fl_space_fold(const struct fl_space_map *map, const float *x, float *z)
{
    size_t i;

    (void)memset(z, 0, map->numbers * sizeof(*z));
    for (i = 0; i < map->entries; i++) {
        z[(map->place[i] >> 1) - 1] += space_signed(x[i], map->place[i]);
    }
    for (i = 0; i < map->numbers; i++) {
        z[i] = z[i] * map->share[i] / map->scale[i];
    }
}

void fl_space_unfold(const struct fl_space_map *map, const float *z, float *x)
{
    size_t i;

    for (i = 0; i < map->entries; i++) {
        size_t at = (map->place[i] >> 1) - 1;

        x[i] = space_signed(z[at] * map->scale[at], map->place[i]);
    }
}

void fl_space_places(const struct fl_space_map *map, const struct fl_layout *layout, float *ret)
{
    size_t t;
    size_t i;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            bool shared = map->share[(map->place[i] >> 1) - 1] < 1;

            ret[i] = fl_tensor_counts(tensor) && shared ? (float)map->place[i] : 0;
        }
    }
}

void fl_space_project(const struct fl_space_steps *s, float *x)
{
    size_t i;

    (void)memset(s->means, 0, (s->map->numbers + 1) * sizeof(*s->means));
    for (i = 0; i < s->n; i++) { /* Index 0 collects those that stay. */
        s->means[s->place[i] >> 1] += space_signed(x[i] - s->start[i], s->place[i]);
    }
    for (i = 0; i < s->map->numbers; i++) {
        s->means[i + 1] *= s->map->share[i];
    }
    for (i = 0; i < s->n; i++) {
        float mean = space_signed(s->means[s->place[i] >> 1], s->place[i]);

        x[i] = s->place[i] != 0 ? s->start[i] + mean : x[i];
    }
}
