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

static void admin_request_free(struct fl_admin_request *r)
{
    fl_replies_done(&r->replies);
    fl_buf_done(&r->header);
    fl_blob_unref(r->model);
    fl_wire_control_done(&r->control);
    free(r);
}

int fl_admin_reply(struct fl_admin_request *request, const struct fl_buf *message)
{
    int rv = fl_replies_add(&request->replies, message);

    return rv == FL_ELIMIT ? fl_err_set(&request->err, rv,
                                        "the answer would be longer than the limit of %u MB; for "
                                        "rounds, ask for fewer (flctl rounds --last N)",
                                        FL_REPLIES_MAX >> 20)
                           : rv;
}

/* Bytes [offset, +n) of the exported file: header, then the model block. */
static int send_export_piece(struct fl_admin_request *r, size_t n)
{
    struct fl_wire_export_chunk chunk = {.round = r->model_round};
    struct fl_buf buf;
    size_t head = r->header.len;
    int rv;

    if (r->offset < head) {
        size_t at = (size_t)r->offset;

        chunk.data = r->header.data + at;
        chunk.len = n < head - at ? n : head - at;
    } else {
        size_t at = (size_t)r->offset - head;
        size_t left = fl_blob_len(r->model) - at;

        chunk.data = fl_blob_data(r->model) + at;
        chunk.len = n < left ? n : left;
    }
    fl_buf_init(&buf, n + 4096);
    rv = fl_wire_export_encode(&chunk, &buf);
    if (rv == FL_OK) {
        rv = fl_frontend_send(r->call, &buf);
    }
    fl_buf_done(&buf);
    if (rv == FL_OK) {
        r->offset += chunk.len;
    }
    return rv;
}

static int send_export(struct fl_admin_request *r)
{
    size_t total = r->header.len + fl_blob_len(r->model);
    int rv = FL_OK;

    while (rv == FL_OK && r->offset < total) {
        rv = send_export_piece(r, 256u << 10);
    }
    return rv;
}

static void admin_answer_send(struct fl_admin_request *r)
{
    int rv = r->code;

    if (rv == FL_OK) {
        rv = r->type == FL_ADMIN_EXPORT ? send_export(r) : fl_replies_send(&r->replies, r->call);
    }
    if (rv == FL_ELIMIT && r->code == FL_OK) {
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
    bool restart = r->type == FL_ADMIN_ROLLBACK && r->code == FL_OK;

    r->answered = true;
    if (r->call == NULL) {
        admin_request_free(r);
    } else {
        admin_answer_send(r);
    }
    if (restart) {
        setup->ops->restart(setup->ctx, "rolling back to an older model");
    }
}

/* The audit name of the request, NULL for requests that only read. `object`: what it applies to. */
static const char *admin_audit_name(const struct fl_admin_request *r, char *object, size_t size)
{
    object[0] = '\0';
    switch (r->type) {
    case FL_ADMIN_FORGET:
        if (r->forget.name[0] != '\0') {
            (void)snprintf(object, size, "%s", r->forget.name);
        } else {
            (void)snprintf(object, size, "all unseen for %" PRIu64 " s",
                           r->forget.unseen_for_ms / 1000);
        }
        return "forget";
    case FL_ADMIN_DROP_SUMMARY:
        (void)snprintf(object, size, "%s", r->drop);
        return "summaries drop";
    case FL_ADMIN_EXPORT:
    case FL_ADMIN_HOLD:
    case FL_ADMIN_ROLLBACK:
        if (r->round == 0 && r->type == FL_ADMIN_EXPORT) {
            (void)snprintf(object, size, "the current model");
        } else {
            (void)snprintf(object, size, "round %" PRIu64, r->round);
        }
        return r->type == FL_ADMIN_EXPORT ? "export"
               : r->type == FL_ADMIN_HOLD ? (r->release ? "release" : "hold")
                                          : "rollback";
    case FL_ADMIN_PAUSE:
    case FL_ADMIN_RESUME:
    case FL_ADMIN_DRAIN:
    case FL_ADMIN_RESET_CONTROLS:
    case FL_ADMIN_ABORT_ROUND:
        (void)snprintf(object, size, "%s", r->control.reason != NULL ? r->control.reason : "");
        return r->type == FL_ADMIN_PAUSE            ? "pause"
               : r->type == FL_ADMIN_RESUME         ? "resume"
               : r->type == FL_ADMIN_DRAIN          ? "drain"
               : r->type == FL_ADMIN_RESET_CONTROLS ? "controls reset"
                                                    : "abort-round";
    case FL_ADMIN_STATUS:
    case FL_ADMIN_WHY:
    case FL_ADMIN_ROUNDS:
    case FL_ADMIN_CLIENTS:
    case FL_ADMIN_CHECKPOINTS:
    case FL_ADMIN_SUMMARIES:
        break;
    }
    return NULL;
}

void fl_admin_answered(struct fl_admin_request *r)
{
    char object[FL_WIRE_MAX_REASON + 64];
    const char *what = admin_audit_name(r, object, sizeof(object));

    if (what == NULL) {
        admin_answer(r);
        return;
    }
    /* The answer is sent after the audit entry, which names the operator. */
    fl_audit_note(
        r->admin->setup.auth, r->admin->setup.log,
        &(struct fl_audit_note){.who = r->known ? &r->who : NULL,
                                .peer = "unix",
                                .what = what,
                                .object = object,
                                .result = r->code == FL_OK ? "ok" : fl_err_text(&r->err, r->code)},
        admin_answer, r);
}

static bool admin_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_admin_request *r = ctx;
    struct fl_coord_msg *up;
    int rv = FL_OK;

    if (r->asked) { /* The coordinator may be working on the first request. */
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "a second request");
        return true;
    }
    r->asked = true;
    fl_call_set_patient(call, true);
    if (r->type == FL_ADMIN_ROUNDS) {
        rv = fl_wire_list_rounds_decode(data, len, &r->list, &r->err);
    } else if (r->type == FL_ADMIN_EXPORT) {
        rv = fl_wire_export_request_decode(data, len, &r->round, &r->err);
    } else if (r->type == FL_ADMIN_HOLD) {
        struct fl_wire_hold hold;

        rv = fl_wire_hold_decode(data, len, &hold, &r->err);
        r->round = rv == FL_OK ? hold.round : 0;
        r->release = rv == FL_OK && hold.release;
    } else if (r->type == FL_ADMIN_ROLLBACK) {
        struct fl_wire_rollback rollback;

        rv = fl_wire_rollback_decode(data, len, &rollback, &r->err);
        r->round = rv == FL_OK ? rollback.round : 0;
        r->force = rv == FL_OK && rollback.force;
    } else if (r->type == FL_ADMIN_FORGET) {
        rv = fl_wire_forget_decode(data, len, &r->forget, &r->err);
    } else if (r->type == FL_ADMIN_DROP_SUMMARY) {
        rv = fl_wire_drop_summary_decode(data, len, r->drop, &r->err);
    } else if (r->type >= FL_ADMIN_PAUSE && r->type <= FL_ADMIN_ABORT_ROUND) {
        rv = fl_wire_control_decode(data, len, &r->control, &r->err);
    }
    up = rv == FL_OK ? fl_coord_msg_new(FL_COORD_MSG_ADMIN) : NULL;
    if (up == NULL) {
        fl_frontend_fail(call, rv != FL_OK ? rv : FL_ENOMEM, &r->err);
        r->answered = true;
        return true;
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
 * it when the disk answers. An export has no time limit.
 */
static void on_answer_timer(void *arg)
{
    struct fl_admin_request *r = arg;
    const struct fl_admin_setup *setup = &r->admin->setup;
    char text[FL_ERR_BUF_SIZE + 128];
    char why[FL_ERR_BUF_SIZE];

    if (r->answered || r->type == FL_ADMIN_EXPORT) {
        return;
    }
    if (!setup->ops->stalled(setup->ctx, why, sizeof(why))) {
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
        admin_request_free(r);
    }
}

static const struct fl_call_handler admin_handler = {.on_message = admin_on_message,
                                                     .on_end = admin_on_end,
                                                     .on_writable = admin_on_writable,
                                                     .on_closed = admin_on_closed};

static void admin_start(struct fl_call *call, struct fl_admin *admin, enum fl_admin_type type)
{
    const struct fl_identity *who = fl_call_identity(call);
    struct fl_admin_request *r = calloc(1, sizeof(*r));

    if (r == NULL || fl_timer_create(admin->setup.net, on_answer_timer, r, &r->timer) != FL_OK) {
        free(r);
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    r->type = type;
    r->admin = admin;
    r->call = call;
    r->known = who != NULL;
    if (who != NULL) {
        r->who = *who;
    }
    fl_replies_init(&r->replies);
    fl_buf_init(&r->header, 0);
    fl_call_set_handler(call, &admin_handler, r);
}

static void start_status(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_STATUS);
}

static void start_why(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_WHY);
}

static void start_rounds(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_ROUNDS);
}

static void start_clients(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_CLIENTS);
}

static void start_forget(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_FORGET);
}

static void start_export(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_EXPORT);
}

static void start_checkpoints(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_CHECKPOINTS);
}

static void start_hold(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_HOLD);
}

static void start_rollback(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_ROLLBACK);
}

static void start_pause(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_PAUSE);
}

static void start_resume(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_RESUME);
}

static void start_drain(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_DRAIN);
}

static void start_abort_round(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_ABORT_ROUND);
}

static void start_reset_controls(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_RESET_CONTROLS);
}

static void start_summaries(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_SUMMARIES);
}

static void start_drop_summary(struct fl_call *call, void *ctx)
{
    admin_start(call, ctx, FL_ADMIN_DROP_SUMMARY);
}

/* Roles that may change something, and roles that may read. */
#define ACTS  (FL_WHO_LOCAL | FL_WHO_ADMIN)
#define LOOKS (ACTS | FL_WHO_VIEWER)

struct fl_rpc_method *fl_admin_service_methods(struct fl_admin *admin, struct fl_rpc_method *m)
{
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/Status", LOOKS, start_status, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/Why", LOOKS, start_why, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/ListRounds", LOOKS, start_rounds, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/ListClients", LOOKS, start_clients, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/ForgetClients", ACTS, start_forget, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/ExportModel", ACTS, start_export, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/ListCheckpoints", LOOKS, start_checkpoints, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/HoldCheckpoint", ACTS, start_hold, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/Rollback", ACTS, start_rollback, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/Pause", ACTS, start_pause, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/Resume", ACTS, start_resume, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/Drain", ACTS, start_drain, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/AbortRound", ACTS, start_abort_round, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/ResetControls", ACTS, start_reset_controls, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/ListSummaries", LOOKS, start_summaries, admin};
    *m++ = (struct fl_rpc_method){"/fl.v1.Admin/DropSummary", ACTS, start_drop_summary, admin};
    return m;
}
