#ifndef FL_SERVER_RUNTIME_RUNTIME_IMPL_H
#define FL_SERVER_RUNTIME_RUNTIME_IMPL_H

/* Private to the files of the coordinator runtime. */

#include <stdatomic.h>

#include "libfl/base/fs.h"
#include "libfl/net/systemd_status.h"
#include "server/admin/admin_request.h"
#include "server/http/coord_figures.h"
#include "server/network/no_memory.h"
#include "server/runtime/central_settings.h"
#include "server/runtime/client_errors.h"
#include "server/runtime/labels.h"
#include "server/runtime/runtime.h"
#include "server/runtime/stall.h"
#include "server/runtime/takeovers.h"
#include "server/shell/coord_shell.h"
#include "server/store/store_files.h"
#include "server/work/summary_work.h"

/* Operator commands in the order of arrival; the core has the first. */
struct fl_runtime_commands {
    struct fl_admin_request *first, *last;
};

/* Of the state folder: free space and the last backup; see runtime_disk.c. */
struct fl_runtime_disk {
    const char *path;
    struct fl_fs_room space; /* the newest that is known; size 0: not known */
    uint64_t backup_ms;      /* the last backup; 0: none */
    struct fl_fs_room fresh; /* both of the db thread while it measures */
    uint64_t fresh_backup_ms;
    bool measuring;
    uint64_t measured_ms; /* begin of the last measurement */
};

/* Clients whose labels are to be stored; see runtime_labels.c. */
struct fl_label_queue {
    uint32_t *clients; /* [n] */
    size_t n, cap;
    bool busy;
    uint64_t not_before_ms; /* fl_clock_ms() */
};

struct fl_runtime {
    struct fl_runtime_setup setup;
    struct fl_loop *loop;
    struct fl_thread *thread;
    struct fl_timer *timer;
    struct fl_coord *coord;
    int lock_fd;
    struct fl_coord_conf coord_conf;
    struct fl_coord_resume resume;

    struct fl_federation federation; /* its store is used by the db thread only, after the start */
    struct fl_progress progress;
    struct fl_coord_shell shell;
    const struct fl_coord_msg *joining; /* the message that the current step handles */

    atomic_bool cancel; /* cancels a running evaluation or training */

    struct fl_errors errors;
    struct fl_labels labels;
    struct fl_label_queue label_queue;
    struct fl_central central;
    struct fl_takeovers takeovers;
    char newest_error[FL_NAME_MAX]; /* name of its client; "": none since the last commit */
    size_t n_error_jobs;
    uint64_t errors_check_ms;             /* time of the next search for old errors */
    struct fl_admin_request **forgetting; /* [n_forgetting] by client number: waits for FORGOTTEN */
    size_t n_forgetting;
    struct fl_runtime_commands commands;
    struct fl_coord_figures figures; /* the counters of it */
    enum fl_phase phase;             /* at the end of the last step */
    uint64_t phase_at_ms;            /* since when, fl_clock_ms(); and by the wall clock */
    uint64_t phase_since_ms;
    bool attempt_open;
    struct fl_status *status;     /* for systemd; updated after each step */
    struct fl_timer *stall_timer; /* checks for a disk stall */
    struct fl_stall_clock clock;
    bool stall_reported;
    uint64_t stall_ms;                 /* duration of the reported stall, at the last check */
    char own_failure[FL_ERR_BUF_SIZE]; /* failure of the server itself; "": it succeeded since */
    bool finished;
    struct fl_runtime_disk disk;
};

/* runtime_send.c */
/* Send a message to the network; takes `down`. */
void fl_runtime_down(struct fl_runtime *runtime, struct fl_net_msg *down);
/* Messages are never dropped: out of memory these functions do not return. */
struct fl_net_msg *fl_net_msg_new(struct fl_runtime *runtime, enum fl_net_msg_type type);
void *fl_net_msg_copy(const struct fl_runtime *runtime, const void *data,
                      size_t len);                                         /* NULL: NULL */
char *fl_net_msg_text(const struct fl_runtime *runtime, const char *text); /* NULL: NULL */
/* The answer is complete. */
void fl_runtime_answer(struct fl_runtime *runtime, struct fl_admin_request *request);
/* One deletion that `request` waits for is durable; else `why`. */
void fl_runtime_forgot(struct fl_runtime *runtime, struct fl_admin_request *request,
                       const char *why);

/* runtime_errors.c */
void fl_runtime_client_error(void *ctx, const struct fl_effect *e);
/* A session of this client ended an older one: "from ADDRESS to ADDRESS". */
void fl_runtime_takeover(struct fl_runtime *runtime, uint32_t client, const char *text);
/* Append the clients whose sessions take over from each other to the text of `why`. */
void fl_runtime_problem_takeovers(const struct fl_runtime *runtime, struct fl_problem *ret);
/* Clients that cannot take part, with what they reported. */
void fl_runtime_problem_unfit(const struct fl_runtime *runtime, struct fl_problem *ret);
void fl_runtime_add_takeovers(const struct fl_runtime *runtime, char *text, size_t size);
/*
 * Drop the errors of these names. Takes `list`. `request` (or NULL) gets fl_runtime_forgot() when
 * that is durable.
 */
void fl_runtime_drop_errors(struct fl_runtime *runtime, struct fl_client_error *list, size_t n,
                            struct fl_admin_request *request);
/* From time to time: drops errors of names without a record at the age at which clients expire. */
void fl_runtime_age_errors(struct fl_runtime *runtime);
/* Append the newest error of this round to the text of what the round waits for. */
void fl_runtime_add_error(const struct fl_runtime *runtime, char *text, size_t size);
FL_MUST_CHECK int fl_runtime_load_errors(struct fl_runtime *runtime, struct fl_err *err);

/* runtime_labels.c: the labels that clients announce. */
void fl_runtime_label_hello(struct fl_runtime *runtime, uint32_t client,
                            const struct fl_wire_hello *hello);
/* PERSIST_SELECTION: some clients get their record. */
void fl_runtime_label_selected(struct fl_runtime *runtime, const struct fl_effect *e);
/* After a step: stores what is queued. */
void fl_runtime_write_labels(struct fl_runtime *runtime);
/* `*ret_ineligible`, [resume.n_clients], owned: as fl_coord_resume.ineligible. */
FL_MUST_CHECK int fl_runtime_load_labels(struct fl_runtime *runtime, bool **ret_ineligible,
                                         struct fl_err *err);

/* runtime_central.c: what operators set for clients. */
void fl_runtime_central_hello(struct fl_runtime *runtime, uint32_t client,
                              const struct fl_wire_hello *hello);
const char *fl_runtime_central_text(const struct fl_runtime *runtime, const char *name,
                                    char out[FL_CENTRAL_TEXT]);
/* False: there are none. True: deleted; `request`, or NULL, waits as for fl_runtime_forgot(). */
bool fl_runtime_forget_central(struct fl_runtime *runtime, const char *name,
                               struct fl_admin_request *request);
FL_MUST_CHECK int fl_runtime_load_central(struct fl_runtime *runtime, struct fl_err *err);

/* runtime_payloads.c: the payloads that clients may fetch in a round. */
/* The aggregated model of the open round, which clients are asked to evaluate. */
void fl_runtime_publish_candidate(struct fl_runtime *runtime, uint64_t round);
void fl_runtime_round_open(void *ctx, const struct fl_effect *effect);
void fl_runtime_round_payloads_closed(struct fl_runtime *runtime, uint64_t round);

/* runtime_summaries.c: data summaries. */
/* Takes the summary in up->summary. */
void fl_runtime_summary(struct fl_runtime *runtime, struct fl_coord_msg *up);
/*
 * Remove the data summary of a forgotten client. `request`, or NULL, waits for it as for
 * fl_runtime_forgot(). With or without a record: a client that was never selected has a summary and
 * no record.
 */
void fl_runtime_forget_summary(struct fl_runtime *runtime, const char *name,
                               struct fl_admin_request *request);
/* runtime_jobs.c: operations of the shell about jobs. `ctx` is the runtime. */
FL_MUST_CHECK int fl_runtime_submit(void *ctx, struct fl_coord_job *job);
void fl_runtime_unsubmitted(void *ctx, uint64_t seq);
void fl_runtime_result(void *ctx, const struct fl_coord_job *job);
void fl_runtime_work_failed(void *ctx, int code, const char *reason);

/* runtime_admin.c: carries out a verb, by its row. */
void fl_runtime_admin(struct fl_runtime *runtime, struct fl_admin_request *request);
/*
 * What carries out the verbs of libfl/wire/verbs.h: fl_runtime_on_handler() answers the request on
 * the coordinator thread, at once or later; fl_runtime_db_handler() sets its code and replies on
 * the db thread, and the coordinator answers it then.
 */
#define FL__HANDLER_ON_CORE(handler)
#define FL__HANDLER_ON_COORDINATOR(handler) \
    void fl_runtime_on_##handler(struct fl_runtime *runtime, struct fl_admin_request *request);
#define FL__HANDLER_ON_DB(handler) void fl_runtime_db_##handler(void *arg);
#define FL__HANDLER_ON_IDENTITY(handler)
#define FL__HANDLER_OF(id, name, method, access, audit, thread, handler, ...) \
    FL__HANDLER_ON_##thread(handler)
FL_VERBS(FL__HANDLER_OF)

/* runtime_forget.c: clients that an operator forgets. */
/*
 * The client's upload for the open round is not aggregated; `keeps` says which of its other data
 * remains.
 */
void fl_runtime_exclude(struct fl_runtime *runtime, const char *name, enum fl_revoked_keeps keeps);
/* FORGOTTEN: answers the requests that waited for this client last. */
void fl_runtime_forgotten(void *ctx, const struct fl_effect *e);
/* Shutdown: answers the waiting requests. */
void fl_runtime_forget_done(struct fl_runtime *runtime);

/* runtime_command.c: verbs that are events of the core. */
void fl_runtime_on_command(struct fl_runtime *runtime, struct fl_admin_request *request);
/* ANSWER: to the first of them. */
void fl_runtime_command_answered(void *ctx, const struct fl_effect *e);
/* Shutdown: answers the waiting commands. */
void fl_runtime_command_done(struct fl_runtime *runtime);

/* runtime_stall.c: disk stalls. */
FL_MUST_CHECK int fl_runtime_stall_create(struct fl_runtime *runtime);
/* The coordinator's time: fl_clock_ms() minus the duration of disk stalls. */
uint64_t fl_runtime_now(struct fl_runtime *runtime);

/* runtime_disk.c */
/* Measure on the calling thread, before the worker threads run. */
void fl_runtime_disk_init(struct fl_runtime *runtime);
/* Measure on the db thread when it is due. */
void fl_runtime_disk_look(struct fl_runtime *runtime);

/* runtime_hooks.c: pass an event that has a hook to the daemon. */
void fl_runtime_hook_traced(struct fl_runtime *runtime, const struct fl_effect *e,
                            const char *client);
void fl_runtime_hook_committed(struct fl_runtime *runtime, const struct fl_round_rec *r);
void fl_runtime_hook_finished(struct fl_runtime *runtime);

/* runtime_figures.c: what the HTTP port shows. */
void fl_runtime_figures_init(struct fl_runtime *runtime);
/* Operations of the shell; `ctx` is the runtime. */
void fl_runtime_stepped(void *ctx, const struct fl_event *event, const struct fl_effects *effects);
/* After a step: counts the time in the phase before. */
void fl_runtime_phase(struct fl_runtime *runtime);
/* A job of the coordinator ended. */
void fl_runtime_worked(struct fl_runtime *runtime, const struct fl_coord_job *job);
/* Fill in a copy of the figures. */
void fl_runtime_fill_figures(const struct fl_runtime *runtime, struct fl_coord_figures *ret);
/* Add to the event log; `client` NULL: about none. */
void fl_runtime_event(struct fl_runtime *runtime, enum fl_event_kind kind, bool warning,
                      const char *client, const char *text);

/* runtime_problems.c: what is wrong, in the same words wherever it is shown. */
/* All problems there are (problems.h). */
void fl_runtime_problems(const struct fl_runtime *runtime, struct fl_problems *ret);
/* The text of `why`, also part of `status`. As fl_coord_why(). */
size_t fl_runtime_why(struct fl_runtime *runtime, char *text, size_t size, const char **missing,
                      size_t max);

/* runtime_status.c */
FL_MUST_CHECK int fl_runtime_status_create(struct fl_runtime *runtime);
/* The server's own work failed, and is retried; NULL: it succeeded. */
void fl_runtime_own_failure(struct fl_runtime *runtime, const char *reason);

/* recover.c: open the state folder; `*ret_no_model` as of fl_runtime_create(). */
FL_MUST_CHECK int fl_runtime_recover(struct fl_runtime *runtime, bool *ret_no_model,
                                     struct fl_err *err);

#endif
