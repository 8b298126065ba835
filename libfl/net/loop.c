/*
 * Event loops, timers and signals over libuv. Each loop runs on one thread; other threads only post
 * functions to it or stop it. Also schedules the connections that have work (fl__conn_due()). Does
 * not read or write sockets itself.
 */
#include <signal.h>
#include <stdlib.h>

#include "libfl/net/net_impl.h"

static bool has_posts(struct fl_loop *loop)
{
    bool some;

    (void)pthread_mutex_lock(&loop->lock);
    some = loop->posts_head != NULL;
    (void)pthread_mutex_unlock(&loop->lock);
    return some;
}

static void on_async(uv_async_t *async)
{
    struct fl_loop *loop = async->data;
    struct fl__post *post;

    /*
     * Functions posted meanwhile wait for the next turn, so that posting cannot starve the sockets.
     */
    (void)pthread_mutex_lock(&loop->lock);
    post = loop->posts_head;
    loop->posts_head = NULL;
    loop->posts_tail = &loop->posts_head;
    (void)pthread_mutex_unlock(&loop->lock);
    while (post != NULL) {
        struct fl__post *next = post->next;

        post->fn(post->arg);
        free(post);
        post = next;
    }
    if (atomic_load(&loop->stop)) {
        uv_stop(&loop->uv);
    }
}

/*
 * The only place that steps connections: no function of ours is on the stack here. Connections that
 * become due again (more to send than one turn allows) wait until all others had their turn.
 */
static void on_prepare(uv_prepare_t *prepare)
{
    struct fl_loop *loop = prepare->data;
    struct fl_conn *last = loop->due_tail;
    struct fl_conn *conn;

    loop->turn++;
    while (last != NULL && (conn = loop->due_head) != NULL) {
        bool done = conn == last;

        fl__conn_not_due(conn);
        fl__conn_step(conn);
        if (done) {
            break;
        }
        if (!last->due) {
            /* The last connection was closed meanwhile: the rest waits for the next turn. */
            break;
        }
    }
    if (loop->due_head == NULL) {
        (void)uv_idle_stop(&loop->idle);
    }
}

/* An active idle handle keeps the poll from blocking. */
static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

int fl_loop_create(struct fl_loop **ret, struct fl_err *err)
{
    struct fl_loop *loop = calloc(1, sizeof(*loop));
    int status;
    struct sigaction action = {.sa_handler = SIG_IGN};

    if (loop == NULL) {
        return fl_err_set(err, FL_ENOMEM, "event loop: out of memory");
    }
    loop->read_buf = malloc(FL__READ_BYTES);
    if (loop->read_buf == NULL) {
        free(loop);
        return fl_err_set(err, FL_ENOMEM, "event loop: out of memory");
    }
    status = uv_loop_init(&loop->uv);
    if (status != 0) {
        goto fail_free;
    }
    status = uv_async_init(&loop->uv, &loop->async, on_async);
    if (status != 0) {
        (void)uv_loop_close(&loop->uv);
        goto fail_free;
    }
    /*
     * libuv writes with sendmsg() and without MSG_NOSIGNAL: writing to a closed connection would
     * kill the process.
     */
    (void)sigaction(SIGPIPE, &action, NULL);
    /*
     * A write beyond the file size limit then fails with EFBIG, as one on a full disk fails with
     * ENOSPC.
     */
    (void)sigaction(SIGXFSZ, &action, NULL);
    (void)pthread_mutex_init(&loop->lock, NULL);
    loop->posts_tail = &loop->posts_head;
    atomic_init(&loop->stop, false);
    loop->async.data = loop;
    /* These two cannot fail: they only link the handle. */
    (void)uv_prepare_init(&loop->uv, &loop->prepare);
    (void)uv_idle_init(&loop->uv, &loop->idle);
    loop->prepare.data = loop;
    (void)uv_prepare_start(&loop->prepare, on_prepare);
    *ret = loop;
    return FL_OK;

fail_free:
    free(loop->read_buf);
    free(loop);
    return fl__uv_fail(err, status, "event loop");
}

void fl_loop_run(struct fl_loop *loop)
{
    if (!atomic_load(&loop->stop)) {
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    }
    atomic_store(&loop->stop, false);
}

void fl_loop_stop(struct fl_loop *loop)
{
    /* Under the lock, as in fl__loop_post(): once `stop` is seen, the loop may end and be freed. */
    (void)pthread_mutex_lock(&loop->lock);
    atomic_store(&loop->stop, true);
    (void)uv_async_send(&loop->async);
    (void)pthread_mutex_unlock(&loop->lock);
}

void fl_loop_free(struct fl_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    /* Neither condition lets the poll block: closing handles and a sent async end it at once. */
    while (loop->n_closing > 0 || has_posts(loop)) {
        (void)uv_run(&loop->uv, UV_RUN_ONCE);
    }
    FL_REQUIRE(loop->n_open == 0);
    uv_close((uv_handle_t *)&loop->async, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->idle, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    FL_REQUIRE(uv_loop_close(&loop->uv) == 0);
    (void)pthread_mutex_destroy(&loop->lock);
    free(loop->read_buf);
    free(loop);
}

void fl__loop_post(struct fl_loop *loop, struct fl__post *post)
{
    post->next = NULL;
    (void)pthread_mutex_lock(&loop->lock);
    *loop->posts_tail = post;
    loop->posts_tail = &post->next;
    /* Under the lock: afterwards the loop may run the post, end and be freed. */
    (void)uv_async_send(&loop->async);
    (void)pthread_mutex_unlock(&loop->lock);
}

int fl_loop_post(struct fl_loop *loop, fl_loop_cb fn, void *arg)
{
    struct fl__post *post = calloc(1, sizeof(*post));

    if (post == NULL) {
        return FL_ENOMEM;
    }
    post->fn = fn;
    post->arg = arg;
    fl__loop_post(loop, post);
    return FL_OK;
}

uint64_t fl_loop_now(const struct fl_loop *loop)
{
    return uv_now(&loop->uv);
}

void fl__loop_opened(struct fl_loop *loop)
{
    loop->n_open++;
}

void fl__loop_closing(struct fl_loop *loop)
{
    FL_REQUIRE(loop->n_open > 0);
    loop->n_open--;
    loop->n_closing++;
}

void fl__loop_closed(struct fl_loop *loop)
{
    FL_REQUIRE(loop->n_closing > 0);
    loop->n_closing--;
}

void fl__conn_due(struct fl_conn *conn)
{
    struct fl_loop *loop = conn->loop;

    if (conn->due) {
        return;
    }
    conn->due = true;
    conn->due_next = NULL;
    conn->due_prev = loop->due_tail;
    if (loop->due_tail != NULL) {
        loop->due_tail->due_next = conn;
    } else {
        loop->due_head = conn;
        (void)uv_idle_start(&loop->idle, on_idle);
    }
    loop->due_tail = conn;
}

void fl__conn_not_due(struct fl_conn *conn)
{
    struct fl_loop *loop = conn->loop;

    if (!conn->due) {
        return;
    }
    conn->due = false;
    if (conn->due_prev != NULL) {
        conn->due_prev->due_next = conn->due_next;
    } else {
        loop->due_head = conn->due_next;
    }
    if (conn->due_next != NULL) {
        conn->due_next->due_prev = conn->due_prev;
    } else {
        loop->due_tail = conn->due_prev;
    }
    conn->due_next = NULL;
    conn->due_prev = NULL;
}

/* --- timers --- */

struct fl_timer {
    uv_timer_t uv;
    struct fl_loop *loop;
    fl_loop_cb fn;
    void *arg;
};

static void loop_on_timer(uv_timer_t *uv)
{
    struct fl_timer *timer = uv->data;

    timer->fn(timer->arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct fl_timer *timer = handle->data;

    fl__loop_closed(timer->loop);
    free(timer);
}

int fl_timer_create(struct fl_loop *loop, fl_loop_cb fn, void *arg, struct fl_timer **ret)
{
    struct fl_timer *timer = calloc(1, sizeof(*timer));

    if (timer == NULL) {
        return FL_ENOMEM;
    }
    timer->loop = loop;
    timer->fn = fn;
    timer->arg = arg;
    (void)uv_timer_init(&loop->uv, &timer->uv);
    timer->uv.data = timer;
    fl__loop_opened(loop);
    *ret = timer;
    return FL_OK;
}

void fl_timer_start(struct fl_timer *timer, uint64_t delay_ms)
{
    /*
     * The cached time may be old (before the first turn, after a long callback), and the timer
     * would fire too early by that difference.
     */
    uv_update_time(&timer->loop->uv);
    (void)uv_timer_start(&timer->uv, loop_on_timer, delay_ms, 0);
}

void fl_timer_stop(struct fl_timer *timer)
{
    (void)uv_timer_stop(&timer->uv);
}

void fl_timer_close(struct fl_timer *timer)
{
    if (timer == NULL) {
        return;
    }
    fl__loop_closing(timer->loop);
    uv_close((uv_handle_t *)&timer->uv, on_timer_closed);
}

/* --- signals --- */

struct fl_signal {
    uv_signal_t uv;
    struct fl_loop *loop;
    fl_signal_cb fn;
    void *arg;
};

static void loop_on_signal(uv_signal_t *uv, int signum)
{
    struct fl_signal *self = uv->data;

    self->fn(self->arg, signum);
}

static void on_signal_closed(uv_handle_t *handle)
{
    struct fl_signal *self = handle->data;

    fl__loop_closed(self->loop);
    free(self);
}

int fl_signal_create(struct fl_loop *loop, int signum, fl_signal_cb fn, void *arg,
                     struct fl_signal **ret)
{
    struct fl_signal *self = calloc(1, sizeof(*self));
    int status;

    if (self == NULL) {
        return FL_ENOMEM;
    }
    self->loop = loop;
    self->fn = fn;
    self->arg = arg;
    /* Creates the process-wide pipe that carries signals into loops, so it can fail. */
    status = uv_signal_init(&loop->uv, &self->uv);
    if (status != 0) {
        free(self);
        return fl_uv_err(status);
    }
    self->uv.data = self;
    fl__loop_opened(loop);
    status = uv_signal_start(&self->uv, loop_on_signal, signum);
    if (status != 0) {
        fl_signal_close(self);
        return fl_uv_err(status);
    }
    *ret = self;
    return FL_OK;
}

void fl_signal_close(struct fl_signal *self)
{
    if (self == NULL) {
        return;
    }
    fl__loop_closing(self->loop);
    uv_close((uv_handle_t *)&self->uv, on_signal_closed);
}

void fl_signal_ignore(int signum)
{
    struct sigaction action = {.sa_handler = SIG_IGN};

    (void)sigaction(signum, &action, NULL);
}
