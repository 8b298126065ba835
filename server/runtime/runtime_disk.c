/*
 * Free space on the file system of the state folder and the time of its last backup, for
 * `flctl status` and the metrics. Both are read on the db thread, because the calls wait for a disk
 * that does not answer, and used on the coordinator thread.
 */

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "server/runtime/runtime_impl.h"
#include "server/store/backup.h"

#define DISK_INTERVAL_MS 10000

static void disk_measure(void *arg)
{
    struct fl_runtime_disk *disk = arg;

    if (fl_fs_space(disk->path, &disk->fresh) != FL_OK) {
        disk->fresh = (struct fl_fs_room){0, 0};
    }
    disk->fresh_backup_ms = fl_backup_last_ms(disk->path);
}

static void disk_measured(void *arg)
{
    struct fl_runtime_disk *disk = arg;

    disk->space = disk->fresh;
    disk->backup_ms = disk->fresh_backup_ms;
    disk->measuring = false;
}

void fl_runtime_disk_init(struct fl_runtime *runtime)
{
    struct fl_runtime_disk *disk = &runtime->disk;

    disk->path = runtime->setup.state_dir;
    disk->measured_ms = fl_clock_ms();
    disk_measure(disk);
    disk_measured(disk);
}

void fl_runtime_disk_look(struct fl_runtime *runtime)
{
    struct fl_runtime_disk *disk = &runtime->disk;
    uint64_t now_ms = fl_clock_ms();

    if (disk->measuring || now_ms < disk->measured_ms + DISK_INTERVAL_MS) {
        return;
    }
    disk->measured_ms = now_ms;
    /* Out of memory: the next look measures. */
    disk->measuring = fl_worker_thread_submit(runtime->setup.db, disk_measure, runtime->loop,
                                              disk_measured, disk) == FL_OK;
}
