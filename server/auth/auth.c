/*
 * Authentication of peers: TLS context, trusted roots, revocations, and the role of each peer
 * (fl_auth_who()). Everything runs on the network loop except the jobs, which run on the identity
 * thread, the only one that uses the authority and its database. Jobs hand over fresh credentials,
 * which auth_install() puts into use on the loop. Does not end connections: `changed` does.
 */

#include "server/auth/auth.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "libfl/pki/when.h"
#include "libfl/rpc/call.h"
#include "libfl/tls/tls.h"
#include "server/auth/auth_impl.h"

/* A job for the identity thread, and its results for the loop. */
struct job {
    struct fl_auth *auth;
    fl_auth_work_cb work; /* NULL: check the files */
    fl_loop_cb done;
    void *arg;
    bool all; /* read the files even if they look unchanged */
    /* Written by the identity thread, then used by the loop. Each is owned; NULL: unchanged. */
    struct fl_credentials fresh;
    struct fl_revocations *revocations;
    int code;
    struct fl_err err;
};

struct fl_auth {
    struct fl_auth_setup setup;
    struct fl_loop *loop;
    struct fl_auth_place place;
    struct fl_authority *authority;  /* of the identity thread once it runs */
    struct fl_worker_thread *thread; /* NULL: shutting down */
    uint64_t seen;                   /* fingerprint of the files; of the identity thread */
    struct fl_tls *tls;
    struct fl_stream_filter filter;
    struct fl_trust *trust; /* this and `chain`: those in use by `tls` */
    struct fl_chain *chain;
    atomic_uint_fast64_t ends_ms[2]; /* of its first two certificates; any thread */
    struct fl_auth_dates dates;
    struct fl_revocations *revocations;
    int64_t grace_s;
    uint64_t checked_ms;
    bool checking;
    fl_loop_cb changed;
    void *ctx;
    char why[FL_ERR_BUF_SIZE]; /* text of the last fl_auth_who() */
};

/* Keeps a reference to `chain`, in place of the one before. */
static void auth_take_chain(struct fl_auth *g, struct fl_chain *chain)
{
    struct fl_cert_info info;
    size_t i;

    fl_chain_unref(g->chain);
    g->chain = fl_chain_ref(chain);
    for (i = 0; i < 2; i++) {
        info.not_after = 0;
        if (i < fl_chain_len(chain)) {
            fl_chain_info(chain, i, &info);
        }
        atomic_store(&g->ends_ms[i], info.not_after > 0 ? 1000 * (uint64_t)info.not_after : 0);
    }
}

static int64_t auth_now_s(void *ctx)
{
    (void)ctx;
    return (int64_t)(fl_clock_wall_ms() / 1000);
}

/* --- roles of peers --- */

static uint32_t auth_expired(struct fl_auth *g, const struct fl_identity *who, int64_t now,
                             const char **why)
{
    bool renewable = who->role == FL_ROLE_CLIENT && now - who->not_after <= g->grace_s;
    char when[FL_WHEN_TEXT];
    char now_text[FL_WHEN_TEXT];

    (void)snprintf(g->why, sizeof(g->why),
                   "certificate of '%s' expired at %s (this server's clock: %s)%s", who->name,
                   fl_when_text(when, sizeof(when), who->not_after),
                   fl_when_text(now_text, sizeof(now_text), now),
                   renewable ? ": it may be renewed" : ": a new invitation is needed");
    *why = g->why;
    return renewable ? FL_WHO_LAPSED : 0;
}

uint32_t fl_auth_who(void *auth, const struct fl_identity *who, const char **why)
{
    struct fl_auth *g = auth;
    int64_t now;

    if (who == NULL || who->kind != FL_IDENTITY_CERTIFICATE) {
        return FL_WHO_UNAUTHENTICATED;
    }
    if (fl_revocations_has(g->revocations, who, g->why, sizeof(g->why))) {
        *why = g->why;
        return fl_revocations_temporary(g->revocations, who) ? 0 : FL_WHO_DISOWNED;
    }
    if (fl_trust_listed(g->trust, who, g->why, sizeof(g->why))) {
        *why = g->why;
        return 0;
    }
    now = auth_now_s(NULL);
    if (now > who->not_after) {
        return auth_expired(g, who, now, why);
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
           fl_revocations_has(auth->revocations, &who, auth->why, sizeof(auth->why));
}

/* --- credentials in use --- */

/* False: they were rejected and the previous ones stay in use. */
static bool auth_install_credentials(struct fl_auth *g, const struct fl_credentials *fresh)
{
    struct fl_err err = {0};
    int rv = fl_tls_renew(g->tls, fresh->chain, fresh->key, fresh->trust, &err);

    if (rv != FL_OK) {
        fl_log(g->setup.log, FL_LOG_ERROR, "identity",
               "new certificates rejected, keeping the previous ones: %s", fl_err_text(&err, rv));
        return false;
    }
    fl_trust_unref(g->trust);
    g->trust = fl_trust_ref(fresh->trust);
    auth_take_chain(g, fresh->chain);
    g->dates = (struct fl_auth_dates){0};
    fl_log(g->setup.log, FL_LOG_NOTICE, "identity",
           "certificates reloaded for new connections, open connections are unaffected");
    fl_auth_log_dates(&g->setup, g->chain, auth_now_s(NULL), &g->dates);
    return true;
}

static void auth_job_done(void *arg)
{
    struct job *job = arg;
    struct fl_auth *g = job->auth;
    bool rejected;

    if (job->code != FL_OK) {
        fl_log(g->setup.log, FL_LOG_ERROR, "identity",
               "reading certificates failed, keeping the previous ones: %s",
               fl_err_text(&job->err, job->code));
    }
    /* On the network loop: put the results into use. */
    rejected = job->fresh.trust != NULL && !auth_install_credentials(g, &job->fresh);
    if (job->revocations != NULL) {
        fl_revocations_unref(g->revocations);
        g->revocations = fl_revocations_ref(job->revocations);
    }
    if (!rejected && (job->fresh.trust != NULL || job->revocations != NULL) && g->changed != NULL) {
        g->changed(g->ctx);
    }
    if (job->work == NULL) {
        g->checking = false;
    }
    if (job->done != NULL) {
        job->done(job->arg);
    }
    fl_credentials_done(&job->fresh);
    fl_revocations_unref(job->revocations);
    free(job);
}

/* --- identity thread --- */

/*
 * A half-written file causes an error now and is read completely at the next check. Files are
 * marked as seen before they are read: `fl-serverd --init` may write others right after the
 * reading. What the authority writes itself is read once more at the next check, and nothing has
 * changed then.
 */
static int auth_check_files(struct fl_auth *g, struct job *job)
{
    const struct fl_server_conf *conf = g->setup.conf;
    bool fresh = fl_credentials_changed(&g->setup, &g->seen) || job->all;
    bool due = fl_authority_due(g->authority, (int64_t)fl_clock_wall_ms());
    bool other = false;
    int rv;

    if (fresh || due) {
        rv = fl_authority_refresh(g->authority, (int64_t)fl_clock_wall_ms(), &other, &job->err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (fl_auth_own_pki(conf) && fresh) {
        return fl_credentials_own_pki(conf, &job->fresh, &job->err);
    }
    if (other) {
        fl_credentials_of(g->authority, &job->fresh);
    }
    return FL_OK;
}

static void auth_job_run(void *arg)
{
    struct job *job = arg;
    struct fl_auth *g = job->auth;

    if (job->work != NULL) {
        job->work(g->authority, job->arg);
    } else {
        job->code = auth_check_files(g, job);
    }
    if (job->code != FL_OK) {
        return;
    }
    job->code = fl_authority_revocations(g->authority, &job->revocations, &job->err);
}

static int auth_job_submit(struct fl_auth *g, struct job what)
{
    struct job *job = g->thread != NULL ? malloc(sizeof(*job)) : NULL;
    int rv;

    if (job == NULL) {
        return g->thread != NULL ? FL_ENOMEM : FL_ECLOSED;
    }
    *job = what;
    job->auth = g;
    rv = fl_worker_thread_submit(g->thread, auth_job_run, g->loop, auth_job_done, job);
    if (rv != FL_OK) {
        free(job);
    }
    return rv;
}

int fl_auth_submit(struct fl_auth *g, fl_auth_work_cb work, fl_loop_cb done, void *arg)
{
    return auth_job_submit(g, (struct job){.work = work, .done = done, .arg = arg});
}

struct fl_worker_thread *fl_auth_worker(const struct fl_auth *g)
{
    return g != NULL ? g->thread : NULL;
}

void fl_auth_ends(struct fl_auth *g, uint64_t ret[2])
{
    ret[0] = g != NULL ? atomic_load(&g->ends_ms[0]) : 0;
    ret[1] = g != NULL ? atomic_load(&g->ends_ms[1]) : 0;
}

void fl_auth_look(struct fl_auth *g, bool all)
{
    if (g->checking && !all) {
        return;
    }
    g->checking = true;
    if (auth_job_submit(g, (struct job){.all = all}) != FL_OK) {
        g->checking = false; /* The next sweep retries. */
    }
}

void fl_auth_sweep(struct fl_auth *g, uint64_t now_ms)
{
    if (now_ms >= g->checked_ms + FL_AUTH_LOOK_MS) {
        g->checked_ms = now_ms;
        fl_auth_look(g, /* all= */ false);
        fl_auth_log_dates(&g->setup, g->chain, auth_now_s(NULL), &g->dates);
    }
}

struct fl_authority *fl_auth_authority(struct fl_auth *g)
{
    return g->authority;
}

/* --- lifetime --- */

const struct fl_stream_filter *fl_auth_filter(const struct fl_auth *g)
{
    return &g->filter;
}

static void auth_on_notice(void *ctx, const char *peer, const char *reason, const char *text)
{
    const struct fl_auth *g = ctx;

    fl_log_reason(g->setup.log, FL_LOG_WARNING, "tls", peer, reason, "%s: %s", peer, text);
}

static int auth_make_tls(struct fl_auth *g, struct fl_err *err)
{
    struct fl_credentials c = {NULL, NULL, NULL};
    int rv;

    if (fl_auth_own_pki(g->setup.conf)) {
        rv = fl_credentials_own_pki(g->setup.conf, &c, err);
        if (rv != FL_OK) {
            return rv;
        }
    } else {
        fl_credentials_of(g->authority, &c);
    }
    rv = fl_tls_create(&(struct fl_tls_setup){.server = true,
                                              .chain = c.chain,
                                              .key = c.key,
                                              .trust = c.trust,
                                              .ask = true,
                                              .now = auth_now_s,
                                              .notice = auth_on_notice,
                                              .notice_ctx = g},
                       &g->tls, err);
    if (rv != FL_OK) {
        goto done;
    }
    g->trust = fl_trust_ref(c.trust);
    auth_take_chain(g, c.chain);
    fl_auth_log_dates(&g->setup, g->chain, auth_now_s(NULL), &g->dates);
    g->filter = fl_tls_filter(g->tls);
done:
    fl_credentials_done(&c);
    return rv;
}

int fl_auth_create(const struct fl_auth_setup *setup, struct fl_loop *loop, fl_loop_cb changed,
                   void *ctx, struct fl_auth **ret, struct fl_err *err)
{
    struct fl_auth *g;
    int rv;

    *ret = NULL;
    if (!fl_server_conf_has_tls(setup->conf)) {
        return FL_OK;
    }
    g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return FL_ENOMEM;
    }
    g->setup = *setup;
    g->loop = loop;
    g->changed = changed;
    g->ctx = ctx;
    g->grace_s = (int64_t)(setup->conf->identity->grace_ms / 1000);
    fl_auth_place(setup, &g->place);
    (void)fl_credentials_changed(&g->setup, &g->seen); /* Before they are read. */
    rv = fl_authority_open(&g->place.conf, (int64_t)fl_clock_wall_ms(), &g->authority, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_authority_revocations(g->authority, &g->revocations, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = auth_make_tls(g, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_worker_thread_create("fl-identity", &g->thread, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = g;
    return FL_OK;
fail:
    fl_auth_close(g);
    fl_auth_free(g);
    return rv;
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
    fl_revocations_unref(g->revocations);
    fl_authority_close(g->authority);
    free(g);
}
