#ifndef FL_TESTS_STORE_FIXTURE_H
#define FL_TESTS_STORE_FIXTURE_H

/* A state folder and the layout of its model around each test. */

#include <check.h>

#include "server/store/store.h"
#include "tests/lib/store_rig.h"

static struct fl_layout *layout;
static const char *dir;

static inline void store_setup(void)
{
    dir = rig_dir();
    layout = rig_layout();
}

static inline void store_teardown(void)
{
    fl_layout_free(layout);
    rig_remove();
}

static inline struct fl_store *store_open(void)
{
    struct fl_store *s = NULL;
    struct fl_err err = {0};
    int rv = fl_store_open(dir, "fed", layout, FL_DURABLE_PROCESS, &s, &err);

    ck_assert_msg(rv == FL_OK, "%s", err.msg);
    return s;
}

/* With the folders that opening makes. */
static inline void store_setup_folders(void)
{
    store_setup();
    fl_store_close(store_open());
}

#endif
