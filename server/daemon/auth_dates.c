/* Whether what the server shows is over, or will be soon: its clients would be the first to say so.
 */

#include <stdio.h>

#include "libfl/base/fs.h"
#include "server/daemon/auth_impl.h"

#define SOON_S INT64_C(2592000) /* 30 days: for a PKI where somebody has to be asked */
#define SAY_S  INT64_C(86400)

/* What renews by itself does it at two thirds as a rule: short certificates are not always soon
 * over. */
static int64_t soon_of(const struct fl_chain *chain, size_t i)
{
    struct fl_cert_info info;
    int64_t quarter;

    fl_chain_info(chain, i, &info);
    quarter = (info.not_after - info.not_before) / 4;
    return quarter < SOON_S ? quarter : SOON_S;
}

/* The first of the certificates from `from` on that has to be told of. */
static int dated_from(const struct fl_chain *chain, size_t from, int64_t now, const char *renew,
                      struct fl_err *err)
{
    int rv = FL_OK;
    size_t i;

    for (i = from; i < fl_chain_len(chain) && rv == FL_OK; i++) {
        rv = fl_chain_dated(chain, i, now, soon_of(chain, i), renew, err);
    }
    return rv;
}

int fl_auth_dated(const struct fl_serverd_conf *own, const struct fl_chain *chain, int64_t now,
                  struct fl_err *err)
{
    if (fl_auth_own_pki(own)) {
        return dated_from(chain, 0, now,
                          "have whoever made it make a new one and put it there: it is taken up "
                          "when the file changes",
                          err);
    }
    /* The authority renews it, says what it cannot, and warns of the intermediate's end. */
    return fl_chain_dated(chain, 0, now, 0,
                          "`fl-serverd --init` with this configuration makes a new one", err);
}

int fl_auth_dated_authority(const struct fl_serverd_conf *own, const struct fl_chain *chain,
                            int64_t now, struct fl_err *err)
{
    const char *kept = own->conf->identity->root_key;
    char here[FL_SERVER_PATH_MAX + 32];

    (void)snprintf(here, sizeof(here), "%s/identity/root.key", own->state_dir);
    if (fl_fs_exists(kept[0] != '\0' ? kept : here)) {
        return FL_OK; /* The next start makes anew what is due. */
    }
    return dated_from(
        chain, 1, now,
        "bring the root's key back to this host and run `fl-serverd --init` with this "
        "configuration (docs/joining.md)",
        err);
}

void fl_auth_tell_dates(const struct fl_serverd *srv, const struct fl_chain *chain, int64_t now,
                        int64_t *said_s)
{
    struct fl_err err = {0};
    int rv;

    if (*said_s != 0 && now >= *said_s && now - *said_s < SAY_S) {
        return;
    }
    rv = fl_auth_dated(srv->own, chain, now, &err);
    if (rv != FL_OK) {
        *said_s = now;
        fl_log(srv->log, rv == FL_EPERM ? FL_LOG_ERROR : FL_LOG_WARNING, "identity",
               "what this server shows to clients: %s", fl_err_text(&err, rv));
    }
}
