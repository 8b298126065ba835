#ifndef FL_LIB_TRAINER_RIG_H
#define FL_LIB_TRAINER_RIG_H

/* An external trainer program, with a working folder. */

#include <check.h>
#include <stdlib.h>

#include "tests/client/train/train_fixture.h"
#include "tests/lib/folder.h"

struct fixture {
    struct server server;
    char dir[64];
    struct fl_trainer *trainer;
    struct fl_err err;
};

static inline void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.dir = "train.XXXXXX"};
    server_init(&f->server);
    ck_assert_ptr_nonnull(mkdtemp(f->dir));
}

static inline void fixture_done(struct fixture *f)
{
    fl_trainer_free(f->trainer);
    server_done(&f->server);
    folder_remove(f->dir);
}

#endif
