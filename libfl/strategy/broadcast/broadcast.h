#ifndef FL_STRATEGY_BROADCAST_H
#define FL_STRATEGY_BROADCAST_H

/*
 * The form in which the server sends its model to clients (docs/algorithms.md#broadcast). Clients
 * and server hold the same model B, bit for bit: B is a model that the form represents exactly. It
 * is what is evaluated, checkpointed, exported and trained from. The part of a step that the form
 * cannot represent stays on the server as a state vector beside the model, `rest`, and is added to
 * the next step. So no displacement is lost.
 *
 * Trainable entries only: batch-norm statistics are sent as float32 in every form.
 *
 * Pure functions: no I/O, no globals.
 */

#include "libfl/strategy/codec/codec.h"
#include "libfl/strategy/space/space.h"

/* A piece of trainable entries of the model. */
struct fl_broadcast_block {
    size_t n;
    const float *model; /* [n] B of this round */
    const float *rest;  /* [n] of earlier steps */
    const double *step; /* [n] of the aggregator */
    uint32_t grid;      /* of the round, fl_broadcast_grid() */
    float *model_new;   /* [n] written: B of the next round */
    float *rest_new;    /* [n] written: model + rest + step = model_new + rest_new, rounded */
};

/* What the step of a round depends on. */
struct fl_broadcast_round {
    const struct fl_layout *layout; /* of the model */
    const struct fl_space *space;   /* NULL: full */
    uint64_t round;
    uint64_t plateau; /* the round up to which the training loss had stopped to fall; 0: it falls */
};

struct fl_broadcast_ops {
    struct fl_policy policy;
    /* How a unit of B is coded. Encoding and decoding B is exact. */
    const struct fl_codec_ops *codec;
    /* Both NULL: every float32 model is sent as it is, and there is no rest. */
    void (*move)(const struct fl_options *o, const struct fl_broadcast_block *block);
    /* Change n entries of a first model to the nearest ones that the form represents. */
    void (*place)(const struct fl_options *o, float *model, size_t n);
    /*
     * Clients that hold an earlier model receive the moves since then (versions.h), the others a
     * whole one: all entries of B are on the lattice of lattice.h. The options begin with struct
     * fl_broadcast_versions.
     */
    bool sends_moves;
    /* For move(): the step of a round in multiples of 2^-20. NULL: it needs none. */
    uint32_t (*grid)(const struct fl_options *o, const struct fl_broadcast_round *round);
    /*
     * After move() of all blocks of unit `l`: the moves that depend on the whole unit. `model` and
     * `rest` are those of the next round, from the unit's first entry on. Not called for units that
     * no client sent. FL_ENOMEM. NULL: none.
     */
    int (*move_unit)(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                     float *model, float *rest);
    /*
     * May these options replace those of the text `before` (fl_strategy_component_text()) after
     * `committed` rounds? FL_ECONF with the reason. NULL: always.
     */
    int (*check_change)(const struct fl_options *o, const char *before, uint64_t committed,
                        struct fl_err *err);
};

/* First member of the options of a broadcast that sends moves. */
struct fl_broadcast_versions {
    int64_t history; /* models before the newest one whose holders receive the moves */
};

/* Name of the state vector. */
#define FL_BROADCAST_REST "rest"

extern const struct fl_broadcast_ops fl_broadcast_float32;
extern const struct fl_broadcast_ops fl_broadcast_float16;
extern const struct fl_broadcast_ops fl_broadcast_lattice;
extern const struct fl_broadcast_ops fl_broadcast_ternary;

/* Does the server keep a rest beside B? */
static inline bool fl_broadcast_keeps_rest(const struct fl_broadcast_ops *ops)
{
    return ops->move != NULL;
}
/* Are the bytes of a coded model other ones than those of its floats? */
static inline bool fl_broadcast_codes(const struct fl_broadcast_ops *ops)
{
    return ops->codec->id != FL_CODEC_FLOAT32;
}

/* Do clients that hold an earlier model receive the moves since then? */
static inline bool fl_broadcast_sends_moves(const struct fl_broadcast_ops *ops)
{
    return ops->sends_moves;
}
/* For move(); 0: it needs none. */
static inline uint32_t fl_broadcast_grid(const struct fl_broadcast_ops *ops,
                                         const struct fl_options *options,
                                         const struct fl_broadcast_round *round)
{
    return ops->grid != NULL ? ops->grid(options, round) : 0;
}

/*
 * Change the trainable entries of a whole model with place(). A model B does not change.
 * FL_ENUMERIC with the tensor: an entry is out of the range of a broadcast that sends moves.
 */
FL_MUST_CHECK int fl_broadcast_place(const struct fl_broadcast_ops *ops,
                                     const struct fl_options *options,
                                     const struct fl_layout *layout, float *model,
                                     struct fl_err *err);
/* Bytes of a coded model. */
uint64_t fl_broadcast_bytes(const struct fl_broadcast_ops *ops, const struct fl_layout *layout);
/*
 * Code `model`, unit by unit in order, into fl_broadcast_bytes() bytes at `out`. FL_ENUMERIC for
 * an entry that is not finite, FL_ENOMEM; `out` is undefined then.
 */
FL_MUST_CHECK int fl_broadcast_encode(const struct fl_broadcast_ops *ops,
                                      const struct fl_layout *layout, const float *model,
                                      uint8_t *out);
/*
 * Decode `data` of fl_broadcast_bytes() bytes, which a peer sent, to a model of the layout.
 * FL_EFORMAT, FL_ENUMERIC with the unit in `err`; `model` is undefined then.
 */
FL_MUST_CHECK int fl_broadcast_decode(const struct fl_broadcast_ops *ops,
                                      const struct fl_layout *layout, const uint8_t *data,
                                      float *model, struct fl_err *err);

#endif
