#ifndef FL_SERVER_RUNTIME_LABELS_H
#define FL_SERVER_RUNTIME_LABELS_H

/*
 * The labels from each client's newest Hello, by client number, shown to operators. In memory;
 * runtime_labels.c stores them. Threading: one thread.
 */

#include "libfl/wire/messages.h"

/*
 * Most bytes of one client's keys and values with terminators, which bounds the memory of a client.
 */
#define FL_LABELS_BYTES FL_WIRE_LABELS_BYTES

struct fl_label_set {
    size_t n;
    bool takes_central;     /* Hello.takes_central of its newest Hello since the start */
    struct fl_pair pairs[]; /* the texts follow in the same block */
};

struct fl_labels {
    struct fl_label_set **sets; /* [n] by client number, each owned or NULL */
    size_t n;
    bool *queued; /* [n_queued] by client number: waits to be stored */
    size_t n_queued;
};

/*
 * Replaces the client's previous labels. A label that would exceed FL_LABELS_BYTES is left out.
 * FL_ENOMEM: the client has no labels.
 */
FL_MUST_CHECK int fl_labels_set(struct fl_labels *labels, uint32_t client,
                                const struct fl_pair *pairs, size_t n, bool takes_central);
/* Are these, in this order, the labels of the client as fl_labels_set() keeps them? */
bool fl_labels_are(const struct fl_labels *labels, uint32_t client, const struct fl_pair *pairs,
                   size_t n);
/* Marks of the caller. FL_ENOMEM: not queued. */
FL_MUST_CHECK int fl_labels_queue(struct fl_labels *labels, uint32_t client);
void fl_labels_unqueue(struct fl_labels *labels, uint32_t client);
bool fl_labels_queued(const struct fl_labels *labels, uint32_t client);
/* NULL: none. Valid until the next set or drop. */
const struct fl_label_set *fl_labels_find(const struct fl_labels *labels, uint32_t client);
void fl_labels_drop(struct fl_labels *labels, uint32_t client);
void fl_labels_done(struct fl_labels *labels);

#endif
