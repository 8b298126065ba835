#include "libfl/pki/request.h"

#include <openssl/core_names.h>
#include <openssl/x509.h>
#include <string.h>

#include "libfl/pki/pki_impl.h"

/*
 * A common name may have 64 characters (RFC 5280, appendix A.1); the identity is in the subject
 * alternative name.
 */
#define FL_CN_MAX 64

int fl__subject_add(X509_NAME *subject, const char *name)
{
    size_t len = strlen(name);

    if (len > FL_CN_MAX) {
        len = FL_CN_MAX;
    }
    return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name,
                                      (int)len, -1, 0) == 1
               ? FL_OK
               : fl__openssl_forget(FL_ENOMEM);
}

int fl_csr_make(const struct fl_key *key, const char *name, struct fl_buf *der)
{
    X509_REQ *req = X509_REQ_new();
    unsigned char *out = NULL;
    int rv = FL_ENOMEM;
    int len = 0;

    FL_REQUIRE(key->has_private);
    if (req != NULL && X509_REQ_set_version(req, X509_REQ_VERSION_1) == 1 &&
        X509_REQ_set_pubkey(req, key->pkey) == 1 &&
        fl__subject_add(X509_REQ_get_subject_name(req), name) == FL_OK &&
        X509_REQ_sign(req, key->pkey, fl__key_digest(key->pkey)) > 0)
    {
        len = i2d_X509_REQ(req, &out);
    }
    if (len > 0) {
        rv = fl_buf_add(der, out, (size_t)len);
    }
    OPENSSL_free(out);
    X509_REQ_free(req);
    return fl__openssl_forget(rv);
}

/*
 * One key, one hash: elliptic points can be written compressed, curves by their parameters, and RSA
 * without its NULL. Only the form that OpenSSL writes itself is accepted, with uncompressed points.
 */
static bool usual_encoding(X509_PUBKEY *given, EVP_PKEY *pkey)
{
    unsigned char *a = NULL;
    unsigned char *b = NULL;
    int len_a = i2d_X509_PUBKEY(given, &a);
    int len_b = i2d_PUBKEY(pkey, &b);
    char form[32] = "uncompressed";
    char curve[32] = "named_curve";
    bool same = len_a > 0 && len_a == len_b && memcmp(a, b, (size_t)len_a) == 0;

    OPENSSL_free(a);
    OPENSSL_free(b);
    if (EVP_PKEY_get_base_id(pkey) == EVP_PKEY_EC) {
        (void)EVP_PKEY_get_utf8_string_param(pkey, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, form,
                                             sizeof(form), NULL);
        (void)EVP_PKEY_get_utf8_string_param(pkey, OSSL_PKEY_PARAM_EC_ENCODING, curve,
                                             sizeof(curve), NULL);
    }
    return same && strcmp(form, "uncompressed") == 0 && strcmp(curve, "named_curve") == 0;
}

static int csr_check_key(X509_REQ *req, struct fl_key **ret, struct fl_err *err)
{
    EVP_PKEY *pkey = X509_REQ_get0_pubkey(req);
    char found[96];
    int rv;

    if (pkey == NULL) {
        return fl_err_set(err, FL_EFORMAT, "the signing request has no readable public key");
    }
    if (!fl__key_kind(pkey, found, sizeof(found))) {
        return fl_err_set(
            err, FL_EPERM,
            "the signing request has an unsupported key of kind %s; EC P-256, EC P-384, RSA of "
            "2048 to 8192 bits and Ed25519 are certified; create such a key",
            found);
    }
    if (!usual_encoding(X509_REQ_get_X509_PUBKEY(req), pkey)) {
        return fl_err_set(
            err, FL_EFORMAT,
            "the signing request encodes its key in an unusual way, a named curve with an "
            "uncompressed point was expected; create the request with fl-clientd or openssl");
    }
    if (X509_REQ_verify(req, pkey) != 1) {
        return fl_err_set(err, FL_EPERM,
                          "the signing request is not signed by its own key: the sender does not "
                          "have that key, or the request was altered on its way");
    }
    if (EVP_PKEY_up_ref(pkey) != 1) {
        return FL_ENOMEM;
    }
    rv = fl__key_wrap(pkey, false, "", ret);
    if (rv != FL_OK) {
        EVP_PKEY_free(pkey);
    }
    return rv;
}

int fl_csr_check(const void *der, size_t len, struct fl_key **ret, struct fl_err *err)
{
    const unsigned char *p = der;
    X509_REQ *req;
    int rv;

    if (len > FL_CSR_MAX) {
        return fl_err_set(err, FL_ELIMIT,
                          "signing request too large: %zu bytes, at most %d are accepted", len,
                          FL_CSR_MAX);
    }
    req = d2i_X509_REQ(NULL, &p, (long)len);
    if (req == NULL || p != (const unsigned char *)der + len) {
        rv = fl_err_set(
            err, FL_EFORMAT,
            "invalid signing request (PKCS #10, DER) of %zu bytes, or there is something after it",
            len);
    } else {
        rv = csr_check_key(req, ret, err);
    }
    X509_REQ_free(req);
    return fl__openssl_verdict(rv, err);
}
