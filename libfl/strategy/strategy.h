#ifndef FL_STRATEGY_STRATEGY_H
#define FL_STRATEGY_STRATEGY_H

/*
 * A whole algorithm: one policy with its options for each slot.
 * A preset ("adafl+fedldf") is only a filling of the slots; each slot can then be set
 * by itself. Combinations that make no sense are refused with the reason.
 */

#include "libfl/conf/yaml.h"
#include "libfl/strategy/aggregate.h"
#include "libfl/strategy/personal.h"
#include "libfl/strategy/selection.h"
#include "libfl/strategy/solver.h"
#include "libfl/strategy/upload.h"

struct fl_strategy {
    char algorithm[FL_NAME_MAX]; /* preset it started from; "custom" without one */
    const struct fl_selection_ops *selection;
    const struct fl_fraction_ops *fraction;
    const struct fl_solver_ops *solver;
    const struct fl_upload_ops *upload;
    const struct fl_codec_ops *codec;
    const struct fl_aggregate_ops *aggregate;
    const struct fl_personal_ops *personal;
    struct fl_options *options[FL_SLOT_COUNT]; /* owned */
};

struct fl_preset {
    const char *name;
    const char *help;
    const char *source;
    const struct fl__filling *filling; /* of the registry; NULL: of its parts, joined by '+' */
};

/* Presets and policies, NULL-terminated tables for --help, check and the reference. */
const struct fl_preset *fl_strategy_presets(void);
const struct fl_policy *const *fl_strategy_policies(enum fl_slot slot);

/* FL_ECONF with the nearest known name. */
FL_MUST_CHECK int fl_strategy_create(const char *preset, struct fl_strategy **ret,
                                     struct fl_err *err);
void fl_strategy_free(struct fl_strategy *strategy);
/* Put policy `name` with default options into a slot. */
FL_MUST_CHECK int fl_strategy_set(struct fl_strategy *strategy, enum fl_slot slot, const char *name,
                                  struct fl_err *err);
/*
 * `algorithm: NAME` and the map `strategy:` of a configuration file, whose entries
 * are slot names with either a policy name or a map {policy: NAME, option: value, …}.
 * A map without `policy` changes options of the preset's policy. Either node may be
 * NULL ("fedavg" without both). Ends with fl_strategy_check().
 */
FL_MUST_CHECK int fl_strategy_load(const struct fl_conf_doc *doc,
                                   const struct fl_conf_node *algorithm,
                                   const struct fl_conf_node *strategy, struct fl_strategy **ret,
                                   struct fl_err *err);
/* FL_ECONF with the reason when the slots do not fit together. */
FL_MUST_CHECK int fl_strategy_check(const struct fl_strategy *strategy, struct fl_err *err);
/* FL_ECONF with the reason when the solver cannot train with these options: clients would
   refuse every task. The learning rate is that of the first round, the largest one. */
FL_MUST_CHECK int fl_strategy_check_training(const struct fl_strategy *strategy,
                                             double learning_rate, double momentum,
                                             struct fl_err *err);

/* Where the distances of the selection's update() come from. */
enum fl_distance fl_strategy_distance(const struct fl_strategy *strategy);
/* Reports must hold divergences: for the plan, for the distances, or both. */
bool fl_strategy_needs_divergence(const struct fl_strategy *strategy);
/* Reports must hold the inner product with the client's previous displacement. */
bool fl_strategy_needs_previous_dot(const struct fl_strategy *strategy);
/* The solver's part keeps the sum of what clients keep (fl_agg_part.sums_kept). */
bool fl_strategy_sums_kept(const struct fl_strategy *strategy);
/* State vectors that the server keeps beside the model: the aggregate's, then the solver's. */
size_t fl_strategy_states(const struct fl_strategy *strategy);
/* Name of the i-th of them. */
const char *fl_strategy_state_name(const struct fl_strategy *strategy, size_t i);
/* Of which of them the bundle `name` is that clients are told; fl_strategy_states(): of none. */
size_t fl_strategy_described_from(const struct fl_strategy *strategy, const char *name);
/* Clients are told the i-th as it is. */
bool fl_strategy_describes_state(const struct fl_strategy *strategy, size_t i);
/* told[n] of a piece of the i-th, in a round of so many members (fl_agg_job). */
void fl_strategy_describe(const struct fl_strategy *strategy, size_t i, const float *state,
                          size_t members, float *told, size_t n);

/*
 * What a federation was run under, as text, to be compared when it is started again. Appends.
 * "prox mu=0.1 anchor=fixed": the policy of a slot and all its options, defaults too.
 */
FL_MUST_CHECK int fl_strategy_slot_text(const struct fl_strategy *strategy, enum fl_slot slot,
                                        struct fl_buf *out);
/* Does the slot decide what an update is, and what is made of it? Selection and fraction only
   say who is asked. */
bool fl_strategy_slot_is_meaning(enum fl_slot slot);
/* The server's part scales updates by the clients' rates (fl_agg_part.wants_scaled): then these
   are part of what an update means. */
bool fl_strategy_scales_updates(const struct fl_strategy *strategy);
/* All that clients keep between rounds: "scaffold.control codec.residual"; nothing: "". */
FL_MUST_CHECK int fl_strategy_kept_text(const struct fl_strategy *strategy, struct fl_buf *out);
/* What clients are asked to tell of their data: the solver's slot; nothing: "". */
FL_MUST_CHECK int fl_strategy_offer_text(const struct fl_strategy *strategy, struct fl_buf *out);

/* A slot that the client fills (solver, codec, upload, personal) from its wire form: name and
 * option texts. */
struct fl_slot_option {
    const char *name;
    const char *value;
};
FL_MUST_CHECK int fl_solver_by_name(const char *name, const struct fl_slot_option *options,
                                    size_t n, const struct fl_solver_ops **ret_ops,
                                    struct fl_options **ret_options, struct fl_err *err);
FL_MUST_CHECK int fl_codec_by_name(const char *name, const struct fl_slot_option *options, size_t n,
                                   const struct fl_codec_ops **ret_ops,
                                   struct fl_options **ret_options, struct fl_err *err);
FL_MUST_CHECK int fl_upload_by_name(const char *name, const struct fl_slot_option *options,
                                    size_t n, const struct fl_upload_ops **ret_ops,
                                    struct fl_options **ret_options, struct fl_err *err);
FL_MUST_CHECK int fl_personal_by_name(const char *name, const struct fl_slot_option *options,
                                      size_t n, const struct fl_personal_ops **ret_ops,
                                      struct fl_options **ret_options, struct fl_err *err);

#endif
