#include "libfl/pki/trust.h"

#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/pki/trust_impl.h"

/* Leaf, intermediates and root; ours have one intermediate. */
#define FL_PATH_DEPTH 6
/* 112 bits: RSA of 2048, no SHA-1 (SSL_CTX_set_security_level(3) has the table). */
#define FL_AUTH_LEVEL 2

static int add_roots(struct fl_trust *trust, const struct fl_chain *roots, struct fl_err *err)
{
    struct fl_chain *all;
    size_t i;
    int rv;

    for (i = 0; i < roots->n; i++) {
        if (!roots->certs[i].info.is_ca) {
            return fl_err_set(err, FL_ECONF,
                              "'%s': '%s' is not the certificate of an authority; the trusted "
                              "roots were expected here",
                              roots->origin, roots->certs[i].info.subject);
        }
        if (X509_STORE_add_cert(trust->store, roots->certs[i].x509) != 1) {
            return FL_ENOMEM;
        }
    }
    if (trust->roots == NULL) {
        return fl_chain_part(roots, 0, roots->n, &trust->roots);
    }
    rv = fl_chain_join(trust->roots, roots, &all);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "'%s': more than %d roots in total: %s", roots->origin,
                          FL_CHAIN_MAX, fl_strerror(rv));
    }
    fl_chain_unref(trust->roots);
    trust->roots = all;
    return FL_OK;
}

static int trust_fill(struct fl_trust *trust, const struct fl_trust_setup *setup,
                      struct fl_err *err)
{
    /* An operator may trust one intermediate of a PKI instead of everything below its root. */
    unsigned long flags = X509_V_FLAG_X509_STRICT | X509_V_FLAG_PARTIAL_CHAIN;
    X509_VERIFY_PARAM *param;
    size_t i;
    int rv;

    trust->store = X509_STORE_new();
    if (trust->store == NULL) {
        return FL_ENOMEM;
    }
    param = X509_STORE_get0_param(trust->store);
    X509_VERIFY_PARAM_set_depth(param, FL_PATH_DEPTH);
    X509_VERIFY_PARAM_set_auth_level(param, FL_AUTH_LEVEL);
    if (X509_VERIFY_PARAM_set_flags(param, flags) != 1) {
        return FL_ENOMEM;
    }
    if (setup->roots != NULL) {
        rv = add_roots(trust, setup->roots, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (i = 0; i < setup->n_root_files; i++) {
        struct fl_chain *roots = NULL;

        rv = fl_chain_load(setup->root_files[i], &roots, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = add_roots(trust, roots, err);
        fl_chain_unref(roots);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (trust->roots == NULL) {
        return fl_err_set(err, FL_ECONF, "no root certificate is given: no peer could be trusted");
    }
    if (setup->intermediates != NULL) {
        rv = fl_chain_part(setup->intermediates, 0, setup->intermediates->n, &trust->helpers);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (i = 0; i < setup->n_crl_files; i++) {
        rv = fl__lists_load(trust, setup->crl_files[i], err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return setup->federation == NULL
               ? FL_OK
               : fl_str_copy(trust->federation, sizeof(trust->federation), setup->federation);
}

int fl_trust_create(const struct fl_trust_setup *setup, struct fl_trust **ret, struct fl_err *err)
{
    struct fl_trust *trust = calloc(1, sizeof(*trust));
    int rv;

    if (trust == NULL) {
        return FL_ENOMEM;
    }
    atomic_init(&trust->refs, 1);
    trust->grace_s = setup->grace_s;
    trust->rules = setup->rules != NULL ? fl_rules_ref(setup->rules) : NULL;
    rv = fl__openssl_forget(trust_fill(trust, setup, err));
    if (rv != FL_OK) {
        fl_trust_unref(trust);
        return rv;
    }
    *ret = trust;
    return FL_OK;
}

struct fl_trust *fl_trust_ref(struct fl_trust *trust)
{
    (void)atomic_fetch_add_explicit(&trust->refs, 1, memory_order_relaxed);
    return trust;
}

void fl_trust_unref(struct fl_trust *trust)
{
    if (trust == NULL || atomic_fetch_sub_explicit(&trust->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    fl__lists_free(trust);
    X509_STORE_free(trust->store);
    fl_chain_unref(trust->roots);
    fl_chain_unref(trust->helpers);
    fl_rules_unref(trust->rules);
    free(trust);
}

const struct fl_chain *fl_trust_roots(const struct fl_trust *trust)
{
    return trust->roots;
}
