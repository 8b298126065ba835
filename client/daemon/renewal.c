#include "client/daemon/renewal.h"

#include <stdlib.h>

#include "client/daemon/session_clock.h"
#include "client/identity/cert_renewal.h"
#include "client/identity/enrolling.h"
#include "client/work/worker.h"
#include "libfl/base/clock.h"
#include "libfl/pki/when.h"
#include "libfl/wire/wire_identity.h"

/* Files are looked at, and the clock is compared, this often. */
#define LOOK_MS 2000
/* A clock that waits to be set is looked at this often. */
#define CLOCK_MS 1000
/* The wall clock runs away from the monotonic one by more than that: somebody set it. */
#define SET_MS 30000
/* A server that takes longer is asked again. */
#define CALL_MS 60000

struct fl_renewal {
    struct fl_loop *loop;
    const struct fl_log *log;
    struct fl_client_credentials *credentials; /* NULL: plaintext */
    struct fl_connection *connection;
    struct fl_stepper *stepper;
    struct fl_timer *timer;
    uint64_t look_ms; /* when the files are looked at next; retries do not put it off */
    bool stopped;

    bool waits_for_clock; /* with connecting */
    bool up;              /* a channel stands */
    bool only;            /* which is for renewing alone */
    int64_t offset_ms;    /* wall clock less monotonic */

    /* Under way: both or none. */
    struct fl_enrolling *enrolling;
    struct fl_call *call;
    bool answered; /* the reply was taken */
    unsigned failures;
    uint64_t not_before_ms; /* monotonic: no try before */
};

static const struct fl_identity *who(const struct fl_renewal *r)
{
    return &fl_credentials_identity(r->credentials)->who;
}

static int64_t wall_ms(void)
{
    return (int64_t)fl_clock_wall_ms();
}

static bool is_over(const struct fl_renewal *r)
{
    return wall_ms() / 1000 > who(r)->not_after;
}

static void set_timer(struct fl_renewal *r);

/* --- how it went --- */

static void give_up(struct fl_renewal *r)
{
    fl_enrolling_free(r->enrolling);
    r->enrolling = NULL;
}

static void failed(struct fl_renewal *r, const char *why)
{
    char span[FL_WHEN_TEXT];
    uint64_t pause;

    r->failures++;
    pause = fl_renewing_pause_ms(who(r), r->failures, wall_ms());
    r->not_before_ms = fl_clock_ms() + pause;
    fl_log_peer(r->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                "the certificate could not be renewed, trying again in %s: %s",
                fl_span_text(span, sizeof(span), (int64_t)(pause / 1000)), why);
    set_timer(r);
}

/* The next session shows it, and this one goes on. */
static void renewed(struct fl_renewal *r)
{
    char when[FL_WHEN_TEXT];
    struct fl_err err = {0};
    int rv;

    r->failures = 0;
    rv = fl_credentials_read(r->credentials, &err);
    if (rv != FL_OK) {
        failed(r, fl_err_text(&err, rv));
        return;
    }
    fl_log(r->log, FL_LOG_NOTICE, "client", "certificate renewed: name=%s until=%s", who(r)->name,
           fl_when_text(when, sizeof(when), who(r)->not_after));
    /* One that is due again at once is of a server whose durations make no sense, or of a clock. */
    r->not_before_ms = fl_clock_ms() + CLOCK_MS;
    set_timer(r);
}

static void tell_difference(const struct fl_renewal *r, uint64_t time_ms)
{
    int64_t ours = wall_ms();
    int64_t ahead = ours - (int64_t)time_ms;
    char a[FL_WHEN_TEXT];
    char b[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];

    if (time_ms == 0 || (ahead < SET_MS * 2 && ahead > -SET_MS * 2)) {
        return;
    }
    fl_log_peer(r->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                "the clocks differ by %s: this host says %s, the server %s",
                fl_span_text(span, sizeof(span), (ahead < 0 ? -ahead : ahead) / 1000),
                fl_when_text(a, sizeof(a), ours / 1000),
                fl_when_text(b, sizeof(b), (int64_t)(time_ms / 1000)));
}

/* --- the call --- */

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
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
    if (rv == FL_OK) {
        tell_difference(r, reply.time_ms);
        rv = fl_enrolling_done(r->enrolling,
                               &(struct fl_enrolling_reply){&reply.chain, &reply.roots,
                                                            (int64_t)(reply.time_ms / 1000)},
                               wall_ms() / 1000, NULL, &err);
    }
    fl_wire_renewed_done(&reply);
    give_up(r);
    if (rv == FL_OK) {
        renewed(r);
    } else {
        failed(r, fl_err_text(&err, rv));
    }
    return true;
}

static bool is_refusal(enum fl_grpc_status status)
{
    return status == FL_GRPC_PERMISSION_DENIED || status == FL_GRPC_UNAUTHENTICATED ||
           status == FL_GRPC_UNIMPLEMENTED || status == FL_GRPC_FAILED_PRECONDITION ||
           status == FL_GRPC_INVALID_ARGUMENT;
}

/* Neither renewed nor let in: the session waits as after a refusal. */
static void refused(struct fl_renewal *r, const char *why)
{
    struct fl_session_event event = {.type = FL_CEV_DISCONNECTED};
    struct fl_err text = {0};
    char over[FL_ERR_BUF_SIZE];

    (void)fl_err_set(&text, FL_EPERM, "%s; %s",
                     fl_credentials_over(r->credentials, over, sizeof(over)), why);
    fl_log(r->log, FL_LOG_ERROR, "client", "%s", text.msg);
    event.u.failed.permanent = true;
    event.u.failed.reason = text.msg;
    fl_stepper_step(r->stepper, &event);
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct fl_renewal *r = ctx;
    const char *why = message != NULL && message[0] != '\0' ? message : fl_grpc_status_name(status);

    (void)call;
    r->call = NULL;
    if (r->stopped) {
        give_up(r);
        return;
    }
    if (r->enrolling != NULL) { /* Nothing was answered. */
        give_up(r);
        failed(r, status == FL_GRPC_OK ? "the server sent no certificate" : why);
        if (r->only && is_refusal(status)) {
            refused(r, why);
        }
    }
    if (r->only) {
        fl_connection_close(r->connection);
    }
}

static const struct fl_call_handler handler = {.on_message = on_message, .on_closed = on_closed};

static int send(struct fl_renewal *r)
{
    struct fl_wire_renew request = {.time_ms = (uint64_t)wall_ms()};
    struct fl_piece piece;
    struct fl_buf buf;
    const uint8_t *der = fl_enrolling_request(r->enrolling, &request.request.len);
    int rv;

    request.request.data = (uint8_t *)(uintptr_t)der; /* lent, it is only read */
    fl_buf_init(&buf, FL_WIRE_MAX_IDENTITY);
    rv = fl_wire_renew_encode(&request, &buf);
    if (rv == FL_OK) {
        rv = fl_connection_call(r->connection, "/fl.v1.Identity/Renew", CALL_MS, &handler, r,
                                &r->call);
    }
    if (rv == FL_OK) {
        piece = (struct fl_piece){.data = buf.data, .len = buf.len};
        rv = fl_call_send(r->call, &piece, 1);
        fl_call_end(r->call);
        if (rv != FL_OK) { /* on_closed says so. */
            fl_call_cancel(r->call);
            rv = FL_OK;
        }
    }
    fl_buf_done(&buf);
    return rv;
}

static void begin(struct fl_renewal *r)
{
    struct fl_err err = {0};
    int rv;

    if (r->call != NULL) {
        return;
    }
    r->answered = false;
    rv = fl_enrolling_renew(fl_credentials_folder(r->credentials),
                            fl_credentials_identity(r->credentials), &r->enrolling, &err);
    if (rv == FL_OK) {
        rv = send(r);
    }
    if (rv != FL_OK) {
        give_up(r);
        failed(r, fl_err_text(&err, rv));
        if (r->only) {
            fl_connection_close(r->connection);
        }
    }
}

/* --- when --- */

static bool is_due(const struct fl_renewal *r)
{
    return fl_credentials_identity(r->credentials)->ours &&
           wall_ms() >= fl_renewing_due_ms(who(r)) && fl_clock_ms() >= r->not_before_ms;
}

static void set_timer(struct fl_renewal *r)
{
    int64_t left = fl_renewing_due_ms(who(r)) - wall_ms();
    uint64_t now = fl_clock_ms();
    uint64_t delay = r->look_ms > now ? r->look_ms - now : 0;

    if (r->waits_for_clock && delay > CLOCK_MS) {
        delay = CLOCK_MS;
    }
    if (left < (int64_t)delay && fl_credentials_identity(r->credentials)->ours) {
        uint64_t due = now + (uint64_t)(left > 0 ? left : 0);

        due = due > r->not_before_ms ? due : r->not_before_ms;
        /* One that is due and waits for a connection is no reason to look all the time. */
        delay = due > now && due - now < delay ? due - now : delay;
    }
    fl_timer_start(r->timer, delay);
}

/* Somebody set the clock: what was refused for the time that it showed may be right now. */
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

static void retry(struct fl_renewal *r)
{
    struct fl_session_event event = {.type = FL_CEV_RETRY};

    fl_stepper_step(r->stepper, &event);
}

/* The session waits for the connection that it asked for. */
static void go_on_with_connecting(struct fl_renewal *r)
{
    struct fl_err err = {0};
    int rv;

    if (!fl_renewal_may_connect(r)) {
        return;
    }
    rv = fl_connection_open(r->connection, &err);
    if (rv != FL_OK) {
        fl_stepper_failed(r->stepper, FL_CEV_DISCONNECTED, (struct fl_round_key){0},
                          FL_FAULT_PASSING, fl_err_text(&err, rv));
    }
}

static void on_timer(void *arg)
{
    struct fl_renewal *r = arg;
    bool set = clock_was_set(r);
    char when[FL_WHEN_TEXT];

    r->look_ms = fl_clock_ms() + LOOK_MS;
    if (r->waits_for_clock) {
        go_on_with_connecting(r);
    }
    if (r->call == NULL && fl_credentials_look(r->credentials)) {
        fl_log(r->log, FL_LOG_NOTICE, "client", "certificate taken up: name=%s until=%s",
               who(r)->name, fl_when_text(when, sizeof(when), who(r)->not_after));
        r->failures = 0;
        set = true;
    }
    if (set) {
        retry(r);
    }
    if (r->up && is_due(r)) {
        begin(r);
    }
    if (!r->stopped) {
        set_timer(r);
    }
}

/* --- what the others ask --- */

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
        set_timer(r);
    }
    return false;
}

bool fl_renewal_up(struct fl_renewal *r)
{
    if (r->credentials == NULL) {
        return true;
    }
    r->up = true;
    r->only = is_over(r) && fl_credentials_identity(r->credentials)->ours;
    if (r->only) {
        fl_log(r->log, FL_LOG_NOTICE, "client",
               "the certificate is over: renewing it before anything else");
        begin(r);
    } else if (is_due(r)) {
        begin(r);
    }
    return !r->only;
}

void fl_renewal_down(struct fl_renewal *r, bool refused)
{
    char over[FL_ERR_BUF_SIZE];

    r->up = false;
    r->only = false;
    if (refused && r->credentials != NULL &&
        fl_credentials_over(r->credentials, over, sizeof(over))[0] != '\0')
    {
        fl_log_peer(r->log, FL_LOG_ERROR, "client", FL_WORK_SERVER, "%s", over);
    }
}

int fl_renewal_reload(struct fl_renewal *r, struct fl_err *err)
{
    int rv;

    if (r->credentials == NULL || r->call != NULL)
    { /* A reply that is under way brings newer ones. */
        return FL_OK;
    }
    rv = fl_credentials_read(r->credentials, err);
    if (rv == FL_OK) {
        retry(r);
    }
    return rv;
}

int fl_renewal_create(struct fl_loop *loop, const struct fl_log *log,
                      struct fl_client_credentials *credentials, struct fl_connection *connection,
                      struct fl_stepper *stepper, struct fl_renewal **ret)
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
                             .stepper = stepper,
                             .look_ms = fl_clock_ms() + LOOK_MS,
                             .offset_ms = wall_ms() - (int64_t)fl_clock_ms()};
    if (credentials != NULL) {
        rv = fl_timer_create(loop, on_timer, r, &r->timer);
    }
    if (rv != FL_OK) {
        free(r);
        return rv;
    }
    if (credentials != NULL) {
        set_timer(r);
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
    give_up(r);
    free(r);
}
