/* The work of simulated attackers (attacker.h): their updates and reports. Runs on any thread of
   the worker pool. Buffers, local tensors and what a solver sends beside the update stay honest. */
#include "tools/fl_sim/engine/attacker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"

/* --- trainable entries as one vector --- */

static void attacker_pack(const struct fl_layout *layout, const float *block, float *packed)
{
    size_t t;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        if (fl_tensor_counts(tensor)) {
            (void)memcpy(packed, block + tensor->offset, tensor->count * sizeof(*packed));
            packed += tensor->count;
        }
    }
}

static void attacker_unpack(const struct fl_layout *layout, const float *packed, float *block)
{
    size_t t;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        if (fl_tensor_counts(tensor)) {
            (void)memcpy(block + tensor->offset, packed, tensor->count * sizeof(*packed));
            packed += tensor->count;
        }
    }
}

int fl_attacker_share(const struct fl_layout *layout, const float *delta, struct fl_blob **ret)
{
    struct fl_blob *blob = NULL;
    int rv = fl_blob_create(fl_layout_trainable(layout) * sizeof(*delta), &blob);

    if (rv != FL_OK) {
        return rv;
    }
    attacker_pack(layout, delta, (float *)(void *)fl_blob_fill(blob));
    *ret = blob;
    return FL_OK;
}

/* Of fl_train_result, from the changed update. */
static void attacker_measure(const struct fl_layout *layout, const float *packed, float *divergence)
{
    size_t l;

    for (l = 0; l < fl_layout_units(layout); l++) {
        size_t n = fl_layout_unit(layout, l)->n_trainable;

        divergence[l] = (float)fl_vec_norm2(packed, n);
        packed += n;
    }
}

/* --- the trainer --- */

static int attacker_change(const struct fl_attacker *a, const struct fl_train_task *task,
                           struct fl_train_result *result, struct fl_err *err)
{
    size_t n = fl_layout_trainable(a->layout);
    float *packed = malloc((n + 1) * sizeof(*packed));
    struct fl_rng rng;
    int rv = FL_OK;

    if (packed == NULL) {
        return FL_ENOMEM;
    }
    attacker_pack(a->layout, result->delta, packed);
    fl_rng_key(&rng, a->attack->seed, FL_RNG_ATTACK, task->asked.key.round, a->client);
    fl_attack_alter(a->attack, &rng, packed, n);
    if (a->malicious != NULL) {
        (void)memcpy(packed, a->malicious, n * sizeof(*packed));
    }
    attacker_measure(a->layout, packed, result->divergence);
    if (!fl_vec_finite(packed, n) || !fl_vec_finite(result->divergence, fl_layout_units(a->layout)))
    {
        rv = fl_err_set(err, FL_ENUMERIC, "the attack's update is not finite");
        goto done;
    }
    attacker_unpack(a->layout, packed, result->delta);
done:
    free(packed);
    return rv;
}

static int attacker_run(struct fl_trainer *trainer, const struct fl_train_task *task,
                        struct fl_train_result *ret, struct fl_err *err)
{
    const struct fl_attacker *a = (const struct fl_attacker *)(const void *)trainer;
    const unsigned changes = FL_ATTACK_ALTERS | FL_ATTACK_COLLUDES;
    int rv = fl_trainer_run(a->inner, task, ret, err);

    if (rv != FL_OK || (fl_attack_effects(a->attack->kind) & changes) == 0) {
        return rv;
    }
    return attacker_change(a, task, ret, err);
}

static uint64_t attacker_samples(const struct fl_trainer *trainer)
{
    return fl_trainer_samples(((const struct fl_attacker *)(const void *)trainer)->inner);
}

void fl_attacker_init(struct fl_attacker *a, struct fl_trainer *inner,
                      const struct fl_attack *attack, const struct fl_layout *layout,
                      const char *name)
{
    static const struct fl__trainer_ops ops = {.run = attacker_run, .samples = attacker_samples};

    *a = (struct fl_attacker){.trainer = {&ops},
                              .inner = inner,
                              .attack = attack,
                              .layout = layout,
                              .client = fl_hash64(name, strlen(name))};
}

/* --- the report --- */

void fl_attacker_claim(const struct fl_attack *attack, struct fl_wire_report *report)
{
    size_t l;

    if (attack == NULL) {
        return;
    }
    report->samples = fl_attack_claimed_samples(attack, report->samples);
    for (l = 0; l < report->n_divergence; l++) {
        report->divergence[l] = fl_attack_claimed_divergence(attack, report->divergence[l]);
    }
}
