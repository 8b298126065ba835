/* The row of the federation, as far as it says what all of it was made under, and the record. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "server/store/line_impl.h"

static int read_identity(struct fl_store *store, struct fl_query *q, uint8_t out[FL__IDENTITY],
                         struct fl_err *err)
{
    size_t len = 0;
    const void *data = fl_column_blob(q, &len);

    if (len != FL__IDENTITY) {
        return fl_err_set(err, FL_EFORMAT, "state database '%s' is damaged: no identity",
                          store->db.path);
    }
    (void)memcpy(out, data, len);
    return FL_OK;
}

int fl__line_read(struct fl_store *store, struct fl__line_row *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_LINE);
    int rv = fl_query_next(&q, err);

    if (rv == FL_OK) {
        size_t n_meaning = 0;
        const void *meaning = NULL;

        *ret = (struct fl__line_row){.known = false};
        rv = read_identity(store, &q, ret->identity, err);
        rv = rv == FL_OK ? read_identity(store, &q, ret->kept_identity, err) : rv;
        meaning = fl_column_blob(&q, &n_meaning);
        if (n_meaning == sizeof(ret->meaning)) {
            (void)memcpy(ret->meaning, meaning, sizeof(ret->meaning));
            ret->known = true;
        }
        ret->line = fl_column_u64(&q);
        ret->kept_line = fl_column_u64(&q);
        ret->kept_since = fl_column_u64(&q);
        ret->used_round = fl_column_u64(&q);
        ret->used_attempt = fl_column_u64(&q);
    }
    fl_query_reset(&q);
    return rv;
}

int fl__line_write(struct fl_store *store, const struct fl__line_row *row, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_PUT_LINE);

    fl_query_blob(&q, row->identity, sizeof(row->identity));
    fl_query_blob(&q, row->kept_identity, sizeof(row->kept_identity));
    fl_query_blob(&q, row->known ? row->meaning : NULL, sizeof(row->meaning));
    fl_query_u64(&q, row->line);
    fl_query_u64(&q, row->kept_line);
    fl_query_u64(&q, row->kept_since);
    fl_query_u64(&q, row->used_round);
    fl_query_u64(&q, row->used_attempt);
    return fl_query_run(&q, err);
}

/* SHA-256 of what it is, whose, the number, and what an update means (NULL: no part of it). */
static int make_tag(const char *what, const uint8_t whose[FL__IDENTITY], uint64_t number,
                    const uint8_t *meaning, uint8_t out[FL_LINE_TAG])
{
    char text[2 * FL__IDENTITY + 2 * FL_DIGEST_SIZE + 64];
    char identity[2 * FL__IDENTITY + 1];
    char digest[2 * FL_DIGEST_SIZE + 1] = "";
    int n;

    (void)fl_hex(identity, whose, FL__IDENTITY);
    if (meaning != NULL) {
        (void)fl_hex(digest, meaning, FL_DIGEST_SIZE);
    }
    n = snprintf(text, sizeof(text), "%s %s %" PRIu64 " %s", what, identity, number, digest);
    return fl_sha256(text, (size_t)n, out);
}

int fl__line_of(const struct fl__line_row *row, struct fl_line *ret)
{
    struct fl_line line = {
        .number = row->line, .kept_number = row->kept_line, .kept_since = row->kept_since};
    char meaning[2 * FL_DIGEST_SIZE + 1];
    int rv = make_tag("line", row->identity, row->line, row->meaning, line.tag);

    rv = rv == FL_OK ? make_tag("kept", row->kept_identity, row->kept_line, NULL, line.kept_tag)
                     : rv;
    (void)snprintf(line.made, sizeof(line.made), "%" PRIu64 " %s", row->line,
                   fl_hex(meaning, row->meaning, FL_DIGEST_SIZE));
    *ret = line;
    return rv;
}

int fl__line_put_change(struct fl_store *store, const struct fl_change_rec *c, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_PUT_CHANGE);

    fl_query_u64(&q, c->round);
    fl_query_u64(&q, c->line);
    fl_query_u64(&q, c->at_ms);
    fl_query_text(&q, c->name);
    fl_query_text(&q, c->before);
    fl_query_text(&q, c->after);
    return fl_query_run(&q, err);
}
