/* Calls to a server over TLS with an admin's certificate, and `flctl admin-certificate`, which
   makes one. Main thread; the call itself is in admin_call.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/json/json.h"
#include "libfl/pki/request.h"
#include "libfl/tls/tls.h"
#include "tools/flctl/flctl.h"

/* Files in the folder of an identity. */
#define CERTIFICATE "admin.pem"
#define KEY         "admin.key"
#define ROOTS       "roots.pem"

static int64_t remote_now_s(void *ctx)
{
    (void)ctx;
    return (int64_t)(fl_clock_wall_ms() / 1000);
}

static int remote_path(char out[FL_CTL_PATH], const char *given, const char *folder,
                       const char *name, const char *option, struct fl_err *err)
{
    if (given != NULL) {
        return fl_str_copy(out, FL_CTL_PATH, given);
    }
    if (folder != NULL) {
        return fl_fs_join(out, FL_CTL_PATH, folder, name);
    }
    return fl_err_set(err, FL_EINVAL,
                      "--server needs --identity DIR, or --certificate, --key and --ca: %s is "
                      "missing",
                      option);
}

/* The federation is named in a certificate of our own PKI; in an operator's own PKI the server's
   name identifies it. */
static int remote_make_trust(const struct fl_chain *chain, const char *ca, struct fl_trust **ret,
                             struct fl_err *err)
{
    struct fl_uri_name name;
    struct fl_trust_setup setup = {.root_files = &ca, .n_root_files = 1};
    int rv = fl_chain_name(chain, &name);

    if (rv == FL_ENOENT) {
        rv = fl_rules_create(NULL, 0, &setup.rules, NULL, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    if (setup.rules == NULL) {
        setup.federation = name.federation;
    }
    rv = fl_trust_create(&setup, ret, err);
    fl_rules_unref(setup.rules);
    return rv;
}

/*
 * The server does not renew an admin's certificate automatically, as a person holds the key. An
 * expired certificate is an error; in the last third of its validity each call prints a warning and
 * proceeds.
 */
static int remote_check_dates(const struct fl_chain *chain, bool quiet, struct fl_err *err)
{
    struct fl_uri_name name;
    struct fl_cert_info info;
    char renew[FL_IDENTITY_NAME_MAX + 128] = "ask the issuer for a new one";
    int rv;

    if (fl_chain_name(chain, &name) == FL_OK) {
        (void)snprintf(renew, sizeof(renew),
                       "run on the server's host: flctl admin-certificate %s --output DIR, and "
                       "use DIR as --identity",
                       name.name);
    }
    fl_chain_info(chain, 0, &info);
    rv = fl_chain_dated(chain, 0, remote_now_s(NULL), (info.not_after - info.not_before) / 3, renew,
                        err);
    if (rv != FL_EAGAIN) {
        return rv;
    }
    if (!quiet) {
        (void)fprintf(stderr, "flctl: %s\n", fl_err_text(err, rv));
    }
    *err = (struct fl_err){0};
    return FL_OK;
}

int fl_ctl_remote_open(const struct fl_ctl_remote *remote, struct fl_tls **ret, struct fl_err *err)
{
    static const char *const names[] = {CERTIFICATE, KEY, ROOTS};
    static const char *const options[] = {"--certificate", "--key", "--ca"};
    const char *given[] = {remote->certificate, remote->key, remote->ca};
    char paths[3][FL_CTL_PATH];
    struct fl_chain *chain = NULL;
    struct fl_key *key = NULL;
    struct fl_trust *trust = NULL;
    char host[FL_CTL_PATH];
    size_t i;
    int rv;

    for (i = 0; i < 3; i++) {
        rv = remote_path(paths[i], given[i], remote->identity, names[i], options[i], err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (given[0] == NULL && !fl_fs_exists(paths[0])) {
        return fl_err_set(err, FL_ENOENT,
                          "--identity '%s' has no %s: run on the server's host: flctl "
                          "admin-certificate NAME --output DIR, and use DIR as --identity",
                          remote->identity, CERTIFICATE);
    }
    rv = fl_credentials_load(paths[0], paths[1], &chain, &key, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = remote_check_dates(chain, remote->quiet, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_tls_host(remote->server, host, sizeof(host), err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = remote_make_trust(chain, paths[2], &trust, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_tls_create(
        &(struct fl_tls_setup){
            .chain = chain, .key = key, .trust = trust, .host = host, .now = remote_now_s},
        ret, err);
    fl_trust_unref(trust);
done:
    fl_chain_unref(chain);
    fl_key_unref(key);
    return rv;
}

/* --- admin-certificate --- */

static int remote_admin_args(struct fl_ctl_args *args, int n, char **words)
{
    if (n != 1 || !fl_name_allowed(words[0])) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "expected the name of an operator");
    }
    if (!args->has_output) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "--output DIR is required: the folder for key and certificate");
    }
    args->name = words[0];
    return -1;
}

/* The key is made on this host and does not leave it; existing files are not overwritten. */
static int remote_make_key(const char *folder, struct fl_key **ret, struct fl_err *err)
{
    char path[FL_CTL_PATH];
    int rv = fl_fs_join(path, sizeof(path), folder, KEY);

    if (rv != FL_OK) {
        return rv;
    }
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot create folder '%s': %s", folder,
                          strerror(errno));
    }
    if (fl_fs_exists(path)) {
        return fl_err_set(err, FL_EEXIST, "'%s' exists already: choose another --output", path);
    }
    rv = fl_key_make(ret);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_key_save(*ret, path, /* sync= */ true, err);
}

/* Makes a key and saves it in the folder. */
static int remote_fill_admin(struct fl_ctl_args *args, struct fl_buf *request)
{
    struct fl_wire_issue_admin issue = {.valid_ms = args->valid_ms};
    struct fl_key *key = NULL;
    struct fl_buf der;
    struct fl_err err = {0};
    int code = FL_CTL_OK;
    int rv;

    fl_buf_init(&der, FL_WIRE_MAX_CSR);
    rv = remote_make_key(args->out.file, &key, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_csr_make(key, args->name, &der);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_str_copy(issue.name, sizeof(issue.name), args->name);
    if (rv != FL_OK) {
        goto done;
    }
    issue.request = (struct fl_wire_bytes){der.data, der.len};
    rv = fl_wire_issue_admin_encode(&issue, request);
done:
    if (rv != FL_OK) {
        code = fl_ctl_complain(args, FL_CTL_FAILED, "%s", fl_err_text(&err, rv));
    }
    fl_buf_done(&der);
    fl_key_unref(key);
    return code;
}

const struct fl_ctl_request fl_ctl_request_admin = {remote_admin_args, remote_fill_admin};

void fl_ctl_forget_key(const char *folder)
{
    char path[FL_CTL_PATH];

    if (fl_fs_join(path, sizeof(path), folder, KEY) == FL_OK) {
        (void)unlink(path);
        (void)rmdir(folder); /* Only if the folder is otherwise empty. */
    }
}

static int remote_save(const struct fl_wire_chain *wire, const char *folder, const char *name,
                       struct fl_cert_info *first, struct fl_err *err)
{
    struct fl_der certs[FL_WIRE_MAX_CHAIN];
    struct fl_chain *chain = NULL;
    char path[FL_CTL_PATH];
    size_t i;
    int rv = fl_fs_join(path, sizeof(path), folder, name);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < wire->n; i++) {
        certs[i] = (struct fl_der){wire->list[i].data, wire->list[i].len};
    }
    rv = fl_chain_from_der(certs, wire->n, "the server", &chain, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_chain_save(chain, path, /* sync= */ true, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl_chain_info(chain, 0, first);
done:
    fl_chain_unref(chain);
    return rv;
}

static int remote_on_admin(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                           struct fl_err *err)
{
    struct fl_wire_issued_admin reply;
    struct fl_cert_info info;
    char ends[32];
    int rv = fl_wire_issued_admin_decode(data, len, &reply, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = remote_save(&reply.roots, out->file, ROOTS, &info, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = remote_save(&reply.chain, out->file, CERTIFICATE, &info, err);
done:
    fl_wire_issued_admin_done(&reply);
    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "folder", json_string(out->file));
        (void)json_object_set_new(o, "serial", json_string(info.serial_text));
        (void)json_object_set_new(o, "not_after_ms",
                                  fl_json_whole((uint64_t)info.not_after * 1000));
        fl_json_print(o, stdout);
    } else {
        (void)printf(
            "%s: %s, %s and %s, valid until %s; copy the folder to the host where flctl runs:\n"
            "  flctl --server HOST:PORT --identity DIR status\n",
            out->file, KEY, CERTIFICATE, ROOTS,
            fl_ctl_when(ends, sizeof(ends), (uint64_t)info.not_after * 1000));
    }
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_admin = {remote_on_admin, NULL};
