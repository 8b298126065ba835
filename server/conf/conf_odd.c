/* Warnings about values of a configuration that are allowed but probably unintended. */
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/codec/codec_masked.h"
#include "server/conf/server_conf.h"
#include "server/conf/server_conf_impl.h"

/* Above it plain SGD diverges on nearly every model; adaptive server optimizers use 1 or less as
   well. */
#define ODD_RATE 10

/* --- vectors beside an encoded update --- */

/* Encoded size of an update with normally distributed entries. FL_ENOMEM and errors of the
   codec. */
static int coded_size(const struct fl_strategy *s, const struct fl_layout *layout, uint64_t *ret)
{
    size_t l;
    int rv = FL_OK;

    *ret = 0;
    for (l = 0; l < fl_layout_units(layout); l++) {
        size_t n = fl_layout_unit(layout, l)->count;
        float *delta = malloc((n + 1) * sizeof(*delta));
        const struct fl_unit_update in = {.delta = delta};
        struct fl_buf buf;
        struct fl_rng rng;
        size_t i;

        if (delta == NULL) {
            return FL_ENOMEM;
        }
        fl_rng_key(&rng, 1, FL_RNG_TEST, 0, l);
        for (i = 0; i < n; i++) {
            delta[i] = (float)(1e-3 * fl_rng_normal(&rng));
        }
        fl_buf_init(&buf, SIZE_MAX / 2);
        rv = fl_unit_encode(s->codec, s->options[FL_COMPONENT_CODEC], layout, l, &in, &buf);
        *ret += buf.len;
        fl_buf_done(&buf);
        free(delta);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

bool fl_server_conf_beside(const struct fl_server_conf *conf, char *out, size_t size)
{
    const struct fl_strategy *s = conf->strategy;
    const char *const *sends =
        s != NULL ? fl_solver_sends(s->solver, s->options[FL_COMPONENT_SOLVER]) : NULL;
    uint64_t full = conf->layout != NULL ? fl_layout_count(conf->layout) * sizeof(float) : 0;
    uint64_t coded = 0;
    char texts[4][32];
    char instead[128] = "";

    if (fl_solver_names(sends) == 0 || full == 0 || s->codec->id == FL_CODEC_FLOAT32 ||
        coded_size(s, conf->layout, &coded) != FL_OK)
    {
        return false;
    }
    if (s->solver == &fl_solver_scaffold) {
        (void)snprintf(instead, sizeof(instead),
                       "; codec float32 with solver {rebuild_dc: yes} sends %s",
                       fl_str_bytes(texts[3], sizeof(texts[3]), full));
    }
    (void)snprintf(out, size,
                   "codec '%s' makes %s of an update of %s, but solver '%s' sends '%s' "
                   "uncompressed beside it: %s in total%s",
                   s->codec->policy.name, fl_str_bytes(texts[0], sizeof(texts[0]), coded),
                   fl_str_bytes(texts[1], sizeof(texts[1]), full), s->solver->policy.name, sends[0],
                   fl_str_bytes(texts[2], sizeof(texts[2]), coded + fl_solver_names(sends) * full),
                   instead);
    return true;
}

void fl_server_conf_odd(const struct fl_server_conf *conf, struct fl_findings *notes)
{
    const struct fl_server_round *r = conf->round;
    const struct fl_server_training *t = conf->training;
    const struct fl_conf_node *start = fl_conf_field(conf->file, &r->start_clients);
    const struct fl_conf_node *map = fl_conf_file_map(conf->file);
    const struct fl_conf_node *node = fl_conf_get(map, "strategy");
    struct fl_err err = {0};
    char text[400];

    if (t->learning_rate > ODD_RATE) {
        (void)fl_conf_error(fl_conf_field(conf->file, &t->learning_rate), &err,
                            "warning: with a learning rate of %g training diverges on nearly every "
                            "model; 0.001 to 1 is usual",
                            t->learning_rate);
        fl_findings_note(notes, "%s", err.msg);
    }
    if (r->min_clients > r->start_clients && start != fl_conf_section(conf->file, r)) {
        (void)fl_conf_error(start, &err,
                            "warning: %lld has no effect: no round starts with fewer clients than "
                            "min_clients, %lld",
                            (long long)r->start_clients, (long long)r->min_clients);
        fl_findings_note(notes, "%s", err.msg);
    }
    if (r->population > 0 && r->min_clients > r->population) {
        (void)fl_conf_error(
            fl_conf_field(conf->file, &r->min_clients), &err,
            "warning: no round starts before %lld clients are connected, but 'population' is %lld",
            (long long)r->min_clients, (long long)r->population);
        fl_findings_note(notes, "%s", err.msg);
    }
    if (fl_server_conf_beside(conf, text, sizeof(text))) {
        node = node != NULL ? node : fl_conf_get(map, "algorithm");
        (void)fl_conf_error(node != NULL ? node : map, &err, "warning: %s", text);
        fl_findings_note(notes, "%s", err.msg);
    }
}
