/* Whom a chain is believed to be: who is let in as whom, and what is said to the others. */

#include <check.h>
#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/pki/native.h"
#include "tests/lib/pki_rig.h"
#include "tests/lib/suites.h"

#define NOW RIG_PKI_NOW
#define DAY RIG_DAY

static struct rig_pki a;

static void setup(void)
{
    rig_pki_make(&a, "fed-a", NOW);
}

static void teardown(void)
{
    rig_pki_free(&a);
}

static struct fl_identity believed(const struct fl_trust *trust, const struct fl_chain *chain,
                                   enum fl_role purpose, const char *host, int64_t now)
{
    struct fl_refusal refusal;
    struct fl_identity who;
    struct fl_err err = {0};

    ck_assert_msg(
        fl_trust_verify(
            trust, &(struct fl_claim){.chain = chain, .purpose = purpose, .host = host, .now = now},
            &who, &refusal, &err) == FL_OK,
        "%s", err.msg);
    ck_assert_int_eq(who.kind, FL_IDENTITY_CERTIFICATE);
    return who;
}

/* Refused for that reason, and every one of the words is in the message ("|" between them). */
static void refused(const struct fl_trust *trust, const struct fl_chain *chain,
                    enum fl_role purpose, const char *host, int64_t now,
                    enum fl_refusal_reason reason, int alert, const char *words)
{
    struct fl_refusal refusal;
    struct fl_identity who;
    struct fl_err err = {0};
    char text[512];
    char *rest = text;
    char *word;
    int rv = fl_trust_verify(
        trust, &(struct fl_claim){.chain = chain, .purpose = purpose, .host = host, .now = now},
        &who, &refusal, &err);

    ck_assert_msg(rv == FL_EPERM, "%s was believed", words);
    ck_assert_msg(refusal.reason == reason, "%s: %s", fl_refusal_text(refusal.reason), err.msg);
    ck_assert_int_eq(refusal.alert, alert);
    ck_assert_msg(strlen(err.msg) < FL_ERR_BUF_SIZE - 72, "no room for the peer: %s", err.msg);
    (void)snprintf(text, sizeof(text), "%s", words);
    while ((word = strtok_r(rest, "|", &rest)) != NULL) {
        ck_assert_msg(strstr(err.msg, word) != NULL, "'%s' is not in: %s", word, err.msg);
    }
}

static struct fl_trust *trust_in(const struct fl_chain *roots, const char *federation,
                                 int64_t grace_s)
{
    struct fl_trust_setup s = {.roots = roots, .federation = federation, .grace_s = grace_s};
    struct fl_trust *trust = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_trust_create(&s, &trust, &err) == FL_OK, "%s", err.msg);
    return trust;
}

TEST_CASE("all", setup, teardown);

TEST(identity_comes_from_the_certificate)
{
    struct fl_identity who = believed(a.trust, a.client, FL_ROLE_CLIENT, NULL, NOW);
    struct fl_cert_info info;
    uint8_t hash[FL_KEY_HASH];

    ck_assert_int_eq(who.role, FL_ROLE_CLIENT);
    ck_assert_str_eq(who.name, "edge-001");
    ck_assert_str_eq(who.federation, "fed-a");
    ck_assert(!who.lapsed);
    fl_key_hash(a.client_key, hash);
    ck_assert_mem_eq(who.key, hash, sizeof(hash));
    fl_chain_info(a.client, 0, &info);
    ck_assert_uint_eq(who.serial_len, info.serial_len);
    ck_assert_mem_eq(who.serial, info.serial, info.serial_len);
    ck_assert_int_eq(who.not_before, NOW - 600);
    ck_assert_int_eq(who.not_after, NOW + 30 * DAY);
    who = believed(a.trust, a.admin, FL_ROLE_CLIENT, NULL, NOW);
    ck_assert_int_eq(who.role, FL_ROLE_ADMIN);
    ck_assert_str_eq(who.name, "jane");
    who = believed(a.trust, a.server, FL_ROLE_SERVER, "localhost", NOW);
    ck_assert_int_eq(who.role, FL_ROLE_SERVER);
    (void)believed(a.trust, a.server, FL_ROLE_SERVER, "127.0.0.1", NOW);
    (void)believed(a.trust, a.server, FL_ROLE_SERVER, "::1", NOW);
    (void)believed(a.trust, a.server, FL_ROLE_SERVER, NULL, NOW);
}

TEST(each_refusal_names_certificate_expected_found_and_action)
{
    struct rig_pki b;

    rig_pki_make(&b, "fed-b", NOW);
    refused(a.trust, b.client, FL_ROLE_CLIENT, NULL, NOW, FL_REFUSED_UNKNOWN, 48,
            "CN=edge-001|of federation 'fed-b'|fl root fed-b|fl root fed-a|join");
    refused(
        a.trust, a.client, FL_ROLE_CLIENT, NULL, 12, FL_REFUSED_CLOCK, 45,
        "clock says 1970-01-01 00:00:12Z|begins 2026-11-20 18:05:00Z|56 years later|set the clock");
    refused(
        a.trust, a.client, FL_ROLE_CLIENT, NULL, NOW + 33 * DAY, FL_REFUSED_EXPIRED, 45,
        "CN=edge-001|2026-12-23 18:15:00Z|ended 2026-12-20 18:15:00Z|3 days earlier|flctl invite");
    refused(a.trust, a.server, FL_ROLE_SERVER, "localhost", NOW + 31 * DAY, FL_REFUSED_EXPIRED, 45,
            "CN=server|1 day earlier|fl-serverd --init");
    refused(a.trust, a.client, FL_ROLE_SERVER, NULL, NOW, FL_REFUSED_PURPOSE, 43,
            "not for a server|serverAuth was expected|it has clientAuth|use the certificate");
    refused(a.trust, a.server, FL_ROLE_CLIENT, NULL, NOW, FL_REFUSED_PURPOSE, 43,
            "not for a client|clientAuth was expected|it has serverAuth");
    refused(a.trust, a.server, FL_ROLE_SERVER, "fl.example.org", NOW, FL_REFUSED_HOST, 42,
            "not that of 'fl.example.org'|localhost, 127.0.0.1, ::1|identity.hosts");
    refused(a.trust, a.server, FL_ROLE_SERVER, "192.0.2.7", NOW, FL_REFUSED_HOST, 42, "192.0.2.7");
    refused(a.trust, a.root, FL_ROLE_CLIENT, NULL, NOW, FL_REFUSED_PURPOSE, 43, "fl root fed-a");
    rig_pki_free(&b);
}

TEST(a_name_of_another_federation_under_our_root_is_refused)
{
    struct fl_issue issue = rig_pki_issue("fed-b", FL_ROLE_CLIENT, "edge-001", NOW, 30);
    struct fl_chain *chain = rig_pki_leaf(&a, a.client_key, &issue);

    refused(a.trust, chain, FL_ROLE_CLIENT, NULL, NOW, FL_REFUSED_NAME, 49,
            "fl://fed-a/client/NAME was expected|of federation 'fed-b'|invitation");
    fl_chain_unref(chain);
}

TEST(a_lapsed_client_is_known_within_the_grace_only)
{
    struct fl_trust *trust = trust_in(a.root, "fed-a", 60 * DAY);
    struct fl_identity who = believed(trust, a.client, FL_ROLE_CLIENT, NULL, NOW + 30 * DAY - 1);

    ck_assert(!who.lapsed);
    who = believed(trust, a.client, FL_ROLE_CLIENT, NULL, NOW + 30 * DAY);
    ck_assert(who.lapsed);
    ck_assert_str_eq(who.name, "edge-001");
    who = believed(trust, a.client, FL_ROLE_CLIENT, NULL, NOW + 90 * DAY);
    ck_assert(who.lapsed);
    refused(trust, a.client, FL_ROLE_CLIENT, NULL, NOW + 90 * DAY + 1, FL_REFUSED_EXPIRED, 45,
            "60 days earlier");
    refused(trust, a.server, FL_ROLE_SERVER, NULL, NOW + 31 * DAY, FL_REFUSED_EXPIRED, 45,
            "CN=server");
    fl_trust_unref(trust);
}

TEST(an_intermediate_that_is_over_keeps_no_client_from_renewing)
{
    struct fl_trust *trust = trust_in(a.root, "fed-a", 60 * DAY);
    struct fl_issue issue =
        rig_pki_issue("fed-a", FL_ROLE_CLIENT, "late", NOW + 720 * DAY, 30); /* cut at 730 */
    struct fl_chain *chain = rig_pki_leaf(&a, a.client_key, &issue);
    struct fl_cert_info leaf;
    struct fl_cert_info above;
    struct fl_identity who;

    fl_chain_info(chain, 0, &leaf);
    fl_chain_info(chain, 1, &above);
    ck_assert_int_eq(leaf.not_after, above.not_after);
    who = believed(trust, chain, FL_ROLE_CLIENT, NULL, NOW + 740 * DAY);
    ck_assert(who.lapsed);
    fl_chain_unref(chain);
    fl_trust_unref(trust);
}

/*
 * Anybody can make (r, n - s) of an ECDSA signature (r, s), without the key: it verifies as well,
 * and all bytes after it are others. So a fingerprint names a certificate no better than its file
 * name does.
 */
static struct fl_chain *altered(const struct fl_chain *chain)
{
    X509 *x509 = X509_dup(fl_chain_native(chain, 0));
    const ASN1_BIT_STRING *given;
    const unsigned char *p;
    unsigned char *der = NULL;
    BIGNUM *order = NULL;
    BIGNUM *s = BN_new();
    ECDSA_SIG *sig;
    struct stack_st_X509 *stack = sk_X509_new_null();
    struct fl_chain *ret = NULL;
    struct fl_err err = {0};
    size_t i;
    int len;

    X509_get0_signature(&given, NULL, x509);
    p = ASN1_STRING_get0_data(given);
    sig = d2i_ECDSA_SIG(NULL, &p, ASN1_STRING_length(given));
    ck_assert_ptr_nonnull(sig);
    /* The order of P-256 (SEC 2). */
    ck_assert_int_ne(
        BN_hex2bn(&order, "FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551"), 0);
    ck_assert_int_eq(BN_sub(s, order, ECDSA_SIG_get0_s(sig)), 1);
    ck_assert_int_eq(ECDSA_SIG_set0(sig, BN_dup(ECDSA_SIG_get0_r(sig)), s), 1);
    len = i2d_ECDSA_SIG(sig, &der);
    ck_assert_int_gt(len, 0);
    ck_assert_int_eq(ASN1_STRING_set((ASN1_STRING *)(uintptr_t)given, der, len), 1);
    ck_assert_int_gt(sk_X509_push(stack, x509), 0);
    for (i = 1; i < fl_chain_len(chain); i++) {
        ck_assert_int_gt(sk_X509_push(stack, fl_chain_native(chain, i)), 0);
    }
    ck_assert_msg(fl_chain_from_native(stack, "altered", &ret, &err) == FL_OK, "%s", err.msg);
    sk_X509_free(stack);
    X509_free(x509);
    OPENSSL_free(der);
    ECDSA_SIG_free(sig);
    BN_free(order);
    return ret;
}

static void fingerprint(const struct fl_chain *chain, uint8_t out[32])
{
    struct fl_buf der;

    fl_buf_init(&der, FL_CERT_MAX);
    ck_assert_int_eq(fl_chain_der(chain, 0, &der), FL_OK);
    ck_assert_int_eq(EVP_Digest(der.data, der.len, out, NULL, EVP_sha256(), NULL), 1);
    fl_buf_done(&der);
}

TEST(an_altered_signature_is_another_fingerprint_of_the_same_serial_and_key)
{
    struct fl_chain *other = altered(a.client);
    struct fl_identity x = believed(a.trust, a.client, FL_ROLE_CLIENT, NULL, NOW);
    struct fl_identity y = believed(a.trust, other, FL_ROLE_CLIENT, NULL, NOW);
    uint8_t one[32];
    uint8_t two[32];

    fingerprint(a.client, one);
    fingerprint(other, two);
    ck_assert_mem_ne(one, two, sizeof(one));
    ck_assert_uint_eq(x.serial_len, y.serial_len);
    ck_assert_mem_eq(x.serial, y.serial, x.serial_len);
    ck_assert_mem_eq(x.key, y.key, sizeof(x.key));
    fl_chain_unref(other);
}

/* Root, intermediate and a server's leaf under it for `key` as the root's. */
static void other_root(struct fl_key *key, int64_t now, struct fl_chain **root,
                       struct fl_chain **server)
{
    static const char *const hosts[] = {"localhost"};
    struct fl_issue issue = rig_pki_issue("fed-a", FL_ROLE_NONE, NULL, now, 3650);
    struct fl_key *between = rig_pki_key();
    struct fl_chain *chain = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_issue_root(key, &issue, root, &err) == FL_OK, "%s", err.msg);
    issue = rig_pki_issue("fed-a", FL_ROLE_NONE, NULL, now, 730);
    ck_assert_msg(fl_issue_intermediate(*root, key, between, &issue, &chain, &err) == FL_OK, "%s",
                  err.msg);
    issue = rig_pki_issue("fed-a", FL_ROLE_SERVER, "server", now, 30);
    issue.hosts = hosts;
    issue.n_hosts = 1;
    issue.with_root = true;
    ck_assert_msg(fl_issue_leaf(chain, between, a.server_key, &issue, server, &err) == FL_OK, "%s",
                  err.msg);
    fl_chain_unref(chain);
    fl_key_unref(between);
}

/* "fed-a' (key 5f0a1b2c)|": as a refusal has the name of this certificate and of its key. */
static void key_in_words(const struct fl_chain *chain, char out[32])
{
    const uint8_t *id = ASN1_STRING_get0_data(X509_get0_subject_key_id(fl_chain_native(chain, 0)));

    (void)snprintf(out, 32, "fed-a' (key %02x%02x%02x%02x)|", id[0], id[1], id[2], id[3]);
}

TEST(while_the_root_changes_both_are_believed)
{
    struct fl_key *key = rig_pki_key();
    struct fl_chain *root = NULL;
    struct fl_chain *server = NULL;
    struct fl_chain *both = NULL;
    struct fl_trust *old_and_new;
    struct fl_trust *only_new;
    char words[64];

    other_root(key, NOW, &root, &server);
    ck_assert_int_eq(fl_chain_join(a.root, root, &both), FL_OK);
    old_and_new = trust_in(both, "fed-a", 0);
    only_new = trust_in(root, "fed-a", 0);
    ck_assert_uint_eq(fl_chain_len(fl_trust_roots(old_and_new)), 2);
    (void)believed(old_and_new, a.server, FL_ROLE_SERVER, "localhost", NOW);
    (void)believed(old_and_new, server, FL_ROLE_SERVER, "localhost", NOW);
    (void)believed(only_new, server, FL_ROLE_SERVER, "localhost", NOW);
    /* Both roots have one name: it is the key that tells them apart. */
    refused(only_new, a.server, FL_ROLE_SERVER, "localhost", NOW, FL_REFUSED_UNKNOWN, 48,
            "not trusted here");
    refused(a.trust, server, FL_ROLE_SERVER, "localhost", NOW, FL_REFUSED_UNKNOWN, 48,
            "not trusted here");
    key_in_words(a.root, words);
    key_in_words(root, words + strlen(words));
    refused(only_new, a.server, FL_ROLE_SERVER, "localhost", NOW, FL_REFUSED_UNKNOWN, 48, words);
    fl_trust_unref(old_and_new);
    fl_trust_unref(only_new);
    fl_chain_unref(both);
    fl_chain_unref(root);
    fl_chain_unref(server);
    fl_key_unref(key);
}

TEST(a_root_renewed_with_its_key_fits_what_was_under_the_old_one)
{
    struct fl_chain *root = NULL;
    struct fl_chain *server = NULL;
    struct fl_trust *renewed;

    other_root(a.root_key, NOW + 1000 * DAY, &root, &server);
    renewed = trust_in(root, "fed-a", 0);
    /* At a time at which both are valid. */
    refused(renewed, a.server, FL_ROLE_SERVER, NULL, NOW, FL_REFUSED_CLOCK, 45, "fl root fed-a");
    fl_trust_unref(renewed);
    fl_chain_unref(root);
    fl_chain_unref(server);
    other_root(a.root_key, NOW, &root, &server);
    renewed = trust_in(root, "fed-a", 0);
    (void)believed(renewed, a.server, FL_ROLE_SERVER, "localhost", NOW);
    (void)believed(renewed, a.client, FL_ROLE_CLIENT, NULL, NOW);
    (void)believed(a.trust, server, FL_ROLE_SERVER, "localhost", NOW);
    fl_trust_unref(renewed);
    fl_chain_unref(root);
    fl_chain_unref(server);
}

static int pinned(const struct fl_key *root, const struct fl_chain *chain, const char *federation,
                  int64_t now, struct fl_chain **ret_roots, struct fl_refusal *refusal,
                  struct fl_err *err)
{
    struct fl_identity who;
    uint8_t pin[FL_KEY_HASH];

    fl_key_hash(root, pin);
    return fl_pin_verify(
        &(struct fl_pin){.key = pin, .federation = federation},
        &(struct fl_claim){
            .chain = chain, .purpose = FL_ROLE_SERVER, .host = "localhost", .now = now},
        &who, ret_roots, refusal, err);
}

TEST(a_pin_finds_its_root_in_what_the_server_shows)
{
    struct fl_chain *roots = NULL;
    struct fl_chain *root = NULL;
    struct fl_chain *server = NULL;
    struct fl_cert_info info;
    struct fl_refusal refusal;
    struct fl_err err = {0};

    ck_assert_msg(pinned(a.root_key, a.server, "fed-a", NOW, &roots, &refusal, &err) == FL_OK, "%s",
                  err.msg);
    ck_assert_uint_eq(fl_chain_len(roots), 1);
    fl_chain_info(roots, 0, &info);
    ck_assert_str_eq(info.subject, "CN=fl root fed-a");
    fl_chain_unref(roots);
    /* The invitation is older than the root that is shown, but its key is the same. */
    other_root(a.root_key, NOW + 1000 * DAY, &root, &server);
    ck_assert_msg(pinned(a.root_key, server, "fed-a", NOW + 1001 * DAY, &roots, &refusal, &err) ==
                      FL_OK,
                  "%s", err.msg);
    fl_chain_unref(roots);
    fl_chain_unref(root);
    fl_chain_unref(server);
}

TEST(under_a_pin_only_what_its_root_signed_is_believed)
{
    struct fl_key *other = rig_pki_key();
    struct fl_chain *mixed = NULL;
    struct fl_chain *root = NULL;
    struct fl_chain *server = NULL;
    struct fl_refusal refusal;
    struct fl_err err = {0};

    ck_assert_int_eq(pinned(other, a.server, "fed-a", NOW, NULL, &refusal, &err), FL_EPERM);
    ck_assert_int_eq(refusal.reason, FL_REFUSED_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(err.msg, "none of the 3 certificates"));
    ck_assert_ptr_nonnull(strstr(err.msg, "flctl invite"));
    /* A root is no secret: whoever shows it beside a chain of his own has not won anything. */
    other_root(other, NOW, &root, &server);
    ck_assert_int_eq(fl_chain_join(server, a.root, &mixed), FL_OK);
    ck_assert_int_eq(pinned(a.root_key, mixed, "fed-a", NOW, NULL, &refusal, &err), FL_EPERM);
    ck_assert_int_eq(refusal.reason, FL_REFUSED_UNKNOWN);
    /* Nor is the key of a leaf or of the intermediate a root's. */
    ck_assert_int_eq(pinned(a.server_key, a.server, "fed-a", NOW, NULL, &refusal, &err), FL_EPERM);
    ck_assert_int_eq(pinned(a.intermediate_key, a.server, "fed-a", NOW, NULL, &refusal, &err),
                     FL_EPERM);
    ck_assert_int_eq(pinned(a.root_key, a.server, "fed-b", NOW, NULL, &refusal, &err), FL_EPERM);
    ck_assert_int_eq(refusal.reason, FL_REFUSED_NAME);
    ck_assert_int_eq(pinned(a.root_key, a.server, "fed-a", 12, NULL, &refusal, &err), FL_EPERM);
    ck_assert_int_eq(refusal.reason, FL_REFUSED_CLOCK);
    fl_chain_unref(mixed);
    fl_chain_unref(root);
    fl_chain_unref(server);
    fl_key_unref(other);
}

TEST(a_chain_with_a_hole_is_mended_by_known_intermediates_only)
{
    struct fl_trust_setup s = {.roots = a.root, .federation = "fed-a"};
    struct fl_trust *trust = NULL;
    struct fl_chain *leaf = NULL;

    ck_assert_int_eq(fl_chain_part(a.client, 0, 1, &leaf), FL_OK);
    refused(a.trust, leaf, FL_ROLE_CLIENT, NULL, NOW, FL_REFUSED_UNKNOWN, 48,
            "fl intermediate fed-a|intermediate was left out");
    s.intermediates = a.intermediate;
    ck_assert_int_eq(fl_trust_create(&s, &trust, NULL), FL_OK);
    (void)believed(trust, leaf, FL_ROLE_CLIENT, NULL, NOW);
    fl_trust_unref(trust);
    fl_chain_unref(leaf);
}
