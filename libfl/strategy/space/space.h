#ifndef FL_STRATEGY_SPACE_H
#define FL_STRATEGY_SPACE_H

/*
 * The space in which clients train (docs/algorithms.md#hashed-spaces): `full`, all entries of the
 * model, or `hashed`, fewer numbers z with
 *
 *     model = model of the round + P z,   P[i][b] = c_l sign(i) where b is the bucket of entry i
 *
 * and c_l = sqrt(n_l / d_l) for a unit of d_l trainable entries and n_l numbers in the first draw,
 * where z and P z have about the same norm. Later draws may have more numbers, up to those of an
 * update; the numbers that a draw does not have yet are 0. Updates, their coding, aggregation and
 * divergences are about z. The model itself stays what it is: entries that clients hold, evaluate,
 * save and export. A draw of P lasts for a number of rounds, or until the training loss has stopped
 * to fall; the next one starts from the model that the last one led to, so that there is nothing to
 * convert. Draws have numbers from 0 on. The server knows the draw of a round, clients receive its
 * number with the task.
 *
 * Entries that are not trained, and units with as many numbers as entries, are their own bucket.
 *
 * Pure functions: no I/O, no globals.
 */

#include "libfl/strategy/plateau.h"
#include "libfl/strategy/policy.h"

struct fl_space_ops {
    struct fl_policy policy;
    /* Fewer numbers than entries: the options are struct fl_space_options. */
    bool hashed;
};

struct fl_space_options {
    int64_t size;       /* numbers of all units, at most */
    int64_t start;      /* numbers of the first draw; 0: `size` */
    double growth;      /* of the numbers from draw to draw */
    const char *redraw; /* rounds of a draw, 0: all; or "plateau" */
    int64_t seed;
};

extern const struct fl_space_ops fl_space_full;
extern const struct fl_space_ops fl_space_hashed;

/* Numbers of a space, with the entries that are not trained: places fit into a float. */
#define FL_SPACE_MAX ((size_t)1 << 22)

/* The space of a model. Immutable. */
struct fl_space {
    const struct fl_layout *layout; /* of the model; borrowed */
    /* The numbers: for each unit a tensor of n_l, then its entries that are not trained. */
    struct fl_layout *updates;
    struct fl_space_options options;
};

/*
 * `*ret` NULL: updates have the entries of the model. Borrows `layout`. FL_ENOMEM, and the errors
 * of fl_layout_add().
 */
FL_MUST_CHECK int fl_space_create(const struct fl_space_ops *ops, const struct fl_options *options,
                                  const struct fl_layout *layout, struct fl_space **ret,
                                  struct fl_err *err);
void fl_space_free(struct fl_space *space); /* NULL is allowed. */
/* Layout of updates: that of the model without a space. */
static inline const struct fl_layout *fl_space_updates(const struct fl_space *space,
                                                       const struct fl_layout *layout)
{
    return space != NULL ? space->updates : layout;
}
/* The draw of a round. */
struct fl_draw {
    uint64_t number; /* from 0 on */
    uint64_t first;  /* its first round, from 1 on */
};

/*
 * That of `round`, from the options of the space and the losses of all rounds before it. `ops` may
 * be those of a full space: draw 0.
 */
struct fl_draw fl_space_draw(const struct fl_space_ops *ops, const struct fl_options *options,
                             const struct fl_plateau *plateau, uint64_t round);
/* n_l of a draw. */
size_t fl_space_numbers(const struct fl_space *space, size_t l, uint64_t draw);
/* c_l, the same for all draws. */
double fl_space_scale(const struct fl_space *space, size_t l);
/* The seed of a draw. */
uint32_t fl_space_seed(const struct fl_space *space, uint64_t draw);

/* Where each entry of the model goes in a draw. Owned; fl_space_map_done(). */
struct fl_space_map {
    size_t entries, numbers; /* of the model and of an update */
    /* [entries] twice (1 + the index of its number in an update), plus 1 where its sign is -1 */
    uint32_t *place;
    float *scale; /* [numbers] c_l, or 1 */
    float *share; /* [numbers] 1 / how many entries it has; 0: none */
};

FL_MUST_CHECK int fl_space_map_make(const struct fl_space *space, uint64_t draw,
                                    struct fl_space_map *ret);
void fl_space_map_done(struct fl_space_map *map);
/* z[numbers] from a displacement x[entries]: the nearest one, P+ x. Of P z it is z. */
void fl_space_fold(const struct fl_space_map *map, const float *x, float *z);
/* x = P z */
void fl_space_unfold(const struct fl_space_map *map, const float *z, float *x);

/*
 * places[entries] as floats, which hold them exactly: 0 for entries that are not trained, and for
 * those that are the only ones of their number, as they need no mean.
 */
void fl_space_places(const struct fl_space_map *map, const struct fl_layout *layout, float *ret);

/*
 * Training in a space: after each step the displacement from the start is replaced by the nearest
 * one of the space.
 */
struct fl_space_steps {
    const struct fl_space_map *map;
    size_t n;        /* parameters, in the network's own order */
    uint32_t *place; /* [n] as in the map; 0: the entry stays */
    float *start;    /* [n] */
    float *means;    /* [map->numbers + 1], scratch */
};

/* Replaces x[n] = start + d by start + P P+ d. */
void fl_space_project(const struct fl_space_steps *steps, float *x);

#endif
