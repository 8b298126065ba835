#ifndef FL_SERVERD_CONF_H
#define FL_SERVERD_CONF_H

/*
 * The configuration of fl-serverd: what is configured of the federation (server/conf), and what
 * only a daemon makes of the same file.
 *
 * Ownership: everything belongs to the struct; free with fl_serverd_conf_free().
 * Errors: FL_ECONF with file, line, key and what was expected.
 */

#include "libfl/rpc/call.h"
#include "server/conf/server_conf.h"

/* Longest path of a configuration. */
#define FL_SERVER_PATH_MAX 4096

struct fl_serverd_conf {
    struct fl_server_conf *conf;
    const char *path;                   /* of the file, the caller's */
    char state_dir[FL_SERVER_PATH_MAX]; /* from the root on */
    char admin[FL_SERVER_PATH_MAX];     /* address of the admin socket */
    struct fl_rpc_limits rpc;
    uint64_t memory;      /* of all connections together */
    uint32_t chunk_bytes; /* data of one chunk of an upload, told in Welcome */
    bool begun_units;     /* the layout has units of the state folder, not those by default */
};

/*
 * `all` (may be NULL): every error is put there, not only the first one, which is returned in any
 * case. Of keys first; what follows from several of them is looked at when each is right.
 */
FL_MUST_CHECK int fl_serverd_conf_load(const char *path, struct fl_findings *all,
                                       struct fl_serverd_conf **ret, struct fl_err *err);
/* Does any address use TLS? */
bool fl_serverd_conf_has_tls(const struct fl_serverd_conf *own);
void fl_serverd_conf_free(struct fl_serverd_conf *own);

#endif
