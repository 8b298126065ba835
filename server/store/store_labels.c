/* The labels that clients announced, and what operators set for clients (central settings): both as
   the bytes of their caller. */
#include <stdio.h>

#include "server/store/store_impl.h"

int fl_store_put_labels(struct fl_store *store, const struct fl_labels_row *rows, size_t n,
                        struct fl_err *err)
{
    int rv = fl_db_begin(&store->db, err);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n && rv == FL_OK; i++) {
        struct fl_query q = fl_db_query(&store->db, FL__DB_PUT_LABELS);

        fl_query_blob(&q, rows[i].data, rows[i].len);
        fl_query_text(&q, rows[i].name);
        rv = fl_query_run(&q, err);
    }
    return fl_db_end(&store->db, rv, err);
}

int fl_store_labels(struct fl_store *store, fl_store_labels_cb cb, void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_LABELS);
    struct fl__client_labels row;
    int rv;

    while ((rv = fl__client_labels_next(&q, &row, err)) == FL_OK) {
        rv = cb(ctx, row.client, row.labels, row.labels_len);
        if (rv != FL_OK) {
            fl_query_reset(&q);
            return rv;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

int fl_store_put_central(struct fl_store *store, const char *name, const void *data, size_t len,
                         struct fl_err *err)
{
    struct fl_query q;
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (len == 0) {
        q = fl_db_query(&store->db, FL__DB_DROP_CENTRAL);
        fl_query_text(&q, name);
        rv = fl_query_run(&q, err);
    } else {
        struct fl__central row = {.settings = data, .settings_len = len};

        (void)snprintf(row.name, sizeof(row.name), "%s", name);
        rv = fl__central_put(&store->db, FL__DB_PUT_CENTRAL, &row, err);
    }
    return fl_db_end(&store->db, rv, err);
}

int fl_store_central(struct fl_store *store, fl_store_central_cb cb, void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_CENTRAL);
    struct fl__central row;
    int rv;

    while ((rv = fl__central_next(&q, &row, err)) == FL_OK) {
        rv = cb(ctx, row.name, row.settings, row.settings_len);
        if (rv != FL_OK) {
            fl_query_reset(&q);
            return rv;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}
