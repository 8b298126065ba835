/*
 * A server with broadcast: lattice that loses its power at any write of a start and of two commits,
 * with merged steps: afterwards its model and what clients may hold fit bit for bit.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/power_disk.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/suites.h"
#include "tests/lib/work_rig.h"

#define ROUNDS  11 /* before; with a history of 3 rounds the next commit merges steps */
#define HISTORY 3

static struct work_rig rig;

static void setup(void)
{
    char dir[RIG_PATH_MAX];
    static char folder[RIG_PATH_MAX];

    if (access("/dev/shm", W_OK) == 0) {
        ck_assert_int_eq(setenv("TMPDIR", "/dev/shm", 1), 0);
    }
    work_rig_init(&rig);
    rig.retention.keep = 1;
    rig.broadcast = "lattice";
    rig.history = "3";
    work_rig_open(&rig, "fedavg");
    work_rig_rounds(&rig, 1, ROUNDS);
    work_rig_close(&rig);
    (void)memcpy(folder, rig_path(dir, ""), sizeof(folder));
    folder[strlen(folder) - 1] = '\0';
    power_disk_watch(folder);
}

static void teardown(void)
{
    work_rig_done(&rig);
}

/* Of each round's model, and of those that are aggregated after a loss. */
static unsigned n_reaching(void)
{
    unsigned n = (unsigned)work_rig_reaches(&rig, (double)WORK_RIG_FIRST);
    unsigned k;

    for (k = 1; k <= ROUNDS + 3; k++) {
        n += work_rig_reaches(&rig, k);
        n += work_rig_reaches(&rig, -(double)k);
    }
    return n;
}

/* What is on the disk leads to the committed model from as many models as without the loss. */
static uint64_t check_disk(void)
{
    uint64_t last;
    uint64_t k;

    work_rig_open(&rig, "fedavg");
    last = rig.resume.committed;
    ck_assert_uint_ge(last, ROUNDS);
    ck_assert_double_eq(work_rig_theta(&rig), (double)last);
    ck_assert_ptr_null(strstr(rig.logged, "cannot be read"));
    ck_assert(work_rig_reaches(&rig, (double)WORK_RIG_FIRST));
    for (k = last - HISTORY; k <= last; k++) {
        ck_assert(work_rig_reaches(&rig, (double)k));
    }
    ck_assert_uint_ge(n_reaching(), HISTORY + 2);
    /* The next attempt of the round ends with another model. */
    work_rig_aggregate(&rig, -(float)(last + 1));
    ck_assert_int_eq(work_rig_commit(&rig, last + 1, NULL), FL_OK);
    ck_assert(work_rig_reaches(&rig, (double)last));
    ck_assert(!work_rig_reaches(&rig, (double)last + 1));
    ck_assert_uint_ge(n_reaching(), HISTORY + 2);
    work_rig_close(&rig);
    return last;
}

static void run_rounds(void)
{
    work_rig_open(&rig, "fedavg");
    work_rig_rounds(&rig, ROUNDS + 1, ROUNDS + 2);
}

TEST_CASE("power", setup, teardown);

/* Each kind of loss, and one with records that are synced. */
TEST_EACH(a_power_loss_at_any_write_leaves_a_model_and_the_steps_to_it, POWER_LOSSES + 1)
{
    enum power_loss how = _i < POWER_LOSSES ? (enum power_loss)_i : POWER_KEEPS_SYNCED;
    uint64_t newest = 0;
    bool lost = true;
    long n;

    rig.durability = _i < POWER_LOSSES ? FL_DURABLE_PROCESS : FL_DURABLE_POWER;
    for (n = 0; lost; n += (long)everyday_stride(3, 10)) {
        uint64_t last;

        lost = power_disk_loses(n, how, run_rounds);
        last = check_disk();
        newest = last > newest ? last : newest;
        power_disk_restore();
    }
    ck_assert_int_ge(n, 40);
    ck_assert_uint_eq(newest, ROUNDS + 2);
}
