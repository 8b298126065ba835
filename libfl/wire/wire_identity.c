/*
 * Messages of fl.v1.Identity (Join, Renew), and the fields they share with the messages of
 * fl.v1.Admin about certificates. Pure functions, any thread. Certificates stay DER bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "fl/v1/identity.pb-c.h"
#include "libfl/base/str.h"
#include "libfl/wire/identity_impl.h"
#include "libfl/wire/wire_identity.h"

/* --- bytes --- */

int fl_wire_bytes_copy(const void *data, size_t len, struct fl_wire_bytes *ret)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);

    if (copy == NULL) {
        return FL_ENOMEM;
    }
    if (len > 0) {
        (void)memcpy(copy, data, len);
    }
    *ret = (struct fl_wire_bytes){copy, len};
    return FL_OK;
}

void fl_wire_bytes_done(struct fl_wire_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct fl_wire_bytes){NULL};
}

int fl__wire_check_bytes(const char *field, const ProtobufCBinaryData *value, size_t min,
                         size_t max, struct fl_err *err)
{
    if (value->len >= min && value->len <= max) {
        return FL_OK;
    }
    if (min == max) {
        return fl_err_set(err, FL_EPROTO, "%s: %zu bytes, expected %zu", field, value->len, min);
    }
    return fl_err_set(err, FL_EPROTO, "%s: %zu bytes, expected %zu to %zu", field, value->len, min,
                      max);
}

int fl__wire_take_csr(const char *field, const ProtobufCBinaryData *value,
                      struct fl_wire_bytes *ret, struct fl_err *err)
{
    int rv = fl__wire_check_bytes(field, value, 1, FL_WIRE_MAX_CSR, err);

    return rv != FL_OK ? rv : fl_wire_bytes_copy(value->data, value->len, ret);
}

/* --- chains --- */

void fl_wire_chain_done(struct fl_wire_chain *chain)
{
    size_t i;

    for (i = 0; i < chain->n; i++) {
        fl_wire_bytes_done(&chain->list[i]);
    }
    free(chain->list);
    *chain = (struct fl_wire_chain){NULL};
}

int fl__wire_take_chain(const char *field, const ProtobufCBinaryData *list, size_t n,
                        struct fl_wire_chain *ret, struct fl_err *err)
{
    int rv;

    if (n == 0) {
        return fl_err_set(err, FL_EPROTO, "%s: no certificate", field);
    }
    rv = fl__wire_check_count(field, n, FL_WIRE_MAX_CHAIN, err);
    if (rv != FL_OK) {
        return rv;
    }
    ret->list = calloc(n, sizeof(*ret->list));
    if (ret->list == NULL) {
        return FL_ENOMEM;
    }
    while (rv == FL_OK && ret->n < n) {
        const ProtobufCBinaryData *one = &list[ret->n];

        rv = fl__wire_check_bytes(field, one, 1, FL_WIRE_MAX_CERTIFICATE, err);
        rv = rv != FL_OK ? rv : fl_wire_bytes_copy(one->data, one->len, &ret->list[ret->n]);
        ret->n += rv == FL_OK;
    }
    return rv;
}

ProtobufCBinaryData *fl__wire_put_chain(struct fl__wire_arena *arena,
                                        const struct fl_wire_chain *chain)
{
    ProtobufCBinaryData *list = fl__arena_array(arena, chain->n + 1, sizeof(*list));
    size_t i;

    for (i = 0; list != NULL && i < chain->n; i++) {
        list[i] = fl__wire_bytes(chain->list[i].data, chain->list[i].len);
    }
    return list;
}

/* --- labels --- */

void fl_wire_labels_done(struct fl_wire_labels *labels)
{
    fl__wire_pairs_done(labels->list, labels->n);
    *labels = (struct fl_wire_labels){NULL};
}

int fl__wire_put_labels(struct fl__wire_arena *arena, const struct fl_wire_labels *labels,
                        Fl__V1__Labels **ret)
{
    Fl__V1__Labels *msg = fl__arena_array(arena, 1, sizeof(*msg));
    Fl__V1__Labels__LabelsEntry *entries = fl__arena_array(arena, labels->n + 1, sizeof(*entries));
    size_t i;

    *ret = NULL;
    if (labels->n == 0) {
        return FL_OK;
    }
    if (msg == NULL || entries == NULL) {
        return FL_ENOMEM;
    }
    fl__v1__labels__init(msg);
    msg->labels = fl__arena_array(arena, labels->n, sizeof(*msg->labels));
    if (msg->labels == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < labels->n; i++) {
        fl__v1__labels__labels_entry__init(&entries[i]);
        entries[i].key = fl__wire_clean(arena, labels->list[i].key);
        entries[i].value = fl__wire_clean(arena, labels->list[i].value);
        if (entries[i].key == NULL || entries[i].value == NULL) {
            return FL_ENOMEM;
        }
        msg->labels[i] = &entries[i];
    }
    msg->n_labels = labels->n;
    *ret = msg;
    return FL_OK;
}

int fl__wire_take_labels(const char *field, const Fl__V1__Labels *msg, struct fl_wire_labels *ret,
                         struct fl_err *err)
{
    struct fl__pair_ref refs[FL_WIRE_MAX_PAIRS];
    size_t bytes = 0;
    size_t i;
    int rv;

    if (msg == NULL) {
        return FL_OK;
    }
    rv = fl__wire_check_count(field, msg->n_labels, FL_WIRE_MAX_PAIRS, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < msg->n_labels; i++) {
        refs[i] = (struct fl__pair_ref){msg->labels[i]->key, msg->labels[i]->value};
        bytes += strlen(refs[i].key) + strlen(refs[i].value) + 2;
    }
    if (bytes > FL_WIRE_LABELS_BYTES) {
        return fl_err_set(err, FL_EPROTO, "%s: %zu bytes of labels, at most %d are taken", field,
                          bytes, FL_WIRE_LABELS_BYTES);
    }
    return fl__wire_take_pairs(field, refs, msg->n_labels, &ret->list, &ret->n, err);
}

/* --- names --- */

bool fl_wire_pattern_valid(const char *pattern)
{
    char name[FL_NAME_MAX];
    size_t i;

    if (fl_str_copy(name, sizeof(name), pattern) != FL_OK) {
        return false;
    }
    for (i = 0; name[i] != '\0'; i++) {
        if (name[i] == '*' || name[i] == '?') {
            name[i] = 'x';
        }
    }
    return fl_name_valid(name);
}

int fl__wire_copy_optional(const char *field, const char *value, char ret[FL_NAME_MAX],
                           struct fl_err *err)
{
    if (value[0] == '\0') {
        ret[0] = '\0';
        return FL_OK;
    }
    return fl__wire_copy_name(field, value, ret, err);
}

/* --- Join --- */

int fl_wire_join_encode(const struct fl_wire_join *join, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__JoinRequest msg;
    int rv = FL_ENOMEM;

    fl__v1__join_request__init(&msg);
    msg.token = fl__wire_bytes(join->token, sizeof(join->token));
    msg.name = fl_wire_lend(join->name);
    msg.request = fl__wire_bytes(join->request.data, join->request.len);
    msg.agent = fl__wire_clean(&arena, join->agent);
    msg.time_ms = join->time_ms;
    if (msg.agent != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

static int take_join(const Fl__V1__JoinRequest *msg, struct fl_wire_join *ret, struct fl_err *err)
{
    int rv =
        fl__wire_check_bytes("JoinRequest.token", &msg->token, FL_WIRE_TOKEN, FL_WIRE_TOKEN, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(ret->token, msg->token.data, FL_WIRE_TOKEN);
    ret->time_ms = msg->time_ms;
    if ((rv = fl__wire_copy_optional("JoinRequest.name", msg->name, ret->name, err)) != FL_OK ||
        (rv = fl__wire_take_csr("JoinRequest.request", &msg->request, &ret->request, err)) !=
            FL_OK ||
        (rv = fl__wire_take_text("JoinRequest.agent", msg->agent, &ret->agent, err)) != FL_OK)
    {
        return rv;
    }
    return fl__wire_check_range("JoinRequest.time_ms", msg->time_ms, 0, FL_WIRE_MAX_TIME_MS, err);
}

int fl_wire_join_decode(const void *data, size_t len, struct fl_wire_join *ret, struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_join join = {.name = ""};
    Fl__V1__JoinRequest *msg;
    int rv = fl__wire_unpack(&fl__v1__join_request__descriptor, data, len, FL_WIRE_MAX_IDENTITY, &u,
                             err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (Fl__V1__JoinRequest *)u.msg;
    rv = take_join(msg, &join, err);
    if (msg->token.len > 0) { /* An empty value has no memory. */
        explicit_bzero(msg->token.data, msg->token.len);
    }
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_join_done(&join);
        return rv;
    }
    *ret = join;
    return FL_OK;
}

void fl_wire_join_done(struct fl_wire_join *join)
{
    fl_wire_bytes_done(&join->request);
    free(join->agent);
    explicit_bzero(join, sizeof(*join));
}

int fl_wire_joined_encode(const struct fl_wire_joined *reply, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__JoinReply msg;
    int rv;

    fl__v1__join_reply__init(&msg);
    msg.name = fl_wire_lend(reply->name);
    msg.federation = fl_wire_lend(reply->federation);
    msg.chain = fl__wire_put_chain(&arena, &reply->chain);
    msg.n_chain = reply->chain.n;
    msg.roots = fl__wire_put_chain(&arena, &reply->roots);
    msg.n_roots = reply->roots.n;
    msg.time_ms = reply->time_ms;
    rv = msg.chain != NULL && msg.roots != NULL
             ? fl__wire_put_labels(&arena, &reply->labels, &msg.labels)
             : FL_ENOMEM;
    rv = rv == FL_OK ? fl__wire_pack(&msg.base, out) : rv;
    fl__arena_done(&arena);
    return rv;
}

static int take_joined(const Fl__V1__JoinReply *msg, struct fl_wire_joined *ret, struct fl_err *err)
{
    int rv;

    ret->time_ms = msg->time_ms;
    if ((rv = fl__wire_copy_name("JoinReply.name", msg->name, ret->name, err)) != FL_OK ||
        (rv = fl__wire_copy_name("JoinReply.federation", msg->federation, ret->federation, err)) !=
            FL_OK ||
        (rv = fl__wire_take_chain("JoinReply.chain", msg->chain, msg->n_chain, &ret->chain, err)) !=
            FL_OK ||
        (rv = fl__wire_take_chain("JoinReply.roots", msg->roots, msg->n_roots, &ret->roots, err)) !=
            FL_OK ||
        (rv = fl__wire_take_labels("JoinReply.labels", msg->labels, &ret->labels, err)) != FL_OK)
    {
        return rv;
    }
    return fl__wire_check_range("JoinReply.time_ms", msg->time_ms, 0, FL_WIRE_MAX_TIME_MS, err);
}

int fl_wire_joined_decode(const void *data, size_t len, struct fl_wire_joined *ret,
                          struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_joined reply = {.name = ""};
    int rv =
        fl__wire_unpack(&fl__v1__join_reply__descriptor, data, len, FL_WIRE_MAX_IDENTITY, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = take_joined((const Fl__V1__JoinReply *)u.msg, &reply, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_joined_done(&reply);
        return rv;
    }
    *ret = reply;
    return FL_OK;
}

void fl_wire_joined_done(struct fl_wire_joined *reply)
{
    fl_wire_chain_done(&reply->chain);
    fl_wire_chain_done(&reply->roots);
    fl_wire_labels_done(&reply->labels);
    *reply = (struct fl_wire_joined){.name = ""};
}

/* --- Renew --- */

int fl_wire_renew_encode(const struct fl_wire_renew *renew, struct fl_buf *out)
{
    Fl__V1__RenewRequest msg;

    fl__v1__renew_request__init(&msg);
    msg.request = fl__wire_bytes(renew->request.data, renew->request.len);
    msg.time_ms = renew->time_ms;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_renew_decode(const void *data, size_t len, struct fl_wire_renew *ret,
                         struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_renew renew = {.time_ms = 0};
    const Fl__V1__RenewRequest *msg;
    int rv = fl__wire_unpack(&fl__v1__renew_request__descriptor, data, len, FL_WIRE_MAX_IDENTITY,
                             &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__RenewRequest *)u.msg;
    renew.time_ms = msg->time_ms;
    rv = fl__wire_check_range("RenewRequest.time_ms", msg->time_ms, 0, FL_WIRE_MAX_TIME_MS, err);
    rv = rv != FL_OK
             ? rv
             : fl__wire_take_csr("RenewRequest.request", &msg->request, &renew.request, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = renew;
    }
    return rv;
}

void fl_wire_renew_done(struct fl_wire_renew *renew)
{
    fl_wire_bytes_done(&renew->request);
    renew->time_ms = 0;
}

int fl_wire_renewed_encode(const struct fl_wire_renewed *reply, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__RenewReply msg;
    int rv = FL_ENOMEM;

    fl__v1__renew_reply__init(&msg);
    msg.chain = fl__wire_put_chain(&arena, &reply->chain);
    msg.n_chain = reply->chain.n;
    msg.roots = fl__wire_put_chain(&arena, &reply->roots);
    msg.n_roots = reply->roots.n;
    msg.time_ms = reply->time_ms;
    if (msg.chain != NULL && msg.roots != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

int fl_wire_renewed_decode(const void *data, size_t len, struct fl_wire_renewed *ret,
                           struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_renewed reply = {.time_ms = 0};
    const Fl__V1__RenewReply *msg;
    int rv =
        fl__wire_unpack(&fl__v1__renew_reply__descriptor, data, len, FL_WIRE_MAX_IDENTITY, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__RenewReply *)u.msg;
    reply.time_ms = msg->time_ms;
    rv = fl__wire_check_range("RenewReply.time_ms", msg->time_ms, 0, FL_WIRE_MAX_TIME_MS, err);
    rv = rv != FL_OK
             ? rv
             : fl__wire_take_chain("RenewReply.chain", msg->chain, msg->n_chain, &reply.chain, err);
    rv = rv != FL_OK
             ? rv
             : fl__wire_take_chain("RenewReply.roots", msg->roots, msg->n_roots, &reply.roots, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_renewed_done(&reply);
        return rv;
    }
    *ret = reply;
    return FL_OK;
}

void fl_wire_renewed_done(struct fl_wire_renewed *reply)
{
    fl_wire_chain_done(&reply->chain);
    fl_wire_chain_done(&reply->roots);
    reply->time_ms = 0;
}
