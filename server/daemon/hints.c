#include "server/daemon/hints.h"

#include "libfl/model/safetensors.h"

/* Of a model from a file: what of it does not travel. */
static void tell_file(const struct fl_serverd_conf *own, const struct fl_log *log)
{
    const struct fl_server_conf *conf = own->conf;
    char names[512];
    struct fl_err err;
    size_t n = 0;

    if (fl_st_constants(conf->model->file, names, sizeof(names), &n, &err) == FL_OK && n > 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "model.file: %s hold%s whole numbers: constants of the program, which stay with it "
               "and do not travel",
               names, n == 1 ? "s" : "");
    }
    if (own->begun_units) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the state folder was begun with other units than are made by default now: its %zu "
               "units stand (model.units says others for a new state_dir)",
               fl_layout_units(conf->layout));
    }
}

static void tell_local(const struct fl_server_conf *conf, const struct fl_log *log)
{
    if (fl_layout_local(conf->layout) == 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "model.norm is local, but the model has no batch-norm: nothing stays on clients");
    } else if (conf->evaluation->data[0] != '\0') {
        fl_log(
            log, FL_LOG_WARNING, "server",
            "model.norm is local: evaluation.data is measured with the batch-norms that the "
            "server has, which nobody trains; 'evaluation: {clients: yes}' measures with theirs");
    }
}

void fl_hints_log(const struct fl_serverd_conf *own, const struct fl_log *log)
{
    const struct fl_server_conf *conf = own->conf;

    if (conf->net.n_layers == 0) {
        tell_file(own, log);
    }
    if (conf->model->norm == FL_NORM_LOCAL) {
        tell_local(conf, log);
    }
}
