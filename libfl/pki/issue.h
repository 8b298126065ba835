#ifndef FL_PKI_ISSUE_H
#define FL_PKI_ISSUE_H

/*
 * Issues certificates: a federation's root, the intermediate that signs in daily operation, and
 * leaves. The role of a leaf is in it twice, as extended key usage and as a name
 * (libfl/pki/names.h).
 * Times are seconds since 1970 and are arguments, serial numbers too, so that tests are seeded. A
 * validity never exceeds the issuer's, on either side: the requested one is cut, and FL_EPERM when
 * nothing is left; fl_chain_info() returns the result.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/identity.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/key.h"

#define FL_ISSUE_SERIAL 16
/* Names and addresses of a server. */
#define FL_ISSUE_HOSTS 64

struct fl_issue {
    const char *federation; /* a valid name (fl_name_valid) */
    int64_t not_before, not_after;
    uint8_t serial[FL_ISSUE_SERIAL]; /* random; the highest bit is cleared, 0 becomes 1 */
    /* For leaves only. */
    enum fl_role role;
    const char *name;         /* a valid name */
    const char *const *hosts; /* a server's: DNS names and addresses that clients connect to */
    size_t n_hosts;
    /* The returned chain ends with the root: a server presents it to joining clients. */
    bool with_root;
};

/* A self-signed root; a chain of one. */
FL_MUST_CHECK int fl_issue_root(const struct fl_key *key, const struct fl_issue *issue,
                                struct fl_chain **ret, struct fl_err *err);
/* An intermediate for `key` (its public half is enough); the chain is intermediate, root. */
FL_MUST_CHECK int fl_issue_intermediate(const struct fl_chain *root, const struct fl_key *root_key,
                                        const struct fl_key *key, const struct fl_issue *issue,
                                        struct fl_chain **ret, struct fl_err *err);
/*
 * A leaf for `key` (its public half is enough), signed by the first of `ca`; the chain is leaf,
 * `ca` without self-issued certificates unless `with_root`. FL_EINVAL: a host that is neither a DNS
 * name nor an address; FL_ECONF: `ca_key` is not the key of `ca`.
 */
FL_MUST_CHECK int fl_issue_leaf(const struct fl_chain *ca, const struct fl_key *ca_key,
                                const struct fl_key *key, const struct fl_issue *issue,
                                struct fl_chain **ret, struct fl_err *err);
/*
 * True when the leaf has exactly these names and addresses; otherwise a server's certificate has to
 * be issued again.
 */
bool fl_chain_has_hosts(const struct fl_chain *chain, const char *const *hosts, size_t n);

#endif
