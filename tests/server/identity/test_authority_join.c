/* Who is let in by which invitation, and who is not. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/pki/request.h"
#include "server/identity/audit.h"
#include "server/identity/certificates.h"
#include "tests/lib/authority_rig.h"
#include "tests/lib/suites.h"

static struct rig r;
static struct fl_key *key, *other;

static void setup(void)
{
    rig_begin(&r, 1);
    authority_rig_init(&r);
    key = rig_key();
    other = rig_key();
}

static void teardown(void)
{
    fl_key_unref(key);
    fl_key_unref(other);
    rig_end(&r);
}

/* --- certificates that there are --- */

struct listed {
    size_t n;
    size_t by_state[7];
};

static int list(void *ctx, const struct fl_certificate *c)
{
    struct listed *l = ctx;

    l->n++;
    l->by_state[c->state]++;
    return FL_OK;
}

static struct listed certificates(const char *name)
{
    struct listed l = {0};

    ck_assert_int_eq(fl_authority_certificates(r.a, name, r.now_ms, list, &l, &r.err), FL_OK);
    return l;
}

TEST_CASE("join", setup, teardown);

TEST(one_line_gives_one_name_and_one_certificate)
{
    struct fl_invite in;
    struct fl_identity who;

    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_str_eq(in.addresses[0].host, "fl.example.org");
    ck_assert_uint_eq(in.addresses[0].port, 7443);
    ck_assert_uint_eq(in.n_addresses, 2); /* all of its hosts */
    ck_assert_str_eq(in.addresses[1].host, "10.77.0.1");
    ck_assert_uint_eq(in.addresses[1].port, 7443);
    ck_assert_str_eq(in.federation, "digits");
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    ck_assert_str_eq(r.joined.name, "edge-001");
    who = rig_who(&r);
    ck_assert_str_eq(who.name, "edge-001");
    ck_assert_int_eq(who.role, FL_ROLE_CLIENT);
    ck_assert_str_eq(who.federation, "digits");
    ck_assert_int_eq(who.not_before, r.now_ms / 1000 - 600);
    ck_assert_int_eq(who.not_after, r.now_ms / 1000 + 30 * 86400);
    ck_assert_uint_eq(certificates("edge-001").n, 1);
    rig_said(&r, "audit: join edge-001: ok");
}

TEST(the_same_line_with_the_same_key_gives_the_same_certificate_again)
{
    struct fl_invite in;
    struct fl_identity first;
    struct fl_identity again;

    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    first = rig_who(&r);
    rig_close(&r);
    rig_open(&r);
    r.now_ms += 1800 * 1000;
    ck_assert_int_eq(rig_join(&r, &in, key, "edge-001", "10.9.9.9:1"), FL_OK);
    ck_assert(r.joined.again);
    again = rig_who(&r);
    ck_assert_mem_eq(first.serial, again.serial, first.serial_len);
    ck_assert_uint_eq(certificates("").n, 1);
}

TEST(another_key_is_refused_and_told_whose_it_is)
{
    struct fl_invite in;

    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    ck_assert_int_eq(rig_join(&r, &in, other, "", NULL), FL_EREFUSED);
    rig_says(&r, "used by another key, for 'edge-001'");
    rig_says(&r, "flctl evict edge-001");
    ck_assert_uint_eq(certificates("").n, 1);
}

TEST(a_line_that_ended_or_was_withdrawn_says_so_and_names_the_command)
{
    struct fl_invite in;
    char name[FL_IDENTITY_NAME_MAX];
    char prefix[FL_TOKEN_PREFIX_TEXT];
    uint32_t used = 0;

    rig_invite(&r, "edge-001", 0, &in);
    r.now_ms += 3600 * 1000 + 7200 * 1000;
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_EREFUSED);
    rig_says(&r, "expired at 2026-");
    rig_says(&r, "2 hours ago");
    rig_says(&r, "flctl invite edge-001");
    rig_invite(&r, "edge-002", 0, &in);
    (void)fl_token_prefix(in.token, prefix);
    ck_assert_int_eq(
        fl_authority_withdraw(r.a, prefix, "uid 0 (root)", r.now_ms, name, &used, &r.err), FL_OK);
    ck_assert_str_eq(name, "edge-002");
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_EREFUSED);
    rig_says(&r, "was withdrawn");
    rig_says(&r, "flctl invite edge-002");
    ck_assert_int_eq(
        fl_authority_withdraw(r.a, "AAAA", "uid 0 (root)", r.now_ms, name, &used, &r.err),
        FL_ENOENT);
    rig_says(&r, "flctl invitations");
}

TEST(a_pattern_lets_in_whom_it_fits_as_often_as_it_says)
{
    struct fl_invite in;
    struct fl_key *third = rig_key();

    rig_invite(&r, "edge-*", 2, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_EINVAL);
    rig_says(&r, "choose one with");
    ck_assert_int_eq(rig_join(&r, &in, key, "desk-1", NULL), FL_EREFUSED);
    rig_says(&r, "is for 'edge-*'");
    rig_says(&r, "flctl invite desk-1");
    ck_assert_int_eq(rig_join(&r, &in, key, "-edge", NULL), FL_EINVAL);
    rig_says(&r, "not starting with a dot or '-'");
    ck_assert_int_eq(rig_join(&r, &in, key, "edge-1", NULL), FL_OK);
    ck_assert_int_eq(rig_join(&r, &in, key, "edge-2", NULL), FL_EREFUSED);
    rig_says(&r, "as 'edge-1'");
    ck_assert_int_eq(rig_join(&r, &in, other, "edge-2", NULL), FL_OK);
    ck_assert_int_eq(rig_join(&r, &in, third, "edge-3", NULL), FL_EREFUSED);
    rig_says(&r, "used up, by 2 other keys");
    ck_assert_int_eq(rig_join(&r, &in, key, "edge-1", NULL), FL_OK);
    fl_key_unref(third);
}

TEST(a_name_that_is_taken_stays_with_its_key)
{
    struct fl_invite in;
    struct fl_invite pattern;

    rig_invite(&r, "*", 5, &pattern);
    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    r.now_ms += 60 * 1000;
    ck_assert_int_eq(rig_join(&r, &pattern, other, "edge-001", NULL), FL_EEXIST);
    rig_says(&r, "taken by another key");
    rig_says(&r, "flctl invite edge-001");
    /* As long as its certificate can be renewed. */
    r.now_ms += 91 * RIG_DAY_MS;
    rig_invite(&r, "*", 5, &pattern);
    ck_assert_int_eq(rig_join(&r, &pattern, other, "edge-001", NULL), FL_OK);
}

TEST(a_host_that_was_installed_anew_takes_its_name_back)
{
    struct fl_invite before;
    struct fl_invite in;
    struct fl_identity old;
    struct fl_identity fresh;
    char why[512];

    rig_invite(&r, "edge-001", 0, &in);
    rig_invite(&r, "edge-001", 0, &before);
    r.now_ms += 1000;
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    old = rig_who(&r);
    /* Made before the name was joined under: it does not mean who joined. */
    ck_assert_int_eq(rig_join(&r, &before, other, "", NULL), FL_EEXIST);
    r.now_ms += 1000;
    rig_invite(&r, "edge-001", 0, &in);
    ck_assert(!rig_revoked(&r, &old, NULL, 0));
    /* The old host renewing in between changes nothing about it. */
    r.now_ms += 1000;
    ck_assert_int_eq(rig_renew(&r, &old, key), FL_OK);
    ck_assert_int_eq(rig_join(&r, &in, other, "", NULL), FL_OK);
    fresh = rig_who(&r);
    ck_assert(rig_revoked(&r, &old, why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, "replaced"));
    ck_assert(!rig_revoked(&r, &fresh, NULL, 0));
    ck_assert_int_eq(rig_renew(&r, &old, key), FL_EPERM);
    rig_says(&r, "another host joined by this name");
    ck_assert_uint_eq(certificates("edge-001").by_state[FL_CERTIFICATE_REPLACED], 2);
    ck_assert_uint_eq(certificates("edge-001").by_state[FL_CERTIFICATE_VALID], 1);
}

TEST(one_key_has_one_name)
{
    struct fl_invite in;

    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    rig_invite(&r, "edge-002", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_EEXIST);
    rig_says(&r, "in use by 'edge-001'");
}

TEST(wrong_tokens_are_counted_for_their_address_alone_and_a_right_one_is_heard_all_the_same)
{
    struct fl_invite in;
    struct fl_invite wrong;
    int i;

    rig_invite(&r, "edge-001", 0, &in);
    wrong = in;
    wrong.token[20] ^= 1;
    for (i = 0; i < 20; i++) {
        ck_assert_int_eq(rig_join(&r, &wrong, other, "", "10.0.0.9:77"), FL_ENOENT);
    }
    rig_says(&r, "no invitation has this token");
    ck_assert_int_eq(rig_join(&r, &wrong, other, "", "10.0.0.9:78"), FL_EAGAIN);
    rig_says(&r, "too many wrong tokens from 10.0.0.9");
    ck_assert_int_eq(rig_join(&r, &wrong, other, "", "10.0.0.8:78"), FL_ENOENT);
    /* One comes back. */
    r.now_ms += 6000;
    ck_assert_int_eq(rig_join(&r, &wrong, other, "", "10.0.0.9:78"), FL_ENOENT);
    ck_assert_int_eq(rig_join(&r, &wrong, other, "", "10.0.0.9:78"), FL_EAGAIN);
    ck_assert_int_eq(rig_join(&r, &in, key, "", "10.0.0.9:79"), FL_OK);
    /* An IPv6 host has a whole /64. */
    for (i = 0; i < 20; i++) {
        char address[64];

        (void)snprintf(address, sizeof(address), "[2001:db8::%x]:1", i + 1);
        ck_assert_int_eq(rig_join(&r, &wrong, other, "", address), FL_ENOENT);
    }
    ck_assert_int_eq(rig_join(&r, &wrong, other, "", "[2001:db8::ffff]:1"), FL_EAGAIN);
    ck_assert_int_eq(rig_join(&r, &wrong, other, "", "[2001:db8:0:1::1]:1"), FL_ENOENT);
}

/* --- audit --- */

struct lines {
    size_t n;
    char last[400];
    char all[65536];
};

static int keep(void *ctx, const struct fl_audit_line *line)
{
    struct lines *l = ctx;
    size_t at = strlen(l->all);

    l->n++;
    (void)snprintf(l->last, sizeof(l->last), "%s|%s|%s|%s", line->who, line->what, line->object,
                   line->result);
    (void)snprintf(l->all + at, sizeof(l->all) - at, "%s\n", l->last);
    return FL_OK;
}

static struct lines *audit(void)
{
    static struct lines l;

    l = (struct lines){0};
    ck_assert_int_eq(fl_authority_audit_lines(r.a, 100000, keep, &l, &r.err), FL_OK);
    return &l;
}

TEST_CASE("audit", setup, teardown);

TEST(a_thousand_refusals_are_two_lines_and_a_count)
{
    struct fl_invite in;
    struct fl_invite wrong;
    size_t before;
    int i;

    rig_invite(&r, "edge-001", 0, &in);
    wrong = in;
    wrong.token[20] ^= 1;
    before = audit()->n;
    for (i = 0; i < 1000; i++) {
        (void)rig_join(&r, &wrong, other, "", "10.0.0.9:77");
    }
    ck_assert_uint_eq(audit()->n, before + 1);
    r.now_ms += 3601 * 1000;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    ck_assert_uint_eq(audit()->n, before + 2);
    ck_assert_str_eq(audit()->last, "10.0.0.9|join||refused 999 more times");
}

TEST(refusals_of_ten_thousand_addresses_are_a_bounded_number_of_lines)
{
    struct fl_invite wrong;
    size_t before;
    int i;

    rig_invite(&r, "edge-001", 0, &wrong);
    wrong.token[20] ^= 1;
    before = audit()->n;
    for (i = 0; i < 10000; i++) {
        char address[64];

        (void)snprintf(address, sizeof(address), "10.%d.%d.1:5", i / 250, i % 250);
        ck_assert_int_eq(rig_join(&r, &wrong, other, "", address), FL_ENOENT);
    }
    ck_assert_uint_eq(audit()->n, before + FL_AUDIT_REFUSALS);
    r.now_ms += 3601 * 1000;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    ck_assert_uint_le(audit()->n, before + 2 * FL_AUDIT_REFUSALS + 2);
}

TEST(what_is_done_leaves_a_line_and_no_secret)
{
    struct fl_invite in;
    struct fl_revoked whom = {.name = "edge-001"};
    char line[FL_INVITE_MAX];
    struct lines *l;

    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(fl_invite_write(line, sizeof(line), &in, NULL), FL_OK);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    ck_assert_int_eq(rig_renew(&r, &(struct fl_identity){0}, key), FL_EPERM);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    {
        struct fl_identity who = rig_who(&r);

        ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
    }
    ck_assert_int_eq(
        fl_authority_disable(r.a, &whom, "holiday", "uid 0 (root)", r.now_ms, NULL, &r.err), FL_OK);
    ck_assert_int_eq(
        fl_authority_audit(r.a, "uid 0 (root)", "pause", "round 7", "ok", r.now_ms, &r.err), FL_OK);
    l = audit();
    ck_assert_ptr_nonnull(strstr(l->all, "uid 0 (root)|invite|edge-001|ok, invitation "));
    ck_assert_ptr_nonnull(strstr(l->all, "10.0.0.1:1000|join|edge-001|ok, "));
    ck_assert_ptr_nonnull(strstr(l->all, "10.0.0.1:1000|renew|edge-001|ok, "));
    ck_assert_ptr_nonnull(strstr(l->all, "|disable|edge-001|ok, 2 certificates: holiday"));
    ck_assert_ptr_nonnull(strstr(l->all, "|pause|round 7|ok"));
    /* The last 20 letters of a line are of the secret part of its token. */
    ck_assert_ptr_null(strstr(l->all, line + strlen(line) - 20));
    ck_assert_ptr_null(strstr(r.said, line + strlen(line) - 20));
}

/* --- fleets --- */

struct ranks {
    size_t n;
    struct fl_invite last;
};

static int count_line(void *ctx, size_t i, const struct fl_invited *invited)
{
    struct ranks *f = ctx;

    ck_assert_uint_eq(i, f->n);
    f->n++;
    ck_assert_int_eq(fl_invite_parse(invited->line, strlen(invited->line), &f->last, NULL), FL_OK);
    return FL_OK;
}

TEST(ten_thousand_invitations_are_one_transaction_all_or_none)
{
    enum { N = 10000 };
    struct fl_invitation *list_of = calloc(N, sizeof(*list_of));
    char(*names)[16] = calloc(N, sizeof(*names));
    struct ranks ranks = {0};
    size_t lines;
    size_t i;

    ck_assert(list_of != NULL && names != NULL);
    for (i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "edge-%05zu", i);
        list_of[i].name = names[i];
    }
    list_of[N - 1].name = "-edge";
    ck_assert_int_eq(
        fl_authority_invite(r.a,
                            &(struct fl_invitations){.list = list_of, .n = N, .by = "uid 0 (root)"},
                            r.now_ms, count_line, &ranks, &r.err),
        FL_EINVAL);
    list_of[N - 1].name = "not a name";
    lines = audit()->n;
    ck_assert_int_eq(
        fl_authority_invite(r.a,
                            &(struct fl_invitations){.list = list_of, .n = N, .by = "uid 0 (root)"},
                            r.now_ms, count_line, &ranks, &r.err),
        FL_EINVAL);
    rig_says(&r, "number 10000 of 10000, no invitation was created");
    rig_says(&r, "'not a name'");
    ck_assert_uint_eq(ranks.n, 0);
    ck_assert_uint_eq(audit()->n, lines);
    list_of[N - 1].name = names[N - 1];
    ck_assert_int_eq(
        fl_authority_invite(r.a,
                            &(struct fl_invitations){.list = list_of, .n = N, .by = "uid 0 (root)"},
                            r.now_ms, count_line, &ranks, &r.err),
        FL_OK);
    ck_assert_uint_eq(ranks.n, N);
    ck_assert_uint_eq(audit()->n, lines + N);
    rig_said(&r, "more entries (flctl audit)");
    ck_assert_int_eq(rig_join(&r, &ranks.last, key, "", NULL), FL_OK);
    ck_assert_str_eq(r.joined.name, names[N - 1]);
    free(list_of);
    free(names);
}

/* What has ended is forgotten a day after it was seen to have. */
static void look_twice(void)
{
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    r.now_ms += RIG_DAY_MS;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
}

static int info_of(void *ctx, const struct fl_invitation_info *info)
{
    char *out = ctx;
    size_t at = strlen(out);

    (void)snprintf(out + at, 2000 - at, "%s %u/%u %s %s %zu%s%s;", info->name, info->used,
                   info->uses, fl_invitation_state_text(info->state), info->by, info->n_labels,
                   info->n_labels > 0 ? info->labels[0].key : "",
                   info->n_labels > 0 ? info->labels[0].value : "");
    return FL_OK;
}

TEST(invitations_are_listed_by_state_and_hand_on_their_labels)
{
    struct fl_pair labels[] = {{(char *)(uintptr_t) "site", (char *)(uintptr_t) "kiel"}};
    struct fl_invitation in = {.name = "edge-*", .uses = 2, .labels = labels, .n_labels = 1};
    struct ranks ranks = {0};
    char text[2000] = "";

    ck_assert_int_eq(fl_authority_invite(r.a,
                                         &(struct fl_invitations){.list = &in, .n = 1, .by = "ops"},
                                         r.now_ms, count_line, &ranks, &r.err),
                     FL_OK);
    ck_assert_int_eq(rig_join(&r, &ranks.last, key, "edge-1", NULL), FL_OK);
    ck_assert_uint_eq(r.joined.n_labels, 1);
    ck_assert_str_eq(r.joined.labels[0].key, "site");
    ck_assert_str_eq(r.joined.labels[0].value, "kiel");
    ck_assert_int_eq(fl_authority_invitations(r.a, r.now_ms, info_of, text, &r.err), FL_OK);
    ck_assert_str_eq(text, "edge-* 1/2 open ops 1sitekiel;");
    text[0] = '\0';
    ck_assert_int_eq(fl_authority_invitations(r.a, r.now_ms + 3600 * 1000, info_of, text, &r.err),
                     FL_OK);
    ck_assert_str_eq(text, "edge-* 1/2 over ops 1sitekiel;");
    /* Forgotten a month later; the certificate stays. */
    r.now_ms += 31 * RIG_DAY_MS;
    look_twice();
    text[0] = '\0';
    ck_assert_int_eq(fl_authority_invitations(r.a, r.now_ms, info_of, text, &r.err), FL_OK);
    ck_assert_str_eq(text, "");
    ck_assert_uint_eq(certificates("edge-1").by_state[FL_CERTIFICATE_LAPSED], 1);
    r.now_ms += 62 * RIG_DAY_MS;
    look_twice();
    ck_assert_uint_eq(certificates("").n, 0);
}

TEST(an_invitation_that_makes_no_sense_is_refused)
{
    struct fl_invitation in = {.name = "edge-1", .uses = 2};
    struct ranks ranks = {0};

    ck_assert_int_eq(fl_authority_invite(r.a,
                                         &(struct fl_invitations){.list = &in, .n = 1, .by = "ops"},
                                         r.now_ms, count_line, &ranks, &r.err),
                     FL_EINVAL);
    rig_says(&r, "has one use");
    in = (struct fl_invitation){.name = "../etc"};
    ck_assert_int_eq(fl_authority_invite(r.a,
                                         &(struct fl_invitations){.list = &in, .n = 1, .by = "ops"},
                                         r.now_ms, count_line, &ranks, &r.err),
                     FL_EINVAL);
    in = (struct fl_invitation){.name = "a", .valid_ms = INT64_MAX};
    ck_assert_int_eq(fl_authority_invite(r.a,
                                         &(struct fl_invitations){.list = &in, .n = 1, .by = "ops"},
                                         r.now_ms, count_line, &ranks, &r.err),
                     FL_EINVAL);
    rig_says(&r, "a year at most");
}

/* --- renewing --- */

TEST_CASE("renew", setup, teardown);

TEST(a_lost_reply_to_a_renewal_is_given_again)
{
    struct fl_invite in;
    struct fl_identity who;
    struct fl_identity next;
    struct fl_identity again;

    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    who = rig_who(&r);
    r.now_ms += 20 * RIG_DAY_MS;
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
    next = rig_who(&r);
    ck_assert_str_eq(next.name, "edge-001");
    ck_assert_int_eq(next.not_after, r.now_ms / 1000 + 30 * 86400);
    r.now_ms += RIG_DAY_MS;
    rig_close(&r);
    rig_open(&r);
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
    ck_assert(r.joined.again);
    again = rig_who(&r);
    ck_assert_mem_eq(again.serial, next.serial, next.serial_len);
    ck_assert_uint_eq(certificates("edge-001").n, 2);
}

TEST(what_was_made_while_the_clock_was_ahead_is_not_given_again)
{
    struct fl_invite in;
    struct fl_identity who;
    struct fl_identity next;

    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    who = rig_who(&r);
    r.now_ms += 40 * RIG_DAY_MS;
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
    next = rig_who(&r);
    r.now_ms -= 20 * RIG_DAY_MS;
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
    ck_assert(!r.joined.again);
    who = rig_who(&r);
    ck_assert_mem_ne(who.serial, next.serial, next.serial_len);
    ck_assert_int_le(who.not_before, r.now_ms / 1000);
}

TEST(a_certificate_that_is_over_is_renewed_within_its_grace_and_then_names_the_commands)
{
    struct fl_invite in;
    struct fl_identity who;

    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    who = rig_who(&r);
    r.now_ms += 89 * RIG_DAY_MS;
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
    r.now_ms += 2 * RIG_DAY_MS;
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_EPERM);
    rig_says(&r, "flctl invite edge-001");
    rig_says(&r, "fl-clientd --join");
    rig_says(&r, "61 days ago");
}

TEST(a_client_that_asks_for_ever_new_keys_is_held_up)
{
    struct fl_invite in;
    struct fl_identity who;
    int n = 0;

    rig_invite(&r, "edge-001", 0, &in);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    who = rig_who(&r);
    while (n < 100) {
        struct fl_key *fresh = rig_key();
        int rv = rig_renew(&r, &who, fresh);

        fl_key_unref(fresh);
        if (rv != FL_OK) {
            ck_assert_int_eq(rv, FL_EAGAIN);
            rig_says(&r, "got 24 certificates");
            break;
        }
        n++;
    }
    ck_assert_int_eq(n, 23);
    r.now_ms += RIG_DAY_MS + 1;
    ck_assert_int_eq(rig_renew(&r, &who, other), FL_OK);
}

static int issue_admin(const char *name, const struct fl_key *with)
{
    struct fl_buf der;
    int rv;

    fl_buf_init(&der, FL_CSR_MAX);
    ck_assert_int_eq(fl_csr_make(with, name, &der), FL_OK);
    fl_joined_done(&r.joined);
    rv = fl_authority_issue_admin(
        r.a,
        &(struct fl_admin_wanted){.name = name,
                                  .request = {.data = der.data, .len = der.len},
                                  .valid_ms = 30 * RIG_DAY_MS,
                                  .by = "uid 0 (root)"},
        r.now_ms, &r.joined, &r.err);
    fl_buf_done(&der);
    return rv;
}

TEST(an_admin_is_given_the_next_certificate_in_the_last_third_of_the_one_before)
{
    struct fl_invite in;
    struct fl_identity who;
    int64_t first_ends;

    ck_assert_int_eq(issue_admin("-jane", key), FL_EINVAL);
    rig_says(&r, "not starting with a dot or '-'");
    ck_assert_int_eq(issue_admin("jane", key), FL_OK);
    who = rig_who(&r);
    first_ends = who.not_after;
    r.now_ms += 19 * RIG_DAY_MS;
    ck_assert_int_eq(issue_admin("jane", other), FL_EEXIST);
    rig_says(&r, "the next one is issued from");
    rig_says(&r, "flctl evict jane");
    r.now_ms += 2 * RIG_DAY_MS;
    ck_assert_int_eq(issue_admin("jane", other), FL_OK);
    who = rig_who(&r);
    ck_assert_int_eq(who.role, FL_ROLE_ADMIN);
    ck_assert_int_gt(who.not_after, first_ends);
    /* A client's name is not had so, however old its certificate is. */
    rig_invite(&r, "edge-001", 0, &in);
    fl_key_unref(key);
    key = rig_key();
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
    r.now_ms += 25 * RIG_DAY_MS;
    fl_key_unref(other);
    other = rig_key();
    ck_assert_int_eq(issue_admin("edge-001", other), FL_EEXIST);
    rig_says(&r, "is taken by a client");
}

TEST(an_admin_is_one_by_his_certificate)
{
    struct fl_invite in;
    struct fl_identity who;
    struct fl_buf der;

    fl_buf_init(&der, FL_CSR_MAX);
    ck_assert_int_eq(fl_csr_make(key, "jane", &der), FL_OK);
    ck_assert_int_eq(fl_authority_issue_admin(
                         r.a,
                         &(struct fl_admin_wanted){.name = "jane",
                                                   .request = {.data = der.data, .len = der.len},
                                                   .valid_ms = 86400 * 1000,
                                                   .by = "uid 0 (root)"},
                         r.now_ms, &r.joined, &r.err),
                     FL_OK);
    who = rig_who(&r);
    ck_assert_int_eq(who.role, FL_ROLE_ADMIN);
    ck_assert_int_eq(who.not_after, r.now_ms / 1000 + 86400);
    fl_joined_done(&r.joined);
    fl_buf_done(&der);
    rig_invite(&r, "*", 2, &in);
    ck_assert_int_eq(rig_join(&r, &in, other, "jane", NULL), FL_EEXIST);
}

TEST(a_request_that_is_none_is_refused_and_costs_no_use)
{
    struct fl_invite in;
    struct fl_joining join = {
        .name = "", .request = (const uint8_t *)"half", .request_len = 4, .address = "10.0.0.1:1"};

    rig_invite(&r, "edge-001", 0, &in);
    join.token = in.token;
    ck_assert_int_ne(fl_authority_join(r.a, &join, r.now_ms, &r.joined, &r.err), FL_OK);
    ck_assert_int_eq(rig_join(&r, &in, key, "", NULL), FL_OK);
}
