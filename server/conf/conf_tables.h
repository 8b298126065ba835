#ifndef FL_SERVER_CONF_TABLES_H
#define FL_SERVER_CONF_TABLES_H

/* The YAML file of fl-serverd: one struct per section, and the option table that binds it.
   Meaning, range and default of each key are in the tables (fl-serverd --reference). */

#include "libfl/base/log_out.h"
#include "libfl/conf/options.h"
#include "server/store/store.h"

enum fl_when_finished { FL_FINISHED_STAY, FL_FINISHED_EXIT };

/* Most entries of proxy_protocol_from. */
#define FL_SERVER_BALANCERS 64

struct fl_server_main {
    const char *federation;
    const char *state_dir; /* as written in the file */
    struct fl_opt_texts listen;
    struct fl_opt_texts listen_insecure; /* plaintext, regardless of `insecure` */
    struct fl_opt_texts listen_admin;
    struct fl_opt_texts proxy_protocol_from; /* addresses and ranges, at most FL_SERVER_BALANCERS */
    bool insecure, insecure_remote;
    const char *admin_socket;                /* "": the default */
    const char *admin_group, *admin_viewers; /* "": the default; none */
    enum fl_log_level log_level;
    enum fl_log_format log_format;
    enum fl_durability durability;
    int64_t seed, rounds;
    enum fl_when_finished when_finished;
    uint64_t heartbeat_ms;
    int instructions; /* of fl_kernels_names */
};

struct fl_server_model {
    const char *preset, *file; /* "": none */
    struct fl_opt_ints input;
    struct fl_opt_texts layers;
    int loss;                  /* of fl__loss_choices; 0: cross_entropy */
    struct fl_opt_texts units; /* patterns (libfl/model/units.h) */
    enum { FL_NORM_SHARED, FL_NORM_LOCAL } norm;
    struct fl_opt_texts local; /* globs */
};

struct fl_server_training {
    int64_t epochs, steps, batch_size;
    bool epochs_given;
    double learning_rate, learning_rate_decay, momentum, weight_decay, client_momentum;
    int64_t learning_rate_every, learning_rate_warmup, learning_rate_rounds;
    double learning_rate_end;
};

struct fl_server_round {
    int64_t population, start_clients, min_clients, min_responders;
    int64_t quarantine_after, quarantine_window;
    uint64_t quarantine_time_ms;
    bool min_responders_given;
    double over_selection, straggler_factor, norm_bound, weight_cap, norm_cap, norm_clip;
    double share_cap;
    enum { FL_OVER_STOP, FL_OVER_GRACE } over_selected;
    uint64_t forget_after_ms, train_deadline_ms, straggler_min_ms, upload_deadline_ms;
    uint64_t straggler_rate_per_s; /* 0: none */
    uint64_t lost_grace_ms, retry_ms;
    bool backfill;
};

/* Which clients are selected, and when. */
struct fl_server_eligible {
    struct fl_opt_map labels;
    struct fl_opt_texts hours; /* fl_hours_read() */
    const char *utc_offset;    /* fl_utc_offset_read() */
};

struct fl_server_evaluation {
    int64_t every;
    const char *data; /* "": none */
    bool clients;
    uint64_t deadline_ms;
    struct fl_opt_texts metrics; /* names of enum fl_net_metric */
    struct fl_opt_texts command; /* n 0: none */
    uint64_t command_limit_ms, command_start_limit_ms, command_memory;
};

/* Programs of the operator that run after an event (server/core/hook_events.h). */
struct fl_server_hooks {
    struct fl_opt_texts round_committed, paused, finished, client_quarantined; /* n 0: none */
    struct fl_opt_texts certificate_expiring;
    uint64_t limit_ms, memory;
};

struct fl_server_checkpoints {
    int64_t keep, keep_best, every;
    uint64_t keep_for_ms;
};

struct fl_server_limits {
    int64_t clients, client_connections, known_clients, streams;
    uint64_t header_bytes, upload_memory, memory, peer_memory, summary, connection_window;
    uint64_t handshake_ms, idle_ms;
    uint64_t ping_after_ms, ping_limit_ms; /* ping_after_ms 0: never */
    double summary_range;
};

/* TLS with the operator's own PKI: the server's certificate and the roots it trusts. */
struct fl_server_tls {
    const char *certificate, *key; /* "": the certificate of the federation's own authority */
    struct fl_opt_texts ca, crl, names;
};

/* The federation's own authority (docs/security.md). */
struct fl_server_identity {
    struct fl_opt_texts hosts;
    const char *root_key; /* "": in the state folder */
    uint64_t root_validity_ms, intermediate_validity_ms, validity_ms;
    uint64_t grace_ms, invitation_validity_ms, back_date_ms;
};

/* Flags of rows and sections: settings that the state folder stores (fl_server_conf_settings()),
   and settings that only a daemon has. */
enum {
    /* A change is logged. Paths and limits are not: they change no result. */
    FL_SERVER_FIGURE = FL_OPT_OWNERS,
    /* The learning rate of clients: part of the meaning of an update when the solver scales
       updates by it. */
    FL_SERVER_RATE = FL_OPT_OWNERS << 1,
    /* Addresses, access and limits: ignored by a simulation. */
    FL_SERVER_DAEMON = FL_OPT_OWNERS << 2,
    /* Required by a daemon; a simulation has a default of its own, which this replaces. */
    FL_SERVER_NEEDED = FL_OPT_OWNERS << 3
};

extern const struct fl_opt_spec fl_server_main_specs[];
extern const struct fl_opt_spec fl_server_model_specs[];
extern const struct fl_opt_spec fl_server_training_specs[];
extern const struct fl_opt_spec fl_server_round_specs[];
extern const struct fl_opt_spec fl_server_eligible_specs[];
extern const struct fl_opt_spec fl_server_evaluation_specs[];
extern const struct fl_opt_spec fl_server_checkpoint_specs[];
extern const struct fl_opt_spec fl_server_limit_specs[];
extern const struct fl_opt_spec fl_server_hook_specs[];
extern const struct fl_opt_spec fl_server_tls_specs[];
extern const struct fl_opt_spec fl_server_identity_specs[];

#endif
