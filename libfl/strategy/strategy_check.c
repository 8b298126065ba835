/*
 * Which components fit together (docs/algorithms.md#components-that-go-together): other
 * combinations are refused with the reason. Pure checks of a complete strategy; the policies' own
 * options are checked by their check().
 */
#include <string.h>

#include "libfl/strategy/codec/codec_residual.h"
#include "libfl/strategy/registry.h"

/* Components that must agree on which model is trained. */
static int strategy_check_personal(const struct fl_strategy *s, struct fl_err *err)
{
    if (s->aggregate->mixes && !s->personal->own) {
        return fl_err_set(err, FL_ECONF,
                          "aggregate '%s' computes personalized models: it needs personal 'own', "
                          "not '%s'",
                          s->aggregate->policy.name, s->personal->policy.name);
    }
    if (!s->personal->own) {
        return s->upload->never ? fl_err_set(err, FL_ECONF,
                                             "upload '%s' never changes the server's model: it "
                                             "needs personal 'own', not '%s'",
                                             s->upload->policy.name, s->personal->policy.name)
                                : FL_OK;
    }
    if (!s->aggregate->mixes && !s->upload->never) {
        return fl_err_set(err, FL_ECONF,
                          "personal 'own' needs an aggregate that computes personalized models, or "
                          "upload 'none'; '%s' computes one model for all clients",
                          s->aggregate->policy.name);
    }
    if (fl_strategy_distance(s) != FL_DISTANCE_NONE) {
        return fl_err_set(err, FL_ECONF,
                          "selection '%s' cannot be combined with personal 'own': without a global "
                          "model there are no distances to it",
                          s->selection->policy.name);
    }
    if (fl_broadcast_keeps_rest(s->broadcast)) {
        return fl_err_set(
            err, FL_ECONF,
            "broadcast '%s' cannot be combined with personal 'own': clients train "
            "models of their own, and there is no model that all of them hold; choose "
            "broadcast '%s'",
            s->broadcast->policy.name, fl_broadcast_float32.policy.name);
    }
    if (s->codec->sparse || s->upload->mask != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "%s '%s' cannot be combined with personal 'own': whole models are "
                          "uploaded, and left-out entries would count as zero",
                          s->codec->sparse ? "codec" : "upload",
                          s->codec->sparse ? s->codec->policy.name : s->upload->policy.name);
    }
    if (s->aggregate->mixes && s->upload->partial && !s->upload->whole) {
        return fl_err_set(err, FL_ECONF,
                          "upload '%s' cannot be combined with aggregate '%s': a client gets a "
                          "personalized model only when it uploaded its whole model; choose upload "
                          "'hdfl' or 'full'",
                          s->upload->policy.name, s->aggregate->policy.name);
    }
    if (s->solver->server != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "solver '%s' corrects towards one global model: it cannot be combined "
                          "with personal 'own'",
                          s->solver->policy.name);
    }
    return FL_OK;
}

static int strategy_check_sent(const struct fl_strategy *s, struct fl_err *err)
{
    const struct fl_agg_part *server = s->solver->server;

    if (s->upload->mask != NULL && server != NULL && !server->takes_masks) {
        return fl_err_set(err, FL_ECONF,
                          "upload '%s' sends parts of units, but solver '%s' needs whole units: "
                          "its state on the server would cover other neurons than on the clients; "
                          "choose upload 'ldf'",
                          s->upload->policy.name, s->solver->policy.name);
    }
    if (s->upload->mask != NULL && s->aggregate->scope != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "upload '%s' sends parts of units, but the attention of aggregate '%s' "
                          "compares whole units",
                          s->upload->policy.name, s->aggregate->policy.name);
    }
    if (s->upload->mask != NULL && s->aggregate->steps_cap != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "upload '%s' sends parts of units, but aggregate '%s' compares the "
                          "updates of whole units by their steps: choose upload 'full' or 'ldf'",
                          s->upload->policy.name, s->aggregate->policy.name);
    }
    if (s->upload->mask != NULL && s->aggregate->program != NULL) {
        return fl_err_set(
            err, FL_ECONF,
            "upload '%s' sends parts of units, but the program of aggregate '%s' gets "
            "whole units: choose upload 'full' or 'ldf'",
            s->upload->policy.name, s->aggregate->policy.name);
    }
    if (server != NULL && server->wants_scaled != NULL &&
        server->wants_scaled(s->options[FL_COMPONENT_SOLVER]) && s->codec->id != FL_CODEC_FLOAT32)
    {
        return fl_err_set(err, FL_ECONF,
                          "solver '%s' computes the clients' state changes from their exact "
                          "updates: it needs codec 'float32', not '%s'",
                          s->solver->policy.name, s->codec->policy.name);
    }
    return FL_OK;
}

static bool has_name(const char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

/* What a hashed space goes together with (docs/algorithms.md#hashed-spaces). */
static int strategy_check_space(const struct fl_strategy *s, struct fl_err *err)
{
    if (!s->space->hashed) {
        return FL_OK;
    }
    if (s->broadcast->grid == NULL) {
        return fl_err_set(err, FL_ECONF,
                          "space '%s' needs broadcast 'lattice', not '%s': clients add its whole "
                          "steps to their models exactly",
                          s->space->policy.name, s->broadcast->policy.name);
    }
    if (s->upload->mask != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "upload '%s' sends parts of units, which space '%s' does not have: each "
                          "number stands for entries of all neurons; choose upload 'full' or 'ldf'",
                          s->upload->policy.name, s->space->policy.name);
    }
    if (s->solver->server != NULL || fl_solver_keeps(s->solver->keeps) > 0 ||
        fl_solver_names(s->solver->inputs) > 0)
    {
        return fl_err_set(err, FL_ECONF,
                          "solver '%s' exchanges or keeps vectors of the whole model, which space "
                          "'%s' does not send: choose solver 'sgd' or 'prox'",
                          s->solver->policy.name, s->space->policy.name);
    }
    return FL_OK;
}

/* A head that is trained before the body fixes the other entries in every step. */
static int strategy_check_head(const struct fl_strategy *s, struct fl_err *err)
{
    if (fl_personal_head_epochs(s->personal, s->options[FL_COMPONENT_PERSONAL]) > 0 &&
        s->solver->steps_inside)
    {
        return fl_err_set(err, FL_ECONF,
                          "personal '%s' with epochs trains the head and the body one after the "
                          "other, and solver '%s' moves the whole model within each of its steps: "
                          "set epochs to 0, or choose solver 'sgd' or 'prox'",
                          s->personal->policy.name, s->solver->policy.name);
    }
    return FL_OK;
}

/* What a robust rule goes together with (docs/algorithms.md#robust-aggregation). */
static int strategy_check_robust(const struct fl_strategy *s, struct fl_err *err)
{
    const char *rule = s->robust->policy.name;
    size_t needs = fl_robust_needs(s->robust, s->options[FL_COMPONENT_ROBUST]);

    if (!fl_robust_on(s->robust)) {
        return FL_OK;
    }
    if (s->aggregate->program != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "robust '%s' replaces the weighted mean, which the program of aggregate "
                          "'%s' does by itself: leave robust out, or choose aggregate 'mean'",
                          rule, s->aggregate->policy.name);
    }
    if (s->aggregate->scope != NULL || s->aggregate->takes != NULL ||
        s->aggregate->steps_cap != NULL || s->personal->own)
    {
        return fl_err_set(err, FL_ECONF,
                          "robust '%s' replaces the weighted mean, which aggregate '%s' does not "
                          "take: choose aggregate 'mean', 'momentum' or 'fedadam'",
                          rule, s->aggregate->policy.name);
    }
    if (s->solver->server != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "solver '%s' sends a vector beside the update, over which robust '%s' "
                          "has no power: choose solver 'sgd' or 'prox'",
                          s->solver->policy.name, rule);
    }
    if (fl_robust_trusts(s->robust) && (s->solver->inputs != NULL || s->solver->keeps != NULL)) {
        return fl_err_set(err, FL_ECONF,
                          "robust '%s' trains an update on the server, which has none of what a "
                          "client with solver '%s' receives or keeps: choose solver 'sgd' or "
                          "'prox'",
                          rule, s->solver->policy.name);
    }
    if (s->upload->mask != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "upload '%s' sends parts of units, but robust '%s' compares whole units: "
                          "choose upload 'full' or 'ldf'",
                          s->upload->policy.name, rule);
    }
    if (s->upload->partial && needs > 1 &&
        !fl_robust_reports(s->robust, s->options[FL_COMPONENT_ROBUST]) &&
        s->upload->senders(s->options[FL_COMPONENT_UPLOAD]) < needs)
    {
        return fl_err_set(err, FL_ECONF,
                          "robust '%s' with these options needs %zu senders of every layer: set "
                          "option n of upload '%s' to %zu or more, it is %zu%s",
                          rule, needs, s->upload->policy.name, needs,
                          s->upload->senders(s->options[FL_COMPONENT_UPLOAD]),
                          s->upload->senders(s->options[FL_COMPONENT_UPLOAD]) == 0
                              ? " (a share of the selected clients)"
                              : "");
    }
    if (s->space->hashed && fl_robust_centred(s->robust, s->options[FL_COMPONENT_ROBUST])) {
        return fl_err_set(err, FL_ECONF,
                          "robust '%s' keeps its last result, which has other numbers after a "
                          "redraw of space '%s'",
                          rule, s->space->policy.name);
    }
    return FL_OK;
}

/* Payloads that the server or the clients need must be sent by the other side. */
static int strategy_check_payloads(const struct fl_strategy *s, struct fl_err *err)
{
    const char *collection = s->solver->collection;
    const char *const *name;

    for (name = s->solver->inputs; name != NULL && *name != NULL; name++) {
        if (fl_strategy_described_from(s, *name) == fl_strategy_states(s) &&
            !(collection != NULL && strcmp(collection, *name) == 0))
        {
            return fl_err_set(err, FL_ECONF,
                              "solver '%s' needs '%s' from the server, which aggregate '%s' does "
                              "not keep: choose another aggregate policy",
                              s->solver->policy.name, *name, s->aggregate->policy.name);
        }
    }
    for (name = s->aggregate->takes; name != NULL && *name != NULL; name++) {
        if (!has_name(fl_solver_sends(s->solver, s->options[FL_COMPONENT_SOLVER]), *name)) {
            return fl_err_set(err, FL_ECONF,
                              "aggregate '%s' needs '%s' from the clients, which solver '%s' does "
                              "not send: choose another solver policy",
                              s->aggregate->policy.name, *name, s->solver->policy.name);
        }
    }
    return FL_OK;
}

int fl__strategy_check_options(const struct fl_strategy *strategy, enum fl_component component,
                               struct fl_err *err)
{
    const struct fl_policy *policy = fl__strategy_policy(strategy, component);
    int rv = policy->check != NULL ? policy->check(strategy->options[component], err) : FL_OK;

    return rv == FL_OK
               ? FL_OK
               : fl_err_wrap(err, rv, "%s '%s'", fl_component_name(component), policy->name);
}

int fl_strategy_check(const struct fl_strategy *strategy, struct fl_err *err)
{
    size_t component;
    int rv;

    for (component = 0; component < FL_COMPONENT_COUNT; component++) {
        rv = fl__strategy_check_options(strategy, (enum fl_component)component, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (strategy->upload->partial && fl_strategy_distance(strategy) == FL_DISTANCE_NEW) {
        return fl_err_set(err, FL_ECONF,
                          "selection '%s' with reference 'new' cannot be combined with upload "
                          "'%s': the server never receives a client's whole model under partial "
                          "uploads; set the reference to 'old' or 'auto'",
                          strategy->selection->policy.name, strategy->upload->policy.name);
    }
    if (strategy->codec->sparse && fl_strategy_distance(strategy) == FL_DISTANCE_NEW) {
        return fl_err_set(err, FL_ECONF,
                          "selection '%s' with reference 'new' cannot be combined with codec '%s': "
                          "entries that it leaves out are missing from the distance; set the "
                          "reference to 'old' or 'auto'",
                          strategy->selection->policy.name, strategy->codec->policy.name);
    }
    rv = strategy_check_personal(strategy, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (strategy->solver->fits != NULL) {
        rv = strategy->solver->fits(strategy->options[FL_COMPONENT_SOLVER], strategy->aggregate,
                                    err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    /*
     * Upload masks and residuals can be combined: neurons that are left out keep their residual
     * (codec_residual.h).
     */
    if (strategy->personal->own &&
        fl_codec_keeps_residual(strategy->codec, strategy->options[FL_COMPONENT_CODEC]))
    {
        return fl_err_set(err, FL_ECONF,
                          "codec '%s' with a residual cannot be combined with personal 'own': "
                          "whole models are uploaded, so the coding error of one upload must not "
                          "be added to the next",
                          strategy->codec->policy.name);
    }
    rv = strategy_check_head(strategy, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = strategy_check_space(strategy, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = strategy_check_robust(strategy, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = strategy_check_sent(strategy, err);
    if (rv != FL_OK) {
        return rv;
    }
    return strategy_check_payloads(strategy, err);
}

int fl_strategy_check_training(const struct fl_strategy *strategy, double learning_rate,
                               double momentum, struct fl_err *err)
{
    const struct fl_solver_ops *solver = strategy->solver;

    return solver->fits_training != NULL
               ? solver->fits_training(strategy->options[FL_COMPONENT_SOLVER], learning_rate,
                                       momentum, err)
               : FL_OK;
}

int fl_strategy_check_momentum(const struct fl_strategy *strategy, struct fl_err *err)
{
    const struct fl_solver_ops *solver = strategy->solver;

    if (strategy->personal->own) {
        return fl_err_set(err, FL_ECONF,
                          "a momentum over rounds cannot be combined with personal '%s': clients "
                          "upload models, or nothing, and have no common model to move",
                          strategy->personal->policy.name);
    }
    if (solver->server != NULL || fl_solver_names(solver->sends) > 0) {
        return fl_err_set(err, FL_ECONF,
                          "a momentum over rounds cannot be combined with solver '%s': the vectors "
                          "it exchanges beside the update follow from the update of one round",
                          solver->policy.name);
    }
    if (strategy->upload->mask != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "a momentum over rounds cannot be combined with upload '%s': it sends "
                          "other entries of a layer in each round, so that no entry has a history",
                          strategy->upload->policy.name);
    }
    if (strategy->space->hashed) {
        return fl_err_set(err, FL_ECONF,
                          "a momentum over rounds cannot be combined with space '%s': most of what "
                          "it holds is lost at a redraw",
                          strategy->space->policy.name);
    }
    return FL_OK;
}
