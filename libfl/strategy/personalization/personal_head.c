/*
 * personal: head (FedPer: Arivazhagan et al. 2019; FedRep: Collins et al. 2021, Algorithm 1;
 * docs/algorithms.md#heads-that-stay-on-the-client)
 *
 * The model is a body phi, which the server averages, and a head h_k of each client, its last
 * layers. With epochs 0 (FedPer) both are trained together:
 *
 *     (phi, h_k) <- (phi, h_k) - learning_rate g(phi, h_k)           each step
 *
 * with epochs H (FedRep) the head first, then the body, each on batches of their own:
 *
 *     h_k <- h_k - learning_rate g_h(phi^t, h_k)                     H epochs
 *     phi <- phi - learning_rate g_phi(phi, h_k)                     the steps of training
 *
 * The policy only names the head: its tensors are local ones of the layout (fl_tensor.local), which
 * a client keeps, commits and puts into every received model. Options: layers or last; epochs.
 * State: the head, on each client. Cost: with epochs H so many more passes over the data.
 */
#include "libfl/model/units.h"
#include "libfl/strategy/personalization/personal.h"

/* Is one of the layers of `v` the unit l? */
static bool head_has_unit(const struct fl_personal_head_options *v, const struct fl_layout *layout,
                          size_t l)
{
    size_t units = fl_layout_units(layout);
    size_t last = v->last > 0 ? (size_t)v->last : 1;
    size_t i;

    if (v->layers.n == 0) {
        return l + last >= units;
    }
    for (i = 0; i < v->layers.n; i++) {
        if (fl_pattern_matches(v->layers.list[i], fl_layout_unit(layout, l)->name)) {
            return true;
        }
    }
    return false;
}

bool fl_personal_in_head(const struct fl_personal_ops *ops, const struct fl_options *o,
                         const struct fl_layout *layout, const struct fl_tensor *tensor)
{
    return ops != NULL && ops->head && head_has_unit(fl_options_values(o), layout, tensor->unit);
}

uint32_t fl_personal_head_epochs(const struct fl_personal_ops *ops, const struct fl_options *o)
{
    const struct fl_personal_head_options *v;

    if (ops == NULL || !ops->head) {
        return 0;
    }
    v = fl_options_values(o);
    return (uint32_t)v->epochs;
}

int fl_personal_check_head(const struct fl_personal_ops *ops, const struct fl_options *o,
                           const struct fl_layout *layout, size_t *ret_bad, struct fl_err *err)
{
    const struct fl_personal_head_options *v;
    size_t units = fl_layout_units(layout);
    size_t body = 0;
    size_t i;
    size_t l;

    *ret_bad = SIZE_MAX;
    if (!ops->head) {
        return FL_OK;
    }
    v = fl_options_values(o);
    for (i = 0; i < v->layers.n; i++) {
        for (l = 0;
             l < units && !fl_pattern_matches(v->layers.list[i], fl_layout_unit(layout, l)->name);
             l++)
        {
        }
        if (l == units) {
            *ret_bad = i;
            return fl_err_set(err, FL_ECONF,
                              "'%s' matches none of the %zu layers; the last is '%s'",
                              v->layers.list[i], units, fl_layout_unit(layout, units - 1)->name);
        }
    }
    for (l = 0; l < units; l++) {
        body += !head_has_unit(v, layout, l);
    }
    return body > 0 ? FL_OK
                    : fl_err_set(err, FL_ECONF,
                                 "all of the %zu layers would be the head, which stays on the "
                                 "clients: expected at least one layer for the body",
                                 units);
}

static int head_check(const struct fl_options *o, struct fl_err *err)
{
    const struct fl_personal_head_options *v = fl_options_values(o);

    return v->layers.n == 0 || v->last == 0
               ? FL_OK
               : fl_err_set(err, FL_ECONF, "expected either layers or last, found both");
}

static const struct fl_opt_spec head_options[] = {
    {FL_OPT(struct fl_personal_head_options, STRING_LIST, layers), .def = "",
     .help = "Globs of the layers of the head, which stay on each client; default: see last."},
    {FL_OPT(struct fl_personal_head_options, INT, last), .def = "0", .min = 0, .max = 10000,
     .help = "Number of layers at the end of the network that are the head; 0: one, or those in "
             "layers."},
    {FL_OPT(struct fl_personal_head_options, INT, epochs), .def = "0", .min = 0, .max = 1000,
     .help = "Epochs that train the head alone, before the steps of training, which then train "
             "the body alone (FedRep); 0: head and body are trained together (FedPer)."},
    FL_OPT_END_OF(struct fl_personal_head_options),
};

const struct fl_personal_ops fl_personal_head = {
    .policy =
        {
            .name = "head",
            .help = "the last layers stay on each client, the others are averaged",
            .source = "FedPer; FedRep, Algorithm 1",
            .options = head_options,
            .check = head_check,
        },
    .head = true,
    .trained = true,
};
