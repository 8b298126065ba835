#ifndef FL_SERVER_HOOK_RUNNER_H
#define FL_SERVER_HOOK_RUNNER_H

/*
 * Runs the programs of the section `hooks` (docs/operating.md#hooks): each hook has a thread, on
 * which its programs run one after the other. Nothing waits for them: an event only queues, at most
 * FL_HOOK_QUEUE of a hook. A program that fails, hangs or cannot be started costs a warning.
 *
 * Threading: fl_hooks_fire() from any thread until fl_hooks_close() begins; the rest on the main
 * thread.
 */

#include "server/conf/server_conf.h"
#include "server/core/hook_events.h"

struct fl_hooks;

/* All borrowed; the configuration and the log outlive it. */
struct fl_hooks_setup {
    const struct fl_server_conf *conf;
    const char *state_dir;
    const char *admin; /* path of the admin socket, for flctl */
    const struct fl_log *log;
};

/* FL_OK with NULL where no hook is configured. A program that cannot be found is a warning. */
FL_MUST_CHECK int fl_hooks_create(const struct fl_hooks_setup *setup, struct fl_hooks **ret,
                                  struct fl_err *err);
/* Kills what runs, and frees. NULL is allowed. */
void fl_hooks_close(struct fl_hooks *hooks);

/*
 * Copies `event`. Its program also has FL_EVENT, FL_FEDERATION, FL_STATE_DIR and FL_ADMIN_SOCKET.
 * Without a program for it, or with NULL, nothing happens. Out of memory: it is left out.
 */
void fl_hooks_fire(struct fl_hooks *hooks, const struct fl_hook_event *event);

#endif
