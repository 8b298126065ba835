/*
 * Clients that an operator wants to be nobody. The answer is a promise: it goes out when all that
 * it speaks of is on disk, so that no kill of the server takes it back.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/daemon/driver_impl.h"

/* Names whose last errors go along. */
struct names {
    struct fl_client_error *list;
    size_t n;
};

/* Who is connected is seen now, whatever its record says. */
static bool unseen(const struct fl_driver *driver, uint32_t number, uint64_t span_ms)
{
    const struct fl_client_rec *c = fl_coord_client(driver->coord, number);
    uint64_t now = fl_clock_wall_ms();

    return c != NULL && !fl_coord_connected(driver->coord, number) && now > c->last_seen_ms &&
           now - c->last_seen_ms >= span_ms;
}

/* Nobody has the name; only what went wrong with it is known. */
static bool unseen_error(const struct fl_driver *driver, const struct fl_client_error *error,
                         uint64_t span_ms)
{
    uint64_t now = fl_clock_wall_ms();

    return fl_coord_find(driver->coord, error->name) == UINT32_MAX && now > error->at_ms &&
           now - error->at_ms >= span_ms;
}

/* There is room for all errors that are known. */
static void add_name(const struct fl_driver *driver, struct names *names, const char *name)
{
    const struct fl_client_error *error = fl_errors_find(&driver->errors, name);

    if (error != NULL) {
        names->list[names->n++] = *error;
    }
}

static void forget_number(struct fl_driver *driver, struct fl_admin_request *request,
                          uint32_t number, struct names *names)
{
    struct fl_event event = {.type = FL_EV_FORGET};

    request->forgotten.forgotten++;
    request->forgotten.in_round += fl_coord_part(driver->coord, number) != NULL;
    request->n_waits++;
    driver->forgetting[number] = request;
    add_name(driver, names, fl_coord_client(driver->coord, number)->name);
    event.u.client = number;
    fl_driver_step(driver, &event);
}

static void forget_name(struct fl_driver *driver, struct fl_admin_request *request,
                        struct names *names)
{
    const char *name = request->forget.name;
    uint32_t number = fl_coord_find(driver->coord, name);

    if (number != UINT32_MAX) {
        forget_number(driver, request, number, names);
        request->n_waits++;
        fl_driver_forget_summary(driver, name, request);
        return;
    }
    add_name(driver, names, name);
    request->forgotten.forgotten += names->n;
    if (names->n == 0) {
        request->code = fl_err_set(&request->err, FL_ENOENT, "no client '%s' is known", name);
    }
}

static void forget_unseen(struct fl_driver *driver, struct fl_admin_request *request,
                          struct names *names)
{
    uint64_t span_ms = request->forget.unseen_for_ms;
    size_t n = fl_coord_numbers(driver->coord);
    uint32_t number;
    size_t i;

    for (i = 0; i < driver->errors.n; i++) {
        if (unseen_error(driver, &driver->errors.list[i], span_ms)) {
            request->forgotten.forgotten++;
            names->list[names->n++] = driver->errors.list[i];
        }
    }
    for (number = 0; number < n; number++) {
        if (unseen(driver, number, span_ms)) {
            forget_number(driver, request, number, names);
        }
    }
}

/* Room for whoever can be forgotten now. */
static int reserve(struct fl_driver *driver, struct names *names)
{
    size_t n = fl_coord_numbers(driver->coord);
    struct fl_admin_request **grown;

    if (n > driver->n_forgetting) {
        grown = realloc(driver->forgetting, n * sizeof(*grown));
        if (grown == NULL) {
            return FL_ENOMEM;
        }
        (void)memset(grown + driver->n_forgetting, 0, (n - driver->n_forgetting) * sizeof(*grown));
        driver->forgetting = grown;
        driver->n_forgetting = n;
    }
    names->list = calloc(driver->errors.n + 1, sizeof(*names->list));
    return names->list != NULL ? FL_OK : FL_ENOMEM;
}

void fl_driver_forget(struct fl_driver *driver, struct fl_admin_request *request)
{
    struct names names = {.n = 0};

    request->code = reserve(driver, &names);
    if (request->code != FL_OK) {
        fl_driver_answer(driver, request);
        return;
    }
    request->n_waits = 1; /* Until all is asked for. */
    if (request->forget.name[0] != '\0') {
        forget_name(driver, request, &names);
    } else {
        forget_unseen(driver, request, &names);
    }
    if (names.n > 0) {
        request->n_waits++;
        fl_driver_drop_errors(driver, names.list, names.n, request);
    } else {
        free(names.list);
    }
    fl_driver_forgot(driver, request, NULL);
}

void fl_driver_forgot(struct fl_driver *driver, struct fl_admin_request *request, const char *why)
{
    if (why != NULL && request->code == FL_OK) {
        request->code =
            fl_err_set(&request->err, FL_EIO,
                       "they take no part any more, but that is not on disk: %.300s; a server that "
                       "is killed now knows them again: make room, and ask again",
                       why);
    }
    if (--request->n_waits > 0) {
        return;
    }
    if (request->code == FL_OK) {
        fl_log(driver->srv->log, FL_LOG_NOTICE, "server", "the operator forgets %llu clients",
               (unsigned long long)request->forgotten.forgotten);
        FL_ADMIN_REPLY(request, fl_wire_forgotten_encode, &request->forgotten);
    }
    fl_driver_answer(driver, request);
}

void fl_driver_forgotten(struct fl_driver *driver, const struct fl_effect *e)
{
    struct fl_admin_request *request =
        e->client < driver->n_forgetting ? driver->forgetting[e->client] : NULL;

    if (request != NULL) {
        driver->forgetting[e->client] = NULL;
        fl_driver_forgot(driver, request, e->text);
    }
}

void fl_driver_forget_done(struct fl_driver *driver)
{
    size_t i;

    for (i = 0; i < driver->n_forgetting; i++) {
        if (driver->forgetting[i] != NULL) {
            fl_driver_forgot(driver, driver->forgetting[i], "the server stops");
        }
    }
    free(driver->forgetting);
    driver->forgetting = NULL;
    driver->n_forgetting = 0;
}

void fl_driver_exclude(struct fl_driver *driver, const char *name, enum fl_denied_keeps keeps)
{
    struct fl_event event = {.type = FL_EV_EXCLUDE};
    uint32_t number = fl_coord_find(driver->coord, name);

    if (keeps != FL_DENIED_KEEPS_ALL) {
        fl_driver_forget_summary(driver, name, NULL);
    }
    if (number == UINT32_MAX) {
        return;
    }
    event.u.excluded.client = number;
    event.u.excluded.reason = "its certificate is denied";
    fl_driver_step(driver, &event);
    if (keeps == FL_DENIED_KEEPS_NOTHING) {
        event = (struct fl_event){.type = FL_EV_FORGET};
        event.u.client = number;
        fl_driver_step(driver, &event);
    }
}
