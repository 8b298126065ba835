#ifndef FL_NN_OUTLINE_H
#define FL_NN_OUTLINE_H

/*
 * What a network computes, for programs that express it otherwise: its layers in order with their
 * shapes, settings and tensors. Parsed and checked as by fl_net_create(), but without OpenBLAS and
 * without memory for parameters. Ownership: an outline owns everything in it. Threading: none.
 */

#include "libfl/model/layout.h"
#include "libfl/nn/net.h"

/* Channels, height, width of a sample; `flat`: one row of c numbers. */
struct fl_net_shape {
    size_t c, h, w;
    bool flat;
};

struct fl_net_op {
    const char *word; /* of the layer, as in its text: "conv" */
    /* The views that it reads: 0 is the batch, i + 1 the output of op i. `also`: "add" alone. */
    size_t from, also;
    struct fl_net_shape in, out;
    size_t tensor; /* the first of its tensors in the layout; without any 0 */
    /* conv: kernel; pools: window; and of both: */
    size_t kh, kw, stride;
    size_t top, left, bottom, right; /* padding */
    size_t groups;                   /* conv, gn */
    bool bias;                       /* conv */
    size_t heads;                    /* attention */
    bool causal;                     /* attention */
};

struct fl_net_outline {
    struct fl_net_op *ops;
    size_t n_ops;
    struct fl_net_shape input;
    struct fl_layout *layout; /* in exported order */
    size_t values;            /* fl_net_values() */
};

/* FL_ECONF as fl_net_create(); FL_ENOMEM. Returns owned: fl_net_outline_free(). */
FL_MUST_CHECK int fl_net_outline_create(const struct fl_net_spec *spec, struct fl_net_outline **ret,
                                        struct fl_err *err);
void fl_net_outline_free(struct fl_net_outline *outline); /* NULL is allowed. */

#endif
