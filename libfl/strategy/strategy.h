#ifndef FL_STRATEGY_STRATEGY_H
#define FL_STRATEGY_STRATEGY_H

/*
 * A whole algorithm: one policy with its options for each component. A preset ("adafl+fedldf")
 * sets all components; each can then be set separately. Combinations that make no sense are
 * refused with the reason.
 */

#include "libfl/conf/yaml.h"
#include "libfl/strategy/aggregator/aggregate.h"
#include "libfl/strategy/broadcast/broadcast.h"
#include "libfl/strategy/personalization/personal.h"
#include "libfl/strategy/robust/robust.h"
#include "libfl/strategy/selection/selection.h"
#include "libfl/strategy/solver/solver.h"
#include "libfl/strategy/space/space.h"
#include "libfl/strategy/upload/upload.h"

struct fl_strategy {
    char algorithm[FL_NAME_MAX]; /* its preset; "custom" without one */
    const struct fl_selection_ops *selection;
    const struct fl_fraction_ops *fraction;
    const struct fl_solver_ops *solver;
    const struct fl_upload_ops *upload;
    const struct fl_codec_ops *codec;
    const struct fl_aggregate_ops *aggregate;
    const struct fl_personal_ops *personal;
    const struct fl_broadcast_ops *broadcast;
    const struct fl_space_ops *space;
    const struct fl_robust_ops *robust;
    struct fl_options *options[FL_COMPONENT_COUNT]; /* owned */
};

struct fl_preset {
    const char *name;
    const char *help;
    const char *source;
    /* private to the registry; NULL: joined from the names between '+' */
    const struct fl__filling *filling;
};

/* Presets and policies: NULL-terminated tables for --help, check and the reference. */
const struct fl_preset *fl_strategy_presets(void);
const struct fl_policy *const *fl_strategy_policies(enum fl_component component);

/* Create a strategy from a preset (returns owned); FL_ECONF with the nearest known name. */
FL_MUST_CHECK int fl_strategy_create(const char *preset, struct fl_strategy **ret,
                                     struct fl_err *err);
void fl_strategy_free(struct fl_strategy *strategy);
/* Set a component to policy `name` with default options. */
FL_MUST_CHECK int fl_strategy_set(struct fl_strategy *strategy, enum fl_component component,
                                  const char *name, struct fl_err *err);
/*
 * `algorithm: NAME` and the map `strategy:` of a configuration file, whose keys are component names
 * and whose values are a policy name or a map {policy: NAME, option: value, …}. A map without
 * `policy` changes options of the preset's policy. Either node may be NULL ("fedavg" without both).
 * Ends with fl_strategy_check().
 */
FL_MUST_CHECK int fl_strategy_load(const struct fl_conf_doc *doc,
                                   const struct fl_conf_node *algorithm,
                                   const struct fl_conf_node *strategy, struct fl_strategy **ret,
                                   struct fl_err *err);
/* FL_ECONF with the reason when the components do not fit together. */
FL_MUST_CHECK int fl_strategy_check(const struct fl_strategy *strategy, struct fl_err *err);
/*
 * FL_ECONF with the reason when the solver cannot train with these options, so that clients
 * would refuse every task. The learning rate is that of the first round, the largest one.
 */
FL_MUST_CHECK int fl_strategy_check_training(const struct fl_strategy *strategy,
                                             double learning_rate, double momentum,
                                             struct fl_err *err);
/*
 * FL_ECONF with the reason when clients cannot upload a momentum of their updates
 * (docs/algorithms.md#momentum-of-a-client).
 */
FL_MUST_CHECK int fl_strategy_check_momentum(const struct fl_strategy *strategy,
                                             struct fl_err *err);

/* The kind of distances of the selection's update(). */
enum fl_distance fl_strategy_distance(const struct fl_strategy *strategy);
/* Reports must contain divergences: for the upload plan, for the distances, or both. */
bool fl_strategy_needs_divergence(const struct fl_strategy *strategy);
/* Reports must contain the inner product with the client's previous displacement. */
bool fl_strategy_needs_previous_dot(const struct fl_strategy *strategy);
/*
 * The state of the solver's server part is the sum of the clients' states
 * (fl_agg_part.sums_kept).
 */
bool fl_strategy_sums_kept(const struct fl_strategy *strategy);
/*
 * Number of state vectors that the server keeps beside the model: the aggregator's, the centre of
 * a robust rule, the broadcast's, then the solver's.
 */
size_t fl_strategy_states(const struct fl_strategy *strategy);
/* How many of them, the first ones, are not the solver's. */
size_t fl_strategy_own_states(const struct fl_strategy *strategy);
/* Name of the i-th of them. */
const char *fl_strategy_state_name(const struct fl_strategy *strategy, size_t i);
/*
 * Index of the state vector that the payload `name` for clients is computed from;
 * fl_strategy_states() when there is none.
 */
size_t fl_strategy_described_from(const struct fl_strategy *strategy, const char *name);
/* Clients receive the i-th state vector unchanged. */
bool fl_strategy_describes_state(const struct fl_strategy *strategy, size_t i);
/*
 * Compute out[n], the payload for clients, from a piece of the i-th state vector, in a round
 * with `members` members (fl_agg_job).
 */
void fl_strategy_describe(const struct fl_strategy *strategy, size_t i, const float *state,
                          size_t members, float *out, size_t n);

/*
 * The policy of a component and all its options, defaults included, as text, for the
 * compatibility check at a restart: "prox mu=0.1 anchor=fixed". Appends.
 */
FL_MUST_CHECK int fl_strategy_component_text(const struct fl_strategy *strategy,
                                             enum fl_component component, struct fl_buf *out);
/*
 * True when the component determines what an update means and how it is aggregated. Selection
 * and fraction only determine which clients train.
 */
bool fl_strategy_component_is_update(enum fl_component component);
/*
 * The server part scales updates by the clients' learning rates (fl_agg_part.wants_scaled): then
 * these rates belong to the compatibility digest.
 */
bool fl_strategy_scales_updates(const struct fl_strategy *strategy);
/* Names of all client states: "scaffold.control codec.residual"; none: "". Appends. */
FL_MUST_CHECK int fl_strategy_kept_text(const struct fl_strategy *strategy, struct fl_buf *out);
/* What determines the data summaries: the text of the solver component; none: "". Appends. */
FL_MUST_CHECK int fl_strategy_summary_text(const struct fl_strategy *strategy, struct fl_buf *out);

/*
 * An option of a component as text. The client creates the components solver, codec, upload,
 * personal, broadcast and space from their wire form: name and option texts.
 */
struct fl_component_option {
    const char *name;
    const char *value;
};
/* The policy is the first member of its component's operations (fl_solver_ops and so on). */
FL_MUST_CHECK int fl_component_by_name(enum fl_component component, const char *name,
                                       const struct fl_component_option *options, size_t n,
                                       const struct fl_policy **ret_policy,
                                       struct fl_options **ret_options, struct fl_err *err);

#endif
