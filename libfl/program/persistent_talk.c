/* The conversation: what may be said when, waiting for it, and what ends it. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/program/persistent_impl.h"

/* Between two starts of a program that fails. */
#define BACK_OFF_FIRST_MS UINT64_C(1000)
#define BACK_OFF_MOST_MS  UINT64_C(60000)

/* clang-format off */
#define TO(state)   FL_SM_TO(FL__PERSISTENT_##state)
#define SAYS(type)  (1u << FL_ANSWER_##type)
/* clang-format on */

const struct fl_sm_state fl__persistent_states[FL__PERSISTENT_STATES] = {
    [FL__PERSISTENT_OFF] = {"OFF", TO(STARTING)},
    [FL__PERSISTENT_STARTING] = {"STARTING", TO(READY) | TO(OFF)},
    [FL__PERSISTENT_READY] = {"READY", TO(DESCRIBING) | TO(LEAVING) | TO(OFF)},
    [FL__PERSISTENT_DESCRIBING] = {"DESCRIBING", TO(IDLE) | TO(READY) | TO(LEAVING) | TO(OFF)},
    [FL__PERSISTENT_IDLE] = {"IDLE", TO(BUSY) | TO(DESCRIBING) | TO(LEAVING) | TO(OFF)},
    [FL__PERSISTENT_BUSY] = {"BUSY", TO(IDLE) | TO(CANCELING) | TO(OFF)},
    [FL__PERSISTENT_CANCELING] = {"CANCELING", TO(IDLE) | TO(OFF)},
    [FL__PERSISTENT_LEAVING] = {"LEAVING", TO(OFF)},
};

const unsigned fl__persistent_hears[FL__PERSISTENT_STATES] = {
    [FL__PERSISTENT_OFF] = 0,
    [FL__PERSISTENT_STARTING] = SAYS(READY) | SAYS(FAILED),
    [FL__PERSISTENT_READY] = 0,
    [FL__PERSISTENT_DESCRIBING] = SAYS(ACCEPTED) | SAYS(FAILED),
    [FL__PERSISTENT_IDLE] = 0,
    [FL__PERSISTENT_BUSY] = SAYS(PROGRESS) | SAYS(DONE) | SAYS(FAILED),
    [FL__PERSISTENT_CANCELING] = SAYS(PROGRESS) | SAYS(DONE) | SAYS(FAILED) | SAYS(CANCELED),
    [FL__PERSISTENT_LEAVING] = 0,
};

bool fl__persistent_canceled(const struct fl_persistent *r, const atomic_bool *cancel)
{
    return atomic_load(&r->interrupted) || (cancel != NULL && atomic_load(cancel));
}

int fl__persistent_say(struct fl_persistent *r, char *text, const char *what, struct fl_err *err)
{
    size_t len = text != NULL ? strlen(text) : 0;
    int rv = text != NULL ? fl_framed_put(&r->framed, text, len) : FL_ENOMEM;

    free(text);
    if (rv == FL_ELIMIT) {
        return fl_err_set(err, rv,
                          "'%s' for the program has %zu bytes, and a message has %zu at most", what,
                          len, FL_FRAMED_SENT_MAX);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "'%s' for the program: %s", what, fl_strerror(rv));
    }
    fl_framed_flush(&r->framed);
    return rv;
}

/* --- its end --- */

/* What is waited for, in words. */
static const char *expected(const struct fl_persistent *r, char *out, size_t size)
{
    switch ((enum fl__persistent_state)r->sm.state) {
    case FL__PERSISTENT_STARTING:
        return "'ready' was expected";
    case FL__PERSISTENT_DESCRIBING:
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
    return "nothing was asked of it";
}

/* Until it has ended: by itself within `patience_ms`, or because it was asked to. */
static void wait_for_end(struct fl_persistent *r, uint64_t patience_ms)
{
    uint64_t began = fl__persistent_now(r);
    uint64_t now = began;

    while (!fl_program_look(r->program, now)) {
        struct pollfd p = {.fd = fl_program_stderr(r->program), .events = POLLIN};

        if (now - began >= patience_ms) {
            fl_program_end(r->program, now);
        }
        (void)poll(&p, 1, FL_PROGRAM_TICK_MS);
        now = fl__persistent_now(r);
    }
}

/* Nothing is left of it, here either. */
static void drop(struct fl_persistent *r)
{
    fl_program_free(r->program);
    r->program = NULL;
    fl_framed_done(&r->framed);
    (void)close(r->sockets[0]);
    r->sockets[0] = -1;
    fl_shared_done(&r->weights);
    fl_shared_done(&r->result);
    r->told = false;
    fl_sm_move(&r->sm, FL__PERSISTENT_OFF);
}

void fl__persistent_shutdown(struct fl_persistent *r, uint64_t patience_ms)
{
    struct fl_err err = {0};
    int rv;

    wait_for_end(r, patience_ms);
    rv = fl_program_reap(r->program, &err);
    if (rv != FL_OK) {
        fl_program_add_tail(r->program, &err);
        fl_log(r->conf.log, FL_LOG_WARNING, "trainer", "at its end: %s", err.msg);
    }
    drop(r);
}

void fl__persistent_back_off(struct fl_persistent *r)
{
    uint64_t wait = BACK_OFF_MOST_MS;

    if (r->failures < 6) {
        wait = BACK_OFF_FIRST_MS << r->failures;
    }
    r->failures++;
    r->retry_ms = fl__persistent_now(r) + (wait < BACK_OFF_MOST_MS ? wait : BACK_OFF_MOST_MS);
}

void fl__persistent_end(struct fl_persistent *r, struct fl_err *err)
{
    wait_for_end(r, 0);
    (void)!fl_program_reap(r->program, NULL);
    fl_program_add_tail(r->program, err);
    drop(r);
    fl__persistent_back_off(r);
}

static int broke(struct fl_persistent *r, const char *what, struct fl_err *err)
{
    char text[96];
    int rv = fl_err_set(err, FL_EPROTO, "'%.100s' broke the trainer protocol: %.200s; %s",
                        r->argv[0], what, expected(r, text, sizeof(text)));

    fl__persistent_end(r, err);
    return rv;
}

/* It has ended, or closed its socket, which is as good. */
static int died(struct fl_persistent *r, struct fl_err *err)
{
    struct fl_err why = {0};
    char text[96];
    bool ours;
    int rv;

    (void)expected(r, text, sizeof(text));
    wait_for_end(r, FL_PROGRAM_GRACE_MS);
    ours = fl_program_ending(r->program);
    rv = fl_program_reap(r->program, &why);
    if (rv != FL_ELIMIT && ours) {
        rv = fl_err_set(&why, FL_EIO, "'%.100s' closed its socket and was ended", r->argv[0]);
    } else if (rv == FL_OK) {
        rv = fl_err_set(&why, FL_EIO, "'%.100s' ended with exit code 0", r->argv[0]);
    }
    (void)fl_err_set(err, rv, "%s%s; %s", why.msg,
                     fl_framed_pending(&r->framed) > 0 ? " in the middle of a message" : "",
                     expected(r, text, sizeof(text)));
    fl_program_add_tail(r->program, err);
    drop(r);
    fl__persistent_back_off(r);
    return rv;
}

/* --- what it says --- */

/* One message. FL_EAGAIN: progress, and on; FL_OK: an answer. */
static int hear(struct fl_persistent *r, const char *text, size_t len, struct fl_answer *ret,
                struct fl_err *err)
{
    enum fl_persistent_kind asked = r->task != NULL ? r->task->kind : FL_PERSISTENT_KINDS;
    bool of_task = r->sm.state == FL__PERSISTENT_BUSY || r->sm.state == FL__PERSISTENT_CANCELING;
    struct fl_err why = {0};
    char what[160];
    int rv = fl_answer_parse(text, len, asked, ret, &why);

    /* Whose answer it is says more than what is wrong in it. */
    if (rv != FL_OK && (int)ret->type < 0) {
        return broke(r, why.msg, err);
    }
    if ((fl__persistent_hears[r->sm.state] & 1u << ret->type) == 0) {
        (void)snprintf(what, sizeof(what), "it said '%s'%s", fl_answer_types[ret->type],
                       r->id > 0 && ret->has_id && ret->id == r->id && !of_task
                           ? " of a task that it had answered already"
                           : "");
        return broke(r, what, err);
    }
    if (of_task && (!ret->has_id || ret->id != r->id)) {
        (void)snprintf(what, sizeof(what), "it said '%s' with %s %" PRIu64,
                       fl_answer_types[ret->type], ret->has_id ? "the id" : "no id instead of",
                       ret->has_id ? ret->id : r->id);
        return broke(r, what, err);
    }
    if (rv != FL_OK) {
        return broke(r, why.msg, err);
    }
    if (ret->type != FL_ANSWER_PROGRESS) {
        return FL_OK;
    }
    if (r->task->progress != NULL) {
        r->task->progress(r->task->ctx, ret->done, ret->total);
    }
    return FL_EAGAIN;
}

/* Of what was read. FL_EAGAIN: nothing that ends the waiting. */
static int next_answer(struct fl_persistent *r, struct fl_answer *ret, struct fl_err *err)
{
    struct fl_err why = {0};
    const char *text = NULL;
    size_t len = 0;
    int rv = fl_framed_next(&r->framed, &text, &len, &why);

    if (rv == FL_OK) {
        return hear(r, text, len, ret, err);
    }
    return rv == FL_EAGAIN ? rv : broke(r, why.msg, err);
}

static void wait_a_tick(struct fl_persistent *r)
{
    short events = r->framed.out.len > 0 ? POLLIN | POLLOUT : POLLIN;
    struct pollfd p[2] = {{.fd = r->sockets[0], .events = events},
                          {.fd = fl_program_stderr(r->program), .events = POLLIN}};

    (void)poll(p, 2, FL_PROGRAM_TICK_MS);
}

/* `cancel` is said once: what comes then is waited for. */
static bool gives_up(const struct fl_persistent *r, const atomic_bool *cancel)
{
    return r->sm.state != FL__PERSISTENT_CANCELING && fl__persistent_canceled(r, cancel);
}

int fl__persistent_await(struct fl_persistent *r, uint64_t until_ms, const atomic_bool *cancel,
                         struct fl_answer *ret, struct fl_err *err)
{
    for (;;) {
        size_t before = fl_framed_pending(&r->framed);
        int rv = next_answer(r, ret, err);
        bool ended;

        if (rv != FL_EAGAIN) {
            return rv;
        }
        if (gives_up(r, cancel)) {
            return FL_ECANCELED;
        }
        if (fl__persistent_now(r) >= until_ms) {
            return FL_ETIMEOUT;
        }
        if (fl_framed_pending(&r->framed) < before) {
            continue; /* That was one, and there may be another whole one. */
        }
        ended = fl_program_look(r->program, fl__persistent_now(r));
        if (fl_framed_fill(&r->framed)) {
            continue;
        }
        /* What it said before its end has been read by now. */
        if (ended || r->framed.closed) {
            return died(r, err);
        }
        fl_framed_flush(&r->framed);
        wait_a_tick(r);
    }
}

int fl__persistent_check_silent(struct fl_persistent *r, struct fl_err *err)
{
    struct fl_answer answer;
    int rv;

    (void)fl_framed_fill(&r->framed);
    rv = next_answer(r, &answer, err);
    return rv == FL_EAGAIN ? FL_OK : rv; /* An answer is never allowed in these states. */
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
