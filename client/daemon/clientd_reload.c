#include "client/daemon/clientd_reload.h"

#include "libfl/conf/differ.h"
#include "libfl/net/notify.h"

/* Keys and whole sections that client_reload_apply() applies. */
static const char *const live[] = {"log_level", "log_format", NULL};

/* What can fail comes first and changes nothing on failure. */
static int client_reload_apply(const struct fl_client_reload *r, const struct fl_client_conf *fresh,
                               struct fl_err *err)
{
    int rv = fl_renewal_reload(r->renewal, err);

    if (rv != FL_OK) {
        return rv;
    }
    atomic_store(&r->log->level, (int)fresh->main->log_level);
    atomic_store(&r->log_out->format, (int)fresh->main->log_format);
    return FL_OK;
}

static void client_reload_log(const struct fl_client_reload *r, const struct fl_client_conf *fresh)
{
    char keys[1024];

    fl_log(r->log, FL_LOG_NOTICE, "client", "reloaded '%s' log_level=%s log_format=%s", r->path,
           fl_log_names[fresh->main->log_level], fl_log_formats[fresh->main->log_format]);
    if (fl_conf_differ(fl_conf_file_map(r->conf->file), fl_conf_file_map(fresh->file), live, keys,
                       sizeof(keys)) > 0)
    {
        fl_log(r->log, FL_LOG_WARNING, "client",
               "changed in the file, takes effect at the next restart: %s", keys);
    }
}

void fl_client_reload(const struct fl_client_reload *r)
{
    struct fl_client_conf *fresh = NULL;
    struct fl_err err = {0};
    int rv;

    fl_notify_reloading();
    rv = fl_clientd_conf_load(r->path, NULL, &fresh, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = client_reload_apply(r, fresh, &err);
    if (rv != FL_OK) {
        goto done;
    }
    client_reload_log(r, fresh);
done:
    if (rv != FL_OK) {
        fl_log(r->log, FL_LOG_ERROR, "client", "reload failed, nothing is changed: %s",
               fl_err_text(&err, rv));
    }
    fl_client_conf_free(fresh);
    fl_notify_ready();
}
