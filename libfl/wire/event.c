/*
 * ClientEvent: the messages of a client to the server on its control stream. Pure functions, any
 * thread.
 */
#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/wire_impl.h"

/* --- encoding --- */

static int pack_event(Fl__V1__ClientEvent__EventCase event_case, void *part, struct fl_buf *out)
{
    Fl__V1__ClientEvent msg;

    fl__v1__client_event__init(&msg);
    msg.event_case = event_case;
    msg.hello = part; /* a union of pointers */
    return fl__wire_pack(&msg.base, out);
}

static int fill_labels(struct fl__wire_arena *arena, const struct fl_wire_hello *hello,
                       Fl__V1__Hello *msg)
{
    Fl__V1__Hello__LabelsEntry *entries = fl__arena_array(arena, hello->n_labels, sizeof(*entries));
    size_t i;

    msg->n_labels = hello->n_labels;
    msg->labels = fl__arena_array(arena, hello->n_labels, sizeof(*msg->labels));
    if (entries == NULL || msg->labels == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < hello->n_labels; i++) {
        fl__v1__hello__labels_entry__init(&entries[i]);
        entries[i].key = fl__wire_clean(arena, hello->labels[i].key);
        entries[i].value = fl__wire_clean(arena, hello->labels[i].value);
        if (entries[i].key == NULL || entries[i].value == NULL) {
            return FL_ENOMEM;
        }
        msg->labels[i] = &entries[i];
    }
    return FL_OK;
}

static int encode_hello(struct fl__wire_arena *arena, const struct fl_wire_hello *hello,
                        struct fl_buf *out)
{
    Fl__V1__Hello msg;
    Fl__V1__Held held;
    int rv;

    fl__v1__hello__init(&msg);
    fl__v1__held__init(&held);
    msg.version_min = hello->version_min;
    msg.version_max = hello->version_max;
    msg.client = hello->client;
    msg.samples = hello->samples;
    msg.evaluation_samples = hello->evaluation_samples;
    msg.yields = hello->yields;
    msg.agent = fl__wire_clean(arena, hello->agent);
    if (msg.agent == NULL) {
        return FL_ENOMEM;
    }
    if (hello->held) {
        held.round = hello->held_round;
        held.attempt = hello->held_attempt;
        msg.held = &held;
    }
    if (hello->has_digest) {
        msg.model_digest = fl__wire_bytes(hello->digest, sizeof(hello->digest));
    }
    rv = fill_labels(arena, hello, &msg);
    return rv != FL_OK ? rv : pack_event(FL__V1__CLIENT_EVENT__EVENT_HELLO, &msg, out);
}

static void fill_evaluation(const struct fl_wire_evaluation *evaluation, Fl__V1__Evaluation *msg)
{
    msg->samples = evaluation->samples;
    msg->correct = evaluation->correct;
    msg->loss_sum = evaluation->loss_sum;
}

static int encode_report(const struct fl_wire_report *report, struct fl_buf *out)
{
    Fl__V1__Report msg;
    Fl__V1__Evaluation received;
    Fl__V1__Evaluation trained;
    Fl__V1__Held kept;

    fl__v1__report__init(&msg);
    fl__v1__held__init(&kept);
    fl__v1__evaluation__init(&received);
    fl__v1__evaluation__init(&trained);
    msg.round = report->round;
    msg.attempt = report->attempt;
    msg.samples = report->samples;
    msg.steps = report->steps;
    msg.train_loss = report->train_loss;
    msg.n_divergence = report->n_divergence;
    msg.divergence = report->divergence;
    if (report->has_received) {
        fill_evaluation(&report->received, &received);
        msg.received = &received;
    }
    if (report->has_trained) {
        fill_evaluation(&report->trained, &trained);
        msg.trained = &trained;
    }
    msg.previous_dot = report->previous_dot;
    if (report->has_kept) {
        kept.round = report->kept_round;
        kept.attempt = report->kept_attempt;
        msg.kept = &kept;
    }
    return pack_event(FL__V1__CLIENT_EVENT__EVENT_REPORT, &msg, out);
}

static int encode_failed(struct fl__wire_arena *arena, const struct fl_wire_event *event,
                         struct fl_buf *out)
{
    Fl__V1__Failed msg;

    fl__v1__failed__init(&msg);
    msg.round = event->u.failed.round;
    msg.attempt = event->u.failed.attempt;
    msg.diverged = event->u.failed.diverged;
    msg.reason = fl__wire_clean(arena, event->u.failed.reason);
    return msg.reason == NULL ? FL_ENOMEM
                              : pack_event(FL__V1__CLIENT_EVENT__EVENT_FAILED, &msg, out);
}

static int encode_evaluation(const struct fl_wire_event *event, struct fl_buf *out)
{
    Fl__V1__EvaluationReport msg;
    Fl__V1__Evaluation result;
    Fl__V1__Evaluation adapted;

    fl__v1__evaluation_report__init(&msg);
    fl__v1__evaluation__init(&result);
    fl__v1__evaluation__init(&adapted);
    fill_evaluation(&event->u.evaluation.result, &result);
    if (event->u.evaluation.has_adapted) {
        fill_evaluation(&event->u.evaluation.adapted, &adapted);
        msg.adapted = &adapted;
    }
    msg.round = event->u.evaluation.round;
    msg.result = &result;
    return pack_event(FL__V1__CLIENT_EVENT__EVENT_EVALUATION, &msg, out);
}

static int encode_offer(const struct fl_wire_offer *offer, struct fl_buf *out)
{
    Fl__V1__Offer msg;

    fl__v1__offer__init(&msg);
    msg.offset = offer->offset;
    msg.total = offer->total;
    msg.data = fl__wire_bytes(offer->data, offer->len);
    return pack_event(FL__V1__CLIENT_EVENT__EVENT_OFFER, &msg, out);
}

int fl_wire_event_encode(const struct fl_wire_event *event, struct fl_buf *out)
{
    Fl__V1__Heartbeat heartbeat;
    struct fl__wire_arena arena = {NULL};
    int rv = FL_EINVAL;

    fl__v1__heartbeat__init(&heartbeat);
    switch (event->type) {
    case FL_WIRE_HELLO:
        rv = encode_hello(&arena, &event->u.hello, out);
        break;
    case FL_WIRE_REPORT:
        rv = encode_report(&event->u.report, out);
        break;
    case FL_WIRE_HEARTBEAT_EVENT:
        heartbeat.sequence = event->u.heartbeat;
        rv = pack_event(FL__V1__CLIENT_EVENT__EVENT_HEARTBEAT, &heartbeat, out);
        break;
    case FL_WIRE_FAILED:
        rv = encode_failed(&arena, event, out);
        break;
    case FL_WIRE_EVALUATION:
        rv = encode_evaluation(event, out);
        break;
    case FL_WIRE_OFFER:
        rv = encode_offer(&event->u.offer, out);
        break;
    }
    fl__arena_done(&arena);
    return rv;
}

/* --- decoding --- */

static int take_labels(const Fl__V1__Hello *msg, struct fl_wire_hello *ret, struct fl_err *err)
{
    static const char field[] = "ClientEvent.hello.labels";
    struct fl__pair_ref refs[FL_WIRE_MAX_PAIRS];
    size_t i;
    int rv = fl__wire_check_count(field, msg->n_labels, FL_WIRE_MAX_PAIRS, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < msg->n_labels; i++) {
        refs[i] = (struct fl__pair_ref){msg->labels[i]->key, msg->labels[i]->value};
    }
    return fl__wire_take_pairs(field, refs, msg->n_labels, &ret->labels, &ret->n_labels, err);
}

static int take_held(const Fl__V1__Held *msg, struct fl_wire_hello *ret, struct fl_err *err)
{
    if (msg == NULL) {
        return FL_OK;
    }
    ret->held = true;
    ret->held_round = msg->round;
    ret->held_attempt = msg->attempt;
    return fl__wire_check_range("ClientEvent.hello.held.round", msg->round, 1, UINT64_MAX, err);
}

static int event_take_client(const Fl__V1__Hello *msg, char **ret, struct fl_err *err)
{
    if (msg->client[0] == '-') {
        return fl_err_set(err, FL_EPROTO,
                          "ClientEvent.hello.client: a name that begins with '-' is not taken, for "
                          "programs take it for an option: choose another `name`");
    }
    return fl__wire_take_name("ClientEvent.hello.client", msg->client, ret, err);
}

static int decode_hello(const Fl__V1__Hello *msg, struct fl_wire_hello *ret, struct fl_err *err)
{
    int rv;

    ret->version_min = msg->version_min;
    ret->version_max = msg->version_max;
    ret->samples = msg->samples;
    ret->evaluation_samples = msg->evaluation_samples;
    ret->yields = msg->yields;
    if ((rv = fl__wire_check_range("ClientEvent.hello.version_min", msg->version_min, 1, UINT32_MAX,
                                   err)) != FL_OK ||
        (rv = fl__wire_check_range("ClientEvent.hello.version_max", msg->version_max,
                                   msg->version_min, UINT32_MAX, err)) != FL_OK ||
        (rv = event_take_client(msg, &ret->client, err)) != FL_OK ||
        (rv = fl__wire_check_range("ClientEvent.hello.samples", msg->samples, 0,
                                   FL_WIRE_MAX_SAMPLES, err)) != FL_OK ||
        (rv = fl__wire_check_range("ClientEvent.hello.evaluation_samples", msg->evaluation_samples,
                                   0, FL_WIRE_MAX_SAMPLES, err)) != FL_OK ||
        (rv = take_labels(msg, ret, err)) != FL_OK ||
        (rv = fl__wire_take_text("ClientEvent.hello.agent", msg->agent, &ret->agent, err)) !=
            FL_OK ||
        (rv = take_held(msg->held, ret, err)) != FL_OK ||
        (rv = fl__wire_copy_digest("ClientEvent.hello.model_digest", &msg->model_digest,
                                   &ret->has_digest, ret->digest, err)) != FL_OK)
    {
        return rv;
    }
    return FL_OK;
}

/* Names of the fields of an evaluation, prefixed with the message around it. */
struct evaluation_fields {
    const char *self, *samples, *correct;
};

static int take_evaluation(const struct evaluation_fields *field, const Fl__V1__Evaluation *msg,
                           struct fl_wire_evaluation *ret, struct fl_err *err)
{
    int rv;

    if ((rv = fl__wire_check_set(field->self, msg, err)) != FL_OK ||
        (rv = fl__wire_check_range(field->samples, msg->samples, 0, FL_WIRE_MAX_SAMPLES, err)) !=
            FL_OK ||
        (rv = fl__wire_check_range(field->correct, msg->correct, 0, msg->samples, err)) != FL_OK)
    {
        return rv;
    }
    *ret = (struct fl_wire_evaluation){msg->samples, msg->correct, msg->loss_sum};
    return FL_OK;
}

static int take_divergence(const Fl__V1__Report *msg, struct fl_wire_report *ret)
{
    if (msg->n_divergence == 0) {
        return FL_OK;
    }
    ret->divergence = malloc(msg->n_divergence * sizeof(*ret->divergence));
    if (ret->divergence == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(ret->divergence, msg->divergence, msg->n_divergence * sizeof(*ret->divergence));
    ret->n_divergence = msg->n_divergence;
    return FL_OK;
}

static int decode_report(const Fl__V1__Report *msg, struct fl_wire_report *ret, struct fl_err *err)
{
    static const struct evaluation_fields received = {"ClientEvent.report.received",
                                                      "ClientEvent.report.received.samples",
                                                      "ClientEvent.report.received.correct"};
    static const struct evaluation_fields trained = {"ClientEvent.report.trained",
                                                     "ClientEvent.report.trained.samples",
                                                     "ClientEvent.report.trained.correct"};
    int rv;

    ret->round = msg->round;
    ret->attempt = msg->attempt;
    ret->samples = msg->samples;
    ret->steps = msg->steps;
    ret->train_loss = msg->train_loss;
    if ((rv = fl__wire_check_range("ClientEvent.report.round", msg->round, 1, UINT64_MAX, err)) !=
            FL_OK ||
        (rv = fl__wire_check_range("ClientEvent.report.samples", msg->samples, 0,
                                   FL_WIRE_MAX_SAMPLES, err)) != FL_OK ||
        (rv = fl__wire_check_range("ClientEvent.report.steps", msg->steps, 0, FL_WIRE_MAX_SAMPLES,
                                   err)) != FL_OK ||
        (rv = fl__wire_check_count("ClientEvent.report.divergence", msg->n_divergence,
                                   FL_LAYOUT_MAX_UNITS, err)) != FL_OK ||
        (rv = take_divergence(msg, ret)) != FL_OK)
    {
        return rv;
    }
    ret->previous_dot = msg->previous_dot;
    ret->has_kept = msg->kept != NULL;
    ret->kept_round = ret->has_kept ? msg->kept->round : 0;
    ret->kept_attempt = ret->has_kept ? msg->kept->attempt : 0;
    ret->has_received = msg->received != NULL;
    ret->has_trained = msg->trained != NULL;
    rv = ret->has_received ? take_evaluation(&received, msg->received, &ret->received, err) : FL_OK;
    if (rv == FL_OK && ret->has_trained) {
        rv = take_evaluation(&trained, msg->trained, &ret->trained, err);
    }
    return rv;
}

static int decode_offer(const Fl__V1__Offer *msg, struct fl_wire_offer *ret, struct fl_err *err)
{
    int rv = fl__wire_check_range("ClientEvent.offer.total", msg->total, 0, FL_WIRE_OFFER_MAX, err);

    ret->offset = msg->offset;
    ret->total = msg->total;
    if (rv != FL_OK) {
        return rv;
    }
    if (msg->data.len > FL_WIRE_OFFER_PIECE || msg->offset > msg->total ||
        msg->data.len > msg->total - msg->offset)
    {
        return fl_err_set(err, FL_EPROTO,
                          "ClientEvent.offer.data: %zu bytes at %llu of %llu, expected at most %u "
                          "and not past the end",
                          msg->data.len, (unsigned long long)msg->offset,
                          (unsigned long long)msg->total, FL_WIRE_OFFER_PIECE);
    }
    if (msg->data.len == 0) {
        return FL_OK;
    }
    ret->data = malloc(msg->data.len);
    if (ret->data == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(ret->data, msg->data.data, msg->data.len);
    ret->len = msg->data.len;
    return FL_OK;
}

static int decode_failed(const Fl__V1__Failed *msg, struct fl_wire_event *ret, struct fl_err *err)
{
    ret->u.failed.round = msg->round; /* 0: no round, the client leaves */
    ret->u.failed.attempt = msg->attempt;
    ret->u.failed.diverged = msg->diverged;
    return fl__wire_take_text("ClientEvent.failed.reason", msg->reason, &ret->u.failed.reason, err);
}

static int decode_evaluation(const Fl__V1__EvaluationReport *msg, struct fl_wire_event *ret,
                             struct fl_err *err)
{
    static const struct evaluation_fields result = {"ClientEvent.evaluation.result",
                                                    "ClientEvent.evaluation.result.samples",
                                                    "ClientEvent.evaluation.result.correct"};
    static const struct evaluation_fields adapted = {"ClientEvent.evaluation.adapted",
                                                     "ClientEvent.evaluation.adapted.samples",
                                                     "ClientEvent.evaluation.adapted.correct"};
    int rv = take_evaluation(&result, msg->result, &ret->u.evaluation.result, err);

    ret->u.evaluation.round = msg->round;
    ret->u.evaluation.has_adapted = msg->adapted != NULL;
    return rv == FL_OK && msg->adapted != NULL
               ? take_evaluation(&adapted, msg->adapted, &ret->u.evaluation.adapted, err)
               : rv;
}

static int decode_event(const Fl__V1__ClientEvent *msg, struct fl_wire_event *ret,
                        struct fl_err *err)
{
    switch (msg->event_case) {
    case FL__V1__CLIENT_EVENT__EVENT_HELLO:
        ret->type = FL_WIRE_HELLO;
        return decode_hello(msg->hello, &ret->u.hello, err);
    case FL__V1__CLIENT_EVENT__EVENT_REPORT:
        ret->type = FL_WIRE_REPORT;
        return decode_report(msg->report, &ret->u.report, err);
    case FL__V1__CLIENT_EVENT__EVENT_HEARTBEAT:
        ret->type = FL_WIRE_HEARTBEAT_EVENT;
        ret->u.heartbeat = msg->heartbeat->sequence;
        return FL_OK;
    case FL__V1__CLIENT_EVENT__EVENT_FAILED:
        ret->type = FL_WIRE_FAILED;
        return decode_failed(msg->failed, ret, err);
    case FL__V1__CLIENT_EVENT__EVENT_EVALUATION:
        ret->type = FL_WIRE_EVALUATION;
        return decode_evaluation(msg->evaluation, ret, err);
    case FL__V1__CLIENT_EVENT__EVENT_OFFER:
        ret->type = FL_WIRE_OFFER;
        return decode_offer(msg->offer, &ret->u.offer, err);
    default: /* not set, or the hidden value that protobuf-c adds to its enums */
        return fl_err_set(err, FL_EPROTO,
                          "ClientEvent.event: none is set that version %d of the wire knows",
                          FL_WIRE_VERSION);
    }
}

int fl_wire_event_decode(const void *data, size_t len, struct fl_wire_event *ret,
                         struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_event event = {0};
    int rv =
        fl__wire_unpack(&fl__v1__client_event__descriptor, data, len, FL_WIRE_MAX_EVENT, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = decode_event((const Fl__V1__ClientEvent *)u.msg, &event, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_event_done(&event);
        return rv;
    }
    *ret = event;
    return FL_OK;
}

void fl_wire_event_done(struct fl_wire_event *event)
{
    switch (event->type) {
    case FL_WIRE_HELLO:
        free(event->u.hello.client);
        free(event->u.hello.agent);
        fl__wire_pairs_done(event->u.hello.labels, event->u.hello.n_labels);
        break;
    case FL_WIRE_REPORT:
        free(event->u.report.divergence);
        break;
    case FL_WIRE_FAILED:
        free(event->u.failed.reason);
        break;
    case FL_WIRE_OFFER:
        free(event->u.offer.data);
        break;
    case FL_WIRE_HEARTBEAT_EVENT:
    case FL_WIRE_EVALUATION:
        break;
    }
    *event = (struct fl_wire_event){0};
}
