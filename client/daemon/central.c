/*
 * Central settings of this client (central.h): the copy on disk, what is in force, and the log. On
 * the loop. What is accepted is decided by client/core/central_rules.c; when they are carried out
 * by clientd_session.c.
 */
#include "client/daemon/central.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/saved_file.h"
#include "client/store/central_file.h"

struct fl_central_settings {
    const struct fl_client_conf *conf;
    const struct fl_log *log;
    struct fl_availability *availability;
    struct fl_device_limits *limits;       /* in force */
    struct fl_pair own[FL_WIRE_MAX_PAIRS]; /* borrowed from `conf` */
    size_t n_own;
    struct fl_wire_central now; /* owned */
    struct fl_saved_file file;  /* of them */
    struct fl_central_rules rules;
    bool waiting;
    struct fl_wire_central next; /* owned; received */
};

FL_PRINTF(3, 4)
static void central_line_add(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(out + used, size - used, fmt, ap);
    va_end(ap);
}

const char *fl_central_line(const struct fl_central_settings *c, char out[FL_CENTRAL_LINE])
{
    size_t i;

    out[0] = '\0';
    for (i = 0; c->rules.labels && i < c->now.n_labels; i++) {
        central_line_add(out, FL_CENTRAL_LINE, "%s%s=%s",
                         i == 0 ? "set by the server: labels " : ", ", c->now.labels[i].key,
                         c->now.labels[i].value);
    }
    for (i = 0; c->rules.n_hours > 0 && i < c->now.n_hours; i++) {
        central_line_add(out, FL_CENTRAL_LINE, "%s%s",
                         i > 0            ? ", "
                         : out[0] != '\0' ? "; hours "
                                          : "set by the server: hours ",
                         c->now.hours[i]);
    }
    for (i = 0; c->rules.limited && i < c->now.n_limits; i++) {
        central_line_add(out, FL_CENTRAL_LINE, "%s%s=%s",
                         i > 0            ? ", "
                         : out[0] != '\0' ? "; limits "
                                          : "set by the server: limits ",
                         c->now.limits[i].key, c->now.limits[i].value);
    }
    return fl_str_clean(out);
}

static struct fl_central_accept central_accept(const struct fl_client_conf *conf)
{
    struct fl_central_accept accept = {.labels = false};
    size_t i;

    for (i = 0; i < conf->main->accept.n; i++) { /* client_conf.c checked the words. */
        accept.labels = accept.labels || strcmp(conf->main->accept.list[i], "labels") == 0;
        accept.schedule = accept.schedule || strcmp(conf->main->accept.list[i], "schedule") == 0;
        accept.limits = accept.limits || strcmp(conf->main->accept.list[i], "limits") == 0;
    }
    return accept;
}

static struct fl_device_limits central_own_limits(const struct fl_client_conf *conf)
{
    return (struct fl_device_limits){.upload_rate = conf->limits->upload_rate_per_s,
                                     .download_rate = conf->limits->download_rate_per_s,
                                     .rounds_per_day = (uint64_t)conf->limits->rounds_per_day};
}

static void central_decide(struct fl_central_settings *c)
{
    const struct fl_central_accept accept = central_accept(c->conf);
    const struct fl_device_limits own = central_own_limits(c->conf);
    const struct fl_central_limits limits = {FL_WIRE_MAX_PAIRS, FL_WIRE_LABELS_BYTES};
    const struct fl_central_given given = {.labels = c->now.labels,
                                           .n_labels = c->now.n_labels,
                                           .hours = c->now.hours,
                                           .n_hours = c->now.n_hours,
                                           .limits = c->now.limits,
                                           .n_limits = c->now.n_limits};

    fl_central_decide(&given, &accept, c->own, c->n_own, &limits, &c->rules);
    fl_availability_set_central(c->availability, c->rules.hours, c->rules.n_hours);
    *c->limits = fl_device_limits_both(&own, &c->rules.limits);
}

static void central_log(const struct fl_central_settings *c, const char *before)
{
    char line[FL_CENTRAL_LINE];

    if (fl_central_line(c, line)[0] != '\0') {
        fl_log(c->log, FL_LOG_NOTICE, "client", "central settings %s: %s", before, line);
    } else if (c->rules.refused[0] == '\0' && c->now.revision == 0) {
        fl_log(c->log, FL_LOG_NOTICE, "client",
               "central settings %s: none, the configuration of this client alone holds", before);
    }
    if (c->rules.refused[0] != '\0') {
        fl_log(c->log, FL_LOG_WARNING, "client",
               "central settings of the server not accepted: %s; to accept them, name them in "
               "'accept' (%s) and restart",
               c->rules.refused, "labels, schedule, limits");
    }
}

/* --- disk --- */

static int central_read(struct fl_central_settings *c, struct fl_buf *buf, struct fl_err *err)
{
    int rv = fl_central_file_load(c->conf->main->state_dir, buf, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_wire_central_decode(buf->data, buf->len, &c->now, err);
}

static void central_load(struct fl_central_settings *c)
{
    struct fl_err err = {0};
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    rv = central_read(c, &buf, &err);
    fl_buf_done(&buf);
    if (rv == FL_ENOENT) {
        return;
    }
    if (rv != FL_OK) {
        fl_log(c->log, FL_LOG_WARNING, "client",
               "the stored central settings cannot be read, the server sends them again: %s",
               fl_err_text(&err, rv));
        return;
    }
    central_decide(c);
    central_log(c, "from before the start");
}

static void central_written(void *ctx, int rv, const struct fl_err *err)
{
    const struct fl_central_settings *c = ctx;

    if (rv != FL_OK) {
        fl_log(c->log, FL_LOG_WARNING, "client",
               "the central settings are in force, but not stored: after a restart those before "
               "hold until the server is reached: %s",
               fl_err_text(err, rv));
    }
}

static void central_save(struct fl_central_settings *c)
{
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    rv = fl_wire_central_encode(&c->now, &buf);
    if (rv != FL_OK) {
        central_written(c, rv, &(struct fl_err){0});
        goto done;
    }
    fl_saved_file_set(&c->file, buf.data, buf.len);
done:
    fl_buf_done(&buf);
}

/* --- life --- */

int fl_central_open(const struct fl_client_conf *conf, const struct fl_jobs *jobs,
                    struct fl_availability *availability, struct fl_device_limits *limits,
                    struct fl_central_settings **ret)
{
    struct fl_central_settings *c = calloc(1, sizeof(*c));
    const struct fl_opt_map *labels = &conf->main->labels;

    if (c == NULL) {
        return FL_ENOMEM;
    }
    c->conf = conf;
    c->log = jobs->log;
    c->file = (struct fl_saved_file){.jobs = jobs,
                                     .state_dir = conf->main->state_dir,
                                     .write = fl_central_file_save,
                                     .written = central_written,
                                     .ctx = c};
    c->availability = availability;
    c->limits = limits;
    *limits = central_own_limits(conf);
    for (; c->n_own < labels->n && c->n_own < FL_WIRE_MAX_PAIRS; c->n_own++) {
        c->own[c->n_own].key = fl_wire_lend(labels->list[c->n_own].key);
        c->own[c->n_own].value = fl_wire_lend(labels->list[c->n_own].value);
    }
    central_load(c);
    *ret = c;
    return FL_OK;
}

void fl_central_close(struct fl_central_settings *c)
{
    if (c != NULL) {
        fl_saved_file_end(&c->file);
        fl_wire_central_done(&c->now);
        fl_wire_central_done(&c->next);
        free(c);
    }
}

void fl_central_receive(struct fl_central_settings *c, struct fl_wire_central *settings)
{
    fl_wire_central_done(&c->next);
    c->next = *settings;
    *settings = (struct fl_wire_central){0};
    c->waiting = true;
}

bool fl_central_waiting(const struct fl_central_settings *c)
{
    return c->waiting;
}

void fl_central_apply(struct fl_central_settings *c)
{
    if (!c->waiting) {
        return;
    }
    fl_wire_central_done(&c->now);
    c->now = c->next;
    c->next = (struct fl_wire_central){0};
    c->waiting = false;
    central_save(c);
    central_decide(c);
    central_log(c, "changed by an operator of the server");
}

void fl_central_describe(const struct fl_central_settings *c, struct fl_pair *labels,
                         struct fl_wire_hello *hello)
{
    hello->labels = labels;
    hello->n_labels = fl_central_merge(c->own, c->n_own, c->now.labels,
                                       c->rules.labels ? c->now.n_labels : 0, labels);
    hello->takes_central = true;
    hello->central_revision = c->now.revision;
    hello->central_refused = fl_wire_lend(c->rules.refused);
}
