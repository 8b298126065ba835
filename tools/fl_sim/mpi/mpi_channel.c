/* Messages between the processes of a shared worker pool (engine/ranks.h), as MPI messages. Main
   thread only. */
#include <limits.h>
#include <stdlib.h>

#include "tools/fl_sim/mpi/mpi_impl.h"

#define TAG_RANKS 1

/* A message being sent. */
struct sent_message {
    struct sent_message *next;
    struct fl_blob *blob;
    MPI_Request request;
};

struct mpi__channel {
    struct fl_ranks ranks;
    MPI_Comm comm;
    struct sent_message *first, **end;
};

static int mpi_channel_send(void *ctx, unsigned to, struct fl_blob *message, struct fl_err *err)
{
    struct mpi__channel *c = ctx;
    struct sent_message *l;

    if (fl_blob_len(message) > INT_MAX) {
        return fl_err_set(err, FL_ELIMIT,
                          "a message of %zu bytes to another process is too large for MPI",
                          fl_blob_len(message));
    }
    l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return FL_ENOMEM;
    }
    l->blob = fl_blob_ref(message);
    /* Synchronous send: a completed request was received. */
    (void)MPI_Issend(fl_blob_data(message), (int)fl_blob_len(message), MPI_BYTE, (int)to, TAG_RANKS,
                     c->comm, &l->request);
    *c->end = l;
    c->end = &l->next;
    return FL_OK;
}

/* False: none has arrived. */
static bool mpi_probe(struct mpi__channel *c, MPI_Message *ret, MPI_Status *ret_status)
{
    struct sent_message **at;
    int there = 0;

    if (c->first != NULL) {
        /* Messages that have arrived, in any order. */
        at = &c->first;
        while (*at != NULL) {
            struct sent_message *l = *at;
            int done = 0;

            (void)MPI_Test(&l->request, &done, MPI_STATUS_IGNORE);
            if (done) {
                *at = l->next;
                fl_blob_unref(l->blob);
                free(l);
            } else {
                at = &l->next;
            }
        }
        c->end = at;
    }
    (void)MPI_Improbe(MPI_ANY_SOURCE, TAG_RANKS, c->comm, &there, ret, ret_status);
    return there != 0;
}

static int mpi_channel_receive(void *ctx, bool wait, struct fl_buf *ret, struct fl_err *err)
{
    struct mpi__channel *c = ctx;
    MPI_Message message;
    MPI_Status status;
    MPI_Request request;
    unsigned naps = 0;
    int n = 0;

    while (!mpi_probe(c, &message, &status)) {
        if (!wait) {
            return FL_ENOENT;
        }
        mpi__nap(&naps);
    }
    (void)MPI_Get_count(&status, MPI_BYTE, &n);
    fl_buf_init(ret, SIZE_MAX / 2);
    if (fl_buf_reserve(ret, (size_t)n) != FL_OK) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for a message of %d bytes", n);
    }
    (void)MPI_Imrecv(ret->data, n, MPI_BYTE, &message, &request);
    mpi__wait(&request);
    ret->len = (size_t)n;
    return FL_OK;
}

int mpi__channel_open(MPI_Comm comm, struct mpi__channel **ret)
{
    struct mpi__channel *c = calloc(1, sizeof(*c));
    int n;
    int me;

    if (c == NULL) {
        return FL_ENOMEM;
    }
    (void)MPI_Comm_size(comm, &n);
    (void)MPI_Comm_rank(comm, &me);
    c->ranks =
        (struct fl_ranks){(unsigned)n, (unsigned)me, mpi_channel_send, mpi_channel_receive, c};
    c->comm = comm;
    c->end = &c->first;
    *ret = c;
    return FL_OK;
}

const struct fl_ranks *mpi__channel_ranks(const struct mpi__channel *channel)
{
    return &channel->ranks;
}

/* All processes have sent their messages when all have reached the barrier with no request
   pending. */
void mpi__channel_close(struct mpi__channel *c)
{
    MPI_Request all = MPI_REQUEST_NULL;
    bool begun = false;
    unsigned naps = 0;
    int over = 0;

    while (!over) {
        struct fl_buf forgotten;

        if (mpi_channel_receive(c, /* wait= */ false, &forgotten, NULL) == FL_OK) {
            fl_buf_done(&forgotten);
            continue;
        }
        if (!begun && c->first == NULL) {
            (void)MPI_Ibarrier(c->comm, &all);
            begun = true;
        }
        if (begun) {
            (void)MPI_Test(&all, &over, MPI_STATUS_IGNORE);
        }
        if (!over) {
            mpi__nap(&naps);
        }
    }
    free(c);
}
