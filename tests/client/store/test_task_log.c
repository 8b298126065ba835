/* The history of tasks on disk: what is read is what was written, and a damaged file is none. */

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/store/task_log.h"
#include "tests/lib/suites.h"

static char dir[64], path[128];
static struct fl_task_history *written, *read_back;

static void task_log_setup(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/fl-tasks-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/tasks.bin", dir);
    written = calloc(1, sizeof(*written));
    read_back = calloc(1, sizeof(*read_back));
    ck_assert(written != NULL && read_back != NULL);
    written->totals = (struct fl_task_totals){.trainings = 7, .bytes_up = UINT64_C(1) << 40};
    (void)snprintf(written->federation, sizeof(written->federation), "fed");
    written->n_records = FL_TASK_RECORDS;
    written->records[FL_TASK_RECORDS - 1] =
        (struct fl_task_record){.round = 9, .end = FL_TASK_FAILED, .reason = "why"};
    written->n_errors = 1;
    written->errors[0] = (struct fl_task_error){.at_ms = 5, .n = 2, .text = "refused"};
    written->link = FL_TASK_LINK_LOST;
}

static void task_log_teardown(void)
{
    free(written);
    free(read_back);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}

TEST_CASE("task_log", task_log_setup, task_log_teardown);

TEST(what_is_kept_is_read_back_and_the_link_is_not)
{
    struct fl_err err = {0};

    ck_assert_int_eq(fl_task_log_save(dir, written, &err), FL_OK);
    ck_assert_int_eq(fl_task_log_load(dir, read_back, &err), FL_OK);
    ck_assert_mem_eq(&read_back->totals, &written->totals, sizeof(written->totals));
    ck_assert_mem_eq(read_back->records, written->records, sizeof(written->records));
    ck_assert_mem_eq(read_back->errors, written->errors, sizeof(written->errors));
    ck_assert_uint_eq(read_back->n_records, FL_TASK_RECORDS);
    ck_assert_uint_eq(read_back->n_errors, 1);
    ck_assert_str_eq(read_back->federation, "fed");
    ck_assert_int_eq(read_back->link, FL_TASK_LINK_OK);
}

TEST(a_new_client_has_none)
{
    struct fl_err err = {0};

    ck_assert_int_eq(fl_task_log_load(dir, read_back, &err), FL_ENOENT);
    ck_assert_int_eq(fl_task_log_save(dir, read_back, &err), FL_OK);
    ck_assert_int_eq(fl_task_log_load(dir, read_back, &err), FL_OK);
    ck_assert_uint_eq(read_back->n_records, 0);
}

/* An offset in a head, in the records, near the end. */
static const long damage[] = {10, 4200, -20};

TEST_EACH(a_damaged_file_is_refused_and_changes_nothing, ARRAY_LEN(damage))
{
    struct fl_err err = {0};
    unsigned char byte = 0;
    int fd;

    ck_assert_int_eq(fl_task_log_save(dir, written, &err), FL_OK);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(lseek(fd, damage[_i], damage[_i] < 0 ? SEEK_END : SEEK_SET), 0);
    ck_assert_int_eq(read(fd, &byte, 1), 1);
    byte ^= 1;
    ck_assert_int_ge(lseek(fd, -1, SEEK_CUR), 0);
    ck_assert_int_eq(write(fd, &byte, 1), 1);
    (void)close(fd);
    ck_assert_int_eq(fl_task_log_load(dir, read_back, &err), FL_EFORMAT);
    ck_assert_uint_eq(read_back->n_records, 0);
}

/* Each breaks one value of an otherwise intact file. */
static void break_kind(struct fl_task_history *h)
{
    h->records[3].kind = 9;
}
static void break_end(struct fl_task_history *h)
{
    h->records[3].end = 99;
}
static void break_reason(struct fl_task_history *h)
{
    (void)memset(h->records[3].reason, 'x', sizeof(h->records[3].reason));
}
static void break_error(struct fl_task_history *h)
{
    (void)memset(h->errors[0].text, 'x', sizeof(h->errors[0].text));
}
static void break_federation(struct fl_task_history *h)
{
    (void)memset(h->federation, 'x', sizeof(h->federation));
}
static void (*const breaks[])(struct fl_task_history *h) = {break_kind, break_end, break_reason,
                                                            break_error, break_federation};

TEST_EACH(values_out_of_range_are_refused_although_the_checksum_is_right, ARRAY_LEN(breaks))
{
    struct fl_err err = {0};

    breaks[_i](written);
    ck_assert_int_eq(fl_task_log_save(dir, written, &err), FL_OK);
    ck_assert_int_eq(fl_task_log_load(dir, read_back, &err), FL_EFORMAT);
    ck_assert_uint_eq(read_back->n_records, 0);
}
