/* What the server of a simulated federation keeps on its disk: a log of records. */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/fed.h"

enum record_kind {
    RECORD_FORGET,
    RECORD_SELECTION,
    RECORD_PLAN,
    RECORD_UPDATE,
    RECORD_SPOOL,
    RECORD_DROP,
    RECORD_COMMIT
};

struct head {
    enum record_kind kind;
    uint32_t attempt;
    uint64_t round;
    size_t n;
    struct fl_round_size size; /* of a selection */
    size_t n_clients;          /* records before the parts */
    uint64_t expected, departed;
};

struct part {
    uint32_t client;
    enum fl_part_state state;
    uint64_t samples, steps, upload_bytes;
    double train_loss, previous_dot;
    struct fl_eval_rec received, trained;
    bool has_divergence, has_units;
    float divergence[FED_UNITS];
    uint8_t units[FED_UNITS];
};

static void put(struct fl_buf *buf, const void *data, size_t len)
{
    ck_assert_int_eq(fl_buf_add(buf, data, len), FL_OK);
}

static void put_part(struct fl_buf *buf, const struct fl_part_rec *rec)
{
    struct part p;

    (void)memset(&p, 0, sizeof(p));
    p.client = rec->client;
    p.state = rec->state;
    p.samples = rec->samples;
    p.steps = rec->steps;
    p.upload_bytes = rec->upload_bytes;
    p.train_loss = rec->train_loss;
    p.previous_dot = rec->previous_dot;
    p.received = rec->received;
    p.trained = rec->trained;
    p.has_divergence = rec->divergence != NULL;
    p.has_units = rec->units != NULL;
    if (p.has_divergence) {
        (void)memcpy(p.divergence, rec->divergence, sizeof(p.divergence));
    }
    if (p.has_units) {
        (void)memcpy(p.units, rec->units, sizeof(p.units));
    }
    put(buf, &p, sizeof(p));
}

void fed_store_write(struct fed *fed, const struct fl_effect *e, uint64_t tag)
{
    struct head head;
    struct fl_buf buf;
    size_t i;

    fl_buf_init(&buf, 1u << 20);
    (void)memset(&head, 0, sizeof(head));
    head.round = e->round;
    head.attempt = e->attempt;
    head.n = e->n_parts;
    head.size = e->size;
    head.n_clients = e->n_clients;
    head.expected = e->expected;
    head.departed = e->departed;
    if (e->type == FL_EFF_FORGET_CLIENTS || e->type == FL_EFF_COMMIT) {
        head.kind = e->type == FL_EFF_COMMIT ? RECORD_COMMIT : RECORD_FORGET;
        put(&buf, &head, sizeof(head));
        if (e->type == FL_EFF_COMMIT) {
            put(&buf, &fed->server.next, sizeof(fed->server.next));
        }
        put(&buf, e->clients, e->n_clients * sizeof(*e->clients));
    } else {
        head.kind = e->type == FL_EFF_PERSIST_SELECTION ? RECORD_SELECTION
                    : e->type == FL_EFF_PERSIST_PLAN    ? RECORD_PLAN
                                                        : RECORD_UPDATE;
        put(&buf, &head, sizeof(head));
        if (e->n_clients > 0) {
            put(&buf, e->clients, e->n_clients * sizeof(*e->clients));
        }
        for (i = 0; i < e->n_parts; i++) {
            put_part(&buf, &e->parts[i]);
        }
    }
    fl_sim_write(fed->sim, FED_SERVER, tag, buf.data, buf.len);
    fl_buf_done(&buf);
}

void fed_store_spool(struct fed *fed, uint64_t tag, const struct fed_upload *upload)
{
    struct head head;
    struct fl_buf buf;

    fl_buf_init(&buf, 4096);
    (void)memset(&head, 0, sizeof(head));
    head.kind = RECORD_SPOOL;
    put(&buf, &head, sizeof(head));
    put(&buf, upload, sizeof(*upload));
    fl_sim_write(fed->sim, FED_SERVER, tag, buf.data, buf.len);
    fl_buf_done(&buf);
}

void fed_store_drop(struct fed *fed, uint64_t tag, uint64_t round, uint32_t attempt)
{
    struct head head;

    (void)memset(&head, 0, sizeof(head));
    head.kind = RECORD_DROP;
    head.round = round;
    head.attempt = attempt;
    fl_sim_write(fed->sim, FED_SERVER, tag, &head, sizeof(head));
}

/* As the real one: a name has one number, a number one record. */
static void read_client(struct fed *fed, struct fed_store *s, const struct fl_client_rec *rec)
{
    size_t i;

    for (i = 0; i < s->n_clients && s->clients[i].id != rec->id; i++) {
        if (strcmp(s->clients[i].name, rec->name) == 0) {
            fed_fail(fed, "%s is on disk as %" PRIu32 " and as %" PRIu32, rec->name,
                     s->clients[i].id, rec->id);
        }
    }
    if (i == FED_MAX) {
        fed_fail(fed, "too many clients on disk");
        return;
    }
    s->n_clients += i == s->n_clients;
    s->clients[i] = *rec;
}

static void read_forget(struct fed *fed, struct fed_store *s, const struct fl_client_rec *rec)
{
    size_t i = 0;

    for (i = 0; i < s->n_parts && !rec->forgotten; i++) {
        if (s->parts[i].client == rec->id) {
            fed_fail(fed, "%s is removed while it is in the open round", rec->name);
        }
    }
    for (i = 0; i < s->n_clients && s->clients[i].id != rec->id; i++) {
    }
    if (i == s->n_clients || strcmp(s->clients[i].name, rec->name) != 0) {
        fed_fail(fed, "%s is removed and not there", rec->name);
        return;
    }
    if (rec->forgotten) { /* It is only marked. */
        s->clients[i].forgotten = true;
        return;
    }
    s->clients[i] = s->clients[--s->n_clients];
    fed_model_forget(&s->model, fed_named(fed, rec->name));
}

bool fed_store_conflict(struct fed *fed, const struct fl_effect *e)
{
    struct fed_store store;
    size_t i;
    size_t k;

    fed_store_read(fed->sim, fed, &store);
    for (i = 0; i < e->n_clients; i++) {
        for (k = 0; k < store.n_clients; k++) {
            if (e->type != FL_EFF_FORGET_CLIENTS && store.clients[k].id != e->clients[i].id &&
                strcmp(store.clients[k].name, e->clients[i].name) == 0)
            {
                return true;
            }
        }
    }
    return false;
}

static void read_part(struct fed *fed, struct fed_store *s, const struct part *p)
{
    struct fl_part_rec *rec;
    size_t i = 0;

    while (i < s->n_parts && s->parts[i].client != p->client) {
        i++;
    }
    if (i == FED_MAX) {
        fed_fail(fed, "too many parts");
        return;
    }
    s->n_parts += i == s->n_parts;
    rec = &s->parts[i];
    *rec = (struct fl_part_rec){
        .client = p->client,
        .state = p->state,
        .samples = p->samples,
        .steps = p->steps,
        .train_loss = p->train_loss,
        .upload_bytes = p->upload_bytes,
        .previous_dot = p->previous_dot,
        .received = p->received,
        .trained = p->trained,
    };
    if (p->has_divergence) {
        rec->divergence = s->divergence[i];
        (void)memcpy(rec->divergence, p->divergence, sizeof(p->divergence));
    }
    if (p->has_units) {
        rec->units = s->units[i];
        (void)memcpy(rec->units, p->units, sizeof(p->units));
    }
}

static void read_commit(struct fed *fed, struct fed_store *s, const struct head *head)
{
    if (head->round != s->committed + 1) {
        fed_fail(fed, "on disk round %" PRIu64 " is committed after %" PRIu64, head->round,
                 s->committed);
    }
    s->committed = head->round;
    s->n_parts = 0;
    s->n_uploads = 0;
    s->open_round = 0;
    s->planned = false;
}

/* Spool files of rounds that are over are dropped when the server starts. */
static void read_upload(struct fed_store *s, const uint8_t *data)
{
    struct fed_upload upload;

    (void)memcpy(&upload, data, sizeof(upload));
    if (upload.round == s->open_round && upload.attempt == s->open_attempt &&
        s->n_uploads < FED_MAX) {
        s->uploads[s->n_uploads++] = upload;
    }
}

static void read_record(struct fed *fed, struct fed_store *s, const uint8_t *data, size_t len)
{
    struct head head;
    struct part part;
    struct fl_client_rec client;
    size_t i;

    (void)memcpy(&head, data, sizeof(head));
    data += sizeof(head);
    switch (head.kind) {
    case RECORD_SPOOL:
        read_upload(s, data);
        return;
    case RECORD_DROP:
        if (head.round == s->open_round && head.attempt == s->open_attempt) {
            s->n_uploads = 0;
        }
        return;
    case RECORD_COMMIT:
        read_commit(fed, s, &head);
        (void)memcpy(&s->model, data, sizeof(s->model));
        data += sizeof(s->model);
        break;
    case RECORD_FORGET:
        s->departed = head.departed;
        break;
    case RECORD_SELECTION:
        s->expected = head.expected;
        s->open_round = head.round;
        s->open_attempt = head.attempt;
        s->size = head.size;
        s->planned = false;
        s->n_parts = 0;
        s->n_uploads = 0;
        break;
    case RECORD_PLAN:
        s->planned = true;
        break;
    case RECORD_UPDATE:
        break;
    }
    for (i = 0; i < head.n_clients; i++, data += sizeof(client)) {
        (void)memcpy(&client, data, sizeof(client));
        if (head.kind == RECORD_FORGET) {
            read_forget(fed, s, &client);
        } else {
            read_client(fed, s, &client);
        }
    }
    for (i = 0; i < head.n; i++) {
        if (head.round == s->open_round && head.attempt == s->open_attempt) {
            (void)memcpy(&part, data + i * sizeof(part), sizeof(part));
            read_part(fed, s, &part);
        } else {
            fed_fail(fed, "a record of round %" PRIu64 " attempt %" PRIu32 ", %" PRIu64 " is open",
                     head.round, head.attempt, s->open_round);
        }
    }
    (void)len;
}

void fed_store_read(const struct fl_sim *sim, struct fed *fed, struct fed_store *ret)
{
    size_t n = fl_sim_disk_count(sim, FED_SERVER);
    size_t i;

    (void)memset(ret, 0, sizeof(*ret));
    ret->model.theta = fed->plan.seed;
    for (i = 0; i < n; i++) {
        size_t len = 0;
        const void *data = fl_sim_disk_record(sim, FED_SERVER, i, &len);

        read_record(fed, ret, data, len);
    }
}

struct fl_coord_resume fed_store_resume(const struct fed_store *s)
{
    return (struct fl_coord_resume){
        .committed = s->committed,
        .clients = s->clients,
        .n_clients = s->n_clients,
        .expected = s->expected,
        .departed = s->departed,
        .open_round = s->open_round,
        .open_attempt = s->open_attempt,
        .planned = s->planned,
        .size = s->size,
        .parts = s->parts,
        .n_parts = s->n_parts,
    };
}
