#include "client/core/central_rules.h"

#include <stdio.h>
#include <string.h>

size_t fl_central_merge(const struct fl_pair *own, size_t n_own, const struct fl_pair *central,
                        size_t n_central, struct fl_pair *out)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < n_own; i++) {
        if (fl_pairs_find(central, n_central, own[i].key) == NULL) {
            out[n++] = own[i];
        }
    }
    for (i = 0; i < n_central; i++) {
        out[n++] = central[i];
    }
    return n;
}

static void central_refuse(struct fl_central_rules *rules, const char *what, const char *why)
{
    size_t used = strlen(rules->refused);

    (void)snprintf(rules->refused + used, sizeof(rules->refused) - used, "%s%s (%s)",
                   used > 0 ? ", " : "", what, why);
}

/* Do the labels that the client would have fit into a Hello? */
static bool central_labels_fit(const struct fl_central_given *given, const struct fl_pair *own,
                               size_t n_own, const struct fl_central_limits *limits)
{
    size_t n = given->n_labels;
    size_t bytes = 0;
    size_t i;

    for (i = 0; i < given->n_labels; i++) {
        bytes += strlen(given->labels[i].key) + strlen(given->labels[i].value) + 2;
    }
    for (i = 0; i < n_own; i++) {
        if (fl_pairs_find(given->labels, given->n_labels, own[i].key) == NULL) {
            bytes += strlen(own[i].key) + strlen(own[i].value) + 2;
            n++;
        }
    }
    return n <= limits->labels && bytes <= limits->bytes;
}

static void central_take_hours(const struct fl_central_given *given, struct fl_central_rules *rules)
{
    size_t i;

    for (i = 0; i < given->n_hours && i < FL_HOURS_MAX; i++) {
        if (fl_hours_read(given->hours[i], &rules->hours[i], NULL) != FL_OK) {
            rules->n_hours = 0; /* Half of a schedule is another schedule. */
            central_refuse(rules, "schedule", "its hours cannot be read");
            return;
        }
        rules->n_hours++;
    }
}

static void central_take_limits(const struct fl_central_given *given,
                                struct fl_central_rules *rules)
{
    if (fl_device_limits_read(given->limits, given->n_limits, &rules->limits, NULL) != FL_OK) {
        central_refuse(rules, "limits", "this client does not know them all, or cannot read them");
        return;
    }
    rules->limited = given->n_limits > 0;
}

void fl_central_decide(const struct fl_central_given *given, const struct fl_central_accept *accept,
                       const struct fl_pair *own, size_t n_own,
                       const struct fl_central_limits *limits, struct fl_central_rules *ret)
{
    *ret = (struct fl_central_rules){.labels = false};
    if (given->n_labels > 0 && !accept->labels) {
        central_refuse(ret, "labels", "the owner's 'accept' does not name them");
    } else if (!central_labels_fit(given, own, n_own, limits)) {
        central_refuse(ret, "labels", "too many or too long with the client's own");
    } else {
        ret->labels = given->n_labels > 0;
    }
    if (given->n_hours > 0 && !accept->schedule) {
        central_refuse(ret, "schedule", "the owner's 'accept' does not name it");
    } else {
        central_take_hours(given, ret);
    }
    if (given->n_limits > 0 && !accept->limits) {
        central_refuse(ret, "limits", "the owner's 'accept' does not name them");
    } else {
        central_take_limits(given, ret);
    }
}
