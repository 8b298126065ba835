#ifndef FL_CLIENTD_CLIENT_IMPL_H
#define FL_CLIENTD_CLIENT_IMPL_H

/*
 * Private to the daemon's main part: clientd.c creates and frees, clientd_session.c has the
 * operations of the session, owner_facts.c what the owner of the device is told.
 */

#include "client/daemon/availability.h"
#include "client/daemon/central.h"
#include "client/daemon/clientd_reload.h"
#include "client/daemon/commands.h"
#include "client/daemon/credentials.h"
#include "client/daemon/data_watch.h"
#include "client/daemon/delivery.h"
#include "client/daemon/idle_trainer.h"
#include "client/daemon/saved_file.h"
#include "client/daemon/status_socket.h"
#include "client/daemon/trainer_start.h"
#include "client/http/client_http.h"
#include "libfl/net/systemd_status.h"

struct fl_clientd {
    const struct fl_client_conf *conf;
    const struct fl_log *log;
    struct fl_client_reload reload;
    struct fl_status *status; /* for systemd */
    int lock_fd;
    int exit_code;
    uint64_t heartbeats;          /* sent so far */
    struct fl_client_shown shown; /* its counters; of the loop */
    struct fl_traffic traffic;    /* of all connections to the server */
    struct fl_client_http *http;  /* NULL: no HTTP port */

    struct fl_task_history history; /* for the owner of the device */
    struct fl_saved_file history_file;
    bool history_kept;               /* its file could be written */
    uint64_t started_ms;             /* since 1970 */
    char data_trouble[FL_OWNER_WHY]; /* why the data cannot be trained on; "": it can */
    struct fl_status_socket *status_socket;

    struct fl_jobs jobs;    /* the loop, the training thread and the session */
    struct fl_timer *timer; /* of the session */
    struct fl_local_data data;
    struct fl_data_watch watch; /* of `data` */
    struct fl_worker worker;
    struct fl_pending_result pending;
    struct fl_wanted wanted;
    struct fl_client_credentials *credentials; /* NULL: plaintext */
    struct fl_proxy_rule proxy;
    struct fl_connection *connection;
    struct fl_renewal *renewal;
    struct fl_availability *availability;
    struct fl_central_settings *central;
    struct fl_device_limits limits; /* in force: of the configuration and of the server */
    struct fl_timer *central_timer; /* they wait to be carried out */

    struct fl_trainings trainings;
    struct fl_evaluations evaluations;
    struct fl_summary_upload summary_upload;
    struct fl_downloads downloads;
    struct fl_deliveries deliveries;
    struct fl_join_job joining;
    struct fl_commands commands;
    struct fl_resting resting;
    struct fl_trainer_starting starting; /* of a persistent trainer */
};

/*
 * The configured name or, without one, that of the certificate; credentials.c checks that the two
 * are equal when both exist.
 */
const char *fl__clientd_name(const struct fl_clientd *cli);

/* The operations of the session; the context is a struct fl_clientd. */
extern const struct fl_session_ops fl__clientd_ops;
/* Fills in a copy of what the HTTP port shows; the context is a struct fl_clientd. */
void fl__clientd_shown(void *ctx, struct fl_client_shown *ret);
/* Likewise what its owner is told. */
void fl__clientd_describe(void *ctx, struct fl_owner_facts *ret);
/* Writes the sentence of that for systemd. */
void fl__clientd_status(void *ctx, char *out, size_t size);
/* The history of tasks: read its file, follow an event of the session, have it written. */
void fl__clientd_history_load(struct fl_clientd *cli);
void fl__clientd_history_event(struct fl_clientd *cli, const struct fl_session_event *event);
void fl__clientd_history_save(struct fl_clientd *cli);
/* The callback of `availability`. */
void fl__clientd_on_availability(void *arg);
/* The callback of `central_timer`. */
void fl__clientd_on_central(void *arg);
/* The callback of `timer`. */
void fl__clientd_on_timer(void *arg);
/* The session does nothing more; call it before the loop is freed. It may be called again. */
void fl__clientd_stop_session(struct fl_clientd *cli);
/* The same, and the loop ends. */
void fl__clientd_stop(struct fl_clientd *cli);

#endif
