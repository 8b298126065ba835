/* Credentials without a running server: fl-serverd --init, and the checks before a start. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "server/auth/auth_impl.h"

static int64_t auth_init_now_ms(void)
{
    return (int64_t)fl_clock_wall_ms();
}

int fl_auth_init(const struct fl_auth_setup *setup, bool renew_root, struct fl_err *err)
{
    struct fl_auth_place place;
    size_t i;
    int rv;

    FL_REQUIRE(!fl_auth_own_pki(setup->conf));
    fl_auth_place(setup, &place);
    rv = renew_root ? fl_authority_renew_root(&place.conf, auth_init_now_ms(), err)
                    : fl_authority_init(&place.conf, auth_init_now_ms(), err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)printf("federation '%s' has its identity in %s/identity\n", place.conf.federation,
                 place.conf.state_dir);
    (void)printf("clients connect to"); /* So that the operator can check the addresses. */
    for (i = 0; i < place.conf.n_hosts; i++) {
        (void)printf("%s %s", i == 0 ? "" : ",", place.hosts[i]);
    }
    (void)printf(" on port %u (`identity: hosts` names others, and other ports)\n",
                 (unsigned)place.conf.port);
    (void)printf("root.key is needed only for a new intermediate: keep it elsewhere, offline\n"
                 "next: start the server, then for each client: flctl invite NAME\n");
    return FL_OK;
}

/*
 * The server's key where a start finds it: a systemd credential is used before the file in the
 * state folder. Only a process of the unit has the credentials, so a check by hand may find
 * neither.
 */
static bool auth_init_find_key(const char *state_dir, char *path, size_t size)
{
    const char *credentials = getenv("CREDENTIALS_DIRECTORY");

    if (credentials != NULL && fl_fs_join(path, size, credentials, "server.key") == FL_OK &&
        fl_fs_exists(path))
    {
        return true;
    }
    return fl_fs_join(path, size, state_dir, "identity/server.key") == FL_OK && fl_fs_exists(path);
}

static int auth_init_load_chain(const char *certificate, const char *key, struct fl_chain **ret,
                                struct fl_err *err)
{
    struct fl_key *pair = NULL;
    int rv;

    if (key == NULL) {
        return fl_chain_load(certificate, ret, err);
    }
    rv = fl_credentials_load(certificate, key, ret, &pair, err);
    fl_key_unref(pair);
    return rv;
}

/* Notes for the operator go to `notes`: what a start would warn of, and a key that only the unit
 * can load. What a start would fail of is an error. */
static int check_authority(const struct fl_auth_setup *setup, char *notes, size_t size,
                           struct fl_err *err)
{
    struct fl_err soon = {0};
    char certificate[FL_SERVER_PATH_MAX + 32];
    char key[FL_SERVER_PATH_MAX + 32];
    struct fl_chain *chain = NULL;
    bool has_key = auth_init_find_key(setup->state_dir, key, sizeof(key));
    int rv;

    (void)snprintf(certificate, sizeof(certificate), "%s/identity/server.pem", setup->state_dir);
    if (!fl_fs_exists(certificate)) {
        return fl_err_set(err, FL_ENOENT,
                          "'%s' does not exist: the federation has no identity yet; create it with "
                          "`fl-serverd --init` and this configuration, or set `insecure: yes`",
                          certificate);
    }
    rv = auth_init_load_chain(certificate, has_key ? key : NULL, &chain, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_auth_dated_authority(setup, chain, auth_init_now_ms() / 1000, &soon);
    fl_chain_unref(chain);
    if (rv == FL_EAGAIN) {
        (void)snprintf(notes, size, "%s", soon.msg);
    } else if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", soon.msg);
    }
    if (!has_key) {
        (void)snprintf(notes, size,
                       "%s/identity/server.key: not found, so the key was not checked; a unit with "
                       "LoadCredential=server.key provides it only to the service (systemctl start "
                       "fl-serverd checks it), without one restore the file from a backup",
                       setup->state_dir);
    }
    return FL_OK;
}

int fl_auth_check(const struct fl_auth_setup *setup, char *notes, size_t size, struct fl_err *err)
{
    struct fl_credentials c = {NULL, NULL, NULL};
    struct fl_err found = {0};
    int rv;

    notes[0] = '\0';
    if (!fl_server_conf_has_tls(setup->conf)) {
        return FL_OK;
    }
    if (!fl_auth_own_pki(setup->conf)) {
        return check_authority(setup, notes, size, err);
    }
    rv = fl_credentials_own_pki(setup->conf, &c, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (fl_auth_dated(setup->conf, c.chain, auth_init_now_ms() / 1000, &found) != FL_OK) {
        (void)snprintf(notes, size, "%s", found.msg); /* A start only warns of it. */
    }
    fl_credentials_done(&c);
    return FL_OK;
}
