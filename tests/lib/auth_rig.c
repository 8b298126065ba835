#include "tests/lib/auth_rig.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void auth_rig_line(void *ctx, enum fl_log_level level, const char *component,
                          const char *text)
{
    struct auth_rig *rig = ctx;
    size_t len = strlen(rig->lines);

    (void)level;
    (void)component;
    (void)snprintf(rig->lines + len, sizeof(rig->lines) - len, "%s\n", text);
}

void auth_rig_folder(struct auth_rig *rig)
{
    *rig = (struct auth_rig){.conf = NULL};
    ck_assert(folder_make("fl-auth", rig->dir));
}

void auth_rig_conf(struct auth_rig *rig, const char *identity)
{
    struct fl_err err = {0};
    char path[FOLDER_PATH + 16];
    FILE *yaml;

    (void)snprintf(path, sizeof(path), "%s/server.yaml", rig->dir);
    yaml = fopen(path, "w");
    ck_assert_ptr_nonnull(yaml);
    (void)fprintf(yaml,
                  "federation: guarded\nstate_dir: %s/state\nlisten: [\"127.0.0.1:7443\"]\n"
                  "rounds: 1\nmodel: {preset: mlr60}\n%s\n",
                  rig->dir, identity);
    ck_assert_int_eq(fclose(yaml), 0);
    ck_assert_msg(fl_serverd_conf_load(path, NULL, &rig->conf, &err) == FL_OK, "%s", err.msg);
    rig->log = (struct fl_log){.level = FL_LOG_NOTICE, .sink = auth_rig_line, .ctx = rig};
    rig->setup = (struct fl_auth_setup){
        .conf = rig->conf->conf, .state_dir = rig->conf->state_dir, .log = &rig->log};
}

void auth_rig_open(struct auth_rig *rig, void (*on_changed)(void *arg))
{
    struct fl_err err = {0};

    ck_assert_int_eq(fl_loop_create(&rig->loop, NULL), FL_OK);
    ck_assert_msg(fl_auth_create(&rig->setup, rig->loop, on_changed, NULL, &rig->auth, &err) ==
                      FL_OK,
                  "%s", err.msg);
}

void auth_rig_done(struct auth_rig *rig)
{
    fl_auth_close(rig->auth);
    fl_loop_free(rig->loop);
    fl_auth_free(rig->auth);
    fl_serverd_conf_free(rig->conf);
    folder_remove(rig->dir);
}

static void auth_rig_nothing(struct fl_authority *authority, void *arg)
{
    (void)authority;
    (void)arg;
}

static void auth_rig_stop(void *arg)
{
    fl_loop_stop(arg);
}

void auth_rig_run(struct auth_rig *rig)
{
    ck_assert_int_eq(fl_auth_submit(rig->auth, auth_rig_nothing, auth_rig_stop, rig->loop), FL_OK);
    fl_loop_run(rig->loop);
}

void auth_rig_look(struct auth_rig *rig, bool all)
{
    rig->lines[0] = '\0';
    fl_auth_look(rig->auth, all);
    auth_rig_run(rig);
}
