/* Finds data sets by name. Any thread. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "tools/fl_sim/data/data_impl.h"

/* Number of folders above the program that are searched: it may be a test in a build folder. */
#define LEVELS     5
#define MAX_PLACES (3 * LEVELS + 2)
/* Number of names among which a suggestion is searched. */
#define MAX_KNOWN 64

static const struct {
    const char *name, *folder;
} aliases[] = {{"digits", "optdigits"}};

struct places {
    char folders[MAX_PLACES][FL__DATA_PATH];
    size_t n;
};

static bool find_is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int fl__data_resolve(const char *base, const char *path, char out[FL__DATA_PATH],
                     struct fl_err *err)
{
    int rv = path[0] == '/' ? fl_str_copy(out, FL__DATA_PATH, path)
                            : fl_fs_join(out, FL__DATA_PATH, base, path);

    if (rv != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%.200s…' is too long", path);
    }
    return FL_OK;
}

/* `b` relative to `a`. */
static void find_add_place(struct places *places, const char *a, const char *b)
{
    char *to = places->folders[places->n];

    FL_REQUIRE(places->n < MAX_PLACES);
    if (fl__data_resolve(a, b, to, NULL) == FL_OK && find_is_folder(to)) {
        places->n++;
    }
}

/* The data of the installation or of the source tree that contains the program. */
static void find_add_installed(struct places *places, bool shared)
{
    char self[PATH_MAX] = "";
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;
    int up;

    self[len > 0 ? len : 0] = '\0';
    for (up = 0; up < LEVELS && (slash = strrchr(self, '/')) != NULL && slash != self; up++) {
        *slash = '\0';
        if (shared) {
            find_add_place(places, self, "shared/data");
        }
        find_add_place(places, self, "share/fl/data");
        find_add_place(places, self, "deploy/data");
    }
}

struct known {
    char names[MAX_KNOWN][FL_NAME_MAX];
    const char *list[MAX_KNOWN];
    size_t n;
};

static int find_add_known(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct known *known = ctx;
    char path[FL__DATA_PATH];

    (void)err;
    if (known->n < MAX_KNOWN && name[0] != '.' &&
        fl_fs_join(path, sizeof(path), folder, name) == FL_OK && find_is_folder(path) &&
        fl_str_copy(known->names[known->n], FL_NAME_MAX, name) == FL_OK)
    {
        known->list[known->n] = known->names[known->n];
        known->n++;
    }
    return FL_OK;
}

static int find_not_found(const struct places *places, const char *name, struct fl_err *err)
{
    struct known *known = calloc(1, sizeof(*known));
    const char *dir = getenv("FL_DATA_DIR");
    const char *near = NULL;
    size_t i;

    for (i = 0; known != NULL && i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strcmp(aliases[i].name, name) != 0) {
            known->list[known->n++] = aliases[i].name;
        }
    }
    for (i = 0; known != NULL && i < places->n; i++) {
        if (fl_fs_each(places->folders[i], find_add_known, known, NULL) != FL_OK) {
            continue; /* A folder that cannot be listed yields no suggestions. */
        }
    }
    if (known != NULL) {
        near = fl_str_nearest(name, known->list, known->n);
    }
    (void)fl_err_set(
        err, FL_ENOENT,
        "no data set '%s': searched $FL_DATA_DIR (%s)%s, the data that is installed with fl-sim "
        "and the folder of the experiment's file%s%s%s; to name a folder, include a '/'",
        name, dir != NULL && dir[0] != '\0' ? dir : "not set",
        dir != NULL && dir[0] != '\0' && !find_is_folder(dir) ? ", which does not exist" : "",
        near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
    free(known);
    return FL_ENOENT;
}

int fl__data_find(const char *base, const char *name, char path[FL__DATA_PATH], struct fl_err *err)
{
    const char *dir;
    const char *folder = name;
    struct places *places;
    bool given;
    size_t i;
    int rv;

    if (strchr(name, '/') != NULL) {
        rv = fl__data_resolve(base, name, path, err);
        if (rv != FL_OK) {
            return rv;
        }
        return find_is_folder(path)
                   ? FL_OK
                   : fl_err_set(err, FL_ENOENT, "folder '%s' does not exist", path);
    }
    for (i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        folder = strcmp(aliases[i].name, name) == 0 ? aliases[i].folder : folder;
    }
    places = malloc(sizeof(*places));
    if (places == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory searching for '%s'", name);
    }
    /* Search order: $FL_DATA_DIR, or the folder beside the source tree; the data of the
       installation; the experiment's folder. */
    dir = getenv("FL_DATA_DIR");
    given = dir != NULL && dir[0] != '\0';
    *places = (struct places){.n = 0};
    if (given) {
        find_add_place(places, ".", dir);
    }
    find_add_installed(places, !given);
    find_add_place(places, ".", base);
    for (i = 0; i < places->n; i++) {
        if (name[0] != '\0' &&
            fl_fs_join(path, FL__DATA_PATH, places->folders[i], folder) == FL_OK &&
            find_is_folder(path))
        {
            break;
        }
    }
    rv = i < places->n ? FL_OK : find_not_found(places, name, err);
    free(places);
    return rv;
}
