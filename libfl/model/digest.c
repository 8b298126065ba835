#include "libfl/model/digest.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

int fl_sha256(const void *data, size_t len, uint8_t out[32])
{
    /* A built-in digest can only fail for lack of memory. */
    return EVP_Digest(data, len, out, NULL, EVP_sha256(), NULL) == 1 ? FL_OK : FL_ENOMEM;
}

/* struct fl_sha256 is OpenSSL's context under a type of its own. */
static EVP_MD_CTX *sha256_context(struct fl_sha256 *sha)
{
    return (EVP_MD_CTX *)(void *)sha;
}

int fl_sha256_new(struct fl_sha256 **ret)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(ctx);
        return FL_ENOMEM;
    }
    *ret = (struct fl_sha256 *)(void *)ctx;
    return FL_OK;
}

void fl_sha256_free(struct fl_sha256 *sha)
{
    EVP_MD_CTX_free(sha256_context(sha));
}

int fl_sha256_add(struct fl_sha256 *sha, const void *data, size_t len)
{
    return EVP_DigestUpdate(sha256_context(sha), data, len) == 1 ? FL_OK : FL_ENOMEM;
}

int fl_sha256_end(struct fl_sha256 *sha, uint8_t out[32])
{
    return EVP_DigestFinal_ex(sha256_context(sha), out, NULL) == 1 ? FL_OK : FL_ENOMEM;
}

int fl_random_bytes(void *out, size_t len)
{
    unsigned char *p = out;

    while (len > 0) {
        int part = len > INT_MAX ? INT_MAX : (int)len;

        if (RAND_bytes(p, part) != 1) {
            return FL_EIO;
        }
        p += part;
        len -= (size_t)part;
    }
    return FL_OK;
}

const char *fl_hex(char *out, const void *data, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = data;
    size_t i;

    for (i = 0; i < len; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15u];
    }
    out[2 * len] = '\0';
    return out;
}
