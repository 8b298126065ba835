#ifndef FL_PROGRAM_PROGRAM_IMPL_H
#define FL_PROGRAM_PROGRAM_IMPL_H

/* Shared by the files of this folder: the child before exec(), and the memory of a process group in
   /proc. */

#include <sys/types.h>

#include "libfl/program/program.h"

/*
 * Run `path` as configured by `conf`, as the leader of a new group. `*ret_err_fd` is the
 * non-blocking read end of its stderr.
 */
FL_MUST_CHECK int fl__program_spawn(const struct fl_program_conf *conf, const char *path,
                                    pid_t *ret_pid, int *ret_err_fd, struct fl_err *err);
/* Resident bytes of the processes of a group; 0 when unknown. */
uint64_t fl__program_resident(pid_t group);

#endif
