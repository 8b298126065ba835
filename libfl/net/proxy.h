#ifndef FL_NET_PROXY_H
#define FL_NET_PROXY_H

/*
 * Connecting through an HTTP proxy with CONNECT (RFC 9110, section 9.3.6): a stage between the
 * socket and the user of the stream (TLS), which sees the tunnel only.
 *
 * Errors of on_close, whose text names the proxy and where it is configured:
 *   FL_EPERM     the proxy requires other credentials (401, 407) or does not allow this host (403):
 *                retrying soon does not help
 *   FL_EUNAVAIL  the proxy is not reachable, closed the connection, or cannot reach the host (502)
 *   FL_ETIMEOUT  it does not answer
 *   FL_EPROTO    it is no HTTP proxy
 *
 * Threading: one loop.
 */

#include "libfl/net/conn.h"
#include "libfl/net/proxy_rule.h"

/*
 * As fl_conn_connect(), through the proxy of `rule` (NULL: directly), which is only read. The time
 * limit includes the answer of the proxy, which resolves the name. The errors of fl_proxy_find()
 * are returned at once. `traffic`: counts the bytes of the connection, also to a proxy, and
 * outlives it; NULL: not counted.
 */
FL_MUST_CHECK int fl_proxy_connect(struct fl_loop *loop, const char *address,
                                   const struct fl_proxy_rule *rule, uint32_t timeout_ms,
                                   struct fl_traffic *traffic, struct fl_stream **ret,
                                   struct fl_err *err);

#endif
