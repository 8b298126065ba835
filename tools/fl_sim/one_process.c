/* fl-sim without MPI: a process that mpirun started replaces itself by fl-sim-mpi. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/str.h"
#include "tools/fl_sim/mpi_ranks.h"

static uint64_t env_number(const char *variable)
{
    const char *text = getenv(variable);
    uint64_t n = 0;

    return text != NULL && fl_str_to_u64(text, &n) == FL_OK ? n : 0;
}

int mpi_ranks_begin(int argc, char **argv, const struct fl_kernels *kernels,
                    const struct ranks **ret, struct fl_err *err)
{
    char path[4096];
    char **all;
    ssize_t n;
    int saved;

    (void)kernels;
    *ret = NULL;
    /* Variables that mpirun sets, and srun where it starts MPI processes. */
    if (!(env_number("OMPI_COMM_WORLD_SIZE") > 1 ||
          (getenv("PMIX_RANK") != NULL && env_number("SLURM_STEP_NUM_TASKS") > 1)))
    {
        return FL_OK;
    }
    n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("-mpi"));
    all = calloc((size_t)argc + 2, sizeof(*all));
    if (n < 0 || all == NULL) {
        free(all);
        return FL_ENOMEM;
    }
    (void)snprintf(path + n, sizeof(path) - (size_t)n, "-mpi");
    all[0] = path;
    (void)memcpy(all + 1, argv, (size_t)argc * sizeof(*all));
    (void)execv(path, all);
    saved = errno;
    free(all);
    return fl_err_set(err, FL_EUNAVAIL,
                      "mpirun started several processes, which needs '%s': %s; install package "
                      "fl-sim-mpi, or configure with --with-mpi",
                      path, strerror(saved));
}
