/*
 * Creates root, intermediate and the keys that are missing, on the caller's thread. The key of the
 * intermediate stays the same when its certificate is renewed, or is signed by another root: so
 * everything it signed verifies under each of its certificates, and clients need not be updated at
 * the same moment. Renewing is in renew_files.c; certificates for clients are in issuing.c.
 */
#include "server/identity/init_impl.h"

#include "libfl/base/str.h"
#include "libfl/pki/when.h"

struct fl_cert_info fl__init_first(const struct fl_chain *chain)
{
    struct fl_cert_info info;

    fl_chain_info(chain, 0, &info);
    return info;
}

void fl__init_log(const struct fl_authority_conf *conf, const char *what,
                  const struct fl_chain *chain)
{
    struct fl_cert_info info = fl__init_first(chain);
    char ends[FL_WHEN_TEXT];

    fl__authority_log(
        conf, FL_LOG_NOTICE, "created %s of federation '%s', serial %s, valid until %s", what,
        conf->federation, info.serial_text, fl_when_text(ends, sizeof(ends), info.not_after));
}

int fl__init_begin(const struct fl_authority_conf *conf, int64_t now, int64_t span,
                   struct fl_issue *ret, struct fl_err *err)
{
    *ret = (struct fl_issue){.federation = conf->federation,
                             .not_before = now - conf->spans.back_date,
                             .not_after = now + span};
    return fl__random(conf, ret->serial, sizeof(ret->serial), err);
}

int fl__init_intermediate(const struct fl_authority_conf *conf, const struct fl__init_put *put,
                          const struct fl_chain *root, const struct fl_key *root_key,
                          const struct fl_key *key, struct fl_chain **slot, struct fl_err *err)
{
    struct fl_issue issue;
    struct fl_chain *first = NULL;
    struct fl_chain *chain = NULL;
    int rv = fl__init_begin(conf, put->now, conf->spans.intermediate, &issue, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_chain_part(root, 0, 1, &first);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_issue_intermediate(first, root_key, key, &issue, &chain, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__files_put_chain(conf, put->name, chain, slot, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl__init_log(conf, put->what, chain);
done:
    fl_chain_unref(first);
    fl_chain_unref(chain);
    return rv;
}

int fl__init_root_key_path(const struct fl_authority_conf *conf, char out[FL__PATH_MAX],
                           struct fl_err *err)
{
    if (conf->root_key == NULL) {
        return fl__files_path(out, conf, "root.key", err);
    }
    return fl_str_copy(out, FL__PATH_MAX, conf->root_key);
}

static int want_root_key(const struct fl_authority_conf *conf, const struct fl__files *files,
                         const char *what, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv;

    if (files->root_key != NULL) {
        return FL_OK;
    }
    rv = fl__init_root_key_path(conf, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_err_set(err, FL_ENOENT,
                      "%s needs the key of the root, but '%s' does not exist or is not the key of "
                      "root.pem: put it there, or configure its path (identity.root_key)",
                      what, path);
}

static int begin_root(const struct fl_authority_conf *conf, struct fl__files *files, int64_t now,
                      struct fl_err *err)
{
    struct fl_issue issue;
    struct fl_chain *root = NULL;
    int rv;

    if (files->root_key == NULL) {
        if (files->intermediate != NULL || files->intermediate_key != NULL) {
            return fl_err_set(
                err, FL_EFORMAT,
                "'%s/identity' has an intermediate, but neither root.pem nor root.key: restore "
                "root.pem from a backup, or move the folder away to start again (then every client "
                "needs a new invitation)",
                conf->state_dir);
        }
        if (conf->root_key != NULL) {
            return want_root_key(conf, files, "a new root", err);
        }
        rv = fl__files_make_key(conf, "root.key", &files->root_key, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl__init_begin(conf, now, conf->spans.root, &issue, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_issue_root(files->root_key, &issue, &root, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__files_put_chain(conf, "root.pem", root, &files->root, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl__init_log(conf, "the root", root);
done:
    fl_chain_unref(root);
    return rv;
}

int fl__files_begin(const struct fl_authority_conf *conf, struct fl__files *files, int64_t now,
                    struct fl_err *err)
{
    const struct fl__init_put put = {
        .name = "intermediate.pem", .what = "an intermediate certificate", .now = now};
    int rv;

    if (files->root == NULL) {
        rv = begin_root(conf, files, now, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (files->intermediate != NULL && files->intermediate_key != NULL) {
        return FL_OK;
    }
    rv = want_root_key(conf, files, "a new intermediate", err);
    if (rv != FL_OK) {
        return rv;
    }
    if (files->intermediate_key == NULL) {
        rv = fl__files_make_key(conf, "intermediate.key", &files->intermediate_key, err);
        if (rv != FL_OK) {
            return rv;
        }
        fl_chain_unref(files->intermediate); /* its key is lost */
        files->intermediate = NULL;
    }
    return fl__init_intermediate(conf, &put, files->root, files->root_key, files->intermediate_key,
                                 &files->intermediate, err);
}

/* --- a root with another key --- */

int fl__files_begin_root(const struct fl_authority_conf *conf, struct fl__files *files, int64_t now,
                         struct fl_err *err)
{
    const struct fl__init_put put = {
        .name = "next-intermediate.pem", .what = "an intermediate certificate", .now = now};
    struct fl_chain *made = NULL;
    struct fl_issue issue;
    int rv;

    if (files->next_root != NULL && files->next_intermediate != NULL) {
        return FL_OK;
    }
    if (files->next_root_key == NULL) {
        rv = fl__files_make_key(conf, "next-root.key", &files->next_root_key, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl__init_begin(conf, now, conf->spans.root, &issue, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_issue_root(files->next_root_key, &issue, &made, err);
    if (rv != FL_OK) {
        return rv;
    }
    /* The intermediate first: next-root.pem marks the change as begun. */
    rv = fl__init_intermediate(conf, &put, made, files->next_root_key, files->intermediate_key,
                               &files->next_intermediate, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__files_put_chain(conf, "next-root.pem", made, &files->next_root, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl__init_log(conf, "the next root", made);
done:
    fl_chain_unref(made);
    return rv;
}
