/* AES-GCM of libipsec-mb as OpenSSL sees it, beside OpenSSL's own. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include "libfl/base/rng.h"
#include "libfl/tls/aes.h"
#include "libfl/tls/gcm.h"
#include "libfl/tls/tls_impl.h"
#include "tests/lib/tlstalk.h"

#define PROVIDER "fl-ipsec-mb"

enum { OURS, THEIRS };

static EVP_CIPHER *fetch(int whose, size_t key_len)
{
    EVP_CIPHER *found =
        EVP_CIPHER_fetch(NULL, key_len == 16 ? "AES-128-GCM" : "AES-256-GCM",
                         whose == OURS ? fl__tls_aes_query(FL_TLS_AES_AUTO) : "provider=default");

    ck_assert_ptr_nonnull(found);
    ck_assert_str_eq(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(found)),
                     whose == OURS ? PROVIDER : "default");
    return found;
}

/* --- whose it is --- */

static const char *owner(const char *name, const char *query)
{
    EVP_CIPHER *found = EVP_CIPHER_fetch(NULL, name, query);
    const char *owner;

    ck_assert_ptr_nonnull(found);
    owner = OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(found));
    EVP_CIPHER_free(found);
    return owner;
}

START_TEST(who_does_not_ask_for_it_gets_openssls_own)
{
    ck_assert_str_eq(owner("AES-128-GCM", NULL), "default");
    ck_assert_str_eq(owner("AES-256-GCM", NULL), "default");
    ck_assert_str_eq(owner("AES-128-GCM", fl__tls_aes_query(FL_TLS_AES_AUTO)), PROVIDER);
    ck_assert_str_eq(owner("id-aes256-GCM", fl__tls_aes_query(FL_TLS_AES_AUTO)), PROVIDER);
    /* What it has not is OpenSSL's. */
    ck_assert_str_eq(owner("AES-128-CBC", fl__tls_aes_query(FL_TLS_AES_AUTO)), "default");
    ck_assert_str_eq(owner("ChaCha20-Poly1305", fl__tls_aes_query(FL_TLS_AES_AUTO)), "default");
}
END_TEST

START_TEST(it_says_what_it_is)
{
    EVP_CIPHER *ours = fetch(OURS, _i == 0 ? 16 : 32);
    EVP_CIPHER *theirs = fetch(THEIRS, _i == 0 ? 16 : 32);
    const char *version = NULL;
    OSSL_PARAM params[] = {
        OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_VERSION, (char **)(uintptr_t)&version, 0),
        OSSL_PARAM_END};

    ck_assert_int_eq(EVP_CIPHER_get_nid(ours), EVP_CIPHER_get_nid(theirs));
    ck_assert_int_eq(EVP_CIPHER_get_mode(ours), EVP_CIPH_GCM_MODE);
    ck_assert_int_eq(EVP_CIPHER_get_key_length(ours), EVP_CIPHER_get_key_length(theirs));
    ck_assert_int_eq(EVP_CIPHER_get_iv_length(ours), 12);
    ck_assert_int_eq(EVP_CIPHER_get_block_size(ours), 1);
    ck_assert_uint_eq(EVP_CIPHER_get_flags(ours) & EVP_CIPH_FLAG_AEAD_CIPHER,
                      EVP_CIPH_FLAG_AEAD_CIPHER);
    ck_assert_uint_eq(EVP_CIPHER_get_flags(ours) & EVP_CIPH_CUSTOM_IV, EVP_CIPH_CUSTOM_IV);
    ck_assert_int_eq(OSSL_PROVIDER_get_params(EVP_CIPHER_get0_provider(ours), params), 1);
    ck_assert_ptr_nonnull(strchr(version, '.'));
    EVP_CIPHER_free(ours);
    EVP_CIPHER_free(theirs);
}
END_TEST

/* --- known answers --- */

static size_t from_hex(const char *hex, uint8_t *out, size_t size)
{
    size_t n = 0;

    if (hex[0] != '\0') {
        ck_assert_int_eq(OPENSSL_hexstr2buf_ex(out, size, &n, hex, '\0'), 1);
    }
    return n;
}

/* D. McGrew, J. Viega, "The Galois/Counter Mode of Operation (GCM)", 2005, appendix B: cases 1 to
   6 and 13 to 18. */
#define KEY128  "feffe9928665731c6d6a8f9467308308"
#define KEY256  KEY128 KEY128
#define ZERO96  "000000000000000000000000"
#define ZERO128 "00000000000000000000000000000000"
#define IV96    "cafebabefacedbaddecaf888"
#define IV64    "cafebabefacedbad"
#define IV480                                                                                      \
    "9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728c3c0c95156809539fcf0e2429a6b" \
    "525416aedbf5a0de6a57a637b39b"
#define AAD "feedfacedeadbeeffeedfacedeadbeefabaddad2"
#define TEXT                                                                                       \
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6" \
    "b525b16aedf5aa0de657ba637b39"

static const struct {
    const char *key, *iv, *aad, *text, *cipher, *tag;
} vectors[] = {
    {ZERO128, ZERO96, "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
    {ZERO128, ZERO96, "", ZERO128, "0388dace60b6a392f328c2b971b2fe78",
     "ab6e47d42cec13bdf53a67b21257bddf"},
    {KEY128, IV96, "", TEXT "1aafd255",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84a"
     "a051ba30b396a0aac973d58e091473f5985",
     "4d5c2af327cd64a62cf35abd2ba6fab4"},
    {KEY128, IV96, AAD, TEXT,
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84a"
     "a051ba30b396a0aac973d58e091",
     "5bc94fbc3221a5db94fae95ae7121a47"},
    {KEY128, IV64, AAD, TEXT,
     "61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c742373806900e49f24b22b097544d4896"
     "b424989b5e1ebac0f07c23f4598",
     "3612d2e79e3b0785561be14aaca2fccb"},
    {KEY128, IV480, AAD, TEXT,
     "8ce24998625615b603a033aca13fb894be9112a5c3a211a8ba262a3cca7e2ca701e4a9a4fba43c90ccdcb281d48c7"
     "c6fd62875d2aca417034c34aee5",
     "619cc5aefffe0bfa462af43c1699d050"},
    {ZERO128 ZERO128, ZERO96, "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
    {ZERO128 ZERO128, ZERO96, "", ZERO128, "cea7403d4d606b6e074ec5d3baf39d18",
     "d0d1c8a799996bf0265b98b5d48ab919"},
    {KEY256, IV96, "", TEXT "1aafd255",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828"
     "838c5f61e6393ba7a0abcc9f662898015ad",
     "b094dac5d93471bdec1a502270e3cc6c"},
    {KEY256, IV96, AAD, TEXT,
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828"
     "838c5f61e6393ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
    {KEY256, IV64, AAD, TEXT,
     "c3762df1ca787d32ae47c13bf19844cbaf1ae14d0b976afac52ff7d79bba9de0feb582d33934a4f0954cc2363bc73"
     "f7862ac430e64abe499f47c9b1f",
     "3a337dbf46a792c45e454913fe2ea8f2"},
    {KEY256, IV480, AAD, TEXT,
     "5a8def2f0c9e53f1f75d7853659e2a20eeb2b22aafde6419a058ab4f6f746bf40fc0c3b780f244452da3ebf1c5d82"
     "cdea2418997200ef82e44ae7e3f",
     "a44a8266ee1c8eb0c8b5d4cf5ae9f19a"}};
#define N_VECTORS (sizeof(vectors) / sizeof(vectors[0]))

/* --- one message --- */

struct message {
    uint8_t key[32], iv[64];
    size_t key_len, iv_len;
    const uint8_t *aad;
    size_t aad_len;
    size_t tag_len;
};

/* In pieces of up to `piece` bytes; `in` and `out` may be the same. What the last call says. */
static int run(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, bool encrypt, const struct message *m,
               const uint8_t *in, uint8_t *out, size_t len, size_t piece, uint8_t *tag)
{
    int n = 0;
    int rv;
    size_t at;

    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, cipher, NULL, NULL, encrypt, NULL), 1);
    ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, (int)m->iv_len, NULL), 1);
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, m->key, NULL, -1, NULL), 1);
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, NULL, m->iv, encrypt, NULL), 1);
    if (!encrypt) {
        ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, (int)m->tag_len, tag), 1);
    }
    for (at = 0; at < m->aad_len; at += (size_t)n) {
        size_t part = m->aad_len - at < piece ? m->aad_len - at : piece;

        ck_assert_int_eq(EVP_CipherUpdate(ctx, NULL, &n, m->aad + at, (int)part), 1);
        n = (int)part;
    }
    for (at = 0; at < len; at += (size_t)n) {
        size_t part = len - at < piece ? len - at : piece;

        ck_assert_int_eq(EVP_CipherUpdate(ctx, out + at, &n, in + at, (int)part), 1);
        ck_assert_uint_eq((size_t)n, part);
    }
    rv = EVP_CipherFinal_ex(ctx, out, &n);
    if (rv == 1 && encrypt) {
        ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, (int)m->tag_len, tag), 1);
    }
    return rv;
}

START_TEST(the_vectors_of_mcgrew_and_viega_come_out)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    EVP_CIPHER *cipher;
    struct message m = {.tag_len = 16};
    uint8_t aad[64];
    uint8_t text[64];
    uint8_t want[64];
    uint8_t want_tag[16];
    uint8_t out[64];
    uint8_t tag[16];
    size_t len = from_hex(vectors[_i].text, text, sizeof(text));

    m.key_len = from_hex(vectors[_i].key, m.key, sizeof(m.key));
    m.iv_len = from_hex(vectors[_i].iv, m.iv, sizeof(m.iv));
    m.aad = aad;
    m.aad_len = from_hex(vectors[_i].aad, aad, sizeof(aad));
    ck_assert_uint_eq(from_hex(vectors[_i].cipher, want, sizeof(want)), len);
    ck_assert_uint_eq(from_hex(vectors[_i].tag, want_tag, sizeof(want_tag)), 16);
    cipher = fetch(OURS, m.key_len);
    ck_assert_int_eq(run(ctx, cipher, true, &m, text, out, len, 1000, tag), 1);
    ck_assert_mem_eq(out, want, len);
    ck_assert_mem_eq(tag, want_tag, 16);
    ck_assert_int_eq(run(ctx, cipher, false, &m, want, out, len, 1000, tag), 1);
    ck_assert_mem_eq(out, text, len);
    EVP_CIPHER_free(cipher);
    EVP_CIPHER_CTX_free(ctx);
}
END_TEST

/* --- beside OpenSSL --- */

#define LEN ((size_t)20000)

static void draw_message(struct fl_rng *rng, struct message *m, uint8_t *aad)
{
    static const size_t tags[] = {12, 13, 14, 15, 16};
    size_t i;

    *m = (struct message){.key_len = fl_rng_below(rng, 2) == 0 ? 16 : 32,
                          .iv_len = fl_rng_below(rng, 3) > 0 ? 12 : 1 + fl_rng_below(rng, 64),
                          .aad = aad,
                          .aad_len = fl_rng_below(rng, 65),
                          .tag_len = tags[fl_rng_below(rng, 5)]};
    for (i = 0; i < sizeof(m->key); i++) {
        m->key[i] = (uint8_t)fl_rng_below(rng, 256);
    }
    for (i = 0; i < sizeof(m->iv); i++) {
        m->iv[i] = (uint8_t)fl_rng_below(rng, 256);
    }
    for (i = 0; i < m->aad_len; i++) {
        aad[i] = (uint8_t)fl_rng_below(rng, 256);
    }
}

/* Any length up to some blocks often, then any. */
static size_t draw_len(struct fl_rng *rng)
{
    static const uint32_t most[] = {70, 1100, LEN + 1};

    return fl_rng_below(rng, most[fl_rng_below(rng, 3)]);
}

START_TEST(both_say_the_same_of_any_message_in_any_pieces_and_in_place)
{
    EVP_CIPHER_CTX *ctx[2] = {EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_new()};
    EVP_CIPHER *ciphers[2][2] = {{fetch(OURS, 16), fetch(OURS, 32)},
                                 {fetch(THEIRS, 16), fetch(THEIRS, 32)}};
    uint8_t *bytes = ends_random_bytes(LEN);
    uint8_t *out[2] = {malloc(LEN), malloc(LEN)};
    struct fl_rng rng;
    int round;
    int k;

    fl_rng_seed(&rng, 20);
    for (round = 0; round < 600; round++) {
        uint8_t aad[64];
        uint8_t tag[2][16] = {{0}};
        struct message m;
        size_t len = draw_len(&rng);
        size_t piece = 1 + draw_len(&rng);

        draw_message(&rng, &m, aad);
        k = m.key_len == 32;
        /* Ours in place, theirs not. */
        (void)memcpy(out[OURS], bytes, len);
        ck_assert_int_eq(
            run(ctx[OURS], ciphers[OURS][k], true, &m, out[OURS], out[OURS], len, piece, tag[OURS]),
            1);
        ck_assert_int_eq(run(ctx[THEIRS], ciphers[THEIRS][k], true, &m, bytes, out[THEIRS], len,
                             LEN, tag[THEIRS]),
                         1);
        ck_assert_mem_eq(out[OURS], out[THEIRS], len);
        ck_assert_mem_eq(tag[OURS], tag[THEIRS], 16);
        ck_assert_int_eq(run(ctx[OURS], ciphers[OURS][k], false, &m, out[OURS], out[OURS], len,
                             1 + draw_len(&rng), tag[THEIRS]),
                         1);
        ck_assert_mem_eq(out[OURS], bytes, len);
    }
    for (k = 0; k < 2; k++) {
        EVP_CIPHER_free(ciphers[OURS][k]);
        EVP_CIPHER_free(ciphers[THEIRS][k]);
        EVP_CIPHER_CTX_free(ctx[k]);
        free(out[k]);
    }
    free(bytes);
}
END_TEST

/* --- what is refused --- */

static EVP_CIPHER_CTX *ctx;
static EVP_CIPHER *cipher;
static struct message one;
static uint8_t plain[100], sealed[100], opened[100], seal[16];
static const uint8_t header[5] = {23, 3, 3, 0, 116};

static void begin_one(void)
{
    ctx = EVP_CIPHER_CTX_new();
    cipher = fetch(OURS, 16);
    one = (struct message){
        .key_len = 16, .iv_len = 12, .aad = header, .aad_len = sizeof(header), .tag_len = 16};
    ck_assert_int_eq(run(ctx, cipher, true, &one, plain, sealed, sizeof(plain), 100, seal), 1);
}

static void end_one(void)
{
    EVP_CIPHER_free(cipher);
    EVP_CIPHER_CTX_free(ctx);
    ERR_clear_error();
}

static int open_it(size_t len)
{
    return run(ctx, cipher, false, &one, sealed, opened, len, 100, seal);
}

START_TEST(a_message_with_any_bit_changed_is_refused)
{
    uint8_t *parts[] = {seal, sealed, one.iv, one.key};
    size_t lens[] = {16, sizeof(sealed), 12, 16};
    size_t i;
    size_t bit;

    ck_assert_int_eq(open_it(sizeof(sealed)), 1);
    for (i = 0; i < 4; i++) {
        for (bit = 0; bit < 8 * lens[i]; bit++) {
            parts[i][bit / 8] ^= (uint8_t)(1u << bit % 8);
            ck_assert_int_eq(open_it(sizeof(sealed)), 0);
            parts[i][bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    ck_assert_int_eq(open_it(sizeof(sealed) - 1), 0);
    one.aad_len--;
    ck_assert_int_eq(open_it(sizeof(sealed)), 0);
    one.aad_len++;
    ck_assert_int_eq(open_it(sizeof(sealed)), 1);
}
END_TEST

START_TEST(a_message_without_a_tag_is_refused)
{
    int n;

    /* That of the message before is not one of this. */
    ck_assert_int_eq(open_it(sizeof(sealed)), 1);
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, NULL, one.iv, 0, NULL), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, NULL, &n, header, sizeof(header)), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, opened, &n, sealed, sizeof(sealed)), 1);
    ck_assert_int_eq(EVP_CipherFinal_ex(ctx, opened, &n), 0);
    /* Nor is that of one that was begun and given up. */
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, NULL, one.iv, 0, NULL), 1);
    ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, 16, seal), 1);
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, NULL, one.iv, 0, NULL), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, NULL, &n, header, sizeof(header)), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, opened, &n, sealed, sizeof(sealed)), 1);
    ck_assert_int_eq(EVP_CipherFinal_ex(ctx, opened, &n), 0);
}
END_TEST

START_TEST(an_iv_is_used_once)
{
    int n;

    ck_assert_int_eq(EVP_CipherUpdate(ctx, opened, &n, plain, 1), 0);
    ck_assert_int_eq(EVP_CipherFinal_ex(ctx, opened, &n), 0);
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, one.key, NULL, -1, NULL), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, opened, &n, plain, 1), 0);
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, NULL, one.iv, -1, NULL), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, opened, &n, plain, 1), 1);
    /* Nor after another direction, or in the middle of a message with another key. */
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, one.key, NULL, -1, NULL), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, opened, &n, plain, 1), 0);
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, NULL, one.iv, 1, NULL), 1);
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, NULL, NULL, 0, NULL), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, opened, &n, sealed, 1), 0);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    EVP_CIPHER_CTX *fresh = EVP_CIPHER_CTX_new();
    uint8_t much[65] = {0};
    int n;

    /* Without key, without IV. */
    ck_assert_int_eq(EVP_CipherInit_ex2(fresh, cipher, NULL, one.iv, 1, NULL), 1);
    ck_assert_int_eq(EVP_CipherUpdate(fresh, opened, &n, plain, 1), 0);
    ck_assert_int_eq(EVP_CipherFinal_ex(fresh, opened, &n), 0);
    ck_assert_int_eq(EVP_CipherInit_ex2(fresh, NULL, one.key, NULL, 1, NULL), 1);
    ck_assert_int_eq(EVP_CipherUpdate(fresh, opened, &n, plain, 1), 1);
    /* A tag that is not there yet, is too long, or is given to who encrypts. */
    ck_assert_int_le(EVP_CIPHER_CTX_ctrl(fresh, EVP_CTRL_AEAD_GET_TAG, 16, seal), 0);
    ck_assert_int_le(EVP_CIPHER_CTX_ctrl(fresh, EVP_CTRL_AEAD_SET_TAG, 16, seal), 0);
    ck_assert_int_eq(EVP_CipherFinal_ex(fresh, opened, &n), 1);
    ck_assert_int_le(EVP_CIPHER_CTX_ctrl(fresh, EVP_CTRL_AEAD_GET_TAG, 17, much), 0);
    ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(fresh, EVP_CTRL_AEAD_GET_TAG, 4, seal), 1);
    ck_assert_int_eq(EVP_CipherInit_ex2(fresh, NULL, NULL, one.iv, 0, NULL), 1);
    ck_assert_int_le(EVP_CIPHER_CTX_ctrl(fresh, EVP_CTRL_AEAD_SET_TAG, 17, much), 0);
    ck_assert_int_le(EVP_CIPHER_CTX_ctrl(fresh, EVP_CTRL_AEAD_SET_TAG, 11, much), 0);
    /* Lengths. */
    ck_assert_int_le(EVP_CIPHER_CTX_ctrl(fresh, EVP_CTRL_AEAD_SET_IVLEN, 0, NULL), 0);
    ck_assert_int_le(EVP_CIPHER_CTX_ctrl(fresh, EVP_CTRL_AEAD_SET_IVLEN, 65, NULL), 0);
    ck_assert_int_eq(EVP_CIPHER_CTX_get_iv_length(fresh), 12);
    ck_assert_int_le(EVP_CIPHER_CTX_set_key_length(fresh, 32), 0);
    ck_assert_int_eq(EVP_CIPHER_CTX_set_key_length(fresh, 16), 1);
    /* More additional data than it takes, and such behind text. */
    ck_assert_int_eq(EVP_CipherUpdate(fresh, NULL, &n, much, 64), 1);
    ck_assert_int_eq(EVP_CipherUpdate(fresh, NULL, &n, much, 1), 0);
    ck_assert_int_eq(EVP_CipherUpdate(fresh, opened, &n, plain, 1), 1);
    ck_assert_int_eq(EVP_CipherUpdate(fresh, NULL, &n, much, 1), 0);
    EVP_CIPHER_CTX_free(fresh);
}
END_TEST

START_TEST(a_copy_goes_on_by_itself)
{
    EVP_CIPHER_CTX *other = EVP_CIPHER_CTX_new();
    uint8_t iv[12] = {1};
    uint8_t tag[16];
    int n;

    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, NULL, one.iv, 1, NULL), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, NULL, &n, header, sizeof(header)), 1);
    ck_assert_int_eq(EVP_CipherUpdate(ctx, opened, &n, plain, 37), 1);
    ck_assert_int_eq(EVP_CIPHER_CTX_copy(other, ctx), 1);
    /* The first is used for something else, and gone. */
    ck_assert_int_eq(EVP_CipherInit_ex2(ctx, NULL, NULL, iv, 1, NULL), 1);
    EVP_CIPHER_CTX_free(ctx);
    ctx = EVP_CIPHER_CTX_new();
    ck_assert_int_eq(EVP_CipherUpdate(other, opened + 37, &n, plain + 37, 63), 1);
    ck_assert_int_eq(EVP_CipherFinal_ex(other, opened, &n), 1);
    ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(other, EVP_CTRL_AEAD_GET_TAG, 16, tag), 1);
    ck_assert_mem_eq(opened, sealed, sizeof(sealed));
    ck_assert_mem_eq(tag, seal, 16);
    ck_assert_int_eq(EVP_CIPHER_CTX_get_original_iv(other, iv, sizeof(iv)), 1);
    ck_assert_mem_eq(iv, one.iv, 12);
    EVP_CIPHER_CTX_free(other);
}
END_TEST

/* --- under TLS --- */

static struct tlsrig rig;
static struct tlstalk talk;

static void begin(void)
{
    tlsrig_begin(&rig);
}

static void end(void)
{
    tlsrig_end(&rig);
}

static const SSL_CIPHER *spoken(const struct end *end)
{
    return SSL_get_current_cipher(((const struct fl__tls_stream *)end->stream)->ssl);
}

/* Pieces that the library encrypted and decrypted. */
static unsigned used[2];
static struct fl__gcm real[2];

static void count_encrypt(const struct gcm_key_data *key, struct gcm_context_data *message,
                          uint8_t *out, const uint8_t *in, uint64_t len)
{
    used[0]++;
    real[0].encrypt(key, message, out, in, len);
}

static void count_decrypt(const struct gcm_key_data *key, struct gcm_context_data *message,
                          uint8_t *out, const uint8_t *in, uint64_t len)
{
    used[1]++;
    real[0].decrypt(key, message, out, in, len);
}

static void count_encrypt_256(const struct gcm_key_data *key, struct gcm_context_data *message,
                              uint8_t *out, const uint8_t *in, uint64_t len)
{
    used[0]++;
    real[1].encrypt(key, message, out, in, len);
}

static void count_decrypt_256(const struct gcm_key_data *key, struct gcm_context_data *message,
                              uint8_t *out, const uint8_t *in, uint64_t len)
{
    used[1]++;
    real[1].decrypt(key, message, out, in, len);
}

static void begin_counting(void)
{
    begin();
    real[0] = fl__gcm_128;
    real[1] = fl__gcm_256;
    fl__gcm_128.encrypt = count_encrypt;
    fl__gcm_128.decrypt = count_decrypt;
    fl__gcm_256.encrypt = count_encrypt_256;
    fl__gcm_256.decrypt = count_decrypt_256;
}

/* Bits of _i: which side has it, and whether the cipher is the long one. */
START_TEST(both_sides_understand_each_other_with_it_and_without)
{
    uint8_t *bytes = ends_random_bytes(LEN);
    const char *cipher_name = (_i & 4) != 0 ? "TLS_AES_256_GCM_SHA384" : "TLS_AES_128_GCM_SHA256";
    int side;

    for (side = 0; side < 2; side++) {
        struct fl_tls_setup setup = tlsrig_setup(&rig, side);

        setup.aes = (_i & 1 << side) != 0 ? FL_TLS_AES_AUTO : FL_TLS_AES_OPENSSL;
        tlsrig_replace(&rig, side, &setup);
        rig.tls[side]->rekey_records = 3;
        ck_assert_int_eq(SSL_CTX_set_ciphersuites(rig.tls[side]->ctx, cipher_name), 1);
    }
    tlstalk_begin(&talk, &rig, true, true);
    talk.server->echo = true;
    talk.client->run = 700;
    tlstalk_expect(talk.client, LEN);
    tlstalk_expect(talk.server, LEN);
    tlstalk_send(talk.client, bytes, LEN);
    tlstalk_run(&talk);
    tlstalk_check_up(&talk);
    ck_assert_str_eq(SSL_CIPHER_get_name(spoken(talk.client)), cipher_name);
    ck_assert_uint_eq(talk.client->in_len, LEN);
    ck_assert_mem_eq(talk.client->in, bytes, LEN);
    ck_assert_int_eq(used[0] > 0, (_i & 3) != 0);
    ck_assert_int_eq(used[1] > 0, (_i & 3) != 0);
    tlstalk_end(&talk);
    free(bytes);
}
END_TEST

START_TEST(what_is_said_of_it_is_so)
{
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_CLIENT);
    char text[FL_TLS_AES_TEXT];

    ck_assert_ptr_nonnull(
        strstr(fl_tls_aes_text(rig.tls[TLSRIG_CLIENT], text, sizeof(text)), "libipsec-mb 1."));
    setup.aes = FL_TLS_AES_OPENSSL;
    tlsrig_replace(&rig, TLSRIG_CLIENT, &setup);
    (void)fl_tls_aes_text(rig.tls[TLSRIG_CLIENT], text, sizeof(text));
    ck_assert_int_eq(strncmp(text, "OpenSSL ", 8), 0);
    ck_assert_ptr_null(strstr(text, "ipsec"));
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *of_cipher;
    TCase *refuses;
    TCase *tls;
    SRunner *runner;
    char text[FL_TLS_AES_TEXT];
    int failed;

    if (fl__tls_aes_query(FL_TLS_AES_AUTO) == NULL) {
        printf("skipped: AES-GCM is of %s\n",
               fl__tls_aes_text(FL_TLS_AES_AUTO, text, sizeof(text)));
        return 77;
    }
    suite = suite_create("tls_aes");
    of_cipher = tcase_create("cipher");
    refuses = tcase_create("refuses");
    tls = tcase_create("tls");
    tcase_add_test(of_cipher, who_does_not_ask_for_it_gets_openssls_own);
    tcase_add_loop_test(of_cipher, it_says_what_it_is, 0, 2);
    tcase_add_loop_test(of_cipher, the_vectors_of_mcgrew_and_viega_come_out, 0, (int)N_VECTORS);
    tcase_add_test(of_cipher, both_say_the_same_of_any_message_in_any_pieces_and_in_place);
    suite_add_tcase(suite, of_cipher);
    tcase_add_checked_fixture(refuses, begin_one, end_one);
    tcase_add_test(refuses, a_message_with_any_bit_changed_is_refused);
    tcase_add_test(refuses, a_message_without_a_tag_is_refused);
    tcase_add_test(refuses, an_iv_is_used_once);
    tcase_add_test(refuses, what_makes_no_sense_is_refused);
    tcase_add_test(refuses, a_copy_goes_on_by_itself);
    suite_add_tcase(suite, refuses);
    tcase_add_checked_fixture(tls, begin_counting, end);
    tcase_add_loop_test(tls, both_sides_understand_each_other_with_it_and_without, 0, 8);
    tcase_add_test(tls, what_is_said_of_it_is_so);
    suite_add_tcase(suite, tls);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
