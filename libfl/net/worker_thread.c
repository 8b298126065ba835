/*
 * Threads, and worker threads that run jobs in order and post the results to loops. Any thread may
 * create them; the jobs run on the worker thread, `done` on the loop. There is no pool: one object
 * is one thread.
 */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/net/net_impl.h"

struct fl_thread {
    pthread_t id;
    fl_loop_cb fn;
    void *arg;
};

int fl__thread_start(pthread_t *ret, const char *name, bool detached, void *(*fn)(void *),
                     void *arg)
{
    char short_name[16] = {0}; /* Linux keeps this much of a thread's name. */
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

static void *fl_thread_main(void *arg)
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
    rv = fl__thread_start(&thread->id, name, false, fl_thread_main, thread);
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

/* --- worker threads --- */

/* A job is also the post that notifies its loop: once it was accepted, nothing can fail. */
struct job {
    struct fl__post post;
    struct job *next;
    struct fl_loop *loop; /* NULL: no notification. */
    fl_loop_cb work;
    uint64_t queued_ms;
};

struct fl_worker_thread {
    pthread_t thread;
    pthread_mutex_t lock; /* Guards all below. */
    pthread_cond_t more;
    struct job *head;
    struct job **tail;
    unsigned pending;
    bool running; /* a job runs, since started_ms */
    uint64_t started_ms;
    bool ending;
    atomic_uint_fast64_t disk_since_ms; /* not guarded: of fl_fs_watch() */
};

/* The next job, or NULL when there is none and no more will follow. */
static struct job *take_job(struct fl_worker_thread *thread)
{
    struct job *job;

    (void)pthread_mutex_lock(&thread->lock);
    while (thread->head == NULL && !thread->ending) {
        (void)pthread_cond_wait(&thread->more, &thread->lock);
    }
    job = thread->head;
    if (job != NULL) {
        thread->head = job->next;
        if (thread->head == NULL) {
            thread->tail = &thread->head;
        }
        thread->running = true;
        thread->started_ms = fl_clock_ms();
    }
    (void)pthread_mutex_unlock(&thread->lock);
    return job;
}

static void *worker_thread_main(void *arg)
{
    struct fl_worker_thread *thread = arg;
    struct job *job;

    fl_fs_watch(&thread->disk_since_ms);
    while ((job = take_job(thread)) != NULL) {
        job->work(job->post.arg);
        (void)pthread_mutex_lock(&thread->lock);
        thread->pending--;
        thread->running = false;
        (void)pthread_mutex_unlock(&thread->lock);
        if (job->loop != NULL) {
            fl__loop_post(job->loop, &job->post);
        } else {
            free(job);
        }
    }
    return NULL;
}

int fl_worker_thread_create(const char *name, struct fl_worker_thread **ret, struct fl_err *err)
{
    struct fl_worker_thread *thread = calloc(1, sizeof(*thread));
    int rv;

    if (thread == NULL) {
        return fl_err_set(err, FL_ENOMEM, "worker thread %s: out of memory", name);
    }
    thread->tail = &thread->head;
    atomic_init(&thread->disk_since_ms, 0);
    (void)pthread_mutex_init(&thread->lock, NULL);
    (void)pthread_cond_init(&thread->more, NULL);
    rv = fl__thread_start(&thread->thread, name, false, worker_thread_main, thread);
    if (rv != FL_OK) {
        (void)pthread_cond_destroy(&thread->more);
        (void)pthread_mutex_destroy(&thread->lock);
        free(thread);
        return fl_err_set(err, rv, "worker thread %s: %s", name, fl_strerror(rv));
    }
    *ret = thread;
    return FL_OK;
}

int fl_worker_thread_submit(struct fl_worker_thread *thread, fl_loop_cb work, struct fl_loop *loop,
                            fl_loop_cb done, void *arg)
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
    job->queued_ms = fl_clock_ms();
    (void)pthread_mutex_lock(&thread->lock);
    FL_REQUIRE(!thread->ending);
    *thread->tail = job;
    thread->tail = &job->next;
    thread->pending++;
    (void)pthread_cond_signal(&thread->more);
    (void)pthread_mutex_unlock(&thread->lock);
    return FL_OK;
}

unsigned fl_worker_thread_pending(struct fl_worker_thread *thread)
{
    unsigned pending;

    if (thread == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&thread->lock);
    pending = thread->pending;
    (void)pthread_mutex_unlock(&thread->lock);
    return pending;
}

uint64_t fl_worker_thread_busy_ms(struct fl_worker_thread *thread)
{
    uint64_t age;

    if (thread == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&thread->lock);
    age = thread->running ? fl_clock_ms() - thread->started_ms : 0;
    (void)pthread_mutex_unlock(&thread->lock);
    return age;
}

uint64_t fl_worker_thread_waiting_ms(struct fl_worker_thread *thread)
{
    uint64_t age = 0;

    if (thread == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&thread->lock);
    if (thread->head != NULL) {
        age = fl_clock_ms() - thread->head->queued_ms;
        age = age > 0 ? age : 1;
    }
    (void)pthread_mutex_unlock(&thread->lock);
    return age;
}

uint64_t fl_worker_thread_disk_ms(struct fl_worker_thread *thread)
{
    uint64_t since = thread != NULL ? atomic_load(&thread->disk_since_ms) : 0;
    uint64_t now = fl_clock_ms();

    return since != 0 && now > since ? now - since : 0;
}

void fl_worker_thread_free(struct fl_worker_thread *thread)
{
    if (thread == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&thread->lock);
    thread->ending = true;
    (void)pthread_cond_signal(&thread->more);
    (void)pthread_mutex_unlock(&thread->lock);
    FL_REQUIRE(pthread_join(thread->thread, NULL) == 0);
    (void)pthread_cond_destroy(&thread->more);
    (void)pthread_mutex_destroy(&thread->lock);
    free(thread);
}
