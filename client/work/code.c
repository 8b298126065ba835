/*
 * Encodes an update as the bytes of a Push, on the training thread. Before the first byte is sent,
 * the upload mask and the codec's residual (what encoding loses) become part of the pending client
 * state of the round: they take effect exactly when the server aggregates the round
 * (client_state.h). Until then the committed residual does not change, so a resumed Push, even by
 * another process, has the same bytes. It sends nothing itself (client/daemon/delivery.c).
 */

#include "client/work/code.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/codec/codec_masked.h"

int fl_code_begin(struct fl_code *code, const struct fl_worker *worker, struct fl_result *result,
                  const uint8_t *units, size_t n_units)
{
    size_t n = fl_layout_units(worker->setup->layout);
    uint8_t *granted = malloc(n);
    size_t l;

    if (granted == NULL) {
        return FL_ENOMEM;
    }
    for (l = 0; l < n; l++) {
        granted[l] = units == NULL || (l < n_units && units[l] != 0);
    }
    *code = (struct fl_code){.setup = fl_setup_ref(worker->setup),
                             .keeps = worker->keeps,
                             .result = fl_result_ref(result),
                             .seed = worker->seed,
                             .units = granted};
    return FL_OK;
}

static int code_add_section(struct fl_code *code, const char *payload, size_t unit,
                            enum fl_codec_id codec, uint64_t bytes)
{
    struct fl_wire_part *part = &code->parts[code->n_parts++];

    part->unit = (uint32_t)unit;
    part->codec = (uint32_t)codec;
    part->bytes = bytes;
    return fl_str_copy(part->payload, sizeof(part->payload), payload);
}

/*
 * From what a restart does not change: the same result is coded as the same bytes, by a daemon and
 * in a simulation.
 */
static uint64_t code_unit_seed(const struct fl_code *code, size_t l)
{
    struct fl_rng rng;

    fl_rng_key(&rng, code->seed, FL_RNG_CODEC, code->result->key.round, l);
    return fl_rng_u64(&rng);
}

static int code_update(struct fl_code *code, size_t l, const uint8_t *keep, float *residual,
                       struct fl_buf *buf)
{
    const struct fl_setup *setup = code->setup;
    const struct fl_layout *layout = fl_space_updates(setup->space, setup->layout);
    const float *delta = code->folded != NULL ? code->folded : code->result->delta;
    size_t at = fl_layout_unit(layout, l)->offset;
    struct fl_unit_update in = {.delta = delta + at,
                                .keep = keep,
                                .seed = code_unit_seed(code, l),
                                .residual = residual != NULL ? residual + at : NULL,
                                .residual_new = residual != NULL ? residual + at : NULL};
    size_t before = buf->len;
    int rv = fl_unit_encode(setup->codec, setup->codec_options, layout, l, &in, buf);

    if (rv != FL_OK) {
        return rv;
    }
    code->parts[code->n_parts].masked = keep != NULL;
    return code_add_section(code, "update", l, setup->codec->id, buf->len - before);
}

/* Payloads of the solver other than the update are sent uncompressed, as float32. */
static int code_sent(struct fl_code *code, size_t l, struct fl_buf *buf)
{
    const struct fl_setup *setup = code->setup;
    const struct fl_layout *layout = setup->layout;
    const char *const *names = fl_solver_sends(setup->solver, setup->solver_options);
    size_t i;
    int rv;

    for (i = 0; i < code->result->n_sent; i++) {
        size_t before = buf->len;

        rv = fl_codec_float32.encode(
            NULL, layout, l, code->result->sent[i] + fl_layout_unit(layout, l)->offset, 0, buf);
        if (rv != FL_OK) {
            return rv;
        }
        rv = code_add_section(code, names[i], l, FL_CODEC_FLOAT32, buf->len - before);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* Room for all payloads in float32, whose size is known, at once: growing would copy them. */
static int code_reserve(const struct fl_code *code, struct fl_buf *buf)
{
    const struct fl_setup *setup = code->setup;
    const struct fl_layout *layout = fl_space_updates(setup->space, setup->layout);
    uint64_t bytes = 0;
    size_t l;

    for (l = 0; l < fl_layout_units(setup->layout); l++) {
        if (code->units[l] != 0) {
            bytes += setup->codec->id == FL_CODEC_FLOAT32 ? setup->codec->max_size(layout, l) : 0;
            bytes += code->result->n_sent * fl_codec_float32.max_size(setup->layout, l);
        }
    }
    return bytes <= SIZE_MAX / 2 ? fl_buf_reserve(buf, (size_t)bytes) : FL_ENOMEM;
}

static int code_units(struct fl_code *code, float *residual)
{
    const struct fl_layout *layout = code->setup->layout;
    const uint8_t *mask = code->result->mask;
    size_t n = fl_layout_units(layout);
    struct fl_buf buf;
    size_t l;
    int rv;

    code->parts = calloc(n * (1 + code->result->n_sent), sizeof(*code->parts));
    if (code->parts == NULL) {
        return FL_ENOMEM;
    }
    fl_buf_init(&buf, SIZE_MAX / 2);
    rv = code_reserve(code, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    for (l = 0; l < n; l++) {
        if (code->units[l] != 0) {
            rv = code_update(code, l, mask, residual, &buf);
            if (rv != FL_OK) {
                goto done;
            }
            rv = code_sent(code, l, &buf);
            if (rv != FL_OK) {
                goto done;
            }
        }
        mask = mask != NULL ? mask + fl_neurons(layout, l) : NULL;
    }
    rv = fl_blob_from_buf(&buf, &code->bytes);
done:
    fl_buf_done(&buf);
    return rv;
}

/* Loads the committed residual, to be replaced in place; zeros when there is none. */
static int load_residual(const struct fl_code *code, float **ret, struct fl_err *err)
{
    int rv = fl_client_state_load(code->keeps, FL_KEEP_RESIDUAL, ret, err);

    if (rv != FL_ENOENT) {
        return rv;
    }
    *ret = calloc(fl_layout_count(code->setup->layout) + 1, sizeof(**ret));
    return *ret != NULL ? FL_OK : FL_ENOMEM;
}

/* In a hashed space the displacement is coded as numbers. */
static int code_fold(struct fl_code *code)
{
    const struct fl_space *space = code->setup->space;
    int rv;

    if (space == NULL) {
        return FL_OK;
    }
    rv = fl_space_map_make(space, code->result->draw, &code->map);
    if (rv != FL_OK) {
        return rv;
    }
    code->folded = malloc((code->map.numbers + 1) * sizeof(*code->folded));
    if (code->folded == NULL) {
        return FL_ENOMEM;
    }
    fl_space_fold(&code->map, code->result->delta, code->folded);
    return FL_OK;
}

/* Codes all units; the residual, model-sized, is replaced by the new one. */
static int code_update_units(struct fl_code *code, float *residual)
{
    float *folded;
    int rv = code_fold(code);

    if (rv != FL_OK) {
        return rv;
    }
    if (residual == NULL || code->setup->space == NULL) {
        return code_units(code, residual);
    }
    folded = malloc((code->map.numbers + 1) * sizeof(*folded));
    if (folded == NULL) {
        return FL_ENOMEM;
    }
    fl_space_fold(&code->map, residual, folded);
    rv = code_units(code, folded);
    fl_space_unfold(&code->map, folded, residual);
    free(folded);
    return rv;
}

int fl_code_run(struct fl_code *code, struct fl_err *err)
{
    const struct fl_setup *setup = code->setup;
    const char *why = fl_setup_unfit(setup, code->result);
    struct fl_client_state_value value = {FL_KEEP_RESIDUAL, NULL};
    float *residual = NULL;
    int rv = FL_OK;

    if (why != NULL) {
        return fl_err_set(err, FL_ESTATE, "the pending result cannot be sent: %s", why);
    }
    if (fl_codec_keeps_residual(setup->codec, setup->codec_options)) {
        rv = load_residual(code, &residual, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = code_update_units(code, residual);
    if (rv != FL_OK) {
        goto done;
    }
    if (fl_client_state_wanted(code->keeps)) {
        value.data = residual;
        rv = fl_client_state_grant(code->keeps, code->result->key, code->units,
                                   residual != NULL ? &value : NULL, err);
    }
done:
    free(residual);
    free(code->folded);
    code->folded = NULL;
    fl_space_map_done(&code->map);
    return rv;
}

void fl_code_done(struct fl_code *code)
{
    fl_blob_unref(code->bytes);
    free(code->units);
    free(code->parts);
    fl_result_unref(code->result);
    fl_setup_unref(code->setup);
    *code = (struct fl_code){.setup = NULL};
}
