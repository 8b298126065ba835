/*
 * The checks of a start: state folder, sockets and addresses, the first model, the evaluation, file
 * descriptors. Runs before any thread starts, for a start and for --check-config. Creates and
 * changes nothing.
 */

#include "server/daemon/serverd_preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/descriptors.h"
#include "libfl/base/fs.h"
#include "libfl/http/http.h"
#include "libfl/net/address.h"
#include "libfl/net/conn.h"
#include "libfl/program/program.h"
#include "server/auth/admin_access.h"
#include "server/auth/auth.h"
#include "server/daemon/descriptor_limit.h"
#include "server/daemon/serverd_exit.h"
#include "server/store/moved.h"

/* True for a socket below the state folder, which is created before it. */
static bool in_state(const struct fl_serverd_conf *own, const char *path)
{
    size_t n = strlen(own->state_dir);

    return strncmp(path, own->state_dir, n) == 0 && path[n] == '/' &&
           strchr(path + n + 1, '/') == NULL;
}

/* Handles an error that ends a start with that exit code. With a report the next check follows. */
static int preflight_add_error(struct fl_preflight_report *report, int exit_code, int *ret_exit,
                               int rv, struct fl_err *err)
{
    if (rv != FL_OK && (report == NULL || report->errors.n == 0)) {
        *ret_exit = exit_code;
    }
    return fl_findings_keep(report != NULL ? &report->errors : NULL, rv, err);
}

/*
 * True for a missing folder of a socket below /run: a unit creates it (RuntimeDirectory=) when it
 * starts, and removes it when it ends.
 */
static bool left_to_unit(const char *socket, char *folder, size_t size)
{
    const char *slash = strrchr(socket, '/');

    (void)snprintf(folder, size, "%.*s", (int)(slash - socket), socket);
    return strncmp(folder, "/run/", 5) == 0 && !fl_fs_exists(folder);
}

/* Checks the path of a socket file. Whether another process listens there is found by the bind. */
static int preflight_check_path(const struct fl_serverd_conf *own, const char *path,
                                struct fl_preflight_report *report, struct fl_err *err)
{
    char folder[FL_ADDRESS_PATH_MAX];
    struct stat st;

    if (in_state(own, path)) {
        return FL_OK;
    }
    if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
        return fl_err_set(err, FL_EEXIST, "'%s' exists and is not a socket", path);
    }
    if (report != NULL && left_to_unit(path, folder, sizeof(folder))) {
        fl_findings_note(&report->notes,
                         "%s: the folder '%s' does not exist: RuntimeDirectory= of the unit "
                         "creates it at the start",
                         own->path, folder);
        return FL_OK;
    }
    return fl_fs_check_place(path, err);
}

/*
 * `running`: the process of the server that runs in this state folder, 0: none. Its addresses are
 * in use by itself.
 */
static int try_address(const struct fl_serverd_conf *own, const char *address, long running,
                       struct fl_preflight_report *report, struct fl_err *err)
{
    int rv = fl_listen_check(address, err);

    if (rv == FL_EINUSE && running != 0) {
        fl_findings_note(&report->notes,
                         "%s: '%s' is in use, by the server of this state folder that is running "
                         "(process %ld) unless the address is new",
                         own->path, address, running);
        return FL_OK;
    }
    return rv != FL_EINUSE
               ? rv
               : fl_err_wrap(err, rv,
                             "address in use by another process, and no server of this state "
                             "folder is running (see `ss -lp`; an active socket unit holds it for "
                             "this server: stop that unit for a check)");
}

static int check_socket(const struct fl_serverd_conf *own, const char *address, long running,
                        struct fl_preflight_report *report, struct fl_err *err)
{
    struct fl_address a;
    int rv = fl_address_parse(address, &a, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (a.kind == FL_ADDRESS_UNIX) {
        rv = preflight_check_path(own, a.path, report, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return report != NULL ? try_address(own, address, running, report, err) : FL_OK;
}

static int check_sockets(const struct fl_serverd_conf *own, struct fl_preflight_report *report,
                         int *ret_exit, struct fl_err *err)
{
    const struct fl_server_main *m = own->conf->main;
    const struct fl_opt_texts *const lists[] = {&m->listen, &m->listen_insecure, &m->listen_admin,
                                                &own->conf->http->listen};
    long running = report != NULL ? fl_fs_lock_holder(own->state_dir) : 0;
    size_t i;
    size_t n;
    int rv;

    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (n = 0; n < lists[i]->n; n++) {
            rv = check_socket(own, lists[i]->list[n], running, report, err);
            if (rv != FL_OK) {
                rv = fl_conf_blame(own->conf->file, lists[i], rv, err);
            }
            rv = preflight_add_error(report, FL_EXIT_LISTEN, ret_exit, rv, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    rv = check_socket(own, own->admin, running, report, err);
    if (rv != FL_OK) {
        rv = fl_conf_blame(own->conf->file,
                           m->admin_socket[0] != '\0' ? &m->admin_socket : &m->state_dir, rv, err);
    }
    return preflight_add_error(report, FL_EXIT_LISTEN, ret_exit, rv, err);
}

/* A state folder with a committed model does not need the first one any more. */
static int preflight_check_model(const struct fl_serverd_conf *own, struct fl_err *err)
{
    const struct fl_server_conf *conf = own->conf;
    char database[FL_SERVER_PATH_MAX + sizeof("/federation.db")];
    float *theta;
    int rv = fl_fs_join(database, sizeof(database), own->state_dir, "federation.db");

    if (rv != FL_OK || fl_fs_exists(database)) {
        return rv;
    }
    theta = malloc(fl_layout_count(conf->layout) * sizeof(*theta));
    rv = theta == NULL ? FL_ENOMEM : fl_server_conf_model(conf, theta, err);
    free(theta);
    return rv;
}

/* Each of the two databases records the federation when it is created: compare them before that. */
int fl_preflight_federation(const struct fl_serverd_conf *own, struct fl_err *err)
{
    const char *federation = own->conf->main->federation;
    int rv = fl_moved_check(own->state_dir, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_store_check_name(own->state_dir, federation, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_authority_check_name(own->state_dir, federation, err);
}

static int check_state_folder(const struct fl_serverd_conf *own, struct fl_err *err)
{
    int rv = fl_fs_check_folder(own->state_dir, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_moved_check(own->state_dir, err);
}

/* halve_at must not be in a round that has ended. */
static int check_broadcast(const struct fl_serverd_conf *own, struct fl_err *err)
{
    const struct fl_conf_node *strategy =
        fl_conf_get(fl_conf_file_map(own->conf->file), "strategy");
    const struct fl_conf_node *node = fl_conf_get(fl_conf_get(strategy, "broadcast"), "halve_at");
    struct fl_err why = {0};
    int rv = fl_store_check_broadcast(own->state_dir, own->conf->strategy, &why);

    return rv == FL_ECONF ? fl_conf_error(node, err, "%s", why.msg) : rv;
}

/* The state belongs to this federation, and to this model. */
static int check_state(const struct fl_serverd_conf *own, struct fl_preflight_report *report,
                       int *ret_exit, struct fl_err *err)
{
    const struct fl_server_main *m = own->conf->main;
    int rv = check_state_folder(own, err);
    if (rv != FL_OK) {
        rv = fl_conf_blame(own->conf->file, &m->state_dir, rv, err);
    }
    rv = preflight_add_error(report, FL_EXIT_STATE, ret_exit, rv, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_preflight_federation(own, err);
    if (rv != FL_OK) {
        rv = fl_conf_blame(own->conf->file, &m->federation, rv, err);
    }
    rv = preflight_add_error(report, FL_EXIT_STATE, ret_exit, rv, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_store_check_model(own->state_dir, own->conf->layout, err);
    if (rv != FL_OK) {
        rv = fl_conf_blame(own->conf->file, &m->state_dir, rv, err);
    }
    rv = preflight_add_error(report, FL_EXIT_STATE, ret_exit, rv, err);
    if (rv != FL_OK) {
        return rv;
    }
    return preflight_add_error(report, FL_EXIT_STATE, ret_exit, check_broadcast(own, err), err);
}

int fl_preflight_identity(const struct fl_serverd_conf *own, int *ret_exit, struct fl_err *err)
{
    if (!fl_server_conf_has_tls(own->conf) || fl_auth_own_pki(own->conf)) {
        return FL_OK;
    }
    *ret_exit = FL_EXIT_IDENTITY;
    return fl_authority_check_folder(own->state_dir, err);
}

int fl_preflight_places(const struct fl_serverd_conf *own, struct fl_preflight_report *report,
                        int *ret_exit, struct fl_err *err)
{
    struct fl_admin_access access;
    int rv = fl_admin_access_init(own->conf, &access, err);

    rv = preflight_add_error(report, FL_EXIT_CONFIG, ret_exit, rv, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_state(own, report, ret_exit, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_sockets(own, report, ret_exit, err);
    if (rv != FL_OK) {
        return rv;
    }
    return preflight_add_error(report, FL_EXIT_DATA, ret_exit, preflight_check_model(own, err),
                               err);
}

/* What is left of the data beside the root data set. */
static int preflight_rest(const struct fl_root *root, struct fl_dataset **ret, struct fl_err *err)
{
    const struct fl_dataset *rest = fl_root_rest(root);

    return fl_dataset_view(rest->of, rest->items, rest->n, ret, err);
}

static int open_network(const struct fl_server_conf *conf, const struct fl_root *root,
                        struct fl_evaluator **ret, struct fl_err *err)
{
    const char *folder = conf->evaluation->data;
    struct fl_dataset *test = NULL;
    struct fl_net *net = NULL;
    int rv = root != NULL ? preflight_rest(root, &test, err)
                          : fl_dataset_open(folder, "test", &test, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_net_create_evaluator(&conf->net, &net, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (test->dim != fl_net_inputs(net) || test->n_targets != fl_net_values(net) ||
        test->classes > fl_net_classes(net))
    {
        rv = fl_err_set(err, FL_ESHAPE,
                        "'%s' has %zu values, %zu classes and %zu values to be predicted, the "
                        "network takes %zu values, has %zu classes and predicts %zu values",
                        folder, test->dim, test->classes, test->n_targets, fl_net_inputs(net),
                        fl_net_classes(net), fl_net_values(net));
    }
done:
    if (rv != FL_OK) {
        fl_dataset_free(test);
        fl_net_free(net);
        return fl_conf_blame(conf->file, &conf->evaluation->data, rv, err);
    }
    return fl_evaluator_builtin(test, net, fl_server_conf_metrics(conf), ret, err);
}

/* A check does not start the program: it may take long, and needs a machine with its data. */
static int preflight_open_program(const struct fl_server_conf *conf, const struct fl_log *log,
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
    int rv = log != NULL ? fl_evaluator_program(&program, ret, err)
                         : fl_program_check(e->command.list, err);

    if (rv != FL_OK) {
        return fl_conf_blame(conf->file, &e->command, rv, err);
    }
    return FL_OK;
}

int fl_preflight_root(const struct fl_server_conf *conf, struct fl_root **ret, struct fl_err *err)
{
    const struct fl_server_training *training = conf->training;
    struct fl_dataset *data = NULL;
    struct fl_root_conf root = {.net = &conf->net,
                                .strategy = conf->strategy,
                                .space = conf->space,
                                .epochs = (uint32_t)training->epochs,
                                .steps = (uint32_t)training->steps,
                                .batch_size = (uint32_t)training->batch_size,
                                .momentum = training->momentum,
                                .weight_decay = training->weight_decay,
                                .seed = (uint64_t)conf->main->seed};
    int rv;

    *ret = NULL;
    if (!fl_robust_trusts(conf->strategy->robust)) {
        return FL_OK;
    }
    rv = fl_dataset_open(conf->evaluation->data, "test", &data, err);
    if (rv != FL_OK) {
        return fl_conf_blame(conf->file, &conf->evaluation->data, rv, err);
    }
    root.data = data;
    rv = fl_root_create(&root, ret, err);
    if (rv != FL_OK) {
        fl_dataset_free(data);
        return fl_conf_blame(conf->file, &conf->evaluation->data, rv, err);
    }
    fl_root_own(*ret, data);
    return FL_OK;
}

int fl_preflight_evaluation(const struct fl_server_conf *conf, const struct fl_root *root,
                            const struct fl_log *log, struct fl_evaluator **ret, struct fl_err *err)
{
    *ret = NULL;
    if (conf->evaluation->command.n > 0) {
        return preflight_open_program(conf, log, ret, err);
    }
    return conf->evaluation->data[0] != '\0' ? open_network(conf, root, ret, err) : FL_OK;
}

int fl_preflight_program(const struct fl_server_conf *conf, const struct fl_log *log,
                         struct fl_aggregation_program **ret, struct fl_err *err)
{
    const struct fl_strategy *s = conf->strategy;
    const struct fl_aggregation_program_conf program = {
        .strategy = s,
        .layout = fl_space_updates(conf->space, conf->layout),
        .net = &conf->net,
        .federation = conf->main->federation,
        .log = log};
    struct fl_err why = {0};
    int rv;

    *ret = NULL;
    if (s->aggregate->program == NULL) {
        return FL_OK;
    }
    rv = log != NULL ? fl_aggregation_program_create(&program, ret, &why)
                     : fl_program_check(
                           s->aggregate->program(s->options[FL_COMPONENT_AGGREGATE]).argv, &why);
    if (rv != FL_OK) {
        (void)fl_conf_error(fl_server_conf_component(conf, FL_COMPONENT_AGGREGATE), err, "%s",
                            fl_err_text(&why, rv));
    }
    return rv;
}

/* The data of the server fits its network, its rule and its program. */
static int check_evaluation(const struct fl_server_conf *conf, struct fl_err *err)
{
    struct fl_evaluator *evaluator = NULL;
    struct fl_aggregation_program *program = NULL;
    struct fl_root *root = NULL;
    int rv = fl_preflight_program(conf, NULL, &program, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_preflight_root(conf, &root, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_preflight_evaluation(conf, root, NULL, &evaluator, err);
    fl_evaluator_free(evaluator);
    fl_root_free(root);
    return rv;
}

int fl_preflight_connections(const struct fl_server_conf *conf, uint64_t descriptors, uint64_t *ret,
                             char *fewer, size_t size, struct fl_err *err)
{
    uint64_t wanted = (uint64_t)conf->limits->clients;
    uint64_t start = (uint64_t)conf->round->start_clients;
    uint64_t least = (uint64_t)conf->round->min_clients;
    const int64_t *field = start > least ? &conf->round->start_clients : &conf->round->min_clients;
    uint64_t http = conf->http->listen.n > 0 ? FL_HTTP_DESCRIPTORS : 0;
    int rv = fl_serverd_connections(descriptors > http ? descriptors - http : 0, wanted,
                                    start > least ? start : least, ret, err);

    fewer[0] = '\0';
    if (rv != FL_OK) {
        return fl_conf_blame(conf->file, field, rv, err);
    }
    if (*ret < wanted) {
        (void)snprintf(fewer, size,
                       "%llu descriptors allow %llu connections, limits.clients allows %llu: raise "
                       "the hard limit of open files for more",
                       (unsigned long long)descriptors, (unsigned long long)*ret,
                       (unsigned long long)wanted);
    }
    return FL_OK;
}

int fl_preflight(const struct fl_serverd_conf *own, struct fl_preflight_report *report,
                 int *ret_exit, struct fl_err *err)
{
    char text[FL_ERR_BUF_SIZE] = "";
    uint64_t connections;
    int rv;

    fl_server_conf_odd(own->conf, &report->notes);
    rv = fl_preflight_places(own, report, ret_exit, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = preflight_add_error(report, FL_EXIT_STATE, ret_exit, fl_store_check(own->state_dir, err),
                             err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_preflight_connections(own->conf, fl_descriptors_most(), &connections, text,
                                  sizeof(text), err);
    rv = preflight_add_error(report, FL_EXIT_FAILURE, ret_exit, rv, err);
    if (text[0] != '\0') {
        fl_findings_note(&report->notes, "%s: %s", own->path, text);
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_auth_check(&(struct fl_auth_setup){.conf = own->conf, .state_dir = own->state_dir},
                       text, sizeof(text), err);
    rv = preflight_add_error(report, FL_EXIT_IDENTITY, ret_exit, rv, err);
    if (text[0] != '\0') {
        fl_findings_note(&report->notes, "%s: %s", own->path, text);
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_evaluation(own->conf, err);
    rv = preflight_add_error(report, FL_EXIT_DATA, ret_exit, rv, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_findings_first(&report->errors, err);
}
