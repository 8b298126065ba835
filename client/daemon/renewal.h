#ifndef FL_CLIENTD_RENEWAL_H
#define FL_CLIENTD_RENEWAL_H

/*
 * Keeps the certificate of this client valid: renews it over the open connection, loads files that
 * an operator replaced, and delays connecting while this host's clock is certainly wrong. It needs
 * no operator and interrupts no session.
 *
 * With an expired certificate a connection can only renew; the next connection uses the new
 * certificate.
 *
 * Threading: the loop.
 */

#include "client/daemon/connection.h"
#include "client/daemon/credentials.h"
#include "client/shell/session_shell.h"

struct fl_renewal;

/* Borrows all arguments. Without credentials (NULL: plaintext) it does nothing. */
FL_MUST_CHECK int fl_renewal_create(struct fl_loop *loop, const struct fl_log *log,
                                    struct fl_client_credentials *credentials,
                                    struct fl_connection *connection,
                                    struct fl_session_shell *shell, struct fl_renewal **ret);
/* Close the timer, before the loop is freed. A pending call ends with the connection. */
void fl_renewal_stop(struct fl_renewal *renewal);
/* Call it after the loop is freed. NULL is allowed. */
void fl_renewal_free(struct fl_renewal *renewal);

/* The session wants to connect. False: the clock is wrong, and the connection is opened later. */
bool fl_renewal_may_connect(struct fl_renewal *renewal);
/* The channel is up. False: it is used for renewal only and then closed. */
bool fl_renewal_up(struct fl_renewal *renewal);
/* The channel was lost or never came up; `refused`: because of a certificate. */
void fl_renewal_down(struct fl_renewal *renewal, bool refused);
/* SIGHUP: read the files again and use them. On an error the previous ones stay in use. */
FL_MUST_CHECK int fl_renewal_reload(struct fl_renewal *renewal, struct fl_err *err);

#endif
