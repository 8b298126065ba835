/* Threads, and lanes: threads that run jobs in order. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/net/net_impl.h"

struct fl_thread {
    pthread_t id;
    fl_loop_cb fn;
    void *arg;
};

int fl__thread_start(pthread_t *ret, const char *name, bool detached, void *(*fn)(void *),
                     void *arg)
{
    char short_name[16] = {0}; /* What Linux keeps of a thread's name. */
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    int rv;

    rv = pthread_attr_init(&attr);
    if (rv != 0) {
        return fl_err_from_errno(rv);
    }
    if (detached) {
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rv = pthread_create(ret, &attr, fn, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (rv != 0) {
        return fl_err_from_errno(rv);
    }
    if (!detached) {
        (void)memcpy(short_name, name, strnlen(name, sizeof(short_name) - 1));
        (void)pthread_setname_np(*ret, short_name);
    }
    return FL_OK;
}

static void *thread_main(void *arg)
{
    struct fl_thread *thread = arg;

    thread->fn(thread->arg);
    return NULL;
}

int fl_thread_create(const char *name, fl_loop_cb fn, void *arg, struct fl_thread **ret,
                     struct fl_err *err)
{
    struct fl_thread *thread = calloc(1, sizeof(*thread));
    int rv;

    if (thread == NULL) {
        return fl_err_set(err, FL_ENOMEM, "thread %s: out of memory", name);
    }
    thread->fn = fn;
    thread->arg = arg;
    rv = fl__thread_start(&thread->id, name, false, thread_main, thread);
    if (rv != FL_OK) {
        free(thread);
        return fl_err_set(err, rv, "thread %s: %s", name, fl_strerror(rv));
    }
    *ret = thread;
    return FL_OK;
}

void fl_thread_join(struct fl_thread *thread)
{
    if (thread == NULL) {
        return;
    }
    FL_REQUIRE(pthread_join(thread->id, NULL) == 0);
    free(thread);
}

/* --- lanes --- */

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
    bool running; /* a job, since started_ms */
    uint64_t started_ms;
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
        lane->running = true;
        lane->started_ms = fl_clock_ms();
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
        lane->running = false;
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

uint64_t fl_lane_busy_ms(struct fl_lane *lane)
{
    uint64_t age;

    if (lane == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&lane->lock);
    age = lane->running ? fl_clock_ms() - lane->started_ms : 0;
    (void)pthread_mutex_unlock(&lane->lock);
    return age;
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
