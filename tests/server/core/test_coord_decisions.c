/* The lines by which a simulation is held against daemons say all that was decided about a client.
 */
#include <check.h>
#include <string.h>

#include "server/core/decision_log.h"
#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static struct fl_buf decisions;

static int step(struct fl_coord *coord, const struct fl_event *ev, struct fl_effects *ret)
{
    char line[FL_DECISION_LOG_SIZE];
    int rv = fl_coord_step(coord, ev, ret);
    size_t i;

    for (i = 0; rv == FL_OK && i < ret->n; i++) {
        if (fl_decision_log(coord, &ret->list[i], SCRIPT_UNITS, line) != NULL) {
            ck_assert_int_eq(fl_buf_printf(&decisions, "%s\n", line), FL_OK);
        }
    }
    return rv;
}

static void setup(void)
{
    fl_buf_init(&decisions, 1u << 20);
}

static void teardown(void)
{
    fl_buf_done(&decisions);
}

static void expect(const char *text)
{
    ck_assert_int_eq(fl_buf_add(&decisions, "", 1), FL_OK);
    ck_assert_str_eq((const char *)decisions.data, text);
    decisions.len = 0;
}

static struct script *begin(const char *preset)
{
    struct script *s = script_new(preset);

    decisions.len = 0;
    s->take = step;
    s->conf.start_clients = 2;
    s->conf.rounds = 1;
    s->conf.learning_rate = 0.1;
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 10);
    script_join(s, "b", 20);
    return s;
}

TEST_CASE("all", setup, teardown);

TEST(a_round_with_feedback_is_logged_client_by_client)
{
    struct script *s = begin("fedldf");
    const float far[3] = {3, 0, 1};
    const float near[3] = {1, 2, 0};

    expect("task 'a' round=1 attempt=1 counted=0/0 selected=2 population=2 members=2 epoch=1 "
           "draw=0 units=- "
           "rate=0.10000000000000001 seed=15099039616673600221 order=16597536825310453160 "
           "personal_model=no\n"
           "task 'b' round=1 attempt=1 counted=0/0 selected=2 population=2 members=2 epoch=1 "
           "draw=0 units=- "
           "rate=0.10000000000000001 seed=9045288385340941130 order=8869134733739574326 "
           "personal_model=no\n");
    script_report(s, "a", far);
    script_report(s, "b", near);
    expect("plan 'a' round=1 attempt=1 units=101\n"
           "plan 'b' round=1 attempt=1 units=010\n");
    script_stored(s, "a");
    expect("update 'a' round=1 attempt=1 units=101 bytes=24 samples=10 steps=5 loss=2\n"
           "accepted 'a' round=1 attempt=1\n");
    script_invalid(s, "b", "cut off");
    ck_assert_ptr_nonnull(strstr((const char *)decisions.data, "rejected 'b' round=1 attempt=1\n"));
    script_free(s);
}

TEST(without_feedback_a_task_says_what_is_asked_for)
{
    struct script *s = begin("fedavg");

    decisions.len = 0;
    script_report(s, "a", NULL);
    script_stored(s, "a");
    script_run_to(s, 5000);
    expect("update 'a' round=1 attempt=1 units=111 bytes=56 samples=10 steps=5 loss=2\n"
           "accepted 'a' round=1 attempt=1\n"
           "dismissed 'b' round=1 attempt=1\n");
    script_free(s);
}

TEST(a_list_of_units_that_does_not_fit_is_cut)
{
    struct script *s = begin("fedavg");
    static const uint8_t units[FL_LAYOUT_MAX_UNITS] = {1};
    const struct fl_effect plan = {.type = FL_EFF_PLAN, .round = 1, .attempt = 1, .units = units};
    char line[FL_DECISION_LOG_SIZE];

    ck_assert_ptr_nonnull(fl_decision_log(s->coord, &plan, FL_LAYOUT_MAX_UNITS, line));
    ck_assert_ptr_nonnull(strstr(line, "units=100000"));
    ck_assert_str_eq(line + strlen(line) - 6, "000...");
    script_free(s);
}
