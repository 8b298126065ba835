/*
 * The audit in identity.db: entries within a transaction, and rate-limited entries about refused
 * peers. Runs on the thread of the authority. Entries are logged after their transaction is
 * committed (authority.c).
 */

#include "server/identity/audit.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "server/identity/authority_impl.h"

/* Our own texts are short; texts from peers are truncated. */
static const char *audit_truncate(char out[FL__AUDIT_TEXT], const char *text)
{
    (void)snprintf(out, FL__AUDIT_TEXT, "%s", text != NULL ? text : "");
    return fl_str_clean(out);
}

/* Queue the log line of an audit row until its transaction is committed. */
static void audit_queue_log(struct fl_authority *a, const char *who, const char *what,
                            const char *object, const char *result)
{
    char line[4 * FL__AUDIT_TEXT];
    int n =
        snprintf(line, sizeof(line), "audit: %s%s%s%s%s by=\"%s\"", what,
                 object[0] != '\0' ? " " : "", object, result[0] != '\0' ? ": " : "", result, who);

    a->n_log_lines++;
    if (n > 0 && fl_buf_add(&a->log_lines, line, (size_t)n + 1) != FL_OK) {
        return; /* it is counted, and the database has it */
    }
}

int fl__audit(struct fl_authority *a, bool peer, const char *who, const char *what,
              const char *object, const char *result, int64_t now_ms, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_PUT_AUDIT);
    char texts[3][FL__AUDIT_TEXT];
    int rv;

    fl_query_u64(&q, (uint64_t)now_ms);
    fl_query_text(&q, audit_truncate(texts[0], who));
    fl_query_text(&q, what);
    fl_query_text(&q, audit_truncate(texts[1], object));
    fl_query_text(&q, audit_truncate(texts[2], result));
    fl_query_u64(&q, peer);
    rv = fl_query_run(&q, err);
    if (rv == FL_OK && peer && fl_db_last_row(&a->db) % 64 == 0) {
        q = fl_db_query(&a->db, FL__SQL_DROP_AUDIT);
        fl_query_u64(&q, FL_AUDIT_PEERS_MAX);
        rv = fl_query_run(&q, err);
    }
    if (rv == FL_OK) {
        audit_queue_log(a, texts[0], what, texts[1], texts[2]);
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
    rv =
        fl__audit(authority, false, who, audit_truncate(fitted, what), object, result, now_ms, err);
    return fl__authority_end(authority, rv, err);
}

void fl__audit_refusal(struct fl_authority *a, const char *address, const char *what,
                       const char *object, const char *result, int64_t now_ms)
{
    char more[2 * FL__AUDIT_TEXT];
    uint32_t before = 0;
    int rv;

    if (!fl__join_attempts_log(&a->attempts, address, now_ms, &before)) {
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
        fl__authority_log(&a->conf, FL_LOG_ERROR, "audit entry lost (%s refused for %s): %s", what,
                          address, fl_strerror(rv));
    }
}

int fl__audit_counted(struct fl_authority *a, bool all, int64_t now_ms, struct fl_err *err)
{
    char address[FL__ADDRESS_TEXT];
    char text[64];
    uint32_t n = 0;
    int rv = FL_OK;

    while (rv == FL_OK && fl__join_attempts_unlogged(&a->attempts, now_ms, all, address, &n)) {
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
