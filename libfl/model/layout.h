#ifndef FL_MODEL_LAYOUT_H
#define FL_MODEL_LAYOUT_H

/*
 * The layout of a model: an ordered list of units, each an ordered list of named tensors. All
 * entries are in one float32 block in that order (the exported order), which the protocol, digests,
 * checkpoints and strategies use.
 *
 * Unit: one weight layer with its bias and its batch-norm, buffers included.
 * Sizes are counts of floats; offsets are in floats from the start of the block.
 *
 * Limits: FL_LAYOUT_MAX_* below; descriptions from peers and files are checked against them before
 * memory is allocated. Ownership: a layout is immutable after fl_layout_finish().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/base/err.h"
#include "libfl/base/str.h"

#define FL_LAYOUT_MAX_UNITS   4096
#define FL_LAYOUT_MAX_TENSORS 16384
#define FL_LAYOUT_MAX_DIMS    8
/*
 * 2^36 floats (256 GiB) are far above any supported model and far below overflow; 2^28 (1 GiB)
 * with a 4 GiB address space.
 */
#if SIZE_MAX > UINT32_MAX
#define FL_LAYOUT_MAX_LOG2 36
#else
#define FL_LAYOUT_MAX_LOG2 28
#endif
#define FL_LAYOUT_MAX_FLOATS (UINT64_C(1) << FL_LAYOUT_MAX_LOG2)
#define FL_DIGEST_SIZE       32

struct fl_tensor {
    char name[FL_NAME_MAX];
    size_t dims[FL_LAYOUT_MAX_DIMS];
    size_t n_dims; /* 0: a scalar, count 1. */
    bool buffer;
    bool local; /* stays on each client (docs/algorithms.md#norms-that-stay-on-the-client) */
    size_t unit;
    size_t offset;
    size_t count;
};

struct fl_unit {
    char name[FL_NAME_MAX];
    size_t first_tensor;
    size_t n_tensors;
    size_t offset;
    size_t count;
    size_t n_trainable; /* d_l: entries of tensors with fl_tensor_counts() */
    size_t n_buffers;   /* s_l: all other entries */
    size_t n_local;     /* entries of local tensors, of `count` */
};

/*
 * True when the tensor is trained and exchanged: it counts in norms, distances and inner
 * products, in control variates, codecs and the server's step. Buffers are only averaged; local
 * tensors change on their client only.
 */
static inline bool fl_tensor_counts(const struct fl_tensor *tensor)
{
    return !tensor->buffer && !tensor->local;
}

struct fl_layout;

FL_MUST_CHECK int fl_layout_create(struct fl_layout **ret);
void fl_layout_free(struct fl_layout *layout);
/*
 * Append a tensor; a new unit begins when `unit` differs from that of the previous tensor.
 * FL_EINVAL: invalid or repeated name, zero dimension; FL_ELIMIT: over a limit.
 */
FL_MUST_CHECK int fl_layout_add(struct fl_layout *layout, const char *unit, const char *tensor,
                                const size_t *dims, size_t n_dims, bool buffer, struct fl_err *err);
/* fl_layout_add() with name, dims, buffer and local of `like`; its position is ignored. */
FL_MUST_CHECK int fl_layout_add_like(struct fl_layout *layout, const char *unit,
                                     const struct fl_tensor *like, struct fl_err *err);
/* Close the list and compute the digest. FL_EINVAL when it is empty. */
FL_MUST_CHECK int fl_layout_finish(struct fl_layout *layout, struct fl_err *err);

size_t fl_layout_units(const struct fl_layout *layout);
size_t fl_layout_tensors(const struct fl_layout *layout);
const struct fl_unit *fl_layout_unit(const struct fl_layout *layout, size_t i);
const struct fl_tensor *fl_layout_tensor(const struct fl_layout *layout, size_t i);
/* The tensor of that name, or NULL. */
const struct fl_tensor *fl_layout_find(const struct fl_layout *layout, const char *name);
/* All floats, d + s. */
size_t fl_layout_count(const struct fl_layout *layout);
/* Trainable floats, d: those of fl_tensor_counts(). */
size_t fl_layout_trainable(const struct fl_layout *layout);
/* Trainable floats of the unit that has most of them. */
size_t fl_layout_most_trainable(const struct fl_layout *layout);
/* Floats of local tensors. */
size_t fl_layout_local(const struct fl_layout *layout);
/*
 * SHA-256 over the textual layout (federation.proto, ModelDescription.digest): per unit
 * "unit <name>\n", per tensor "<name> <dim>x<dim>…[ buffer][ local]\n". A tensor without
 * dimensions is written "<name> scalar[ buffer][ local]\n".
 */
const uint8_t *fl_layout_digest(const struct fl_layout *layout);
/* The digest without the marks of local tensors: which parameters there are, in which units. */
const uint8_t *fl_layout_shape_digest(const struct fl_layout *layout);
/* The textual layout, without a NUL, into `ret` (initialised here). */
FL_MUST_CHECK int fl_layout_text(const struct fl_layout *layout, struct fl_buf *ret);
/*
 * Parse a textual layout of `len` bytes into a finished layout. FL_EFORMAT with the line number;
 * FL_EINVAL and FL_ELIMIT as fl_layout_add(). Free with fl_layout_free().
 */
FL_MUST_CHECK int fl_layout_from_text(const char *text, size_t len, struct fl_layout **ret,
                                      struct fl_err *err);
/* Which tensors a copy marks as local; NULL: none. */
typedef bool fl_layout_local_fn(void *ctx, const struct fl_layout *layout,
                                const struct fl_tensor *tensor);
/* A finished copy with other marks. Free with fl_layout_free(). */
FL_MUST_CHECK int fl_layout_copy(const struct fl_layout *from, fl_layout_local_fn *local, void *ctx,
                                 struct fl_layout **ret, struct fl_err *err);
bool fl_layout_equal(const struct fl_layout *a, const struct fl_layout *b);
/* Describe the first difference ("unit 2 'fc2': tensor 'weight' is 10x200, expected 10x100"). */
void fl_layout_diff(const struct fl_layout *have, const struct fl_layout *want, char *out,
                    size_t size);

/* Norm of (a - b) over the trainable entries of unit `l`, in double: D[k][l] of FedLDF eq. (3). */
double fl_unit_distance(const struct fl_layout *layout, size_t l, const float *a, const float *b);
/* FL_ENUMERIC names the first unit of a trained model with a value that is not finite. */
FL_MUST_CHECK int fl_layout_check_trained(const struct fl_layout *layout, const float *trained,
                                          struct fl_err *err);

#endif
