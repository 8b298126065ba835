/*
 * Joins a federation by an invitation: connects, lets the server prove its root, sends the token,
 * and installs the certificate from the reply; retries after failures. Runs the given loop until it
 * ends. It neither reads invitations (invitation_file.c) nor writes identity files itself
 * (client/identity/enrolling.c).
 */

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

/* Start timeout of the service manager (EXTEND_TIMEOUT_USEC), renewed with each attempt. */
#define START_MS 600000
/* Timeout of a Join call; the client retries after it. */
#define CALL_MS 60000
/*
 * The same refusal is logged once per SAME_REFUSAL_MS; a refusal with another reason than the last
 * logged one, once per OTHER_REFUSAL_MS.
 */
#define SAME_REFUSAL_MS  UINT64_C(86400000)
#define OTHER_REFUSAL_MS UINT64_C(3600000)
/* Poll interval while the clock of this host is not set. */
#define CLOCK_MS 1000

/*
 *            timer        channel up     reply
 *   WAITING ------> TRYING -------> ASKING -----> OVER
 *      ^              |               |            ^
 *      +--------------+---------------+            |
 *      lost, refused                  +------------+ permanently refused, attempts used up
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
    size_t at; /* the address that is tried */
    char address[FL_ENROL_ADDRESS_MAX];
    int skipped_rv; /* why an earlier address of this attempt is worth another attempt; FL_OK: no */
    struct fl_err skipped;
    struct fl_tls *tls;
    struct fl_stream_filter filter;
    struct fl_timer *timer;
    struct fl_grpc_channel *channel; /* NULL: none */
    struct fl_enrolling *enrolling;  /* of this attempt */
    bool clock_logged;
    unsigned failures;
    struct fl_rng rng;             /* jitter of the pauses after refusals */
    char refusal[FL_ERR_BUF_SIZE]; /* the last logged reason; "": none */
    uint64_t refusal_ms;           /* monotonic time of that log line */

    /* The result of this attempt until its channel is closed, then of the whole enrolment. */
    int rv;
    bool local;
    bool final; /* with FL_EPERM: needs a new invitation, nothing on the server helps */
    struct fl_err err;
    struct fl_enrolled enrolled;
};

const char *fl_enrol_address(const struct fl_invite_address *address,
                             char out[FL_ENROL_ADDRESS_MAX])
{
    bool v6 = strchr(address->host, ':') != NULL;

    (void)snprintf(out, FL_ENROL_ADDRESS_MAX, "%s%s%s:%u", v6 ? "[" : "", address->host,
                   v6 ? "]" : "", (unsigned)address->port);
    return out;
}

void fl_enrolled_done(struct fl_enrolled *enrolled)
{
    fl_wire_labels_done(&enrolled->labels);
    *enrolled = (struct fl_enrolled){.labels = {NULL}};
}

/* --- the end of an attempt --- */

static void enrol_finish(struct enrol *e)
{
    fl_sm_move(&e->sm, ENROL_OVER);
    fl_loop_stop(e->setup->loop);
}

/*
 * As a session after a refusal (client/core/session.c): a refusal that an operator or a correct
 * clock can resolve is retried within the longest pause of a lost connection, one that needs a new
 * invitation rarely. Jitter spreads hosts that started together. `*ret_most`: the longest possible
 * pause.
 */
static uint64_t refused_wait(struct enrol *e, uint64_t *ret_most)
{
    uint64_t rare = e->setup->refused_ms;
    uint64_t soon = e->setup->longest_ms < rare ? e->setup->longest_ms : rare;
    uint64_t most = e->final ? rare + rare / 5 : soon;

    *ret_most = most;
    return most - fl_rng_below(&e->rng, (e->final ? rare : soon) / 5 + 1);
}

/*
 * An unattended host keeps retrying; the pauses and the rate limit of the log keep the load on
 * server and log low.
 */
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
               "joining at '%s' was refused, retrying within %" PRIu64
               " s (the same refusal is logged once a day): %s; %s",
               e->address, (most + 999) / 1000, why,
               e->final ? "replace the invitation by a new one, then restart this client"
                        : "this client joins automatically once that is corrected");
        (void)snprintf(e->refusal, sizeof(e->refusal), "%s", why);
        e->refusal_ms = now;
    }
    (void)snprintf(text, sizeof(text),
                   "joining at %s was refused, retrying within %" PRIu64 " s: %s", e->address,
                   (most + 999) / 1000, why);
    fl_notify_status(text);
    fl_notify_extend(START_MS + pause);
    fl_sm_move(&e->sm, ENROL_WAITING);
    fl_timer_start(e->timer, pause);
}

/*
 * No server with the right root was at this address: false when there is another one, which is
 * tried at once. Then the errors of all decide: one that may pass is worth another attempt, also
 * when a foreign server is at the last address.
 */
static bool enrol_was_last(struct enrol *e)
{
    const struct fl_invite *invite = e->setup->invite;

    if (e->rv == FL_OK || e->local || e->sm.state != ENROL_TRYING) {
        e->at = 0; /* The server has answered, or no server can help. */
        e->skipped_rv = FL_OK;
        return true;
    }
    if (e->at + 1 < invite->n_addresses) {
        if (e->rv != FL_EPERM) {
            e->skipped_rv = e->rv;
            e->skipped = e->err;
        }
        e->at++;
        fl_sm_move(&e->sm, ENROL_WAITING);
        fl_log(e->setup->log, FL_LOG_WARNING, "client",
               "joining at '%s' failed: %s; trying the next address of the invitation", e->address,
               fl_err_text(&e->err, e->rv));
        fl_timer_start(e->timer, 0);
        return false;
    }
    if (e->rv == FL_EPERM && e->skipped_rv != FL_OK) {
        e->rv = e->skipped_rv;
        e->err = e->skipped;
    }
    e->at = 0;
    e->skipped_rv = FL_OK;
    return true;
}

/* An attempt ended with `rv`, `local` and `err`: finish, or schedule the next attempt. */
static void enrol_attempt_ended(struct enrol *e)
{
    const struct fl_backoff waits = {
        .first_ms = e->setup->first_ms, .cap_ms = e->setup->longest_ms, .factor = 2};
    uint64_t pause;
    bool last;

    fl_enrolling_free(e->enrolling);
    e->enrolling = NULL;
    if (!enrol_was_last(e)) {
        return;
    }
    e->failures++;
    last = e->setup->tries != 0 && e->failures >= e->setup->tries;
    if (e->rv == FL_EPERM && !e->local && e->setup->refused_ms > 0) {
        wait_refused(e);
        return;
    }
    if (e->rv == FL_OK || e->rv == FL_EPERM || last) {
        enrol_finish(e);
        return;
    }
    pause = fl_backoff_base(&waits, e->failures);
    fl_sm_move(&e->sm, ENROL_WAITING);
    fl_log(e->setup->log, FL_LOG_WARNING, "client",
           "joining at '%s' failed, retrying in %" PRIu64 " s: %s", e->address,
           (pause + 999) / 1000, fl_err_text(&e->err, e->rv));
    fl_timer_start(e->timer, pause);
}

/* Records the result of the attempt; the first one counts. */
static void enrol_note_result(struct enrol *e, int rv, const char *text)
{
    if (e->rv == FL_ECLOSED) {
        e->rv = fl_err_set(&e->err, rv, "%s", text);
    }
}

/* --- the call --- */

static bool enrol_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct enrol *e = ctx;
    struct fl_wire_joined reply = {.time_ms = 0};
    char clocks[FL_CLOCKS_TEXT];
    struct fl_err err = {0};
    int rv;

    (void)call;
    if (e->rv != FL_ECLOSED) {
        return true;
    }
    rv = fl_wire_joined_decode(data, len, &reply, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_enrolling_done(
        e->enrolling,
        &(struct fl_enrolling_reply){&reply.chain, &reply.roots, (int64_t)(reply.time_ms / 1000)},
        (int64_t)(fl_clock_wall_ms() / 1000), &e->enrolled.who, &err);
    e->local = rv != FL_OK && rv != FL_EPROTO && rv != FL_EAGAIN;
    if (rv != FL_OK) {
        goto done;
    }
    e->rv = FL_OK;
    if (fl_clocks_text(clocks, (int64_t)fl_clock_wall_ms(), "server", reply.time_ms) != NULL) {
        fl_log(e->setup->log, FL_LOG_WARNING, "client", "%s", clocks);
    }
    fl_wire_labels_done(&e->enrolled.labels);
    e->enrolled.labels = reply.labels;
    reply.labels = (struct fl_wire_labels){NULL};
done:
    if (rv != FL_OK) {
        e->final = rv == FL_EPROTO;
        enrol_note_result(e, rv == FL_EPROTO ? FL_EPERM : rv, fl_err_text(&err, rv));
    }
    fl_wire_joined_done(&reply);
    return true;
}

/* Refusals that the operator of the server can revert. */
static bool is_curable(enum fl_grpc_status status)
{
    return status == FL_GRPC_PERMISSION_DENIED || status == FL_GRPC_UNAUTHENTICATED ||
           status == FL_GRPC_ALREADY_EXISTS;
}

/* Statuses that a retry does not change before an operator resolved the cause. */
static bool enrol_is_refusal(enum fl_grpc_status status)
{
    return is_curable(status) || status == FL_GRPC_INVALID_ARGUMENT ||
           status == FL_GRPC_FAILED_PRECONDITION || status == FL_GRPC_NOT_FOUND ||
           status == FL_GRPC_UNIMPLEMENTED;
}

static void enrol_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                            const char *message)
{
    struct enrol *e = ctx;
    const char *why = message != NULL && message[0] != '\0' ? message : fl_grpc_status_name(status);

    (void)call;
    if (e->rv == FL_ECLOSED) {
        e->final = !is_curable(status);
    }
    if (status == FL_GRPC_OK) {
        enrol_note_result(e, FL_EPERM, "the server sent no certificate");
    } else {
        enrol_note_result(e, enrol_is_refusal(status) ? FL_EPERM : FL_EUNAVAIL, why);
    }
    if (e->channel != NULL) {
        fl_grpc_channel_close(e->channel);
    }
}

static const struct fl_call_handler handler = {.on_message = enrol_on_message,
                                               .on_closed = enrol_on_closed};

static int enrol_encode_join(const struct enrol *e, struct fl_buf *out)
{
    struct fl_wire_join join = {.agent = fl_wire_lend("fl-clientd " PACKAGE_VERSION),
                                .time_ms = fl_clock_wall_ms()};
    const uint8_t *der = fl_enrolling_request(e->enrolling, &join.request.len);
    int rv = fl_str_copy(join.name, sizeof(join.name), e->setup->name);

    join.request.data = (uint8_t *)(uintptr_t)der; /* borrowed, only read */
    (void)memcpy(join.token, e->setup->invite->token, sizeof(join.token));
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_wire_join_encode(&join, out);
done:
    explicit_bzero(join.token, sizeof(join.token));
    return rv;
}

/*
 * The server has proved that its root is the one of the invitation: only now it receives the token.
 */
static void enrol_on_up(void *ctx)
{
    struct enrol *e = ctx;
    struct fl_call *call = NULL;
    struct fl_piece piece;
    struct fl_buf buf;
    int rv;

    fl_sm_move(&e->sm, ENROL_ASKING);
    fl_buf_init(&buf, FL_WIRE_MAX_IDENTITY);
    buf.secret = true;
    rv = enrol_encode_join(e, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_grpc_call(e->channel, "/fl.v1.Identity/Join", CALL_MS, &handler, e, &call);
    if (rv != FL_OK) {
        goto done;
    }
    piece = (struct fl_piece){.data = buf.data, .len = buf.len, .secret = true};
    rv = fl_call_send(call, &piece, 1);
    fl_call_end(call);
done:
    if (rv != FL_OK) {
        enrol_note_result(e, rv, fl_strerror(rv));
        fl_grpc_channel_close(e->channel);
    }
    fl_buf_done(&buf);
}

static void enrol_on_down(void *ctx, int code, const char *text)
{
    struct enrol *e = ctx;

    e->channel = NULL;
    enrol_note_result(e, code != FL_OK ? code : FL_EUNAVAIL,
                      text != NULL ? text : "the server ended the connection");
    if (e->sm.state != ENROL_OVER) { /* Else enrol_break_off() runs the loop only until this. */
        enrol_attempt_ended(e);
    } else {
        fl_loop_stop(e->setup->loop);
    }
}

static const struct fl_grpc_channel_cbs channel_cbs = {.on_up = enrol_on_up,
                                                       .on_down = enrol_on_down};

/* --- an attempt --- */

static bool clock_is_right(struct enrol *e)
{
    struct fl_err err = {0};

    if (fl_renewing_clock(fl_wall_seconds(NULL), fl_built_seconds(), NULL, &err) == FL_OK) {
        return true;
    }
    if (!e->clock_logged) {
        e->clock_logged = true;
        fl_log(e->setup->log, FL_LOG_WARNING, "client", "%s", fl_err_text(&err, FL_EAGAIN));
    }
    return false;
}

/* The address whose turn it is; the server there proves that it has the host's name. */
static int enrol_choose_address(struct enrol *e)
{
    const struct fl_invite *invite = e->setup->invite;
    const struct fl_invite_address *address = &invite->addresses[e->at];
    const struct fl_tls_setup setup = {.pin = invite->pin,
                                       .federation = invite->federation,
                                       .host = address->host,
                                       .now = fl_wall_seconds};
    int rv;

    fl_tls_unref(e->tls);
    e->tls = NULL;
    rv = fl_tls_create(&setup, &e->tls, &e->err);
    if (rv != FL_OK) {
        return rv;
    }
    e->filter = fl_tls_filter(e->tls);
    (void)fl_enrol_address(address, e->address);
    return FL_OK;
}

static void enrol_attempt(void *arg)
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
    e->rv = FL_ECLOSED; /* No result yet. */
    e->final = false;
    e->err = (struct fl_err){0};
    rv = fl_enrolling_join(s->dir, s->invite, s->name, &e->enrolling, &e->err);
    e->local = rv != FL_OK;
    if (rv != FL_OK) {
        goto done;
    }
    rv = enrol_choose_address(e);
    if (rv != FL_OK) {
        goto done;
    }
    fl_rpc_limits_default(&limits);
    rv = fl_grpc_connect(
        &(struct fl_grpc_channel_setup){.loop = s->loop,
                                        .address = e->address,
                                        .limits = &limits,
                                        .timeout_ms = (uint32_t)s->connect_timeout_ms,
                                        .ping_after_ms = (uint32_t)s->ping_after_ms,
                                        .ping_limit_ms = (uint32_t)s->ping_limit_ms,
                                        .cbs = &channel_cbs,
                                        .ctx = e,
                                        .filter = &e->filter,
                                        .proxy = s->proxy},
        &e->channel, &e->err);
done:
    if (rv != FL_OK) {
        e->rv = rv;
        enrol_attempt_ended(e);
    }
}

/* The loop was stopped from outside during enrolment. */
static void enrol_break_off(struct enrol *e)
{
    fl_sm_move(&e->sm, ENROL_OVER);
    e->rv = fl_err_set(&e->err, FL_ECANCELED,
                       "stopped while joining; the same invitation can still be used");
    if (e->channel != NULL) {
        fl_grpc_channel_close(e->channel);
        fl_loop_run(e->setup->loop); /* enrol_on_down() stops the loop. */
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

    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "cannot read random bytes for the pauses");
        goto done;
    }
    fl_sm_init(&e.sm, enrol_states, ENROL_STATES, ENROL_WAITING);
    fl_rng_key(&e.rng, seed, FL_RNG_JITTER, 0, 0);
    rv = fl_timer_create(setup->loop, enrol_attempt, &e, &e.timer);
    if (rv != FL_OK) {
        goto done;
    }
    fl_timer_start(e.timer, 0);
    fl_loop_run(setup->loop);
    if (e.sm.state != ENROL_OVER) {
        enrol_break_off(&e);
    }
    rv = e.rv;
    if (err != NULL) {
        *err = e.err;
    }
done:
    fl_timer_close(e.timer);
    fl_tls_unref(e.tls);
    *ret_local = e.local;
    if (rv != FL_OK) {
        fl_enrolled_done(&e.enrolled);
        return rv;
    }
    *ret = e.enrolled;
    return FL_OK;
}
