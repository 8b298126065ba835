#ifndef FL_CLIENTD_CREDENTIALS_H
#define FL_CLIENTD_CREDENTIALS_H

/*
 * What this client shows to the server and whom it believes, as its files have it now, and the TLS
 * over its connections. A connection that stands goes on when they change; the next one shows the
 * new.
 *
 * Threading: the loop.
 */

#include "client/conf/client_conf.h"
#include "client/identity/client_identity.h"
#include "libfl/base/log.h"
#include "libfl/net/stream.h"

struct fl_client_credentials;

/* STATE_DIR/identity. FL_ELIMIT. */
FL_MUST_CHECK int fl_credentials_dir(const struct fl_client_conf *conf, char *out, size_t size);

/*
 * Of a client that is not insecure. Keeps `conf` and `log`. `*ret_exit` is the exit code of a start
 * that fails so. FL_ENOENT: there is no certificate yet. FL_ECONF: it is not the one of `name`.
 */
FL_MUST_CHECK int fl_credentials_open(const struct fl_client_conf *conf, const struct fl_log *log,
                                      struct fl_client_credentials **ret, int *ret_exit,
                                      struct fl_err *err);
/* NULL is allowed. After the connections. */
void fl_credentials_free(struct fl_client_credentials *credentials);

/* The same checks for --check-config; nothing is kept or changed. */
FL_MUST_CHECK int fl_credentials_check(const struct fl_client_conf *conf, int *ret_exit,
                                       struct fl_err *err);

const struct fl_stream_filter *fl_credentials_filter(
    const struct fl_client_credentials *credentials);
const struct fl_client_identity *fl_credentials_identity(
    const struct fl_client_credentials *credentials);
/* Where they lie, for who gets the next ones. */
const char *fl_credentials_folder(const struct fl_client_credentials *credentials);

/* Read the files again and take them up. On an error those that were in use stay. */
FL_MUST_CHECK int fl_credentials_read(struct fl_client_credentials *credentials,
                                      struct fl_err *err);
/*
 * The same when they changed since they were looked at last; what is wrong with them is in the log,
 * once. True: there are new ones.
 */
bool fl_credentials_look(struct fl_client_credentials *credentials);

/*
 * FL_EAGAIN with a text: this host's clock cannot be right, and every judgement of a certificate
 * would be wrong with it.
 */
FL_MUST_CHECK int fl_credentials_clock(const struct fl_client_credentials *credentials,
                                       struct fl_err *err);
/* What to say of a certificate of ours that is over; "" while it is not. Returns `out`. */
const char *fl_credentials_over(const struct fl_client_credentials *credentials, char *out,
                                size_t size);

#endif
