/*
 * Central settings of clients: carries out `flctl clients label`, `clients schedule` and `clients
 * limit`, stores the settings on the db thread, sends them to connected clients, and takes their
 * answers from Hello. Coordinator thread. What a change makes of the settings is in
 * central_settings.c; whether a client carries them out is decided by the client.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/runtime/runtime_impl.h"

struct central_job {
    struct fl_runtime *runtime;
    struct fl_admin_request *request; /* NULL: a client is forgotten */
    char name[FL_NAME_MAX];
    struct fl_buf settings; /* encoded; empty: none */
    int code;
    struct fl_err err;
};

/* --- to the client --- */

static enum fl_central_reach central_reach(const struct fl_runtime *runtime, uint32_t client)
{
    const struct fl_label_set *set = fl_labels_find(&runtime->labels, client);

    return client == UINT32_MAX || !fl_coord_connected(runtime->coord, client)
               ? FL_CENTRAL_DISCONNECTED
           : set != NULL && set->takes_central ? FL_CENTRAL_CONNECTED
                                               : FL_CENTRAL_UNAWARE;
}

const char *fl_runtime_central_text(const struct fl_runtime *runtime, const char *name,
                                    char out[FL_CENTRAL_TEXT])
{
    return fl_central_text(fl_central_find(&runtime->central, name),
                           central_reach(runtime, fl_coord_find(runtime->coord, name)), out);
}

/* A copy, owned by the caller. */
static int central_copy(const struct fl_wire_central *from, struct fl_wire_central *ret)
{
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    rv = fl_wire_central_encode(from, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_wire_central_decode(buf.data, buf.len, ret, NULL);
done:
    fl_buf_done(&buf);
    return rv;
}

static void central_send(struct fl_runtime *runtime, uint32_t client, const char *name)
{
    const struct fl_central_entry *entry = fl_central_find(&runtime->central, name);
    struct fl_net_msg *down = fl_net_msg_new(runtime, FL_NET_MSG_COMMAND);

    down->client = client;
    down->command.type = FL_WIRE_CENTRAL;
    if (entry != NULL && central_copy(&entry->settings, &down->command.u.central) != FL_OK) {
        fl_serverd_no_memory(runtime->setup.log, "the central settings of a client");
    }
    fl_runtime_down(runtime, down);
}

static void central_refused(struct fl_runtime *runtime, uint32_t client,
                            const struct fl_central_entry *entry)
{
    struct fl_effect e = {.type = FL_EFF_CLIENT_ERROR, .client = client};
    char text[FL_CENTRAL_REFUSED + 64];

    fl_log_peer(runtime->setup.log, FL_LOG_WARNING, "server", entry->name,
                "client '%s' does not accept its central settings: %s", entry->name,
                entry->refused);
    (void)snprintf(text, sizeof(text), "central settings not accepted: %s", entry->refused);
    e.text = text;
    fl_runtime_client_error(runtime, &e);
}

void fl_runtime_central_hello(struct fl_runtime *runtime, uint32_t client,
                              const struct fl_wire_hello *hello)
{
    struct fl_central_entry *entry = fl_central_find(&runtime->central, hello->client);
    uint64_t wanted = entry != NULL ? entry->settings.revision : 0;
    char refused[FL_CENTRAL_REFUSED] = "";

    if (!hello->takes_central) {
        return;
    }
    if (hello->central_revision != wanted) {
        central_send(runtime, client, hello->client);
        return;
    }
    if (entry == NULL) {
        return;
    }
    if (hello->central_refused != NULL) {
        (void)snprintf(refused, sizeof(refused), "%s", hello->central_refused);
        (void)fl_str_clean(refused);
    }
    if (entry->answered == wanted && strcmp(entry->refused, refused) == 0) {
        return;
    }
    entry->answered = wanted;
    (void)memcpy(entry->refused, refused, sizeof(refused));
    if (refused[0] != '\0') {
        central_refused(runtime, client, entry);
    } else {
        fl_log_peer(runtime->setup.log, FL_LOG_INFO, "server", entry->name,
                    "client '%s' carries out its central settings", entry->name);
    }
}

/* --- changes --- */

static void central_work(void *arg)
{
    struct central_job *job = arg;

    job->code = fl_store_put_central(job->runtime->federation.store, job->name, job->settings.data,
                                     job->settings.len, &job->err);
}

static void central_answer(struct central_job *job)
{
    struct fl_runtime *runtime = job->runtime;
    struct fl_admin_request *r = job->request;
    uint32_t client = fl_coord_find(runtime->coord, job->name);
    char text[FL_CENTRAL_TEXT];
    char line[FL_CENTRAL_TEXT];

    if (central_reach(runtime, client) == FL_CENTRAL_CONNECTED) {
        central_send(runtime, client, job->name);
    }
    r->code = job->code;
    if (r->code != FL_OK) {
        r->code = fl_err_set(&r->err, FL_EIO,
                             "set, but not on disk yet: %.300s; a crash now would lose it: free "
                             "some space, and repeat the command",
                             fl_err_text(&job->err, job->code));
    } else {
        const struct fl_wire_controlled reply = {
            .phase = fl_wire_lend(fl_phase_name(fl_coord_phase(runtime->coord))),
            .text = line,
            .round = fl_coord_round(runtime->coord)};

        (void)fl_runtime_central_text(runtime, job->name, text);
        (void)snprintf(line, sizeof(line), "client '%.*s': %.800s", FL_NAME_MAX, job->name,
                       text[0] != '\0' ? text : "no central settings");
        fl_log(runtime->setup.log, FL_LOG_NOTICE, "server", "operator command: %s", line);
        FL_ADMIN_REPLY(r, fl_wire_controlled_encode, &reply);
    }
    fl_runtime_answer(runtime, r);
}

static void central_done(void *arg)
{
    struct central_job *job = arg;

    if (job->request != NULL && job->request->verb == FL_VERB_CLIENTS_FORGET) {
        fl_runtime_forgot(job->runtime, job->request,
                          job->code != FL_OK ? fl_err_text(&job->err, job->code) : NULL);
    } else if (job->request != NULL) {
        central_answer(job);
    } else if (job->code != FL_OK) {
        fl_log(job->runtime->setup.log, FL_LOG_WARNING, "server",
               "the central settings of client '%s' are not removed from the disk: %s", job->name,
               fl_err_text(&job->err, job->code));
    }
    fl_buf_done(&job->settings);
    free(job);
}

/* Takes `settings`. The change is in memory already. */
static void central_store(struct fl_runtime *runtime, struct fl_admin_request *request,
                          const char *name, const struct fl_buf *settings)
{
    struct central_job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        fl_serverd_no_memory(runtime->setup.log, "the central settings of a client");
    }
    job->runtime = runtime;
    job->request = request;
    job->settings = *settings;
    (void)snprintf(job->name, sizeof(job->name), "%s", name);
    if (fl_worker_thread_submit(runtime->setup.db, central_work, runtime->loop, central_done,
                                job) != FL_OK)
    {
        fl_serverd_no_memory(runtime->setup.log, "the central settings of a client");
    }
}

static int central_apply(struct fl_runtime *runtime, const char *name, const struct fl_buf *buf)
{
    struct fl_wire_central settings = {0};
    int rv;

    if (buf->len == 0) {
        fl_central_drop(&runtime->central, name);
        return FL_OK;
    }
    rv = fl_wire_central_decode(buf->data, buf->len, &settings, NULL);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_central_put(&runtime->central, name, &settings);
    fl_wire_central_done(&settings);
    return rv;
}

static int central_changed_to(const struct fl_runtime *runtime, struct fl_admin_request *request,
                              struct fl_buf *out)
{
    const struct fl_central *c = &runtime->central;
    uint64_t wall_ms = fl_clock_wall_ms();

    switch (request->verb) {
    case FL_VERB_CLIENTS_LABEL:
        return fl_central_label(c, &request->label, wall_ms, out, &request->err);
    case FL_VERB_CLIENTS_SCHEDULE:
        return fl_central_schedule(c, &request->schedule, wall_ms, out, &request->err);
    default:
        return fl_central_limit(c, &request->limit, wall_ms, out, &request->err);
    }
}

static void central_change(struct fl_runtime *runtime, struct fl_admin_request *request,
                           const char *name)
{
    struct fl_buf buf;

    if (fl_coord_find(runtime->coord, name) == UINT32_MAX &&
        fl_central_find(&runtime->central, name) == NULL)
    {
        request->code = fl_err_set(&request->err, FL_ENOENT, "no client '%s' is known", name);
        fl_runtime_answer(runtime, request);
        return;
    }
    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    request->code = central_changed_to(runtime, request, &buf);
    if (request->code == FL_OK) {
        request->code = central_apply(runtime, name, &buf);
    }
    if (request->code != FL_OK) {
        fl_buf_done(&buf);
        fl_runtime_answer(runtime, request);
        return;
    }
    central_store(runtime, request, name, &buf);
}

void fl_runtime_on_label(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    central_change(runtime, request, request->label.client);
}

void fl_runtime_on_schedule(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    central_change(runtime, request, request->schedule.client);
}

void fl_runtime_on_limit(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    central_change(runtime, request, request->limit.client);
}

bool fl_runtime_forget_central(struct fl_runtime *runtime, const char *name,
                               struct fl_admin_request *request)
{
    struct fl_buf none;

    if (fl_central_find(&runtime->central, name) == NULL) {
        return false;
    }
    fl_central_drop(&runtime->central, name);
    fl_buf_init(&none, 1);
    central_store(runtime, request, name, &none);
    return true;
}

/* --- start --- */

static int central_loaded(void *ctx, const char *name, const void *data, size_t len)
{
    struct fl_runtime *runtime = ctx;
    struct fl_wire_central settings = {0};
    int rv = fl_wire_central_decode(data, len, &settings, NULL);

    if (rv != FL_OK) {
        return rv == FL_ENOMEM ? rv : FL_EFORMAT;
    }
    rv = fl_central_put(&runtime->central, name, &settings);
    fl_wire_central_done(&settings);
    return rv;
}

int fl_runtime_load_central(struct fl_runtime *runtime, struct fl_err *err)
{
    return fl_store_central(runtime->federation.store, central_loaded, runtime, err);
}
