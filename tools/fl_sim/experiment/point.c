/* Reads one point with one seed, with the tables of the daemons, and checks the keys that a
   simulation restricts. Pure functions on a document, any thread. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/fl_sim/experiment/experiment_impl.h"

struct stop {
    int64_t rounds;
    double accuracy;
    int64_t mean_of;
    uint64_t uplink, bytes, time_ms;
};

const struct fl_opt_spec fl__stop_specs[] = {
    {FL_OPT(struct stop, INT, rounds), .def = "0", .min = 0, .max = 1e9,
     .help = "Committed rounds; the smaller of this and server.rounds applies"},
    {FL_OPT(struct stop, FLOAT, accuracy), .def = "0", .min = 0, .max = 1,
     .help = "Accuracy of the server's model in an evaluation, or more"},
    {FL_OPT(struct stop, INT, mean_of), .def = "1", .min = 1, .max = FL_EXPERIMENT_MEAN,
     .help =
         "stop.accuracy is for the mean of so many evaluations, the newest ones (AdaFL's stopping "
         "rule)"},
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

    if (rv != FL_OK) {
        goto fail;
    }
    for (k = 0; k < p->n; k++) {
        rv = fl_conf_put(doc, p->settings[k].path, p->settings[k].value, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = doc;
    return FL_OK;
fail:
    fl_conf_free(doc);
    return rv;
}

static int point_read_stop(struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_conf_node *node = fl_conf_get(fl_conf_root(p->doc), "stop");
    struct fl_options *options = NULL;
    const struct stop *s;
    int rv = fl_options_create(fl__stop_specs, &options);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_conf_apply(p->doc, node, "stop", NULL, options, err);
    if (rv != FL_OK) {
        goto done;
    }
    s = fl_options_values(options);
    p->stop = (struct fl_experiment_stop){.rounds = s->rounds,
                                          .accuracy = s->accuracy,
                                          .mean_of = (size_t)s->mean_of,
                                          .uplink = s->uplink,
                                          .bytes = s->bytes,
                                          .time_ms = s->time_ms};
done:
    fl_options_free(options);
    return rv;
}

/* The coordinator gets the smaller of stop.rounds and server.rounds. */
static int point_read_server(struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_conf_node *root = fl_conf_root(p->doc);
    const struct fl_conf_node *rounds = fl_conf_get(fl_conf_get(root, "stop"), "rounds");
    bool has_rounds = p->stop.rounds > 0;
    int rv;

    if (has_rounds && fl_conf_get(fl_conf_get(root, "server"), "rounds") == NULL) {
        rv = fl_conf_put(p->doc, "server.rounds", rounds, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl_server_conf_read(p->doc, fl_conf_get(root, "server"), &p->server, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (has_rounds && (p->server->main->rounds == 0 || p->server->main->rounds > p->stop.rounds)) {
        fl_server_conf_free(p->server);
        p->server = NULL;
        rv = fl_conf_put(p->doc, "server.rounds", rounds, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_server_conf_read(p->doc, fl_conf_get(root, "server"), &p->server, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    p->stop.rounds = p->server->main->rounds;
    return FL_OK;
}

static int point_check_stop(struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_conf_node *root = fl_conf_root(p->doc);
    const struct fl_conf_node *stop = fl_conf_get(root, "stop");
    const struct fl_experiment_stop *s = &p->stop;

    if (s->rounds == 0 && s->accuracy <= 0.0 && s->uplink == 0 && s->bytes == 0 && s->time_ms == 0)
    {
        return fl_conf_error(stop != NULL ? stop : fl_conf_get(root, "server"), err,
                             "the run would never end: expected stop.rounds or server.rounds above "
                             "0, stop.accuracy, stop.uplink, stop.bytes or stop.time");
    }
    if (s->accuracy > 0.0 && p->server->evaluation->every == 0) {
        return fl_conf_error(fl_conf_get(stop, "accuracy"), err,
                             "server.evaluation.every is 0, so the accuracy is never known");
    }
    if (s->accuracy > 0.0 && !fl_server_conf_has_accuracy(p->server)) {
        return fl_conf_error(fl_conf_get(stop, "accuracy"), err,
                             "the network predicts values, of which none is right or wrong (loss: "
                             "mse or mae), so there is no accuracy: use stop.rounds, stop.time, "
                             "stop.bytes or stop.uplink");
    }
    return FL_OK;
}

static int point_check_evaluation(struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_opt_texts *command = &p->server->evaluation->command;

    return command->n == 0
               ? FL_OK
               : fl_conf_error(fl_conf_field(p->server->file, command), err,
                               "a simulated server evaluates with what its clients train with, on "
                               "the test part that 'data:' gives it: evaluation.command is not "
                               "allowed");
}

/* One program acts for many clients, one after the other. */
static int point_check_command(const struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_client_conf *c = p->client;

    if (c->command->program.n == 0) {
        return fl_conf_error(fl_conf_field(c->file, &c->main->trainer), err,
                             "the required key 'command.program' is missing: the program that "
                             "trains");
    }
    if (!c->command->persistent) {
        return fl_conf_error(fl_conf_field(c->file, &c->command->program), err,
                             "expected command.persistent: yes, as a program for each task would "
                             "be started for each training of each simulated client");
    }
    return FL_OK;
}

static int point_read_client(struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_conf_node *map = fl_conf_get(fl_conf_root(p->doc), "client");
    const struct fl_client_conf *c;
    int rv = fl_client_conf_read(p->doc, map, &p->client, err);

    if (rv != FL_OK) {
        return rv;
    }
    c = p->client;
    if (c->main->trainer == FL_TRAINER_COMMAND && p->server->evaluation->metrics.n > 0) {
        return fl_conf_error(fl_conf_field(p->server->file, &p->server->evaluation->metrics), err,
                             "expected no metrics where a program evaluates: it returns its own "
                             "(docs/trainers.md#metrics)");
    }
    if (c->main->trainer == FL_TRAINER_COMMAND) {
        rv = point_check_command(p, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (c->data->path[0] != '\0') {
        return fl_conf_error(fl_conf_field(c->file, &c->data->path), err,
                             "the data of simulated clients is set by 'data:' at the root of this "
                             "file");
    }
    return FL_OK;
}

int fl_experiment_open(const struct fl_experiment *e, size_t point, size_t trial,
                       struct fl_experiment_point **ret, struct fl_err *err)
{
    static int (*const steps[])(struct fl_experiment_point *, struct fl_err *) = {
        point_read_stop,        point_read_server, point_check_stop,
        point_check_evaluation, point_read_client, fl__attackers_read};
    struct fl_err inner;
    struct fl_experiment_point *p = calloc(1, sizeof(*p));
    char seed[64];
    size_t i;
    int rv;

    FL_REQUIRE(point < e->n_points && trial < e->n_seeds);
    rv = p != NULL ? fl__point_doc(e, point, &p->doc, err) : FL_ENOMEM;
    if (rv != FL_OK) {
        goto fail;
    }
    (void)snprintf(seed, sizeof(seed), "server.seed=%" PRIu64, e->seeds[trial]);
    rv = fl_conf_assign(p->doc, "trials", seed, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        rv = steps[i](p, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    p->data = fl_conf_get(fl_conf_root(p->doc), "data");
    p->world = fl_conf_get(fl_conf_root(p->doc), "world");
    *ret = p;
    return FL_OK;
fail:
    fl_experiment_close(p);
    /* Adds the label of the point to the message of `err`. */
    if (err == NULL || rv == FL_ENOMEM || e->points[point].node == NULL) {
        return rv;
    }
    inner = *err;
    return fl_err_set(err, rv, "%.400s (in the point '%.80s')", fl_err_text(&inner, rv),
                      e->points[point].label);
}

static int point_add_checkpoints(const struct fl_experiment_point *p, struct fl_buf *out)
{
    static const char key[] = ", server.checkpoints (without --keep-state)";
    const struct fl_conf_node *server = fl_conf_get(fl_conf_root(p->doc), "server");
    size_t skip = out->len > 0 ? 0 : 2;

    return fl_conf_get(server, "checkpoints") != NULL
               ? fl_buf_add(out, key + skip, sizeof(key) - 1 - skip)
               : FL_OK;
}

int fl_experiment_without_effect(const struct fl_experiment_point *p, bool keep_state,
                                 struct fl_buf *out)
{
    struct fl_writer w = {.out = out};

    fl_writer_note(&w, fl_server_conf_daemons(p->server, out));
    if (!keep_state) {
        fl_writer_note(&w, point_add_checkpoints(p, out));
    }
    fl_writer_note(&w, fl_client_conf_daemons(p->client, out));
    return w.code;
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
