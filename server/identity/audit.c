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

int fl__audit(struct fl_authority *a, const struct fl_audit_line *line, struct fl_err *err)
{
    char texts[3][FL__AUDIT_TEXT];
    struct fl_audit_line put = {.at_ms = line->at_ms,
                                .who = audit_truncate(texts[0], line->who),
                                .what = line->what,
                                .object = audit_truncate(texts[1], line->object),
                                .result = audit_truncate(texts[2], line->result),
                                .peer = line->peer};
    char text[4 * FL__AUDIT_TEXT];
    int n;
    int rv = fl__audit_line_put(&a->db, FL__SQL_PUT_AUDIT, &put, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (put.peer && fl_db_last_row(&a->db) % 64 == 0) {
        struct fl_query q = fl_db_query(&a->db, FL__SQL_DROP_AUDIT);

        fl_query_u64(&q, FL_AUDIT_PEERS_MAX);
        rv = fl_query_run(&q, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    /* The log line waits until the transaction is committed. */
    n = snprintf(text, sizeof(text), "audit: %s%s%s%s%s by=\"%s\"", put.what,
                 put.object[0] != '\0' ? " " : "", put.object, put.result[0] != '\0' ? ": " : "",
                 put.result, put.who);
    a->n_log_lines++;
    if (n > 0 && fl_buf_add(&a->log_lines, text, (size_t)n + 1) != FL_OK) {
        return FL_OK; /* it is counted, and the database has it */
    }
    return FL_OK;
}

/* An entry in a transaction of its own. */
static int audit_alone(struct fl_authority *a, const struct fl_audit_line *line, struct fl_err *err)
{
    int rv = fl__authority_begin(a, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl__authority_end(a, fl__audit(a, line, err), err);
}

int fl_authority_audit(struct fl_authority *authority, const char *who, const char *what,
                       const char *object, const char *result, int64_t now_ms, struct fl_err *err)
{
    char fitted[FL__AUDIT_TEXT];
    struct fl_audit_line line = {.at_ms = now_ms,
                                 .who = who,
                                 .what = audit_truncate(fitted, what),
                                 .object = object,
                                 .result = result};

    return audit_alone(authority, &line, err);
}

void fl__audit_refusal(struct fl_authority *a, const char *address, const char *what,
                       const char *object, const char *result, int64_t now_ms)
{
    char more[2 * FL__AUDIT_TEXT];
    struct fl_audit_line line = {.at_ms = now_ms,
                                 .who = address,
                                 .what = what,
                                 .object = object,
                                 .result = more,
                                 .peer = true};
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
    rv = audit_alone(a, &line, NULL);
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

    while (fl__join_attempts_unlogged(&a->attempts, now_ms, all, address, &n)) {
        struct fl_audit_line line = {.at_ms = now_ms,
                                     .who = address[0] != '\0' ? address : "several addresses",
                                     .what = "join",
                                     .result = text,
                                     .peer = true};
        int rv;

        (void)snprintf(text, sizeof(text), "refused %u more times", n);
        rv = audit_alone(a, &line, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_authority_audit_lines(struct fl_authority *authority, size_t last, fl_audit_cb *cb,
                             void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&authority->db, FL__SQL_GET_AUDIT);
    struct fl_audit_line line;
    int rv;

    fl_query_u64(&q, last < INT32_MAX ? last : INT32_MAX);
    while ((rv = fl__audit_line_next(&q, &line, err)) == FL_OK) {
        rv = cb(ctx, &line);
        if (rv != FL_OK) {
            break;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}
