#ifndef FL_SERVER_IDENTITY_AUTHORITY_H
#define FL_SERVER_IDENTITY_AUTHORITY_H

/*
 * A federation's authority (docs/joining.md): its root, the intermediate that signs day by day, the
 * server's own certificate, and identity.db, which knows invitations, certificates, denials and the
 * audit.
 *
 * STATE_DIR/identity, 0700, keys 0600:
 *
 *   root.pem               the root, then others that are still believed
 *   root.key               may be kept elsewhere; only a new intermediate or root needs it
 *   intermediate.pem       the intermediate, its root
 *   intermediate.key       this and server.key: or a systemd credential of this name
 *   server.pem             the server's certificate, the intermediate, the root
 *   server.key
 *   next-root.pem, next-root.key, next-intermediate.pem    while the root changes
 *   identity.db
 *
 * Every file is replaced by one rename, and each is made of those before it, so that who is killed
 * anywhere goes on where he was at the next call. A key is never written over.
 *
 * All functions are synchronous; `now_ms` is the wall clock, ms since 1970. One thread at a time;
 * what the getters return may be shared between threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/log.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/key.h"
#include "libfl/pki/trust.h"

/* In seconds. With `root` 0 all are the defaults. */
struct fl_authority_spans {
    int64_t root, intermediate, leaf;
    int64_t grace;     /* how long a certificate that is over may still be renewed */
    int64_t token;     /* of an invitation that says nothing */
    int64_t back_date; /* for clocks that are behind */
};

extern const struct fl_authority_spans fl_authority_default_spans;

/* How many names and addresses a server may have. */
#define FL_AUTHORITY_HOSTS 64

struct fl_authority_conf {
    const char *state_dir;
    const char *federation; /* a valid name */
    /* What the server is reached by; the first, with `port`, stands in invitations. */
    const char *const *hosts;
    size_t n_hosts; /* at most FL_AUTHORITY_HOSTS */
    uint16_t port;
    struct fl_authority_spans spans;
    const char *root_key;    /* NULL: identity/root.key. It need not be there */
    const char *credentials; /* $CREDENTIALS_DIRECTORY; NULL: none */
    /*
     * Certificates are of the operator's own PKI: nothing is issued here, and there are no files
     * but the database, which knows denials and the audit.
     */
    bool own_pki;
    /* Unguessable bytes; NULL: the system's. A test's are seeded. */
    int (*random)(void *ctx, void *out, size_t len);
    void *random_ctx;
    /* What was made, each line of the audit, and what an operator has to do in time; NULL. */
    void (*say)(void *ctx, enum fl_log_level level, const char *text);
    void *say_ctx;
};

/*
 * `fl-serverd --init`: make what is missing, and the server's certificate anew when the names are
 * others. Twice is as good as once. FL_EPERM: folder or keys are somebody else's, or others may
 * read them; FL_ENOENT: the root's key is needed and not there; FL_EINUSE: another one is at it.
 */
FL_MUST_CHECK int fl_authority_init(const struct fl_authority_conf *conf, int64_t now_ms,
                                    struct fl_err *err);
/*
 * Is the identity below `state_dir` that of `federation`, as far as it says whose it is? FL_ESTATE:
 * of another one. What is missing, or cannot be read, says nothing here. Touches nothing.
 */
FL_MUST_CHECK int fl_authority_check_name(const char *state_dir, const char *federation,
                                          struct fl_err *err);
/*
 * `fl-serverd --init --renew-root`: a root with a new key. From now on clients are told of both
 * with every certificate; after leaf + grace, when all that are not lost have heard of it, the new
 * one signs (fl_authority_refresh), and after as long again the old one is believed no more. The
 * old root's key is not needed. Twice is as good as once until the change is over.
 */
FL_MUST_CHECK int fl_authority_renew_root(const struct fl_authority_conf *conf, int64_t now_ms,
                                          struct fl_err *err);

struct fl_authority;

/*
 * What init made; conf is copied. The server's certificate is renewed when it is due, and made when
 * it is missing. FL_ENOENT: there is nothing yet, with the command that makes it. FL_EPERM,
 * FL_ECONF, FL_EFORMAT: files, each with what is wrong and what to do.
 */
FL_MUST_CHECK int fl_authority_open(const struct fl_authority_conf *conf, int64_t now_ms,
                                    struct fl_authority **ret, struct fl_err *err);
void fl_authority_close(struct fl_authority *authority); /* NULL is allowed. */
/* The port that was bound, where the configuration leaves it to the system (0): for invitations. */
void fl_authority_bound(struct fl_authority *authority, uint16_t port);

/*
 * Read the files again and renew what is due: the server's certificate at two thirds of its
 * validity, intermediate and root in their last third if the root's key is here, else that is said
 * once a day. Also writes what was only counted (audit.h) and forgets what is of no use any more.
 * When it fails, what was in use stays in use. `*ret_changed` (may be NULL): chain, key or trust
 * are others now.
 */
FL_MUST_CHECK int fl_authority_refresh(struct fl_authority *authority, int64_t now_ms,
                                       bool *ret_changed, struct fl_err *err);
/*
 * Is the next refresh due, if no file changed? It is an hour after the last at most, five minutes
 * after one that failed; and when the clock was set back behind the last one, for what that one
 * made has not begun.
 */
bool fl_authority_due(const struct fl_authority *authority, int64_t now_ms);

/* Borrowed until the next refresh; NULL with `own_pki`. */
struct fl_chain *fl_authority_chain(const struct fl_authority *authority);
struct fl_key *fl_authority_key(const struct fl_authority *authority);
/* Clients and admins of this federation. */
struct fl_trust *fl_authority_trust(const struct fl_authority *authority);

#endif
