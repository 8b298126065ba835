/* Builds the messages to the program (docs/trainers.md). Pure functions; message_read.c
   parses the program's messages. */
#include "libfl/program/message.h"

#include "libfl/program/fields.h"

const char *const fl_persistent_kinds[] = {[FL_PERSISTENT_TRAIN] = "train",
                                           [FL_PERSISTENT_EVALUATE] = "evaluate",
                                           [FL_PERSISTENT_ADAPT] = "adapt",
                                           [FL_PERSISTENT_SUMMARY] = "summary",
                                           [FL_PERSISTENT_AGGREGATE] = "aggregate"};

static const char *const vector_names[] = {[FL_PERSISTENT_MODEL] = "model",
                                           [FL_PERSISTENT_ANCHOR] = "anchor",
                                           [FL_PERSISTENT_GRADIENT] = "gradient",
                                           [FL_PERSISTENT_DRIFT] = "drift",
                                           [FL_PERSISTENT_PLACES] = "places"};

/* Serializes `json` on one line; takes it. */
static char *message_text(json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

static json_t *message_parsed(const char *text)
{
    return text != NULL ? json_loads(text, 0, NULL) : json_null();
}

/* The fields of both; takes both. NULL when one of them is. */
static json_t *message_merged(json_t *json, json_t *more)
{
    if (json == NULL || json_object_update_missing(json, more) != 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(more);
    return json;
}

char *fl_message_start(const struct fl_persistent_conf *conf)
{
    return message_text(json_pack("{s:s, s:i, s:s, s:s?, s:s}", "type", "start", "protocol",
                                  FL_PERSISTENT_VERSION, "client", conf->client, "data", conf->data,
                                  "purpose", conf->purpose));
}

/* NULL: null, for all samples. */
static json_t *message_indices(const uint32_t *list, size_t n)
{
    json_t *array = list != NULL ? json_array() : json_null();
    size_t i;

    for (i = 0; list != NULL && i < n; i++) {
        if (json_array_append_new(array, json_integer((json_int_t)list[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

char *fl_message_client(const struct fl_persistent_client *c)
{
    return message_text(json_pack(
        "{s:s, s:s?, s:I, s:I, s:s?, s:o, s:o}", "type", "client", "client", c->name, "number",
        (json_int_t)c->number, "of", (json_int_t)c->of, "data", c->data, "train",
        message_indices(c->train, c->n_train), "test", message_indices(c->test, c->n_test)));
}

json_t *fl_message_description(const struct fl_persistent_model *m, bool for_files)
{
    /* A NULL from any of the parts makes json_pack() fail as a whole. */
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o}", "units", fl_field_units(m->layout, !for_files), "network",
                  fl_field_network(m->input, m->n_input, m->layers, m->n_layers), "solver",
                  message_parsed(m->solver), "personal", message_parsed(m->personal));
    json_t *more;
    const char *const *list;
    json_t *array;

    if (json == NULL || for_files) {
        return json;
    }
    list = m->parts;
    array = json_array();
    for (; list != NULL && *list != NULL; list++) {
        (void)json_array_append_new(array, json_string(*list));
    }
    more = json_pack("{s:s, s:o, s:{s:I, s:I, s:I, s:f, s:f}}", "type", "model", "parts", array,
                     "training", "epochs", (json_int_t)m->epochs, "steps", (json_int_t)m->steps,
                     "batch_size", (json_int_t)m->batch_size, "momentum", m->momentum,
                     "weight_decay", m->weight_decay);
    return message_merged(json, more);
}

static void message_add_slot(json_t *slots, const char *name, const struct fl_memory_slot *slot,
                             bool has_data)
{
    json_t *json;

    if (slot->bytes == 0) {
        return;
    }
    json = json_pack("{s:I, s:I}", "offset", (json_int_t)slot->offset, "bytes",
                     (json_int_t)slot->bytes);
    if (json != NULL && has_data) {
        (void)json_object_set_new(json, "data", json_integer((json_int_t)slot->data));
    }
    (void)json_object_set_new(slots, name, json);
}

char *fl_message_model(json_t *description, const struct fl_slots *slots)
{
    json_t *weights = json_object();
    json_t *result = json_object();
    size_t i;

    for (i = 0; i < FL_PERSISTENT_VECTORS; i++) {
        message_add_slot(weights, vector_names[i], &slots->vectors[i], true);
    }
    message_add_slot(weights, "mixup", &slots->mixup, false);
    message_add_slot(weights, "updates", &slots->updates, false);
    message_add_slot(weights, "mean", &slots->mean, false);
    message_add_slot(weights, "weights", &slots->shares, false);
    message_add_slot(weights, "state", &slots->state, false);
    message_add_slot(result, "model", &slots->result, true);
    message_add_slot(result, "summary", &slots->summary, false);
    message_add_slot(result, "step", &slots->step, false);
    message_add_slot(result, "scores", &slots->scores, false);
    message_add_slot(result, "state", &slots->state_new, false);
    return message_text(
        message_merged(json_pack("{s:{s:I, s:o}, s:{s:I, s:o}}", "weights", "bytes",
                                 (json_int_t)slots->weights_bytes, "slots", weights, "result",
                                 "bytes", (json_int_t)slots->result_bytes, "slots", result),
                       json_incref(description)));
}

/* A seed that a double of the program holds. */
static json_t *message_seed(uint64_t seed)
{
    return json_integer((json_int_t)(seed & FL_FIELD_EXACT));
}

/* Settings of gradient steps: training, and fitting before an evaluation. */
static json_t *message_steps(const struct fl_persistent_task *t)
{
    return json_pack("{s:I, s:o, s:o, s:f, s:f, s:f, s:I, s:I, s:I}", "round",
                     (json_int_t)t->asked.key.round, "seed", message_seed(t->asked.seed),
                     "order_seed", message_seed(t->asked.order_seed), "learning_rate",
                     t->asked.learning_rate, "momentum", t->momentum, "weight_decay",
                     t->weight_decay, "epochs", (json_int_t)t->epochs, "steps",
                     (json_int_t)t->steps, "batch_size", (json_int_t)t->batch_size);
}

/* The clients of a round, and how long the state is. */
static json_t *message_round(const struct fl_persistent_task *t)
{
    const struct fl_persistent_round *round = t->aggregate;
    json_t *clients = json_array();
    size_t i;

    for (i = 0; i < round->n; i++) {
        const struct fl_persistent_update *u = &round->updates[i];

        if (json_array_append_new(clients,
                                  json_pack("{s:s, s:I, s:I, s:f}", "client", u->client, "samples",
                                            (json_int_t)u->samples, "steps", (json_int_t)u->steps,
                                            "loss", u->train_loss)) != 0)
        {
            json_decref(clients);
            return NULL;
        }
    }
    return json_pack("{s:I, s:I, s:o, s:I, s:I, s:o}", "round", (json_int_t)t->asked.key.round,
                     "attempt", (json_int_t)t->asked.key.attempt, "seed",
                     message_seed(t->asked.seed), "time_limit_ms", (json_int_t)t->limit_ms,
                     "state_bytes", (json_int_t)round->state_len, "clients", clients);
}

static json_t *message_task_fields(const struct fl_persistent_task *t)
{
    json_t *json = NULL;

    switch (t->kind) {
    case FL_PERSISTENT_TRAIN:
        json = message_steps(t);
        if (json != NULL) {
            (void)json_object_set_new(json, "attempt",
                                      json_integer((json_int_t)t->asked.key.attempt));
            (void)json_object_set_new(json, "time_limit_ms", json_integer((json_int_t)t->limit_ms));
            (void)json_object_set_new(json, "evaluate_trained", json_boolean(t->evaluate_trained));
        }
        break;
    case FL_PERSISTENT_ADAPT:
        json = message_steps(t);
        if (json != NULL) {
            (void)json_object_set_new(json, "on", json_string(t->on_test ? "test" : "train"));
        }
        break;
    case FL_PERSISTENT_EVALUATE:
        json = json_object();
        break;
    case FL_PERSISTENT_SUMMARY:
        json = json_pack("{s:o, s:o}", "seed", message_seed(t->asked.seed), "solver",
                         message_parsed(t->solver));
        break;
    case FL_PERSISTENT_AGGREGATE:
        json = message_round(t);
        break;
    case FL_PERSISTENT_KINDS:
        break;
    }
    return json;
}

char *fl_message_task(const struct fl_persistent_task *task, uint64_t id)
{
    json_t *json =
        json_pack("{s:s, s:I}", "type", fl_persistent_kinds[task->kind], "id", (json_int_t)id);
    json_t *more = task->more != NULL ? message_parsed(task->more) : json_object();

    json = message_merged(json, message_task_fields(task));
    if (json != NULL && task->kind != FL_PERSISTENT_SUMMARY) {
        json_t *list = json_array();
        size_t i;

        for (i = 0; i < FL_PERSISTENT_VECTORS; i++) {
            if (task->given[i] != NULL) {
                (void)json_array_append_new(list, json_string(vector_names[i]));
            }
        }
        if (task->mixup != NULL) {
            (void)json_array_append_new(list, json_string("mixup"));
        }
        (void)json_object_set_new(json, "given", list);
    }
    if (json != NULL && (task->kind == FL_PERSISTENT_TRAIN || task->kind == FL_PERSISTENT_ADAPT) &&
        json_object_set_new(json, "do",
                            task->parts != NULL ? message_parsed(task->parts) : json_object()) != 0)
    {
        json_decref(json);
        json = NULL;
    }
    return message_text(message_merged(json, more));
}

char *fl_message_task_file(json_t *description, const struct fl_persistent_task *task,
                           const struct fl_task_paths *paths)
{
    json_t *json = json_pack("{s:i, s:s?, s:s, s:s?, s:s, s:s}", "version", FL_TASK_FILE_VERSION,
                             "data", paths->data, "model", paths->model, "anchor", paths->anchor,
                             "result_model", paths->result_model, "result", paths->result);
    char *text = NULL;

    json = message_merged(json, message_task_fields(task));
    json = message_merged(json, json_incref(description));
    text = json != NULL ? json_dumps(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    return text;
}

char *fl_message_cancel(uint64_t id)
{
    return message_text(json_pack("{s:s, s:I}", "type", "cancel", "id", (json_int_t)id));
}

char *fl_message_bye(void)
{
    return message_text(json_pack("{s:s}", "type", "bye"));
}
