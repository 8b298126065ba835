/* The columns of the federation row that describe the current generation, and the record of
 * changes. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "server/store/generation_impl.h"

int fl__generation_read(struct fl_store *store, struct fl__folder *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_LINE);

    return fl__folder_one(&q, ret, err);
}

int fl__generation_write(struct fl_store *store, const struct fl__folder *rec, struct fl_err *err)
{
    return fl__folder_put(&store->db, FL__DB_PUT_LINE, rec, err);
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

int fl__generation_of(const struct fl__folder *row, struct fl_generation *ret)
{
    struct fl_generation generation = {.number = row->generation,
                                       .kept_number = row->state_generation,
                                       .kept_since = row->kept_since};
    char meaning[2 * FL_DIGEST_SIZE + 1];
    int rv = make_tag("generation", row->identity, row->generation, row->meaning, generation.tag);

    if (rv != FL_OK) {
        return rv;
    }
    rv = make_tag("kept", row->kept_identity, row->state_generation, NULL, generation.kept_tag);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(generation.made, sizeof(generation.made), "%" PRIu64 " %s", row->generation,
                   fl_hex(meaning, row->meaning, FL_DIGEST_SIZE));
    *ret = generation;
    return FL_OK;
}

int fl__generation_put_change(struct fl_store *store, const struct fl_change_rec *rec,
                              struct fl_err *err)
{
    return fl__change_put(&store->db, FL__DB_PUT_CHANGE, rec, err);
}
