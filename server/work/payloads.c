/* Payloads that clients fetch in a round: which there are, and opening each of them from memory
   or a file. */
#include "server/work/payloads.h"

#include <string.h>

size_t fl_payloads_of(const struct fl_strategy *strategy,
                      struct fl_payload_name list[FL_PAYLOADS_MAX])
{
    const char *const *name = strategy->solver->inputs;
    size_t n = 0;

    list[n++] = (struct fl_payload_name){.kind = FL_PAYLOAD_IS_MODEL, .name = FL_PAYLOAD_MODEL};
    for (; name != NULL && *name != NULL; name++) {
        size_t state = fl_strategy_described_from(strategy, *name);
        bool is_state = state < fl_strategy_states(strategy);

        FL_REQUIRE(n + 1 < FL_PAYLOADS_MAX); /* limited by the built-in policies */
        list[n++] = (struct fl_payload_name){.kind = is_state ? FL_PAYLOAD_IS_STATE
                                                              : FL_PAYLOAD_IS_SUMMARIES,
                                             .name = *name,
                                             .state = state};
    }
    list[n++] = (struct fl_payload_name){.kind = FL_PAYLOAD_IS_PERSONAL_MODEL,
                                         .name = FL_PAYLOAD_PERSONAL_MODEL};
    return n;
}

uint64_t fl_payload_bytes(const struct fl_strategy *strategy, const struct fl_layout *layout,
                          enum fl_payload_kind kind)
{
    return fl_broadcast_bytes(
        kind == FL_PAYLOAD_IS_MODEL ? strategy->broadcast : &fl_broadcast_float32, layout);
}

size_t fl_payloads_list(const struct fl_strategy *strategy, const struct fl_layout *layout,
                        bool personal_model, struct fl_wire_payload list[FL_PAYLOADS_MAX])
{
    struct fl_payload_name names[FL_PAYLOADS_MAX];
    size_t n_names = fl_payloads_of(strategy, names);
    size_t n = 0;
    size_t i;

    for (i = 0; i < n_names; i++) {
        if (names[i].kind != FL_PAYLOAD_IS_PERSONAL_MODEL || personal_model) {
            list[n++] = (struct fl_wire_payload){
                .name = fl_wire_lend(names[i].name),
                .bytes = names[i].kind == FL_PAYLOAD_IS_SUMMARIES
                             ? 0
                             : fl_payload_bytes(strategy, layout, names[i].kind)};
        }
    }
    return n;
}

struct fl_payload fl_payload_of_model(const char *name, const struct fl_model_state *model)
{
    return (struct fl_payload){.name = name,
                               .bytes = {.blob = fl_model_state_sent(model)},
                               .differences = model->differences,
                               .digest = fl_differences_digest(model->differences)};
}

struct opening {
    const struct fl_federation *f;
    const struct fl_progress *progress;
    size_t members;
    fl_payload_cb cb;
    void *ctx;
};

/* The form of a state vector that clients fetch; returns a reference. */
static int payload_describe_state(const struct opening *o, size_t i, struct fl_blob **ret)
{
    const struct fl_strategy *strategy = o->f->strategy;
    struct fl_blob *state = o->progress->committed.model.state[i];
    struct fl_blob *described = NULL;
    int rv;

    if (fl_strategy_describes_state(strategy, i)) {
        *ret = fl_blob_ref(state);
        return FL_OK;
    }
    rv = fl_blob_create(fl_blob_len(state), &described);
    if (rv != FL_OK) {
        return rv;
    }
    fl_strategy_describe(strategy, i, fl_blob_floats(state), o->members,
                         fl_blob_fill_floats(described), fl_federation_floats(o->f));
    *ret = described;
    return FL_OK;
}

static int payload_open_personal_models(const struct opening *o)
{
    const struct fl_personal_models *m = o->progress->committed.personal_models;
    size_t n = m != NULL ? fl_personal_models_count(m) : 0;
    size_t i;

    for (i = 0; i < n; i++) {
        struct fl_payload b = {.name = FL_PAYLOAD_PERSONAL_MODEL,
                               .client = fl_personal_models_name(m, i),
                               .bytes = {.file = fl_personal_models_file(m, i)}};

        if (b.bytes.file == NULL) {
            return FL_ENOMEM;
        }
        o->cb(o->ctx, &b);
        fl_bytes_done(&b.bytes);
    }
    return FL_OK;
}

static int payload_open(const struct opening *o, const struct fl_payload_name *name)
{
    const struct fl_progress *p = o->progress;
    struct fl_payload b = {.name = name->name};
    int rv;

    switch (name->kind) {
    case FL_PAYLOAD_IS_MODEL:
        b = fl_payload_of_model(name->name, &p->committed.model);
        b.bytes = fl_bytes_ref(&b.bytes);
        break;
    case FL_PAYLOAD_IS_STATE:
        rv = payload_describe_state(o, name->state, &b.bytes.blob);
        if (rv != FL_OK) {
            return rv;
        }
        break;
    case FL_PAYLOAD_IS_SUMMARIES:
        b.bytes.file = p->collection.file != NULL ? fl_file_ref(p->collection.file) : NULL;
        b.digest = p->collection.digest;
        break;
    case FL_PAYLOAD_IS_PERSONAL_MODEL:
        return payload_open_personal_models(o);
    }
    if (fl_bytes_are(&b.bytes)) {
        o->cb(o->ctx, &b);
    }
    fl_bytes_done(&b.bytes);
    return FL_OK;
}

int fl_payloads_open(const struct fl_federation *federation, struct fl_progress *progress,
                     uint64_t round, const struct fl_round_size *size, fl_payload_cb cb, void *ctx)
{
    const struct opening o = {federation, progress, size->members, cb, ctx};
    struct fl_payload_name list[FL_PAYLOADS_MAX];
    size_t n = fl_payloads_of(federation->strategy, list);
    size_t i;
    int rv = fl_progress_enter(federation, progress, round, size->epoch);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        rv = payload_open(&o, &list[i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

bool fl_payloads_has_personal_model(const struct fl_progress *progress, const char *client)
{
    const struct fl_personal_models *m = progress->committed.personal_models;

    return m != NULL && fl_personal_models_find(m, client) < fl_personal_models_count(m);
}
