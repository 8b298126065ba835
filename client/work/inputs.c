/*
 * The payloads of a task: chooses those that this client needs, gives each its memory, checks
 * offsets and digests, and saves the one that later rounds reuse. Called on the loop and on the
 * training thread, never at the same time. It does not fetch (client/daemon/download.c).
 */

#include "client/work/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "client/store/cache.h"
#include "client/work/worker.h"
#include "libfl/model/digest.h"
#include "libfl/strategy/broadcast/versions.h"

/*
 * Limit of the collected data summaries of all clients: far above any real collection (a thousand
 * clients with a pair of means each of the largest data set here are 13 MB), and no danger to this
 * machine.
 */
#define OPAQUE_MAX (UINT64_C(1) << 30)

void fl_inputs_done(struct fl_inputs *inputs)
{
    size_t i;

    for (i = 0; i < inputs->n; i++) {
        fl_input_drop(&inputs->list[i]);
    }
    free(inputs->own);
    fl_setup_unref(inputs->setup);
    inputs->n = 0;
    inputs->own = NULL;
    inputs->setup = NULL;
}

struct fl_input *fl_inputs_find(struct fl_inputs *inputs, const char *name)
{
    size_t i;

    for (i = 0; i < inputs->n; i++) {
        if (strcmp(inputs->list[i].name, name) == 0) {
            return &inputs->list[i];
        }
    }
    return NULL;
}

int fl_input_list(struct fl_input *listed, const struct fl_wire_payload *payload)
{
    *listed = (struct fl_input){.bytes = payload->bytes, .has_digest = payload->has_digest};
    (void)memcpy(listed->digest, payload->digest, sizeof(listed->digest));
    return fl_str_copy(listed->name, sizeof(listed->name), payload->name);
}

void fl_inputs_list(struct fl_inputs *listed, const struct fl_wire_task *task)
{
    size_t i;

    fl_inputs_done(listed);
    for (i = 0; i < task->n_payloads && i < FL_WIRE_MAX_PAYLOADS; i++) {
        /* The decoder accepted the name, so it fits. */
        listed->n += fl_input_list(&listed->list[listed->n], &task->payloads[i]) == FL_OK;
    }
}

/* --- choosing --- */

enum input_form {
    INPUT_FLOATS, /* one for each entry of the model */
    INPUT_MODEL,  /* of the server, in the form of the broadcast */
    INPUT_OPAQUE
};

static int inputs_add(const struct fl_input *listed, enum input_form form, struct fl_inputs *ret,
                      struct fl_err *err)
{
    const struct fl_setup *setup = ret->setup;
    const struct fl_broadcast_ops *broadcast =
        form == INPUT_MODEL ? setup->broadcast : &fl_broadcast_float32;
    bool opaque = form == INPUT_OPAQUE;
    uint64_t bytes = fl_broadcast_bytes(broadcast, setup->layout);

    if (!opaque && listed->bytes != bytes) {
        return fl_err_set(
            err, FL_EPROTO,
            "payload '%s' has %llu bytes, expected %llu entries of the model, which are %llu bytes "
            "as %s",
            listed->name, (unsigned long long)listed->bytes,
            (unsigned long long)fl_layout_count(setup->layout), (unsigned long long)bytes,
            broadcast->policy.name);
    }
    if (opaque && listed->bytes > OPAQUE_MAX) {
        return fl_err_set(err, FL_EPROTO, "payload '%s' has %llu bytes, the limit is %llu",
                          listed->name, (unsigned long long)listed->bytes,
                          (unsigned long long)OPAQUE_MAX);
    }
    ret->list[ret->n] = *listed;
    ret->list[ret->n].opaque = opaque;
    ret->list[ret->n].coded = form == INPUT_MODEL && fl_broadcast_codes(broadcast);
    ret->list[ret->n].moves =
        form == INPUT_MODEL && fl_broadcast_sends_moves(broadcast) && listed->has_digest;
    ret->n++;
    return FL_OK;
}

/* The starting model: one payload, or none when training starts from the client's own model. */
static int choose_start(struct fl_inputs *listed, bool has_own, struct fl_inputs *ret,
                        struct fl_err *err)
{
    const struct fl_input *in = NULL;
    enum input_form form = INPUT_FLOATS;

    if (ret->setup->personal->own) {
        in = fl_inputs_find(listed, "personal_model");
        if (in == NULL && has_own) {
            return FL_OK;
        }
    }
    if (in == NULL) {
        in = fl_inputs_find(listed, "model");
        form = INPUT_MODEL;
    }
    return in != NULL ? inputs_add(in, form, ret, err)
                      : fl_err_set(err, FL_EPROTO, "the task lists no payload 'model'");
}

int fl_inputs_choose(struct fl_setup *setup, struct fl_inputs *listed, bool has_own,
                     const struct fl_log *log, struct fl_inputs *ret, struct fl_err *err)
{
    const struct fl_solver_ops *solver = setup->solver;
    const char *const *name = solver->inputs;
    int rv;

    *ret = (struct fl_inputs){.setup = fl_setup_ref(setup)};
    rv = choose_start(listed, has_own, ret, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (; name != NULL && *name != NULL; name++) {
        const struct fl_input *in = fl_inputs_find(listed, *name);
        bool opaque = solver->collection != NULL && strcmp(*name, solver->collection) == 0;

        if (opaque && (in == NULL || in->bytes == 0)) {
            fl_log_peer(log, FL_LOG_NOTICE, "client", FL_WORK_SERVER,
                        "no client sent a data summary for '%s': solver '%s' makes plain steps",
                        *name, solver->policy.name);
        }
        /* A payload that is not listed does not exist yet; the solver handles that. */
        if (in != NULL && fl_inputs_find(ret, *name) == NULL) {
            rv = inputs_add(in, opaque ? INPUT_OPAQUE : INPUT_FLOATS, ret, err);
            if (rv != FL_OK) {
                goto fail;
            }
        }
    }
    return FL_OK;
fail:
    fl_inputs_done(ret);
    return rv;
}

int fl_inputs_choose_model(struct fl_setup *setup, const struct fl_input *payload,
                           struct fl_inputs *ret, struct fl_err *err)
{
    int rv;

    *ret = (struct fl_inputs){.setup = fl_setup_ref(setup)};
    rv = inputs_add(payload, INPUT_MODEL, ret, err);
    if (rv != FL_OK) {
        fl_inputs_done(ret);
    }
    return rv;
}

void fl_inputs_reuse(struct fl_inputs *now, struct fl_inputs *old)
{
    size_t i;

    for (i = 0; now->setup == old->setup && now->round == old->round && i < now->n; i++) {
        struct fl_input *in = &now->list[i];
        struct fl_input *was = fl_inputs_find(old, in->name);

        if (was != NULL && was->data != NULL && was->bytes == in->bytes &&
            was->has_digest == in->has_digest &&
            (!in->has_digest || memcmp(was->digest, in->digest, sizeof(in->digest)) == 0))
        {
            in->data = was->data;
            in->have = was->have;
            in->cached = was->cached;
            in->lent = was->lent;
            in->moves = was->moves; /* Decoded, perhaps. */
            in->has_held = was->has_held;
            (void)memcpy(in->held, was->held, sizeof(in->held));
            in->ended = was->ended;
            was->data = NULL;
        }
    }
    fl_inputs_done(old);
}

/* Is it the very model that this client holds? */
static bool input_is_held(const struct fl_input *input)
{
    return input->has_held && memcmp(input->held, input->digest, sizeof(input->held)) == 0;
}

int fl_inputs_next(struct fl_inputs *inputs, struct fl_input **ret)
{
    size_t i;

    for (i = 0; i < inputs->n; i++) {
        struct fl_input *in = &inputs->list[i];

        if (in->data == NULL && !input_is_held(in)) {
            in->data = malloc((size_t)in->bytes + 1);
            in->have = 0;
            if (in->data == NULL) {
                return FL_ENOMEM;
            }
        }
        if (!fl_input_is_complete(in)) {
            *ret = in;
            return FL_OK;
        }
    }
    *ret = NULL;
    return FL_OK;
}

int fl_input_add(struct fl_input *input, uint64_t offset, const void *data, size_t len,
                 struct fl_err *err)
{
    if (offset != input->have || len > input->bytes - input->have) {
        return fl_err_set(err, FL_EPROTO,
                          "chunk of %zu bytes at %llu, expected offset %llu of %llu bytes", len,
                          (unsigned long long)offset, (unsigned long long)input->have,
                          (unsigned long long)input->bytes);
    }
    if (len > 0) {
        (void)memcpy(input->data + input->have, data, len);
    }
    input->have += len;
    return FL_OK;
}

void fl_input_lend(struct fl_input *input, const void *data)
{
    FL_REQUIRE(input->data == NULL);
    input->data = (uint8_t *)(uintptr_t)data; /* only read while `lent` is set */
    input->have = input->bytes;
    input->lent = true;
}

void fl_input_drop(struct fl_input *input)
{
    if (!input->lent) {
        free(input->data);
    }
    input->data = NULL;
    input->have = 0;
    input->lent = false;
    input->ended = false;
}

void fl_input_hold(struct fl_input *input, const uint8_t *held)
{
    input->has_held = input->moves && held != NULL;
    if (input->has_held) {
        (void)memcpy(input->held, held, sizeof(input->held));
    }
}

void fl_input_end(struct fl_input *input)
{
    input->ended = input->has_held;
}

bool fl_input_is_complete(const struct fl_input *input)
{
    return input_is_held(input) || input->ended ||
           (input->data != NULL && !input->has_held && input->have == input->bytes);
}

void fl_input_want_whole(struct fl_input *input)
{
    fl_input_drop(input);
    input->has_held = false;
}

int fl_input_own(struct fl_input *input)
{
    uint8_t *copy = input->lent ? malloc((size_t)input->bytes + 1) : input->data;

    if (copy == NULL) {
        return FL_ENOMEM;
    }
    if (input->lent && input->bytes > 0) {
        (void)memcpy(copy, input->data, (size_t)input->bytes);
    }
    input->data = copy;
    input->lent = false;
    return FL_OK;
}

static int input_check_digest(const struct fl_input *input, struct fl_err *err)
{
    uint8_t sha[FL_DIGEST_SIZE];

    /* The model is checked where it is used; a cached payload was found by its digest. */
    if (!input->opaque || !input->has_digest || input->cached || input->lent) {
        return FL_OK;
    }
    if (fl_sha256(input->data, (size_t)input->bytes, sha) != FL_OK) {
        return FL_ENOMEM;
    }
    return memcmp(sha, input->digest, sizeof(sha)) == 0
               ? FL_OK
               : fl_err_set(err, FL_EFORMAT, "the payload '%s' does not match its SHA-256",
                            input->name);
}

int fl_input_check(struct fl_input *input, struct fl_err *err)
{
    int rv = input_check_digest(input, err);

    if (rv != FL_OK) {
        input->have = 0;
    }
    return rv;
}

/* Replace the data by a model; takes it. */
static void input_take_model(struct fl_input *input, float *model, size_t bytes)
{
    fl_input_drop(input);
    input->data = (uint8_t *)model;
    input->bytes = bytes;
    input->have = bytes;
    input->coded = false;
    input->moves = false;
    input->has_held = false;
}

static int input_decode_coded(struct fl_input *input, const struct fl_setup *setup,
                              struct fl_err *err)
{
    size_t bytes = fl_layout_count(setup->layout) * sizeof(float);
    float *model = malloc(bytes + 1);
    int rv;

    if (model == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_broadcast_decode(setup->broadcast, setup->layout, input->data, model, err);
    if (rv != FL_OK) {
        free(model);
        return rv;
    }
    input_take_model(input, model, bytes);
    return FL_OK;
}

static int input_check_model(const struct fl_input *input, const struct fl_setup *setup,
                             const float *model, struct fl_err *err)
{
    uint8_t digest[FL_DIGEST_SIZE];
    int rv = fl_versions_digest(setup->layout, model, digest);

    if (rv != FL_OK) {
        return rv;
    }
    return memcmp(digest, input->digest, sizeof(digest)) == 0
               ? FL_OK
               : fl_err_set(err, FL_EFORMAT, "the payload '%s' does not match its SHA-256",
                            input->name);
}

/* The model from what was received; `*ret` is owned, or NULL: it is the data itself. */
static int input_decode_moves(const struct fl_input *input, const struct fl_setup *setup,
                              const char *state_dir, float **ret, struct fl_err *err)
{
    size_t bytes = fl_layout_count(setup->layout) * sizeof(float);
    uint8_t *held = NULL;
    int rv;

    *ret = NULL;
    if (!input->has_held) {
        return input_check_model(input, setup, (const float *)(const void *)input->data, err);
    }
    /* An evaluation may have stored this very model meanwhile. */
    rv = fl_cache_load(state_dir, FL_CACHE_MODEL, input->digest, bytes, &held);
    if (rv != FL_ENOENT) {
        *ret = (float *)(void *)held;
        return rv;
    }
    rv = fl_cache_load(state_dir, FL_CACHE_MODEL, input->held, bytes, &held);
    if (rv != FL_OK) {
        return fl_err_set(
            err, rv,
            "the model of the earlier round is missing or damaged on disk; the next task "
            "downloads a whole one");
    }
    rv = fl_difference_apply(setup->layout, input->data, (size_t)input->have, (float *)(void *)held,
                             err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = input_check_model(input, setup, (const float *)(const void *)held, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = (float *)(void *)held;
    return FL_OK;
fail:
    free(held);
    return rv;
}

/* The file is damaged, or is not what the server takes it for. Another model in it may be good. */
static void input_forget_held(const struct fl_input *input, const char *state_dir, size_t bytes)
{
    uint8_t found[FL_DIGEST_SIZE];

    if (input->has_held && fl_cache_find(state_dir, FL_CACHE_MODEL, bytes, found) == FL_OK &&
        memcmp(found, input->held, sizeof(found)) == 0)
    {
        fl_cache_drop(state_dir, FL_CACHE_MODEL);
    }
}

int fl_input_decode(struct fl_input *input, const struct fl_setup *setup, const char *state_dir,
                    const struct fl_log *log, struct fl_err *err)
{
    size_t bytes = fl_layout_count(setup->layout) * sizeof(float);
    bool stays = input_is_held(input);
    float *model = NULL;
    struct fl_err ignored = {0};
    int rv;

    if (input->coded) {
        return input_decode_coded(input, setup, err);
    }
    if (!input->moves) {
        return FL_OK;
    }
    rv = input_decode_moves(input, setup, state_dir, &model, err);
    if (rv != FL_OK) {
        if (rv != FL_ENOMEM) {
            input_forget_held(input, state_dir, bytes);
        }
        return rv;
    }
    if (model != NULL) {
        input_take_model(input, model, bytes);
    }
    input->moves = false;
    rv = stays || state_dir == NULL
             ? FL_OK
             : fl_cache_save(state_dir, FL_CACHE_MODEL, input->data, bytes, &ignored);
    if (rv != FL_OK) {
        fl_log_peer(
            log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
            "the model is not saved on disk, so that the next one is downloaded as a whole: "
            "%s",
            fl_err_text(&ignored, rv));
    }
    return FL_OK;
}

void fl_inputs_save(const struct fl_inputs *inputs, const char *state_dir, const struct fl_log *log)
{
    size_t i;

    for (i = 0; i < inputs->n; i++) {
        const struct fl_input *in = &inputs->list[i];
        struct fl_err err = {0};
        int rv = FL_OK;

        if (in->opaque && in->has_digest && !in->cached && !in->lent && in->bytes > 0) {
            rv = fl_cache_save(state_dir, FL_CACHE_SUMMARIES, in->data, (size_t)in->bytes, &err);
        }
        if (rv != FL_OK) {
            fl_log_peer(log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                        "payload '%s' is not saved on disk and will be fetched again, ignoring: %s",
                        in->name, fl_err_text(&err, rv));
        }
    }
}
