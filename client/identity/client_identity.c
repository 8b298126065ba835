/*
 * Loads and checks the identity of a client: certificate, key and trusted roots, from
 * STATE_DIR/identity or from files of an operator's own PKI. Blocking, on the caller's thread; it
 * changes nothing on disk. Writing is in identity_folder.c.
 */

#include "client/identity/client_identity.h"

#include <string.h>
#include <sys/stat.h>

#include "client/identity/folder_impl.h"
#include "libfl/base/fs.h"
#include "libfl/base/rng.h"
#include "libfl/pki/names.h"

/* Read attempts while another process replaces the files. */
#define READINGS 3

/* The loaded files before they are checked as one identity. */
struct reading {
    struct fl_chain *chain;
    struct fl_key *key;
    struct fl_chain *roots;
};

static void reading_done(struct reading *r)
{
    fl_chain_unref(r->chain);
    fl_key_unref(r->key);
    fl_chain_unref(r->roots);
    *r = (struct reading){.chain = NULL};
}

static bool path_given(const char *path)
{
    return path != NULL && path[0] != '\0';
}

static int identity_missing(const char *dir, struct fl_err *err)
{
    return fl_err_set(err, FL_ENOENT,
                      "no certificate in '%s' yet: ask the operator of the server for an "
                      "invitation (flctl invite NAME), and pass it to: fl-clientd --join",
                      dir);
}

/* --- reading --- */

static bool identity_file_exists(const char *dir, const char *name)
{
    char path[FL__PATH_MAX];

    return fl__identity_path(path, dir, name, NULL) == FL_OK && fl_fs_exists(path);
}

/* Loads next.key if it belongs to the certificate: its installation was interrupted. */
static int read_next_key(const char *dir, struct reading *r)
{
    char path[FL__PATH_MAX];
    struct fl_key *key = NULL;
    int rv = fl__identity_path(path, dir, FL__NEXT_KEY, NULL);

    if (rv != FL_OK || !fl_fs_exists(path) || fl_key_load(path, &key, NULL) != FL_OK) {
        return FL_ENOENT;
    }
    if (fl_chain_fits(r->chain, key, NULL) != FL_OK) {
        fl_key_unref(key);
        return FL_ENOENT;
    }
    r->key = key;
    return FL_OK;
}

static int identity_read_key(const char *dir, struct reading *r, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__identity_path(path, dir, FL__KEY, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_key_load(path, &r->key, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_chain_fits(r->chain, r->key, err);
}

static int identity_read_folder(const char *dir, struct reading *r, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    const char *roots = FL__ROOTS;
    int rv = fl_fs_exists(dir) ? fl__folder_check(dir, err) : identity_missing(dir, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!identity_file_exists(dir, FL__CERTIFICATE)) {
        return identity_missing(dir, err);
    }
    rv = fl__identity_path(path, dir, FL__CERTIFICATE, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_chain_load(path, &r->chain, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (read_next_key(dir, r) != FL_OK) {
        rv = identity_read_key(dir, r, err);
        if (rv != FL_OK) {
            return rv;
        }
    } else if (identity_file_exists(dir, FL__NEXT_ROOTS)) {
        roots = FL__NEXT_ROOTS;
    }
    rv = fl__identity_path(path, dir, roots, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_chain_load(path, &r->roots, err);
}

/* --- checking --- */

/*
 * The trusted roots and rules for the server. A certificate of the federation's CA names the
 * federation, and the server has to be of the same one; certificates of an operator's own PKI have
 * no such name, so the host name is checked.
 */
static int identity_create_trust(const struct fl_client_identity_files *files,
                                 const struct reading *r, const char *federation, bool lists,
                                 struct fl_trust **ret, struct fl_err *err)
{
    const char *ca[] = {files->ca};
    struct fl_trust_setup setup = {.roots = path_given(files->ca) ? NULL : r->roots,
                                   .root_files = ca,
                                   .n_root_files = path_given(files->ca) ? 1 : 0,
                                   .crl_files = files->crl,
                                   .n_crl_files = lists ? files->n_crl : 0,
                                   .federation = federation};
    int rv;

    if (federation == NULL) {
        rv = fl_rules_create(NULL, 0, &setup.rules, NULL, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl_trust_create(&setup, ret, err);
    fl_rules_unref(setup.rules);
    return rv;
}

/*
 * Verifies the certificate of the federation's CA. An expired or not yet valid one is no error
 * here.
 */
static int check_ours(const struct fl_client_identity_files *files, const struct reading *r,
                      const struct fl_uri_name *name, struct fl_identity *ret, struct fl_err *err)
{
    struct fl_trust *trust = NULL;
    struct fl_cert_info info;
    int rv = identity_create_trust(files, r, name->federation, /* lists= */ false, &trust, err);

    if (rv != FL_OK) {
        goto done;
    }
    fl_chain_info(r->chain, 0, &info);
    rv = fl_trust_verify(
        trust,
        &(struct fl_claim){.chain = r->chain, .purpose = FL_ROLE_CLIENT, .now = info.not_after},
        ret, NULL, err);
    if (rv != FL_OK && rv != FL_ENOMEM) {
        rv = fl_err_wrap(err, FL_EFORMAT, "'%s'", fl_chain_origin(r->chain));
    }
done:
    fl_trust_unref(trust);
    return rv;
}

static int identity_check(const struct fl_client_identity_files *files, const struct reading *r,
                          struct fl_client_identity *ret, struct fl_err *err)
{
    struct fl_uri_name name;
    int rv = fl_chain_name(r->chain, &name);

    if (rv == FL_ENOENT && !ret->ours) {
        struct fl_cert_info info;

        /*
         * Own PKI: copy the fields of the certificate unverified, because only the server knows
         * the rules for names.
         */
        fl_chain_info(r->chain, 0, &info);
        ret->who = (struct fl_identity){.kind = FL_IDENTITY_CERTIFICATE,
                                        .role = FL_ROLE_CLIENT,
                                        .serial_len = info.serial_len,
                                        .not_before = info.not_before,
                                        .not_after = info.not_after};
        (void)memcpy(ret->who.serial, info.serial, sizeof(ret->who.serial));
        (void)memcpy(ret->who.key, info.key, sizeof(ret->who.key));
        return identity_create_trust(files, r, NULL, /* lists= */ true, &ret->trust, err);
    }
    if (rv == FL_ENOMEM) {
        return rv;
    }
    if (rv != FL_OK) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': expected one name fl://FEDERATION/client/NAME in the certificate, "
                          "found %s: join again with an invitation (fl-clientd --join)",
                          fl_chain_origin(r->chain), rv == FL_ENOENT ? "none" : "others");
    }
    if (name.role != FL_ROLE_CLIENT) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': expected a client's certificate, found one of a %s",
                          fl_chain_origin(r->chain), fl_role_text(name.role));
    }
    rv = check_ours(files, r, &name, &ret->who, err);
    if (rv != FL_OK) {
        return rv;
    }
    return identity_create_trust(files, r, ret->who.federation[0] != '\0' ? name.federation : NULL,
                                 /* lists= */ true, &ret->trust, err);
}

int fl_client_identity_load(const struct fl_client_identity_files *files,
                            struct fl_client_identity *ret, struct fl_err *err)
{
    struct fl_client_identity made = {.ours = !path_given(files->certificate)};
    struct reading r = {.chain = NULL};
    int rv = FL_ECONF;
    int i;

    if (!made.ours) {
        rv = fl_credentials_load(files->certificate, files->key, &r.chain, &r.key, err);
    }
    for (i = 0; made.ours && rv == FL_ECONF && i < READINGS; i++) {
        reading_done(&r);
        rv = identity_read_folder(files->dir, &r, err);
    }
    if (rv != FL_OK) {
        goto done;
    }
    rv = identity_check(files, &r, &made, err);
    if (rv != FL_OK) {
        goto done;
    }
    made.chain = fl_chain_ref(r.chain);
    made.key = fl_key_ref(r.key);
    *ret = made;
done:
    reading_done(&r);
    return rv;
}

void fl_client_identity_done(struct fl_client_identity *identity)
{
    fl_chain_unref(identity->chain);
    fl_key_unref(identity->key);
    fl_trust_unref(identity->trust);
    *identity = (struct fl_client_identity){.chain = NULL};
}

/* --- detecting changed files --- */

static uint64_t mark_of(uint64_t mark, const char *path)
{
    struct stat st;
    uint64_t seen[5] = {mark};

    if (stat(path, &st) != 0) {
        return mark;
    }
    seen[1] = (uint64_t)st.st_ino;
    seen[2] = (uint64_t)st.st_size;
    seen[3] = (uint64_t)st.st_mtim.tv_sec;
    seen[4] = (uint64_t)st.st_mtim.tv_nsec;
    return fl_hash64(seen, sizeof(seen));
}

static uint64_t mark_in(uint64_t mark, const char *given_path, const char *dir, const char *name)
{
    char path[FL__PATH_MAX];

    if (path_given(given_path)) {
        return mark_of(mark, given_path);
    }
    return fl__identity_path(path, dir, name, NULL) == FL_OK ? mark_of(mark, path) : mark;
}

uint64_t fl_client_identity_mark(const struct fl_client_identity_files *files)
{
    uint64_t mark = mark_in(0, files->certificate, files->dir, FL__CERTIFICATE);
    size_t i;

    mark = mark_in(mark, files->key, files->dir, FL__KEY);
    mark = mark_in(mark, files->ca, files->dir, FL__ROOTS);
    for (i = 0; i < files->n_crl; i++) {
        mark = mark_of(mark, files->crl[i]);
    }
    return mark;
}
