/* What fl-sim-mpi has and fl-sim has not: the processes that mpirun started with this one. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/num/gemm.h"
#include "libfl/num/kernels.h"
#include "tools/fl_sim/mpi/mpi_impl.h"

static void share(void *data, size_t n)
{
    MPI_Request request;

    (void)MPI_Ibcast(data, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    mpi__wait(&request);
}

static FL_NORETURN void fail(int code, const struct fl_err *err);

static struct ranks ranks = {.share = share, .run = mpi__run, .fail = fail};
const struct ranks *mpi__ranks = &ranks;

static const char *host(char out[MPI_MAX_PROCESSOR_NAME])
{
    int n = 0;

    (void)MPI_Get_processor_name(out, &n);
    return out;
}

static FL_NORETURN void fail(int code, const struct fl_err *err)
{
    char name[MPI_MAX_PROCESSOR_NAME];

    (void)fprintf(stderr, "fl-sim run: rank %u of %u on %s: %s\n", ranks.me, ranks.n, host(name),
                  fl_err_text(err, code));
    (void)fflush(stderr);
    (void)MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    _exit(EXIT_FAILURE);
}

static void end(void)
{
    (void)MPI_Finalize();
}

/* Those that mpirun bound this process to, shared with the others of this machine. */
static unsigned count_threads(unsigned local)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t bound;
    unsigned share_of = cores > (long)local ? (unsigned)cores / local : 1;
    unsigned mine = share_of;

    if (sched_getaffinity(0, sizeof(bound), &bound) == 0) {
        mine = (unsigned)CPU_COUNT(&bound);
    }
    return mine < share_of ? mine : share_of;
}

/* The same arithmetic everywhere, or results would depend on who does what. */
static void check_kernels(const struct fl_kernels *kernels)
{
    char mine[96] = "";
    char leaders[sizeof(mine)];
    struct fl_err err = {0};

    if (fl_gemm_init(&err) != FL_OK) {
        fail(FL_ENOENT, &err);
    }
    (void)snprintf(mine, sizeof(mine), "'%s', OpenBLAS '%s'", fl_kernels_name(kernels),
                   fl_gemm_kernel());
    (void)memcpy(leaders, mine, sizeof(leaders));
    share(leaders, sizeof(leaders));
    if (strcmp(leaders, mine) != 0) {
        fail(fl_err_set(&err, FL_EINVAL,
                        "layers are computed by %s here and by %s on the first machine, so "
                        "results would depend on who computes what: take machines with the same "
                        "kind of processor, or --instructions that all of them have; where only "
                        "OpenBLAS's differs, set OPENBLAS_CORETYPE to one that all of them have "
                        "(mpirun -x OPENBLAS_CORETYPE=Haswell)",
                        mine, leaders),
             &err);
    }
}

int fleet_begin(int argc, char **argv, const struct fl_kernels *kernels, const struct ranks **ret,
                struct fl_err *err)
{
    MPI_Comm here;
    int given;
    int n;
    int me;
    int local;

    (void)argc;
    (void)argv;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS) {
        return fl_err_set(err, FL_EUNAVAIL, "MPI cannot begin");
    }
    (void)MPI_Comm_size(MPI_COMM_WORLD, &n);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &me);
    ranks.n = (unsigned)n;
    ranks.me = (unsigned)me;
    ranks.end = end;
    if (given < MPI_THREAD_FUNNELED) {
        fail(fl_err_set(err, FL_EUNAVAIL, "this MPI allows a process no threads"), err);
    }
    (void)MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &here);
    (void)MPI_Comm_size(here, &local);
    (void)MPI_Comm_free(&here);
    ranks.local = (unsigned)local;
    ranks.threads = count_threads(ranks.local);
    check_kernels(kernels);
    *ret = &ranks;
    return FL_OK;
}
