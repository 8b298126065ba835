#ifndef FL_SERVERD_GUARD_IMPL_H
#define FL_SERVERD_GUARD_IMPL_H

/* Shared by the files of the guard. */

#include "server/daemon/auth.h"

/* Where the authority finds what it needs; points into `own` and itself. */
struct fl_auth_place {
    struct fl_authority_conf conf;
    const char *hosts[FL_AUTHORITY_HOSTS];
    char host_texts[FL_AUTHORITY_HOSTS][256];
};

void fl_auth_place(const struct fl_serverd_conf *own, const struct fl_log *log,
                   struct fl_auth_place *ret);

/* What the server shows and whom it believes; each is owned. */
struct fl_credentials {
    struct fl_chain *chain;
    struct fl_key *key;
    struct fl_trust *trust;
};

void fl_credentials_done(struct fl_credentials *c);
/* Of an operator's own PKI, as configured. */
FL_MUST_CHECK int fl_credentials_own_pki(const struct fl_serverd_conf *own,
                                         struct fl_credentials *ret, struct fl_err *err);
/* Of the authority, as they are now. */
void fl_credentials_of(const struct fl_authority *authority, struct fl_credentials *ret);
/* Do the files of `own` and of its authority look as they did when `*seen` was made? Updates it. */
bool fl_credentials_changed(const struct fl_serverd_conf *own, uint64_t *seen);
/* --- auth_dates.c --- */

/*
 * Is what the server shows over (FL_EPERM), or will it be soon (FL_EAGAIN)? The text says which
 * file, both times and what to do. Soon is the last quarter of the validity, 30 days at most.
 */
FL_MUST_CHECK int fl_auth_dated(const struct fl_serverd_conf *own, const struct fl_chain *chain,
                                int64_t now, struct fl_err *err);
/* The same of what is above the server's certificate, where no start can make that anew. */
FL_MUST_CHECK int fl_auth_dated_authority(const struct fl_serverd_conf *own,
                                          const struct fl_chain *chain, int64_t now,
                                          struct fl_err *err);
/* Say it in the log, once a day; `*said_s` is when it was, 0: say it in any case. */
void fl_auth_tell_dates(const struct fl_serverd *srv, const struct fl_chain *chain, int64_t now,
                        int64_t *said_s);

struct fl_authority *fl_auth_authority(struct fl_auth *auth);

#endif
