/* Runs all trials of an experiment, on threads of this process or on several processes. */
#include <pthread.h>
#include <stdlib.h>

#include "tools/fl_sim/mpi_ranks.h"
#include "tools/fl_sim/run.h"

static size_t trials_count(const struct run *run)
{
    return fl_experiment_points(run->experiment) * fl_experiment_trials(run->experiment);
}

int trials_one(const struct run *run, size_t i, const struct fl_ranks *ranks, struct fl_err *err)
{
    size_t points = fl_experiment_points(run->experiment);
    struct fl_err why = {0};
    int rv = trial_run(run, i % points, i / points, ranks, &why);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s, seed %llu: %s",
                          fl_experiment_label(run->experiment, i % points),
                          (unsigned long long)fl_experiment_seed(run->experiment, i / points),
                          fl_err_text(&why, rv));
    }
    return FL_OK;
}

/* --- threads --- */

struct queue {
    struct run *run;
    pthread_mutex_t lock;
    size_t next, n;
    int code;
    struct fl_err err;
};

static void *trials_thread(void *arg)
{
    struct queue *q = arg;

    for (;;) {
        struct fl_err err = {0};
        size_t i;
        int rv;

        (void)pthread_mutex_lock(&q->lock);
        i = q->code == FL_OK && !atomic_load(&run_interrupted) ? q->next++ : q->n;
        (void)pthread_mutex_unlock(&q->lock);
        if (i >= q->n) {
            return NULL;
        }
        rv = trials_one(q->run, i, NULL, &err);
        if (rv != FL_OK) {
            (void)pthread_mutex_lock(&q->lock);
            if (q->code == FL_OK) {
                q->code = rv;
                q->err = err;
            }
            (void)pthread_mutex_unlock(&q->lock);
        }
    }
}

int trials_run(struct run *run, unsigned at_once, struct fl_err *err)
{
    struct queue q = {.run = run, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[JOBS_MAX];
    unsigned n = 0;

    q.n = trials_count(run);
    while (n + 1 < at_once && pthread_create(&threads[n], NULL, trials_thread, &q) == 0) {
        n++;
    }
    (void)trials_thread(&q);
    while (n > 0) {
        (void)pthread_join(threads[--n], NULL);
    }
    if (q.code != FL_OK) {
        if (err != NULL) {
            *err = q.err;
        }
        return q.code;
    }
    return atomic_load(&run_interrupted) ? FL_ECANCELED : FL_OK;
}

/* --- processes --- */

/* The leader checks the folder for finished trials. */
static int trials_find_unfinished(const struct run *run, uint64_t *trials, uint64_t *ret_n,
                                  struct fl_err *err)
{
    size_t points = fl_experiment_points(run->experiment);
    size_t n = trials_count(run);
    size_t i;
    int rv;

    *ret_n = 0;
    for (i = 0; i < n; i++) {
        if (!fl_results_finished(run->results, fl_experiment_slug(run->experiment, i % points),
                                 fl_experiment_seed(run->experiment, i / points)))
        {
            trials[(*ret_n)++] = i;
            continue;
        }
        rv = trials_one(run, i, NULL, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int trials_note_finished(const struct run *run, const uint64_t *trials, size_t n,
                                const uint64_t *wall_ns, struct fl_err *err)
{
    size_t points = fl_experiment_points(run->experiment);
    size_t i;
    int rv;

    for (i = 0; i < n; i++) {
        if (wall_ns[i] > 0) {
            rv = fl_results_note_trial(
                run->results, fl_experiment_slug(run->experiment, (size_t)(trials[i] % points)),
                fl_experiment_seed(run->experiment, (size_t)(trials[i] / points)), wall_ns[i], err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

int trials_spread(struct run *run, const struct ranks *ranks, struct fl_err *err)
{
    size_t most = trials_count(run);
    uint64_t *trials = calloc(most + 1, sizeof(*trials));
    uint64_t *wall_ns = calloc(most + 1, sizeof(*wall_ns));
    uint64_t n = 0;
    int late;
    int rv;

    if (trials == NULL || wall_ns == NULL) {
        ranks->fail(FL_ENOMEM, err);
    }
    if (ranks->me == 0) {
        rv = trials_find_unfinished(run, trials, &n, err);
        if (rv != FL_OK) {
            ranks->fail(rv, err);
        }
    }
    ranks->share(&n, sizeof(n));
    ranks->share(trials, most * sizeof(*trials));
    rv = ranks->run(run, trials, (size_t)n, wall_ns);
    if (ranks->me == 0) {
        late = trials_note_finished(run, trials, (size_t)n, wall_ns, err);
        if (rv == FL_OK) {
            rv = late;
        }
    }
    free(trials);
    free(wall_ns);
    return rv;
}
