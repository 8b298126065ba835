/*
 * The folder of a local run's sockets (local_sockets.h). A folder whose lock nobody has belongs to
 * a run that was killed: the kernel released it. Main thread.
 */
#include "tools/fl_sim/local_sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"

#define SOCKETS_PARENT "/tmp"
#define SOCKETS_PREFIX "fl-sim."
#define SOCKETS_RANDOM "XXXXXX"
/* Attempts against another run that takes a new folder for a stale one. */
#define SOCKETS_TRIES 8

/* The descriptor of a folder of this user, -1: it is none, or gone. */
static int sockets_open_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || (fstat(fd, &st) == 0 && st.st_uid == geteuid())) {
        return fd;
    }
    (void)close(fd);
    return -1;
}

/* Removes the folder unless its run lives. */
static void sockets_remove_stale(const char *name)
{
    char path[LOCAL_SOCKETS_SIZE];
    int fd;

    if (strncmp(name, SOCKETS_PREFIX, strlen(SOCKETS_PREFIX)) != 0 ||
        strlen(name) != strlen(SOCKETS_PREFIX SOCKETS_RANDOM))
    {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/%.20s", SOCKETS_PARENT, name);
    fd = sockets_open_folder(path);
    if (fd < 0) {
        return;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fl_fs_remove_tree(path, NULL) != FL_OK) {
        (void)fprintf(stderr, "fl-sim run: '%s' of a run that was killed could not be removed\n",
                      path);
    }
    (void)close(fd);
}

static void sockets_remove_all_stale(void)
{
    DIR *dir = opendir(SOCKETS_PARENT);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        sockets_remove_stale(entry->d_name);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* Locks the new folder; false: another run removed it before. */
static bool sockets_lock(struct local_sockets *sockets)
{
    struct stat st;

    sockets->fd = sockets_open_folder(sockets->path);
    if (sockets->fd < 0) {
        return false;
    }
    if (flock(sockets->fd, LOCK_EX) == 0 && stat(sockets->path, &st) == 0) {
        return true;
    }
    (void)close(sockets->fd);
    return false;
}

int local_sockets_open(struct local_sockets *ret, struct fl_err *err)
{
    int i;

    sockets_remove_all_stale();
    for (i = 0; i < SOCKETS_TRIES; i++) {
        (void)snprintf(ret->path, sizeof(ret->path), "%s/%s%s", SOCKETS_PARENT, SOCKETS_PREFIX,
                       SOCKETS_RANDOM);
        if (mkdtemp(ret->path) == NULL) {
            return fl_err_set(err, fl_err_from_errno(errno),
                              "cannot create a folder in " SOCKETS_PARENT ": %s", strerror(errno));
        }
        if (sockets_lock(ret)) {
            return FL_OK;
        }
    }
    return fl_err_set(err, FL_EIO, "cannot lock a folder in " SOCKETS_PARENT);
}

void local_sockets_close(struct local_sockets *sockets)
{
    if (fl_fs_remove_tree(sockets->path, NULL) != FL_OK) {
        (void)fprintf(stderr, "fl-sim run: '%s' could not be removed\n", sockets->path);
    }
    (void)close(sockets->fd);
}
