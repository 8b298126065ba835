#include <check.h>

#include "libfl/strategy/strategy.h"
#include "tests/lib/option_shown.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/strategy_fixture.h"

/* Loads "algorithm" and "strategy" of a YAML text. */
static int load(const char *yaml, struct fl_strategy **ret, struct fl_err *err)
{
    struct fl_conf_doc *doc = NULL;
    const struct fl_conf_node *root;
    int rv;

    ck_assert_msg(fl_conf_parse("fl.yaml", yaml, strlen(yaml), &doc, err) == FL_OK, "%s", err->msg);
    root = fl_conf_root(doc);
    rv = fl_strategy_load(doc, fl_conf_get(root, "algorithm"), fl_conf_get(root, "strategy"), ret,
                          err);
    fl_conf_free(doc);
    return rv;
}

TEST_EACH(every_component_has_policies_with_documented_options, FL_COMPONENT_COUNT)
{
    const struct fl_policy *const *p = fl_strategy_policies((enum fl_component)_i);

    ck_assert_ptr_nonnull(p[0]);
    for (; *p != NULL; p++) {
        const struct fl_opt_spec *spec;
        struct fl_options *o = NULL;
        bool required = false; /* an option without which the policy cannot be chosen */

        ck_assert_str_ne((*p)->name, "");
        ck_assert_str_ne((*p)->help, "");
        ck_assert_str_ne((*p)->source, "");
        ck_assert_ptr_nonnull((*p)->options);
        for (spec = (*p)->options; spec->name != NULL; spec++) {
            const struct fl_opt_spec *other;

            for (other = (*p)->options; other != spec; other++) {
                ck_assert_msg(other->offset != spec->offset, "%s.%s and %s are one field",
                              (*p)->name, spec->name, other->name);
            }
            ck_assert_msg(spec->help != NULL && strlen(spec->help) > 10, "%s.%s has no help",
                          (*p)->name, spec->name);
            ck_assert_msg(spec->help[strlen(spec->help) - 1] == '.', "%s.%s: a sentence ends",
                          (*p)->name, spec->name);
            required = required || (spec->flags & FL_OPT_REQUIRED) != 0;
            ck_assert_msg((spec->def != NULL) == ((spec->flags & FL_OPT_REQUIRED) == 0),
                          "%s.%s has either a default or is required", (*p)->name, spec->name);
        }
        /* Defaults pass their own ranges. */
        ck_assert_int_eq(fl_options_create((*p)->options, &o), FL_OK);
        for (spec = (*p)->options; spec->name != NULL; spec++) {
            ck_assert(spec->def == NULL || fl_options_set(o, spec->name, spec->def, NULL) == FL_OK);
        }
        ck_assert((*p)->check == NULL || ((*p)->check(o, NULL) == FL_OK) == !required);
        fl_options_free(o);
    }
}

TEST(every_preset_loads_from_yaml_and_fits_together)
{
    const struct fl_preset *p = fl_strategy_presets();

    ck_assert_str_eq(p->name, "fedavg");
    for (; p->name != NULL; p++) {
        struct fl_strategy *s = NULL;
        struct fl_err err = {0};
        char yaml[100];

        (void)snprintf(yaml, sizeof(yaml), "algorithm: %s\n", p->name);
        ck_assert_msg(load(yaml, &s, &err) == FL_OK, "%s", err.msg);
        ck_assert_str_eq(s->algorithm, p->name);
        ck_assert_str_ne(p->help, "");
        ck_assert_str_ne(p->source, "");
        fl_strategy_free(s);
    }
}

TEST_EACH(presets_fill_fill_the_components_as_in_the_table, 50)
{
    static const struct {
        const char *name, *components;
    } rows[] = {
        {"fedavg", "uniform constant sgd full float32 mean none"},
        {"fedprox", "uniform constant prox full float32 mean none"},
        {"fedavgm", "uniform constant sgd full float32 momentum none"},
        {"fedadam", "uniform constant sgd full float32 fedadam none"},
        {"fedyogi", "uniform constant sgd full float32 fedyogi none"},
        {"fedadagrad", "uniform constant sgd full float32 fedadagrad none"},
        {"fednova", "uniform constant sgd full float32 fednova none"},
        {"scaffold", "uniform constant scaffold full float32 mean none"},
        {"fedmix", "uniform constant fedmix full float32 mean none"},
        {"naivemix", "uniform constant naivemix full float32 mean none"},
        {"adafl", "attention stepped sgd full float32 mean none"},
        {"attn", "attention constant sgd full float32 mean none"},
        {"dyn_fedavg", "uniform stepped sgd full float32 mean none"},
        {"fedldf", "uniform constant sgd ldf float32 mean none"},
        {"random_layer", "uniform constant sgd random_layer float32 mean none"},
        {"hdfl", "uniform constant sgd hdfl float32 mean none"},
        {"fedadp", "uniform constant sgd fedadp float32 mean none"},
        {"igfl_c", "uniform constant igfl_c full float32 mean none"},
        {"igfl_s", "uniform constant sgd full float32 igfl_s none"},
        {"igfl", "uniform constant igfl_c full float32 igfl_s none"},
        {"igfl_sa", "uniform constant igfl_c full float32 igfl_s none"},
        {"igfl_ta", "uniform constant igfl_c full float32 igfl_s none"},
        {"fedmcsa", "uniform constant prox hdfl float32 mcsa own"},
        {"fedmcsa_fixed", "uniform constant prox hdfl float32 mcsa own"},
        {"fedmcsa_mean", "uniform constant prox hdfl float32 mean trained"},
        {"fedavg+mcsa", "uniform constant sgd hdfl float32 mcsa own"},
        {"pfedme+mcsa", "uniform constant pfedme hdfl float32 mcsa own"},
        {"pfedme", "uniform constant pfedme hdfl float32 mean trained"},
        {"per_fedavg", "uniform constant per_fedavg full float32 mean adapt"},
        {"heur_fedamp", "uniform constant prox hdfl float32 heur_fedamp own"},
        {"fedamp", "uniform constant prox hdfl float32 fedamp own"},
        {"local_only", "uniform constant sgd none float32 mean own"},
        {"fedavg+ft", "uniform constant sgd full float32 mean adapt"},
        {"stc", "uniform constant sgd full ternary mean none"},
        {"lean", "uniform stepped sgd ldf ternary mean none"},
        {"ditto", "uniform constant sgd full float32 mean ditto"},
        {"fedper", "uniform constant sgd full float32 mean head"},
        {"fedrep", "uniform constant sgd full float32 mean head"},
        {"feddyn", "uniform constant feddyn full float32 mean none"},
        {"topk", "uniform constant sgd full topk mean none"},
        {"qsgd", "uniform constant sgd full qsgd mean none"},
        {"adafl+fedldf", "attention stepped sgd ldf float32 mean none"},
        {"adafl+fedprox", "attention stepped prox full float32 mean none"},
        {"adafl+scaffold", "attention stepped scaffold full float32 mean none"},
        {"adafl+fedmix", "attention stepped fedmix full float32 mean none"},
        {"adafl+fedavgm", "attention stepped sgd full float32 momentum none"},
        {"adafl+fedadam", "attention stepped sgd full float32 fedadam none"},
        {"adafl+igfl_s", "attention stepped sgd full float32 igfl_s none"},
        {"fedldf+fedprox", "uniform constant prox ldf float32 mean none"},
        {"fedldf+scaffold", "uniform constant scaffold ldf float32 mean none"},
        {"fedldf+fedavgm", "uniform constant sgd ldf float32 momentum none"},
        {"fedldf+fedadam", "uniform constant sgd ldf float32 fedadam none"},
        {"fedldf+igfl_c", "uniform constant igfl_c ldf float32 mean none"},
        /* Joined by hand, and with a fraction. */
        {"fedprox+fedldf+adafl", "attention constant prox ldf float32 mean none"},
        {"fedavg-0.5", "uniform constant sgd full float32 mean none"},
        {"attn-0.1", "attention constant sgd full float32 mean none"},
        {"fedadp+igfl_c", "uniform constant igfl_c fedadp float32 mean none"},
        {"scaffold+fedavgm-1", "uniform constant scaffold full float32 momentum none"},
    };
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};
    char components[200];

    ck_assert_msg(fl_strategy_create(rows[_i].name, &s, &err) == FL_OK, "%s", err.msg);
    (void)snprintf(components, sizeof(components), "%s %s %s %s %s %s %s",
                   s->selection->policy.name, s->fraction->policy.name, s->solver->policy.name,
                   s->upload->policy.name, s->codec->policy.name, s->aggregate->policy.name,
                   s->personal->policy.name);
    ck_assert_str_eq(components, rows[_i].components);
    ck_assert_msg(fl_strategy_check(s, &err) == FL_OK, "%s", err.msg);
    fl_strategy_free(s);
}

TEST(a_fraction_behind_the_name_is_that_of_the_clients)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("fedavg-0.1", &s, NULL), FL_OK);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "fraction"), "0.1");
    ck_assert_str_eq(s->algorithm, "fedavg-0.1");
    fl_strategy_free(s);
    ck_assert_int_eq(fl_strategy_create("fedldf+fedprox-0.25", &s, NULL), FL_OK);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "fraction"), "0.25");
    fl_strategy_free(s);
    ck_assert_int_eq(fl_strategy_create("adafl-0.1", &s, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "the fraction of 'adafl' grows"));
    ck_assert_int_eq(fl_strategy_create("fedavg-1.5", &s, &err), FL_ECONF);
    ck_assert_int_eq(fl_strategy_create("fedavg-0", &s, &err), FL_ECONF);
    ck_assert_int_eq(fl_strategy_create("-0.1", &s, &err), FL_ECONF);
    ck_assert_int_eq(fl_strategy_create("fedavg-", &s, &err), FL_ECONF);
    ck_assert_int_eq(fl_strategy_create("fedavg+", &s, &err), FL_ECONF);
    ck_assert_int_eq(fl_strategy_create("", &s, &err), FL_ECONF);
}

/* docs/algorithms.md#components-that-go-together: what is not meaningful is refused, and why is
 * said. */
TEST_EACH(combinations_without_a_meaning_are_refused_with_the_reason, 22)
{
    static const struct {
        const char *yaml;
        const char *text[2];
    } rows[] = {
        {"algorithm: fedldf+hdfl\n", {"needs upload 'hdfl'", "needs 'ldf'"}},
        {"algorithm: scaffold+igfl_c\n", {"needs solver 'igfl_c'", "'scaffold'"}},
        {"algorithm: fedavgm+fedadam\n", {"needs aggregate 'fedadam'", "'momentum'"}},
        {"algorithm: igfl_s+fedavgm\n", {"needs aggregate 'momentum'", "'igfl_s'"}},
        {"algorithm: adafl+fedmcsa\n", {"selection 'attention'", "personal 'own'"}},
        {"algorithm: adafl+heur_fedamp\n", {"selection 'attention'", "personal 'own'"}},
        {"algorithm: fedldf+fedmcsa\n", {"needs upload 'hdfl'", "'ldf'"}},
        {"algorithm: fedmcsa\nstrategy: {solver: scaffold}\n",
         {"solver 'scaffold'", "one global model"}},
        {"algorithm: fedmcsa\nstrategy: {solver: igfl_c}\n",
         {"solver 'igfl_c'", "one global model"}},
        {"algorithm: fedmcsa\nstrategy: {upload: ldf}\n", {"upload 'ldf'", ""}},
        {"algorithm: fedmcsa\nstrategy: {upload: random_layer}\n", {"upload 'random_layer'", ""}},
        {"algorithm: fedmcsa\nstrategy: {upload: fedadp}\n", {"upload 'fedadp'", ""}},
        {"algorithm: fedmcsa\nstrategy: {codec: ternary}\n", {"codec 'ternary'", "whole models"}},
        {"algorithm: fedmcsa\nstrategy: {aggregate: mean}\n", {"personal 'own'", "personalized"}},
        {"algorithm: fedmcsa\nstrategy: {personal: none}\n", {"aggregate 'mcsa'", "'own'"}},
        {"algorithm: local_only\nstrategy: {personal: none}\n", {"upload 'none'", "'own'"}},
        {"algorithm: scaffold\nstrategy: {upload: fedadp}\n", {"upload 'fedadp'", "'scaffold'"}},
        {"algorithm: igfl_s\nstrategy: {upload: fedadp}\n", {"upload 'fedadp'", "'igfl_s'"}},
        {"algorithm: fednova\nstrategy: {upload: fedadp}\n", {"upload 'fedadp'", "'fednova'"}},
        {"algorithm: fednova\nstrategy: {robust: median}\n", {"robust 'median'", "'fednova'"}},
        {"algorithm: igfl_c\nstrategy: {aggregate: momentum}\n", {"igfl_c", "momentum"}},
        {"algorithm: feddyn\nstrategy: {codec: int8}\n", {"solver 'feddyn'", "codec 'float32'"}},
        {"algorithm: feddyn\nstrategy: {upload: fedadp}\n", {"upload 'fedadp'", "'feddyn'"}},
        {"algorithm: scaffold\nstrategy: {solver: {rebuild_dc: yes}, codec: int8}\n",
         {"solver 'scaffold'", "codec 'float32'"}},
    };
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};
    size_t i;

    ck_assert_msg(load(rows[_i].yaml, &s, &err) == FL_ECONF, "%s: %s", rows[_i].yaml, err.msg);
    for (i = 0; i < 2; i++) {
        ck_assert_msg(strstr(err.msg, rows[_i].text[i]) != NULL, "'%s' is not in: %s",
                      rows[_i].text[i], err.msg);
    }
}

TEST(defaults_are_those_of_the_papers)
{
    struct fl_strategy *s = NULL;

    ck_assert_int_eq(fl_strategy_create("adafl+fedldf", &s, NULL), FL_OK);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_SELECTION], "alpha"), "0.9");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_SELECTION], "floor"), "0");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_SELECTION], "reference"), "auto");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "start"), "0.1");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "end"), "0.5");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "step"), "0.1");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "every"), "200");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_UPLOAD], "n"), "0");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_UPLOAD], "share"), "0.2");
    fl_strategy_free(s);
    ck_assert_int_eq(fl_strategy_create("fedprox", &s, NULL), FL_OK);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_SOLVER], "mu"), "0.01");
    fl_strategy_free(s);
    ck_assert_int_eq(fl_strategy_create("fedavgm", &s, NULL), FL_OK);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_AGGREGATE], "beta"), "0.9");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_AGGREGATE], "server_lr"), "1");
    fl_strategy_free(s);
    ck_assert_int_eq(fl_strategy_create("fedldf", &s, NULL), FL_OK);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "fraction"), "0.4");
    fl_strategy_free(s);
    ck_assert_int_eq(fl_strategy_create("fedadam", &s, NULL), FL_OK);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_AGGREGATE], "beta1"), "0.9");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_AGGREGATE], "beta2"), "0.99");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_AGGREGATE], "tau"), "0.01");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_AGGREGATE], "bias_correction"), "no");
    fl_strategy_free(s);
}

/* The composition that took the fewest bytes to a target. */
TEST(lean_keeps_a_twentieth_of_a_fifth_of_a_growing_number_of_clients)
{
    struct fl_strategy *s = NULL;

    ck_assert_int_eq(fl_strategy_create("lean", &s, NULL), FL_OK);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "start"), "0.1");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "end"), "0.5");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "every"), "20");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_UPLOAD], "share"), "0.2");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_CODEC], "share"), "0.05");
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_AGGREGATE], "server_lr"), "1");
    fl_strategy_free(s);
}

TEST(nothing_configured_is_fedavg)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(load("other: 1\n", &s, &err), FL_OK);
    ck_assert_str_eq(s->algorithm, "fedavg");
    ck_assert_ptr_eq(s->upload, &fl_upload_full);
    ck_assert_int_eq(fl_strategy_distance(s), FL_DISTANCE_NONE);
    ck_assert(!fl_strategy_needs_divergence(s));
    fl_strategy_free(s);
}

TEST(components_take_a_name_or_a_map)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_msg(load("algorithm: adafl\n"
                       "strategy:\n"
                       "  selection: {alpha: 0.5}\n"
                       "  fraction: {policy: constant, fraction: 0.3}\n"
                       "  solver: prox\n",
                       &s, &err) == FL_OK,
                  "%s", err.msg);
    ck_assert_str_eq(s->algorithm, "adafl");
    ck_assert_ptr_eq(s->selection, &fl_selection_attention);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_SELECTION], "alpha"), "0.5");
    ck_assert_ptr_eq(s->fraction, &fl_fraction_constant);
    ck_assert_str_eq(option_shown(s->options[FL_COMPONENT_FRACTION], "fraction"), "0.3");
    ck_assert_ptr_eq(s->solver, &fl_solver_prox);
    fl_strategy_free(s);
    ck_assert_int_eq(load("strategy: {upload: ldf}\n", &s, &err), FL_OK);
    ck_assert_str_eq(s->algorithm, "custom");
    fl_strategy_free(s);
}

TEST_EACH(mistakes_are_named_with_line_and_way_out, 28)
{
    static const struct {
        const char *yaml;
        const char *text[3];
    } rows[] = {
        {"algorithm: fedldff\n", {"fl.yaml:1", "'fedldff'", "did you mean 'fedldf'"}},
        {"algorithm: qqqqqqqqqqqqqq\n", {"fl.yaml:1", "fl-serverd --help", "join names with '+'"}},
        {"algorithm: [a]\n", {"fl.yaml:1", "name of an algorithm", ""}},
        {"a: 1\nstrategy: fast\n", {"fl.yaml:2", "map from components to policies", ""}},
        {"strategy:\n  uplaod: ldf\n", {"fl.yaml:2", "uplaod", "upload"}},
        {"strategy:\n  upload: ldg\n", {"fl.yaml:2", "upload policy 'ldg'", "'ldf'"}},
        {"strategy:\n  upload: [ldf]\n", {"fl.yaml:2", "found a list", ""}},
        {"strategy:\n  upload: {policy: [x]}\n", {"fl.yaml:2", "name of a policy", ""}},
        {"strategy:\n  upload:\n    policy: ldf\n    shar: 1\n", {"fl.yaml:4", "shar", "share"}},
        {"strategy:\n  upload: {policy: ldf, share: 2}\n", {"fl.yaml:2", "share", "1"}},
        {"strategy:\n  solver: {mu: 1}\n", {"fl.yaml:2", "mu", ""}},
        {"strategy:\n  fraction: {policy: stepped, start: 0.6}\n",
         {"fl.yaml:", "start (0.6) is above end (0.5)", "'constant'"}},
        {"strategy:\n  aggregate: {policy: momentum, beta: 1}\n", {"fl.yaml:", "beta", "below 1"}},
        {"algorithm: adafl+fedldf\nstrategy:\n  selection: {reference: new}\n",
         {"fl.yaml:", "reference 'new' cannot be combined with upload 'ldf'", "'old' or 'auto'"}},
        {"algorithm: adafl\nstrategy:\n  selection: {reference: new}\n  upload: random_layer\n",
         {"fl.yaml:", "cannot be combined with upload 'random_layer'", "partial uploads"}},
        {"algorithm: adafl\nstrategy:\n  selection: {reference: new}\n  upload: hdfl\n",
         {"fl.yaml:", "cannot be combined with upload 'hdfl'", "partial uploads"}},
        {"algorithm: adafl\nstrategy:\n  selection: {reference: new}\n  codec: ternary\n",
         {"fl.yaml:", "cannot be combined with codec 'ternary'", "'old' or 'auto'"}},
        {"strategy:\n  codec: {policy: ternary, share: 1.5}\n", {"fl.yaml:2", "share", "1"}},
        {"strategy:\n  codec: {policy: int8, share: 0.5}\n", {"fl.yaml:2", "share", ""}},
        {"strategy:\n  codec: {policy: float32, residual: yes}\n", {"fl.yaml:2", "residual", ""}},
        {"strategy:\n  codec: {policy: int8, decay: 1.5}\n", {"fl.yaml:2", "decay", "1"}},
        {"strategy: {upload: none, personal: own, codec: {policy: int8, residual: yes}}\n",
         {"fl.yaml:", "codec 'int8' with a residual cannot be combined with personal 'own'",
          "whole"}},
        {"algorithm: adafl\nstrategy: {selection: {reference: new}, upload: fedadp}\n",
         {"fl.yaml:", "cannot be combined with upload 'fedadp'", "partial uploads"}},
        {"strategy: {upload: {policy: fedadp, rho: 1.1}}\n", {"fl.yaml:1", "rho", "1"}},
        {"strategy:\n  codec: float64\n", {"fl.yaml:2", "codec policy 'float64'", "float"}},
        {"strategy:\n  aggregate: {policy: fedadam, beta1: 1}\n",
         {"fl.yaml:", "beta1 must be below 1", ""}},
        {"strategy:\n  aggregate: {policy: fedadam, beta2: 1, bias_correction: yes}\n",
         {"fl.yaml:", "bias_correction needs beta2 below 1", ""}},
        {"strategy:\n  aggregate: {policy: fedadam, tau: 0}\n", {"fl.yaml:2", "tau", ""}},
    };
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};
    size_t i;

    ck_assert_int_eq(load(rows[_i].yaml, &s, &err), FL_ECONF);
    ck_assert_ptr_null(s);
    for (i = 0; i < 3; i++) {
        ck_assert_msg(strstr(err.msg, rows[_i].text[i]) != NULL, "'%s' is not in: %s",
                      rows[_i].text[i], err.msg);
    }
}

TEST_EACH(distances_and_divergences_follow_from_the_components, 13)
{
    static const struct {
        const char *yaml;
        enum fl_distance distance;
        bool divergence;
    } rows[] = {
        {"algorithm: fedavg\n", FL_DISTANCE_NONE, false},
        {"algorithm: adafl\n", FL_DISTANCE_NEW, false},
        {"algorithm: adafl\nstrategy: {selection: {reference: old}}\n", FL_DISTANCE_OLD, true},
        {"algorithm: fedldf\n", FL_DISTANCE_NONE, true},
        {"algorithm: adafl+fedldf\n", FL_DISTANCE_OLD, true},
        {"algorithm: random_layer\n", FL_DISTANCE_NONE, false},
        {"algorithm: random_layer\nstrategy: {selection: attention}\n", FL_DISTANCE_OLD, true},
        {"algorithm: adafl\nstrategy: {codec: ternary}\n", FL_DISTANCE_OLD, true},
        {"algorithm: adafl\nstrategy: {codec: int8}\n", FL_DISTANCE_NEW, false},
        {"algorithm: lean\n", FL_DISTANCE_NONE, true},
        {"algorithm: lean\nstrategy: {selection: attention}\n", FL_DISTANCE_OLD, true},
        {"algorithm: hdfl\n", FL_DISTANCE_NONE, false},
        {"algorithm: adafl\nstrategy: {upload: fedadp}\n", FL_DISTANCE_OLD, true},
    };
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(load(rows[_i].yaml, &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_distance(s), rows[_i].distance);
    ck_assert(fl_strategy_needs_divergence(s) == rows[_i].divergence);
    fl_strategy_free(s);
}

/* Policies to come: control variates need both sides. */
TEST(what_one_component_needs_another_must_give)
{
    static const char *const names[] = {"control", NULL};
    struct fl_solver_ops solver = fl_solver_sgd;
    struct fl_aggregate_ops aggregate = fl_aggregate_mean;
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("fedavg", &s, NULL), FL_OK);
    solver.policy.name = "controlled";
    solver.inputs = names;
    solver.sends = names;
    s->solver = &solver;
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_str_eq(err.msg,
                     "solver 'controlled' needs 'control' from the server, which aggregate "
                     "'mean' does not keep: choose another aggregate policy");
    aggregate.policy.name = "controls";
    aggregate.n_state = 1;
    aggregate.state_names = names;
    aggregate.takes = names;
    s->aggregate = &aggregate;
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_OK);
    s->solver = &fl_solver_sgd;
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "solver 'sgd' does not send"));
    fl_strategy_free(s);
}

TEST(solvers_come_from_their_wire_form)
{
    struct fl_component_option mu = {.name = "mu", .value = "0.25"};
    struct fl_component_option bad = {.name = "nu", .value = "0.25"};
    const struct fl_policy *policy = NULL;
    struct fl_options *o = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_component_by_name(FL_COMPONENT_SOLVER, "prox", &mu, 1, &policy, &o, &err),
                     FL_OK);
    ck_assert_ptr_eq(policy, &fl_solver_prox.policy);
    ck_assert_str_eq(option_shown(o, "mu"), "0.25");
    fl_options_free(o);
    ck_assert_int_eq(fl_component_by_name(FL_COMPONENT_SOLVER, "prox", &bad, 1, &policy, &o, &err),
                     FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "solver 'prox'"));
    ck_assert_int_eq(
        fl_component_by_name(FL_COMPONENT_SOLVER, "anneal9", NULL, 0, &policy, &o, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "known: sgd, prox"));
}

TEST(codecs_come_by_name_and_number)
{
    const struct fl_policy *policy = NULL;
    struct fl_options *o = NULL;

    ck_assert_int_eq(
        fl_component_by_name(FL_COMPONENT_CODEC, "float32", NULL, 0, &policy, &o, NULL), FL_OK);
    ck_assert_ptr_eq(policy, &fl_codec_float32.policy);
    fl_options_free(o);
    ck_assert_ptr_eq(fl_codec_by_id(FL_CODEC_FLOAT32), &fl_codec_float32);
    ck_assert_ptr_eq(fl_codec_by_id(FL_CODEC_FLOAT16), &fl_codec_float16);
    ck_assert_ptr_eq(fl_codec_by_id(FL_CODEC_BFLOAT16), &fl_codec_bfloat16);
    ck_assert_ptr_eq(fl_codec_by_id(FL_CODEC_INT8), &fl_codec_int8);
    ck_assert_ptr_eq(fl_codec_by_id(FL_CODEC_TERNARY), &fl_codec_ternary);
    ck_assert_ptr_eq(fl_codec_by_id(FL_CODEC_STEPS), &fl_codec_steps);
    ck_assert_ptr_eq(fl_codec_by_id(FL_CODEC_TOPK), &fl_codec_topk);
    ck_assert_ptr_eq(fl_codec_by_id(FL_CODEC_QSGD), &fl_codec_qsgd);
    ck_assert_ptr_null(fl_codec_by_id(0));
    ck_assert_ptr_null(fl_codec_by_id(-1));
    ck_assert_ptr_null(fl_codec_by_id(99));
}

TEST(setting_a_component_by_hand_keeps_the_others)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("adafl", &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_AGGREGATE, "momentum", &err), FL_OK);
    ck_assert_ptr_eq(s->aggregate, &fl_aggregate_momentum);
    ck_assert_ptr_eq(s->selection, &fl_selection_attention);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_AGGREGATE, "momentun", &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "did you mean 'momentum'?"));
    ck_assert_ptr_eq(s->aggregate, &fl_aggregate_momentum);
    fl_strategy_free(s);
    fl_strategy_free(NULL);
}

static const struct {
    const char *algorithm, *why;
} no_momentum[] = {
    {"fedmcsa", "combined with personal 'own'"},     {"local_only", "combined with personal 'own'"},
    {"scaffold", "combined with solver 'scaffold'"}, {"feddyn", "combined with solver 'feddyn'"},
    {"igfl_c", "combined with solver 'igfl_c'"},     {"fedadp", "combined with upload 'fedadp'"},
};

TEST_EACH(a_momentum_of_updates_is_refused_where_updates_have_no_history, 6)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create(no_momentum[_i].algorithm, &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check_momentum(s, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, no_momentum[_i].why) != NULL, "%s", err.msg);
    fl_strategy_free(s);
}

TEST(a_momentum_of_updates_is_refused_where_a_redraw_loses_it)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("fedavg", &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_SPACE, "hashed", &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check_momentum(s, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, "space 'hashed'") != NULL, "%s", err.msg);
    fl_strategy_free(s);
}

TEST_EACH(a_momentum_of_updates_fits_uploads_of_the_one_model, 5)
{
    static const char *const fits[] = {"fedavg", "fedprox+fedldf", "stc", "lean", "igfl_s"};
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create(fits[_i], &s, &err), FL_OK);
    ck_assert_msg(fl_strategy_check_momentum(s, &err) == FL_OK, "%s", err.msg);
    fl_strategy_free(s);
}
