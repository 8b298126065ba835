#ifndef FL_SERVER_IDENTITY_AUTHORITY_IMPL_H
#define FL_SERVER_IDENTITY_AUTHORITY_IMPL_H

#include "libfl/base/buf.h"
#include "libfl/wire/messages.h"
#include "server/identity/authority.h"
#include "server/identity/identity_db_impl.h"
#include "server/identity/identity_files_impl.h"
#include "server/identity/identity_rows_impl.h"
#include "server/identity/join_attempts_impl.h"
#include "server/identity/revocations.h"

/*
 * Bytes of log lines of one transaction that are logged one by one; further ones are only counted.
 */
#define FL__LOG_LINES_MAX 8192
/* Size of a text from outside in the audit. */
#define FL__AUDIT_TEXT 301

struct fl_authority {
    struct fl_authority_conf conf; /* owns its texts */
    char *texts[5];
    char **hosts;
    struct fl_invite_address invited[FL_INVITE_ADDRESSES]; /* port 0: conf.port */
    struct fl_db db;
    struct fl__files files;
    struct fl_chain *roots; /* all that are trusted */
    struct fl_trust *trust;
    struct fl_revocations *revocations;
    bool revocations_stale;
    struct fl__join_attempts attempts;
    struct fl_buf log_lines; /* log lines of the transaction, each with its NUL */
    size_t n_log_lines;      /* number of lines, with those that did not fit */
    int64_t due_ms;
    int64_t warned_ms; /* time of the last warning about the root's key; 0: never */
};

/* Opens the database, which has to be of the configured federation. FL_ESTATE: it is not. */
FL_MUST_CHECK int fl__identity_db_open(const struct fl_authority_conf *conf, struct fl_db *db,
                                       struct fl_err *err);
/*
 * Delete rows that can no longer be used, as of the previous cleaning, at least a day ago: a clock
 * that is years ahead for an hour must not delete revocations.
 */
FL_MUST_CHECK int fl__identity_db_clean(struct fl_authority *a, int64_t now_ms, struct fl_err *err);

/* One transaction; its audit entries are logged when it is committed. `rv` as fl_db_end(). */
FL_MUST_CHECK int fl__authority_begin(struct fl_authority *a, struct fl_err *err);
FL_MUST_CHECK int fl__authority_end(struct fl_authority *a, int rv, struct fl_err *err);
/* Inside a transaction; without `number`. The texts are cut as in audit.h, `what` is our own. */
FL_MUST_CHECK int fl__audit(struct fl_authority *a, const struct fl_audit_line *line,
                            struct fl_err *err);
/*
 * A refusal: an entry, or counted; a transaction of its own. A write error does not change the
 * answer to the peer.
 */
void fl__audit_refusal(struct fl_authority *a, const char *address, const char *what,
                       const char *object, const char *result, int64_t now_ms);
/* Write refusals that have been counted for an hour, with `all` all of them. */
FL_MUST_CHECK int fl__audit_counted(struct fl_authority *a, bool all, int64_t now_ms,
                                    struct fl_err *err);

/* The revocation in effect. */
struct fl__revoked_state {
    int verb;                     /* 0: not revoked */
    char why[2 * FL__AUDIT_TEXT]; /* "revoked at … by …: stolen"; "" when it is not */
};

/* FL_EPERM when one of `whom`, any of the three, is revoked, with the reason and what to do. */
FL_MUST_CHECK int fl__check_revoked(struct fl_authority *a, const struct fl_revoked *whom,
                                    struct fl_err *err);
/* The most final revocation of the three. */
FL_MUST_CHECK int fl__revoked_by(struct fl_authority *a, const struct fl_revoked *whom,
                                 struct fl__revoked_state *ret, struct fl_err *err);
/* FL_ESTATE: certificates are issued by an operator's own PKI. */
FL_MUST_CHECK int fl__issues(const struct fl_authority *a, struct fl_err *err);

/* Labels as they are stored: keys and values, each with its NUL. Owned: fl__labels_free(). */
FL_MUST_CHECK int fl__labels_unpack(const void *data, size_t len, struct fl_pair **ret,
                                    size_t *ret_n);
void fl__labels_free(struct fl_pair *labels, size_t n);

#endif
