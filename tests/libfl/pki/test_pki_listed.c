/* Who was verified before, and stands on a list that came later. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/pki/native.h"
#include "libfl/pki/trust.h"
#include "tests/lib/pki_odd.h"
#include "tests/lib/pki_rig.h"
#include "tests/lib/suites.h"

#define NOW RIG_PKI_NOW
#define DAY RIG_DAY

static struct rig_pki pki;
static struct fl_identity client;
static char path[] = "/tmp/fl-listed-XXXXXX";

static struct fl_trust *trust_with(const char *const *lists, size_t n)
{
    struct fl_trust_setup setup = {
        .roots = pki.root, .federation = "fed-a", .crl_files = lists, .n_crl_files = n};
    struct fl_trust *trust = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_trust_create(&setup, &trust, &err) == FL_OK, "%s", err.msg);
    return trust;
}

static void setup(void)
{
    struct fl_trust *trust;
    int fd;

    rig_pki_make(&pki, "fed-a", NOW);
    trust = trust_with(NULL, 0);
    ck_assert_int_eq(
        fl_trust_verify(
            trust, &(struct fl_claim){.chain = pki.client, .purpose = FL_ROLE_CLIENT, .now = NOW},
            &client, NULL, NULL),
        FL_OK);
    fl_trust_unref(trust);
    (void)snprintf(path, sizeof(path), "/tmp/fl-listed-XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}

static void teardown(void)
{
    (void)unlink(path);
    rig_pki_free(&pki);
}

/* Is `who` on a list of our intermediate that names the leaf of `revoked`? */
static bool listed(const struct fl_identity *who, const struct fl_chain *revoked, char *why,
                   size_t size)
{
    const char *files[] = {path};
    struct odd_list list = {.issuer = pki.intermediate,
                            .issuer_key = fl_key_native(pki.intermediate_key),
                            .last = NOW - 3600,
                            .next = NOW + 7 * DAY,
                            .revoked = revoked};
    struct fl_trust *trust;
    struct fl_buf buf;
    bool found;

    fl_buf_init(&buf, 1 << 20);
    odd_list(&list, 1, &buf);
    ck_assert_int_eq(fl_fs_replace(path, buf.data, buf.len, false, NULL), FL_OK);
    fl_buf_done(&buf);
    trust = trust_with(files, 1);
    found = fl_trust_listed(trust, who, why, size);
    fl_trust_unref(trust);
    return found;
}

TEST_CASE("all", setup, teardown);

TEST(who_stands_on_a_newer_list_is_found_and_the_list_named)
{
    char why[256] = "";

    ck_assert(listed(&client, pki.client, why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, path));
    ck_assert_ptr_nonnull(strstr(why, client.name));
}

TEST(who_is_not_on_it_is_not_found)
{
    char why[256] = "";

    ck_assert(!listed(&client, NULL, why, sizeof(why)));
    ck_assert(!listed(&client, pki.server, why, sizeof(why)));
    ck_assert_str_eq(why, "");
}

TEST(the_same_number_of_another_issuer_is_somebody_else)
{
    struct fl_identity other = client;
    char why[256] = "";

    other.issuer[0] ^= 1;
    ck_assert(!listed(&other, pki.client, why, sizeof(why)));
}
