#include "tools/fl_sim/engine/crew.h"

#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/engine/crew_impl.h"

void fl_job_answer_done(struct fl_job_answer *answer)
{
    free(answer->divergence);
    answer->divergence = NULL;
    answer->n_units = 0;
}

#define UNIT_FLOATS (sizeof(struct fl_unit_norm) / sizeof(float))

void fl_job_answer_coded(struct fl_job_answer *answer, const struct fl_norms *norms, size_t n_units)
{
    answer->n_units = n_units * UNIT_FLOATS;
    answer->divergence = (float *)(void *)norms->unit;
    (void)memcpy(answer->rms, norms->rms, sizeof(answer->rms));
}

struct fl_norms fl_job_answer_norms(const struct fl_job_answer *answer, size_t n_units)
{
    struct fl_norms norms = {.unit = NULL};

    if (answer->n_units == n_units * UNIT_FLOATS) {
        norms.unit = (struct fl_unit_norm *)(void *)answer->divergence;
    }
    (void)memcpy(norms.rms, answer->rms, sizeof(norms.rms));
    return norms;
}

/* --- the queue; the lock is held --- */

static void enqueue(struct fl_crew *crew, struct fl_job *job)
{
    job->previous = crew->last;
    *(crew->last != NULL ? &crew->last->next : &crew->first) = job;
    crew->last = job;
}

static void dequeue(struct fl_crew *crew, struct fl_job *job)
{
    *(job->previous != NULL ? &job->previous->next : &crew->first) = job->next;
    *(job->next != NULL ? &job->next->previous : &crew->last) = job->previous;
    job->next = job->previous = NULL;
}

static void run(struct fl_crew *crew, struct fl_job *job)
{
    dequeue(crew, job);
    job->state = FL__JOB_RUNNING;
    (void)pthread_mutex_unlock(&crew->lock);
    fl__crew_run(job);
    (void)pthread_mutex_lock(&crew->lock);
    job->state = FL__JOB_DONE;
    (void)pthread_cond_broadcast(&crew->done);
}

bool fl__crew_step(struct fl_crew *crew)
{
    bool any;

    (void)pthread_mutex_lock(&crew->lock);
    any = crew->first != NULL;
    if (any) {
        run(crew, crew->first);
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return any;
}

static void *work(void *arg)
{
    struct fl_crew *crew = arg;

    (void)pthread_mutex_lock(&crew->lock);
    while (!crew->ending) {
        if (crew->first != NULL) {
            run(crew, crew->first);
        } else {
            (void)pthread_cond_wait(&crew->more, &crew->lock);
        }
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* --- a piece of work --- */

static struct fl_job *begin(struct fl_crew *crew, enum fl_job_kind kind, uint32_t client)
{
    struct fl_job *job = calloc(1, sizeof(*job));

    if (job != NULL) {
        job->crew = crew;
        job->kind = kind;
        job->client = client;
        job->process = crew->team != NULL ? client % crew->conf.team->n : 0;
        atomic_init(&job->cancel, false);
        fl_buf_init(&job->bytes, SIZE_MAX / 2);
    }
    return job;
}

static struct fl_job *submit(struct fl_job *job)
{
    struct fl_crew *crew = job->crew;

    if (crew->conf.dry) {
        fl__crew_dry(job);
        job->state = FL__JOB_DONE;
        return job;
    }
    if (job->process != 0) {
        fl__team_begin(job);
        return job;
    }
    (void)pthread_mutex_lock(&crew->lock);
    enqueue(crew, job);
    (void)pthread_cond_signal(&crew->more);
    (void)pthread_mutex_unlock(&crew->lock);
    return job;
}

struct fl_job *fl_crew_offer(struct fl_crew *crew, uint32_t client)
{
    struct fl_job *job = begin(crew, FL_JOB_OFFER, client);

    return job != NULL ? submit(job) : NULL;
}

struct fl_job *fl_crew_train(struct fl_crew *crew, uint32_t client, const struct fl_task *task,
                             struct fl_shelf *shelf)
{
    struct fl_job *job = begin(crew, FL_JOB_TRAIN, client);

    if (job == NULL) {
        return NULL;
    }
    job->task = *task;
    job->shelf = fl_shelf_ref(shelf);
    return submit(job);
}

struct fl_job *fl_crew_code(struct fl_crew *crew, uint32_t client, struct fl_round_key key,
                            const uint8_t *units)
{
    size_t n = fl_layout_units(crew->conf.setup->layout);
    struct fl_job *job = begin(crew, FL_JOB_CODE, client);

    if (job == NULL) {
        return NULL;
    }
    job->task.key = key;
    if (units != NULL) {
        job->units = malloc(n + 1);
        if (job->units == NULL) {
            free(job);
            return NULL;
        }
        (void)memcpy(job->units, units, n);
    }
    return submit(job);
}

struct fl_job *fl_crew_evaluate(struct fl_crew *crew, uint32_t client, const struct fl_task *task,
                                struct fl_blob *model, double rate)
{
    struct fl_job *job = begin(crew, FL_JOB_EVALUATE, client);

    if (job == NULL) {
        return NULL;
    }
    job->task = *task;
    job->model = fl_blob_ref(model);
    job->rate = rate;
    return submit(job);
}

/* Whoever waits does it himself when nobody has begun it. */
static void finish(struct fl_job *job)
{
    struct fl_crew *crew = job->crew;

    if (crew->conf.dry) {
        return;
    }
    if (job->process != 0) {
        fl__team_wait(job);
        return;
    }
    (void)pthread_mutex_lock(&crew->lock);
    if (job->state == FL__JOB_QUEUED) {
        run(crew, job);
    }
    while (job->state != FL__JOB_DONE) {
        if (crew->first != NULL) { /* What somebody will wait for next. */
            run(crew, crew->first);
        } else {
            (void)pthread_cond_wait(&crew->done, &crew->lock);
        }
    }
    (void)pthread_mutex_unlock(&crew->lock);
}

void fl_job_take(struct fl_job *job, struct fl_job_answer *ret)
{
    finish(job);
    *ret = job->answer;
    job->answer = (struct fl_job_answer){.code = FL_OK};
}

const struct fl_buf *fl_job_bytes(const struct fl_job *job)
{
    return &job->bytes;
}

/* It is nobody's work any more. */
static void stop(struct fl_job *job)
{
    struct fl_crew *crew = job->crew;
    bool queued;

    if (job->process != 0) {
        fl__team_cancel(job);
        return;
    }
    atomic_store(&job->cancel, true);
    (void)pthread_mutex_lock(&crew->lock);
    queued = job->state == FL__JOB_QUEUED;
    if (queued) {
        dequeue(crew, job);
    }
    (void)pthread_mutex_unlock(&crew->lock);
    if (!queued) {
        finish(job);
    }
}

void fl_job_free(struct fl_job *job)
{
    if (job == NULL) {
        return;
    }
    stop(job);
    fl_shelf_unref(job->shelf);
    fl_blob_unref(job->model);
    fl_buf_done(&job->bytes);
    fl_job_answer_done(&job->answer);
    fl_blob_unref(job->upload);
    free(job->parts);
    free(job->units);
    free(job);
}

void fl_crew_drop(struct fl_crew *crew, uint32_t client, struct fl_round_key key)
{
    struct fl_member *member = crew->members[client];

    if (crew->team != NULL && client % crew->conf.team->n != 0) {
        fl__team_drop(crew, client, key);
    } else if (member != NULL) {
        fl_held_drop(&member->held, key);
        if (member->held.result == NULL) {
            fl__crew_close(crew, client);
        }
    }
}

/* --- life --- */

static int start_threads(struct fl_crew *crew, struct fl_err *err)
{
    unsigned more = crew->conf.threads > 1 ? crew->conf.threads - 1 : 0;

    crew->threads = calloc(more + 1, sizeof(*crew->threads));
    if (crew->threads == NULL) {
        return FL_ENOMEM;
    }
    while (crew->n_threads < more) {
        if (pthread_create(&crew->threads[crew->n_threads], NULL, work, crew) != 0) {
            return fl_err_set(err, FL_ELIMIT, "cannot start thread %u of %u for the clients' work",
                              crew->n_threads + 2, more + 1);
        }
        crew->n_threads++;
    }
    return FL_OK;
}

int fl_crew_create(const struct fl_crew_conf *conf, struct fl_crew **ret, struct fl_err *err)
{
    struct fl_crew *crew = calloc(1, sizeof(*crew));
    int rv;

    if (crew == NULL) {
        return FL_ENOMEM;
    }
    crew->conf = *conf;
    crew->conf.setup = fl_setup_ref(conf->setup);
    (void)pthread_mutex_init(&crew->lock, NULL);
    (void)pthread_cond_init(&crew->more, NULL);
    (void)pthread_cond_init(&crew->done, NULL);
    crew->members = calloc(conf->people->n + 1, sizeof(struct fl_member *));
    crew->spare = calloc((size_t)conf->threads + 1, sizeof(struct fl_trainer *));
    rv = crew->members != NULL && crew->spare != NULL ? FL_OK : FL_ENOMEM;
    if (rv == FL_OK) {
        rv = conf->dry ? fl__crew_dry_sizes(crew) : start_threads(crew, err);
    }
    if (rv == FL_OK && conf->team != NULL && conf->team->n > 1 && !conf->dry) {
        rv = fl__team_open(crew, err);
    }
    if (rv != FL_OK) {
        fl_crew_free(crew);
        return rv;
    }
    *ret = crew;
    return FL_OK;
}

void fl_crew_free(struct fl_crew *crew)
{
    uint32_t i;

    if (crew == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&crew->lock);
    crew->ending = true;
    (void)pthread_cond_broadcast(&crew->more);
    (void)pthread_mutex_unlock(&crew->lock);
    while (crew->n_threads > 0) {
        (void)pthread_join(crew->threads[--crew->n_threads], NULL);
    }
    fl__team_close(crew);
    for (i = 0; crew->members != NULL && i < crew->conf.people->n; i++) {
        fl__crew_close(crew, i);
    }
    while (crew->n_spare > 0) {
        fl_trainer_free(crew->spare[--crew->n_spare]);
    }
    free(crew->spare);
    free(crew->members);
    free(crew->unit_bytes);
    free(crew->threads);
    fl_setup_unref(crew->conf.setup);
    (void)pthread_cond_destroy(&crew->more);
    (void)pthread_cond_destroy(&crew->done);
    (void)pthread_mutex_destroy(&crew->lock);
    free(crew);
}
