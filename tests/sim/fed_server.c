/* The server in a simulated federation: the operations of the coordinator's shell, as messages,
   disk and timers of this world, with their faults. Messages are those of the wire, made and taken
   by server/shell/coord_messages.h. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/fed.h"

/* Tags of timers: what is due; the rest is the number of the work. */
#define TAG_DEADLINE  (UINT64_C(1) << 60)
#define TAG_AGGREGATE (UINT64_C(2) << 60)
#define TAG_JOB       (UINT64_C(4) << 60)
#define TAG_FAILED    (UINT64_C(5) << 60)
#define TAG_RESUME    (UINT64_C(8) << 60)
#define TAG_RELEASE   (UINT64_C(9) << 60)
#define TAG_FORGET    (FED_TAG_FORGET)
#define TAG_WISH      (FED_TAG_WISH)
#define TAG_KIND      (UINT64_C(15) << 60)

/* How long the server adds up and evaluates. */
#define FED_WORK_MS 20
/* How long an operator needs to see that clients diverged. */
#define FED_RESUME_MS 200

void fed_server_step(struct fed *fed, struct fl_event *ev)
{
    fl_coord_shell_step(&fed->server.shell, ev);
}

static void answer(struct fed *fed, uint32_t client, struct fed_msg *msg)
{
    msg->conn = fed->server.conn[client];
    fed_send(fed, FED_SERVER, FED_CLIENT0 + client, msg);
}

/* `payloads`: of a task, else NULL. */
static void answer_command(struct fed *fed, uint32_t client, const struct fl_wire_command *command,
                           const struct fed_payloads *payloads)
{
    struct fed_msg msg = {.kind = FED_COMMAND};
    struct fl_buf wire;

    if (payloads != NULL) {
        msg.u.payloads = *payloads;
    }
    fl_buf_init(&wire, sizeof(msg.wire));
    ck_assert_int_eq(fl_wire_command_encode(command, &wire), FL_OK);
    fed_set_wire(&msg, &wire);
    answer(fed, client, &msg);
}

/* What the list of a task says that there is. */
static void fill_payloads(struct fed *fed, const struct fl_effect *e, uint32_t i,
                          struct fed_payloads *to)
{
    const struct fed_server *s = &fed->server;
    struct fl_payload_name list[FL_PAYLOADS_MAX];
    size_t n = fl_payloads_of(s->work, list);

    fed_model_size(fed, e);
    if (e->personal_model != (fed->plan.own && s->model.sent[i])) {
        fed_fail(fed, "%s gets %s personalized model in its task", fed->clients[i].name,
                 e->personal_model ? "a" : "no");
    }
    to->has_personal_model =
        e->personal_model && fl_payloads_has_personal_model(&s->progress, fed->clients[i].name);
    while (n-- > 0) {
        const float *data = fed_disk_payload(fed, list[n].name, i);
        float *floats = list[n].kind == FL_PAYLOAD_IS_MODEL              ? to->model
                        : list[n].kind == FL_PAYLOAD_IS_PERSONAL_MODEL   ? to->personal_model
                        : list[n].state == fed_state(fed, "control_sum") ? to->control
                                                                         : to->told;

        if (list[n].kind == FL_PAYLOAD_IS_PERSONAL_MODEL && !to->has_personal_model) {
            continue;
        }
        if (data == NULL) {
            fed_fail(fed, "'%s' is listed for %s and not collection", list[n].name,
                     fed->clients[i].name);
        } else {
            (void)memcpy(floats, data, sizeof(to->model));
        }
    }
}

static void send_task(struct fed *fed, const struct fl_effect *e, uint32_t i,
                      struct fl_wire_command *command)
{
    struct fl_wire_payload list[FL_PAYLOADS_MAX];
    struct fed_payloads payloads = {.has_personal_model = false};

    fill_payloads(fed, e, i, &payloads);
    command->u.task.payloads = list;
    command->u.task.n_payloads =
        fl_payloads_list(fed->server.work, fed->server.layout, payloads.has_personal_model, list);
    answer_command(fed, i, command, &payloads);
}

/* A write that fails is reported a moment later, as a real one would be. */
static void submit_write(struct fed *fed, struct fl_coord_job *job)
{
    uint64_t due = fl_sim_now(fed->sim) + fed->plan.disk_ms;

    if (fed_chance(fed, fed->plan.failed_disk_rate)) {
        fed_log(fed, "write %" PRIu64 " fails", job->e.seq);
        job->code = fl_err_set(&job->err, FL_ENOSPC, "no space left");
        job->summaries = false;
        fl_sim_timer(fed->sim, FED_SERVER, due + 1, TAG_FAILED | fed_disk_job(fed, job));
        return;
    }
    fl_sim_timer(fed->sim, FED_SERVER, due, TAG_JOB | fed_disk_job(fed, job));
}

static int server_submit(void *ctx, struct fl_coord_job *job)
{
    struct fed *fed = ctx;
    uint64_t due = fl_sim_now(fed->sim) + FED_WORK_MS;

    if (job->e.type == FL_EFF_AGGREGATE) {
        fed_model_size(fed, &job->e);
        /* Of what is mixed there are no distances. */
        job->aggregation.want_distance = job->aggregation.want_distance && !fed->plan.own;
        fl_sim_timer(fed->sim, FED_SERVER, due, TAG_AGGREGATE | fed_disk_job(fed, job));
    } else if (job->e.type == FL_EFF_EVALUATE) {
        fl_sim_timer(fed->sim, FED_SERVER, due, TAG_JOB | fed_disk_job(fed, job));
    } else {
        submit_write(fed, job);
    }
    return FL_OK;
}

/*
 * As the real one: the session ends, and a moment later nothing can come under the number any
 * more.
 */
static void server_release(void *ctx, const struct fl_effect *e)
{
    struct fed *fed = ctx;
    struct fed_server *s = &fed->server;
    uint32_t i;

    fed_log(fed, "number %" PRIu32 " is nobody's: %s", e->client, e->text);
    for (i = 0; i < fed->plan.n_clients; i++) {
        if (s->number[i] == e->client) {
            s->number[i] = UINT32_MAX;
            fed_hang_up(fed, i);
        }
    }
    i = fed_index(fed, e->client);
    if (i < FED_MAX && e->text[0] != '\0') {
        fed->forgotten[i] = true;
        fed->n_forgotten++;
    }
    fl_sim_timer(fed->sim, FED_SERVER, fl_sim_now(fed->sim) + 1, TAG_RELEASE | e->client);
}

/* The promise: whatever becomes of the server now, it does not know the client again. */
static void server_forgotten(void *ctx, const struct fl_effect *e)
{
    struct fed *fed = ctx;
    struct fed_server *s = &fed->server;
    const uint32_t i = s->forgetting[e->client % FED_NUMBERS];
    struct fl_coord_resume disk;
    size_t k;

    if (e->client >= FED_NUMBERS || i == FED_MAX) {
        fed_fail(fed, "nobody has asked to forget %" PRIu32, e->client);
        return;
    }
    s->forgetting[e->client] = FED_MAX;
    if (e->text != NULL) {
        return;
    }
    disk = fed_disk_read(fed);
    for (k = 0; k < disk.n_clients; k++) {
        if (disk.clients[k].id == e->client && !disk.clients[k].forgotten) {
            fed_fail(fed, "%s is forgotten before that is on disk", disk.clients[k].name);
        }
    }
    fl_store_resume_done(&disk);
    fed->promised[i] = fl_coord_find(s->coord, fed->clients[i].name) == UINT32_MAX;
    fed->n_promised++;
}

/* Who was forgotten and has not come back since is nobody in this life too. */
static void check_promised(struct fed *fed)
{
    unsigned i;

    for (i = 0; i < fed->plan.n_clients; i++) {
        if (fed->promised[i] &&
            fl_coord_find(fed->server.coord, fed->clients[i].name) != UINT32_MAX) {
            fed_fail(fed, "%s was forgotten, and a restart knows it again", fed->clients[i].name);
        }
    }
}

/* --- operations of the shell --- */

static void server_send(void *ctx, const struct fl_effect *e)
{
    static const char *const names[FL_EFFECT_TYPES] = {
        [FL_EFF_TASK] = "TASK",           [FL_EFF_PLAN] = "PLAN",
        [FL_EFF_ACCEPTED] = "ACCEPTED",   [FL_EFF_REJECTED] = "REJECTED",
        [FL_EFF_DISMISSED] = "DISMISSED", [FL_EFF_EVALUATE_CLIENT] = "EVALUATE",
        [FL_EFF_DRAIN_CLIENTS] = "DRAIN"};
    struct fed *fed = ctx;
    struct fl_wire_command command = fl_coord_command_of(&fed->server.shell, e);
    uint32_t i = fed_index(fed, e->client);

    fed_log(fed, "%s to %s %" PRIu64 ".%" PRIu32, names[e->type],
            i < FED_MAX ? fed->clients[i].name : "all", e->round, e->attempt);
    if (e->type == FL_EFF_TASK) {
        send_task(fed, e, i, &command);
    } else if (i < FED_MAX) {
        answer_command(fed, i, &command, NULL);
    } else {
        for (i = 0; i < fed->plan.n_clients; i++) {
            answer_command(fed, i, &command, NULL);
        }
    }
}

static void server_admit(void *ctx, const struct fl_effect *e)
{
    struct fed *fed = ctx;
    struct fed_server *s = &fed->server;

    s->number[s->joining - 1] = e->client;
    fed->promised[s->joining - 1] = false;
}

static void server_open_round(void *ctx, const struct fl_effect *e)
{
    fed_disk_payloads(ctx, e);
}

static void server_close_round(void *ctx, const struct fl_effect *e)
{
    struct fed *fed = ctx;

    (void)e;
    fed->server.n_payloads = 0;
    ck_assert_int_eq(fl_recycled_collect(fed->server.recycled, NULL), FL_OK);
}

static void server_trace(void *ctx, const struct fl_effect *e)
{
    fed_log(ctx, "- %s", e->text);
}

static void server_finished(void *ctx, const struct fl_effect *e)
{
    struct fed *fed = ctx;

    (void)e;
    fed->finished = true;
}

static void server_answered(void *ctx, const struct fl_effect *e)
{
    struct fed *fed = ctx;

    fed_log(fed, "answer %d: %s", e->code, e->text);
    fed->n_wishes += e->code == FL_OK;
}

static void server_stopped(void *ctx, const struct fl_effect *e)
{
    (void)e;
    fed_fail(ctx, "the server stopped without a request");
}

static uint64_t server_now_ms(void *ctx)
{
    const struct fed *fed = ctx;

    return fl_sim_now(fed->sim);
}

static void server_timer(void *ctx, uint64_t due_ms)
{
    const struct fed *fed = ctx;

    if (due_ms != UINT64_MAX) {
        fl_sim_timer(fed->sim, FED_SERVER, due_ms, TAG_DEADLINE);
    }
}

static void server_unsubmitted(void *ctx, uint64_t seq)
{
    const struct fed *fed = ctx;

    ck_abort_msg("seed %" PRIu64 ": out of memory for job %" PRIu64, fed->plan.seed, seq);
}

static void server_no_memory(void *ctx)
{
    server_unsubmitted(ctx, 0);
}

static void server_result(void *ctx, const struct fl_coord_job *job)
{
    struct fed *fed = ctx;

    if (job->e.type == FL_EFF_COMMIT) {
        fed_model_committed(fed, job->record.round);
        fed_model_check(fed);
    }
}

static void server_stepped(void *ctx, const struct fl_event *ev, const struct fl_effects *effects)
{
    struct fed *fed = ctx;

    coord_check_event(&fed->check, ev);
    coord_check_effects(&fed->check, fed->server.coord, ev, effects);
    if (fed->check.broken[0] != '\0') {
        fed_fail(fed, "%s", fed->check.broken);
    }
}

static void server_settled(void *ctx)
{
    const struct fed *fed = ctx;

    if (fl_coord_phase(fed->server.coord) == FL_PHASE_PAUSED) {
        fl_sim_timer(fed->sim, FED_SERVER, fl_sim_now(fed->sim) + FED_RESUME_MS, TAG_RESUME);
    }
}

static const struct fl_coord_ops server_ops = {
    .now_ms = server_now_ms,
    .wall_ms = server_now_ms,
    .timer = server_timer,
    .submit = server_submit,
    .unsubmitted = server_unsubmitted,
    .result = server_result,
    .no_memory = server_no_memory,
    .stepped = server_stepped,
    .settled = server_settled,
    .effects = {[FL_EFF_TASK] = server_send,
                [FL_EFF_PLAN] = server_send,
                [FL_EFF_ACCEPTED] = server_send,
                [FL_EFF_REJECTED] = server_send,
                [FL_EFF_DISMISSED] = server_send,
                [FL_EFF_EVALUATE_CLIENT] = server_send,
                [FL_EFF_DRAIN_CLIENTS] = server_send,
                [FL_EFF_CLIENT_ID] = server_admit,
                [FL_EFF_FORGOTTEN] = server_forgotten,
                [FL_EFF_RELEASE] = server_release,
                [FL_EFF_ROUND_OPEN] = server_open_round,
                [FL_EFF_ROUND_CLOSED] = server_close_round,
                [FL_EFF_TRACE] = server_trace,
                [FL_EFF_FINISHED] = server_finished,
                [FL_EFF_ANSWER] = server_answered,
                [FL_EFF_STOPPED] = server_stopped}};

static void on_start(void *ctx, struct fl_sim *sim, uint32_t node)
{
    struct fed *fed = ctx;
    struct fed_server *s = &fed->server;
    struct fl_event ev = {.type = FL_EV_START};
    struct fl_err err = {0};
    size_t i;

    (void)sim;
    (void)node;
    if (!fed_disk_open(fed)) {
        return;
    }
    fed_log(fed, "server starts with round %" PRIu64 " committed, %zu parts open",
            s->resume.committed, s->resume.n_parts);
    coord_check_resume(&fed->check, &s->resume);
    (void)memset(s->number, 0xff, sizeof(s->number));
    if (fl_coord_create(&s->conf, &s->resume, &s->coord, &err) != FL_OK) {
        ck_abort_msg("seed %" PRIu64 ": %s", fed->plan.seed, err.msg);
    }
    s->shell = (struct fl_coord_shell){.ops = &server_ops,
                                       .ctx = fed,
                                       .coord = s->coord,
                                       .conf = &s->conf,
                                       .federation = &s->federation,
                                       .progress = &s->progress};
    for (i = 0; i < FED_NUMBERS; i++) {
        s->forgetting[i] = FED_MAX;
    }
    fed_model_check(fed);
    check_promised(fed);
    fed_server_step(fed, &ev);
}

static void on_crash(void *ctx, struct fl_sim *sim, uint32_t node)
{
    struct fed *fed = ctx;

    (void)sim;
    fed_log(fed, "server dies");
    fl_coord_free(fed->server.coord);
    fed->server.coord = NULL;
    fed_disk_close(fed);
    fed_died(fed, node);
}

/* An aggregation ends; it may fail because of a client's file, or of our own. */
static void aggregated(struct fed *fed, uint64_t number)
{
    struct fl_coord_job *job;
    uint32_t client;
    size_t i;

    if (!fed_chance(fed, fed->plan.failed_aggregate_rate)) {
        fed_disk_run(fed, number);
        return;
    }
    job = fed_disk_take(fed, number);
    job->code = fl_err_set(&job->err,
                           fed_chance(fed, 0.3)   ? FL_EFORMAT
                           : fed_chance(fed, 0.5) ? FL_EINVAL
                                                  : FL_EIO,
                           "a file went bad");
    for (i = 0; i < fed->plan.n_clients; i++) {
        client = fed->server.number[i];
        if (client != UINT32_MAX && fl_coord_part(fed->server.coord, client) != NULL &&
            fl_coord_part(fed->server.coord, client)->state == FL_PARTICIPANT_ACCEPTED &&
            fed_chance(fed, 0.5))
        {
            job->aggregation.bad_client = client;
            break;
        }
    }
    fl_coord_shell_done(&fed->server.shell, job);
}

static void on_timer(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag)
{
    struct fed *fed = ctx;
    struct fl_event ev = {.type = FL_EV_TICK};
    uint64_t seq = tag & ~TAG_KIND;

    (void)node;
    if (fed->server.writer.dead) {
        return;
    }
    switch (tag & TAG_KIND) {
    case TAG_JOB:
        fed_disk_run(fed, seq);
        break;
    case TAG_DEADLINE: /* One timer a step; most of them are out of date. */
        if (fl_coord_deadline(fed->server.coord) <= fl_sim_now(sim)) {
            fed_server_step(fed, &ev);
        }
        break;
    case TAG_RESUME: /* One timer a step here too. */
        if (fl_coord_phase(fed->server.coord) == FL_PHASE_PAUSED && fed->check.wish == 0) {
            ev.type = FL_EV_RESUME;
            fed_server_step(fed, &ev);
        }
        break;
    case TAG_WISH:
        if (fed->check.wish == 0) {
            ev.type = (enum fl_event_type)seq;
            ev.u.reason = "the hand";
            fed_server_step(fed, &ev);
        }
        break;
    case TAG_RELEASE:
        ev.type = FL_EV_RELEASED;
        ev.u.client = (uint32_t)seq;
        fed_server_step(fed, &ev);
        break;
    case TAG_FORGET:
        ev.type = FL_EV_FORGET;
        ev.u.client = fl_coord_find(fed->server.coord, fed->clients[seq].name);
        if (ev.u.client < FED_NUMBERS) {
            fed->server.forgetting[ev.u.client] = (uint32_t)seq;
        }
        fed_server_step(fed, &ev);
        break;
    case TAG_AGGREGATE:
        aggregated(fed, seq);
        break;
    case TAG_FAILED:
        fl_coord_shell_done(&fed->server.shell, fed_disk_take(fed, seq));
        break;
    default:
        break;
    }
}

static void pushed(struct fed *fed, uint32_t client, const struct fed_push *push)
{
    struct fed_server *s = &fed->server;
    struct fl_event ev = {.type = FL_EV_UPLOAD_INVALID};
    const uint8_t *units = NULL;
    uint32_t number = s->number[client];
    int rv = fl_coord_may_push(s->coord, number, push->key.round, push->key.attempt, &units, NULL);

    if (rv == FL_EEXIST) { /* As the real one: the reply says that it is accepted. */
        struct fl_wire_command reply = {.type = FL_WIRE_ACCEPTED};

        reply.u.verdict.round = push->key.round;
        reply.u.verdict.attempt = push->key.attempt;
        answer_command(fed, client, &reply, NULL);
        return;
    }
    if (rv != FL_OK || memcmp(units, push->units, FED_UNITS) != 0) {
        fed_log(fed, "push of %s refused", fed->clients[client].name);
        return;
    }
    if (push->bad) {
        ev.u.upload.client = number;
        ev.u.upload.round = push->key.round;
        ev.u.upload.attempt = push->key.attempt;
        ev.u.upload.reason = "not a finite number";
        fed_server_step(fed, &ev);
        return;
    }
    fl_sim_timer(fed->sim, FED_SERVER, fl_sim_now(fed->sim) + fed->plan.disk_ms,
                 TAG_JOB | fed_disk_upload(fed, client, push));
}

static void lost(struct fed *fed, uint32_t client)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_LOST};

    if (fed->server.number[client] != UINT32_MAX) {
        ev.u.client = fed->server.number[client];
        fed->server.number[client] = UINT32_MAX;
        fed_server_step(fed, &ev);
    }
}

static void take_event(struct fed *fed, uint32_t client, uint64_t conn,
                       const struct fl_wire_event *event)
{
    struct fed_server *s = &fed->server;
    struct fl_event ev;

    if (event->type == FL_WIRE_HELLO) {
        s->conn[client] = conn;
        answer(fed, client, &(struct fed_msg){.kind = FED_WELCOME});
        s->joining = client + 1;
    }
    if (fl_coord_event_of(event, s->number[client], &ev)) {
        fed_server_step(fed, &ev);
    } else {
        answer_command(fed, client, &(struct fl_wire_command){.type = FL_WIRE_HEARTBEAT_COMMAND},
                       NULL);
    }
}

static void on_message(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t from,
                       const void *data, size_t len)
{
    struct fed *fed = ctx;
    uint32_t client = from - FED_CLIENT0;
    struct fl_wire_event event = {.type = FL_WIRE_FAILED};
    struct fl_err err = {0};
    struct fed_msg msg;

    (void)sim;
    (void)node;
    ck_assert_uint_eq(len, sizeof(msg));
    (void)memcpy(&msg, data, sizeof(msg));
    if (fed->server.writer.dead) {
        return;
    }
    if (msg.kind == FED_EVENT) {
        ck_assert_msg(fl_wire_event_decode(msg.wire, msg.n_wire, &event, &err) == FL_OK, "%s",
                      err.msg);
    }
    if (event.type != FL_WIRE_HELLO &&
        (fed->server.number[client] == UINT32_MAX || fed->server.conn[client] != msg.conn))
    {
        goto done; /* Nothing counts before Hello, or of a connection before. */
    }
    if (msg.kind == FED_EVENT) {
        take_event(fed, client, msg.conn, &event);
    } else if (msg.kind == FED_PUSH) {
        pushed(fed, client, &msg.u.push);
    } else {
        lost(fed, client);
    }
done:
    fl_wire_event_done(&event);
}

static void on_link(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t peer, bool up)
{
    struct fed *fed = ctx;

    (void)sim;
    (void)node;
    if (!up && !fed->server.writer.dead) {
        lost(fed, peer - FED_CLIENT0);
    }
}

const struct fl_sim_node_cbs fed_server_cbs = {
    .on_start = on_start,
    .on_timer = on_timer,
    .on_message = on_message,
    .on_link = on_link,
    .on_crash = on_crash,
};

static void make_strategy(const struct fed_plan *plan, struct fl_strategy **ret)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_strategy_create(plan->preset, ret, &err) == FL_OK, "%s", err.msg);
    if (plan->upload != NULL) {
        ck_assert_msg(fl_strategy_set(*ret, FL_COMPONENT_UPLOAD, plan->upload, &err) == FL_OK, "%s",
                      err.msg);
    }
    if (plan->own) {
        ck_assert_msg(fl_strategy_set(*ret, FL_COMPONENT_PERSONAL, "own", &err) == FL_OK, "%s",
                      err.msg);
    }
    fed_set_broadcast(plan, *ret);
}

void fed_server_init(struct fed *fed)
{
    struct fed_server *s = &fed->server;
    const struct fed_plan *plan = &fed->plan;

    s->layout = fed_work_layout();
    s->work = fed_strategy(plan);
    if (plan->conf != NULL) {
        s->drawn = *plan->conf->strategy;
        s->drawn.solver = s->work->solver; /* Of it the core knows what the server keeps. */
        s->conf = *plan->conf;
        s->conf.layout = s->layout;
        s->conf.strategy = &s->drawn;
        return;
    }
    make_strategy(plan, &s->strategy);
    s->strategy->solver = s->work->solver;
    s->conf = (struct fl_coord_conf){
        .seed = plan->seed,
        .rounds = plan->rounds,
        .population = plan->population,
        .start_clients = plan->start_clients != 0 ? plan->start_clients : plan->n_clients,
        .min_clients = plan->min_clients != 0 ? plan->min_clients : 1,
        .min_responders = plan->min_responders,
        .over_selection = plan->over_selection,
        .over_grace = plan->over_grace,
        .train_ms = 1000,
        .upload_ms = 1000,
        .evaluate_ms = 500,
        .lost_grace_ms = 300,
        .retry_ms = 50,
        .forget_after_ms = plan->forget_after_ms,
        .evaluate_every = plan->evaluate ? 2 : 0,
        .evaluate_server = plan->evaluate,
        .evaluate_clients = plan->evaluate,
        .learning_rate = 0.1,
        .learning_rate_decay = 1.0,
        .backfill = plan->backfill,
        .norm_cap = plan->norm_cap,
        .share_cap = plan->share_cap,
        .quarantine_after = plan->quarantine_after,
        .quarantine_window = 10,
        .quarantine_ms = plan->quarantine_ms,
        .strategy = s->strategy,
        .layout = s->layout,
    };
}

const char *fed_why(struct fed *fed)
{
    const char *missing[4];
    size_t n = 0;

    fl_coord_why(fed->server.coord, fl_sim_now(fed->sim), fed->why, sizeof(fed->why), missing, 4,
                 &n);
    return fed->why;
}

void fed_server_done(struct fed *fed)
{
    fl_coord_free(fed->server.coord);
    fl_strategy_free(fed->server.strategy);
    fl_strategy_free(fed->server.work);
    fed_disk_close(fed);
    fl_layout_free(fed->server.layout);
}
