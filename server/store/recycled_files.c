/*
 * Recycles spool files of finished rounds for new uploads. On the thread that opens spool files for
 * writing, blocking. The contents of the files are handled in spool.c.
 */

#include "server/store/recycled_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "server/store/spool_impl.h"

struct recycled_file {
    char *name; /* in the folder */
    bool gone;  /* used by an upload of this round, or removed */
};

struct fl_recycled {
    char *folder;
    struct recycled_file *list; /* sorted by name */
    size_t n, cap;
    size_t n_gone;
    size_t next;  /* entries before this index are gone */
    size_t n_bad; /* quarantined files in the folder */
};

int fl_recycled_create(const char *dir, struct fl_recycled **ret, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    struct fl_recycled *s;
    int rv = fl__store_join(folder, dir, "spool", err);

    if (rv != FL_OK) {
        return rv;
    }
    s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->folder = fl_str_dup(folder);
    }
    if (s == NULL || s->folder == NULL) {
        fl_recycled_free(s);
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    *ret = s;
    return FL_OK;
}

static void recycled_forget(struct fl_recycled *s)
{
    while (s->n > 0) {
        free(s->list[--s->n].name);
    }
    s->n_gone = s->next = s->n_bad = 0;
}

void fl_recycled_free(struct fl_recycled *recycled)
{
    if (recycled == NULL) {
        return;
    }
    recycled_forget(recycled);
    free(recycled->list);
    free(recycled->folder);
    free(recycled);
}

size_t fl_recycled_count(const struct fl_recycled *recycled)
{
    return recycled->n - recycled->n_gone;
}

/* --- collecting --- */

static int remove_named(const struct fl_recycled *s, const char *name)
{
    char path[FL__STORE_PATH_MAX];
    int rv = fl_fs_join(path, sizeof(path), s->folder, name);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_remove(path);
}

static void set_gone(struct fl_recycled *s, struct recycled_file *file)
{
    s->n_gone += file->gone ? 0 : 1;
    file->gone = true;
}

void fl_recycled_drop(struct fl_recycled *recycled)
{
    size_t i;

    for (i = recycled->next; i < recycled->n; i++) {
        if (!recycled->list[i].gone) {
            (void)remove_named(recycled,
                               recycled->list[i].name); /* On an error the next start removes it. */
            set_gone(recycled, &recycled->list[i]);
        }
    }
}

/* A file that cannot be listed (out of memory), or above the limit of quarantined files, is
 * removed. */
static int recycle_file(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct fl_recycled *s = ctx;
    char *copy;
    int rv;

    if (fl_str_ends_with(name, FL__SPOOL_SUFFIX)) {
        copy =
            fl_grow(&s->list, &s->cap, s->n, sizeof(*s->list)) == FL_OK ? fl_str_dup(name) : NULL;
        if (copy != NULL) {
            s->list[s->n++] = (struct recycled_file){.name = copy};
            return FL_OK;
        }
    } else if (fl_str_ends_with(name, FL__SPOOL_SUFFIX FL__SPOOL_BAD)) {
        if (++s->n_bad <= FL__SPOOL_BAD_MAX) {
            return FL_OK;
        }
    } else {
        return FL_OK;
    }
    rv = remove_named(s, name);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot remove '%s' in '%s': %s", name, folder, fl_strerror(rv));
    }
    return FL_OK;
}

static int recycled_by_name(const void *a, const void *b)
{
    return strcmp(((const struct recycled_file *)a)->name, ((const struct recycled_file *)b)->name);
}

int fl_recycled_collect(struct fl_recycled *recycled, struct fl_err *err)
{
    int rv;

    fl_recycled_drop(recycled);
    recycled_forget(recycled);
    rv = fl_fs_each(recycled->folder, recycle_file, recycled, err);
    if (recycled->n > 1) {
        qsort(recycled->list, recycled->n, sizeof(*recycled->list), recycled_by_name);
    }
    return rv;
}

/* --- using --- */

void fl__recycled_keep(struct fl_recycled *recycled, const char *path)
{
    struct recycled_file key = {.name = (char *)(uintptr_t)strrchr(path, '/') + 1}; /* only read */
    struct recycled_file *found =
        recycled->n > 0
            ? bsearch(&key, recycled->list, recycled->n, sizeof(*recycled->list), recycled_by_name)
            : NULL;

    if (found != NULL) {
        set_gone(recycled, found);
    }
}

/* A client may still be sending an upload of a finished round: its file is locked and only
 * unlinked. */
static int recycled_take_over(const struct fl_recycled *s, const char *name, const char *path)
{
    char old[FL__STORE_PATH_MAX];
    int fd = -1;

    if (fl_fs_join(old, sizeof(old), s->folder, name) == FL_OK) {
        fd = open(old, O_RDWR | O_CLOEXEC);
    }
    if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) != 0 || rename(old, path) != 0)) {
        (void)unlink(old);
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

int fl__recycled_take(struct fl_recycled *recycled, const char *path)
{
    int fd = -1;

    while (fd < 0 && recycled->next < recycled->n) {
        struct recycled_file *file = &recycled->list[recycled->next++];

        if (!file->gone) {
            fd = recycled_take_over(recycled, file->name, path);
            set_gone(recycled, file);
        }
    }
    return fd;
}
