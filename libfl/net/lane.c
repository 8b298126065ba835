#include <stdlib.h>

#include "libfl/net/internal.h"

/* A job is also the post that tells its loop: nothing is left to fail once it was accepted. */
struct job {
    struct fl__post post;
    struct job *next;
    struct fl_loop *loop; /* NULL: nobody is told. */
    fl_loop_cb work;
};

struct fl_lane {
    pthread_t thread;
    pthread_mutex_t lock; /* Guards all below. */
    pthread_cond_t more;
    struct job *head;
    struct job **tail;
    unsigned pending;
    bool ending;
};

/* The next job, or NULL when there is none and none will come. */
static struct job *take_job(struct fl_lane *lane)
{
    struct job *job;

    (void)pthread_mutex_lock(&lane->lock);
    while (lane->head == NULL && !lane->ending) {
        (void)pthread_cond_wait(&lane->more, &lane->lock);
    }
    job = lane->head;
    if (job != NULL) {
        lane->head = job->next;
        if (lane->head == NULL) {
            lane->tail = &lane->head;
        }
    }
    (void)pthread_mutex_unlock(&lane->lock);
    return job;
}

static void *lane_main(void *arg)
{
    struct fl_lane *lane = arg;
    struct job *job;

    while ((job = take_job(lane)) != NULL) {
        job->work(job->post.arg);
        (void)pthread_mutex_lock(&lane->lock);
        lane->pending--;
        (void)pthread_mutex_unlock(&lane->lock);
        if (job->loop != NULL) {
            fl__loop_post(job->loop, &job->post);
        } else {
            free(job);
        }
    }
    return NULL;
}

int fl_lane_create(const char *name, struct fl_lane **ret, struct fl_err *err)
{
    struct fl_lane *lane = calloc(1, sizeof(*lane));
    int rv;

    if (lane == NULL) {
        return fl_err_set(err, FL_ENOMEM, "lane %s: out of memory", name);
    }
    lane->tail = &lane->head;
    (void)pthread_mutex_init(&lane->lock, NULL);
    (void)pthread_cond_init(&lane->more, NULL);
    rv = fl__thread_start(&lane->thread, name, false, lane_main, lane);
    if (rv != FL_OK) {
        (void)pthread_cond_destroy(&lane->more);
        (void)pthread_mutex_destroy(&lane->lock);
        free(lane);
        return fl_err_set(err, rv, "lane %s: %s", name, fl_strerror(rv));
    }
    *ret = lane;
    return FL_OK;
}

int fl_lane_submit(struct fl_lane *lane, fl_loop_cb work, struct fl_loop *loop, fl_loop_cb done,
                   void *arg)
{
    struct job *job;

    FL_REQUIRE(loop == NULL || done != NULL);
    job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return FL_ENOMEM;
    }
    job->post.fn = done;
    job->post.arg = arg;
    job->work = work;
    job->loop = loop;
    (void)pthread_mutex_lock(&lane->lock);
    FL_REQUIRE(!lane->ending);
    *lane->tail = job;
    lane->tail = &job->next;
    lane->pending++;
    (void)pthread_cond_signal(&lane->more);
    (void)pthread_mutex_unlock(&lane->lock);
    return FL_OK;
}

unsigned fl_lane_pending(struct fl_lane *lane)
{
    unsigned pending;

    (void)pthread_mutex_lock(&lane->lock);
    pending = lane->pending;
    (void)pthread_mutex_unlock(&lane->lock);
    return pending;
}

void fl_lane_free(struct fl_lane *lane)
{
    if (lane == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&lane->lock);
    lane->ending = true;
    (void)pthread_cond_signal(&lane->more);
    (void)pthread_mutex_unlock(&lane->lock);
    FL_REQUIRE(pthread_join(lane->thread, NULL) == 0);
    (void)pthread_cond_destroy(&lane->more);
    (void)pthread_mutex_destroy(&lane->lock);
    free(lane);
}
