/* Fills the requests of the commands about rounds and models. */
#include <string.h>

#include "libfl/base/str.h"
#include "tools/flctl/flctl.h"

/* Without --last. */
#define REQUESTS_PARTICIPATIONS 100

int fl_ctl_encoded(const struct fl_ctl_args *args, int rv)
{
    if (rv != FL_OK) {
        return fl_ctl_complain(args, FL_CTL_FAILED, "%s", fl_strerror(rv));
    }
    return FL_CTL_OK;
}

const struct fl_ctl_request fl_ctl_request_empty = {NULL, NULL};

static int requests_round_arg(struct fl_ctl_args *args, int n, char **words)
{
    if (n > 1) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "unexpected argument '%s' (see flctl --help)",
                               words[1]);
    }
    if (n == 1 && fl_str_to_u64(words[0], &args->round) != FL_OK) {
        (void)fprintf(stderr, "flctl: --round: expected a number, found '%s'\n", words[0]);
        return FL_CTL_USAGE;
    }
    args->has_round = args->has_round || n == 1;
    return -1;
}

/* A client's name, or --unseen-for. */
static int requests_forget_args(struct fl_ctl_args *args, int n, char **words)
{
    if (n == (args->forget.unseen_for_ms == 0 ? 1 : 0) && (n == 0 || fl_name_valid(words[0]))) {
        args->name = n > 0 ? words[0] : "";
        return -1;
    }
    return fl_ctl_complain(args, FL_CTL_USAGE, "expected the name of a client, or --unseen-for");
}

static int requests_client_arg(struct fl_ctl_args *args, int n, char **words)
{
    if (n == 1 && fl_name_valid(words[0])) {
        args->name = words[0];
        return -1;
    }
    return fl_ctl_complain(args, FL_CTL_USAGE, "expected the name of a client");
}

static int requests_fill_drop(struct fl_ctl_args *args, struct fl_buf *request)
{
    return fl_ctl_encoded(args, fl_wire_drop_summary_encode(args->name, request));
}

const struct fl_ctl_request fl_ctl_request_drop = {requests_client_arg, requests_fill_drop};

static int requests_fill_rounds(struct fl_ctl_args *args, struct fl_buf *request)
{
    const struct fl_wire_list_rounds list = {(uint32_t)args->last, args->out.abandoned};

    return fl_ctl_encoded(args, fl_wire_list_rounds_encode(&list, request));
}

static int requests_rounds_args(struct fl_ctl_args *args, int n, char **words)
{
    if (n > 0) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "unexpected argument '%s' (see flctl --help)",
                               words[0]);
    }
    return fl_ctl_rounds_options(args);
}

const struct fl_ctl_request fl_ctl_request_rounds = {requests_rounds_args, requests_fill_rounds};

static int requests_participations_args(struct fl_ctl_args *args, int n, char **words)
{
    if (n > 1 || (n == 1 && !fl_name_valid(words[0]))) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "expected at most the name of a client");
    }
    if (n == 1 && args->has_round) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "expected the name of a client or --round, found both");
    }
    args->name = n == 1 ? words[0] : "";
    return -1;
}

static int requests_fill_participations(struct fl_ctl_args *args, struct fl_buf *request)
{
    struct fl_wire_list_participations list = {
        .round = args->has_round ? args->round : 0,
        .most = (uint32_t)(args->has_last ? args->last : REQUESTS_PARTICIPATIONS)};
    int rv = fl_str_copy(list.client, sizeof(list.client), args->name);

    if (rv != FL_OK) {
        return fl_ctl_encoded(args, rv);
    }
    return fl_ctl_encoded(args, fl_wire_list_participations_encode(&list, request));
}

const struct fl_ctl_request fl_ctl_request_participations = {requests_participations_args,
                                                             requests_fill_participations};

static int requests_fill_forget(struct fl_ctl_args *args, struct fl_buf *request)
{
    struct fl_wire_forget forget = args->forget;
    int rv = fl_str_copy(forget.name, sizeof(forget.name), args->name);

    if (rv != FL_OK) {
        return fl_ctl_encoded(args, rv);
    }
    return fl_ctl_encoded(args, fl_wire_forget_encode(&forget, request));
}

const struct fl_ctl_request fl_ctl_request_forget = {requests_forget_args, requests_fill_forget};

static int requests_fill_control(struct fl_ctl_args *args, struct fl_buf *request)
{
    const struct fl_wire_control control = {args->reason};

    return fl_ctl_encoded(args, fl_wire_control_encode(&control, request));
}

const struct fl_ctl_request fl_ctl_request_control = {NULL, requests_fill_control};

static int requests_fill_client_control(struct fl_ctl_args *args, struct fl_buf *request)
{
    const struct fl_wire_client_control control = {fl_wire_lend(args->name), args->reason};

    return fl_ctl_encoded(args, fl_wire_client_control_encode(&control, request));
}

const struct fl_ctl_request fl_ctl_request_client_control = {requests_client_arg,
                                                             requests_fill_client_control};

static int requests_fill_export(struct fl_ctl_args *args, struct fl_buf *request)
{
    return fl_ctl_encoded(args, fl_wire_export_request_encode(args->round, request));
}

const struct fl_ctl_request fl_ctl_request_export = {NULL, requests_fill_export};

static int requests_fill_pin(struct fl_ctl_args *args, bool unpin, struct fl_buf *request)
{
    const struct fl_wire_pin pin = {args->round, unpin};

    if (!args->has_round) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "--round N is required: the checkpoint");
    }
    return fl_ctl_encoded(args, fl_wire_pin_encode(&pin, request));
}

static int requests_pin(struct fl_ctl_args *args, struct fl_buf *request)
{
    return requests_fill_pin(args, /* unpin= */ false, request);
}

const struct fl_ctl_request fl_ctl_request_pin = {NULL, requests_pin};

static int requests_unpin(struct fl_ctl_args *args, struct fl_buf *request)
{
    return requests_fill_pin(args, /* unpin= */ true, request);
}

const struct fl_ctl_request fl_ctl_request_unpin = {NULL, requests_unpin};

static int requests_fill_rollback(struct fl_ctl_args *args, struct fl_buf *request)
{
    const struct fl_wire_rollback rollback = {args->round, args->force};

    if (!args->has_round) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "expected the round to go back to");
    }
    return fl_ctl_encoded(args, fl_wire_rollback_encode(&rollback, request));
}

const struct fl_ctl_request fl_ctl_request_rollback = {requests_round_arg, requests_fill_rollback};
