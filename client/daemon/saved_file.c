#include "client/daemon/saved_file.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct fl_saved_write {
    struct fl_saved_file *file;
    size_t n;
    int code;
    struct fl_err err;
    _Alignas(max_align_t) unsigned char data[];
};

static void saved_write_work(void *arg)
{
    struct fl_saved_write *w = arg;

    w->code = w->file->write(w->file->state_dir, w->data, w->n, &w->err);
}

static void saved_file_begin(struct fl_saved_file *f);

static void saved_write_done(void *arg)
{
    struct fl_saved_write *w = arg;
    struct fl_saved_file *f = w->file;

    f->writing = false;
    f->written(f->ctx, w->code, &w->err);
    free(w);
    saved_file_begin(f);
}

static void saved_file_begin(struct fl_saved_file *f)
{
    struct fl_saved_write *w = f->next;

    if (w == NULL || f->writing || f->jobs->thread == NULL) {
        return;
    }
    f->next = NULL;
    f->writing = true;
    if (fl_jobs_submit(f->jobs, saved_write_work, saved_write_done, w) != FL_OK) {
        f->writing = false;
        f->written(f->ctx, FL_ENOMEM, &w->err);
        free(w);
    }
}

void fl_saved_file_set(struct fl_saved_file *f, const void *data, size_t n)
{
    struct fl_saved_write *w = malloc(sizeof(*w) + n);

    if (w == NULL) {
        f->written(f->ctx, FL_ENOMEM, &(struct fl_err){0});
        return;
    }
    *w = (struct fl_saved_write){.file = f, .n = n};
    memcpy(w->data, data, n);
    free(f->next);
    f->next = w;
    saved_file_begin(f);
}

void fl_saved_file_end(struct fl_saved_file *f)
{
    struct fl_saved_write *w = f->next;

    if (w != NULL) {
        f->next = NULL;
        saved_write_work(w);
        f->written(f->ctx, w->code, &w->err);
        free(w);
    }
}
