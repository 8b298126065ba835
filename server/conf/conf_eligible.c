/* Reads and checks round.eligible: hours and their offset to UTC. Start-up only. */

#include "server/conf/server_conf_impl.h"
#include "server/core/eligible.h"

/* The item of a list, or the text that stands for a list of one. */
static const struct fl_conf_node *eligible_item(const struct fl_conf_node *node, size_t i)
{
    return fl_conf_kind(node) == FL_CONF_SEQ ? fl_conf_at(node, i) : node;
}

static int eligible_hours(const struct fl_server_conf *conf, struct fl_eligible *ret,
                          struct fl_err *err)
{
    const struct fl_opt_texts *hours = &conf->eligible->hours;
    const struct fl_conf_node *node = fl_conf_field(conf->file, hours);
    struct fl_err why = {0};
    size_t i;

    if (hours->n > FL_HOURS_MAX) {
        return fl_conf_error(node, err, "expected at most %d spans, found %zu", FL_HOURS_MAX,
                             hours->n);
    }
    for (i = 0; i < hours->n; i++) {
        if (fl_hours_read(hours->list[i], &ret->hours[i], &why) != FL_OK) {
            return fl_conf_error(eligible_item(node, i), err, "%s", why.msg);
        }
    }
    ret->n_hours = hours->n;
    return FL_OK;
}

int fl__server_conf_eligible(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_eligible *e = conf->eligible;
    struct fl_eligible rule = {.labels = e->labels.list, .n_labels = e->labels.n};
    struct fl_err why = {0};
    int rv = eligible_hours(conf, &rule, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_utc_offset_read(e->utc_offset, &rule.utc_offset, &why) != FL_OK) {
        return fl_conf_error(fl_conf_field(conf->file, &e->utc_offset), err, "%s", why.msg);
    }
    conf->rule = rule;
    return FL_OK;
}
