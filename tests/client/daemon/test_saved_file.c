/* Files that the training thread writes while the loop goes on. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/saved_file.h"
#include "tests/lib/suites.h"

static struct fl_jobs jobs;
static struct fl_saved_file file;
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static pthread_t writer; /* the thread of the last write */
static char files[64];   /* what was written, in order */
static char verdicts[64];
static int answer;
static size_t awaited; /* verdicts that end the loop */

static int write_file(const char *state_dir, const void *data, size_t n, struct fl_err *err)
{
    size_t used = strlen(files);

    ck_assert_str_eq(state_dir, "state");
    ck_assert_int_eq(pthread_mutex_lock(&disk), 0);
    writer = pthread_self();
    (void)snprintf(files + used, sizeof(files) - used, "%.*s ", (int)n, (const char *)data);
    ck_assert_int_eq(pthread_mutex_unlock(&disk), 0);
    return answer == FL_OK ? FL_OK : fl_err_set(err, answer, "full");
}

static void written(void *ctx, int rv, const struct fl_err *err)
{
    size_t used = strlen(verdicts);

    (void)snprintf(verdicts + used, sizeof(verdicts) - used, "%.9s", rv == FL_OK ? "+" : err->msg);
    ck_assert_ptr_eq(ctx, verdicts);
    if (strlen(verdicts) >= awaited && jobs.loop != NULL) {
        fl_loop_stop(jobs.loop);
    }
}

static void set(const char *text)
{
    fl_saved_file_set(&file, text, strlen(text));
}

static void setup(void)
{
    ck_assert_int_eq(fl_loop_create(&jobs.loop, NULL), FL_OK);
    ck_assert_int_eq(fl_worker_thread_create("fl-test", &jobs.thread, NULL), FL_OK);
    file = (struct fl_saved_file){.jobs = &jobs,
                                  .state_dir = "state",
                                  .write = write_file,
                                  .written = written,
                                  .ctx = verdicts};
    files[0] = verdicts[0] = '\0';
    answer = FL_OK;
}

/* As a client that ends: the thread, the loop, then what is left. */
static void teardown(void)
{
    fl_worker_thread_free(jobs.thread);
    jobs.thread = NULL;
    fl_loop_free(jobs.loop);
    jobs.loop = NULL;
    fl_saved_file_end(&file);
}

TEST_CASE("saved_file", setup, NULL);

TEST(a_disk_that_does_not_answer_delays_no_caller_and_the_newest_content_is_written_after_it)
{
    ck_assert_int_eq(pthread_mutex_lock(&disk), 0);
    set("one");
    set("two");
    set("three");
    ck_assert_str_eq(files, "");
    ck_assert_int_eq(pthread_mutex_unlock(&disk), 0);
    awaited = 2;
    fl_loop_run(jobs.loop);
    ck_assert_str_eq(files, "one three ");
    ck_assert(!pthread_equal(writer, pthread_self()));
    teardown();
    ck_assert_str_eq(files, "one three ");
    ck_assert_str_eq(verdicts, "++");
}

TEST(what_the_thread_did_not_begin_with_is_written_at_the_end)
{
    set("one");
    set("two");
    teardown();
    ck_assert_str_eq(files, "one two ");
    ck_assert_str_eq(verdicts, "++");
    ck_assert(pthread_equal(writer, pthread_self()));
}

TEST(without_a_thread_the_newest_content_waits_for_the_end)
{
    fl_worker_thread_free(jobs.thread);
    jobs.thread = NULL;
    set("one");
    set("two");
    teardown();
    ck_assert_str_eq(files, "two ");
}

TEST(an_error_is_reported_with_its_text_and_the_next_content_is_tried)
{
    answer = FL_ENOSPC;
    set("one");
    awaited = 4;
    fl_loop_run(jobs.loop);
    ck_assert_str_eq(verdicts, "full");
    answer = FL_OK;
    set("two");
    awaited = 5;
    fl_loop_run(jobs.loop);
    ck_assert_str_eq(verdicts, "full+");
    teardown();
}
