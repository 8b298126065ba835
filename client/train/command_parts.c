/*
 * What a federation needs of an external trainer, checked against what the program declared, and a
 * solver and its steps as JSON for the program. Pure functions.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/command_impl.h"

void fl__parts_names(unsigned parts, const char *ret[FL__PARTS_MAX + 1])
{
    size_t n = 0;
    size_t i;

    for (i = 0; fl_capability_names[i] != NULL; i++) {
        if ((parts & 1u << i) != 0) {
            ret[n++] = fl_capability_names[i];
        }
    }
    ret[n] = NULL;
}

unsigned fl__parts_vectors(unsigned parts)
{
    unsigned vectors = 1u << FL_PERSISTENT_MODEL;

    vectors |= (parts & FL_CAPABILITY_PULL) != 0 ? 1u << FL_PERSISTENT_ANCHOR : 0;
    vectors |= (parts & FL_CAPABILITY_GRADIENT) != 0 ? 1u << FL_PERSISTENT_GRADIENT : 0;
    vectors |= (parts & FL_CAPABILITY_DRIFT) != 0 ? 1u << FL_PERSISTENT_DRIFT : 0;
    vectors |= (parts & FL_CAPABILITY_SPACE) != 0 ? 1u << FL_PERSISTENT_PLACES : 0;
    return vectors;
}

unsigned fl__parts_space(const struct fl_persistent *r, const struct fl_space *space,
                         unsigned parts)
{
    const unsigned own = FL_CAPABILITY_PFEDME | FL_CAPABILITY_PER_FEDAVG;

    return space != NULL && (parts & own) == 0 && fl_persistent_has_part(r, "space")
               ? FL_CAPABILITY_SPACE
               : 0;
}

unsigned fl__parts_beside(const struct fl_options *beside)
{
    return beside != NULL ? fl_external_parts(&fl_solver_prox, beside, false) : 0;
}

static int check_parts(const struct fl_persistent *r, const char *program, unsigned parts,
                       const char *why, const char *name, struct fl_err *err)
{
    const char *names[FL__PARTS_MAX + 1];
    size_t i;

    fl__parts_names(parts, names);
    for (i = 0; names[i] != NULL; i++) {
        if (!fl_persistent_has_part(r, names[i])) {
            return fl_err_set(err, FL_EUNIMPL,
                              "the server's %s '%s' needs the part '%s' in every step, which "
                              "'%.100s' did not declare in 'ready' (docs/trainers.md)",
                              why, name, names[i], program);
        }
    }
    return FL_OK;
}

/* The steps of a model that is trained beside the global one. */
static int check_beside(const struct fl_persistent *r, const char *program,
                        const struct fl_train_model *m, struct fl_err *err)
{
    struct fl_options *beside = NULL;
    int rv = fl_personal_beside_steps(m->personal, m->personal_options, &beside, err);

    if (rv != FL_OK || beside == NULL) {
        return rv;
    }
    rv = fl_persistent_per_task(r)
             ? fl_err_set(err, FL_EUNIMPL,
                          "the server's personal '%s' trains a second model with steps of its own, "
                          "which a program that is started for each task cannot do: use a "
                          "persistent program ('command.persistent: yes') or 'trainer: builtin'",
                          m->personal->policy.name)
             : check_parts(r, program, fl__parts_beside(beside), "personal",
                           m->personal->policy.name, err);
    fl_options_free(beside);
    return rv;
}

/* Which entries stay fixed in a step, a program does not know. */
static int check_head(const char *program, const struct fl_train_model *m, struct fl_err *err)
{
    return fl_personal_head_epochs(m->personal, m->personal_options) == 0
               ? FL_OK
               : fl_err_set(err, FL_EUNIMPL,
                            "the server's personal '%s' with epochs trains the head before the "
                            "body, which '%.100s' cannot do, as programs train all layers in every "
                            "step: use 'trainer: builtin', or epochs: 0 on the server (FedPer)",
                            m->personal->policy.name, program);
}

static int check_kind(const struct fl_persistent *r, const char *program,
                      enum fl_persistent_kind kind, const char *why, const char *name,
                      struct fl_err *err)
{
    return fl_persistent_can(r, kind)
               ? FL_OK
               : fl_err_set(err, FL_EUNIMPL,
                            "the server's %s '%s' needs a program that can '%s', which '%.100s' "
                            "did not declare in 'ready'",
                            why, name, fl_persistent_kinds[kind], program);
}

int fl__parts_check(const struct fl_persistent *r, const char *program,
                    const struct fl_train_model *m, struct fl_err *err)
{
    const struct fl_solver_ops *s = m->solver;
    bool adapts = m->personal != NULL && m->personal->adapts;
    unsigned parts = fl_external_parts(s, m->solver_options, false);
    int rv = check_beside(r, program, m, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_head(program, m, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (fl_persistent_per_task(r)) {
        /* A program per task exchanges models only. */
        return s->summary == NULL && fl_solver_names(s->inputs) + fl_solver_keeps(s->keeps) == 0 &&
                       fl_solver_sends(s, m->solver_options) == NULL
                   ? FL_OK
                   : fl_err_set(err, FL_EUNIMPL,
                                "the server's solver '%s' needs more than models, which a program "
                                "that is started for each task cannot exchange: use a persistent "
                                "program ('command.persistent: yes') or 'trainer: builtin'",
                                s->policy.name);
    }
    if (s->external.parts == NULL &&
        (s->summary != NULL || fl_solver_names(s->inputs) + fl_solver_keeps(s->keeps) > 0))
    {
        return fl_err_set(err, FL_EUNIMPL,
                          "the server's solver '%s' is not supported by external programs: use "
                          "'trainer: builtin'",
                          s->policy.name);
    }
    parts |= adapts ? fl_external_parts(s, m->solver_options, true) : 0;
    rv = check_parts(r, program, parts, "solver", s->policy.name, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_kind(r, program, FL_PERSISTENT_TRAIN, "solver", s->policy.name, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (s->summary != NULL) {
        rv = check_kind(r, program, FL_PERSISTENT_SUMMARY, "solver", s->policy.name, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (adapts) {
        rv = check_kind(r, program, FL_PERSISTENT_ADAPT, "personal", m->personal->policy.name, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* All options as text values. */
char *fl__policy_text(const struct fl_policy *policy, const struct fl_options *options)
{
    const struct fl_opt_spec *spec = fl_options_specs(options);
    json_t *values = json_object();
    char shown[256];
    json_t *json;
    char *text;

    for (; spec->name != NULL; spec++) {
        (void)json_object_set_new(
            values, spec->name, json_string(fl_options_show(options, spec, shown, sizeof(shown))));
    }
    json = json_pack("{s:s, s:o}", "name", policy->name, "options", values);
    text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

/* Options keep their JSON type, because programs compute with them. */
static json_t *value_of(const struct fl_options *o, const struct fl_opt_spec *spec)
{
    char text[256];
    const char *shown = fl_options_show(o, spec, text, sizeof(text));
    int64_t whole;
    double number;

    if (spec->type == FL_OPT_INT && fl_str_to_i64(shown, &whole) == FL_OK) {
        return json_integer((json_int_t)whole);
    }
    if (spec->type == FL_OPT_FLOAT && fl_str_to_double(shown, &number) == FL_OK) {
        return json_real(number);
    }
    return json_string(shown);
}

/* All options of a solver whose steps the program makes on its own. */
static json_t *options_of(const struct fl_options *o)
{
    const struct fl_opt_spec *spec = fl_options_specs(o);
    json_t *json = json_object();

    for (; spec->name != NULL; spec++) {
        (void)json_object_set_new(json, spec->name, value_of(o, spec));
    }
    return json;
}

char *fl__parts_text(const struct fl_solver_ops *solver, const struct fl_options *o,
                     const struct fl_external *external, uint64_t summary_seed)
{
    json_t *json = json_object();
    json_t *part;
    char *text;
    size_t i;

    for (i = 0; fl_capability_names[i] != NULL; i++) {
        unsigned bit = external->parts & 1u << i;

        if (bit == 0) {
            continue;
        }
        if (bit == FL_CAPABILITY_PULL) {
            part = json_pack("{s:f}", "mu", external->mu);
        } else if (bit == FL_CAPABILITY_GRADIENT || bit == FL_CAPABILITY_DRIFT) {
            part = json_object();
        } else if (bit == FL_CAPABILITY_SPACE) {
            part = json_pack("{s:I}", "numbers", (json_int_t)external->n_numbers);
        } else if (bit == FL_CAPABILITY_MIXUP) {
            json_t *mixup = options_of(o);

            /* `summary_seed` lets the program make its own data summary again, to leave it out. */
            (void)json_object_set_new(mixup, "naive", json_boolean(solver == &fl_solver_naivemix));
            (void)json_object_set_new(mixup, "seed", json_integer((json_int_t)summary_seed));
            part = mixup;
        } else {
            part = options_of(o);
        }
        (void)json_object_set_new(json, fl_capability_names[i], part);
    }
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}
