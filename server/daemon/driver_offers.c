/* Offers on their way from clients to the disk, and clients that join behind theirs. */

#include <stdlib.h>
#include <string.h>

#include "server/daemon/driver_impl.h"

uint64_t fl_driver_samples(const struct fl_driver *driver, const struct fl_wire_hello *hello)
{
    return fl_offering_waits(&driver->federation, &driver->progress, hello->client)
               ? 0
               : hello->samples;
}

void fl_driver_admitted(struct fl_driver *driver, uint32_t client,
                        const struct fl_wire_hello *hello, uint64_t samples)
{
    const struct fl_waiting waiting = {.waits = samples != hello->samples,
                                       .samples = hello->samples,
                                       .evaluation_samples = hello->evaluation_samples};

    if (!fl_offering_wanted(&driver->federation, &driver->progress)) {
        return;
    }
    if (fl_waits_admit(&driver->waits, client, &waiting) != FL_OK) {
        fl_serverd_no_memory(driver->srv, "who is waited for");
    }
    if (waiting.waits) {
        fl_log(driver->srv->log, FL_LOG_INFO, "round",
               "client '%s' is not selected before it has told of its data", hello->client);
    }
}

/* From now on it can be selected; the number may be another's by now. */
static void join_with_samples(struct fl_driver *driver, uint32_t client, const char *name)
{
    const struct fl_client_rec *known = fl_coord_client(driver->coord, client);
    struct fl_event event = {.type = FL_EV_CLIENT_JOINED};
    struct fl_client_rec rec;
    struct fl_waiting has;

    if (!fl_coord_connected(driver->coord, client) || known == NULL ||
        strcmp(known->name, name) != 0 || !fl_waits_end(&driver->waits, client, &has))
    {
        return; /* When it comes back, its offer is there. */
    }
    rec = *known; /* Names that outlive the step. */
    event.u.joined.name = rec.name;
    event.u.joined.agent = rec.agent;
    event.u.joined.samples = has.samples;
    event.u.joined.evaluation_samples = has.evaluation_samples;
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
    down->text = fl_down_text(driver, text);
    fl_driver_down(driver, down);
}

static void put_work(void *arg)
{
    struct offer_job *job = arg;

    job->code = fl_offering_take(&job->driver->federation, job->name, job->data.data, job->data.len,
                                 &job->err);
}

static void put_done(void *arg)
{
    struct offer_job *job = arg;

    if (job->code != FL_OK) {
        /* What failed here is ours: it may try again. */
        refuse(job->driver, job->session, job->name,
               fl_offering_is_theirs(job->code) ? job->code : FL_EUNAVAIL,
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
    if (!fl_offering_wanted(&driver->federation, &driver->progress)) { /* Too late to count. */
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

    for (i = 0; i < driver->waits.n && i < fl_coord_numbers(driver->coord); i++) {
        n += fl_waits_for(&driver->waits, (uint32_t)i) &&
             fl_coord_connected(driver->coord, (uint32_t)i);
    }
    return n;
}
