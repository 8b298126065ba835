/* Reads facts about this device from /proc, /sys, statvfs(2) and the system bus. Decides nothing.
 */
#include "client/daemon/device_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "client/daemon/session_clock.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/net/metered.h"

#define DEVICE_PATH     4096
#define DEVICE_FILE_MAX 16384
#define KIB             1024u

/* The text of a small file below the root, ended by NUL; false: it is not there. */
static bool device_read(const char *root, const char *path, char *out, size_t size)
{
    char full[DEVICE_PATH];
    int n = snprintf(full, sizeof(full), "%s%s", root, path);
    FILE *file = n > 0 && (size_t)n < sizeof(full) ? fopen(full, "re") : NULL;
    size_t len;

    if (file == NULL) {
        return false;
    }
    len = fread(out, 1, size - 1, file);
    (void)fclose(file);
    out[len] = '\0';
    return len > 0;
}

static double device_load(const char *root)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    char text[128];
    double load;

    if (!device_read(root, "/proc/loadavg", text, sizeof(text))) {
        return -1.0;
    }
    text[strcspn(text, " \n")] = '\0';
    return fl_str_to_double(text, &load) == FL_OK ? load / (double)(processors > 0 ? processors : 1)
                                                  : -1.0;
}

/* A row "NAME:   123 kB" of /proc/meminfo in bytes; UINT64_MAX: unknown. */
static uint64_t device_memory(const char *root, const char *name)
{
    char text[DEVICE_FILE_MAX];
    uint64_t kib;
    char *at;

    if (!device_read(root, "/proc/meminfo", text, sizeof(text))) {
        return UINT64_MAX;
    }
    at = strstr(text, name);
    if (at == NULL) {
        return UINT64_MAX;
    }
    at += strlen(name);
    at += strspn(at, " ");
    at[strspn(at, "0123456789")] = '\0';
    return fl_str_to_u64(at, &kib) == FL_OK && kib < UINT64_MAX / KIB ? kib * KIB : UINT64_MAX;
}

static bool device_disk(const char *dir, uint64_t *ret_free, uint64_t *ret_all)
{
    struct statvfs fs;

    if (statvfs(dir, &fs) != 0) {
        return false;
    }
    *ret_free = (uint64_t)fs.f_bavail * fs.f_frsize;
    *ret_all = (uint64_t)fs.f_blocks * fs.f_frsize;
    return true;
}

/* --- power --- */

struct device_power {
    const char *root;
    bool has_mains, mains_online, discharging;
};

static int device_supply(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct device_power *power = ctx;
    char path[DEVICE_PATH];
    char type[32] = "";
    char state[32] = "";

    (void)folder;
    (void)err;
    (void)snprintf(path, sizeof(path), "/sys/class/power_supply/%s/type", name);
    if (!device_read(power->root, path, type, sizeof(type))) {
        return FL_OK;
    }
    if (strncmp(type, "Mains", 5) == 0) {
        (void)snprintf(path, sizeof(path), "/sys/class/power_supply/%s/online", name);
        power->has_mains = true;
        power->mains_online =
            power->mains_online ||
            (device_read(power->root, path, state, sizeof(state)) && state[0] == '1');
    } else if (strncmp(type, "Battery", 7) == 0) {
        (void)snprintf(path, sizeof(path), "/sys/class/power_supply/%s/status", name);
        power->discharging =
            power->discharging || (device_read(power->root, path, state, sizeof(state)) &&
                                   strncmp(state, "Discharging", 11) == 0);
    }
    return FL_OK;
}

/* The mains adapter decides; devices without one, powered over USB, by their battery. */
static enum fl_fact device_mains(const char *root)
{
    struct device_power power = {.root = root};
    char folder[DEVICE_PATH];

    (void)snprintf(folder, sizeof(folder), "%s/sys/class/power_supply", root);
    if (fl_fs_each(folder, device_supply, &power, NULL) != FL_OK) {
        return FL_FACT_UNKNOWN;
    }
    if (power.has_mains) {
        return power.mains_online ? FL_FACT_YES : FL_FACT_NO;
    }
    return power.discharging ? FL_FACT_NO : FL_FACT_UNKNOWN;
}

/* --- all of them --- */

static uint32_t device_minute(void)
{
    time_t now = (time_t)fl_wall_seconds(NULL);
    struct tm local;

    return localtime_r(&now, &local) != NULL ? (uint32_t)(local.tm_hour * 60 + local.tm_min) : 0;
}

void fl_device_facts(const struct fl_device *device, struct fl_when_facts *ret)
{
    const struct fl_when *when = device->when;
    uint64_t all;
    int metered;

    *ret = (struct fl_when_facts){.minute = device_minute(),
                                  .load = -1.0,
                                  .free_memory = UINT64_MAX,
                                  .free_disk = UINT64_MAX};
    if (when->load_below > 0.0) {
        ret->load = device_load(device->root);
    }
    if (when->free_memory > 0) {
        ret->free_memory = device_memory(device->root, "MemAvailable:");
    }
    if (when->free_disk > 0) {
        (void)device_disk(device->state_dir, &ret->free_disk, &all);
    }
    if (when->mains) {
        ret->mains = device_mains(device->root);
    }
    if (when->unmetered) {
        metered = fl_net_metered();
        ret->unmetered = metered < 0 ? FL_FACT_UNKNOWN : metered == 0 ? FL_FACT_YES : FL_FACT_NO;
    }
}

static int device_check_size(const char *key, uint64_t wanted, uint64_t all, const char *what,
                             struct fl_err *err)
{
    char has[32];
    char least[32];

    return wanted == 0 || wanted <= all
               ? FL_OK
               : fl_err_set(err, FL_ECONF,
                            "key 'when.%s': %s of %s never are free: this host has %s in all", key,
                            fl_str_bytes(least, sizeof(least), wanted), what,
                            fl_str_bytes(has, sizeof(has), all));
}

int fl_device_check(const struct fl_device *device, struct fl_err *err)
{
    uint64_t disk_free;
    uint64_t disk = UINT64_MAX;
    int rv = device_check_size("free_memory", device->when->free_memory,
                               device_memory(device->root, "MemTotal:"), "memory", err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!device_disk(device->state_dir, &disk_free, &disk)) {
        return FL_OK; /* The state folder is not there yet. */
    }
    return device_check_size("free_disk", device->when->free_disk, disk, "disk space", err);
}
