/* The last error of each client, for operators: the newest FL_ERRORS_MAX are kept. */
#include <stdio.h>

#include "server/store/store_impl.h"

int fl_store_put_error(struct fl_store *store, const struct fl_client_error *error,
                       struct fl_err *err)
{
    int rv = fl_db_begin(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__client_error_put(&store->db, FL__DB_PUT_ERROR, error, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_run_with(store, FL__DB_DROP_ERRORS, FL_ERRORS_MAX - 1, err);
done:
    return fl_db_end(&store->db, rv, err);
}

int fl_store_drop_errors(struct fl_store *store, const struct fl_client_error *errors, size_t n,
                         struct fl_err *err)
{
    int rv = fl_db_begin_durable(&store->db, err);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        struct fl_query q = fl_db_query(&store->db, FL__DB_DROP_ERROR);

        fl_query_text(&q, errors[i].name);
        rv = fl_query_run(&q, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    return fl_db_end(&store->db, rv, err);
}

int fl_store_errors(struct fl_store *store, fl_store_error_cb cb, void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_ERRORS);
    struct fl_client_error error;
    int rv;

    while ((rv = fl__client_error_next(&q, &error, err)) == FL_OK) {
        rv = cb(ctx, &error);
        if (rv != FL_OK) {
            fl_query_reset(&q);
            return rv;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}
