#ifndef FL_TLS_GCM_H
#define FL_TLS_GCM_H

/*
 * AES-128-GCM and AES-256-GCM of Intel's libipsec-mb as a cipher of OpenSSL: what a provider's
 * table of functions needs (openssl/core_dispatch.h). aes.c loads the library and is the provider.
 *
 * It does what EVP does with these ciphers: keys, IVs and tags in any order that EVP allows, input
 * in any pieces, in place too. It does less where TLS 1.3 does not come near: a message has at
 * most FL__GCM_AAD_MAX bytes of additional data, an IV at most 64, a tag 12 to 16, and there are
 * none of the parameters that TLS 1.2 needs. A tag to check is given behind the IV of its message.
 *
 * Decrypted bytes are given out before the tag is known, as EVP wants it: nobody may use them
 * before the last call said yes. libssl does not.
 *
 * Threads: as EVP_CIPHER_CTX, one at a time for each context.
 */

#include <stddef.h>

/* Its old names are macros that OpenSSL's headers trip over. */
#define NO_COMPAT_IMB_API_053
#include <intel-ipsec-mb.h>
#include <openssl/core.h>

#define FL__GCM_AAD_MAX ((size_t)64)

/* One length of keys. */
struct fl__gcm {
    size_t key_len;
    aes_gcm_pre_t expand;
    aes_gcm_init_t init;
    aes_gcm_init_var_iv_t init_any_iv;
    aes_gcm_enc_dec_update_t encrypt, decrypt;
    aes_gcm_enc_dec_finalize_t end_encrypt, end_decrypt;
};

/* Written once, before the tables below are given to anybody. */
extern struct fl__gcm fl__gcm_128, fl__gcm_256;

extern const OSSL_DISPATCH fl__gcm_128_functions[], fl__gcm_256_functions[];

#endif
