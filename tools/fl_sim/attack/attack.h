#ifndef FL_SIM_ATTACK_H
#define FL_SIM_ATTACK_H

/*
 * The arithmetic of simulated attackers (docs/simulation.md#attackers): which clients are
 * attackers, and what each attack makes of honest updates. Updates are vectors of the
 * trainable entries of the model. No I/O, clock, thread or global.
 *
 * Threading: pure functions, any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/rng.h"
#include "libfl/strategy/robust/robust.h"

/* X(NAME, text, effects, options, default of `scale`); effects and options are enums below. */
/* clang-format off */
#define FL_ATTACK_MAP(X)                                                                           \
    X(SIGN_FLIP, sign_flip, FL_ATTACK_ALTERS, FL_ATTACK_SCALE, 1)                                  \
    X(SCALING, scaling, FL_ATTACK_ALTERS, FL_ATTACK_SCALE, 10)                                     \
    X(GAUSSIAN, gaussian, FL_ATTACK_ALTERS, FL_ATTACK_SCALE, 1)                                    \
    X(LABEL_FLIP, label_flip, FL_ATTACK_POISONS, 0, 0)                                             \
    X(BACKDOOR, backdoor, FL_ATTACK_POISONS | FL_ATTACK_ALTERS, FL_ATTACK_SCALE, 10)               \
    X(ALIE, alie, FL_ATTACK_COLLUDES, FL_ATTACK_Z, 0)                                              \
    X(IPM, ipm, FL_ATTACK_COLLUDES, FL_ATTACK_EPSILON, 0)                                          \
    X(MIN_MAX, min_max, FL_ATTACK_COLLUDES, FL_ATTACK_PERTURBATION, 0)                             \
    X(MIN_SUM, min_sum, FL_ATTACK_COLLUDES, FL_ATTACK_PERTURBATION, 0)                             \
    X(MIMIC, mimic, FL_ATTACK_COLLUDES | FL_ATTACK_MODELS, 0, 0)                                   \
    X(IMITATION, imitation, FL_ATTACK_COLLUDES | FL_ATTACK_MODELS, FL_ATTACK_SCALE, 1)             \
    X(TAILORED, tailored, FL_ATTACK_COLLUDES, FL_ATTACK_PERTURBATION, 0)                           \
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
    FL_ATTACK_ALTERS = 1u << 0,   /* changes its own update */
    FL_ATTACK_COLLUDES = 1u << 1, /* replaces its update by one made from the honest ones */
    FL_ATTACK_POISONS = 1u << 2,  /* trains on other samples */
    FL_ATTACK_CLAIMS = 1u << 3,   /* sends false figures beside an honest update */
    FL_ATTACK_MODELS = 1u << 4    /* works on models in place of updates, too */
};

/* Which options an attack uses. */
enum fl_attack_option {
    FL_ATTACK_SCALE = 1u << 0,
    FL_ATTACK_Z = 1u << 1,
    FL_ATTACK_EPSILON = 1u << 2,
    FL_ATTACK_PERTURBATION = 1u << 3
};

/* The direction of min_max, min_sum and tailored; each points away from the honest mean. */
enum fl_attack_perturbation {
    FL_ATTACK_INVERSE_STD,  /* minus the standard deviation of each entry */
    FL_ATTACK_INVERSE_UNIT, /* minus the mean, divided by its norm */
    FL_ATTACK_INVERSE_SIGN  /* minus the sign of each entry of the mean */
};

struct fl_attack {
    enum fl_attack_kind kind;
    double scale, epsilon;
    double z; /* of alie; NaN: by fl_attack_alie_z() */
    enum fl_attack_perturbation perturbation;
    uint64_t seed; /* of the trial */
};

/* "sign_flip", NULL-terminated, in the order of fl_attack_kind. */
extern const char *const fl_attack_names[];
extern const char *const fl_attack_perturbation_names[];
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

/* What the server makes of the updates of a round, as far as `tailored` knows it; borrowed. */
struct fl_attack_rule {
    const struct fl_robust_ops *ops; /* NULL or `none`: the mean */
    const struct fl_options *options;
    const float *centre; /* [n] the last result, of a rule with a centre; NULL: zero */
};

/* The honest updates of a round; borrowed. */
struct fl_attack_view {
    const float *const *honest; /* [n_honest][n], in the order of the clients */
    size_t n_honest;            /* at least 1 */
    size_t n_attackers;         /* of the round; at least 1 */
    size_t n;
    struct fl_attack_rule rule;
};
/*
 * FL_ATTACK_COLLUDES: the update that all attackers of the round send, into `ret` [n], which
 * overlaps no honest update. Independent of threads: sums run in the order of `honest`. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_attack_collude(const struct fl_attack *attack,
                                    const struct fl_attack_view *view, float *ret);
/*
 * z of A Little Is Enough for `clients` of a round, `attackers` < clients of them attackers
 * (Baruch, Baruch, Goldberg 2019, Algorithm 3): the largest z with Phi(z) < (n - m - s) / (n - m),
 * s = floor(n / 2 + 1) - m. A majority of attackers needs no supporters: s is at least 1. Where the
 * formula is negative, 0: then the attackers send the mean.
 */
double fl_attack_alie_z(size_t clients, size_t attackers);

/* FL_ATTACK_CLAIMS: what is claimed in place of the true figure; others return it unchanged. */
uint64_t fl_attack_claimed_samples(const struct fl_attack *attack, uint64_t samples);
float fl_attack_claimed_divergence(const struct fl_attack *attack, float divergence);

#endif
