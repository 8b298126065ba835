#ifndef FL_SIM_RANKS_IMPL_H
#define FL_SIM_RANKS_IMPL_H

/*
 * Messages between the processes of a shared worker pool. All run the same program on the same kind
 * of machine, so numbers are sent in host representation.
 */

#include "libfl/base/writer.h"
#include "libfl/wire/messages.h"
#include "tools/fl_sim/engine/ranks.h"
#include "tools/fl_sim/engine/worker_pool_impl.h"

enum fl__ranks_kind {
    FL__RANKS_OPEN = 1,    /* a pool; its folder and the Welcome follow */
    FL__RANKS_MODEL_CACHE, /* for the next trainings: payloads for all clients */
    FL__RANKS_MODEL,       /* for the next evaluations */
    FL__RANKS_MALICIOUS,   /* for the next trainings of attackers: the update that they send */
    FL__RANKS_BEGIN,       /* a job */
    FL__RANKS_CANCEL,
    FL__RANKS_DROP,
    FL__RANKS_CLOSE, /* the pool */
    FL__RANKS_END,
    FL__RANKS_ANSWER /* to the leader */
};

struct fl__ranks_head {
    uint32_t kind, client;
    uint64_t id;             /* BEGIN, CANCEL, ANSWER */
    struct fl_round_key key; /* DROP */
};

/* BEGIN; the upload mask follows, or the client's own payload. */
struct fl__ranks_begin {
    uint32_t job;
    bool has_own;
    bool shares, has_malicious; /* as fl_pool_collusion */
    struct fl_task task;
    double rate;
    uint64_t n_units; /* 0: all */
};

/* OPEN */
struct fl__ranks_open {
    uint64_t seed, dir_len;
};

/* A payload; its bytes follow. */
struct fl__ranks_item {
    char name[FL_NAME_MAX];
    uint64_t len;
};

/* ANSWER; the answer of the job, the data summary, sections and bytes of an upload follow. The
   upload of a training is the shared update of an honest client. */
struct fl__ranks_answer {
    uint64_t n_answer, n_summary, n_parts, n_upload;
};

/* The unread rest of a message. */
struct fl__ranks_rest {
    const uint8_t *at;
    size_t left;
};

/* Initialises `out`, which the functions below free. */
struct fl_writer fl__ranks_start_message(struct fl_buf *out, const struct fl__ranks_head *head);
/* The error of the writer, if there is one. */
FL_MUST_CHECK int fl__ranks_finish_message(struct fl_writer *w, struct fl_blob **ret);
/* Finish the message and send it. */
FL_MUST_CHECK int fl__ranks_send(const struct fl_ranks *ranks, unsigned to, struct fl_writer *w,
                                 struct fl_err *err);
/* Copy the next `n` bytes; FL_EFORMAT: fewer are left. */
FL_MUST_CHECK int fl__ranks_read(struct fl__ranks_rest *rest, void *ret, size_t n);
/* The same in place, without a copy. */
FL_MUST_CHECK int fl__ranks_skip(struct fl__ranks_rest *rest, uint64_t n, const uint8_t **ret);
void fl__ranks_put_item(struct fl_writer *w, const struct fl_model_cache_item *item);
/* The item is owned. */
FL_MUST_CHECK int fl__ranks_read_item(struct fl__ranks_rest *rest, struct fl_model_cache_item *ret);
FL_MUST_CHECK int fl__ranks_read_blob(struct fl__ranks_rest *rest, uint64_t n,
                                      struct fl_blob **ret);

#endif
