#ifndef FL_BASE_UNDUMPABLE_H
#define FL_BASE_UNDUMPABLE_H

/*
 * Disable core dumps of this process, and access to its memory by other processes of the same user,
 * such as a training program (ptrace, /proc/PID/mem): the memory contains keys and data. Child
 * programs are not affected. Does nothing in builds with sanitizers, which trace themselves.
 */
void fl_undumpable(void);

#endif
