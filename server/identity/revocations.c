/*
 * The revocations as an immutable table that any thread may query, and the texts about them. The
 * table is built on the thread of the authority. Revoking is in revoke.c.
 */
#include "server/identity/revocations.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "libfl/pki/when.h"
#include "server/identity/authority_impl.h"

struct revocation {
    uint8_t kind; /* enum fl__revocation_kind */
    uint8_t len;
    uint8_t value[FL_IDENTITY_NAME_MAX];
    enum fl_revocation_verb verb;
    char *why; /* as revocation_format() writes it */
};

struct fl_revocations {
    atomic_uint refs;
    struct revocation *list; /* in the order of revocation_compare() */
    size_t n, cap;
};

struct fl_revocations *fl_revocations_ref(struct fl_revocations *revocations)
{
    (void)atomic_fetch_add_explicit(&revocations->refs, 1, memory_order_relaxed);
    return revocations;
}

void fl_revocations_unref(struct fl_revocations *revocations)
{
    size_t i;

    if (revocations == NULL ||
        atomic_fetch_sub_explicit(&revocations->refs, 1, memory_order_acq_rel) != 1)
    {
        return;
    }
    for (i = 0; i < revocations->n; i++) {
        free(revocations->list[i].why);
    }
    free(revocations->list);
    free(revocations);
}

/* In SQLite's order: by kind, then as memcmp(), the shorter one first. */
static int revocation_compare(const void *x, const void *y)
{
    const struct revocation *a = x;
    const struct revocation *b = y;
    int order = (int)a->kind - (int)b->kind;

    if (order == 0) {
        order = memcmp(a->value, b->value, a->len < b->len ? a->len : b->len);
    }
    return order != 0 ? order : (int)a->len - (int)b->len;
}

static const struct revocation *revocation_find(const struct fl_revocations *revocations,
                                                enum fl__revocation_kind kind, const void *value,
                                                size_t len)
{
    struct revocation key = {.kind = (uint8_t)kind, .len = (uint8_t)len};

    if (len == 0 || len > sizeof(key.value) || revocations->n == 0) {
        return NULL;
    }
    (void)memcpy(key.value, value, len);
    return bsearch(&key, revocations->list, revocations->n, sizeof(key), revocation_compare);
}

/* Without the advice: "revoked at 2026-11-22 18:15:02Z by uid 0 (root): stolen". */
static void revocation_format(char *out, size_t size, const struct fl__revocation *row)
{
    static const char *const verbs[] = {[FL_REVOCATION_REVOKED] = "revoked",
                                        [FL_REVOCATION_EVICTED] = "evicted",
                                        [FL_REVOCATION_REPLACED] = "replaced",
                                        [FL_REVOCATION_DISABLED] = "disabled"};
    char when[FL_WHEN_TEXT];

    (void)snprintf(out, size, "%s at %s by %s%s%s", verbs[row->verb],
                   fl_when_text(when, sizeof(when), row->at_ms / 1000), row->by,
                   row->why[0] != '\0' ? ": " : "", row->why);
}

/* With the advice, addressed to the revoked peer: "revoked at … (permanent; …)". */
static void revocation_format_advice(char *out, size_t size, enum fl_revocation_verb verb,
                                     const char *why, const char *name)
{
    static const struct {
        const char *before, *after; /* the name is inserted between them; NULL: it is not */
    } advice[] = {[FL_REVOCATION_REVOKED] = {"permanent; join again with another key, and where "
                                             "the name is revoked, by another name",
                                             NULL},
                  [FL_REVOCATION_EVICTED] = {"to join again: flctl invite ",
                                             " on the server, fl-clientd --join here"},
                  [FL_REVOCATION_REPLACED] = {"if this host is the right one: flctl invite ",
                                              " on the server, fl-clientd --join here"},
                  [FL_REVOCATION_DISABLED] = {"until flctl enable ", " on the server"}};
    bool named = advice[verb].after != NULL;

    (void)snprintf(out, size, "%.300s (%s%s%s)", why, advice[verb].before,
                   !named         ? ""
                   : name != NULL ? name
                                  : "NAME",
                   named ? advice[verb].after : "");
}

static const struct revocation *revocation_of(const struct fl_revocations *revocations,
                                              const struct fl_identity *who)
{
    const struct revocation *found = NULL;

    if (who->kind == FL_IDENTITY_CERTIFICATE) {
        found = revocation_find(revocations, FL__REVOKE_SERIAL, who->serial, who->serial_len);
        found = found != NULL
                    ? found
                    : revocation_find(revocations, FL__REVOKE_KEY, who->key, sizeof(who->key));
    }
    return found != NULL
               ? found
               : revocation_find(revocations, FL__REVOKE_NAME, who->name, strlen(who->name));
}

bool fl_revocations_temporary(const struct fl_revocations *revocations,
                              const struct fl_identity *who)
{
    const struct revocation *found = revocation_of(revocations, who);

    return found != NULL && found->verb == FL_REVOCATION_DISABLED;
}

bool fl_revocations_has(const struct fl_revocations *revocations, const struct fl_identity *who,
                        char *why, size_t size)
{
    const struct revocation *found = revocation_of(revocations, who);
    int n;

    if (found != NULL && why != NULL) {
        n = snprintf(why, size, "'%s' was ", who->name);
        if (n > 0 && (size_t)n < size) {
            revocation_format_advice(why + n, size - (size_t)n, found->verb, found->why, who->name);
        }
    }
    return found != NULL;
}

static int revocation_add(struct fl_revocations *d, const struct fl__revocation *row)
{
    char text[2 * FL__AUDIT_TEXT];
    struct revocation *slot;

    int rv = fl_grow(&d->list, &d->cap, d->n, sizeof(*d->list));

    if (rv != FL_OK) {
        return rv;
    }
    revocation_format(text, sizeof(text), row);
    slot = &d->list[d->n];
    *slot = (struct revocation){.kind = (uint8_t)row->kind,
                                .len = (uint8_t)row->value_len,
                                .verb = row->verb,
                                .why = fl_str_dup(text)};
    if (slot->why == NULL) {
        return FL_ENOMEM;
    }
    if (row->value_len > 0) {
        (void)memcpy(slot->value, row->value, row->value_len);
    }
    d->n++;
    return FL_OK;
}

int fl_authority_revocations(struct fl_authority *authority, struct fl_revocations **ret,
                             struct fl_err *err)
{
    struct fl_revocations *made;
    struct fl__revocation row;
    struct fl_query q;
    int rv;

    if (!authority->revocations_stale) {
        *ret = fl_revocations_ref(authority->revocations);
        return FL_OK;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return fl_err_set(err, FL_ENOMEM, "revocations: out of memory");
    }
    atomic_init(&made->refs, 1);
    q = fl_db_query(&authority->db, FL__SQL_GET_REVOCATIONS);
    while ((rv = fl__revocation_next(&q, &row, err)) == FL_OK) {
        rv = revocation_add(made, &row);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "revocations: %s", fl_strerror(rv));
            break;
        }
    }
    fl_query_reset(&q);
    if (rv != FL_ENOENT) { /* not the end of the rows */
        fl_revocations_unref(made);
        return rv;
    }
    fl_revocations_unref(authority->revocations);
    authority->revocations = made;
    authority->revocations_stale = false;
    *ret = fl_revocations_ref(made);
    return FL_OK;
}

/* --- the same query on the database, for a peer that requests a certificate --- */

int fl__revoked_by(struct fl_authority *a, const struct fl_revoked *whom,
                   struct fl__revoked_state *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_GET_REVOCATION);
    struct fl__revocation row;
    int rv;

    *ret = (struct fl__revoked_state){.verb = 0};
    fl_query_blob(&q, whom->serial, whom->serial_len);
    fl_query_blob(&q, whom->key, FL_KEY_HASH);
    fl_query_blob(&q, whom->name, whom->name != NULL ? strlen(whom->name) : 0);
    rv = fl__revocation_next(&q, &row, err);
    if (rv != FL_OK) {
        goto done;
    }
    ret->verb = (int)row.verb;
    revocation_format(ret->why, sizeof(ret->why), &row);
done:
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

int fl__check_revoked(struct fl_authority *a, const struct fl_revoked *whom, struct fl_err *err)
{
    char text[FL_ERR_BUF_SIZE];
    struct fl__revoked_state revoked;
    int rv = fl__revoked_by(a, whom, &revoked, err);

    if (rv != FL_OK || revoked.verb == 0) {
        return rv;
    }
    revocation_format_advice(text, sizeof(text), (enum fl_revocation_verb)revoked.verb, revoked.why,
                             whom->name);
    return fl_err_set(err, FL_EPERM, "%s%s%s was %s", whom->name != NULL ? "'" : "this key",
                      whom->name != NULL ? whom->name : "", whom->name != NULL ? "'" : "", text);
}
