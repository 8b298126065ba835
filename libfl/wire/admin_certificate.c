/*
 * Messages of fl.v1.Admin about certificates, revocations and the audit log. Pure functions, any
 * thread. Certificates stay DER bytes here (libfl/pki parses them).
 */
#include <stdlib.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "libfl/wire/admin_identity.h"
#include "libfl/wire/identity_impl.h"

#define LINE_MAX_BYTES 65536

static int copy_serial(const char *field, const ProtobufCBinaryData *value,
                       uint8_t ret[FL_WIRE_SERIAL_MAX], size_t *ret_len, struct fl_err *err)
{
    int rv = fl__wire_check_bytes(field, value, 1, FL_WIRE_SERIAL_MAX, err);

    if (rv == FL_OK) {
        (void)memcpy(ret, value->data, value->len);
        *ret_len = value->len;
    }
    return rv;
}

static int deny_copy_key(const char *field, const ProtobufCBinaryData *value,
                         uint8_t ret[FL_WIRE_KEY_HASH], struct fl_err *err)
{
    int rv = fl__wire_check_bytes(field, value, FL_WIRE_KEY_HASH, FL_WIRE_KEY_HASH, err);

    if (rv == FL_OK) {
        (void)memcpy(ret, value->data, FL_WIRE_KEY_HASH);
    }
    return rv;
}

/* --- ListCertificates --- */

int fl_wire_list_certificates_encode(const struct fl_wire_list_certificates *list,
                                     struct fl_buf *out)
{
    Fl__V1__ListCertificatesRequest msg;

    fl__v1__list_certificates_request__init(&msg);
    msg.name = fl_wire_lend(list->name);
    msg.all = list->all;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_list_certificates_decode(const void *data, size_t len,
                                     struct fl_wire_list_certificates *ret, struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_list_certificates list = {.name = ""};
    const Fl__V1__ListCertificatesRequest *msg;
    int rv = fl__wire_unpack(&fl__v1__list_certificates_request__descriptor, data, len,
                             LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__ListCertificatesRequest *)u.msg;
    list.all = msg->all != 0;
    rv = fl__wire_copy_optional("ListCertificatesRequest.name", msg->name, list.name, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = list;
    }
    return rv;
}

int fl_wire_certificate_encode(const struct fl_wire_certificate *certificate, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__CertificateInfo msg;
    int rv = FL_ENOMEM;

    fl__v1__certificate_info__init(&msg);
    msg.name = fl_wire_lend(certificate->name);
    msg.role = fl__wire_clean(&arena, certificate->role);
    msg.serial = fl__wire_bytes(certificate->serial, certificate->serial_len);
    msg.key = fl__wire_bytes(certificate->key, sizeof(certificate->key));
    msg.issued_ms = certificate->issued_ms;
    msg.not_before_ms = certificate->not_before_ms;
    msg.not_after_ms = certificate->not_after_ms;
    msg.state = fl__wire_clean(&arena, certificate->state);
    msg.why = fl__wire_clean(&arena, certificate->why);
    msg.by = fl__wire_clean(&arena, certificate->by);
    if (msg.role != NULL && msg.state != NULL && msg.why != NULL && msg.by != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

static int take_certificate(const Fl__V1__CertificateInfo *msg, struct fl_wire_certificate *ret,
                            struct fl_err *err)
{
    int rv;

    ret->issued_ms = msg->issued_ms;
    ret->not_before_ms = msg->not_before_ms;
    ret->not_after_ms = msg->not_after_ms;
    if ((rv = fl__wire_copy_name("CertificateInfo.name", msg->name, ret->name, err)) != FL_OK ||
        (rv = fl__wire_take_text("CertificateInfo.role", msg->role, &ret->role, err)) != FL_OK ||
        (rv = copy_serial("CertificateInfo.serial", &msg->serial, ret->serial, &ret->serial_len,
                          err)) != FL_OK ||
        (rv = deny_copy_key("CertificateInfo.key", &msg->key, ret->key, err)) != FL_OK ||
        (rv = fl__wire_take_text("CertificateInfo.state", msg->state, &ret->state, err)) != FL_OK ||
        (rv = fl__wire_take_text("CertificateInfo.why", msg->why, &ret->why, err)) != FL_OK)
    {
        return rv;
    }
    return fl__wire_take_text("CertificateInfo.by", msg->by, &ret->by, err);
}

int fl_wire_certificate_decode(const void *data, size_t len, struct fl_wire_certificate *ret,
                               struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_certificate certificate = {.name = ""};
    int rv =
        fl__wire_unpack(&fl__v1__certificate_info__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = take_certificate((const Fl__V1__CertificateInfo *)u.msg, &certificate, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_certificate_done(&certificate);
        return rv;
    }
    *ret = certificate;
    return FL_OK;
}

void fl_wire_certificate_done(struct fl_wire_certificate *certificate)
{
    free(certificate->role);
    free(certificate->state);
    free(certificate->why);
    free(certificate->by);
    *certificate = (struct fl_wire_certificate){.name = ""};
}

/* --- IssueAdmin --- */

int fl_wire_issue_admin_encode(const struct fl_wire_issue_admin *issue, struct fl_buf *out)
{
    Fl__V1__IssueAdminRequest msg;

    fl__v1__issue_admin_request__init(&msg);
    msg.name = fl_wire_lend(issue->name);
    msg.request = fl__wire_bytes(issue->request.data, issue->request.len);
    msg.valid_ms = issue->valid_ms;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_issue_admin_decode(const void *data, size_t len, struct fl_wire_issue_admin *ret,
                               struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_issue_admin issue = {.name = ""};
    const Fl__V1__IssueAdminRequest *msg;
    int rv = fl__wire_unpack(&fl__v1__issue_admin_request__descriptor, data, len, LINE_MAX_BYTES,
                             &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__IssueAdminRequest *)u.msg;
    issue.valid_ms = msg->valid_ms;
    rv = fl__wire_copy_name("IssueAdminRequest.name", msg->name, issue.name, err);
    rv = rv != FL_OK ? rv
                     : fl__wire_check_range("IssueAdminRequest.valid_ms", msg->valid_ms, 0,
                                            FL_WIRE_MAX_VALID_MS, err);
    rv = rv != FL_OK
             ? rv
             : fl__wire_take_csr("IssueAdminRequest.request", &msg->request, &issue.request, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = issue;
    }
    return rv;
}

void fl_wire_issue_admin_done(struct fl_wire_issue_admin *issue)
{
    fl_wire_bytes_done(&issue->request);
    *issue = (struct fl_wire_issue_admin){.name = ""};
}

int fl_wire_issued_admin_encode(const struct fl_wire_issued_admin *reply, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__IssueAdminReply msg;
    int rv = FL_ENOMEM;

    fl__v1__issue_admin_reply__init(&msg);
    msg.chain = fl__wire_put_chain(&arena, &reply->chain);
    msg.n_chain = reply->chain.n;
    msg.roots = fl__wire_put_chain(&arena, &reply->roots);
    msg.n_roots = reply->roots.n;
    if (msg.chain != NULL && msg.roots != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

int fl_wire_issued_admin_decode(const void *data, size_t len, struct fl_wire_issued_admin *ret,
                                struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_issued_admin reply = {.chain = {NULL}};
    const Fl__V1__IssueAdminReply *msg;
    int rv = fl__wire_unpack(&fl__v1__issue_admin_reply__descriptor, data, len,
                             FL_WIRE_MAX_IDENTITY, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__IssueAdminReply *)u.msg;
    rv = fl__wire_take_chain("IssueAdminReply.chain", msg->chain, msg->n_chain, &reply.chain, err);
    rv = rv != FL_OK ? rv
                     : fl__wire_take_chain("IssueAdminReply.roots", msg->roots, msg->n_roots,
                                           &reply.roots, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_issued_admin_done(&reply);
        return rv;
    }
    *ret = reply;
    return FL_OK;
}

void fl_wire_issued_admin_done(struct fl_wire_issued_admin *reply)
{
    fl_wire_chain_done(&reply->chain);
    fl_wire_chain_done(&reply->roots);
}

/* --- Revoke, Evict, Disable, Enable --- */

int fl_wire_deny_encode(const struct fl_wire_deny *deny, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__DenyRequest msg;
    int rv = FL_ENOMEM;

    fl__v1__deny_request__init(&msg);
    switch (deny->what) {
    case FL_WIRE_DENY_NAME:
        msg.what_case = FL__V1__DENY_REQUEST__WHAT_NAME;
        msg.name = fl_wire_lend(deny->name);
        break;
    case FL_WIRE_DENY_SERIAL:
        msg.what_case = FL__V1__DENY_REQUEST__WHAT_SERIAL;
        msg.serial = fl__wire_bytes(deny->serial, deny->serial_len);
        break;
    case FL_WIRE_DENY_KEY:
        msg.what_case = FL__V1__DENY_REQUEST__WHAT_KEY;
        msg.key = fl__wire_bytes(deny->key, sizeof(deny->key));
        break;
    }
    msg.force = deny->force;
    msg.reason = fl__wire_clean(&arena, deny->reason);
    if (msg.reason != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

static int take_deny(const Fl__V1__DenyRequest *msg, struct fl_wire_deny *ret, struct fl_err *err)
{
    int rv;

    switch (msg->what_case) {
    case FL__V1__DENY_REQUEST__WHAT_NAME:
        ret->what = FL_WIRE_DENY_NAME;
        rv = fl__wire_copy_name("DenyRequest.name", msg->name, ret->name, err);
        break;
    case FL__V1__DENY_REQUEST__WHAT_SERIAL:
        ret->what = FL_WIRE_DENY_SERIAL;
        rv = copy_serial("DenyRequest.serial", &msg->serial, ret->serial, &ret->serial_len, err);
        break;
    case FL__V1__DENY_REQUEST__WHAT_KEY:
        ret->what = FL_WIRE_DENY_KEY;
        rv = deny_copy_key("DenyRequest.key", &msg->key, ret->key, err);
        break;
    default:
        rv = fl_err_set(err, FL_EPROTO, "DenyRequest: expected a name, a serial number or a key");
    }
    if (rv == FL_OK && strlen(msg->reason) > FL_WIRE_MAX_REASON) {
        rv = fl_err_set(err, FL_EPROTO, "DenyRequest.reason: more than %d bytes",
                        FL_WIRE_MAX_REASON);
    }
    ret->force = msg->force != 0;
    return rv != FL_OK ? rv
                       : fl__wire_take_text("DenyRequest.reason", msg->reason, &ret->reason, err);
}

int fl_wire_deny_decode(const void *data, size_t len, struct fl_wire_deny *ret, struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_deny deny = {.name = ""};
    int rv = fl__wire_unpack(&fl__v1__deny_request__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = take_deny((const Fl__V1__DenyRequest *)u.msg, &deny, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = deny;
    }
    return rv;
}

void fl_wire_deny_done(struct fl_wire_deny *deny)
{
    free(deny->reason);
    *deny = (struct fl_wire_deny){.name = ""};
}

int fl_wire_denied_encode(const struct fl_wire_denied *reply, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__DenyReply msg;
    int rv = FL_ENOMEM;

    fl__v1__deny_reply__init(&msg);
    msg.certificates = reply->certificates;
    msg.sessions = reply->sessions;
    msg.text = fl__wire_clean(&arena, reply->text);
    if (msg.text != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

int fl_wire_denied_decode(const void *data, size_t len, struct fl_wire_denied *ret,
                          struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_denied reply = {.text = NULL};
    const Fl__V1__DenyReply *msg;
    int rv = fl__wire_unpack(&fl__v1__deny_reply__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__DenyReply *)u.msg;
    reply.certificates = msg->certificates;
    reply.sessions = msg->sessions;
    rv = fl__wire_take_text("DenyReply.text", msg->text, &reply.text, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = reply;
    }
    return rv;
}

void fl_wire_denied_done(struct fl_wire_denied *reply)
{
    free(reply->text);
    *reply = (struct fl_wire_denied){.text = NULL};
}

/* --- ListAudit --- */

int fl_wire_list_audit_encode(uint32_t last, struct fl_buf *out)
{
    Fl__V1__ListAuditRequest msg;

    fl__v1__list_audit_request__init(&msg);
    msg.last = last;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_list_audit_decode(const void *data, size_t len, uint32_t *ret_last, struct fl_err *err)
{
    struct fl__unpacked u;
    uint32_t last;
    int rv = fl__wire_unpack(&fl__v1__list_audit_request__descriptor, data, len, LINE_MAX_BYTES, &u,
                             err);

    if (rv != FL_OK) {
        return rv;
    }
    last = ((const Fl__V1__ListAuditRequest *)u.msg)->last;
    rv = fl__wire_check_range("ListAuditRequest.last", last, 0, FL_WIRE_MAX_AUDIT, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret_last = last;
    }
    return rv;
}

int fl_wire_audit_encode(const struct fl_wire_audit *line, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__AuditLine msg;
    int rv = FL_ENOMEM;

    fl__v1__audit_line__init(&msg);
    msg.number = line->number;
    msg.time_ms = line->time_ms;
    msg.who = fl__wire_clean(&arena, line->who);
    msg.what = fl__wire_clean(&arena, line->what);
    msg.object = fl__wire_clean(&arena, line->object);
    msg.result = fl__wire_clean(&arena, line->result);
    if (msg.who != NULL && msg.what != NULL && msg.object != NULL && msg.result != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

static int take_audit(const Fl__V1__AuditLine *msg, struct fl_wire_audit *ret, struct fl_err *err)
{
    int rv;

    ret->number = msg->number;
    ret->time_ms = msg->time_ms;
    if ((rv = fl__wire_take_text("AuditLine.who", msg->who, &ret->who, err)) != FL_OK ||
        (rv = fl__wire_take_text("AuditLine.what", msg->what, &ret->what, err)) != FL_OK ||
        (rv = fl__wire_take_text("AuditLine.object", msg->object, &ret->object, err)) != FL_OK)
    {
        return rv;
    }
    return fl__wire_take_text("AuditLine.result", msg->result, &ret->result, err);
}

int fl_wire_audit_decode(const void *data, size_t len, struct fl_wire_audit *ret,
                         struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_audit line = {.number = 0};
    int rv = fl__wire_unpack(&fl__v1__audit_line__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = take_audit((const Fl__V1__AuditLine *)u.msg, &line, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_audit_done(&line);
        return rv;
    }
    *ret = line;
    return FL_OK;
}

void fl_wire_audit_done(struct fl_wire_audit *line)
{
    free(line->who);
    free(line->what);
    free(line->object);
    free(line->result);
    *line = (struct fl_wire_audit){.number = 0};
}
