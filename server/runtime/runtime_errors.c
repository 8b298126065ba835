/*
 * Errors of clients: kept in memory, persisted on the db thread, and shown to operators.
 * Coordinator thread. Does not decide what is an error: the core does.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/runtime/runtime_impl.h"

/* Records being written; further ones are kept in memory only, until the restart. */
#define PENDING_MAX 64

/* Interval of the search for old errors. */
#define ERRORS_CHECK_MS UINT64_C(60000)

struct error_job {
    struct fl_runtime *runtime;
    struct fl_client_error error;
    int code;
    struct fl_err err;
};

static void error_put_work(void *arg)
{
    struct error_job *job = arg;

    job->code = fl_store_put_error(job->runtime->federation.store, &job->error, &job->err);
}

static void error_put_done(void *arg)
{
    struct error_job *job = arg;

    job->runtime->n_error_jobs--;
    if (job->code != FL_OK) {
        fl_log(job->runtime->setup.log, FL_LOG_WARNING, "server",
               "the error of client '%s' is not recorded: %s", job->error.name,
               fl_err_text(&job->err, job->code));
    }
    free(job);
}

static void error_persist(struct fl_runtime *runtime, const struct fl_client_error *error)
{
    struct error_job *job;

    if (runtime->n_error_jobs >= PENDING_MAX) {
        return;
    }
    job = calloc(1, sizeof(*job));
    if (job != NULL) {
        job->runtime = runtime;
        job->error = *error;
        if (fl_worker_thread_submit(runtime->setup.db, error_put_work, runtime->loop,
                                    error_put_done, job) == FL_OK)
        {
            runtime->n_error_jobs++;
            return;
        }
        free(job);
    }
    fl_log(runtime->setup.log, FL_LOG_WARNING, "server",
           "the error of client '%s' is not recorded: out of memory", error->name);
}

void fl_runtime_client_error(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;
    const struct fl_client_rec *rec = fl_coord_client(runtime->coord, e->client);
    struct fl_client_error error = {.at_ms = fl_clock_wall_ms(),
                                    .up_ms = fl_coord_up_ms(runtime->coord)};

    if (rec == NULL || e->text == NULL) {
        return;
    }
    (void)snprintf(error.name, sizeof(error.name), "%s", rec->name);
    (void)fl_str_ends(error.text, sizeof(error.text), e->text);
    if (fl_errors_set(&runtime->errors, &error) != FL_OK) {
        return; /* The log has it. */
    }
    runtime->figures.client_errors++;
    fl_runtime_event(runtime, FL_EVENT_CLIENT, true, error.name, error.text);
    (void)snprintf(runtime->newest_error, sizeof(runtime->newest_error), "%s", error.name);
    error_persist(runtime, &error);
}

/* --- two machines with one identity --- */

/* Fits FL_CLIENT_ERROR_SIZE with what precedes it. */
#define TAKEOVER_ADVICE                                                                           \
    "two machines use its identity (a copied state folder or disk image?): stop one and give it " \
    "its own invitation, or flctl evict it and invite both again; the other connects within a "   \
    "minute"

void fl_runtime_takeover(struct fl_runtime *runtime, uint32_t client, const char *text)
{
    uint64_t now = fl_clock_ms();
    struct fl_effect e = {.type = FL_EFF_CLIENT_ERROR, .client = client};
    char error[512];

    runtime->figures.takeovers++;
    if (fl_takeovers_count(&runtime->takeovers, client, now) != FL_OK ||
        !fl_takeovers_tell(&runtime->takeovers, client, now))
    {
        return;
    }
    (void)snprintf(error, sizeof(error),
                   "%llu sessions took over from one that stood since the server started, the "
                   "newest %s: " TAKEOVER_ADVICE,
                   (unsigned long long)fl_takeovers_of(&runtime->takeovers, client),
                   text != NULL ? text : "");
    e.text = error;
    fl_runtime_client_error(runtime, &e);
}

void fl_runtime_problem_takeovers(const struct fl_runtime *runtime, struct fl_problem *ret)
{
    uint64_t now = fl_clock_ms();
    const char *first = NULL;
    size_t more = 0;
    uint32_t client;

    for (client = 0; client < runtime->takeovers.n; client++) {
        const struct fl_client_rec *rec = fl_takeovers_many(&runtime->takeovers, client, now)
                                              ? fl_coord_client(runtime->coord, client)
                                              : NULL;

        more += rec != NULL && first != NULL;
        first = first == NULL && rec != NULL ? rec->name : first;
    }
    if (first != NULL) {
        (void)snprintf(ret->text, sizeof(ret->text),
                       "sessions of client '%s' take over from each other", first);
    }
    if (more > 0) {
        (void)snprintf(ret->more, sizeof(ret->more), " (and of %zu others)", more);
    }
}

void fl_runtime_add_takeovers(const struct fl_runtime *runtime, char *text, size_t size)
{
    struct fl_problem p = {.text = ""};
    size_t used = strlen(text);

    fl_runtime_problem_takeovers(runtime, &p);
    if (p.text[0] != '\0') {
        (void)snprintf(text + used, size - used, "; %s%s: " TAKEOVER_ADVICE, p.text, p.more);
    }
}

/* --- dropping errors --- */

struct drop_job {
    struct fl_runtime *runtime;
    struct fl_client_error *list;
    size_t n;
    struct fl_admin_request *request;
    int code;
    struct fl_err err;
};

static void drop_work(void *arg)
{
    struct drop_job *job = arg;

    job->code = fl_store_drop_errors(job->runtime->federation.store, job->list, job->n, &job->err);
}

static void drop_done(void *arg)
{
    struct drop_job *job = arg;
    const char *why = job->code != FL_OK ? fl_err_text(&job->err, job->code) : NULL;
    size_t i;

    for (i = 0; why != NULL && i < job->n; i++)
    { /* Listed again, so that the request can be repeated. */
        if (fl_errors_find(&job->runtime->errors, job->list[i].name) == NULL &&
            fl_errors_set(&job->runtime->errors, &job->list[i]) != FL_OK)
        {
            break; /* The restart lists it. */
        }
    }
    if (job->request != NULL) {
        fl_runtime_forgot(job->runtime, job->request, why);
    } else if (why != NULL) {
        fl_log(job->runtime->setup.log, FL_LOG_WARNING, "server",
               "%zu old errors of clients are not removed from the disk: %s", job->n, why);
    }
    free(job->list);
    free(job);
}

void fl_runtime_drop_errors(struct fl_runtime *runtime, struct fl_client_error *list, size_t n,
                            struct fl_admin_request *request)
{
    struct drop_job *job = calloc(1, sizeof(*job));
    size_t i;

    if (job == NULL) { /* All of them stay: the request can be repeated, or they age. */
        free(list);
        if (request != NULL) {
            fl_runtime_forgot(runtime, request, fl_strerror(FL_ENOMEM));
        }
        return;
    }
    for (i = 0; i < n; i++) {
        fl_errors_drop(&runtime->errors, list[i].name);
        if (strcmp(runtime->newest_error, list[i].name) == 0) {
            runtime->newest_error[0] = '\0';
        }
    }
    *job = (struct drop_job){.runtime = runtime, .list = list, .n = n, .request = request};
    if (fl_worker_thread_submit(runtime->setup.db, drop_work, runtime->loop, drop_done, job) !=
        FL_OK) {
        job->code = FL_ENOMEM;
        drop_done(job);
    }
}

static bool is_known(void *ctx, const char *name)
{
    const struct fl_runtime *runtime = ctx;

    return fl_coord_find(runtime->coord, name) != UINT32_MAX;
}

void fl_runtime_age_errors(struct fl_runtime *runtime)
{
    uint64_t limit = runtime->coord_conf.forget_after_ms;
    uint64_t now = fl_clock_ms();
    struct fl_client_error *old;
    size_t n;

    if (limit == 0 || runtime->errors.n == 0 || now < runtime->errors_check_ms) {
        return;
    }
    runtime->errors_check_ms = now + (limit < ERRORS_CHECK_MS ? limit : ERRORS_CHECK_MS);
    old = calloc(runtime->errors.n, sizeof(*old));
    if (old == NULL) {
        return; /* Later. */
    }
    n = fl_errors_old(&runtime->errors, fl_coord_up_ms(runtime->coord), limit, is_known, runtime,
                      old);
    if (n > 0) {
        fl_runtime_drop_errors(runtime, old, n, NULL);
    } else {
        free(old);
    }
}

void fl_runtime_add_error(const struct fl_runtime *runtime, char *text, size_t size)
{
    const struct fl_client_error *e = fl_errors_find(&runtime->errors, runtime->newest_error);
    uint64_t now = fl_clock_wall_ms();
    size_t used = strlen(text);

    if (e != NULL) {
        (void)snprintf(text + used, size - used, "; newest error, of '%s' %.1f s ago: %s", e->name,
                       now > e->at_ms ? (double)(now - e->at_ms) / 1000.0 : 0.0, e->text);
    }
}

void fl_runtime_problem_unfit(const struct fl_runtime *runtime, struct fl_problem *ret)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < runtime->errors.n; i++) {
        const struct fl_client_error *e = &runtime->errors.list[i];

        if (!fl_coord_unfit(runtime->coord, fl_coord_find(runtime->coord, e->name))) {
            continue;
        }
        if (n == 0) {
            (void)snprintf(ret->text, sizeof(ret->text), "client '%.80s' cannot take part: %.140s",
                           e->name, e->text);
        }
        n++;
    }
    if (n > 1) {
        (void)snprintf(ret->more, sizeof(ret->more), " (and %zu others)", n - 1);
    }
}

static int error_loaded(void *ctx, const struct fl_client_error *error)
{
    return fl_errors_set(ctx, error);
}

int fl_runtime_load_errors(struct fl_runtime *runtime, struct fl_err *err)
{
    return fl_store_errors(runtime->federation.store, error_loaded, &runtime->errors, err);
}
