#ifndef FL_LIB_POWER_DISK_H
#define FL_LIB_POWER_DISK_H

/*
 * A folder on a disk that loses its power. What was synced stays: the contents of a file by a sync
 * of the file, its name by a sync of its folder. A program is linked with power_disk.c itself,
 * which replaces the calls that change and sync files for the whole process, SQLite included;
 * nothing waits for the disk below. One folder, one thread. Every failure ends the process.
 */

#include <stdbool.h>

enum power_loss {
    POWER_KEEPS_SYNCED, /* and nothing else */
    POWER_KEEPS_NAMES,  /* and all names; contents that were never synced are zeros */
    POWER_KEEPS_ALL,    /* as a kill does */
    POWER_LOSSES
};

/* All that `dir`, which is borrowed, has now is on the disk. */
void power_disk_watch(const char *dir);
/* Give the watched folder the contents that it had then, and watch it again. */
void power_disk_restore(void);
/*
 * Runs run() in a process of its own. Before the n-th of its calls (0: the first) that changes or
 * syncs files, the folder gets the contents that are on the disk after the loss, and the process
 * ends; of a write that is lost the first half was made. False: run() made fewer.
 */
bool power_disk_loses(long n, enum power_loss how, void (*run)(void));

#endif
