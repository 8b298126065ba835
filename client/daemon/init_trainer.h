#ifndef FL_CLIENTD_INIT_TRAINER_H
#define FL_CLIENTD_INIT_TRAINER_H

/*
 * Write a first training script and print the next steps. `kind`: "pytorch" or "numpy"; `path`
 * NULL: trainer.py. An existing file is never overwritten. Returns an exit code.
 */
int fl_init_trainer(const char *kind, const char *path);

#endif
