/* A federation of a simulation: nothing is synced, and what was committed survives a kill. */
#include <check.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/suites.h"
#include "tests/lib/work_rig.h"

static unsigned n_syncs;

/* In place of the C library's, also for SQLite. */
int fsync(int fd);
int fdatasync(int fd);

int fsync(int fd)
{
    n_syncs++;
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    n_syncs++;
    return (int)syscall(SYS_fdatasync, fd);
}

TEST_EACH(rounds_of_a_scratch_federation_are_committed_without_a_sync, 2)
{
    struct work_rig rig;
    unsigned before;

    work_rig_init(&rig);
    rig.durability = _i == 0 ? FL_DURABLE_SCRATCH : FL_DURABLE_PROCESS;
    work_rig_open(&rig, "fedavgm");
    ck_assert(rig.fed.scratch == (_i == 0));
    before = n_syncs;
    work_rig_rounds(&rig, 1, 3);
    ck_assert_int_eq(fl_store_put_pause(rig.fed.store, "for a test", NULL), FL_OK);
    ck_assert_int_eq(n_syncs > before, _i != 0);
    work_rig_done(&rig);
}

static void be_killed(const struct work_rig *parents)
{
    struct work_rig rig = *parents;

    work_rig_open(&rig, "fedavgm");
    work_rig_rounds(&rig, 1, 40);
    (void)kill(getpid(), SIGKILL);
}

TEST_EACH(rounds_of_a_scratch_federation_survive_a_kill, 2)
{
    struct work_rig rig;
    int status = 0;
    pid_t pid;

    work_rig_init(&rig);
    rig.durability = FL_DURABLE_SCRATCH;
    pid = fork();
    if (pid == 0) {
        be_killed(&rig);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    /* By a daemon, which may go on from it. */
    rig.durability = _i == 0 ? FL_DURABLE_SCRATCH : FL_DURABLE_POWER;
    work_rig_open(&rig, "fedavgm");
    ck_assert_uint_eq(rig.resume.committed, 40);
    ck_assert_double_eq(work_rig_theta(&rig), 40);
    work_rig_rounds(&rig, 41, 42);
    work_rig_done(&rig);
}
