/*
 * A strategy: the policies and options of all components, from a preset and changes to it; the
 * names of the server's state vectors; and look-ups of single policies by name for clients. No
 * I/O: strategy_load.c reads the configuration, strategy_check.c checks that the components fit
 * together.
 */
#include "libfl/strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/registry.h"

const struct fl_policy *fl__strategy_policy(const struct fl_strategy *strategy,
                                            enum fl_component component)
{
    switch (component) {
    case FL_COMPONENT_SELECTION:
        return &strategy->selection->policy;
    case FL_COMPONENT_FRACTION:
        return &strategy->fraction->policy;
    case FL_COMPONENT_SOLVER:
        return &strategy->solver->policy;
    case FL_COMPONENT_UPLOAD:
        return &strategy->upload->policy;
    case FL_COMPONENT_CODEC:
        return &strategy->codec->policy;
    case FL_COMPONENT_AGGREGATE:
        return &strategy->aggregate->policy;
    case FL_COMPONENT_PERSONAL:
        return &strategy->personal->policy;
    case FL_COMPONENT_BROADCAST:
        return &strategy->broadcast->policy;
    case FL_COMPONENT_SPACE:
        return &strategy->space->policy;
    case FL_COMPONENT_ROBUST:
        return &strategy->robust->policy;
    case FL_COMPONENT_COUNT:
        break;
    }
    return NULL;
}

int fl_strategy_set(struct fl_strategy *strategy, enum fl_component component, const char *name,
                    struct fl_err *err)
{
    const struct fl_policy *policy = NULL;
    struct fl_options *options = NULL;
    int rv = fl__policy_find(component, name, &policy, err);
    const void *ops;

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_options_create(policy->options, &options);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s '%s': %s", fl_component_name(component), name,
                          fl_strerror(rv));
    }
    ops = policy;
    switch (component) {
    case FL_COMPONENT_SELECTION:
        strategy->selection = ops;
        break;
    case FL_COMPONENT_FRACTION:
        strategy->fraction = ops;
        break;
    case FL_COMPONENT_SOLVER:
        strategy->solver = ops;
        break;
    case FL_COMPONENT_UPLOAD:
        strategy->upload = ops;
        break;
    case FL_COMPONENT_CODEC:
        strategy->codec = ops;
        break;
    case FL_COMPONENT_AGGREGATE:
        strategy->aggregate = ops;
        break;
    case FL_COMPONENT_PERSONAL:
        strategy->personal = ops;
        break;
    case FL_COMPONENT_BROADCAST:
        strategy->broadcast = ops;
        break;
    case FL_COMPONENT_SPACE:
        strategy->space = ops;
        break;
    case FL_COMPONENT_ROBUST:
        strategy->robust = ops;
        break;
    case FL_COMPONENT_COUNT:
        break;
    }
    fl_options_free(strategy->options[component]);
    strategy->options[component] = options;
    return FL_OK;
}

static int strategy_set_options(struct fl_options *options, const struct fl_component_option *list,
                                size_t n, struct fl_err *err)
{
    int rv;
    size_t i;

    for (i = 0; i < n && list[i].name != NULL; i++) {
        rv = fl_options_set(options, list[i].name, list[i].value, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int strategy_fill(struct fl_strategy *strategy, const struct fl__filling *filling,
                         struct fl_err *err)
{
    int rv;

    for (; filling->policy != NULL; filling++) {
        rv = fl_strategy_set(strategy, filling->component, filling->policy, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = strategy_set_options(strategy->options[filling->component], filling->options,
                                  sizeof(filling->options) / sizeof(filling->options[0]), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_strategy_create(const char *preset, struct fl_strategy **ret, struct fl_err *err)
{
    static const struct fl__filling base[] = {
        {.component = FL_COMPONENT_SELECTION, .policy = "uniform"},
        {.component = FL_COMPONENT_FRACTION, .policy = "constant"},
        {.component = FL_COMPONENT_SOLVER, .policy = "sgd"},
        {.component = FL_COMPONENT_UPLOAD, .policy = "full"},
        {.component = FL_COMPONENT_CODEC, .policy = "float32"},
        {.component = FL_COMPONENT_AGGREGATE, .policy = "mean"},
        {.component = FL_COMPONENT_PERSONAL, .policy = "none"},
        {.component = FL_COMPONENT_BROADCAST, .policy = "float32"},
        {.component = FL_COMPONENT_SPACE, .policy = "full"},
        {.component = FL_COMPONENT_ROBUST, .policy = "none"},
        {.policy = NULL},
    };
    struct fl__preset own;
    struct fl_strategy *strategy;
    int rv = fl__preset_find(preset, &own, err);

    if (rv != FL_OK) {
        return rv;
    }
    strategy = calloc(1, sizeof(*strategy));
    if (strategy == NULL) {
        return fl_err_set(err, FL_ENOMEM, "strategy: out of memory");
    }
    rv = fl_str_copy(strategy->algorithm, sizeof(strategy->algorithm), preset);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = strategy_fill(strategy, base, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = strategy_fill(strategy, own.list, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = strategy;
    return FL_OK;
fail:
    fl_strategy_free(strategy);
    return rv;
}

void fl_strategy_free(struct fl_strategy *strategy)
{
    size_t component;

    if (strategy == NULL) {
        return;
    }
    for (component = 0; component < FL_COMPONENT_COUNT; component++) {
        fl_options_free(strategy->options[component]);
    }
    free(strategy);
}

enum fl_distance fl_strategy_distance(const struct fl_strategy *strategy)
{
    if (strategy->selection->distance == NULL) {
        return FL_DISTANCE_NONE;
    }
    return strategy->selection->distance(strategy->options[FL_COMPONENT_SELECTION],
                                         strategy->upload->partial || strategy->codec->sparse);
}

bool fl_strategy_needs_divergence(const struct fl_strategy *strategy)
{
    return strategy->upload->needs_feedback || fl_strategy_distance(strategy) == FL_DISTANCE_OLD;
}

bool fl_strategy_needs_previous_dot(const struct fl_strategy *strategy)
{
    return strategy->aggregate->wants_previous_dot != NULL &&
           strategy->aggregate->wants_previous_dot(strategy->options[FL_COMPONENT_AGGREGATE]);
}

size_t fl_strategy_own_states(const struct fl_strategy *strategy)
{
    return strategy->aggregate->n_state +
           fl_robust_centred(strategy->robust, strategy->options[FL_COMPONENT_ROBUST]) +
           fl_broadcast_keeps_rest(strategy->broadcast);
}

size_t fl_strategy_states(const struct fl_strategy *strategy)
{
    return fl_strategy_own_states(strategy) +
           (strategy->solver->server != NULL ? strategy->solver->server->n_state : 0);
}

const char *fl_strategy_state_name(const struct fl_strategy *strategy, size_t i)
{
    size_t own = fl_strategy_own_states(strategy);

    FL_REQUIRE(i < fl_strategy_states(strategy));
    if (i >= own) {
        return strategy->solver->server->state_names[i - own];
    }
    if (i < strategy->aggregate->n_state) {
        return strategy->aggregate->state_names[i];
    }
    return i == strategy->aggregate->n_state &&
                   fl_robust_centred(strategy->robust, strategy->options[FL_COMPONENT_ROBUST])
               ? FL_ROBUST_CENTRE
               : FL_BROADCAST_REST;
}

/*
 * The solver's server part when state vector `*i` belongs to it, with `*i` changed to its index
 * there; else NULL.
 */
static const struct fl_agg_part *strategy_solver_part(const struct fl_strategy *strategy, size_t *i)
{
    FL_REQUIRE(*i < fl_strategy_states(strategy));
    if (*i < fl_strategy_own_states(strategy)) {
        return NULL;
    }
    *i -= fl_strategy_own_states(strategy);
    return strategy->solver->server;
}

bool fl_strategy_sums_kept(const struct fl_strategy *strategy)
{
    return fl_solver_sums_kept(strategy->solver);
}

bool fl_strategy_describes_state(const struct fl_strategy *strategy, size_t i)
{
    const struct fl_agg_part *part = strategy_solver_part(strategy, &i);

    return part == NULL || part->tell == NULL;
}

size_t fl_strategy_described_from(const struct fl_strategy *strategy, const char *name)
{
    size_t n = fl_strategy_states(strategy);
    size_t i;

    for (i = 0; i < n; i++) {
        const char *payload = fl_strategy_state_name(strategy, i);

        if (!fl_strategy_describes_state(strategy, i)) {
            size_t at = i;

            payload = strategy_solver_part(strategy, &at)->tells[at];
        }
        if (strcmp(payload, name) == 0) {
            return i;
        }
    }
    return n;
}

void fl_strategy_describe(const struct fl_strategy *strategy, size_t i, const float *state,
                          size_t members, float *out, size_t n)
{
    const struct fl_agg_part *part = strategy_solver_part(strategy, &i);

    FL_REQUIRE(members > 0);
    if (part != NULL && part->tell != NULL) {
        part->tell(state, members, out, n);
    } else {
        (void)memcpy(out, state, n * sizeof(*out));
    }
}

int fl_component_by_name(enum fl_component component, const char *name,
                         const struct fl_component_option *options, size_t n,
                         const struct fl_policy **ret_policy, struct fl_options **ret_options,
                         struct fl_err *err)
{
    const struct fl_policy *policy = NULL;
    struct fl_options *values = NULL;
    int rv = fl__policy_find(component, name, &policy, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_options_create(policy->options, &values);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = strategy_set_options(values, options, n, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (policy->check != NULL) {
        rv = policy->check(values, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret_policy = policy;
    *ret_options = values;
    return FL_OK;
fail:
    fl_options_free(values);
    return fl_err_wrap(err, rv, "%s '%s'", fl_component_name(component), name);
}
