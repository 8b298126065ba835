#include "libfl/tls/aes.h"

#include <stdio.h>

#include <openssl/crypto.h>

#ifdef HAVE_IPSEC_MB

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include "libfl/tls/gcm.h"

/* The name behind which a library of another layout does not come. */
#define LIBRARY  "libIPSec_MB.so.1"
#define PROVIDER "fl-ipsec-mb"
#define PROPERTY "provider=" PROVIDER

/* Written once, by whoever comes first; everybody else reads behind the same pthread_once(). */
static struct {
    pthread_once_t once;
    OSSL_PROVIDER *provider; /* Ours until the end. */
    bool used;
    char version[32];
    char why[300]; /* it is not used */
} aes = {.once = PTHREAD_ONCE_INIT};

/* --- the library --- */

struct library {
    __typeof__(&alloc_mb_mgr) make;
    __typeof__(&free_mb_mgr) destroy;
    __typeof__(&init_mb_mgr_auto) init;
    __typeof__(&imb_get_version) version;
    __typeof__(&imb_get_version_str) version_text;
};

/* ISO C has no cast from what dlsym() returns to a function; POSIX has that both are alike. */
static bool find(void *library, const char *name, void *ret_function)
{
    void *found = dlsym(library, name);

    (void)memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

static bool open_library(struct library *l)
{
    /* Never closed: what is loaded now is used until the end. */
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL || !find(library, "alloc_mb_mgr", &l->make) ||
        !find(library, "free_mb_mgr", &l->destroy) ||
        !find(library, "init_mb_mgr_auto", &l->init) ||
        !find(library, "imb_get_version", &l->version) ||
        !find(library, "imb_get_version_str", &l->version_text))
    {
        (void)snprintf(aes.why, sizeof(aes.why), "%.200s", dlerror());
        return false;
    }
    /* The functions are members of a struct, whose layout is that of the header. */
    if (l->version() >> 8 != IMB_VERSION_NUM >> 8) {
        (void)snprintf(aes.why, sizeof(aes.why), LIBRARY " is version %.30s, expected %d.%d",
                       l->version_text(), IMB_VERSION_NUM >> 16, IMB_VERSION_NUM >> 8 & 0xff);
        return false;
    }
    (void)snprintf(aes.version, sizeof(aes.version), "%.30s", l->version_text());
    return true;
}

/* With what is asked for, the processor has everything of which the library makes its fastest
   functions; the compiler's own question is whether the kernel lets programs use it. */
static bool is_fast(const IMB_MGR *m)
{
    return m->used_arch == IMB_ARCH_AVX512 &&
           (m->features & IMB_CPUFLAGS_AVX512_T2) == IMB_CPUFLAGS_AVX512_T2 &&
           __builtin_cpu_supports("avx512f") != 0;
}

static bool passed_its_test(const IMB_MGR *m)
{
    return (m->features & IMB_FEATURE_SELF_TEST) == 0 ||
           (m->features & IMB_FEATURE_SELF_TEST_PASS) != 0;
}

static void take_functions(const IMB_MGR *m)
{
    fl__gcm_128 = (struct fl__gcm){.key_len = IMB_GCM_128_KEY_LEN,
                                   .expand = m->gcm128_pre,
                                   .init = m->gcm128_init,
                                   .init_any_iv = m->gcm128_init_var_iv,
                                   .encrypt = m->gcm128_enc_update,
                                   .decrypt = m->gcm128_dec_update,
                                   .end_encrypt = m->gcm128_enc_finalize,
                                   .end_decrypt = m->gcm128_dec_finalize};
    fl__gcm_256 = (struct fl__gcm){.key_len = IMB_GCM_256_KEY_LEN,
                                   .expand = m->gcm256_pre,
                                   .init = m->gcm256_init,
                                   .init_any_iv = m->gcm256_init_var_iv,
                                   .encrypt = m->gcm256_enc_update,
                                   .decrypt = m->gcm256_dec_update,
                                   .end_encrypt = m->gcm256_enc_finalize,
                                   .end_decrypt = m->gcm256_dec_finalize};
}

static bool load_library(void)
{
    struct library l;
    IMB_MGR *m;
    const char *why = NULL;

    if (!open_library(&l)) {
        return false;
    }
    m = l.make(0);
    if (m == NULL) {
        (void)snprintf(aes.why, sizeof(aes.why), "out of memory");
        return false;
    }
    l.init(m, NULL);
    if (!is_fast(m)) {
        why = "this processor has no VAES with AVX-512";
    } else if (!passed_its_test(m)) {
        why = LIBRARY " fails its own test";
    } else {
        take_functions(m);
    }
    l.destroy(
        m); /* It is 100 KiB for jobs of many packets, of which these functions know nothing. */
    (void)snprintf(aes.why, sizeof(aes.why), "%s", why != NULL ? why : "");
    return why == NULL;
}

/* --- the provider --- */

static const OSSL_ALGORITHM *query(void *provider, int operation, int *no_cache)
{
    static const OSSL_ALGORITHM ciphers[] = {
        {"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6", PROPERTY, fl__gcm_128_functions,
         "AES-128-GCM of libipsec-mb"},
        {"AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46", PROPERTY, fl__gcm_256_functions,
         "AES-256-GCM of libipsec-mb"},
        {NULL, NULL, NULL, NULL}};

    (void)provider;
    *no_cache = 0;
    return operation == OSSL_OP_CIPHER ? ciphers : NULL;
}

static const OSSL_PARAM *gettable(void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_DEFN(OSSL_PROV_PARAM_NAME, OSSL_PARAM_UTF8_PTR, NULL, 0),
        OSSL_PARAM_DEFN(OSSL_PROV_PARAM_VERSION, OSSL_PARAM_UTF8_PTR, NULL, 0),
        OSSL_PARAM_DEFN(OSSL_PROV_PARAM_STATUS, OSSL_PARAM_INTEGER, NULL, 0), OSSL_PARAM_END};

    (void)provider;
    return list;
}

static int get_params(void *provider, OSSL_PARAM params[])
{
    OSSL_PARAM *name = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_NAME);
    OSSL_PARAM *version = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_VERSION);
    OSSL_PARAM *status = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_STATUS);

    (void)provider;
    return (name == NULL || OSSL_PARAM_set_utf8_ptr(name, PROVIDER) == 1) &&
           (version == NULL || OSSL_PARAM_set_utf8_ptr(version, aes.version) == 1) &&
           (status == NULL || OSSL_PARAM_set_int(status, 1) == 1);
}

static int init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out,
                void **ret_provider)
{
    static const OSSL_DISPATCH functions[] = {
        {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
        {OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, (void (*)(void))gettable},
        {OSSL_FUNC_PROVIDER_GET_PARAMS, (void (*)(void))get_params},
        {0, NULL}};

    (void)handle;
    (void)in;
    *out = functions;
    *ret_provider = &aes; /* Some parts of OpenSSL take NULL ill. */
    return 1;
}

/* What an operator's openssl.cnf demands (FIPS, say) stands above the wish. */
static bool is_preferred(void)
{
    EVP_CIPHER *found = EVP_CIPHER_fetch(NULL, "AES-128-GCM", "?" PROPERTY);
    bool ours = found != NULL &&
                strcmp(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(found)), PROVIDER) == 0;

    EVP_CIPHER_free(found);
    return ours;
}

/* OpenSSL gives the first that it knows to those who do not say what they want. */
static void let_others_come_first(void)
{
    static const char *const names[] = {"AES-128-GCM", "AES-256-GCM"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        EVP_CIPHER_free(EVP_CIPHER_fetch(NULL, names[i], NULL));
    }
}

static void load(void)
{
    if (!load_library()) {
        return;
    }
    ERR_set_mark();
    let_others_come_first();
    /* Not OSSL_PROVIDER_load(): with it OpenSSL's own would have to be asked for, too. */
    if (OSSL_PROVIDER_add_builtin(NULL, PROVIDER, init) == 1) {
        aes.provider = OSSL_PROVIDER_try_load(NULL, PROVIDER, /* retain_fallbacks= */ 1);
    }
    aes.used = aes.provider != NULL && is_preferred();
    (void)ERR_pop_to_mark();
    if (!aes.used) {
        (void)snprintf(aes.why, sizeof(aes.why), "the configuration of OpenSSL prefers another");
    }
}

const char *fl__tls_aes_query(enum fl_tls_aes wanted)
{
    if (wanted == FL_TLS_AES_OPENSSL) {
        return NULL;
    }
    (void)pthread_once(&aes.once, load);
    return aes.used ? "?" PROPERTY : NULL;
}

const char *fl__tls_aes_text(enum fl_tls_aes wanted, char *out, size_t size)
{
    if (fl__tls_aes_query(wanted) != NULL) {
        (void)snprintf(out, size, "libipsec-mb %s", aes.version);
    } else {
        (void)snprintf(out, size, "OpenSSL %s%s%s", OpenSSL_version(OPENSSL_VERSION_STRING),
                       wanted == FL_TLS_AES_AUTO ? ", libipsec-mb is not used: " : "",
                       wanted == FL_TLS_AES_AUTO ? aes.why : "");
    }
    return out;
}

#else

const char *fl__tls_aes_query(enum fl_tls_aes wanted)
{
    (void)wanted;
    return NULL;
}

const char *fl__tls_aes_text(enum fl_tls_aes wanted, char *out, size_t size)
{
    (void)snprintf(out, size, "OpenSSL %s%s", OpenSSL_version(OPENSSL_VERSION_STRING),
                   wanted == FL_TLS_AES_AUTO ? ", built without libipsec-mb" : "");
    return out;
}

#endif
