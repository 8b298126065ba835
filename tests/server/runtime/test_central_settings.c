/* Central settings of clients on the server: what each change makes of them, and the text. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "server/runtime/central_settings.h"
#include "tests/lib/suites.h"

static char edge[] = "edge-1", site[] = "site", rack[] = "rack", north[] = "north", seven[] = "7",
            night[] = "22:00-06:00", other[] = "other";

/* Carries out a change as the runtime does; returns the text. */
static const char *take(struct fl_central *c, struct fl_buf *buf)
{
    static char text[FL_CENTRAL_TEXT];
    struct fl_wire_central settings = {0};

    if (buf->len == 0) {
        fl_central_drop(c, edge);
    } else {
        ck_assert_int_eq(fl_wire_central_decode(buf->data, buf->len, &settings, NULL), FL_OK);
        ck_assert_int_eq(fl_central_put(c, edge, &settings), FL_OK);
    }
    fl_buf_done(buf);
    return fl_central_text(fl_central_find(c, edge), FL_CENTRAL_CONNECTED, text);
}

static const char *label(struct fl_central *c, struct fl_pair *set, char **removed, size_t n)
{
    const struct fl_wire_label_client change = {edge, set, set != NULL ? 1 : 0, removed, n};
    struct fl_buf buf;

    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    ck_assert_int_eq(fl_central_label(c, &change, 5000, &buf, NULL), FL_OK);
    return take(c, &buf);
}

static const char *schedule(struct fl_central *c, char **hours, size_t n)
{
    const struct fl_wire_schedule_client change = {edge, hours, n};
    struct fl_buf buf;

    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    ck_assert_int_eq(fl_central_schedule(c, &change, 5000, &buf, NULL), FL_OK);
    return take(c, &buf);
}

#define SENT " (sent, carried out when it takes part in no round)"

TEST(labels_and_hours_are_changed_apart_and_each_change_has_a_new_revision)
{
    struct fl_central c = {.n = 0};
    struct fl_pair in_north = {site, north}, in_rack = {rack, seven};
    char *hours[] = {night}, *gone[] = {site, other};

    ck_assert_str_eq(label(&c, &in_north, NULL, 0), "labels site=north" SENT);
    ck_assert_uint_eq(fl_central_find(&c, edge)->settings.revision, 5000);
    ck_assert_str_eq(schedule(&c, hours, 1), "labels site=north; hours 22:00-06:00" SENT);
    ck_assert_uint_eq(fl_central_find(&c, edge)->settings.revision, 5001);
    ck_assert_str_eq(label(&c, &in_rack, NULL, 0),
                     "labels site=north, rack=7; hours 22:00-06:00" SENT);
    in_rack.key = site; /* the value of a key is replaced */
    ck_assert_str_eq(label(&c, &in_rack, NULL, 0), "labels rack=7, site=7; hours 22:00-06:00" SENT);
    ck_assert_str_eq(label(&c, NULL, gone, 2), "labels rack=7; hours 22:00-06:00" SENT);
    gone[0] = rack;
    ck_assert_str_eq(label(&c, NULL, gone, 1), "hours 22:00-06:00" SENT);
    ck_assert_str_eq(schedule(&c, NULL, 0), "");
    ck_assert_ptr_null(fl_central_find(&c, edge));
    ck_assert_str_eq(label(&c, &in_north, NULL, 0), "labels site=north" SENT);
    ck_assert_uint_gt(fl_central_find(&c, edge)->settings.revision, 5005); /* never one of before */
    fl_central_done(&c);
}

TEST(what_the_client_answered_is_part_of_the_text)
{
    struct fl_central c = {.n = 0};
    struct fl_pair in_north = {site, north};
    struct fl_central_entry *entry;
    char text[FL_CENTRAL_TEXT];

    (void)label(&c, &in_north, NULL, 0);
    entry = fl_central_find(&c, edge);
    ck_assert_str_eq(fl_central_text(entry, FL_CENTRAL_DISCONNECTED, text),
                     "labels site=north (sent when it connects)");
    ck_assert_str_eq(fl_central_text(entry, FL_CENTRAL_UNAWARE, text),
                     "labels site=north (not accepted: the version of the client is too old for "
                     "them)");
    entry->answered = entry->settings.revision;
    ck_assert_str_eq(fl_central_text(entry, FL_CENTRAL_DISCONNECTED, text),
                     "labels site=north (in force)");
    (void)snprintf(entry->refused, sizeof(entry->refused), "labels (why)");
    ck_assert_str_eq(fl_central_text(entry, FL_CENTRAL_CONNECTED, text),
                     "labels site=north (not accepted: labels (why))");
    entry->answered--; /* an answer to settings of before says nothing */
    ck_assert_str_eq(fl_central_text(entry, FL_CENTRAL_CONNECTED, text), "labels site=north" SENT);
    fl_central_done(&c);
}

TEST(settings_that_cannot_be_are_refused)
{
    static char large[FL_WIRE_MAX_TEXT + 1], larger[FL_WIRE_MAX_TEXT + 1], none[] = "";
    struct fl_pair pairs[] = {{site, large}, {rack, larger}};
    struct fl_wire_label_client label_change = {edge, pairs, 2, NULL, 0};
    char *hours[] = {north};
    struct fl_wire_schedule_client hours_change = {edge, hours, 1};
    struct fl_central c = {.n = 0};
    struct fl_err err = {0};
    struct fl_buf buf;

    (void)memset(large, 'x', FL_WIRE_MAX_TEXT);
    (void)memset(larger, 'y', FL_WIRE_MAX_TEXT);
    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    ck_assert_int_eq(fl_central_label(&c, &label_change, 1, &buf, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "expected at most 2048 bytes of labels"));
    pairs[0] = (struct fl_pair){none, north};
    label_change.n_set = 1;
    ck_assert_int_eq(fl_central_label(&c, &label_change, 1, &buf, &err), FL_EINVAL);
    ck_assert_int_eq(fl_central_schedule(&c, &hours_change, 1, &buf, &err), FL_EINVAL);
    ck_assert_uint_eq(buf.len, 0);
    fl_buf_done(&buf);
}

TEST(clients_are_found_by_name_in_any_order_of_their_arrival)
{
    struct fl_central c = {.n = 0};
    char name[FL_NAME_MAX];
    unsigned i;

    for (i = 0; i < 100; i++) {
        struct fl_wire_central settings = {.revision = i + 1};

        (void)snprintf(name, sizeof(name), "c%u", (i * 37) % 100);
        ck_assert_int_eq(fl_central_put(&c, name, &settings), FL_OK);
    }
    for (i = 0; i < 100; i += 2) {
        (void)snprintf(name, sizeof(name), "c%u", (i * 37) % 100);
        fl_central_drop(&c, name);
        fl_central_drop(&c, name);
    }
    ck_assert_uint_eq(c.n, 50);
    for (i = 0; i < 100; i++) {
        const struct fl_central_entry *entry;

        (void)snprintf(name, sizeof(name), "c%u", (i * 37) % 100);
        entry = fl_central_find(&c, name);
        ck_assert((entry == NULL) == (i % 2 == 0));
        ck_assert(entry == NULL || entry->settings.revision == i + 1);
    }
    fl_central_done(&c);
}

TEST(limits_are_changed_one_by_one_beside_labels_and_hours)
{
    static char rate[] = "upload_rate", mbit[] = "1 Mbit/s", rounds[] = "rounds_per_day",
                four[] = "4", many[] = "many";
    struct fl_pair pairs[] = {{rate, mbit}, {rounds, four}}, in_north = {site, north};
    char *removed[] = {rate};
    struct fl_wire_limit_client change = {edge, pairs, 2, NULL, 0};
    struct fl_wire_central settings = {0};
    struct fl_central c = {.n = 0};
    char text[FL_CENTRAL_TEXT];
    struct fl_err err = {0};
    struct fl_buf buf;

    (void)label(&c, &in_north, NULL, 0);
    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    ck_assert_int_eq(fl_central_limit(&c, &change, 9000, &buf, &err), FL_OK);
    ck_assert_int_eq(fl_wire_central_decode(buf.data, buf.len, &settings, NULL), FL_OK);
    ck_assert_int_eq(fl_central_put(&c, edge, &settings), FL_OK);
    ck_assert_str_eq(fl_central_text(fl_central_find(&c, edge), FL_CENTRAL_CONNECTED, text),
                     "labels site=north; limits upload_rate=1 Mbit/s, rounds_per_day=4" SENT);
    buf.len = 0;
    change = (struct fl_wire_limit_client){edge, NULL, 0, removed, 1};
    ck_assert_int_eq(fl_central_limit(&c, &change, 9000, &buf, &err), FL_OK);
    ck_assert_int_eq(fl_wire_central_decode(buf.data, buf.len, &settings, NULL), FL_OK);
    ck_assert_int_eq(fl_central_put(&c, edge, &settings), FL_OK);
    ck_assert_str_eq(fl_central_text(fl_central_find(&c, edge), FL_CENTRAL_CONNECTED, text),
                     "labels site=north; limits rounds_per_day=4" SENT);
    pairs[1].value = many;
    change = (struct fl_wire_limit_client){edge, pairs, 2, NULL, 0};
    ck_assert_int_eq(fl_central_limit(&c, &change, 9000, &buf, &err), FL_EINVAL);
    ck_assert_str_eq(err.msg,
                     "'rounds_per_day': expected a number of rounds from 1 on, found 'many'");
    fl_buf_done(&buf);
    fl_central_done(&c);
}
