#ifndef FL_SIM_LOCAL_FILES_H
#define FL_SIM_LOCAL_FILES_H

/*
 * The files of a federation of daemons on this machine: a folder with the data of each client that
 * is in no folder yet, and the YAML file of each daemon, made of an experiment's point
 * (docs/simulation.md#the-same-experiment-with-daemons). Threading: one thread.
 */

#include "tools/fl_sim/run.h"

struct fl_local_conf {
    const struct setting *setting; /* with the built-in engine, or a persistent program */
    size_t clients;                /* the first of the data; at least 1 */
    const char *name;              /* of the federation, if the file has none */
    const char *dir;               /* an existing folder, absolute */
    const char *sockets;           /* an existing folder with a short name, absolute */
};

#define FL_LOCAL_PATH 4096

/* Why this point cannot be run by so many daemons: FL_ECONF with what to change. */
FL_MUST_CHECK int fl_local_check(const struct fl_local_conf *conf, struct fl_err *err);
/*
 * Writes server.yaml, CLIENT.yaml and data/CLIENT. FL_ECONF with file, line and key; errors of the
 * file system.
 */
FL_MUST_CHECK int fl_local_write(const struct fl_local_conf *conf, struct fl_err *err);
/* The address at which the server's operators reach it: "SOCKETS/admin". */
void fl_local_admin(const struct fl_local_conf *conf, char out[FL_LOCAL_PATH]);
/* The same for clients. */
void fl_local_listen(const struct fl_local_conf *conf, char out[FL_LOCAL_PATH]);

#endif
