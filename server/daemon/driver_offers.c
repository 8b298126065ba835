/* Offers on their way from clients to the disk. */

#include <stdlib.h>
#include <string.h>

#include "server/daemon/driver_impl.h"

static void offered(struct fl_driver *driver, uint32_t client, const char *name)
{
    struct fl_event event = {.type = FL_EV_CLIENT_OFFERED};

    event.u.offered.client = client;
    event.u.offered.name = name;
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
        offered(job->driver, job->client, job->name);
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
    if (!fl_offering_wanted(&driver->federation, &driver->progress)) {
        /* Too late to count. A copy, for it has to outlive the step. */
        char known[FL_NAME_MAX];

        FL_REQUIRE(fl_str_copy(known, sizeof(known), name) == FL_OK);
        offered(driver, up->client, known);
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
