/* Prints the answers of the commands about invitations, certificates and the audit log. Main
   thread; it makes no request. */
#include <inttypes.h>
#include <stdlib.h>

#include "libfl/base/str.h"
#include "libfl/json/admin_json.h"
#include "libfl/json/json.h"
#include "tools/flctl/flctl.h"

/* `out` has 2 n + 1 bytes. */
static const char *identity_hex(char *out, const uint8_t *data, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", data[i]);
    }
    out[2 * n] = '\0';
    return out;
}

/* --- invite --- */

static int identity_on_invited(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                               struct fl_err *err)
{
    json_t *o;
    char ends[32];
    struct fl_wire_invited r;
    const struct fl_wire_new_invitation *asked;
    int rv;

    if (out->n == out->invite.n) {
        return fl_err_set(err, FL_EPROTO, "the server sent more invitations than requested");
    }
    rv = fl_wire_invited_decode(data, len, &r, err);
    if (rv != FL_OK) {
        return rv;
    }
    asked = &out->invite.list[out->n];
    if (out->json) {
        o = json_object();
        (void)json_object_set_new(o, "name", json_string(asked->name));
        (void)json_object_set_new(o, "line", json_string(r.line));
        (void)json_object_set_new(o, "prefix", json_string(r.prefix));
        (void)json_object_set_new(o, "ends_ms", fl_json_whole(r.ends_ms));
        if (out->many) {
            (void)json_array_append_new(out->array, o);
        } else {
            fl_json_print(o, stdout);
        }
    } else if (out->many) {
        (void)printf("%s\t%s\n", asked->name, fl_str_clean(r.line));
    } else {
        (void)printf("%s\n", fl_str_clean(r.line));
        (void)fflush(stdout);
        /* Explains the invitation on stderr, so that a pipe gets its line only. */
        (void)fprintf(
            stderr,
            "flctl: invitation %s for '%s', until %s, for %u client%s. On %s host:\n"
            "  fl-clientd --join\n"
            "with the line above on its standard input. The line is a secret and is not shown "
            "again; flctl uninvite %s withdraws it.\n",
            r.prefix, asked->name, fl_ctl_when(ends, sizeof(ends), r.ends_ms),
            asked->uses > 1 ? asked->uses : 1, asked->uses > 1 ? "s" : "",
            asked->uses > 1 ? "each" : "its", r.prefix);
    }
    out->n++;
    fl_wire_invited_done(&r);
    return FL_OK;
}

static void identity_finish_invite(struct fl_ctl_out *out)
{
    if (out->many && out->json) {
        fl_ctl_finish_list(out);
    } else if (out->many) {
        (void)fflush(stdout);
        (void)fprintf(stderr,
                      "flctl: %zu invitations. Each line is a secret for the host of its name: "
                      "fl-clientd --join takes it from standard input.\n",
                      out->n);
    }
}

const struct fl_ctl_answer fl_ctl_answer_invited = {identity_on_invited, identity_finish_invite};

/* --- invitations --- */

static int identity_on_invitation(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                                  struct fl_err *err)
{
    struct fl_wire_invitation v;
    char made[32];
    char ends[32];
    int rv = fl_wire_invitation_decode(data, len, &v, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "prefix", json_string(v.prefix));
        (void)json_object_set_new(o, "name", json_string(v.name));
        (void)json_object_set_new(o, "state", json_string(v.state));
        (void)json_object_set_new(o, "uses", fl_json_whole(v.uses));
        (void)json_object_set_new(o, "used", fl_json_whole(v.used));
        (void)json_object_set_new(o, "made_ms", fl_json_whole(v.made_ms));
        (void)json_object_set_new(o, "ends_ms", fl_json_whole(v.ends_ms));
        (void)json_object_set_new(o, "by", json_string(v.by));
        (void)json_object_set_new(o, "labels", fl_json_labels(v.labels.list, v.labels.n));
        (void)json_array_append_new(out->array, o);
    } else {
        if (out->n == 0) {
            (void)printf("%-6s %-20s %-9s %11s  %-20s  %-20s  %s\n", "prefix", "name", "state",
                         "used", "made", "until", "by");
        }
        (void)printf("%-6s %-20s %-9s %5u of %-5u %-20s  %-20s  %s\n", v.prefix, v.name,
                     fl_str_clean(v.state), v.used, v.uses,
                     fl_ctl_when(made, sizeof(made), v.made_ms),
                     fl_ctl_when(ends, sizeof(ends), v.ends_ms), fl_str_clean(v.by));
        fl_ctl_print_labels(v.labels.list, v.labels.n);
    }
    out->n++;
    fl_wire_invitation_done(&v);
    return FL_OK;
}

static void identity_finish_invitations(struct fl_ctl_out *out)
{
    if (out->n == 0 && !out->json) {
        (void)printf("%s\n", out->all ? "there are no invitations"
                                      : "no invitation is valid now (--all: list all "
                                        "invitations)");
    }
    fl_ctl_finish_list(out);
}

const struct fl_ctl_answer fl_ctl_answer_invitations = {identity_on_invitation,
                                                        identity_finish_invitations};

static int identity_on_withdrawn(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                                 struct fl_err *err)
{
    struct fl_wire_withdrawn r;
    int rv = fl_wire_withdrawn_decode(data, len, &r, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "name", json_string(r.name));
        (void)json_object_set_new(o, "used", fl_json_whole(r.used));
        fl_json_print(o, stdout);
        return FL_OK;
    }
    (void)printf("invitation for '%s' withdrawn, no more clients can join with it\n", r.name);
    if (r.used > 0) {
        (void)printf("%u client%s joined with it before and %s in the federation: flctl evict NAME "
                     "removes a client"
                     "\n",
                     r.used, r.used == 1 ? "" : "s", r.used == 1 ? "stays" : "stay");
    }
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_withdrawn = {identity_on_withdrawn, NULL};

/* --- certificates --- */

static json_t *identity_certificate_json(const struct fl_wire_certificate *c)
{
    char text[2 * FL_WIRE_KEY_HASH + 1];
    json_t *o = json_object();

    (void)json_object_set_new(o, "name", json_string(c->name));
    (void)json_object_set_new(o, "role", json_string(c->role));
    (void)json_object_set_new(o, "state", json_string(c->state));
    (void)json_object_set_new(o, "why", c->why[0] != '\0' ? json_string(c->why) : json_null());
    (void)json_object_set_new(o, "serial",
                              json_string(identity_hex(text, c->serial, c->serial_len)));
    (void)json_object_set_new(o, "public_key",
                              json_string(identity_hex(text, c->key, sizeof(c->key))));
    (void)json_object_set_new(o, "issued_ms", fl_json_whole(c->issued_ms));
    (void)json_object_set_new(o, "not_before_ms", fl_json_whole(c->not_before_ms));
    (void)json_object_set_new(o, "not_after_ms", fl_json_whole(c->not_after_ms));
    (void)json_object_set_new(o, "by", json_string(c->by));
    return o;
}

static int identity_on_certificate(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                                   struct fl_err *err)
{
    char text[2 * FL_WIRE_KEY_HASH + 1];
    char issued[32];
    char ends[32];
    struct fl_wire_certificate c;
    int rv = fl_wire_certificate_decode(data, len, &c, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        (void)json_array_append_new(out->array, identity_certificate_json(&c));
    } else {
        if (out->n == 0) {
            (void)printf("%-20s %-6s %-9s %-20s  %-20s  %-32s  %s\n", "name", "role", "state",
                         "issued", "until", "serial", "by");
        }
        (void)printf("%-20s %-6s %-9s %-20s  %-20s  %-32s  %s\n", c.name, fl_str_clean(c.role),
                     fl_str_clean(c.state), fl_ctl_when(issued, sizeof(issued), c.issued_ms),
                     fl_ctl_when(ends, sizeof(ends), c.not_after_ms),
                     identity_hex(text, c.serial, c.serial_len), fl_str_clean(c.by));
        if (c.why[0] != '\0') {
            (void)printf("  %s\n", fl_str_clean(c.why));
        }
        if (out->named) {
            (void)printf("  public key %s\n", identity_hex(text, c.key, sizeof(c.key)));
        }
    }
    out->n++;
    fl_wire_certificate_done(&c);
    return FL_OK;
}

static void identity_finish_certificates(struct fl_ctl_out *out)
{
    if (out->n == 0 && !out->json) {
        (void)printf("no certificate%s%s\n", out->named ? " has this name" : " was issued here",
                     out->all ? "" : " and is valid (--all: list all)");
    }
    fl_ctl_finish_list(out);
}

const struct fl_ctl_answer fl_ctl_answer_certificates = {identity_on_certificate,
                                                         identity_finish_certificates};

static int identity_on_revoked(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                               struct fl_err *err)
{
    struct fl_wire_revoke_reply r;
    int rv = fl_wire_revoke_reply_decode(data, len, &r, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "certificates", fl_json_whole(r.certificates));
        (void)json_object_set_new(o, "sessions", fl_json_whole(r.sessions));
        (void)json_object_set_new(o, "text", json_string(r.text));
        fl_ctl_print_object(out, o);
    } else {
        (void)printf("%s\n", fl_str_clean(r.text));
    }
    fl_wire_revoke_reply_done(&r);
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_revoked = {identity_on_revoked, NULL};

/* --- audit --- */

static int identity_on_audit(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                             struct fl_err *err)
{
    struct fl_wire_audit line;
    char at[32];
    int rv = fl_wire_audit_decode(data, len, &line, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "number", fl_json_whole(line.number));
        (void)json_object_set_new(o, "time_ms", fl_json_whole(line.time_ms));
        (void)json_object_set_new(o, "who", json_string(line.who));
        (void)json_object_set_new(o, "what", json_string(line.what));
        (void)json_object_set_new(o, "object", json_string(line.object));
        (void)json_object_set_new(o, "result", json_string(line.result));
        (void)json_array_append_new(out->array, o);
    } else {
        if (out->n == 0) {
            (void)printf("%-20s  %-12s %-20s %-30s %s\n", "time", "what", "object", "who",
                         "result");
        }
        (void)printf("%-20s  %-12s %-20s %-30s %s\n", fl_ctl_when(at, sizeof(at), line.time_ms),
                     fl_str_clean(line.what), fl_str_clean(line.object), fl_str_clean(line.who),
                     fl_str_clean(line.result));
    }
    out->n++;
    fl_wire_audit_done(&line);
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_audit = {identity_on_audit, fl_ctl_finish_list};
