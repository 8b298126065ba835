#ifndef FL_CLIENTD_CONF_H
#define FL_CLIENTD_CONF_H

/* The configuration of fl-clientd: that of its client (client/conf), and a server to connect to. */

#include "client/conf/client_conf.h"
#include "libfl/net/proxy_rule.h"

/*
 * Read the file and check the server's address; free with fl_client_conf_free(). `all` (may be
 * NULL) collects every error; the first error is returned in any case.
 */
FL_MUST_CHECK int fl_clientd_conf_load(const char *path, struct fl_findings *all,
                                       struct fl_client_conf **ret, struct fl_err *err);
/* The proxy of connections to the server; borrows from `conf`. */
struct fl_proxy_rule fl_clientd_proxy(const struct fl_client_conf *conf);

#endif
