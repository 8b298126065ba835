/*
 * A client of a simulated federation without a daemon (member.h): its folder, trainer, client/store
 * and client/work. One call at a time, on any thread. Sessions and time are in sim_session.c.
 */
#include "tools/fl_sim/engine/member.h"

#include <stdlib.h>
#include <string.h>

#include "server/work/payload_sizes.h"

/* --- process --- */

int fl_member_begin(struct fl_member *m, const struct fl_member_place *place,
                    struct fl_setup *setup, struct fl_err *err)
{
    int rv;

    *m = (struct fl_member){
        .begun = true,
        .worker = {.log = place->log,
                   .terms = {.summaries = true, .least_group = place->least_group},
                   .seed = place->seed},
        .held = {.log = place->log}};
    rv = fl_client_state_open_scratch(place->dir, place->log, &m->worker.keeps, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_worker_prepare(&m->worker, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    fl_member_close(m);
    return rv;
}

void fl_member_lend(struct fl_member *m, struct fl_trainer *trainer)
{
    FL_REQUIRE(m->begun);
    m->worker.trainer = trainer;
}

void fl_member_close(struct fl_member *m)
{
    if (m->begun) {
        m->worker.trainer = NULL; /* Return the trainer to its owner. */
    }
    fl_inputs_done(&m->inputs);
    fl_pending_result_done(&m->held);
    fl_worker_done(&m->worker);
    *m = (struct fl_member){.dir = ""};
}

/* --- a task --- */

/* Lent payloads have no digest, so that they are neither read from nor written to the disk
   cache. */
static void member_list_payloads(const struct fl_member_payload *payloads, size_t n,
                                 struct fl_inputs *ret)
{
    struct fl_wire_payload wire[FL_WIRE_MAX_PAYLOADS] = {{0}};
    struct fl_wire_task task = {.payloads = wire, .n_payloads = n};
    size_t i;

    FL_REQUIRE(n <= FL_WIRE_MAX_PAYLOADS);
    for (i = 0; i < n; i++) {
        wire[i].name = fl_wire_lend(payloads[i].name);
        wire[i].bytes = payloads[i].len;
    }
    fl_inputs_list(ret, &task);
}

static int member_settle(struct fl_member *m, struct fl_inputs *listed, struct fl_err *err)
{
    struct fl_settling settling;
    int rv = FL_OK;

    if (fl_settling_begin(&m->worker, m->worker.setup, listed, &m->task, &settling)) {
        rv = fl_settling_run(&settling, &m->worker, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl_settling_choose(&settling, listed, m->worker.log, &m->inputs, err);
done:
    fl_settling_done(&settling);
    return rv;
}

static const struct fl_member_payload *member_find_payload(const struct fl_member_payload *payloads,
                                                           size_t n, const char *name)
{
    size_t i = 0;

    while (i < n && strcmp(payloads[i].name, name) != 0) {
        i++;
    }
    FL_REQUIRE(i < n); /* Every chosen payload was listed. */
    return &payloads[i];
}

/* Chosen payloads are read in place. */
static void member_borrow_payloads(struct fl_inputs *inputs,
                                   const struct fl_member_payload *payloads, size_t n)
{
    size_t i;

    for (i = 0; i < inputs->n; i++) {
        struct fl_input *in = &inputs->list[i];

        fl_input_drop(in); /* one of an earlier attempt may be at another address */
        fl_input_lend(in, member_find_payload(payloads, n, in->name)->data);
    }
}

int fl_member_fetch(struct fl_member *m, const struct fl_task *task,
                    const struct fl_member_payload *payloads, size_t n, struct fl_err *err)
{
    struct fl_inputs listed = {.n = 0};
    int rv;

    FL_REQUIRE(m->begun);
    member_list_payloads(payloads, n, &listed);
    if (m->task.key.round != task->key.round || m->task.key.attempt != task->key.attempt) {
        fl_inputs_done(&m->inputs); /* Exclude the data summaries of other clients. */
    }
    m->task = *task;
    rv = member_settle(m, &listed, err);
    if (rv != FL_OK) {
        goto done;
    }
    member_borrow_payloads(&m->inputs, payloads, n);
done:
    fl_inputs_done(&listed);
    return rv;
}

int fl_member_train(struct fl_member *m, struct fl_err *err)
{
    struct fl_training *training = NULL;
    int rv = fl_training_new(&m->worker, &m->task, &m->inputs, NULL, NULL, &training, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_training_run(training, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl_pending_result_put(&m->held, fl_training_take(training));
done:
    fl_training_free(training);
    return rv;
}

int fl_member_code(struct fl_member *m, const uint8_t *units, struct fl_code *ret,
                   struct fl_err *err)
{
    int rv;

    *ret = (struct fl_code){.setup = NULL};
    rv = fl_code_begin(ret, &m->worker, m->held.result, units,
                       fl_layout_units(m->worker.setup->layout));
    if (rv != FL_OK) {
        return rv;
    }
    return fl_code_run(ret, err);
}

/* --- messages between member and server --- */

int fl_member_setup(const struct fl_described *of, struct fl_setup **ret, struct fl_err *err)
{
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    struct fl_wire_command heard = {.type = FL_WIRE_WELCOME};
    struct fl_buf wire;
    int rv = fl_welcome_describe(of, &command.u.welcome);

    if (rv != FL_OK) {
        return rv;
    }
    command.u.welcome.heartbeat_ms = 1000; /* The trainer does not use these. */
    command.u.welcome.limits = (struct fl_wire_limits){
        .chunk_bytes = 1u << 20, .message_bytes = 1u << 24, .streams = 1, .idle_ms = 1000};
    fl_buf_init(&wire, SIZE_MAX / 2);
    rv = fl_wire_command_encode(&command, &wire);
    fl_welcome_done(&command.u.welcome);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_wire_command_decode(wire.data, wire.len, &heard, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_setup_create(&heard.u.welcome, ret, err);
done:
    fl_buf_done(&wire);
    return rv;
}

static int member_upload_to_file(const struct fl_federation *f, const char *name,
                                 const struct fl_code *code, const struct fl_spool_part *parts,
                                 struct fl_norms *ret, struct fl_err *err)
{
    const struct fl_round_key key = code->result->key;
    const struct fl_spool_opening o = {.dir = f->state_dir,
                                       .round = key.round,
                                       .attempt = key.attempt,
                                       .client = name,
                                       .parts = parts,
                                       .n_parts = code->n_parts};
    struct fl_spool *spool = NULL;
    uint64_t there = 0;
    int rv = fl_spool_open(&o, &spool, &there, err);

    if (rv != FL_OK) {
        goto done;
    }
    if (there < fl_blob_len(code->bytes)) {
        rv = fl_spool_write(spool, there, fl_blob_data(code->bytes) + there,
                            (size_t)(fl_blob_len(code->bytes) - there), err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl_spool_finish(spool, fl_federation_updates(f), f->norm_bound, FL_DURABLE_PROCESS, err);
    if (rv != FL_OK) {
        goto done;
    }
    *ret = fl_spool_take_norms(spool);
done:
    fl_spool_close(spool);
    return rv;
}

static int member_upload_to_memory(const struct fl_federation *f, const char *name,
                                   const struct fl_code *code, const struct fl_spool_part *parts,
                                   struct fl_norms *ret, struct fl_err *err)
{
    const struct fl_round_key key = code->result->key;
    struct fl_upload *upload = NULL;
    int rv = fl_upload_make(parts, code->n_parts, code->bytes, fl_federation_updates(f),
                            f->norm_bound, &upload, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret = fl_upload_take_norms(upload);
    rv = fl_uploads_put(f->uploads, key.round, key.attempt, name, upload);
    if (rv != FL_OK) {
        fl_upload_free(upload);
        free(ret->unit);
        ret->unit = NULL;
        rv = fl_err_set(err, rv, "the upload of '%s': %s", name, fl_strerror(rv));
    }
    return rv;
}

int fl_member_upload(const struct fl_federation *f, const char *name, const struct fl_code *code,
                     struct fl_norms *ret, struct fl_err *err)
{
    const struct fl_wire_push_header header = {.parts = code->parts, .n_parts = code->n_parts};
    struct fl_spool_part *parts = NULL;
    int rv =
        fl_sent_parts(fl_federation_updates(f), f->strategy, &header, code->units, &parts, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = f->uploads != NULL ? member_upload_to_memory(f, name, code, parts, ret, err)
                            : member_upload_to_file(f, name, code, parts, ret, err);
    free(parts);
    return rv;
}
