#ifndef FL_LIB_WORLD_RIG_H
#define FL_LIB_WORLD_RIG_H

/* Network and device models from texts, with table files in the test's folder. */

#include <check.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "tests/lib/folder.h"
#include "tools/fl_sim/world/world.h"

static char world_dir[FOLDER_PATH];
static uint64_t world_horizon; /* us; 0: not known */

static inline void world_file(const char *name, const char *text)
{
    char path[2 * FOLDER_PATH];

    ck_assert(world_dir[0] != '\0' || folder_make("world", world_dir));
    ck_assert_int_eq(fl_fs_join(path, sizeof(path), world_dir, name), FL_OK);
    ck_assert_int_eq(fl_fs_replace(path, text, strlen(text), false, NULL), FL_OK);
}

/* `yaml`: what stands at `world:`. */
static inline int world_try(const char *yaml, uint64_t seed, uint64_t n, struct fl_world **ret,
                            struct fl_err *err)
{
    struct fl_world_ask ask = {.dir = world_dir, .seed = seed, .n = n, .horizon_us = world_horizon};
    struct fl_conf_doc *doc = NULL;
    char text[2048];
    int rv;

    (void)snprintf(text, sizeof(text), "world: %s\n", yaml);
    ck_assert_int_eq(fl_conf_parse("x.yaml", text, strlen(text), &doc, err), FL_OK);
    ask.node = fl_conf_get(fl_conf_root(doc), "world");
    rv = fl_world_load(&ask, ret, err);
    fl_conf_free(doc);
    return rv;
}

static inline struct fl_world *world_of(const char *yaml, uint64_t seed, uint64_t n)
{
    struct fl_world *world = NULL;
    struct fl_err err = {0};
    int rv = world_try(yaml, seed, n, &world, &err);

    ck_assert_msg(rv == FL_OK, "%s: %s", yaml, err.msg);
    return world;
}

#endif
