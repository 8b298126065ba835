/*
 * Messages of fl.v1.Admin about the status, the rounds and the clients. Pure functions, any thread.
 * Certificates, invitations and models are in admin_*.c.
 */
#include <stdlib.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "libfl/wire/wire_admin.h"
#include "libfl/wire/wire_impl.h"

/* Maximum size of a status, a round or a client. */
#define LINE_MAX_BYTES 65536
/* Maximum size of a WhyReply with the names of many missing clients. */
#define WHY_MAX_BYTES   (1u << 20)
#define WHY_MAX_MISSING 4096

/* --- figures: the rows of libfl/figures by the names of their fields --- */

/* Copy between `msg` and the record `rec`. */
#define PUT(type, member, field, ...)  (msg)->field = rec->member;
#define TAKE(type, member, field, ...) rec->member = (msg)->field;
/* Of a StatusReply. */
#define PUT_TOTAL(type, member, field, sent, ...)  SENT_##sent(PUT(type, member, field, ))
#define TAKE_TOTAL(type, member, field, sent, ...) SENT_##sent(TAKE(type, member, field, ))
#define SENT_TOTALS(assignment)                    assignment
#define SENT_OWN(assignment)

/* The values for an absent message. */
static Fl__V1__LocalFigures unknown_figures(void)
{
    Fl__V1__LocalFigures none;

    fl__v1__local_figures__init(&none);
    none.accuracy = none.mean = -1.0;
    return none;
}

/* Omitted from the message when no figure is known. */
static Fl__V1__LocalFigures *if_known(Fl__V1__LocalFigures *figures)
{
    return figures->accuracy >= 0.0 ? figures : NULL;
}

/* --- StatusReply --- */

static void put_totals(const struct fl_round_rec *rec, Fl__V1__StatusReply *msg)
{
    FL_ROUND_FIGURES(PUT_TOTAL)
}

static void take_totals(Fl__V1__StatusReply reply, struct fl_round_rec *rec)
{
    Fl__V1__LocalFigures none = unknown_figures();
    Fl__V1__StatusReply *msg = &reply;

    msg->personal = msg->personal != NULL ? msg->personal : &none;
    msg->received = msg->received != NULL ? msg->received : &none;
    FL_ROUND_FIGURES(TAKE_TOTAL)
}

int fl_wire_status_encode(const struct fl_wire_status *status, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__StatusReply msg;
    Fl__V1__LocalFigures personal = unknown_figures();
    Fl__V1__LocalFigures received = unknown_figures();
    int rv = FL_ENOMEM;

    fl__v1__status_reply__init(&msg);
    msg.personal = &personal;
    msg.received = &received;
    put_totals(&status->totals, &msg);
    msg.personal = if_known(&personal);
    msg.received = if_known(&received);
    msg.federation = fl__wire_clean(&arena, status->federation);
    msg.phase = fl__wire_clean(&arena, status->phase);
    msg.algorithm = fl__wire_clean(&arena, status->algorithm);
    msg.version = fl__wire_clean(&arena, status->version);
    msg.round = status->round;
    msg.rounds_committed = status->rounds_committed;
    msg.rounds_total = status->rounds_total;
    msg.clients_known = status->clients_known;
    msg.clients_connected = status->clients_connected;
    msg.uptime_ms = status->uptime_ms;
    msg.why = fl__wire_clean(&arena, status->why != NULL ? status->why : "");
    if (msg.federation != NULL && msg.phase != NULL && msg.algorithm != NULL &&
        msg.version != NULL && msg.why != NULL)
    {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

static int take_status(const Fl__V1__StatusReply *msg, struct fl_wire_status *ret,
                       struct fl_err *err)
{
    int rv;

    ret->round = msg->round;
    ret->rounds_committed = msg->rounds_committed;
    ret->rounds_total = msg->rounds_total;
    ret->clients_known = msg->clients_known;
    ret->clients_connected = msg->clients_connected;
    ret->uptime_ms = msg->uptime_ms;
    take_totals(*msg, &ret->totals);
    if ((rv = fl__wire_take_text("StatusReply.federation", msg->federation, &ret->federation,
                                 err)) != FL_OK ||
        (rv = fl__wire_take_text("StatusReply.phase", msg->phase, &ret->phase, err)) != FL_OK ||
        (rv = fl__wire_take_text("StatusReply.algorithm", msg->algorithm, &ret->algorithm, err)) !=
            FL_OK ||
        (rv = fl__wire_take_text("StatusReply.version", msg->version, &ret->version, err)) !=
            FL_OK ||
        (rv = fl__wire_take_text("StatusReply.why", msg->why, &ret->why, err)) != FL_OK)
    {
        return rv;
    }
    return FL_OK;
}

int fl_wire_status_decode(const void *data, size_t len, struct fl_wire_status *ret,
                          struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_status status = {0};
    int rv = fl__wire_unpack(&fl__v1__status_reply__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = take_status((const Fl__V1__StatusReply *)u.msg, &status, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_status_done(&status);
        return rv;
    }
    *ret = status;
    return FL_OK;
}

void fl_wire_status_done(struct fl_wire_status *status)
{
    free(status->federation);
    free(status->phase);
    free(status->algorithm);
    free(status->version);
    free(status->why);
    *status = (struct fl_wire_status){0};
}

/* --- WhyReply --- */

int fl_wire_why_encode(const struct fl_wire_why *why, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__WhyReply msg;
    /* The list is cut; the text has the total number of missing clients. */
    size_t n = why->n_missing < WHY_MAX_MISSING ? why->n_missing : WHY_MAX_MISSING;
    size_t i;
    int rv = FL_ENOMEM;

    fl__v1__why_reply__init(&msg);
    msg.text = fl__wire_clean(&arena, why->text);
    msg.missing = fl__arena_array(&arena, n, sizeof(*msg.missing));
    if (msg.text == NULL || msg.missing == NULL) {
        goto out;
    }
    msg.n_missing = n;
    for (i = 0; i < n; i++) {
        msg.missing[i] = why->missing[i];
    }
    rv = fl__wire_pack(&msg.base, out);
out:
    fl__arena_done(&arena);
    return rv;
}

static int take_why(const Fl__V1__WhyReply *msg, struct fl_wire_why *ret, struct fl_err *err)
{
    size_t i;
    int rv = fl__wire_take_text("WhyReply.text", msg->text, &ret->text, err);

    if (rv == FL_OK) {
        rv = fl__wire_check_count("WhyReply.missing", msg->n_missing, WHY_MAX_MISSING, err);
    }
    if (rv != FL_OK || msg->n_missing == 0) {
        return rv;
    }
    ret->missing = calloc(msg->n_missing, sizeof(*ret->missing));
    if (ret->missing == NULL) {
        return FL_ENOMEM;
    }
    ret->n_missing = msg->n_missing;
    for (i = 0; i < msg->n_missing && rv == FL_OK; i++) {
        rv = fl__wire_take_name("WhyReply.missing", msg->missing[i], &ret->missing[i], err);
    }
    return rv;
}

int fl_wire_why_decode(const void *data, size_t len, struct fl_wire_why *ret, struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_why why = {0};
    int rv = fl__wire_unpack(&fl__v1__why_reply__descriptor, data, len, WHY_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = take_why((const Fl__V1__WhyReply *)u.msg, &why, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_why_done(&why);
        return rv;
    }
    *ret = why;
    return FL_OK;
}

void fl_wire_why_done(struct fl_wire_why *why)
{
    size_t i;

    free(why->text);
    for (i = 0; i < why->n_missing; i++) {
        free(why->missing[i]);
    }
    free(why->missing);
    *why = (struct fl_wire_why){0};
}

/* --- RoundInfo --- */

static void admin_put_round(const struct fl_round_rec *rec, Fl__V1__RoundInfo *msg)
{
    FL_ROUND_FIGURES(PUT)
}

static void admin_take_round(Fl__V1__RoundInfo info, struct fl_round_rec *rec)
{
    Fl__V1__LocalFigures none = unknown_figures();
    Fl__V1__RoundInfo *msg = &info;

    msg->personal = msg->personal != NULL ? msg->personal : &none;
    msg->received = msg->received != NULL ? msg->received : &none;
    FL_ROUND_FIGURES(TAKE)
}

int fl_wire_round_encode(const struct fl_wire_round *round, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__LocalFigures personal = unknown_figures();
    Fl__V1__LocalFigures received = unknown_figures();
    Fl__V1__RoundInfo msg;
    int rv;

    fl__v1__round_info__init(&msg);
    msg.personal = &personal;
    msg.received = &received;
    admin_put_round(&round->figures, &msg);
    msg.personal = if_known(&personal);
    msg.received = if_known(&received);
    msg.changes = round->changes;
    msg.n_changes = round->n_changes < FL_WIRE_MAX_CHANGES ? round->n_changes : FL_WIRE_MAX_CHANGES;
    msg.line = round->line;
    msg.abandoned_ms = round->abandoned_ms;
    msg.abandoned_by = fl__wire_clean(&arena, round->abandoned_by);
    rv = msg.abandoned_by != NULL ? fl__wire_pack(&msg.base, out) : FL_ENOMEM;
    fl__arena_done(&arena);
    return rv;
}

void fl_wire_round_done(struct fl_wire_round *round)
{
    size_t i;

    for (i = 0; i < round->n_changes; i++) {
        free(round->changes[i]);
    }
    free(round->changes);
    free(round->abandoned_by);
    *round = (struct fl_wire_round){0};
}

static int take_changes(const Fl__V1__RoundInfo *msg, struct fl_wire_round *ret, struct fl_err *err)
{
    size_t i;
    int rv = fl__wire_check_count("RoundInfo.changes", msg->n_changes, FL_WIRE_MAX_CHANGES, err);

    if (rv != FL_OK || msg->n_changes == 0) {
        return rv;
    }
    ret->changes = calloc(msg->n_changes, sizeof(*ret->changes));
    if (ret->changes == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; rv == FL_OK && i < msg->n_changes; i++) {
        rv = fl__wire_take_text("RoundInfo.changes", msg->changes[i], &ret->changes[i], err);
        ret->n_changes = i + 1;
    }
    return rv;
}

int fl_wire_round_decode(const void *data, size_t len, struct fl_wire_round *ret,
                         struct fl_err *err)
{
    struct fl__unpacked u;
    const Fl__V1__RoundInfo *msg;
    int rv = fl__wire_unpack(&fl__v1__round_info__descriptor, data, len, WHY_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__RoundInfo *)u.msg;
    *ret = (struct fl_wire_round){
        .line = msg->line,
        .abandoned_ms = msg->abandoned_ms,
    };
    admin_take_round(*msg, &ret->figures);
    rv = take_changes(msg, ret, err);
    rv = rv == FL_OK ? fl__wire_take_text("RoundInfo.abandoned_by", msg->abandoned_by,
                                          &ret->abandoned_by, err)
                     : rv;
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_round_done(ret);
    }
    return rv;
}

/* --- ClientInfo --- */

static int put_labels(struct fl__wire_arena *arena, const struct fl_wire_client *client,
                      Fl__V1__ClientInfo *msg)
{
    size_t n = client->n_labels < FL_WIRE_MAX_PAIRS ? client->n_labels : FL_WIRE_MAX_PAIRS;
    Fl__V1__ClientInfo__LabelsEntry *entries = fl__arena_array(arena, n, sizeof(*entries));
    size_t i;

    msg->labels = fl__arena_array(arena, n, sizeof(*msg->labels));
    if (entries == NULL || msg->labels == NULL) {
        return FL_ENOMEM;
    }
    msg->n_labels = n;
    for (i = 0; i < n; i++) {
        fl__v1__client_info__labels_entry__init(&entries[i]);
        entries[i].key = fl__wire_clean(arena, client->labels[i].key);
        entries[i].value = fl__wire_clean(arena, client->labels[i].value);
        if (entries[i].key == NULL || entries[i].value == NULL) {
            return FL_ENOMEM;
        }
        msg->labels[i] = &entries[i];
    }
    return FL_OK;
}

static int take_client_labels(const Fl__V1__ClientInfo *msg, struct fl_wire_client *ret,
                              struct fl_err *err)
{
    static const char field[] = "ClientInfo.labels";
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

static void admin_put_client(const struct fl_client_figures *rec, Fl__V1__ClientInfo *msg)
{
    FL_CLIENT_FIGURES(PUT)
}

int fl_wire_client_encode(const struct fl_wire_client *client, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__ClientInfo msg;
    int rv = FL_ENOMEM;

    fl__v1__client_info__init(&msg);
    msg.name = client->name;
    msg.agent = fl__wire_clean(&arena, client->agent);
    msg.state = fl__wire_clean(&arena, client->state);
    msg.last_error = fl__wire_clean(&arena, client->last_error != NULL ? client->last_error : "");
    msg.last_error_ms = client->last_error_ms;
    msg.takeovers = client->takeovers;
    msg.connected = client->connected;
    admin_put_client(&client->figures, &msg);
    if (msg.agent != NULL && msg.state != NULL && msg.last_error != NULL &&
        put_labels(&arena, client, &msg) == FL_OK)
    {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

static int admin_take_client(const Fl__V1__ClientInfo *msg, struct fl_wire_client *ret,
                             struct fl_err *err)
{
    struct fl_client_figures *rec = &ret->figures;
    int rv;

    FL_CLIENT_FIGURES(TAKE)
    ret->connected = msg->connected != 0;
    ret->last_error_ms = msg->last_error_ms;
    ret->takeovers = msg->takeovers;
    if ((rv = fl__wire_take_name("ClientInfo.name", msg->name, &ret->name, err)) != FL_OK ||
        (rv = fl__wire_take_text("ClientInfo.agent", msg->agent, &ret->agent, err)) != FL_OK ||
        (rv = fl__wire_take_text("ClientInfo.state", msg->state, &ret->state, err)) != FL_OK ||
        (rv = fl__wire_take_text("ClientInfo.last_error", msg->last_error, &ret->last_error,
                                 err)) != FL_OK)
    {
        return rv;
    }
    return take_client_labels(msg, ret, err);
}

int fl_wire_client_decode(const void *data, size_t len, struct fl_wire_client *ret,
                          struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_client client = {0};
    int rv = fl__wire_unpack(&fl__v1__client_info__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = admin_take_client((const Fl__V1__ClientInfo *)u.msg, &client, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_client_done(&client);
        return rv;
    }
    *ret = client;
    return FL_OK;
}

void fl_wire_client_done(struct fl_wire_client *client)
{
    free(client->name);
    free(client->agent);
    free(client->state);
    free(client->last_error);
    fl__wire_pairs_done(client->labels, client->n_labels);
    *client = (struct fl_wire_client){0};
}

/* --- ExportChunk, ListRoundsRequest --- */

int fl_wire_export_encode(const struct fl_wire_export_chunk *chunk, struct fl_buf *out)
{
    Fl__V1__ExportChunk msg;

    fl__v1__export_chunk__init(&msg);
    msg.round = chunk->round;
    msg.data = fl__wire_bytes(chunk->data, chunk->len);
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_export_decode(const void *data, size_t len, struct fl_wire_export_chunk *ret,
                          struct fl_err *err)
{
    struct fl_wire_chunk chunk = {0};
    /* Has the same fields as a Chunk: a number and bytes. */
    int rv = fl_wire_chunk_decode(data, len, &chunk, err);

    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "ExportChunk");
    }
    *ret = (struct fl_wire_export_chunk){chunk.offset, chunk.data, chunk.len};
    return FL_OK;
}

int fl_wire_list_rounds_encode(const struct fl_wire_list_rounds *list, struct fl_buf *out)
{
    Fl__V1__ListRoundsRequest msg;

    fl__v1__list_rounds_request__init(&msg);
    msg.last = list->last;
    msg.abandoned = list->abandoned;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_list_rounds_decode(const void *data, size_t len, struct fl_wire_list_rounds *ret,
                               struct fl_err *err)
{
    struct fl__unpacked u;
    const Fl__V1__ListRoundsRequest *msg;
    int rv = fl__wire_unpack(&fl__v1__list_rounds_request__descriptor, data, len, LINE_MAX_BYTES,
                             &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__ListRoundsRequest *)u.msg;
    *ret = (struct fl_wire_list_rounds){msg->last, msg->abandoned != 0};
    fl__wire_unpacked_done(&u);
    return FL_OK;
}
