/* report.html follows from the files of a run, whatever is in them. */

#include <check.h>
#include <stdlib.h>

#include "libfl/base/fs.h"
#include "tests/lib/folder.h"
#include "tests/lib/results_rig.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/results/report.h"

static char dir[FOLDER_PATH];

static void setup(void)
{
    struct fl_err err = {0};

    ck_assert(folder_make("fl-report", dir));
    ck_assert_msg(rig_write_run(dir, 1, &err) == FL_OK, "%s", err.msg);
}

static void teardown(void)
{
    folder_remove(dir);
}

static const char *path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text)
{
    ck_assert_int_eq(fl_fs_replace(path_of(name), text, strlen(text), false, NULL), FL_OK);
}

/* Writes the report; the caller frees its text. */
static char *report(void)
{
    static const char *const names[] = {"conv<1>", "fc"};
    const struct fl_report_layers layers[] = {{names, 2}};
    struct fl_err err = {0};
    struct fl_buf text;
    char *copy;

    ck_assert_msg(fl_report_write(dir, layers, 1, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_fs_read(path_of("report.html"), 1 << 22, &text, NULL), FL_OK);
    copy = calloc(text.len + 1, 1);
    ck_assert_ptr_nonnull(copy);
    (void)memcpy(copy, text.data, text.len);
    fl_buf_done(&text);
    return copy;
}

TEST_CASE("all", setup, teardown);

TEST(all_points_are_in_the_report_and_it_is_the_same_again)
{
    char *first = report();
    char *again = report();

    ck_assert_str_eq(first, again);
    ck_assert_ptr_nonnull(
        strstr(first, "6 of 6 trials at 2 points finished; the best point, FedAvg, ends"));
    ck_assert_ptr_nonnull(strstr(first, "lean, 2 &quot;Mbit/s&quot;"));
    ck_assert_ptr_nonnull(strstr(first, "All rounds are done after round 60"));
    ck_assert_ptr_nonnull(strstr(first, "Round time by phase"));
    ck_assert_ptr_nonnull(strstr(first, "fl-sim run --clients"));
    free(first);
    free(again);
}

TEST(clients_and_their_layers_are_counted)
{
    char *text;

    put("fedavg/seed-11/clients.jsonl",
        "{\"round\":1,\"attempt\":1,\"samples\":7,\"name\":\"old\",\"state\":\"accepted\","
        "\"asked\":\"11\"}\n"
        "{\"round\":59,\"samples\":9,\"name\":\"b<i>\",\"state\":\"accepted\",\"asked\":\"01\"}\n"
        "{\"round\":60,\"samples\":9,\"name\":\"b<i>\",\"state\":\"accepted\",\"asked\":\"11\"}\n"
        "{\"round\":60,\"samples\":3,\"name\":\"c\",\"state\":\"empty\",\"asked\":\"00\"}\n"
        "{\"round\":60,\"samples\":5,\"name\":\"a\",\"state\":\"dropped\",\"attacker\":true}\n"
        "{\"round\":61,\"samples\":5,\"name\":\"later\",\"state\":\"accepted\"}\n"
        "not JSON\n{\"round\":60,\"name\":7}\n{\"round\":60,\"name\":\"cut");
    text = report();
    ck_assert_ptr_nonnull(strstr(text, "b&lt;i&gt;"));
    ck_assert_ptr_nonnull(strstr(text, "conv&lt;1&gt;"));
    /* Half of its rounds, and all of them; "old" was in none of the last 20. */
    ck_assert_ptr_nonnull(
        strstr(text, "<th scope=\"row\">b&lt;i&gt;</th><td>50 %</td><td>100 %</td>"));
    ck_assert_ptr_nonnull(strstr(text, "<th scope=\"row\">c</th><td>0 %</td><td>0 %</td>"));
    ck_assert_ptr_nonnull(strstr(text, "rounds 59 to 60"));
    ck_assert_ptr_nonnull(strstr(text, "<th scope=\"row\">old</th><td class=\"t\">accepted</td>"));
    ck_assert_ptr_nonnull(strstr(text, "sent in the last rounds: 4 of 4<"));
    ck_assert_ptr_nonnull(strstr(text, "<td class=\"t\">1 of 2: fc</td>"));
    ck_assert_ptr_nonnull(strstr(text, "it disconnected"));
    ck_assert_ptr_nonnull(strstr(text, "simulated attacker"));
    ck_assert_ptr_null(strstr(text, "later")); /* Its round was not committed. */
    free(text);
}

TEST(an_unfinished_trial_is_reported_as_such)
{
    char *text;

    ck_assert_int_eq(fl_fs_remove(path_of("lean/seed-12/summary.json")), FL_OK);
    text = report();
    ck_assert_ptr_nonnull(strstr(text, "5 of 6 trials"));
    ck_assert_ptr_nonnull(strstr(text, "2 of 3"));
    free(text);
}

TEST(a_damaged_folder_is_an_error_with_its_file)
{
    struct fl_err err = {0};

    put("lean/seed-12/rounds.jsonl", "{}\n");
    ck_assert_int_eq(fl_report_write(dir, NULL, 0, &err), FL_EFORMAT);
    ck_assert_msg(strstr(err.msg, "lean/seed-12/rounds.jsonl:1") != NULL, "%s", err.msg);
}
