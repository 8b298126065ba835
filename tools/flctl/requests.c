/* Fills the requests of the commands about rounds and models. */
#include <string.h>

#include "libfl/base/str.h"
#include "tools/flctl/flctl.h"

static int requests_encoded(const struct fl_ctl_args *args, int rv)
{
    return rv == FL_OK ? FL_CTL_OK : fl_ctl_complain(args, FL_CTL_FAILED, "%s", fl_strerror(rv));
}

int fl_ctl_round_arg(struct fl_ctl_args *args, int n, char **words)
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
int fl_ctl_forget_args(struct fl_ctl_args *args, int n, char **words)
{
    if (n == (args->forget.unseen_for_ms == 0 ? 1 : 0) &&
        (n == 0 || (fl_name_valid(words[0]) &&
                    fl_str_copy(args->forget.name, sizeof(args->forget.name), words[0]) == FL_OK)))
    {
        return -1;
    }
    return fl_ctl_complain(args, FL_CTL_USAGE, "expected the name of a client, or --unseen-for");
}

int fl_ctl_summary_arg(struct fl_ctl_args *args, int n, char **words)
{
    if (n == 1 && fl_name_valid(words[0])) {
        args->name = words[0];
        return -1;
    }
    return fl_ctl_complain(args, FL_CTL_USAGE, "expected the name of a client");
}

int fl_ctl_ask_drop(struct fl_ctl_args *args, struct fl_buf *request)
{
    return requests_encoded(args, fl_wire_drop_summary_encode(args->name, request));
}

int fl_ctl_ask_rounds(struct fl_ctl_args *args, struct fl_buf *request)
{
    const struct fl_wire_list_rounds list = {(uint32_t)args->last, args->out.abandoned};

    return requests_encoded(args, fl_wire_list_rounds_encode(&list, request));
}

int fl_ctl_ask_forget(struct fl_ctl_args *args, struct fl_buf *request)
{
    return requests_encoded(args, fl_wire_forget_encode(&args->forget, request));
}

int fl_ctl_ask_control(struct fl_ctl_args *args, struct fl_buf *request)
{
    const struct fl_wire_control control = {args->reason};

    return requests_encoded(args, fl_wire_control_encode(&control, request));
}

int fl_ctl_ask_export(struct fl_ctl_args *args, struct fl_buf *request)
{
    return requests_encoded(args, fl_wire_export_request_encode(args->round, request));
}

static int requests_ask_pin(struct fl_ctl_args *args, bool release, struct fl_buf *request)
{
    const struct fl_wire_hold hold = {args->round, release};

    if (!args->has_round) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "--round N is required: the checkpoint");
    }
    return requests_encoded(args, fl_wire_hold_encode(&hold, request));
}

int fl_ctl_ask_hold(struct fl_ctl_args *args, struct fl_buf *request)
{
    return requests_ask_pin(args, /* release= */ false, request);
}

int fl_ctl_ask_release(struct fl_ctl_args *args, struct fl_buf *request)
{
    return requests_ask_pin(args, /* release= */ true, request);
}

int fl_ctl_ask_rollback(struct fl_ctl_args *args, struct fl_buf *request)
{
    const struct fl_wire_rollback rollback = {args->round, args->force};

    if (!args->has_round) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "expected the round to go back to");
    }
    return requests_encoded(args, fl_wire_rollback_encode(&rollback, request));
}
