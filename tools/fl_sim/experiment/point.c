/* One point with one seed, read through the tables of the daemons. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/fl_sim/experiment/experiment_impl.h"

struct stop {
    int64_t rounds;
    double accuracy;
    uint64_t uplink, bytes, time_ms;
};

const struct fl_opt_spec fl__stop_specs[] = {
    {FL_OPT(struct stop, INT, rounds), .def = "0", .min = 0, .max = 1e9,
     .help = "Committed rounds; the smaller one of this and server.rounds counts"},
    {FL_OPT(struct stop, FLOAT, accuracy), .def = "0", .min = 0, .max = 1,
     .help = "Accuracy of the server's model in an evaluation, or more"},
    {FL_OPT(struct stop, BYTES, uplink), .def = "0", .min = 0, .max = 1125899906842624.0,
     .help = "Bytes that the server accepted from all clients (`uplink_bytes`), or more"},
    {FL_OPT(struct stop, BYTES, bytes), .def = "0", .min = 0, .max = 1125899906842624.0,
     .help = "Bytes in both directions, or more"},
    {FL_OPT(struct stop, DURATION, time), .def = "0s", .min = 0, .max = 3.1536e12,
     .help = "Simulated time"},
    FL_OPT_END_OF(struct stop)};

int fl__point_doc(const struct fl_experiment *e, size_t point, struct fl_conf_doc **ret,
                  struct fl_err *err)
{
    const struct fl__point *p = &e->points[point];
    struct fl_conf_doc *doc = NULL;
    size_t k;
    int rv = fl_conf_copy(e->base, &doc);

    for (k = 0; rv == FL_OK && k < p->n; k++) {
        rv = fl_conf_put(doc, p->settings[k].path, p->settings[k].value, err);
    }
    if (rv != FL_OK) {
        fl_conf_free(doc);
        return rv;
    }
    *ret = doc;
    return FL_OK;
}

static int read_stop(struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_conf_node *node = fl_conf_get(fl_conf_root(p->doc), "stop");
    struct fl_options *options = NULL;
    int rv = fl_options_create(fl__stop_specs, &options);

    rv = rv == FL_OK ? fl_conf_apply(p->doc, node, "stop", NULL, options, err) : rv;
    if (rv == FL_OK) {
        const struct stop *s = fl_options_values(options);

        p->stop =
            (struct fl_experiment_stop){s->rounds, s->accuracy, s->uplink, s->bytes, s->time_ms};
    }
    fl_options_free(options);
    return rv;
}

/* The smaller one of stop.rounds and server.rounds is what the coordinator is told. */
static int read_server(struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_conf_node *root = fl_conf_root(p->doc);
    const struct fl_conf_node *rounds = fl_conf_get(fl_conf_get(root, "stop"), "rounds");
    bool mine = p->stop.rounds > 0;
    int rv = FL_OK;

    if (mine && fl_conf_get(fl_conf_get(root, "server"), "rounds") == NULL) {
        rv = fl_conf_put(p->doc, "server.rounds", rounds, err);
    }
    rv = rv == FL_OK ? fl_server_conf_read(p->doc, fl_conf_get(root, "server"), &p->server, err)
                     : rv;
    if (rv == FL_OK && mine &&
        (p->server->main->rounds == 0 || p->server->main->rounds > p->stop.rounds))
    {
        fl_server_conf_free(p->server);
        p->server = NULL;
        rv = fl_conf_put(p->doc, "server.rounds", rounds, err);
        rv = rv == FL_OK ? fl_server_conf_read(p->doc, fl_conf_get(root, "server"), &p->server, err)
                         : rv;
    }
    if (rv == FL_OK) {
        p->stop.rounds = p->server->main->rounds;
    }
    return rv;
}

static int check_stop(const struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_conf_node *root = fl_conf_root(p->doc);
    const struct fl_conf_node *stop = fl_conf_get(root, "stop");
    const struct fl_experiment_stop *s = &p->stop;

    if (s->rounds == 0 && s->accuracy <= 0.0 && s->uplink == 0 && s->bytes == 0 && s->time_ms == 0)
    {
        return fl_conf_error(stop != NULL ? stop : fl_conf_get(root, "server"), err,
                             "a run would never end: expected stop.rounds or server.rounds above "
                             "0, stop.accuracy, stop.uplink, stop.bytes or stop.time");
    }
    if (s->accuracy > 0.0 && p->server->evaluation->every == 0) {
        return fl_conf_error(fl_conf_get(stop, "accuracy"), err,
                             "server.evaluation.every is 0, so no accuracy is ever known");
    }
    return FL_OK;
}

static int check_evaluation(const struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_opt_texts *command = &p->server->evaluation->command;

    return command->n == 0
               ? FL_OK
               : fl_conf_error(fl_conf_field(p->server->file, command), err,
                               "a simulated server evaluates with the built-in engine, on the test "
                               "part that 'data:' has for it: expected no evaluation.command");
}

static int read_client(struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_conf_node *map = fl_conf_get(fl_conf_root(p->doc), "client");
    const struct fl_client_conf *c;
    int rv = fl_client_conf_read(p->doc, map, &p->client, err);

    if (rv != FL_OK) {
        return rv;
    }
    c = p->client;
    if (c->main->trainer != FL_TRAINER_BUILTIN) {
        return fl_conf_error(fl_conf_field(c->file, &c->main->trainer), err,
                             "simulated clients train with the built-in engine: a program of yours "
                             "takes the time that it takes, and runs behind fl-clientd only");
    }
    if (c->data->path[0] != '\0') {
        return fl_conf_error(
            fl_conf_field(c->file, &c->data->path), err,
            "what each simulated client has is said by 'data:' at the root of this "
            "file");
    }
    return FL_OK;
}

/* The message of `err`, and which point it is about. */
static int of_point(const struct fl_experiment *e, size_t point, int rv, struct fl_err *err)
{
    struct fl_err inner;

    if (err == NULL || rv == FL_ENOMEM || e->points[point].node == NULL) {
        return rv;
    }
    inner = *err;
    return fl_err_set(err, rv, "%.400s (in the point '%.80s')", fl_err_text(&inner, rv),
                      e->points[point].label);
}

int fl_experiment_open(const struct fl_experiment *e, size_t point, size_t trial,
                       struct fl_experiment_point **ret, struct fl_err *err)
{
    struct fl_experiment_point *p = calloc(1, sizeof(*p));
    char seed[64];
    int rv = FL_ENOMEM;

    FL_REQUIRE(point < e->n_points && trial < e->n_seeds);
    if (p != NULL) {
        (void)snprintf(seed, sizeof(seed), "server.seed=%" PRIu64, e->seeds[trial]);
        rv = fl__point_doc(e, point, &p->doc, err);
    }
    rv = rv == FL_OK ? fl_conf_assign(p->doc, "trials", seed, err) : rv;
    rv = rv == FL_OK ? read_stop(p, err) : rv;
    rv = rv == FL_OK ? read_server(p, err) : rv;
    rv = rv == FL_OK ? check_stop(p, err) : rv;
    rv = rv == FL_OK ? check_evaluation(p, err) : rv;
    rv = rv == FL_OK ? read_client(p, err) : rv;
    if (rv != FL_OK) {
        fl_experiment_close(p);
        return of_point(e, point, rv, err);
    }
    p->data = fl_conf_get(fl_conf_root(p->doc), "data");
    p->world = fl_conf_get(fl_conf_root(p->doc), "world");
    *ret = p;
    return FL_OK;
}

int fl_experiment_without_effect(const struct fl_experiment_point *p, struct fl_buf *out)
{
    int rv = fl_server_conf_daemons(p->server, out);

    return rv == FL_OK ? fl_client_conf_daemons(p->client, out) : rv;
}

void fl_experiment_close(struct fl_experiment_point *p)
{
    if (p == NULL) {
        return;
    }
    fl_server_conf_free(p->server);
    fl_client_conf_free(p->client);
    fl_conf_free(p->doc);
    free(p);
}
