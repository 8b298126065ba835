/* An operator's own PKI: rules, revocation lists, and what strictness finds. */

#include <check.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libfl/base/fs.h"
#include "libfl/pki/native.h"
#include "tests/lib/folder.h"
#include "tests/lib/pki_odd.h"
#include "tests/lib/pki_rig.h"
#include "tests/lib/suites.h"

#define NOW RIG_PKI_NOW
#define DAY RIG_DAY

/* As `openssl ca` with an ordinary configuration makes them. */
static const struct odd_ext ca_exts[] = {{NID_basic_constraints, "critical,CA:TRUE"},
                                         {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                         {NID_subject_key_identifier, "hash"},
                                         {0, NULL}};
static const char *const ca_subject[] = {"O", "ACME", "CN", "ACME Root", NULL};

static EVP_PKEY *ca_key;
static EVP_PKEY *leaf_key;
static struct fl_chain *ca;
static char dir[FOLDER_PATH];

static void setup(void)
{
    struct odd_cert root = {.subject = ca_subject,
                            .exts = ca_exts,
                            .not_before = NOW - DAY,
                            .not_after = NOW + 3650 * DAY};

    ck_assert(folder_make("pki", dir));
    ca_key = EVP_EC_gen("P-384");
    leaf_key = EVP_EC_gen("P-256");
    root.key = ca_key;
    ca = odd_chain(&root);
}

static void teardown(void)
{
    fl_chain_unref(ca);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(leaf_key);
    folder_remove(dir);
}

/* A leaf with these names; `usage` NULL: no extended key usage. */
static struct fl_chain *leaf(const char *cn, const char *names, const char *usage)
{
    const char *const subject[] = {"CN", cn, NULL};
    struct odd_ext exts[] = {{NID_basic_constraints, "critical,CA:FALSE"},
                             {NID_key_usage, "critical,digitalSignature"},
                             {NID_subject_key_identifier, "hash"},
                             {NID_authority_key_identifier, "keyid"},
                             {NID_subject_alt_name, names},
                             {NID_ext_key_usage, usage},
                             {0, NULL}};
    struct odd_cert odd = {.subject = subject,
                           .issuer = ca,
                           .issuer_key = ca_key,
                           .key = leaf_key,
                           .exts = exts,
                           .not_before = NOW - DAY,
                           .not_after = NOW + 90 * DAY};

    if (names == NULL) {
        exts[4] = exts[5];
        exts[5].value = NULL;
    }
    return odd_chain(&odd);
}

static struct fl_trust *trust_by(const char *const *texts, size_t n, const char *const *lists,
                                 size_t n_lists)
{
    struct fl_trust_setup s = {.roots = ca, .crl_files = lists, .n_crl_files = n_lists};
    struct fl_trust *trust = NULL;
    struct fl_err err = {0};

    if (texts != NULL) {
        ck_assert_msg(fl_rules_create(texts, n, &s.rules, NULL, &err) == FL_OK, "%s", err.msg);
    }
    ck_assert_msg(fl_trust_create(&s, &trust, &err) == FL_OK, "%s", err.msg);
    fl_rules_unref(s.rules);
    return trust;
}

/* Takes `chain`. "role name", or "! reason" with all of `words` in the message. */
static void is(const struct fl_trust *trust, struct fl_chain *chain, enum fl_role purpose,
               int64_t now, const char *want, const char *words)
{
    struct fl_refusal refusal;
    struct fl_identity who;
    struct fl_err err = {0};
    char got[FL_IDENTITY_NAME_MAX + 16];
    char text[256];
    char *rest = text;
    char *word;
    int rv =
        fl_trust_verify(trust, &(struct fl_claim){.chain = chain, .purpose = purpose, .now = now},
                        &who, &refusal, &err);

    ck_assert(rv == FL_OK || rv == FL_EPERM);
    if (rv == FL_OK) {
        (void)snprintf(got, sizeof(got), "%s %s", fl_role_text(who.role), who.name);
        ck_assert_str_eq(who.federation, "");
    } else {
        (void)snprintf(got, sizeof(got), "! %s", fl_refusal_text(refusal.reason));
    }
    ck_assert_msg(strcmp(got, want) == 0, "%s, not %s: %s", got, want, err.msg);
    (void)snprintf(text, sizeof(text), "%s", words);
    while ((word = strtok_r(rest, "|", &rest)) != NULL) {
        ck_assert_msg(strstr(err.msg, word) != NULL, "'%s' is not in: %s", word, err.msg);
    }
    fl_chain_unref(chain);
}

#define CLIENT FL_ROLE_CLIENT

TEST_CASE("all", setup, teardown);

TEST(rules_say_who_a_certificate_of_the_operator_is_for)
{
    static const char *const rules[] = {
        "admin email:{name}@ops.acme.org", "client dns:{name}.edge.acme.org",
        "client uri:spiffe://acme.org/fl/{name}", "client cn:{name}"};
    struct fl_trust *trust = trust_by(rules, 4, NULL, 0);

    is(trust, leaf("x y", "DNS:K7.edge.acme.org", "clientAuth"), CLIENT, NOW, "client k7", "");
    is(trust, leaf("x y", "email:jane@ops.acme.org", "clientAuth"), CLIENT, NOW, "admin jane", "");
    is(trust, leaf("x y", "URI:spiffe://acme.org/fl/k8", "clientAuth"), CLIENT, NOW, "client k8",
       "");
    is(trust, leaf("host-9", NULL, "clientAuth"), CLIENT, NOW, "client host-9", "");
    /* The first rule that fits, whatever the order of the names. */
    is(trust, leaf("host-9", "DNS:k7.edge.acme.org,email:jane@ops.acme.org", "clientAuth"), CLIENT,
       NOW, "admin jane", "");
    is(trust, leaf("x y", "DNS:k7.acme.org", "clientAuth"), CLIENT, NOW, "! name",
       "rules of `tls.names`|none of its names matches|add a rule");
    is(trust, leaf("x", "DNS:k7.edge.acme.org,DNS:k8.edge.acme.org", "clientAuth"), CLIENT, NOW,
       "! name", "one name was expected|several|narrower");
    is(trust, leaf("x", "DNS:k7.edge.acme.org,DNS:K7.edge.acme.org", "clientAuth"), CLIENT, NOW,
       "client k7", "");
    /* Our own spelling is nothing special where rules are given. */
    is(trust, leaf("x y", "URI:fl://fed-a/admin/eve", "clientAuth"), CLIENT, NOW, "! name", "");
    fl_trust_unref(trust);
    trust = trust_by(NULL, 0, NULL, 0);
    is(trust, leaf("host-9", NULL, "clientAuth"), CLIENT, NOW, "! name", "there is none|add one");
    fl_trust_unref(trust);
}

TEST(a_purpose_has_to_be_said)
{
    static const char *const rules[] = {"client cn:{name}"};
    struct fl_trust *trust = trust_by(rules, 1, NULL, 0);
    struct fl_identity who;
    struct fl_chain *server;
    struct fl_err err = {0};

    is(trust, leaf("k7", NULL, NULL), CLIENT, NOW, "! purpose",
       "extendedKeyUsage clientAuth was expected, it has none|extendedKeyUsage = clientAuth");
    is(trust, leaf("k7", NULL, "serverAuth"), CLIENT, NOW, "! purpose", "it has serverAuth");
    is(trust, leaf("k7", NULL, "emailProtection"), CLIENT, NOW, "! purpose", "it has others");
    is(trust, leaf("k7", NULL, "clientAuth,serverAuth"), CLIENT, NOW, "client k7", "");
    is(trust, leaf("k7", NULL, "clientAuth"), FL_ROLE_SERVER, NOW, "! purpose",
       "it has clientAuth");
    fl_trust_unref(trust);
    trust = trust_by(NULL, 0, NULL, 0);
    server = leaf("not.this", "DNS:fl.acme.org", "serverAuth");
    ck_assert_msg(fl_trust_verify(trust,
                                  &(struct fl_claim){.chain = server,
                                                     .purpose = FL_ROLE_SERVER,
                                                     .host = "fl.acme.org",
                                                     .now = NOW},
                                  &who, NULL, &err) == FL_OK,
                  "%s", err.msg);
    ck_assert_str_eq(who.name, "fl.acme.org");
    /* A common name is no name of a host. */
    ck_assert_int_eq(fl_trust_verify(trust,
                                     &(struct fl_claim){.chain = server,
                                                        .purpose = FL_ROLE_SERVER,
                                                        .host = "not.this",
                                                        .now = NOW},
                                     &who, NULL, &err),
                     FL_EPERM);
    ck_assert_ptr_nonnull(strstr(err.msg, "its names are fl.acme.org"));
    fl_chain_unref(server);
    server = leaf("fl.acme.org", NULL, "serverAuth");
    ck_assert_int_eq(fl_trust_verify(trust,
                                     &(struct fl_claim){.chain = server,
                                                        .purpose = FL_ROLE_SERVER,
                                                        .host = "fl.acme.org",
                                                        .now = NOW},
                                     &who, NULL, &err),
                     FL_EPERM);
    ck_assert_ptr_nonnull(strstr(err.msg, "its names are none"));
    fl_chain_unref(server);
    fl_trust_unref(trust);
}

TEST(each_usage_of_a_key_is_for_what_it_says_and_nothing_else)
{
    static const struct {
        const char *usage;    /* keyUsage; NULL: none */
        const char *extended; /* extendedKeyUsage; NULL: none */
        const char *client, *server;
        const char *words;
    } cases[] = {
        {"critical,digitalSignature", "clientAuth", "client k7", "! purpose", "it has clientAuth"},
        {"digitalSignature,keyAgreement", "clientAuth", "client k7", "! purpose", "clientAuth"},
        {NULL, "clientAuth", "client k7", "! purpose", "it has clientAuth"},
        {NULL, "serverAuth,clientAuth", "client k7", "server server", ""},
        {"critical,digitalSignature", "serverAuth", "! purpose", "server server",
         "it has serverAuth"},
        {"critical,digitalSignature", "clientAuth,codeSigning", "client k7", "! purpose", ""},
        {"critical,digitalSignature", NULL, "! purpose", "! purpose", "it has none"},
        {"critical,digitalSignature", "anyExtendedKeyUsage", "! purpose", "! purpose",
         "was expected"},
        /* TLS 1.3 signs with the key: one that may only agree on keys, or sign others, is of no
           use. */
        {"critical,keyAgreement", "clientAuth,serverAuth", "! purpose", "! purpose",
         "digitalSignature was expected"},
        {"critical,keyEncipherment", "clientAuth,serverAuth", "! purpose", "! purpose", ""},
        {"critical,nonRepudiation", "clientAuth,serverAuth", "! purpose", "! purpose", ""},
        {"critical,keyCertSign", "clientAuth,serverAuth", "! form", "! form", ""},
    };
    static const char *const rules[] = {"client cn:{name}"};
    static const char *const subject[] = {"CN", "k7", NULL};
    struct fl_trust *trust = trust_by(rules, 1, NULL, 0);
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct odd_ext exts[8] = {{NID_basic_constraints, "critical,CA:FALSE"},
                                  {NID_subject_key_identifier, "hash"},
                                  {NID_authority_key_identifier, "keyid"},
                                  {NID_subject_alt_name, "DNS:k7"}};
        struct odd_cert odd = {.subject = subject,
                               .issuer = ca,
                               .issuer_key = ca_key,
                               .key = leaf_key,
                               .exts = exts,
                               .not_before = NOW - DAY,
                               .not_after = NOW + DAY};
        size_t n = 4;

        if (cases[i].usage != NULL) {
            exts[n++] = (struct odd_ext){NID_key_usage, cases[i].usage};
        }
        if (cases[i].extended != NULL) {
            exts[n++] = (struct odd_ext){NID_ext_key_usage, cases[i].extended};
        }
        is(trust, odd_chain(&odd), CLIENT, NOW, cases[i].client,
           cases[i].client[0] == '!' ? cases[i].words : "");
        is(trust, odd_chain(&odd), FL_ROLE_SERVER, NOW, cases[i].server,
           cases[i].server[0] == '!' ? cases[i].words : "");
    }
    fl_trust_unref(trust);
}

TEST(weak_and_misshapen_certificates_are_refused)
{
    static const char *const rules[] = {"client cn:{name}"};
    static const char *const subject[] = {"CN", "k7", NULL};
    static const struct odd_ext sound[] = {{NID_basic_constraints, "critical,CA:FALSE"},
                                           {NID_subject_key_identifier, "hash"},
                                           {NID_authority_key_identifier, "keyid"},
                                           {NID_ext_key_usage, "clientAuth"},
                                           {0, NULL}};
    static const struct odd_ext no_issuer[] = {
        {NID_basic_constraints, "critical,CA:FALSE"}, {NID_ext_key_usage, "clientAuth"}, {0, NULL}};
    static const struct odd_ext signs[] = {{NID_basic_constraints, "critical,CA:TRUE"},
                                           {NID_key_usage, "critical,keyCertSign,digitalSignature"},
                                           {NID_subject_key_identifier, "hash"},
                                           {NID_authority_key_identifier, "keyid"},
                                           {NID_ext_key_usage, "clientAuth"},
                                           {0, NULL}};
    struct fl_trust *trust = trust_by(rules, 1, NULL, 0);
    EVP_PKEY *small = EVP_RSA_gen(1024);
    struct odd_cert odd = {.subject = subject,
                           .issuer = ca,
                           .issuer_key = ca_key,
                           .key = small,
                           .exts = sound,
                           .not_before = NOW - DAY,
                           .not_after = NOW + DAY};

    is(trust, odd_chain(&odd), CLIENT, NOW, "! weak", "key too weak|EC P-256 or RSA 2048");
    odd.key = leaf_key;
    is(trust, odd_chain(&odd), CLIENT, NOW, "client k7", "");
    odd.digest = EVP_sha1();
    is(trust, odd_chain(&odd), CLIENT, NOW, "! weak", "SHA-256");
    odd.digest = NULL;
    odd.exts = no_issuer;
    is(trust, odd_chain(&odd), CLIENT, NOW, "! form", "CN=k7|authorityKeyIdentifier = keyid");
    odd.exts = signs;
    is(trust, odd_chain(&odd), CLIENT, NOW, "! purpose", "is an authority's|CA:FALSE");
    odd.exts = sound;
    odd.issuer_key = leaf_key; /* the issuer's name, another's key */
    is(trust, odd_chain(&odd), CLIENT, NOW, "! signature", "altered");
    odd.issuer_key = NULL;
    odd.issuer = NULL;
    is(trust, odd_chain(&odd), CLIENT, NOW, "! unknown",
       "its issuer 'CN=k7' (key |is not trusted here|ACME Root' (key ");
    fl_trust_unref(trust);
    EVP_PKEY_free(small);
}

TEST(a_leaf_that_issues_is_not_followed)
{
    static const char *const rules[] = {"client cn:{name}"};
    static const char *const subject[] = {"CN", "k8", NULL};
    static const struct odd_ext sound[] = {{NID_basic_constraints, "critical,CA:FALSE"},
                                           {NID_subject_key_identifier, "hash"},
                                           {NID_authority_key_identifier, "keyid"},
                                           {NID_ext_key_usage, "clientAuth"},
                                           {0, NULL}};
    struct fl_trust *trust = trust_by(rules, 1, NULL, 0);
    struct fl_chain *client = leaf("k7", NULL, "clientAuth");
    EVP_PKEY *key = EVP_EC_gen("P-256");
    struct odd_cert odd = {.subject = subject,
                           .issuer = client,
                           .issuer_key = leaf_key,
                           .key = key,
                           .exts = sound,
                           .not_before = NOW - DAY,
                           .not_after = NOW + DAY};

    is(trust, odd_chain(&odd), CLIENT, NOW, "! form",
       "CN=k7|invalid CA certificate|by an authority's");
    fl_chain_unref(client);
    fl_trust_unref(trust);
    EVP_PKEY_free(key);
}

static const char *list_file(char out[128], const char *name, const struct odd_list *list, int pem)
{
    struct fl_buf buf;
    struct fl_err err = {0};

    (void)snprintf(out, 128, "%s/%s", dir, name);
    fl_buf_init(&buf, 65536);
    odd_list(list, pem, &buf);
    ck_assert_msg(fl_fs_replace(out, buf.data, buf.len, false, &err) == FL_OK, "%s", err.msg);
    fl_buf_done(&buf);
    return out;
}

TEST(who_is_on_a_list_is_refused_and_the_list_is_named)
{
    static const char *const rules[] = {"client cn:{name}"};
    struct fl_chain *k7 = leaf("k7", NULL, "clientAuth");
    struct odd_list list = {.issuer = ca,
                            .issuer_key = ca_key,
                            .last = NOW - 3600,
                            .next = NOW + 7 * DAY,
                            .revoked = k7};
    char path[128];
    const char *files[1] = {path};
    struct fl_trust *trust;
    int pem;

    for (pem = 0; pem < 2; pem++) {
        (void)list_file(path, "x.crl", &list, pem);
        trust = trust_by(rules, 1, files, 1);
        is(trust, fl_chain_ref(k7), CLIENT, NOW, "! revoked",
           "CN=k7|revoked on 2026-11-20 17:15:00Z|x.crl");
        fl_trust_unref(trust);
    }
    list.revoked = NULL;
    (void)list_file(path, "x.crl", &list, 1);
    trust = trust_by(rules, 1, files, 1);
    is(trust, fl_chain_ref(k7), CLIENT, NOW, "client k7", "");
    is(trust, fl_chain_ref(k7), CLIENT, NOW + 10 * DAY, "! list",
       "x.crl' ended 2026-11-27|3 days earlier|fetch the list again");
    is(trust, fl_chain_ref(k7), CLIENT, 12, "! clock",
       "1970-01-01 00:00:12Z|x.crl' begins|56 years");
    fl_trust_unref(trust);
    fl_chain_unref(k7);
}

TEST(several_lists_are_used_together)
{
    static const char *const rules[] = {"client cn:{name}"};
    struct fl_chain *k7 = leaf("k7", NULL, "clientAuth");
    struct odd_list list = {
        .issuer = ca, .issuer_key = ca_key, .last = NOW - 2 * 3600, .next = NOW + 7 * DAY};
    struct rig_pki b;
    struct odd_list other = list;
    char one[128];
    char two[128];
    const char *files[2] = {one, two};
    struct fl_trust *trust;

    rig_pki_make(&b, "fed-b", NOW);
    other.issuer = b.root;
    other.issuer_key = fl_key_native(b.root_key);
    (void)list_file(one, "other.crl", &other, 1);
    trust = trust_by(rules, 1, files, 1);
    is(trust, fl_chain_ref(k7), CLIENT, NOW, "! list", "is of its issuer|add that issuer's list");
    fl_trust_unref(trust);
    (void)list_file(two, "ours.crl", &list, 0);
    trust = trust_by(rules, 1, files, 2);
    is(trust, fl_chain_ref(k7), CLIENT, NOW, "client k7", "");
    fl_trust_unref(trust);
    /* A newer one of the same issuer counts, in whatever order the files stand. */
    list.last = NOW - 3600;
    list.revoked = k7;
    (void)list_file(one, "newer.crl", &list, 0);
    trust = trust_by(rules, 1, files, 2);
    is(trust, fl_chain_ref(k7), CLIENT, NOW, "! revoked", "newer.crl");
    fl_trust_unref(trust);
    /* Signed by somebody else. */
    list.issuer_key = leaf_key;
    (void)list_file(one, "forged.crl", &list, 0);
    trust = trust_by(rules, 1, files, 1);
    is(trust, fl_chain_ref(k7), CLIENT, NOW, "! list", "forged.crl|signature");
    fl_trust_unref(trust);
    fl_chain_unref(k7);
    rig_pki_free(&b);
}

TEST(within_the_grace_todays_list_counts)
{
    static const char *const rules[] = {"client cn:{name}"};
    struct fl_chain *k7 = leaf("k7", NULL, "clientAuth");
    struct odd_list list = {.issuer = ca,
                            .issuer_key = ca_key,
                            .last = NOW + 100 * DAY, /* after the leaf ended */
                            .next = NOW + 120 * DAY};
    char path[128];
    const char *files[1] = {path};
    struct fl_trust_setup s = {
        .roots = ca, .crl_files = files, .n_crl_files = 1, .grace_s = 60 * DAY};
    struct fl_trust *trust = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_rules_create(rules, 1, &s.rules, NULL, &err), FL_OK);
    (void)list_file(path, "x.crl", &list, 0);
    ck_assert_int_eq(fl_trust_create(&s, &trust, &err), FL_OK);
    is(trust, fl_chain_ref(k7), CLIENT, NOW + 110 * DAY, "client k7", "");
    is(trust, fl_chain_ref(k7), CLIENT, NOW + 130 * DAY, "! list", "ended");
    fl_trust_unref(trust);
    list.revoked = k7;
    (void)list_file(path, "x.crl", &list, 0);
    ck_assert_int_eq(fl_trust_create(&s, &trust, &err), FL_OK);
    is(trust, fl_chain_ref(k7), CLIENT, NOW + 110 * DAY, "! revoked", "");
    fl_trust_unref(trust);
    fl_rules_unref(s.rules);
    fl_chain_unref(k7);
}

/* An intermediate of the operator's, for `days`. */
static struct fl_chain *between(EVP_PKEY *key, int64_t days)
{
    static const char *const subject[] = {"CN", "ACME Issuing", NULL};
    static const struct odd_ext exts[] = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                          {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                          {NID_subject_key_identifier, "hash"},
                                          {NID_authority_key_identifier, "keyid"},
                                          {0, NULL}};
    const struct odd_cert odd = {.subject = subject,
                                 .issuer = ca,
                                 .issuer_key = ca_key,
                                 .key = key,
                                 .exts = exts,
                                 .not_before = NOW - DAY,
                                 .not_after = NOW + days * DAY};

    return odd_chain(&odd);
}

static struct fl_chain *leaf_under(const struct fl_chain *issuer, EVP_PKEY *issuer_key)
{
    static const char *const subject[] = {"CN", "k7", NULL};
    static const struct odd_ext exts[] = {{NID_basic_constraints, "critical,CA:FALSE"},
                                          {NID_subject_key_identifier, "hash"},
                                          {NID_authority_key_identifier, "keyid"},
                                          {NID_ext_key_usage, "clientAuth"},
                                          {0, NULL}};
    const struct odd_cert odd = {.subject = subject,
                                 .issuer = issuer,
                                 .issuer_key = issuer_key,
                                 .key = leaf_key,
                                 .exts = exts,
                                 .not_before = NOW - DAY,
                                 .not_after = NOW + 90 * DAY};

    return odd_chain(&odd);
}

TEST(a_list_is_demanded_of_the_leafs_issuer_and_used_of_those_above)
{
    static const char *const rules[] = {"client cn:{name}"};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    struct fl_chain *middle = between(key, 900);
    struct fl_chain *k7 = leaf_under(middle, key);
    struct odd_list list = {
        .issuer = middle, .issuer_key = key, .last = NOW - 3600, .next = NOW + 7 * DAY};
    char one[128];
    char two[128];
    const char *files[2] = {one, two};
    struct fl_trust *trust;

    (void)list_file(one, "middle.crl", &list, 1);
    trust = trust_by(rules, 1, files, 1);
    is(trust, fl_chain_ref(k7), CLIENT, NOW, "client k7", "");
    fl_trust_unref(trust);
    list.issuer = ca;
    list.issuer_key = ca_key;
    list.revoked = middle;
    (void)list_file(two, "root.crl", &list, 1);
    trust = trust_by(rules, 1, files, 2);
    is(trust, fl_chain_ref(k7), CLIENT, NOW, "! revoked", "CN=ACME Issuing|root.crl");
    fl_trust_unref(trust);
    fl_chain_unref(k7);
    fl_chain_unref(middle);
    EVP_PKEY_free(key);
}

TEST(the_grace_is_not_for_an_issuer_that_ended_before_the_leaf)
{
    static const char *const rules[] = {"client cn:{name}"};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    struct fl_chain *middle = between(key, 50);
    struct fl_chain *k7 = leaf_under(middle, key);
    struct fl_trust_setup s = {.roots = ca, .grace_s = 60 * DAY};
    struct fl_trust *trust = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_rules_create(rules, 1, &s.rules, NULL, &err), FL_OK);
    ck_assert_int_eq(fl_trust_create(&s, &trust, &err), FL_OK);
    is(trust, fl_chain_ref(k7), CLIENT, NOW + 60 * DAY, "! expired",
       "CN=ACME Issuing|10 days earlier");
    is(trust, fl_chain_ref(k7), CLIENT, NOW + 100 * DAY, "! expired", "CN=ACME Issuing");
    fl_trust_unref(trust);
    fl_rules_unref(s.rules);
    fl_chain_unref(k7);
    fl_chain_unref(middle);
    EVP_PKEY_free(key);
}

TEST(a_negative_serial_number_is_none)
{
    static const char *const subject[] = {"CN", "k7", NULL};
    const struct odd_cert odd = {.subject = subject,
                                 .key = leaf_key,
                                 .not_before = NOW,
                                 .not_after = NOW + DAY,
                                 .serial = -5};
    X509 *x509 = odd_x509(&odd);
    unsigned char *der = NULL;
    struct fl_der one = {.len = (size_t)i2d_X509(x509, &der)};
    struct fl_chain *chain = NULL;
    struct fl_err err = {0};

    one.data = der;
    ck_assert_int_eq(fl_chain_from_der(&one, 1, "192.0.2.7:1", &chain, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "192.0.2.7:1: certificate 1: the serial number of"));
    OPENSSL_free(der);
    X509_free(x509);
}

/* Under our own root, so that nothing but the name is wrong. */
TEST(a_uri_of_ours_fits_the_purpose_and_stands_alone)
{
    static const struct {
        const char *uris;
        const char *usage;
        enum fl_role purpose;
        const char *word;
    } cases[] = {
        {"URI:fl://fed-b/server/s", "clientAuth", CLIENT, "it is that of server 's'"},
        {"URI:fl://fed-b/client/k7", "serverAuth", FL_ROLE_SERVER, "that of client 'k7'"},
        {"URI:fl://fed-b/client/k7,URI:fl://fed-b/client/k7", "clientAuth", CLIENT, "several"},
        {"URI:fl://fed-b/client/k7,URI:fl://fed-b/admin/eve", "clientAuth", CLIENT, "several"},
        {"URI:fl://fed-b/client/k%37", "clientAuth", CLIENT, "invalid"},
        {"URI:fl://fed-b/client/k7,URI:spiffe://x/y", "clientAuth", CLIENT, NULL},
        {"URI:spiffe://x/y", "clientAuth", CLIENT, "it has none"}};
    static const char *const subject[] = {"CN", "k7", NULL};
    struct rig_pki b;
    size_t i;

    rig_pki_make(&b, "fed-b", NOW);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct odd_ext exts[] = {
            {NID_basic_constraints, "critical,CA:FALSE"}, {NID_subject_key_identifier, "hash"},
            {NID_authority_key_identifier, "keyid"},      {NID_ext_key_usage, cases[i].usage},
            {NID_subject_alt_name, cases[i].uris},        {0, NULL}};
        const struct odd_cert odd = {.subject = subject,
                                     .issuer = b.intermediate,
                                     .issuer_key = fl_key_native(b.intermediate_key),
                                     .key = leaf_key,
                                     .exts = exts,
                                     .not_before = NOW,
                                     .not_after = NOW + DAY};
        struct fl_chain *chain = odd_chain(&odd);
        struct fl_refusal refusal;
        struct fl_identity who;
        struct fl_err err = {0};
        int rv = fl_trust_verify(
            b.trust, &(struct fl_claim){.chain = chain, .purpose = cases[i].purpose, .now = NOW},
            &who, &refusal, &err);

        if (cases[i].word == NULL) {
            ck_assert_msg(rv == FL_OK, "%s", err.msg);
        } else {
            ck_assert_int_eq(rv, FL_EPERM);
            ck_assert_msg(refusal.reason == FL_REFUSED_NAME &&
                              strstr(err.msg, cases[i].word) != NULL,
                          "%s: %s", cases[i].word, err.msg);
        }
        fl_chain_unref(chain);
    }
    rig_pki_free(&b);
}

/* Run in the test's folder; NULL where a program for it is missing. */
static const char *shell(const char *command)
{
    static char out[4096];
    char line[1024];
    FILE *pipe;
    size_t n;
    int status;

    (void)snprintf(line, sizeof(line), "cd %s && { %s ; } 2>&1", dir, command);
    pipe = popen(line, "r");
    ck_assert_ptr_nonnull(pipe);
    n = fread(out, 1, sizeof(out) - 1, pipe);
    out[n] = '\0';
    status = pclose(pipe);
    ck_assert_msg(status == 0 || status == 127 * 256, "%s: %s", command, out);
    return status == 0 ? out : NULL;
}

/* docs/security.md#a-pki-of-your-own: the block of commands, and the rules of the configuration. */
TEST(what_the_documents_commands_make_is_believed_by_the_documents_rules)
{
    static const char commands[] = "command -v openssl >/dev/null || exit 127\n"
                                   "sed -n '/^With openssl alone/,/^The server/p' "
                                   "\"$FL_SRCDIR/docs/security.md\" | grep '^    ' "
                                   "> make.sh && test $(wc -l < make.sh) -ge 5 && sh -e make.sh";
    static const char rules[] =
        "sed -n 's/^ *- \"\\(client .*\\)\"$/\\1/p' \"$FL_SRCDIR/docs/security.md\" | head -1";
    struct fl_trust_setup s = {.n_root_files = 1};
    struct fl_trust *trust = NULL;
    struct fl_chain *chain = NULL;
    struct fl_key *key = NULL;
    struct fl_err err = {0};
    char paths[3][128];
    const char *root = paths[0];
    const char *rule;
    char text[256];

    ck_assert_ptr_nonnull(getenv("FL_SRCDIR"));
    if (shell(commands) == NULL) {
        (void)fprintf(stderr, "skipped: there is no openssl program here\n");
        return;
    }
    (void)snprintf(paths[0], sizeof(paths[0]), "%s/ca.pem", dir);
    (void)snprintf(paths[1], sizeof(paths[1]), "%s/client.pem", dir);
    (void)snprintf(paths[2], sizeof(paths[2]), "%s/client.key", dir);
    ck_assert_msg(fl_credentials_load(paths[1], paths[2], &chain, &key, &err) == FL_OK, "%s",
                  err.msg);
    (void)snprintf(text, sizeof(text), "%s", shell(rules));
    text[strcspn(text, "\n")] = '\0';
    rule = text;
    ck_assert_msg(fl_rules_create(&rule, 1, &s.rules, NULL, &err) == FL_OK, "%s", err.msg);
    s.root_files = &root;
    ck_assert_msg(fl_trust_create(&s, &trust, &err) == FL_OK, "%s", err.msg);
    is(trust, fl_chain_ref(chain), CLIENT, (int64_t)time(NULL) + 1, "client edge-001", "");
    fl_trust_unref(trust);
    fl_rules_unref(s.rules);
    fl_chain_unref(chain);
    fl_key_unref(key);
}

static void setup_refused(const struct fl_trust_setup *s, int code, const char *words)
{
    struct fl_trust *trust = NULL;
    struct fl_err err = {0};
    char text[256];
    char *rest = text;
    char *word;

    ck_assert_int_eq(fl_trust_create(s, &trust, &err), code);
    (void)snprintf(text, sizeof(text), "%s", words);
    while ((word = strtok_r(rest, "|", &rest)) != NULL) {
        ck_assert_msg(strstr(err.msg, word) != NULL, "'%s' is not in: %s", word, err.msg);
    }
}

TEST(what_cannot_be_believed_in_is_refused_at_once)
{
    struct fl_chain *k7 = leaf("k7", NULL, "clientAuth");
    char path[128];
    const char *files[1] = {path};
    struct fl_trust_setup s = {.federation = "fed-a"};
    struct odd_list list = {
        .issuer = ca, .issuer_key = ca_key, .last = NOW - 3600, .next = NOW + 7 * DAY};
    struct fl_buf buf;

    setup_refused(&s, FL_ECONF, "no root certificate");
    s.roots = k7;
    setup_refused(&s, FL_ECONF, "CN=k7|not the certificate of an authority");
    s.roots = ca;
    s.crl_files = files;
    s.n_crl_files = 1;
    (void)snprintf(path, sizeof(path), "%s/none.crl", dir);
    setup_refused(&s, FL_ENOENT, "none.crl");
    ck_assert_int_eq(fl_fs_replace(path, "hello", 5, false, NULL), FL_OK);
    setup_refused(&s, FL_EFORMAT, "none.crl|contains no revocation list|BEGIN X509 CRL");
    fl_buf_init(&buf, 65536);
    odd_list(&list, 1, &buf);
    ck_assert_int_eq(fl_fs_replace(path, buf.data, buf.len / 2, false, NULL), FL_OK);
    setup_refused(&s, FL_EFORMAT, "none.crl': line 1|no end");
    fl_buf_clear(&buf);
    odd_list(&list, 0, &buf);
    ck_assert_int_eq(fl_fs_replace(path, buf.data, buf.len - 1, false, NULL), FL_OK);
    setup_refused(&s, FL_EFORMAT, "none.crl|truncated");
    fl_buf_done(&buf);
    s.n_crl_files = 0;
    s.root_files = files;
    s.n_root_files = 1;
    setup_refused(&s, FL_EFORMAT, "none.crl");
    fl_chain_unref(k7);
}

TEST(one_intermediate_may_be_believed_without_its_root)
{
    struct rig_pki b;
    struct fl_chain *only = NULL;
    struct fl_trust_setup s = {.federation = "fed-b"};
    struct fl_trust *trust = NULL;
    struct fl_identity who;
    struct fl_err err = {0};

    rig_pki_make(&b, "fed-b", NOW);
    ck_assert_int_eq(fl_chain_part(b.intermediate, 0, 1, &only), FL_OK);
    s.roots = only;
    ck_assert_int_eq(fl_trust_create(&s, &trust, &err), FL_OK);
    ck_assert_msg(
        fl_trust_verify(trust, &(struct fl_claim){.chain = b.client, .purpose = CLIENT, .now = NOW},
                        &who, NULL, &err) == FL_OK,
        "%s", err.msg);
    fl_trust_unref(trust);
    fl_chain_unref(only);
    rig_pki_free(&b);
}
