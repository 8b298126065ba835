#include "server/work/restored_state.h"

int fl_restored_carry_out(const struct fl_federation *federation, uint64_t wall_ms,
                          struct fl_err *err)
{
    const struct fl_log *log = federation->log;
    bool restart = fl_federation_restarts_state(federation);
    struct fl_restored r;
    int rv = fl_store_carry_restored(federation->store, restart, wall_ms, &r, err);

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    fl_log(log, FL_LOG_NOTICE, "server",
           "%s: the federation resumes after round %llu; clients discard undelivered results and "
           "train again",
           r.note, (unsigned long long)r.committed);
    if (restart) {
        fl_log(log, FL_LOG_WARNING, "server",
               "solver '%s': the state of server and clients is reset, since clients may have "
               "advanced after the backup",
               federation->strategy->solver->policy.name);
    }
    if (r.dropped_round != 0) {
        fl_log(log, FL_LOG_WARNING, "server",
               "round %llu: attempt %u discarded with %llu accepted updates, which belong to the "
               "state that was reset",
               (unsigned long long)r.dropped_round, r.dropped_attempt,
               (unsigned long long)r.dropped_updates);
    }
    return FL_OK;
}
