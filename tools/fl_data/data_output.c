/*
 * The output folder of fl-data: written beside its destination and renamed when it is complete, so
 * that it appears whole or not at all. Main thread; SIGINT and SIGTERM set a flag that is checked
 * at each client.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/data/split.h"
#include "tools/fl_data/fl_data.h"

#define PROGRESS_MS 100

static volatile sig_atomic_t interrupted;

static void output_on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

void catch_signals(void)
{
    struct sigaction action = {.sa_handler = output_on_signal};

    (void)sigemptyset(&action.sa_mask);
    action.sa_flags = (int)SA_RESETHAND; /* A second signal ends the process at once. */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

int check_interrupted(struct fl_err *err)
{
    return interrupted != 0 ? fl_err_set(err, FL_ECANCELED, "interrupted, nothing was written")
                            : FL_OK;
}

static int output_error(struct fl_err *err, const char *what, const char *path)
{
    int saved = errno;

    return fl_err_set(err, fl_err_from_errno(saved), "%s '%s': %s", what, path, strerror(saved));
}

static bool output_is_empty(const char *path)
{
    const struct dirent *entry;
    bool empty = true;
    DIR *dir = opendir(path);

    if (dir == NULL) {
        return false;
    }
    while (empty && (entry = readdir(dir)) != NULL) {
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    }
    (void)closedir(dir);
    return empty;
}

/* The absolute path of a folder that need not exist yet; its parents are created. */
static int output_resolve(const char *path, char out[PATH_SIZE], struct fl_err *err)
{
    char parent[PATH_SIZE];
    char real[PATH_MAX];
    const char *base;
    size_t len = strlen(path);
    char *slash;

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    if (len == 0 || len >= sizeof(parent)) {
        return fl_err_set(err, FL_EINVAL, "expected a folder, found a path of %zu characters", len);
    }
    (void)memcpy(parent, path, len);
    parent[len] = '\0';
    if (realpath(parent, real) != NULL) {
        return snprintf(out, PATH_SIZE, "%s", real) < PATH_SIZE ? FL_OK : FL_ELIMIT;
    }
    slash = strrchr(parent, '/');
    base = slash != NULL ? path + (slash - parent) + 1 : path;
    len -= (size_t)(base - path);
    if (slash != NULL) {
        slash[slash == parent ? 1 : 0] = '\0';
        if (fl_fs_mkdirs(parent, err) != FL_OK) {
            return err->code;
        }
    }
    if (realpath(slash != NULL ? parent : ".", real) == NULL) {
        return output_error(err, "cannot use folder", path);
    }
    if (snprintf(out, PATH_SIZE, "%s/%.*s", strcmp(real, "/") != 0 ? real : "", (int)len, base) >=
        PATH_SIZE)
    {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
    }
    return FL_OK;
}

/* Is `path` equal to `folder` or below it? */
static bool output_is_within(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 &&
           (path[len] == '\0' || path[len] == '/' || folder[len - 1] == '/');
}

int output_begin(struct output *out, const char *path, const char *input, bool force,
                 struct fl_err *err)
{
    char real[PATH_MAX];
    struct stat st;
    int rv;

    *out = (struct output){.exists = false};
    rv = output_resolve(path, out->path, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (input != NULL && realpath(input, real) != NULL && output_is_within(real, out->path)) {
        return fl_err_set(err, FL_EINVAL, "the output '%s' would replace the input '%s'", path,
                          input);
    }
    if (lstat(out->path, &st) == 0) {
        if (!S_ISDIR(st.st_mode)) {
            return fl_err_set(err, FL_EEXIST, "'%s' exists and is not a folder", path);
        }
        if (!force && !output_is_empty(out->path)) {
            return fl_err_set(
                err, FL_EEXIST,
                "folder '%s' is not empty: choose another one, or --force to replace it", path);
        }
        out->exists = true;
    }
    if (snprintf(out->tmp, sizeof(out->tmp), "%s.tmp-%ld", out->path, (long)getpid()) >=
        (int)sizeof(out->tmp))
    {
        out->tmp[0] = '\0';
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
    }
    if (mkdir(out->tmp, 0777) != 0) {
        rv = output_error(err, "cannot create folder", out->tmp);
        out->tmp[0] = '\0';
        return rv;
    }
    return FL_OK;
}

int output_commit(struct output *out, struct fl_err *err)
{
    char old[PATH_SIZE + 32];
    char mark[PATH_SIZE + 64];
    bool aside = out->exists && !output_is_empty(out->path);
    int rv;

    (void)snprintf(old, sizeof(old), "%s.old-%ld", out->path, (long)getpid());
    if (aside && rename(out->path, old) != 0) {
        return output_error(err, "cannot replace folder", out->path);
    }
    if (rename(out->tmp, out->path) != 0) { /* rename() replaces an empty folder. */
        rv = output_error(err, "cannot create folder", out->path);
        if (aside && rename(old, out->path) != 0) {
            (void)fprintf(stderr, "fl-data: the previous folder was renamed to '%s'\n", old);
        }
        return rv;
    }
    out->tmp[0] = '\0';
    if (aside) {
        (void)snprintf(mark, sizeof(mark), "%s/" FL_SPLIT_MANIFEST, old);
        /* --force may remove a previous split, but not other files of the user. */
        if (!fl_fs_exists(mark) || fl_fs_remove_tree(old, NULL) != FL_OK) {
            (void)fprintf(stderr, "fl-data: the previous contents are kept in '%s'\n", old);
        }
    }
    return FL_OK;
}

void output_abort(struct output *out)
{
    struct fl_err err = {0};

    if (out->tmp[0] != '\0' && fl_fs_remove_tree(out->tmp, &err) != FL_OK) {
        (void)fprintf(stderr, "fl-data: %s\n", err.msg);
    }
    out->tmp[0] = '\0';
}

int output_folder(const struct output *out, const char *name, char path[PATH_SIZE],
                  struct fl_err *err)
{
    if (fl_fs_join(path, PATH_SIZE, out->tmp, name) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", out->tmp);
    }
    return mkdir(path, 0777) == 0 ? FL_OK : output_error(err, "cannot create folder", path);
}

int output_manifest(const struct output *out, const json_t *root, struct fl_err *err)
{
    char path[PATH_SIZE];

    if (fl_fs_join(path, sizeof(path), out->tmp, FL_SPLIT_MANIFEST) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", out->tmp);
    }
    if (root == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for the manifest");
    }
    if (json_dump_file(root, path, JSON_INDENT(1) | JSON_PRESERVE_ORDER) != 0) {
        return fl_err_set(err, FL_EIO, "cannot write '%s'", path);
    }
    return FL_OK;
}

void show_progress(const char *what, size_t done, size_t total)
{
    static uint64_t last;
    uint64_t now = fl_clock_ms();

    if (isatty(STDERR_FILENO) == 0 || (done < total && now - last < PROGRESS_MS)) {
        return;
    }
    last = now;
    (void)fprintf(stderr, "\r%s: %zu of %zu%s", what, done, total, done == total ? "\n" : "");
    (void)fflush(stderr);
}
