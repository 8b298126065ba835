#ifndef FL_LIB_FOLDER_H
#define FL_LIB_FOLDER_H

/* Removes a folder of a test with all that is in it, or a file; none is fine. */

#include <ftw.h>
#include <stdio.h>

static inline int folder_remove_one(const char *path, const struct stat *st, int type,
                                    struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    (void)remove(path);
    return 0;
}

static inline void folder_remove(const char *path)
{
    (void)nftw(path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
