#ifndef FL_CLIENTD_EXPORT_MODEL_H
#define FL_CLIENTD_EXPORT_MODEL_H

/*
 * fl-clientd --export-model: write the personal model of this client as a safetensors file in the
 * format of flctl export. Only reads the state folder; the daemon may run.
 */

#include "client/conf/client_conf.h"

/*
 * Write to `file`, which is replaced atomically. `base`: the global model (flctl export) that local
 * tensors are put into, when the client keeps only those; NULL: none. Prints what was written, or
 * the error on stderr. Returns the exit code.
 */
int fl_export_model(const struct fl_client_conf *conf, const char *file, const char *base);

#endif
