#include "client/daemon/enrol.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/session_clock.h"
#include "client/identity/cert_renewal.h"
#include "client/identity/enrolling.h"
#include "libfl/base/backoff.h"
#include "libfl/base/clock.h"
#include "libfl/base/rng.h"
#include "libfl/base/sm.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/model/digest.h"
#include "libfl/net/notify.h"
#include "libfl/pki/when.h"
#include "libfl/tls/tls.h"

/* A service manager that waits for the start has patience for so long, from each try on. */
#define START_MS 600000
/* A server that takes longer to sign is asked again. */
#define CALL_MS 60000
/* A refusal is logged this often; with another reason than the last logged one, this often. */
#define SAME_REFUSAL_MS  UINT64_C(86400000)
#define OTHER_REFUSAL_MS UINT64_C(3600000)
/* A clock that waits to be set is looked at this often. */
#define CLOCK_MS 1000

/*
 *            timer        channel up     reply
 *   WAITING ------> TRYING -------> ASKING -----> OVER
 *      ^              |               |            ^
 *      +--------------+---------------+            |
 *      lost, refused                  +------------+ refused for good, tries used up
 */
enum enrol_state { ENROL_WAITING, ENROL_TRYING, ENROL_ASKING, ENROL_OVER, ENROL_STATES };

static const struct fl_sm_state enrol_states[ENROL_STATES] = {
    [ENROL_WAITING] = {"WAITING", FL_SM_TO(ENROL_TRYING) | FL_SM_TO(ENROL_OVER)},
    [ENROL_TRYING] = {"TRYING",
                      FL_SM_TO(ENROL_WAITING) | FL_SM_TO(ENROL_ASKING) | FL_SM_TO(ENROL_OVER)},
    [ENROL_ASKING] = {"ASKING", FL_SM_TO(ENROL_WAITING) | FL_SM_TO(ENROL_OVER)},
    [ENROL_OVER] = {"OVER", 0},
};

struct enrol {
    const struct fl_enrol_setup *setup;
    struct fl_sm sm;
    char address[FL_ENROL_ADDRESS_MAX];
    struct fl_tls *tls;
    struct fl_stream_filter filter;
    struct fl_timer *timer;
    struct fl_grpc_channel *channel; /* NULL: none */
    struct fl_enrolling *enrolling;  /* of this try */
    bool clock_told;
    unsigned failures;
    struct fl_rng rng;             /* jitter of the waits after refusals */
    char refusal[FL_ERR_BUF_SIZE]; /* the reason that was logged last, "": none */
    uint64_t refusal_ms;           /* when */

    /* Of this try, until its channel is gone; then of the whole. */
    int rv;
    bool local;
    bool final; /* with FL_EPERM: it takes another line, nothing on the server cures it */
    struct fl_err err;
    struct fl_enrolled enrolled;
};

const char *fl_enrol_address(const struct fl_invite *invite, char out[FL_ENROL_ADDRESS_MAX])
{
    bool v6 = strchr(invite->host, ':') != NULL;

    (void)snprintf(out, FL_ENROL_ADDRESS_MAX, "%s%s%s:%u", v6 ? "[" : "", invite->host,
                   v6 ? "]" : "", (unsigned)invite->port);
    return out;
}

void fl_enrolled_done(struct fl_enrolled *enrolled)
{
    fl_wire_labels_done(&enrolled->labels);
    *enrolled = (struct fl_enrolled){.labels = {NULL}};
}

/* --- the end of a try --- */

static void over(struct enrol *e)
{
    fl_sm_move(&e->sm, ENROL_OVER);
    fl_loop_stop(e->setup->loop);
}

/*
 * As a session after a refusal (client/core/session.c): what an operator of the server or a clock
 * can cure is asked again within the longest wait of a lost connection, what takes another line
 * rarely. Jitter keeps hosts that were started together apart. `*ret_most`: the wait without it.
 */
static uint64_t refused_wait(struct enrol *e, uint64_t *ret_most)
{
    uint64_t rare = e->setup->refused_ms;
    uint64_t soon = e->setup->longest_ms < rare ? e->setup->longest_ms : rare;
    uint64_t most = e->final ? rare + rare / 5 : soon;

    *ret_most = most;
    return most - fl_rng_below(&e->rng, (e->final ? rare : soon) / 5 + 1);
}

/* Nobody is at an unattended host, so it asks again, and neither server nor log suffers from it. */
static void wait_refused(struct enrol *e)
{
    const char *why = fl_err_text(&e->err, e->rv);
    uint64_t most;
    uint64_t pause = refused_wait(e, &most);
    uint64_t now = fl_clock_ms();
    uint64_t since = now - e->refusal_ms;
    char text[FL_ERR_BUF_SIZE + 128];

    e->failures = 0;
    if (e->refusal[0] == '\0' || since >= SAME_REFUSAL_MS ||
        (since >= OTHER_REFUSAL_MS && strcmp(e->refusal, why) != 0))
    {
        fl_log(e->setup->log, FL_LOG_ERROR, "client",
               "joining at '%s' was refused, asking again within %" PRIu64
               " s (the same refusal is logged once a day): %s; %s",
               e->address, (most + 999) / 1000, why,
               e->final ? "put a new line in place of the invitation, then restart this client"
                        : "when that is corrected, this client joins by itself");
        (void)snprintf(e->refusal, sizeof(e->refusal), "%s", why);
        e->refusal_ms = now;
    }
    (void)snprintf(text, sizeof(text),
                   "joining at %s was refused, asking again within %" PRIu64 " s: %s", e->address,
                   (most + 999) / 1000, why);
    fl_notify_status(text);
    fl_notify_extend(START_MS + pause);
    fl_sm_move(&e->sm, ENROL_WAITING);
    fl_timer_start(e->timer, pause);
}

/* What `rv`, `local` and `err` say of it. */
static void ended(struct enrol *e)
{
    const struct fl_backoff waits = {
        .first_ms = e->setup->first_ms, .cap_ms = e->setup->longest_ms, .factor = 2};
    uint64_t pause;
    bool last;

    fl_enrolling_free(e->enrolling);
    e->enrolling = NULL;
    e->failures++;
    last = e->setup->tries != 0 && e->failures >= e->setup->tries;
    if (e->rv == FL_EPERM && !e->local && e->setup->refused_ms > 0) {
        wait_refused(e);
        return;
    }
    if (e->rv == FL_OK || e->rv == FL_EPERM || last) {
        over(e);
        return;
    }
    pause = fl_backoff_base(&waits, e->failures);
    fl_sm_move(&e->sm, ENROL_WAITING);
    fl_log(e->setup->log, FL_LOG_WARNING, "client",
           "could not join at '%s', trying again in %" PRIu64 " s: %s", e->address,
           (pause + 999) / 1000, fl_err_text(&e->err, e->rv));
    fl_timer_start(e->timer, pause);
}

/* Remember how it went; what was said first counts. */
static void note(struct enrol *e, int rv, const char *text)
{
    if (e->rv == FL_ECLOSED) {
        e->rv = fl_err_set(&e->err, rv, "%s", text);
    }
}

/* --- the call --- */

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct enrol *e = ctx;
    struct fl_wire_joined reply = {.time_ms = 0};
    struct fl_err err = {0};
    int rv;

    (void)call;
    if (e->rv != FL_ECLOSED) {
        return true;
    }
    rv = fl_wire_joined_decode(data, len, &reply, &err);
    if (rv == FL_OK) {
        rv = fl_enrolling_done(e->enrolling,
                               &(struct fl_enrolling_reply){&reply.chain, &reply.roots,
                                                            (int64_t)(reply.time_ms / 1000)},
                               (int64_t)(fl_clock_wall_ms() / 1000), &e->enrolled.who, &err);
        e->local = rv != FL_OK && rv != FL_EPROTO && rv != FL_EAGAIN;
    }
    if (rv == FL_OK) {
        e->rv = FL_OK;
        fl_wire_labels_done(&e->enrolled.labels);
        e->enrolled.labels = reply.labels;
        reply.labels = (struct fl_wire_labels){NULL};
    } else {
        e->final = rv == FL_EPROTO;
        note(e, rv == FL_EPROTO ? FL_EPERM : rv, fl_err_text(&err, rv));
    }
    fl_wire_joined_done(&reply);
    return true;
}

/* The operator of the server can take such a refusal back. */
static bool is_curable(enum fl_grpc_status status)
{
    return status == FL_GRPC_PERMISSION_DENIED || status == FL_GRPC_UNAUTHENTICATED ||
           status == FL_GRPC_ALREADY_EXISTS;
}

/* Which answers no other try changes before somebody cured the cause. */
static bool is_refusal(enum fl_grpc_status status)
{
    return is_curable(status) || status == FL_GRPC_INVALID_ARGUMENT ||
           status == FL_GRPC_FAILED_PRECONDITION || status == FL_GRPC_NOT_FOUND ||
           status == FL_GRPC_UNIMPLEMENTED;
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct enrol *e = ctx;
    const char *why = message != NULL && message[0] != '\0' ? message : fl_grpc_status_name(status);

    (void)call;
    if (e->rv == FL_ECLOSED) {
        e->final = !is_curable(status);
    }
    if (status == FL_GRPC_OK) {
        note(e, FL_EPERM, "the server sent no certificate");
    } else {
        note(e, is_refusal(status) ? FL_EPERM : FL_EUNAVAIL, why);
    }
    if (e->channel != NULL) {
        fl_grpc_channel_close(e->channel);
    }
}

static const struct fl_call_handler handler = {.on_message = on_message, .on_closed = on_closed};

static int encode(const struct enrol *e, struct fl_buf *out)
{
    struct fl_wire_join join = {.agent = fl_wire_lend("fl-clientd " PACKAGE_VERSION),
                                .time_ms = fl_clock_wall_ms()};
    const uint8_t *der = fl_enrolling_request(e->enrolling, &join.request.len);
    int rv = fl_str_copy(join.name, sizeof(join.name), e->setup->name);

    join.request.data = (uint8_t *)(uintptr_t)der; /* lent, it is only read */
    (void)memcpy(join.token, e->setup->invite->token, sizeof(join.token));
    rv = rv == FL_OK ? fl_wire_join_encode(&join, out) : rv;
    explicit_bzero(join.token, sizeof(join.token));
    return rv;
}

/* The server has shown that its root is the one of the line: only now it gets the token. */
static void on_up(void *ctx)
{
    struct enrol *e = ctx;
    struct fl_call *call = NULL;
    struct fl_piece piece;
    struct fl_buf buf;
    int rv;

    fl_sm_move(&e->sm, ENROL_ASKING);
    fl_buf_init(&buf, FL_WIRE_MAX_IDENTITY);
    buf.secret = true;
    rv = encode(e, &buf);
    if (rv == FL_OK) {
        rv = fl_grpc_call(e->channel, "/fl.v1.Identity/Join", CALL_MS, &handler, e, &call);
    }
    if (rv == FL_OK) {
        piece = (struct fl_piece){.data = buf.data, .len = buf.len, .secret = true};
        rv = fl_call_send(call, &piece, 1);
        fl_call_end(call);
    }
    if (rv != FL_OK) {
        note(e, rv, fl_strerror(rv));
        fl_grpc_channel_close(e->channel);
    }
    fl_buf_done(&buf);
}

static void on_down(void *ctx, int code, const char *text)
{
    struct enrol *e = ctx;

    e->channel = NULL;
    note(e, code != FL_OK ? code : FL_EUNAVAIL,
         text != NULL ? text : "the server ended the connection");
    if (e->sm.state != ENROL_OVER) { /* Else the loop is run only until this. */
        ended(e);
    } else {
        fl_loop_stop(e->setup->loop);
    }
}

static const struct fl_grpc_channel_cbs channel_cbs = {.on_up = on_up, .on_down = on_down};

/* --- a try --- */

static bool clock_is_right(struct enrol *e)
{
    struct fl_err err = {0};

    if (fl_renewing_clock(fl_wall_seconds(NULL), fl_built_seconds(), NULL, &err) == FL_OK) {
        return true;
    }
    if (!e->clock_told) {
        e->clock_told = true;
        fl_log(e->setup->log, FL_LOG_WARNING, "client", "%s", fl_err_text(&err, FL_EAGAIN));
    }
    return false;
}

static void try_once(void *arg)
{
    struct enrol *e = arg;
    const struct fl_enrol_setup *s = e->setup;
    struct fl_rpc_limits limits;
    int rv;

    fl_notify_extend(START_MS);
    if (!clock_is_right(e)) {
        fl_timer_start(e->timer, CLOCK_MS);
        return;
    }
    fl_sm_move(&e->sm, ENROL_TRYING);
    e->rv = FL_ECLOSED; /* Nothing is known yet. */
    e->final = false;
    e->err = (struct fl_err){0};
    rv = fl_enrolling_join(s->dir, s->invite, s->name, &e->enrolling, &e->err);
    e->local = rv != FL_OK;
    if (rv == FL_OK) {
        fl_rpc_limits_default(&limits);
        rv = fl_grpc_connect(
            &(struct fl_grpc_channel_setup){.loop = s->loop,
                                            .address = e->address,
                                            .limits = &limits,
                                            .timeout_ms = (uint32_t)s->connect_timeout_ms,
                                            .cbs = &channel_cbs,
                                            .ctx = e,
                                            .filter = &e->filter},
            &e->channel, &e->err);
    }
    if (rv != FL_OK) {
        e->rv = rv;
        ended(e);
    }
}

static int prepare(struct enrol *e, struct fl_err *err)
{
    const struct fl_invite *invite = e->setup->invite;
    const struct fl_tls_setup setup = {.pin = invite->pin,
                                       .federation = invite->federation,
                                       .host = invite->host,
                                       .now = fl_wall_seconds};
    int rv = fl_tls_create(&setup, &e->tls, err);

    if (rv == FL_OK) {
        e->filter = fl_tls_filter(e->tls);
        rv = fl_timer_create(e->setup->loop, try_once, e, &e->timer);
    }
    return rv;
}

/* The loop was stopped by somebody else, in the middle of it. */
static void break_off(struct enrol *e)
{
    fl_sm_move(&e->sm, ENROL_OVER);
    e->rv = fl_err_set(&e->err, FL_ECANCELED, "stopped while joining; the same line still works");
    if (e->channel != NULL) {
        fl_grpc_channel_close(e->channel);
        fl_loop_run(e->setup->loop); /* on_down() ends it. */
    }
    fl_enrolling_free(e->enrolling);
    e->enrolling = NULL;
}

int fl_enrol_run(const struct fl_enrol_setup *setup, struct fl_enrolled *ret, bool *ret_local,
                 struct fl_err *err)
{
    struct enrol e = {.setup = setup};
    uint64_t seed = 0;
    int rv = fl_random_bytes(&seed, sizeof(seed));

    (void)fl_enrol_address(setup->invite, e.address);
    fl_sm_init(&e.sm, enrol_states, ENROL_STATES, ENROL_WAITING);
    fl_rng_key(&e.rng, seed, FL_RNG_JITTER, 0, 0);
    rv = rv == FL_OK ? prepare(&e, err) : fl_err_set(err, rv, "no random bytes for waits");
    if (rv == FL_OK) {
        fl_timer_start(e.timer, 0);
        fl_loop_run(setup->loop);
        if (e.sm.state != ENROL_OVER) {
            break_off(&e);
        }
        rv = e.rv;
        if (err != NULL) {
            *err = e.err;
        }
    }
    fl_timer_close(e.timer);
    fl_tls_unref(e.tls);
    *ret_local = e.local;
    if (rv == FL_OK) {
        *ret = e.enrolled;
    } else {
        fl_enrolled_done(&e.enrolled);
    }
    return rv;
}
