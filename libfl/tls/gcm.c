#include "libfl/tls/gcm.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/proverr.h>

#define TAG_MAX   ((size_t)16)
#define TAG_LEAST ((size_t)12)
#define IV_USUAL  ((size_t)12) /* All others are hashed to the first counter. */
#define IV_MAX    ((size_t)64)
/* 2^32 - 2 blocks: then the counter comes round (SP 800-38D, section 5.2.1.1). */
#define TEXT_MAX ((UINT64_C(1) << 36) - 32)
/* What the library's vectors want of expanded keys. */
#define ALIGNMENT ((size_t)64)

struct fl__gcm fl__gcm_128, fl__gcm_256;

enum phase {
    NO_IV, /* an IV is used once, and then there is none */
    FRESH, /* there is an IV, and additional data may come */
    TEXT,  /* some of the message was there */
    DONE   /* its tag is known */
};

struct context {
    struct gcm_key_data key; /* First, for its alignment. */
    struct gcm_context_data message;
    const struct fl__gcm *gcm;
    bool has_key;
    bool encrypts;
    enum phase phase;
    uint64_t text_len;
    size_t iv_len;
    size_t aad_len;
    size_t tag_len;       /* 0: there is none */
    uint8_t tag[TAG_MAX]; /* of an encrypted message; what a message to decrypt came with */
    uint8_t iv[IV_MAX];
    uint8_t aad[FL__GCM_AAD_MAX];
};

/* --- life --- */

static void *make(const struct fl__gcm *gcm)
{
    size_t size = (sizeof(struct context) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct context *c = aligned_alloc(ALIGNMENT, size);

    if (c == NULL) {
        ERR_raise(ERR_LIB_PROV, ERR_R_MALLOC_FAILURE);
        return NULL;
    }
    (void)memset(c, 0, size);
    c->gcm = gcm;
    c->iv_len = IV_USUAL;
    return c;
}

static void *make_128(void *provider)
{
    (void)provider;
    return make(&fl__gcm_128);
}

static void *make_256(void *provider)
{
    (void)provider;
    return make(&fl__gcm_256);
}

static void destroy(void *ctx)
{
    if (ctx != NULL) {
        OPENSSL_cleanse(ctx, sizeof(struct context));
        free(ctx);
    }
}

static void *copy(void *ctx)
{
    const struct context *from = ctx;
    struct context *c = make(from->gcm);

    if (c != NULL) {
        *c = *from;
    }
    return c;
}

/* --- parameters --- */

static int refuse(int reason)
{
    ERR_raise(ERR_LIB_PROV, reason);
    return 0;
}

static int get_constants(OSSL_PARAM params[], size_t key_len)
{
    static const struct {
        const char *name;
        size_t value;
    } numbers[] = {{OSSL_CIPHER_PARAM_MODE, EVP_CIPH_GCM_MODE},
                   {OSSL_CIPHER_PARAM_AEAD, 1},
                   {OSSL_CIPHER_PARAM_CUSTOM_IV, 1},
                   {OSSL_CIPHER_PARAM_BLOCK_SIZE, 1},
                   {OSSL_CIPHER_PARAM_IVLEN, IV_USUAL}};
    OSSL_PARAM *p = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_KEYLEN);
    size_t i;

    if (p != NULL && OSSL_PARAM_set_size_t(p, key_len) != 1) {
        return refuse(PROV_R_FAILED_TO_SET_PARAMETER);
    }
    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        p = OSSL_PARAM_locate(params, numbers[i].name);
        if (p != NULL && OSSL_PARAM_set_size_t(p, numbers[i].value) != 1) {
            return refuse(PROV_R_FAILED_TO_SET_PARAMETER);
        }
    }
    return 1;
}

static int get_constants_128(OSSL_PARAM params[])
{
    return get_constants(params, IMB_GCM_128_KEY_LEN);
}

static int get_constants_256(OSSL_PARAM params[])
{
    return get_constants(params, IMB_GCM_256_KEY_LEN);
}

static const OSSL_PARAM *constants(void *provider)
{
    static const OSSL_PARAM list[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_MODE, NULL),
                                      OSSL_PARAM_int(OSSL_CIPHER_PARAM_AEAD, NULL),
                                      OSSL_PARAM_int(OSSL_CIPHER_PARAM_CUSTOM_IV, NULL),
                                      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_BLOCK_SIZE, NULL),
                                      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, NULL),
                                      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, NULL),
                                      OSSL_PARAM_END};

    (void)provider;
    return list;
}

static int get_iv(const struct context *c, OSSL_PARAM *p)
{
    return p == NULL ||
           (c->phase != NO_IV && (OSSL_PARAM_set_octet_string(p, c->iv, c->iv_len) == 1 ||
                                  OSSL_PARAM_set_octet_ptr(p, c->iv, c->iv_len) == 1));
}

/* As many bytes of it as are asked for. */
static int get_tag(const struct context *c, OSSL_PARAM *p)
{
    return p == NULL ||
           (c->encrypts && c->phase == DONE && p->data_size > 0 && p->data_size <= c->tag_len &&
            OSSL_PARAM_set_octet_string(p, c->tag, p->data_size) == 1);
}

static int get_params(void *ctx, OSSL_PARAM params[])
{
    const struct context *c = ctx;
    const struct {
        const char *name;
        size_t value;
    } numbers[] = {{OSSL_CIPHER_PARAM_KEYLEN, c->gcm->key_len},
                   {OSSL_CIPHER_PARAM_IVLEN, c->iv_len},
                   {OSSL_CIPHER_PARAM_AEAD_TAGLEN, c->tag_len > 0 ? c->tag_len : TAG_MAX}};
    size_t i;

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        OSSL_PARAM *p = OSSL_PARAM_locate(params, numbers[i].name);

        if (p != NULL && OSSL_PARAM_set_size_t(p, numbers[i].value) != 1) {
            return refuse(PROV_R_FAILED_TO_SET_PARAMETER);
        }
    }
    if (!get_iv(c, OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_IV)) ||
        !get_iv(c, OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_UPDATED_IV)))
    {
        return refuse(PROV_R_FAILED_TO_SET_PARAMETER);
    }
    return get_tag(c, OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_AEAD_TAG))
               ? 1
               : refuse(PROV_R_INVALID_TAG);
}

static const OSSL_PARAM *gettable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TAGLEN, NULL),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_IV, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, 0),
        OSSL_PARAM_END};

    (void)ctx;
    (void)provider;
    return list;
}

static int set_tag(struct context *c, const OSSL_PARAM *p)
{
    if (p->data_type != OSSL_PARAM_OCTET_STRING || p->data == NULL || c->encrypts ||
        p->data_size < TAG_LEAST || p->data_size > TAG_MAX)
    {
        return refuse(PROV_R_INVALID_TAG_LENGTH);
    }
    (void)memcpy(c->tag, p->data, p->data_size);
    c->tag_len = p->data_size;
    return 1;
}

static int set_iv_len(struct context *c, const OSSL_PARAM *p)
{
    size_t len;

    if (OSSL_PARAM_get_size_t(p, &len) != 1 || len == 0 || len > IV_MAX) {
        return refuse(PROV_R_INVALID_IV_LENGTH);
    }
    if (len != c->iv_len) {
        c->iv_len = len;
        c->phase = NO_IV;
    }
    return 1;
}

static int set_params(void *ctx, const OSSL_PARAM params[])
{
    struct context *c = ctx;
    const OSSL_PARAM *p;
    size_t len;

    if (params == NULL) {
        return 1;
    }
    p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_KEYLEN);
    if (p != NULL && (OSSL_PARAM_get_size_t(p, &len) != 1 || len != c->gcm->key_len)) {
        return refuse(PROV_R_INVALID_KEY_LENGTH);
    }
    p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_IVLEN);
    if (p != NULL && !set_iv_len(c, p)) {
        return 0;
    }
    p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_TAG);
    return p == NULL || set_tag(c, p);
}

static const OSSL_PARAM *settable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, NULL),
                                      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, NULL),
                                      OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, 0),
                                      OSSL_PARAM_END};

    (void)ctx;
    (void)provider;
    return list;
}

/* --- messages --- */

/* What was begun with another key or IV is of no use. */
static void forget_message(struct context *c, enum phase phase)
{
    OPENSSL_cleanse(&c->message, sizeof(c->message));
    OPENSSL_cleanse(c->tag, sizeof(c->tag));
    c->tag_len = 0;
    c->aad_len = 0;
    c->text_len = 0;
    c->phase = phase;
}

static int begin(struct context *c, const unsigned char *key, size_t key_len,
                 const unsigned char *iv, size_t iv_len, const OSSL_PARAM params[], bool encrypts)
{
    if (c->encrypts != encrypts) {
        forget_message(c, NO_IV);
        c->encrypts = encrypts;
    }
    if (key != NULL) {
        if (key_len != c->gcm->key_len) {
            return refuse(PROV_R_INVALID_KEY_LENGTH);
        }
        if (c->phase != FRESH) {
            forget_message(c, NO_IV);
        }
        c->gcm->expand(key, &c->key);
        c->has_key = true;
    }
    if (iv != NULL) {
        if (iv_len == 0 || iv_len > IV_MAX) {
            return refuse(PROV_R_INVALID_IV_LENGTH);
        }
        forget_message(c, FRESH);
        (void)memcpy(c->iv, iv, iv_len);
        c->iv_len = iv_len;
    }
    return set_params(c, params);
}

static int begin_encrypt(void *ctx, const unsigned char *key, size_t key_len,
                         const unsigned char *iv, size_t iv_len, const OSSL_PARAM params[])
{
    return begin(ctx, key, key_len, iv, iv_len, params, true);
}

static int begin_decrypt(void *ctx, const unsigned char *key, size_t key_len,
                         const unsigned char *iv, size_t iv_len, const OSSL_PARAM params[])
{
    return begin(ctx, key, key_len, iv, iv_len, params, false);
}

/* The library takes all additional data at once, so they are gathered until there is text. */
static int add_aad(struct context *c, const unsigned char *in, size_t len)
{
    if (c->phase != FRESH) {
        return refuse(ERR_R_SHOULD_NOT_HAVE_BEEN_CALLED);
    }
    if (len > FL__GCM_AAD_MAX - c->aad_len) {
        return refuse(ERR_R_PASSED_INVALID_ARGUMENT);
    }
    (void)memcpy(c->aad + c->aad_len, in, len);
    c->aad_len += len;
    return 1;
}

static void start_text(struct context *c)
{
    if (c->iv_len == IV_USUAL) {
        c->gcm->init(&c->key, &c->message, c->iv, c->aad, c->aad_len);
    } else {
        c->gcm->init_any_iv(&c->key, &c->message, c->iv, c->iv_len, c->aad, c->aad_len);
    }
    c->phase = TEXT;
}

static int update(void *ctx, unsigned char *out, size_t *ret_len, size_t out_size,
                  const unsigned char *in, size_t len)
{
    struct context *c = ctx;

    *ret_len = 0;
    if (!c->has_key) {
        return refuse(PROV_R_NO_KEY_SET);
    }
    if (c->phase != FRESH && c->phase != TEXT) {
        return refuse(PROV_R_MISSING_CONFIG_DATA); /* an IV, which is used once */
    }
    if (len == 0) {
        return 1;
    }
    if (out == NULL) {
        return add_aad(c, in, len);
    }
    if (out_size < len) {
        return refuse(PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    }
    if (len > TEXT_MAX - c->text_len) {
        return refuse(ERR_R_PASSED_INVALID_ARGUMENT);
    }
    if (c->phase == FRESH) {
        start_text(c);
    }
    (c->encrypts ? c->gcm->encrypt : c->gcm->decrypt)(&c->key, &c->message, out, in, len);
    c->text_len += len;
    *ret_len = len;
    return 1;
}

/* Nothing says why a tag is refused: nobody who asks may learn more than that. */
static int check_tag(struct context *c)
{
    uint8_t expected[TAG_MAX];
    int same;

    c->gcm->end_decrypt(&c->key, &c->message, expected, sizeof(expected));
    same = c->tag_len >= TAG_LEAST && CRYPTO_memcmp(expected, c->tag, c->tag_len) == 0;
    OPENSSL_cleanse(expected, sizeof(expected));
    forget_message(c, DONE);
    return same;
}

static int finish(void *ctx, unsigned char *out, size_t *ret_len, size_t out_size)
{
    struct context *c = ctx;

    (void)out;
    (void)out_size;
    *ret_len = 0;
    if (!c->has_key) {
        return refuse(PROV_R_NO_KEY_SET);
    }
    if (c->phase != FRESH && c->phase != TEXT) {
        return refuse(PROV_R_MISSING_CONFIG_DATA);
    }
    if (c->phase == FRESH) {
        start_text(c);
    }
    if (!c->encrypts) {
        return check_tag(c);
    }
    c->gcm->end_encrypt(&c->key, &c->message, c->tag, TAG_MAX);
    OPENSSL_cleanse(&c->message, sizeof(c->message));
    c->tag_len = TAG_MAX;
    c->phase = DONE;
    return 1;
}

/* --- tables --- */

/* OSSL_DISPATCH holds all functions as one type; the number says which they are. */
#define FUNCTION(name) ((void (*)(void))(name))
/* clang-format off */
#define FUNCTIONS(of_make, of_constants) \
    {OSSL_FUNC_CIPHER_NEWCTX, FUNCTION(of_make)}, \
    {OSSL_FUNC_CIPHER_FREECTX, FUNCTION(destroy)}, \
    {OSSL_FUNC_CIPHER_DUPCTX, FUNCTION(copy)}, \
    {OSSL_FUNC_CIPHER_ENCRYPT_INIT, FUNCTION(begin_encrypt)}, \
    {OSSL_FUNC_CIPHER_DECRYPT_INIT, FUNCTION(begin_decrypt)}, \
    {OSSL_FUNC_CIPHER_UPDATE, FUNCTION(update)}, \
    {OSSL_FUNC_CIPHER_FINAL, FUNCTION(finish)}, \
    {OSSL_FUNC_CIPHER_GET_PARAMS, FUNCTION(of_constants)}, \
    {OSSL_FUNC_CIPHER_GETTABLE_PARAMS, FUNCTION(constants)}, \
    {OSSL_FUNC_CIPHER_GET_CTX_PARAMS, FUNCTION(get_params)}, \
    {OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS, FUNCTION(gettable)}, \
    {OSSL_FUNC_CIPHER_SET_CTX_PARAMS, FUNCTION(set_params)}, \
    {OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS, FUNCTION(settable)}, \
    {0, NULL}

const OSSL_DISPATCH fl__gcm_128_functions[] = {FUNCTIONS(make_128, get_constants_128)};
const OSSL_DISPATCH fl__gcm_256_functions[] = {FUNCTIONS(make_256, get_constants_256)};
/* clang-format on */
