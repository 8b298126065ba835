#ifndef FL_CLIENT_CONF_H
#define FL_CLIENT_CONF_H

/*
 * What is configured of a client: a YAML file, read through option tables. Whether its server can
 * be reached so is the daemon's to check (client/daemon/conf.h).
 *
 * Ownership: everything belongs to the struct; free with fl_client_conf_free().
 */

#include "libfl/base/log.h"
#include "libfl/conf/sections.h"
#include "libfl/data/dataset.h"

enum fl_client_trainer { FL_TRAINER_BUILTIN, FL_TRAINER_COMMAND };

/* What the keys mean, their ranges and defaults stand in the tables (fl-clientd --reference). */
struct fl_client_main {
    const char *server, *name, *state_dir;
    bool insecure, insecure_remote, exit_when_done, offers;
    enum fl_client_trainer trainer;
    struct fl_opt_map labels;
    enum fl_log_level log_level;
    int64_t seed;
};

struct fl_client_data {
    const char *path; /* "": none */
    double validation;
    enum fl_data_augment augment;
};

struct fl_client_command {
    struct fl_opt_texts program;
    uint64_t time_limit_ms, first_limit_ms, patience_least_ms;
    bool time_limit_given, first_limit_given;
    double patience;
    uint64_t memory_limit;
    int64_t samples;
};

struct fl_client_reconnect {
    uint64_t first_ms, longest_ms, after_refusal_ms, when_done_ms, connect_timeout_ms;
};

struct fl_client_conf {
    struct fl_conf_file *file; /* owns what the next four point to */
    const struct fl_client_main *main;
    const struct fl_client_data *data;
    const struct fl_client_command *command;
    const struct fl_client_reconnect *reconnect;
};

/* The words for an enum fl_client_trainer. */
extern const char *const fl_client_trainers[];

FL_MUST_CHECK int fl_client_conf_load(const char *path, struct fl_client_conf **ret,
                                      struct fl_err *err);
void fl_client_conf_free(struct fl_client_conf *conf);
FL_MUST_CHECK int fl_client_conf_reference(struct fl_buf *out);

#endif
