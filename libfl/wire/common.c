/*
 * Checks of single fields that several messages have, and the pairs of maps. Pure functions, any
 * thread.
 */
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "fl/v1/identity.pb-c.h"
#include "libfl/wire/row_impl.h"
#include "libfl/wire/wire_admin.h"

int fl__wire_check_reason(const struct fl_pb_at *at, const char *value, struct fl_err *err)
{
    if (strlen(value) > FL_WIRE_MAX_REASON) {
        return fl_pb_refuse(at, err, "more than %d bytes", FL_WIRE_MAX_REASON);
    }
    return fl_pb_check_text(at, value, err);
}

/* The reader judges the content: a client with bad metrics keeps its session. */
int fl__wire_check_metrics(const struct fl_pb_at *at, const char *value, struct fl_err *err)
{
    size_t len = strlen(value);

    return len < FL_EVAL_METRICS_TEXT
               ? FL_OK
               : fl_pb_refuse(at, err, "%zu bytes of metrics, at most %d are taken", len,
                              FL_EVAL_METRICS_TEXT - 1);
}

/* --- pairs --- */

static int check_label(const struct fl_pb_at *at, const char *value, struct fl_err *err)
{
    return value[0] != '\0' ? fl_pb_check_text(at, value, err)
                            : fl_pb_refuse(at, err, "an entry has no key");
}

/* Entries of all map fields are alike; errors are of the map. */
typedef Fl__V1__Labels__LabelsEntry entry;
_Static_assert(sizeof(entry) == sizeof(Fl__V1__Hello__LabelsEntry) &&
                   sizeof(entry) == sizeof(Fl__V1__Component__OptionsEntry) &&
                   offsetof(entry, value) == offsetof(Fl__V1__Hello__LabelsEntry, value) &&
                   offsetof(entry, value) == offsetof(Fl__V1__Component__OptionsEntry, value),
               "one table for all entries");

#define FL__ROW_LABEL(m, f, ...) \
    FL__ONE(FL_PB_TEXT, m, f, char *, .check = check_label, __VA_ARGS__)
#define FL_WIRE_ROWS_label(X) \
    X(LABEL, key, key, .hidden = true) X(TEXT, value, value, .hidden = true)
#define FL_WIRE_ROWS_option(X) \
    X(NAME, key, key, .hidden = true) X(TEXT, value, value, .raw = true, .hidden = true)
/* Rooms without messages have labels too, so the struct is theirs (libfl/base/match.h). */
#define fl_wire_pair fl_pair
FL__WIRE_TABLE(label, pair, Labels__LabelsEntry, labels__labels_entry, .max = 0)
FL__WIRE_TABLE(option, pair, Labels__LabelsEntry, labels__labels_entry, .max = 0)

const struct fl_pb_message *fl__wire_label_type(void)
{
    return label_type();
}

const struct fl_pb_message *fl__wire_option_type(void)
{
    return option_type();
}
