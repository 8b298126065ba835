/*
 * Unattended joining, for host images that contain an invitation as a systemd credential. Runs the
 * given loop until joining ends or a signal stops it.
 */

#include <signal.h>

#include "client/daemon/clientd_conf.h"
#include "client/daemon/clientd_exit.h"
#include "client/daemon/credentials.h"
#include "client/daemon/enrol.h"
#include "client/daemon/invitation_file.h"
#include "libfl/pki/when.h"

#define PATH_BYTES 4096

static int enrol_unattended_exit_code(int rv, bool local)
{
    if (rv == FL_ECANCELED) {
        return FL_EXIT_OK;
    }
    return local ? FL_EXIT_STATE : rv == FL_EPERM ? FL_EXIT_REFUSED : FL_EXIT_FAILURE;
}

static void enrol_on_signal(void *arg, int signum)
{
    (void)signum;
    fl_loop_stop(arg);
}

/* Retries without limit, until SIGTERM or SIGINT. */
static int enrol_run_until_signal(struct fl_enrol_setup *setup, struct fl_enrolled *ret,
                                  bool *ret_local, struct fl_err *err)
{
    struct fl_signal *term = NULL;
    struct fl_signal *interrupt = NULL;
    int rv = fl_signal_create(setup->loop, SIGTERM, enrol_on_signal, setup->loop, &term);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_signal_create(setup->loop, SIGINT, enrol_on_signal, setup->loop, &interrupt);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_enrol_run(setup, ret, ret_local, err);
done:
    fl_signal_close(term);
    fl_signal_close(interrupt);
    return rv;
}

static int join_with(const struct fl_client_conf *conf, const char *credential,
                     struct fl_loop *loop, const struct fl_log *log, int *ret_exit,
                     struct fl_err *err)
{
    struct fl_enrolled enrolled = {.labels = {NULL}};
    struct fl_invite invite;
    char dir[PATH_BYTES];
    char when[FL_WHEN_TEXT];
    bool local = false;
    const struct fl_proxy_rule proxy = fl_clientd_proxy(conf);
    struct fl_enrol_setup setup = {.loop = loop,
                                   .log = log,
                                   .dir = dir,
                                   .invite = &invite,
                                   .name = conf->main->name,
                                   .proxy = &proxy,
                                   .first_ms = conf->reconnect->first_ms,
                                   .longest_ms = conf->reconnect->longest_ms,
                                   .refused_ms = conf->reconnect->after_refusal_ms,
                                   .connect_timeout_ms = conf->reconnect->connect_timeout_ms,
                                   .ping_after_ms = conf->reconnect->ping_after_ms,
                                   .ping_limit_ms = conf->reconnect->ping_limit_ms};
    int rv = fl_invitation_read(credential, &invite, err);

    if (rv != FL_OK) {
        *ret_exit = FL_EXIT_CONFIG;
        return rv;
    }
    rv = fl_credentials_dir(conf, dir, sizeof(dir));
    if (rv != FL_OK) {
        goto done;
    }
    fl_log(log, FL_LOG_NOTICE, "client",
           "joining '%s' with the invitation from the systemd credential", invite.federation);
    rv = enrol_run_until_signal(&setup, &enrolled, &local, err);
done:
    fl_invite_done(&invite);
    *ret_exit = enrol_unattended_exit_code(rv, local);
    if (rv != FL_OK) {
        return rv;
    }
    fl_log(log, FL_LOG_NOTICE, "client", "joined: federation=%s name=%s until=%s",
           enrolled.who.federation, enrolled.who.name,
           fl_when_text(when, sizeof(when), enrolled.who.not_after));
    fl_enrolled_done(&enrolled);
    return FL_OK;
}

int fl_enrol_by_credential(const struct fl_client_conf *conf, struct fl_loop *loop,
                           const struct fl_log *log, int *ret_exit, struct fl_err *err)
{
    char path[PATH_BYTES];
    const char *credential = fl_invitation_credential(path, sizeof(path));

    if (credential == NULL || conf->tls->certificate[0] != '\0' ||
        fl_credentials_check(conf, ret_exit, NULL) != FL_ENOENT)
    {
        return FL_OK; /* Other errors are reported when the certificate is opened. */
    }
    return join_with(conf, credential, loop, log, ret_exit, err);
}
