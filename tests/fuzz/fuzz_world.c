/*
 * Any bytes as a table file, and what was read as a trace of both kinds. Checked besides memory: a
 * refusal says where, what was accepted is finite, and answers of a trace hold until they say.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/world/world_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_trace(const struct fl__table *table, const struct fl__trace_ask *ask)
{
    struct fl__trace *trace = NULL;
    struct fl_err err = {0};
    uint64_t t = 0;
    int i;

    if (fl__trace_make(table, ask, &trace, &err) != FL_OK) {
        FL_REQUIRE(trace == NULL && strncmp(err.msg, "x.csv:", 6) == 0);
        return;
    }
    for (i = 0; i < 50 && t != UINT64_MAX; i++) {
        uint64_t until = 0;
        uint64_t same = 0;
        const struct fl__span *span = fl__trace_at(trace, 1, ask->n - 1, t, &until);

        FL_REQUIRE(until > t);
        FL_REQUIRE(fl__trace_at(trace, 1, ask->n - 1, until - 1, &same) == span && same == until);
        t = until;
    }
    fl__trace_free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl__table *table = NULL;
    struct fl_err err = {0};
    int rv = fl__table_parse("x.csv", data, size, &table, &err);
    size_t i;

    if (rv != FL_OK) {
        FL_REQUIRE(rv == FL_ECONF && table == NULL && strncmp(err.msg, "x.csv:", 6) == 0);
        return 0;
    }
    FL_REQUIRE(table->source != NULL && table->n_rows > 0 && table->n_columns > 0);
    for (i = 0; i < table->n_rows * table->n_columns; i++) {
        FL_REQUIRE(isfinite(table->cells[i]) && table->cells[i] >= 0);
    }
    for (i = 0; i < 16; i++) {
        check_trace(table, &(struct fl__trace_ask){.rates = (i & 1) != 0,
                                                   .repeat = (i & 2) != 0,
                                                   .in_order = (i & 4) != 0,
                                                   .n = 2,
                                                   .horizon_us = (i & 8) != 0 ? 1000000 : 0});
    }
    fl__table_free(table);
    return 0;
}
