#ifndef FL_LIB_AUTH_RIG_H
#define FL_LIB_AUTH_RIG_H

/*
 * Authentication of a server (server/auth) over a folder of its own, with its real identity thread
 * and a loop that runs only in auth_rig_run() and where a test says so.
 */

#include "server/auth/auth.h"
#include "server/daemon/serverd_conf.h"
#include "tests/lib/folder.h"

struct auth_rig {
    char dir[FOLDER_PATH];
    struct fl_serverd_conf *conf;
    struct fl_loop *loop;
    struct fl_log log; /* from FL_LOG_NOTICE on, into `lines` */
    struct fl_auth_setup setup;
    struct fl_auth *auth;
    char lines[4000];
};

/* The folder, and then the configuration: `identity` is its line about certificates. */
void auth_rig_folder(struct auth_rig *rig);
void auth_rig_conf(struct auth_rig *rig, const char *identity);
/* Start; on_changed(arg) as in fl_auth_create(), or NULL. */
void auth_rig_open(struct auth_rig *rig, void (*on_changed)(void *arg));
/* After fl_auth_close() too. Removes the folder. */
void auth_rig_done(struct auth_rig *rig);
/* Run the loop until the jobs that the identity thread has now are done and reported. */
void auth_rig_run(struct auth_rig *rig);
/* Look for changed files as the daemon does; `lines` has what it logged about them. */
void auth_rig_look(struct auth_rig *rig, bool all);

#endif
