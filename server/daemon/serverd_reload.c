#include "server/daemon/serverd_reload.h"

#include "libfl/base/log_out.h"
#include "libfl/conf/differ.h"
#include "libfl/net/notify.h"
#include "server/admin/audit_note.h"
#include "server/auth/auth.h"

/* Keys, and whole sections, that reload_apply() applies. */
static const char *const live[] = {"log_level", "log_format", NULL};

void fl_server_reload(const struct fl_reload *of)
{
    struct fl_serverd_conf *fresh = NULL;
    const struct fl_server_main *m;
    const char *result = "ok";
    struct fl_err err = {0};
    char keys[1024];
    int rv;

    fl_notify_reloading();
    rv = fl_serverd_conf_load(of->own->path, NULL, &fresh, &err);
    if (rv != FL_OK) {
        result = fl_err_text(&err, rv);
        fl_log(of->log, FL_LOG_ERROR, "server", "reload failed, nothing is changed: %s", result);
        goto done;
    }
    m = fresh->conf->main;
    if (of->log != NULL) {
        atomic_store(&of->log->level, (int)m->log_level);
        atomic_store(&of->log_out->format, (int)m->log_format);
    }
    if (of->auth != NULL) {
        fl_auth_look(of->auth, /* all= */ true); /* Certificates, keys, roots, revocation lists. */
    }
    fl_log(of->log, FL_LOG_NOTICE, "server", "reloaded '%s' log_level=%s log_format=%s",
           fresh->path, fl_log_names[m->log_level], fl_log_formats[m->log_format]);
    if (fl_conf_differ(fl_conf_file_map(of->own->conf->file), fl_conf_file_map(fresh->conf->file),
                       live, keys, sizeof(keys)) > 0)
    {
        fl_log(of->log, FL_LOG_WARNING, "server",
               "changed in the file, takes effect at the next restart: %s", keys);
    }
done:
    fl_audit_note(
        of->auth, of->log,
        &(struct fl_audit_note){
            .peer = "signal SIGHUP", .what = "reload", .object = of->own->path, .result = result},
        NULL, NULL);
    fl_serverd_conf_free(fresh);
    fl_notify_ready();
}
