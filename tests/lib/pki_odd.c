#include "tests/lib/pki_odd.h"

#include <check.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "libfl/pki/native.h"

static void add_exts(X509 *x509, X509 *issuer, const struct odd_ext *exts)
{
    X509V3_CTX ctx;

    X509V3_set_ctx(&ctx, issuer, x509, NULL, NULL, 0);
    for (; exts != NULL && exts->value != NULL; exts++) {
        X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, exts->nid, exts->value);

        ck_assert_msg(ext != NULL && X509_add_ext(x509, ext, -1) == 1, "%s", exts->value);
        X509_EXTENSION_free(ext);
    }
}

/* In days and seconds: a time_t of 32 bits ends in 2038. */
static ASN1_TIME *set_time(ASN1_TIME *t, int64_t s)
{
    ASN1_TIME *set = ASN1_TIME_adj(t, 0, (int)(s / 86400), (long)(s % 86400));

    ck_assert_ptr_nonnull(set);
    return set;
}

struct x509_st *odd_x509(const struct odd_cert *odd)
{
    X509 *x509 = X509_new();
    X509 *issuer = odd->issuer != NULL ? fl_chain_native(odd->issuer, 0) : x509;
    const char *const *name;
    EVP_PKEY *signer = odd->issuer_key != NULL ? odd->issuer_key : odd->key;

    ck_assert_int_eq(X509_set_version(x509, X509_VERSION_3), 1);
    ck_assert_int_eq(
        ASN1_INTEGER_set_int64(X509_get_serialNumber(x509), odd->serial != 0 ? odd->serial : 77),
        1);
    (void)set_time(X509_getm_notBefore(x509), odd->not_before);
    (void)set_time(X509_getm_notAfter(x509), odd->not_after);
    for (name = odd->subject; name != NULL && *name != NULL; name += 2) {
        ck_assert_int_eq(X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), name[0],
                                                    MBSTRING_UTF8, (const unsigned char *)name[1],
                                                    -1, -1, 0),
                         1);
    }
    ck_assert_int_eq(X509_set_issuer_name(x509, X509_get_subject_name(issuer)), 1);
    ck_assert_int_eq(X509_set_pubkey(x509, odd->key), 1);
    add_exts(x509, issuer, odd->exts);
    ck_assert_int_gt(X509_sign(x509, signer, odd->digest != NULL ? odd->digest : EVP_sha256()), 0);
    return x509;
}

struct fl_chain *odd_chain(const struct odd_cert *odd)
{
    X509 *x509 = odd_x509(odd);
    struct stack_st_X509 *stack = sk_X509_new_null();
    struct fl_chain *ret = NULL;
    struct fl_err err = {0};
    size_t i;

    ck_assert_int_gt(sk_X509_push(stack, x509), 0);
    for (i = 0; odd->issuer != NULL && i < fl_chain_len(odd->issuer); i++) {
        ck_assert_int_gt(sk_X509_push(stack, fl_chain_native(odd->issuer, i)), 0);
    }
    ck_assert_msg(fl_chain_from_native(stack, "odd", &ret, &err) == FL_OK, "%s", err.msg);
    sk_X509_free(stack);
    X509_free(x509);
    return ret;
}

static void revoke(X509_CRL *crl, const X509 *x509, int64_t when)
{
    X509_REVOKED *entry = X509_REVOKED_new();
    ASN1_TIME *t = set_time(NULL, when);

    ck_assert_int_eq(X509_REVOKED_set_serialNumber(
                         entry, (ASN1_INTEGER *)(uintptr_t)X509_get0_serialNumber(x509)),
                     1);
    ck_assert_int_eq(X509_REVOKED_set_revocationDate(entry, t), 1);
    ck_assert_int_eq(X509_CRL_add0_revoked(crl, entry), 1);
    ASN1_TIME_free(t);
}

void odd_list(const struct odd_list *list, int pem, struct fl_buf *out)
{
    X509 *issuer = fl_chain_native(list->issuer, 0);
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *t = set_time(NULL, list->last);
    BIO *bio = BIO_new(BIO_s_mem());
    ASN1_INTEGER *number = ASN1_INTEGER_new();
    X509V3_CTX ctx;
    X509_EXTENSION *ext;
    char *text;
    long len;

    ck_assert_int_eq(X509_CRL_set_version(crl, X509_CRL_VERSION_2), 1);
    ck_assert_int_eq(X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer)), 1);
    ck_assert_int_eq(X509_CRL_set1_lastUpdate(crl, t), 1);
    if (list->next != 0) {
        (void)set_time(t, list->next);
        ck_assert_int_eq(X509_CRL_set1_nextUpdate(crl, t), 1);
    }
    X509V3_set_ctx(&ctx, issuer, NULL, NULL, crl, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, NID_authority_key_identifier, "keyid:always");
    ck_assert_int_eq(X509_CRL_add_ext(crl, ext, -1), 1);
    X509_EXTENSION_free(ext);
    ck_assert_int_eq(ASN1_INTEGER_set_int64(number, 1), 1);
    ck_assert_int_eq(X509_CRL_add1_ext_i2d(crl, NID_crl_number, number, 0, 0), 1);
    ASN1_INTEGER_free(number);
    if (list->revoked != NULL) {
        revoke(crl, fl_chain_native(list->revoked, 0), list->last);
    }
    ck_assert_int_gt(X509_CRL_sign(crl, list->issuer_key, EVP_sha256()), 0);
    ck_assert_int_eq(pem ? PEM_write_bio_X509_CRL(bio, crl) : i2d_X509_CRL_bio(bio, crl), 1);
    len = BIO_get_mem_data(bio, &text);
    ck_assert_int_eq(fl_buf_add(out, text, (size_t)len), FL_OK);
    BIO_free(bio);
    ASN1_TIME_free(t);
    X509_CRL_free(crl);
}
