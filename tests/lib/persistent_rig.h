#ifndef FL_LIB_PERSISTENT_RIG_H
#define FL_LIB_PERSISTENT_RIG_H

/* A persistent trainer (tests/lib/fake_trainer), a small model, and a clock set by the test.
 */

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/program/persistent.h"
#include "tests/lib/folder.h"

/* Longer than any test takes: only a hang reaches it. */
#define RIG_LONG UINT64_C(600000)

/* The real clock plus skipped pauses: pauses take no time. */
struct rig_time {
    uint64_t ahead_ms;
    uint64_t step_ms; /* added at each read of the clock, for code that only waits */
    uint64_t paused_ms;
    bool stands; /* but for pauses */
};

struct rig {
    char dir[FOLDER_PATH], notes[128], program[PATH_MAX], number[16];
    const char *argv[5];
    struct rig_time time;
    struct fl_persistent_clock clock;
    struct fl_persistent_conf conf;
    struct fl_persistent *r;
    struct fl_layout *layout;
    struct fl_persistent_model model;
    size_t count;
    float given[16], out[16];
    uint64_t progressed;
    atomic_bool cancel;
    struct fl_err err;
};

static inline uint64_t rig_now(void *ctx)
{
    struct rig_time *t = ctx;

    t->ahead_ms += t->step_ms;
    return (t->stands ? 1 : fl_clock_ms()) + t->ahead_ms;
}

static inline void rig_pause(void *ctx, uint64_t ms)
{
    struct rig_time *t = ctx;

    t->ahead_ms += ms;
    t->paused_ms += ms;
}

static inline struct fl_layout *rig_layout(size_t inputs)
{
    const size_t weight[] = {3, inputs};
    const size_t bias[] = {3};
    struct fl_layout *layout = NULL;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "fc1", "fc1.weight", weight, 2, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "fc1", "fc1.bias", bias, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    return layout;
}

/* Not started: rig.conf may be changed, then rig_create(). */
static inline void rig_init(struct rig *rig, const char *mode)
{
    const char *build = getenv("FL_BUILDDIR");
    size_t i;

    *rig = (struct rig){.count = 0};
    ck_assert(folder_make("persistent", rig->dir));
    (void)snprintf(rig->notes, sizeof(rig->notes), "%s/notes", rig->dir);
    (void)snprintf(rig->program, sizeof(rig->program), "%s/tests/lib/fake_trainer",
                   build != NULL ? build : ".");
    rig->argv[0] = rig->program;
    rig->argv[1] = mode;
    rig->argv[2] = rig->notes;
    rig->clock = (struct fl_persistent_clock){rig_now, rig_pause, &rig->time};
    rig->conf = (struct fl_persistent_conf){.argv = rig->argv,
                                            .client = "edge-1",
                                            .data = "/srv/data",
                                            .purpose = "train",
                                            .start_limit_ms = RIG_LONG,
                                            .cancel_grace_ms = RIG_LONG,
                                            .idle_exit_ms = 60000,
                                            .clock = &rig->clock};
    rig->layout = rig_layout(4);
    rig->count = fl_layout_count(rig->layout);
    rig->model = (struct fl_persistent_model){
        .layout = rig->layout, .solver = "{\"name\": \"sgd\", \"options\": {}}", .epochs = 1};
    for (i = 0; i < rig->count; i++) {
        rig->given[i] = (float)i;
    }
    atomic_init(&rig->cancel, false);
}

static inline void rig_create(struct rig *rig)
{
    ck_assert_msg(fl_persistent_create(&rig->conf, &rig->r, &rig->err) == FL_OK, "%s",
                  rig->err.msg);
}

static inline void rig_describe(struct rig *rig)
{
    ck_assert_msg(fl_persistent_describe(rig->r, &rig->model, RIG_LONG, &rig->err) == FL_OK, "%s",
                  rig->err.msg);
}

/* A program of that mode, and a model for it. */
static inline void rig_open(struct rig *rig, const char *mode)
{
    rig_init(rig, mode);
    rig_create(rig);
    rig_describe(rig);
}

static inline void rig_done(struct rig *rig)
{
    fl_persistent_free(rig->r);
    fl_layout_free(rig->layout);
    folder_remove(rig->dir);
}

static inline void rig_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct rig *rig = ctx;

    (void)total;
    rig->progressed = done;
}

static inline struct fl_persistent_task rig_task(struct rig *rig, enum fl_persistent_kind kind)
{
    return (struct fl_persistent_task){.kind = kind,
                                       .given = {rig->given},
                                       .asked = {.key.round = 3, .learning_rate = 0.1, .seed = 5},
                                       .epochs = 1,
                                       .batch_size = 20,
                                       .solver = "{\"name\": \"fedmix\", \"options\": {}}",
                                       .cancel = &rig->cancel,
                                       .progress = rig_progress,
                                       .ctx = rig};
}

static inline int rig_run(struct rig *rig, enum fl_persistent_kind kind,
                          struct fl_persistent_answer *ret)
{
    struct fl_persistent_task task = rig_task(rig, kind);

    rig->err = (struct fl_err){0};
    return fl_persistent_run(rig->r, &task, ret, &rig->err);
}

static inline bool rig_says(const struct rig *rig, const char *text)
{
    return strstr(rig->err.msg, text) != NULL;
}

/* The log of the program, each line followed by ';'. */
static inline char *rig_notes(const struct rig *rig)
{
    static char text[4096];
    struct fl_buf buf = {0};
    size_t i;

    text[0] = '\0';
    if (fl_fs_read(rig->notes, sizeof(text) - 1, &buf, NULL) == FL_OK) {
        (void)memcpy(text, buf.data, buf.len);
        text[buf.len] = '\0';
        fl_buf_done(&buf);
    }
    for (i = 0; text[i] != '\0'; i++) {
        text[i] = text[i] == '\n' ? ';' : text[i];
    }
    return text;
}

#endif
