/*
 * The report for the owner of the device (client/http/client_report.h): keeps the history of tasks
 * and its file, and copies what the daemon knows. Runs on the loop.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/clientd_impl.h"
#include "client/daemon/processor_time.h"
#include "client/store/task_log.h"
#include "libfl/base/clock.h"

/* --- the history --- */

/* On the training thread. */
static int history_write(const char *state_dir, const void *data, size_t n, struct fl_err *err)
{
    FL_REQUIRE(n == sizeof(struct fl_task_history));
    return fl_task_log_save(state_dir, data, err);
}

static void history_written(void *ctx, int rv, const struct fl_err *err)
{
    struct fl_clientd *cli = ctx;

    if (rv != FL_OK && cli->history_kept) {
        fl_log(cli->log, FL_LOG_WARNING, "client",
               "cannot save the history of tasks, it ends with this process: %s",
               fl_err_text(err, rv));
    }
    cli->history_kept = rv == FL_OK;
}

void fl__clientd_history_load(struct fl_clientd *cli)
{
    const char *dir = cli->conf->main->state_dir;
    struct fl_err err = {0};
    int rv = fl_task_log_load(dir, &cli->history, &err);

    cli->history_file = (struct fl_saved_file){.jobs = &cli->jobs,
                                               .state_dir = dir,
                                               .write = history_write,
                                               .written = history_written,
                                               .ctx = cli};
    cli->history_kept = true;
    cli->started_ms = fl_clock_wall_ms();
    if (rv != FL_OK && rv != FL_ENOENT) {
        fl_log(cli->log, FL_LOG_WARNING, "client",
               "the history of tasks for the owner of this device begins again: %s",
               fl_err_text(&err, rv));
    }
}

void fl__clientd_history_save(struct fl_clientd *cli)
{
    fl_saved_file_set(&cli->history_file, &cli->history, sizeof(cli->history));
}

/* Reading the time of running programs takes a file for each process: at work's ends only. */
static bool history_measures(const struct fl_clientd *cli, const struct fl_session_event *event)
{
    return cli->conf->main->trainer == FL_TRAINER_COMMAND && event->type != FL_CEV_TICK &&
           event->type != FL_CEV_HEARTBEAT && event->type != FL_CEV_RETRY;
}

void fl__clientd_history_event(struct fl_clientd *cli, const struct fl_session_event *event)
{
    struct fl_task_meter meter = {.wall_ms = fl_clock_wall_ms(),
                                  .bytes_up = atomic_load(&cli->traffic.out),
                                  .bytes_down = atomic_load(&cli->traffic.in)};

    if (event->type == FL_CEV_TICK || event->type == FL_CEV_HEARTBEAT) {
        meter.cpu_ms = cli->history.seen.cpu_ms;
    } else {
        meter.cpu_ms = fl_processor_time_ms(history_measures(cli, event));
    }
    if (event->type == FL_CEV_WELCOME && cli->worker.setup != NULL) {
        (void)snprintf(cli->history.federation, sizeof(cli->history.federation), "%s",
                       cli->worker.setup->welcome.federation);
        cli->history.model_layers = (uint32_t)fl_layout_units(cli->worker.setup->layout);
    }
    if (fl_task_history_event(&cli->history,
                              fl_session_state(fl_session_shell_session(cli->jobs.shell)), event,
                              &meter))
    {
        fl__clientd_history_save(cli);
    }
}

/* --- limits in words --- */

FL_PRINTF(4, 5)
static void limit_add(struct fl_owner_facts *f, const char *key, const char *what, const char *fmt,
                      ...)
{
    struct fl_owner_limit *limit = &f->limits[f->n_limits];
    va_list ap;

    FL_REQUIRE(f->n_limits < FL_OWNER_LIMITS);
    limit->key = key;
    limit->what = what;
    va_start(ap, fmt);
    (void)vsnprintf(limit->value, sizeof(limit->value), fmt, ap);
    va_end(ap);
    (void)fl_str_clean(limit->value);
    f->n_limits++;
}

static void limit_bytes(struct fl_owner_facts *f, const char *key, const char *what, uint64_t bytes,
                        const char *per)
{
    char text[32];

    if (bytes == 0) {
        limit_add(f, key, what, "no limit");
    } else {
        limit_add(f, key, what, "%s%s", fl_str_bytes(text, sizeof(text), bytes), per);
    }
}

static void limits_of_tasks(struct fl_owner_facts *f, const struct fl_clientd *cli)
{
    const struct fl_device_limits *force = &cli->limits;
    const struct fl_client_conf *conf = cli->conf;
    const struct fl_client_limits *l = conf->limits;

    limit_bytes(f, "limits.upload_rate", "rate of sending results", force->upload_rate,
                " a second");
    limit_bytes(f, "limits.download_rate", "rate of receiving models", force->download_rate,
                " a second");
    if (force->rounds_per_day > 0) {
        limit_add(f, "limits.rounds_per_day", "rounds a day", "%" PRIu64, force->rounds_per_day);
    } else {
        limit_add(f, "limits.rounds_per_day", "rounds a day", "no limit");
    }
    limit_add(f, "limits.least_samples", "training samples behind a result", "%" PRId64 " or more",
              l->least_samples);
    limit_add(f, "limits.least_steps", "steps of a training", "%" PRId64 " or more",
              l->least_steps);
    limit_bytes(f, "limits.largest_model", "largest model", l->largest_model, "");
    limit_add(f, "summaries", "summaries of the data", "%s",
              conf->main->summaries ? "may be sent" : "are never sent");
}

static void limits_of_device(struct fl_owner_facts *f, const struct fl_client_when *when)
{
    char hours[sizeof(f->limits[0].value)] = "";
    size_t used;
    size_t i;

    for (i = 0; i < when->hours.n; i++) {
        used = strlen(hours);
        (void)snprintf(hours + used, sizeof(hours) - used, "%s%s", i > 0 ? ", " : "",
                       when->hours.list[i]);
    }
    limit_add(f, "when.hours", "hours in which it takes part", "%s",
              hours[0] != '\0' ? hours : "all");
    if (when->load_below > 0) {
        limit_add(f, "when.load_below", "only while the load is", "below %g for each processor",
                  when->load_below);
    }
    if (when->mains) {
        limit_add(f, "when.mains", "power", "only on mains power");
    }
    if (when->unmetered) {
        limit_add(f, "when.unmetered", "network", "only an unmetered one");
    }
    if (when->free_memory > 0) {
        limit_bytes(f, "when.free_memory", "only while memory is available of", when->free_memory,
                    "");
    }
    if (when->free_disk > 0) {
        limit_bytes(f, "when.free_disk", "only while disk space is free of", when->free_disk, "");
    }
    if (f->n_limits > 8) {
        limit_add(f, "when.outside", "while a rule does not hold", "%s",
                  when->outside == FL_WHEN_STAY ? "stays connected, gets no tasks" : "disconnects");
    }
}

/* --- the copy --- */

static void facts_text(char out[FL_OWNER_WHY], const char *text)
{
    (void)fl_str_ends(out, FL_OWNER_WHY, text);
    (void)fl_str_clean(out);
}

static void facts_trainer(const struct fl_clientd *cli, struct fl_owner_facts *ret)
{
    if (cli->data.trainer_counts && !cli->starting.ready) {
        ret->trainer_starts = true;
        if (cli->starting.failures > 0) {
            facts_text(ret->trainer,
                       cli->starting.why[0] != '\0' ? cli->starting.why : "see the log");
        }
    }
}

static void facts_certificate(const struct fl_clientd *cli, struct fl_owner_facts *ret)
{
    struct fl_cert_info info = {.not_after = 0};

    if (cli->credentials != NULL) {
        fl_chain_info(fl_credentials_identity(cli->credentials)->chain, 0, &info);
    }
    ret->certificate_begin_ms = info.not_before > 0 ? 1000 * (uint64_t)info.not_before : 0;
    ret->certificate_ms = info.not_after > 0 ? 1000 * (uint64_t)info.not_after : 0;
    ret->certificate_renews = cli->conf->tls->certificate[0] == '\0';
}

void fl__clientd_describe(void *ctx, struct fl_owner_facts *ret)
{
    const struct fl_clientd *cli = ctx;
    char line[FL_CENTRAL_LINE];

    *ret = (struct fl_owner_facts){
        .state = fl_session_state(fl_session_shell_session(cli->jobs.shell)),
        .now_ms = fl_clock_wall_ms(),
        .started_ms = cli->started_ms,
        .samples = cli->data.samples,
        .least_group = cli->conf->main->summaries ? (uint64_t)cli->conf->main->least_group : 0,
        .kept = cli->history_kept,
        .history = cli->history};
    (void)snprintf(ret->client, sizeof(ret->client), "%s", fl__clientd_name(cli));
    facts_text(ret->server, fl_connection_server(cli->connection));
    if (fl_availability_announced(cli->availability)) {
        facts_text(ret->unavailable, fl_availability_why(cli->availability));
    }
    facts_text(ret->data_trouble, cli->data_trouble);
    facts_trainer(cli, ret);
    facts_certificate(cli, ret);
    limits_of_tasks(ret, cli);
    limits_of_device(ret, cli->conf->when);
    if (fl_central_line(cli->central, line)[0] != '\0') {
        limit_add(ret, "accept", "an operator of the server", "%s", line);
    }
}

void fl__clientd_status(void *ctx, char *out, size_t size)
{
    const struct fl_clientd *cli = ctx;
    struct fl_owner_facts *facts = calloc(1, sizeof(*facts));
    struct fl_owner_report report;
    char line[FL_CENTRAL_LINE];
    size_t used;

    if (facts == NULL) {
        (void)snprintf(out, size, "out of memory");
        return;
    }
    fl__clientd_describe(ctx, facts);
    fl_owner_report(facts, &report);
    (void)fl_str_ends(out, size, report.now);
    if (fl_central_line(cli->central, line)[0] != '\0') {
        used = strlen(out);
        (void)snprintf(out + used, size - used, " %s", line);
    }
    free(facts);
}
