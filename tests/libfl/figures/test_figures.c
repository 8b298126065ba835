/* Rows that mean something, and totals that are what was counted. */

#include <check.h>
#include <math.h>
#include <string.h>

#include "libfl/figures/client_figures.h"
#include "libfl/figures/figures_text.h"
#include "libfl/figures/round_figures.h"
#include "libfl/figures/share.h"
#include "tests/lib/suites.h"

static const struct fl_figures *const tables[] = {&fl_round_rows, &fl_client_rows};

/* The place of each member is its own: a record has nothing that no row describes. */
TEST_EACH(the_rows_fill_the_record, 2)
{
    const struct fl_figures *t = tables[_i];
    size_t end = 0;
    size_t i;

    for (i = 0; i < t->n; i++) {
        size_t size = t->rows[i].type == FL_FIGURE_U32 ? 4 : 8;

        ck_assert_uint_ge(t->rows[i].offset, end);
        ck_assert_uint_lt(t->rows[i].offset - end, size); /* padding */
        end = t->rows[i].offset + size;
    }
    /* Behind those of a round there is a text (robust_clients.h). */
    ck_assert_uint_lt((_i == 0 ? offsetof(struct fl_round_rec, robust_clients) : t->size) - end, 8);
}

TEST(a_client_of_a_robust_list_is_read_back_and_a_damaged_list_ends)
{
    char text[FL_ROBUST_CLIENTS_TEXT] = "";
    const char *at = text;
    struct fl_robust_client client;

    ck_assert(fl_robust_clients_add(text, "edge-1.x", 0, 1e9));
    ck_assert(fl_robust_clients_add(text, "b", 0.0123456, 3.14159));
    ck_assert_str_eq(text, "edge-1.x 0 1e+09, b 0.0123 3.14");
    ck_assert(fl_robust_clients_next(&at, &client));
    ck_assert_str_eq(client.name, "edge-1.x");
    ck_assert_double_eq(client.score, 1e9);
    ck_assert(fl_robust_clients_next(&at, &client));
    ck_assert_str_eq(client.name, "b");
    ck_assert_double_eq(client.used, 0.0123);
    ck_assert(!fl_robust_clients_next(&at, &client));
    at = "a 0 x, b 0 1";
    ck_assert(!fl_robust_clients_next(&at, &client));
    at = "\x1b[m 0 1";
    ck_assert(!fl_robust_clients_next(&at, &client));
}

TEST(a_robust_list_takes_whole_clients_up_to_its_size)
{
    char text[FL_ROBUST_CLIENTS_TEXT] = "";
    char name[FL_NAME_MAX];
    const char *at = text;
    struct fl_robust_client client;
    size_t added = 0;
    size_t read = 0;

    (void)memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    while (fl_robust_clients_add(text, name, 0.5, 1)) {
        added++;
    }
    while (fl_robust_clients_next(&at, &client)) {
        ck_assert_str_eq(client.name, name);
        read++;
    }
    ck_assert_uint_eq(added, 7);
    ck_assert_uint_eq(read, added);
}

TEST_EACH(every_row_can_be_shown, 2)
{
    const struct fl_figures *t = tables[_i];
    size_t i;
    size_t k;

    for (i = 0; i < t->n; i++) {
        const struct fl_figure *f = &t->rows[i];

        ck_assert_msg(f->meaning != NULL && f->meaning[0] != '\0', "%s", f->member);
        ck_assert_int_ne(f->meaning[strlen(f->meaning) - 1], '.');
        ck_assert_msg(f->shown == 0 || f->label != NULL, "%s has no label", f->member);
        ck_assert_msg((f->shown & FL_SHOWN_COLUMN) == 0 || f->width >= (int)strlen(f->label),
                      "%s does not fit its column", f->member);
        ck_assert_uint_lt(f->lead, t->n);
        ck_assert(f->lead == 0 || t->rows[f->lead].type == FL_FIGURE_F64);
        ck_assert(f->unit != FL_UNIT_SHARE || f->type == FL_FIGURE_F64);
        ck_assert_msg(f->over != FL_OVER_SUM || f->type != FL_FIGURE_F64, "%s", f->member);
        for (k = 0; k < i; k++) {
            ck_assert_str_ne(fl_figure_key(f), fl_figure_key(&t->rows[k]));
        }
    }
}

static void expect(const struct fl_round_rec *r, unsigned row, const char *want)
{
    char text[FL_FIGURE_TEXT];

    ck_assert_str_eq(fl_figure_text(&fl_round_rows, &fl_round_rows.rows[row], r, 4, text), want);
}

TEST(nothing_is_known_of_an_empty_record)
{
    struct fl_round_rec r;

    fl_figures_init(&fl_round_rows, &r);
    expect(&r, FL_ROUND_accuracy, "-");
    expect(&r, FL_ROUND_loss, "-");
    expect(&r, FL_ROUND_personal_mean, "-");
    expect(&r, FL_ROUND_n_personal, "-");
    expect(&r, FL_ROUND_received_mean, "-");
    expect(&r, FL_ROUND_self_weight, "-");
    expect(&r, FL_ROUND_uplink_bytes, "0");
    expect(&r, FL_ROUND_train_loss, "0.0000");
    ck_assert_double_eq(r.accuracy, -1.0);
    ck_assert_double_eq(r.received_mean, -1.0);
    ck_assert_double_eq(r.self_weight, 0.0);
}

TEST(a_figure_is_known_when_its_lead_is)
{
    struct fl_round_rec r = {.accuracy = 0.0, .loss = 1.5, .personal_accuracy = (double)NAN};

    expect(&r, FL_ROUND_accuracy, "0.0000");
    expect(&r, FL_ROUND_loss, "1.5000");
    expect(&r, FL_ROUND_personal_mean, "-");
    expect(&r, FL_ROUND_effective, "-");
    r.accuracy = -1.0;
    r.effective = 2.5;
    r.self_weight = 0.0;
    expect(&r, FL_ROUND_loss, "-");
    expect(&r, FL_ROUND_effective, "2.5000");
    expect(&r, FL_ROUND_self_weight, "0.0000");
    r.train_loss = (double)INFINITY;
    expect(&r, FL_ROUND_train_loss, "inf");
}

/* libfl/figures/share.h: an evaluation of values has a loss and no accuracy, also in the totals. */
TEST(a_share_that_there_is_none_of_is_unknown_and_what_it_leads_is_known)
{
    struct fl_round_rec totals;
    struct fl_round_rec r;

    fl_figures_init(&fl_round_rows, &totals);
    fl_figures_init(&fl_round_rows, &r);
    r.accuracy = r.client_accuracy_mean = r.client_accuracy_std = FL_SHARE_NONE;
    r.loss = 1.5;
    r.client_loss_mean = 2.5;
    fl_figures_add(&fl_round_rows, 0, &totals, &r);
    fl_figures_init(&fl_round_rows, &r); /* a round without an evaluation */
    fl_figures_add(&fl_round_rows, 1, &totals, &r);
    expect(&totals, FL_ROUND_accuracy, "-");
    expect(&totals, FL_ROUND_client_accuracy_std, "-");
    expect(&totals, FL_ROUND_loss, "1.5000");
    expect(&totals, FL_ROUND_client_loss_mean, "2.5000");
}

/* Rows of a record of this file: what real ones show does not matter to how lines are made. */
struct sample {
    uint64_t n;
    double share, of_share, other;
    uint32_t last;
};

#define ROW(t, name, ...)                                       \
    {                                                           \
        .member = #name, .label = #name, .type = FL_FIGURE_##t, \
        .offset = offsetof(struct sample, name), __VA_ARGS__    \
    }

static const struct fl_figure sample_rows[] = {
    ROW(U64, n, .shown = FL_SHOWN_COLUMN, .width = 3),
    ROW(F64, share, .unit = FL_UNIT_SHARE, .lead = 1, .width = 8, .decimals = 4,
        .shown = FL_SHOWN_COLUMN | FL_SHOWN_BEHIND | FL_SHOWN_LOG),
    ROW(F64, of_share, .lead = 1, .decimals = 2, .shown = FL_SHOWN_BEHIND | FL_SHOWN_LOG),
    ROW(F64, other, .lead = 3, .decimals = 1, .shown = FL_SHOWN_BEHIND),
    ROW(U32, last, .shown = FL_SHOWN_COLUMN | FL_SHOWN_LOG, .width = 5),
};
static const struct fl_figures samples = {sample_rows, 5, sizeof(struct sample)};

TEST(lines_have_what_is_known_in_the_order_of_the_rows)
{
    struct sample r;
    char out[FL_FIGURES_LINE];

    fl_figures_init(&samples, &r);
    r.last = 7;
    ck_assert_str_eq(fl_figures_columns(&samples, NULL, out, sizeof(out)), "  n    share  last");
    ck_assert_str_eq(fl_figures_columns(&samples, &r, out, sizeof(out)), "  0        -     7");
    ck_assert_str_eq(fl_figures_behind(&samples, &r, out, sizeof(out)), "");
    ck_assert_str_eq(fl_figures_log(&samples, &r, out, sizeof(out)), " last=7");
    r = (struct sample){.n = 100000, .share = 0.5, .of_share = 0.25, .other = 2.5};
    ck_assert_str_eq(fl_figures_columns(&samples, &r, out, sizeof(out)), "100000   0.5000     0");
    ck_assert_str_eq(fl_figures_behind(&samples, &r, out, sizeof(out)),
                     "  share=0.5000 of_share=0.25  other=2.5");
    ck_assert_str_eq(fl_figures_log(&samples, &r, out, sizeof(out)),
                     " share=0.5000 of_share=0.2500 last=0");
}

TEST(what_diverged_is_shown_as_it_is_and_cut_where_there_is_no_room)
{
    const struct sample r = {.share = 0.5, .of_share = 1e300};
    char out[FL_FIGURES_LINE];

    (void)fl_figures_log(&samples, &r, out, sizeof(out));
    ck_assert_ptr_nonnull(strstr(out, " of_share=1000000000000000052504760255204420248"));
    ck_assert_ptr_nonnull(strstr(out, ".0000 last=0"));
    ck_assert_str_eq(fl_figures_log(&samples, &r, out, 20), " share=0.5000 of_sh");
}

TEST(totals_are_sums_and_the_newest_that_is_known)
{
    struct fl_round_rec sum;
    struct fl_round_rec one = {.round = 1,
                               .attempt = 3,
                               .n_selected = 4,
                               .accuracy = 0.5,
                               .loss = 2.0,
                               .train_loss = 1.0,
                               .uplink_bytes = 100,
                               .started_ms = 10,
                               .ended_ms = 20,
                               .personal_accuracy = 0.75,
                               .n_personal = 7,
                               .received_accuracy = -1.0,
                               .effective = 3.0,
                               .self_weight = 0.25};
    struct fl_round_rec two;

    fl_figures_init(&fl_round_rows, &sum);
    fl_figures_init(&fl_round_rows, &two);
    two.round = 2;
    two.n_selected = 5;
    two.loss = 9.0;
    two.train_loss = 0.5;
    two.uplink_bytes = 11;
    two.started_ms = 20;
    two.ended_ms = 30;
    fl_round_add(&sum, &one);
    fl_round_add(&sum, &two);
    ck_assert_uint_eq(sum.round, 2);
    ck_assert_uint_eq(sum.attempt, 2); /* rounds */
    ck_assert_uint_eq(sum.n_selected, 9);
    ck_assert_uint_eq(sum.uplink_bytes, 111);
    ck_assert_double_eq(sum.accuracy, 0.5);
    ck_assert_double_eq(sum.loss, 2.0);
    ck_assert_double_eq(sum.train_loss, 0.5);
    ck_assert_uint_eq(sum.started_ms, 10);
    ck_assert_uint_eq(sum.ended_ms, 30);
    ck_assert_double_eq(sum.personal_accuracy, 0.75);
    ck_assert_uint_eq(sum.n_personal, 7);
    ck_assert_double_eq(sum.received_accuracy, -1.0);
    ck_assert_double_eq(sum.effective, 3.0);
    ck_assert_double_eq(sum.self_weight, 0.25);
    one.n_selected = UINT32_MAX;
    fl_round_add(&sum, &one);
    ck_assert_uint_eq(sum.n_selected, UINT32_MAX);
}
