/* The columns of the federation row that describe the current generation, and the record of
 * changes. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "server/store/generation_impl.h"

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

int fl__generation_read(struct fl_store *store, struct fl__generation_row *rec, struct fl_err *err)
{
    struct fl_query query = fl_db_query(&store->db, FL__DB_GET_LINE);
    struct fl_query *q = &query;
    size_t n_meaning = 0;
    const void *meaning;
    int rv = fl_query_next(q, err);

    if (rv != FL_OK) {
        goto done;
    }
    *rec = (struct fl__generation_row){.known = false};
    FL__LINE_ROW(FL__ROW_READ)
    rv = read_identity(store, q, rec->identity, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = read_identity(store, q, rec->kept_identity, err);
    if (rv != FL_OK) {
        goto done;
    }
    meaning = fl_column_blob(q, &n_meaning);
    if (meaning != NULL && n_meaning == sizeof(rec->meaning)) {
        (void)memcpy(rec->meaning, meaning, sizeof(rec->meaning));
        rec->known = true;
    }
done:
    fl_query_reset(q);
    return rv;
}

int fl__generation_write(struct fl_store *store, const struct fl__generation_row *rec,
                         struct fl_err *err)
{
    struct fl_query query = fl_db_query(&store->db, FL__DB_PUT_LINE);
    struct fl_query *q = &query;

    FL__LINE_ROW(FL__ROW_BIND)
    fl_query_blob(q, rec->identity, sizeof(rec->identity));
    fl_query_blob(q, rec->kept_identity, sizeof(rec->kept_identity));
    fl_query_blob(q, rec->known ? rec->meaning : NULL, sizeof(rec->meaning));
    return fl_query_run(q, err);
}

/* SHA-256 of the kind, the identity, the generation number and the compatibility digest (NULL: left
 * out). */
static int make_tag(const char *what, const uint8_t whose[FL__IDENTITY], uint64_t number,
                    const uint8_t *meaning, uint8_t out[FL_GENERATION_TAG])
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

int fl__generation_of(const struct fl__generation_row *row, struct fl_generation *ret)
{
    struct fl_generation line = {
        .number = row->line, .kept_number = row->state_generation, .kept_since = row->kept_since};
    char meaning[2 * FL_DIGEST_SIZE + 1];
    int rv = make_tag("line", row->identity, row->line, row->meaning, line.tag);

    if (rv != FL_OK) {
        return rv;
    }
    rv = make_tag("kept", row->kept_identity, row->state_generation, NULL, line.kept_tag);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(line.made, sizeof(line.made), "%" PRIu64 " %s", row->line,
                   fl_hex(meaning, row->meaning, FL_DIGEST_SIZE));
    *ret = line;
    return FL_OK;
}

int fl__generation_put_change(struct fl_store *store, const struct fl_change_rec *rec,
                              struct fl_err *err)
{
    struct fl_query query = fl_db_query(&store->db, FL__DB_PUT_CHANGE);
    struct fl_query *q = &query;

    FL__CHANGE_ROW(FL__ROW_BIND)
    return fl_query_run(q, err);
}
