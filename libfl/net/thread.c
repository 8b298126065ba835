#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/net/internal.h"

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
