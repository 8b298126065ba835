#include <time.h>

#include "tools/fl_sim/mpi/mpi_impl.h"

#define NAP_MAX_NS 1000000L

void mpi__nap(unsigned *times)
{
    struct timespec pause = {0, NAP_MAX_NS};

    if (*times < 10) {
        pause.tv_nsec >>= 10 - *times;
        (*times)++;
    }
    (void)nanosleep(&pause, NULL);
}

void mpi__wait(MPI_Request *request)
{
    unsigned naps = 0;
    int done = 0;

    (void)MPI_Test(request, &done, MPI_STATUS_IGNORE);
    while (!done) {
        mpi__nap(&naps);
        (void)MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
}
