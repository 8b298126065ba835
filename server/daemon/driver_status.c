/* What `systemctl status` says of the server: the round, told by the coordinator thread. */

#include <inttypes.h>
#include <stdio.h>

#include "server/daemon/driver_impl.h"

static void fill(void *ctx, char *out, size_t size)
{
    const struct fl_driver *driver = ctx;
    const struct fl_coord *coord = driver->coord;
    uint64_t rounds = driver->coord_conf.rounds;
    char total[32] = "";

    if (rounds != 0) {
        (void)snprintf(total, sizeof(total), " of %" PRIu64, rounds);
    }
    if (rounds != 0 && fl_coord_committed(coord) >= rounds) {
        (void)snprintf(out, size, "all %" PRIu64 " rounds are done; clients: %zu connected", rounds,
                       fl_coord_n_connected(coord));
        return;
    }
    (void)snprintf(out, size,
                   "round %" PRIu64 "%s: %s; clients: %zu connected; committed rounds: %" PRIu64,
                   fl_coord_round(coord), total, fl_phase_name(fl_coord_phase(coord)),
                   fl_coord_n_connected(coord), fl_coord_committed(coord));
}

int fl_driver_status_create(struct fl_driver *driver)
{
    return fl_status_create(driver->loop, fill, driver, &driver->status);
}
