#include "libfl/model/digest.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

int fl_sha256(const void *data, size_t len, uint8_t out[32])
{
    /* The one thing that can go wrong with a built-in digest is memory. */
    return EVP_Digest(data, len, out, NULL, EVP_sha256(), NULL) == 1 ? FL_OK : FL_ENOMEM;
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
