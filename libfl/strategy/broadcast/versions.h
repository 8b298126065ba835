#ifndef FL_STRATEGY_VERSIONS_H
#define FL_STRATEGY_VERSIONS_H

/*
 * The models that clients may still hold, and how to get from each of them to the newest one
 * (docs/algorithms.md#lattice). A model is named by the SHA-256 of its entries as float32,
 * little-endian, in exported order. From one model to the next all trainable entries move by whole
 * steps; the moves of several rounds are added up, as whole numbers, and sent as one.
 *
 * The difference between two models as bytes, for each unit:
 *
 *     2 bytes   number of lists of moves, little-endian
 *     the lists (moves.h, hashed_moves.h); what they say about an entry is added up
 *     4 s_l bytes: its other entries as binary32, little-endian
 *
 * An entry of the new model is that of the held one plus its moves times 2^-20, exactly. The steps
 * of many rounds are one list, unless they have no common step (moves.h) that is worth it. Those of
 * a divided difference (fl_versions_divide()) are two.
 *
 * Threading: steps and versions are immutable; references may be taken and released on any thread.
 * A merger is used by one thread at a time.
 */

#include "libfl/base/buf.h"
#include "libfl/model/layout.h"
#include "libfl/strategy/space/space.h"

/* The moves of one or more rounds, from one model to a later one. */
struct fl_step {
    uint8_t from[FL_DIGEST_SIZE], to[FL_DIGEST_SIZE];
    uint64_t round;        /* the last round */
    struct fl_blob *moves; /* of each unit, as in a difference; a reference */
};

struct fl_versions;

/* Why a model cannot be sent as moves: FL_ENUMERIC with the unit and the value. */
FL_MUST_CHECK int fl_versions_check(const struct fl_layout *layout, const float *model,
                                    struct fl_err *err);
/* The name of a model. FL_ENOMEM. */
FL_MUST_CHECK int fl_versions_digest(const struct fl_layout *layout, const float *model,
                                     uint8_t ret[FL_DIGEST_SIZE]);
/*
 * The step from `old` to `new`, both of multiples of 2^-20; without `from` and `round`. Without
 * moves it is a step, too. FL_ENUMERIC as fl_versions_check(); FL_ENOMEM.
 */
FL_MUST_CHECK int fl_step_make(const struct fl_layout *layout, const float *old, const float *new,
                               struct fl_step *ret, struct fl_err *err);
/* A round in a hashed space. */
struct fl_hashed_round {
    const struct fl_space *space;
    uint64_t round, draw;
    uint32_t grid; /* fl_broadcast_grid(), above 0 */
};
/*
 * Its step, and the model `new` that it leads to: from the model `old` by the displacement `z` of
 * the numbers, whole multiples of `grid` times 2^-20. Entries that are not trained are those in
 * `z`. Without `from`. FL_ENUMERIC as above; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_step_make_hashed(const struct fl_hashed_round *round, const float *z,
                                      const float *old, float *new, struct fl_step *ret,
                                      struct fl_err *err);
void fl_step_done(struct fl_step *step);
/* Are these the bytes of a step for this layout? FL_EFORMAT, FL_ENOMEM. */
FL_MUST_CHECK int fl_step_check(const struct fl_layout *layout, const struct fl_step *step,
                                struct fl_err *err);

/* Only the model `digest`. */
FL_MUST_CHECK int fl_versions_create(const uint8_t digest[FL_DIGEST_SIZE],
                                     struct fl_versions **ret);
/*
 * `versions` and one more, which `step` leads to from the newest one: sets its `from`, and takes
 * its contents, on error too.
 */
FL_MUST_CHECK int fl_versions_add(const struct fl_versions *versions, struct fl_step *step,
                                  struct fl_versions **ret);
/*
 * How many of the first steps to merge, 0 or at least 2: so that `keep` remain beside the first one
 * when there are a quarter and eight more than that, or half of `bytes` when those beside the first
 * one have more. Not in each round, as the first one is the longest.
 */
size_t fl_versions_surplus(const struct fl_versions *versions, size_t keep, size_t bytes);
/*
 * The same versions, with the first `n` steps, at least 2, as one: the models between them are no
 * longer known. When it would be as long as the model, the list begins with the model behind it, as
 * it would be sent to no client. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_versions_merge(const struct fl_versions *versions,
                                    const struct fl_layout *layout, size_t n,
                                    struct fl_versions **ret);
void fl_versions_unref(struct fl_versions *versions); /* NULL is allowed. */
/* Steps between the first and the newest model. */
size_t fl_versions_steps(const struct fl_versions *versions);
const struct fl_step *fl_versions_step(const struct fl_versions *versions, size_t i);
const uint8_t *fl_versions_newest(const struct fl_versions *versions);

/* --- differences --- */

/* Scratch for differences, kept from one to the next: about 4 bytes for each entry of a unit. */
struct fl_merger;

/* Borrows the layout. FL_ENOMEM. */
FL_MUST_CHECK int fl_merger_create(const struct fl_layout *layout, struct fl_merger **ret);
void fl_merger_free(struct fl_merger *merger); /* NULL is allowed. */
size_t fl_merger_bytes(const struct fl_merger *merger);

struct fl_difference_unit {
    size_t at; /* offset of its number of lists */
    uint32_t lists, hashed;
};

struct fl_difference {
    struct fl_blob *bytes;
    struct fl_difference_unit *units; /* [units + 1]; `at` of the last one is the length */
};

void fl_difference_done(struct fl_difference *difference);

/*
 * Differences over many rounds are divided: the sum of a few steps is followed by the difference of
 * another model, so that this one is added up once for many held ones. It is the nearest after a
 * round that is a multiple of a power of two, the largest one of which FL_VERSIONS_PARTS fit into
 * the rounds since the held model; when it is the older one the steps in between are subtracted. In
 * hashed spaces it is the next one with another draw. The difference of the first model is not
 * divided: its step may be the sum of many.
 */
#define FL_VERSIONS_PARTS 24
/* The model where the difference of `held` is divided; NULL: it is not, or is not known. */
const uint8_t *fl_versions_divide(const struct fl_versions *versions,
                                  const uint8_t held[FL_DIGEST_SIZE]);
/*
 * The difference of `newest`, the newest model, to the model `held`. `rest`: that of the model
 * where it is divided, NULL when it is not. FL_ENOENT: the model is not known; FL_ELIMIT: the
 * difference is as long as the model itself; FL_ENOMEM. Reads every step in between. The bytes do
 * not depend on what was made before.
 */
FL_MUST_CHECK int fl_versions_difference(const struct fl_versions *versions,
                                         struct fl_merger *merger, const float *newest,
                                         const uint8_t held[FL_DIGEST_SIZE],
                                         const struct fl_difference *rest,
                                         struct fl_difference *ret);
/* How many bytes that takes while it is made, from the lengths of what is added up. */
size_t fl_versions_room(const struct fl_versions *versions, const struct fl_layout *layout,
                        const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                        const struct fl_difference *rest);
/*
 * Change the held `model` by a difference data[len] that a peer sent. FL_EFORMAT with the reason
 * for bytes that are none; `model` is undefined then. The digest of the result is the caller's to
 * check.
 */
FL_MUST_CHECK int fl_difference_apply(const struct fl_layout *layout, const uint8_t *data,
                                      size_t len, float *model, struct fl_err *err);

#endif
