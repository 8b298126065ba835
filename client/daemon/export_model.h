#ifndef FL_CLIENTD_EXPORT_MODEL_H
#define FL_CLIENTD_EXPORT_MODEL_H

/*
 * fl-clientd --export-model: the model that this client keeps for itself, as a safetensors file in
 * the format of flctl export. Reads the state folder only; the daemon may run.
 */

#include "client/conf/client_conf.h"

/*
 * To `file`, which is replaced in one step. `base`: the global model (flctl export) that local
 * tensors are put into, where the client keeps only those; NULL: none. Prints what was written, or
 * on stderr why nothing was. Returns the exit code.
 */
int fl_export_model(const struct fl_client_conf *conf, const char *file, const char *base);

#endif
