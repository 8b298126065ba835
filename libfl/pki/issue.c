/*
 * Issues X.509 certificates: roots, intermediates and leaves, with their extensions and validity.
 * Any thread; times and serial numbers are arguments. Stores nothing and decides nothing about who
 * may get a certificate.
 */
#include "libfl/pki/issue.h"

#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libfl/base/str.h"
#include "libfl/pki/pki_impl.h"
#include "libfl/pki/when.h"

/* The contents of one certificate beside those of struct fl_issue. */
struct cert_shape {
    const char *constraints;
    const char *usage;
    const char *extended; /* NULL: none */
    const char *subject;
    X509 *issuer; /* NULL: self-signed */
    EVP_PKEY *issuer_key;
    EVP_PKEY *key;
};

static int set_serial(X509 *x509, const uint8_t given[FL_ISSUE_SERIAL])
{
    uint8_t bytes[FL_ISSUE_SERIAL];
    BIGNUM *bn;
    int ok;

    (void)memcpy(bytes, given, sizeof(bytes));
    bytes[0] &= 0x7f; /* a positive number in 16 bytes of DER */
    bn = BN_bin2bn(bytes, sizeof(bytes), NULL);
    ok = bn != NULL && (!BN_is_zero(bn) || BN_one(bn)) &&
         BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x509)) != NULL;
    BN_free(bn);
    return ok ? FL_OK : FL_ENOMEM;
}

static int set_times(X509 *x509, const X509 *issuer, const struct fl_issue *issue,
                     struct fl_err *err)
{
    int64_t begin = issue->not_before;
    int64_t end = issue->not_after;
    int64_t limit;
    char a[FL_WHEN_TEXT];
    char b[FL_WHEN_TEXT];
    int rv;

    if (issuer != NULL && fl__time_read(X509_get0_notBefore(issuer), &limit) == FL_OK) {
        begin = limit > begin ? limit : begin;
        if (fl__time_read(X509_get0_notAfter(issuer), &limit) == FL_OK) {
            end = limit < end ? limit : end;
        }
    }
    if (begin >= end) {
        return fl_err_set(err, FL_EPERM,
                          "a certificate from %s to %s cannot be issued: it is outside the "
                          "validity of its issuer; renew the issuer first, or set the clock",
                          fl_when_text(a, sizeof(a), issue->not_before),
                          fl_when_text(b, sizeof(b), end));
    }
    rv = fl__time_write(begin, X509_getm_notBefore(x509));
    if (rv != FL_OK) {
        return rv;
    }
    return fl__time_write(end, X509_getm_notAfter(x509));
}

/* Adds a part of SubjectAltName directly: a text for OpenSSL's parser would need escaping. */
static int issue_add_name(GENERAL_NAMES *names, int type, const void *data, size_t len)
{
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_STRING *value =
        ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);

    if (name == NULL || value == NULL || ASN1_STRING_set(value, data, (int)len) != 1 ||
        sk_GENERAL_NAME_push(names, name) <= 0)
    {
        GENERAL_NAME_free(name);
        ASN1_STRING_free(value);
        return FL_ENOMEM;
    }
    GENERAL_NAME_set0_value(name, type, value);
    return FL_OK;
}

/* Letters, digits and hyphens in labels (RFC 1123); no wildcards. */
static bool dns_name(const char *host)
{
    size_t len = strlen(host);
    size_t label = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        char c = host[i];

        if (c == '.') {
            if (label == 0 || host[i - 1] == '-') {
                return false;
            }
            label = 0;
            continue;
        }
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || (c == '-' && label > 0)) ||
            ++label > 63)
        {
            return false;
        }
    }
    return len > 0 && len < 254 && label > 0 && host[len - 1] != '-';
}

static int add_host(GENERAL_NAMES *names, const char *host, struct fl_err *err)
{
    ASN1_OCTET_STRING *ip = a2i_IPADDRESS(host);
    char shown[64];
    int rv;

    if (ip != NULL) {
        rv = issue_add_name(names, GEN_IPADD, ASN1_STRING_get0_data(ip),
                            (size_t)ASN1_STRING_length(ip));
        ASN1_OCTET_STRING_free(ip);
        return rv;
    }
    if (!dns_name(host)) {
        (void)snprintf(shown, sizeof(shown), "%s", host);
        return fl_err_set(err, FL_EINVAL,
                          "'%s' is neither a DNS name nor an address; a server's certificate has "
                          "names such as fl.example.org, 192.0.2.1 or 2001:db8::1, without port",
                          fl_str_clean(shown));
    }
    return issue_add_name(names, GEN_DNS, host, strlen(host));
}

static int add_names(X509 *x509, const struct fl_issue *issue, struct fl_err *err)
{
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    char uri[FL_NAME_URI_MAX];
    int rv = names != NULL ? FL_OK : FL_ENOMEM;
    size_t i;

    if (rv != FL_OK) {
        goto done;
    }
    (void)fl_uri_make(uri, sizeof(uri), issue->role, issue->federation, issue->name);
    rv = issue_add_name(names, GEN_URI, uri, strlen(uri));
    if (rv != FL_OK) {
        goto done;
    }
    for (i = 0; i < issue->n_hosts; i++) {
        rv = add_host(names, issue->hosts[i], err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    if (X509_add1_ext_i2d(x509, NID_subject_alt_name, names, 0, 0) != 1) {
        rv = FL_ENOMEM;
    }
done:
    GENERAL_NAMES_free(names);
    return rv;
}

static int issue_fill(X509 *x509, const struct cert_shape *shape, const struct fl_issue *issue,
                      struct fl_err *err)
{
    const struct {
        int nid;
        const char *text; /* NULL: none */
    } extensions[] = {
        {NID_basic_constraints, shape->constraints},
        {NID_key_usage, shape->usage},
        {NID_subject_key_identifier, "hash"},
        /*
         * Identifies the issuer by the key's hash only: a root that was renewed with its key still
         * matches.
         */
        {NID_authority_key_identifier, shape->issuer != NULL ? "keyid:always" : NULL},
        {NID_ext_key_usage, shape->extended},
    };
    X509V3_CTX ctx;
    size_t i;
    int rv = set_serial(x509, issue->serial);

    if (rv != FL_OK) {
        return rv;
    }
    rv = set_times(x509, shape->issuer, issue, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__subject_add(X509_get_subject_name(x509), shape->subject);
    if (rv != FL_OK) {
        return rv;
    }
    if (X509_set_version(x509, X509_VERSION_3) != 1 || X509_set_pubkey(x509, shape->key) != 1 ||
        X509_set_issuer_name(
            x509, X509_get_subject_name(shape->issuer != NULL ? shape->issuer : x509)) != 1)
    {
        return FL_ENOMEM;
    }
    X509V3_set_ctx(&ctx, shape->issuer != NULL ? shape->issuer : x509, x509, NULL, NULL, 0);
    for (i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
        if (extensions[i].text != NULL) {
            X509_EXTENSION *ext =
                X509V3_EXT_conf_nid(NULL, &ctx, extensions[i].nid, extensions[i].text);
            int ok = ext != NULL && X509_add_ext(x509, ext, -1) == 1;

            X509_EXTENSION_free(ext);
            if (!ok) {
                return FL_ENOMEM;
            }
        }
    }
    return shape->extended != NULL ? add_names(x509, issue, err) : FL_OK;
}

static int issue_make(const struct cert_shape *shape, const struct fl_issue *issue, X509 **ret,
                      struct fl_err *err)
{
    X509 *x509 = X509_new();
    int rv = x509 != NULL ? issue_fill(x509, shape, issue, err) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto fail;
    }
    if (X509_sign(x509, shape->issuer_key, fl__key_digest(shape->issuer_key)) <= 0) {
        rv = FL_ENOMEM;
        goto fail;
    }
    *ret = x509;
    return FL_OK;
fail:
    X509_free(x509);
    return fl__openssl_forget(rv);
}

/* The new certificate, then the certificates of `above` that are wanted. */
static int chain_of(X509 *first, const struct fl_chain *above, bool with_root,
                    struct fl_chain **ret, struct fl_err *err)
{
    struct fl_chain *chain;
    int rv = fl__chain_create("", &chain);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__chain_add(chain, first, "the new certificate", err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; above != NULL && i < above->n; i++) {
        if (with_root || !above->certs[i].info.self_issued) {
            rv = fl__chain_add(chain, above->certs[i].x509, "its issuer", err);
            if (rv != FL_OK) {
                goto fail;
            }
        }
    }
    *ret = chain;
    return FL_OK;
fail:
    fl_chain_unref(chain);
    return rv;
}

static int issue_by(const struct fl_chain *ca, const struct fl_key *ca_key,
                    struct cert_shape *shape, const struct fl_issue *issue, bool with_root,
                    struct fl_chain **ret, struct fl_err *err)
{
    X509 *x509 = NULL;
    int rv = fl_chain_fits(ca, ca_key, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!ca->certs[0].info.is_ca) {
        return fl_err_set(err, FL_ECONF,
                          "'%s': '%s' is not the certificate of an authority and cannot issue "
                          "others; the file of the intermediate was expected",
                          ca->origin, ca->certs[0].info.subject);
    }
    FL_REQUIRE(ca_key->has_private);
    shape->issuer = ca->certs[0].x509;
    shape->issuer_key = ca_key->pkey;
    rv = issue_make(shape, issue, &x509, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = chain_of(x509, ca, with_root, ret, err);
    X509_free(x509);
    return rv;
}

/* "fl root fed-a", truncated by fl__subject_add() to the maximum length of a common name. */
static void ca_subject(char *out, size_t size, const char *what, const struct fl_issue *issue)
{
    (void)snprintf(out, size, "fl %s %s", what, issue->federation);
}

int fl_issue_root(const struct fl_key *key, const struct fl_issue *issue, struct fl_chain **ret,
                  struct fl_err *err)
{
    char subject[FL_IDENTITY_NAME_MAX + 32];
    const struct cert_shape shape = {.constraints = "critical,CA:TRUE",
                                     .usage = "critical,keyCertSign,cRLSign",
                                     .subject = subject,
                                     .issuer_key = key->pkey,
                                     .key = key->pkey};
    X509 *x509 = NULL;
    int rv;

    FL_REQUIRE(key->has_private && fl_name_valid(issue->federation));
    ca_subject(subject, sizeof(subject), "root", issue);
    rv = issue_make(&shape, issue, &x509, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = chain_of(x509, NULL, true, ret, err);
    X509_free(x509);
    return rv;
}

int fl_issue_intermediate(const struct fl_chain *root, const struct fl_key *root_key,
                          const struct fl_key *key, const struct fl_issue *issue,
                          struct fl_chain **ret, struct fl_err *err)
{
    char subject[FL_IDENTITY_NAME_MAX + 32];
    struct cert_shape shape = {.constraints = "critical,CA:TRUE,pathlen:0",
                               .usage = "critical,keyCertSign,cRLSign",
                               .subject = subject,
                               .key = key->pkey};

    FL_REQUIRE(fl_name_valid(issue->federation));
    ca_subject(subject, sizeof(subject), "intermediate", issue);
    return issue_by(root, root_key, &shape, issue, true, ret, err);
}

int fl_issue_leaf(const struct fl_chain *ca, const struct fl_key *ca_key, const struct fl_key *key,
                  const struct fl_issue *issue, struct fl_chain **ret, struct fl_err *err)
{
    struct cert_shape shape = {.constraints = "critical,CA:FALSE",
                               .usage = "critical,digitalSignature",
                               .extended =
                                   issue->role == FL_ROLE_SERVER ? "serverAuth" : "clientAuth",
                               .subject = issue->name,
                               .key = key->pkey};

    FL_REQUIRE(issue->role != FL_ROLE_NONE && fl_name_valid(issue->federation) &&
               fl_name_valid(issue->name));
    if (issue->n_hosts > FL_ISSUE_HOSTS) {
        return fl_err_set(err, FL_ELIMIT, "too many names for a certificate: %zu, at most %d",
                          issue->n_hosts, FL_ISSUE_HOSTS);
    }
    return issue_by(ca, ca_key, &shape, issue, issue->with_root, ret, err);
}

bool fl_chain_has_hosts(const struct fl_chain *chain, const char *const *hosts, size_t n)
{
    X509 *x509 = chain->certs[0].x509;
    GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);
    bool all = true;
    size_t there = 0;
    size_t i;
    int k;

    for (i = 0; i < n; i++) {
        all = all && (X509_check_ip_asc(x509, hosts[i], 0) == 1 ||
                      X509_check_host(x509, hosts[i], strlen(hosts[i]),
                                      X509_CHECK_FLAG_NO_WILDCARDS, NULL) == 1);
    }
    for (k = 0; k < sk_GENERAL_NAME_num(names); k++) {
        int type = sk_GENERAL_NAME_value(names, k)->type;

        there += type == GEN_DNS || type == GEN_IPADD;
    }
    GENERAL_NAMES_free(names);
    (void)fl__openssl_forget(FL_OK);
    return all && there == n;
}
