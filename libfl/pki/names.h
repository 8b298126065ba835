#ifndef FL_PKI_NAMES_H
#define FL_PKI_NAMES_H

/*
 * Who a certificate is for. Ours say it by a URI, fl://FEDERATION/client/NAME (admin, server):
 * names are valid names (fl_name_valid), so nothing in it is ever percent-encoded, and one name has
 * one spelling. In an operator's own PKI rules take role and name from what his certificates carry:
 *
 *     client dns:{name}.edge.example.org
 *     admin email:{name}@ops.example.org
 *     client uri:spiffe://example.org/fl/{name}
 *     client cn:{name}
 *     admin email:jane.doe@example.org as jane
 *
 * {name} stands for a valid name; in `dns:` for one label, as a wildcard of a certificate does.
 * Names of hosts and the part behind the last @ are compared without case, and a name that a host's
 * name gives is written in small letters. The first rule that fits anything in the certificate is
 * taken; when it fits several and gives different names, the certificate is refused. Without a rule
 * that fits: refused.
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
/* Is it a URI of ours? Whatever else begins with fl:// is FL_EFORMAT, other URIs FL_ENOENT. */
FL_MUST_CHECK int fl_uri_parse(const char *uri, size_t len, struct fl_uri_name *ret);

enum fl_san_kind { FL_SAN_DNS, FL_SAN_EMAIL, FL_SAN_URI, FL_SAN_CN };

struct fl_rules;

/*
 * `texts` as configured, copied; none is fine. FL_ELIMIT: more than FL_RULES_MAX. FL_ECONF: one
 * is wrong; the message begins with its text, and `*ret_bad` (may be NULL) is its number. Immutable
 * after that, the count is atomic: may be shared between threads.
 */
FL_MUST_CHECK int fl_rules_create(const char *const *texts, size_t n, struct fl_rules **ret,
                                  size_t *ret_bad, struct fl_err *err);
struct fl_rules *fl_rules_ref(struct fl_rules *rules);
void fl_rules_unref(struct fl_rules *rules); /* NULL is allowed. */
size_t fl_rules_len(const struct fl_rules *rules);
/* Does rule `i` fit this name of a certificate? `name` has FL_IDENTITY_NAME_MAX bytes. */
bool fl_rules_fit(const struct fl_rules *rules, size_t i, enum fl_san_kind kind, const char *text,
                  size_t len, char *name, enum fl_role *ret_role);

#endif
