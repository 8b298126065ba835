#ifndef FL_PKI_NAMES_H
#define FL_PKI_NAMES_H

/*
 * The role and name of a certificate. Our certificates have a URI, fl://FEDERATION/client/NAME
 * (admin, server): names are valid names (fl_name_valid), so nothing in it is ever percent-encoded,
 * and one name has one spelling. In an operator's own PKI, rules take role and name from the fields
 * of its certificates:
 *
 *     client dns:{name}.edge.example.org
 *     admin email:{name}@ops.example.org
 *     client uri:spiffe://example.org/fl/{name}
 *     client cn:{name}
 *     admin email:jane.doe@example.org as jane
 *
 * {name} matches a valid name; in `dns:` one label, as a wildcard of a certificate does. Host names
 * and the part after the last @ are compared without case, and a name taken from a host name is
 * converted to lower case. The first rule that matches any field of the certificate applies; when
 * it matches several with different names, the certificate is rejected. Without a matching rule it
 * is rejected.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"
#include "libfl/base/identity.h"

#define FL_NAME_URI_MAX  320
#define FL_RULES_MAX     32
#define FL_RULE_TEXT_MAX 512

struct fl_uri_name {
    enum fl_role role;
    char federation[FL_IDENTITY_NAME_MAX];
    char name[FL_IDENTITY_NAME_MAX];
};

/* "client", "admin", "server"; "nobody" for FL_ROLE_NONE. */
const char *fl_role_text(enum fl_role role);
/* FL_REQUIRE: a role, valid names, size of FL_NAME_URI_MAX or more. Returns `out`. */
const char *fl_uri_make(char *out, size_t size, enum fl_role role, const char *federation,
                        const char *name);
/* Parses a URI of ours. Other URIs that begin with fl:// are FL_EFORMAT, all others FL_ENOENT. */
FL_MUST_CHECK int fl_uri_parse(const char *uri, size_t len, struct fl_uri_name *ret);

enum fl_san_kind { FL_SAN_DNS, FL_SAN_EMAIL, FL_SAN_URI, FL_SAN_CN };

struct fl_rules;

/*
 * `texts` as configured, copied; none is allowed. FL_ELIMIT: more than FL_RULES_MAX. FL_ECONF: one
 * is invalid; the message begins with its text, and `*ret_bad` (may be NULL) is its index.
 * Immutable after creation, the reference count is atomic: may be shared between threads.
 */
FL_MUST_CHECK int fl_rules_create(const char *const *texts, size_t n, struct fl_rules **ret,
                                  size_t *ret_bad, struct fl_err *err);
struct fl_rules *fl_rules_ref(struct fl_rules *rules);
void fl_rules_unref(struct fl_rules *rules); /* NULL is allowed. */
size_t fl_rules_len(const struct fl_rules *rules);
/* True when rule `i` matches this name of a certificate. `name` has FL_IDENTITY_NAME_MAX bytes. */
bool fl_rules_fit(const struct fl_rules *rules, size_t i, enum fl_san_kind kind, const char *text,
                  size_t len, char *name, enum fl_role *ret_role);

#endif
