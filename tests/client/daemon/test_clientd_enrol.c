/* Joining over a real connection: what is lost is asked for again, what is refused is not. */

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/daemon/clientd_exit.h"
#include "client/daemon/enrol.h"
#include "client/daemon/enrol_command.h"
#include "libfl/base/fs.h"
#include "tests/lib/enrol_server.h"
#include "tests/lib/suites.h"

static struct rig_identity rig;
static struct enrol_server server;
static struct fl_loop *loop;
static struct fl_enrolled enrolled;
static struct fl_err err;
static bool local;
static uint64_t refused_ms; /* of the next joins */
static unsigned n_refusals; /* lines that say so */
static bool refusal_says_final;
static bool shows_right_root;
static struct fl_timer *after_refusal; /* ends the join 300 ms after a refusal; NULL: none */

static void setup(void)
{
    rig_identity_now = enrol_server_now();
    rig_identity_setup(&rig);
    ck_assert_int_eq(fl_loop_create(&loop, NULL), FL_OK);
    enrol_server_begin(&server, &rig, &rig.pki, loop);
    err = (struct fl_err){0};
    refused_ms = 0;
    n_refusals = 0;
    shows_right_root = false;
    after_refusal = NULL;
}

static void teardown(void)
{
    fl_enrolled_done(&enrolled);
    enrol_server_end(&server);
    fl_loop_free(loop);
    rig_identity_teardown(&rig);
}

/* The operator corrects the server once the log has a refusal. */
static void show_right_root(void)
{
    const struct fl_trust_setup trusted = {.roots = rig.pki.root, .federation = "demo"};
    struct fl_trust *trust = NULL;

    ck_assert_int_eq(fl_trust_create(&trusted, &trust, NULL), FL_OK);
    ck_assert_int_eq(fl_tls_renew(server.tls, rig.pki.server, rig.pki.server_key, trust, NULL),
                     FL_OK);
    fl_trust_unref(trust);
}

static void on_line(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    (void)ctx;
    (void)component;
    if (strstr(text, "was refused, retrying within") != NULL) {
        refusal_says_final = strstr(text, "replace the invitation") != NULL;
        ck_assert_int_eq(level, FL_LOG_ERROR);
        n_refusals++;
        if (after_refusal != NULL) {
            fl_timer_start(after_refusal, 300);
        }
        if (shows_right_root) {
            show_right_root();
        }
    }
}

static const struct fl_log capture = {.level = FL_LOG_INFO, .sink = on_line};

static int join(unsigned tries)
{
    struct fl_enrol_setup enrol = {.loop = loop,
                                   .log = &capture,
                                   .refused_ms = refused_ms,
                                   .dir = rig.dir,
                                   .invite = &rig.invite,
                                   .name = "",
                                   .first_ms = 10,
                                   .longest_ms = 20,
                                   .connect_timeout_ms = 600000,
                                   .tries = tries};

    return fl_enrol_run(&enrol, &enrolled, &local, &err);
}

static bool has_identity(void)
{
    struct fl_client_identity identity = {.chain = NULL};
    int rv = fl_client_identity_load(&rig.files, &identity, NULL);

    fl_client_identity_done(&identity);
    return rv == FL_OK;
}

TEST_CASE("all", setup, teardown);

TEST(an_invitation_becomes_an_identity)
{
    ck_assert_msg(join(1) == FL_OK, "%s", err.msg);
    ck_assert_str_eq(enrolled.who.name, "edge-001");
    ck_assert_str_eq(enrolled.who.federation, "demo");
    ck_assert(has_identity());
    ck_assert_uint_eq(server.joins, 1);
}

/* The server insists on the first key that an invitation was used with. */
TEST(a_lost_reply_is_asked_for_again_with_the_same_key)
{
    server.mode = ENROL_LOSES;
    server.modes_left = 2;
    ck_assert_msg(join(3) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(server.joins, 3);
    ck_assert(has_identity());
}

TEST(a_server_that_has_no_time_is_asked_again)
{
    server.mode = ENROL_IS_BUSY;
    server.modes_left = 1;
    ck_assert_msg(join(0) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(server.joins, 2);
}

TEST(a_refusal_is_final_and_the_servers_words_are_told)
{
    server.mode = ENROL_DENIES;
    ck_assert_int_eq(join(0), FL_EPERM);
    ck_assert_msg(strstr(err.msg, "this invitation is over") != NULL, "%s", err.msg);
    ck_assert_uint_eq(server.joins, 1);
    ck_assert(!local);
    ck_assert(!has_identity());
}

TEST(a_server_with_another_root_never_sees_the_token)
{
    struct rig_pki other;

    rig_pki_make(&other, "demo", enrol_server_now());
    enrol_server_end(&server);
    enrol_server_begin(&server, &rig, &other, loop);
    ck_assert_int_eq(join(0), FL_EPERM);
    ck_assert_uint_eq(server.joins, 0);
    ck_assert_msg(strstr(err.msg, server.address) != NULL, "%s", err.msg);
    rig_pki_free(&other);
}

/* Only then is the refusal final, as above, where an operator joins by hand. */
TEST(an_unattended_join_asks_again_after_a_refusal_and_logs_the_same_one_once)
{
    refused_ms = 10;
    server.mode = ENROL_DENIES;
    server.modes_left = 5;
    ck_assert_msg(join(0) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(server.joins, 6);
    ck_assert_uint_eq(n_refusals, 1);
    ck_assert(has_identity());
}

static void stop(void *arg)
{
    fl_loop_stop(arg);
}

/* With a wait of an hour in one of the two it ends only in the other. */
TEST(an_unattended_join_asks_within_the_longest_wait_what_an_operator_can_cure)
{
    refused_ms = 3600000;
    server.mode = ENROL_DENIES;
    server.modes_left = 3;
    ck_assert_msg(join(0) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(server.joins, 4);
    ck_assert(!refusal_says_final);
}

TEST(an_unattended_join_asks_rarely_what_takes_another_line)
{
    refused_ms = 3600000;
    server.mode = ENROL_EXPIRED;
    ck_assert_int_eq(fl_timer_create(loop, stop, loop, &after_refusal), FL_OK);
    ck_assert_int_eq(join(0), FL_ECANCELED);
    fl_timer_close(after_refusal);
    ck_assert_uint_eq(server.joins, 1);
    ck_assert(refusal_says_final);
}

TEST(an_unattended_join_that_met_the_wrong_server_goes_on_with_the_right_one)
{
    struct rig_pki other;

    rig_pki_make(&other, "demo", enrol_server_now());
    enrol_server_end(&server);
    enrol_server_begin(&server, &rig, &other, loop);
    refused_ms = 10;
    shows_right_root = true;
    ck_assert_msg(join(0) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(server.joins, 1);
    ck_assert_uint_eq(n_refusals, 1);
    rig_pki_free(&other);
}

TEST(a_server_that_is_away_is_tried_as_often_as_wanted)
{
    enrol_server_end(&server);
    ck_assert_int_eq(join(3), FL_EUNAVAIL);
    ck_assert(!local);
    enrol_server_begin(&server, &rig, &rig.pki, loop);
    ck_assert_msg(join(1) == FL_OK, "%s", err.msg);
}

TEST(a_folder_that_others_can_write_to_ends_it_before_anybody_is_asked)
{
    ck_assert_int_eq(mkdir(rig.dir, 0700), 0);
    ck_assert_int_eq(chmod(rig.dir, 0777), 0);
    ck_assert_int_eq(join(0), FL_EPERM);
    ck_assert(local);
    ck_assert_uint_eq(server.joins, 0);
}

TEST(it_can_be_stopped_and_goes_on_with_the_same_line)
{
    struct fl_timer *timer = NULL;

    server.mode = ENROL_LOSES;
    ck_assert_int_eq(fl_timer_create(loop, stop, loop, &timer), FL_OK);
    fl_timer_start(timer, 50);
    ck_assert_int_eq(join(0), FL_ECANCELED);
    fl_timer_close(timer);
    server.mode = ENROL_ANSWERS;
    ck_assert_msg(join(1) == FL_OK, "%s", err.msg);
}

TEST(an_address_of_six_has_brackets)
{
    struct fl_invite_address six = {.host = "2001:db8::1", .port = 7800};
    char address[FL_ENROL_ADDRESS_MAX];

    ck_assert_str_eq(fl_enrol_address(&six, address), "[2001:db8::1]:7800");
}

/* --- the command, which root runs for the user of the service --- */

/* Nobody's number in Debian; any but root's will do. */
#define SOMEBODY 65534

static char config_dir[FOLDER_PATH];

/* One process joins, this one has the server. */
struct joining {
    pid_t pid;
    int status;
};

static void *wait_for(void *arg)
{
    struct joining *j = arg;

    ck_assert_int_eq(waitpid(j->pid, &j->status, 0), j->pid);
    ck_assert_int_eq(fl_loop_post(loop, stop, loop), FL_OK);
    return NULL;
}

static FL_NORETURN void join_and_leave(const char *config)
{
    char invitation[FOLDER_PATH + 16];
    char text[FL_INVITE_MAX];
    const struct fl_enrol_options options = {
        .config = config, .invitation = invitation, .state_dir = rig.state, .no_start = true};
    int code;

    (void)snprintf(invitation, sizeof(invitation), "%s/line", config_dir);
    if (fl_invite_write(text, sizeof(text), &rig.invite, NULL) != FL_OK ||
        fl_fs_replace(invitation, text, strlen(text), /* sync= */ false, NULL) != FL_OK)
    {
        _exit(99);
    }
    code = fl_enrol_command(&options);
    _exit(code == FL_EXIT_OK && geteuid() != 0 ? 98 : code); /* The configuration is root's. */
}

/* The exit code. */
static int join_by_command(const char *config)
{
    struct joining j = {.pid = fork()};
    pthread_t thread;

    ck_assert_int_ge(j.pid, 0);
    if (j.pid == 0) {
        join_and_leave(config);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for, &j), 0);
    fl_loop_run(loop);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(WIFEXITED(j.status));
    return WEXITSTATUS(j.status);
}

static void setup_root(void)
{
    setup();
    ck_assert(folder_make("config", config_dir));
}

static void teardown_root(void)
{
    folder_remove(config_dir);
    teardown();
}

/* The state folder is somebody's; false: this process cannot do that. */
static bool give_away(void)
{
    if (geteuid() != 0 || chown(rig.state, SOMEBODY, SOMEBODY) != 0) {
        (void)puts("skipped: only root joins for another user");
        return false;
    }
    return true;
}

static struct stat look(const char *path)
{
    struct stat st = {.st_uid = 0};

    ck_assert_msg(lstat(path, &st) == 0, "%s", path);
    return st;
}

TEST_CASE("root", setup_root, teardown_root);

TEST(root_joins_for_the_user_who_owns_the_state_folder)
{
    char config[FOLDER_PATH + 16];
    DIR *folder;
    const struct dirent *entry;
    unsigned n = 0;

    if (!give_away()) {
        return;
    }
    (void)snprintf(config, sizeof(config), "%s/client.yaml", config_dir);
    ck_assert_int_eq(join_by_command(config), FL_EXIT_OK);
    ck_assert_uint_eq(server.joins, 1);
    ck_assert_uint_eq(look(rig.dir).st_uid, SOMEBODY);
    ck_assert_uint_eq(look(rig.dir).st_mode & 07777, 0700);
    folder = opendir(rig.dir);
    ck_assert_ptr_nonnull(folder);
    while ((entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, "..") != 0) {
            struct stat st = look(rig_identity_path(&rig, entry->d_name));

            ck_assert_uint_eq(st.st_uid, SOMEBODY);
            ck_assert_uint_eq(st.st_gid, SOMEBODY);
            n++;
        }
    }
    ck_assert_int_eq(closedir(folder), 0);
    ck_assert_uint_ge(n, 4); /* the folder, certificate, key, roots */
    ck_assert_uint_eq(look(rig_identity_path(&rig, "client.key")).st_mode & 07777, 0600);
    ck_assert_uint_eq(look(config).st_uid, 0);
}

/* What root could write to is that user's all the same: his service could not. */
TEST(root_has_no_more_rights_in_it_than_that_user)
{
    char config[FOLDER_PATH + 16];

    if (!give_away()) {
        return;
    }
    (void)snprintf(config, sizeof(config), "%s/client.yaml", config_dir);
    ck_assert_int_eq(mkdir(rig.dir, 0700), 0); /* of root */
    ck_assert_int_eq(join_by_command(config), FL_EXIT_STATE);
    ck_assert_uint_eq(server.joins, 0);
    ck_assert_int_ne(access(config, F_OK), 0);
    ck_assert_int_eq(chown(rig.dir, SOMEBODY, SOMEBODY), 0);
    ck_assert_int_eq(join_by_command(config), FL_EXIT_OK);
}
