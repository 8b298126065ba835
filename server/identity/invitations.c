/*
 * Invitations: validates and stores them, lists them, withdraws them. Runs on the thread of the
 * authority. Their use is in joining.c.
 */

#include "server/identity/invitations.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/match.h"
#include "libfl/base/str.h"
#include "libfl/pki/when.h"
#include "libfl/wire/verbs.h"
#include "server/identity/authority_impl.h"

/*
 * There are 16 million prefixes and at most FL_INVITATIONS_MAX are used: 8 collisions in a row do
 * not happen.
 */
#define PREFIX_TRIES 8

/* A name with stars and question marks. */
static bool pattern_valid(const char *pattern)
{
    char plain[FL_IDENTITY_NAME_MAX];
    size_t i;

    if (fl_str_copy(plain, sizeof(plain), pattern) != FL_OK) {
        return false;
    }
    for (i = 0; plain[i] != '\0'; i++) {
        plain[i] = plain[i] == '*' || plain[i] == '?' ? 'x' : plain[i];
    }
    return fl_name_allowed(plain);
}

/* --- labels --- */

static int labels_pack(const struct fl_pair *labels, size_t n, struct fl_buf *out)
{
    size_t i;

    for (i = 0; i < 2 * n; i++) {
        const char *text = i % 2 == 0 ? labels[i / 2].key : labels[i / 2].value;
        int rv = fl_buf_add(out, text, strlen(text) + 1);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

void fl__labels_free(struct fl_pair *labels, size_t n)
{
    size_t i;

    for (i = 0; labels != NULL && i < n; i++) {
        free(labels[i].key);
        free(labels[i].value);
    }
    free(labels);
}

/* The next text of packed labels; NULL behind the last. */
static char *next_text(const char *data, size_t len, size_t *at)
{
    const char *end = *at < len ? memchr(data + *at, '\0', len - *at) : NULL;
    char *copy = end != NULL ? fl_str_dup(data + *at) : NULL;

    *at = end != NULL ? (size_t)(end - data) + 1 : len;
    return copy;
}

int fl__labels_unpack(const void *data, size_t len, struct fl_pair **ret, size_t *ret_n)
{
    struct fl_pair *labels = calloc(FL_WIRE_MAX_PAIRS, sizeof(*labels));
    size_t n = 0;
    size_t at = 0;

    if (labels == NULL) {
        return FL_ENOMEM;
    }
    while (at < len && n < FL_WIRE_MAX_PAIRS) {
        labels[n].key = next_text(data, len, &at);
        labels[n].value = next_text(data, len, &at);
        n++;
        if (labels[n - 1].key == NULL || labels[n - 1].value == NULL) {
            fl__labels_free(labels, n);
            return FL_ENOMEM;
        }
    }
    *ret = labels;
    *ret_n = n;
    return FL_OK;
}

/* --- creating --- */

static int invitation_check(struct fl_authority *a, const struct fl_invitation *in,
                            struct fl_err *err)
{
    char quoted[160];
    struct fl__revoked_state revoked;
    int rv;

    if (in->name == NULL || !pattern_valid(in->name)) {
        return fl_err_set(err, FL_EINVAL,
                          "invalid name %s: expected 1 to %d of [A-Za-z0-9._-], not starting with "
                          "a dot or '-'; * stands for any letters, ? for one",
                          in->name != NULL
                              ? fl_log_quote(quoted, sizeof(quoted), in->name, strlen(in->name))
                              : "nothing",
                          FL_IDENTITY_NAME_MAX - 1);
    }
    if (in->uses > FL_INVITATION_USES_MAX || (in->uses > 1 && !fl_name_is_pattern(in->name))) {
        return fl_err_set(err, FL_EINVAL,
                          in->uses > FL_INVITATION_USES_MAX
                              ? "an invitation for '%s' with more than %d uses"
                              : "an invitation for one name, '%s', has one use: a pattern like "
                                "'edge-*' may have up to %d",
                          in->name, FL_INVITATION_USES_MAX);
    }
    if (in->valid_ms < 0 || in->valid_ms > FL_INVITATION_VALID_MAX_MS) {
        return fl_err_set(err, FL_EINVAL, "an invitation for '%s' is valid for a year at most",
                          in->name);
    }
    if (fl_name_is_pattern(in->name)) {
        return FL_OK;
    }
    rv = fl__revoked_by(a, &(struct fl_revoked){.name = in->name}, &revoked, err);
    if (rv != FL_OK || revoked.verb != FL_REVOCATION_REVOKED) {
        return rv;
    }
    return fl_err_set(err, FL_EPERM,
                      "the name '%s' is permanently %.*s: invite that host by another name",
                      in->name, FL__AUDIT_TEXT - 1, revoked.why);
}

static int64_t ends_of(const struct fl_authority *a, const struct fl_invitation *in, int64_t now_ms)
{
    int64_t valid = in->valid_ms > 0 ? in->valid_ms : a->conf.spans.token * 1000;
    int64_t change = fl__files_switch(&a->conf, &a->files);

    /* The next root changes the pin in the line. */
    return change < INT64_MAX / 1000 && change * 1000 < now_ms + valid ? change * 1000
                                                                       : now_ms + valid;
}

/* Insert `row` with a token whose prefix is free; the token goes into `invite`. */
static int invitation_put(struct fl_authority *a, struct fl__invitation *row,
                          struct fl_invite *invite, struct fl_err *err)
{
    int attempt;

    for (attempt = 0; attempt < PREFIX_TRIES; attempt++) {
        int rv = fl__random(&a->conf, invite->token, sizeof(invite->token), err);

        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_token_hash(invite->token, row->hash);
        if (rv != FL_OK) {
            return rv;
        }
        (void)fl_token_prefix(invite->token, row->prefix);
        if (row->prefix[0] == '-') {
            continue; /* a leading '-' would be an option of `flctl uninvite` */
        }
        rv = fl__invitation_put(&a->db, FL__SQL_PUT_INVITATION, row, err);
        if (rv != FL_OK || fl_db_changes(&a->db) == 1) {
            return rv;
        }
    }
    return fl_err_set(err, FL_EAGAIN, "no free prefix: try again");
}

/* One invitation and its audit entry. */
static int invitation_create(struct fl_authority *a, const struct fl_invitation *in, const char *by,
                             int64_t now_ms, struct fl_invite *invite, struct fl_err *err)
{
    char result[96];
    char ends[FL_WHEN_TEXT];
    const struct fl_audit_line line = {.at_ms = now_ms,
                                       .who = by,
                                       .what = fl_verbs[FL_VERB_INVITE].audit,
                                       .object = in->name,
                                       .result = result};
    struct fl__invitation row = {.uses = in->uses > 0 ? in->uses : 1,
                                 .made_ms = now_ms,
                                 .ends_ms = ends_of(a, in, now_ms),
                                 .by = by};
    int rv;

    fl_buf_init(&row.labels, FL_WIRE_LABELS_BYTES);
    (void)snprintf(row.name, sizeof(row.name), "%s", in->name);
    rv = in->n_labels <= FL_WIRE_MAX_PAIRS ? labels_pack(in->labels, in->n_labels, &row.labels)
                                           : FL_ELIMIT;
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "the labels of '%s' are more than %d, or than %d bytes: %s",
                        in->name, FL_WIRE_MAX_PAIRS, FL_WIRE_LABELS_BYTES, fl_strerror(rv));
        goto done;
    }
    rv = invitation_put(a, &row, invite, err);
    if (rv != FL_OK) {
        goto done;
    }
    (void)snprintf(result, sizeof(result), "ok, invitation %s, %u use%s, until %s", row.prefix,
                   row.uses, row.uses > 1 ? "s" : "",
                   fl_when_text(ends, sizeof(ends), row.ends_ms / 1000));
    rv = fl__audit(a, &line, err);
done:
    fl_buf_done(&row.labels);
    return rv;
}

static void invite_addresses(const struct fl_authority *a, struct fl_invite *invite)
{
    size_t i;

    for (i = 0; i < a->conf.n_invited; i++) {
        invite->addresses[i] = a->conf.invited[i];
        if (invite->addresses[i].port == 0) {
            invite->addresses[i].port = a->conf.port;
        }
    }
    invite->n_addresses = i;
}

/* Calls `cb` with the line of each token. */
static int invitation_report(struct fl_authority *a, const struct fl_invitations *invitations,
                             const uint8_t *tokens, int64_t now_ms, fl_invited_cb *cb, void *ctx,
                             struct fl_err *err)
{
    char line[FL_INVITE_MAX];
    struct fl_invite invite = {.n_addresses = 0};
    struct fl_cert_info root;
    size_t i;
    int rv = FL_OK;

    fl_chain_info(a->files.root, 0, &root);
    (void)memcpy(invite.pin, root.key, sizeof(invite.pin));
    invite_addresses(a, &invite);
    (void)snprintf(invite.federation, sizeof(invite.federation), "%s", a->conf.federation);
    for (i = 0; i < invitations->n; i++) {
        struct fl_invited invited = {.line = line,
                                     .ends_ms = ends_of(a, &invitations->list[i], now_ms)};

        (void)memcpy(invite.token, tokens + i * FL_TOKEN_SIZE, FL_TOKEN_SIZE);
        (void)fl_token_prefix(invite.token, invited.prefix);
        rv = fl_invite_write(line, sizeof(line), &invite, err);
        if (rv != FL_OK) {
            break;
        }
        rv = cb(ctx, i, &invited);
        if (rv != FL_OK) {
            break;
        }
    }
    explicit_bzero(line, sizeof(line));
    fl_invite_done(&invite);
    return rv;
}

/* In one transaction: all of them, or none. */
static int invitations_store(struct fl_authority *a, const struct fl_invitations *invitations,
                             int64_t now_ms, uint8_t *tokens, struct fl_err *err)
{
    struct fl_invite invite = {0};
    size_t n = invitations->n;
    size_t i;
    int rv = fl__authority_begin(a, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        const struct fl_invitation *in = &invitations->list[i];

        rv = invitation_check(a, in, err);
        if (rv != FL_OK) {
            break;
        }
        rv = invitation_create(a, in, invitations->by, now_ms, &invite, err);
        if (rv != FL_OK) {
            break;
        }
        (void)memcpy(tokens + i * FL_TOKEN_SIZE, invite.token, FL_TOKEN_SIZE);
    }
    if (rv != FL_OK && n > 1) {
        (void)fl_err_wrap(err, rv, "number %zu of %zu, no invitation was created", i + 1, n);
    }
    fl_invite_done(&invite);
    return fl__authority_end(a, rv, err);
}

int fl_authority_invite(struct fl_authority *authority, const struct fl_invitations *invitations,
                        int64_t now_ms, fl_invited_cb *cb, void *ctx, struct fl_err *err)
{
    struct fl_query q;
    size_t n = invitations->n;
    uint64_t have = 0;
    uint8_t *tokens;
    int rv = fl__issues(authority, err);

    if (rv != FL_OK) {
        return rv;
    }
    q = fl_db_query(&authority->db, FL__SQL_COUNT_INVITATIONS);
    rv = fl_query_number(&q, &have, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (n > FL_INVITATIONS_MAX || have > FL_INVITATIONS_MAX - n) {
        return fl_err_set(err, FL_ELIMIT,
                          "%" PRIu64
                          " invitations exist and %zu more would exceed the limit of %d: expired "
                          "ones are deleted after 30 days, so wait, or invite by a pattern",
                          have, n, FL_INVITATIONS_MAX);
    }
    tokens = calloc(n + 1, FL_TOKEN_SIZE);
    if (tokens == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%zu invitations: out of memory", n);
    }
    rv = invitations_store(authority, invitations, now_ms, tokens, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = invitation_report(authority, invitations, tokens, now_ms, cb, ctx, err);
done:
    explicit_bzero(tokens, n * FL_TOKEN_SIZE);
    free(tokens);
    return rv;
}

/* --- listing --- */

const char *fl_invitation_state_text(enum fl_invitation_state state)
{
    static const char *const texts[] = {[FL_INVITATION_OPEN] = "open",
                                        [FL_INVITATION_OVER] = "over",
                                        [FL_INVITATION_USED] = "used",
                                        [FL_INVITATION_WITHDRAWN] = "withdrawn"};

    return texts[state];
}

static int invitation_list(const struct fl__invitation *row, int64_t now_ms, fl_invitation_cb *cb,
                           void *ctx, struct fl_err *err)
{
    struct fl_invitation_info info = {.uses = row->uses,
                                      .used = row->used,
                                      .made_ms = row->made_ms,
                                      .ends_ms = row->ends_ms,
                                      .by = row->by};
    int rv = fl__labels_unpack(row->labels.data, row->labels.len, &info.labels, &info.n_labels);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "labels: %s", fl_strerror(rv));
    }
    (void)memcpy(info.prefix, row->prefix, sizeof(info.prefix));
    (void)memcpy(info.name, row->name, sizeof(info.name));
    info.state = row->withdrawn_ms != 0   ? FL_INVITATION_WITHDRAWN
                 : row->used >= row->uses ? FL_INVITATION_USED
                 : row->ends_ms <= now_ms ? FL_INVITATION_OVER
                                          : FL_INVITATION_OPEN;
    rv = cb(ctx, &info);
    fl__labels_free(info.labels, info.n_labels);
    return rv;
}

int fl_authority_invitations(struct fl_authority *authority, int64_t now_ms, fl_invitation_cb *cb,
                             void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&authority->db, FL__SQL_GET_INVITATIONS);
    struct fl__invitation row;
    int rv;

    while ((rv = fl__invitation_next(&q, &row, err)) == FL_OK) {
        rv = invitation_list(&row, now_ms, cb, ctx, err);
        fl__invitation_done(&row);
        if (rv != FL_OK) {
            break;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

static int invitation_withdraw(struct fl_authority *a, const char *prefix, const char *by,
                               int64_t now_ms, struct fl__invitation *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_FIND_INVITATION);
    char result[64];
    const struct fl_audit_line line = {.at_ms = now_ms,
                                       .who = by,
                                       .what = fl_verbs[FL_VERB_UNINVITE].audit,
                                       .object = ret->name,
                                       .result = result};
    int rv;

    fl_query_text(&q, prefix);
    rv = fl__invitation_one(&q, ret, err);
    if (rv == FL_ENOENT) {
        return fl_err_set(err, rv,
                          "no invitation begins with '%.16s': flctl invitations --all lists them",
                          prefix);
    }
    if (rv != FL_OK) {
        return rv;
    }
    q = fl_db_query(&a->db, FL__SQL_WITHDRAW);
    fl_query_u64(&q, (uint64_t)now_ms);
    fl_query_text(&q, prefix);
    rv = fl_query_run(&q, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(result, sizeof(result), "ok, invitation %s, used %u times", prefix, ret->used);
    return fl__audit(a, &line, err);
}

int fl_authority_withdraw(struct fl_authority *authority, const char *prefix, const char *by,
                          int64_t now_ms, char ret_name[FL_IDENTITY_NAME_MAX], uint32_t *ret_used,
                          struct fl_err *err)
{
    struct fl__invitation row = {0};
    int rv = fl__authority_begin(authority, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = invitation_withdraw(authority, prefix, by, now_ms, &row, err);
    rv = fl__authority_end(authority, rv, err);
    if (rv != FL_OK) {
        goto done;
    }
    (void)memcpy(ret_name, row.name, sizeof(row.name));
    *ret_used = row.used;
done:
    fl__invitation_done(&row);
    return rv;
}
