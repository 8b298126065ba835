#include "client/daemon/clientd_conf.h"

#include <string.h>

#include "libfl/http/http.h"
#include "libfl/net/address.h"
#include "libfl/net/conn.h"

static int clientd_conf_check_plaintext(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_client_main *m = conf->main;
    const struct fl_client_tls *tls = conf->tls;
    size_t i;

    if (tls->certificate[0] != '\0' || tls->ca[0] != '\0' || tls->crl.n > 0) {
        return fl_conf_error(
            fl_conf_section(conf->file, tls), err,
            "'insecure: yes' is plaintext, which has no certificates: expected one of the two");
    }
    for (i = 0; i < m->server.n && !m->insecure_remote; i++) {
        if (!fl_address_is_loopback(m->server.list[i])) {
            return fl_conf_error(fl_conf_field(conf->file, &m->server), err,
                                 "'%s' is not a loopback address; plaintext there requires "
                                 "'insecure_remote: yes' as well",
                                 m->server.list[i]);
        }
    }
    return FL_OK;
}

static int clientd_conf_check_server(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_client_main *m = conf->main;
    struct fl_address parsed;
    struct fl_err inner = {0};
    size_t i;
    int rv;

    if (m->server.n == 0 || m->server.n > FL_CLIENT_SERVERS) {
        return fl_conf_error(fl_conf_field(conf->file, &m->server), err,
                             "expected 1 to %d addresses, found %zu", FL_CLIENT_SERVERS,
                             m->server.n);
    }
    for (i = 0; i < m->server.n; i++) {
        rv = fl_address_parse(m->server.list[i], &parsed, &inner);
        if (rv != FL_OK) {
            return fl_conf_error(fl_conf_field(conf->file, &m->server), err, "%s",
                                 fl_err_text(&inner, rv));
        }
    }
    return m->insecure ? clientd_conf_check_plaintext(conf, err) : FL_OK;
}

static int clientd_conf_check_server_name(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_client_tls *tls = conf->tls;
    struct fl_err inner = {0};

    return tls->server_name[0] == '\0' || fl_address_check_host(tls->server_name, &inner) == FL_OK
               ? FL_OK
               : fl_conf_error(fl_conf_field(conf->file, &tls->server_name), err, "%s", inner.msg);
}

static int clientd_conf_check_http(const struct fl_client_conf *conf, struct fl_err *err)
{
    const void *field = NULL;
    int rv = fl_http_conf_check(conf->http, &field, err);

    if (rv != FL_OK) {
        return fl_conf_blame(conf->file, field, rv, err);
    }
    return FL_OK;
}

struct fl_proxy_rule fl_clientd_proxy(const struct fl_client_conf *conf)
{
    return (struct fl_proxy_rule){.proxy = conf->main->proxy,
                                  .credentials = conf->main->proxy_credentials,
                                  .key = "'proxy'",
                                  .file_key = "'proxy_credentials'"};
}

/* Only the text: file and environment are checked by clientd_preflight.c, as the service's user. */
static int clientd_conf_check_proxy(const struct fl_client_conf *conf, struct fl_err *err)
{
    const char *proxy = conf->main->proxy;
    struct fl_proxy parsed = {.key = NULL};
    struct fl_err inner = {0};
    int rv;

    if (proxy[0] == '\0' || strcmp(proxy, FL_PROXY_NONE) == 0) {
        return FL_OK;
    }
    rv = fl_proxy_parse(proxy, "'proxy'", &parsed, &inner);
    fl_proxy_done(&parsed);
    return rv == FL_OK ? FL_OK
                       : fl_conf_error(fl_conf_field(conf->file, &conf->main->proxy), err, "%s",
                                       fl_err_text(&inner, rv));
}

int fl_clientd_conf_load(const char *path, struct fl_findings *all, struct fl_client_conf **ret,
                         struct fl_err *err)
{
    struct fl_client_conf *conf = NULL;
    int rv = fl_client_conf_load(path, all, &conf, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_findings_keep(all, clientd_conf_check_server(conf, err), err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_findings_keep(all, clientd_conf_check_server_name(conf, err), err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_findings_keep(all, clientd_conf_check_http(conf, err), err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_findings_keep(all, clientd_conf_check_proxy(conf, err), err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_findings_first(all, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = conf;
    return FL_OK;
fail:
    fl_client_conf_free(conf);
    return rv;
}
