/* Keys and certificates as files: what is taken, and what is said of each that is not. */

#include <check.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/pki/native.h"
#include "tests/lib/folder.h"
#include "tests/lib/pki_rig.h"
#include "tests/lib/suites.h"

#define NOW RIG_PKI_NOW

static struct rig_pki a;
static char dir[FOLDER_PATH];

static void setup(void)
{
    ck_assert(folder_make("pki", dir));
    rig_pki_make(&a, "fed-a", NOW);
}

static void teardown(void)
{
    rig_pki_free(&a);
    folder_remove(dir);
}

static const char *path_of(char out[128], const char *name)
{
    (void)snprintf(out, 128, "%s/%s", dir, name);
    return out;
}

static void put(const char *path, const void *data, size_t len, mode_t mode)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_fs_replace(path, data, len, false, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(chmod(path, mode), 0);
}

/* Every one of the words ("|" between them) is in the message. */
static void says(const struct fl_err *err, const char *words)
{
    char text[512];
    char *rest = text;
    char *word;

    (void)snprintf(text, sizeof(text), "%s", words);
    while ((word = strtok_r(rest, "|", &rest)) != NULL) {
        ck_assert_msg(strstr(err->msg, word) != NULL, "'%s' is not in: %s", word, err->msg);
    }
}

static void key_refused(const char *path, int code, const char *words)
{
    struct fl_key *key = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_key_load(path, &key, &err), code);
    ck_assert_ptr_null(key);
    says(&err, words);
}

static void chain_refused(const char *path, int code, const char *words)
{
    struct fl_chain *chain = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_chain_load(path, &chain, &err), code);
    ck_assert_ptr_null(chain);
    says(&err, words);
}

/* PEM of a key, as PKCS #8 or with a passphrase. */
static size_t key_pem(EVP_PKEY *pkey, const char *passphrase, char *out, size_t size)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text;
    long len;

    ck_assert_int_eq(PEM_write_bio_PKCS8PrivateKey(
                         bio, pkey, passphrase != NULL ? EVP_aes_128_cbc() : NULL, passphrase,
                         passphrase != NULL ? (int)strlen(passphrase) : 0, NULL, NULL),
                     1);
    len = BIO_get_mem_data(bio, &text);
    ck_assert_int_lt(len, (long)size);
    (void)memcpy(out, text, (size_t)len);
    out[len] = '\0';
    BIO_free(bio);
    return (size_t)len;
}

static size_t chain_pem(const struct fl_chain *chain, char *out, size_t size)
{
    struct fl_buf buf;
    size_t len;

    fl_buf_init(&buf, size - 1);
    ck_assert_int_eq(fl_chain_pem(chain, &buf), FL_OK);
    (void)memcpy(out, buf.data, buf.len);
    out[buf.len] = '\0';
    len = buf.len;
    fl_buf_done(&buf);
    return len;
}

TEST_CASE("keys", setup, teardown);

TEST(a_key_comes_back_as_it_was_saved_and_only_we_may_read_it)
{
    struct fl_key *key = NULL;
    struct fl_err err = {0};
    char path[128];
    char tmp[160];
    struct stat st;
    uint8_t got[FL_KEY_HASH];
    uint8_t kept[FL_KEY_HASH];

    (void)path_of(path, "client.key");
    (void)snprintf(tmp, sizeof(tmp), "%s.tmp", path);
    put(tmp, "left by a crash", 15, 0666); /* must not lend its mode to the key */
    ck_assert_msg(fl_key_save(a.client_key, path, true, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    ck_assert(!fl_fs_exists(tmp));
    ck_assert_msg(fl_key_load(path, &key, &err) == FL_OK, "%s", err.msg);
    ck_assert(fl_key_is_private(key));
    fl_key_hash(key, got);
    fl_key_hash(a.client_key, kept);
    ck_assert_mem_eq(got, kept, sizeof(got));
    ck_assert_str_eq(fl_key_origin(key), path);
    fl_key_unref(key);
}

TEST(a_key_that_others_may_read_is_refused)
{
    static const struct {
        mode_t mode;
        const char *words;
    } modes[] = {{0640, "mode 0640|0600 was expected|chmod 0600"},
                 {0604, "mode 0604|0600 was expected"},
                 {0644, "mode 0644|0600 was expected"},
                 {0620, "mode 0620|0600 was expected"},
                 {0660, "mode 0660|0600 was expected"},
                 {0610, "mode 0610|0600 was expected"},
                 {0601, "mode 0601|0600 was expected"}};
    struct fl_key *key = NULL;
    struct fl_err err = {0};
    char path[128];
    size_t i;

    ck_assert_int_eq(fl_key_save(a.client_key, path_of(path, "client.key"), false, NULL), FL_OK);
    for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        ck_assert_int_eq(chmod(path, modes[i].mode), 0);
        key_refused(path, FL_EPERM, modes[i].words);
    }
    ck_assert_int_eq(chmod(path, 0400), 0); /* as systemd's credentials */
    ck_assert_msg(fl_key_load(path, &key, &err) == FL_OK, "%s", err.msg);
    fl_key_unref(key);
}

TEST(a_key_belongs_to_us_or_to_root)
{
    struct fl_key *key = NULL;
    struct fl_err err = {0};
    char path[128];

    if (geteuid() != 0) {
        (void)fprintf(stderr, "skipped: only root can give files away\n");
        return;
    }
    ck_assert_int_eq(fl_key_save(a.client_key, path_of(path, "client.key"), false, NULL), FL_OK);
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(chown(path, 65534, 65534), 0);
    key_refused(path, FL_EPERM,
                "belongs to user 65534|this program runs as |run it as the user that owns the key");
    /* Root's, with reading for our group: a credential of systemd, a secret of Kubernetes. */
    ck_assert_int_eq(chown(path, 0, 65534), 0);
    ck_assert_int_eq(chmod(path, 0440), 0);
    ck_assert_int_eq(setegid(65534), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_msg(fl_key_load(path, &key, &err) == FL_OK, "%s", err.msg);
    fl_key_unref(key);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chmod(path, 0444), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    key_refused(path, FL_EPERM, "belongs to root and has mode 0444|at most 0640|chmod 0640");
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    key_refused(path, FL_EPERM, "belongs to user 0 with mode 0600|runs as user 65534|chown 65534");
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(setegid(0), 0);
}

TEST(each_bad_key_file_has_its_message)
{
    EVP_PKEY *small = EVP_RSA_gen(1024);
    EVP_PKEY *curve = EVP_EC_gen("secp256k1");
    EVP_PKEY *x25519 = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    static char text[FL_KEY_FILE_MAX + 2];
    char path[128];
    size_t len;
    char *at;

    (void)path_of(path, "x.key");
    key_refused(path, FL_ENOENT, "x.key|No such file");
    key_refused(dir, FL_EPERM, "is not a file");
    put(path, "", 0, 0600);
    key_refused(path, FL_EFORMAT, "contains no private key|BEGIN PRIVATE KEY");
    put(path, "hello\n", 6, 0600);
    key_refused(path, FL_EFORMAT, "contains no private key");
    put(path, text, chain_pem(a.client, text, sizeof(text)), 0600);
    key_refused(path, FL_EFORMAT, "certificates and no private key|swapped");
    len = key_pem(fl_key_native(a.client_key), NULL, text, sizeof(text));
    put(path, text, len / 2, 0600);
    key_refused(path, FL_EFORMAT, "line 1|no end|truncated");
    put(path, text + 30, len - 30, 0600);
    key_refused(path, FL_EFORMAT, "line 4|no beginning|first part of the file is missing");
    at = strchr(text, '\n') + 20;
    *at = *at == 'A' ? 'B' : 'A';
    at[1] = '!';
    put(path, text, len, 0600);
    key_refused(path, FL_EFORMAT, "line 1|no readable key|openssl pkey");
    len = key_pem(fl_key_native(a.client_key), "secret", text, sizeof(text));
    put(path, text, len, 0600);
    key_refused(path, FL_EFORMAT, "line 1|passphrase|openssl pkey -in");
    put(path, text, key_pem(small, NULL, text, sizeof(text)), 0600);
    key_refused(path, FL_EFORMAT, "RSA of 1024 bits|EC P-256|genpkey");
    put(path, text, key_pem(curve, NULL, text, sizeof(text)), 0600);
    key_refused(path, FL_EFORMAT, "EC secp256k1|EC P-256");
    put(path, text, key_pem(x25519, NULL, text, sizeof(text)), 0600);
    key_refused(path, FL_EFORMAT, "X25519|EC P-256");
    (void)memset(text, '\n', sizeof(text));
    put(path, text, sizeof(text) - 1, 0600);
    key_refused(path, FL_ELIMIT, "longer than 16384 bytes");
    EVP_PKEY_free(small);
    EVP_PKEY_free(curve);
    EVP_PKEY_free(x25519);
}

TEST(keys_of_an_operators_own_pki_are_taken)
{
    EVP_PKEY *keys[] = {EVP_RSA_gen(2048), EVP_EC_gen("P-384"),
                        EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")};
    static char text[FL_KEY_FILE_MAX];
    struct fl_err err = {0};
    char path[128];
    size_t i;

    (void)path_of(path, "own.key");
    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct fl_key *key = NULL;
        size_t len = chain_pem(a.client, text, sizeof(text)); /* a file with both, too */

        len += key_pem(keys[i], NULL, text + len, sizeof(text) - len);
        put(path, text, len, 0600);
        ck_assert_msg(fl_key_load(path, &key, &err) == FL_OK, "%s", err.msg);
        fl_key_unref(key);
        EVP_PKEY_free(keys[i]);
    }
}

TEST_CASE("chains", setup, teardown);

TEST(a_chain_comes_back_as_it_was_saved)
{
    struct fl_chain *chain = NULL;
    struct fl_err err = {0};
    struct fl_buf der;
    struct fl_der one;
    char path[128];
    size_t i;

    (void)path_of(path, "server.pem");
    ck_assert_msg(fl_chain_save(a.server, path, true, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_chain_load(path, &chain, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(fl_chain_len(chain), 3);
    for (i = 0; i < 3; i++) {
        struct fl_cert_info x;
        struct fl_cert_info y;

        fl_chain_info(chain, i, &x);
        fl_chain_info(a.server, i, &y);
        ck_assert_str_eq(x.subject, y.subject);
        ck_assert_str_eq(x.serial_text, y.serial_text);
        ck_assert_mem_eq(x.key, y.key, sizeof(x.key));
    }
    fl_chain_unref(chain);
    /* One in DER, as a file and as a message. */
    fl_buf_init(&der, FL_CERT_MAX);
    ck_assert_int_eq(fl_chain_der(a.client, 0, &der), FL_OK);
    put(path, der.data, der.len, 0600);
    ck_assert_msg(fl_chain_load(path, &chain, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(fl_chain_len(chain), 1);
    fl_chain_unref(chain);
    one = (struct fl_der){.data = der.data, .len = der.len};
    ck_assert_msg(fl_chain_from_der(&one, 1, "reply", &chain, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_chain_fits(chain, a.client_key, &err) == FL_OK, "%s", err.msg);
    fl_chain_unref(chain);
    one.len--;
    ck_assert_int_eq(fl_chain_from_der(&one, 1, "reply", &chain, &err), FL_EFORMAT);
    says(&err, "reply: certificate 1|truncated");
    ck_assert_int_eq(fl_chain_from_der(&one, 0, "reply", &chain, &err), FL_EFORMAT);
    fl_buf_done(&der);
}

/* "line N|rest" of where `at` is; signatures differ in length, and so does what is before it. */
static const char *line_at(const char *text, const char *at, const char *rest)
{
    static char out[128];
    unsigned line = 1;

    for (; text < at; text++) {
        line += *text == '\n';
    }
    (void)snprintf(out, sizeof(out), "line %u|%s", line, rest);
    return out;
}

TEST(each_bad_certificate_file_has_its_message)
{
    static char text[FL_CHAIN_FILE_MAX + 2];
    size_t len = chain_pem(a.server, text, sizeof(text));
    char *second = strstr(text + 1, "-----BEGIN");
    char path[128];
    unsigned i;

    (void)path_of(path, "x.pem");
    chain_refused(path, FL_ENOENT, "x.pem");
    put(path, "", 0, 0600);
    chain_refused(path, FL_EFORMAT, "contains no certificate|BEGIN CERTIFICATE");
    put(path, text, (size_t)(second - text) + 200, 0600);
    chain_refused(path, FL_EFORMAT, line_at(text, second, "no end|copy the whole file again"));
    put(path, text, (size_t)(second - text) + 13, 0600);
    chain_refused(path, FL_EFORMAT, line_at(text, second, "no end"));
    put(path, text + 100, len - 100, 0600);
    chain_refused(path, FL_EFORMAT, line_at(text + 100, second - 1, "no beginning"));
    (void)memcpy(strstr(second, "-----END") + 9, "PRIVATE KEY", 11); /* of another block */
    put(path, text, len, 0600);
    chain_refused(path, FL_EFORMAT, line_at(text, second, "no end"));
    (void)chain_pem(a.server, text, sizeof(text));
    second[60] = '!';
    put(path, text, len, 0600);
    chain_refused(path, FL_EFORMAT, line_at(text, second, "invalid base64"));
    (void)chain_pem(a.server, text, sizeof(text));
    (void)memcpy(second + 28, "AAAAAAAA", 8);
    put(path, text, len, 0600);
    chain_refused(path, FL_EFORMAT, line_at(text, second, "not a certificate|whole"));
    put(path, text, key_pem(fl_key_native(a.client_key), NULL, text, sizeof(text)), 0600);
    chain_refused(path, FL_EFORMAT, "private key and no certificate|swapped");
    put(path, "\x30\x82\x01\x01\x00", 5, 0600);
    chain_refused(path, FL_EFORMAT, "not a certificate");
    len = 0;
    for (i = 0; i <= FL_CHAIN_MAX; i++) {
        len += chain_pem(a.root, text + len, sizeof(text) - len);
    }
    put(path, text, len, 0600);
    chain_refused(path, FL_ELIMIT, "more than 16 certificates");
    (void)memset(text, '\n', sizeof(text));
    put(path, text, FL_CHAIN_FILE_MAX + 1, 0600);
    chain_refused(path, FL_ELIMIT, "longer than 262144 bytes");
}

TEST(certificate_and_key_have_to_belong_together)
{
    struct fl_chain *chain = NULL;
    struct fl_key *key = NULL;
    struct fl_err err = {0};
    char pem[128];
    char own[128];
    char other[128];
    static char text[FL_CHAIN_FILE_MAX];
    size_t len;

    ck_assert_int_eq(fl_chain_save(a.client, path_of(pem, "client.pem"), false, NULL), FL_OK);
    ck_assert_int_eq(fl_key_save(a.client_key, path_of(own, "client.key"), false, NULL), FL_OK);
    ck_assert_int_eq(fl_key_save(a.admin_key, path_of(other, "other.key"), false, NULL), FL_OK);
    ck_assert_msg(fl_credentials_load(pem, own, &chain, &key, &err) == FL_OK, "%s", err.msg);
    fl_chain_unref(chain);
    fl_key_unref(key);
    ck_assert_int_eq(fl_credentials_load(pem, other, &chain, &key, &err), FL_ECONF);
    says(&err, "client.pem|CN=edge-001|another key|other.key|created together");
    /* Its authority first, then one that has issued nothing before it. */
    ck_assert_int_eq(fl_chain_save(a.intermediate, pem, false, NULL), FL_OK);
    ck_assert_int_eq(fl_key_save(a.intermediate_key, own, false, NULL), FL_OK);
    ck_assert_int_eq(fl_credentials_load(pem, own, &chain, &key, &err), FL_ECONF);
    says(&err, "client.pem|fl intermediate fed-a|is that of an authority|put the certificate of "
               "this machine first");
    len = chain_pem(a.client, text, sizeof(text));
    len += chain_pem(a.admin, text + len, sizeof(text) - len);
    put(pem, text, len, 0644);
    ck_assert_int_eq(fl_key_save(a.client_key, own, false, NULL), FL_OK);
    ck_assert_int_eq(fl_credentials_load(pem, own, &chain, &key, &err), FL_ECONF);
    says(&err, "client.pem|certificate 3, 'CN=jane', is not the issuer");
}

TEST(what_is_over_or_has_not_begun_is_said_with_both_clocks)
{
    struct fl_err err = {0};

    ck_assert_int_eq(fl_chain_dated(a.client, 0, NOW, 0, "join again", &err), FL_OK);
    ck_assert_int_eq(fl_chain_dated(a.client, 0, 12, 0, "join again", &err), FL_EPERM);
    says(&err, "clock says 1970-01-01 00:00:12Z|begins 2026-11-20 18:05:00Z|56 years later|time "
               "synchronisation");
    ck_assert_int_eq(fl_chain_dated(a.client, 0, NOW + 130 * RIG_DAY, RIG_DAY, "join again", &err),
                     FL_EPERM);
    says(&err, "2027-03-30 18:15:00Z|ended 2026-12-20 18:15:00Z|100 days earlier|join again");
}

TEST(what_ends_soon_is_said_before_it_is_over_and_of_each_certificate_by_itself)
{
    struct fl_err err = {0};
    struct fl_cert_info above;

    ck_assert_int_eq(fl_chain_dated(a.client, 0, NOW, 29 * RIG_DAY, "join again", &err), FL_OK);
    ck_assert_int_eq(fl_chain_dated(a.client, 0, NOW, 30 * RIG_DAY, "join again", &err), FL_EAGAIN);
    says(&err, "CN=edge-001|clock says 2026-11-20 18:15:00Z|ends 2026-12-20 18:15:00Z, in 30 days|"
               "before that, join again");
    fl_chain_info(a.client, 1, &above);
    ck_assert_int_eq(fl_chain_dated(a.client, 1, NOW, 30 * RIG_DAY, "sign it anew", &err), FL_OK);
    ck_assert_int_eq(fl_chain_dated(a.client, 1, above.not_after - 60, 60, "sign it anew", &err),
                     FL_EAGAIN);
    says(&err, "fl intermediate fed-a|in 1 minute|sign it anew");
    ck_assert_int_eq(fl_chain_dated(a.client, 1, above.not_after, 0, "sign it anew", &err),
                     FL_EPERM);
}

TEST(parts_and_joins_of_chains_keep_their_order)
{
    struct fl_chain *part = NULL;
    struct fl_chain *both = NULL;
    uint8_t hash[FL_KEY_HASH];
    struct fl_cert_info info;

    ck_assert_int_eq(fl_chain_part(a.server, 1, 2, &part), FL_OK);
    ck_assert_uint_eq(fl_chain_len(part), 2);
    ck_assert_int_eq(fl_chain_join(a.client, part, &both), FL_OK);
    ck_assert_uint_eq(fl_chain_len(both), 3); /* the intermediate is in both and stands once */
    fl_chain_info(both, 2, &info);
    ck_assert(info.self_issued && info.is_ca);
    fl_key_hash(a.root_key, hash);
    ck_assert_int_eq(fl_chain_find_key(both, 0, hash), 2);
    ck_assert_int_eq(fl_chain_find_key(a.client, 0, hash), -1);
    fl_chain_unref(part);
    fl_chain_unref(both);
}
