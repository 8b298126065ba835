/*
 * The identity of a certificate with a verified path: from our own URI, or by an operator's rules.
 * Also checks its key usages. Any thread. Verifies no signatures (verify.c).
 */

#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "libfl/pki/trust_impl.h"

int fl__uri_of(const X509 *x509, struct fl_uri_name *ret)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);
    struct fl_uri_name found;
    int rv = FL_ENOENT;
    int i;

    for (i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        const ASN1_STRING *uri = name->d.uniformResourceIdentifier;
        int one;

        if (name->type != GEN_URI) {
            continue;
        }
        one = fl_uri_parse((const char *)ASN1_STRING_get0_data(uri),
                           (size_t)ASN1_STRING_length(uri), &found);
        if (one == FL_ENOENT) {
            continue;
        }
        rv = rv == FL_ENOENT ? one : FL_EFORMAT; /* two names are an error */
    }
    GENERAL_NAMES_free(names);
    if (rv != FL_OK) {
        return fl__openssl_verdict(rv, NULL);
    }
    *ret = found;
    return fl__openssl_forget(FL_OK);
}

int fl_chain_name(const struct fl_chain *chain, struct fl_uri_name *ret)
{
    return fl__uri_of(chain->certs[0].x509, ret);
}

const char *fl__usage_text(char *out, size_t size, X509 *x509)
{
    uint32_t usage = X509_get_extended_key_usage(x509);

    if (usage == UINT32_MAX) {
        (void)snprintf(out, size, "none");
    } else {
        (void)snprintf(out, size, "%s%s%s", (usage & XKU_SSL_SERVER) != 0 ? "serverAuth " : "",
                       (usage & XKU_SSL_CLIENT) != 0 ? "clientAuth " : "",
                       (usage & ~(uint32_t)(XKU_SSL_SERVER | XKU_SSL_CLIENT)) != 0 ? "others "
                                                                                   : "");
        if (out[0] != '\0') {
            out[strlen(out) - 1] = '\0';
        }
    }
    return out;
}

/*
 * TLS 1.3 uses the key for signing only (RFC 8446, 4.4.2.2). OpenSSL also accepts the usages of
 * older handshakes.
 */
static int check_key_usage(const struct fl_verifying *v, struct fl_refusal *refusal,
                           struct fl_err *err)
{
    char text[FL_CERT_TEXT];

    if ((X509_get_key_usage(v->chain->certs[0].x509) & KU_DIGITAL_SIGNATURE) != 0) {
        return FL_OK;
    }
    return fl_err_set(err, fl__refuse(refusal, FL_REFUSED_PURPOSE),
                      "%s: keyUsage digitalSignature was expected, it has others only; issue it "
                      "again with `keyUsage = critical, digitalSignature`",
                      fl__cert_text(text, &v->chain->certs[0].info));
}

/* OpenSSL accepts a certificate without an extended key usage for any purpose; we do not. */
static int check_purpose(const struct fl_verifying *v, struct fl_refusal *refusal,
                         struct fl_err *err)
{
    X509 *leaf = v->chain->certs[0].x509;
    uint32_t usage = X509_get_extended_key_usage(leaf);
    uint32_t wanted = v->purpose == FL_ROLE_SERVER ? XKU_SSL_SERVER : XKU_SSL_CLIENT;
    const char *word = v->purpose == FL_ROLE_SERVER ? "serverAuth" : "clientAuth";
    char text[FL_CERT_TEXT];
    char found[64];

    if (usage != UINT32_MAX && (usage & wanted) != 0 && !v->chain->certs[0].info.is_ca) {
        return check_key_usage(v, refusal, err);
    }
    return fl_err_set(err, fl__refuse(refusal, FL_REFUSED_PURPOSE),
                      "%s: extendedKeyUsage %s was expected, it has %s%s; issue it again with "
                      "`extendedKeyUsage = %s` and `basicConstraints = CA:FALSE`",
                      fl__cert_text(text, &v->chain->certs[0].info), word,
                      fl__usage_text(found, sizeof(found), leaf),
                      v->chain->certs[0].info.is_ca ? " and is an authority's" : "", word);
}

static int name_refused(const struct fl_verifying *v, const char *expected, const char *found,
                        const char *action, struct fl_refusal *refusal, struct fl_err *err)
{
    char text[FL_CERT_TEXT];

    return fl_err_set(err, fl__refuse(refusal, FL_REFUSED_NAME), "%s: %s was expected, %s; %s",
                      fl__cert_text(text, &v->chain->certs[0].info), expected, found, action);
}

static int who_by_uri(const struct fl_verifying *v, struct fl_identity *ret,
                      struct fl_refusal *refusal, struct fl_err *err)
{
    bool server = v->purpose == FL_ROLE_SERVER;
    const char *fed = v->trust->federation;
    struct fl_uri_name uri;
    char expected[FL_NAME_URI_MAX];
    char found[FL_NAME_URI_MAX + 32];
    int rv = fl__uri_of(v->chain->certs[0].x509, &uri);

    (void)snprintf(expected, sizeof(expected), "a URI fl://%.64s/%s/NAME", fed,
                   server ? "server" : "client");
    if (rv == FL_ENOMEM) {
        return rv;
    }
    if (rv == FL_ENOENT) {
        return name_refused(v, expected, "it has none",
                            "it was issued elsewhere: join with an invitation, or define by "
                            "`tls.names` how its names are read",
                            refusal, err);
    }
    if (rv != FL_OK) {
        return name_refused(v, expected, "it has an invalid one, or several",
                            "have it issued again", refusal, err);
    }
    if (strcmp(uri.federation, fed) != 0) {
        (void)snprintf(found, sizeof(found), "it is of federation '%.64s'", uri.federation);
        return name_refused(
            v, expected, found,
            "join this federation with an invitation of its server, or go to the other's "
            "address",
            refusal, err);
    }
    if (server != (uri.role == FL_ROLE_SERVER)) {
        (void)snprintf(found, sizeof(found), "it is that of %s '%.64s'", fl_role_text(uri.role),
                       uri.name);
        return name_refused(v, expected, found, "use the certificate that was issued for this role",
                            refusal, err);
    }
    ret->role = uri.role;
    (void)memcpy(ret->federation, uri.federation, sizeof(ret->federation));
    (void)memcpy(ret->name, uri.name, sizeof(ret->name));
    return FL_OK;
}

/* A name that rule `i` finds in the certificate. */
struct match {
    const struct fl_rules *rules;
    size_t i;
    unsigned n; /* 0, 1, 2: several that differ */
    enum fl_role role;
    char name[FL_IDENTITY_NAME_MAX];
};

static void try_text(struct match *m, enum fl_san_kind kind, const ASN1_STRING *text)
{
    char name[FL_IDENTITY_NAME_MAX];
    enum fl_role role;

    if (!fl_rules_fit(m->rules, m->i, kind, (const char *)ASN1_STRING_get0_data(text),
                      (size_t)ASN1_STRING_length(text), name, &role))
    {
        return;
    }
    if (m->n == 0) {
        m->n = 1;
        m->role = role;
        (void)memcpy(m->name, name, sizeof(m->name));
    } else if (strcmp(m->name, name) != 0) {
        m->n = 2;
    }
}

static int who_by_rule(const struct fl_verifying *v, struct fl_identity *ret,
                       struct fl_refusal *refusal, struct fl_err *err)
{
    X509 *leaf = v->chain->certs[0].x509;
    GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    struct match m = {.rules = v->trust->rules};

    while (m.i < fl_rules_len(m.rules)) {
        int i;
        const X509_NAME *subject;
        int at;

        for (i = 0; i < sk_GENERAL_NAME_num(names); i++) {
            const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

            if (name->type == GEN_DNS) {
                try_text(&m, FL_SAN_DNS, name->d.dNSName);
            } else if (name->type == GEN_EMAIL) {
                try_text(&m, FL_SAN_EMAIL, name->d.rfc822Name);
            } else if (name->type == GEN_URI) {
                try_text(&m, FL_SAN_URI, name->d.uniformResourceIdentifier);
            }
        }
        subject = X509_get_subject_name(leaf);
        at = -1;
        while ((at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0) {
            const ASN1_STRING *raw = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
            unsigned char *utf8 = NULL;
            int len = ASN1_STRING_to_UTF8(&utf8, raw);
            ASN1_STRING *text = len >= 0 ? ASN1_STRING_new() : NULL;

            if (text != NULL && ASN1_STRING_set(text, utf8, len) == 1) {
                try_text(&m, FL_SAN_CN, text);
            }
            ASN1_STRING_free(text);
            OPENSSL_free(utf8);
        }
        if (m.n != 0) {
            break;
        }
        m.i++;
    }
    GENERAL_NAMES_free(names);
    if (m.n == 0) {
        return name_refused(
            v, "a name that matches one of the rules of `tls.names`", "none of its names matches",
            "add a rule, or have the certificate issued with such a name", refusal, err);
    }
    if (m.n > 1) {
        return name_refused(v, "one name", "a rule of `tls.names` matches several of its names",
                            "make the rule narrower, or issue a certificate for each", refusal,
                            err);
    }
    ret->role = m.role;
    (void)memcpy(ret->name, m.name, sizeof(ret->name));
    return FL_OK;
}

static int who_find_name(const struct fl_verifying *v, struct fl_identity *ret,
                         struct fl_refusal *refusal, struct fl_err *err)
{
    if (v->trust->rules != NULL && v->purpose != FL_ROLE_SERVER) {
        return who_by_rule(v, ret, refusal, err);
    }
    if (v->trust->rules == NULL && v->trust->federation[0] != '\0') {
        return who_by_uri(v, ret, refusal, err);
    }
    if (v->purpose == FL_ROLE_SERVER) {
        ret->role = FL_ROLE_SERVER;
        (void)snprintf(ret->name, sizeof(ret->name), "%s", v->host != NULL ? v->host : "server");
        return FL_OK;
    }
    return name_refused(v, "a rule for its name", "there is none in `tls.names`", "add one",
                        refusal, err);
}

int fl__who(const struct fl_verifying *v, struct fl_identity *ret, struct fl_refusal *refusal,
            struct fl_err *err)
{
    const struct fl_cert_info *info = &v->chain->certs[0].info;
    struct fl_identity who = {.kind = FL_IDENTITY_CERTIFICATE, .lapsed = v->lapsed};
    int rv = check_purpose(v, refusal, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = who_find_name(v, &who, refusal, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(who.serial, info->serial, sizeof(who.serial));
    who.serial_len = info->serial_len;
    (void)memcpy(who.key, info->key, sizeof(who.key));
    who.not_before = info->not_before;
    who.not_after = info->not_after;
    rv = fl__name_hash(X509_get_issuer_name(v->chain->certs[0].x509), who.issuer);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = who;
    return FL_OK;
}
