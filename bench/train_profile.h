#ifndef FL_BENCH_TRAIN_PROFILE_H
#define FL_BENCH_TRAIN_PROFILE_H

/* Where the time of a step goes: layers, and in them forward, backward and update. */

#include "bench/train_work.h"

/* Makes steps for about so many seconds under fl_net_watch() and prints a table to stdout. */
void train_profile(struct train_work *work, double seconds);

#endif
