#ifndef FL_BASE_UNDUMPABLE_H
#define FL_BASE_UNDUMPABLE_H

/*
 * No core dump of this process is written, and no other process of the same user, such as a
 * training program, may read its memory (ptrace, /proc/PID/mem): keys and data lie there. Programs
 * that it starts are not concerned. Does nothing in builds with sanitizers, which trace themselves.
 */
void fl_undumpable(void);

#endif
