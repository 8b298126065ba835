/* The processes that mpirun started with this one (mpi_ranks.h): start, checks that all compute the
   same, broadcast and abort. Only in fl-sim-mpi. Main thread, except mpi_fail(). */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/num/gemm.h"
#include "libfl/num/kernels.h"
#include "tools/fl_sim/mpi/mpi_impl.h"

static void mpi_share(void *data, size_t n)
{
    MPI_Request request;

    (void)MPI_Ibcast(data, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    mpi__wait(&request);
}

static FL_NORETURN void mpi_fail(int code, const struct fl_err *err);

static struct ranks ranks = {.share = mpi_share, .run = mpi__run, .fail = mpi_fail};
const struct ranks *mpi__ranks = &ranks;

static FL_NORETURN void mpi_fail(int code, const struct fl_err *err)
{
    char name[MPI_MAX_PROCESSOR_NAME];
    int n = 0;

    (void)MPI_Get_processor_name(name, &n);
    (void)fprintf(stderr, "fl-sim run: rank %u of %u on %s: %s\n", ranks.me, ranks.n, name,
                  fl_err_text(err, code));
    (void)fflush(stderr);
    (void)MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    _exit(EXIT_FAILURE);
}

static void mpi_end(void)
{
    (void)MPI_Finalize();
}

/* The cores that mpirun bound this process to, divided among the processes of this machine that
   share them. */
static unsigned mpi_count_threads(unsigned local)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t bound;
    unsigned share_of = cores > (long)local ? (unsigned)cores / local : 1;
    unsigned own = share_of;

    if (sched_getaffinity(0, sizeof(bound), &bound) == 0) {
        own = (unsigned)CPU_COUNT(&bound);
    }
    return own < share_of ? own : share_of;
}

/* All processes must use the same arithmetic, or results would depend on the distribution of
   work. */
static void mpi_check_kernels(const struct fl_kernels *kernels)
{
    char own[96] = "";
    char leaders[sizeof(own)];
    struct fl_err err = {0};

    if (fl_gemm_init(&err) != FL_OK) {
        mpi_fail(FL_ENOENT, &err);
    }
    (void)snprintf(own, sizeof(own), "'%s', OpenBLAS '%s'", fl_kernels_name(kernels),
                   fl_gemm_kernel());
    (void)memcpy(leaders, own, sizeof(leaders));
    mpi_share(leaders, sizeof(leaders));
    if (strcmp(leaders, own) != 0) {
        mpi_fail(fl_err_set(
                     &err, FL_EINVAL,
                     "this machine computes layers by %s and the first one by %s, so "
                     "results would depend on the distribution of work: use machines with the same "
                     "kind of processor, or --instructions that all of them have; where only "
                     "OpenBLAS's differs, set OPENBLAS_CORETYPE to one that all of them have "
                     "(mpirun -x OPENBLAS_CORETYPE=Haswell)",
                     own, leaders),
                 &err);
    }
}

int mpi_ranks_begin(int argc, char **argv, const struct fl_kernels *kernels,
                    const struct ranks **ret, struct fl_err *err)
{
    MPI_Comm machine;
    int given;
    int n;
    int me;
    int local;

    (void)argc;
    (void)argv;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS) {
        return fl_err_set(err, FL_EUNAVAIL, "MPI cannot be started");
    }
    (void)MPI_Comm_size(MPI_COMM_WORLD, &n);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &me);
    ranks.n = (unsigned)n;
    ranks.me = (unsigned)me;
    ranks.end = mpi_end;
    if (given < MPI_THREAD_FUNNELED) {
        mpi_fail(fl_err_set(err, FL_EUNAVAIL, "this MPI does not support threads in a process"),
                 err);
    }
    (void)MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &machine);
    (void)MPI_Comm_size(machine, &local);
    (void)MPI_Comm_free(&machine);
    ranks.local = (unsigned)local;
    ranks.threads = mpi_count_threads(ranks.local);
    mpi_check_kernels(kernels);
    *ret = &ranks;
    return FL_OK;
}
