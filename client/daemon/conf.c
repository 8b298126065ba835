#include "client/daemon/conf.h"

#include "libfl/net/address.h"
#include "libfl/net/conn.h"

static int check_server(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_client_main *m = conf->main;
    struct fl_address parsed;
    struct fl_err inner = {0};
    int rv;

    if (!m->insecure) {
        return fl_conf_error(fl_conf_field(conf->file, &m->insecure), err,
                             "this version has no TLS yet: set 'insecure: yes' for plaintext to "
                             "loopback addresses");
    }
    rv = fl_address_parse(m->server, &parsed, &inner);
    if (rv != FL_OK) {
        return fl_conf_error(fl_conf_field(conf->file, &m->server), err, "%s",
                             fl_err_text(&inner, rv));
    }
    if (!fl_address_is_loopback(m->server) && !m->insecure_remote) {
        return fl_conf_error(fl_conf_field(conf->file, &m->server), err,
                             "'%s' is not a loopback address; plaintext there needs "
                             "'insecure_remote: yes' too",
                             m->server);
    }
    return FL_OK;
}

int fl_clientd_conf_load(const char *path, struct fl_client_conf **ret, struct fl_err *err)
{
    struct fl_client_conf *conf = NULL;
    int rv = fl_client_conf_load(path, &conf, err);

    rv = rv == FL_OK ? check_server(conf, err) : rv;
    if (rv != FL_OK) {
        fl_client_conf_free(conf);
        return rv;
    }
    *ret = conf;
    return FL_OK;
}
