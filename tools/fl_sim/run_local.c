/*
 * A trial with the daemons on this machine in place of the simulation (fl-sim run --local): writes
 * their files, starts them, and passes on each committed round. Main thread.
 */
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/fs.h"
#include "libfl/json/json.h"
#include "libfl/model/layout.h"
#include "tools/fl_sim/local_daemons.h"
#include "tools/fl_sim/local_sockets.h"
#include "tools/fl_sim/results/row.h"

struct local_run {
    size_t n_floats;   /* of a whole update */
    uint64_t ended_ms; /* of the round before; 0: none */
    uint64_t time_us;
};

/*
 * The times of a round by the server's clock, and its bytes. Of a round the phases that a
 * simulation does not have are in message_us, and what is left in wait_clients_us.
 */
static void local_fill(struct local_run *run, const struct fl_round_rec *r, struct fl_sim_round *s)
{
    uint64_t since = run->ended_ms > 0 ? run->ended_ms : r->started_ms;
    uint64_t parts;
    uint64_t wall;

    s->training_us = 1000 * r->training_ms;
    s->upload_us = 1000 * r->uploading_ms;
    s->evaluation_us = 1000 * r->evaluating_ms;
    s->message_us = 1000 * (r->selecting_ms + r->planning_ms + r->aggregating_ms);
    parts = fl_sim_round_parts(s);
    wall = r->ended_ms > since ? 1000 * (r->ended_ms - since) : 0;
    s->wait_clients_us = wall > parts ? wall - parts : 0;
    s->wall_us = parts + s->wait_clients_us;
    run->time_us += s->wall_us;
    s->time_us = run->time_us;
    run->ended_ms = r->ended_ms;
    s->n_attempts = r->attempt;
    s->up_update_bytes = r->uplink_bytes;
    s->up_report_bytes = r->feedback_bytes;
    s->down_model_bytes = r->downlink_bytes;
    if (r->wire_up_bytes > r->uplink_bytes + r->feedback_bytes) {
        s->up_control_bytes = r->wire_up_bytes - r->uplink_bytes - r->feedback_bytes;
    }
    if (r->wire_down_bytes > r->downlink_bytes) {
        s->down_control_bytes = r->wire_down_bytes - r->downlink_bytes;
    }
    s->full_models = (double)r->uplink_bytes / (4.0 * (double)run->n_floats);
}

static int local_read(struct local_run *run, const char *line, struct fl_row *ret,
                      struct fl_err *err)
{
    json_t *object = json_loads(line, 0, NULL);
    int rv = object != NULL ? fl_row_read(object, ret) : FL_EFORMAT;

    json_decref(object);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "flctl wrote no round: '%.200s'", line);
    }
    fl_sim_round_init(&ret->sim);
    local_fill(run, &ret->record, &ret->sim);
    return FL_OK;
}

static int local_run_rounds(struct local_daemons *daemons, struct local_run *run,
                            const struct run_watch *watch, struct fl_err *err)
{
    const char *line = NULL;
    struct fl_row row;

    for (;;) {
        int rv = local_daemons_round(daemons, &run_interrupted, &line, err);

        if (rv != FL_OK || line == NULL) {
            return rv;
        }
        rv = local_read(run, line, &row, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (!watch->committed(watch->ctx, &row.record, &row.sim)) {
            return FL_OK;
        }
    }
}

static int local_run_in(const struct fl_local_conf *conf, const struct run_watch *watch,
                        struct fl_err *err)
{
    struct local_daemons *daemons = NULL;
    struct local_run run = {.ended_ms = 0};
    struct fl_coord_conf coord = {0};
    int rv = fl_local_write(conf, err);

    fl_server_conf_coord(conf->setting->point->server, &coord);
    run.n_floats = fl_layout_count(coord.layout);
    if (rv != FL_OK) {
        return rv;
    }
    rv = local_daemons_start(conf, &daemons, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = local_run_rounds(daemons, &run, watch, err);
    local_daemons_free(daemons);
    return rv;
}

int run_local(const struct run *run, const struct setting *setting, const char *dir,
              const struct run_watch *watch, struct fl_err *err)
{
    struct local_sockets sockets;
    char absolute[FL_LOCAL_PATH];
    const struct fl_local_conf conf = {.setting = setting,
                                       .clients = run->local,
                                       .name = fl_experiment_name(run->experiment),
                                       .dir = absolute,
                                       .sockets = sockets.path};
    int rv = fl_fs_absolute(dir, absolute, sizeof(absolute), err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = local_sockets_open(&sockets, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = local_run_in(&conf, watch, err);
    local_sockets_close(&sockets);
    return rv;
}
