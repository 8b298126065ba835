/* Reads the arguments of the commands about invitations and certificates, and fills their requests.
   Main thread; the answers are printed by identity_print.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/str.h"
#include "tools/flctl/flctl.h"

static int identity_no_more_arguments(const struct fl_ctl_args *args, int n, char **words, int most)
{
    if (n > most) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "unexpected argument '%s' (see flctl --help)",
                               words[most]);
    }
    return -1;
}

/* --- invite --- */

/* Appends "key=value" to `labels`; `text` is changed. */
static int invite_add_label(struct fl_wire_labels *labels, char *text, struct fl_err *err)
{
    char *equals = strchr(text, '=');
    struct fl_pair *grown;
    struct fl_pair pair;

    if (equals == NULL || equals == text) {
        return fl_err_set(err, FL_EINVAL, "'%s' is not a label such as site=lab-7", text);
    }
    if (labels->n == FL_WIRE_MAX_PAIRS) {
        return fl_err_set(err, FL_ELIMIT, "more than %d labels", FL_WIRE_MAX_PAIRS);
    }
    *equals = '\0';
    grown = realloc(labels->list, (labels->n + 1) * sizeof(*grown));
    if (grown == NULL) {
        return FL_ENOMEM;
    }
    labels->list = grown;
    pair = (struct fl_pair){fl_str_dup(text), fl_str_dup(equals + 1)};
    if (pair.key == NULL || pair.value == NULL) {
        free(pair.key);
        free(pair.value);
        return FL_ENOMEM;
    }
    labels->list[labels->n++] = pair;
    return FL_OK;
}

/* Appends all labels of `list`, separated by any character of `between`. */
static int invite_add_labels(struct fl_wire_labels *labels, const char *list, const char *between,
                             struct fl_err *err)
{
    char *copy = fl_str_dup(list);
    char *rest = NULL;
    char *one;
    int rv = FL_OK;

    if (copy == NULL) {
        return FL_ENOMEM;
    }
    for (one = strtok_r(copy, between, &rest); one != NULL; one = strtok_r(NULL, between, &rest)) {
        rv = invite_add_label(labels, one, err);
        if (rv != FL_OK) {
            break;
        }
    }
    free(copy);
    return rv;
}

static int invite_add_name(struct fl_ctl_args *args, const char *name, const char *labels,
                           struct fl_err *err)
{
    struct fl_wire_invite *invite = &args->out.invite;
    struct fl_wire_new_invitation *grown;
    struct fl_wire_new_invitation *one;
    int rv;

    if (!fl_wire_pattern_valid(name)) {
        return fl_err_set(err, FL_EINVAL,
                          "'%s' is neither a name (1 to %d of [A-Za-z0-9._-], not starting with a "
                          "dot) nor a pattern of names, with * and ?",
                          name, FL_NAME_MAX - 1);
    }
    if (invite->n == FL_WIRE_MAX_INVITES) {
        return fl_err_set(err, FL_ELIMIT, "more than %d names: divide them among several calls",
                          FL_WIRE_MAX_INVITES);
    }
    grown = realloc(invite->list, (invite->n + 1) * sizeof(*grown));
    if (grown == NULL) {
        return FL_ENOMEM;
    }
    invite->list = grown;
    one = &grown[invite->n++];
    *one =
        (struct fl_wire_new_invitation){.uses = (uint32_t)args->uses, .valid_ms = args->valid_ms};
    rv = fl_str_copy(one->name, sizeof(one->name), name);
    if (rv != FL_OK) {
        return rv;
    }
    if (args->labels != NULL) {
        rv = invite_add_labels(&one->labels, args->labels, ",", err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return invite_add_labels(&one->labels, labels, " \t\r\n", err);
}

/* Lines "NAME [key=value …]"; empty ones and comments are skipped. */
static int invite_add_file(struct fl_ctl_args *args, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "r");
    struct fl_err err = {0};
    char *line = NULL;
    size_t size = 0;
    size_t at = 0;
    int rv = FL_OK;

    if (file == NULL) {
        return fl_ctl_complain(args, FL_CTL_FAILED, "cannot read '%s': %s", path, strerror(errno));
    }
    while (getline(&line, &size, file) >= 0) {
        char *rest = NULL;
        char *name = strtok_r(line, " \t\r\n", &rest);

        at++;
        rv = name == NULL || name[0] == '#' ? FL_OK : invite_add_name(args, name, rest, &err);
        if (rv != FL_OK) {
            break;
        }
    }
    free(line);
    if (!standard) {
        (void)fclose(file);
    }
    if (rv != FL_OK) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "%s:%zu: %s; no invitation was made", path, at,
                               fl_err_text(&err, rv));
    }
    if (args->out.invite.n == 0) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "'%s' has no names", path);
    }
    return -1;
}

static int invite_args(struct fl_ctl_args *args, int n, char **words)
{
    struct fl_err err = {0};
    int rv;

    if (n != (args->many == NULL ? 1 : 0)) {
        return n > 1 ? identity_no_more_arguments(args, n, words, 1)
                     : fl_ctl_complain(args, FL_CTL_USAGE,
                                       "expected the name of a client or a pattern of names, or "
                                       "--many FILE");
    }
    if (args->many != NULL) {
        args->out.many = true;
        return invite_add_file(args, args->many);
    }
    rv = invite_add_name(args, words[0], "", &err);
    if (rv != FL_OK) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "%s", fl_err_text(&err, rv));
    }
    return -1;
}

static int identity_fill_invite(struct fl_ctl_args *args, struct fl_buf *request)
{
    return fl_ctl_encoded(args, fl_wire_invite_encode(&args->out.invite, request));
}

const struct fl_ctl_request fl_ctl_request_invite = {invite_args, identity_fill_invite};

/* --- invitations, certificates, audit --- */

static int identity_fill_invitations(struct fl_ctl_args *args, struct fl_buf *request)
{
    return fl_ctl_encoded(args, fl_wire_list_invitations_encode(args->out.all, request));
}

const struct fl_ctl_request fl_ctl_request_invitations = {NULL, identity_fill_invitations};

static int identity_prefix_arg(struct fl_ctl_args *args, int n, char **words)
{
    if (n >= 1 && fl_wire_prefix_valid(words[0])) {
        args->name = words[0];
        return identity_no_more_arguments(args, n, words, 1);
    }
    return fl_ctl_complain(args, FL_CTL_USAGE,
                           "expected the four letters by which flctl invitations lists it");
}

static int identity_fill_uninvite(struct fl_ctl_args *args, struct fl_buf *request)
{
    return fl_ctl_encoded(args, fl_wire_withdraw_encode(args->name, request));
}

const struct fl_ctl_request fl_ctl_request_uninvite = {identity_prefix_arg, identity_fill_uninvite};

static int identity_certificates_args(struct fl_ctl_args *args, int n, char **words)
{
    if (n >= 1 && !fl_name_valid(words[0])) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "'%s' is not the name of a client or an admin",
                               words[0]);
    }
    args->name = n >= 1 ? words[0] : "";
    args->out.named = n >= 1;
    return identity_no_more_arguments(args, n, words, 1);
}

static int identity_fill_certificates(struct fl_ctl_args *args, struct fl_buf *request)
{
    struct fl_wire_list_certificates list = {.all = args->out.all};
    int rv = fl_str_copy(list.name, sizeof(list.name), args->name);

    if (rv != FL_OK) {
        return fl_ctl_encoded(args, rv);
    }
    return fl_ctl_encoded(args, fl_wire_list_certificates_encode(&list, request));
}

const struct fl_ctl_request fl_ctl_request_certificates = {identity_certificates_args,
                                                           identity_fill_certificates};

static int identity_fill_audit(struct fl_ctl_args *args, struct fl_buf *request)
{
    if (args->last > FL_WIRE_MAX_AUDIT) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "--last: at most %d entries per call",
                               FL_WIRE_MAX_AUDIT);
    }
    return fl_ctl_encoded(args, fl_wire_list_audit_encode((uint32_t)args->last, request));
}

const struct fl_ctl_request fl_ctl_request_audit = {NULL, identity_fill_audit};

/* --- revoke, evict, disable, enable --- */

static int identity_hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)((at - digits) % 16) : -1;
}

/* "5f0a…" or "5F:0A:…", as openssl prints it. At most `size` bytes; false: something else. */
static bool identity_parse_hex(const char *text, uint8_t *ret, size_t size, size_t *ret_len)
{
    size_t n = 0;

    while (*text != '\0') {
        int high = identity_hex_digit(text[0]);
        int low = high >= 0 ? identity_hex_digit(text[1]) : -1;

        if (low < 0 || n == size) {
            return false;
        }
        ret[n++] = (uint8_t)(high * 16 + low);
        text += 2;
        text += *text == ':' && text[1] != '\0';
    }
    *ret_len = n;
    return n > 0;
}

static int identity_revoke_args(struct fl_ctl_args *args, int n, char **words)
{
    bool only_name = args->verb == FL_VERB_EVICT;
    int given = (args->serial != NULL) + (args->public_key != NULL);

    if (only_name && (given != 0 || n == 0)) {
        return fl_ctl_complain(
            args, FL_CTL_USAGE,
            "expected the name of a client: all of its certificates are revoked");
    }
    if (given > 1 || given + (n > 0) != 1) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "expected a name, or --serial, or --public-key");
    }
    if (n > 0 && !fl_name_valid(words[0])) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "'%s' is not a name; to select a certificate, use --serial "
                               "or --public-key",
                               words[0]);
    }
    args->name = n > 0 ? words[0] : NULL;
    return identity_no_more_arguments(args, n, words, 1);
}

/*
 * A revocation is permanent: on a terminal the user is asked to confirm it, and a script passes
 * --yes. Input that is neither is refused, so that a pipe cannot answer for the user.
 */
static int identity_confirm(const struct fl_ctl_args *args)
{
    const char *whom = args->name != NULL     ? args->name
                       : args->serial != NULL ? args->serial
                                              : args->public_key;

    if (args->yes || args->verb != FL_VERB_REVOKE) {
        return FL_CTL_OK;
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return fl_ctl_complain(
            args, FL_CTL_USAGE,
            "revocation is permanent: without a terminal to confirm it, add --yes (to keep a "
            "client out for a while: flctl disable)");
    }
    (void)fprintf(
        stderr, "revoke %s '%s' permanently%s? It cannot be undone; flctl disable can. [y/N] ",
        args->name != NULL     ? "client or admin"
        : args->serial != NULL ? "certificate"
                               : "key",
        whom, args->name != NULL ? ", with its certificates, their keys and the name" : "");
    if (!fl_ctl_confirmed()) {
        return fl_ctl_complain(args, FL_CTL_FAILED, "not confirmed, nothing was changed");
    }
    return FL_CTL_OK;
}

static int identity_fill_revoke(struct fl_ctl_args *args, struct fl_buf *request)
{
    struct fl_wire_revoke revoke = {.reason = args->reason, .force = args->force};
    size_t len = 0;
    int code = identity_confirm(args);

    if (code != FL_CTL_OK) {
        return code;
    }

    if (args->name != NULL) {
        revoke.what = FL_WIRE_REVOKE_NAME;
        (void)snprintf(revoke.name, sizeof(revoke.name), "%s", args->name);
    } else if (args->serial != NULL) {
        revoke.what = FL_WIRE_REVOKE_SERIAL;
        if (!identity_parse_hex(args->serial, revoke.serial, sizeof(revoke.serial),
                                &revoke.serial_len)) {
            return fl_ctl_complain(args, FL_CTL_USAGE,
                                   "--serial: expected up to %d bytes in hexadecimal digits, as "
                                   "flctl certificates prints them, found '%s'",
                                   FL_WIRE_SERIAL_MAX, args->serial);
        }
    } else {
        revoke.what = FL_WIRE_REVOKE_KEY;
        if (!identity_parse_hex(args->public_key, revoke.key, sizeof(revoke.key), &len) ||
            len != sizeof(revoke.key))
        {
            return fl_ctl_complain(args, FL_CTL_USAGE,
                                   "--public-key: expected %zu hexadecimal digits, as flctl "
                                   "certificates NAME prints them, found '%s'",
                                   2 * sizeof(revoke.key), args->public_key);
        }
    }
    return fl_ctl_encoded(args, fl_wire_revoke_encode(&revoke, request));
}

const struct fl_ctl_request fl_ctl_request_revoke = {identity_revoke_args, identity_fill_revoke};
