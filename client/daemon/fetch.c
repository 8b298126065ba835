/*
 * Fetching bundles. The happy path of a task: the lane settles what is kept between rounds by
 * what the server counted, and looks for bundles on the disk; then the bundles that are needed
 * are fetched one after the other: a FetchRequest, then chunks in rising offsets straight
 * into the block. What is there when a stream breaks stays, and the next Fetch of the same
 * round goes on from it.
 */

#include <stdlib.h>
#include <string.h>

#include "client/daemon/client.h"
#include "client/work/settle.h"
#include "libfl/base/sm.h"

enum fetch_state {
    FETCH_IDLE,     /* what is there waits for the next try */
    FETCH_SETTLING, /* on the lane */
    FETCH_RUNNING,  /* a call */
    FETCH_TELLING,  /* the call ended and what follows is under way: on_closed goes on after it */
    FETCH_OVER,     /* given up while TELLING: on_closed frees it */
    FETCH_GIVEN_UP, /* freed when the call or the lane is done with it */
    FETCH_STATES
};

static const struct fl_sm_state fetch_states[FETCH_STATES] = {
    [FETCH_IDLE] = {"IDLE", FL_SM_TO(FETCH_SETTLING) | FL_SM_TO(FETCH_RUNNING)},
    [FETCH_SETTLING] = {"SETTLING", FL_SM_TO(FETCH_IDLE) | FL_SM_TO(FETCH_GIVEN_UP)},
    [FETCH_RUNNING] = {"RUNNING", FL_SM_TO(FETCH_TELLING) | FL_SM_TO(FETCH_GIVEN_UP)},
    [FETCH_TELLING] = {"TELLING", FL_SM_TO(FETCH_IDLE) | FL_SM_TO(FETCH_SETTLING) |
                                      FL_SM_TO(FETCH_RUNNING) | FL_SM_TO(FETCH_OVER)},
    [FETCH_OVER] = {"OVER", 0},
    [FETCH_GIVEN_UP] = {"GIVEN_UP", 0},
};

struct fl_fetch {
    struct fl_clientd *cli;
    struct fl_sm sm;
    struct fl_setup *setup; /* a reference */
    struct fl_call *call;   /* RUNNING, and until it has ended; else NULL */
    struct fl_round_key key;
    bool evaluation; /* which kind: of a model, not of a task */
    struct fl_inputs in;
    size_t at; /* of the list: being fetched */
};

static int next_bundle(struct fl_fetch *f);

static void fetch_free(struct fl_fetch *f)
{
    fl_inputs_done(&f->in);
    fl_setup_unref(f->setup);
    free(f);
}

static void failed(struct fl_fetch *f, const char *text, bool permanent)
{
    fl_log_peer(f->cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                "fetching the bundles of round %llu: %s", (unsigned long long)f->key.round, text);
    fl_clientd_step_failed(f->cli, FL_CEV_FETCH_FAILED, f->key, text, permanent);
}

/* Everything is here. */
static void finished(struct fl_fetch *f)
{
    struct fl_clientd *cli = f->cli;

    if (f->evaluation) {
        float *model = (float *)(void *)f->in.list[0].data;

        f->in.list[0].data = NULL;
        fl_work_evaluate(cli, f->key.round, f->setup, model);
        return;
    }
    fl_inputs_done(&cli->inputs);
    cli->inputs = f->in;
    f->in = (struct fl_inputs){.n = 0};
    fl_clientd_step_key(cli, FL_CEV_FETCHED, f->key);
}

/* The bundle that was under way is whole. */
static void go_on(struct fl_fetch *f)
{
    struct fl_input *in = &f->in.list[f->at];
    struct fl_err err = {0};
    int rv = fl_inputs_check(in, &err);

    if (rv != FL_OK) {
        in->have = 0;
    } else {
        rv = next_bundle(f);
    }
    if (rv == FL_OK) {
        return;
    }
    if (f->evaluation) {
        fl_clientd_step_failed(f->cli, FL_CEV_EVALUATE_FAILED, f->key, fl_err_text(&err, rv),
                               false);
    } else {
        failed(f, fl_err_text(&err, rv), false);
    }
}

static void broke_off(struct fl_fetch *f, enum fl_grpc_status status, const char *message)
{
    const struct fl_input *in = &f->in.list[f->at];
    const char *text =
        message != NULL && message[0] != '\0' ? message : fl_grpc_status_name(status);

    if (f->evaluation) {
        fl_clientd_step_failed(f->cli, FL_CEV_EVALUATE_FAILED, f->key, text, false);
        return;
    }
    fl_log_peer(f->cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                "fetching '%s' of round %llu ended at %llu of %llu bytes: %s", in->name,
                (unsigned long long)f->key.round, (unsigned long long)in->have,
                (unsigned long long)in->bytes, text);
    fl_clientd_step_failed(f->cli, FL_CEV_FETCH_FAILED, f->key, text,
                           status == FL_GRPC_NOT_FOUND || status == FL_GRPC_OUT_OF_RANGE);
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_fetch *f = ctx;
    struct fl_input *in = &f->in.list[f->at];
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};
    int rv = fl_wire_chunk_decode(data, len, &chunk, &err);

    if (rv == FL_OK && (chunk.offset != in->have || chunk.len > in->bytes - in->have)) {
        rv = fl_err_set(&err, FL_EPROTO,
                        "chunk of %zu bytes at %llu, expected offset %llu of %llu bytes", chunk.len,
                        (unsigned long long)chunk.offset, (unsigned long long)in->have,
                        (unsigned long long)in->bytes);
    }
    if (rv != FL_OK) {
        fl_log_peer(f->cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "bad chunk from the server: %s", fl_err_text(&err, rv));
        fl_call_cancel(call);
        return true;
    }
    (void)memcpy(in->data + in->have, chunk.data, chunk.len);
    in->have += chunk.len;
    return true;
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct fl_fetch *f = ctx;

    (void)call;
    f->call = NULL;
    if (f->sm.state == FETCH_GIVEN_UP) {
        fetch_free(f);
        return;
    }
    fl_sm_move(&f->sm, FETCH_TELLING);
    if (status == FL_GRPC_OK && f->in.list[f->at].have == f->in.list[f->at].bytes) {
        go_on(f);
    } else {
        broke_off(f, status, message);
    }
    if (f->sm.state == FETCH_OVER) {
        fetch_free(f);
    } else if (f->sm.state == FETCH_TELLING) {
        fl_sm_move(&f->sm, FETCH_IDLE);
        if (f->evaluation) { /* Each has a fetch of its own. */
            f->cli->evaluate_fetch = NULL;
            fetch_free(f);
        }
    } /* Else the next bundle or the next try is under way. */
}

static const struct fl_call_handler fetch_handler = {.on_message = on_message,
                                                     .on_closed = on_closed};

static int begin(struct fl_fetch *f, const struct fl_input *in)
{
    struct fl_clientd *cli = f->cli;
    struct fl_wire_fetch request = {
        .session = cli->token, .round = f->key.round, .offset = in->have};
    struct fl_buf buf;
    struct fl_piece piece;
    int rv;

    if (cli->channel == NULL) {
        return FL_ECLOSED;
    }
    rv = fl_str_copy(request.bundle, sizeof(request.bundle), in->name);
    fl_buf_init(&buf, 4096);
    if (rv == FL_OK) {
        rv = fl_wire_fetch_encode(&request, &buf);
    }
    if (rv == FL_OK) {
        rv = fl_grpc_call(cli->channel, "/fl.v1.Federation/Fetch", 0, &fetch_handler, f, &f->call);
    }
    if (rv == FL_OK) {
        fl_sm_move(&f->sm, FETCH_RUNNING);
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

static int next_bundle(struct fl_fetch *f)
{
    size_t i;

    for (i = 0; i < f->in.n; i++) {
        struct fl_input *in = &f->in.list[i];

        if (in->data == NULL) {
            in->data = malloc((size_t)in->bytes + 1);
            in->have = 0;
        }
        if (in->data == NULL) {
            return FL_ENOMEM;
        }
        if (in->have < in->bytes) {
            f->at = i;
            return begin(f, in);
        }
    }
    finished(f);
    return FL_OK;
}

/* --- before the first bundle: what is kept, and what is on the disk --- */

struct settle_job {
    struct fl_fetch *f;
    struct fl_clientd *cli;
    struct fl_settling settling;
    int code;
    struct fl_err err;
};

/* Of the lane: nothing of the fetch or of the task is touched. */
static void settle_work(void *arg)
{
    struct settle_job *job = arg;

    job->code = fl_settling_run(&job->settling, &job->cli->worker, &job->err);
}

static void start(struct fl_fetch *f, struct fl_settling *settling)
{
    struct fl_err err = {0};
    int rv = fl_settling_choose(settling, &f->cli->listed, f->cli->log, &f->in, &err);

    if (rv != FL_OK) {
        failed(f, fl_err_text(&err, rv), rv == FL_EPROTO);
        return;
    }
    rv = next_bundle(f);
    if (rv != FL_OK) {
        failed(f, fl_strerror(rv), false);
    }
}

static void settle_done(void *arg)
{
    struct settle_job *job = arg;
    struct fl_fetch *f = job->f;

    if (f->sm.state == FETCH_GIVEN_UP) {
        fetch_free(f);
    } else {
        fl_sm_move(&f->sm, FETCH_IDLE);
        if (job->code != FL_OK) {
            failed(f, fl_err_text(&job->err, job->code), false);
        } else if (!job->cli->stopping) {
            start(f, &job->settling);
        }
    }
    fl_settling_done(&job->settling);
    free(job);
}

/* Takes `settling`, on error too. */
static int settle(struct fl_fetch *f, struct fl_settling *settling)
{
    struct settle_job *job = calloc(1, sizeof(*job));
    int rv = FL_ENOMEM;

    if (job != NULL) {
        *job = (struct settle_job){.f = f, .cli = f->cli, .settling = *settling};
        rv = fl_lane_submit(f->cli->lane, settle_work, f->cli->loop, settle_done, job);
    }
    if (rv != FL_OK) {
        fl_settling_done(settling);
        free(job);
        return rv;
    }
    fl_sm_move(&f->sm, FETCH_SETTLING);
    return FL_OK;
}

/* --- the two kinds --- */

void fl_fetch_begin(struct fl_clientd *cli, struct fl_round_key key)
{
    struct fl_settling settling;
    struct fl_fetch *f = cli->fetch;

    if (f != NULL && (f->sm.state == FETCH_RUNNING || f->sm.state == FETCH_SETTLING ||
                      f->key.round != key.round || f->setup != cli->setup))
    {
        fl_fetch_cancel(cli);
        f = NULL;
    }
    if (f == NULL) {
        f = calloc(1, sizeof(*f));
        if (f == NULL) {
            fl_clientd_step_failed(cli, FL_CEV_FETCH_FAILED, key, "out of memory", false);
            return;
        }
        f->cli = cli;
        fl_sm_init(&f->sm, fetch_states, FETCH_STATES, FETCH_IDLE);
        f->setup = fl_setup_ref(cli->setup);
        cli->fetch = f;
    }
    f->key = key;
    if (!fl_settling_begin(&cli->worker, f->setup, &cli->listed, key, cli->task.counted, &settling))
    {
        start(f, &settling);
        fl_settling_done(&settling);
    } else if (settle(f, &settling) != FL_OK) {
        failed(f, "out of memory", false);
    }
}

void fl_fetch_cancel(struct fl_clientd *cli)
{
    struct fl_fetch *f = cli->fetch;

    if (f == NULL) {
        return;
    }
    cli->fetch = NULL;
    if (f->sm.state == FETCH_IDLE) {
        fetch_free(f);
    } else if (f->sm.state == FETCH_TELLING) {
        fl_sm_move(&f->sm, FETCH_OVER);
    } else {
        fl_sm_move(&f->sm, FETCH_GIVEN_UP);
        if (f->call != NULL) {
            fl_call_cancel(f->call);
        }
    }
}

void fl_fetch_evaluation(struct fl_clientd *cli)
{
    struct fl_round_key key = {.round = cli->evaluate_round};
    struct fl_fetch *f = cli->evaluate_fetch == NULL ? calloc(1, sizeof(*f)) : NULL;
    uint64_t bytes = fl_layout_count(cli->setup->layout) * sizeof(float);
    struct fl_err err = {0};
    int rv = f != NULL ? FL_OK
             : cli->evaluate_fetch == NULL
                 ? FL_ENOMEM
                 : fl_err_set(&err, FL_ESTATE, "the model of the one before is still fetched");

    if (rv == FL_OK && cli->evaluate_bundle.bytes != bytes) {
        rv = fl_err_set(&err, FL_EPROTO, "the bundle '%s' has %llu bytes, the model %llu",
                        cli->evaluate_bundle.name, (unsigned long long)cli->evaluate_bundle.bytes,
                        (unsigned long long)bytes);
    }
    if (rv == FL_OK) {
        f->cli = cli;
        fl_sm_init(&f->sm, fetch_states, FETCH_STATES, FETCH_IDLE);
        f->key = key;
        f->setup = fl_setup_ref(cli->setup);
        f->evaluation = true;
        f->in.n = 1;
        f->in.list[0] = cli->evaluate_bundle;
        rv = next_bundle(f);
    }
    if (rv == FL_OK) {
        cli->evaluate_fetch = f;
        return;
    }
    if (f != NULL) {
        fetch_free(f);
    }
    fl_clientd_step_failed(cli, FL_CEV_EVALUATE_FAILED, key, fl_err_text(&err, rv), false);
}

void fl_fetch_free(struct fl_clientd *cli)
{
    fl_fetch_cancel(cli);
}
