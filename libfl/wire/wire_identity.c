/*
 * Messages of fl.v1.Identity (Join, Renew), and those of fl.v1.Admin about invitations,
 * certificates, revocations and the audit log. Pure functions, any thread. The rows are in
 * wire_identity.h and admin_identity.h. Certificates stay DER bytes (libfl/pki parses them); tokens
 * are created by the server.
 */
#include <stdlib.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "fl/v1/identity.pb-c.h"
#include "libfl/base/str.h"
#include "libfl/wire/admin_identity.h"
#include "libfl/wire/row_impl.h"

/* --- checks --- */

bool fl_wire_pattern_valid(const char *pattern)
{
    char name[FL_NAME_MAX];
    size_t i;

    if (fl_str_copy(name, sizeof(name), pattern) != FL_OK) {
        return false;
    }
    for (i = 0; name[i] != '\0'; i++) {
        if (name[i] == '*' || name[i] == '?') {
            name[i] = 'x';
        }
    }
    return fl_name_valid(name);
}

bool fl_wire_prefix_valid(const char *prefix)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    return strlen(prefix) == FL_WIRE_PREFIX_SIZE - 1 &&
           strspn(prefix, letters) == FL_WIRE_PREFIX_SIZE - 1;
}

int fl__wire_check_pattern(const struct fl_pb_at *at, const char *value, struct fl_err *err)
{
    return fl_wire_pattern_valid(value)
               ? FL_OK
               : fl_pb_refuse(at, err,
                              "is neither a name nor a pattern (1 to %d of [A-Za-z0-9._*?-], "
                              "not starting with a dot)",
                              FL_NAME_MAX - 1);
}

int fl__wire_check_prefix(const struct fl_pb_at *at, const char *value, struct fl_err *err)
{
    return fl_wire_prefix_valid(value)
               ? FL_OK
               : fl_pb_refuse(at, err,
                              "is not the beginning of a token (%d of [A-Za-z0-9_-], as flctl "
                              "invitations lists it)",
                              FL_WIRE_PREFIX_SIZE - 1);
}

/* --- messages --- */

FL_WIRE_IDENTITY(FL__WIRE_DEFINE)
FL__WIRE_DONE(labels)
FL_WIRE_ADMIN_IDENTITY(FL__WIRE_DEFINE)
FL__WIRE_TABLE(revoke, revoke, RevokeRequest, revoke_request, .max = FL_WIRE_MAX_LINE,
               .unset = "expected a name, a serial number or a key", .own_case = offsetof(S, what),
               .msg_case = offsetof(M, what_case))
FL__WIRE_FUNCTIONS(revoke, revoke)
FL__WIRE_DONE(revoke)

#define FL_WIRE_ROWS_list_invitations(X) X(BOOL, value, all)
FL__WIRE_VALUE(list_invitations, bool, bool *, ListInvitationsRequest, list_invitations_request,
               FL_WIRE_MAX_LINE)
#define FL_WIRE_ROWS_withdraw(X) X(PREFIX, value, prefix)
FL__WIRE_VALUE(withdraw, const char *, char *, WithdrawInvitationRequest,
               withdraw_invitation_request, FL_WIRE_MAX_LINE)
#define FL_WIRE_ROWS_list_audit(X) X(U32, value, last, .max = FL_WIRE_MAX_AUDIT)
FL__WIRE_VALUE(list_audit, uint32_t, uint32_t *, ListAuditRequest, list_audit_request,
               FL_WIRE_MAX_LINE)

/* --- for callers of the messages --- */

int fl_wire_bytes_copy(const void *data, size_t len, struct fl_wire_bytes *ret)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);

    if (copy == NULL) {
        return FL_ENOMEM;
    }
    if (len > 0) {
        (void)memcpy(copy, data, len);
    }
    *ret = (struct fl_wire_bytes){copy, len};
    return FL_OK;
}

void fl_wire_chain_done(struct fl_wire_chain *chain)
{
    size_t i;

    for (i = 0; i < chain->n; i++) {
        free(chain->list[i].data);
    }
    free(chain->list);
    *chain = (struct fl_wire_chain){NULL};
}
