/* What goes wrong with clients: remembered, written down, and shown. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/srv/driver_state.h"

/* Records on their way to the disk; what goes past that is remembered until the restart only. */
#define PENDING_MAX 64

struct error_job {
    struct fl_driver *driver;
    struct fl_client_error error;
    bool drop; /* the one of this name, instead of writing it */
    int code;
    struct fl_err err;
};

static void put_work(void *arg)
{
    struct error_job *job = arg;

    job->code = job->drop ? fl_store_drop_error(job->driver->store, job->error.name, &job->err)
                          : fl_store_put_error(job->driver->store, &job->error, &job->err);
}

static void put_done(void *arg)
{
    struct error_job *job = arg;

    job->driver->n_error_jobs--;
    if (job->code != FL_OK) {
        fl_log(job->driver->srv->log, FL_LOG_WARNING, "server",
               "the error of client '%s' is not %s: %s", job->error.name,
               job->drop ? "removed from the disk" : "recorded", fl_err_text(&job->err, job->code));
    }
    free(job);
}

static void write_down(struct fl_driver *driver, const struct fl_client_error *error, bool drop)
{
    /* Only operators drop: nothing that a client could do often. */
    bool room = drop || driver->n_error_jobs < PENDING_MAX;
    struct error_job *job = room ? calloc(1, sizeof(*job)) : NULL;

    if (job == NULL) {
        return;
    }
    job->driver = driver;
    job->error = *error;
    job->drop = drop;
    driver->n_error_jobs++;
    if (fl_lane_submit(driver->srv->db, put_work, driver->loop, put_done, job) != FL_OK) {
        driver->n_error_jobs--;
        free(job);
    }
}

void fl_driver_client_error(struct fl_driver *driver, const struct fl_effect *e)
{
    const struct fl_client_rec *rec = fl_coord_client(driver->coord, e->client);
    struct fl_client_error error = {.at_ms = fl_clock_wall_ms()};

    if (rec == NULL || e->text == NULL) {
        return;
    }
    (void)snprintf(error.name, sizeof(error.name), "%s", rec->name);
    (void)fl_str_ends(error.text, sizeof(error.text), e->text);
    if (fl_errors_set(&driver->errors, &error) != FL_OK) {
        return; /* It stands in the log. */
    }
    (void)snprintf(driver->newest_error, sizeof(driver->newest_error), "%s", error.name);
    write_down(driver, &error, /* drop= */ false);
}

void fl_driver_drop_error(struct fl_driver *driver, const char *name)
{
    struct fl_client_error error = {.at_ms = 0};

    if (fl_errors_find(&driver->errors, name) == NULL) {
        return;
    }
    (void)snprintf(error.name, sizeof(error.name), "%s", name);
    fl_errors_drop(&driver->errors, error.name);
    if (strcmp(driver->newest_error, error.name) == 0) {
        driver->newest_error[0] = '\0';
    }
    write_down(driver, &error, /* drop= */ true);
}

void fl_driver_add_error(const struct fl_driver *driver, char *text, size_t size)
{
    const struct fl_client_error *e = fl_errors_find(&driver->errors, driver->newest_error);
    uint64_t now = fl_clock_wall_ms();
    size_t used = strlen(text);

    if (e != NULL) {
        (void)snprintf(text + used, size - used, "; newest error, of '%s' %.1f s ago: %s", e->name,
                       now > e->at_ms ? (double)(now - e->at_ms) / 1000.0 : 0.0, e->text);
    }
}

static int take(void *ctx, const struct fl_client_error *error)
{
    return fl_errors_set(ctx, error);
}

int fl_driver_load_errors(struct fl_driver *driver, struct fl_err *err)
{
    return fl_store_errors(driver->store, take, &driver->errors, err);
}
