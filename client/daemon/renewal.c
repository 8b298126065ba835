/*
 * Renews the certificate of this client over the open connection, loads certificate files that an
 * operator replaced, and delays connecting while this host's clock is wrong. Runs on the loop,
 * driven by one timer. It does not decide when a certificate is due
 * (client/identity/cert_renewal.c).
 */

#include "client/daemon/renewal.h"

#include <stdlib.h>

#include "client/identity/cert_renewal.h"
#include "client/identity/enrolling.h"
#include "client/work/worker.h"
#include "libfl/base/clock.h"
#include "libfl/pki/when.h"
#include "libfl/wire/wire_identity.h"

/* Poll interval for changed files and clock jumps. */
#define LOOK_MS 2000
/* Poll interval while the clock of this host is not set. */
#define CLOCK_MS 1000
/* The wall clock was set when it moves against the monotonic clock by more than this. */
#define SET_MS 30000
/* Timeout of a Renew call; the client retries after it. */
#define CALL_MS 60000

struct fl_renewal {
    struct fl_loop *loop;
    const struct fl_log *log;
    struct fl_client_credentials *credentials; /* NULL: plaintext */
    struct fl_connection *connection;
    struct fl_session_shell *shell;
    struct fl_timer *timer;
    uint64_t look_ms; /* next check of the files; retries do not delay it */
    bool stopped;

    bool waits_for_clock; /* connecting is delayed */
    bool up;              /* a channel is up */
    bool renew_only;      /* the channel is for renewal only */
    int64_t offset_ms;    /* wall clock minus monotonic clock */

    /* The pending request: both or none. */
    struct fl_enrolling *enrolling;
    struct fl_call *call;
    bool answered; /* the reply was processed */
    unsigned failures;
    uint64_t not_before_ms; /* monotonic time of the next attempt */
};

static const struct fl_identity *renewal_identity(const struct fl_renewal *r)
{
    return &fl_credentials_identity(r->credentials)->who;
}

static int64_t wall_ms(void)
{
    return (int64_t)fl_clock_wall_ms();
}

static bool renewal_is_expired(const struct fl_renewal *r)
{
    return wall_ms() / 1000 > renewal_identity(r)->not_after;
}

static void renewal_set_timer(struct fl_renewal *r);

/* --- results --- */

static void renewal_drop_request(struct fl_renewal *r)
{
    fl_enrolling_free(r->enrolling);
    r->enrolling = NULL;
}

static void renewal_failed(struct fl_renewal *r, const char *why)
{
    char span[FL_WHEN_TEXT];
    uint64_t pause;

    r->failures++;
    pause = fl_renewing_pause_ms(renewal_identity(r), r->failures, wall_ms());
    r->not_before_ms = fl_clock_ms() + pause;
    fl_log_peer(r->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                "certificate renewal failed, retrying in %s: %s",
                fl_span_text(span, sizeof(span), (int64_t)(pause / 1000)), why);
    renewal_set_timer(r);
}

/* The next connection uses the new certificate; this one continues. */
static void renewal_succeeded(struct fl_renewal *r)
{
    char when[FL_WHEN_TEXT];
    struct fl_err err = {0};
    int rv;

    r->failures = 0;
    rv = fl_credentials_read(r->credentials, &err);
    if (rv != FL_OK) {
        renewal_failed(r, fl_err_text(&err, rv));
        return;
    }
    fl_log(r->log, FL_LOG_NOTICE, "client", "certificate renewed: name=%s until=%s",
           renewal_identity(r)->name,
           fl_when_text(when, sizeof(when), renewal_identity(r)->not_after));
    /*
     * A new certificate that is due at once comes from wrong durations on the server or a wrong
     * clock: do not loop.
     */
    r->not_before_ms = fl_clock_ms() + CLOCK_MS;
    renewal_set_timer(r);
}

static void renewal_log_clocks(const struct fl_renewal *r, uint64_t time_ms)
{
    char text[FL_CLOCKS_TEXT];

    if (fl_clocks_text(text, wall_ms(), "server", time_ms) != NULL) {
        fl_log_reason(r->log, FL_LOG_WARNING, "client", FL_WORK_SERVER, "clocks", "%s", text);
    }
}

/* --- the call --- */

static bool renewal_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_renewal *r = ctx;
    struct fl_wire_renewed reply = {.time_ms = 0};
    struct fl_err err = {0};
    int rv;

    (void)call;
    if (r->answered || r->enrolling == NULL) {
        return true;
    }
    r->answered = true;
    rv = fl_wire_renewed_decode(data, len, &reply, &err);
    if (rv != FL_OK) {
        goto done;
    }
    renewal_log_clocks(r, reply.time_ms);
    rv = fl_enrolling_done(
        r->enrolling,
        &(struct fl_enrolling_reply){&reply.chain, &reply.roots, (int64_t)(reply.time_ms / 1000)},
        wall_ms() / 1000, NULL, &err);
done:
    fl_wire_renewed_done(&reply);
    renewal_drop_request(r);
    if (rv != FL_OK) {
        renewal_failed(r, fl_err_text(&err, rv));
    } else {
        renewal_succeeded(r);
    }
    return true;
}

static bool renewal_is_refusal(enum fl_grpc_status status)
{
    return status == FL_GRPC_PERMISSION_DENIED || status == FL_GRPC_UNAUTHENTICATED ||
           status == FL_GRPC_UNIMPLEMENTED || status == FL_GRPC_FAILED_PRECONDITION ||
           status == FL_GRPC_INVALID_ARGUMENT;
}

/* The certificate expired and was not renewed: the session waits as after a refusal. */
static void renewal_refused(struct fl_renewal *r, const char *why)
{
    struct fl_err text = {0};
    char expired[FL_ERR_BUF_SIZE];

    (void)fl_err_set(&text, FL_EPERM, "%s; %s",
                     fl_credentials_over(r->credentials, expired, sizeof(expired)), why);
    fl_log(r->log, FL_LOG_ERROR, "client", "%s", text.msg);
    fl_session_shell_failed(r->shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0},
                            FL_FAULT_LASTING, text.msg);
}

static void renewal_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                              const char *message)
{
    struct fl_renewal *r = ctx;
    const char *why = message != NULL && message[0] != '\0' ? message : fl_grpc_status_name(status);

    (void)call;
    r->call = NULL;
    if (r->stopped) {
        renewal_drop_request(r);
        return;
    }
    if (r->enrolling != NULL) { /* No reply arrived. */
        renewal_drop_request(r);
        renewal_failed(r, status == FL_GRPC_OK ? "the server sent no certificate" : why);
        if (r->renew_only && renewal_is_refusal(status)) {
            renewal_refused(r, why);
        }
    }
    if (r->renew_only) {
        fl_connection_close(r->connection);
    }
}

static const struct fl_call_handler handler = {.on_message = renewal_on_message,
                                               .on_closed = renewal_on_closed};

static int renewal_send(struct fl_renewal *r)
{
    struct fl_wire_renew request = {.time_ms = (uint64_t)wall_ms()};
    struct fl_piece piece;
    struct fl_buf buf;
    const uint8_t *der = fl_enrolling_request(r->enrolling, &request.request.len);
    int rv;

    request.request.data = (uint8_t *)(uintptr_t)der; /* borrowed, only read */
    fl_buf_init(&buf, FL_WIRE_MAX_IDENTITY);
    rv = fl_wire_renew_encode(&request, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_connection_call(r->connection, "/fl.v1.Identity/Renew", CALL_MS, &handler, r, &r->call);
    if (rv != FL_OK) {
        goto done;
    }
    piece = (struct fl_piece){.data = buf.data, .len = buf.len};
    rv = fl_call_send(r->call, &piece, 1);
    fl_call_end(r->call);
    if (rv != FL_OK) { /* renewal_on_closed() reports it. */
        fl_call_cancel(r->call);
        rv = FL_OK;
    }
done:
    fl_buf_done(&buf);
    return rv;
}

static void renewal_begin(struct fl_renewal *r)
{
    struct fl_err err = {0};
    int rv;

    if (r->call != NULL) {
        return;
    }
    r->answered = false;
    rv = fl_enrolling_renew(fl_credentials_folder(r->credentials),
                            fl_credentials_identity(r->credentials), &r->enrolling, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = renewal_send(r);
done:
    if (rv != FL_OK) {
        renewal_drop_request(r);
        renewal_failed(r, fl_err_text(&err, rv));
        if (r->renew_only) {
            fl_connection_close(r->connection);
        }
    }
}

/* --- the timer --- */

static bool renewal_is_due(const struct fl_renewal *r)
{
    return fl_credentials_identity(r->credentials)->ours &&
           wall_ms() >= fl_renewing_due_ms(renewal_identity(r)) &&
           fl_clock_ms() >= r->not_before_ms;
}

static void renewal_set_timer(struct fl_renewal *r)
{
    int64_t left = fl_renewing_due_ms(renewal_identity(r)) - wall_ms();
    uint64_t now = fl_clock_ms();
    uint64_t delay = r->look_ms > now ? r->look_ms - now : 0;

    if (r->waits_for_clock && delay > CLOCK_MS) {
        delay = CLOCK_MS;
    }
    if (left < (int64_t)delay && fl_credentials_identity(r->credentials)->ours) {
        uint64_t due = now + (uint64_t)(left > 0 ? left : 0);

        due = due > r->not_before_ms ? due : r->not_before_ms;
        /* A renewal that is due but waits for a connection must not make the timer spin. */
        delay = due > now && due - now < delay ? due - now : delay;
    }
    fl_timer_start(r->timer, delay);
}

/* Detects that the clock was set: a certificate refused by the old time may be valid now. */
static bool clock_was_set(struct fl_renewal *r)
{
    int64_t offset = wall_ms() - (int64_t)fl_clock_ms();
    int64_t moved = offset - r->offset_ms;
    char span[FL_WHEN_TEXT];

    r->offset_ms = offset;
    if (moved < SET_MS && moved > -SET_MS) {
        return false;
    }
    fl_log(r->log, FL_LOG_NOTICE, "client", "the clock of this host was set %s by %s",
           moved > 0 ? "forward" : "back",
           fl_span_text(span, sizeof(span), (moved < 0 ? -moved : moved) / 1000));
    return true;
}

static void renewal_retry_session(struct fl_renewal *r)
{
    fl_session_shell_key(r->shell, FL_CEV_RETRY, (struct fl_round_key){0});
}

/* Opens the connection that the session waits for, once the clock is right. */
static void renewal_connect(struct fl_renewal *r)
{
    struct fl_err err = {0};
    int rv;

    if (!fl_renewal_may_connect(r)) {
        return;
    }
    rv = fl_connection_open(r->connection, &err);
    if (rv != FL_OK) {
        fl_session_shell_ended(r->shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0}, rv,
                               fl_err_text(&err, rv));
    }
}

static void renewal_on_timer(void *arg)
{
    struct fl_renewal *r = arg;
    bool set = clock_was_set(r);
    char when[FL_WHEN_TEXT];

    r->look_ms = fl_clock_ms() + LOOK_MS;
    if (r->waits_for_clock) {
        renewal_connect(r);
    }
    if (r->call == NULL && fl_credentials_look(r->credentials)) {
        fl_log(r->log, FL_LOG_NOTICE, "client", "certificate loaded: name=%s until=%s",
               renewal_identity(r)->name,
               fl_when_text(when, sizeof(when), renewal_identity(r)->not_after));
        r->failures = 0;
        set = true;
    }
    if (set) {
        renewal_retry_session(r);
    }
    if (r->up && renewal_is_due(r)) {
        renewal_begin(r);
    }
    if (!r->stopped) {
        renewal_set_timer(r);
    }
}

/* --- called by other parts --- */

bool fl_renewal_may_connect(struct fl_renewal *r)
{
    struct fl_err err = {0};
    bool waited = r->waits_for_clock;

    if (r->credentials == NULL || fl_credentials_clock(r->credentials, &err) == FL_OK) {
        if (waited) {
            fl_log(r->log, FL_LOG_NOTICE, "client", "the clock of this host is set, connecting");
        }
        r->waits_for_clock = false;
        return true;
    }
    if (!waited) {
        fl_log(r->log, FL_LOG_WARNING, "client", "%s", fl_err_text(&err, FL_EAGAIN));
    }
    r->waits_for_clock = true;
    if (!waited) {
        renewal_set_timer(r);
    }
    return false;
}

bool fl_renewal_up(struct fl_renewal *r)
{
    if (r->credentials == NULL) {
        return true;
    }
    r->up = true;
    r->renew_only = renewal_is_expired(r) && fl_credentials_identity(r->credentials)->ours;
    if (r->renew_only) {
        fl_log(r->log, FL_LOG_NOTICE, "client", "certificate expired: renewing it first");
        renewal_begin(r);
    } else if (renewal_is_due(r)) {
        renewal_begin(r);
    }
    return !r->renew_only;
}

void fl_renewal_down(struct fl_renewal *r, bool refused)
{
    char expired[FL_ERR_BUF_SIZE];

    r->up = false;
    r->renew_only = false;
    if (refused && r->credentials != NULL &&
        fl_credentials_over(r->credentials, expired, sizeof(expired))[0] != '\0')
    {
        fl_log_peer(r->log, FL_LOG_ERROR, "client", FL_WORK_SERVER, "%s", expired);
    }
}

int fl_renewal_reload(struct fl_renewal *r, struct fl_err *err)
{
    int rv;

    if (r->credentials == NULL || r->call != NULL) { /* The pending reply brings newer files. */
        return FL_OK;
    }
    rv = fl_credentials_read(r->credentials, err);
    if (rv != FL_OK) {
        return rv;
    }
    renewal_retry_session(r);
    return FL_OK;
}

int fl_renewal_create(struct fl_loop *loop, const struct fl_log *log,
                      struct fl_client_credentials *credentials, struct fl_connection *connection,
                      struct fl_session_shell *shell, struct fl_renewal **ret)
{
    struct fl_renewal *r = calloc(1, sizeof(*r));
    int rv = FL_OK;

    if (r == NULL) {
        return FL_ENOMEM;
    }
    *r = (struct fl_renewal){.loop = loop,
                             .log = log,
                             .credentials = credentials,
                             .connection = connection,
                             .shell = shell,
                             .look_ms = fl_clock_ms() + LOOK_MS,
                             .offset_ms = wall_ms() - (int64_t)fl_clock_ms()};
    if (credentials != NULL) {
        rv = fl_timer_create(loop, renewal_on_timer, r, &r->timer);
    }
    if (rv != FL_OK) {
        free(r);
        return rv;
    }
    if (credentials != NULL) {
        renewal_set_timer(r);
    }
    *ret = r;
    return FL_OK;
}

void fl_renewal_stop(struct fl_renewal *r)
{
    if (r == NULL || r->stopped) {
        return;
    }
    r->stopped = true;
    fl_timer_close(r->timer);
}

void fl_renewal_free(struct fl_renewal *r)
{
    if (r == NULL) {
        return;
    }
    fl_renewal_stop(r);
    renewal_drop_request(r);
    free(r);
}
