/*
 * fl-clientd --join: enrols this host, writes a first configuration when there is none, and starts
 * the service or prints the next step. Runs in the foreground of an operator's terminal, in one
 * thread. It does not run the daemon.
 */

#include "client/daemon/enrol_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/conf/first_conf.h"
#include "client/daemon/clientd_conf.h"
#include "client/daemon/clientd_exit.h"
#include "client/daemon/enrol.h"
#include "client/daemon/invitation_file.h"
#include "client/daemon/service_unit.h"
#include "libfl/base/fs.h"
#include "libfl/base/log_out.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/pki/when.h"

#define PATH_BYTES 4096
/*
 * An operator waits at a terminal: retry long enough for a server restart, not for a wrong address.
 */
#define TRIES      4
#define FIRST_MS   1000
#define LONGEST_MS 4000
#define CONNECT_MS 10000

/* One run of --join. */
struct enrol_order {
    const struct fl_enrol_options *options;
    const char *config;
    struct fl_client_conf *conf; /* NULL: not written yet */
    char state_dir[PATH_BYTES];
    char dir[PATH_BYTES];
    const char *name;
    struct fl_proxy_rule proxy;
    char credentials[PATH_BYTES]; /* of `proxy`, absolute; "": none */
    struct fl_invite invite;
    struct fl_enrolled enrolled;
};

static int enrol_print_error(int exit_code, const struct fl_err *err, int rv)
{
    (void)fprintf(stderr, "fl-clientd: %s\n", fl_err_text(err, rv));
    return exit_code;
}

/* --- options and configuration --- */

static int enrol_order_from_conf(struct enrol_order *o, struct fl_err *err)
{
    const struct fl_enrol_options *given = o->options;
    int rv = fl_clientd_conf_load(o->config, NULL, &o->conf, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (given->name != NULL || given->data != NULL || given->state_dir != NULL ||
        given->proxy != NULL || given->proxy_credentials != NULL)
    {
        return fl_err_set(err, FL_ECONF,
                          "'%s' exists already: --name, --data, --state-dir, --proxy and "
                          "--proxy-credentials apply to a first configuration only, edit the file "
                          "instead",
                          o->config);
    }
    if (o->conf->main->insecure) {
        return fl_err_set(err, FL_ECONF,
                          "'%s' has 'insecure: yes': plaintext uses no certificates; remove that "
                          "key to join with an invitation",
                          o->config);
    }
    if (o->conf->tls->certificate[0] != '\0') {
        return fl_err_set(err, FL_ECONF,
                          "'%s' uses certificates of your own PKI (tls.certificate): their issuer "
                          "renews them, joining does not",
                          o->config);
    }
    o->name = o->conf->main->name;
    o->proxy = fl_clientd_proxy(o->conf);
    return fl_str_copy(o->state_dir, sizeof(o->state_dir), o->conf->main->state_dir);
}

static int enrol_order_from_options(struct enrol_order *o, struct fl_err *err)
{
    const struct fl_enrol_options *given = o->options;
    int rv =
        given->proxy_credentials != NULL
            ? fl_fs_absolute(given->proxy_credentials, o->credentials, sizeof(o->credentials), err)
            : FL_OK;

    if (rv != FL_OK) {
        return rv;
    }
    o->proxy = (struct fl_proxy_rule){.proxy = given->proxy != NULL ? given->proxy : "",
                                      .credentials = o->credentials,
                                      .key = "--proxy",
                                      .file_key = "--proxy-credentials"};
    o->name = given->name != NULL ? given->name : "";
    return given->state_dir != NULL
               ? fl_fs_absolute(given->state_dir, o->state_dir, sizeof(o->state_dir), NULL)
               : fl_unit_state_dir(o->config, o->state_dir, sizeof(o->state_dir));
}

static int enrol_order_prepare(struct enrol_order *o, struct fl_err *err)
{
    char path[PATH_BYTES];
    const char *from = o->options->invitation;
    int rv;

    o->config = o->options->config != NULL ? o->options->config : FL_ENROL_CONFIG;
    rv = fl_fs_exists(o->config) ? enrol_order_from_conf(o, err) : enrol_order_from_options(o, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_proxy_check(&o->proxy, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (o->name[0] != '\0' && !fl_name_allowed(o->name)) {
        return fl_err_set(err, FL_ECONF,
                          "--name: expected 1 to %d characters of A-Z a-z 0-9 . _ -, found '%s'",
                          FL_NAME_MAX - 1, o->name);
    }
    rv = fl_fs_join(o->dir, sizeof(o->dir), o->state_dir, "identity");
    if (rv != FL_OK) {
        return rv;
    }
    return fl_invitation_read(from != NULL ? from : fl_invitation_credential(path, sizeof(path)),
                              &o->invite, err);
}

/* --- the owner of the files --- */

/*
 * Root joins on behalf of the user that the daemon runs as, the owner of the state folder: new
 * files must belong to that user.
 */
static int become_owner(const char *state_dir, struct fl_err *err)
{
    struct stat st;

    if (geteuid() != 0 || stat(state_dir, &st) != 0 || st.st_uid == 0) {
        return FL_OK;
    }
    if (setegid(st.st_gid) != 0 || seteuid(st.st_uid) != 0) {
        int saved = errno;

        return fl_err_set(err, fl_err_from_errno(saved),
                          "cannot switch to uid %ld, the owner of '%s': %s", (long)st.st_uid,
                          state_dir, strerror(saved));
    }
    return FL_OK;
}

static int restore_own_ids(struct fl_err *err)
{
    if (seteuid(getuid()) != 0 || setegid(getgid()) != 0) {
        int saved = errno;

        return fl_err_set(err, fl_err_from_errno(saved), "cannot switch back to uid %ld: %s",
                          (long)getuid(), strerror(saved));
    }
    return FL_OK;
}

/* --- joining --- */

static int enrol_order_run(struct enrol_order *o, bool *ret_local, struct fl_err *err)
{
    static struct fl_log_limit limit = FL_LOG_LIMIT_INIT;
    struct fl_log_out out;
    struct fl_log log = {
        .level = FL_LOG_NOTICE, .sink = fl_log_out_sink, .ctx = &out, .limit = &limit};
    struct fl_enrol_setup setup = {.log = &log,
                                   .dir = o->dir,
                                   .invite = &o->invite,
                                   .name = o->name,
                                   .proxy = &o->proxy,
                                   .first_ms = FIRST_MS,
                                   .longest_ms = LONGEST_MS,
                                   .connect_timeout_ms = CONNECT_MS,
                                   .ping_after_ms = FL_GRPC_PING_AFTER_MS,
                                   .ping_limit_ms = FL_GRPC_PING_LIMIT_MS,
                                   .tries = TRIES};
    int rv = fl_loop_create(&setup.loop, err);

    fl_log_out_init(&out, STDERR_FILENO);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_enrol_run(&setup, &o->enrolled, ret_local, err);
    fl_loop_free(setup.loop);
    return rv;
}

static int enrol_command_exit_code(int rv, bool local)
{
    return local ? FL_EXIT_STATE : rv == FL_EPERM ? FL_EXIT_REFUSED : FL_EXIT_FAILURE;
}

static int enrol_as_owner(struct enrol_order *o, struct fl_err *err)
{
    bool local = false;
    int rv = become_owner(o->state_dir, err);
    int exit_code;

    if (rv != FL_OK) {
        return enrol_print_error(FL_EXIT_STATE, err, rv);
    }
    rv = enrol_order_run(o, &local, err);
    if (rv != FL_OK) {
        exit_code = enrol_print_error(enrol_command_exit_code(rv, local), err, rv);
        if (exit_code != FL_EXIT_REFUSED) {
            (void)fputs("fl-clientd: nothing is lost: run the same command with the same "
                        "invitation again\n",
                        stderr);
        }
        return exit_code;
    }
    rv = restore_own_ids(err);
    if (rv != FL_OK) {
        return enrol_print_error(FL_EXIT_FAILURE, err, rv);
    }
    return FL_EXIT_OK;
}

static int write_first(const struct enrol_order *o, struct fl_err *err)
{
    char texts[FL_INVITE_ADDRESSES][FL_ENROL_ADDRESS_MAX];
    const char *servers[FL_INVITE_ADDRESSES];
    char data[PATH_BYTES];
    struct fl_client_first first = {.servers = servers,
                                    .n_servers = o->invite.n_addresses,
                                    .name = o->enrolled.who.name,
                                    .state_dir = o->state_dir,
                                    .proxy = o->proxy.proxy,
                                    .proxy_credentials = o->credentials,
                                    .labels = o->enrolled.labels.list,
                                    .n_labels = o->enrolled.labels.n};
    size_t i;
    int rv;

    for (i = 0; i < o->invite.n_addresses; i++) {
        servers[i] = fl_enrol_address(&o->invite.addresses[i], texts[i]);
    }
    if (o->options->data != NULL) {
        rv = fl_fs_absolute(o->options->data, data, sizeof(data), err);
        if (rv != FL_OK) {
            return rv;
        }
        first.data = data;
    }
    return fl_client_first_write(o->config, &first, err);
}

/* --- the next step --- */

/* Is the data folder known to exist? */
static bool has_data(const struct enrol_order *o)
{
    const char *data = o->options->data != NULL ? o->options->data : FL_CLIENT_FIRST_DATA;

    return o->conf != NULL || fl_fs_exists(data);
}

/* Starts the service when one exists and the data is in place; else prints how to start. */
static int enrol_start_service(const struct enrol_order *o, struct fl_err *err)
{
    char unit[FL_NAME_MAX + 16];
    bool has_unit = fl_unit_name(o->config, o->state_dir, unit, sizeof(unit));

    if (!has_data(o)) {
        (void)printf("next: put the data into %s, or set data.path in %s; then: ",
                     o->options->data != NULL ? o->options->data : FL_CLIENT_FIRST_DATA, o->config);
    } else if (has_unit && !o->options->no_start && fl_unit_can_start()) {
        (void)fflush(stdout);
        if (fl_unit_start(unit, err) == FL_OK) {
            (void)printf("%s is running and starts at each boot\n", unit);
        } else {
            /*
             * Joining succeeded and the invitation is used up: an error exit code would suggest a
             * retry that cannot work.
             */
            (void)fprintf(stderr,
                          "fl-clientd: warning: joined, but the service did not start: %s; fix "
                          "that, then: systemctl enable %s && systemctl restart %s\n",
                          err->msg, unit, unit);
        }
        return FL_EXIT_OK;
    } else {
        (void)printf("next: ");
    }
    if (has_unit) {
        (void)printf("systemctl enable %s && systemctl restart %s\n", unit, unit);
    } else {
        (void)printf("fl-clientd %s\n", o->config);
    }
    return FL_EXIT_OK;
}

static int enrol_command_finish(const struct enrol_order *o, struct fl_err *err)
{
    const struct fl_identity *who = &o->enrolled.who;
    char when[FL_WHEN_TEXT];
    int rv = o->conf == NULL ? write_first(o, err) : FL_EEXIST;

    (void)printf(
        "joined '%s' as '%s'; the certificate is valid until %s and is renewed automatically\n",
        who->federation, who->name, fl_when_text(when, sizeof(when), who->not_after));
    if (rv != FL_OK && rv != FL_EEXIST) {
        (void)enrol_print_error(FL_EXIT_CONFIG, err, rv);
        (void)fputs("fl-clientd: the certificate is in place; run the same command with the same "
                    "invitation again to write the configuration\n",
                    stderr);
        return FL_EXIT_CONFIG;
    }
    if (rv != FL_EEXIST) {
        (void)printf("wrote %s\n", o->config);
    }
    return enrol_start_service(o, err);
}

int fl_enrol_command(const struct fl_enrol_options *options)
{
    struct enrol_order *o = calloc(1, sizeof(*o));
    struct fl_err err = {0};
    int exit_code;
    int rv;

    if (o == NULL) {
        return enrol_print_error(FL_EXIT_FAILURE, &err, FL_ENOMEM);
    }
    o->options = options;
    rv = enrol_order_prepare(o, &err);
    if (rv != FL_OK) {
        exit_code = enrol_print_error(rv == FL_ENOMEM ? FL_EXIT_FAILURE : FL_EXIT_CONFIG, &err, rv);
        goto done;
    }
    exit_code = enrol_as_owner(o, &err);
    if (exit_code == FL_EXIT_OK) {
        exit_code = enrol_command_finish(o, &err);
    }
done:
    fl_enrolled_done(&o->enrolled);
    fl_invite_done(&o->invite);
    fl_client_conf_free(o->conf);
    free(o);
    return exit_code;
}
