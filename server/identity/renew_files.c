/*
 * Renews root, intermediate and the server's certificate when they are due, and completes the
 * change of the root, on the caller's thread. Each step derives from the files, so that after a
 * crash the next call continues. What is missing is created in init.c.
 */
#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "libfl/pki/when.h"
#include "server/identity/init_impl.h"

static int64_t min_s(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When two thirds of the validity have passed. */
static int64_t init_due_at(const struct fl_cert_info *info)
{
    return info->not_before + (info->not_after - info->not_before) / 3 * 2;
}

/*
 * True for a certificate to be renewed. One that is not valid yet was created while a clock was
 * wrong: an operator who runs --init confirms that the clock is right now.
 */
static bool init_is_due(const struct fl_cert_info *info, int64_t now, bool init)
{
    return now >= init_due_at(info) || (init && now < info->not_before);
}

static bool init_same_certificate(const struct fl_chain *a, size_t i, const struct fl_chain *b,
                                  size_t k)
{
    struct fl_cert_info x;
    struct fl_cert_info y;

    if (fl_chain_len(a) <= i || fl_chain_len(b) <= k) {
        return false;
    }
    fl_chain_info(a, i, &x);
    fl_chain_info(b, k, &y);
    return x.serial_len == y.serial_len && memcmp(x.serial, y.serial, x.serial_len) == 0 &&
           memcmp(x.key, y.key, sizeof(x.key)) == 0;
}

int64_t fl__files_switch(const struct fl_authority_conf *conf, const struct fl__files *files)
{
    int64_t planned;

    if (files->next_root == NULL || files->next_intermediate == NULL) {
        return INT64_MAX;
    }
    planned = fl__init_first(files->next_root).not_before + conf->spans.back_date +
              conf->spans.leaf + conf->spans.grace;
    /* From here on the certificates that it signs would be valid for less than planned. */
    return min_s(planned, fl__init_first(files->intermediate).not_after - conf->spans.leaf);
}

/* root.key is kept under another name when it is the old root's. */
static int move_old_key(const struct fl_authority_conf *conf, const struct fl__files *files,
                        const char *root, struct fl_err *err)
{
    char old[FL__PATH_MAX];
    char name[64];
    char hex[2 * FL_KEY_HASH + 1];
    uint8_t hash[FL_KEY_HASH];
    struct fl_key *key = NULL;
    int rv = fl_key_load(root, &key, err);

    if (rv != FL_OK || fl_chain_fits(files->root, key, NULL) == FL_OK) {
        goto done;
    }
    fl_key_hash(key, hash);
    (void)snprintf(name, sizeof(name), "old-root-%.8s.key", fl_hex(hex, hash, sizeof(hash)));
    rv = fl__files_path(old, conf, name, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_publish(root, old, true, err);
done:
    fl_key_unref(key);
    return rv;
}

/* Keys are found by name: root.key is the key of root.pem, if it is present at all. */
static int move_keys(const struct fl_authority_conf *conf, const struct fl__files *files,
                     struct fl_err *err)
{
    char root[FL__PATH_MAX];
    char next[FL__PATH_MAX];
    int rv = fl__files_path(root, conf, "root.key", err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__files_path(next, conf, "next-root.key", err);
    if (rv != FL_OK) {
        return rv;
    }
    if (fl_fs_exists(root)) {
        rv = move_old_key(conf, files, root, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (fl_fs_exists(next) && !fl_fs_exists(root)) {
        return fl_fs_publish(next, root, true, err);
    }
    return FL_OK;
}

static int remove_file(const struct fl_authority_conf *conf, const char *name, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__files_path(path, conf, name, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_remove(path);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot remove '%s': %s", path, fl_strerror(rv));
    }
    return FL_OK;
}

/*
 * Put the next root into use. Each step keeps the results of the previous ones, so after a crash
 * all of them are repeated; next-root.pem is removed last.
 */
static int take_next_root(const struct fl_authority_conf *conf, struct fl__files *files,
                          struct fl_err *err)
{
    struct fl_chain *both = NULL;
    int rv = fl_chain_join(files->next_root, files->root, &both);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "the roots of '%s': %s", conf->federation, fl_strerror(rv));
    }
    rv = fl__files_put_chain(conf, "root.pem", both, &files->root, err);
    fl_chain_unref(both);
    if (rv != FL_OK) {
        return rv;
    }
    if (files->next_intermediate != NULL) {
        rv = fl__files_put_chain(conf, "intermediate.pem", files->next_intermediate,
                                 &files->intermediate, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = move_keys(conf, files, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = remove_file(conf, "next-root.pem", err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = remove_file(conf, "next-intermediate.pem", err);
    if (rv != FL_OK) {
        return rv;
    }
    fl__authority_log(conf, FL_LOG_NOTICE,
                      "the next root of federation '%s' signs from now on; the old one stays "
                      "trusted while its certificates are in use",
                      conf->federation);
    fl_chain_unref(files->next_root);
    fl_chain_unref(files->next_intermediate);
    files->next_root = NULL;
    files->next_intermediate = NULL;
    if (files->root_key == NULL) {
        files->root_key = files->next_root_key;
        files->next_root_key = NULL;
    }
    return FL_OK;
}

/*
 * The old root is no longer needed when the last certificate below it has been expired for the
 * grace.
 */
static int64_t old_root_ends(const struct fl_authority_conf *conf, const struct fl__files *files)
{
    return fl_chain_len(files->root) < 2
               ? INT64_MAX
               : fl__init_first(files->root).not_before + conf->spans.back_date +
                     2 * (conf->spans.leaf + conf->spans.grace);
}

static int renew_roots(const struct fl_authority_conf *conf, struct fl__files *files, int64_t now,
                       bool init, struct fl_err *err)
{
    struct fl_cert_info root = fl__init_first(files->root);
    struct fl_chain *first = NULL;
    struct fl_chain *rest = NULL;
    struct fl_chain *all = NULL;
    struct fl_issue issue;
    size_t n;
    int rv;

    if (now >= old_root_ends(conf, files)) {
        struct fl_chain *only = NULL;

        rv = fl_chain_part(files->root, 0, 1, &only);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl__files_put_chain(conf, "root.pem", only, &files->root, err);
        fl_chain_unref(only);
        if (rv != FL_OK) {
            return rv;
        }
        fl__authority_log(conf, FL_LOG_NOTICE,
                          "the old root of federation '%s' is no longer trusted", conf->federation);
    }
    if (!init_is_due(&root, now, init) || files->root_key == NULL || files->next_root != NULL) {
        return FL_OK;
    }
    /* The first root gets new dates; the others stay behind it. */
    n = fl_chain_len(files->root);
    rv = fl__init_begin(conf, now, conf->spans.root, &issue, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_issue_root(files->root_key, &issue, &first, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (n > 1) {
        rv = fl_chain_part(files->root, 1, n - 1, &rest);
        if (rv != FL_OK) {
            goto done;
        }
        rv = fl_chain_join(first, rest, &all);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl__files_put_chain(conf, "root.pem", all != NULL ? all : first, &files->root, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl__init_log(conf, "the renewed root, with the same key,", files->root);
done:
    fl_chain_unref(first);
    fl_chain_unref(rest);
    fl_chain_unref(all);
    return rv;
}

/* True when the root's key is present and would make it valid for longer. */
static bool init_root_can_extend(const struct fl__files *files)
{
    return files->root_key != NULL &&
           fl__init_first(files->root).not_after > fl__init_first(files->intermediate).not_after;
}

static int renew_intermediate(const struct fl_authority_conf *conf, struct fl__files *files,
                              int64_t now, bool init, struct fl_err *err)
{
    struct fl_cert_info info = fl__init_first(files->intermediate);
    struct fl_chain *first = NULL;
    struct fl_chain *root = NULL;
    struct fl_chain *chain = NULL;
    const struct fl__init_put put = {
        .name = "intermediate.pem", .what = "an intermediate certificate", .now = now};
    int rv;

    if (files->root_key != NULL && init_is_due(&info, now, init) &&
        (now < info.not_before || init_root_can_extend(files)))
    {
        return fl__init_intermediate(conf, &put, files->root, files->root_key,
                                     files->intermediate_key, &files->intermediate, err);
    }
    if (init_same_certificate(files->intermediate, 1, files->root, 0)) {
        return FL_OK;
    }
    /* The root has new dates: replace it at the end of the file. */
    rv = fl_chain_part(files->intermediate, 0, 1, &first);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_chain_part(files->root, 0, 1, &root);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_chain_join(first, root, &chain);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__files_put_chain(conf, put.name, chain, &files->intermediate, err);
done:
    fl_chain_unref(first);
    fl_chain_unref(root);
    fl_chain_unref(chain);
    return rv;
}

static bool init_server_is_current(const struct fl_authority_conf *conf,
                                   const struct fl__files *files, int64_t now)
{
    struct fl_cert_info info;
    struct fl_cert_info above = fl__init_first(files->intermediate);

    if (files->server == NULL || files->server_key == NULL) {
        return false;
    }
    info = fl__init_first(files->server);
    if (now < info.not_before && now >= above.not_before) {
        return false; /* made while the clock was wrong */
    }
    return fl_chain_fits(files->server, files->server_key, NULL) == FL_OK &&
           now < init_due_at(&info) &&
           init_same_certificate(files->server, 1, files->intermediate, 0) &&
           init_same_certificate(files->server, 2, files->root, 0) &&
           fl_chain_has_hosts(files->server, conf->hosts, conf->n_hosts);
}

static int renew_server(const struct fl_authority_conf *conf, struct fl__files *files, int64_t now,
                        struct fl_err *err)
{
    struct fl_issue issue;
    struct fl_chain *chain = NULL;
    int rv;

    if (init_server_is_current(conf, files, now)) {
        return FL_OK;
    }
    if (files->server_key == NULL) {
        rv = fl__files_make_key(conf, "server.key", &files->server_key, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl__init_begin(conf, now, conf->spans.leaf, &issue, err);
    if (rv != FL_OK) {
        return rv;
    }
    issue.role = FL_ROLE_SERVER;
    issue.name = "server";
    issue.hosts = conf->hosts;
    issue.n_hosts = conf->n_hosts;
    issue.with_root = true;
    rv = fl_issue_leaf(files->intermediate, files->intermediate_key, files->server_key, &issue,
                       &chain, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__files_put_chain(conf, "server.pem", chain, &files->server, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl__init_log(conf, "the server's certificate", chain);
done:
    fl_chain_unref(chain);
    return rv;
}

int fl__files_renew(const struct fl_authority_conf *conf, struct fl__files *files, int64_t now,
                    bool init, int64_t *ret_due, struct fl_err *err)
{
    struct fl_cert_info info;
    int rv;

    /* The switch counts from the first step on, so that after a crash it is completed. */
    if (now >= fl__files_switch(conf, files) ||
        (files->next_root != NULL && init_same_certificate(files->next_root, 0, files->root, 0)))
    {
        rv = take_next_root(conf, files, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = renew_roots(conf, files, now, init, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = renew_intermediate(conf, files, now, init, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = renew_server(conf, files, now, err);
    if (rv != FL_OK) {
        return rv;
    }
    info = fl__init_first(files->server);
    *ret_due = min_s(init_due_at(&info), fl__files_switch(conf, files));
    info = fl__init_first(files->intermediate);
    *ret_due = init_root_can_extend(files) ? min_s(*ret_due, init_due_at(&info)) : *ret_due;
    *ret_due = min_s(*ret_due, old_root_ends(conf, files));
    return FL_OK;
}

void fl__files_root_key_warning(const struct fl_authority_conf *conf, const struct fl__files *files,
                                int64_t now, char *out)
{
    struct fl_cert_info info = fl__init_first(files->intermediate);
    struct fl_cert_info root = fl__init_first(files->root);
    const char *what = "intermediate certificate";
    char path[FL__PATH_MAX];
    char ends[FL_WHEN_TEXT];
    char left[FL_WHEN_TEXT];

    out[0] = '\0';
    if (files->root_key != NULL || files->next_root != NULL) {
        return;
    }
    if (now >= init_due_at(&root)) {
        info = root;
        what = "root";
    } else if (now < init_due_at(&info)) {
        return;
    }
    if (fl__init_root_key_path(conf, path, NULL) != FL_OK) {
        path[0] = '\0';
    }
    (void)snprintf(out, FL_ERR_BUF_SIZE,
                   "the %s of federation '%s' expires: valid until %s (%s %s), and the key of the "
                   "root is not on this host: copy it to '%.200s', and run fl-serverd --init; "
                   "otherwise clients can no longer join or renew",
                   what, conf->federation, fl_when_text(ends, sizeof(ends), info.not_after),
                   now < info.not_after ? "in" : "expired for",
                   fl_span_text(left, sizeof(left),
                                now < info.not_after ? info.not_after - now : now - info.not_after),
                   path);
}
