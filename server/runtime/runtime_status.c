/* The status line for `systemctl status`: problems, then the round. Coordinator thread. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "server/runtime/runtime_impl.h"

static void status_fill(void *ctx, char *out, size_t size)
{
    const struct fl_runtime *runtime = ctx;
    const struct fl_coord *coord = runtime->coord;
    uint64_t rounds = runtime->coord_conf.rounds;
    struct fl_problems problems = {0};
    char total[32] = "";
    size_t used;
    size_t i;

    /* Problems come first, because the line is truncated at its end. */
    fl_runtime_problems(runtime, &problems);
    out[0] = '\0';
    for (i = 0; i < FL_PROBLEM_N; i++) {
        const struct fl_problem *p = &problems.of[i];

        used = strlen(out);
        (void)snprintf(out + used, size - used, "%s%s%s", p->text, p->more,
                       p->text[0] != '\0' ? "; " : "");
    }
    used = strlen(out);
    out += used;
    size -= used;
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

int fl_runtime_status_create(struct fl_runtime *runtime)
{
    return fl_status_create(runtime->loop, status_fill, runtime, &runtime->status);
}

void fl_runtime_own_failure(struct fl_runtime *runtime, const char *reason)
{
    (void)fl_str_clean(fl_str_ends(runtime->own_failure, sizeof(runtime->own_failure),
                                   reason != NULL ? reason : ""));
}
