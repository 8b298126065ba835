/* Training and evaluation of a simulated client: durations and results. One thread, that of the
   federation; the arithmetic runs in the worker pool. */

#include "tools/fl_sim/engine/sim_federation_impl.h"

/* A forward pass costs a third of a training step. */
#define EVALUATION_SHARE 3

/* Samples that a client trains on in a round, those of a head or of a model beside included. */
static uint64_t training_us(struct fl_fed *fed, const struct fl__active *a)
{
    const struct fl_wire_training *t = &fed->conf.training;
    const struct fl_strategy *s = fed->conf.coord.strategy;
    struct fl_sim_client sim_client;
    uint64_t samples;

    fed->conf.sim_clients->sim_client(fed->conf.sim_clients->ctx, a->client, &sim_client);
    samples = t->epochs != 0 ? (uint64_t)t->epochs * sim_client.samples
                             : (uint64_t)t->steps * t->batch_size;
    samples *= s->personal->beside ? 2 : 1;
    samples += sim_client.samples *
               fl_personal_head_epochs(s->personal, s->options[FL_COMPONENT_PERSONAL]);
    return fed->conf.world != NULL
               ? fl_world_train_us(fed->conf.world, a->client, a->task.key.round, samples)
               : 0;
}

static bool training_fits_memory(const struct fl_fed *fed, uint32_t client)
{
    struct fl_world_client link = {0};

    if (fed->conf.world != NULL) {
        fl_world_client(fed->conf.world, client, &link);
    }
    return link.memory == 0 || link.memory >= fed->training_bytes;
}

void fl__train_submit(struct fl_fed *fed, struct fl__active *a)
{
    const struct fl_pool_collusion collusion = fl__collusion_part(fed, a->client, a->training_key);

    a->submitted = true;
    if (fl__fed_replays(fed)) {
        return;
    }
    a->training = fl_worker_pool_train(fed->pool, a->client, &a->task, a->model_cache, &collusion);
    if (a->training == NULL) {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "a training");
    }
}

void fl__train_begin(struct fl_fed *fed, struct fl__active *a, struct fl_round_key key)
{
    fl_pool_job_free(a->training);
    a->training = NULL;
    a->training_key = key;
    a->awaits_training = 0;
    a->waits = a->submitted = false;
    a->lacks_memory = !training_fits_memory(fed, a->client);
    if (a->lacks_memory) { /* Reported as soon as the training starts. */
        a->awaits_training = ++a->stamp;
        fl__fed_at(fed, fed->now_us, FL__AT_TRAINED, a->client, a->stamp, NULL);
        return;
    }
    if (!fl__collusion_waits(fed, a->client, key)) {
        fl__train_submit(fed, a);
    }
    a->awaits_training = ++a->stamp;
    fl__fed_at(fed, fed->now_us + training_us(fed, a), FL__AT_TRAINED, a->client, a->stamp, NULL);
}

void fl__train_cancel(struct fl__active *a)
{
    fl_pool_job_free(a->training);
    a->training = NULL;
    a->training_key = (struct fl_round_key){0};
    a->awaits_training = 0;
}

static void training_trained(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_round_key key = a->training_key;
    struct fl_fed_part *part = fl_sim_account_part(&fed->account, a->client);
    struct fl_blob *update = NULL;
    struct fl_job_answer answer;

    if (a->lacks_memory) {
        fl__train_cancel(a);
        fl__collusion_trained(fed, a->client, key, NULL);
        fl_session_shell_ended(a->shell, FL_ACTIVITY_TRAINING, key, FL_ENOMEM,
                               "the training does not fit into its memory");
        return;
    }
    a->waits = fl__collusion_waits(fed, a->client, key);
    if (a->waits) {
        return;
    }
    if (!a->submitted) { /* The attempt ended while it waited, and its dismissal is on the way. */
        fl__train_cancel(a);
        fl_session_shell_ended(a->shell, FL_ACTIVITY_TRAINING, key, FL_ECANCELED,
                               "the attempt has ended");
        return;
    }
    if (fl__fed_take(fed, a->training, FL_JOB_TRAIN, a->client, key, &answer) != FL_OK) {
        return;
    }
    if (a->training != NULL && fl_job_update(a->training) != NULL) {
        update = fl_blob_ref(fl_job_update(a->training));
    }
    fl__train_cancel(a);
    fl__collusion_trained(fed, a->client, key, update);
    fl_blob_unref(update);
    if (part != NULL && part->round == key.round && part->attempt == key.attempt) {
        part->trained_us = fed->now_us;
    }
    if (answer.code == FL_OK) {
        fl_job_answer_done(&a->result);
        a->result = answer;
        a->pending = key;
    } else if (answer.code != FL_ENUMERIC && answer.code != FL_ECANCELED) {
        struct fl_err err = {0};

        (void)fl_err_set(&err, answer.code, "%s", answer.why);
        fl__fed_fail(fed, answer.code, &err, fl__fed_name(fed, a->client));
    }
    fl_session_shell_ended(a->shell, FL_ACTIVITY_TRAINING, key, answer.code, answer.why);
    if (answer.code != FL_OK) {
        fl_job_answer_done(&answer);
    }
}

/* --- evaluation --- */

static void training_evaluate(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_sim_client sim_client;
    uint64_t span = 0;

    fed->conf.sim_clients->sim_client(fed->conf.sim_clients->ctx, a->client, &sim_client);
    if (fed->conf.world != NULL) {
        span = fl_world_train_us(fed->conf.world, a->client, a->evaluating,
                                 sim_client.evaluation_samples / EVALUATION_SHARE) -
               fl_world_train_us(fed->conf.world, a->client, a->evaluating, 0);
    }
    if (!fl__fed_replays(fed)) {
        struct fl_task task = a->task;

        task.key = (struct fl_round_key){.round = a->evaluating};
        a->evaluation = fl_worker_pool_evaluate(fed->pool, a->client, &task, a->model, a->rate);
        if (a->evaluation == NULL) {
            fl__fed_fail(fed, FL_ENOMEM, NULL, "an evaluation");
        }
    }
    a->awaits_evaluation = ++a->stamp;
    fl__fed_at(fed, fed->now_us + span, FL__AT_EVALUATED, a->client, a->stamp, NULL);
}

static void training_evaluated(struct fl_fed *fed, struct fl__active *a)
{
    const struct fl_round_key key = {.round = a->evaluating};
    struct fl_job_answer answer;

    a->awaits_evaluation = 0;
    if (fl__fed_take(fed, a->evaluation, FL_JOB_EVALUATE, a->client, key, &answer) != FL_OK) {
        return;
    }
    fl_pool_job_free(a->evaluation);
    a->evaluation = NULL;
    fl_blob_unref(a->model);
    a->model = NULL;
    a->evaluating = 0;
    fl_session_shell_evaluated(a->shell, key.round, answer.code, answer.why, &answer.event);
    fl_job_answer_done(&answer);
}

void fl__train_happens(struct fl_fed *fed, struct fl__active *a, enum fl__fed_kind kind,
                       uint32_t stamp)
{
    if (kind == FL__AT_TRAINED && stamp == a->awaits_training) {
        training_trained(fed, a);
    } else if (kind == FL__AT_HAVE_MODEL && stamp == a->awaits_evaluation) {
        training_evaluate(fed, a);
    } else if (kind == FL__AT_EVALUATED && stamp == a->awaits_evaluation) {
        training_evaluated(fed, a);
    }
}
