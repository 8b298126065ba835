#include "server/daemon/hints.h"

#include "libfl/model/safetensors.h"

/* For a model from a file: its tensors that are not transferred. */
static void hints_log_file(const struct fl_serverd_conf *own, const struct fl_log *log)
{
    const struct fl_server_conf *conf = own->conf;
    char names[512];
    struct fl_err err;
    size_t n = 0;

    if (fl_st_constants(conf->model->file, names, sizeof(names), &n, &err) == FL_OK && n > 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "model.file: %s hold%s whole numbers: constants of the program, which stay with it "
               "and are not transferred",
               names, n == 1 ? "s" : "");
    }
    if (own->state_units) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the state folder was created with another division into layers than today's "
               "default: its %zu layers stay in use (set model.units for a new state_dir)",
               fl_layout_units(conf->layout));
    }
}

static void hints_log_local(const struct fl_server_conf *conf, const struct fl_log *log)
{
    if (fl_layout_local(conf->layout) == 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "model.norm is local, but the model has no batch-norm: the setting has no effect");
    } else if (conf->evaluation->data[0] != '\0') {
        fl_log(
            log, FL_LOG_WARNING, "server",
            "model.norm is local: evaluation.data is measured with the server's batch-norms, which "
            "are not trained; 'evaluation: {clients: yes}' measures with the clients' own");
    }
}

void fl_hints_log(const struct fl_serverd_conf *own, const struct fl_log *log)
{
    const struct fl_server_conf *conf = own->conf;

    if (conf->net.n_layers == 0) {
        hints_log_file(own, log);
    }
    if (conf->model->norm == FL_NORM_LOCAL) {
        hints_log_local(conf, log);
    }
}
