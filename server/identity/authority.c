/*
 * Creates, opens, refreshes and closes an authority: its files and its lock. Synchronous, on the
 * caller's thread. Its database, issuing, joining and revoking are in files of their own.
 */

#include "server/identity/authority.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/identity/authority_impl.h"

#define HOUR_MS  (INT64_C(3600) * 1000)
#define DAY_MS   (24 * HOUR_MS)
#define RETRY_MS (INT64_C(300) * 1000)

const struct fl_authority_spans fl_authority_default_spans = {
    .root = INT64_C(10) * 365 * 86400,
    .intermediate = INT64_C(2) * 365 * 86400,
    .leaf = INT64_C(30) * 86400,
    .grace = INT64_C(60) * 86400,
    .token = 3600,
    .back_date = 600,
};

static void fill_spans(struct fl_authority_spans *spans)
{
    if (spans->root == 0) {
        *spans = fl_authority_default_spans;
    }
}

static int authority_check_conf(const struct fl_authority_conf *conf, struct fl_err *err)
{
    const struct fl_authority_spans *s = &conf->spans;

    FL_REQUIRE(conf->state_dir != NULL && conf->n_hosts <= FL_AUTHORITY_HOSTS);
    if (!fl_name_allowed(conf->federation)) {
        return fl_err_set(err, FL_ECONF,
                          "invalid name of the federation: expected 1 to %d of [A-Za-z0-9._-], not "
                          "starting with a dot or '-'",
                          FL_NAME_MAX - 1);
    }
    if (conf->own_pki) {
        return FL_OK;
    }
    if (conf->n_hosts == 0) {
        return fl_err_set(err, FL_ECONF,
                          "no host name or address of this server is configured: its certificate "
                          "needs at least one");
    }
    if (s->leaf <= 0 || s->leaf >= s->intermediate || s->intermediate > s->root) {
        return fl_err_set(err, FL_ECONF,
                          "a certificate cannot be valid longer than its issuer: leaf %lld s, "
                          "intermediate %lld s, root %lld s",
                          (long long)s->leaf, (long long)s->intermediate, (long long)s->root);
    }
    return FL_OK;
}

/*
 * --- the lock of the folder: held only during a change, since --init may run beside a server ---
 */

/*
 * A command waits for a server that is reading the files; a server does not wait and retries later.
 */
static int authority_lock_folder(const struct fl_authority_conf *conf, bool wait, int *ret_fd,
                                 struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__files_path(path, conf, "", err);

    if (rv != FL_OK) {
        return rv;
    }
    return wait ? fl_fs_lock_dir_wait(path, ret_fd, err) : fl_fs_lock_dir(path, ret_fd, err);
}

int fl_authority_check_folder(const char *state_dir, struct fl_err *err)
{
    const struct fl_authority_conf conf = {.state_dir = state_dir};

    return fl__files_check_folder(&conf, err);
}

/* Common part of --init and --renew-root. */
static int authority_change_files(const struct fl_authority_conf *given, int64_t now_ms,
                                  bool renew_root, struct fl_err *err)
{
    struct fl_authority_conf conf = *given;
    struct fl__files files = {0};
    struct fl_db db = {0};
    int64_t now = now_ms / 1000;
    int64_t due = 0;
    int lock = -1;
    int rv;

    fill_spans(&conf.spans);
    rv = authority_check_conf(&conf, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__files_make_folder(&conf, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = authority_lock_folder(&conf, /* wait= */ true, &lock, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__identity_db_open(&conf, &db, err);
    if (rv != FL_OK || conf.own_pki) {
        goto done;
    }
    rv = fl__files_load(&conf, &files, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__files_begin(&conf, &files, now, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (renew_root) {
        rv = fl__files_begin_root(&conf, &files, now, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl__files_renew(&conf, &files, now, true, &due, err);
done:
    fl__files_done(&files);
    fl_db_close(&db);
    (void)close(lock);
    return rv;
}

int fl_authority_init(const struct fl_authority_conf *conf, int64_t now_ms, struct fl_err *err)
{
    return authority_change_files(conf, now_ms, false, err);
}

int fl_authority_renew_root(const struct fl_authority_conf *conf, int64_t now_ms,
                            struct fl_err *err)
{
    return authority_change_files(conf, now_ms, true, err);
}

/* --- open --- */

static void authority_copy_invited(struct fl_authority *a, const struct fl_authority_conf *conf)
{
    size_t n = conf->invited != NULL ? conf->n_invited : conf->n_hosts;
    size_t i;

    n = n < FL_INVITE_ADDRESSES ? n : FL_INVITE_ADDRESSES;
    for (i = 0; i < n; i++) {
        if (conf->invited != NULL) {
            a->invited[i] = conf->invited[i];
        } else {
            (void)snprintf(a->invited[i].host, sizeof(a->invited[i].host), "%s", conf->hosts[i]);
        }
    }
    a->conf.invited = a->invited;
    a->conf.n_invited = n;
}

static int authority_copy_conf(struct fl_authority *a, const struct fl_authority_conf *conf)
{
    const char *from[5] = {conf->state_dir, conf->federation, conf->root_key, conf->credentials,
                           NULL};
    size_t i;

    a->conf = *conf;
    fill_spans(&a->conf.spans);
    for (i = 0; i < 4; i++) {
        a->texts[i] = from[i] != NULL ? fl_str_dup(from[i]) : NULL;
        if (from[i] != NULL && a->texts[i] == NULL) {
            return FL_ENOMEM;
        }
    }
    a->conf.state_dir = a->texts[0];
    a->conf.federation = a->texts[1];
    a->conf.root_key = a->texts[2];
    a->conf.credentials = a->texts[3];
    a->hosts = calloc(conf->n_hosts + 1, sizeof(*a->hosts));
    if (a->hosts == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < conf->n_hosts; i++) {
        a->hosts[i] = fl_str_dup(conf->hosts[i]);
        if (a->hosts[i] == NULL) {
            return FL_ENOMEM;
        }
    }
    a->conf.hosts = (const char *const *)a->hosts;
    authority_copy_invited(a, conf);
    return FL_OK;
}

/* Takes `files`, on success only. */
static int authority_use_files(struct fl_authority *a, struct fl__files *files, int64_t now_ms,
                               struct fl_err *err)
{
    struct fl_trust_setup setup = {.federation = a->conf.federation,
                                   .intermediates = files->intermediate,
                                   .grace_s = a->conf.spans.grace};
    /* The server's certificate is verified as clients will: validity, names and federation. */
    const struct fl_claim claim = {.chain = files->server,
                                   .purpose = FL_ROLE_SERVER,
                                   .host = a->conf.hosts[0],
                                   .now = now_ms / 1000};
    struct fl_identity who;
    struct fl_chain *roots = NULL;
    struct fl_trust *trust = NULL;
    int rv;

    if (files->next_root == NULL) {
        roots = fl_chain_ref(files->root);
    } else {
        rv = fl_chain_join(files->root, files->next_root, &roots);
        if (rv != FL_OK) {
            return rv;
        }
    }
    setup.roots = roots;
    rv = fl_trust_create(&setup, &trust, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_trust_verify(trust, &claim, &who, NULL, err);
    if (rv != FL_OK) {
        rv = fl_err_wrap(err, rv, "the server's own certificate");
        goto fail;
    }
    fl_chain_unref(a->roots);
    fl_trust_unref(a->trust);
    fl__files_done(&a->files);
    a->roots = roots;
    a->trust = trust;
    fl__files_drop_root_keys(files); /* A running server signs with the intermediate's key only. */
    a->files = *files;
    *files = (struct fl__files){0};
    return FL_OK;
fail:
    fl_chain_unref(roots);
    fl_trust_unref(trust);
    return rv;
}

/* True for the same certificates in the same order. */
static bool authority_chain_equal(const struct fl_chain *x, const struct fl_chain *y)
{
    size_t n = x != NULL ? fl_chain_len(x) : 0;
    size_t i;

    if (n != (y != NULL ? fl_chain_len(y) : 0)) {
        return false;
    }
    for (i = 0; i < n; i++) {
        struct fl_cert_info a;
        struct fl_cert_info b;

        fl_chain_info(x, i, &a);
        fl_chain_info(y, i, &b);
        if (strcmp(a.serial_text, b.serial_text) != 0 || memcmp(a.key, b.key, sizeof(a.key)) != 0) {
            return false;
        }
    }
    return true;
}

/* Under the lock of the folder: loads the files, renews what is due, and uses them. */
static int refresh_locked(struct fl_authority *a, int64_t now_ms, char *ret_warning,
                          int64_t *ret_due, bool *ret_changed, struct fl_err *err)
{
    struct fl__files files = {0};
    int rv = fl__files_load(&a->conf, &files, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (files.root == NULL || files.intermediate == NULL || files.intermediate_key == NULL) {
        rv = fl_err_set(
            err, FL_ENOENT,
            "there is no %s in '%s/identity' yet: run fl-serverd --init with this configuration",
            files.root == NULL           ? "root.pem"
            : files.intermediate == NULL ? "intermediate.pem"
                                         : "intermediate.key",
            a->conf.state_dir);
        goto done;
    }
    rv = fl__files_renew(&a->conf, &files, now_ms / 1000, false, ret_due, err);
    if (rv != FL_OK) {
        goto done;
    }
    *ret_changed = !authority_chain_equal(files.server, a->files.server) ||
                   !authority_chain_equal(files.root, a->files.root) ||
                   !authority_chain_equal(files.next_root, a->files.next_root);
    fl__files_root_key_warning(&a->conf, &files, now_ms / 1000, ret_warning);
    rv = authority_use_files(a, &files, now_ms, err);
done:
    fl__files_done(&files);
    return rv;
}

static int refresh_files(struct fl_authority *a, int64_t now_ms, bool *ret_changed,
                         struct fl_err *err)
{
    char wanted[FL_ERR_BUF_SIZE];
    int64_t due = INT64_MAX;
    int lock = -1;
    int rv = fl__files_check_folder(&a->conf, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = authority_lock_folder(&a->conf, /* wait= */ false, &lock, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = refresh_locked(a, now_ms, wanted, &due, ret_changed, err);
    (void)close(lock);
    if (rv != FL_OK) {
        return rv;
    }
    if (wanted[0] != '\0' &&
        (a->warned_ms == 0 || now_ms - a->warned_ms >= DAY_MS || now_ms < a->warned_ms))
    {
        a->warned_ms = now_ms;
        fl__authority_log(&a->conf, FL_LOG_WARNING, "%s", wanted);
    }
    a->due_ms = due < INT64_MAX / 1000 ? due * 1000 : INT64_MAX;
    return FL_OK;
}

int fl_authority_refresh(struct fl_authority *authority, int64_t now_ms, bool *ret_changed,
                         struct fl_err *err)
{
    bool changed = false;
    int rv;

    authority->due_ms = INT64_MAX;
    rv = fl__audit_counted(authority, false, now_ms, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__identity_db_clean(authority, now_ms, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (!authority->conf.own_pki) {
        rv = refresh_files(authority, now_ms, &changed, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    if (authority->due_ms > now_ms + HOUR_MS) {
        authority->due_ms = now_ms + HOUR_MS;
    }
    if (ret_changed != NULL) {
        *ret_changed = changed;
    }
    return FL_OK;
fail:
    authority->due_ms = now_ms + RETRY_MS;
    return rv;
}

int fl_authority_open(const struct fl_authority_conf *conf, int64_t now_ms,
                      struct fl_authority **ret, struct fl_err *err)
{
    struct fl_authority *a = calloc(1, sizeof(*a));
    int rv;

    if (a == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory");
    }
    rv = authority_copy_conf(a, conf);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "out of memory");
        goto fail;
    }
    fl_buf_init(&a->log_lines, FL__LOG_LINES_MAX);
    a->revocations_stale = true;
    rv = authority_check_conf(&a->conf, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (a->conf.own_pki) {
        rv = fl__files_make_folder(&a->conf, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl__files_check_folder(&a->conf, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__identity_db_open(&a->conf, &a->db, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_authority_refresh(a, now_ms, NULL, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = a;
    return FL_OK;
fail:
    fl_authority_close(a);
    return rv;
}

void fl_authority_bound(struct fl_authority *authority, uint16_t port)
{
    if (authority->conf.port == 0) {
        authority->conf.port = port;
    }
}

void fl_authority_close(struct fl_authority *authority)
{
    size_t i;

    if (authority == NULL) {
        return;
    }
    for (i = 0; i < sizeof(authority->texts) / sizeof(authority->texts[0]); i++) {
        free(authority->texts[i]);
    }
    for (i = 0; authority->hosts != NULL && authority->hosts[i] != NULL; i++) {
        free(authority->hosts[i]);
    }
    free((void *)authority->hosts);
    fl_db_close(&authority->db);
    fl__files_done(&authority->files);
    fl_chain_unref(authority->roots);
    fl_trust_unref(authority->trust);
    fl_revocations_unref(authority->revocations);
    fl_buf_done(&authority->log_lines);
    free(authority);
}

bool fl_authority_due(const struct fl_authority *authority, int64_t now_ms)
{
    return now_ms >= authority->due_ms || now_ms < authority->due_ms - HOUR_MS;
}

struct fl_chain *fl_authority_chain(const struct fl_authority *authority)
{
    return authority->files.server;
}

struct fl_key *fl_authority_key(const struct fl_authority *authority)
{
    return authority->files.server_key;
}

struct fl_trust *fl_authority_trust(const struct fl_authority *authority)
{
    return authority->trust;
}

/* --- shared with the other files --- */

int fl__issues(const struct fl_authority *a, struct fl_err *err)
{
    if (!a->conf.own_pki) {
        return FL_OK;
    }
    return fl_err_set(err, FL_ESTATE,
                      "the certificates of federation '%s' are issued by its operator's own PKI "
                      "(`tls.ca`): request one there",
                      a->conf.federation);
}

int fl__authority_begin(struct fl_authority *a, struct fl_err *err)
{
    fl_buf_clear(&a->log_lines);
    a->n_log_lines = 0;
    return fl_db_begin(&a->db, err);
}

int fl__authority_end(struct fl_authority *a, int rv, struct fl_err *err)
{
    size_t logged = 0;
    size_t at = 0;

    rv = fl_db_end(&a->db, rv, err);
    if (rv != FL_OK) {
        goto done;
    }
    while (at < a->log_lines.len) {
        const char *line = (const char *)a->log_lines.data + at;

        fl__authority_log(&a->conf, FL_LOG_NOTICE, "%s", line);
        at += strlen(line) + 1;
        logged++;
    }
    if (logged < a->n_log_lines) {
        fl__authority_log(&a->conf, FL_LOG_NOTICE, "audit: and %zu more entries (flctl audit)",
                          a->n_log_lines - logged);
    }
done:
    fl_buf_clear(&a->log_lines);
    a->n_log_lines = 0;
    return rv;
}
