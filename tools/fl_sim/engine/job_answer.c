/* The answers of jobs (worker_pool.h), also as bytes: those of the event are its message. */
#include <stdlib.h>
#include <string.h>

#include "libfl/base/writer.h"
#include "tools/fl_sim/engine/worker_pool.h"

/* The event's message and norms.unit follow. */
struct answer_head {
    int64_t code;
    uint64_t bytes, n_event, n_units;
    double rms[FL_NORMS_N];
    char why[96];
};

void fl_job_answer_done(struct fl_job_answer *answer)
{
    if (answer->event.type == FL_WIRE_REPORT) {
        free(answer->event.u.report.divergence);
        free(answer->event.u.report.received.metrics);
        free(answer->event.u.report.trained.metrics);
    } else if (answer->event.type == FL_WIRE_EVALUATION) {
        free(answer->event.u.evaluation.result.metrics);
        free(answer->event.u.evaluation.adapted.metrics);
    }
    answer->event.type = 0;
    free(answer->norms.unit);
    answer->norms.unit = NULL;
    answer->n_units = 0;
}

int fl_job_answer_encode(const struct fl_job_answer *answer, struct fl_buf *out)
{
    struct fl_writer w = {.out = out};
    struct answer_head head;
    size_t at = out->len;

    (void)memset(&head, 0, sizeof(head)); /* Zeroed including padding, as it may be in a file. */
    head.code = answer->code;
    head.bytes = answer->bytes;
    head.n_units = answer->n_units;
    (void)memcpy(head.rms, answer->norms.rms, sizeof(head.rms));
    (void)memcpy(head.why, answer->why, sizeof(head.why));
    fl_writer_add(&w, &head, sizeof(head));
    if (w.code == FL_OK && answer->event.type != 0) {
        fl_writer_note(&w, fl_wire_event_encode(&answer->event, out));
        head.n_event = out->len - at - sizeof(head);
        (void)memcpy(out->data + at, &head, sizeof(head));
    }
    fl_writer_add(&w, answer->norms.unit, answer->n_units * sizeof(*answer->norms.unit));
    return w.code;
}

static int answer_decode_norms(const uint8_t *data, size_t len, uint64_t n_units,
                               struct fl_job_answer *ret)
{
    if (len % sizeof(*ret->norms.unit) != 0 || n_units != len / sizeof(*ret->norms.unit)) {
        return FL_EFORMAT;
    }
    if (n_units == 0) {
        return FL_OK;
    }
    ret->norms.unit = malloc(len);
    if (ret->norms.unit == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(ret->norms.unit, data, len);
    ret->n_units = (size_t)n_units;
    return FL_OK;
}

int fl_job_answer_decode(const uint8_t *data, size_t len, struct fl_job_answer *ret,
                         struct fl_err *err)
{
    struct fl_job_answer answer = {.code = FL_OK};
    struct answer_head head;
    int rv;

    if (len < sizeof(head)) {
        return FL_EFORMAT;
    }
    (void)memcpy(&head, data, sizeof(head));
    data += sizeof(head);
    len -= sizeof(head);
    if (head.n_event > len) {
        return FL_EFORMAT;
    }
    answer.code = (int)head.code;
    answer.bytes = head.bytes;
    (void)memcpy(answer.norms.rms, head.rms, sizeof(head.rms));
    (void)memcpy(answer.why, head.why, sizeof(head.why) - 1);
    if (head.n_event > 0) {
        rv = fl_wire_event_decode(data, (size_t)head.n_event, &answer.event, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (answer.event.type != FL_WIRE_REPORT && answer.event.type != FL_WIRE_EVALUATION) {
            fl_wire_event_done(&answer.event);
            return FL_EFORMAT;
        }
    }
    rv =
        answer_decode_norms(data + head.n_event, len - (size_t)head.n_event, head.n_units, &answer);
    if (rv != FL_OK) {
        fl_job_answer_done(&answer);
        return rv;
    }
    *ret = answer;
    return FL_OK;
}
