#include "tools/flctl/look.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"

/* A call whose warnings were printed by the one before. */
static int look_call(struct fl_ctl_args *args, enum fl_verb verb, const struct fl_buf *request,
                     fl_ctl_take_cb take, struct fl_ctl_look *look, struct fl_err *err)
{
    int code = fl_ctl_fetch(args, verb, request, take, look, err);

    args->remote.quiet = true;
    return code;
}

static int look_take_status(void *ctx, const uint8_t *data, size_t len, struct fl_err *err)
{
    struct fl_ctl_look *look = ctx;
    int rv;

    if (look->has_status) {
        return fl_err_set(err, FL_EPROTO, "the server sent its status twice");
    }
    rv = fl_wire_status_decode(data, len, &look->status, err);
    look->has_status = rv == FL_OK;
    return rv;
}

static int look_take_round(void *ctx, const uint8_t *data, size_t len, struct fl_err *err)
{
    struct fl_ctl_look *look = ctx;
    int rv = fl_grow(&look->rounds, &look->rounds_cap, look->n_rounds, sizeof(look->rounds[0]));

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_wire_round_decode(data, len, &look->rounds[look->n_rounds], err);
    if (rv != FL_OK) {
        return rv;
    }
    look->n_rounds++;
    return FL_OK;
}

static int look_take_client(void *ctx, const uint8_t *data, size_t len, struct fl_err *err)
{
    struct fl_ctl_look *look = ctx;
    int rv = fl_grow(&look->clients, &look->clients_cap, look->n_clients, sizeof(look->clients[0]));

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_wire_client_decode(data, len, &look->clients[look->n_clients], err);
    if (rv != FL_OK) {
        return rv;
    }
    look->n_clients++;
    return FL_OK;
}

int fl_ctl_look_status(struct fl_ctl_args *args, struct fl_ctl_look *look, struct fl_err *err)
{
    const struct fl_buf empty = {0};
    int code = look_call(args, FL_VERB_STATUS, &empty, look_take_status, look, err);

    if (code == FL_CTL_OK && !look->has_status) {
        (void)fl_err_set(err, FL_EPROTO, "the server sent no status");
        return FL_CTL_FAILED;
    }
    return code;
}

int fl_ctl_look_rounds(struct fl_ctl_args *args, uint32_t last, struct fl_ctl_look *look,
                       struct fl_err *err)
{
    const struct fl_wire_list_rounds list = {.last = last};
    struct fl_buf request;
    int code;
    int rv;

    fl_buf_init(&request, FL_WIRE_MAX_LINE);
    rv = fl_wire_list_rounds_encode(&list, &request);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "%s", fl_strerror(rv));
        code = FL_CTL_FAILED;
        goto done;
    }
    code = look_call(args, FL_VERB_ROUNDS, &request, look_take_round, look, err);
done:
    fl_buf_done(&request);
    return code;
}

int fl_ctl_look_clients(struct fl_ctl_args *args, struct fl_ctl_look *look, struct fl_err *err)
{
    const struct fl_buf empty = {0};

    return look_call(args, FL_VERB_CLIENTS, &empty, look_take_client, look, err);
}

void fl_ctl_look_done(struct fl_ctl_look *look)
{
    size_t i;

    if (look->has_status) {
        fl_wire_status_done(&look->status);
    }
    for (i = 0; i < look->n_rounds; i++) {
        fl_wire_round_done(&look->rounds[i]);
    }
    for (i = 0; i < look->n_clients; i++) {
        fl_wire_client_done(&look->clients[i]);
    }
    free(look->rounds);
    free(look->clients);
    *look = (struct fl_ctl_look){0};
}
