/*
 * Runs the programs of an operator after events (hook_runner.h). Each hook has a thread, because
 * the kernel kills a program when the thread that started it ends, and so that a program that hangs
 * keeps no other hook. Which event has a hook is in server/core/hook_events.c.
 */

#include "server/daemon/hook_runner.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/net/loop.h"
#include "libfl/program/program.h"

/* FL_EVENT, FL_FEDERATION, FL_STATE_DIR, FL_ADMIN_SOCKET. */
#define HOOK_FIXED 4

struct hook {
    const char *const *argv; /* NULL: not configured */
    struct fl_worker_thread *thread;
    pthread_mutex_t lock;
    struct fl_hook_queue queue; /* under the lock */
};

struct fl_hooks {
    struct fl_hooks_setup setup;
    atomic_bool closing;
    struct hook list[FL_HOOK_N];
};

struct hook_run {
    struct fl_hooks *hooks;
    struct fl_hook_event event;
};

/* --- one run, on the thread of its hook --- */

/* FL_ECANCELED: the server stops. */
static int hook_wait(struct fl_hooks *hooks, struct fl_program *program, struct fl_err *err)
{
    uint64_t limit_ms = hooks->setup.conf->hooks->limit_ms;
    uint64_t began_ms = fl_clock_ms();
    bool late = false;
    int rv;

    while (!fl_program_look(program, fl_clock_ms())) {
        struct pollfd fd = {.fd = fl_program_stderr(program), .events = POLLIN};

        if (atomic_load(&hooks->closing)) {
            return FL_ECANCELED; /* fl_program_free() kills it. */
        }
        if (!late && fl_clock_ms() - began_ms >= limit_ms) {
            late = true;
            fl_program_end(program, fl_clock_ms());
        }
        (void)poll(&fd, 1, FL_PROGRAM_TICK_MS);
    }
    rv = fl_program_reap(program, err);
    if (late) {
        return fl_err_set(err, FL_ETIMEOUT, "it ran for longer than hooks.limit and was ended");
    }
    return rv;
}

static int hook_run_program(struct fl_hooks *hooks, const struct fl_hook_event *event,
                            struct fl_err *err)
{
    const struct fl_server_conf *conf = hooks->setup.conf;
    char fixed[HOOK_FIXED][FL_SERVER_PATH_MAX + 32];
    const char *additions[HOOK_FIXED + FL_HOOK_VARIABLES + 1] = {NULL};
    const struct fl_program_conf program_conf = {.argv = hooks->list[event->hook].argv,
                                                 .additions = additions,
                                                 .memory_bytes = conf->hooks->memory,
                                                 .memory_of = FL_PROGRAM_RESIDENT_MEMORY};
    struct fl_program *program = NULL;
    size_t i;
    int rv;

    (void)snprintf(fixed[0], sizeof(fixed[0]), "FL_EVENT=%s", fl_hook_names[event->hook]);
    (void)snprintf(fixed[1], sizeof(fixed[1]), "FL_FEDERATION=%s", conf->main->federation);
    (void)snprintf(fixed[2], sizeof(fixed[2]), "FL_STATE_DIR=%s", hooks->setup.state_dir);
    (void)snprintf(fixed[3], sizeof(fixed[3]), "FL_ADMIN_SOCKET=%s", hooks->setup.admin);
    for (i = 0; i < HOOK_FIXED; i++) {
        additions[i] = fixed[i];
    }
    for (i = 0; i < event->n; i++) {
        additions[HOOK_FIXED + i] = event->variables[i];
    }
    rv = fl_program_start(&program_conf, &program, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = hook_wait(hooks, program, err);
    if (rv != FL_OK && rv != FL_ECANCELED) {
        fl_program_add_tail(program, err);
    }
    fl_program_free(program);
    return rv;
}

static void hook_run(void *arg)
{
    struct hook_run *run = arg;
    struct fl_hooks *hooks = run->hooks;
    struct hook *hook = &hooks->list[run->event.hook];
    const char *name = fl_hook_names[run->event.hook];
    struct fl_err err = {0};
    uint64_t left_out;
    int rv = FL_ECANCELED;

    if (!atomic_load(&hooks->closing)) {
        rv = hook_run_program(hooks, &run->event, &err);
    }
    (void)pthread_mutex_lock(&hook->lock);
    left_out = fl_hook_queue_end(&hook->queue);
    (void)pthread_mutex_unlock(&hook->lock);
    if (rv != FL_OK && rv != FL_ECANCELED) {
        fl_log_noted(hooks->setup.log, FL_LOG_WARNING, "hooks", NULL,
                     FL_LOG_NOTE(HOOK_FAILED, FL_LOG_WORD("hook", name)),
                     "hook '%s' failed, the federation continues: '%.200s': %s", name,
                     hook->argv[0], fl_err_text(&err, rv));
    }
    if (left_out > 0) {
        fl_log_noted(hooks->setup.log, FL_LOG_WARNING, "hooks", NULL,
                     FL_LOG_NOTE(HOOK_FAILED, FL_LOG_WORD("hook", name)),
                     "hook '%s' is slower than its events: %d waited already, and %llu were left "
                     "out",
                     name, FL_HOOK_QUEUE, (unsigned long long)left_out);
    }
    free(run);
}

/* --- events --- */

void fl_hooks_fire(struct fl_hooks *hooks, const struct fl_hook_event *event)
{
    struct hook *hook;
    struct hook_run *run;
    bool runs;

    if (hooks == NULL || hooks->list[event->hook].argv == NULL) {
        return;
    }
    hook = &hooks->list[event->hook];
    (void)pthread_mutex_lock(&hook->lock);
    runs = fl_hook_queue_add(&hook->queue);
    (void)pthread_mutex_unlock(&hook->lock);
    if (!runs) {
        return;
    }
    run = malloc(sizeof(*run));
    if (run != NULL) {
        *run = (struct hook_run){hooks, *event};
        if (fl_worker_thread_submit(hook->thread, hook_run, NULL, NULL, run) == FL_OK) {
            return;
        }
    }
    free(run);
    (void)pthread_mutex_lock(&hook->lock);
    (void)fl_hook_queue_end(&hook->queue);
    (void)pthread_mutex_unlock(&hook->lock);
    fl_log(hooks->setup.log, FL_LOG_WARNING, "hooks", "hook '%s' is left out: out of memory",
           fl_hook_names[event->hook]);
}

/* --- lifetime --- */

static void hook_check(const struct fl_hooks *hooks, enum fl_hook id)
{
    struct fl_err err = {0};
    int rv = fl_program_check(hooks->list[id].argv, &err);

    if (rv != FL_OK) {
        fl_log(hooks->setup.log, FL_LOG_WARNING, "hooks",
               "hooks.%s: %s; the federation runs without this hook until that program is there",
               fl_hook_names[id], fl_err_text(&err, rv));
    }
}

int fl_hooks_create(const struct fl_hooks_setup *setup, struct fl_hooks **ret, struct fl_err *err)
{
#define HOOK_TEXTS(id, name, ...) [FL_HOOK_##id] = &setup->conf->hooks->name,
    const struct fl_opt_texts *const texts[FL_HOOK_N] = {FL_HOOKS(HOOK_TEXTS)};
#undef HOOK_TEXTS
    struct fl_hooks *hooks = calloc(1, sizeof(*hooks));
    bool any = false;
    int i;
    int rv;

    if (hooks == NULL) {
        return FL_ENOMEM;
    }
    hooks->setup = *setup;
    for (i = 0; i < FL_HOOK_N; i++) {
        struct hook *hook = &hooks->list[i];
        char name[24];

        (void)pthread_mutex_init(&hook->lock, NULL);
        if (texts[i]->n == 0) {
            continue;
        }
        (void)snprintf(name, sizeof(name), "fl-hook-%d", i);
        rv = fl_worker_thread_create(name, &hook->thread, err);
        if (rv != FL_OK) {
            fl_hooks_close(hooks);
            return rv;
        }
        hook->argv = texts[i]->list;
        hook_check(hooks, (enum fl_hook)i);
        any = true;
    }
    if (!any) {
        fl_hooks_close(hooks);
        hooks = NULL;
    }
    *ret = hooks;
    return FL_OK;
}

void fl_hooks_close(struct fl_hooks *hooks)
{
    int i;

    if (hooks == NULL) {
        return;
    }
    atomic_store(&hooks->closing, true);
    for (i = 0; i < FL_HOOK_N; i++) {
        if (hooks->list[i].thread != NULL) {
            fl_worker_thread_free(hooks->list[i].thread);
        }
        (void)pthread_mutex_destroy(&hooks->list[i].lock);
    }
    free(hooks);
}
