/* What files of /proc and /sys say of a device, also files that are cut or not there. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/device_facts.h"
#include "libfl/base/fs.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

static char root[FOLDER_PATH];

static void setup(void)
{
    ck_assert(folder_make("device", root));
}

static void teardown(void)
{
    folder_remove(root);
}

static void put(const char *path, const char *text)
{
    char full[FOLDER_PATH + 128];
    char *slash;

    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    slash = strrchr(full, '/');
    *slash = '\0';
    ck_assert_int_eq(fl_fs_mkdirs(full, NULL), FL_OK);
    *slash = '/';
    ck_assert_int_eq(fl_fs_replace(full, text, strlen(text), false, NULL), FL_OK);
}

static struct fl_when_facts facts_of(const struct fl_when *when)
{
    const struct fl_device device = {.root = root, .state_dir = root, .when = when};
    struct fl_when_facts facts;

    fl_device_facts(&device, &facts);
    ck_assert_uint_lt(facts.minute, FL_DAY_MINUTES);
    return facts;
}

TEST_CASE("device", setup, teardown);

TEST(what_nobody_asks_for_is_not_known)
{
    const struct fl_when when = {.n_hours = 0};
    struct fl_when_facts facts;

    put("/proc/loadavg", "9.00 0 0 1/2 3\n");
    facts = facts_of(&when);
    ck_assert_double_lt(facts.load, 0);
    ck_assert_uint_eq(facts.free_memory, UINT64_MAX);
    ck_assert_uint_eq(facts.free_disk, UINT64_MAX);
}

TEST(the_load_is_that_of_each_processor)
{
    const struct fl_when when = {.load_below = 1};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct fl_when_facts facts = facts_of(&when);

    ck_assert_double_lt(facts.load, 0); /* no file */
    put("/proc/loadavg", "6.00 0.10 0.20 1/345 6789\n");
    facts = facts_of(&when);
    ck_assert_double_eq_tol(facts.load, 6.0 / (double)processors, 1e-9);
    put("/proc/loadavg", "much\n");
    facts = facts_of(&when);
    ck_assert_double_lt(facts.load, 0);
}

TEST(memory_is_what_is_available)
{
    const struct fl_when when = {.free_memory = 1, .free_disk = 1};
    struct fl_when_facts facts = facts_of(&when);

    ck_assert_uint_eq(facts.free_memory, UINT64_MAX);
    ck_assert_uint_lt(facts.free_disk, UINT64_MAX);
    put("/proc/meminfo",
        "MemTotal:  2000 kB\nMemFree:  7 kB\nMemAvailable:    1000 kB\nBuffers: 1 kB\n");
    facts = facts_of(&when);
    ck_assert_uint_eq(facts.free_memory, 1024000);
    put("/proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:");
    facts = facts_of(&when);
    ck_assert_uint_eq(facts.free_memory, UINT64_MAX);
}

TEST(a_rule_that_the_device_can_never_meet_is_refused)
{
    struct fl_when when = {.free_memory = 2048000};
    const struct fl_device device = {.root = root, .state_dir = root, .when = &when};
    struct fl_err err = {0};

    put("/proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:    1000 kB\n");
    ck_assert_int_eq(fl_device_check(&device, &err), FL_OK);
    when.free_memory++;
    ck_assert_int_eq(fl_device_check(&device, &err), FL_ECONF);
    ck_assert_str_eq(
        err.msg,
        "key 'when.free_memory': 2.0 MB of memory never are free: this host has 2.0 MB in all");
    when.free_memory = 0;
    when.free_disk = UINT64_C(1) << 62;
    ck_assert_int_eq(fl_device_check(&device, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "when.free_disk"));
}

TEST(the_adapter_or_else_the_battery_says_whether_it_is_on_mains_power)
{
    const struct fl_when when = {.mains = true};

    ck_assert_int_eq(facts_of(&when).mains, FL_FACT_UNKNOWN); /* no folder */
    put("/sys/class/power_supply/BAT0/type", "Battery\n");
    ck_assert_int_eq(facts_of(&when).mains, FL_FACT_UNKNOWN);
    put("/sys/class/power_supply/BAT0/status", "Charging\n");
    ck_assert_int_eq(facts_of(&when).mains, FL_FACT_UNKNOWN);
    put("/sys/class/power_supply/BAT0/status", "Discharging\n");
    ck_assert_int_eq(facts_of(&when).mains, FL_FACT_NO);
    put("/sys/class/power_supply/AC/type", "Mains\n");
    put("/sys/class/power_supply/AC/online", "0\n");
    ck_assert_int_eq(facts_of(&when).mains, FL_FACT_NO);
    put("/sys/class/power_supply/AC/online", "1\n");
    ck_assert_int_eq(facts_of(&when).mains, FL_FACT_YES);
}

TEST(without_network_manager_nothing_is_known_of_the_network)
{
    const struct fl_when when = {.unmetered = true};

    ck_assert_int_eq(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/no-such-bus", 1), 0);
    ck_assert_int_eq(facts_of(&when).unmetered, FL_FACT_UNKNOWN);
    ck_assert_int_eq(unsetenv("DBUS_SYSTEM_BUS_ADDRESS"), 0);
}
