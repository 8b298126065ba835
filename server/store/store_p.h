#ifndef FL_STORE_STORE_P_H
#define FL_STORE_STORE_P_H

/* Shared between the files of this room only. */

#include "server/store/db.h"
#include "server/store/store.h"

/* Longest path that this room makes. */
#define FL__STORE_PATH_MAX 4096

struct fl_store {
    struct fl__db db;
    size_t n_units;
};

#endif
