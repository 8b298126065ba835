/*
 * Expiry of the certificates that the server shows, so that the operator learns of it before
 * clients fail.
 */

#include <stdio.h>

#include "libfl/base/fs.h"
#include "server/auth/auth_impl.h"

#define SOON_S         INT64_C(2592000) /* 30 days: for a PKI with manual renewal */
#define LOG_INTERVAL_S INT64_C(86400)

/*
 * Automatic renewal happens at two thirds of the validity as a rule, so short-lived certificates
 * are not reported all the time.
 */
static int64_t soon_of(const struct fl_chain *chain, size_t i)
{
    struct fl_cert_info info;
    int64_t quarter;

    fl_chain_info(chain, i, &info);
    quarter = (info.not_after - info.not_before) / 4;
    return quarter < SOON_S ? quarter : SOON_S;
}

/* FL_EPERM or FL_EAGAIN for the first certificate from `from` on that has expired or will soon. */
static int dated_from(const struct fl_chain *chain, size_t from, int64_t now, const char *renew,
                      struct fl_err *err)
{
    size_t i;
    int rv;

    for (i = from; i < fl_chain_len(chain); i++) {
        rv = fl_chain_dated(chain, i, now, soon_of(chain, i), renew, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_auth_dated(const struct fl_server_conf *conf, const struct fl_chain *chain, int64_t now,
                  struct fl_err *err)
{
    if (fl_auth_own_pki(conf)) {
        return dated_from(chain, 0, now,
                          "ask its issuer for a new one and put it there: the server loads it when "
                          "the file changes",
                          err);
    }
    /* The authority renews it, reports failures, and warns of the intermediate's expiry. */
    return fl_chain_dated(chain, 0, now, 0,
                          "`fl-serverd --init` with this configuration makes a new one", err);
}

int fl_auth_dated_authority(const struct fl_auth_setup *setup, const struct fl_chain *chain,
                            int64_t now, struct fl_err *err)
{
    const char *kept = setup->conf->identity->root_key;
    char default_path[FL_SERVER_PATH_MAX + 32];

    (void)snprintf(default_path, sizeof(default_path), "%s/identity/root.key", setup->state_dir);
    if (fl_fs_exists(kept[0] != '\0' ? kept : default_path)) {
        return FL_OK; /* The next start renews it. */
    }
    return dated_from(
        chain, 1, now,
        "bring the root's key back to this host and run `fl-serverd --init` with this "
        "configuration (docs/security.md)",
        err);
}

/* A day has passed since *last_s, or the clock was set back. */
static bool dates_due(int64_t last_s, int64_t now)
{
    return last_s == 0 || now < last_s || now - last_s >= LOG_INTERVAL_S;
}

void fl_auth_log_dates(const struct fl_auth_setup *setup, const struct fl_chain *chain, int64_t now,
                       struct fl_auth_dates *dates)
{
    struct fl_cert_info info;
    struct fl_err err = {0};
    uint64_t ends_s;
    int rv;

    fl_chain_info(chain, 0, &info);
    ends_s = info.not_after > 0 ? (uint64_t)info.not_after : 0;
    if (setup->expiring != NULL && dates_due(dates->told_s, now) &&
        info.not_after - now <= soon_of(chain, 0))
    {
        dates->told_s = now;
        setup->expiring(setup->ctx, ends_s * 1000);
    }
    if (!dates_due(dates->logged_s, now)) {
        return;
    }
    rv = fl_auth_dated(setup->conf, chain, now, &err);
    if (rv != FL_OK) {
        dates->logged_s = now;
        fl_log_noted(setup->log, rv == FL_EPERM ? FL_LOG_ERROR : FL_LOG_WARNING, "identity", NULL,
                     FL_LOG_NOTE(CERTIFICATE_EXPIRING, FL_LOG_WHOLE("ends_s", ends_s)),
                     "certificate that this server shows to clients: %s", fl_err_text(&err, rv));
    }
}
