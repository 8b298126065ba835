/*
 * Answers to flctl that need the coordinator's state: status, why, rounds, clients, checkpoints,
 * export, pin, rollback. Runs on the coordinator thread; reads of the database and checkpoints run
 * on the db thread. The answers are sent by admin_service.c.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/writer.h"
#include "libfl/model/safetensors.h"
#include "server/auth/auth.h"
#include "server/runtime/runtime_impl.h"
#include "server/store/store_rollback.h"
#include "server/work/checkpoints.h"
#include "server/work/rollback.h"

/* Most names that `why` lists; the rest is only counted. */
#define FL_WHY_MAX 64

void fl_runtime_on_status(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    const struct fl_server_conf *conf = runtime->setup.conf;
    bool done = runtime->coord_conf.rounds != 0 &&
                fl_coord_committed(runtime->coord) >= runtime->coord_conf.rounds;
    char text[FL_WIRE_MAX_TEXT];
    struct fl_wire_status s = {
        .federation = fl_wire_lend(conf->main->federation),
        .phase = fl_wire_lend(fl_phase_name(fl_coord_phase(runtime->coord))),
        .algorithm = fl_wire_lend(conf->strategy->algorithm),
        .version = fl_wire_lend(PACKAGE_VERSION),
        .round = done ? fl_coord_committed(runtime->coord) : fl_coord_round(runtime->coord),
        .rounds_committed = fl_coord_committed(runtime->coord),
        .rounds_total = runtime->coord_conf.rounds,
        .clients_known = (uint32_t)fl_coord_n_known(runtime->coord),
        .clients_connected = (uint32_t)fl_coord_n_connected(runtime->coord),
        .uptime_ms = fl_clock_ms() - runtime->setup.started_ms,
        .totals = runtime->progress.totals,
        .why = text,
        .failed_attempts = fl_coord_aborts(runtime->coord),
        .disk_free_bytes = runtime->disk.space.free,
        .disk_bytes = runtime->disk.space.size,
    };
    uint64_t ends[2];

    fl_auth_ends(runtime->setup.watch->auth, ends);
    s.certificate_ends_ms = ends[0];
    (void)fl_runtime_why(runtime, text, sizeof(text), NULL, 0);
    FL_ADMIN_REPLY(request, fl_wire_status_encode, &s);
    fl_runtime_answer(runtime, request);
}

void fl_runtime_on_why(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    const char *missing[FL_WHY_MAX];
    char *names[FL_WHY_MAX];
    char text[FL_WIRE_MAX_TEXT];
    struct fl_wire_why w = {.text = text, .missing = names};
    size_t i;

    w.n_missing = fl_runtime_why(runtime, text, sizeof(text), missing, FL_WHY_MAX);
    for (i = 0; i < w.n_missing; i++) {
        names[i] = fl_wire_lend(missing[i]);
    }
    FL_ADMIN_REPLY(request, fl_wire_why_encode, &w);
    fl_runtime_answer(runtime, request);
}

static const char *admin_state(const struct fl_runtime *runtime, uint32_t number,
                               const struct fl_client_rec *c)
{
    const struct fl_participant_rec *part = fl_coord_part(runtime->coord, number);

    return c->quarantine[0] != '\0'                      ? "quarantined"
           : part != NULL                                ? fl_part_state_name(part->state)
           : !fl_coord_available(runtime->coord, number) ? "unavailable"
                                                         : "idle";
}

static void admin_add_client(struct fl_runtime *runtime, struct fl_admin_request *request,
                             uint32_t number, const struct fl_client_rec *c)
{
    const struct fl_client_error *error = fl_errors_find(&runtime->errors, c->name);
    const struct fl_label_set *labels = fl_labels_find(&runtime->labels, number);
    char ineligible[2 * FL_ELIGIBLE_TEXT];
    char central[FL_CENTRAL_TEXT];
    struct fl_wire_client w = {
        .name = fl_wire_lend(c->name),
        .agent = fl_wire_lend(c->agent),
        .state = fl_wire_lend(admin_state(runtime, number, c)),
        .connected = fl_coord_connected(runtime->coord, number),
        .figures = fl_client_rec_figures(c),
        .last_error = fl_wire_lend(error != NULL ? error->text : ""),
        .last_error_ms = error != NULL ? error->at_ms : 0,
        .takeovers = fl_takeovers_of(&runtime->takeovers, number),
        .quarantine = fl_wire_lend(c->quarantine),
        .quarantined_ms = c->quarantined_ms,
    };

    w.figures.score = fl_coord_score(runtime->coord, number);
    if (labels != NULL) {
        w.labels = (struct fl_pair *)(uintptr_t)labels->pairs;
        w.n_labels = labels->n;
    }
    w.ineligible = fl_wire_lend(fl_coord_ineligible(runtime->coord, number, w.labels, w.n_labels,
                                                    ineligible, sizeof(ineligible)));
    w.central = fl_wire_lend(fl_runtime_central_text(runtime, c->name, central));
    FL_ADMIN_REPLY(request, fl_wire_client_encode, &w);
}

/* A client that was never selected has no record when it disconnects; its error is still listed. */
static void add_error(struct fl_admin_request *request, const struct fl_client_error *error)
{
    struct fl_wire_client w = {.name = fl_wire_lend(error->name),
                               .agent = fl_wire_lend(""),
                               .state = fl_wire_lend("gone"),
                               .figures = {.last_seen_ms = error->at_ms},
                               .last_error = fl_wire_lend(error->text),
                               .last_error_ms = error->at_ms,
                               .quarantine = fl_wire_lend(""),
                               .ineligible = fl_wire_lend(""),
                               .central = fl_wire_lend("")};

    FL_ADMIN_REPLY(request, fl_wire_client_encode, &w);
}

/* One client by its name, also one of which only the last error is left. */
static void admin_find_client(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    const char *name = request->page.name;
    uint32_t number = fl_coord_find(runtime->coord, name);
    const struct fl_client_error *error = fl_errors_find(&runtime->errors, name);

    if (number != UINT32_MAX) {
        admin_add_client(runtime, request, number, fl_coord_client(runtime->coord, number));
    } else if (error != NULL) {
        add_error(request, error);
    } else {
        request->code = fl_err_set(&request->err, FL_ENOENT, "no client '%s' is known", name);
    }
}

/* Clients that a page may look at, so that a filter that few fit costs no long step. */
#define ADMIN_LOOK_MAX 1024

static void admin_page_clients(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    struct fl_admin_page *page = &request->page;
    uint32_t numbers[ADMIN_LOOK_MAX];
    size_t n = fl_coord_after_name(runtime->coord, page->after, numbers, ADMIN_LOOK_MAX);
    uint32_t found = 0;
    size_t i;

    for (i = 0; i < n && found < page->most && request->code == FL_OK; i++) {
        const struct fl_client_rec *c = fl_coord_client(runtime->coord, numbers[i]);

        if (c == NULL) {
            continue;
        }
        (void)snprintf(page->last, sizeof(page->last), "%s", c->name);
        if (page->state == NULL ||
            (strcmp(page->state, "connected") == 0 ? fl_coord_connected(runtime->coord, numbers[i])
             : strcmp(page->state, "disconnected") == 0
                 ? !fl_coord_connected(runtime->coord, numbers[i])
                 : strcmp(page->state, admin_state(runtime, numbers[i], c)) == 0))
        {
            found++;
            admin_add_client(runtime, request, numbers[i], c);
        }
    }
    page->more = i < n || n == ADMIN_LOOK_MAX;
}

static void admin_all_clients(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    const struct fl_errors *errors = &runtime->errors;
    size_t n = fl_coord_numbers(runtime->coord);
    bool *known = calloc(errors->n + 1, sizeof(*known));
    uint32_t i;

    request->code = known != NULL ? FL_OK : FL_ENOMEM;
    for (i = 0; i < n && request->code == FL_OK; i++) {
        const struct fl_client_rec *c = fl_coord_client(runtime->coord, i);
        const struct fl_client_error *error = c != NULL ? fl_errors_find(errors, c->name) : NULL;

        if (error != NULL) {
            known[error - errors->list] = true;
        }
        if (c != NULL) {
            admin_add_client(runtime, request, i, c);
        }
    }
    for (i = 0; i < errors->n && request->code == FL_OK; i++) {
        if (!known[i]) {
            add_error(request, &errors->list[i]);
        }
    }
    free(known);
}

void fl_runtime_on_clients(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    if (request->page.name[0] != '\0') {
        admin_find_client(runtime, request);
    } else if (request->page.most > 0) {
        admin_page_clients(runtime, request);
    } else {
        admin_all_clients(runtime, request);
    }
    fl_runtime_answer(runtime, request);
}

/* One line of bounded length: "strategy.solver: 'sgd' -> 'scaffold'". */
static int add_change(void *ctx, const struct fl_change_rec *c)
{
    struct fl_wire_round *w = ctx;
    char line[FL_WIRE_MAX_TEXT / 2];

    if (w->n_changes == FL_WIRE_MAX_CHANGES) {
        return FL_OK;
    }
    (void)snprintf(line, sizeof(line), "%.100s '%.180s' -> '%.180s'", c->name, c->before, c->after);
    w->changes[w->n_changes] = fl_str_dup(line);
    if (w->changes[w->n_changes] == NULL) {
        return FL_ENOMEM;
    }
    w->n_changes++;
    return FL_OK;
}

static int admin_add_round(void *ctx, const struct fl_round_rec *r)
{
    struct fl_admin_request *request = ctx;
    struct fl_wire_round w = {.figures = *r};
    char *changes[FL_WIRE_MAX_CHANGES];
    size_t i;

    w.changes = changes;
    w.robust_clients = fl_wire_lend(r->robust_clients);
    w.metrics = fl_wire_lend(r->metrics);
    request->code = fl_store_changes(request->runtime->federation.store, r->round, r->round,
                                     add_change, &w, &request->err);
    if (request->code == FL_OK) {
        FL_ADMIN_REPLY(request, fl_wire_round_encode, &w);
    }
    for (i = 0; i < w.n_changes; i++) {
        free(changes[i]);
    }
    return request->code;
}

static int add_abandoned(void *ctx, const struct fl_abandoned_round *r)
{
    struct fl_admin_request *request = ctx;
    struct fl_wire_round w = {.figures = r->round};

    w.generation = r->generation;
    w.abandoned_ms = r->at_ms;
    w.abandoned_by = fl_wire_lend(r->by);
    w.robust_clients = fl_wire_lend(r->round.robust_clients);
    w.metrics = fl_wire_lend(r->round.metrics);
    FL_ADMIN_REPLY(request, fl_wire_round_encode, &w);
    return request->code;
}

void fl_runtime_db_rounds(void *arg)
{
    struct fl_admin_request *request = arg;
    struct fl_store *store = request->runtime->federation.store;
    uint32_t last = request->list.last;

    if (request->page.before > 0) {
        request->code = fl_store_rounds_before(store, request->page.before, request->page.most,
                                               admin_add_round, request, &request->err);
        return;
    }
    request->code = request->list.abandoned
                        ? fl_store_abandoned(store, last, add_abandoned, request, &request->err)
                        : fl_store_rounds(store, last, admin_add_round, request, &request->err);
}

static int admin_add_participation(void *ctx, const struct fl_participation *p)
{
    struct fl_admin_request *request = ctx;
    struct fl_wire_participation w = {
        .id = p->id,
        .client = fl_wire_lend(p->client),
        .state = fl_wire_lend(fl_part_state_name(p->state)),
        .asked = fl_wire_lend(p->asked),
        .remark = fl_wire_lend(p->remark),
        .aborted = fl_wire_lend(p->aborted),
        .metrics = fl_wire_lend(p->metrics),
        .figures = p->figures,
    };
    float mixing[FL_PART_MIXED]; /* What was read need not be aligned. */

    w.n_mixing = p->mixing_len / sizeof(mixing[0]);
    if (w.n_mixing > 0) {
        (void)memcpy(mixing, p->mixing, w.n_mixing * sizeof(mixing[0]));
        w.mixing = mixing;
    }
    FL_ADMIN_REPLY(request, fl_wire_participation_encode, &w);
    return request->code;
}

void fl_runtime_db_participations(void *arg)
{
    struct fl_admin_request *request = arg;
    const struct fl_wire_list_participations *asked = &request->parts;
    struct fl_participation_query query = {.round = asked->round,
                                           .before = asked->before,
                                           .selected = asked->selected,
                                           .most = asked->most > 0 ? asked->most
                                                                   : FL_PARTICIPATIONS_MAX};

    (void)snprintf(query.client, sizeof(query.client), "%s", asked->client);
    request->code = fl_store_participations(request->runtime->federation.store, &query,
                                            admin_add_participation, request, &request->err);
}

static void admin_db_job_done(void *arg)
{
    struct fl_admin_request *request = arg;

    fl_runtime_answer(request->runtime, request);
}

/* The network, from which `flctl export --onnx` makes operators: "1,28,28" and "dense 20; relu". */
static int export_describe(const struct fl_net_spec *net, struct fl_buf *input,
                           struct fl_buf *layers)
{
    struct fl_writer in = {.out = input};
    struct fl_writer of = {.out = layers};
    size_t i;

    for (i = 0; i < net->n_input; i++) {
        fl_writer_printf(&in, "%s%zu", i > 0 ? "," : "", net->input[i]);
    }
    for (i = 0; i < net->n_layers; i++) {
        fl_writer_printf(&of, "%s%s", i > 0 ? "; " : "", net->layers[i]);
    }
    fl_writer_add(&in, "", 1);
    fl_writer_add(&of, "", 1);
    return in.code != FL_OK ? in.code : of.code;
}

static int export_header(const struct fl_runtime *runtime, struct fl_admin_request *request)
{
    const struct fl_server_conf *conf = runtime->setup.conf;
    char round[24];
    struct fl_buf input;
    struct fl_buf layers;
    int rv;

    fl_buf_init(&input, FL_WIRE_MAX_CONTROL);
    fl_buf_init(&layers, FL_WIRE_MAX_CONTROL);
    rv = export_describe(&conf->net, &input, &layers);
    if (rv != FL_OK) {
        goto done;
    }
    (void)snprintf(round, sizeof(round), "%llu", (unsigned long long)request->model_round);
    rv = fl_st_header(conf->layout,
                      (const struct fl_st_meta[]){{"federation", conf->main->federation},
                                                  {"round", round},
                                                  {FL_ST_INPUT_KEY, (const char *)input.data},
                                                  {FL_ST_LAYERS_KEY, (const char *)layers.data}},
                      conf->net.n_layers > 0 ? 4 : 2, &request->header);
done:
    fl_buf_done(&input);
    fl_buf_done(&layers);
    return rv;
}

/* --- on the db thread --- */

static void export_work(void *arg)
{
    struct fl_admin_request *request = arg;
    struct fl_runtime *runtime = request->runtime;

    request->model_round = request->round;
    request->code =
        fl_checkpoints_read(&runtime->federation, request->round, &request->model, &request->err);
    if (request->code == FL_OK) {
        request->code = export_header(runtime, request);
    }
}

static int add_checkpoint(void *ctx, const struct fl_checkpoint *c, const char *why)
{
    struct fl_admin_request *request = ctx;
    struct fl_wire_checkpoint w = {.round = c->round,
                                   .made_ms = c->made_ms,
                                   .accuracy = c->accuracy,
                                   .why = fl_wire_lend(why)};

    FL_ADMIN_REPLY(request, fl_wire_checkpoint_encode, &w);
    return request->code;
}

void fl_runtime_db_checkpoints(void *arg)
{
    struct fl_admin_request *request = arg;

    request->code = fl_checkpoints_each(&request->runtime->federation, fl_clock_wall_ms(),
                                        add_checkpoint, request, &request->err);
}

void fl_runtime_db_pin(void *arg)
{
    struct fl_admin_request *request = arg;
    struct fl_runtime *runtime = request->runtime;
    struct fl_buf empty;

    request->code = request->verb == FL_VERB_UNPIN
                        ? fl_checkpoints_unpin(&runtime->federation, request->round, &request->err)
                        : fl_checkpoints_pin(&runtime->federation, request->round,
                                             fl_clock_wall_ms(), &request->err);
    if (request->code == FL_OK) {
        fl_log(runtime->setup.log, FL_LOG_NOTICE, "server",
               "the checkpoint of round %llu is %s by the operator",
               (unsigned long long)request->round,
               request->verb == FL_VERB_UNPIN ? "unpinned" : "pinned");
        fl_buf_init(&empty, 1);
        request->code = fl_admin_reply(request, &empty);
    }
}

void fl_runtime_db_rollback(void *arg)
{
    struct fl_admin_request *request = arg;
    struct fl_buf empty;

    request->code = fl_rollback_ask(&request->runtime->federation, request->round, request->force,
                                    fl_clock_wall_ms(), &request->err);
    if (request->code == FL_OK) {
        fl_buf_init(&empty, 1);
        request->code = fl_admin_reply(request, &empty);
    }
}

static void admin_submit_db_job(struct fl_runtime *runtime, struct fl_admin_request *request,
                                fl_loop_cb work)
{
    if (fl_worker_thread_submit(runtime->setup.db, work, runtime->loop, admin_db_job_done,
                                request) != FL_OK)
    {
        request->code = FL_ENOMEM;
        fl_runtime_answer(runtime, request);
    }
}

void fl_runtime_on_export(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    if (request->round != 0) {
        admin_submit_db_job(runtime, request, export_work);
        return;
    }
    request->model_round = fl_coord_committed(runtime->coord);
    request->code = export_header(runtime, request);
    if (request->code == FL_OK) {
        request->model = fl_blob_ref(runtime->progress.committed.model.theta);
    }
    fl_runtime_answer(runtime, request);
}

/* What carries out each verb: one of the two. Verbs of thread IDENTITY never reach this table. */
struct admin_handler {
    void (*on)(struct fl_runtime *runtime, struct fl_admin_request *request);
    fl_loop_cb db;
};

#define ADMIN_ON_CORE(handler)      \
    {                               \
        .on = fl_runtime_on_command \
    }
#define ADMIN_ON_COORDINATOR(handler) \
    {                                 \
        .on = fl_runtime_on_##handler \
    }
#define ADMIN_ON_DB(handler)          \
    {                                 \
        .db = fl_runtime_db_##handler \
    }
#define ADMIN_ON_IDENTITY(handler) \
    {                              \
        .on = NULL                 \
    }
#define ADMIN_HANDLER_OF(id, name, method, access, audit, thread, handler, ...) \
    [FL_VERB_##id] = ADMIN_ON_##thread(handler),

static const struct admin_handler admin_handlers[FL_VERB_N] = {FL_VERBS(ADMIN_HANDLER_OF)};

void fl_runtime_admin(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    const struct admin_handler *handler = &admin_handlers[request->verb];

    request->runtime = runtime;
    if (request->figures != NULL) {
        fl_runtime_fill_figures(runtime, request->figures);
        fl_runtime_answer(runtime, request);
    } else if (handler->db != NULL) {
        admin_submit_db_job(runtime, request, handler->db);
    } else {
        handler->on(runtime, request);
    }
}
