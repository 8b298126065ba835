#include <stdio.h>

#include <openssl/err.h>

#include "libfl/base/str.h"
#include "libfl/pki/native.h"
#include "libfl/tls/tls_impl.h"

bool fl__tls_believes(const struct fl_tls *tls, const struct fl_chain *chain,
                      struct fl_identity *ret, struct fl_refusal *ret_refusal, struct fl_err *err)
{
    const struct fl_claim claim = {.chain = chain,
                                   .purpose = tls->server ? FL_ROLE_CLIENT : FL_ROLE_SERVER,
                                   .host = tls->server ? NULL : tls->host,
                                   .now = tls->now(tls->now_ctx)};
    const struct fl_pin pin = {.key = tls->pin, .federation = tls->federation};

    *ret_refusal = (struct fl_refusal){0};
    return (tls->has_pin ? fl_pin_verify(&pin, &claim, ret, NULL, ret_refusal, err)
                         : fl_trust_verify(tls->trust, &claim, ret, ret_refusal, err)) == FL_OK;
}

/* OpenSSL derives the alert from its error code: returns a code that leads to the wanted alert. */
static int code_of_alert(int alert)
{
    switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
        return X509_V_ERR_CERT_REJECTED;
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
        return X509_V_ERR_INVALID_PURPOSE;
    case SSL_AD_CERTIFICATE_REVOKED:
        return X509_V_ERR_CERT_REVOKED;
    case SSL_AD_CERTIFICATE_EXPIRED:
        return X509_V_ERR_CERT_HAS_EXPIRED;
    case SSL_AD_UNKNOWN_CA:
        return X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
    case SSL_AD_INTERNAL_ERROR:
        return X509_V_ERR_OUT_OF_MEM;
    default:
        return X509_V_ERR_APPLICATION_VERIFICATION;
    }
}

static int tls_refuse(struct fl__tls_stream *s, X509_STORE_CTX *store,
                      const struct fl_refusal *refusal, const struct fl_err *err, int code)
{
    s->refusal = fl_str_dup(fl_err_text(err, code));
    s->refusal_reason = fl_refusal_text(refusal->reason);
    s->no_memory = s->no_memory || s->refusal == NULL || code == FL_ENOMEM;
    X509_STORE_CTX_set_error(
        store, code_of_alert(code == FL_ENOMEM ? SSL_AD_INTERNAL_ERROR : refusal->alert));
    return 0;
}

int fl__tls_on_verify(X509_STORE_CTX *store, void *arg)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct fl__tls_stream *s = fl__tls_of_ssl(ssl);
    const struct fl_tls *tls = arg;
    struct fl_refusal refusal = {.reason = FL_REFUSED_FORM, .alert = SSL_AD_BAD_CERTIFICATE};
    struct fl_chain *chain = NULL;
    struct fl_err err = {0};
    int rv;

    rv = fl_chain_from_native(X509_STORE_CTX_get0_untrusted(store), fl_stream_peer(s->below),
                              &chain, &err);
    if (rv != FL_OK) {
        return tls_refuse(s, store, &refusal, &err, rv);
    }
    if (!fl__tls_believes(tls, chain, &s->identity, &refusal, &err)) {
        fl_chain_unref(chain);
        return tls_refuse(s, store, &refusal, &err, err.code);
    }
    fl_chain_unref(s->shown);
    s->shown = chain;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
}
