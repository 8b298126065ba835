#ifndef FL_SERVER_AUTH_IMPL_H
#define FL_SERVER_AUTH_IMPL_H

/* Private to the auth*.c files. */

#include "server/auth/auth.h"

/* Paths and settings of the authority; points into the configuration and itself. */
struct fl_auth_place {
    struct fl_authority_conf conf;
    const char *hosts[FL_AUTHORITY_HOSTS];
    char host_texts[FL_AUTHORITY_HOSTS][256];
    struct fl_invite_address invited[FL_INVITE_ADDRESSES];
};

void fl_auth_place(const struct fl_auth_setup *setup, struct fl_auth_place *ret);

/* The server's certificate and the roots it trusts; each is owned. */
struct fl_credentials {
    struct fl_chain *chain;
    struct fl_key *key;
    struct fl_trust *trust;
};

void fl_credentials_done(struct fl_credentials *c);
/* From the operator's own PKI, as configured. */
FL_MUST_CHECK int fl_credentials_own_pki(const struct fl_server_conf *conf,
                                         struct fl_credentials *ret, struct fl_err *err);
/* From the authority, its current ones. */
void fl_credentials_of(const struct fl_authority *authority, struct fl_credentials *ret);
/*
 * True when the configured files and those of the authority have changed since `*seen`, which is
 * updated.
 */
bool fl_credentials_changed(const struct fl_auth_setup *setup, uint64_t *seen);
/* --- auth_dates.c --- */

/*
 * FL_EPERM: a certificate that the server shows has expired; FL_EAGAIN: it expires soon. The text
 * names the file, both times and what to do. Soon is the last quarter of the validity, 30 days at
 * most.
 */
FL_MUST_CHECK int fl_auth_dated(const struct fl_server_conf *conf, const struct fl_chain *chain,
                                int64_t now, struct fl_err *err);
/* The same for the issuers above the server's certificate where no start can renew them. */
FL_MUST_CHECK int fl_auth_dated_authority(const struct fl_auth_setup *setup,
                                          const struct fl_chain *chain, int64_t now,
                                          struct fl_err *err);
/* When it was done last; 0: do it in any case. */
struct fl_auth_dates {
    int64_t logged_s, told_s;
};
/*
 * Log it, once a day. Call setup->expiring, once a day, in the time that is soon as above, also for
 * a certificate that the authority should have renewed by then.
 */
void fl_auth_log_dates(const struct fl_auth_setup *setup, const struct fl_chain *chain, int64_t now,
                       struct fl_auth_dates *dates);

struct fl_authority *fl_auth_authority(struct fl_auth *auth);

#endif
