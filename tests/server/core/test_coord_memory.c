/*
 * Out of memory at any one place: the step fails with nothing changed and can be made
 * again, or what needed the memory is put off. The federation ends as it would have.
 */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool armed;       /* within a step of the coordinator */
static int fail_at = -1; /* which allocation fails, counted from now */
static int n_failed;

static bool fails(void)
{
    if (!armed || fail_at < 0 || fail_at-- > 0) {
        return false;
    }
    n_failed++;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

static int step(struct fl_coord *coord, const struct fl_event *ev, struct fl_effects *ret)
{
    enum fl_phase phase = fl_coord_phase(coord);
    size_t clients = fl_coord_n_known(coord);
    int rv;

    armed = true;
    rv = fl_coord_step(coord, ev, ret);
    armed = false;
    if (rv != FL_ENOMEM) {
        return rv;
    }
    ck_assert_int_eq(fl_coord_phase(coord), phase);
    ck_assert_uint_eq(fl_coord_n_known(coord), clients);
    return fl_coord_step(coord, ev, ret);
}

static void join_all(struct script *s)
{
    char name[16];
    unsigned i;

    for (i = 0; i < 20; i++) { /* more than the tables have room for at first */
        (void)snprintf(name, sizeof(name), "c%u", i);
        script_join(s, name, 10);
    }
}

/* Whoever is asked for something does it. */
static void answer_all(struct script *s)
{
    static const float d[] = {1, 1, 1};
    uint32_t i;

    for (i = 0; i < fl_coord_n_known(s->coord); i++) {
        const struct fl_participant_rec *part = fl_coord_part(s->coord, i);

        if (part != NULL && part->state == FL_PARTICIPANT_SELECTED) {
            script_report(s, fl_coord_client(s->coord, i)->name, d);
        }
    }
    for (i = 0; i < fl_coord_n_known(s->coord); i++) {
        const struct fl_participant_rec *part = fl_coord_part(s->coord, i);

        if (part != NULL && part->state == FL_PARTICIPANT_PLANNED) {
            script_stored(s, fl_coord_client(s->coord, i)->name);
        }
    }
}

static uint64_t run(const char *preset, int at)
{
    struct script *s = script_new(preset);
    uint64_t bytes;

    s->take = step;
    s->quiet = true;
    s->conf.share_cap = 1.5;
    s->conf.rounds = 3;
    s->conf.start_clients = 20;
    script_create(s, NULL);
    fail_at = at;
    n_failed = 0;
    script_start(s);
    join_all(s);
    while (fl_coord_phase(s->coord) != FL_PHASE_STOPPED && s->now < 100000) {
        answer_all(s);
        script_run_to(s, s->now + 10);
    }
    fail_at = -1;
    ck_assert_msg(fl_coord_committed(s->coord) == 3, "allocation %d", at);
    bytes = s->record.uplink_bytes;
    script_free(s);
    return bytes;
}

TEST(any_failed_allocation_is_survived)
{
    uint64_t bytes = run("adafl+fedldf", -1);
    int n = 0;

    do {
        ck_assert_uint_eq(run("adafl+fedldf", n), bytes);
        n++;
    } while (n_failed > 0);
    ck_assert_int_gt(n, 40); /* It did fail in many places. */
}
