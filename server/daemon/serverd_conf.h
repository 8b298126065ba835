#ifndef FL_SERVERD_CONF_H
#define FL_SERVERD_CONF_H

/*
 * The configuration of fl-serverd: the federation's part (server/conf), and the values for the
 * daemon derived from the same file.
 *
 * Ownership: everything belongs to the struct; free with fl_serverd_conf_free(). Errors: FL_ECONF
 * with file, line, key and the expected value.
 */

#include "libfl/rpc/call.h"
#include "server/conf/server_conf.h"

struct fl_serverd_conf {
    struct fl_server_conf *conf;
    const char *path;                   /* of the file, owned by the caller */
    char state_dir[FL_SERVER_PATH_MAX]; /* absolute */
    char admin[FL_SERVER_PATH_MAX];     /* address of the admin socket */
    struct fl_rpc_limits rpc;
    uint64_t memory;      /* limit for all connections together */
    uint32_t chunk_bytes; /* data bytes of one chunk of an upload, sent in Welcome */
    bool state_units;     /* the layout has the units of the state folder, not the default ones */
};

/*
 * `all` (may be NULL) collects every error; the first one is returned in any case. Checks across
 * keys run when each key is valid.
 */
FL_MUST_CHECK int fl_serverd_conf_load(const char *path, struct fl_findings *all,
                                       struct fl_serverd_conf **ret, struct fl_err *err);
void fl_serverd_conf_free(struct fl_serverd_conf *own);

#endif
