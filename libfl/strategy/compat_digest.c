/* A strategy as text, for the compatibility check when a federation is restarted. */
#include "libfl/strategy/codec/codec_residual.h"
#include "libfl/strategy/registry.h"

/* Limit of an option value as text; far above any value of a component's options. */
#define VALUE_MAX 2048

int fl_strategy_component_text(const struct fl_strategy *strategy, enum fl_component component,
                               struct fl_buf *out)
{
    const struct fl_policy *policy = fl__strategy_policy(strategy, component);
    const struct fl_opt_spec *spec;
    int rv = fl_buf_printf(out, "%s", policy->name);

    if (rv != FL_OK) {
        return rv;
    }
    for (spec = policy->options; spec != NULL && spec->name != NULL; spec++) {
        char value[VALUE_MAX];

        if ((spec->flags & FL_POLICY_BOUND) != 0) {
            continue;
        }
        rv = fl_buf_printf(
            out, " %s=%s", spec->name,
            fl_options_show(strategy->options[component], spec, value, sizeof(value)));
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

bool fl_strategy_component_is_update(enum fl_component component)
{
    switch (component) {
    case FL_COMPONENT_SOLVER:
    case FL_COMPONENT_UPLOAD:
    case FL_COMPONENT_CODEC:
    case FL_COMPONENT_AGGREGATE:
    case FL_COMPONENT_PERSONAL:
    case FL_COMPONENT_BROADCAST:
    case FL_COMPONENT_SPACE:
    case FL_COMPONENT_ROBUST:
        return true;
    case FL_COMPONENT_SELECTION: /* It decides which clients train, not what an update is. */
    case FL_COMPONENT_FRACTION:
    case FL_COMPONENT_COUNT:
        break;
    }
    return false;
}

bool fl_strategy_scales_updates(const struct fl_strategy *strategy)
{
    const struct fl_agg_part *server = strategy->solver->server;

    return server != NULL && server->wants_scaled != NULL &&
           server->wants_scaled(strategy->options[FL_COMPONENT_SOLVER]);
}

int fl_strategy_kept_text(const struct fl_strategy *strategy, struct fl_buf *out)
{
    const struct fl_solver_ops *solver = strategy->solver;
    const struct fl_keep *keep = solver->keeps;
    const struct {
        bool keeps;
        const char *name;
    } others[] = {
        {fl_strategy_needs_previous_dot(strategy), "update.previous"},
        {fl_codec_keeps_residual(strategy->codec, strategy->options[FL_COMPONENT_CODEC]),
         "codec.residual"},
        {fl_personal_keeps_model(strategy->personal), "own.personal"},
    };
    size_t i;
    int rv;

    for (; keep != NULL && keep->name != NULL; keep++) {
        rv =
            fl_buf_printf(out, "%s%s.%s", out->len > 0 ? " " : "", solver->policy.name, keep->name);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i].keeps) {
            rv = fl_buf_printf(out, "%s%s", out->len > 0 ? " " : "", others[i].name);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

int fl_strategy_summary_text(const struct fl_strategy *strategy, struct fl_buf *out)
{
    return strategy->solver->summary != NULL
               ? fl_strategy_component_text(strategy, FL_COMPONENT_SOLVER, out)
               : FL_OK;
}
