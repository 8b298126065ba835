#include "tests/lib/store_rig.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/folder.h"

static char dir[RIG_PATH_MAX];

const char *rig_dir(void)
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(dir, sizeof(dir), "%s/fl-store-XXXXXX", base != NULL ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chmod(dir, 0777), 0);
    return dir;
}

void rig_remove(void)
{
    folder_remove(dir);
}

const char *rig_path(char *out, const char *name)
{
    int n = snprintf(out, RIG_PATH_MAX, "%s/%s", dir, name);

    ck_assert_int_lt(n, RIG_PATH_MAX);
    return out;
}

struct fl_layout *rig_layout(void)
{
    static const size_t fc1[] = {84, 100};
    static const size_t fc2[] = {20, 20};
    static const size_t mean[] = {10};
    static const size_t fc3[] = {22};
    struct fl_layout *layout = NULL;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "fc1", "fc1.weight", fc1, 2, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "fc2", "fc2.weight", fc2, 2, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "fc2", "fc2.running_mean", mean, 1, true, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "fc3", "fc3.weight", fc3, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    return layout;
}

void rig_limit_files(uint64_t bytes)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct rlimit limit;

    ck_assert_int_eq(sigaction(SIGXFSZ, &ignore, NULL), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes != 0 ? (rlim_t)bytes : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

void rig_drop_root(void)
{
    if (geteuid() == 0) {
        ck_assert_int_eq(seteuid(65534), 0);
    }
}

void rig_regain_root(void)
{
    ck_assert_int_eq(seteuid(getuid()), 0);
}

static int forget_sum(void *db, int n, char **values, char **names)
{
    char sql[128];

    (void)n;
    (void)names;
    (void)snprintf(sql, sizeof(sql), "UPDATE %s SET sum = NULL", values[0]);
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

void rig_sql(const char *sql)
{
    char path[RIG_PATH_MAX];
    sqlite3 *db = NULL;
    char *message = NULL;

    ck_assert_int_eq(sqlite3_open(rig_path(path, "federation.db"), &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "SELECT t.name FROM sqlite_master AS t, pragma_table_info(t.name)"
                                  " AS c WHERE t.type = 'table' AND c.name = 'sum'",
                                  forget_sum, db, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

void rig_check_db(void)
{
    char path[RIG_PATH_MAX];
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;

    ck_assert_int_eq(sqlite3_open(rig_path(path, "federation.db"), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &st, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    ck_assert_str_eq((const char *)sqlite3_column_text(st, 0), "ok");
    (void)sqlite3_finalize(st);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

void rig_damage(const char *path, uint64_t offset, size_t len)
{
    unsigned char *junk = malloc(len);
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    ck_assert_ptr_nonnull(junk);
    ck_assert_int_ge(fd, 0);
    (void)memset(junk, 0xA5, len);
    ck_assert_int_eq(pwrite(fd, junk, len, (off_t)offset), (ssize_t)len);
    (void)close(fd);
    free(junk);
}

uint64_t rig_size(const char *path)
{
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

void rig_cut(const char *path, uint64_t size)
{
    ck_assert_int_eq(truncate(path, (off_t)size), 0);
}
