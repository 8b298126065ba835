/*
 * The messages of the trainer protocol (docs/trainers.md): sending, waiting for an answer,
 * the order in which messages are allowed, and the end of the program. Same thread as persistent.c,
 * which calls it. It does not know tasks beyond their id and kind.
 */
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/backoff.h"
#include "libfl/program/persistent_impl.h"

/* Backoff between two starts of a failing program. */
static const struct fl_backoff start_waits = {.first_ms = 1000, .cap_ms = 60000, .factor = 2};

/* clang-format off */
#define TO(state)   FL_SM_TO(FL__PERSISTENT_##state)
#define SAYS(type)  (1u << FL_ANSWER_##type)
/* clang-format on */

const struct fl_sm_state fl__persistent_states[FL__PERSISTENT_STATES] = {
    [FL__PERSISTENT_OFF] = {"OFF", TO(STARTING)},
    [FL__PERSISTENT_STARTING] = {"STARTING", TO(READY) | TO(OFF)},
    [FL__PERSISTENT_READY] = {"READY", TO(DESCRIBING) | TO(SWITCHING) | TO(LEAVING) | TO(OFF)},
    [FL__PERSISTENT_DESCRIBING] = {"DESCRIBING", TO(IDLE) | TO(READY) | TO(LEAVING) | TO(OFF)},
    [FL__PERSISTENT_SWITCHING] = {"SWITCHING", TO(IDLE) | TO(READY) | TO(OFF)},
    [FL__PERSISTENT_IDLE] = {"IDLE",
                             TO(BUSY) | TO(DESCRIBING) | TO(SWITCHING) | TO(LEAVING) | TO(OFF)},
    [FL__PERSISTENT_BUSY] = {"BUSY", TO(IDLE) | TO(CANCELING) | TO(OFF)},
    [FL__PERSISTENT_CANCELING] = {"CANCELING", TO(IDLE) | TO(OFF)},
    [FL__PERSISTENT_LEAVING] = {"LEAVING", TO(OFF)},
};

const unsigned fl__persistent_allowed[FL__PERSISTENT_STATES] = {
    [FL__PERSISTENT_OFF] = 0,
    [FL__PERSISTENT_STARTING] = SAYS(READY) | SAYS(FAILED),
    [FL__PERSISTENT_READY] = 0,
    [FL__PERSISTENT_DESCRIBING] = SAYS(ACCEPTED) | SAYS(FAILED),
    [FL__PERSISTENT_SWITCHING] = SAYS(ACCEPTED) | SAYS(FAILED),
    [FL__PERSISTENT_IDLE] = 0,
    [FL__PERSISTENT_BUSY] = SAYS(PROGRESS) | SAYS(DONE) | SAYS(FAILED),
    [FL__PERSISTENT_CANCELING] = SAYS(PROGRESS) | SAYS(DONE) | SAYS(FAILED) | SAYS(CANCELED),
    [FL__PERSISTENT_LEAVING] = 0,
};

bool fl__persistent_canceled(const struct fl_persistent *r, const atomic_bool *cancel)
{
    return atomic_load(&r->interrupted) || (cancel != NULL && atomic_load(cancel));
}

int fl__persistent_send(struct fl_persistent *r, char *text, const char *what, struct fl_err *err)
{
    size_t len = text != NULL ? strlen(text) : 0;
    int rv = text != NULL ? fl_framed_put(&r->framed, text, len) : FL_ENOMEM;

    free(text);
    if (rv == FL_ELIMIT) {
        return fl_err_set(err, rv,
                          "'%s' for the program has %zu bytes, but a message has at most %zu", what,
                          len, FL_FRAMED_SENT_MAX);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "'%s' for the program: %s", what, fl_strerror(rv));
    }
    fl_framed_flush(&r->framed);
    return rv;
}

/* --- exit of the program --- */

/* The expected message, for errors. */
static const char *protocol_expected(const struct fl_persistent *r, char *out, size_t size)
{
    switch ((enum fl__persistent_state)r->sm.state) {
    case FL__PERSISTENT_STARTING:
        return "'ready' was expected";
    case FL__PERSISTENT_DESCRIBING:
    case FL__PERSISTENT_SWITCHING:
        return "'accepted' was expected";
    case FL__PERSISTENT_BUSY:
        (void)snprintf(out, size, "'done' of '%s' %" PRIu64 " was expected",
                       fl_persistent_kinds[r->task->kind], r->id);
        return out;
    case FL__PERSISTENT_CANCELING:
        (void)snprintf(out, size, "'canceled' of '%s' %" PRIu64 " was expected",
                       fl_persistent_kinds[r->task->kind], r->id);
        return out;
    case FL__PERSISTENT_OFF:
    case FL__PERSISTENT_READY:
    case FL__PERSISTENT_IDLE:
    case FL__PERSISTENT_LEAVING:
    case FL__PERSISTENT_STATES:
        break;
    }
    return "no request was pending";
}

int fl__persistent_wait_exit(struct fl_persistent *r, uint64_t until_ms,
                             const struct fl_persistent_task *task)
{
    uint64_t now = fl__persistent_now(r);
    int why = FL_OK;

    while (!fl_program_look(r->program, now)) {
        struct pollfd p = {.fd = fl_program_stderr(r->program), .events = POLLIN};

        if (!fl_program_ending(r->program)) {
            if (task != NULL && fl__persistent_canceled(r, task->cancel)) {
                why = FL_ECANCELED;
            } else if (now >= until_ms) {
                why = FL_ETIMEOUT;
            }
            if (why != FL_OK) {
                fl_program_end(r->program, now);
            }
        }
        (void)poll(&p, 1, FL_PROGRAM_TICK_MS);
        now = fl__persistent_now(r);
    }
    return why;
}

/* Waits until it has exited by itself within `patience_ms`, or was killed on request. */
static void protocol_wait_exit(struct fl_persistent *r, uint64_t patience_ms)
{
    (void)!fl__persistent_wait_exit(r, fl__persistent_now(r) + patience_ms, NULL);
}

/* Frees all resources of the program. */
static void protocol_drop(struct fl_persistent *r)
{
    fl_program_free(r->program);
    r->program = NULL;
    fl_framed_done(&r->framed);
    (void)close(r->sockets[0]);
    r->sockets[0] = -1;
    fl_shared_done(&r->weights);
    fl_shared_done(&r->result);
    r->model_accepted = false;
    r->client_told = false;
    fl_sm_move(&r->sm, FL__PERSISTENT_OFF);
}

void fl__persistent_shutdown(struct fl_persistent *r, uint64_t patience_ms)
{
    struct fl_err err = {0};
    int rv;

    protocol_wait_exit(r, patience_ms);
    rv = fl_program_reap(r->program, &err);
    if (rv != FL_OK) {
        fl_program_add_tail(r->program, &err);
        fl_log(r->conf.log, FL_LOG_WARNING, "trainer", "at its exit: %s", err.msg);
    }
    protocol_drop(r);
}

void fl__persistent_back_off(struct fl_persistent *r)
{
    r->failures += r->failures < UINT_MAX ? 1 : 0;
    r->retry_ms = fl__persistent_now(r) + fl_backoff_base(&start_waits, r->failures);
}

void fl__persistent_end(struct fl_persistent *r, struct fl_err *err)
{
    protocol_wait_exit(r, 0);
    (void)!fl_program_reap(r->program, NULL);
    fl_program_add_tail(r->program, err);
    protocol_drop(r);
    fl__persistent_back_off(r);
}

static int protocol_violated(struct fl_persistent *r, const char *what, struct fl_err *err)
{
    char text[96];
    int rv = fl_err_set(err, FL_EPROTO, "'%.100s' broke the trainer protocol: %.200s; %s",
                        r->argv[0], what, protocol_expected(r, text, sizeof(text)));

    fl__persistent_end(r, err);
    return rv;
}

/* --- receiving --- */

/* Handles the messages read so far. FL_EAGAIN: continue to wait. */
static int protocol_next_answer(struct fl_persistent *r, struct fl_answer *ret, struct fl_err *err)
{
    struct fl_err why = {0};
    const char *text = NULL;
    size_t len = 0;
    int rv = fl_framed_next(&r->framed, &text, &len, &why);
    enum fl_persistent_kind asked;
    bool of_task;
    char what[160];

    if (rv == FL_EAGAIN) {
        return rv;
    }
    if (rv != FL_OK) {
        return protocol_violated(r, why.msg, err);
    }
    /* FL_EAGAIN: progress, continue; FL_OK: an answer. */
    asked = r->task != NULL ? r->task->kind : FL_PERSISTENT_KINDS;
    of_task = r->sm.state == FL__PERSISTENT_BUSY || r->sm.state == FL__PERSISTENT_CANCELING;
    rv = fl_answer_parse(text, len, asked, ret, &why);
    /* An answer to another task is reported first, even if it is malformed too. */
    if (rv != FL_OK && (int)ret->type < 0) {
        return protocol_violated(r, why.msg, err);
    }
    if ((fl__persistent_allowed[r->sm.state] & 1u << ret->type) == 0) {
        (void)snprintf(what, sizeof(what), "it sent '%s'%s", fl_answer_types[ret->type],
                       r->id > 0 && ret->has_id && ret->id == r->id && !of_task
                           ? " of a task that it had answered already"
                           : "");
        return protocol_violated(r, what, err);
    }
    if (of_task && (!ret->has_id || ret->id != r->id)) {
        (void)snprintf(what, sizeof(what), "it sent '%s' with %s %" PRIu64,
                       fl_answer_types[ret->type], ret->has_id ? "the id" : "no id instead of",
                       ret->has_id ? ret->id : r->id);
        return protocol_violated(r, what, err);
    }
    if (rv != FL_OK) {
        return protocol_violated(r, why.msg, err);
    }
    if (ret->type != FL_ANSWER_PROGRESS) {
        return FL_OK;
    }
    if (r->task->progress != NULL) {
        r->task->progress(r->task->ctx, ret->done, ret->total);
    }
    return FL_EAGAIN;
}

static void protocol_wait_tick(struct fl_persistent *r)
{
    short events = r->framed.out.len > 0 ? POLLIN | POLLOUT : POLLIN;
    struct pollfd p[2] = {{.fd = r->sockets[0], .events = events},
                          {.fd = fl_program_stderr(r->program), .events = POLLIN}};

    (void)poll(p, 2, FL_PROGRAM_TICK_MS);
}

int fl__persistent_await(struct fl_persistent *r, uint64_t until_ms, const atomic_bool *cancel,
                         struct fl_answer *ret, struct fl_err *err)
{
    for (;;) {
        size_t before = fl_framed_pending(&r->framed);
        int rv = protocol_next_answer(r, ret, err);
        bool ended;

        if (rv != FL_EAGAIN) {
            return rv;
        }
        /* `cancel` is sent once: then the answer is waited for. */
        if (r->sm.state != FL__PERSISTENT_CANCELING && fl__persistent_canceled(r, cancel)) {
            return FL_ECANCELED;
        }
        if (fl__persistent_now(r) >= until_ms) {
            return FL_ETIMEOUT;
        }
        if (fl_framed_pending(&r->framed) < before) {
            continue; /* One message was handled; another complete one may follow. */
        }
        ended = fl_program_look(r->program, fl__persistent_now(r));
        if (fl_framed_fill(&r->framed)) {
            continue;
        }
        /* Messages sent before its exit have been read by now. */
        if (ended || r->framed.closed) {
            struct fl_err why = {0};
            char text[96];
            bool killed;

            /* The program has exited, or closed its socket, which is handled alike. */
            (void)protocol_expected(r, text, sizeof(text));
            protocol_wait_exit(r, FL_PROGRAM_GRACE_MS);
            killed = fl_program_ending(r->program);
            rv = fl_program_reap(r->program, &why);
            killed = killed && rv != FL_ELIMIT;
            if (killed || rv == FL_OK) {
                rv = fl_err_set(&why, FL_EIO, "'%.100s' %s", r->argv[0],
                                killed ? "closed its socket and was killed"
                                       : "ended with exit code 0");
            }
            (void)fl_err_set(err, rv, "%s%s; %s", why.msg,
                             fl_framed_pending(&r->framed) > 0 ? " in the middle of a message" : "",
                             protocol_expected(r, text, sizeof(text)));
            fl_program_add_tail(r->program, err);
            protocol_drop(r);
            fl__persistent_back_off(r);
            return rv;
        }
        fl_framed_flush(&r->framed);
        protocol_wait_tick(r);
    }
}

int fl__persistent_check_silent(struct fl_persistent *r, struct fl_err *err)
{
    struct fl_answer answer;
    int rv;

    (void)fl_framed_fill(&r->framed);
    rv = protocol_next_answer(r, &answer, err);
    return rv == FL_EAGAIN ? FL_OK : rv; /* No answer is allowed in these states. */
}

int fl__persistent_check_quiet(struct fl_persistent *r, struct fl_err *err)
{
    bool ended = fl_program_look(r->program, fl__persistent_now(r));
    int rv = fl__persistent_check_silent(r, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!ended && !r->framed.closed) {
        return FL_OK;
    }
    fl__persistent_shutdown(r, FL_PROGRAM_GRACE_MS);
    return FL_ECLOSED;
}
