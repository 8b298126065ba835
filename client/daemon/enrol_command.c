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
#include "client/daemon/credentials.h"
#include "client/daemon/enrol.h"
#include "client/daemon/invitation_file.h"
#include "client/daemon/service_unit.h"
#include "libfl/base/fs.h"
#include "libfl/base/log_out.h"
#include "libfl/pki/when.h"

#define PATH_BYTES 4096
/* Somebody waits at a terminal: a server that is being restarted is waited for, a wrong address is
 * not. */
#define TRIES      4
#define FIRST_MS   1000
#define LONGEST_MS 4000
#define CONNECT_MS 10000

/* What is joined for whom. */
struct order {
    const struct fl_enrol_options *options;
    const char *config;
    struct fl_client_conf *conf; /* NULL: it is yet to be written */
    char state_dir[PATH_BYTES];
    char dir[PATH_BYTES];
    const char *name;
    struct fl_invite invite;
    struct fl_enrolled enrolled;
};

static int complain(int exit_code, const struct fl_err *err, int rv)
{
    (void)fprintf(stderr, "fl-clientd: %s\n", fl_err_text(err, rv));
    return exit_code;
}

/* --- what is asked for --- */

static int of_configuration(struct order *o, struct fl_err *err)
{
    const struct fl_enrol_options *given = o->options;
    int rv = fl_clientd_conf_load(o->config, NULL, &o->conf, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (given->name != NULL || given->data != NULL || given->state_dir != NULL) {
        return fl_err_set(err, FL_ECONF,
                          "'%s' is there already: --name, --data and --state-dir are for a first "
                          "configuration, change it in the file",
                          o->config);
    }
    if (o->conf->main->insecure) {
        return fl_err_set(
            err, FL_ECONF,
            "'%s' says 'insecure: yes': plaintext has no certificates; take that key out "
            "to join with an invitation",
            o->config);
    }
    if (o->conf->tls->certificate[0] != '\0') {
        return fl_err_set(err, FL_ECONF,
                          "'%s' names certificates of your own (tls.certificate): they are renewed "
                          "by whoever made them, not by joining",
                          o->config);
    }
    o->name = o->conf->main->name;
    return fl_str_copy(o->state_dir, sizeof(o->state_dir), o->conf->main->state_dir);
}

static int of_options(struct order *o)
{
    o->name = o->options->name != NULL ? o->options->name : "";
    return o->options->state_dir != NULL
               ? fl_fs_absolute(o->options->state_dir, o->state_dir, sizeof(o->state_dir), NULL)
               : fl_unit_state_dir(o->config, o->state_dir, sizeof(o->state_dir));
}

static int prepare(struct order *o, struct fl_err *err)
{
    int rv;

    o->config = o->options->config != NULL ? o->options->config : FL_ENROL_CONFIG;
    rv = fl_fs_exists(o->config) ? of_configuration(o, err) : of_options(o);
    if (rv == FL_OK && o->name[0] != '\0' && !fl_name_allowed(o->name)) {
        rv = fl_err_set(err, FL_ECONF,
                        "--name: expected 1 to %d characters of A-Z a-z 0-9 . _ -, found '%s'",
                        FL_NAME_MAX - 1, o->name);
    }
    rv = rv == FL_OK ? fl_fs_join(o->dir, sizeof(o->dir), o->state_dir, "identity") : rv;
    return rv;
}

static int read_line(struct order *o, struct fl_err *err)
{
    char path[PATH_BYTES];
    const char *from = o->options->invitation;

    return fl_invitation_read(from != NULL ? from : fl_invitation_credential(path, sizeof(path)),
                              &o->invite, err);
}

/* --- whose files they become --- */

/*
 * Root joins for the user that the daemon runs as, who owns the state folder: what is made in it
 * has to be that user's.
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
                          "cannot act for uid %ld, which owns '%s': %s", (long)st.st_uid, state_dir,
                          strerror(saved));
    }
    return FL_OK;
}

static int become_oneself(struct fl_err *err)
{
    if (seteuid(getuid()) != 0 || setegid(getgid()) != 0) {
        int saved = errno;

        return fl_err_set(err, fl_err_from_errno(saved), "cannot become uid %ld again: %s",
                          (long)getuid(), strerror(saved));
    }
    return FL_OK;
}

/* --- joining --- */

static int enrol(struct order *o, bool *ret_local, struct fl_err *err)
{
    static struct fl_log_limit limit = FL_LOG_LIMIT_INIT;
    struct fl_log_out out;
    struct fl_log log = {
        .level = FL_LOG_NOTICE, .sink = fl_log_out_sink, .ctx = &out, .limit = &limit};
    struct fl_enrol_setup setup = {.log = &log,
                                   .dir = o->dir,
                                   .invite = &o->invite,
                                   .name = o->name,
                                   .first_ms = FIRST_MS,
                                   .longest_ms = LONGEST_MS,
                                   .connect_timeout_ms = CONNECT_MS,
                                   .tries = TRIES};
    int rv = fl_loop_create(&setup.loop, err);

    fl_log_out_init(&out, STDERR_FILENO);
    if (rv == FL_OK) {
        rv = fl_enrol_run(&setup, &o->enrolled, ret_local, err);
        fl_loop_free(setup.loop);
    }
    return rv;
}

static int exit_of(int rv, bool local)
{
    return local ? FL_EXIT_STATE : rv == FL_EPERM ? FL_EXIT_REFUSED : FL_EXIT_FAILURE;
}

static int enrol_as_owner(struct order *o, struct fl_err *err)
{
    bool local = false;
    int rv = become_owner(o->state_dir, err);
    int exit_code;

    if (rv != FL_OK) {
        return complain(FL_EXIT_STATE, err, rv);
    }
    rv = enrol(o, &local, err);
    if (rv != FL_OK) {
        exit_code = complain(exit_of(rv, local), err, rv);
        if (exit_code != FL_EXIT_REFUSED) {
            (void)fputs(
                "fl-clientd: nothing is lost: the same command with the same line goes on\n",
                stderr);
        }
        return exit_code;
    }
    rv = become_oneself(err);
    return rv == FL_OK ? FL_EXIT_OK : complain(FL_EXIT_FAILURE, err, rv);
}

static int write_first(const struct order *o, struct fl_err *err)
{
    char address[FL_ENROL_ADDRESS_MAX];
    char data[PATH_BYTES];
    struct fl_opt_pair labels[FL_WIRE_MAX_PAIRS];
    struct fl_client_first first = {.server = fl_enrol_address(&o->invite, address),
                                    .name = o->enrolled.who.name,
                                    .state_dir = o->state_dir,
                                    .labels = labels};
    size_t i;
    int rv = FL_OK;

    for (i = 0; i < o->enrolled.labels.n && i < FL_WIRE_MAX_PAIRS; i++) {
        labels[i] =
            (struct fl_opt_pair){o->enrolled.labels.list[i].key, o->enrolled.labels.list[i].value};
    }
    first.n_labels = i;
    if (o->options->data != NULL) {
        rv = fl_fs_absolute(o->options->data, data, sizeof(data), err);
        first.data = data;
    }
    return rv == FL_OK ? fl_client_first_write(o->config, &first, err) : rv;
}

/* --- what comes next --- */

/* The folder with the data, when it is known to be there. */
static bool has_data(const struct order *o)
{
    const char *data = o->options->data != NULL ? o->options->data : FL_CLIENT_FIRST_DATA;

    return o->conf != NULL || fl_fs_exists(data);
}

/* The service is started when there is one and nothing is missing; else an operator is told how. */
static int start_or_tell(const struct order *o, struct fl_err *err)
{
    char unit[FL_NAME_MAX + 16];
    bool has_unit = fl_unit_name(o->config, o->state_dir, unit, sizeof(unit));

    if (!has_data(o)) {
        (void)printf("next: put the data into %s, or set data.path in %s; then: ",
                     o->options->data != NULL ? o->options->data : FL_CLIENT_FIRST_DATA, o->config);
    } else if (has_unit && !o->options->no_start && fl_unit_can_start()) {
        (void)fflush(stdout);
        if (fl_unit_start(unit, err) == FL_OK) {
            (void)printf("%s runs, now and after each boot\n", unit);
        } else {
            /* Joining succeeded and the invitation is spent: an exit code would ask for a retry
             * that cannot work. */
            (void)fprintf(stderr,
                          "fl-clientd: warning: joined, but the service does not run: %s; fix "
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

static int finish(const struct order *o, struct fl_err *err)
{
    const struct fl_identity *who = &o->enrolled.who;
    char when[FL_WHEN_TEXT];
    int rv = o->conf == NULL ? write_first(o, err) : FL_EEXIST;

    (void)printf("joined '%s' as '%s'; the certificate is good until %s and is renewed by itself\n",
                 who->federation, who->name, fl_when_text(when, sizeof(when), who->not_after));
    if (rv == FL_OK) {
        (void)printf("wrote %s\n", o->config);
    } else if (rv != FL_EEXIST) {
        (void)complain(FL_EXIT_CONFIG, err, rv);
        (void)fputs("fl-clientd: the certificate is in place; the same command with the same line "
                    "writes the configuration\n",
                    stderr);
        return FL_EXIT_CONFIG;
    }
    return start_or_tell(o, err);
}

int fl_enrol_command(const struct fl_enrol_options *options)
{
    struct order *o = calloc(1, sizeof(*o));
    struct fl_err err = {0};
    int exit_code = FL_EXIT_FAILURE;
    int rv;

    if (o == NULL) {
        return complain(FL_EXIT_FAILURE, &err, FL_ENOMEM);
    }
    o->options = options;
    rv = prepare(o, &err);
    rv = rv == FL_OK ? read_line(o, &err) : rv;
    if (rv != FL_OK) {
        exit_code = complain(rv == FL_ENOMEM ? FL_EXIT_FAILURE : FL_EXIT_CONFIG, &err, rv);
    } else {
        exit_code = enrol_as_owner(o, &err);
    }
    if (exit_code == FL_EXIT_OK) {
        exit_code = finish(o, &err);
    }
    fl_enrolled_done(&o->enrolled);
    fl_invite_done(&o->invite);
    fl_client_conf_free(o->conf);
    free(o);
    return exit_code;
}
