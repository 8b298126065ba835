/*
 * What clients tell of their data before the first round (FedMix). A client is admitted
 * with 0 samples, so that it cannot be selected, until its offer is on disk; then it joins
 * again with what it has. With the first selection the offers are fixed: from then on
 * nobody is waited for any more, and who comes late has offered nothing.
 */

#include <stdlib.h>
#include <string.h>

#include "server/daemon/driver_impl.h"

bool fl_driver_wants_offers(const struct fl_driver *driver)
{
    return driver->srv->conf->strategy->solver->offer != NULL && driver->offered == NULL;
}

uint64_t fl_driver_samples(const struct fl_driver *driver, const struct fl_wire_hello *hello)
{
    bool wait =
        fl_driver_wants_offers(driver) && !fl_offers_has(driver->srv->state_dir, hello->client);

    return wait ? 0 : hello->samples;
}

void fl_driver_admitted(struct fl_driver *driver, uint32_t client,
                        const struct fl_wire_hello *hello, uint64_t samples)
{
    if (!fl_driver_wants_offers(driver)) {
        return;
    }
    if (client >= driver->n_waiting) {
        size_t n = ((size_t)client + 64) / 64 * 64 * 2;
        struct fl_waiting *grown = realloc(driver->waiting, n * sizeof(*grown));

        if (grown == NULL) {
            abort(); /* As every command that cannot be given: start over from disk. */
        }
        (void)memset(grown + driver->n_waiting, 0, (n - driver->n_waiting) * sizeof(*grown));
        driver->waiting = grown;
        driver->n_waiting = n;
    }
    driver->waiting[client] = (struct fl_waiting){.waits = samples != hello->samples,
                                                  .samples = hello->samples,
                                                  .evaluation_samples = hello->evaluation_samples};
    if (driver->waiting[client].waits) {
        fl_log(driver->srv->log, FL_LOG_INFO, "round",
               "client '%s' is not selected before it has told of its data", hello->client);
    }
}

void fl_driver_released(struct fl_driver *driver, uint32_t client)
{
    if (client < driver->n_waiting) {
        driver->waiting[client] = (struct fl_waiting){.waits = false};
    }
}

/* From now on it can be selected; the number may be another's by now. */
static void join_with_samples(struct fl_driver *driver, uint32_t client, const char *name)
{
    const struct fl_client_rec *known = fl_coord_client(driver->coord, client);
    struct fl_event event = {.type = FL_EV_CLIENT_JOINED};
    struct fl_client_rec rec;
    struct fl_waiting *w;

    if (client >= driver->n_waiting || !driver->waiting[client].waits ||
        !fl_coord_connected(driver->coord, client) || known == NULL ||
        strcmp(known->name, name) != 0)
    {
        return; /* When it comes back, its offer is there. */
    }
    w = &driver->waiting[client];
    w->waits = false;
    rec = *known; /* Names that outlive the step. */
    event.u.joined.name = rec.name;
    event.u.joined.agent = rec.agent;
    event.u.joined.samples = w->samples;
    event.u.joined.evaluation_samples = w->evaluation_samples;
    fl_driver_step(driver, &event);
}

struct offer_job {
    struct fl_driver *driver;
    uint64_t session;
    uint32_t client;
    char name[FL_NAME_MAX];
    struct fl_buf data;
    int code;
    struct fl_err err;
};

static void refuse(struct fl_driver *driver, uint64_t session, const char *name, int code,
                   const char *text)
{
    struct fl_down *down = fl_down_new(driver, FL_DOWN_BAD_OFFER);

    fl_log(driver->srv->log, FL_LOG_WARNING, "round", "what client '%s' tells of its data: %s",
           name, text);
    down->session = session;
    down->code = code;
    down->text = fl_str_dup(text);
    fl_driver_down(driver, down);
}

static int check_offer(void *ctx, const void *data, size_t len, struct fl_err *err)
{
    const struct fl_driver *driver = ctx;
    const struct fl_server_conf *conf = driver->srv->conf;
    const struct fl_strategy *s = conf->strategy;

    return s->solver->offer_check != NULL
               ? s->solver->offer_check(s->options[FL_SLOT_SOLVER], data, len, conf->inputs,
                                        conf->classes, err)
               : FL_OK;
}

static void put_work(void *arg)
{
    struct offer_job *job = arg;

    /* Nothing is offered, but the client is there: an empty file says that. */
    job->code = job->data.len > 0
                    ? check_offer(job->driver, job->data.data, job->data.len, &job->err)
                    : FL_OK;
    if (job->code == FL_OK) {
        job->code = fl_offers_put(job->driver->srv->state_dir, job->name, job->data.data,
                                  job->data.len, &job->err);
    }
}

static void put_done(void *arg)
{
    struct offer_job *job = arg;

    if (job->code != FL_OK) {
        bool theirs = job->code == FL_EFORMAT || job->code == FL_ENUMERIC ||
                      job->code == FL_ESHAPE || job->code == FL_ELIMIT || job->code == FL_EINVAL;

        /* What failed here is ours: it may try again. */
        refuse(job->driver, job->session, job->name, theirs ? job->code : FL_EUNAVAIL,
               fl_err_text(&job->err, job->code));
    } else {
        join_with_samples(job->driver, job->client, job->name);
    }
    fl_buf_done(&job->data);
    free(job);
}

void fl_driver_offer(struct fl_driver *driver, struct fl_up *up)
{
    const struct fl_client_rec *rec = fl_coord_client(driver->coord, up->client);
    struct offer_job *job;
    const char *name;

    if (rec == NULL) {
        return; /* It was forgotten in the meantime. */
    }
    name = rec->name;
    if (!fl_driver_wants_offers(driver)) { /* Too late to count. */
        join_with_samples(driver, up->client, name);
        return;
    }
    job = calloc(1, sizeof(*job));
    if (job != NULL) {
        job->driver = driver;
        job->session = up->session;
        job->client = up->client;
        FL_REQUIRE(fl_str_copy(job->name, sizeof(job->name), name) == FL_OK);
        job->data = up->offer;
        fl_buf_init(&up->offer, 0);
    }
    if (job == NULL ||
        fl_lane_submit(driver->srv->db, put_work, driver->loop, put_done, job) != FL_OK) {
        refuse(driver, up->session, name, FL_ENOMEM, "out of memory");
        if (job != NULL) {
            fl_buf_done(&job->data);
            free(job);
        }
    }
}

size_t fl_driver_waiting(const struct fl_driver *driver)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < driver->n_waiting && i < fl_coord_numbers(driver->coord); i++) {
        n += driver->waiting[i].waits && fl_coord_connected(driver->coord, (uint32_t)i);
    }
    return n;
}

int fl_driver_fix_offers(struct fl_driver *driver, struct fl_file **ret,
                         uint8_t digest[FL_DIGEST_SIZE], struct fl_err *err)
{
    const struct fl_serverd *srv = driver->srv;
    size_t max = (size_t)srv->conf->limits->offer;
    size_t bad = 0;
    int rv = fl_offers_fix(srv->state_dir, max, check_offer, driver, &bad, err);

    if (rv == FL_OK && bad > 0) {
        fl_log(srv->log, FL_LOG_WARNING, "round",
               "%zu offers do not fit this configuration and are left out", bad);
    }
    return rv == FL_OK ? fl_offers_open(srv->state_dir, ret, digest, err) : rv;
}
