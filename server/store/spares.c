#include "server/store/spares.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/store/spool_impl.h"

struct fl_spares {
    char *dir;
    char *folder;
    char **names; /* in the folder; those from the first one on */
    size_t n, cap;
};

int fl_spares_create(const char *dir, struct fl_spares **ret, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    struct fl_spares *s;

    if (fl_fs_join(folder, sizeof(folder), dir, "spool") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->dir = fl_str_dup(dir);
        s->folder = fl_str_dup(folder);
    }
    if (s == NULL || s->dir == NULL || s->folder == NULL) {
        fl_spares_free(s);
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    *ret = s;
    return FL_OK;
}

void fl_spares_free(struct fl_spares *spares)
{
    if (spares == NULL) {
        return;
    }
    while (spares->n > 0) {
        free(spares->names[--spares->n]);
    }
    free(spares->names);
    free(spares->folder);
    free(spares->dir);
    free(spares);
}

size_t fl_spares_count(const struct fl_spares *spares)
{
    return spares->n;
}

/* --- collecting --- */

static int remove_named(const struct fl_spares *s, const char *name)
{
    char path[FL__STORE_PATH_MAX];
    int rv = fl_fs_join(path, sizeof(path), s->folder, name);

    return rv == FL_OK ? fl_fs_remove(path) : rv;
}

void fl_spares_drop(struct fl_spares *spares)
{
    while (spares->n > 0) {
        char *name = spares->names[--spares->n];

        (void)remove_named(spares, name); /* The next start takes what stays behind. */
        free(name);
    }
}

/* Without memory for its name a file is only removed. */
static int add(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct fl_spares *s = ctx;
    char *copy;
    int rv;

    if (!fl_str_ends_with(name, FL__SPOOL_SUFFIX)) {
        return FL_OK;
    }
    if (s->n == s->cap) {
        size_t cap = s->cap > 0 ? 2 * s->cap : 16;
        char **grown = realloc(s->names, cap * sizeof(*grown));

        s->names = grown != NULL ? grown : s->names;
        s->cap = grown != NULL ? cap : s->cap;
    }
    copy = s->n < s->cap ? fl_str_dup(name) : NULL;
    if (copy != NULL) {
        s->names[s->n++] = copy;
        return FL_OK;
    }
    rv = remove_named(s, name);
    return rv == FL_OK ? FL_OK
                       : fl_err_set(err, rv, "cannot remove '%s' in '%s': %s", name, folder,
                                    fl_strerror(rv));
}

int fl_spares_collect(struct fl_spares *spares, struct fl_err *err)
{
    fl_spares_drop(spares);
    return fl_fs_each(spares->folder, add, spares, err);
}

/* --- using --- */

/* A client may go on sending what is over: its file has a lock and is left to it. */
static int take(const struct fl_spares *s, const char *name, const char *path)
{
    char old[FL__STORE_PATH_MAX];
    int fd = -1;

    if (fl_fs_join(old, sizeof(old), s->folder, name) == FL_OK) {
        fd = open(old, O_RDWR | O_CLOEXEC);
    }
    /* Heads of earlier versions do not say whose they are. */
    if (fd >= 0 &&
        (flock(fd, LOCK_EX | LOCK_NB) != 0 || !fl__spool_is_current(fd) || rename(old, path) != 0))
    {
        (void)unlink(old);
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

int fl__spares_take(struct fl_spares *spares, const char *path)
{
    int fd = -1;

    while (fd < 0 && spares->n > 0) {
        char *name = spares->names[--spares->n];

        fd = take(spares, name, path);
        free(name);
    }
    return fd;
}

int fl_spares_open(struct fl_spares *spares, uint64_t round, uint32_t attempt, const char *client,
                   const struct fl_spool_part *parts, size_t n_parts, struct fl_spool **ret,
                   uint64_t *ret_received, struct fl_err *err)
{
    return fl__spool_open(spares->dir, spares, round, attempt, client, parts, n_parts, ret,
                          ret_received, err);
}
