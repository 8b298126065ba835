/*
 * The model of a configuration: its network, its units, and the tensors that stay on clients. Runs
 * on the thread that loads the configuration. It reads the model file, and changes no state folder.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/model/safetensors.h"
#include "libfl/model/units.h"
#include "libfl/num/vec.h"
#include "server/conf/server_conf_impl.h"

/* The node of item `i` of a list, or of the whole list where it was written as one text. */
static const struct fl_conf_node *item_of(const struct fl_server_conf *conf,
                                          const struct fl_opt_texts *list, size_t i)
{
    const struct fl_conf_node *node = fl_conf_field(conf->file, list);

    return fl_conf_kind(node) == FL_CONF_SEQ && i < fl_conf_size(node) ? fl_conf_at(node, i) : node;
}

/* Apply model.units. */
static int model_regroup(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_opt_texts *units = &conf->model->units;
    struct fl_layout *made = NULL;
    struct fl_err inner = {0};
    size_t bad = 0;
    int rv = fl_layout_regroup(conf->layout, units->list, units->n, &made, &bad, &inner);

    if (rv == FL_ENOMEM) {
        return rv;
    }
    if (rv != FL_OK) {
        return fl_conf_error(item_of(conf, units, bad), err, "%s", fl_err_text(&inner, rv));
    }
    fl_layout_free(conf->layout);
    conf->layout = made;
    return FL_OK;
}

/* input: and layers: of the model section into conf->net. */
static int own_network(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_model *m = conf->model;
    size_t i;

    if (m->input.n == 0 || m->input.n > FL_NET_MAX_INPUT_DIMS) {
        return fl_conf_error(fl_conf_field(conf->file, &m->input), err,
                             "expected 1 to %d numbers beside layers, found %zu",
                             FL_NET_MAX_INPUT_DIMS, m->input.n);
    }
    for (i = 0; i < m->input.n; i++) {
        conf->net.input[i] = (size_t)m->input.list[i];
    }
    conf->net.n_input = m->input.n;
    conf->net.layers = m->layers.list;
    conf->net.n_layers = m->layers.n;
    return FL_OK;
}

/* The layers with the loss at their end, as clients get them. */
static int add_loss(struct fl_server_conf *conf)
{
    size_t n = conf->net.n_layers;

    if (conf->model->loss == 0) {
        return FL_OK;
    }
    conf->layers = calloc(n + 1, sizeof(*conf->layers));
    if (conf->layers == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(conf->layers, conf->net.layers, n * sizeof(*conf->layers));
    conf->layers[n] = fl__loss_choices[conf->model->loss];
    conf->net.layers = conf->layers;
    conf->net.n_layers = n + 1;
    return FL_OK;
}

static int model_load_file(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_model *m = conf->model;
    const struct fl_conf_node *node = fl_conf_section(conf->file, m);
    int rv;

    if (m->file[0] == '\0') {
        return fl_conf_error(node, err, "expected one of preset, layers (with input) or file");
    }
    rv = fl_st_layout(m->file, &conf->layout, err);
    if (rv != FL_OK) {
        struct fl_err inner = *err;

        return fl_conf_error(fl_conf_field(conf->file, &m->file), err, "%s",
                             fl_err_text(&inner, rv));
    }
    return m->units.n > 0 ? model_regroup(conf, err) : FL_OK;
}

static int load_network(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_model *m = conf->model;
    const struct fl_conf_node *node = fl_conf_section(conf->file, m);
    bool preset = m->preset[0] != '\0';
    bool layers = m->layers.n > 0;
    struct fl_net *net = NULL;
    struct fl_err inner;
    int rv;

    if (preset && layers) {
        return fl_conf_error(node, err, "expected either preset or layers, found both");
    }
    if (!preset && !layers) {
        if (m->loss != 0) {
            return fl_conf_error(fl_conf_field(conf->file, &m->loss), err,
                                 "loss applies only to a network given as preset or layers; the "
                                 "program that trains a model from a file has its own");
        }
        return model_load_file(conf, err);
    }
    if (m->units.n > 0) {
        return fl_conf_error(fl_conf_field(conf->file, &m->units), err,
                             "units apply only to a model from a file; a network given as preset "
                             "or layers has its own");
    }
    if (preset) {
        rv = fl_net_preset(m->preset, &conf->net, err);
        if (rv != FL_OK) {
            goto fail;
        }
    } else {
        rv = own_network(conf, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = add_loss(conf);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_net_create(&conf->net, 1, &net, err);
    if (rv != FL_OK) {
        goto fail;
    }
    conf->inputs = fl_net_inputs(net);
    conf->classes = fl_net_classes(net);
    conf->values = fl_net_values(net);
    rv = fl_layout_copy(fl_net_layout(net), NULL, NULL, &conf->layout, err);
    fl_net_free(net);
    return rv;
fail:
    inner = *err;
    return rv == FL_ENOMEM ? rv
                           : fl_conf_error(preset ? fl_conf_field(conf->file, &m->preset)
                                                  : fl_conf_field(conf->file, &m->layers),
                                           err, "%s", fl_err_text(&inner, rv));
}

/* --- local tensors --- */

/* Does the module of `t` have running statistics? A batch-norm may have either one alone. */
static bool is_norm(const struct fl_layout *layout, const struct fl_tensor *t)
{
    static const char *const statistics[] = {"running_mean", "running_var"};
    const char *dot = strrchr(t->name, '.');
    char name[FL_NAME_MAX];
    size_t i;

    for (i = 0; dot != NULL && i < sizeof(statistics) / sizeof(statistics[0]); i++) {
        int n =
            snprintf(name, sizeof(name), "%.*s.%s", (int)(dot - t->name), t->name, statistics[i]);

        if (n > 0 && n < FL_NAME_MAX && fl_layout_find(layout, name) != NULL) {
            return true;
        }
    }
    return t->buffer;
}

static bool tensor_stays_local(void *ctx, const struct fl_layout *layout, const struct fl_tensor *t)
{
    const struct fl_server_conf *conf = ctx;
    const struct fl_strategy *s = conf->strategy;
    const struct fl_server_model *m = conf->model;
    size_t i;

    if (fl_personal_in_head(s->personal, s->options[FL_COMPONENT_PERSONAL], layout, t)) {
        return true;
    }
    if (m->norm != FL_NORM_LOCAL) {
        return false;
    }
    for (i = 0; i < m->local.n; i++) {
        if (fl_pattern_matches(m->local.list[i], t->name)) {
            return true;
        }
    }
    return is_norm(layout, t);
}

/* A glob that matches nothing is a mistake. */
static int check_local(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_opt_texts *local = &conf->model->local;
    size_t i;
    size_t t;

    if (local->n > 0 && conf->model->norm != FL_NORM_LOCAL) {
        return fl_conf_error(fl_conf_field(conf->file, local), err,
                             "expected 'norm: local' with it, found shared");
    }
    for (i = 0; i < local->n; i++) {
        for (t = 0; t < fl_layout_tensors(conf->layout) &&
                    !fl_pattern_matches(local->list[i], fl_layout_tensor(conf->layout, t)->name);
             t++)
        {
        }
        if (t == fl_layout_tensors(conf->layout)) {
            return fl_conf_error(item_of(conf, local, i), err,
                                 "'%s' matches none of the %zu tensors; the first one is '%s'",
                                 local->list[i], t, fl_layout_tensor(conf->layout, 0)->name);
        }
    }
    return FL_OK;
}

/* The node of a key of strategy.personal, or what the policy comes from. */
static const struct fl_conf_node *head_node(const struct fl_server_conf *conf, const char *key,
                                            size_t item)
{
    const struct fl_conf_node *personal = fl_server_conf_component(conf, FL_COMPONENT_PERSONAL);
    const struct fl_conf_node *node = fl_conf_get(personal, key);

    if (node != NULL && fl_conf_kind(node) == FL_CONF_SEQ && item < fl_conf_size(node)) {
        return fl_conf_at(node, item);
    }
    if (node != NULL) {
        return node;
    }
    return personal != NULL ? personal : fl_conf_get(fl_conf_file_map(conf->file), "algorithm");
}

/* The head of personal 'head' and the body beside it. */
static int check_head(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_strategy *s = conf->strategy;
    const struct fl_options *o = s->options[FL_COMPONENT_PERSONAL];
    const struct fl_personal_head_options *v;
    struct fl_err why = {0};
    size_t bad = 0;
    int rv;

    if (!s->personal->head) {
        return FL_OK;
    }
    v = fl_options_values(o);
    if (conf->net.n_layers == 0 && v->layers.n == 0) {
        return fl_conf_error(head_node(conf, "last", 0), err,
                             "personal '%s' takes the last layers as the head, and the layers of a "
                             "model from a file are in the order of the file: name those of the "
                             "head with strategy: {personal: {layers: […]}}",
                             s->personal->policy.name);
    }
    rv = fl_personal_check_head(s->personal, o, conf->layout, &bad, &why);
    return rv == FL_OK ? FL_OK
                       : fl_conf_error(head_node(conf, v->layers.n > 0 ? "layers" : "last", bad),
                                       err, "%s", fl_err_text(&why, rv));
}

/* Marks of this configuration replace any marks of the layout. */
static int mark_local(struct fl_server_conf *conf, struct fl_err *err)
{
    bool local = conf->model->norm == FL_NORM_LOCAL || conf->strategy->personal->head;
    struct fl_layout *made = NULL;
    int rv;

    if (!local && fl_layout_local(conf->layout) == 0) {
        return FL_OK;
    }
    rv = fl_layout_copy(conf->layout, local ? tensor_stays_local : NULL, (void *)conf, &made, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_layout_free(conf->layout);
    conf->layout = made;
    return FL_OK;
}

/* The space of updates follows from the layout. */
static int make_space(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_strategy *s = conf->strategy;
    const struct fl_conf_node *strategy = fl_conf_get(fl_conf_file_map(conf->file), "strategy");
    const struct fl_conf_node *space = fl_conf_get(strategy, "space");
    struct fl_err why = {0};
    int rv;

    fl_space_free(conf->space);
    rv =
        fl_space_create(s->space, s->options[FL_COMPONENT_SPACE], conf->layout, &conf->space, &why);
    return rv == FL_OK || rv == FL_ENOMEM ? rv : fl_conf_error(space, err, "%s", why.msg);
}

int fl__server_conf_model(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_conf_node *node = fl_conf_field(conf->file, &conf->model->norm);
    int rv = load_network(conf, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_local(conf, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_head(conf, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = mark_local(conf, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = make_space(conf, err);
    if (rv != FL_OK || fl_layout_local(conf->layout) == 0) {
        return rv;
    }
    if (conf->strategy->personal->own) {
        return fl_conf_error(
            node, err,
            "expected norm: shared; with '%s' each client keeps its own model, norms included",
            conf->strategy->algorithm);
    }
    if (fl_layout_trainable(conf->layout) == 0) {
        return fl_conf_error(
            node, err, "expected at least one shared tensor; all tensors would stay on clients");
    }
    return FL_OK;
}

int fl_server_conf_model(const struct fl_server_conf *conf, float *theta, struct fl_err *err)
{
    const struct fl_strategy *s = conf->strategy;
    const char *file = conf->model->file;
    int rv;

    if (file[0] == '\0') {
        return FL_OK;
    }
    rv = fl_st_load(file, conf->layout, theta, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (!fl_vec_finite(theta, fl_layout_count(conf->layout))) {
        rv = fl_err_set(err, FL_ENUMERIC, "'%s' contains NaN or infinite values", file);
        goto fail;
    }
    rv = fl_broadcast_place(s->broadcast, s->options[FL_COMPONENT_BROADCAST], conf->layout, theta,
                            err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    return fl_conf_blame(conf->file, &conf->model->file, rv, err);
}

int fl_server_conf_go_on(struct fl_server_conf *conf, const struct fl_layout *begun, bool *ret,
                         struct fl_err *err)
{
    struct fl_layout *made = NULL;
    int rv;

    *ret = false;
    if (conf->net.n_layers > 0 || conf->model->units.n > 0 ||
        !fl_layout_same_tensors(conf->layout, begun) ||
        memcmp(fl_layout_shape_digest(conf->layout), fl_layout_shape_digest(begun),
               FL_DIGEST_SIZE) == 0)
    {
        return FL_OK;
    }
    rv = fl_layout_copy(begun, NULL, NULL, &made, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_layout_free(conf->layout);
    conf->layout = made;
    *ret = true;
    rv = mark_local(conf, err);
    if (rv != FL_OK) {
        return rv;
    }
    return make_space(conf, err);
}
