/*
 * A program that acts for several clients in turn (docs/trainers.md#many-clients-in-one-program).
 * Same thread as persistent.c. It does not choose the clients: the caller does.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/program/persistent_impl.h"

int fl_persistent_act_for(struct fl_persistent *r, const struct fl_persistent_client *client,
                          struct fl_err *err)
{
    char *message = fl_message_client(client);

    if (message == NULL) {
        return fl_err_set(err, FL_ENOMEM,
                          "client of the program: out of memory or a text that is not UTF-8");
    }
    if (r->client_message != NULL && strcmp(r->client_message, message) == 0) {
        free(message);
        return FL_OK;
    }
    free(r->client_message);
    r->client_message = message;
    r->client_told = false;
    return FL_OK;
}

static int client_await(struct fl_persistent *r, const atomic_bool *cancel, struct fl_err *err)
{
    enum fl__persistent_state before = (enum fl__persistent_state)r->sm.state;
    uint64_t limit = r->conf.start_limit_ms;
    struct fl_answer answer;
    int rv;

    fl_sm_move(&r->sm, FL__PERSISTENT_SWITCHING);
    rv = fl__persistent_await(r, limit > 0 ? fl__persistent_now(r) + limit : UINT64_MAX, cancel,
                              &answer, err);
    if (rv == FL_ETIMEOUT || rv == FL_ECANCELED) {
        return fl__persistent_timed_out(r, rv, "client", limit, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    fl_sm_move(&r->sm, before);
    if (answer.type == FL_ANSWER_FAILED) {
        rv = fl_err_set(err, FL_EIO, "'%.100s' failed at 'client': %.300s", r->argv[0],
                        answer.error);
        fl_program_add_tail(r->program, err);
        return rv;
    }
    r->ready.samples = answer.samples;
    r->ready.test_samples = answer.test_samples;
    r->client_told = true;
    return FL_OK;
}

int fl__persistent_switch(struct fl_persistent *r, const atomic_bool *cancel, struct fl_err *err)
{
    int rv;

    if (r->client_message == NULL || r->client_told) {
        return FL_OK;
    }
    if (!r->ready.clients) {
        return fl_err_set(err, FL_EUNIMPL,
                          "'%.100s' acts for one client only: its 'ready' has no \"clients\": true "
                          "(docs/trainers.md#many-clients-in-one-program)",
                          r->argv[0]);
    }
    rv = fl__persistent_send(r, fl_str_dup(r->client_message), "client", err);
    if (rv != FL_OK) {
        return rv;
    }
    return client_await(r, cancel, err);
}

int fl_persistent_count(struct fl_persistent *r, uint64_t *ret_samples, uint64_t *ret_test_samples,
                        struct fl_err *err)
{
    int rv = fl_persistent_start(r, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (r->sm.state == FL__PERSISTENT_DESCRIBING) {
        return fl_err_set(err, FL_ESTATE, "the model of '%.100s' is being described", r->argv[0]);
    }
    rv = fl__persistent_switch(r, NULL, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_samples = r->ready.samples;
    *ret_test_samples = fl_persistent_can(r, FL_PERSISTENT_EVALUATE) ? r->ready.test_samples : 0;
    return FL_OK;
}
