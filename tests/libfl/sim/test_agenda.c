#include <check.h>

#include "libfl/base/rng.h"
#include "libfl/sim/agenda.h"
#include "tests/lib/suites.h"

static bool in_order(const struct fl_agenda_event *a, const struct fl_agenda_event *b)
{
    if (a->at != b->at) {
        return a->at < b->at;
    }
    if (a->rank1 != b->rank1) {
        return a->rank1 < b->rank1;
    }
    if (a->rank2 != b->rank2) {
        return a->rank2 < b->rank2;
    }
    return a->order < b->order;
}

TEST(events_come_by_time_then_ranks_then_order_of_scheduling)
{
    struct fl_agenda agenda = {0};
    struct fl_agenda_event e = {0};
    struct fl_agenda_event last = {0};
    struct fl_rng rng;
    size_t n = 0;
    int i;

    fl_rng_seed(&rng, 1);
    for (i = 0; i < 20000; i++) {
        e.at = fl_rng_below(&rng, 50);
        e.rank1 = (uint32_t)fl_rng_below(&rng, 3);
        e.rank2 = (uint32_t)fl_rng_below(&rng, 3);
        e.words[0] = (uint64_t)i;
        ck_assert_int_eq(fl_agenda_push(&agenda, &e), FL_OK);
    }
    ck_assert_uint_eq(fl_agenda_peek(&agenda)->at, 0);
    for (; fl_agenda_pop(&agenda, &e); n++) {
        ck_assert(n == 0 || in_order(&last, &e));
        ck_assert_uint_eq(e.words[0], e.order);
        last = e;
    }
    ck_assert_uint_eq(n, 20000);
    ck_assert_ptr_null(fl_agenda_peek(&agenda));
    fl_agenda_done(&agenda);
}

TEST(what_is_scheduled_between_pops_falls_into_its_place)
{
    struct fl_agenda agenda = {0};
    struct fl_agenda_event e = {0};
    struct fl_rng rng;
    uint64_t now = 0;
    size_t n = 0;
    int i;

    fl_rng_seed(&rng, 2);
    for (i = 0; i < 200; i++) {
        e.at = fl_rng_below(&rng, 1000);
        ck_assert_int_eq(fl_agenda_push(&agenda, &e), FL_OK);
    }
    for (i = 0; i < 50000; i++) {
        ck_assert(fl_agenda_pop(&agenda, &e));
        ck_assert_uint_ge(e.at, now);
        now = e.at;
        e.at += fl_rng_below(&rng, 1000);
        ck_assert_int_eq(fl_agenda_push(&agenda, &e), FL_OK);
    }
    while (fl_agenda_pop(&agenda, &e)) {
        n++;
    }
    ck_assert_uint_eq(n, 200);
    fl_agenda_done(&agenda);
}
