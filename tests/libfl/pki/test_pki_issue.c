/* Requests and what is issued for them, also as the openssl program sees it. */

#include <check.h>
#include <openssl/core_names.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libfl/pki/request.h"
#include "tests/lib/folder.h"
#include "tests/lib/pki_rig.h"
#include "tests/lib/suites.h"

#define NOW RIG_PKI_NOW
#define DAY RIG_DAY

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

static struct fl_cert_info info_of(const struct fl_chain *chain, size_t i)
{
    struct fl_cert_info info;

    fl_chain_info(chain, i, &info);
    return info;
}

TEST_CASE("all", setup, teardown);

TEST(nothing_is_valid_beyond_its_issuer)
{
    struct fl_issue issue = rig_pki_issue("fed-a", FL_ROLE_CLIENT, "k7", NOW + 725 * DAY, 30);
    struct fl_chain *chain = rig_pki_leaf(&a, a.client_key, &issue);
    struct fl_err err = {0};

    ck_assert_int_eq(info_of(chain, 0).not_after, info_of(chain, 1).not_after);
    ck_assert_int_eq(info_of(chain, 0).not_before, NOW + 725 * DAY - 600);
    fl_chain_unref(chain);
    issue = rig_pki_issue("fed-a", FL_ROLE_CLIENT, "k7", NOW - 60, 30); /* begins before the root */
    chain = rig_pki_leaf(&a, a.client_key, &issue);
    ck_assert_int_eq(info_of(chain, 0).not_before, info_of(chain, 1).not_before);
    fl_chain_unref(chain);
    issue = rig_pki_issue("fed-a", FL_ROLE_NONE, NULL, NOW, 36500);
    ck_assert_int_eq(fl_issue_intermediate(a.root, a.root_key, a.client_key, &issue, &chain, &err),
                     FL_OK);
    ck_assert_int_eq(info_of(chain, 0).not_after, info_of(a.root, 0).not_after);
    fl_chain_unref(chain);
    issue = rig_pki_issue("fed-a", FL_ROLE_CLIENT, "k7", NOW + 740 * DAY, 30);
    ck_assert_int_eq(
        fl_issue_leaf(a.intermediate, a.intermediate_key, a.client_key, &issue, &chain, &err),
        FL_EPERM);
    ck_assert_ptr_nonnull(strstr(err.msg, "renew the issuer first"));
}

/* After a time_t of 32 bits, after the years that RFC 5280 writes with two digits, and a century.
 */
TEST(certificates_begin_and_end_after_2038)
{
    static const int64_t ends[] = {INT64_C(2147483647), INT64_C(2147483648), INT64_C(2524607999),
                                   INT64_C(2524608000), INT64_C(4107542399), INT64_C(4107542400),
                                   INT64_C(9000000000)};
    size_t i;

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct fl_issue issue = rig_pki_issue("fed-a", FL_ROLE_NONE, NULL, NOW, 3650);
        struct fl_chain *root;
        struct fl_err err = {0};

        issue.not_before = ends[i] - 1;
        issue.not_after = ends[i];
        ck_assert_int_eq(fl_issue_root(a.root_key, &issue, &root, &err), FL_OK);
        ck_assert_int_eq(info_of(root, 0).not_before, ends[i] - 1);
        ck_assert_int_eq(info_of(root, 0).not_after, ends[i]);
        fl_chain_unref(root);
    }
}

TEST(serials_are_positive_numbers_whatever_is_drawn)
{
    static const struct {
        uint8_t first, last;
        const char *text;
    } cases[] = {{0xff, 0x01, "7f000000000000000000000000000001"},
                 {0x00, 0x00, "01"},
                 {0x80, 0x00, "01"},
                 {0x00, 0x80, "80"}};
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fl_issue issue = rig_pki_issue("fed-a", FL_ROLE_CLIENT, "k7", NOW, 30);
        struct fl_chain *chain;

        (void)memset(issue.serial, 0, sizeof(issue.serial));
        issue.serial[0] = cases[i].first;
        issue.serial[FL_ISSUE_SERIAL - 1] = cases[i].last;
        chain = rig_pki_leaf(&a, a.client_key, &issue);
        ck_assert_str_eq(info_of(chain, 0).serial_text, cases[i].text);
        ck_assert_uint_eq(info_of(chain, 0).serial_len, strlen(cases[i].text) / 2);
        fl_chain_unref(chain);
    }
}

TEST(the_longest_names_are_kept_whole)
{
    char name[FL_IDENTITY_NAME_MAX];
    struct fl_issue issue;
    struct fl_issue root;
    struct fl_chain *chain = NULL;
    struct fl_identity who;
    struct fl_err err = {0};
    struct rig_pki b;

    (void)memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    rig_pki_make(&b, name, NOW);
    issue = rig_pki_issue(name, FL_ROLE_CLIENT, name, NOW, 30);
    chain = rig_pki_leaf(&b, a.client_key, &issue);
    ck_assert_msg(
        fl_trust_verify(b.trust,
                        &(struct fl_claim){.chain = chain, .purpose = FL_ROLE_CLIENT, .now = NOW},
                        &who, NULL, &err) == FL_OK,
        "%s", err.msg);
    ck_assert_str_eq(who.name, name);
    ck_assert_str_eq(who.federation, name);
    fl_chain_unref(chain);
    root = rig_pki_issue("a", FL_ROLE_NONE, NULL, NOW, 1);
    ck_assert_int_eq(fl_issue_root(b.root_key, &root, &chain, &err), FL_OK);
    ck_assert_str_eq(info_of(chain, 0).subject, "CN=fl root a");
    fl_chain_unref(chain);
    rig_pki_free(&b);
}

TEST(only_an_authority_with_its_own_key_issues)
{
    struct fl_issue issue = rig_pki_issue("fed-a", FL_ROLE_CLIENT, "k7", NOW, 30);
    struct fl_chain *chain = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_issue_leaf(a.intermediate, a.root_key, a.client_key, &issue, &chain, &err),
                     FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "another key"));
    ck_assert_int_eq(fl_issue_leaf(a.client, a.client_key, a.admin_key, &issue, &chain, &err),
                     FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "not the certificate of an authority"));
}

TEST(a_servers_certificate_has_its_names_and_addresses)
{
    static const char *const hosts[] = {"fl.example.org", "192.0.2.7", "2001:db8::1", "x_y"};
    static const char *const other[] = {"fl.example.org", "192.0.2.7", "2001:db8::2", "x_y"};
    static const char *const bad[] = {"",         "a b", "*.example.org", "-x",  "x-.org", "x..y",
                                      ".x",       "x.",  "fl:7443",       "a/b", "ü",      "x\ny",
                                      "1.2.3.4/8"};
    struct fl_issue issue = rig_pki_issue("fed-a", FL_ROLE_SERVER, "server", NOW, 30);
    struct fl_chain *chain;
    struct fl_err err = {0};
    const char *many[FL_ISSUE_HOSTS + 1];
    size_t i;

    issue.hosts = hosts;
    issue.n_hosts = 4;
    chain = rig_pki_leaf(&a, a.server_key, &issue);
    ck_assert(fl_chain_has_hosts(chain, hosts, 4));
    ck_assert(!fl_chain_has_hosts(chain, hosts, 3)); /* one that is no longer wanted */
    ck_assert(!fl_chain_has_hosts(chain, other, 4));
    fl_chain_unref(chain);
    chain = NULL;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        issue.hosts = &bad[i];
        issue.n_hosts = 1;
        ck_assert_msg(fl_issue_leaf(a.intermediate, a.intermediate_key, a.server_key, &issue,
                                    &chain, &err) == FL_EINVAL,
                      "'%s'", bad[i]);
        ck_assert_ptr_nonnull(strstr(err.msg, "neither a DNS name nor an address"));
    }
    for (i = 0; i <= FL_ISSUE_HOSTS; i++) {
        many[i] = "x";
    }
    issue.hosts = many;
    issue.n_hosts = FL_ISSUE_HOSTS + 1;
    ck_assert_int_eq(
        fl_issue_leaf(a.intermediate, a.intermediate_key, a.server_key, &issue, &chain, &err),
        FL_ELIMIT);
}

static void csr_refused(const void *der, size_t len, int code, const char *word)
{
    struct fl_key *key = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_csr_check(der, len, &key, &err), code);
    ck_assert_ptr_null(key);
    ck_assert_msg(strstr(err.msg, word) != NULL, "'%s' is not in: %s", word, err.msg);
}

TEST(a_request_brings_its_key_and_the_leaf_is_for_it)
{
    struct fl_buf der;
    struct fl_key *key = NULL;
    struct fl_chain *chain = NULL;
    struct fl_issue issue = rig_pki_issue("fed-a", FL_ROLE_CLIENT, "k7", NOW, 30);
    struct fl_err err = {0};
    uint8_t sent[FL_KEY_HASH];
    uint8_t got[FL_KEY_HASH];
    uint8_t large[FL_CSR_MAX + 1] = {0x30};
    size_t i;

    fl_buf_init(&der, FL_CSR_MAX);
    ck_assert_int_eq(fl_csr_make(a.client_key,
                                 "a name that is longer than the sixty-four characters "
                                 "of a common name, by far",
                                 &der),
                     FL_OK);
    ck_assert_msg(fl_csr_check(der.data, der.len, &key, &err) == FL_OK, "%s", err.msg);
    ck_assert(!fl_key_is_private(key));
    fl_key_hash(key, got);
    fl_key_hash(a.client_key, sent);
    ck_assert_mem_eq(got, sent, sizeof(got));
    chain = rig_pki_leaf(&a, key, &issue);
    ck_assert_int_eq(fl_chain_fits(chain, a.client_key, &err), FL_OK);
    ck_assert_uint_eq(fl_chain_len(chain), 2); /* without the root, which the client has */
    fl_chain_unref(chain);
    fl_key_unref(key);
    for (i = 0; i < der.len; i++) {
        key = NULL;
        ck_assert_int_ne(fl_csr_check(der.data, i, &key, &err), FL_OK);
        der.data[i] ^= 1;
        ck_assert_msg(fl_csr_check(der.data, der.len, &key, &err) != FL_OK, "bit of byte %zu", i);
        der.data[i] ^= 1;
    }
    der.data[der.len - 1] ^= 1;
    csr_refused(der.data, der.len, FL_EPERM, "does not have that key");
    csr_refused(der.data, 20, FL_EFORMAT, "invalid signing request");
    der.data[der.len - 1] ^= 1;
    ck_assert_int_eq(fl_buf_add(&der, "x", 1), FL_OK);
    csr_refused(der.data, der.len, FL_EFORMAT, "something after it");
    csr_refused(large, sizeof(large), FL_ELIMIT, "at most 4096");
    fl_buf_done(&der);
}

/* A request for `pkey` as some other program makes it. Takes the key. */
static void other_csr(EVP_PKEY *pkey, const EVP_MD *md, int code, const char *word)
{
    X509_REQ *req = X509_REQ_new();
    unsigned char *der = NULL;
    int len;

    ck_assert_int_eq(X509_REQ_set_pubkey(req, pkey), 1);
    ck_assert_int_gt(X509_REQ_sign(req, pkey, md), 0);
    len = i2d_X509_REQ(req, &der);
    if (code == FL_OK) {
        struct fl_key *key = NULL;
        struct fl_err err = {0};

        ck_assert_msg(fl_csr_check(der, (size_t)len, &key, &err) == FL_OK, "%s", err.msg);
        fl_key_unref(key);
    } else {
        csr_refused(der, (size_t)len, code, word);
    }
    OPENSSL_free(der);
    X509_REQ_free(req);
    EVP_PKEY_free(pkey);
}

TEST(requests_are_for_keys_that_we_certify_and_in_one_spelling)
{
    EVP_PKEY *compressed = EVP_EC_gen("P-256");
    EVP_PKEY *parameters = EVP_EC_gen("P-256");

    other_csr(EVP_RSA_gen(2048), EVP_sha256(), FL_OK, "");
    other_csr(EVP_EC_gen("P-384"), EVP_sha384(), FL_OK, "");
    other_csr(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), NULL, FL_OK, "");
    other_csr(EVP_RSA_gen(1024), EVP_sha256(), FL_EPERM, "RSA of 1024 bits");
    other_csr(EVP_EC_gen("secp256k1"), EVP_sha256(), FL_EPERM, "EC secp256k1");
    ck_assert_int_eq(EVP_PKEY_set_utf8_string_param(
                         compressed, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, "compressed"),
                     1);
    other_csr(compressed, EVP_sha256(), FL_EFORMAT, "unusual way");
    ck_assert_int_eq(
        EVP_PKEY_set_utf8_string_param(parameters, OSSL_PKEY_PARAM_EC_ENCODING, "explicit"), 1);
    other_csr(parameters, EVP_sha256(), FL_EFORMAT, "unusual way");
}

/* What the openssl program prints and whether it is content; NULL where it is not installed. */
static const char *openssl(bool *ok, const char *fmt, ...) FL_PRINTF(2, 3);

static const char *openssl(bool *ok, const char *fmt, ...)
{
    static char out[16384];
    char args[1024];
    char command[1200];
    va_list ap;
    FILE *pipe;
    size_t n;
    int status;

    va_start(ap, fmt);
    (void)vsnprintf(args, sizeof(args), fmt, ap);
    va_end(ap);
    (void)snprintf(command, sizeof(command), "cd %s && openssl %s 2>&1", dir, args);
    pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    n = fread(out, 1, sizeof(out) - 1, pipe);
    out[n] = '\0';
    status = pclose(pipe);
    if (status == 127 * 256) {
        (void)fprintf(stderr, "skipped: there is no openssl program here\n");
        return NULL;
    }
    *ok = status == 0;
    return out;
}

static void save(const struct fl_chain *chain, size_t i, const char *name)
{
    struct fl_chain *one = NULL;
    struct fl_err err = {0};
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    ck_assert_int_eq(fl_chain_part(chain, i, 1, &one), FL_OK);
    ck_assert_msg(fl_chain_save(one, path, false, &err) == FL_OK, "%s", err.msg);
    fl_chain_unref(one);
}

TEST(openssl_agrees_with_what_we_believe)
{
    static const struct {
        const char *leaf;
        const char *options;
        int64_t at;
        bool ok;
    } cases[] = {{"client.pem", "-purpose sslclient", NOW, true},
                 {"client.pem", "-purpose sslserver", NOW, false},
                 {"admin.pem", "-purpose sslclient", NOW, true},
                 {"server.pem", "-purpose sslserver -verify_hostname localhost", NOW, true},
                 {"server.pem", "-purpose sslserver -verify_ip ::1", NOW, true},
                 {"server.pem", "-purpose sslserver -verify_hostname other", NOW, false},
                 {"server.pem", "-purpose sslclient", NOW, false},
                 {"client.pem", "-purpose sslclient", 12, false},
                 {"client.pem", "-purpose sslclient", NOW + 31 * DAY, false}};
    bool ok;
    size_t i;

    save(a.root, 0, "root.pem");
    save(a.client, 1, "intermediate.pem");
    save(a.client, 0, "client.pem");
    save(a.admin, 0, "admin.pem");
    save(a.server, 0, "server.pem");
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *said =
            openssl(&ok,
                    "verify -x509_strict -auth_level 2 %s -attime %lld -CAfile root.pem "
                    "-untrusted intermediate.pem %s",
                    cases[i].options, (long long)cases[i].at, cases[i].leaf);

        if (said == NULL) {
            return;
        }
        ck_assert_msg(ok == cases[i].ok, "%s %s: %s", cases[i].leaf, cases[i].options, said);
    }
}

/* Each of the texts is in what openssl prints of a file. */
static void shows(const char *file, const char *const *texts)
{
    bool ok;
    const char *said = openssl(&ok, "x509 -noout -text -in %s", file);

    for (; said != NULL && *texts != NULL; texts++) {
        ck_assert_msg(strstr(said, *texts) != NULL, "'%s' is not in: %s", *texts, said);
    }
}

TEST(openssl_shows_what_we_issued)
{
    static const char *const root[] = {
        "X509v3 Basic Constraints: critical\n                CA:TRUE\n",
        "Certificate Sign, CRL Sign", "ecdsa-with-SHA256", "prime256v1", NULL};
    static const char *const between[] = {"CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", NULL};
    static const char *const client[] = {
        "X509v3 Key Usage: critical\n                Digital Signature\n",
        "X509v3 Basic Constraints: critical\n                CA:FALSE",
        "TLS Web Client Authentication\n",
        "URI:fl://fed-a/client/edge-001\n",
        "Not Before: Nov 20 18:05:00 2026 GMT",
        NULL};
    static const char *const server[] = {"TLS Web Server Authentication\n",
                                         "URI:fl://fed-a/server/server, DNS:localhost, IP "
                                         "Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
                                         NULL};
    struct fl_cert_info info = info_of(a.client, 0);
    struct fl_buf der;
    char hash[2 * FL_KEY_HASH + 1];
    char path[128];
    const char *said;
    FILE *file;
    bool ok;
    size_t i;

    save(a.root, 0, "root.pem");
    save(a.client, 1, "intermediate.pem");
    save(a.client, 0, "client.pem");
    save(a.server, 0, "server.pem");
    shows("root.pem", root);
    shows("intermediate.pem", between);
    shows("client.pem", client);
    shows("server.pem", server);
    /* The hash by which a key is revoked and a root is pinned, as anybody can find it. */
    for (i = 0; i < FL_KEY_HASH; i++) {
        (void)snprintf(hash + 2 * i, 3, "%02x", info.key[i]);
    }
    said = openssl(&ok, "x509 -noout -pubkey -in client.pem | openssl pkey -pubin -outform DER | "
                        "openssl dgst -sha256 -r");
    ck_assert(said == NULL || strncmp(said, hash, 2 * FL_KEY_HASH) == 0);
    fl_buf_init(&der, FL_CSR_MAX);
    ck_assert_int_eq(fl_csr_make(a.client_key, "edge-001", &der), FL_OK);
    (void)snprintf(path, sizeof(path), "%s/x.csr", dir);
    file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(der.data, 1, der.len, file), der.len);
    ck_assert_int_eq(fclose(file), 0);
    said = openssl(&ok, "req -inform DER -in x.csr -noout -verify -subject");
    ck_assert_msg(said == NULL || (ok && strstr(said, "CN = edge-001") != NULL), "%s", said);
    fl_buf_done(&der);
}
