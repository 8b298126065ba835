#include "libfl/program/fields.h"

#include <math.h>
#include <string.h>

int fl_field_count(const json_t *object, const char *where, const char *key, uint64_t *ret,
                   struct fl_err *err)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > FL_FIELD_EXACT)
    {
        return fl_err_set(err, FL_EFORMAT, "%.200s: '%s' is missing or not a count (0 or more)",
                          where, key);
    }
    *ret = (uint64_t)json_integer_value(value);
    return FL_OK;
}

int fl_field_number(const json_t *object, const char *where, const char *key, double *ret,
                    struct fl_err *err)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_number(value) || !isfinite(json_number_value(value))) {
        return fl_err_set(err, FL_EFORMAT, "%.200s: '%s' is missing or not a finite number", where,
                          key);
    }
    *ret = json_number_value(value);
    return FL_OK;
}

/* One metric: a number, which is averaged, or an object with more about it. */
static int fields_metric(const json_t *json, const char *where, const char *name,
                         uint64_t all_samples, struct fl_eval_metric *ret, struct fl_err *err)
{
    const json_t *value = json_is_object(json) ? json_object_get(json, "value") : json;
    const json_t *samples = json_object_get(json, "samples");
    const json_t *over = json_object_get(json, "over");
    const char *word = json_string_value(over);
    const char *bad = fl_eval_metric_name_bad(name);

    if (bad != NULL) {
        return fl_err_set(err, FL_EFORMAT, "%.200s: metric '%.64s' %s", where, name, bad);
    }
    if (!json_is_number(value) || !isfinite(json_number_value(value))) {
        return fl_err_set(err, FL_EFORMAT,
                          "%.200s: metric '%s' is not a finite number, or an object with 'value'",
                          where, name);
    }
    if (over != NULL && (word == NULL || (strcmp(word, "mean") != 0 && strcmp(word, "sum") != 0))) {
        return fl_err_set(err, FL_EFORMAT, "%.200s: metric '%s': 'over' is not \"mean\" or \"sum\"",
                          where, name);
    }
    *ret = (struct fl_eval_metric){.value = json_number_value(value),
                                   .sum = word != NULL && strcmp(word, "sum") == 0};
    (void)memcpy(ret->name, name, strlen(name) + 1);
    if (samples == NULL) {
        return FL_OK;
    }
    if (!json_is_integer(samples) || json_integer_value(samples) < 1 ||
        (uint64_t)json_integer_value(samples) > all_samples)
    {
        return fl_err_set(err, FL_EFORMAT,
                          "%.200s: metric '%s': 'samples' is not a count from 1 to those of the "
                          "evaluation",
                          where, name);
    }
    ret->samples = (uint64_t)json_integer_value(samples);
    return FL_OK;
}

static int fields_metrics(json_t *json, const char *where, struct fl_evaluation *ret,
                          struct fl_err *err)
{
    struct fl_eval_metric metric;
    const char *name;
    json_t *value;
    int rv;

    ret->metrics[0] = '\0';
    if (json == NULL || json_is_null(json)) {
        return FL_OK;
    }
    if (!json_is_object(json) || json_object_size(json) > FL_EVAL_METRICS_MAX) {
        return fl_err_set(err, FL_EFORMAT,
                          "%.200s: 'metrics' is not an object of at most %d names with a number "
                          "each",
                          where, FL_EVAL_METRICS_MAX);
    }
    json_object_foreach(json, name, value)
    {
        rv = fields_metric(value, where, name, ret->samples, &metric, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (!fl_eval_metrics_add(ret->metrics, &metric)) {
            return fl_err_set(err, FL_EFORMAT,
                              "%.200s: the names and numbers of 'metrics' have more than %d bytes "
                              "together",
                              where, FL_EVAL_METRICS_TEXT - 1);
        }
    }
    return FL_OK;
}

int fl_field_evaluation(const json_t *object, const char *where, const char *key, bool *ret_has,
                        struct fl_evaluation *ret, struct fl_err *err)
{
    const json_t *inner = json_object_get(object, key);
    int rv;

    *ret_has = false;
    if (inner == NULL || json_is_null(inner)) {
        return FL_OK;
    }
    rv = fl_field_count(inner, where, "samples", &ret->samples, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_field_count(inner, where, "correct", &ret->correct, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_field_number(inner, where, "loss_sum", &ret->loss_sum, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (ret->correct > ret->samples) {
        return fl_err_set(err, FL_EFORMAT, "%.200s: '%s' has more correct predictions than samples",
                          where, key);
    }
    rv = fields_metrics(json_object_get(inner, "metrics"), where, ret, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_has = true;
    return FL_OK;
}

static json_t *fields_sizes(const size_t *list, size_t n)
{
    json_t *array = json_array();
    size_t i;

    for (i = 0; i < n; i++) {
        (void)json_array_append_new(array, json_integer((json_int_t)list[i]));
    }
    return array;
}

static json_t *fields_tensor(const struct fl_tensor *tensor, bool offset)
{
    json_t *json = json_pack("{s:s, s:o, s:b}", "name", tensor->name, "shape",
                             fields_sizes(tensor->dims, tensor->n_dims), "buffer", tensor->buffer);

    if (json != NULL && offset) {
        (void)json_object_set_new(json, "offset", json_integer((json_int_t)tensor->offset));
    }
    return json;
}

json_t *fl_field_units(const struct fl_layout *layout, bool offsets)
{
    json_t *units = json_array();
    size_t l;
    size_t t;

    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);
        json_t *tensors = json_array();

        for (t = 0; t < unit->n_tensors; t++) {
            (void)json_array_append_new(
                tensors, fields_tensor(fl_layout_tensor(layout, unit->first_tensor + t), offsets));
        }
        (void)json_array_append_new(
            units, json_pack("{s:s, s:o}", "name", unit->name, "tensors", tensors));
    }
    return units;
}

json_t *fl_field_network(const size_t *input, size_t n_input, const char *const *layers,
                         size_t n_layers)
{
    json_t *list;
    size_t i;

    if (n_layers == 0) {
        return json_null();
    }
    list = json_array();
    for (i = 0; i < n_layers; i++) {
        (void)json_array_append_new(list, json_string(layers[i]));
    }
    return json_pack("{s:o, s:o}", "input", fields_sizes(input, n_input), "layers", list);
}
