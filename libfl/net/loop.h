#ifndef FL_NET_LOOP_H
#define FL_NET_LOOP_H

/*
 * Event loops, timers, signals and worker threads. Together with conn.h the only user of libuv
 * (besides the daemons' glue).
 *
 * Threading: everything of a loop belongs to the thread that runs it, except fl_loop_post() and
 * fl_loop_stop(), which any thread may call. Threads communicate by posting only.
 */

#include <stdbool.h>
#include <stdint.h>

#include "libfl/base/err.h"

struct fl_loop;

typedef void (*fl_loop_cb)(void *arg);

FL_MUST_CHECK int fl_loop_create(struct fl_loop **ret, struct fl_err *err);
/* Runs until fl_loop_stop(). Posted functions run in the order of posting. */
void fl_loop_run(struct fl_loop *loop);
void fl_loop_stop(struct fl_loop *loop);
/*
 * Frees a stopped loop: runs it until all closing handles are closed and all posted functions have
 * run. FL_REQUIREs that every timer, listener and connection was closed.
 */
void fl_loop_free(struct fl_loop *loop);
/* Runs fn(arg) on the loop's thread soon, never from inside this call. FL_ENOMEM. */
FL_MUST_CHECK int fl_loop_post(struct fl_loop *loop, fl_loop_cb fn, void *arg);
/* The loop's cached monotonic time. */
uint64_t fl_loop_now(const struct fl_loop *loop);

struct fl_timer;
FL_MUST_CHECK int fl_timer_create(struct fl_loop *loop, fl_loop_cb fn, void *arg,
                                  struct fl_timer **ret);
/* (Re)start; fires once after `delay_ms`. */
void fl_timer_start(struct fl_timer *timer, uint64_t delay_ms);
void fl_timer_stop(struct fl_timer *timer);
/* The timer never fires again; its memory is freed when libuv has closed it. NULL is allowed. */
void fl_timer_close(struct fl_timer *timer);

struct fl_signal;
typedef void (*fl_signal_cb)(void *arg, int signum);
FL_MUST_CHECK int fl_signal_create(struct fl_loop *loop, int signum, fl_signal_cb fn, void *arg,
                                   struct fl_signal **ret);
void fl_signal_close(struct fl_signal *signal);
/*
 * The process ignores the signal while no fl_signal waits for it; closing such an fl_signal
 * restores the default action.
 */
void fl_signal_ignore(int signum);

/* A worker thread: it runs jobs one after the other, outside the loops. */
struct fl_worker_thread;
FL_MUST_CHECK int fl_worker_thread_create(const char *name, struct fl_worker_thread **ret,
                                          struct fl_err *err);
/*
 * Queues work(arg) on the worker thread; afterwards done(arg) is posted to `loop` (when not NULL).
 */
FL_MUST_CHECK int fl_worker_thread_submit(struct fl_worker_thread *thread, fl_loop_cb work,
                                          struct fl_loop *loop, fl_loop_cb done, void *arg);
/* Jobs queued or running. Any thread; NULL counts as idle, as below. */
unsigned fl_worker_thread_pending(struct fl_worker_thread *thread);
/* Age in ms of the job that runs now; 0: none runs. */
uint64_t fl_worker_thread_busy_ms(struct fl_worker_thread *thread);
/* Age in ms, at least 1, of the oldest job that waits and does not run yet; 0: none waits. */
uint64_t fl_worker_thread_waiting_ms(struct fl_worker_thread *thread);
/* Time in ms since its job began to wait for a disk (fl_fs_watch); 0: it computes, or none runs. */
uint64_t fl_worker_thread_disk_ms(struct fl_worker_thread *thread);
/* Finishes the queued jobs, joins the thread, frees. */
void fl_worker_thread_free(struct fl_worker_thread *thread);

/* A thread that runs a loop. */
struct fl_thread;
FL_MUST_CHECK int fl_thread_create(const char *name, fl_loop_cb fn, void *arg,
                                   struct fl_thread **ret, struct fl_err *err);
void fl_thread_join(struct fl_thread *thread); /* joins and frees */

#endif
