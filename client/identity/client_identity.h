#ifndef FL_CLIENT_IDENTITY_IDENTITY_H
#define FL_CLIENT_IDENTITY_IDENTITY_H

/*
 * The identity of this client: its certificate, its key and the roots that it trusts, as files.
 * Either those that `fl-clientd --join` got from the server, which this client renews, or files of
 * an operator's own PKI, which are only read.
 *
 * STATE_DIR/identity, 0700:
 *
 *   client.pem         its certificate, then the intermediate ones up to the root
 *   client.key         its key, 0600
 *   roots.pem          the trusted roots
 *   next.key           while joining or renewing: the key of the requested certificate
 *   next-roots.pem     for a moment: the roots that come with the next certificate
 *   invitation.sha256  hash of the last used token, and of the key that it was used with; the
 *                      invitation itself is never on disk
 *
 * Every certificate has its own key: a copy of an old key is useless once its certificate has
 * expired. It also makes the change of three files atomic:
 *
 *   1  next.key, synced, before the request is sent: after a crash the client requests again with
 *      the same key and, as the server bound the invitation to it, gets the same certificate
 *
 *   2  next-roots.pem, synced
 *
 *   3  client.pem, replaced by one rename, synced: this commits the new identity
 *
 *   4  next-roots.pem becomes roots.pem, then next.key becomes client.key
 *
 * The identity is client.pem with the one of the two keys that belongs to it. Before step 3 that is
 * client.key, with roots.pem; after it next.key, with next-roots.pem while that exists. Reading
 * tries next.key first, so a crash at any point leaves the old identity or the new one, complete,
 * and the next start makes the remaining steps.
 *
 * Threading: none; blocking, small files. Times are seconds since 1970.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/identity.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/key.h"
#include "libfl/pki/trust.h"

/* The locations of the files. All borrowed. */
struct fl_client_identity_files {
    const char *dir;                    /* STATE_DIR/identity */
    const char *certificate, *key, *ca; /* "": the files in `dir` */
    const char *const *crl;             /* [n_crl] */
    size_t n_crl;
};

struct fl_client_identity {
    struct fl_chain *chain; /* own references */
    struct fl_key *key;
    struct fl_trust *trust; /* to verify the server */
    /* From the certificate; the caller checks `lapsed` and validity. */
    struct fl_identity who;
    bool ours; /* from `dir`: renewed by this client */
};

/*
 * Read and check: folder and files are accessible to this user only, all are complete, the key
 * belongs to the certificate, and the certificate is a client's issued by one of the roots. An
 * expired certificate is no error. Nothing is changed on disk.
 *
 * FL_ENOENT: no certificate yet, with the command that gets one. FL_EPERM: owner or mode.
 * FL_EFORMAT: contents. The text names file, expected, found and what to do.
 */
FL_MUST_CHECK int fl_client_identity_load(const struct fl_client_identity_files *files,
                                          struct fl_client_identity *ret, struct fl_err *err);
/* A zeroed identity is allowed. */
void fl_client_identity_done(struct fl_client_identity *identity);

/* Complete the steps that a crash interrupted. No folder: nothing to do. */
FL_MUST_CHECK int fl_client_identity_settle(const char *dir, struct fl_err *err);

/*
 * A number that changes when one of the files is replaced, to decide whether to load them again. 0:
 * none of them exists.
 */
uint64_t fl_client_identity_mark(const struct fl_client_identity_files *files);

#endif
