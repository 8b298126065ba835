#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/pki/trust_impl.h"

static int add_list(struct fl_trust *trust, const char *path, const char *what,
                    const unsigned char *der, long len, struct fl_err *err)
{
    const unsigned char *p = der;
    X509_CRL *crl;
    char *file;

    if (trust->n_lists == FL_TRUST_LISTS) {
        return fl_err_set(err, FL_ELIMIT, "%s: more than %d revocation lists", what,
                          FL_TRUST_LISTS);
    }
    crl = d2i_X509_CRL(NULL, &p, len);
    if (crl == NULL || p != der + len) {
        X509_CRL_free(crl);
        return fl_err_set(
            err, FL_EFORMAT,
            "%s: not a revocation list: it is damaged or truncated; copy the whole file again",
            what);
    }
    file = fl_str_dup(path);
    if (file == NULL || X509_STORE_add_crl(trust->store, crl) != 1) {
        X509_CRL_free(crl);
        free(file);
        return FL_ENOMEM;
    }
    trust->lists[trust->n_lists] = (struct fl_revocation_list){.crl = crl, .file = file};
    return fl__name_hash(X509_CRL_get_issuer(crl), trust->lists[trust->n_lists++].issuer);
}

static bool crl_lists(const struct fl_revocation_list *list, const struct fl_identity *who)
{
    BIGNUM *number = BN_bin2bn(who->serial, (int)who->serial_len, NULL);
    ASN1_INTEGER *serial = number != NULL ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
    X509_REVOKED *entry = NULL;
    int found = serial != NULL ? X509_CRL_get0_by_serial(list->crl, &entry, serial) : 0;

    ASN1_INTEGER_free(serial);
    BN_free(number);
    return found == 1; /* 2: it was removed from the list again. */
}

bool fl_trust_listed(const struct fl_trust *trust, const struct fl_identity *who, char *why,
                     size_t size)
{
    size_t i;

    for (i = 0; i < trust->n_lists; i++) {
        const struct fl_revocation_list *list = &trust->lists[i];

        if (memcmp(list->issuer, who->issuer, sizeof(who->issuer)) == 0 && crl_lists(list, who)) {
            (void)snprintf(why, size,
                           "the certificate of '%s' is revoked by the list '%s'; ask its issuer "
                           "for a new certificate with a new key",
                           who->name, list->file);
            return true;
        }
    }
    return false;
}

static int crl_add_pem(struct fl_trust *trust, const char *path, const void *data, size_t len,
                       struct fl_err *err)
{
    struct fl_pem scan = {.text = data, .len = len};
    struct fl_pem_block block;
    bool any = false;
    int rv;

    while ((rv = fl__pem_next(&scan, path, &block, err)) == FL_OK) {
        if (strcmp(block.label, "X509 CRL") == 0) {
            unsigned char *der = NULL;
            char what[512];
            long bytes = 0;

            rv = fl__pem_bytes(&block, path, &der, &bytes, err);
            if (rv != FL_OK) {
                return rv;
            }
            (void)snprintf(what, sizeof(what), "'%s': line %u", path, block.line);
            rv = add_list(trust, path, what, der, bytes, err);
            OPENSSL_free(der);
            if (rv != FL_OK) {
                return rv;
            }
            any = true;
        }
    }
    if (rv != FL_ENOENT) {
        return rv;
    }
    return any ? FL_OK
               : fl_err_set(err, FL_EFORMAT,
                            "'%s' contains no revocation list, '-----BEGIN X509 CRL-----' or DER "
                            "was expected",
                            path);
}

int fl__lists_parse(struct fl_trust *trust, const void *data, size_t len, const char *origin,
                    struct fl_err *err)
{
    char what[512];
    int rv;

    if (fl__looks_like_der(data, len)) {
        (void)snprintf(what, sizeof(what), "'%s'", origin);
        rv = add_list(trust, origin, what, data, (long)len, err);
    } else {
        rv = crl_add_pem(trust, origin, data, len, err);
    }
    if (rv != FL_OK) {
        goto done;
    }
    /* A leaf's issuer must have a list; issuers above only when there is one (verify.c). */
    if (X509_STORE_set_flags(trust->store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) != 1)
    {
        rv = FL_ENOMEM;
    }
done:
    return fl__openssl_verdict(rv, err);
}

int fl__lists_load(struct fl_trust *trust, const char *path, struct fl_err *err)
{
    struct fl_buf buf;
    int rv = fl_fs_read(path, FL_CRL_FILE_MAX, &buf, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__lists_parse(trust, buf.data, buf.len, path, err);
    fl_buf_done(&buf);
    return rv;
}

void fl__lists_free(struct fl_trust *trust)
{
    while (trust->n_lists > 0) {
        struct fl_revocation_list *list = &trust->lists[--trust->n_lists];

        X509_CRL_free(list->crl);
        free(list->file);
    }
}
