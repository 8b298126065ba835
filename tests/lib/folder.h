#ifndef FL_LIB_FOLDER_H
#define FL_LIB_FOLDER_H

/* Folders of a test. One that was made here goes with the process, also where a check fails. */

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER_PATH 64

static char folders_made[8][FOLDER_PATH];

static inline int folder_remove_one(const char *path, const struct stat *st, int type,
                                    struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    (void)remove(path);
    return 0;
}

/* With all that is in it; or a file. None is fine. */
static inline void folder_remove(const char *path)
{
    size_t i;

    (void)nftw(path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    for (i = 0; i < sizeof(folders_made) / sizeof(folders_made[0]); i++) {
        if (strcmp(folders_made[i], path) == 0) {
            folders_made[i][0] = '\0';
        }
    }
}

static inline void folders_remove(void)
{
    size_t i;

    for (i = 0; i < sizeof(folders_made) / sizeof(folders_made[0]); i++) {
        if (folders_made[i][0] != '\0') {
            folder_remove(folders_made[i]);
        }
    }
}

/*
 * "NAME-…" in memory where there is a place for that (nobody waits for a disk), else in TMPDIR.
 * False: it cannot be made.
 */
static inline bool folder_make(const char *name, char out[FOLDER_PATH])
{
    static bool registered;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
    size_t i = 0;

    (void)snprintf(out, FOLDER_PATH, "%s/%s-XXXXXX", base != NULL ? base : "/tmp", name);
    if (mkdtemp(out) == NULL) {
        return false;
    }
    while (i < sizeof(folders_made) / sizeof(folders_made[0]) && folders_made[i][0] != '\0') {
        i++;
    }
    if (i < sizeof(folders_made) / sizeof(folders_made[0])) {
        (void)memcpy(folders_made[i], out, FOLDER_PATH);
    }
    registered = registered || atexit(folders_remove) == 0;
    return true;
}

#endif
