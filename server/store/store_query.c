/* Statements that need one call: without values, with a number, or with a number as result. On the
 * thread that owns the store. */

#include "server/store/store_impl.h"

int fl__store_run(struct fl_store *store, enum fl__db_statement which, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, which);

    return fl_query_run(&q, err);
}

int fl__store_run_with(struct fl_store *store, enum fl__db_statement which, uint64_t number,
                       struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, which);

    fl_query_u64(&q, number);
    return fl_query_run(&q, err);
}

int fl__store_drop_open(struct fl_store *store, struct fl_err *err)
{
    int rv = fl__store_run(store, FL__DB_DROP_PARTS, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl__store_run(store, FL__DB_DROP_OPEN, err);
}

int fl__store_number(struct fl_store *store, enum fl__db_statement which, uint64_t *ret,
                     struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, which);

    return fl_query_number(&q, ret, err);
}

int fl__store_last_round(struct fl_store *store, uint64_t *ret, struct fl_err *err)
{
    return fl__store_number(store, FL__DB_LAST_ROUND, ret, err);
}

int fl__store_is_new(struct fl_store *store, bool *ret, struct fl_err *err)
{
    uint64_t n = 0;
    int rv = fl__store_number(store, FL__DB_COUNT_RECORDS, &n, err);

    *ret = n == 0;
    return rv;
}

int fl__store_open_attempt(struct fl_store *store, uint64_t *ret_round, uint32_t *ret_attempt,
                           uint64_t *ret_updates, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_ATTEMPT);
    struct fl__open_round open;
    int rv;

    fl_query_u64(&q, FL_PARTICIPANT_ACCEPTED);
    rv = fl__open_round_one(&q, &open, err);
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    *ret_round = open.round;
    *ret_attempt = open.attempt;
    *ret_updates = open.updates;
    return FL_OK;
}
