/*
 * Loads the certificate, key and trusted roots of this client, makes the TLS filter of its
 * connections, and loads changed files again. Runs on the loop. It requests no certificates
 * (renewal.c, enrol.c) and writes no files.
 */

#include "client/daemon/credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/clientd_exit.h"
#include "client/daemon/session_clock.h"
#include "client/identity/cert_renewal.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/pki/invitation.h"
#include "libfl/pki/when.h"
#include "libfl/tls/tls.h"

#define DIR_MAX 4096

struct fl_client_credentials {
    const struct fl_client_conf *conf;
    const struct fl_log *log;
    char dir[DIR_MAX];
    struct fl_client_identity_files files;
    struct fl_client_identity identity;
    uint64_t mark; /* fl_client_identity_mark() of the files at the last check */
    /* Of each server: the name that its certificate must have, and tickets, are its own. */
    struct fl_tls *tls[FL_CLIENT_SERVERS];
    struct fl_stream_filter filters[FL_CLIENT_SERVERS];
    size_t n_tls;
};

int fl_credentials_dir(const struct fl_client_conf *conf, char *out, size_t size)
{
    return fl_fs_join(out, size, conf->main->state_dir, "identity");
}

/* --- the files --- */

static struct fl_client_identity_files files_of(const struct fl_client_conf *conf, const char *dir)
{
    const struct fl_client_tls *tls = conf->tls;

    return (struct fl_client_identity_files){.dir = dir,
                                             .certificate = tls->certificate,
                                             .key = tls->key,
                                             .ca = tls->ca,
                                             .crl = tls->crl.list,
                                             .n_crl = tls->crl.n};
}

static int credentials_check_name(const struct fl_client_conf *conf,
                                  const struct fl_client_identity *identity, struct fl_err *err)
{
    const char *name = conf->main->name;
    const char *certified = identity->who.name;

    if (name[0] == '\0' && certified[0] == '\0') {
        return fl_conf_error(fl_conf_field(conf->file, &conf->main->name), err,
                             "the certificate '%s' has no fl:// name: set the key 'name' to the "
                             "name that the server derives from this certificate",
                             fl_chain_origin(identity->chain));
    }
    if (name[0] != '\0' && certified[0] != '\0' && strcmp(name, certified) != 0) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->main->name), err,
                             "expected '%s', the name in the certificate '%s', found '%s': remove "
                             "the key, or join with an invitation for that name",
                             certified, fl_chain_origin(identity->chain), name);
    }
    return FL_OK;
}

static int credentials_load(const struct fl_client_conf *conf,
                            const struct fl_client_identity_files *files,
                            struct fl_client_identity *ret, int *ret_exit, struct fl_err *err)
{
    int rv = fl_client_identity_load(files, ret, err);

    *ret_exit = FL_EXIT_STATE;
    if (rv != FL_OK) {
        return rv;
    }
    rv = credentials_check_name(conf, ret, err);
    if (rv != FL_OK) {
        *ret_exit = FL_EXIT_CONFIG;
        fl_client_identity_done(ret);
    }
    return rv;
}

int fl_credentials_check(const struct fl_client_conf *conf, int *ret_exit, struct fl_err *err)
{
    struct fl_client_identity identity = {.chain = NULL};
    struct fl_client_identity_files files;
    char dir[DIR_MAX];
    int rv = fl_credentials_dir(conf, dir, sizeof(dir));

    *ret_exit = FL_EXIT_STATE;
    if (rv != FL_OK) {
        goto done;
    }
    files = files_of(conf, dir);
    rv = credentials_load(conf, &files, &identity, ret_exit, err);
done:
    fl_client_identity_done(&identity);
    return rv;
}

/* --- TLS --- */

static int credentials_create_tls(struct fl_client_credentials *c, const char *host,
                                  struct fl_err *err)
{
    const struct fl_tls_setup setup = {.chain = c->identity.chain,
                                       .key = c->identity.key,
                                       .trust = c->identity.trust,
                                       .host = host,
                                       .now = fl_wall_seconds};
    int rv = fl_tls_create(&setup, &c->tls[c->n_tls], err);

    if (rv != FL_OK) {
        return rv;
    }
    c->filters[c->n_tls] = fl_tls_filter(c->tls[c->n_tls]);
    c->n_tls++;
    return FL_OK;
}

static int credentials_host(const struct fl_client_conf *conf, const char *server, char *out,
                            size_t size, struct fl_err *err)
{
    const char *given = conf->tls->server_name;

    if (given[0] == '\0') {
        return fl_tls_host(server, out, size, err);
    }
    return fl_str_copy(out, size, given) == FL_OK
               ? FL_OK
               : fl_conf_error(fl_conf_field(conf->file, &conf->tls->server_name), err,
                               "expected a host name, found %zu characters", strlen(given));
}

static int credentials_create_each(struct fl_client_credentials *c, int *ret_exit,
                                   struct fl_err *err)
{
    const struct fl_opt_texts *servers = &c->conf->main->server;
    char host[FL_INVITE_HOST_MAX];
    size_t i;
    int rv;

    for (i = 0; i < servers->n && i < FL_CLIENT_SERVERS; i++) {
        rv = credentials_host(c->conf, servers->list[i], host, sizeof(host), err);
        if (rv != FL_OK) {
            *ret_exit = FL_EXIT_CONFIG;
            return rv;
        }
        rv = credentials_create_tls(c, host, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int credentials_open_files(struct fl_client_credentials *c, int *ret_exit,
                                  struct fl_err *err)
{
    int rv = fl_credentials_dir(c->conf, c->dir, sizeof(c->dir));

    *ret_exit = FL_EXIT_STATE;
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "path '%s' is too long", c->conf->main->state_dir);
    }
    c->files = files_of(c->conf, c->dir);
    if (c->files.certificate[0] == '\0') {
        rv = fl_client_identity_settle(c->dir, err);
    }
    c->mark = fl_client_identity_mark(&c->files);
    if (rv != FL_OK) {
        return rv;
    }
    rv = credentials_load(c->conf, &c->files, &c->identity, ret_exit, err);
    if (rv != FL_OK) {
        return rv;
    }
    return credentials_create_each(c, ret_exit, err);
}

int fl_credentials_open(const struct fl_client_conf *conf, const struct fl_log *log,
                        struct fl_client_credentials **ret, int *ret_exit, struct fl_err *err)
{
    struct fl_client_credentials *c = calloc(1, sizeof(*c));
    int rv;

    if (c == NULL) {
        *ret_exit = FL_EXIT_FAILURE;
        return FL_ENOMEM;
    }
    c->conf = conf;
    c->log = log;
    rv = credentials_open_files(c, ret_exit, err);
    if (rv != FL_OK) {
        fl_credentials_free(c);
        return rv;
    }
    *ret = c;
    return FL_OK;
}

void fl_credentials_free(struct fl_client_credentials *c)
{
    if (c == NULL) {
        return;
    }
    for (; c->n_tls > 0; c->n_tls--) {
        fl_tls_unref(c->tls[c->n_tls - 1]);
    }
    fl_client_identity_done(&c->identity);
    free(c);
}

const struct fl_stream_filter *fl_credentials_filters(const struct fl_client_credentials *c)
{
    return c->filters;
}

const struct fl_client_identity *fl_credentials_identity(const struct fl_client_credentials *c)
{
    return &c->identity;
}

const char *fl_credentials_folder(const struct fl_client_credentials *c)
{
    return c->dir;
}

/* --- reloading changed files --- */

int fl_credentials_read(struct fl_client_credentials *c, struct fl_err *err)
{
    struct fl_client_identity found = {.chain = NULL};
    int exit_code;
    size_t i;
    int rv;

    c->mark = fl_client_identity_mark(&c->files);
    rv = credentials_load(c->conf, &c->files, &found, &exit_code, err);
    if (rv != FL_OK) {
        goto fail;
    }
    /* Out of memory in between: the next reading repeats it, both identities are valid. */
    for (i = 0; i < c->n_tls; i++) {
        rv = fl_tls_renew(c->tls[i], found.chain, found.key, found.trust, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    fl_client_identity_done(&c->identity);
    c->identity = found;
    return FL_OK;
fail:
    fl_client_identity_done(&found);
    return rv;
}

bool fl_credentials_look(struct fl_client_credentials *c)
{
    struct fl_err err = {0};
    int rv;

    if (fl_client_identity_mark(&c->files) == c->mark) {
        return false;
    }
    rv = fl_credentials_read(c, &err);
    if (rv != FL_OK) {
        fl_log(c->log, FL_LOG_ERROR, "client",
               "new certificate rejected, keeping the previous one: %s", fl_err_text(&err, rv));
    }
    return rv == FL_OK;
}

int fl_credentials_clock(const struct fl_client_credentials *c, struct fl_err *err)
{
    return fl_renewing_clock(fl_wall_seconds(NULL), fl_built_seconds(), &c->identity.who, err);
}

const char *fl_credentials_over(const struct fl_client_credentials *c, char *out, size_t size)
{
    int64_t now = fl_wall_seconds(NULL);
    char when[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];

    out[0] = '\0';
    if (now <= c->identity.who.not_after) {
        return out;
    }
    (void)fl_when_text(when, sizeof(when), c->identity.who.not_after);
    (void)fl_span_text(span, sizeof(span), now - c->identity.who.not_after);
    if (c->files.certificate[0] != '\0') {
        (void)snprintf(out, size,
                       "certificate '%s' expired at %s, %s ago: ask its issuer for a new one; it "
                       "is used as soon as the file changes",
                       c->files.certificate, when, span);
    } else {
        (void)snprintf(
            out, size,
            "the certificate of this client expired at %s, %s ago: if the server no longer renews "
            "it, ask for an invitation (flctl invite %s) and pass it to: fl-clientd --join",
            when, span, c->identity.who.name);
    }
    return out;
}
