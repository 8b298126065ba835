#ifndef FL_CLIENT_CONF_H
#define FL_CLIENT_CONF_H

/*
 * The configuration of a client: a YAML file, read through option tables. Whether the server's
 * address may be used in this way is checked by the daemon (client/daemon/clientd_conf.h).
 *
 * Ownership: everything belongs to the struct; free with fl_client_conf_free().
 */

#include "libfl/base/findings.h"
#include "libfl/base/log_out.h"
#include "libfl/conf/http_options.h"
#include "libfl/conf/sections.h"
#include "libfl/data/dataset.h"
#include "libfl/num/kernels.h"
#include "libfl/program/program.h"

enum fl_client_trainer { FL_TRAINER_BUILTIN, FL_TRAINER_COMMAND };

/* Most addresses in `server`. */
#define FL_CLIENT_SERVERS 16

/* The meaning of the keys, their ranges and defaults are in the tables (fl-clientd --reference). */
struct fl_client_main {
    struct fl_opt_texts server; /* 1 to FL_CLIENT_SERVERS addresses, in the order of trying */
    const char *name;           /* "": that of the certificate */
    const char *state_dir;
    const char *proxy; /* "": that of the environment */
    const char *proxy_credentials;
    bool insecure, insecure_remote, exit_when_done, summaries;
    int64_t least_group;
    enum fl_client_trainer trainer;
    struct fl_opt_map labels;
    struct fl_opt_texts accept; /* of "labels", "schedule", "limits" */
    enum fl_log_level log_level;
    enum fl_log_format log_format;
    int64_t seed;
    int instructions; /* of fl_kernels_names */
};

/* "" and no CRL: the files that fl-clientd --join put into the state folder. */
struct fl_client_tls {
    const char *certificate, *key, *ca;
    struct fl_opt_texts crl;
    const char *server_name;
};

struct fl_client_data {
    const char *path; /* "": none */
    double validation;
    enum fl_data_augment augment;
    enum fl_client_data_reload { FL_RELOAD_BEFORE_TASK, FL_RELOAD_NEVER } reload;
};

struct fl_client_command {
    struct fl_opt_texts program;
    uint64_t time_limit_ms, first_limit_ms, straggler_min_ms;
    bool time_limit_given, first_limit_given;
    double straggler_factor;
    uint64_t memory_limit;
    enum fl_program_memory memory_of;
    int64_t samples;
    bool samples_given;
    bool persistent; /* started once, and sent one task after the other */
    uint64_t start_limit_ms, cancel_grace_ms, idle_exit_ms;
    struct fl_opt_map environment;
};

struct fl_client_reconnect {
    uint64_t first_ms, longest_ms, after_refusal_ms, when_done_ms, connect_timeout_ms;
    uint64_t ping_after_ms, ping_limit_ms; /* ping_after_ms 0: never */
};

/* Rates of payload: bytes of DATA frames per second; 0: no limit. */
struct fl_client_limits {
    uint64_t upload_rate_per_s, download_rate_per_s;
    int64_t least_samples, least_steps, rounds_per_day; /* rounds_per_day 0: no limit */
    uint64_t largest_model;                             /* 0: no limit */
};

/* When the device is available (client/core/device_policy.h). */
struct fl_client_when {
    struct fl_opt_texts hours;
    double load_below; /* 0: any */
    bool mains, unmetered;
    uint64_t free_memory, free_disk; /* 0: any */
    enum fl_client_when_outside { FL_WHEN_STAY, FL_WHEN_DISCONNECT } outside;
    uint64_t check_ms;
    const char *system_root; /* "": / */
};

struct fl_client_conf {
    struct fl_conf_file *file; /* owns what the next seven point to */
    const struct fl_client_main *main;
    const struct fl_client_tls *tls;
    const struct fl_client_data *data;
    const struct fl_client_command *command;
    const struct fl_client_reconnect *reconnect;
    const struct fl_client_limits *limits;
    const struct fl_http_conf *http;
    const struct fl_client_when *when;
    const struct fl_kernels *kernels; /* those of main->instructions */
};

/* Flags of rows and sections. */
enum {
    /* Keys about connections and about running programs, which a simulation ignores. */
    FL_CLIENT_DAEMON = FL_OPT_OWNERS
};

/* The names of enum fl_client_trainer. */
extern const char *const fl_client_trainers[];

/*
 * Read and check the file. `all` (findings.h; may be NULL) collects the errors, and a configuration
 * that can be checked further is returned with FL_OK nevertheless: fl_findings_first() says whether
 * it may be used. NULL: the first error is returned.
 */
FL_MUST_CHECK int fl_client_conf_load(const char *path, struct fl_findings *all,
                                      struct fl_client_conf **ret, struct fl_err *err);
/*
 * Read the same keys from a mapping of another document, which has to outlive `*ret`; `map` NULL:
 * none given. Keys of the daemon only (FL_CLIENT_DAEMON) are optional, and the needs of the trainer
 * are not checked.
 */
FL_MUST_CHECK int fl_client_conf_read(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                                      struct fl_client_conf **ret, struct fl_err *err);
/* Is `key` a key or a section ("reconnect.first", "reconnect") of the daemon only? */
bool fl_client_conf_is_daemons(const char *key);
/*
 * Append the keys of the daemon only that the file sets: "client.reconnect, client.name".
 * FL_ENOMEM, FL_ELIMIT.
 */
FL_MUST_CHECK int fl_client_conf_daemons(const struct fl_client_conf *conf, struct fl_buf *out);
/* Time limit of a first run of the program, while its run times are unknown, in ms; 0: none. */
uint64_t fl_client_conf_first_limit(const struct fl_client_command *command);
/* command.environment as a list of "NAME=value", for fl_str_list_free(); NULL: out of memory. */
char **fl_client_conf_environment(const struct fl_client_command *command);
void fl_client_conf_free(struct fl_client_conf *conf);
FL_MUST_CHECK int fl_client_conf_reference(struct fl_buf *out);

#endif
