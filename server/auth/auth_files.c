/*
 * The credentials of the server and the roots it trusts, read from the files of an operator's own
 * PKI or taken from the federation's authority; the host names in them; and the fingerprint that
 * detects changed files. Runs on the identity thread, before it starts on the caller's. Puts
 * nothing into use: auth.c does.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/checksum.h"
#include "libfl/net/address.h"
#include "server/auth/auth_impl.h"

bool fl_auth_own_pki(const struct fl_server_conf *conf)
{
    return conf->tls->certificate[0] != '\0';
}

/* --- host names --- */

static void auth_add_host(struct fl_auth_place *place, const char *host)
{
    size_t n = place->conf.n_hosts;
    size_t i;

    for (i = 0; i < n; i++) {
        if (strcmp(place->hosts[i], host) == 0) {
            return;
        }
    }
    if (n < FL_AUTHORITY_HOSTS &&
        fl_str_copy(place->host_texts[n], sizeof(place->host_texts[n]), host) == FL_OK)
    {
        place->hosts[n] = place->host_texts[n];
        place->conf.n_hosts++;
    }
}

/* An entry of `identity.hosts`, which serverd_conf.c checked: a host, or one with a port. */
static void auth_add_address(struct fl_auth_place *place, const char *text)
{
    struct fl_invite_address *invited = &place->invited[place->conf.n_invited];
    struct fl_address a;

    if (fl_address_parse_host(text, &a, NULL) != FL_OK) {
        return;
    }
    auth_add_host(place, a.host);
    if (place->conf.n_invited < FL_INVITE_ADDRESSES) {
        (void)snprintf(invited->host, sizeof(invited->host), "%s", a.host);
        invited->port = a.port;
        place->conf.n_invited++;
    }
}

static void auth_log(void *ctx, enum fl_log_level level, const char *text)
{
    fl_log(ctx, level, "identity", "%s", text);
}

/* Default host names: the addresses that the server listens on, then the name of the machine. */
static void guess_hosts(const struct fl_server_conf *conf, struct fl_auth_place *place)
{
    char name[256] = "";
    size_t i;

    for (i = 0; i < conf->main->listen.n; i++) {
        struct fl_address a;

        if (fl_address_parse(conf->main->listen.list[i], &a, NULL) == FL_OK && a.host[0] != '\0' &&
            strcmp(a.host, "0.0.0.0") != 0 && strcmp(a.host, "::") != 0)
        {
            auth_add_host(place, a.host);
        }
    }
    if (gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0') {
        auth_add_host(place, name);
    }
    if (place->conf.n_hosts == 0) {
        auth_add_host(place, "localhost");
    }
}

static uint16_t port_of(const struct fl_server_conf *conf)
{
    struct fl_address a;

    return conf->main->listen.n > 0 &&
                   fl_address_parse(conf->main->listen.list[0], &a, NULL) == FL_OK
               ? a.port
               : 0;
}

void fl_auth_place(const struct fl_auth_setup *setup, struct fl_auth_place *ret)
{
    const struct fl_server_identity *id = setup->conf->identity;
    size_t i;

    *ret = (struct fl_auth_place){.conf = {0}};
    ret->conf = (struct fl_authority_conf){
        .state_dir = setup->state_dir,
        .federation = setup->conf->main->federation,
        .hosts = ret->hosts,
        .port = port_of(setup->conf),
        .spans = {.root = (int64_t)(id->root_validity_ms / 1000),
                  .intermediate = (int64_t)(id->intermediate_validity_ms / 1000),
                  .leaf = (int64_t)(id->validity_ms / 1000),
                  .grace = (int64_t)(id->grace_ms / 1000),
                  .token = (int64_t)(id->invitation_validity_ms / 1000),
                  .back_date = (int64_t)(id->back_date_ms / 1000)},
        .root_key = id->root_key[0] != '\0' ? id->root_key : NULL,
        .credentials = getenv("CREDENTIALS_DIRECTORY"),
        .own_pki = fl_auth_own_pki(setup->conf),
        .say = auth_log,
        .say_ctx = (void *)(uintptr_t)setup->log,
    };
    for (i = 0; i < id->hosts.n; i++) {
        auth_add_address(ret, id->hosts.list[i]);
    }
    ret->conf.invited = id->hosts.n > 0 ? ret->invited : NULL;
    if (id->hosts.n == 0) {
        guess_hosts(setup->conf, ret);
    }
}

/* --- credentials --- */

void fl_credentials_done(struct fl_credentials *c)
{
    fl_chain_unref(c->chain);
    fl_key_unref(c->key);
    fl_trust_unref(c->trust);
    *c = (struct fl_credentials){NULL, NULL, NULL};
}

void fl_credentials_of(const struct fl_authority *authority, struct fl_credentials *ret)
{
    ret->chain = fl_chain_ref(fl_authority_chain(authority));
    ret->key = fl_key_ref(fl_authority_key(authority));
    ret->trust = fl_trust_ref(fl_authority_trust(authority));
}

static int own_trust(const struct fl_server_conf *conf, struct fl_trust **ret, struct fl_err *err)
{
    const struct fl_server_tls *t = conf->tls;
    struct fl_rules *rules = NULL;
    struct fl_trust_setup setup = {.root_files = t->ca.list,
                                   .n_root_files = t->ca.n,
                                   .crl_files = t->crl.list,
                                   .n_crl_files = t->crl.n,
                                   .federation = conf->main->federation};
    int rv = FL_OK;

    if (t->names.n > 0) {
        struct fl_err inner = {0};

        rv = fl_rules_create(t->names.list, t->names.n, &rules, NULL, &inner);
        if (rv != FL_OK) {
            return fl_conf_error(fl_conf_field(conf->file, &t->names), err, "%s",
                                 fl_err_text(&inner, rv));
        }
        setup.rules = rules;
        setup.federation = NULL;
    }
    rv = fl_trust_create(&setup, ret, err);
    fl_rules_unref(rules);
    return rv;
}

int fl_credentials_own_pki(const struct fl_server_conf *conf, struct fl_credentials *ret,
                           struct fl_err *err)
{
    const struct fl_server_tls *t = conf->tls;
    struct fl_credentials c = {NULL, NULL, NULL};
    int rv = fl_credentials_load(t->certificate, t->key, &c.chain, &c.key, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = own_trust(conf, &c.trust, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = c;
    return FL_OK;
fail:
    fl_credentials_done(&c);
    return rv;
}

/* --- changed files --- */

/* Adds the identity, length and modification time of a file to the fingerprint `before`. */
static uint64_t auth_file_fingerprint(const char *path, uint64_t before)
{
    uint64_t seen[5] = {before, 0, 0, 0, 0};
    struct stat st;

    if (stat(path, &st) == 0) {
        seen[1] = (uint64_t)st.st_ino;
        seen[2] = (uint64_t)st.st_size;
        seen[3] = (uint64_t)st.st_mtim.tv_sec;
        seen[4] = (uint64_t)st.st_mtim.tv_nsec;
    }
    return fl_checksum(seen, sizeof(seen));
}

static uint64_t auth_files_fingerprint(const struct fl_opt_texts *list, uint64_t before)
{
    size_t i;

    for (i = 0; i < list->n; i++) {
        before = auth_file_fingerprint(list->list[i], before);
    }
    return before;
}

static uint64_t auth_authority_fingerprint(const char *state_dir)
{
    /* What fl_authority_refresh() reads; the next ones are those of `--init --renew-root`. */
    static const char *const names[] = {"root.pem",      "intermediate.pem",     "intermediate.key",
                                        "server.pem",    "server.key",           "next-root.pem",
                                        "next-root.key", "next-intermediate.pem"};
    char path[FL_SERVER_PATH_MAX + 32];
    uint64_t seen = 0;
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/identity/%s", state_dir, names[i]);
        seen = auth_file_fingerprint(path, seen);
    }
    return seen;
}

bool fl_credentials_changed(const struct fl_auth_setup *setup, uint64_t *seen)
{
    const struct fl_server_tls *t = setup->conf->tls;
    uint64_t before = *seen;

    *seen = fl_auth_own_pki(setup->conf)
                ? auth_files_fingerprint(
                      &t->crl, auth_files_fingerprint(
                                   &t->ca, auth_file_fingerprint(
                                               t->key, auth_file_fingerprint(t->certificate, 0))))
                : auth_authority_fingerprint(setup->state_dir);
    return *seen != before;
}
