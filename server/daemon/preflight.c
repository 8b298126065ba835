#include "server/daemon/preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/descriptors.h"
#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "libfl/net/address.h"
#include "libfl/num/vec.h"
#include "libfl/program/program.h"
#include "server/daemon/admin_access.h"
#include "server/daemon/descriptors.h"
#include "server/daemon/exit_codes.h"
#include "server/daemon/guard.h"

/* A socket below the state folder: that folder is made before it. */
static bool in_state(const struct fl_serverd_conf *own, const char *path)
{
    size_t n = strlen(own->state_dir);

    return strncmp(path, own->state_dir, n) == 0 && path[n] == '/' &&
           strchr(path + n + 1, '/') == NULL;
}

/* Whether somebody listens there already is seen when it is bound. */
static int check_socket(const struct fl_serverd_conf *own, const char *address, struct fl_err *err)
{
    struct fl_address a;
    struct stat st;
    int rv = fl_address_parse(address, &a, err);

    if (rv != FL_OK || a.kind != FL_ADDRESS_UNIX || in_state(own, a.path)) {
        return rv;
    }
    if (stat(a.path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
        return fl_err_set(err, FL_EEXIST, "'%s' is there and is no socket", a.path);
    }
    return fl_fs_check_place(a.path, err);
}

int fl_preflight_model(const struct fl_server_conf *conf, float *theta, struct fl_err *err)
{
    int rv;

    if (conf->model->file[0] == '\0') {
        return FL_OK;
    }
    rv = fl_st_load(conf->model->file, conf->layout, theta, err);
    if (rv == FL_OK && !fl_vec_finite(theta, fl_layout_count(conf->layout))) {
        rv = fl_err_set(err, FL_ENUMERIC, "'%s' holds a value that is not finite",
                        conf->model->file);
    }
    return rv == FL_OK ? FL_OK : fl_conf_blame(conf->file, &conf->model->file, rv, err);
}

/* A folder that was used before has its model, and does not need the first one any more. */
static int check_model(const struct fl_serverd_conf *own, struct fl_err *err)
{
    const struct fl_server_conf *conf = own->conf;
    char database[FL_SERVER_PATH_MAX + sizeof("/federation.db")];
    float *theta;
    int rv = fl_fs_join(database, sizeof(database), own->state_dir, "federation.db");

    if (rv != FL_OK || fl_fs_exists(database)) {
        return rv;
    }
    theta = malloc(fl_layout_count(conf->layout) * sizeof(*theta));
    rv = theta == NULL ? FL_ENOMEM : fl_preflight_model(conf, theta, err);
    free(theta);
    return rv;
}

int fl_preflight_places(const struct fl_serverd_conf *own, int *ret_exit, struct fl_err *err)
{
    const struct fl_server_conf *conf = own->conf;
    const struct fl_server_main *m = conf->main;
    struct fl_admin_access access;
    size_t i;
    int rv;

    *ret_exit = FL_EXIT_CONFIG;
    rv = fl_admin_access_init(own, &access, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_exit = FL_EXIT_STATE;
    rv = fl_fs_check_folder(own->state_dir, err);
    if (rv != FL_OK) {
        return fl_conf_blame(conf->file, &m->state_dir, rv, err);
    }
    *ret_exit = FL_EXIT_LISTEN;
    for (i = 0; i < m->listen.n; i++) {
        rv = check_socket(own, m->listen.list[i], err);
        if (rv != FL_OK) {
            return fl_conf_blame(conf->file, &m->listen, rv, err);
        }
    }
    rv = check_socket(own, own->admin, err);
    if (rv != FL_OK) {
        return fl_conf_blame(
            conf->file, m->admin_socket[0] != '\0' ? &m->admin_socket : &m->state_dir, rv, err);
    }
    *ret_exit = FL_EXIT_DATA;
    return check_model(own, err);
}

static int fits(const struct fl_dataset *test, const struct fl_net *net, const char *folder,
                struct fl_err *err)
{
    return test->dim == fl_net_inputs(net) && test->classes <= fl_net_classes(net)
               ? FL_OK
               : fl_err_set(err, FL_ESHAPE,
                            "'%s' has %zu values and %zu classes, the network takes %zu values and "
                            "has %zu classes",
                            folder, test->dim, test->classes, fl_net_inputs(net),
                            fl_net_classes(net));
}

static int open_network(const struct fl_server_conf *conf, struct fl_evaluator **ret,
                        struct fl_err *err)
{
    const char *folder = conf->evaluation->data;
    struct fl_dataset *test = NULL;
    struct fl_net *net = NULL;
    int rv = fl_dataset_open(folder, "test", &test, err);

    if (rv == FL_OK) {
        rv = fl_net_create_evaluator(&conf->net, &net, err);
    }
    if (rv == FL_OK) {
        rv = fits(test, net, folder, err);
    }
    if (rv != FL_OK) {
        fl_dataset_free(test);
        fl_net_free(net);
        return fl_conf_blame(conf->file, &conf->evaluation->data, rv, err);
    }
    return fl_evaluator_builtin(test, net, ret, err);
}

/* A check leaves the program alone: it may take long, and wants a machine with its data. */
static int open_program(const struct fl_server_conf *conf, const struct fl_log *log,
                        struct fl_evaluator **ret, struct fl_err *err)
{
    const struct fl_server_evaluation *e = conf->evaluation;
    const struct fl_evaluator_program program = {.argv = e->command.list,
                                                 .federation = conf->main->federation,
                                                 .data = e->data[0] != '\0' ? e->data : NULL,
                                                 .layout = conf->layout,
                                                 .net = &conf->net,
                                                 .limit_ms = e->command_limit_ms,
                                                 .start_limit_ms = e->command_start_limit_ms,
                                                 .memory_bytes = e->command_memory,
                                                 .log = log};
    char path[FL_SERVER_PATH_MAX];
    int rv = log != NULL ? fl_evaluator_program(&program, ret, err)
                         : fl_program_find(e->command.list[0], path, sizeof(path), err);

    return rv == FL_OK ? FL_OK : fl_conf_blame(conf->file, &e->command, rv, err);
}

int fl_preflight_evaluation(const struct fl_server_conf *conf, const struct fl_log *log,
                            struct fl_evaluator **ret, struct fl_err *err)
{
    *ret = NULL;
    if (conf->evaluation->command.n > 0) {
        return open_program(conf, log, ret, err);
    }
    return conf->evaluation->data[0] != '\0' ? open_network(conf, ret, err) : FL_OK;
}

int fl_preflight_connections(const struct fl_server_conf *conf, uint64_t descriptors, uint64_t *ret,
                             char *fewer, size_t size, struct fl_err *err)
{
    uint64_t wanted = (uint64_t)conf->limits->clients;
    uint64_t start = (uint64_t)conf->round->start_clients;
    uint64_t least = (uint64_t)conf->round->min_clients;
    const int64_t *field = start > least ? &conf->round->start_clients : &conf->round->min_clients;
    int rv = fl_serverd_connections(descriptors, wanted, start > least ? start : least, ret, err);

    fewer[0] = '\0';
    if (rv != FL_OK) {
        return fl_conf_blame(conf->file, field, rv, err);
    }
    if (*ret < wanted) {
        (void)snprintf(fewer, size,
                       "%llu descriptors are room for %llu connections, limits.clients allows "
                       "%llu: raise the hard limit of open files for more",
                       (unsigned long long)descriptors, (unsigned long long)*ret,
                       (unsigned long long)wanted);
    }
    return FL_OK;
}

int fl_preflight(const struct fl_serverd_conf *own, int *ret_exit,
                 struct fl_preflight_notes *ret_notes, struct fl_err *err)
{
    const struct fl_server_conf *conf = own->conf;
    struct fl_evaluator *evaluator = NULL;
    uint64_t connections;
    int rv = fl_preflight_places(own, ret_exit, err);

    *ret_notes = (struct fl_preflight_notes){.fewer = ""};
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_STATE;
        rv = fl_store_check(own->state_dir, err);
    }
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_IDENTITY;
        rv = fl_guard_check(own, ret_notes->dates, sizeof(ret_notes->dates), err);
    }
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_FAILURE;
        rv = fl_preflight_connections(conf, fl_descriptors_most(), &connections, ret_notes->fewer,
                                      sizeof(ret_notes->fewer), err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    *ret_exit = FL_EXIT_DATA;
    rv = fl_preflight_evaluation(conf, NULL, &evaluator, err);
    fl_evaluator_free(evaluator);
    return rv;
}
