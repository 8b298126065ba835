#include "tests/lib/wire_samples_identity.h"

#include "libfl/wire/wire_admin.h"

static char text_agent[] = "fl-clientd 0.1.0";
static char text_site[] = "site";
static char text_lab[] = "lab 7";
static char text_rack[] = "rack";
static char text_empty[] = "";
static char text_reason[] = "stolen: é";
static char text_line[] =
    "fl1:[2001:db8::7]:7443:demo:jE2ZkGbzbyTBTnuvxuzWcCPoyQvnz9tMKd2QxtGVhkU:QWIzeAECAwQ";
static char text_by[] = "uid 0 (root)";
static char text_open[] = "open";
static char text_client[] = "client";
static char text_valid[] = "valid";
static char text_invitation[] = "invitation Ab3x";
static char text_revoke[] = "revoke";
static char text_edge[] = "edge-04";
static char text_ok[] = "ok";

static uint8_t der[] = {0x30, 0x82, 0x01, 0x00, 0xff};
static uint8_t issuer[] = {0x30, 0x80, 0x00};
static struct fl_wire_bytes chain_list[] = {{der, sizeof(der)}, {issuer, sizeof(issuer)}};
static struct fl_wire_bytes root_list[] = {{issuer, 2}};
static const struct fl_wire_chain chain = {chain_list, 2};
static const struct fl_wire_chain roots = {root_list, 1};
static struct fl_pair label_list[] = {{text_site, text_lab}, {text_rack, text_empty}};
static const struct fl_wire_labels labels = {label_list, 2};

/* What comes out of a decode goes in again, and is freed. */
#define RECODE(name, type, done)                                                \
    int wire_recode_##name##_(const void *data, size_t len, struct fl_buf *out, \
                              struct fl_err *err)                               \
    {                                                                           \
        struct type message;                                                    \
        int rv = fl_wire_##name##_decode(data, len, &message, err);             \
                                                                                \
        if (rv == FL_OK) {                                                      \
            rv = fl_wire_##name##_encode(&message, out);                        \
            done(&message);                                                     \
        }                                                                       \
        return rv;                                                              \
    }

static void nothing(const void *message)
{
    (void)message;
}

RECODE(central, fl_wire_central, fl_wire_central_done)
RECODE(label_client, fl_wire_label_client, fl_wire_label_client_done)
RECODE(schedule_client, fl_wire_schedule_client, fl_wire_schedule_client_done)
RECODE(limit_client, fl_wire_limit_client, fl_wire_limit_client_done)
RECODE(join, fl_wire_join, fl_wire_join_done)
RECODE(joined, fl_wire_joined, fl_wire_joined_done)
RECODE(renew, fl_wire_renew, fl_wire_renew_done)
RECODE(renewed, fl_wire_renewed, fl_wire_renewed_done)
RECODE(invite, fl_wire_invite, fl_wire_invite_done)
RECODE(invited, fl_wire_invited, fl_wire_invited_done)
RECODE(invitation, fl_wire_invitation, fl_wire_invitation_done)
RECODE(withdrawn, fl_wire_withdrawn, nothing)
RECODE(list_certificates, fl_wire_list_certificates, nothing)
RECODE(certificate, fl_wire_certificate, fl_wire_certificate_done)
RECODE(issue_admin, fl_wire_issue_admin, fl_wire_issue_admin_done)
RECODE(issued_admin, fl_wire_issued_admin, fl_wire_issued_admin_done)
RECODE(revoke, fl_wire_revoke, fl_wire_revoke_done)
RECODE(revoke_reply, fl_wire_revoke_reply, fl_wire_revoke_reply_done)
RECODE(audit, fl_wire_audit, fl_wire_audit_done)

int wire_recode_revoke_serial_(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    return wire_recode_revoke_(data, len, out, err);
}

int wire_recode_revoke_key_(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    return wire_recode_revoke_(data, len, out, err);
}

int wire_recode_list_invitations_(const void *data, size_t len, struct fl_buf *out,
                                  struct fl_err *err)
{
    bool all;
    int rv = fl_wire_list_invitations_decode(data, len, &all, err);

    return rv != FL_OK ? rv : fl_wire_list_invitations_encode(all, out);
}

int wire_recode_withdraw_(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    char prefix[FL_WIRE_PREFIX_SIZE];
    int rv = fl_wire_withdraw_decode(data, len, prefix, err);

    return rv != FL_OK ? rv : fl_wire_withdraw_encode(prefix, out);
}

int wire_recode_list_audit_(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    uint32_t last;
    int rv = fl_wire_list_audit_decode(data, len, &last, err);

    return rv != FL_OK ? rv : fl_wire_list_audit_encode(last, out);
}

int wire_sample_join_(struct fl_buf *out)
{
    const struct fl_wire_join join = {
        .token = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 255},
        .name = "edge-04",
        .request = {der, sizeof(der)},
        .agent = text_agent,
        .time_ms = FL_WIRE_MAX_TIME_MS};

    return fl_wire_join_encode(&join, out);
}

int wire_sample_joined_(struct fl_buf *out)
{
    const struct fl_wire_joined reply = {.name = "edge-04",
                                         .federation = "demo",
                                         .chain = chain,
                                         .roots = roots,
                                         .labels = labels,
                                         .time_ms = 1795372800000};

    return fl_wire_joined_encode(&reply, out);
}

int wire_sample_renew_(struct fl_buf *out)
{
    const struct fl_wire_renew renew = {{der, sizeof(der)}, 1795372800000};

    return fl_wire_renew_encode(&renew, out);
}

int wire_sample_renewed_(struct fl_buf *out)
{
    const struct fl_wire_renewed reply = {chain, chain, 1795372800001};

    return fl_wire_renewed_encode(&reply, out);
}

int wire_sample_invite_(struct fl_buf *out)
{
    struct fl_wire_new_invitation list[] = {{"edge-*", labels, 40, 3600000}, {.name = "edge-04"}};

    return fl_wire_invite_encode(&(struct fl_wire_invite){list, 2}, out);
}

int wire_sample_invited_(struct fl_buf *out)
{
    const struct fl_wire_invited reply = {text_line, "Ab3x", 1795376400000};

    return fl_wire_invited_encode(&reply, out);
}

int wire_sample_list_invitations_(struct fl_buf *out)
{
    return fl_wire_list_invitations_encode(true, out);
}

int wire_sample_invitation_(struct fl_buf *out)
{
    const struct fl_wire_invitation invitation = {.prefix = "_b-x",
                                                  .name = "edge-??",
                                                  .uses = 40,
                                                  .used = 3,
                                                  .made_ms = 1795372800000,
                                                  .ends_ms = 1795376400000,
                                                  .by = text_by,
                                                  .state = text_open,
                                                  .labels = labels};

    return fl_wire_invitation_encode(&invitation, out);
}

int wire_sample_withdraw_(struct fl_buf *out)
{
    return fl_wire_withdraw_encode("Ab3x", out);
}

int wire_sample_withdrawn_(struct fl_buf *out)
{
    return fl_wire_withdrawn_encode(&(struct fl_wire_withdrawn){"edge-*", 3}, out);
}

int wire_sample_list_certificates_(struct fl_buf *out)
{
    return fl_wire_list_certificates_encode(&(struct fl_wire_list_certificates){"edge-04", true},
                                            out);
}

int wire_sample_certificate_(struct fl_buf *out)
{
    const struct fl_wire_certificate certificate = {.name = "edge-04",
                                                    .role = text_client,
                                                    .state = text_valid,
                                                    .why = text_reason,
                                                    .by = text_invitation,
                                                    .serial = {0x7f, 1, 2},
                                                    .serial_len = 3,
                                                    .key = {9, 8, 7},
                                                    .issued_ms = 1795372800000,
                                                    .not_before_ms = 1795372200000,
                                                    .not_after_ms = 1797964200000};

    return fl_wire_certificate_encode(&certificate, out);
}

int wire_sample_issue_admin_(struct fl_buf *out)
{
    return fl_wire_issue_admin_encode(
        &(struct fl_wire_issue_admin){"ops-1", {der, sizeof(der)}, 86400000}, out);
}

int wire_sample_issued_admin_(struct fl_buf *out)
{
    return fl_wire_issued_admin_encode(&(struct fl_wire_issued_admin){chain, roots}, out);
}

int wire_sample_revoke_(struct fl_buf *out)
{
    return fl_wire_revoke_encode(
        &(struct fl_wire_revoke){
            .what = FL_WIRE_REVOKE_NAME, .name = "edge-04", .reason = text_reason, .force = true},
        out);
}

int wire_sample_revoke_serial_(struct fl_buf *out)
{
    return fl_wire_revoke_encode(&(struct fl_wire_revoke){.what = FL_WIRE_REVOKE_SERIAL,
                                                          .serial = {0x5f, 0x0a},
                                                          .serial_len = 2},
                                 out);
}

int wire_sample_revoke_key_(struct fl_buf *out)
{
    return fl_wire_revoke_encode(
        &(struct fl_wire_revoke){.what = FL_WIRE_REVOKE_KEY, .key = {1, 2, 3}}, out);
}

int wire_sample_revoke_reply_(struct fl_buf *out)
{
    return fl_wire_revoke_reply_encode(&(struct fl_wire_revoke_reply){2, 1, text_reason}, out);
}

int wire_sample_list_audit_(struct fl_buf *out)
{
    return fl_wire_list_audit_encode(FL_WIRE_MAX_AUDIT, out);
}

int wire_sample_audit_(struct fl_buf *out)
{
    return fl_wire_audit_encode(
        &(struct fl_wire_audit){77, 1795372800000, text_by, text_revoke, text_edge, text_ok}, out);
}

int wire_sample_central_(struct fl_buf *out)
{
    char *hours[] = {text_lab, text_rack};
    const struct fl_wire_central m = {7, label_list, 2, hours, 2, label_list, 2};

    return fl_wire_central_encode(&m, out);
}

int wire_sample_label_client_(struct fl_buf *out)
{
    char *removed[] = {text_agent, text_lab};
    const struct fl_wire_label_client m = {text_edge, label_list, 2, removed, 2};

    return fl_wire_label_client_encode(&m, out);
}

int wire_sample_schedule_client_(struct fl_buf *out)
{
    char *hours[] = {text_lab, text_rack};
    const struct fl_wire_schedule_client m = {text_edge, hours, 2};

    return fl_wire_schedule_client_encode(&m, out);
}

int wire_sample_limit_client_(struct fl_buf *out)
{
    char *removed[] = {text_agent, text_lab};
    const struct fl_wire_limit_client m = {text_edge, label_list, 2, removed, 2};

    return fl_wire_limit_client_encode(&m, out);
}
