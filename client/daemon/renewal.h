#ifndef FL_CLIENTD_RENEWAL_H
#define FL_CLIENTD_RENEWAL_H

/*
 * Keeps the certificate of this client new: asks for the next one through the connection that
 * stands, takes up files that somebody replaced, and waits with connecting while this host's clock
 * cannot be right. Nobody has to do anything for it, and no session ends for it.
 *
 * A certificate that is over lets the connection do nothing but ask for the next one; the
 * connection after that shows it.
 *
 * Threading: the loop.
 */

#include "client/daemon/connection.h"
#include "client/daemon/credentials.h"
#include "client/daemon/stepper.h"

struct fl_renewal;

/* Keeps all. Without credentials (NULL: plaintext) it does nothing. */
FL_MUST_CHECK int fl_renewal_create(struct fl_loop *loop, const struct fl_log *log,
                                    struct fl_client_credentials *credentials,
                                    struct fl_connection *connection, struct fl_stepper *stepper,
                                    struct fl_renewal **ret);
/* Closes its timer: before the loop is freed. A call that is under way ends with the connection. */
void fl_renewal_stop(struct fl_renewal *renewal);
/* After the loop. NULL is allowed. */
void fl_renewal_free(struct fl_renewal *renewal);

/* The session wants a connection. False: not yet, the clock is wrong; it is opened later. */
bool fl_renewal_may_connect(struct fl_renewal *renewal);
/* The channel stands. False: it is for nothing but renewing, and is closed then. */
bool fl_renewal_up(struct fl_renewal *renewal);
/* The channel is gone, or did not stand; refused: for a certificate. */
void fl_renewal_down(struct fl_renewal *renewal, bool refused);
/* SIGHUP: the files are read again and taken up; an error says what is wrong with them. */
FL_MUST_CHECK int fl_renewal_reload(struct fl_renewal *renewal, struct fl_err *err);

#endif
