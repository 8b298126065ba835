/*
 * Folder and files of an authority: reads and writes them, and checks their owner and mode. On the
 * caller's thread. Which files have to be created or renewed is decided in init.c.
 */
#include "server/identity/identity_files_impl.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"

void fl__authority_log(const struct fl_authority_conf *conf, enum fl_log_level level,
                       const char *fmt, ...)
{
    char text[FL_ERR_BUF_SIZE];
    va_list args;

    if (conf->say == NULL) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    conf->say(conf->say_ctx, level, text);
}

int fl__random(const struct fl_authority_conf *conf, void *out, size_t len, struct fl_err *err)
{
    int rv =
        conf->random != NULL ? conf->random(conf->random_ctx, out, len) : fl_random_bytes(out, len);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "no random bytes: %s", fl_strerror(rv));
    }
    return FL_OK;
}

int fl__files_path(char out[FL__PATH_MAX], const struct fl_authority_conf *conf, const char *name,
                   struct fl_err *err)
{
    int n = snprintf(out, FL__PATH_MAX, "%s/identity%s%s", conf->state_dir,
                     name[0] != '\0' ? "/" : "", name);

    return n > 0 && n < FL__PATH_MAX
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%.100s…' is too long", conf->state_dir);
}

static const char *identity_files_user_name(uid_t uid, char *out, size_t size)
{
    char space[1024];
    struct passwd entry;
    struct passwd *found = NULL;

    if (getpwuid_r(uid, &entry, space, sizeof(space), &found) == 0 && found != NULL) {
        (void)snprintf(out, size, "'%s'", found->pw_name);
    } else {
        (void)snprintf(out, size, "uid %lu", (unsigned long)uid);
    }
    return out;
}

/* FL_ENOENT: there is no such folder. */
static int identity_check_owner(const char *path, mode_t not_for, struct fl_err *err)
{
    char owner[80];
    char we[80];
    struct stat st;

    if (lstat(path, &st) != 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "folder '%s': %s", path, strerror(errno));
    }
    if (!S_ISDIR(st.st_mode)) {
        return fl_err_set(err, FL_EEXIST, "'%s' is not a folder", path);
    }
    if (st.st_uid != geteuid()) {
        return fl_err_set(err, FL_EPERM,
                          "folder '%s' belongs to %s, but this process runs as %s: run it as the "
                          "owner of the federation, or configure another state folder",
                          path, identity_files_user_name(st.st_uid, owner, sizeof(owner)),
                          identity_files_user_name(geteuid(), we, sizeof(we)));
    }
    if ((st.st_mode & not_for) != 0) {
        return fl_err_set(
            err, FL_EPERM,
            "permissions too open: users other than %s can access folder '%s' (mode %04o), which "
            "contains keys: chmod 700 '%s', and find out who has read them",
            identity_files_user_name(st.st_uid, owner, sizeof(owner)), path,
            (unsigned)(st.st_mode & 07777), path);
    }
    return FL_OK;
}

int fl__files_check_folder(const struct fl_authority_conf *conf, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__files_path(path, conf, "", err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = identity_check_owner(path, 077, err);
    if (rv == FL_ENOENT) {
        return fl_err_set(
            err, rv,
            "there is no identity in '%s' yet: run fl-serverd --init with this configuration",
            path);
    }
    return rv;
}

int fl__files_make_folder(const struct fl_authority_conf *conf, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__files_path(path, conf, "", err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_mkdirs(conf->state_dir, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = identity_check_owner(conf->state_dir, 0, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot create folder '%s': %s", path,
                          strerror(errno));
    }
    rv = identity_check_owner(path, 077, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_sync_dir(conf->state_dir, err);
}

static int load_chain(const struct fl_authority_conf *conf, const char *name,
                      struct fl_chain **slot, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__files_path(path, conf, name, err);

    if (rv != FL_OK || !fl_fs_exists(path)) {
        return rv;
    }
    return fl_chain_load(path, slot, err);
}

static int load_key(const struct fl_authority_conf *conf, const char *name, struct fl_key **slot,
                    struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__files_path(path, conf, name, err);

    if (rv != FL_OK || !fl_fs_exists(path)) {
        return rv;
    }
    return fl_key_load(path, slot, err);
}

/* A systemd credential takes precedence over the file. */
static int load_credential(const struct fl_authority_conf *conf, const char *name,
                           struct fl_key **slot, struct fl_err *err)
{
    char path[FL__PATH_MAX];

    if (conf->credentials != NULL &&
        fl_fs_join(path, sizeof(path), conf->credentials, name) == FL_OK && fl_fs_exists(path))
    {
        return fl_key_load(path, slot, err);
    }
    return load_key(conf, name, slot, err);
}

/* The root's key may be kept elsewhere. */
static int load_root_key(const struct fl_authority_conf *conf, const char *name,
                         struct fl_key **slot, struct fl_err *err)
{
    if (conf->root_key == NULL) {
        return load_key(conf, name, slot, err);
    }
    return fl_fs_exists(conf->root_key) ? fl_key_load(conf->root_key, slot, err) : FL_OK;
}

int fl__files_load(const struct fl_authority_conf *conf, struct fl__files *ret, struct fl_err *err)
{
    struct fl__files files = {0};
    struct fl_err why = {0};
    const struct {
        const char *name;
        struct fl_chain **chain; /* NULL: it is a key */
        struct fl_key **key;
        int (*load_key)(const struct fl_authority_conf *conf, const char *name,
                        struct fl_key **slot, struct fl_err *err);
    } all[] = {
        {"root.pem", &files.root, NULL, NULL},
        {"root.key", NULL, &files.root_key, load_root_key},
        {"next-root.pem", &files.next_root, NULL, NULL},
        {"next-root.key", NULL, &files.next_root_key, load_key},
        {"next-intermediate.pem", &files.next_intermediate, NULL, NULL},
        {"intermediate.pem", &files.intermediate, NULL, NULL},
        {"intermediate.key", NULL, &files.intermediate_key, load_credential},
        {"server.pem", &files.server, NULL, NULL},
        {"server.key", NULL, &files.server_key, load_credential},
    };
    size_t i;
    int rv;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        rv = all[i].chain != NULL ? load_chain(conf, all[i].name, all[i].chain, err)
                                  : all[i].load_key(conf, all[i].name, all[i].key, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    if (files.intermediate != NULL && files.intermediate_key != NULL) {
        rv = fl_chain_fits(files.intermediate, files.intermediate_key, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    /* A key that does not belong to the root is from an unfinished change, or was put there by
     * mistake. */
    if (files.root_key != NULL && files.root != NULL &&
        fl_chain_fits(files.root, files.root_key, &why) != FL_OK)
    {
        if (files.next_root == NULL) {
            fl__authority_log(conf, FL_LOG_WARNING, "%s is not used: %s",
                              fl_key_origin(files.root_key), why.msg);
        }
        fl_key_unref(files.root_key);
        files.root_key = NULL;
    }
    *ret = files;
    return FL_OK;
fail:
    fl__files_done(&files);
    return rv;
}

void fl__files_drop_root_keys(struct fl__files *files)
{
    fl_key_unref(files->root_key);
    fl_key_unref(files->next_root_key);
    files->root_key = NULL;
    files->next_root_key = NULL;
}

void fl__files_done(struct fl__files *files)
{
    fl_chain_unref(files->root);
    fl_key_unref(files->root_key);
    fl_chain_unref(files->next_root);
    fl_chain_unref(files->next_intermediate);
    fl_key_unref(files->next_root_key);
    fl_chain_unref(files->intermediate);
    fl_chain_unref(files->server);
    fl_key_unref(files->intermediate_key);
    fl_key_unref(files->server_key);
    *files = (struct fl__files){0};
}

int fl__files_put_chain(const struct fl_authority_conf *conf, const char *name,
                        struct fl_chain *chain, struct fl_chain **slot, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__files_path(path, conf, name, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_chain_save(chain, path, true, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_chain_unref(*slot);
    *slot = fl_chain_ref(chain);
    return FL_OK;
}

int fl__files_make_key(const struct fl_authority_conf *conf, const char *name, struct fl_key **slot,
                       struct fl_err *err)
{
    char path[FL__PATH_MAX];
    struct fl_key *key = NULL;
    int rv = fl__files_path(path, conf, name, err);

    FL_REQUIRE(*slot == NULL);
    if (rv != FL_OK) {
        return rv;
    }
    if (fl_fs_exists(path)) {
        return fl_err_set(err, FL_EEXIST, "'%s' exists: a key is never overwritten", path);
    }
    rv = fl_key_make(&key);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot create a key: %s", fl_strerror(rv));
    }
    rv = fl_key_save(key, path, true, err);
    if (rv != FL_OK) {
        fl_key_unref(key);
        return rv;
    }
    fl__authority_log(conf, FL_LOG_NOTICE, "created the key %s", path);
    *slot = key;
    return FL_OK;
}
