#ifndef FL_PROGRAM_PROGRAM_IMPL_H
#define FL_PROGRAM_PROGRAM_IMPL_H

/* Inside the room: what a child is before it is the program, and what /proc says of it. */

#include <sys/types.h>

#include "libfl/program/program.h"

/*
 * Run `path` as `conf` says, as the leader of a new group. `*ret_err_fd` is where its stderr can be
 * read, without waiting.
 */
FL_MUST_CHECK int fl__program_spawn(const struct fl_program_conf *conf, const char *path,
                                    pid_t *ret_pid, int *ret_err_fd, struct fl_err *err);
/* Bytes that the processes of a group have in memory; 0 when nothing can be told. */
uint64_t fl__program_resident(pid_t group);

#endif
