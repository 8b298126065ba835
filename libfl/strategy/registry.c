/*
 * The registry of all policies of all components: a new policy adds its line here. A policy is
 * the first member of its ops, so one table of policies is enough.
 */
#include <stddef.h>
#include <string.h>

#include "libfl/strategy/registry.h"

static const struct fl_policy *const selections[] = {
    &fl_selection_uniform.policy,
    &fl_selection_weighted.policy,
    &fl_selection_attention.policy,
    NULL,
};
static const struct fl_policy *const fractions[] = {
    &fl_fraction_constant.policy,
    &fl_fraction_stepped.policy,
    &fl_fraction_curve.policy,
    &fl_fraction_listed.policy,
    NULL,
};
static const struct fl_policy *const solvers[] = {
    &fl_solver_sgd.policy,
    &fl_solver_prox.policy,
    &fl_solver_scaffold.policy,
    &fl_solver_feddyn.policy,
    &fl_solver_igfl_c.policy,
    &fl_solver_pfedme.policy,
    &fl_solver_per_fedavg.policy,
    &fl_solver_fedmix.policy,
    &fl_solver_naivemix.policy,
    &fl_solver_optimizer.policy,
    NULL,
};
static const struct fl_policy *const uploads[] = {
    &fl_upload_full.policy,
    &fl_upload_ldf.policy,
    &fl_upload_random_layer.policy,
    &fl_upload_hdfl.policy,
    &fl_upload_none.policy,
    &fl_upload_fedadp.policy,
    NULL,
};
static const struct fl_policy *const codecs[] = {
    &fl_codec_float32.policy, &fl_codec_float16.policy, &fl_codec_bfloat16.policy,
    &fl_codec_int8.policy,    &fl_codec_ternary.policy, &fl_codec_steps.policy,
    &fl_codec_topk.policy,    &fl_codec_qsgd.policy,    NULL,
};
static const struct fl_policy *const aggregates[] = {
    &fl_aggregate_mean.policy,   &fl_aggregate_momentum.policy, &fl_aggregate_adam.policy,
    &fl_aggregate_yogi.policy,   &fl_aggregate_adagrad.policy,  &fl_aggregate_nova.policy,
    &fl_aggregate_igfl_s.policy, &fl_aggregate_mcsa.policy,     &fl_aggregate_heur_fedamp.policy,
    &fl_aggregate_fedamp.policy, &fl_aggregate_command.policy,  NULL,
};

static const struct fl_policy *const personals[] = {
    &fl_personal_none.policy,
    &fl_personal_trained.policy,
    &fl_personal_own.policy,
    &fl_personal_adapt.policy,
    &fl_personal_ditto.policy,
    &fl_personal_head.policy,
    NULL,
};

static const struct fl_policy *const broadcasts[] = {
    &fl_broadcast_float32.policy,
    &fl_broadcast_float16.policy,
    &fl_broadcast_lattice.policy,
    &fl_broadcast_ternary.policy,
    NULL,
};

static const struct fl_policy *const spaces[] = {
    &fl_space_full.policy,
    &fl_space_hashed.policy,
    NULL,
};

static const struct fl_policy *const robusts[] = {
    &fl_robust_none.policy,
    &fl_robust_median.policy,
    &fl_robust_trimmed_mean.policy,
    &fl_robust_meamed.policy,
    &fl_robust_krum.policy,
    &fl_robust_multi_krum.policy,
    &fl_robust_mda.policy,
    &fl_robust_geometric_median.policy,
    &fl_robust_centered_clipping.policy,
    &fl_robust_clipping.policy,
    &fl_robust_dnc.policy,
    &fl_robust_signguard.policy,
    &fl_robust_fltrust.policy,
    NULL,
};

static const struct {
    const char *name;
    const struct fl_policy *const *policies;
} components[FL_COMPONENT_COUNT] = {
    [FL_COMPONENT_SELECTION] = {"selection", selections},
    [FL_COMPONENT_FRACTION] = {"fraction", fractions},
    [FL_COMPONENT_SOLVER] = {"solver", solvers},
    [FL_COMPONENT_UPLOAD] = {"upload", uploads},
    [FL_COMPONENT_CODEC] = {"codec", codecs},
    [FL_COMPONENT_AGGREGATE] = {"aggregate", aggregates},
    [FL_COMPONENT_PERSONAL] = {"personal", personals},
    [FL_COMPONENT_BROADCAST] = {"broadcast", broadcasts},
    [FL_COMPONENT_SPACE] = {"space", spaces},
    [FL_COMPONENT_ROBUST] = {"robust", robusts},
};

_Static_assert(offsetof(struct fl_selection_ops, policy) == 0, "policy comes first");
_Static_assert(offsetof(struct fl_fraction_ops, policy) == 0, "policy comes first");
_Static_assert(offsetof(struct fl_solver_ops, policy) == 0, "policy comes first");
_Static_assert(offsetof(struct fl_upload_ops, policy) == 0, "policy comes first");
_Static_assert(offsetof(struct fl_codec_ops, policy) == 0, "policy comes first");
_Static_assert(offsetof(struct fl_aggregate_ops, policy) == 0, "policy comes first");
_Static_assert(offsetof(struct fl_personal_ops, policy) == 0, "policy comes first");
_Static_assert(offsetof(struct fl_broadcast_ops, policy) == 0, "policy comes first");
_Static_assert(offsetof(struct fl_space_ops, policy) == 0, "policy comes first");
_Static_assert(offsetof(struct fl_robust_ops, policy) == 0, "policy comes first");

const char *fl_component_name(enum fl_component component)
{
    FL_REQUIRE(component < FL_COMPONENT_COUNT);
    return components[component].name;
}

const struct fl_policy *const *fl_strategy_policies(enum fl_component component)
{
    FL_REQUIRE(component < FL_COMPONENT_COUNT);
    return components[component].policies;
}

int fl__policy_find(enum fl_component component, const char *name, const struct fl_policy **ret,
                    struct fl_err *err)
{
    const struct fl_policy *const *all = fl_strategy_policies(component);
    const char *names[FL__POLICIES_MAX];
    const char *nearest;
    size_t n = 0;

    for (; all[n] != NULL; n++) {
        FL_REQUIRE(n < FL__POLICIES_MAX);
        if (strcmp(all[n]->name, name) == 0) {
            *ret = all[n];
            return FL_OK;
        }
        names[n] = all[n]->name;
    }
    nearest = fl_str_nearest(name, names, n);
    if (nearest != NULL) {
        return fl_err_set(err, FL_ECONF, "no %s policy '%.64s'; did you mean '%s'?",
                          fl_component_name(component), name, nearest);
    }
    return fl__unknown(err, fl_component_name(component), "policy ", name, names, n);
}

int fl__unknown(struct fl_err *err, const char *what, const char *kind, const char *name,
                const char *const *names, size_t n)
{
    char known[256] = "";
    size_t len = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        size_t part = strlen(names[i]);

        if (len + part + 3 > sizeof(known)) {
            break;
        }
        if (i > 0) {
            (void)memcpy(known + len, ", ", 2);
            len += 2;
        }
        (void)memcpy(known + len, names[i], part + 1);
        len += part;
    }
    return fl_err_set(err, FL_ECONF, "no %s %s'%.64s'; known: %s", what, kind, name, known);
}

const struct fl_codec_ops *fl_codec_by_id(int id)
{
    size_t i;

    for (i = 0; codecs[i] != NULL; i++) {
        const struct fl_codec_ops *ops = (const void *)codecs[i];

        if ((int)ops->id == id) {
            return ops;
        }
    }
    return NULL;
}
