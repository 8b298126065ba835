/*
 * The last moments of a daemon: the network is closed, the coordinator takes its last step, and
 * what both still had to say to each other and to the disk is heard when nobody is there to
 * answer. The whole daemon runs in this process; the linker puts what comes last where it does.
 */
#include <check.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/admin/admin.h"
#include "server/daemon/serverd.h"
#include "server/network/frontend_impl.h"
#include "server/runtime/runtime_impl.h"
#include "tests/lib/folder.h"
#include "tests/lib/push_body.h"
#include "tests/lib/rawpeer.h"
#include "tests/lib/suites.h"

TESTS_APART("each stops a daemon, of which a process has one");

static char dir[64];
static enum fl_net_msg_type last_words; /* 0: none */
static enum fl_wire_command_type last_command;
static bool with_upload;
static unsigned n_finished, n_closed;
static struct fl_loop *net;
static atomic_bool checking; /* the lane checks the upload, and waits for the next */
static sem_t hung_up;
static struct fl_frontend *frontend;
static struct fl_admin *admin;

/* What the linker renames. */
void __wrap_fl_notify_ready(const char *status);
int __real_fl_admin_create(const struct fl_admin_setup *setup, struct fl_admin **ret);
int __wrap_fl_admin_create(const struct fl_admin_setup *setup, struct fl_admin **ret);
void __real_fl_runtime_stop(struct fl_runtime *runtime);
void __wrap_fl_runtime_stop(struct fl_runtime *runtime);
int __real_fl_spool_finish(struct fl_spool *spool, const struct fl_layout *layout, double bound,
                           enum fl_durability durability, struct fl_err *err);
int __wrap_fl_spool_finish(struct fl_spool *spool, const struct fl_layout *layout, double bound,
                           enum fl_durability durability, struct fl_err *err);
void __real_fl_spool_close(struct fl_spool *spool);
void __wrap_fl_spool_close(struct fl_spool *spool);

void __wrap_fl_notify_ready(const char *status)
{
    (void)status;
    ck_assert_int_eq(raise(SIGTERM), 0);
}

int __wrap_fl_admin_create(const struct fl_admin_setup *setup, struct fl_admin **ret)
{
    int rv = __real_fl_admin_create(setup, ret);

    frontend = setup->frontend;
    admin = *ret;
    return rv;
}

static void stop_loop(void *arg)
{
    fl_loop_stop(arg);
}

/* An upload whose client has hung up is checked on its lane: all of it had come. */
static void add_upload(void)
{
    static struct fl_budget budget;
    static struct fl_control_stream stream; /* Client 0, token of zeros. */
    struct fl_rpc_method methods[2] = {
        {"/fl.v1.Federation/Push", FL_WHO_ANYBODY, fl_push_start, frontend}};
    struct fl_h2_setup setup = {.peer = "raw:9", .budget = &budget, .methods = methods};
    const struct fl_layout *layout = frontend->setup.conf->layout;
    struct fl_frontend_client *slot = fl_frontend_client_at(frontend, 0);
    struct fl_h2 *server = NULL;
    struct rawpeer raw;
    struct fl_buf body;

    ck_assert_int_eq(fl_str_copy(stream.name, sizeof(stream.name), "edge"), FL_OK);
    *slot = (struct fl_frontend_client){.stream = &stream, .grant = {1, 1}};
    slot->units = malloc(frontend->n_units);
    ck_assert_ptr_nonnull(slot->units);
    (void)memset(slot->units, 1, frontend->n_units);
    fl_budget_init(&budget, SIZE_MAX, 0, NULL, NULL);
    fl_rpc_limits_default(&setup.limits);
    ck_assert_int_eq(fl_h2_server_create(&setup, &server), FL_OK);
    rawpeer_open(&raw, server, /* server= */ false, 0);
    fl_buf_init(&body, 16 << 20);
    push_body(&body, layout, 1, 1, push_body_size(layout));
    (void)rawpeer_request(&raw, "/fl.v1.Federation/Push", NULL, body.data, body.len, true);
    ck_assert_int_eq(sem_init(&hung_up, 0, 0), 0);
    net = frontend->setup.net;
    while (!atomic_load(&checking)) {
        rawpeer_run(&raw);
        ck_assert_int_eq(fl_worker_thread_submit(frontend->setup.io, stop_loop, NULL, NULL, net),
                         FL_OK);
        fl_loop_run(net);
    }
    rawpeer_close(&raw);
    slot->stream = NULL;
    ck_assert_int_eq(sem_post(&hung_up), 0);
    ck_assert_ptr_nonnull(slot->push);
    fl_buf_done(&body);
}

static void say(struct fl_runtime *runtime, enum fl_net_msg_type type)
{
    struct fl_net_msg *down = fl_net_msg_new(runtime, type);

    down->client = type == FL_NET_MSG_PAYLOAD || last_command == FL_WIRE_DRAIN ? FL_EVERYBODY : 0;
    down->round = 1;
    down->attempt = 1;
    down->text = fl_str_dup("model");
    if (type == FL_NET_MSG_PAYLOAD) {
        down->bytes.blob = fl_blob_ref(runtime->progress.committed.model.theta);
    } else if (type == FL_NET_MSG_ADMIN) {
        down->request = calloc(1, sizeof(*down->request));
        ck_assert_ptr_nonnull(down->request);
        down->request->admin = admin;
        down->request->verb = FL_VERB_ROLLBACK;
        down->request->asked = true;
    } else if (type == FL_NET_MSG_COMMAND) {
        down->command.type = last_command;
        if (last_command == FL_WIRE_TASK || last_command == FL_WIRE_PLAN) {
            down->units = calloc(fl_layout_units(runtime->setup.conf->layout), 1);
        } else if (last_command == FL_WIRE_DRAIN) {
            down->command.u.drain.reason = down->text;
        } else if (last_command != FL_WIRE_EVALUATE && last_command != FL_WIRE_CENTRAL) {
            down->command.u.verdict = (struct fl_wire_verdict){1, 1, down->text};
        }
    }
    fl_runtime_down(runtime, down);
}

/* Here the network side has closed; its loop turns once more, when the coordinator is gone. */
void __wrap_fl_runtime_stop(struct fl_runtime *runtime)
{
    __real_fl_runtime_stop(runtime);
    ck_assert_ptr_null(frontend->server);
    ck_assert_ptr_nonnull(fl_frontend_client_at(frontend, 0));
    if (with_upload) {
        add_upload();
    }
    if (last_words != 0) {
        say(runtime, last_words);
    }
}

int __wrap_fl_spool_finish(struct fl_spool *spool, const struct fl_layout *layout, double bound,
                           enum fl_durability durability, struct fl_err *err)
{
    atomic_store(&checking, true);
    fl_loop_stop(net);
    ck_assert_int_eq(sem_wait(&hung_up), 0);
    n_finished++;
    return __real_fl_spool_finish(spool, layout, bound, durability, err);
}

void __wrap_fl_spool_close(struct fl_spool *spool)
{
    n_closed += spool != NULL ? 1 : 0;
    __real_fl_spool_close(spool);
}

/* Returns the exit code of a daemon that is told to stop as soon as it serves. */
static int run_daemon(void)
{
    static const char text[] = "federation: stop\nstate_dir: %s/state\nlisten: [\"unix:%s/sock\"]\n"
                               "insecure: yes\nrounds: 1\nmodel: {preset: dnn60}\n";
    struct fl_serverd_conf *own = NULL;
    struct fl_err err = {0};
    char path[128];
    FILE *yaml;
    int code;

    (void)snprintf(path, sizeof(path), "%s/server.yaml", dir);
    yaml = fopen(path, "w");
    ck_assert_ptr_nonnull(yaml);
    (void)fprintf(yaml, text, dir, dir);
    ck_assert_int_eq(fclose(yaml), 0);
    ck_assert_msg(fl_serverd_conf_load(path, NULL, &own, &err) == FL_OK, "%s", err.msg);
    code = fl_server_run(own, NULL, NULL);
    fl_serverd_conf_free(own);
    return code;
}

static void make_folder(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/fl-stop.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_folder(void)
{
    folder_remove(dir);
}

TEST_CASE_ONCE("stop", make_folder, remove_folder);

TEST_EACH(whatever_the_coordinator_says_last_finds_nobody_and_harms_nobody, FL_NET_MSG_FINISHED + 1)
{
    last_words = (enum fl_net_msg_type)_i;
    last_command = FL_WIRE_EVALUATE;
    ck_assert_int_eq(run_daemon(), 0);
}

TEST_ROW(whatever_command_comes_last_finds_nobody_and_harms_nobody, 0, 0, FL_WIRE_TASK,
         FL_WIRE_CENTRAL + 1)
{
    last_words = FL_NET_MSG_COMMAND;
    last_command = (enum fl_wire_command_type)_i;
    ck_assert_int_eq(run_daemon(), 0);
}

TEST(an_upload_that_is_checked_while_the_server_stops_is_closed)
{
    with_upload = true;
    ck_assert_int_eq(run_daemon(), 0);
    ck_assert_uint_eq(n_finished, 1);
    ck_assert_uint_eq(n_closed, 1);
}

TEST_EACH(a_verdict_on_an_upload_that_nobody_waits_for_any_more_closes_it_too, 3)
{
    static const enum fl_wire_command_type verdicts[] = {FL_WIRE_ACCEPTED, FL_WIRE_REJECTED,
                                                         FL_WIRE_DISMISSED};

    with_upload = true;
    last_words = FL_NET_MSG_COMMAND;
    last_command = verdicts[_i];
    ck_assert_int_eq(run_daemon(), 0);
    ck_assert_uint_eq(n_closed, 1);
}
