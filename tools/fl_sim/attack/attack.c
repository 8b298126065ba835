/* The list of attacks, who is an attacker, altered updates and false claims (attack.h). Updates
   made from those of honest clients are in collusion.c. */
#include "tools/fl_sim/attack/attack.h"

#include <math.h>
#include <stdlib.h>

#include "libfl/num/vec.h"

static const struct {
    unsigned effects, options;
    double scale;
} attack_kinds[] = {
#define X(name, text, effects, options, scale) {effects, options, scale},
    FL_ATTACK_MAP(X)
#undef X
};

const char *const fl_attack_names[] = {
#define X(name, text, ...) #text,
    FL_ATTACK_MAP(X)
#undef X
        NULL};

const char *const fl_attack_perturbation_names[] = {"inverse_std", "inverse_unit", "inverse_sign",
                                                    NULL};

unsigned fl_attack_effects(enum fl_attack_kind kind)
{
    return attack_kinds[kind].effects;
}

unsigned fl_attack_options(enum fl_attack_kind kind)
{
    return attack_kinds[kind].options;
}

double fl_attack_default_scale(enum fl_attack_kind kind)
{
    return attack_kinds[kind].scale;
}

/* --- who is an attacker --- */

size_t fl_attack_count(double share, size_t n)
{
    /* In binary 0.29 * 100 is below 29; no share in use is that near to a whole number. */
    double count = floor(share * (double)n + 1e-9);

    return count < (double)n ? (size_t)count : n;
}

int fl_attack_choose(uint64_t seed, size_t n, size_t count, bool *ret)
{
    uint32_t *order = malloc((n + 1) * sizeof(*order));
    struct fl_rng rng;
    size_t i;

    FL_REQUIRE(count <= n);
    if (order == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
        ret[i] = false;
    }
    fl_rng_key(&rng, seed, FL_RNG_ATTACK, 0, 0);
    fl_rng_shuffle(&rng, order, n);
    for (i = 0; i < count; i++) {
        ret[order[i]] = true;
    }
    free(order);
    return FL_OK;
}

/* --- altered updates --- */

static void attack_draw_noise(struct fl_rng *rng, double deviation, float *update, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        update[i] = (float)(deviation * fl_rng_normal(rng));
    }
}

void fl_attack_alter(const struct fl_attack *a, struct fl_rng *rng, float *update, size_t n)
{
    switch (a->kind) {
    case FL_ATTACK_KIND_SIGN_FLIP:
        fl_vec_scale(update, (float)-a->scale, update, n);
        break;
    case FL_ATTACK_KIND_SCALING:
    case FL_ATTACK_KIND_BACKDOOR: /* Model replacement (Bagdasaryan et al. 2020, eq. 3). */
        fl_vec_scale(update, (float)a->scale, update, n);
        break;
    case FL_ATTACK_KIND_GAUSSIAN:
        if (n > 0) {
            attack_draw_noise(rng, a->scale * fl_vec_norm2(update, n) / sqrt((double)n), update, n);
        }
        break;
    case FL_ATTACK_KIND_FREE_RIDER:
        attack_draw_noise(rng, a->scale, update, n);
        break;
    default:
        break;
    }
}

/* --- false claims --- */

uint64_t fl_attack_claimed_samples(const struct fl_attack *a, uint64_t samples)
{
    double claimed = round((double)samples * a->scale);

    if (a->kind != FL_ATTACK_KIND_FALSE_SAMPLES) {
        return samples;
    }
    return claimed < 1 ? 1 : claimed < 1e15 ? (uint64_t)claimed : (uint64_t)1e15;
}

float fl_attack_claimed_divergence(const struct fl_attack *a, float divergence)
{
    return a->kind == FL_ATTACK_KIND_INFLATED_DIVERGENCE ? (float)((double)divergence * a->scale)
                                                         : divergence;
}
