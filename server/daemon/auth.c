#include "server/daemon/auth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "libfl/pki/when.h"
#include "libfl/tls/tls.h"
#include "server/daemon/auth_impl.h"
#include "server/daemon/frontend_impl.h"
#include "server/daemon/serverd_exit.h"

/* Something for the lane, and what it left for the loop. */
struct job {
    struct fl_auth *auth;
    fl_auth_work_cb work; /* NULL: look at the files */
    fl_loop_cb done;
    void *arg;
    bool all; /* read the files in any case */
    /* On the lane, then of the loop; each owned, NULL: as before. */
    struct fl_credentials fresh;
    struct fl_revocations *denials;
    int code;
    struct fl_err err;
};

struct fl_auth {
    const struct fl_serverd *srv;
    struct fl_auth_place place;
    struct fl_authority *authority;  /* of the lane, once it stands */
    struct fl_worker_thread *thread; /* NULL: all ends */
    uint64_t seen;                   /* of the files; of the lane */
    struct fl_tls *tls;
    struct fl_stream_filter filter;
    struct fl_trust *trust; /* this and `chain`: that `tls` has */
    struct fl_chain *chain;
    int64_t dates_said_s;
    struct fl_revocations *denials;
    int64_t grace_s;
    uint64_t looked_ms;
    bool looking;
    fl_loop_cb changed;
    void *ctx;
    char why[FL_ERR_BUF_SIZE]; /* of the last answer of fl_auth_who() */
};

static int64_t now_s(void *ctx)
{
    (void)ctx;
    return (int64_t)(fl_clock_wall_ms() / 1000);
}

/* --- who somebody is --- */

static uint32_t over(struct fl_auth *g, const struct fl_identity *who, int64_t now,
                     const char **why)
{
    bool lapsed = who->role == FL_ROLE_CLIENT && now - who->not_after <= g->grace_s;
    char when[FL_WHEN_TEXT];
    char here[FL_WHEN_TEXT];

    (void)snprintf(g->why, sizeof(g->why),
                   "the certificate of '%s' was over at %s, this server's clock says %s%s",
                   who->name, fl_when_text(when, sizeof(when), who->not_after),
                   fl_when_text(here, sizeof(here), now),
                   lapsed ? ": it may be renewed" : ": a new invitation is needed");
    *why = g->why;
    return lapsed ? FL_WHO_LAPSED : 0;
}

uint32_t fl_auth_who(void *auth, const struct fl_identity *who, const char **why)
{
    struct fl_auth *g = auth;
    int64_t now;

    if (who == NULL || who->kind != FL_IDENTITY_CERTIFICATE) {
        return FL_WHO_UNAUTHENTICATED;
    }
    if (fl_revocations_has(g->denials, who, g->why, sizeof(g->why))) {
        *why = g->why;
        return fl_revocations_passing(g->denials, who) ? 0 : FL_WHO_DISOWNED;
    }
    if (fl_trust_listed(g->trust, who, g->why, sizeof(g->why))) {
        *why = g->why;
        return 0;
    }
    now = now_s(NULL);
    if (now > who->not_after) {
        return over(g, who, now, why);
    }
    return who->role == FL_ROLE_CLIENT  ? FL_WHO_CLIENT
           : who->role == FL_ROLE_ADMIN ? FL_WHO_ADMIN
                                        : FL_WHO_UNAUTHENTICATED;
}

bool fl_auth_is_revoked(struct fl_auth *auth, const char *name, const char **why)
{
    struct fl_identity who = {.kind = FL_IDENTITY_NONE};

    *why = auth->why;
    return fl_str_copy(who.name, sizeof(who.name), name) == FL_OK &&
           fl_revocations_has(auth->denials, &who, auth->why, sizeof(auth->why));
}

/* --- what is in force --- */

/* On the loop: what a job left. */
static void take_up(struct fl_auth *g, struct job *job)
{
    struct fl_err err = {0};
    int rv = FL_OK;

    if (job->fresh.trust != NULL) {
        rv = fl_tls_renew(g->tls, job->fresh.chain, job->fresh.key, job->fresh.trust, &err);
        if (rv == FL_OK) {
            fl_trust_unref(g->trust);
            g->trust = fl_trust_ref(job->fresh.trust);
            fl_chain_unref(g->chain);
            g->chain = fl_chain_ref(job->fresh.chain);
            g->dates_said_s = 0;
            fl_log(g->srv->log, FL_LOG_NOTICE, "identity",
                   "certificates are taken up for new connections, those that stand go on");
            fl_auth_tell_dates(g->srv, g->chain, now_s(NULL), &g->dates_said_s);
        } else {
            fl_log(g->srv->log, FL_LOG_ERROR, "identity",
                   "new certificates are not taken up, the old ones stay in force: %s",
                   fl_err_text(&err, rv));
        }
    }
    if (job->denials != NULL) {
        fl_revocations_unref(g->denials);
        g->denials = fl_revocations_ref(job->denials);
    }
    if (rv == FL_OK && (job->fresh.trust != NULL || job->denials != NULL) && g->changed != NULL) {
        g->changed(g->ctx);
    }
}

static void job_free(struct job *job)
{
    fl_credentials_done(&job->fresh);
    fl_revocations_unref(job->denials);
    free(job);
}

static void on_done(void *arg)
{
    struct job *job = arg;
    struct fl_auth *g = job->auth;

    if (job->code != FL_OK) {
        fl_log(g->srv->log, FL_LOG_ERROR, "identity", "what was in force stays in force: %s",
               fl_err_text(&job->err, job->code));
    }
    take_up(g, job);
    if (job->work == NULL) {
        g->looking = false;
    }
    if (job->done != NULL) {
        job->done(job->arg);
    }
    job_free(job);
}

/* --- on the lane --- */

/* Files that are half written make an error now and are whole at the next look. */
static int look(struct fl_auth *g, struct job *job)
{
    const struct fl_serverd_conf *own = g->srv->own;
    bool fresh = fl_credentials_changed(own, &g->seen) || job->all;
    bool due = fl_authority_due(g->authority, (int64_t)fl_clock_wall_ms());
    bool other = false;
    int rv = FL_OK;

    if (fresh || due) {
        rv = fl_authority_refresh(g->authority, (int64_t)fl_clock_wall_ms(), &other, &job->err);
        (void)fl_credentials_changed(own, &g->seen); /* What it wrote itself is known. */
    }
    if (rv == FL_OK && fl_auth_own_pki(own) && fresh) {
        rv = fl_credentials_own_pki(own, &job->fresh, &job->err);
    } else if (rv == FL_OK && other) {
        fl_credentials_of(g->authority, &job->fresh);
    }
    return rv;
}

static void on_lane(void *arg)
{
    struct job *job = arg;
    struct fl_auth *g = job->auth;

    if (job->work != NULL) {
        job->work(g->authority, job->arg);
    } else {
        job->code = look(g, job);
    }
    if (job->code == FL_OK) {
        job->code = fl_authority_revocations(g->authority, &job->denials, &job->err);
    }
}

static int submit(struct fl_auth *g, struct job what)
{
    struct job *job = g->thread != NULL ? malloc(sizeof(*job)) : NULL;
    int rv;

    if (job == NULL) {
        return g->thread != NULL ? FL_ENOMEM : FL_ECLOSED;
    }
    *job = what;
    job->auth = g;
    rv = fl_worker_thread_submit(g->thread, on_lane, g->srv->net, on_done, job);
    if (rv != FL_OK) {
        free(job);
    }
    return rv;
}

int fl_auth_submit(struct fl_auth *g, fl_auth_work_cb work, fl_loop_cb done, void *arg)
{
    return submit(g, (struct job){.work = work, .done = done, .arg = arg});
}

uint64_t fl_auth_busy_ms(struct fl_auth *g)
{
    return fl_worker_thread_busy_ms(g->thread);
}

void fl_auth_look(struct fl_auth *g, bool all)
{
    if (g->looking && !all) {
        return;
    }
    g->looking = true;
    if (submit(g, (struct job){.all = all}) != FL_OK) {
        g->looking = false; /* With the next sweep. */
    }
}

void fl_auth_sweep(struct fl_auth *g, uint64_t now_ms)
{
    if (now_ms >= g->looked_ms + FL_AUTH_LOOK_MS) {
        g->looked_ms = now_ms;
        fl_auth_look(g, /* all= */ false);
        fl_auth_tell_dates(g->srv, g->chain, now_s(NULL), &g->dates_said_s);
    }
}

struct fl_authority *fl_auth_authority(struct fl_auth *g)
{
    return g->authority;
}

/* --- life --- */

const struct fl_stream_filter *fl_auth_filter(const struct fl_auth *g)
{
    return &g->filter;
}

static void on_notice(void *ctx, const char *peer, const char *reason, const char *text)
{
    const struct fl_auth *g = ctx;

    fl_log_reason(g->srv->log, FL_LOG_WARNING, "tls", peer, reason, "%s: %s", peer, text);
}

static int make_tls(struct fl_auth *g, struct fl_err *err)
{
    struct fl_credentials c = {NULL, NULL, NULL};
    int rv = FL_OK;

    if (fl_auth_own_pki(g->srv->own)) {
        rv = fl_credentials_own_pki(g->srv->own, &c, err);
    } else {
        fl_credentials_of(g->authority, &c);
    }
    if (rv == FL_OK) {
        rv = fl_tls_create(&(struct fl_tls_setup){.server = true,
                                                  .chain = c.chain,
                                                  .key = c.key,
                                                  .trust = c.trust,
                                                  .ask = true,
                                                  .now = now_s,
                                                  .notice = on_notice,
                                                  .notice_ctx = g},
                           &g->tls, err);
    }
    if (rv == FL_OK) {
        g->trust = fl_trust_ref(c.trust);
        g->chain = fl_chain_ref(c.chain);
        fl_auth_tell_dates(g->srv, g->chain, now_s(NULL), &g->dates_said_s);
        g->filter = fl_tls_filter(g->tls);
    }
    fl_credentials_done(&c);
    return rv;
}

static int open_all(struct fl_auth *g, struct fl_err *err)
{
    int rv = fl_authority_open(&g->place.conf, (int64_t)fl_clock_wall_ms(), &g->authority, err);

    if (rv == FL_OK) {
        rv = fl_authority_revocations(g->authority, &g->denials, err);
    }
    if (rv == FL_OK) {
        (void)fl_credentials_changed(g->srv->own, &g->seen);
        rv = make_tls(g, err);
    }
    return rv == FL_OK ? fl_worker_thread_create("fl-identity", &g->thread, err) : rv;
}

int fl_auth_create(const struct fl_serverd *srv, fl_loop_cb changed, void *ctx,
                   struct fl_auth **ret, int *ret_exit, struct fl_err *err)
{
    struct fl_auth *g;
    int rv;

    *ret = NULL;
    if (!fl_serverd_conf_has_tls(srv->own)) {
        return FL_OK;
    }
    *ret_exit = FL_EXIT_IDENTITY;
    g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return FL_ENOMEM;
    }
    g->srv = srv;
    g->changed = changed;
    g->ctx = ctx;
    g->grace_s = (int64_t)(srv->conf->identity->grace_ms / 1000);
    fl_auth_place(srv->own, srv->log, &g->place);
    rv = open_all(g, err);
    if (rv != FL_OK) {
        fl_auth_close(g);
        fl_auth_free(g);
        return rv;
    }
    *ret = g;
    return FL_OK;
}

void fl_auth_close(struct fl_auth *g)
{
    if (g != NULL && g->thread != NULL) {
        struct fl_worker_thread *thread = g->thread;

        g->thread = NULL;
        fl_worker_thread_free(thread);
    }
}

void fl_auth_free(struct fl_auth *g)
{
    if (g == NULL) {
        return;
    }
    fl_tls_unref(g->tls);
    fl_trust_unref(g->trust);
    fl_chain_unref(g->chain);
    fl_revocations_unref(g->denials);
    fl_authority_close(g->authority);
    free(g);
}
