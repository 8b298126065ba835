#include "server/conf/conf_impl.h"

#include <stdlib.h>
#include <string.h>

/* A round must be able to begin with the connections that are allowed. */
static int check_clients(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_round *r = conf->round;
    bool start = r->start_clients > conf->limits->clients;
    long long needs = (long long)(start ? r->start_clients : r->min_clients);

    if (needs > conf->limits->clients) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->limits->clients), err,
                             "expected at least round.%s, %lld, found %lld",
                             start ? "start_clients" : "min_clients", needs,
                             (long long)conf->limits->clients);
    }
    return FL_OK;
}

static int check_training(const struct fl_server_conf *conf, struct fl_err *err)
{
    if (conf->training->epochs == 0 && conf->training->steps == 0) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->training->epochs), err,
                             "expected epochs or steps above 0");
    }
    if (conf->evaluation->data[0] != '\0' && conf->net.n_layers == 0 &&
        conf->evaluation->command.n == 0)
    {
        return fl_conf_error(fl_conf_field(conf->file, &conf->evaluation->data), err,
                             "the built-in engine can evaluate only networks given as preset or "
                             "layers, not a model from a file: have a program do it "
                             "(evaluation.command)");
    }
    return FL_OK;
}

static int check_evaluation(const struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_opt_texts *command = &conf->evaluation->command;
    size_t i;

    if (command->n > 0 && command->list[0][0] == '\0') {
        return fl_conf_error(fl_conf_field(conf->file, command), err,
                             "expected a program and its arguments, found an empty name");
    }
    for (i = 0; i < command->n; i++) {
        if (strstr(command->list[i], "{task}") != NULL) {
            return fl_conf_error(fl_conf_field(conf->file, command), err,
                                 "a program that stays has no task file for '{task}': it is told "
                                 "its tasks (docs/trainer-protocol.md)");
        }
    }
    return FL_OK;
}

static int check_rate(const struct fl_server_conf *conf, struct fl_err *err)
{
    struct fl_err why = {0};
    int rv = fl_strategy_check_training(conf->strategy, conf->training->learning_rate,
                                        conf->training->momentum, &why);

    return rv == FL_OK ? FL_OK
                       : fl_conf_error(fl_conf_field(conf->file, &conf->training->learning_rate),
                                       err, "%s", why.msg);
}

/* `daemon`: what only a daemon has, too. */
static int check(const struct fl_server_conf *conf, bool daemon, struct fl_err *err)
{
    const char *name = conf->main->federation;
    int rv;

    if (daemon && !fl_name_valid(name)) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->main->federation), err,
                             "expected 1 to %d characters of A-Z a-z 0-9 . _ -, found '%s'",
                             FL_NAME_MAX - 1, name);
    }
    rv = check_training(conf, err);
    rv = rv == FL_OK ? check_evaluation(conf, err) : rv;
    rv = rv == FL_OK && daemon ? check_clients(conf, err) : rv;
    return rv == FL_OK ? check_rate(conf, err) : rv;
}

static int load_strategy(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_conf_doc *doc = fl_conf_file_doc(conf->file);
    const struct fl_conf_node *map = fl_conf_file_map(conf->file);

    return fl_strategy_load(doc, fl_conf_get(map, "algorithm"), fl_conf_get(map, "strategy"),
                            &conf->strategy, err);
}

/* Into the network: what it is made of does not depend on who computes it. */
static int choose_kernels(struct fl_server_conf *conf, struct fl_err *err)
{
    const int *instructions = &conf->main->instructions;
    struct fl_err why = {0};
    int rv = fl_kernels_named(fl_kernels_names[*instructions], &conf->net.kernels, &why);

    return rv == FL_OK ? FL_OK
                       : fl_conf_error(fl_conf_field(conf->file, instructions), err, "%s", why.msg);
}

/* Of the sections that are read into `conf`; takes it. */
static int finish(struct fl_server_conf *conf, bool daemon, struct fl_server_conf **ret,
                  struct fl_err *err)
{
    int rv = load_strategy(conf, err);

    rv = rv == FL_OK ? fl__server_conf_model(conf, err) : rv;
    rv = rv == FL_OK ? choose_kernels(conf, err) : rv;
    rv = rv == FL_OK ? check(conf, daemon, err) : rv;
    if (rv != FL_OK) {
        fl_server_conf_free(conf);
        return rv;
    }
    *ret = conf;
    return FL_OK;
}

/* Keys of the root that are no section's. */
static const char *const others[] = {"algorithm", "strategy", NULL};

int fl_server_conf_load(const char *path, struct fl_server_conf **ret, struct fl_err *err)
{
    struct fl_server_conf *conf = calloc(1, sizeof(*conf));
    int rv = conf != NULL ? fl_conf_read(path, fl__server_sections, others, conf, &conf->file, err)
                          : FL_ENOMEM;

    if (rv != FL_OK) {
        fl_server_conf_free(conf);
        return rv;
    }
    return finish(conf, /* daemon= */ true, ret, err);
}

int fl_server_conf_read(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                        struct fl_server_conf **ret, struct fl_err *err)
{
    struct fl_server_conf *conf = calloc(1, sizeof(*conf));
    int rv = conf != NULL ? fl_conf_read_map(doc, map, fl__server_sections, others,
                                             FL_SERVER_DAEMON, conf, &conf->file, err)
                          : FL_ENOMEM;

    if (rv != FL_OK) {
        fl_server_conf_free(conf);
        return rv;
    }
    return finish(conf, /* daemon= */ false, ret, err);
}

bool fl_server_conf_is_daemons(const char *key)
{
    return (fl_conf_key_flags(fl__server_sections, key) & (unsigned)FL_SERVER_DAEMON) != 0;
}

void fl_server_conf_free(struct fl_server_conf *conf)
{
    if (conf == NULL) {
        return;
    }
    fl_strategy_free(conf->strategy);
    fl_layout_free(conf->layout);
    fl_conf_file_free(conf->file);
    free(conf);
}

void fl_server_conf_coord(const struct fl_server_conf *conf, struct fl_coord_conf *ret)
{
    const struct fl_server_round *r = conf->round;

    *ret = (struct fl_coord_conf){
        .seed = (uint64_t)conf->main->seed,
        .rounds = (uint64_t)conf->main->rounds,
        .population = (uint32_t)r->population,
        .start_clients = (uint32_t)r->start_clients,
        .min_clients = (uint32_t)r->min_clients,
        .min_responders =
            r->min_responders_given ? (uint32_t)r->min_responders : FL_RESPONDERS_HALF,
        .patience = r->patience,
        .patience_least_ms = r->patience_least_ms,
        .over_selection = r->over_selection,
        .train_ms = r->train_deadline_ms,
        .upload_ms = r->upload_deadline_ms,
        .lost_grace_ms = r->lost_grace_ms,
        .evaluate_ms = conf->evaluation->deadline_ms,
        .restart_ms = FL_RESTART_MS,
        .retry_ms = r->retry_ms,
        .evaluate_every = (uint32_t)conf->evaluation->every,
        .evaluate_server = conf->evaluation->data[0] != '\0' || conf->evaluation->command.n > 0,
        .evaluate_clients = conf->evaluation->clients,
        .forget_after_ms = r->forget_after_ms,
        .max_clients = (uint32_t)conf->limits->known_clients,
        .learning_rate = conf->training->learning_rate,
        .learning_rate_decay = conf->training->learning_rate_decay,
        .backfill = r->backfill,
        .strategy = conf->strategy,
        .layout = conf->layout,
    };
}
