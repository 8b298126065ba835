#ifndef FL_SIM_ATTACK_H
#define FL_SIM_ATTACK_H

/*
 * The arithmetic of simulated attackers (docs/simulation.md#attackers): which clients are
 * attackers, and what each attack makes of an honest update. Updates are vectors of the
 * trainable entries of the model. No I/O, clock, thread or global.
 *
 * Threading: pure functions, any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/rng.h"

/* X(NAME, text, effects, options, default of `scale`); effects and options are enums below. */
/* clang-format off */
#define FL_ATTACK_MAP(X)                                                                           \
    X(SIGN_FLIP, sign_flip, FL_ATTACK_ALTERS, FL_ATTACK_SCALE, 1)                                  \
    X(SCALING, scaling, FL_ATTACK_ALTERS, FL_ATTACK_SCALE, 10)                                     \
    X(GAUSSIAN, gaussian, FL_ATTACK_ALTERS, FL_ATTACK_SCALE, 1)                                    \
    X(INFLATED_DIVERGENCE, inflated_divergence, FL_ATTACK_CLAIMS, FL_ATTACK_SCALE, 10)             \
    X(FALSE_SAMPLES, false_samples, FL_ATTACK_CLAIMS, FL_ATTACK_SCALE, 10)                         \
    X(FREE_RIDER, free_rider, FL_ATTACK_ALTERS, FL_ATTACK_SCALE, 1e-6)
/* clang-format on */

enum fl_attack_kind {
#define X(name, ...) FL_ATTACK_KIND_##name,
    FL_ATTACK_MAP(X)
#undef X
};

enum fl_attack_effect {
    FL_ATTACK_ALTERS = 1u << 0, /* changes its own update */
    FL_ATTACK_CLAIMS = 1u << 1  /* sends false figures beside an honest update */
};

/* Which options an attack uses. */
enum fl_attack_option { FL_ATTACK_SCALE = 1u << 0 };

struct fl_attack {
    enum fl_attack_kind kind;
    double scale;
    uint64_t seed; /* of the trial */
};

/* "sign_flip", NULL-terminated, in the order of fl_attack_kind. */
extern const char *const fl_attack_names[];
/* Flags of enum fl_attack_effect, and of enum fl_attack_option. */
unsigned fl_attack_effects(enum fl_attack_kind kind);
unsigned fl_attack_options(enum fl_attack_kind kind);
double fl_attack_default_scale(enum fl_attack_kind kind);

/* Of `n` clients, floor(share * n): 0.29 of 100 are 29, not 28. 0 <= share <= 1. */
size_t fl_attack_count(double share, size_t n);
/*
 * Draw the `count` <= n attackers: the first of a permutation of the clients that the seed
 * determines, so that with one seed a larger number of attackers contains a smaller one.
 * FL_ENOMEM.
 */
FL_MUST_CHECK int fl_attack_choose(uint64_t seed, size_t n, size_t count, bool *ret);

/* FL_ATTACK_ALTERS: change an own update; `rng` is drawn from by those that send noise. */
void fl_attack_alter(const struct fl_attack *attack, struct fl_rng *rng, float *update, size_t n);

/* FL_ATTACK_CLAIMS: what is claimed in place of the true figure; others return it unchanged. */
uint64_t fl_attack_claimed_samples(const struct fl_attack *attack, uint64_t samples);
float fl_attack_claimed_divergence(const struct fl_attack *attack, float divergence);

#endif
