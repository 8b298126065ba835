/* Revoke, evict, disable: whom they keep out, and what the network thread is told. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/identity/cert_renewal.h"
#include "server/identity/plain_names.h"
#include "tests/lib/authority_rig.h"
#include "tests/lib/suites.h"

static struct rig r;
static struct fl_key *key, *other;
static struct fl_identity who;

static void setup(void)
{
    struct fl_invite in;

    rig_begin(&r, 3);
    authority_rig_init(&r);
    key = rig_key();
    other = rig_key();
    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    who = rig_who(&r);
}

static void teardown(void)
{
    fl_key_unref(key);
    fl_key_unref(other);
    rig_end(&r);
}

typedef int revoke_fn(struct fl_authority *, const struct fl_revoked *, const char *, const char *,
                      int64_t, size_t *, struct fl_err *);

static size_t revoke_by(revoke_fn *verb, const struct fl_revoked *whom)
{
    size_t n = 0;

    ck_assert_msg(verb(r.a, whom, "stolen", "uid 0 (root)", r.now_ms, &n, &r.err) == FL_OK, "%s",
                  r.err.msg);
    return n;
}

static void invite_again(const char *name, struct fl_invite *ret)
{
    r.now_ms += 1000;
    rig_invite(&r, name, 0, ret);
}

static int nothing(void *ctx, size_t i, const struct fl_invited *invited)
{
    (void)ctx;
    (void)i;
    (void)invited;
    return FL_OK;
}

TEST_CASE("verbs", setup, teardown);

TEST(a_name_that_is_revoked_is_out_for_good_with_all_its_keys)
{
    struct fl_revoked whom = {.name = "edge-001"};
    struct fl_invitation in = {.name = "edge-001"};
    struct fl_invite line;
    struct fl_identity renewed;
    struct fl_key *third;
    char why[512];

    ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
    renewed = rig_who(&r);
    ck_assert(!rig_revoked(&r, &who, NULL, 0));
    ck_assert_uint_eq(revoke_by(fl_authority_revoke, &whom), 2);
    ck_assert(rig_revoked(&r, &who, why, sizeof(why)));
    ck_assert(rig_revoked(&r, &renewed, NULL, 0));
    ck_assert_ptr_nonnull(strstr(why, "'edge-001' was revoked at 2026-11-22"));
    ck_assert_ptr_nonnull(strstr(why, "by uid 0 (root): stolen"));
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_EPERM);
    ck_assert_int_eq(fl_authority_invite(r.a,
                                         &(struct fl_invitations){.list = &in, .n = 1, .by = "ops"},
                                         r.now_ms, nothing, NULL, &r.err),
                     FL_EPERM);
    rig_says(&r, "permanent");
    /* A pattern does not help, nor does one of its keys under another name. */
    rig_invite(&r, "*", 3, &line);
    third = rig_key();
    ck_assert_int_eq(rig_join(&r, &line, third, "edge-001", NULL), FL_EPERM);
    fl_key_unref(third);
    ck_assert_int_eq(rig_join(&r, &line, key, "edge-002", NULL), FL_EPERM);
    rig_says(&r, "revoked");
    /* Nobody takes it back. */
    ck_assert_int_eq(fl_authority_enable(r.a, &whom, "ops", r.now_ms, NULL, &r.err), FL_ENOENT);
    rig_says(&r, "it was revoked");
    ck_assert_int_eq(fl_authority_disable(r.a, &whom, "", "ops", r.now_ms, NULL, &r.err),
                     FL_EEXIST);
    /* Over a restart, and for longer than any certificate. */
    r.now_ms += 400 * RIG_DAY_MS;
    rig_close(&r);
    rig_open(&r);
    ck_assert(rig_revoked(&r, &who, NULL, 0));
}

TEST(a_certificate_or_key_that_is_revoked_leaves_the_name)
{
    struct fl_revoked serial = {.serial = who.serial, .serial_len = who.serial_len};
    struct fl_revoked by_key = {.key = who.key};
    struct fl_identity next;
    struct fl_identity altered;
    struct fl_invite line;

    ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
    next = rig_who(&r);
    ck_assert_uint_eq(revoke_by(fl_authority_revoke, &serial), 1);
    ck_assert(rig_revoked(&r, &who, NULL, 0));
    ck_assert(!rig_revoked(&r, &next, NULL, 0));
    ck_assert_uint_eq(revoke_by(fl_authority_revoke, &by_key), 1);
    /* Whatever else was made for that key, by whom ever. */
    altered = who;
    altered.serial[0] ^= 1;
    (void)snprintf(altered.name, sizeof(altered.name), "somebody");
    ck_assert(rig_revoked(&r, &altered, NULL, 0));
    invite_again("edge-001", &line);
    ck_assert_int_eq(rig_join(&r, &line, key, "", NULL), FL_EPERM);
    rig_says(&r, "was revoked");
    {
        struct fl_key *third = rig_key();

        ck_assert_int_eq(rig_join(&r, &line, third, "", NULL), FL_OK);
        fl_key_unref(third);
    }
}

TEST(who_was_evicted_joins_again_by_a_new_invitation_even_with_the_same_key)
{
    struct fl_revoked whom = {.name = "edge-001"};
    struct fl_identity again;
    struct fl_invite line;

    ck_assert_uint_eq(revoke_by(fl_authority_evict, &whom), 1);
    ck_assert(rig_revoked(&r, &who, NULL, 0));
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_EPERM);
    rig_says(&r, "flctl invite edge-001");
    invite_again("edge-001", &line);
    ck_assert_int_eq(rig_join(&r, &line, key, "", NULL), FL_OK);
    again = rig_who(&r);
    ck_assert(!rig_revoked(&r, &again, NULL, 0));
    ck_assert(rig_revoked(&r, &who, NULL, 0));
    whom.name = "edge-007";
    ck_assert_int_eq(fl_authority_evict(r.a, &whom, "", "ops", r.now_ms, NULL, &r.err), FL_ENOENT);
    rig_says(&r, "has no certificate issued here");
}

TEST(the_line_of_who_was_evicted_does_not_let_him_in_again)
{
    struct fl_revoked whom = {.name = "edge-002"};
    struct fl_invite line;

    rig_invite(&r, "edge-002", 0, &line);
    ck_assert_int_eq(rig_join(&r, &line, other, "", NULL), FL_OK);
    ck_assert_uint_eq(revoke_by(fl_authority_evict, &whom), 1);
    ck_assert_int_eq(rig_join(&r, &line, other, "", NULL), FL_EPERM);
    rig_says(&r, "evicted");
}

TEST(who_is_disabled_is_kept_and_comes_back_when_enabled)
{
    struct fl_revoked whom = {.name = "edge-001"};
    char why[512];

    ck_assert_uint_eq(revoke_by(fl_authority_disable, &whom), 1);
    ck_assert(rig_revoked(&r, &who, why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, "until flctl enable"));
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_EPERM);
    ck_assert_int_eq(fl_authority_enable(r.a, &whom, "ops", r.now_ms, NULL, &r.err), FL_OK);
    ck_assert(!rig_revoked(&r, &who, NULL, 0));
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
    ck_assert_int_eq(fl_authority_enable(r.a, &whom, "ops", r.now_ms, NULL, &r.err), FL_ENOENT);
}

TEST(a_name_of_an_own_pki_is_kept_out_by_its_name)
{
    struct fl_identity theirs = {.kind = FL_IDENTITY_CERTIFICATE,
                                 .role = FL_ROLE_CLIENT,
                                 .name = "desk-1",
                                 .serial = {7},
                                 .serial_len = 1};
    struct fl_revoked whom = {.name = "desk-1"};
    struct fl_invitation in = {.name = "desk-1"};

    rig_close(&r);
    r.conf.own_pki = true;
    rig_open(&r);
    ck_assert_ptr_null(fl_authority_chain(r.a));
    ck_assert(!rig_revoked(&r, &theirs, NULL, 0));
    ck_assert_uint_eq(revoke_by(fl_authority_disable, &whom), 0);
    ck_assert(rig_revoked(&r, &theirs, NULL, 0));
    ck_assert_int_eq(fl_authority_invite(r.a,
                                         &(struct fl_invitations){.list = &in, .n = 1, .by = "ops"},
                                         r.now_ms, nothing, NULL, &r.err),
                     FL_ESTATE);
    rig_says(&r, "own PKI");
}

TEST(a_clock_that_was_years_ahead_for_an_hour_has_forgotten_no_revocation)
{
    struct fl_revoked whom = {.name = "edge-001"};
    int64_t right = r.now_ms;

    ck_assert_uint_eq(revoke_by(fl_authority_evict, &whom), 1);
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    r.now_ms += 300 * RIG_DAY_MS;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms + 3600 * 1000, NULL, &r.err), FL_OK);
    r.now_ms = right + 3600 * 1000;
    rig_close(&r);
    rig_open(&r);
    ck_assert(rig_revoked(&r, &who, NULL, 0));
    /* But it goes in the end: the certificate is of no use to anybody. */
    r.now_ms = right + 100 * RIG_DAY_MS;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    r.now_ms += RIG_DAY_MS;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    ck_assert(!rig_revoked(&r, &who, NULL, 0));
}

TEST(a_snapshot_stays_what_it_was_and_is_the_same_until_something_changes)
{
    struct fl_revoked whom = {.name = "edge-001"};
    struct fl_revocations *before = NULL;
    struct fl_revocations *same = NULL;
    struct fl_revocations *now = NULL;

    ck_assert_int_eq(fl_authority_revocations(r.a, &before, &r.err), FL_OK);
    ck_assert_int_eq(fl_authority_revocations(r.a, &same, &r.err), FL_OK);
    ck_assert_ptr_eq(before, same);
    ck_assert_uint_eq(revoke_by(fl_authority_disable, &whom), 1);
    ck_assert_int_eq(fl_authority_revocations(r.a, &now, &r.err), FL_OK);
    ck_assert_ptr_ne(before, now);
    ck_assert(!fl_revocations_has(before, &who, NULL, 0));
    ck_assert(fl_revocations_has(now, &who, NULL, 0));
    fl_revocations_unref(before);
    fl_revocations_unref(same);
    fl_revocations_unref(now);
}

TEST(a_thousand_revocations_are_found_each)
{
    struct fl_revoked whom = {.name = NULL};
    struct fl_identity one = who;
    struct fl_revocations *revocations = NULL;
    uint32_t i;

    for (i = 0; i < 1000; i++) {
        uint8_t serial[4] = {(uint8_t)(1 + i % 7), (uint8_t)(i >> 8), (uint8_t)i, 9};

        whom.serial = serial;
        whom.serial_len = 1 + i % 4;
        (void)revoke_by(fl_authority_revoke, &whom);
    }
    ck_assert_int_eq(fl_authority_revocations(r.a, &revocations, &r.err), FL_OK);
    for (i = 0; i < 1000; i++) {
        uint8_t serial[4] = {(uint8_t)(1 + i % 7), (uint8_t)(i >> 8), (uint8_t)i, 9};

        (void)memcpy(one.serial, serial, 4);
        one.serial_len = 1 + i % 4;
        ck_assert(fl_revocations_has(revocations, &one, NULL, 0));
        one.serial[one.serial_len - 1] = 200;
        ck_assert(!fl_revocations_has(revocations, &one, NULL, 0));
    }
    fl_revocations_unref(revocations);
}

/* --- a fleet that joined in one second --- */

TEST(of_ten_thousand_that_joined_in_one_second_no_second_sees_more_than_one_in_a_hundred)
{
    enum { N = 10000 };
    int64_t *due = calloc(N, sizeof(*due));
    int64_t validity = 30 * 86400;
    unsigned most = 0;
    int i;

    ck_assert_ptr_nonnull(due);
    for (i = 0; i < N; i++) {
        struct fl_identity one = who;
        size_t k;

        for (k = 0; k < sizeof(one.key); k++) {
            one.key[k] = (uint8_t)fl_rng_u64(&r.rng);
        }
        for (k = 0; k < one.serial_len; k++) {
            one.serial[k] = (uint8_t)fl_rng_u64(&r.rng);
        }
        due[i] = fl_renewing_due_ms(&one) / 1000 - who.not_before;
        ck_assert(due[i] >= validity * 59 / 100 && due[i] <= validity * 73 / 100);
    }
    for (i = 0; i < N; i++) {
        unsigned n = 0;
        int k;

        for (k = 0; k < N; k++) {
            n += due[k] == due[i];
        }
        most = n > most ? n : most;
    }
    ck_assert_uint_le(most, N / 100);
    free(due);
}

/* --- names without TLS --- */

static int plain(const char *name)
{
    return fl_authority_check_plain(r.a, name, &r.err);
}

TEST(a_name_with_a_certificate_is_refused_in_plaintext_until_its_grace_has_passed)
{
    struct fl_revoked whom = {.name = "edge-001"};

    ck_assert_int_eq(plain("edge-002"), FL_OK);
    ck_assert_int_eq(plain("edge-001"), FL_EPERM);
    rig_says(&r, "'edge-001' has a certificate and is refused without TLS");
    (void)revoke_by(fl_authority_evict, &whom);
    ck_assert_int_eq(plain("edge-001"), FL_EPERM);
    rig_close(&r);
    rig_open(&r);
    ck_assert_int_eq(plain("edge-001"), FL_EPERM);
    /* What has ended is forgotten as of the time of the clean-up before, so there are two. */
    r.now_ms += 400 * RIG_DAY_MS;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    r.now_ms += 2 * RIG_DAY_MS;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    ck_assert_int_eq(plain("edge-001"), FL_OK);
}

TEST(a_name_that_is_revoked_is_refused_in_plaintext)
{
    struct fl_revoked revoked = {.name = "edge-003"};
    struct fl_revoked disabled = {.name = "edge-004"};

    (void)revoke_by(fl_authority_revoke, &revoked);
    (void)revoke_by(fl_authority_disable, &disabled);
    ck_assert_int_eq(plain("edge-003"), FL_EPERM);
    rig_says(&r, "'edge-003' was revoked");
    ck_assert_int_eq(plain("edge-004"), FL_EPERM);
    ck_assert_int_eq(fl_authority_enable(r.a, &disabled, "uid 0 (root)", r.now_ms, NULL, &r.err),
                     FL_OK);
    ck_assert_int_eq(plain("edge-004"), FL_OK);
}

TEST(a_name_shown_with_a_certificate_of_an_own_pki_is_refused_in_plaintext)
{
    int64_t not_after = r.now_ms / 1000 + 100;

    /* Where certificates are issued here, those in the database count. */
    ck_assert_int_eq(fl_authority_note_shown(r.a, "edge-005", not_after, &r.err), FL_OK);
    ck_assert_int_eq(plain("edge-005"), FL_OK);
    rig_close(&r);
    r.conf.own_pki = true;
    rig_open(&r);
    ck_assert_int_eq(fl_authority_note_shown(r.a, "edge-005", not_after, &r.err), FL_OK);
    ck_assert_int_eq(fl_authority_note_shown(r.a, "edge-005", not_after - 50, &r.err), FL_OK);
    ck_assert_int_eq(plain("edge-005"), FL_EPERM);
    rig_close(&r);
    rig_open(&r);
    ck_assert_int_eq(plain("edge-005"), FL_EPERM);
    ck_assert_int_eq(plain("edge-006"), FL_OK);
}
