#ifndef FL_SERVERD_LABELS_H
#define FL_SERVERD_LABELS_H

/*
 * The labels that each client announced in its newest Hello, by client number, for people. They
 * are in memory only: whoever is here has said them since the start.
 * Threading: one thread.
 */

#include "libfl/wire/messages.h"

/* Of one client, in keys and values with their ends: the memory that a client can take. */
#define FL_LABELS_BYTES FL_WIRE_LABELS_BYTES

struct fl_label_set {
    size_t n;
    struct fl_wire_pair pairs[]; /* the texts are behind them, in the same block */
};

struct fl_labels {
    struct fl_label_set **sets; /* [n] by client number, each owned or NULL */
    size_t n;
};

/*
 * Replaces what the client announced before. A label that would go past FL_LABELS_BYTES is left
 * out. FL_ENOMEM: none are known of it.
 */
FL_MUST_CHECK int fl_labels_set(struct fl_labels *labels, uint32_t client,
                                const struct fl_wire_pair *pairs, size_t n);
/* NULL: none. Valid until the next set or drop. */
const struct fl_label_set *fl_labels_find(const struct fl_labels *labels, uint32_t client);
void fl_labels_drop(struct fl_labels *labels, uint32_t client);
void fl_labels_done(struct fl_labels *labels);

#endif
