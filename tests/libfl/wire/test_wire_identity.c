/*
 * Every check of the messages about joining and certificates, with the words that the peer's author
 * gets to read; the messages are made with protobuf-c itself, so that they can be wrong in every
 * way.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "fl/v1/identity.pb-c.h"
#include "libfl/wire/admin_identity.h"
#include "tests/lib/suites.h"
#include "tests/lib/wire_bad.h"

static char text_pattern[] = "edge-*";
static char text_long_value[FL_WIRE_MAX_TEXT];
static char text_long_reason[FL_WIRE_MAX_REASON + 2];
static uint8_t large[FL_WIRE_MAX_CERTIFICATE + 1];

static void setup(void)
{
    bad_setup();
    (void)memset(text_long_value, 'v', sizeof(text_long_value) - 1);
    (void)memset(text_long_reason, 'r', sizeof(text_long_reason) - 1);
    large[0] = 0x30;
}

static ProtobufCBinaryData der(size_t len)
{
    return (ProtobufCBinaryData){len, large};
}

/* The message is refused with these words, and `ret` stays as it was. */
#define EXPECT(kind, message, expected)                                        \
    do {                                                                       \
        struct kind ret_;                                                      \
        struct kind before_;                                                   \
        struct fl_err err_ = {0};                                              \
        size_t len_ = 0;                                                       \
        uint8_t *data_ = packed((message), &len_);                             \
        (void)memset(&ret_, 0x5a, sizeof(ret_));                               \
        (void)memset(&before_, 0x5a, sizeof(before_));                         \
        ck_assert_int_eq(kind##_decode(data_, len_, &ret_, &err_), FL_EPROTO); \
        ck_assert_str_eq(err_.msg, expected);                                  \
        ck_assert_mem_eq(&ret_, &before_, sizeof(ret_));                       \
        ck_assert_int_eq(kind##_decode(data_, len_, &ret_, NULL), FL_EPROTO);  \
        free(data_);                                                           \
    } while (0)

#define NOT_A_NAME "is not a name (1 to 127 of [A-Za-z0-9._-], not starting with a dot)"

static const char *spoil_join(int row, Fl__V1__JoinRequest *m)
{
    switch (row) {
    case 0:
        m->token = run_of(0);
        return "JoinRequest.token: 0 bytes, expected 21";
    case 1:
        m->token = run_of(20);
        return "JoinRequest.token: 20 bytes, expected 21";
    case 2:
        m->token = run_of(22);
        return "JoinRequest.token: 22 bytes, expected 21";
    case 3:
        m->name = text_slash;
        return "JoinRequest.name: 'a/b' " NOT_A_NAME;
    case 4:
        m->name = text_pattern;
        return "JoinRequest.name: 'edge-*' " NOT_A_NAME;
    case 5:
        m->request = der(0);
        return "JoinRequest.request: 0 bytes, expected 1 to 4096";
    case 6:
        m->request = der(FL_WIRE_MAX_CSR + 1);
        return "JoinRequest.request: 4097 bytes, expected 1 to 4096";
    case 7:
        m->agent = text_latin;
        return "JoinRequest.agent: the text is not UTF-8";
    case 8:
        m->agent = text_long;
        return "JoinRequest.agent: 1025 bytes of text, at most 1024 are taken";
    case 9:
        m->time_ms = FL_WIRE_MAX_TIME_MS + 1;
        return "JoinRequest.time_ms: 253402300800000 is out of range, expected 0 to "
               "253402300799999";
    default:
        return NULL;
    }
}
#define N_JOIN 10

TEST_CASE("all", setup, NULL);

TEST_EACH(a_bad_request_to_join_is_refused, N_JOIN)
{
    Fl__V1__JoinRequest msg;
    const char *expected;

    fl__v1__join_request__init(&msg);
    msg.token = run_of(FL_WIRE_TOKEN);
    msg.request = der(5);
    expected = spoil_join(_i, &msg);
    EXPECT(fl_wire_join, &msg.base, expected);
}

static const char *spoil_joined(int row, Fl__V1__JoinReply *m)
{
    switch (row) {
    case 0:
        m->name = text_empty;
        return "JoinReply.name: '' " NOT_A_NAME;
    case 1:
        m->federation = text_dot;
        return "JoinReply.federation: '.hidden' " NOT_A_NAME;
    case 2:
        m->n_chain = 0;
        return "JoinReply.chain: no certificate";
    case 3:
        m->n_chain = FL_WIRE_MAX_CHAIN + 1;
        return "JoinReply.chain: 9 entries, at most 8 are taken";
    case 4:
        m->chain[0] = der(0);
        return "JoinReply.chain: 0 bytes, expected 1 to 16384";
    case 5:
        m->roots[0] = der(FL_WIRE_MAX_CERTIFICATE + 1);
        return "JoinReply.roots: 16385 bytes, expected 1 to 16384";
    case 6:
        m->n_roots = 0;
        return "JoinReply.roots: no certificate";
    case 7:
        m->labels->labels[0]->key = text_empty;
        return "JoinReply.labels: an entry has no key";
    case 8:
        m->labels->n_labels = FL_WIRE_MAX_PAIRS + 1;
        return "JoinReply.labels: 65 entries, at most 64 are taken";
    case 9:
        m->labels->n_labels = 2;
        m->labels->labels[0]->value = text_long_value;
        return "JoinReply.labels: 2054 bytes of labels, at most 2048 are taken";
    case 10:
        m->time_ms = UINT64_MAX;
        return "JoinReply.time_ms: 18446744073709551615 is out of range, expected 0 to "
               "253402300799999";
    default:
        return NULL;
    }
}
#define N_JOINED 11

TEST_EACH(a_bad_answer_to_one_who_joins_is_refused, N_JOINED)
{
    Fl__V1__JoinReply msg;
    Fl__V1__Labels labels;
    Fl__V1__Labels__LabelsEntry label;
    Fl__V1__Labels__LabelsEntry *entries[FL_WIRE_MAX_PAIRS + 1];
    ProtobufCBinaryData chain[FL_WIRE_MAX_CHAIN + 1];
    ProtobufCBinaryData roots[FL_WIRE_MAX_CHAIN + 1];
    const char *expected;
    size_t i;

    fl__v1__join_reply__init(&msg);
    fl__v1__labels__init(&labels);
    fl__v1__labels__labels_entry__init(&label);
    label.key = text_ok;
    label.value = text_ok;
    for (i = 0; i <= FL_WIRE_MAX_PAIRS; i++) {
        entries[i] = &label;
    }
    for (i = 0; i <= FL_WIRE_MAX_CHAIN; i++) {
        chain[i] = roots[i] = der(4);
    }
    labels.labels = entries;
    labels.n_labels = 1;
    msg.name = msg.federation = text_ok;
    msg.chain = chain;
    msg.roots = roots;
    msg.n_chain = msg.n_roots = 1;
    msg.labels = &labels;
    expected = spoil_joined(_i, &msg);
    EXPECT(fl_wire_joined, &msg.base, expected);
}

TEST(a_bad_renewal_is_refused)
{
    Fl__V1__RenewRequest request;
    Fl__V1__RenewReply reply;
    ProtobufCBinaryData chain = der(4);

    fl__v1__renew_request__init(&request);
    EXPECT(fl_wire_renew, &request.base, "RenewRequest.request: 0 bytes, expected 1 to 4096");
    request.request = der(4);
    request.time_ms = UINT64_MAX;
    EXPECT(fl_wire_renew, &request.base,
           "RenewRequest.time_ms: 18446744073709551615 is out of range, expected 0 to "
           "253402300799999");
    fl__v1__renew_reply__init(&reply);
    EXPECT(fl_wire_renewed, &reply.base, "RenewReply.chain: no certificate");
    reply.chain = &chain;
    reply.n_chain = 1;
    EXPECT(fl_wire_renewed, &reply.base, "RenewReply.roots: no certificate");
}

TEST(bad_invitations_are_refused)
{
    static const char no_pattern[] = "InviteRequest.invitations.name: is neither a name nor a "
                                     "pattern (1 to 127 of [A-Za-z0-9._*?-], not starting with a "
                                     "dot)";
    static const char no_prefix[] = ".prefix: is not the beginning of a token (4 of [A-Za-z0-9_-], "
                                    "as flctl invitations lists it)";
    static Fl__V1__NewInvitation *list[FL_WIRE_MAX_INVITES + 1];
    char expected[256];
    Fl__V1__InviteRequest invite;
    Fl__V1__NewInvitation good;
    Fl__V1__NewInvitation bad;
    Fl__V1__InviteReply invited;
    Fl__V1__InvitationInfo info;
    size_t i;

    fl__v1__invite_request__init(&invite);
    fl__v1__new_invitation__init(&good);
    fl__v1__new_invitation__init(&bad);
    good.name = text_pattern;
    for (i = 0; i <= FL_WIRE_MAX_INVITES; i++) {
        list[i] = &good;
    }
    EXPECT(fl_wire_invite, &invite.base, "InviteRequest.invitations: empty, expected at least one");
    invite.invitations = list;
    invite.n_invitations = FL_WIRE_MAX_INVITES + 1;
    EXPECT(fl_wire_invite, &invite.base,
           "InviteRequest.invitations: 10001 entries, at most 10000 are taken");
    invite.n_invitations = 2;
    list[1] = &bad;
    EXPECT(fl_wire_invite, &invite.base, no_pattern);
    bad.name = text_slash;
    EXPECT(fl_wire_invite, &invite.base, no_pattern);
    bad.name = text_long_name;
    EXPECT(fl_wire_invite, &invite.base, no_pattern);
    bad.name = text_pattern;
    bad.valid_ms = FL_WIRE_MAX_VALID_MS + 1;
    EXPECT(fl_wire_invite, &invite.base,
           "InviteRequest.invitations.valid_ms: 3155760000001 is out of range, expected 0 to "
           "3155760000000");
    fl__v1__invite_reply__init(&invited);
    invited.prefix = text_ok;
    (void)snprintf(expected, sizeof(expected), "InviteReply%s", no_prefix);
    EXPECT(fl_wire_invited, &invited.base, expected);
    fl__v1__invitation_info__init(&info);
    info.prefix = text_slash;
    (void)snprintf(expected, sizeof(expected), "InvitationInfo%s", no_prefix);
    EXPECT(fl_wire_invitation, &info.base, expected);
}

TEST(a_whole_fleet_is_invited_at_once)
{
    static struct fl_wire_new_invitation list[FL_WIRE_MAX_INVITES];
    struct fl_wire_invite invite = {list, FL_WIRE_MAX_INVITES};
    struct fl_wire_invite got;
    struct fl_err err = {0};
    struct fl_buf out;
    size_t i;

    for (i = 0; i < FL_WIRE_MAX_INVITES; i++) {
        (void)memset(list[i].name, 'a', FL_NAME_MAX - 1);
    }
    fl_buf_init(&out, 8u << 20);
    ck_assert_int_eq(fl_wire_invite_encode(&invite, &out), FL_OK);
    ck_assert_msg(fl_wire_invite_decode(out.data, out.len, &got, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(got.n, FL_WIRE_MAX_INVITES);
    fl_wire_invite_done(&got);
    fl_buf_clear(&out);
    for (i = 0; i < FL_WIRE_MAX_INVITES; i++) { /* as dense as can be */
        list[i].name[1] = '\0';
    }
    ck_assert_int_eq(fl_wire_invite_encode(&invite, &out), FL_OK);
    ck_assert_msg(fl_wire_invite_decode(out.data, out.len, &got, &err) == FL_OK, "%s", err.msg);
    fl_wire_invite_done(&got);
    fl_buf_done(&out);
}

TEST(bad_certificates_are_refused)
{
    Fl__V1__CertificateInfo info;
    Fl__V1__IssueAdminRequest issue;
    Fl__V1__ListCertificatesRequest list;

    fl__v1__certificate_info__init(&info);
    info.name = text_ok;
    info.key = run_of(32);
    EXPECT(fl_wire_certificate, &info.base, "CertificateInfo.serial: 0 bytes, expected 1 to 20");
    info.serial = run_of(21);
    EXPECT(fl_wire_certificate, &info.base, "CertificateInfo.serial: 21 bytes, expected 1 to 20");
    info.serial = run_of(20);
    info.key = run_of(31);
    EXPECT(fl_wire_certificate, &info.base, "CertificateInfo.key: 31 bytes, expected 32");
    info.key = run_of(32);
    info.why = text_latin;
    EXPECT(fl_wire_certificate, &info.base, "CertificateInfo.why: the text is not UTF-8");
    fl__v1__issue_admin_request__init(&issue);
    issue.name = text_ok;
    EXPECT(fl_wire_issue_admin, &issue.base,
           "IssueAdminRequest.request: 0 bytes, expected 1 to 4096");
    fl__v1__list_certificates_request__init(&list);
    list.name = text_slash;
    EXPECT(fl_wire_list_certificates, &list.base,
           "ListCertificatesRequest.name: 'a/b' " NOT_A_NAME);
}

TEST(a_revocation_says_what_it_rejects)
{
    Fl__V1__RevokeRequest msg;

    fl__v1__revoke_request__init(&msg);
    EXPECT(fl_wire_revoke, &msg.base, "RevokeRequest: expected a name, a serial number or a key");
    msg.what_case = FL__V1__REVOKE_REQUEST__WHAT_NAME;
    msg.name = text_pattern;
    EXPECT(fl_wire_revoke, &msg.base, "RevokeRequest.name: 'edge-*' " NOT_A_NAME);
    msg.what_case = FL__V1__REVOKE_REQUEST__WHAT_SERIAL;
    msg.serial = run_of(21);
    EXPECT(fl_wire_revoke, &msg.base, "RevokeRequest.serial: 21 bytes, expected 1 to 20");
    msg.what_case = FL__V1__REVOKE_REQUEST__WHAT_KEY;
    msg.key = run_of(20);
    EXPECT(fl_wire_revoke, &msg.base, "RevokeRequest.key: 20 bytes, expected 32");
    msg.key = run_of(32);
    msg.reason = text_long_reason;
    EXPECT(fl_wire_revoke, &msg.base, "RevokeRequest.reason: more than 300 bytes");
}

TEST(the_audit_is_told_in_part)
{
    Fl__V1__ListAuditRequest msg;
    struct fl_err err = {0};
    uint32_t last = 7;
    size_t len = 0;
    uint8_t *data;

    fl__v1__list_audit_request__init(&msg);
    msg.last = FL_WIRE_MAX_AUDIT + 1;
    data = packed(&msg.base, &len);
    ck_assert_int_eq(fl_wire_list_audit_decode(data, len, &last, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "ListAuditRequest.last: 10001 is out of range, expected 0 to 10000");
    ck_assert_uint_eq(last, 7);
    free(data);
}

TEST(a_pattern_is_a_name_with_stars)
{
    ck_assert(fl_wire_pattern_valid("edge-04"));
    ck_assert(fl_wire_pattern_valid("*"));
    ck_assert(fl_wire_pattern_valid("edge-??.*"));
    ck_assert(!fl_wire_pattern_valid(""));
    ck_assert(!fl_wire_pattern_valid("a b"));
    ck_assert(!fl_wire_pattern_valid(".*"));
    ck_assert(!fl_wire_pattern_valid("[a-z]"));
    ck_assert(fl_wire_prefix_valid("aZ-_"));
    ck_assert(!fl_wire_prefix_valid("abc"));
    ck_assert(!fl_wire_prefix_valid("abcde"));
    ck_assert(!fl_wire_prefix_valid("ab+d"));
}

/* What a process that joined leaves in memory is not its token. */
TEST(the_token_is_wiped_with_its_message)
{
    struct fl_wire_join join = {.token = {1, 2, 3}};
    static const uint8_t zeros[FL_WIRE_TOKEN];

    fl_wire_join_done(&join);
    ck_assert_mem_eq(join.token, zeros, sizeof(zeros));
}
