/*
 * A new root that `fl-serverd --init --renew-root` makes while the server looks at its files, right
 * after it has read them.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "server/auth/auth.h"
#include "server/daemon/serverd_conf.h"
#include "server/identity/authority.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

static char dir[FOLDER_PATH];
static struct fl_serverd_conf *own;
static struct fl_loop *net;
static struct fl_auth *guard;
static struct fl_log log_of_it;
static struct fl_auth_setup auth;
static char said[4000];
static bool beside; /* after the next reading */

int __real_fl_authority_refresh(struct fl_authority *authority, int64_t now_ms, bool *ret_changed,
                                struct fl_err *err);
int __wrap_fl_authority_refresh(struct fl_authority *authority, int64_t now_ms, bool *ret_changed,
                                struct fl_err *err);

int __wrap_fl_authority_refresh(struct fl_authority *authority, int64_t now_ms, bool *ret_changed,
                                struct fl_err *err)
{
    int rv = __real_fl_authority_refresh(authority, now_ms, ret_changed, err);

    if (beside) {
        beside = false;
        ck_assert_int_eq(fl_auth_init(&auth, /* renew_root= */ true, NULL), FL_OK);
    }
    return rv;
}

static void on_line(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    size_t len = strlen(said);

    (void)ctx;
    (void)level;
    (void)component;
    (void)snprintf(said + len, sizeof(said) - len, "%s\n", text);
}

static void load_conf(void)
{
    struct fl_err err = {0};
    char name[FOLDER_PATH + 16];
    FILE *yaml;

    (void)snprintf(name, sizeof(name), "%s/server.yaml", dir);
    yaml = fopen(name, "w");
    ck_assert_ptr_nonnull(yaml);
    (void)fprintf(yaml,
                  "federation: guarded\nstate_dir: %s/state\nlisten: [\"127.0.0.1:7443\"]\n"
                  "rounds: 1\nmodel: {preset: mlr60}\nidentity: {hosts: [localhost]}\n",
                  dir);
    ck_assert_int_eq(fclose(yaml), 0);
    ck_assert_msg(fl_serverd_conf_load(name, NULL, &own, &err) == FL_OK, "%s", err.msg);
}

static void setup(void)
{
    struct fl_err err = {0};

    ck_assert(folder_make("fl-beside", dir));
    load_conf();
    log_of_it = (struct fl_log){.level = FL_LOG_NOTICE, .sink = on_line};
    auth =
        (struct fl_auth_setup){.conf = own->conf, .state_dir = own->state_dir, .log = &log_of_it};
    ck_assert_int_eq(fl_loop_create(&net, NULL), FL_OK);
    ck_assert_msg(fl_auth_init(&auth, /* renew_root= */ false, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_auth_create(&auth, net, NULL, NULL, &guard, &err) == FL_OK, "%s", err.msg);
}

static void teardown(void)
{
    fl_auth_close(guard);
    fl_loop_free(net);
    fl_auth_free(guard);
    fl_serverd_conf_free(own);
    folder_remove(dir);
}

static void stop_loop(void *arg)
{
    fl_loop_stop(arg);
}

static void nothing(struct fl_authority *authority, void *arg)
{
    (void)authority;
    (void)arg;
}

static void look(bool all)
{
    said[0] = '\0';
    fl_auth_look(guard, all);
    ck_assert_int_eq(fl_auth_submit(guard, nothing, stop_loop, net), FL_OK);
    fl_loop_run(net);
}

static const char reloaded[] = "certificates reloaded for new connections";

TEST_CASE("beside", setup, teardown);

TEST(a_root_made_right_after_the_files_were_read_is_read_at_the_next_look)
{
    beside = true;
    look(true);
    ck_assert(!beside);
    ck_assert_ptr_null(strstr(said, reloaded));
    look(false);
    ck_assert_msg(strstr(said, reloaded) != NULL, "%s", said);
    look(false);
    ck_assert_str_eq(said, "");
}

/* A start creates the server's certificate, which the first look reads once more. */
TEST(files_that_the_server_wrote_itself_are_no_change)
{
    look(false);
    ck_assert_str_eq(said, "");
    look(false);
    ck_assert_str_eq(said, "");
}
