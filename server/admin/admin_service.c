/*
 * Admin calls on the unix socket, on the network loop: decodes a request, posts it to the
 * coordinator thread, which fills in the answer, and sends the answer. It does not read the
 * coordinator's state itself. The request of a peer that disconnected is freed when its answer
 * arrives.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/admin/admin_impl.h"
#include "server/admin/admin_request.h"
#include "server/admin/audit_note.h"

/* Interval at which an unanswered command checks for a disk stall. */
#define ANSWER_CHECK_MS 2000

struct fl_admin_request *fl_admin_request_new(enum fl_verb verb)
{
    struct fl_admin_request *r = calloc(1, sizeof(*r));

    if (r != NULL) {
        r->verb = verb;
        fl_replies_init(&r->replies);
        fl_buf_init(&r->header, 0);
    }
    return r;
}

void fl_admin_request_free(struct fl_admin_request *r)
{
    fl_replies_done(&r->replies);
    fl_buf_done(&r->header);
    fl_blob_unref(r->model);
    fl_wire_control_done(&r->control);
    fl_wire_client_control_done(&r->client_control);
    fl_wire_label_client_done(&r->label);
    fl_wire_schedule_client_done(&r->schedule);
    fl_wire_limit_client_done(&r->limit);
    free(r);
}

int fl_admin_reply(struct fl_admin_request *request, const struct fl_buf *message)
{
    int rv = fl_replies_add(&request->replies, message);

    if (rv == FL_ELIMIT) {
        return fl_err_set(&request->err, rv,
                          "the answer would be longer than the limit of %u MB; for rounds, ask for "
                          "fewer (flctl rounds --last N)",
                          FL_REPLIES_MAX >> 20);
    }
    if (rv != FL_OK) {
        return rv;
    }
    atomic_fetch_add(&request->n_replies, 1);
    return FL_OK;
}

/* The rest of the exported file, the header and then the model block, in messages of this size. */
#define EXPORT_PIECE ((size_t)256 << 10)

static int send_export(struct fl_admin_request *r)
{
    size_t head = r->header.len;
    size_t total = head + fl_blob_len(r->model);
    struct fl_buf buf;
    int rv;

    while (r->offset < total) {
        bool header = r->offset < head;
        size_t at = (size_t)r->offset - (header ? 0 : head);
        size_t left = (header ? head : total) - (size_t)r->offset;
        const uint8_t *data = header ? r->header.data : fl_blob_data(r->model);
        const struct fl_wire_export_chunk chunk = {.round = r->model_round,
                                                   .data = data + at,
                                                   .len =
                                                       left < EXPORT_PIECE ? left : EXPORT_PIECE};

        fl_buf_init(&buf, EXPORT_PIECE + 4096);
        rv = fl_wire_export_encode(&chunk, &buf);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl_frontend_send(r->call, &buf);
        if (rv != FL_OK) {
            goto fail;
        }
        fl_buf_done(&buf);
        r->offset += chunk.len;
    }
    return FL_OK;
fail:
    fl_buf_done(&buf);
    return rv;
}

static void admin_answer_send(struct fl_admin_request *r)
{
    int rv;

    if (r->code != FL_OK) {
        fl_frontend_fail(r->call, r->code, &r->err);
        return;
    }
    rv = r->verb == FL_VERB_EXPORT ? send_export(r) : fl_replies_send(&r->replies, r->call);
    if (rv == FL_ELIMIT) {
        return; /* admin_on_writable() continues. */
    }
    if (rv != FL_OK) {
        fl_frontend_fail(r->call, rv, &r->err);
    } else {
        fl_call_finish(r->call, FL_GRPC_OK, NULL);
    }
}

static void admin_answer(void *arg)
{
    struct fl_admin_request *r = arg;
    const struct fl_admin_setup *setup = &r->admin->setup;
    /* Restart whether or not the peer is still connected. */
    bool restart = r->verb == FL_VERB_ROLLBACK && r->code == FL_OK;

    r->answered = true;
    if (r->call == NULL) {
        fl_admin_request_free(r);
    } else {
        admin_answer_send(r);
    }
    if (restart) {
        setup->ops->restart(setup->ctx, "rolling back to an older model");
    }
}

/* --- what the requests of the verbs carry --- */

/* How a request is read, and what the audit log says that the verb was applied to. */
struct admin_request_kind {
    int (*decode)(struct fl_admin_request *r, const uint8_t *data, size_t len); /* NULL: empty */
    void (*object)(const struct fl_admin_request *r, char *out, size_t size);   /* NULL: nothing */
};

static const struct admin_request_kind admin_request_empty = {NULL, NULL};

static int admin_decode_rounds(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_list_rounds_decode(data, len, &r->list, &r->err);
}

static const struct admin_request_kind admin_request_rounds = {admin_decode_rounds, NULL};

static int admin_decode_participations(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_list_participations_decode(data, len, &r->parts, &r->err);
}

static const struct admin_request_kind admin_request_participations = {admin_decode_participations,
                                                                       NULL};

static int admin_decode_control(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_control_decode(data, len, &r->control, &r->err);
}

static void admin_object_control(const struct fl_admin_request *r, char *out, size_t size)
{
    (void)snprintf(out, size, "%s", r->control.reason != NULL ? r->control.reason : "");
}

static const struct admin_request_kind admin_request_control = {admin_decode_control,
                                                                admin_object_control};

static int admin_decode_client_control(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_client_control_decode(data, len, &r->client_control, &r->err);
}

static void admin_object_client_control(const struct fl_admin_request *r, char *out, size_t size)
{
    const char *reason = r->client_control.reason != NULL ? r->client_control.reason : "";

    (void)snprintf(out, size, "%s%s%s", r->client_control.client, reason[0] != '\0' ? ": " : "",
                   reason);
}

static const struct admin_request_kind admin_request_client_control = {admin_decode_client_control,
                                                                       admin_object_client_control};

static int admin_decode_label(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_label_client_decode(data, len, &r->label, &r->err);
}

/* Appends a word to the object; one that does not fit is cut. */
static void admin_object_add(char *out, size_t size, const char *word, const char *more)
{
    size_t used = strlen(out);

    (void)snprintf(out + used, size - used, " %s%s", word, more);
}

static void admin_object_pairs(const struct fl_pair *set, size_t n_set, char *const *removed,
                               size_t n_removed, char *out, size_t size)
{
    char pair[2 * FL_WIRE_MAX_TEXT + 2];
    size_t i;

    for (i = 0; i < n_set; i++) {
        (void)snprintf(pair, sizeof(pair), "%s=%s", set[i].key, set[i].value);
        admin_object_add(out, size, pair, "");
    }
    for (i = 0; i < n_removed; i++) {
        admin_object_add(out, size, removed[i], "-");
    }
}

static void admin_object_label(const struct fl_admin_request *r, char *out, size_t size)
{
    const struct fl_wire_label_client *l = &r->label;

    (void)snprintf(out, size, "%s:", l->client);
    admin_object_pairs(l->set, l->n_set, l->removed, l->n_removed, out, size);
}

static const struct admin_request_kind admin_request_label = {admin_decode_label,
                                                              admin_object_label};

static int admin_decode_schedule(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_schedule_client_decode(data, len, &r->schedule, &r->err);
}

static void admin_object_schedule(const struct fl_admin_request *r, char *out, size_t size)
{
    size_t i;

    (void)snprintf(out, size, "%s:%s", r->schedule.client, r->schedule.n_hours == 0 ? " none" : "");
    for (i = 0; i < r->schedule.n_hours; i++) {
        admin_object_add(out, size, r->schedule.hours[i], "");
    }
}

static const struct admin_request_kind admin_request_schedule = {admin_decode_schedule,
                                                                 admin_object_schedule};

static int admin_decode_limit(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_limit_client_decode(data, len, &r->limit, &r->err);
}

static void admin_object_limit(const struct fl_admin_request *r, char *out, size_t size)
{
    const struct fl_wire_limit_client *l = &r->limit;

    (void)snprintf(out, size, "%s:", l->client);
    admin_object_pairs(l->set, l->n_set, l->removed, l->n_removed, out, size);
}

static const struct admin_request_kind admin_request_limit = {admin_decode_limit,
                                                              admin_object_limit};

static int admin_decode_forget(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_forget_decode(data, len, &r->forget, &r->err);
}

static void admin_object_forget(const struct fl_admin_request *r, char *out, size_t size)
{
    if (r->forget.name[0] != '\0') {
        (void)snprintf(out, size, "%s", r->forget.name);
    } else {
        (void)snprintf(out, size, "all unseen for %" PRIu64 " s", r->forget.unseen_for_ms / 1000);
    }
}

static const struct admin_request_kind admin_request_forget = {admin_decode_forget,
                                                               admin_object_forget};

static int admin_decode_drop(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_drop_summary_decode(data, len, r->drop, &r->err);
}

static void admin_object_drop(const struct fl_admin_request *r, char *out, size_t size)
{
    (void)snprintf(out, size, "%s", r->drop);
}

static const struct admin_request_kind admin_request_drop = {admin_decode_drop, admin_object_drop};

static void admin_object_round(const struct fl_admin_request *r, char *out, size_t size)
{
    (void)snprintf(out, size, "round %" PRIu64, r->round);
}

static int admin_decode_export(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    return fl_wire_export_request_decode(data, len, &r->round, &r->err);
}

static void admin_object_export(const struct fl_admin_request *r, char *out, size_t size)
{
    if (r->round == 0) {
        (void)snprintf(out, size, "the current model");
    } else {
        admin_object_round(r, out, size);
    }
}

static const struct admin_request_kind admin_request_export = {admin_decode_export,
                                                               admin_object_export};

/* One method for two verbs: the request names the verb. */
static int admin_decode_pin(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    struct fl_wire_pin pin;
    int rv = fl_wire_pin_decode(data, len, &pin, &r->err);

    if (rv != FL_OK) {
        return rv;
    }
    r->round = pin.round;
    r->verb = pin.unpin ? FL_VERB_UNPIN : FL_VERB_PIN;
    return FL_OK;
}

static const struct admin_request_kind admin_request_pin = {admin_decode_pin, admin_object_round};
static const struct admin_request_kind admin_request_unpin = {admin_decode_pin, admin_object_round};

static int admin_decode_rollback(struct fl_admin_request *r, const uint8_t *data, size_t len)
{
    struct fl_wire_rollback rollback;
    int rv = fl_wire_rollback_decode(data, len, &rollback, &r->err);

    if (rv != FL_OK) {
        return rv;
    }
    r->round = rollback.round;
    r->force = rollback.force;
    return FL_OK;
}

static const struct admin_request_kind admin_request_rollback = {admin_decode_rollback,
                                                                 admin_object_round};

/* Of the verbs that the coordinator answers; NULL: the identity thread does. */
#define ADMIN_ON_CORE(request)        &admin_request_##request
#define ADMIN_ON_COORDINATOR(request) &admin_request_##request
#define ADMIN_ON_DB(request)          &admin_request_##request
#define ADMIN_ON_IDENTITY(request)    NULL
#define ADMIN_REQUEST_OF(id, name, method, access, audit, thread, handler, request, answer, help) \
    [FL_VERB_##id] = ADMIN_ON_##thread(request),

static const struct admin_request_kind *const admin_request_kinds[FL_VERB_N] = {
    FL_VERBS(ADMIN_REQUEST_OF)};

/* --- the audit --- */

void fl_admin_answered(struct fl_admin_request *r)
{
    const struct fl_verb_row *verb = &fl_verbs[r->verb];
    const struct admin_request_kind *kind = admin_request_kinds[r->verb];
    char object[FL_WIRE_MAX_REASON + FL_NAME_MAX + 64] = "";

    if (verb->audit == NULL) {
        admin_answer(r);
        return;
    }
    if (kind->object != NULL) {
        kind->object(r, object, sizeof(object));
    }
    /* The answer is sent after the audit entry, which names the operator. */
    fl_audit_note(
        r->admin->setup.auth, r->admin->setup.log,
        &(struct fl_audit_note){.who = r->known ? &r->who : NULL,
                                .peer = "unix",
                                .what = verb->audit,
                                .object = object,
                                .result = r->code == FL_OK ? "ok" : fl_err_text(&r->err, r->code)},
        admin_answer, r);
}

static bool admin_refuse(struct fl_admin_request *r, int rv)
{
    fl_frontend_fail(r->call, rv, &r->err);
    r->answered = true;
    return true;
}

static bool admin_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_admin_request *r = ctx;
    int (*decode)(struct fl_admin_request * r, const uint8_t *data, size_t len) =
        admin_request_kinds[r->verb]->decode;
    struct fl_coord_msg *up;
    int rv = FL_OK;

    if (r->asked) { /* The coordinator may be working on the first request. */
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "a second request");
        return true;
    }
    r->asked = true;
    fl_call_set_patient(call, true);
    if (decode != NULL) {
        rv = decode(r, data, len);
    }
    if (rv != FL_OK) {
        return admin_refuse(r, rv);
    }
    up = fl_coord_msg_new(FL_COORD_MSG_ADMIN);
    if (up == NULL) {
        return admin_refuse(r, FL_ENOMEM);
    }
    up->request = r;
    fl_timer_start(r->timer, ANSWER_CHECK_MS);
    fl_frontend_up(r->admin->setup.frontend, up);
    return true;
}

static void admin_on_writable(struct fl_call *call, void *ctx)
{
    struct fl_admin_request *r = ctx;

    (void)call;
    if (r->answered) {
        admin_answer_send(r);
    }
}

static void admin_on_end(struct fl_call *call, void *ctx)
{
    const struct fl_admin_request *r = ctx;

    if (!r->asked) {
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "the request is missing");
    }
}

/*
 * A command that cannot be persisted now is still answered. The coordinator keeps it and executes
 * it when the disk answers. An export has no time limit, nor has a list while it gets longer.
 */
static void on_answer_timer(void *arg)
{
    struct fl_admin_request *r = arg;
    const struct fl_admin_setup *setup = &r->admin->setup;
    char text[FL_ERR_BUF_SIZE + 128];
    char why[FL_ERR_BUF_SIZE];
    size_t seen = r->seen;

    if (r->answered || r->verb == FL_VERB_EXPORT) {
        return;
    }
    r->seen = atomic_load(&r->n_replies);
    if (r->seen != seen || !setup->ops->stalled(setup->ctx, why, sizeof(why))) {
        fl_timer_start(r->timer, ANSWER_CHECK_MS);
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "%s: the command is not on disk yet and may be executed when the disk answers; "
                   "'flctl why' shows what is waiting",
                   why);
    fl_call_finish(r->call, FL_GRPC_UNAVAILABLE, text);
}

static void admin_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                            const char *message)
{
    struct fl_admin_request *r = ctx;

    (void)call;
    (void)status;
    (void)message;
    r->call = NULL;
    fl_timer_close(r->timer);
    r->timer = NULL;
    if (r->answered || !r->asked) {
        fl_admin_request_free(r);
    }
}

static const struct fl_call_handler admin_handler = {.on_message = admin_on_message,
                                                     .on_end = admin_on_end,
                                                     .on_writable = admin_on_writable,
                                                     .on_closed = admin_on_closed};

static void admin_start(struct fl_call *call, void *ctx)
{
    const struct fl_admin_method *method = ctx;
    const struct fl_identity *who = fl_call_identity(call);
    struct fl_admin_request *r = fl_admin_request_new(method->verb);

    if (r == NULL) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    if (fl_timer_create(method->admin->setup.net, on_answer_timer, r, &r->timer) != FL_OK) {
        fl_admin_request_free(r);
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    r->admin = method->admin;
    r->call = call;
    r->known = who != NULL;
    if (who != NULL) {
        r->who = *who;
    }
    fl_call_set_handler(call, &admin_handler, r);
}

struct fl_rpc_method *fl_admin_service_methods(struct fl_admin *admin, struct fl_rpc_method *m)
{
    int verb;

    for (verb = 0; verb < FL_VERB_N; verb++) {
        if (admin_request_kinds[verb] != NULL) {
            m = fl_admin_add_method(admin, (enum fl_verb)verb, admin_start, m);
        }
    }
    return m;
}
