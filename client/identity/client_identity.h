#ifndef FL_CLIENT_IDENTITY_IDENTITY_H
#define FL_CLIENT_IDENTITY_IDENTITY_H

/*
 * Who this client is: its certificate, its key and the roots that it believes, as files. Either
 * those that `fl-clientd --join` got from the server, which are renewed by us, or files of an
 * operator's own PKI, which are only read.
 *
 * STATE_DIR/identity, 0700:
 *
 *   client.pem         its certificate, then those between it and the root
 *   client.key         its key, 0600
 *   roots.pem          whom it believes
 *   next.key           while joining or renewing: the key that is asked for a certificate for
 *   next-roots.pem     for a moment: the roots that come with the next certificate
 *   invitation.sha256  hash of the token that was used last, and of the key it was used with; the
 *                      invitation itself is nowhere on the disk
 *
 * Every certificate has a key of its own: a copy of an old key is of no use for longer than its
 * certificate is. It also makes the change of three files one step:
 *
 *   1  next.key, synced, before the request is sent: who is killed asks again with the same key
 *      and, as the server bound the invitation to it, gets the same certificate
 *
 *   2  next-roots.pem, synced
 *
 *   3  client.pem, replaced by one rename, synced: from now on the new identity counts
 *
 *   4  next-roots.pem becomes roots.pem, then next.key becomes client.key
 *
 * The identity is client.pem with that of the two keys that is its own. Before step 3 that is
 * client.key, and roots.pem belongs to it; after it next.key, and next-roots.pem while it is there.
 * Who reads the folder looks at next.key first, so a crash at any place leaves the old identity or
 * the new one, whole, and the steps that are left are made at the next start.
 *
 * Threading: none; blocking, small files. Times are seconds since 1970.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/identity.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/key.h"
#include "libfl/pki/trust.h"

/* Where the files are. All borrowed. */
struct fl_client_identity_files {
    const char *dir;                    /* STATE_DIR/identity */
    const char *certificate, *key, *ca; /* "": those of `dir` */
    const char *const *crl;             /* [n_crl] */
    size_t n_crl;
};

struct fl_client_identity {
    struct fl_chain *chain; /* own references */
    struct fl_key *key;
    struct fl_trust *trust; /* to verify a server with */
    /* Of the certificate; `lapsed` and validity are for the caller to judge. */
    struct fl_identity who;
    bool ours; /* of `dir`: to be renewed by us */
};

/*
 * Read and check: folder and files are ours alone, all are whole, the key belongs to the
 * certificate, which is a client's and of one of the roots. That it is over is no error. Nothing is
 * changed on the disk.
 *
 * FL_ENOENT: there is none yet, with the command that gets one. FL_EPERM: owner or mode.
 * FL_EFORMAT: contents. The text names file, expected, found and what to do.
 */
FL_MUST_CHECK int fl_client_identity_load(const struct fl_client_identity_files *files,
                                          struct fl_client_identity *ret, struct fl_err *err);
/* Also of a zeroed one. */
void fl_client_identity_done(struct fl_client_identity *identity);

/* Make the steps that a crash left undone. No folder: nothing to do. */
FL_MUST_CHECK int fl_client_identity_settle(const char *dir, struct fl_err *err);

/*
 * A number that is another one when one of the files was replaced, for who looks whether to load
 * them again. 0: none of them is there.
 */
uint64_t fl_client_identity_mark(const struct fl_client_identity_files *files);

#endif
