/*
 * Compares the rules of `when` with the device now and then, and logs changes. Runs on the loop. It
 * neither reads the device (device_facts.c) nor decides (client/core/device_policy.c), and does not
 * connect (clientd_session.c).
 */
#include "client/daemon/availability.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/device_facts.h"

struct fl_availability {
    const struct fl_client_conf *conf;
    const struct fl_log *log;
    struct fl_when when;
    struct fl_when central; /* hours of the server (daemon/central.h) */
    struct fl_device device;
    struct fl_timer *timer;
    fl_loop_cb changed;
    void *ctx;
    bool by_central; /* of `why`: the hours of the server do not hold */
    bool announced;  /* that it is not available */
    char why[FL_WHEN_REASON];
};

int fl_availability_rules(const struct fl_client_conf *conf, struct fl_when *ret,
                          struct fl_err *err)
{
    const struct fl_client_when *given = conf->when;
    const struct fl_conf_node *node = fl_conf_field(conf->file, &given->hours);
    struct fl_when when = {.load_below = given->load_below,
                           .mains = given->mains,
                           .unmetered = given->unmetered,
                           .free_memory = given->free_memory,
                           .free_disk = given->free_disk};
    struct fl_err inner = {0};
    size_t i;

    if (given->hours.n > FL_HOURS_MAX) {
        return fl_conf_error(node, err, "expected at most %d spans, found %zu", FL_HOURS_MAX,
                             given->hours.n);
    }
    for (i = 0; i < given->hours.n; i++) {
        if (fl_hours_read(given->hours.list[i], &when.hours[i], &inner) != FL_OK) {
            return fl_conf_error(node, err, "%s", inner.msg);
        }
    }
    when.n_hours = given->hours.n;
    *ret = when;
    return FL_OK;
}

static struct fl_device availability_device(const struct fl_client_conf *conf,
                                            const struct fl_when *when)
{
    return (struct fl_device){
        .root = conf->when->system_root, .state_dir = conf->main->state_dir, .when = when};
}

int fl_availability_check(const struct fl_client_conf *conf, struct fl_err *err)
{
    struct fl_when when;
    struct fl_device device;
    int rv = fl_availability_rules(conf, &when, err);

    if (rv != FL_OK) {
        return rv;
    }
    device = availability_device(conf, &when);
    return fl_device_check(&device, err);
}

static bool availability_holds(struct fl_availability *a, const struct fl_when_facts *facts)
{
    size_t used;

    a->by_central = false;
    if (!fl_when_holds(&a->when, facts, a->why)) {
        return false;
    }
    if (fl_when_holds(&a->central, facts, a->why)) {
        return true;
    }
    a->by_central = true;
    used = strlen(a->why);
    (void)snprintf(a->why + used, sizeof(a->why) - used, ", which an operator of the server set");
    return false;
}

void fl_availability_set_central(struct fl_availability *a, const struct fl_hours *hours, size_t n)
{
    (void)memcpy(a->central.hours, hours, n * sizeof(*hours));
    a->central.n_hours = n;
}

const char *fl_availability_evaluate(struct fl_availability *a)
{
    struct fl_when_facts facts;
    bool before = a->why[0] == '\0';
    bool now;

    fl_device_facts(&a->device, &facts);
    now = availability_holds(a, &facts);
    if (before && !now) {
        fl_log(a->log, FL_LOG_NOTICE, "client", "not available (%s): %s; taking no new task",
               a->by_central ? "central settings" : "section 'when'", a->why);
    } else if (!before && now) {
        fl_log(a->log, FL_LOG_NOTICE, "client", "available again (section 'when')");
    }
    return a->why;
}

const char *fl_availability_why(const struct fl_availability *a)
{
    return a->why;
}

const char *fl_availability_announce(struct fl_availability *a)
{
    a->announced = a->why[0] != '\0';
    return a->announced ? a->why : NULL;
}

bool fl_availability_announced(const struct fl_availability *a)
{
    return a->announced;
}

bool fl_availability_disconnects(const struct fl_availability *a)
{
    return a->conf->when->outside == FL_WHEN_DISCONNECT && a->announced && a->why[0] != '\0';
}

static void availability_on_timer(void *arg)
{
    struct fl_availability *a = arg;
    bool available = fl_availability_evaluate(a)[0] == '\0';

    fl_timer_start(a->timer, a->conf->when->check_ms);
    if (available == a->announced || fl_availability_disconnects(a)) {
        a->changed(a->ctx);
    }
}

int fl_availability_create(const struct fl_client_conf *conf, struct fl_loop *loop,
                           const struct fl_log *log, fl_loop_cb changed, void *ctx,
                           struct fl_availability **ret)
{
    struct fl_availability *a = calloc(1, sizeof(*a));
    int rv;

    if (a == NULL) {
        return FL_ENOMEM;
    }
    a->conf = conf;
    a->log = log;
    a->changed = changed;
    a->ctx = ctx;
    rv = fl_availability_rules(conf, &a->when, NULL); /* checked before the start */
    if (rv != FL_OK) {
        goto fail;
    }
    a->device = availability_device(conf, &a->when);
    rv = fl_timer_create(loop, availability_on_timer, a, &a->timer);
    if (rv != FL_OK) {
        goto fail;
    }
    fl_timer_start(a->timer, conf->when->check_ms);
    *ret = a;
    return FL_OK;
fail:
    free(a);
    return rv;
}

void fl_availability_free(struct fl_availability *a)
{
    if (a != NULL) {
        fl_timer_close(a->timer);
        free(a);
    }
}
