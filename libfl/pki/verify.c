/*
 * Verification of chains with OpenSSL: parameters, revocation lists, the grace period of clients,
 * and pinned roots for joining. Any thread. The identity is found in who.c, messages are in
 * refuse.c.
 */
#include <openssl/x509v3.h>
#include <string.h>

#include "libfl/pki/trust_impl.h"

#define FL_ALERT_INTERNAL 80 /* RFC 8446: internal_error */

/*
 * Within the grace period a client's certificate is verified at its last second: every certificate
 * that was valid then is accepted, the leaf and its issuers, which may have expired meanwhile and
 * would otherwise prevent all their clients from renewing.
 */
static bool within_grace(const struct fl_verifying *v, const X509 *x509)
{
    const struct fl_cert_info *leaf = &v->chain->certs[0].info;
    int64_t end;

    return v->purpose == FL_ROLE_CLIENT && v->now >= leaf->not_after &&
           v->now - leaf->not_after <= v->trust->grace_s &&
           fl__time_read(X509_get0_notAfter(x509), &end) == FL_OK && end >= leaf->not_after;
}

static int on_error(int ok, X509_STORE_CTX *ctx)
{
    struct fl_verifying *v = X509_STORE_CTX_get_app_data(ctx);
    int error = X509_STORE_CTX_get_error(ctx);
    int depth = X509_STORE_CTX_get_error_depth(ctx);
    X509 *x509 = X509_STORE_CTX_get_current_cert(ctx);

    if (ok) {
        return ok;
    }
    if (error == X509_V_ERR_CERT_HAS_EXPIRED && x509 != NULL && within_grace(v, x509)) {
        v->lapsed = true;
        X509_STORE_CTX_set_error(ctx, X509_V_OK);
        return 1;
    }
    if (error == X509_V_ERR_UNABLE_TO_GET_CRL && depth > 0) {
        X509_STORE_CTX_set_error(ctx, X509_V_OK);
        return 1;
    }
    v->error = error;
    v->depth = depth;
    v->cert = x509;
    v->crl = X509_STORE_CTX_get0_current_crl(ctx);
    return 0;
}

static int set_host(X509_VERIFY_PARAM *param, const char *host)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1) {
        return FL_OK;
    }
    /* Names are in the subject alternative names; a common name is for display. */
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 ? FL_OK : FL_ENOMEM;
}

static int add_helpers(STACK_OF(X509) * stack, const struct fl_chain *chain, size_t first)
{
    size_t i;

    for (i = first; chain != NULL && i < chain->n; i++) {
        if (sk_X509_push(stack, chain->certs[i].x509) <= 0) {
            return FL_ENOMEM;
        }
    }
    return FL_OK;
}

/* FL_OK with v->error of 0 or the first error; FL_ENOMEM. */
static int verify_path(X509_STORE_CTX *ctx, STACK_OF(X509) * others, struct fl_verifying *v)
{
    X509_VERIFY_PARAM *param;
    int rv = add_helpers(others, v->chain, 1);

    if (rv != FL_OK) {
        return rv;
    }
    rv = add_helpers(others, v->trust->helpers, 0);
    if (rv != FL_OK) {
        return rv;
    }
    if (X509_STORE_CTX_init(ctx, v->trust->store, v->chain->certs[0].x509, others) != 1) {
        return FL_ENOMEM;
    }
    param = X509_STORE_CTX_get0_param(ctx);
    /* The time comes from the clock of this machine, so it fits its time_t. */
    X509_VERIFY_PARAM_set_time(param, (time_t)v->now);
    if (X509_STORE_CTX_set_purpose(ctx, v->purpose == FL_ROLE_SERVER
                                            ? X509_PURPOSE_SSL_SERVER
                                            : X509_PURPOSE_SSL_CLIENT) != 1 ||
        (v->host != NULL && set_host(param, v->host) != FL_OK) ||
        X509_STORE_CTX_set_app_data(ctx, v) != 1)
    {
        return FL_ENOMEM;
    }
    X509_STORE_CTX_set_verify_cb(ctx, on_error);
    if (X509_verify_cert(ctx) == 1) {
        return FL_OK;
    }
    if (v->error == X509_V_OK) {
        v->error = X509_STORE_CTX_get_error(ctx);
        v->cert = X509_STORE_CTX_get_current_cert(ctx);
    }
    /* Nothing is known about the certificate: it was not verified. */
    return v->error == X509_V_ERR_OUT_OF_MEM || v->error == X509_V_OK ? FL_ENOMEM : FL_OK;
}

int fl_trust_verify(const struct fl_trust *trust, const struct fl_claim *claim,
                    struct fl_identity *ret, struct fl_refusal *ret_refusal, struct fl_err *err)
{
    struct fl_verifying v = {.trust = trust,
                             .chain = claim->chain,
                             .purpose = claim->purpose,
                             .host = claim->purpose == FL_ROLE_SERVER ? claim->host : NULL,
                             .now = claim->now};
    struct fl_refusal refusal = {.reason = FL_REFUSED_NOT, .alert = FL_ALERT_INTERNAL};
    STACK_OF(X509) *others = sk_X509_new_null();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    int rv = FL_ENOMEM;

    FL_REQUIRE(v.purpose == FL_ROLE_SERVER || v.purpose == FL_ROLE_CLIENT);
    (void)fl__openssl_forget(FL_OK); /* errors in OpenSSL's queue from other code */
    if (ctx == NULL || others == NULL) {
        goto done;
    }
    rv = verify_path(ctx, others, &v);
    if (rv != FL_OK) {
        goto done;
    }
    if (v.error != X509_V_OK && fl__openssl_verdict(FL_EPERM, NULL) == FL_ENOMEM) {
        rv = FL_ENOMEM;
        goto done;
    }
    /* Before ctx is freed: it may hold the only reference to the certificate. */
    rv =
        v.error != X509_V_OK ? fl__refuse_path(&v, &refusal, err) : fl__who(&v, ret, &refusal, err);
done:
    X509_STORE_CTX_free(ctx);
    sk_X509_free(others);
    rv = fl__openssl_verdict(rv, err);
    if (rv == FL_ENOMEM) {
        refusal = (struct fl_refusal){.reason = FL_REFUSED_NOT, .alert = FL_ALERT_INTERNAL};
        (void)fl_err_set(err, rv, "out of memory while verifying a certificate");
    }
    if (ret_refusal != NULL) {
        *ret_refusal = refusal;
    }
    return rv;
}

/* All roots with that key: a root that was renewed with it is beside the old one for a while. */
static int pinned_roots(const uint8_t key[FL_KEY_HASH], const struct fl_chain *chain,
                        struct fl_chain **ret)
{
    struct fl_chain *roots;
    int rv = fl__chain_create(chain->origin, &roots);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    /* The leaf itself is never a root. */
    for (i = 1; i < chain->n; i++) {
        const struct fl_cert *cert = &chain->certs[i];

        if (memcmp(cert->info.key, key, FL_KEY_HASH) == 0 && cert->info.self_issued &&
            cert->info.is_ca) {
            rv = fl__chain_add(roots, cert->x509, chain->origin, NULL);
            if (rv != FL_OK) {
                goto fail;
            }
        }
    }
    *ret = roots;
    return FL_OK;
fail:
    fl_chain_unref(roots);
    return rv;
}

int fl_pin_verify(const struct fl_pin *pin, const struct fl_claim *claim, struct fl_identity *ret,
                  struct fl_chain **ret_roots, struct fl_refusal *ret_refusal, struct fl_err *err)
{
    struct fl_refusal refusal = {.reason = FL_REFUSED_NOT, .alert = FL_ALERT_INTERNAL};
    struct fl_trust_setup setup = {.federation = pin->federation};
    struct fl_trust *trust = NULL;
    struct fl_chain *roots = NULL;
    int rv = pinned_roots(pin->key, claim->chain, &roots);

    FL_REQUIRE(claim->purpose == FL_ROLE_SERVER);
    if (rv != FL_OK) {
        goto done;
    }
    if (roots->n == 0) {
        rv = fl_err_set(
            err, fl__refuse(&refusal, FL_REFUSED_UNKNOWN),
            "none of the %zu certificates of the server is the root of the invitation (the last is "
            "'%s'): this is not the server that invited, or its root was replaced with another "
            "key; "
            "ask for a new invitation (`flctl invite NAME` on the server)",
            claim->chain->n, claim->chain->certs[claim->chain->n - 1].info.subject);
        goto done;
    }
    setup.roots = roots;
    rv = fl_trust_create(&setup, &trust, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_trust_verify(trust, claim, ret, &refusal, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (ret_roots != NULL) {
        *ret_roots = fl_chain_ref(roots);
    }
done:
    fl_trust_unref(trust);
    fl_chain_unref(roots);
    if (ret_refusal != NULL) {
        *ret_refusal = refusal;
    }
    return rv;
}
