#include "tests/lib/wire_samples_part.h"

#include "libfl/wire/wire_admin.h"

int wire_sample_list_participations(struct fl_buf *out)
{
    const struct fl_wire_list_participations list = {
        .client = "a", .round = 3, .before = 70, .most = 5, .selected = true};

    return fl_wire_list_participations_encode(&list, out);
}

int wire_recode_list_participations(const void *data, size_t len, struct fl_buf *out,
                                    struct fl_err *err)
{
    struct fl_wire_list_participations list;
    int rv = fl_wire_list_participations_decode(data, len, &list, err);

    return rv != FL_OK ? rv : fl_wire_list_participations_encode(&list, out);
}

int wire_sample_participation(struct fl_buf *out)
{
    static float mixing[] = {0.25F, 0.75F};
    char client[] = "edge-04";
    char remark[] = "timed out: é";
    char aborted[] = "too few reports";
    char state[] = "accepted";
    char asked[] = "011";
    const struct fl_wire_participation p = {
        .id = 70,
        .client = client,
        .state = state,
        .asked = asked,
        .remark = remark,
        .aborted = aborted,
        .figures = {.round = 3,
                    .attempt = 1,
                    .samples = 100,
                    .steps = 20,
                    .train_loss = 0.5,
                    .uplink_bytes = 4000,
                    .downlink_bytes = 8000,
                    .attention = 0.25},
        .mixing = mixing,
        .n_mixing = 2,
    };

    return fl_wire_participation_encode(&p, out);
}

int wire_recode_participation(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_participation p;
    int rv = fl_wire_participation_decode(data, len, &p, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_wire_participation_encode(&p, out);
    fl_wire_participation_done(&p);
    return rv;
}

int wire_sample_list_rounds(struct fl_buf *out)
{
    const struct fl_wire_list_rounds list = {5, true};

    return fl_wire_list_rounds_encode(&list, out);
}

int wire_recode_list_rounds(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_list_rounds list;
    int rv = fl_wire_list_rounds_decode(data, len, &list, err);

    return rv != FL_OK ? rv : fl_wire_list_rounds_encode(&list, out);
}
