/*
 * The tables of figures, access to their values in a record, and totals over rounds (figures.h).
 * Pure functions on the caller's thread; text output is in figures_text.c.
 */
#include "libfl/figures/figures.h"

#include <string.h>

#include "libfl/base/err.h"
#include "libfl/figures/client_figures.h"
#include "libfl/figures/part_figures.h"
#include "libfl/figures/round_figures.h"
#include "libfl/figures/share.h"

#define REPORTED_TOTALS true
#define REPORTED_OWN    false

static const struct fl_figure round_rows[] = {
#define X(t, name, wire, report, ...)               \
    {.member = #name,                               \
     .type = FL_FIGURE_##t,                         \
     .offset = offsetof(struct fl_round_rec, name), \
     .totals = REPORTED_##report,                   \
     __VA_ARGS__},
    FL_ROUND_FIGURES(X)
#undef X
};

static const struct fl_figure client_rows[] = {
#define X(t, name, wire, ...)                            \
    {.member = #name,                                    \
     .type = FL_FIGURE_##t,                              \
     .offset = offsetof(struct fl_client_figures, name), \
     __VA_ARGS__},
    FL_CLIENT_FIGURES(X)
#undef X
};

static const struct fl_figure part_rows[] = {
#define X(t, name, wire, ...)                          \
    {.member = #name,                                  \
     .type = FL_FIGURE_##t,                            \
     .offset = offsetof(struct fl_part_figures, name), \
     __VA_ARGS__},
    FL_PART_FIGURES(X)
#undef X
};

const struct fl_figures fl_round_rows = {round_rows, FL_ROUND_N, sizeof(struct fl_round_rec)};
const struct fl_figures fl_client_rows = {client_rows, sizeof(client_rows) / sizeof(client_rows[0]),
                                          sizeof(struct fl_client_figures)};
const struct fl_figures fl_part_rows = {part_rows, sizeof(part_rows) / sizeof(part_rows[0]),
                                        sizeof(struct fl_part_figures)};

static const void *figures_at(const struct fl_figure *f, const void *record)
{
    return (const char *)record + f->offset;
}

uint64_t fl_figure_whole(const struct fl_figure *figure, const void *record)
{
    uint64_t wide = 0;
    uint32_t small = 0;

    FL_REQUIRE(figure->type != FL_FIGURE_F64);
    if (figure->type == FL_FIGURE_U64) {
        (void)memcpy(&wide, figures_at(figure, record), sizeof(wide));
        return wide;
    }
    (void)memcpy(&small, figures_at(figure, record), sizeof(small));
    return small;
}

double fl_figure_real(const struct fl_figure *figure, const void *record)
{
    double value = 0.0;

    FL_REQUIRE(figure->type == FL_FIGURE_F64);
    (void)memcpy(&value, figures_at(figure, record), sizeof(value));
    return value;
}

void fl_figure_put_whole(const struct fl_figure *figure, void *record, uint64_t value)
{
    uint32_t small = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
    bool wide = figure->type == FL_FIGURE_U64;

    FL_REQUIRE(figure->type != FL_FIGURE_F64);
    (void)memcpy((char *)record + figure->offset, wide ? (const void *)&value : &small,
                 wide ? sizeof(value) : sizeof(small));
}

void fl_figure_put_real(const struct fl_figure *figure, void *record, double value)
{
    FL_REQUIRE(figure->type == FL_FIGURE_F64);
    (void)memcpy((char *)record + figure->offset, &value, sizeof(value));
}

const char *fl_figure_key(const struct fl_figure *figure)
{
    return figure->key != NULL ? figure->key : figure->member;
}

/* Was that measured which the lead of the figure is about? */
static bool figures_measured(const struct fl_figures *figures, const struct fl_figure *figure,
                             const void *record)
{
    const struct fl_figure *lead = &figures->rows[figure->lead];

    if (figure->unit == FL_UNIT_INSTANT) {
        return fl_figure_whole(figure, record) != FL_FIGURE_NEVER;
    }
    if (figure->lead == 0) {
        return true;
    }
    return lead->unit == FL_UNIT_SHARE ? fl_share_measured(fl_figure_real(lead, record))
                                       : fl_figure_real(lead, record) > 0.0;
}

bool fl_figure_known(const struct fl_figures *figures, const struct fl_figure *figure,
                     const void *record)
{
    bool none = figure->unit == FL_UNIT_SHARE && figure->lead != 0 &&
                fl_share_is_none(fl_figure_real(figure, record));

    return !none && figures_measured(figures, figure, record);
}

static void figures_copy(const struct fl_figure *f, void *to, const void *from)
{
    (void)memcpy((char *)to + f->offset, figures_at(f, from),
                 f->type == FL_FIGURE_U32 ? sizeof(uint32_t) : sizeof(uint64_t));
}

void fl_figures_init(const struct fl_figures *figures, void *record)
{
    size_t i;

    (void)memset(record, 0, figures->size);
    for (i = 0; i < figures->n; i++) {
        if (figures->rows[i].unit == FL_UNIT_SHARE) {
            fl_figure_put_real(&figures->rows[i], record, FL_SHARE_UNKNOWN);
        } else if (figures->rows[i].unit == FL_UNIT_INSTANT) {
            fl_figure_put_whole(&figures->rows[i], record, FL_FIGURE_NEVER);
        }
    }
}

void fl_figures_add(const struct fl_figures *figures, uint64_t n, void *totals, const void *record)
{
    size_t i;

    for (i = 0; i < figures->n; i++) {
        switch (figures->rows[i].over) {
        case FL_OVER_LAST:
            figures_copy(&figures->rows[i], totals, record);
            break;
        case FL_OVER_KNOWN:
            if (figures_measured(figures, &figures->rows[i], record)) {
                figures_copy(&figures->rows[i], totals, record);
            }
            break;
        case FL_OVER_FIRST:
            if (n == 0) {
                figures_copy(&figures->rows[i], totals, record);
            }
            break;
        case FL_OVER_SUM:
            if (figures->rows[i].type == FL_FIGURE_F64) {
                fl_figure_put_real(&figures->rows[i], totals,
                                   fl_figure_real(&figures->rows[i], totals) +
                                       fl_figure_real(&figures->rows[i], record));
            } else {
                fl_figure_put_whole(&figures->rows[i], totals,
                                    fl_figure_whole(&figures->rows[i], totals) +
                                        fl_figure_whole(&figures->rows[i], record));
            }
            break;
        case FL_OVER_ROUNDS:
            fl_figure_put_whole(&figures->rows[i], totals, n + 1);
            break;
        }
    }
}

void fl_round_add(struct fl_round_rec *totals, const struct fl_round_rec *record)
{
    fl_figures_add(&fl_round_rows, totals->attempt, totals, record);
}
