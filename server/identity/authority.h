#ifndef FL_SERVER_IDENTITY_AUTHORITY_H
#define FL_SERVER_IDENTITY_AUTHORITY_H

/*
 * A federation's authority (docs/security.md): its root, the intermediate that signs, the server's
 * own certificate, and identity.db with the invitations, certificates, revocations and the audit.
 *
 * STATE_DIR/identity, 0700, keys 0600:
 *
 *   root.pem               the root, then other trusted roots
 *   root.key               may be kept elsewhere; only a new intermediate or root needs it
 *   intermediate.pem       the intermediate, its root
 *   intermediate.key       this and server.key: or a systemd credential of this name
 *   server.pem             the server's certificate, the intermediate, the root
 *   server.key
 *   next-root.pem, next-root.key, next-intermediate.pem    while the root changes
 *   identity.db
 *
 * Every file is replaced by one rename, and each is derived from the previous ones, so that after a
 * crash at any point the next call continues. A key is never overwritten.
 *
 * All functions are synchronous; `now_ms` is the wall clock, ms since 1970. One thread at a time;
 * the objects that getters return may be shared between threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/log.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/invitation.h"
#include "libfl/pki/key.h"
#include "libfl/pki/trust.h"

/* In seconds. With `root` 0 all have their defaults. */
struct fl_authority_spans {
    int64_t root, intermediate, leaf;
    int64_t grace;     /* how long an expired certificate may still be renewed */
    int64_t token;     /* of an invitation without a validity of its own */
    int64_t back_date; /* for clocks that are behind */
};

extern const struct fl_authority_spans fl_authority_default_spans;

/* Most names and addresses of a server. */
#define FL_AUTHORITY_HOSTS 64

struct fl_authority_conf {
    const char *state_dir;
    const char *federation; /* a valid name */
    /* Names and addresses of the server, for its certificate. */
    const char *const *hosts;
    size_t n_hosts; /* at most FL_AUTHORITY_HOSTS */
    /*
     * Addresses in invitations, the first FL_INVITE_ADDRESSES of them, port 0: `port`; copied.
     * NULL: the hosts.
     */
    const struct fl_invite_address *invited;
    size_t n_invited;
    uint16_t port;
    struct fl_authority_spans spans;
    const char *root_key;    /* NULL: identity/root.key. It may be absent */
    const char *credentials; /* $CREDENTIALS_DIRECTORY; NULL: none */
    /*
     * Certificates are issued by the operator's own PKI: the authority issues none and has no files
     * except the database, which contains revocations and the audit.
     */
    bool own_pki;
    /* Cryptographically random bytes; NULL: the system's. Tests use seeded ones. */
    int (*random)(void *ctx, void *out, size_t len);
    void *random_ctx;
    /* Log: created files, audit entries, and required operator actions; NULL: none. */
    void (*say)(void *ctx, enum fl_log_level level, const char *text);
    void *say_ctx;
};

/*
 * `fl-serverd --init`: create what is missing, and a new server certificate when the names have
 * changed. Idempotent. FL_EPERM: the folder or the keys belong to another user, or other users may
 * read them; FL_ENOENT: the root's key is needed and absent; FL_EINUSE: another process runs it.
 */
FL_MUST_CHECK int fl_authority_init(const struct fl_authority_conf *conf, int64_t now_ms,
                                    struct fl_err *err);
/*
 * FL_ESTATE: the identity below `state_dir` belongs to another federation than `federation`.
 * Missing or unreadable files are not an error here. Changes nothing.
 */
FL_MUST_CHECK int fl_authority_check_name(const char *state_dir, const char *federation,
                                          struct fl_err *err);
/*
 * FL_ENOENT: there is no identity below `state_dir`; FL_EPERM: other users can access it. Changes
 * nothing.
 */
FL_MUST_CHECK int fl_authority_check_folder(const char *state_dir, struct fl_err *err);
/*
 * `fl-serverd --init --renew-root`: a root with a new key. From now on clients get both roots with
 * every certificate; after leaf + grace, when every client that is not lost has them, the new one
 * signs (fl_authority_refresh), and after the same time again the old one is no longer trusted. The
 * old root's key is not needed. Idempotent until the change is complete.
 */
FL_MUST_CHECK int fl_authority_renew_root(const struct fl_authority_conf *conf, int64_t now_ms,
                                          struct fl_err *err);

struct fl_authority;

/*
 * Open the result of fl_authority_init(); conf is copied. The server's certificate is renewed when
 * it is due, and created when it is missing. FL_ENOENT: not initialized, the text has the command.
 * FL_EPERM, FL_ECONF, FL_EFORMAT: files, each with what is wrong and what to do.
 */
FL_MUST_CHECK int fl_authority_open(const struct fl_authority_conf *conf, int64_t now_ms,
                                    struct fl_authority **ret, struct fl_err *err);
void fl_authority_close(struct fl_authority *authority); /* NULL is allowed. */
/* The bound port, where the configuration leaves it to the system (0): for invitations. */
void fl_authority_bound(struct fl_authority *authority, uint16_t port);

/*
 * Read the files again and renew what is due: the server's certificate at two thirds of its
 * validity, intermediate and root in their last third if the root's key is present, otherwise a
 * warning is logged once a day. Also writes counted refusals (audit.h) and deletes expired rows. On
 * error the previous credentials stay in use. `*ret_changed` (may be NULL): chain, key or trust
 * have changed.
 */
FL_MUST_CHECK int fl_authority_refresh(struct fl_authority *authority, int64_t now_ms,
                                       bool *ret_changed, struct fl_err *err);
/*
 * True when the next refresh is due, files unchanged: an hour after the last one at most, five
 * minutes after a failed one; and when the clock was set back before the last one, whose
 * certificates are not valid yet.
 */
bool fl_authority_due(const struct fl_authority *authority, int64_t now_ms);

/* Borrowed until the next refresh; NULL with `own_pki`. */
struct fl_chain *fl_authority_chain(const struct fl_authority *authority);
struct fl_key *fl_authority_key(const struct fl_authority *authority);
/* Clients and admins of this federation. */
struct fl_trust *fl_authority_trust(const struct fl_authority *authority);

#endif
