#ifndef FL_BENCH_TRAIN_TORCH_H
#define FL_BENCH_TRAIN_TORCH_H

/* PyTorch's steps of the same network on one thread: bench/train_torch.py, told when to measure. */

#include "bench/train_work.h"

struct train_torch;

/* Starts `python` with the description of work->spec. FL_ESTATE: it has no PyTorch. */
int train_torch_start(const char *python, const struct train_work *work, double momentum,
                      struct train_torch **ret, struct fl_err *err);
/* Samples per second of steps for about so many seconds; 0 when the program is gone. */
double train_torch_rate(struct train_torch *torch, double seconds);
/* Ends it and waits; NULL is fine. */
void train_torch_stop(struct train_torch *torch);

#endif
