#ifndef FL_NET_PROXY_RULE_H
#define FL_NET_PROXY_RULE_H

/*
 * Which HTTP proxy, if any, the connection to an address takes: what an operator configured, else
 * the standard environment variables. Pure, except fl_proxy_find(), which reads the environment and
 * a file.
 */

#include <stdbool.h>

#include "libfl/net/address.h"

/* A rule's `proxy` for none, whatever the environment has. */
#define FL_PROXY_NONE        "none"
#define FL_PROXY_ADDRESS_MAX (FL_ADDRESS_HOST_MAX + 16)
/* Longest USER:PASSWORD. */
#define FL_PROXY_USER_MAX 512

/* What an operator configured. All borrowed; "" for what is not given, never NULL. */
struct fl_proxy_rule {
    /*
     * "": the one of https_proxy, for addresses that are not in no_proxy; "none": none; else the
     * proxy, as "http://host:port" or "host:port", whatever the environment has.
     */
    const char *proxy;
    const char *credentials; /* file with the line USER:PASSWORD */
    const char *key;         /* names `proxy` in messages, "'proxy'" */
    const char *file_key;    /* names `credentials` in messages, "'proxy_credentials'" */
};

/* The proxy of one connection. Secret: wipe it with fl_proxy_done(). */
struct fl_proxy {
    char address[FL_PROXY_ADDRESS_MAX]; /* "host:port" */
    char user[FL_PROXY_USER_MAX];       /* USER:PASSWORD, "": none */
    const char *key;                    /* what names it, for messages; borrowed */
    const char *file_key;
};

/*
 * The proxy of `text`: "http://USER:PASSWORD@host:port/", "host:port". User and password may be
 * percent-encoded. FL_EINVAL with what was expected; the text never has the password. `key` names
 * the text in messages.
 */
FL_MUST_CHECK int fl_proxy_parse(const char *text, const char *key, struct fl_proxy *ret,
                                 struct fl_err *err);
/*
 * Is `address` in the list `no_proxy`? Entries, separated by commas or blanks: "*", a name with its
 * subdomains ("example.org", ".example.org"), an IP address, a range ("10.0.0.0/8"); a name or an
 * address may end in ":port". Unix sockets and loopback addresses are always in it.
 */
bool fl_no_proxy_has(const char *no_proxy, const struct fl_address *address);

/* Checks a rule, its file included: for the start of a program. FL_EINVAL, FL_EPERM, FL_ENOENT. */
FL_MUST_CHECK int fl_proxy_check(const struct fl_proxy_rule *rule, struct fl_err *err);
/*
 * The proxy that a connection to `address` takes now; `*ret_direct`: none. Reads the file again, so
 * that a new password needs no restart. `rule` NULL: none. Errors as fl_proxy_check().
 */
FL_MUST_CHECK int fl_proxy_find(const struct fl_proxy_rule *rule, const char *address,
                                struct fl_proxy *ret, bool *ret_direct, struct fl_err *err);
void fl_proxy_done(struct fl_proxy *proxy);

#endif
