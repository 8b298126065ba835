/*
 * A persistent trainer program (persistent.h): start, description of the model, tasks, time limits,
 * idle timeout and backoff. One call at a time, on any thread, except fl_persistent_interrupt().
 * Sending and receiving of messages is in persistent_protocol.c.
 */
#include "libfl/program/persistent.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "libfl/model/safetensors.h"
#include "libfl/program/persistent_impl.h"

/* Time limit for the program to exit after `bye`. */
#define BYE_MS 2000

/* --- time --- */

static uint64_t persistent_clock_now(void *ctx)
{
    (void)ctx;
    return fl_clock_ms();
}

static void persistent_clock_pause(void *ctx, uint64_t ms)
{
    (void)ctx;
    (void)poll(NULL, 0, (int)ms);
}

static const struct fl_persistent_clock real_clock = {persistent_clock_now, persistent_clock_pause,
                                                      NULL};

/* --- create and free --- */

int fl_persistent_create(const struct fl_persistent_conf *conf, struct fl_persistent **ret,
                         struct fl_err *err)
{
    struct fl_persistent *r;
    int rv = fl_program_check(conf->argv, err);

    if (rv != FL_OK) {
        return rv;
    }
    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return fl_err_set(err, FL_ENOMEM, "trainer: out of memory");
    }
    r->conf = *conf;
    r->conf.clock = conf->clock != NULL ? conf->clock : &real_clock;
    r->sockets[0] = r->sockets[1] = -1;
    r->weights.fd = r->weights.theirs = r->result.fd = r->result.theirs = -1;
    atomic_init(&r->interrupted, false);
    fl_sm_init(&r->sm, fl__persistent_states, FL__PERSISTENT_STATES, FL__PERSISTENT_OFF);
    r->argv = fl_str_list_dup(conf->argv);
    r->environment = fl_str_list_dup(conf->environment);
    r->client = fl_str_dup(conf->client);
    r->purpose = fl_str_dup(conf->purpose);
    r->data = conf->data != NULL ? fl_str_dup(conf->data) : NULL;
    r->conf.argv = (const char *const *)r->argv;
    r->conf.environment = (const char *const *)r->environment;
    r->conf.client = r->client;
    r->conf.purpose = r->purpose;
    r->conf.data = r->data;
    if (!(r->argv != NULL && r->environment != NULL && r->client != NULL && r->purpose != NULL &&
          (conf->data == NULL || r->data != NULL)))
    {
        rv = fl_err_set(err, FL_ENOMEM, "trainer: out of memory");
        goto fail;
    }
    if (conf->work_dir != NULL) {
        rv = fl__task_files_open(r, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = r;
    return FL_OK;
fail:
    fl_persistent_free(r);
    return rv;
}

void fl_persistent_forget(struct fl_persistent *r)
{
    fl_layout_free(r->layout);
    json_decref(r->description);
    fl_buf_done(&r->header);
    r->layout = NULL;
    r->description = NULL;
    r->mixup_bytes = 0;
    r->model_accepted = false;
}

void fl_persistent_free(struct fl_persistent *r)
{
    if (r == NULL) {
        return;
    }
    if (r->program != NULL) {
        fl__persistent_shutdown(r, 0);
    }
    fl_persistent_forget(r);
    fl_str_list_free(r->argv);
    fl_str_list_free(r->environment);
    free(r->client);
    free(r->purpose);
    free(r->data);
    free(r->client_message);
    free(r);
}

bool fl_persistent_per_task(const struct fl_persistent *r)
{
    return r->work_dir[0] != '\0';
}

bool fl_persistent_runs(const struct fl_persistent *r)
{
    return r->program != NULL;
}

void fl_persistent_interrupt(struct fl_persistent *r)
{
    atomic_store(&r->interrupted, true);
}

const struct fl_persistent_ready *fl_persistent_ready(const struct fl_persistent *r)
{
    return &r->ready;
}

bool fl_persistent_can(const struct fl_persistent *r, enum fl_persistent_kind kind)
{
    return (r->ready.can & 1u << kind) != 0;
}

bool fl_persistent_has_part(const struct fl_persistent *r, const char *part)
{
    size_t i;

    for (i = 0; i < r->ready.n_parts; i++) {
        if (strcmp(r->ready.parts[i], part) == 0) {
            return true;
        }
    }
    return false;
}

/* --- start --- */

int fl__persistent_spawn(struct fl_persistent *r, struct fl_program_conf conf, struct fl_err *err)
{
    const char **additions;
    size_t preset = 0;
    size_t n = 0;
    int rv;

    while (conf.additions[preset] != NULL) {
        preset++;
    }
    while (r->environment[n] != NULL) {
        n++;
    }
    additions = calloc(preset + n + 1, sizeof(*additions));
    if (additions == NULL) {
        return fl_err_set(err, FL_ENOMEM, "environment of the program: out of memory");
    }
    (void)memcpy(additions, conf.additions, preset * sizeof(*additions));
    (void)memcpy(additions + preset, r->environment, n * sizeof(*additions));
    conf.additions = additions;
    conf.memory_bytes = r->conf.memory_bytes;
    conf.memory_of = r->conf.memory_of;
    conf.descriptors = r->conf.descriptors;
    conf.log = r->conf.log;
    rv = fl_program_start(&conf, &r->program, err);
    free(additions);
    return rv;
}

static int persistent_spawn(struct fl_persistent *r, struct fl_err *err)
{
    static const char *const preset[] = {"FL_TRAINER_PROTOCOL=1", "FL_TRAINER_SOCKET=3",
                                         "FL_TRAINER_WEIGHTS=4", "FL_TRAINER_RESULT=5", NULL};
    const int inherited[] = {r->sockets[1], r->weights.theirs, r->result.theirs};

    return fl__persistent_spawn(
        r,
        (struct fl_program_conf){
            .argv = r->conf.argv, .additions = preset, .inherited = inherited, .n_inherited = 3},
        err);
}

/* On an error nothing is left of the attempt. */
static int persistent_launch(struct fl_persistent *r, struct fl_err *err)
{
    int rv = fl_shared_create(FL_SHARED_WEIGHTS, &r->weights, err);
    size_t i;

    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_shared_create(FL_SHARED_RESULT, &r->result, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, r->sockets) != 0) {
        rv = fl_err_set(err, fl_err_from_errno(errno), "socketpair: %s", strerror(errno));
        goto fail;
    }
    rv = persistent_spawn(r, err);
    if (rv != FL_OK) {
        goto fail;
    }
    (void)close(r->sockets[1]);
    r->sockets[1] = -1;
    fl_framed_init(&r->framed, r->sockets[0]);
    fl_sm_move(&r->sm, FL__PERSISTENT_STARTING);
    return FL_OK;
fail:
    for (i = 0; i < 2; i++) {
        if (r->sockets[i] >= 0) {
            (void)close(r->sockets[i]);
        }
        r->sockets[i] = -1;
    }
    fl_shared_done(&r->weights);
    fl_shared_done(&r->result);
    return rv;
}

/* The program did not answer in time and is killed. */
int fl__persistent_timed_out(struct fl_persistent *r, int rv, const char *what, uint64_t limit_ms,
                             struct fl_err *err)
{
    if (rv == FL_ECANCELED) {
        (void)fl_err_set(err, rv, "cancelled while '%.100s' was at '%s'", r->argv[0], what);
    } else {
        (void)fl_err_set(err, rv,
                         "'%.100s' did not answer '%s' within %" PRIu64 " ms and was ended",
                         r->argv[0], what, limit_ms);
    }
    fl__persistent_end(r, err);
    return rv;
}

static int persistent_start_program(struct fl_persistent *r, const atomic_bool *cancel,
                                    struct fl_err *err)
{
    struct fl_answer answer;
    uint64_t limit = r->conf.start_limit_ms;
    int rv = persistent_launch(r, err);

    if (rv != FL_OK) {
        fl__persistent_back_off(r);
        return rv;
    }
    rv = fl__persistent_send(r, fl_message_start(&r->conf), "start", err);
    if (rv != FL_OK) {
        fl__persistent_end(r, NULL);
        return rv;
    }
    rv = fl__persistent_await(r, limit > 0 ? fl__persistent_now(r) + limit : UINT64_MAX, cancel,
                              &answer, err);
    if (rv == FL_ETIMEOUT || rv == FL_ECANCELED) {
        return fl__persistent_timed_out(r, rv, "start", limit, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    /* Only these fields of `ready` can be checked here. */
    rv = FL_OK;
    if (answer.type == FL_ANSWER_FAILED) {
        rv = fl_err_set(err, FL_EIO, "'%.100s' cannot start: %.300s", r->argv[0], answer.error);
    } else if (answer.protocol != FL_PERSISTENT_VERSION) {
        rv = fl_err_set(err, FL_EVERSION,
                        "'%.100s' speaks version %" PRIu64
                        " of the trainer protocol, expected version %d",
                        r->argv[0], answer.protocol, FL_PERSISTENT_VERSION);
    }
    if (rv != FL_OK) {
        fl__persistent_end(r, err);
        return rv;
    }
    r->ready = answer.ready;
    fl_sm_move(&r->sm, FL__PERSISTENT_READY);
    r->idle_since_ms = fl__persistent_now(r);
    fl_log(r->conf.log, FL_LOG_INFO, "trainer",
           "'%.100s' is ready: samples=%" PRIu64 " test_samples=%" PRIu64 " software='%.200s'",
           r->argv[0], r->ready.samples, r->ready.test_samples, r->ready.software);
    return FL_OK;
}

int fl_persistent_start(struct fl_persistent *r, struct fl_err *err)
{
    return r->program != NULL || fl_persistent_per_task(r) ? FL_OK
                                                           : persistent_start_program(r, NULL, err);
}

/* --- the model --- */

/*
 * Sends `model`, unless the program has accepted it already, and waits for its answer. FL_ETIMEOUT:
 * not before `until_ms`.
 */
static int persistent_describe(struct fl_persistent *r, uint64_t until_ms,
                               const atomic_bool *cancel, struct fl_err *err)
{
    struct fl_answer answer;
    int rv;

    if (r->sm.state != FL__PERSISTENT_DESCRIBING) {
        rv = fl__persistent_lay_out(r, err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl__persistent_send(r, fl_message_model(r->description, &r->slots), "model", err);
        if (rv != FL_OK) {
            goto fail;
        }
        fl_sm_move(&r->sm, FL__PERSISTENT_DESCRIBING);
    }
    rv = fl__persistent_await(r, until_ms, cancel, &answer, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_sm_move(&r->sm,
               answer.type == FL_ANSWER_ACCEPTED ? FL__PERSISTENT_IDLE : FL__PERSISTENT_READY);
    r->idle_since_ms = fl__persistent_now(r);
    r->model_accepted = answer.type == FL_ANSWER_ACCEPTED;
    return r->model_accepted
               ? FL_OK
               : fl_err_set(err, FL_ESHAPE,
                            "the server's model is not the one of '%.100s', which says: %.300s",
                            r->argv[0], answer.error);
fail:
    fl__persistent_end(r, NULL);
    return rv;
}

/* Takes the complete description, or nothing. */
static int persistent_take_model(struct fl_persistent *r, const struct fl_persistent_model *m,
                                 struct fl_err *err)
{
    int rv = fl_layout_copy(m->layout, NULL, NULL, &r->layout, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_st_header(r->layout, NULL, 0, &r->header);
    if (rv != FL_OK) {
        goto fail;
    }
    r->description = fl_message_description(m, fl_persistent_per_task(r));
    if (r->description == NULL) {
        rv = FL_ENOMEM;
        goto fail;
    }
    r->vectors = m->vectors | 1u << FL_PERSISTENT_MODEL;
    r->summary_bytes = m->summary_bytes;
    r->clients = m->clients;
    r->state_bytes = m->state_bytes;
    return fl__persistent_place(r, err);
fail:
    return fl_err_set(err, rv, "description of the model for the program: %s",
                      rv == FL_ENOMEM ? "out of memory or a name that is not UTF-8"
                                      : fl_strerror(rv));
}

/* Rejection of the model is reported now; any other error is left to the next task. */
static int persistent_describe_early(struct fl_persistent *r, uint64_t wait_ms, struct fl_err *err)
{
    struct fl_err why = {0};
    int rv = fl__persistent_check_quiet(r, &why);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = persistent_describe(r, fl__persistent_now(r) + wait_ms, NULL, &why);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    if (rv == FL_ESHAPE || rv == FL_ELIMIT) {
        return fl_err_set(err, rv, "%s", why.msg);
    }
    if (rv != FL_ETIMEOUT && rv != FL_ECANCELED && rv != FL_ECLOSED) {
        fl_log(r->conf.log, FL_LOG_WARNING, "trainer", "%s", fl_err_text(&why, rv));
    }
    return FL_OK;
}

int fl_persistent_describe(struct fl_persistent *r, const struct fl_persistent_model *model,
                           uint64_t wait_ms, struct fl_err *err)
{
    /* An answer to the previous model is not an answer to this one. */
    bool open = r->sm.state == FL__PERSISTENT_DESCRIBING;
    int rv;

    fl_persistent_forget(r);
    rv = persistent_take_model(r, model, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (open) {
        fl_persistent_stop(r);
    }
    if (r->program != NULL && fl__persistent_fits(r)) {
        rv = persistent_describe_early(r, wait_ms, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    return FL_OK;
fail:
    fl_persistent_forget(r);
    return rv;
}

/* --- tasks --- */

int fl__persistent_get_ready(struct fl_persistent *r, const struct fl_persistent_task *task,
                             const atomic_bool *cancel, struct fl_err *err)
{
    uint64_t limit = r->conf.start_limit_ms;
    int rv;

    /*
     * Set the length of the slot of the personalized model; if it changes, the model must be
     * described again.
     */
    if (task != NULL && task->mixup != NULL && task->mixup_len != r->mixup_bytes) {
        r->mixup_bytes = task->mixup_len;
        r->model_accepted = false;
        rv = fl__persistent_place(r, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (r->program != NULL && r->sm.state != FL__PERSISTENT_DESCRIBING) {
        rv = fl__persistent_check_quiet(r, err);
        if (rv != FL_OK && rv != FL_ECLOSED) {
            return rv;
        }
    }
    if (r->program != NULL && !fl__persistent_fits(r)) {
        /* The shared memory of a running program cannot grow, so the program is restarted. */
        fl_persistent_stop(r);
    }
    if (r->program == NULL) {
        uint64_t now = fl__persistent_now(r);

        /* Wait for the end of the backoff after a failure. */
        while (r->failures > 0 && now < r->retry_ms) {
            uint64_t left = r->retry_ms - now;

            if (fl__persistent_canceled(r, cancel)) {
                return fl_err_set(err, FL_ECANCELED, "cancelled before '%.100s' was started again",
                                  r->argv[0]);
            }
            r->conf.clock->pause(r->conf.clock->ctx,
                                 left < FL_PROGRAM_TICK_MS ? left : FL_PROGRAM_TICK_MS);
            now = fl__persistent_now(r);
        }
        rv = persistent_start_program(r, cancel, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (!r->model_accepted) {
        rv = persistent_describe(r, limit > 0 ? fl__persistent_now(r) + limit : UINT64_MAX, cancel,
                                 err);
        if (rv == FL_ETIMEOUT || rv == FL_ECANCELED) {
            return fl__persistent_timed_out(r, rv, "model", limit, err);
        }
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl__persistent_switch(r, cancel, err);
}

/* The end of the open task, reported by the program. */
static int persistent_take_answer(struct fl_persistent *r, const struct fl_answer *answer,
                                  struct fl_persistent_answer *ret, struct fl_err *err)
{
    uint64_t handed = ret->handed_ms;
    bool summary = r->task->kind == FL_PERSISTENT_SUMMARY;
    uint64_t bytes = summary ? answer->figures.summary_bytes : answer->figures.state_bytes;
    size_t room = summary ? r->slots.summary.bytes : r->slots.state_new.bytes;
    int rv = FL_OK;

    if (answer->type == FL_ANSWER_DONE && bytes > room) {
        rv = fl_err_set(err, FL_EPROTO,
                        "'%.100s' broke the trainer protocol: a %s of %" PRIu64
                        " bytes in a slot of %zu",
                        r->argv[0], summary ? "data summary" : "state", bytes, room);
        fl__persistent_end(r, err);
        return rv;
    }
    fl_sm_move(&r->sm, FL__PERSISTENT_IDLE);
    r->idle_since_ms = fl__persistent_now(r);
    if (answer->type == FL_ANSWER_FAILED) {
        rv = fl_err_set(err, answer->diverged ? FL_ENUMERIC : FL_EIO, "'%.100s' failed at '%s': %s",
                        r->argv[0], fl_persistent_kinds[r->task->kind], answer->error);
        fl_program_add_tail(r->program, err);
        return rv;
    }
    if (answer->type == FL_ANSWER_DONE) {
        *ret = answer->figures;
        ret->handed_ms = handed;
        ret->took_ms = r->idle_since_ms - handed;
        r->failures = 0;
    }
    /* Detects a second answer that came together with the first. */
    rv = fl__persistent_check_silent(r, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (answer->type == FL_ANSWER_DONE && r->task->kind == FL_PERSISTENT_AGGREGATE) {
        return fl__persistent_take_step(r, ret, err);
    }
    if (answer->type == FL_ANSWER_DONE && r->task->trained != NULL) {
        rv = fl_persistent_result(r, r->task->trained, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_layout_check_trained(r->layout, r->task->trained, err);
    }
    return rv;
}

int fl__persistent_canceled_error(const struct fl_persistent *r, int why, struct fl_err *err)
{
    const struct fl_persistent_task *t = r->task;
    const char *note = t->limit_note != NULL ? t->limit_note : "";

    return why == FL_ECANCELED
               ? fl_err_set(err, why, "'%s' was cancelled in '%.100s'",
                            fl_persistent_kinds[t->kind], r->argv[0])
               : fl_err_set(err, why,
                            "'%.100s' timed out at '%s' after its time limit of %" PRIu64 " ms%s",
                            r->argv[0], fl_persistent_kinds[t->kind], t->limit_ms, note);
}

/* The task has ended for the client: the program has `cancel_grace_ms` to confirm it. */
static int persistent_cancel(struct fl_persistent *r, int why, struct fl_persistent_answer *ret,
                             struct fl_err *err)
{
    struct fl_answer answer;
    int rv = fl__persistent_send(r, fl_message_cancel(r->id), "cancel", err);

    fl_sm_move(&r->sm, FL__PERSISTENT_CANCELING);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__persistent_await(r, fl__persistent_now(r) + r->conf.cancel_grace_ms, NULL, &answer,
                              err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = persistent_take_answer(r, &answer, ret, err);
    if (rv != FL_OK || why != FL_ETIMEOUT || answer.type != FL_ANSWER_DONE) {
        return fl__persistent_canceled_error(r, why, err);
    }
    return FL_OK; /* The result was sent before the cancellation arrived. */
fail:
    if (rv == FL_ETIMEOUT || rv == FL_ENOMEM) {
        (void)fl__persistent_canceled_error(r, why, err);
        (void)fl_err_wrap(
            err, why, "the program was killed, as it did not answer 'cancel' within %" PRIu64 " ms",
            r->conf.cancel_grace_ms);
        fl__persistent_end(r, err);
        return why;
    }
    return why == FL_ECANCELED ? fl__persistent_canceled_error(r, why, err) : rv;
}

static int persistent_run_task(struct fl_persistent *r, const struct fl_persistent_task *task,
                               struct fl_persistent_answer *ret, struct fl_err *err)
{
    struct fl_answer answer;
    uint64_t now;
    int rv = task->kind == FL_PERSISTENT_AGGREGATE
                 ? fl__persistent_check_prepared(r, err)
                 : fl__persistent_get_ready(r, task, task->cancel, err);

    if (rv != FL_OK) {
        return rv;
    }
    r->task = task;
    r->id++;
    rv = fl__persistent_hand_over(r, task, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__persistent_send(r, fl_message_task(task, r->id), fl_persistent_kinds[task->kind], err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_sm_move(&r->sm, FL__PERSISTENT_BUSY);
    now = fl__persistent_now(r);
    *ret = (struct fl_persistent_answer){.handed_ms = now};
    rv = fl__persistent_await(r, task->limit_ms > 0 ? now + task->limit_ms : UINT64_MAX,
                              task->cancel, &answer, err);
    if (rv == FL_ETIMEOUT || rv == FL_ECANCELED) {
        return persistent_cancel(r, rv, ret, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    return persistent_take_answer(r, &answer, ret, err);
}

int fl_persistent_run(struct fl_persistent *r, const struct fl_persistent_task *task,
                      struct fl_persistent_answer *ret, struct fl_err *err)
{
    struct fl_persistent_answer answer = {0};
    struct fl_err why = {0};
    int rv;

    if (r->layout == NULL) {
        return fl_err_set(err, FL_ESTATE, "a task before the server described its model");
    }
    if (fl_persistent_per_task(r)) {
        r->task = task;
        rv = fl__task_files_run(r, &answer, &why);
    } else {
        rv = persistent_run_task(r, task, &answer, &why);
    }
    r->task = NULL;
    if (rv != FL_OK) {
        if (err != NULL) {
            *err = why;
        }
        return rv;
    }
    *ret = answer;
    return FL_OK;
}

int fl_persistent_result(const struct fl_persistent *r, float *out, struct fl_err *err)
{
    if (r->result.bytes == 0 || r->layout == NULL) {
        return fl_err_set(err, FL_ESTATE, "'%.100s' is not running any more", r->argv[0]);
    }
    return fl_shared_read(&r->result, r->slots.result.data, out,
                          fl_layout_count(r->layout) * sizeof(*out), err);
}

int fl_persistent_summary(const struct fl_persistent *r, void *out, size_t len, struct fl_err *err)
{
    if (r->result.bytes == 0 || r->layout == NULL) {
        return fl_err_set(err, FL_ESTATE, "'%.100s' is not running any more", r->argv[0]);
    }
    FL_REQUIRE(len <= r->slots.summary.bytes);
    return fl_shared_read(&r->result, r->slots.summary.offset, out, len, err);
}

/* --- idle --- */

void fl_persistent_stop(struct fl_persistent *r)
{
    struct fl_err err = {0};

    if (r->program == NULL) {
        return;
    }
    if (fl__persistent_send(r, fl_message_bye(), "bye", &err) != FL_OK) {
        fl_log(r->conf.log, FL_LOG_WARNING, "trainer", "%s", err.msg);
    }
    fl_sm_move(&r->sm, FL__PERSISTENT_LEAVING);
    fl__persistent_shutdown(r, BYE_MS);
}

uint64_t fl_persistent_rest(struct fl_persistent *r)
{
    uint64_t idle;

    if (r->program != NULL) {
        /* Copies the program's stderr to the log. */
        (void)fl_program_look(r->program, fl__persistent_now(r));
    }
    if (r->program == NULL || r->conf.idle_exit_ms == 0 ||
        (r->sm.state != FL__PERSISTENT_IDLE && r->sm.state != FL__PERSISTENT_READY))
    {
        return 0;
    }
    idle = fl__persistent_now(r) - r->idle_since_ms;
    if (idle < r->conf.idle_exit_ms) {
        return r->conf.idle_exit_ms - idle;
    }
    fl_log(r->conf.log, FL_LOG_INFO, "trainer",
           "'%.100s' was idle for %" PRIu64
           " ms: sending 'bye', it is started again for the next task",
           r->argv[0], idle);
    fl_persistent_stop(r);
    return 0;
}
