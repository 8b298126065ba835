#ifndef FL_SERVER_NETWORK_DOWNLOAD_COUNTS_H
#define FL_SERVER_NETWORK_DOWNLOAD_COUNTS_H

/*
 * Bytes of downloads by kind since the start, for the metrics. Counted on the network loop, read by
 * any thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum fl_download_kind {
    FL_DOWNLOAD_MODEL,      /* of a round, whole, in the form of the broadcast */
    FL_DOWNLOAD_DIFFERENCE, /* to a model that the client holds */
    FL_DOWNLOAD_CANDIDATE,  /* the aggregated model, whole, that clients evaluate */
    FL_DOWNLOAD_PERSONAL_MODEL,
    FL_DOWNLOAD_INPUT, /* of the algorithm: state vectors, data summaries */
    FL_DOWNLOAD_N
};

struct fl_download_counts {
    uint64_t model_bytes; /* of a full float32 model; constant */
    /* Bytes of payloads given to the network, repeated ones included; and what the payloads that
       were given to the end would have been as full float32 ones. */
    atomic_uint_fast64_t sent[FL_DOWNLOAD_N], full[FL_DOWNLOAD_N];
};

enum fl_download_kind fl_download_kind_of(const char *payload, bool difference);
/*
 * `sent` bytes of a payload of `bytes` were given to the network; `whole`: up to its end. `counts`
 * NULL: they are not counted.
 */
void fl_download_counted(struct fl_download_counts *counts, enum fl_download_kind kind,
                         uint64_t sent, uint64_t bytes, bool whole);

#endif
