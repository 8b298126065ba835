#ifndef FL_CLIENTD_INIT_TRAINER_H
#define FL_CLIENTD_INIT_TRAINER_H

/*
 * Write a training script to begin with, and say what comes next. `kind`: "pytorch" or "numpy";
 * `path` NULL: trainer.py. What is there already is left alone. Returns an exit code.
 */
int fl_init_trainer(const char *kind, const char *path);

#endif
