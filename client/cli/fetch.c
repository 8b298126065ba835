/*
 * Fetching bundles: a FetchRequest, then chunks in rising offsets straight into the block.
 * What is there when a stream breaks stays, and the next Fetch of the same round goes on
 * from it.
 */

#include <stdlib.h>
#include <string.h>

#include "client/cli/client.h"

struct fl_fetch {
    struct fl_cli *cli;
    struct fl_call *call; /* NULL: none runs */
    struct fl_round_key key;
    bool evaluation;
    uint8_t *block; /* the model, or an owned block of an evaluation */
    uint64_t have, total;
    bool cancelled;
    bool ending; /* the session is being told: it may cancel, and on_closed still frees */
};

static void ended(struct fl_fetch *f, enum fl_grpc_status status, const char *message)
{
    struct fl_cli *cli = f->cli;
    bool whole = status == FL_GRPC_OK && f->have == f->total;
    const char *text = message != NULL && message[0] != '\0' ? message
                       : whole                               ? NULL
                                                             : fl_grpc_status_name(status);

    if (f->evaluation) {
        if (whole) {
            float *model = (float *)(void *)f->block;

            f->block = NULL;
            fl_work_evaluate(cli, f->key.round, model);
        } else {
            fl_cli_step_failed(cli, FL_CEV_EVALUATED, f->key, text, false);
        }
        return;
    }
    if (whole) {
        fl_cli_step_key(cli, FL_CEV_FETCHED, f->key);
        return;
    }
    fl_log(cli->log, FL_LOG_WARNING, "client",
           "fetching the model of round %llu ended at %llu of "
           "%llu bytes: %s",
           (unsigned long long)f->key.round, (unsigned long long)f->have,
           (unsigned long long)f->total, text);
    fl_cli_step_failed(cli, FL_CEV_FETCH_FAILED, f->key, text,
                       status == FL_GRPC_NOT_FOUND || status == FL_GRPC_OUT_OF_RANGE);
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_fetch *f = ctx;
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};
    int rv = fl_wire_chunk_decode(data, len, &chunk, &err);

    if (rv == FL_OK && (chunk.offset != f->have || chunk.len > f->total - f->have)) {
        rv = fl_err_set(&err, FL_EPROTO,
                        "chunk of %zu bytes at %llu, expected offset %llu of %llu bytes", chunk.len,
                        (unsigned long long)chunk.offset, (unsigned long long)f->have,
                        (unsigned long long)f->total);
    }
    if (rv != FL_OK) {
        fl_log(f->cli->log, FL_LOG_WARNING, "client", "bad chunk from the server: %s",
               fl_err_text(&err, rv));
        fl_call_cancel(call);
        return true;
    }
    (void)memcpy(f->block + f->have, chunk.data, chunk.len);
    f->have += chunk.len;
    return true;
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct fl_fetch *f = ctx;

    (void)call;
    f->call = NULL;
    if (!f->cancelled) {
        f->ending = true;
        ended(f, status, message);
        f->ending = false;
    }
    if (f->evaluation) {
        f->cli->evaluate_fetch = f->cli->evaluate_fetch == f ? NULL : f->cli->evaluate_fetch;
        free(f->block);
        free(f);
    } else if (f->cli->fetch != f) { /* A newer one has replaced it. */
        free(f);
    }
}

static const struct fl_call_handler fetch_handler = {.on_message = on_message,
                                                     .on_closed = on_closed};

static int begin(struct fl_fetch *f, const char *bundle)
{
    struct fl_cli *cli = f->cli;
    struct fl_wire_fetch request = {
        .session = cli->token, .round = f->key.round, .offset = f->have};
    struct fl_buf buf;
    struct fl_piece piece;
    int rv;

    if (cli->channel == NULL) {
        return FL_ECLOSED;
    }
    rv = fl_str_copy(request.bundle, sizeof(request.bundle), bundle);
    fl_buf_init(&buf, 4096);
    if (rv == FL_OK) {
        rv = fl_wire_fetch_encode(&request, &buf);
    }
    if (rv == FL_OK) {
        rv = fl_grpc_call(cli->channel, "/fl.v1.Federation/Fetch", 0, &fetch_handler, f, &f->call);
    }
    if (rv == FL_OK) {
        piece = (struct fl_piece){.data = buf.data, .len = buf.len};
        rv = fl_call_send(f->call, &piece, 1);
        fl_call_end(f->call);
        if (rv != FL_OK) { /* on_closed tells the session. */
            fl_call_cancel(f->call);
            rv = FL_OK;
        }
    }
    fl_buf_done(&buf);
    return rv;
}

static struct fl_fetch *fetch_new(struct fl_cli *cli, struct fl_round_key key)
{
    struct fl_fetch *f = calloc(1, sizeof(*f));

    if (f != NULL) {
        f->cli = cli;
        f->key = key;
        f->total = fl_layout_count(cli->welcome.layout) * sizeof(float);
    }
    return f;
}

void fl_fetch_begin(struct fl_cli *cli, struct fl_round_key key)
{
    struct fl_fetch *f = cli->fetch;
    int rv;

    if (f != NULL && (f->call != NULL || f->key.round != key.round)) {
        fl_fetch_cancel(cli);
        f = NULL;
    }
    if (f == NULL) {
        f = fetch_new(cli, key);
        if (f == NULL) {
            fl_cli_step_failed(cli, FL_CEV_FETCH_FAILED, key, "out of memory", false);
            return;
        }
        cli->fetch = f;
    }
    if (cli->model == NULL) { /* Training has taken the last one. */
        cli->model = malloc((size_t)f->total + 1);
        f->have = 0;
    }
    f->key = key;
    f->block = (uint8_t *)cli->model;
    rv = f->block != NULL ? begin(f, "model") : FL_ENOMEM;
    if (rv != FL_OK) {
        fl_cli_step_failed(cli, FL_CEV_FETCH_FAILED, key, fl_strerror(rv), false);
    }
}

void fl_fetch_cancel(struct fl_cli *cli)
{
    struct fl_fetch *f = cli->fetch;

    if (f == NULL) {
        return;
    }
    cli->fetch = NULL;
    if (f->call != NULL) {
        f->cancelled = true; /* on_closed frees it. */
        fl_call_cancel(f->call);
    } else if (!f->ending) {
        free(f);
    }
}

void fl_fetch_evaluation(struct fl_cli *cli)
{
    struct fl_round_key key = {.round = cli->evaluate_round};
    struct fl_fetch *f = cli->evaluate_fetch == NULL ? fetch_new(cli, key) : NULL;
    int rv = f != NULL ? FL_OK : FL_ENOMEM;

    if (rv == FL_OK) {
        f->evaluation = true;
        f->block = malloc((size_t)f->total + 1);
        rv = f->block != NULL ? begin(f, cli->evaluate_bundle) : FL_ENOMEM;
    }
    if (rv == FL_OK) {
        cli->evaluate_fetch = f;
        return;
    }
    if (f != NULL) {
        free(f->block);
        free(f);
    }
    fl_cli_step_failed(cli, FL_CEV_EVALUATED, key, fl_strerror(rv), false);
}

void fl_fetch_free(struct fl_cli *cli)
{
    fl_fetch_cancel(cli);
}
