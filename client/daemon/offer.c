/*
 * What this client tells of its data before it can be selected (Welcome.wants_offer; the means
 * of FedMix). The happy path: the lane makes it once, then it goes out
 * in pieces on the control stream, never more than half of what that stream queues, so
 * that heartbeats and reports still find room. A reconnect sends the same bytes again.
 */

#include <stdlib.h>

#include "client/daemon/client.h"
#include "client/train/trainer.h"

struct offer_job {
    struct fl_clientd *cli;
    struct fl_buf data;
    int code;
    struct fl_err err;
};

/* One piece; total 0 is one empty piece. */
static void send_piece(struct fl_clientd *cli, size_t len)
{
    struct fl_wire_event event = {.type = FL_WIRE_OFFER};

    event.u.offer.offset = cli->offer_sent;
    event.u.offer.total = cli->offer.len;
    event.u.offer.data = len > 0 ? cli->offer.data + cli->offer_sent : NULL;
    event.u.offer.len = len;
    fl_control_send(cli, &event);
    cli->offer_sent += len;
}

void fl_offer_go_on(struct fl_clientd *cli)
{
    if (!cli->offer_wanted || !cli->offer_made) {
        return;
    }
    do {
        size_t left = cli->offer.len - (size_t)cli->offer_sent;

        /* Above half of its limit, the stream tells when it is below it again. */
        if (cli->attend == NULL || fl_call_queued(cli->attend) > cli->queue_bytes / 2) {
            return;
        }
        send_piece(cli, left < FL_WIRE_OFFER_PIECE ? left : FL_WIRE_OFFER_PIECE);
    } while (cli->offer_sent < cli->offer.len);
    cli->offer_wanted = false;
    fl_log(cli->log, FL_LOG_INFO, "client", "told the server of the data: %zu bytes",
           cli->offer.len);
}

static void offer_work(void *arg)
{
    struct offer_job *job = arg;

    job->code =
        fl_trainer_offer(job->cli->worker.trainer, job->cli->worker.seed, &job->data, &job->err);
}

static void offer_done(void *arg)
{
    struct offer_job *job = arg;
    struct fl_clientd *cli = job->cli;

    cli->offer_making = false;
    if (job->code != FL_OK) {
        /* The wire has it that a client takes part without an offer too. */
        fl_log(cli->log, FL_LOG_WARNING, "client",
               "cannot tell the server of the data, taking part without: %s",
               fl_err_text(&job->err, job->code));
        fl_buf_done(&job->data);
        fl_buf_init(&job->data, 0);
    }
    fl_buf_done(&cli->offer);
    cli->offer = job->data;
    cli->offer_made = true;
    free(job);
    if (!cli->stopping) {
        fl_offer_go_on(cli);
    }
}

void fl_offer_begin(struct fl_clientd *cli)
{
    struct offer_job *job;

    cli->offer_wanted = true;
    cli->offer_sent = 0;
    if (cli->offer_made || cli->offer_making) {
        fl_offer_go_on(cli);
        return;
    }
    job = calloc(1, sizeof(*job));
    if (job != NULL) {
        job->cli = cli;
        fl_buf_init(&job->data, FL_OFFER_MAX);
        if (fl_lane_submit(cli->lane, offer_work, cli->loop, offer_done, job) == FL_OK) {
            cli->offer_making = true;
            return;
        }
        free(job);
    }
    fl_log(cli->log, FL_LOG_ERROR, "client", "out of memory");
    if (cli->attend != NULL) { /* Come again: without an offer nothing is asked of us. */
        fl_call_cancel(cli->attend);
    }
}

void fl_offer_stop(struct fl_clientd *cli)
{
    cli->offer_wanted = false;
}

void fl_offer_forget(struct fl_clientd *cli)
{
    fl_buf_done(&cli->offer);
    cli->offer_made = false;
}
