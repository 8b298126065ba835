/*
 * Distributes trials to processes. While there are at least as many trials as processes, each
 * process runs whole trials, which rank 0 hands out; for the remaining trials, each trial gets a
 * group of processes that share its clients' work. On rank 0 a thread runs trials while the main
 * thread answers the other ranks; MPI is called by the main thread only.
 */
#include <pthread.h>
#include <stdlib.h>

#include "libfl/base/clock.h"
#include "tools/fl_sim/mpi/mpi_impl.h"

enum { TAG_ASK = 2, TAG_GIVEN };

struct share {
    const struct run *run;
    const uint64_t *trials;
    size_t n;          /* number of trials that are handed out */
    uint64_t *wall_ns; /* times of trials that were finished here */
    pthread_mutex_t lock;
    size_t next; /* on the leader, under the lock, as the next */
    bool busy;
};

/* Runs one trial in this process. */
static void trials_run_one(const struct share *s, size_t i, const struct fl_ranks *ranks)
{
    struct fl_err err = {0};
    uint64_t began_ns = fl_clock_ns();
    int rv = trials_one(s->run, (size_t)s->trials[i], ranks, &err);

    if (rv != FL_OK && rv != FL_ECANCELED) {
        mpi__ranks->fail(rv, &err);
    }
    if (rv == FL_ECANCELED) {
        atomic_store(&run_interrupted, true);
    } else if (mpi__ranks->me != 0) {
        s->wall_ns[i] = fl_clock_ns() - began_ns;
    }
}

/* --- whole trials --- */

/* The next unassigned trial; `n`: there is none, or the run was interrupted. */
static uint64_t trials_hand_out(struct share *s)
{
    uint64_t i;

    (void)pthread_mutex_lock(&s->lock);
    i = s->next < s->n && !atomic_load(&run_interrupted) ? s->next++ : s->n;
    (void)pthread_mutex_unlock(&s->lock);
    return i;
}

/* The leader's trials run beside its main thread, which answers the other ranks. */
static void *trials_leader_thread(void *arg)
{
    struct share *s = arg;
    uint64_t i;

    while ((i = trials_hand_out(s)) < s->n) {
        trials_run_one(s, (size_t)i, NULL);
    }
    (void)pthread_mutex_lock(&s->lock);
    s->busy = false;
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool trials_leader_busy(struct share *s)
{
    bool busy;

    (void)pthread_mutex_lock(&s->lock);
    busy = s->busy;
    (void)pthread_mutex_unlock(&s->lock);
    return busy;
}

/* Answers a rank that asks for a trial; false: none asked. *ret_stops: it will not ask again. */
static bool trials_answer_rank(struct share *s, bool *ret_stops)
{
    MPI_Request request;
    MPI_Status status;
    uint64_t wants;
    uint64_t i;
    int there = 0;

    *ret_stops = false;
    (void)MPI_Iprobe(MPI_ANY_SOURCE, TAG_ASK, MPI_COMM_WORLD, &there, &status);
    if (!there) {
        return false;
    }
    (void)MPI_Recv(&wants, 1, MPI_UINT64_T, status.MPI_SOURCE, TAG_ASK, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    i = wants != 0 ? trials_hand_out(s) : s->n;
    *ret_stops = i == s->n;
    (void)MPI_Isend(&i, 1, MPI_UINT64_T, status.MPI_SOURCE, TAG_GIVEN, MPI_COMM_WORLD, &request);
    mpi__wait(&request);
    return true;
}

static uint64_t trials_ask_leader(void)
{
    uint64_t wants = !atomic_load(&run_interrupted);
    uint64_t i = 0;
    MPI_Request requests[2];

    (void)MPI_Irecv(&i, 1, MPI_UINT64_T, 0, TAG_GIVEN, MPI_COMM_WORLD, &requests[0]);
    (void)MPI_Isend(&wants, 1, MPI_UINT64_T, 0, TAG_ASK, MPI_COMM_WORLD, &requests[1]);
    mpi__wait(&requests[1]);
    mpi__wait(&requests[0]);
    return i;
}

static void trials_run_whole(struct share *s)
{
    struct fl_err err = {0};
    pthread_t thread;
    unsigned others;
    unsigned naps;
    bool stops;
    uint64_t i;

    if (s->n == 0) {
        return;
    }
    if (mpi__ranks->me == 0) {
        others = mpi__ranks->n - 1;
        naps = 0;
        s->busy = true;
        if (pthread_create(&thread, NULL, trials_leader_thread, s) != 0) {
            mpi__ranks->fail(fl_err_set(&err, FL_ELIMIT, "cannot start a thread"), &err);
        }
        while (others > 0 || trials_leader_busy(s)) {
            if (trials_answer_rank(s, &stops)) {
                others -= stops;
                naps = 0;
            } else {
                mpi__nap(&naps);
            }
        }
        (void)pthread_join(thread, NULL);
        return;
    }
    while ((i = trials_ask_leader()) < s->n) {
        trials_run_one(s, (size_t)i, NULL);
    }
}

/* --- trials of groups of ranks --- */

static void trials_run_in_group(const struct share *s, size_t i, MPI_Comm group)
{
    size_t points = fl_experiment_points(s->run->experiment);
    struct mpi__channel *channel = NULL;
    const struct fl_ranks *ranks;
    struct fl_err err = {0};
    int rv = mpi__channel_open(group, &channel);

    if (rv != FL_OK) {
        mpi__ranks->fail(rv, &err);
    }
    ranks = mpi__channel_ranks(channel);
    if (ranks->me == 0) {
        trials_run_one(s, i, ranks->n > 1 ? ranks : NULL);
        rv = fl_ranks_end(ranks, &err);
    } else {
        rv = trial_serve(s->run, (size_t)s->trials[i] % points, (size_t)s->trials[i] / points,
                         ranks, &err);
    }
    if (rv != FL_OK) {
        mpi__ranks->fail(rv, &err);
    }
    mpi__channel_close(channel);
}

/* Was any trial interrupted? Then all ranks stop. */
static bool trials_interrupted(void)
{
    int mine = atomic_load(&run_interrupted);
    int any = 0;
    MPI_Request request;

    (void)MPI_Iallreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    mpi__wait(&request);
    return any != 0;
}

int mpi__run(const struct run *run, const uint64_t *trials, size_t n, uint64_t *wall_ns)
{
    size_t rest = n % mpi__ranks->n;
    struct share s = {.run = run,
                      .trials = trials,
                      .n = n - rest,
                      .wall_ns = wall_ns,
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    bool enough;

    trials_run_whole(&s);
    enough = trials_interrupted();
    if (!enough && rest > 0) {
        /* The last `rest` trials, fewer than there are processes. */
        int color = (int)(mpi__ranks->me % rest);
        MPI_Comm group;

        (void)MPI_Comm_split(MPI_COMM_WORLD, color, (int)mpi__ranks->me, &group);
        trials_run_in_group(&s, s.n + (size_t)color, group);
        (void)MPI_Comm_free(&group);
        enough = trials_interrupted();
    }
    (void)MPI_Reduce(mpi__ranks->me == 0 ? MPI_IN_PLACE : wall_ns, wall_ns, (int)n, MPI_UINT64_T,
                     MPI_MAX, 0, MPI_COMM_WORLD);
    return enough ? FL_ECANCELED : FL_OK;
}
