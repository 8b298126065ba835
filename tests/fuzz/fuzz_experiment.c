/*
 * Any bytes as the file of `fl-sim run`; behind a NUL byte each, what --set would say. Checked
 * besides memory: an error has a message with its place, and of a file that loads every point opens
 * with every seed, has a text that is an experiment of that one point, and that one has the same
 * text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/experiment/experiment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SETS = 4, POINTS = 8 };

static void text_of(const struct fl_experiment *e, size_t point, struct fl_buf *out)
{
    fl_buf_init(out, 16u << 20);
    FL_REQUIRE(fl_experiment_text(e, point, out) == FL_OK);
}

static void check_text(const struct fl_experiment *e, size_t point)
{
    struct fl_experiment *again = NULL;
    struct fl_buf first;
    struct fl_buf second;
    struct fl_err err = {0};
    size_t last = fl_experiment_trials(e) - 1;

    text_of(e, point, &first);
    FL_REQUIRE(fl_experiment_parse("again.yaml", first.data, first.len, NULL, 0, &again, &err) ==
               FL_OK);
    FL_REQUIRE(fl_experiment_points(again) == 1 && fl_experiment_trials(again) == last + 1);
    FL_REQUIRE(fl_experiment_seed(again, last) == fl_experiment_seed(e, last));
    text_of(again, 0, &second);
    FL_REQUIRE(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    fl_buf_done(&first);
    fl_buf_done(&second);
    fl_experiment_free(again);
}

static void check(const struct fl_experiment *e)
{
    size_t n = fl_experiment_points(e);
    size_t i;

    FL_REQUIRE(fl_name_valid(fl_experiment_name(e)));
    FL_REQUIRE(n > 0 && n * fl_experiment_trials(e) <= FL_EXPERIMENT_RUNS);
    for (i = 0; i < n && i < POINTS; i++) {
        struct fl_experiment_point *p = NULL;
        size_t last = fl_experiment_trials(e) - 1;

        FL_REQUIRE(fl_name_valid(fl_experiment_slug(e, i)) ||
                   strchr(fl_experiment_slug(e, i), '/') == NULL);
        FL_REQUIRE(fl_experiment_label(e, i)[0] != '\0');
        FL_REQUIRE(fl_experiment_open(e, i, last, &p, NULL) == FL_OK);
        FL_REQUIRE((uint64_t)p->server->main->seed == fl_experiment_seed(e, last));
        FL_REQUIRE(p->stop.rounds == p->server->main->rounds);
        fl_experiment_close(p);
        check_text(e, i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = memchr(data, '\0', size);
    size_t len = nul != NULL ? (size_t)(nul - data) : size;
    const char *set[SETS];
    char *rest = nul != NULL ? malloc(size - len) : NULL;
    struct fl_experiment *e = NULL;
    struct fl_err err = {0};
    size_t n = 0;
    size_t at = 0;
    int rv;

    if (rest != NULL) {
        (void)memcpy(rest, nul + 1, size - len - 1);
        rest[size - len - 1] = '\0';
        for (; n < SETS && at < size - len - 1; at += strlen(rest + at) + 1) {
            set[n++] = rest + at;
        }
    }
    rv = fl_experiment_parse("fuzz.yaml", data, len, set, n, &e, &err);
    if (rv == FL_OK) {
        check(e);
    } else {
        FL_REQUIRE(strncmp(err.msg, "fuzz.yaml:", 10) == 0 || strncmp(err.msg, "--set", 5) == 0);
    }
    fl_experiment_free(e);
    free(rest);
    return 0;
}
