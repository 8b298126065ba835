#ifndef FL_LIB_MEMBER_OPEN_H
#define FL_LIB_MEMBER_OPEN_H

/* Members with a folder and a trainer of their own, as a daemon has them (member.h). */

#include "tools/fl_sim/engine/member.h"

/*
 * Start a process in `dir`, which exists, with the state of the previous process. Takes `trainer`,
 * on error too; `log` may be NULL, and is borrowed. `seed`: the same in every run of this client.
 */
static inline int member_open(struct fl_member *m, const char *dir, struct fl_trainer *trainer,
                              const struct fl_log *log, uint64_t seed, struct fl_err *err)
{
    int rv;

    *m = (struct fl_member){.worker = {.trainer = trainer, .log = log, .seed = seed}};
    m->worker.state_dir = m->dir;
    m->held = (struct fl_pending_result){.state_dir = m->dir, .log = log};
    rv = fl_str_copy(m->dir, sizeof(m->dir), dir);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "path '%s' is too long", dir);
        goto fail;
    }
    rv = fl_client_state_open(m->dir, log, &m->worker.keeps, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_pending_result_load(&m->held, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    fl_member_close(m);
    return rv;
}

#endif
