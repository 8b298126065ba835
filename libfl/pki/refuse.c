/*
 * The message for a rejected certificate path: which certificate, what was expected, what was
 * found, what to do. Any thread. Decides nothing: verify.c has done that.
 */

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/pki/trust_impl.h"
#include "libfl/pki/when.h"

#define KEY_TEXT 20

static const struct {
    const char *word;
    int alert; /* RFC 8446, 6.2 */
} reasons[] = {
    [FL_REFUSED_NOT] = {"none", 80},        [FL_REFUSED_UNKNOWN] = {"unknown", 48},
    [FL_REFUSED_CLOCK] = {"clock", 45},     [FL_REFUSED_EXPIRED] = {"expired", 45},
    [FL_REFUSED_REVOKED] = {"revoked", 44}, [FL_REFUSED_LIST] = {"list", 46},
    [FL_REFUSED_PURPOSE] = {"purpose", 43}, [FL_REFUSED_HOST] = {"host", 42},
    [FL_REFUSED_NAME] = {"name", 49},       [FL_REFUSED_SIGNATURE] = {"signature", 42},
    [FL_REFUSED_WEAK] = {"weak", 43},       [FL_REFUSED_FORM] = {"form", 42},
};

const char *fl_refusal_text(enum fl_refusal_reason reason)
{
    return (size_t)reason < sizeof(reasons) / sizeof(reasons[0]) ? reasons[reason].word : "none";
}

int fl__refuse(struct fl_refusal *refusal, enum fl_refusal_reason reason)
{
    refusal->reason = reason;
    refusal->alert = reasons[reason].alert;
    return FL_EPERM;
}

/* The certificate of the error: of the path, or the leaf. */
static void failed_certificate(const struct fl_verifying *v, struct fl_cert_info *info)
{
    if (v->cert == NULL || fl__cert_info(v->cert, "", info, NULL) != FL_OK) {
        *info = v->chain->certs[0].info;
    }
}

static int clock_refused(const struct fl_verifying *v, struct fl_refusal *refusal,
                         struct fl_err *err)
{
    struct fl_cert_info info;
    char text[FL_CERT_TEXT];
    char clock[FL_WHEN_TEXT];
    char date[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];

    failed_certificate(v, &info);
    return fl_err_set(err, fl__refuse(refusal, FL_REFUSED_CLOCK),
                      "%s: not valid yet: this machine's clock says %s, the certificate begins %s, "
                      "which is %s later; wait for time synchronisation or set the clock",
                      fl__cert_text(text, &info), fl_when_text(clock, sizeof(clock), v->now),
                      fl_when_text(date, sizeof(date), info.not_before),
                      fl_span_text(span, sizeof(span), info.not_before - v->now));
}

static int refuse_expired(const struct fl_verifying *v, struct fl_refusal *refusal,
                          struct fl_err *err)
{
    const char *action;
    struct fl_cert_info info;
    char text[FL_CERT_TEXT];
    char clock[FL_WHEN_TEXT];
    char date[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];

    failed_certificate(v, &info);
    if (v->depth > 0) {
        action = "have it, and the certificates that it issued, issued again (`fl-serverd --init` "
                 "does it for a federation's own)";
    } else if (v->purpose == FL_ROLE_SERVER) {
        action = "have the server's certificate issued again (`fl-serverd --init` there)";
    } else {
        action =
            "`flctl invite NAME` on the server and `fl-clientd --join` on the client get a new one";
    }
    return fl_err_set(err, fl__refuse(refusal, FL_REFUSED_EXPIRED),
                      "%s: expired: this machine's clock says %s, the certificate ended %s, which "
                      "was %s earlier; if the clock is right, %s",
                      fl__cert_text(text, &info), fl_when_text(clock, sizeof(clock), v->now),
                      fl_when_text(date, sizeof(date), info.not_after),
                      fl_span_text(span, sizeof(span), v->now - info.not_after), action);
}

/*
 * " (key 5f0a1b2c)": the first bytes of a key identifier, as `openssl x509 -ext
 * subjectKeyIdentifier` prints it. The names of the roots before and after a change of the key are
 * the same.
 */
static const char *key_text(char out[KEY_TEXT], const ASN1_OCTET_STRING *id)
{
    const uint8_t *bytes = id != NULL ? ASN1_STRING_get0_data(id) : NULL;

    out[0] = '\0';
    if (bytes != NULL && ASN1_STRING_length(id) >= 4) {
        (void)snprintf(out, KEY_TEXT, " (key %02x%02x%02x%02x)", bytes[0], bytes[1], bytes[2],
                       bytes[3]);
    }
    return out;
}

/* The identifier of its issuer's key; a self-signed certificate may omit it. */
static const ASN1_OCTET_STRING *issuer_key(X509 *x509)
{
    const ASN1_OCTET_STRING *id = X509_get0_authority_key_id(x509);

    return id != NULL || X509_self_signed(x509, 0) != 1 ? id : X509_get0_subject_key_id(x509);
}

/* The message for an unknown issuer, which it names. */
static int refuse_unknown(const struct fl_verifying *v, struct fl_refusal *refusal,
                          struct fl_err *err)
{
    X509 *last = v->cert != NULL ? v->cert : v->chain->certs[0].x509;
    const struct fl_chain *roots = v->trust->roots;
    struct fl_uri_name uri;
    char of[FL_IDENTITY_NAME_MAX + 32] = "";
    char text[FL_CERT_TEXT];
    char issuer[96];
    char theirs[KEY_TEXT];
    char ours[KEY_TEXT];

    fl__name_text(X509_get_issuer_name(last), issuer, sizeof(issuer));
    if (fl__uri_of(v->chain->certs[0].x509, &uri) == FL_OK) {
        (void)snprintf(of, sizeof(of), " of federation '%.60s'", uri.federation);
    }
    return fl_err_set(err, fl__refuse(refusal, FL_REFUSED_UNKNOWN),
                      "%s%s: its issuer '%s'%s is not trusted here; roots are '%s'%s%s%s%s%s; it "
                      "is of another federation, or its intermediate was left out: join with an "
                      "invitation, or add the root to `tls.ca`",
                      fl__cert_text(text, &v->chain->certs[0].info), of, issuer,
                      key_text(theirs, issuer_key(last)), roots->certs[0].info.subject,
                      key_text(ours, X509_get0_subject_key_id(roots->certs[0].x509)),
                      roots->n > 1 ? " and others" : "", roots->origin[0] != '\0' ? " (" : "",
                      roots->origin, roots->origin[0] != '\0' ? ")" : "");
}

static const char *list_file(const struct fl_verifying *v)
{
    size_t i;

    for (i = 0; v->crl != NULL && i < v->trust->n_lists; i++) {
        if (X509_CRL_match(v->trust->lists[i].crl, v->crl) == 0) {
            return v->trust->lists[i].file;
        }
    }
    return v->trust->n_lists > 0 ? v->trust->lists[0].file : "";
}

static int refuse_revoked(const struct fl_verifying *v, struct fl_refusal *refusal,
                          struct fl_err *err)
{
    struct fl_cert_info info;
    char text[FL_CERT_TEXT];
    char date[FL_WHEN_TEXT] = "?";
    X509_REVOKED *entry = NULL;
    int64_t when;

    failed_certificate(v, &info);
    if (v->crl != NULL && X509_CRL_get0_by_cert(v->crl, &entry, v->cert) == 1 &&
        fl__time_read(X509_REVOKED_get0_revocationDate(entry), &when) == FL_OK)
    {
        (void)fl_when_text(date, sizeof(date), when);
    }
    return fl_err_set(err, fl__refuse(refusal, FL_REFUSED_REVOKED),
                      "%s: revoked on %s by the list '%s'; if that was not intended, have a new "
                      "certificate issued for a new key",
                      fl__cert_text(text, &info), date, list_file(v));
}

static int list_refused(const struct fl_verifying *v, struct fl_refusal *refusal,
                        struct fl_err *err)
{
    const char *file = list_file(v);
    struct fl_cert_info info;
    char text[FL_CERT_TEXT];
    char clock[FL_WHEN_TEXT];
    char date[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];
    bool over = v->error == X509_V_ERR_CRL_HAS_EXPIRED;
    int64_t when = 0;

    failed_certificate(v, &info);
    (void)fl__cert_text(text, &info);
    (void)fl__refuse(refusal,
                     v->error == X509_V_ERR_CRL_NOT_YET_VALID ? FL_REFUSED_CLOCK : FL_REFUSED_LIST);
    if (v->error == X509_V_ERR_UNABLE_TO_GET_CRL) {
        return fl_err_set(err, FL_EPERM,
                          "%s: none of the revocation lists of `tls.crl` ('%s' …) is of its "
                          "issuer; add that issuer's list",
                          text, file);
    }
    if ((over || v->error == X509_V_ERR_CRL_NOT_YET_VALID) && v->crl != NULL &&
        fl__time_read(over ? X509_CRL_get0_nextUpdate(v->crl) : X509_CRL_get0_lastUpdate(v->crl),
                      &when) == FL_OK)
    {
        return fl_err_set(err, FL_EPERM,
                          "%s: revocation list unusable: this machine's clock says %s, the list "
                          "'%s' %s %s, which %s %s %s; fetch the list again, or set the clock",
                          text, fl_when_text(clock, sizeof(clock), v->now), file,
                          over ? "ended" : "begins", fl_when_text(date, sizeof(date), when),
                          over ? "was" : "is", fl_span_text(span, sizeof(span), v->now - when),
                          over ? "earlier" : "later");
    }
    return fl_err_set(err, FL_EPERM,
                      "%s: the revocation list '%s' cannot be used (%s); fetch it again", text,
                      file, X509_verify_cert_error_string(v->error));
}

static int wrong_purpose(const struct fl_verifying *v, struct fl_refusal *refusal,
                         struct fl_err *err)
{
    bool server = v->purpose == FL_ROLE_SERVER;
    const char *word = server ? "serverAuth" : "clientAuth";
    struct fl_cert_info info;
    char text[FL_CERT_TEXT];
    char found[64];

    failed_certificate(v, &info);
    return fl_err_set(
        err, fl__refuse(refusal, FL_REFUSED_PURPOSE),
        "%s: is not for a %s: extendedKeyUsage %s was expected, it has %s; use the certificate "
        "that was issued for this side",
        fl__cert_text(text, &info), server ? "server" : "client", word,
        fl__usage_text(found, sizeof(found), v->cert != NULL ? v->cert : v->chain->certs[0].x509));
}

static bool ip_text(const ASN1_OCTET_STRING *ip, char *out, size_t size)
{
    int family = ASN1_STRING_length(ip) == 4 ? AF_INET : AF_INET6;

    return (ASN1_STRING_length(ip) == 4 || ASN1_STRING_length(ip) == 16) &&
           inet_ntop(family, ASN1_STRING_get0_data(ip), out, (socklen_t)size) != NULL;
}

static int wrong_host(const struct fl_verifying *v, struct fl_refusal *refusal, struct fl_err *err)
{
    char text[FL_CERT_TEXT];
    char names[128];
    char host[96];
    GENERAL_NAMES *all =
        X509_get_ext_d2i(v->chain->certs[0].x509, NID_subject_alt_name, NULL, NULL);
    size_t len = 0;
    int i;

    /* The names of a certificate, as many as fit. */
    (void)snprintf(names, sizeof(names), "none");
    for (i = 0; i < sk_GENERAL_NAME_num(all) && len < sizeof(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
        char ip[INET6_ADDRSTRLEN];
        int n = 0;

        if (name->type == GEN_DNS) {
            n = snprintf(names + len, sizeof(names) - len, "%s%.*s", len > 0 ? ", " : "",
                         ASN1_STRING_length(name->d.dNSName),
                         (const char *)ASN1_STRING_get0_data(name->d.dNSName));
        } else if (name->type == GEN_IPADD && ip_text(name->d.iPAddress, ip, sizeof(ip))) {
            n = snprintf(names + len, sizeof(names) - len, "%s%s", len > 0 ? ", " : "", ip);
        }
        len += n > 0 ? (size_t)n : 0;
    }
    GENERAL_NAMES_free(all);
    (void)fl_str_clean(names);
    (void)snprintf(host, sizeof(host), "%s", v->host != NULL ? v->host : "?");
    return fl_err_set(
        err, fl__refuse(refusal, FL_REFUSED_HOST),
        "%s: is not that of '%s', its names are %s; connect by one of these, or have it issued for "
        "'%s' too (`identity.hosts` of the server, then `fl-serverd --init` there)",
        fl__cert_text(text, &v->chain->certs[0].info), fl_str_clean(host), names, host);
}

static int refuse_other(const struct fl_verifying *v, enum fl_refusal_reason reason,
                        const char *action, struct fl_refusal *refusal, struct fl_err *err)
{
    struct fl_cert_info info;
    char text[FL_CERT_TEXT];

    failed_certificate(v, &info);
    return fl_err_set(err, fl__refuse(refusal, reason), "%s: %s: %s", fl__cert_text(text, &info),
                      X509_verify_cert_error_string(v->error), action);
}

/* Extensions that openssl omits unless requested, and that strict verification requires. */
static int bad_form(const struct fl_verifying *v, struct fl_refusal *refusal, struct fl_err *err)
{
    static const struct {
        int error;
        const char *action;
    } known[] = {
        {X509_V_ERR_MISSING_AUTHORITY_KEY_IDENTIFIER,
         "have it issued again with `authorityKeyIdentifier = keyid`"},
        {X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER,
         "have it issued again with `subjectKeyIdentifier = hash`"},
        {X509_V_ERR_CA_CERT_MISSING_KEY_USAGE,
         "have it issued again with `keyUsage = critical, keyCertSign, cRLSign`"},
        {X509_V_ERR_CA_BCONS_NOT_CRITICAL,
         "have it issued again with `basicConstraints = critical, CA:TRUE`"},
        {X509_V_ERR_INVALID_CA, "the certificates that it issued are not trusted: have them issued "
                                "by an authority's certificate"},
    };
    size_t i;

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].error == v->error) {
            return refuse_other(v, FL_REFUSED_FORM, known[i].action, refusal, err);
        }
    }
    return refuse_other(v, FL_REFUSED_FORM,
                        "a certificate as RFC 5280 defines it was expected: examine it with "
                        "`openssl x509 -text` and have it issued again",
                        refusal, err);
}

int fl__refuse_path(const struct fl_verifying *v, struct fl_refusal *refusal, struct fl_err *err)
{
    switch (v->error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_UNTRUSTED:
        return refuse_unknown(v, refusal, err);
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return clock_refused(v, refusal, err);
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return refuse_expired(v, refusal, err);
    case X509_V_ERR_CERT_REVOKED:
        return refuse_revoked(v, refusal, err);
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
    case X509_V_ERR_CRL_NOT_YET_VALID:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
    case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE:
    case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
    case X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION:
    case X509_V_ERR_DIFFERENT_CRL_SCOPE:
    case X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
    case X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD:
    case X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD:
        return list_refused(v, refusal, err);
    case X509_V_ERR_INVALID_PURPOSE:
    case X509_V_ERR_CERT_REJECTED:
        return wrong_purpose(v, refusal, err);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return wrong_host(v, refusal, err);
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE:
        return refuse_other(v, FL_REFUSED_SIGNATURE,
                            "it was altered, or its issuer's key was replaced: get the certificate "
                            "again from its issuer, or join again",
                            refusal, err);
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
    case X509_V_ERR_CA_MD_TOO_WEAK:
        return refuse_other(
            v, FL_REFUSED_WEAK,
            "at least EC P-256 or RSA 2048 and SHA-256 were expected: create it again with these",
            refusal, err);
    default:
        return bad_form(v, refusal, err);
    }
}
