/* What clients of a simulated federation keep between rounds, and their disks. */
#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "tests/sim/fed.h"

#define TAG_GRANTED (UINT64_C(9) << 60)

/*
 * Each record is all that a client keeps: the newest one counts. That a result was dropped
 * is not written down: one of a round that is over is of no use, and does no harm.
 */
struct record {
    bool has_held;
    struct fed_upload held;
    struct fed_keep keep;
};

void fed_keep_write(struct fed_client *c, uint64_t tag)
{
    struct record rec;

    (void)memset(&rec, 0, sizeof(rec));
    rec.has_held = c->has_held;
    rec.held = c->held;
    rec.keep = c->keep;
    fl_sim_write(c->fed->sim, FED_CLIENT0 + c->index, tag, &rec, sizeof(rec));
}

void fed_keep_load(struct fed_client *c)
{
    uint32_t node = FED_CLIENT0 + c->index;
    size_t n = fl_sim_disk_count(c->fed->sim, node);
    struct record rec = {.has_held = false};
    size_t len = 0;

    if (n > 0) {
        (void)memcpy(&rec, fl_sim_disk_record(c->fed->sim, node, n - 1, &len), sizeof(rec));
        ck_assert_uint_eq(len, sizeof(rec));
    }
    c->has_held = c->durable = rec.has_held;
    c->held = rec.held;
    c->keep = rec.keep;
    c->granting = 0;
}

static void take_over(struct fed_client *c)
{
    struct fed_keep *k = &c->keep;
    unsigned l;

    for (l = 0; l < FED_UNITS; l++) {
        if (k->units[l] != 0) {
            k->control[l] += k->change[l];
            k->float_control[l] = k->next_control[l];
        }
    }
    k->own = k->next_own;
    k->has_own = true;
    k->taken_round = k->round;
    k->taken_attempt = k->attempt;
    k->round = 0;
    fed_keep_write(c, 0);
}

void fed_keep_task(struct fed_client *c, const struct fed_msg *task)
{
    struct fed_keep *k = &c->keep;
    bool newer = task->counted_round != k->taken_round || task->counted_attempt != k->taken_attempt;

    if (k->round != 0 && k->round == task->counted_round && k->attempt == task->counted_attempt) {
        take_over(c);
        return;
    }
    if (task->counted_round == 0 && c->fed->forgotten[c->index]) {
        /* The server does not know it any more: it begins anew (docs/clients.md). */
        (void)memset(k->control, 0, sizeof(k->control));
        (void)memset(k->float_control, 0, sizeof(k->float_control));
        k->has_own = false;
        k->taken_round = 0;
        k->taken_attempt = 0;
        newer = false;
    }
    if (newer) {
        fed_fail(
            c->fed,
            "%s is told that %" PRIu64 ".%" PRIu32 " counted, it took %" PRIu64 ".%" PRIu32 " last",
            c->name, task->counted_round, task->counted_attempt, k->taken_round, k->taken_attempt);
    }
    /* The same task again, after the connection was lost: what it made still waits. */
    if (k->round != task->round || k->attempt != task->attempt) {
        k->round = 0;
    }
}

/* As solver_scaffold.c ends a round whose mean gradient is `pull`. */
static void change_control(struct fed_client *c, unsigned l)
{
    struct fed_keep *k = &c->keep;
    float pull = (float)(fed_hash(c->held.value, l) % 2001) / 1000 - 1;
    double change = -(double)c->task.told[l] + (double)pull;

    c->held.pull[l] = pull;
    c->held.float_change[l] = (float)change;
    k->next_control[l] = (float)((double)k->float_control[l] + (double)c->held.float_change[l]);
}

/* What training makes depends on all that goes into it. */
void fed_keep_trained(struct fed_client *c, uint64_t round, uint32_t attempt)
{
    const struct fed_msg *task = &c->task;
    struct fed_keep *k = &c->keep;
    uint64_t start = task->theta;
    unsigned l;

    if (c->fed->plan.own) {
        start = task->has_mixture ? task->mixture : k->has_own ? k->own : task->theta;
    }
    c->held = (struct fed_upload){.round = round, .attempt = attempt, .client = c->index};
    c->held.value = fed_update(c->name, round, attempt, start);
    c->has_held = true;
    c->granting = 0;
    k->round = round;
    k->attempt = attempt;
    k->next_own = c->held.value;
    (void)memset(k->units, 0, sizeof(k->units));
    for (l = 0; l < FED_UNITS; l++) {
        k->change[l] = fed_hash(fed_hash(k->control[l], task->control[l]), c->held.value + l);
        c->held.change[l] = k->change[l];
        change_control(c, l);
    }
}

void fed_keep_grant(struct fed_client *c, const uint8_t *units)
{
    (void)memcpy(c->keep.units, units, FED_UNITS);
    (void)memcpy(c->held.units, units, FED_UNITS);
    c->granting = ++c->generation;
    fed_keep_write(c, TAG_GRANTED | c->granting);
}

bool fed_keep_granted(struct fed_client *c, uint64_t tag)
{
    bool granted = c->granting != 0 && tag == (TAG_GRANTED | c->granting);

    if (granted) {
        c->granting = 0;
    }
    return granted;
}
