/* The rows of a server's metrics: names, words and the number of series. */

#include <ctype.h>
#include <string.h>

#include "server/http/server_metrics.h"
#include "tests/lib/suites.h"

TEST(at_most_300_series_whatever_the_number_of_clients)
{
    ck_assert_uint_le(fl_metrics_series(fl_server_metrics) + fl_metrics_series(fl_process_metrics),
                      300);
}

static void check_name(const struct fl_metric *m)
{
    const char *c;

    for (c = m->name; *c != '\0'; c++) {
        ck_assert_msg(islower((unsigned char)*c) || *c == '_', "%s", m->name);
    }
    ck_assert_msg(m->help[strlen(m->help) - 1] != '.', "%s: %s", m->name, m->help);
    ck_assert_msg(m->value != FL_METRIC_MS || strstr(m->name, "seconds") != NULL, "%s", m->name);
    ck_assert_msg(strstr(m->name, "_total") == NULL, "%s", m->name);
    ck_assert_msg(m->type != FL_METRIC_HISTOGRAM || m->bounds != NULL, "%s", m->name);
}

TEST(names_are_unique_and_have_base_units)
{
    const struct fl_metric *m;
    const struct fl_metric *other;

    for (m = fl_server_metrics; m->name != NULL; m++) {
        check_name(m);
        for (other = m + 1; other->name != NULL; other++) {
            ck_assert_str_ne(m->name, other->name);
        }
        for (other = fl_process_metrics; other->name != NULL; other++) {
            ck_assert_str_ne(m->name, other->name);
        }
    }
}

static const struct fl_metric *metric_of(const char *name)
{
    const struct fl_metric *m = fl_server_metrics;

    while (strcmp(m->name, name) != 0) {
        m++;
    }
    return m;
}

TEST(phases_and_states_have_the_names_that_flctl_shows)
{
    const struct fl_metric *phase = metric_of("phase");
    const struct fl_metric *clients = metric_of("clients");
    size_t i, c;

    ck_assert_uint_eq(phase->n, FL_PHASE_COUNT);
    for (i = 0; i < phase->n; i++) {
        const char *name = fl_phase_name((enum fl_phase)i);

        ck_assert_uint_eq(strlen(phase->words[i]), strlen(name));
        for (c = 0; name[c] != '\0'; c++) {
            ck_assert_int_eq(phase->words[i][c], tolower((unsigned char)name[c]));
        }
    }
    ck_assert_uint_eq(clients->n, FL_CLIENTS_STATES);
    for (i = FL_PARTICIPANT_SELECTED; i <= FL_PARTICIPANT_LOST; i++) {
        ck_assert_str_eq(clients->words[FL_CLIENTS_QUARANTINED + i],
                         fl_part_state_name((enum fl_participant_state)i));
    }
}

TEST(bounds_of_histograms_grow)
{
    size_t i;

    for (i = 1; i < FL_HISTOGRAM_BOUNDS; i++) {
        ck_assert_double_gt(fl_coord_work_bounds[i], fl_coord_work_bounds[i - 1]);
        ck_assert_double_gt(fl_coord_round_bounds[i], fl_coord_round_bounds[i - 1]);
    }
}
