/* The figures of a round and of a client cross the wire, and proto/ has no other ones. */

#include <check.h>
#include <math.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "libfl/wire/wire_admin.h"
#include "tests/lib/suites.h"

/* Fields of the rows, as "personal->mean". */
#define FIELD(type, member, field, ...) #field,
static const char *const round_fields[] = {FL_ROUND_FIGURES(FIELD) NULL};
static const char *const client_fields[] = {FL_CLIENT_FIGURES(FIELD) NULL};

static bool listed(const char *const *list, const char *name)
{
    size_t len = strlen(name);

    while (*list != NULL && (strncmp(*list, name, len) != 0 ||
                             ((*list)[len] != '\0' && strncmp(*list + len, "->", 2) != 0)))
    {
        list++;
    }
    return *list != NULL;
}

/* Numbers that are no figures stand in `others`; a row without its field does not compile. */
static void every_number_is_listed(const ProtobufCMessageDescriptor *type, const char *const *rows,
                                   const char *const *others)
{
    unsigned i;

    for (i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &type->fields[i];

        if (f->label == PROTOBUF_C_LABEL_REPEATED || f->type == PROTOBUF_C_TYPE_STRING ||
            f->type == PROTOBUF_C_TYPE_BOOL)
        {
            continue;
        }
        ck_assert_msg(listed(rows, f->name) || listed(others, f->name),
                      "%s.%s has no row in libfl/figures", type->short_name, f->name);
    }
}

TEST(every_number_of_the_messages_has_its_row)
{
    static const char *const of_round[] = {"generation", "abandoned_ms", NULL};
    static const char *const of_client[] = {"last_error_ms", "takeovers", "quarantined_ms", NULL};
    static const char *const of_status[] = {
        "round",     "rounds_committed", "rounds_total",    "clients_known", "clients_connected",
        "uptime_ms", "failed_attempts",  "disk_free_bytes", "disk_bytes",    "certificate_ends_ms",
        NULL};

    every_number_is_listed(&fl__v1__round_info__descriptor, round_fields, of_round);
    every_number_is_listed(&fl__v1__client_info__descriptor, client_fields, of_client);
    every_number_is_listed(&fl__v1__status_reply__descriptor, round_fields, of_status);
}

/* Each member of `rec` has a value of its own. */
#define FILL(type, member, ...) rec->member = (FL_FIGURE_C_##type)value++;
#define SAME(type, member, ...) \
    ck_assert_msg(want->member == got->member, "%s came as another", #member);
#define SAME_TOTALS(assertion) assertion
#define SAME_OWN(assertion)
#define SAME_TOTAL(type, member, field, told, ...) SAME_##told(SAME(type, member, ))

static void fill_round(struct fl_round_rec *rec)
{
    unsigned value = 1;

    FL_ROUND_FIGURES(FILL)
}

TEST(every_figure_of_a_round_arrives)
{
    static char by[] = "";
    struct fl_wire_round sent = {.abandoned_by = by, .robust_clients = by, .metrics = by};
    struct fl_wire_round came;
    const struct fl_round_rec *want = &sent.figures;
    const struct fl_round_rec *got = &came.figures;
    struct fl_buf buf;

    fill_round(&sent.figures);
    fl_buf_init(&buf, 4096);
    ck_assert_int_eq(fl_wire_round_encode(&sent, &buf), FL_OK);
    ck_assert_int_eq(fl_wire_round_decode(buf.data, buf.len, &came, NULL), FL_OK);
    FL_ROUND_FIGURES(SAME)
    fl_wire_round_done(&came);
    fl_buf_done(&buf);
}

TEST(every_total_that_is_told_arrives)
{
    static char text[] = "x";
    struct fl_wire_status sent = {
        .federation = text, .phase = text, .algorithm = text, .version = text};
    struct fl_wire_status came = {0};
    const struct fl_round_rec *want = &sent.totals;
    const struct fl_round_rec *got = &came.totals;
    struct fl_buf buf;

    fill_round(&sent.totals);
    fl_buf_init(&buf, 4096);
    ck_assert_int_eq(fl_wire_status_encode(&sent, &buf), FL_OK);
    ck_assert_int_eq(fl_wire_status_decode(buf.data, buf.len, &came, NULL), FL_OK);
    FL_ROUND_FIGURES(SAME_TOTAL)
    ck_assert_uint_eq(came.totals.n_selected, 0); /* One that is not told. */
    fl_wire_status_done(&came);
    fl_buf_done(&buf);
}

TEST(every_figure_of_a_client_arrives)
{
    static char text[] = "edge-1";
    struct fl_wire_client sent = {.name = text, .agent = text, .state = text};
    struct fl_wire_client came = {0};
    struct fl_client_figures *rec = &sent.figures;
    const struct fl_client_figures *want = &sent.figures;
    const struct fl_client_figures *got = &came.figures;
    unsigned value = 1;
    struct fl_buf buf;

    FL_CLIENT_FIGURES(FILL)
    fl_buf_init(&buf, 4096);
    ck_assert_int_eq(fl_wire_client_encode(&sent, &buf), FL_OK);
    ck_assert_int_eq(fl_wire_client_decode(buf.data, buf.len, &came, NULL), FL_OK);
    FL_CLIENT_FIGURES(SAME)
    fl_wire_client_done(&came);
    fl_buf_done(&buf);
}

TEST_EACH(what_no_client_measured_is_not_told_and_not_known, 2)
{
    static char by[] = "";
    const double bad[] = {-1.0, (double)NAN};
    struct fl_wire_round sent = {.abandoned_by = by, .robust_clients = by, .metrics = by};
    struct fl_wire_round came;
    struct fl_buf buf;

    fill_round(&sent.figures);
    sent.figures.personal_accuracy = sent.figures.received_accuracy = bad[_i];
    sent.figures.client_accuracy_mean = bad[_i];
    fl_buf_init(&buf, 4096);
    ck_assert_int_eq(fl_wire_round_encode(&sent, &buf), FL_OK);
    ck_assert_int_eq(fl_wire_round_decode(buf.data, buf.len, &came, NULL), FL_OK);
    ck_assert_double_eq(came.figures.personal_accuracy, -1.0);
    ck_assert_double_eq(came.figures.personal_mean, -1.0);
    ck_assert_uint_eq(came.figures.n_personal, 0);
    ck_assert_double_eq(came.figures.received_mean, -1.0);
    ck_assert_double_eq(came.figures.client_accuracy_mean, -1.0);
    ck_assert_double_eq(came.figures.client_accuracy_worst_tenth, -1.0);
    ck_assert_double_eq(came.figures.client_loss_mean, 0.0);
    fl_wire_round_done(&came);
    fl_buf_done(&buf);
}
