#include "server/daemon/hints.h"

#include "libfl/model/safetensors.h"

void fl_hints_log(const struct fl_serverd_conf *own, const struct fl_log *log)
{
    const struct fl_server_conf *conf = own->conf;
    bool file = conf->net.n_layers == 0;
    bool local = conf->model->norm == FL_NORM_LOCAL;
    char names[512];
    struct fl_err err;
    size_t n = 0;

    /* For a model from a file: its tensors that are not transferred. */
    if (file && fl_st_constants(conf->model->file, names, sizeof(names), &n, &err) == FL_OK &&
        n > 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "model.file: %s hold%s whole numbers: constants of the program, which stay with it "
               "and are not transferred",
               names, n == 1 ? "s" : "");
    }
    if (file && own->state_units) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the state folder was created with another division into layers than today's "
               "default: its %zu layers stay in use (set model.units for a new state_dir)",
               fl_layout_units(conf->layout));
    }
    if (local && fl_layout_local(conf->layout) == 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "model.norm is local, but the model has no batch-norm: the setting has no effect");
    } else if (local && conf->evaluation->data[0] != '\0') {
        fl_log(
            log, FL_LOG_WARNING, "server",
            "model.norm is local: evaluation.data is measured with the server's batch-norms, which "
            "are not trained; 'evaluation: {clients: yes}' measures with the clients' own");
    }
}
