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
#include "libfl/base/str.h"
#include "server/store/spool_impl.h"

struct spare {
    char *name; /* in the folder */
    bool gone;  /* used by an upload of this round, or removed */
};

struct fl_recycled {
    char *folder;
    struct spare *list; /* sorted by name */
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

void fl_recycled_free(struct fl_recycled *spares)
{
    if (spares == NULL) {
        return;
    }
    recycled_forget(spares);
    free(spares->list);
    free(spares->folder);
    free(spares);
}

size_t fl_recycled_count(const struct fl_recycled *spares)
{
    return spares->n - spares->n_gone;
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

static void set_gone(struct fl_recycled *s, struct spare *spare)
{
    s->n_gone += spare->gone ? 0 : 1;
    spare->gone = true;
}

void fl_recycled_drop(struct fl_recycled *spares)
{
    size_t i;

    for (i = spares->next; i < spares->n; i++) {
        if (!spares->list[i].gone) {
            (void)remove_named(spares,
                               spares->list[i].name); /* On an error the next start removes it. */
            set_gone(spares, &spares->list[i]);
        }
    }
}

static bool recycled_has_room(struct fl_recycled *s)
{
    if (s->n == s->cap) {
        size_t cap = s->cap > 0 ? 2 * s->cap : 16;
        struct spare *grown = realloc(s->list, cap * sizeof(*grown));

        s->list = grown != NULL ? grown : s->list;
        s->cap = grown != NULL ? cap : s->cap;
    }
    return s->n < s->cap;
}

/* A file that cannot be listed (out of memory), or above the limit of quarantined files, is
 * removed. */
static int recycle_file(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct fl_recycled *s = ctx;
    char *copy;
    int rv;

    if (fl_str_ends_with(name, FL__SPOOL_SUFFIX)) {
        copy = recycled_has_room(s) ? fl_str_dup(name) : NULL;
        if (copy != NULL) {
            s->list[s->n++] = (struct spare){.name = copy};
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
    return strcmp(((const struct spare *)a)->name, ((const struct spare *)b)->name);
}

int fl_recycled_collect(struct fl_recycled *spares, struct fl_err *err)
{
    int rv;

    fl_recycled_drop(spares);
    recycled_forget(spares);
    rv = fl_fs_each(spares->folder, recycle_file, spares, err);
    if (spares->n > 1) {
        qsort(spares->list, spares->n, sizeof(*spares->list), recycled_by_name);
    }
    return rv;
}

/* --- using --- */

void fl__recycled_keep(struct fl_recycled *spares, const char *path)
{
    struct spare key = {.name = (char *)(uintptr_t)strrchr(path, '/') + 1}; /* only read */
    struct spare *found = spares->n > 0 ? bsearch(&key, spares->list, spares->n,
                                                  sizeof(*spares->list), recycled_by_name)
                                        : NULL;

    if (found != NULL) {
        set_gone(spares, found);
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

int fl__recycled_take(struct fl_recycled *spares, const char *path)
{
    int fd = -1;

    while (fd < 0 && spares->next < spares->n) {
        struct spare *spare = &spares->list[spares->next++];

        if (!spare->gone) {
            fd = recycled_take_over(spares, spare->name, path);
            set_gone(spares, spare);
        }
    }
    return fd;
}
