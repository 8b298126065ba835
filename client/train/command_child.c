/*
 * One run of the user's program from start to end: time limit, cancelling, and the tail of its
 * stderr as a file.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/command_impl.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"

static bool child_canceled(const struct fl__child *child)
{
    return child->cancel != NULL && atomic_load(child->cancel);
}

/*
 * Waits until the program has ended. FL_OK: on its own; FL_ETIMEOUT, FL_ECANCELED: the reason why
 * it was stopped.
 */
static int wait_for(const struct fl__child *child, struct fl_program *program, uint64_t started_ms)
{
    uint64_t now = fl_clock_ms();
    int why = FL_OK;

    while (!fl_program_look(program, now)) {
        struct pollfd p = {.fd = fl_program_stderr(program), .events = POLLIN};

        (void)poll(&p, 1, FL_PROGRAM_TICK_MS);
        now = fl_clock_ms();
        if (!fl_program_ending(program)) {
            if (child_canceled(child)) {
                why = FL_ECANCELED;
            } else if (child->time_limit_ms > 0 && now - started_ms >= child->time_limit_ms) {
                why = FL_ETIMEOUT;
            }
            if (why != FL_OK) {
                fl_program_end(program, now);
            }
        }
    }
    return why;
}

/* Makes the error message of the end, and writes the tail of stderr to a file. */
static int child_end(const struct fl__child *child, struct fl_program *program, int why,
                     struct fl_err *err)
{
    char tail[FL_PROGRAM_TAIL];
    int rv = fl_program_reap(program, err);

    if (why == FL_ECANCELED) {
        return fl_err_set(err, why, "training was cancelled and '%.100s' ended",
                          child->conf.argv[0]);
    }
    if (why == FL_ETIMEOUT) {
        rv = fl_err_set(err, why, "'%.100s' was ended after its time limit of %" PRIu64 " ms%s",
                        child->conf.argv[0], child->time_limit_ms, child->limit_note);
    }
    if (rv != FL_OK) {
        fl_program_add_tail(program, err);
        if (fl_fs_replace(child->stderr_file, tail, fl_program_tail(program, tail), false, NULL) !=
            FL_OK) {
            /* The file is a convenience: the error has the same text, shortened. */
            return rv;
        }
    }
    return rv;
}

int fl__child_run(const struct fl__child *child, struct fl_err *err)
{
    struct fl_program *program = NULL;
    uint64_t started_ms = fl_clock_ms();
    int rv = fl_program_start(&child->conf, &program, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = child_end(child, program, wait_for(child, program, started_ms), err);
    fl_program_free(program);
    return rv;
}
