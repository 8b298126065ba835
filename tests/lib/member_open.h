#ifndef FL_LIB_MEMBER_OPEN_H
#define FL_LIB_MEMBER_OPEN_H

/* Members with a folder and a trainer of their own, as a daemon has them (member.h). */

#include <string.h>

#include "client/work/transfer_end.h"
#include "libfl/model/digest.h"
#include "tools/fl_sim/engine/member.h"

/*
 * Start a process in `dir`, which exists, with the state of the previous process. Takes `trainer`,
 * on error too; `log` may be NULL, and is borrowed. `seed`: the same in every run of this client.
 */
static inline int member_open(struct fl_member *m, const char *dir, struct fl_trainer *trainer,
                              const struct fl_log *log, uint64_t seed, struct fl_err *err)
{
    int rv;

    *m = (struct fl_member){.worker = {.trainer = trainer, .log = log, .seed = seed}};
    m->worker.state_dir = m->dir;
    m->held = (struct fl_pending_result){.state_dir = m->dir, .log = log};
    rv = fl_str_copy(m->dir, sizeof(m->dir), dir);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "path '%s' is too long", dir);
        goto fail;
    }
    rv = fl_client_state_open(m->dir, log, &m->worker.keeps, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_pending_result_load(&m->held, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    fl_member_close(m);
    return rv;
}

/* --- a task, as a daemon fetches its payloads --- */

/* A payload as a server lists and serves it; borrowed. */
struct member_payload {
    const char *name;
    const void *data;
    size_t len;
    bool has_digest; /* listed with its SHA-256, so that it may be cached */
};

/* What a server with moves knows; the callback returns what changed since `held`, owned by the
   caller, or NULL: it is not known. */
struct member_server {
    const struct member_payload *payloads; /* [n] */
    size_t n;
    struct fl_blob *(*changed)(void *ctx, const uint8_t held[FL_DIGEST_SIZE]);
    void *ctx;
};

static inline const struct member_payload *member_payload_named(const struct member_server *server,
                                                                const char *name)
{
    size_t i = 0;

    while (i < server->n && strcmp(server->payloads[i].name, name) != 0) {
        i++;
    }
    FL_REQUIRE(i < server->n);
    return &server->payloads[i];
}

static inline int member_list(const struct member_server *server, struct fl_inputs *ret)
{
    struct fl_wire_payload wire[FL_WIRE_MAX_PAYLOADS] = {{0}};
    struct fl_wire_task task = {.payloads = wire, .n_payloads = server->n};
    size_t i;

    for (i = 0; i < server->n; i++) {
        const struct member_payload *p = &server->payloads[i];

        wire[i] = (struct fl_wire_payload){
            .name = fl_wire_lend(p->name), .bytes = p->len, .has_digest = p->has_digest};
        if (p->has_digest && fl_sha256(p->data, p->len, wire[i].digest) != FL_OK) {
            return FL_ENOMEM;
        }
    }
    fl_inputs_list(ret, &task);
    return FL_OK;
}

/* One transfer, in one chunk. */
static inline enum fl_transfer member_transfer(const struct member_server *server,
                                               struct fl_input *in)
{
    const struct member_payload *p = member_payload_named(server, in->name);
    struct fl_blob *moves = NULL;
    int rv;

    if (!in->has_held) {
        return fl_input_add(in, 0, p->data, p->len, NULL) == FL_OK ? FL_TRANSFER_DONE
                                                                   : FL_TRANSFER_BAD;
    }
    moves = server->changed != NULL ? server->changed(server->ctx, in->held) : NULL;
    if (moves == NULL) {
        return FL_TRANSFER_NOT_HELD;
    }
    rv = fl_input_add(in, 0, fl_blob_data(moves), fl_blob_len(moves), NULL);
    fl_blob_unref(moves);
    return rv == FL_OK ? FL_TRANSFER_DONE : FL_TRANSFER_BAD;
}

static inline int member_receive(const struct member_server *server, struct fl_inputs *inputs,
                                 struct fl_err *err)
{
    struct fl_input *in = NULL;
    int rv = fl_inputs_next(inputs, &in);

    while (rv == FL_OK && in != NULL) {
        enum fl_fault fault = FL_FAULT_PASSING;
        const char *why = NULL;
        enum fl_transfer_next next =
            fl_transfer_ended(in, member_transfer(server, in), &fault, &why);

        if (next == FL_TRANSFER_FAILED) {
            return fl_err_set(err, FL_EPROTO, "payload '%s' is not received", in->name);
        }
        rv = next == FL_TRANSFER_COMPLETE ? fl_input_check(in, err) : FL_OK;
        if (rv == FL_OK) {
            rv = fl_inputs_next(inputs, &in);
        }
    }
    return rv;
}

/*
 * The steps of client/daemon/download.c before a training, without its calls, for a member of
 * member_open(): settle, choose, fetch what is missing. Errors of settle_state.h and inputs.h; it
 * may be called again to continue.
 */
static inline int member_fetch(struct fl_member *m, const struct fl_task *task,
                               const struct member_server *server, struct fl_err *err)
{
    struct fl_inputs listed = {.n = 0};
    struct fl_settling settling = {.setup = NULL};
    int rv = member_list(server, &listed);

    if (m->task.key.round != task->key.round || m->task.key.attempt != task->key.attempt) {
        fl_inputs_done(&m->inputs); /* As a session cancels the fetch of another attempt. */
    }
    m->task = *task;
    if (rv != FL_OK) {
        goto done;
    }
    if (fl_settling_begin(&m->worker, m->worker.setup, &listed, &m->task, &settling)) {
        rv = fl_settling_run(&settling, &m->worker, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl_settling_choose(&settling, &listed, m->worker.log, &m->inputs, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = member_receive(server, &m->inputs, err);
done:
    fl_settling_done(&settling);
    fl_inputs_done(&listed);
    return rv;
}

#endif
