/* The files of a client's identity: what is wrong with them is found, named, and what helps is
 * said. */

#include <check.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/identity_rig.h"
#include "tests/lib/suites.h"

static struct rig_identity rig;
static struct fl_client_identity identity;

static void setup(void)
{
    struct fl_err err = {0};

    rig_identity_setup(&rig);
    ck_assert_msg(rig_identity_join(&rig, &err) == FL_OK, "%s", err.msg);
}

static void teardown(void)
{
    fl_client_identity_done(&identity);
    rig_identity_teardown(&rig);
}

static void loads(void)
{
    struct fl_err err = {0};

    fl_client_identity_done(&identity);
    ck_assert_msg(fl_client_identity_load(&rig.files, &identity, &err) == FL_OK, "%s", err.msg);
}

/* Refused with this code; the text holds all of `texts` (ended by NULL). */
static void refuses(int code, const char *const *texts)
{
    struct fl_err err = {0};

    ck_assert_int_eq(fl_client_identity_load(&rig.files, &identity, &err), code);
    for (; *texts != NULL; texts++) {
        ck_assert_msg(strstr(err.msg, *texts) != NULL, "no '%s' in: %s", *texts, err.msg);
    }
}
#define REFUSES(code, ...) refuses(code, (const char *const[]){__VA_ARGS__, NULL})

static void cut(const char *name)
{
    struct stat st;
    const char *path = rig_identity_path(&rig, name);

    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
}

/* --- good ones --- */

TEST_CASE("good", setup, teardown);

TEST(what_joining_left_is_an_identity)
{
    loads();
    ck_assert_str_eq(identity.who.name, "edge-001");
    ck_assert_str_eq(identity.who.federation, "demo");
    ck_assert_int_eq(identity.who.role, FL_ROLE_CLIENT);
    ck_assert(identity.ours);
    ck_assert_int_eq(identity.who.not_after, RIG_PKI_NOW + 30 * RIG_DAY);
}

TEST(it_believes_its_own_server_and_no_other)
{
    struct rig_pki other;
    struct fl_identity who;

    loads();
    ck_assert_int_eq(fl_trust_verify(identity.trust,
                                     &(struct fl_claim){.chain = rig.pki.server,
                                                        .purpose = FL_ROLE_SERVER,
                                                        .host = "localhost",
                                                        .now = RIG_PKI_NOW},
                                     &who, NULL, NULL),
                     FL_OK);
    ck_assert_int_eq(fl_trust_verify(identity.trust,
                                     &(struct fl_claim){.chain = rig.pki.server,
                                                        .purpose = FL_ROLE_SERVER,
                                                        .host = "example.org",
                                                        .now = RIG_PKI_NOW},
                                     &who, NULL, NULL),
                     FL_EPERM);
    ck_assert_int_eq(fl_trust_verify(identity.trust,
                                     &(struct fl_claim){.chain = rig.pki.client,
                                                        .purpose = FL_ROLE_SERVER,
                                                        .now = RIG_PKI_NOW},
                                     &who, NULL, NULL),
                     FL_EPERM);
    rig_pki_make(&other, "demo", RIG_PKI_NOW);
    ck_assert_int_eq(fl_trust_verify(identity.trust,
                                     &(struct fl_claim){.chain = other.server,
                                                        .purpose = FL_ROLE_SERVER,
                                                        .host = "localhost",
                                                        .now = RIG_PKI_NOW},
                                     &who, NULL, NULL),
                     FL_EPERM);
    rig_pki_free(&other);
}

/* Whether it is over, or begins later, is for those to say who know the time. */
TEST(a_certificate_that_is_over_is_still_loaded)
{
    struct fl_issue issue = rig_identity_issue(&rig);
    struct fl_enrolling *enrolling = NULL;

    loads();
    issue.not_before = RIG_PKI_NOW - 100;
    issue.not_after = RIG_PKI_NOW - 10;
    ck_assert_int_eq(fl_enrolling_renew(rig.dir, &identity, &enrolling, NULL), FL_OK);
    rig_identity_answer(&rig, enrolling, &issue, rig.pki.root);
    ck_assert_int_eq(fl_enrolling_done(enrolling,
                                       &(struct fl_enrolling_reply){&rig.chain, &rig.roots, 0},
                                       RIG_PKI_NOW, NULL, NULL),
                     FL_OK);
    fl_enrolling_free(enrolling);
    loads();
    ck_assert_int_eq(identity.who.not_after, RIG_PKI_NOW - 10);
}

TEST(files_of_an_own_pki_are_used_as_they_are_and_never_renewed)
{
    char certificate[128];
    char key[128];
    char ca[128];

    (void)snprintf(certificate, sizeof(certificate), "%s/my.pem", rig.state);
    (void)snprintf(key, sizeof(key), "%s/my.key", rig.state);
    (void)snprintf(ca, sizeof(ca), "%s/ca.pem", rig.state);
    ck_assert_int_eq(fl_chain_save(rig.pki.client, certificate, false, NULL), FL_OK);
    ck_assert_int_eq(fl_key_save(rig.pki.client_key, key, false, NULL), FL_OK);
    ck_assert_int_eq(fl_chain_save(rig.pki.root, ca, false, NULL), FL_OK);
    rig.files.certificate = certificate;
    rig.files.key = key;
    rig.files.ca = ca;
    loads();
    ck_assert(!identity.ours);
    ck_assert_str_eq(identity.who.name, "edge-001");
}

TEST(a_replaced_file_is_noticed)
{
    uint64_t mark = fl_client_identity_mark(&rig.files);
    struct fl_err err = {0};

    ck_assert_uint_eq(mark, fl_client_identity_mark(&rig.files));
    ck_assert_msg(rig_identity_renew(&rig, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_ne(mark, fl_client_identity_mark(&rig.files));
}

/* --- bad ones --- */

TEST_CASE("bad", setup, teardown);

TEST(a_client_that_has_none_is_told_how_to_get_one)
{
    folder_remove(rig.dir);
    REFUSES(FL_ENOENT, rig.dir, "flctl invite", "fl-clientd --join");
    ck_assert_int_eq(mkdir(rig.dir, 0700), 0);
    REFUSES(FL_ENOENT, rig.dir, "fl-clientd --join");
}

TEST(a_key_that_others_may_read_is_refused)
{
    ck_assert_int_eq(chmod(rig_identity_path(&rig, "client.key"), 0640), 0);
    REFUSES(FL_EPERM, "client.key", "0640");
}

TEST(a_folder_that_others_may_write_to_is_refused)
{
    ck_assert_int_eq(chmod(rig.dir, 0770), 0);
    REFUSES(FL_EPERM, rig.dir, "0770", "chmod 700");
}

TEST(a_folder_of_another_user_is_refused)
{
    if (geteuid() != 0) {
        (void)printf("skipped: only root can give a folder away\n");
        return;
    }
    ck_assert_int_eq(chown(rig.dir, 12345, 12345), 0);
    REFUSES(FL_EPERM, rig.dir, "uid 0", "uid 12345");
    ck_assert_int_eq(chown(rig.dir, 0, 0), 0);
}

TEST(half_a_file_is_refused_with_its_name)
{
    cut("client.pem");
    REFUSES(FL_EFORMAT, "client.pem");
}

TEST(half_a_key_is_refused_with_its_name)
{
    cut("client.key");
    REFUSES(FL_EFORMAT, "client.key");
}

TEST(half_a_root_is_refused_with_its_name)
{
    cut("roots.pem");
    REFUSES(FL_EFORMAT, "roots.pem");
}

TEST(a_missing_key_is_named)
{
    ck_assert_int_eq(unlink(rig_identity_path(&rig, "client.key")), 0);
    REFUSES(FL_ENOENT, "client.key");
}

TEST(a_key_of_another_certificate_is_refused_with_both_names)
{
    ck_assert_int_eq(
        fl_key_save(rig.pki.admin_key, rig_identity_path(&rig, "client.key"), false, NULL), FL_OK);
    REFUSES(FL_ECONF, "client.key", "client.pem");
}

TEST(roots_of_another_federation_are_refused)
{
    struct rig_pki other;

    rig_pki_make(&other, "other", RIG_PKI_NOW);
    ck_assert_int_eq(fl_chain_save(other.root, rig_identity_path(&rig, "roots.pem"), false, NULL),
                     FL_OK);
    REFUSES(FL_EFORMAT, "client.pem", "edge-001");
    rig_pki_free(&other);
}

static void put(const struct fl_chain *chain, const struct fl_key *key)
{
    ck_assert_int_eq(fl_chain_save(chain, rig_identity_path(&rig, "client.pem"), false, NULL),
                     FL_OK);
    ck_assert_int_eq(fl_key_save(key, rig_identity_path(&rig, "client.key"), false, NULL), FL_OK);
}

TEST(a_certificate_of_another_role_is_refused)
{
    put(rig.pki.admin, rig.pki.admin_key);
    REFUSES(FL_EFORMAT, "client.pem", "expected a client's", "admin");
    put(rig.pki.server, rig.pki.server_key);
    REFUSES(FL_EFORMAT, "client.pem", "expected a client's", "server");
}

TEST(a_certificate_without_a_name_of_ours_is_refused)
{
    put(rig.pki.intermediate, rig.pki.intermediate_key);
    REFUSES(FL_EFORMAT, "client.pem", "fl://FEDERATION/client/NAME", "fl-clientd --join");
}
