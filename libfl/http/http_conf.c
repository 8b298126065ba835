/* Checks the section `http` of a daemon's configuration; reads the token file for it. */

#include <string.h>

#include "libfl/http/http.h"
#include "libfl/http/token.h"
#include "libfl/net/address.h"

static bool is_loopback(const struct fl_address *a)
{
    switch (a->kind) {
    case FL_ADDRESS_IP4:
        return strncmp(a->host, "127.", 4) == 0;
    case FL_ADDRESS_IP6:
        return strcmp(a->host, "::1") == 0;
    case FL_ADDRESS_NAME:
        return strcmp(a->host, "localhost") == 0;
    case FL_ADDRESS_ANY:
    case FL_ADDRESS_UNIX:
        break;
    }
    return false;
}

int fl_http_conf_check(const struct fl_http_conf *conf, const void **ret_field, struct fl_err *err)
{
    struct fl_http_token token;
    struct fl_address address;
    size_t i;

    *ret_field = &conf->listen;
    for (i = 0; i < conf->listen.n; i++) {
        int rv = fl_address_parse(conf->listen.list[i], &address, err);

        if (rv != FL_OK) {
            return rv == FL_ENOMEM ? rv : FL_ECONF;
        }
        if (address.kind == FL_ADDRESS_UNIX) {
            return fl_err_set(err, FL_ECONF, "'%s' is a unix socket: expected host:port",
                              conf->listen.list[i]);
        }
        if (!is_loopback(&address) && conf->token_file[0] == '\0') {
            return fl_err_set(err, FL_ECONF,
                              "'%s' is not on loopback, where everybody could read: "
                              "set http.token_file, or listen on 127.0.0.1 behind a proxy with "
                              "TLS (docs/http.md)",
                              conf->listen.list[i]);
        }
    }
    *ret_field = &conf->token_file;
    return conf->listen.n > 0 ? fl_http_token_read(conf->token_file, &token, err) : FL_OK;
}
