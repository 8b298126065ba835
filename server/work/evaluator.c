#include "server/work/evaluator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fl_evaluator {
    /* Built-in engine; NULL with a program. */
    struct fl_dataset *test;
    struct fl_net *net;
    struct fl_net_metrics *metrics; /* NULL: none */
    struct fl_persistent *program;
    uint64_t limit_ms;
    const char *limit_note; /* the key that sets it */
};

int fl_evaluator_builtin(struct fl_dataset *test, struct fl_net *net, unsigned metrics,
                         struct fl_evaluator **ret, struct fl_err *err)
{
    struct fl_evaluator *e = calloc(1, sizeof(*e));

    if (e == NULL) {
        fl_dataset_free(test);
        fl_net_free(net);
        return fl_err_set(err, FL_ENOMEM, "evaluation: out of memory");
    }
    e->test = test;
    e->net = net;
    if (metrics != 0) {
        int rv = fl_net_metrics_create(
            metrics, fl_net_values(net) > 0 ? FL_NET_OUTPUT_VALUES : FL_NET_OUTPUT_CLASS,
            fl_net_classes(net), test->n, &e->metrics, err);

        if (rv != FL_OK) {
            fl_evaluator_free(e);
            return rv;
        }
    }
    *ret = e;
    return FL_OK;
}

int fl_evaluator_program(const struct fl_evaluator_program *conf, struct fl_evaluator **ret,
                         struct fl_err *err)
{
    struct fl_persistent_conf program = {.argv = conf->argv,
                                         .environment = conf->environment,
                                         .client = conf->federation,
                                         .data = conf->data,
                                         .purpose =
                                             conf->acts_for != NULL ? "simulate" : "evaluate",
                                         .memory_bytes = conf->memory_bytes,
                                         .memory_of = FL_PROGRAM_RESIDENT_MEMORY,
                                         .descriptors = conf->descriptors,
                                         .start_limit_ms = conf->start_limit_ms,
                                         .cancel_grace_ms = FL_PROGRAM_GRACE_MS,
                                         .log = conf->log};
    struct fl_persistent_model model = {.layout = conf->layout,
                                        .input = conf->net->input,
                                        .n_input = conf->net->n_input,
                                        .layers = conf->net->layers,
                                        .n_layers = conf->net->n_layers};
    struct fl_evaluator *e = calloc(1, sizeof(*e));
    int rv;

    if (e == NULL) {
        return fl_err_set(err, FL_ENOMEM, "evaluation: out of memory");
    }
    e->limit_ms = conf->limit_ms;
    e->limit_note =
        conf->acts_for != NULL ? " (command.time_limit)" : " (evaluation.command_limit)";
    rv = fl_persistent_create(&program, &e->program, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_persistent_start(e->program, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (!fl_persistent_can(e->program, FL_PERSISTENT_EVALUATE)) {
        rv = fl_err_set(err, FL_EUNIMPL,
                        "'%.100s' cannot evaluate: its `ready` has no \"evaluate\" in `can` "
                        "(docs/trainers.md)",
                        conf->argv[0]);
        goto fail;
    }
    rv = fl_persistent_describe(e->program, &model, conf->start_limit_ms, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (conf->acts_for != NULL) {
        rv = fl_persistent_act_for(e->program, conf->acts_for, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = e;
    return FL_OK;
fail:
    fl_evaluator_free(e);
    return rv;
}

void fl_evaluator_free(struct fl_evaluator *e)
{
    if (e == NULL) {
        return;
    }
    if (e->program != NULL) {
        fl_persistent_stop(e->program);
    }
    fl_persistent_free(e->program);
    fl_dataset_free(e->test);
    fl_net_free(e->net);
    fl_net_metrics_free(e->metrics);
    free(e);
}

int fl_evaluator_run(struct fl_evaluator *e, const float *theta, const atomic_bool *cancel,
                     struct fl_evaluated *ret, struct fl_err *err)
{
    struct fl_persistent_task task = {.kind = FL_PERSISTENT_EVALUATE,
                                      .given = {[FL_PERSISTENT_MODEL] = theta},
                                      .limit_ms = e->limit_ms,
                                      .limit_note = e->limit_note,
                                      .cancel = cancel};
    struct fl_persistent_answer answer = {.samples = 0};
    int rv;

    if (e->program == NULL) {
        rv = fl_measure(e->net, e->test, theta, e->metrics, cancel, ret);
        if (rv != FL_OK) {
            return fl_err_set(err, rv, "evaluation: %s", fl_strerror(rv));
        }
        return atomic_load(cancel) ? fl_err_set(err, FL_ECANCELED, "evaluation: cancelled") : FL_OK;
    }
    rv = fl_persistent_run(e->program, &task, &answer, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!answer.has_received || answer.received.samples == 0) {
        return fl_err_set(err, FL_ENOENT, "evaluation: the program reported 0 test samples");
    }
    ret->accuracy = (double)answer.received.correct / (double)answer.received.samples;
    ret->loss = answer.received.loss_sum / (double)answer.received.samples;
    (void)memcpy(ret->metrics, answer.received.metrics, sizeof(ret->metrics));
    return isfinite(ret->loss)
               ? FL_OK
               : fl_err_set(err, FL_ENUMERIC,
                            "evaluation: the loss reported by the program is NaN or infinite");
}
