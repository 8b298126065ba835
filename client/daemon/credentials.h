#ifndef FL_CLIENTD_CREDENTIALS_H
#define FL_CLIENTD_CREDENTIALS_H

/*
 * The certificate, key and trusted roots of this client as its files have them now, and TLS for its
 * connections. An open connection continues when the files change; the next connection uses the new
 * ones.
 *
 * Threading: the loop.
 */

#include "client/conf/client_conf.h"
#include "client/identity/client_identity.h"
#include "libfl/base/log.h"
#include "libfl/net/stream.h"

struct fl_client_credentials;

/* STATE_DIR/identity. FL_ELIMIT: path too long. */
FL_MUST_CHECK int fl_credentials_dir(const struct fl_client_conf *conf, char *out, size_t size);

/*
 * For a client without 'insecure: yes'. Borrows `conf` and `log`. `*ret_exit` is the exit code of a
 * start that fails with this error. FL_ENOENT: no certificate yet. FL_ECONF: the certificate is not
 * one for `name`.
 */
FL_MUST_CHECK int fl_credentials_open(const struct fl_client_conf *conf, const struct fl_log *log,
                                      struct fl_client_credentials **ret, int *ret_exit,
                                      struct fl_err *err);
/* Call it after the connections are closed. NULL is allowed. */
void fl_credentials_free(struct fl_client_credentials *credentials);

/* The same checks, for --check-config; nothing is changed. */
FL_MUST_CHECK int fl_credentials_check(const struct fl_client_conf *conf, int *ret_exit,
                                       struct fl_err *err);

/* One for each address of `server`, in the same order; all have the same identity. */
const struct fl_stream_filter *fl_credentials_filters(
    const struct fl_client_credentials *credentials);
const struct fl_client_identity *fl_credentials_identity(
    const struct fl_client_credentials *credentials);
/* The folder of the identity, where renewal writes. */
const char *fl_credentials_folder(const struct fl_client_credentials *credentials);

/* Read the files again and use them. On an error the previous ones stay in use. */
FL_MUST_CHECK int fl_credentials_read(struct fl_client_credentials *credentials,
                                      struct fl_err *err);
/*
 * Reload the files if they changed since the last check; errors are logged once per change. True:
 * new credentials are in use.
 */
bool fl_credentials_look(struct fl_client_credentials *credentials);

/*
 * FL_EAGAIN with a text: this host's clock is certainly wrong, so no certificate can be judged by
 * it.
 */
FL_MUST_CHECK int fl_credentials_clock(const struct fl_client_credentials *credentials,
                                       struct fl_err *err);
/*
 * A text about the expired certificate of this client and what to do; "" while it is valid. Returns
 * `out`.
 */
const char *fl_credentials_over(const struct fl_client_credentials *credentials, char *out,
                                size_t size);

#endif
