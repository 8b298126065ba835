#include "server/identity/audit.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "server/identity/authority_impl.h"

/* Ours are short; what came from outside is cut, so that a line stays one. */
static const char *fit(char out[FL__AUDIT_TEXT], const char *text)
{
    (void)snprintf(out, FL__AUDIT_TEXT, "%s", text != NULL ? text : "");
    return fl_str_clean(out);
}

/* A line of the log for what a row says. */
static void tell(struct fl_authority *a, const char *who, const char *what, const char *object,
                 const char *result)
{
    char line[4 * FL__AUDIT_TEXT];
    int n =
        snprintf(line, sizeof(line), "audit: %s%s%s%s%s by=\"%s\"", what,
                 object[0] != '\0' ? " " : "", object, result[0] != '\0' ? ": " : "", result, who);

    a->n_told++;
    if (n > 0 && fl_buf_add(&a->told, line, (size_t)n + 1) != FL_OK) {
        return; /* it is counted, and in the database */
    }
}

int fl__audit(struct fl_authority *a, bool peer, const char *who, const char *what,
              const char *object, const char *result, int64_t now_ms, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_PUT_AUDIT);
    char texts[3][FL__AUDIT_TEXT];
    int rv;

    fl_query_u64(&q, (uint64_t)now_ms);
    fl_query_text(&q, fit(texts[0], who));
    fl_query_text(&q, what);
    fl_query_text(&q, fit(texts[1], object));
    fl_query_text(&q, fit(texts[2], result));
    fl_query_u64(&q, peer);
    rv = fl_query_run(&q, err);
    if (rv == FL_OK && peer && fl_db_last_row(&a->db) % 64 == 0) {
        q = fl_db_query(&a->db, FL__SQL_DROP_AUDIT);
        fl_query_u64(&q, FL_AUDIT_PEERS_MAX);
        rv = fl_query_run(&q, err);
    }
    if (rv == FL_OK) {
        tell(a, texts[0], what, texts[1], texts[2]);
    }
    return rv;
}

int fl_authority_audit(struct fl_authority *authority, const char *who, const char *what,
                       const char *object, const char *result, int64_t now_ms, struct fl_err *err)
{
    char fitted[FL__AUDIT_TEXT];
    int rv = fl__authority_begin(authority, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__audit(authority, false, who, fit(fitted, what), object, result, now_ms, err);
    return fl__authority_end(authority, rv, err);
}

void fl__audit_refusal(struct fl_authority *a, const char *address, const char *what,
                       const char *object, const char *result, int64_t now_ms)
{
    char more[2 * FL__AUDIT_TEXT];
    uint32_t before = 0;
    int rv;

    if (!fl__join_attempts_tell(&a->tries, address, now_ms, &before)) {
        return;
    }
    (void)snprintf(more, sizeof(more), "refused: %.*s", FL__AUDIT_TEXT - 1, result);
    if (before > 0) {
        (void)snprintf(more, sizeof(more), "refused, and %u times before: %.*s", before,
                       FL__AUDIT_TEXT - 1, result);
    }
    rv = fl__authority_begin(a, NULL);
    if (rv == FL_OK) {
        rv = fl__audit(a, true, address, what, object, more, now_ms, NULL);
        rv = fl__authority_end(a, rv, NULL);
    }
    if (rv != FL_OK) {
        fl__say(&a->conf, FL_LOG_ERROR, "a line of the audit is lost (%s refused for %s): %s", what,
                address, fl_strerror(rv));
    }
}

int fl__audit_counted(struct fl_authority *a, bool all, int64_t now_ms, struct fl_err *err)
{
    char address[FL__ADDRESS_TEXT];
    char text[64];
    uint32_t n = 0;
    int rv = FL_OK;

    while (rv == FL_OK && fl__join_attempts_untold(&a->tries, now_ms, all, address, &n)) {
        (void)snprintf(text, sizeof(text), "refused %u more times", n);
        rv = fl__authority_begin(a, err);
        if (rv == FL_OK) {
            rv = fl__audit(a, true, address[0] != '\0' ? address : "several addresses", "join", "",
                           text, now_ms, err);
            rv = fl__authority_end(a, rv, err);
        }
    }
    return rv;
}

int fl_authority_audit_lines(struct fl_authority *authority, size_t last, fl_audit_cb *cb,
                             void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&authority->db, FL__SQL_GET_AUDIT);
    int rv;

    fl_query_u64(&q, last < INT32_MAX ? last : INT32_MAX);
    while ((rv = fl_query_next(&q, err)) == FL_OK) {
        struct fl_audit_line line;

        line.number = fl_column_u64(&q);
        line.at_ms = (int64_t)fl_column_u64(&q);
        line.who = fl_column_text(&q);
        line.what = fl_column_text(&q);
        line.object = fl_column_text(&q);
        line.result = fl_column_text(&q);
        rv = cb(ctx, &line);
        if (rv != FL_OK) {
            break;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}
