/*
 * The standard services of gRPC tools, on the loop of the server. Health/Check answers once;
 * Health/Watch stays open and sends each change; reflection answers one question after the other
 * until the peer closes its side. Knows no service of ours beyond its name.
 * Failures: a request that does not decode ends the call with INVALID_ARGUMENT; one that there is
 * no memory to decode, with RESOURCE_EXHAUSTED, and so does a peer that asks without reading the
 * answers and fills its send queue.
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/grpc/endpoint.h"
#include "libfl/grpc/health_reflection_impl.h"

#define REPLY_MAX (1u << 20)
/* Open watches may stay for ever: more than any set of load balancers needs are rejected. */
#define WATCHERS_MAX 64

static const char health_service[] = "grpc.health.v1.Health";
static const char reflection_service[] = "grpc.reflection.v1alpha.ServerReflection";

/* One open Health/Watch. */
struct watcher {
    struct fl_grpc_builtin *builtin;
    struct fl_call *call;
    struct watcher *next;
    struct watcher **back; /* the pointer to this watcher */
    bool asked;
    bool known; /* the service asked for is offered here */
};

struct fl_grpc_builtin {
    const char **services; /* the builtin and the caller's services, ended by NULL */
    bool serving;
    struct watcher *watchers;
    unsigned n_watching; /* watchers whose request has arrived */
};

/* The peer is gone after FL_ECLOSED. */
static void refuse_reply(struct fl_call *call, int rv, const char *reason)
{
    if (rv == FL_ENOMEM || rv == FL_ELIMIT) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, reason);
    } else if (rv != FL_OK && rv != FL_ECLOSED) {
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, reason);
    }
}

/* Sends what was encoded with `rv`, or ends the call with the error. */
static void send_reply(struct fl_call *call, int rv, const struct fl_buf *out, const char *reason)
{
    struct fl_piece piece = {.data = out->data, .len = out->len};

    if (rv != FL_OK) {
        refuse_reply(call, rv, reason);
        return;
    }
    rv = fl_call_send(call, &piece, 1);
    if (rv != FL_OK) {
        refuse_reply(call, rv, "the peer does not read the answers");
    }
}

/* Ends the call after a request that was not decoded. */
static void request_refused(struct fl_call *call, int rv, const struct fl_err *err)
{
    fl_call_finish(call, rv == FL_ENOMEM ? FL_GRPC_RESOURCE_EXHAUSTED : FL_GRPC_INVALID_ARGUMENT,
                   fl_err_text(err, rv));
}

static void request_missing(struct fl_call *call)
{
    fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "the request is missing");
}

/* --- health --- */

static bool is_offered(const struct fl_grpc_builtin *builtin, const char *service)
{
    size_t i;

    for (i = 0; builtin->services[i] != NULL; i++) {
        if (strcmp(builtin->services[i], service) == 0) {
            return true;
        }
    }
    return service[0] == '\0'; /* the server as a whole */
}

static void send_health(struct fl_call *call, enum fl__health status)
{
    struct fl_buf out;
    int rv;

    fl_buf_init(&out, REPLY_MAX);
    rv = fl__health_reply_encode(status, &out);
    send_reply(call, rv, &out, "out of memory");
    fl_buf_done(&out);
}

static enum fl__health health_of(const struct fl_grpc_builtin *builtin)
{
    return builtin->serving ? FL__HEALTH_SERVING : FL__HEALTH_NOT_SERVING;
}

static bool check_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    const struct fl_grpc_builtin *builtin = ctx;
    char service[FL_NAME_MAX];
    struct fl_err err = {0};
    int rv = fl__health_request_decode(data, len, service, &err);

    if (rv != FL_OK) {
        request_refused(call, rv, &err);
    } else if (!is_offered(builtin, service)) {
        fl_call_finish(call, FL_GRPC_NOT_FOUND, "no such service");
    } else {
        send_health(call, health_of(builtin));
        fl_call_finish(call, FL_GRPC_OK, NULL);
    }
    return true;
}

static void check_end(struct fl_call *call, void *ctx)
{
    (void)ctx;
    request_missing(call); /* does nothing when the request was answered */
}

static void ignore_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                          const char *message)
{
    (void)call;
    (void)ctx;
    (void)status;
    (void)message;
}

static void check_start(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {check_message, check_end, NULL, ignore_closed};

    fl_call_set_handler(call, &handler, ctx);
}

static bool watch_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct watcher *watcher = ctx;
    char service[FL_NAME_MAX];
    struct fl_err err = {0};
    int rv = fl__health_request_decode(data, len, service, &err);

    if (watcher->asked) {
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "a second request on the same call");
        return true;
    }
    if (rv != FL_OK) {
        request_refused(call, rv, &err);
        return true;
    }
    if (watcher->builtin->n_watching >= WATCHERS_MAX) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "too many watches are open");
        return true;
    }
    watcher->asked = true;
    watcher->builtin->n_watching++;
    fl_call_set_patient(call,
                        true); /* From now on the call waits for us: for each change of health. */
    /* An unknown service may come later, so the protocol keeps this call open. */
    watcher->known = is_offered(watcher->builtin, service);
    send_health(call, watcher->known ? health_of(watcher->builtin) : FL__HEALTH_SERVICE_UNKNOWN);
    return true;
}

static void watch_end(struct fl_call *call, void *ctx)
{
    const struct watcher *watcher = ctx;

    if (!watcher->asked) {
        request_missing(call);
    }
}

static void watch_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                         const char *message)
{
    struct watcher *watcher = ctx;

    (void)call;
    (void)status;
    (void)message;
    watcher->builtin->n_watching -= watcher->asked ? 1 : 0;
    *watcher->back = watcher->next;
    if (watcher->next != NULL) {
        watcher->next->back = watcher->back;
    }
    free(watcher);
}

static void watch_start(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {watch_message, watch_end, NULL, watch_closed};
    struct fl_grpc_builtin *builtin = ctx;
    struct watcher *watcher = calloc(1, sizeof(*watcher));

    if (watcher == NULL) {
        check_start(call, ctx);
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    *watcher = (struct watcher){
        .builtin = builtin, .call = call, .next = builtin->watchers, .back = &builtin->watchers};
    if (watcher->next != NULL) {
        watcher->next->back = &watcher->next;
    }
    builtin->watchers = watcher;
    fl_call_set_handler(call, &handler, watcher);
}

/* --- reflection --- */

static bool reflect_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    const struct fl_grpc_builtin *builtin = ctx;
    struct fl_err err = {0};
    struct fl_buf out;
    int rv;

    fl_buf_init(&out, REPLY_MAX);
    rv = fl__reflect(data, len, builtin->services, &out, &err);
    send_reply(call, rv, &out, fl_err_text(&err, rv));
    fl_buf_done(&out);
    return true;
}

static void reflect_end(struct fl_call *call, void *ctx)
{
    (void)ctx;
    fl_call_finish(call, FL_GRPC_OK, NULL);
}

static void reflect_start(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {reflect_message, reflect_end, NULL,
                                                   ignore_closed};

    fl_call_set_handler(call, &handler, ctx);
}

/* --- builtin services --- */

static void add_service(const char **services, size_t *n, const char *service)
{
    size_t i;

    for (i = 0; i < *n; i++) {
        if (strcmp(services[i], service) == 0) {
            return;
        }
    }
    services[(*n)++] = service;
}

int fl_grpc_builtin_create(const char *const *services, struct fl_grpc_builtin **ret)
{
    struct fl_grpc_builtin *builtin = calloc(1, sizeof(*builtin));
    size_t n = 0;
    size_t i;

    if (builtin == NULL) {
        return FL_ENOMEM;
    }
    while (services[n] != NULL) {
        n++;
    }
    builtin->services = calloc(n + 3, sizeof(*builtin->services));
    if (builtin->services == NULL) {
        free(builtin);
        return FL_ENOMEM;
    }
    for (i = 0, n = 0; services[i] != NULL; i++) {
        add_service(builtin->services, &n, services[i]);
    }
    add_service(builtin->services, &n, health_service);
    add_service(builtin->services, &n, reflection_service);
    builtin->serving = true;
    *ret = builtin;
    return FL_OK;
}

void fl_grpc_builtin_free(struct fl_grpc_builtin *builtin)
{
    if (builtin == NULL) {
        return;
    }
    FL_REQUIRE(builtin->watchers == NULL);
    free(builtin->services);
    free(builtin);
}

/*
 * Peers that are unauthenticated or whose certificate has expired reach only the methods for
 * joining and renewing.
 */
#define AUTHENTICATED_PEERS (FL_WHO_ANYBODY & ~(uint32_t)(FL_WHO_UNAUTHENTICATED | FL_WHO_LAPSED))

size_t fl_grpc_builtin_methods(struct fl_grpc_builtin *builtin, struct fl_rpc_method *methods)
{
    methods[0] = (struct fl_rpc_method){"/grpc.health.v1.Health/Check", AUTHENTICATED_PEERS,
                                        check_start, builtin};
    methods[1] = (struct fl_rpc_method){"/grpc.health.v1.Health/Watch", AUTHENTICATED_PEERS,
                                        watch_start, builtin};
    methods[2] =
        (struct fl_rpc_method){"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                               AUTHENTICATED_PEERS, reflect_start, builtin};
    /* The same messages under the later name of the service. */
    methods[3] = (struct fl_rpc_method){"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                                        AUTHENTICATED_PEERS, reflect_start, builtin};
    return 4;
}

void fl_grpc_builtin_serving(struct fl_grpc_builtin *builtin, bool serving)
{
    struct watcher *watcher;

    if (builtin->serving == serving) {
        return;
    }
    builtin->serving = serving;
    /* Callbacks never run inside the calls made here, so the list does not change. */
    for (watcher = builtin->watchers; watcher != NULL; watcher = watcher->next) {
        if (watcher->asked && watcher->known) {
            send_health(watcher->call, health_of(builtin));
        }
    }
}
