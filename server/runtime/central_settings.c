/* Central settings of clients in memory (central_settings.h): what each change makes of them, and
   the text about them. Pure, without disk and network (runtime_central.c). */
#include "server/runtime/central_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/device_limits.h"
#include "libfl/base/grow.h"

/* Index of `name`, or where to insert it. */
static size_t central_position(const struct fl_central *c, const char *name)
{
    size_t low = 0;
    size_t high = c->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (strcmp(c->list[mid].name, name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

struct fl_central_entry *fl_central_find(const struct fl_central *c, const char *name)
{
    size_t at = central_position(c, name);

    return at < c->n && strcmp(c->list[at].name, name) == 0 ? &c->list[at] : NULL;
}

int fl_central_put(struct fl_central *c, const char *name, struct fl_wire_central *settings)
{
    struct fl_central_entry *entry = fl_central_find(c, name);
    size_t at;
    int rv;

    if (entry == NULL) {
        rv = fl_grow(&c->list, &c->cap, c->n, sizeof(*c->list));
        if (rv != FL_OK) {
            return rv;
        }
        at = central_position(c, name);
        entry = &c->list[at];
        (void)memmove(entry + 1, entry, (c->n - at) * sizeof(*entry));
        c->n++;
        *entry = (struct fl_central_entry){.answered = 0};
        (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
    }
    fl_wire_central_done(&entry->settings);
    entry->settings = *settings;
    *settings = (struct fl_wire_central){0};
    c->newest = entry->settings.revision > c->newest ? entry->settings.revision : c->newest;
    return FL_OK;
}

void fl_central_drop(struct fl_central *c, const char *name)
{
    struct fl_central_entry *entry = fl_central_find(c, name);

    if (entry != NULL) {
        fl_wire_central_done(&entry->settings);
        c->n--;
        (void)memmove(entry, entry + 1, (size_t)(&c->list[c->n] - entry) * sizeof(*entry));
    }
}

void fl_central_done(struct fl_central *c)
{
    size_t i;

    for (i = 0; i < c->n; i++) {
        fl_wire_central_done(&c->list[i].settings);
    }
    free(c->list);
    *c = (struct fl_central){0};
}

/* --- changes --- */

/* A change of labels or limits: `set` replaces those of its keys. */
struct central_change {
    const struct fl_pair *set;
    size_t n_set;
    char *const *removed;
    size_t n_removed;
};

static bool central_is_removed(const struct central_change *change, const char *key)
{
    size_t i = 0;

    while (i < change->n_removed && strcmp(change->removed[i], key) != 0) {
        i++;
    }
    return i < change->n_removed || fl_pairs_find(change->set, change->n_set, key) != NULL;
}

/* Borrowed texts in `out`, which has room for both; returns their number. */
static size_t central_changed(const struct fl_pair *before, size_t n_before,
                              const struct central_change *change, struct fl_pair *out)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < n_before; i++) {
        if (!central_is_removed(change, before[i].key)) {
            out[n++] = before[i];
        }
    }
    for (i = 0; i < change->n_set; i++) {
        out[n++] = change->set[i];
    }
    return n;
}

static int central_check_labels(const struct fl_wire_central *settings, struct fl_err *err)
{
    size_t bytes = 0;
    size_t i;

    for (i = 0; i < settings->n_labels; i++) {
        if (settings->labels[i].key[0] == '\0') {
            return fl_err_set(err, FL_EINVAL, "a label without a key");
        }
        bytes += strlen(settings->labels[i].key) + strlen(settings->labels[i].value) + 2;
    }
    if (bytes > FL_WIRE_LABELS_BYTES) {
        return fl_err_set(err, FL_EINVAL,
                          "expected at most %d bytes of labels, each key and value counted with "
                          "one byte more, found %zu",
                          FL_WIRE_LABELS_BYTES, bytes);
    }
    return FL_OK;
}

static int central_encode(const struct fl_central *c, struct fl_wire_central *settings,
                          uint64_t wall_ms, struct fl_buf *out)
{
    if (settings->n_labels == 0 && settings->n_hours == 0 && settings->n_limits == 0) {
        return FL_OK;
    }
    settings->revision = wall_ms > c->newest ? wall_ms : c->newest + 1;
    return fl_wire_central_encode(settings, out);
}

/* A copy that borrows everything; empty without an entry. */
static struct fl_wire_central central_now(const struct fl_central *c, const char *client)
{
    const struct fl_central_entry *entry = fl_central_find(c, client);

    return entry != NULL ? entry->settings : (struct fl_wire_central){0};
}

int fl_central_label(const struct fl_central *c, const struct fl_wire_label_client *change,
                     uint64_t wall_ms, struct fl_buf *out, struct fl_err *err)
{
    const struct central_change pairs = {change->set, change->n_set, change->removed,
                                         change->n_removed};
    struct fl_wire_central settings = central_now(c, change->client);
    struct fl_pair labels[2 * FL_WIRE_MAX_PAIRS];
    int rv;

    settings.n_labels = central_changed(settings.labels, settings.n_labels, &pairs, labels);
    settings.labels = labels;
    if (settings.n_labels > FL_WIRE_MAX_PAIRS) {
        return fl_err_set(err, FL_EINVAL, "expected at most %d labels, found %zu",
                          FL_WIRE_MAX_PAIRS, settings.n_labels);
    }
    rv = central_check_labels(&settings, err);
    if (rv != FL_OK) {
        return rv;
    }
    return central_encode(c, &settings, wall_ms, out);
}

int fl_central_schedule(const struct fl_central *c, const struct fl_wire_schedule_client *change,
                        uint64_t wall_ms, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_central settings = central_now(c, change->client);
    struct fl_hours hours;
    size_t i;

    for (i = 0; i < change->n_hours; i++) {
        int rv = fl_hours_read(change->hours[i], &hours, err);

        if (rv != FL_OK) {
            return rv;
        }
    }
    settings.hours = change->hours;
    settings.n_hours = change->n_hours;
    return central_encode(c, &settings, wall_ms, out);
}

int fl_central_limit(const struct fl_central *c, const struct fl_wire_limit_client *change,
                     uint64_t wall_ms, struct fl_buf *out, struct fl_err *err)
{
    const struct central_change pairs = {change->set, change->n_set, change->removed,
                                         change->n_removed};
    struct fl_wire_central settings = central_now(c, change->client);
    struct fl_pair limits[2 * FL_WIRE_MAX_PAIRS];
    struct fl_device_limits read;
    int rv = fl_device_limits_read(change->set, change->n_set, &read, err);

    if (rv != FL_OK) {
        return rv;
    }
    settings.n_limits = central_changed(settings.limits, settings.n_limits, &pairs, limits);
    settings.limits = limits;
    return central_encode(c, &settings, wall_ms, out);
}

/* --- text --- */

FL_PRINTF(3, 4)
static void central_add(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(out + used, size - used, fmt, ap);
    va_end(ap);
}

static void central_add_pairs(char *out, size_t size, const char *what, const struct fl_pair *pairs,
                              size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (i == 0) {
            central_add(out, size, "%s%s ", out[0] != '\0' ? "; " : "", what);
        }
        central_add(out, size, "%s%s=%s", i == 0 ? "" : ", ", pairs[i].key, pairs[i].value);
    }
}

static const char *central_state(const struct fl_central_entry *entry, enum fl_central_reach reach)
{
    bool answered = entry->answered == entry->settings.revision;

    return answered && entry->refused[0] == '\0' ? "in force"
           : answered                            ? "not accepted: "
           : reach == FL_CENTRAL_DISCONNECTED    ? "sent when it connects"
           : reach == FL_CENTRAL_UNAWARE
               ? "not accepted: the version of the client is too old for them"
               : "sent, carried out when it takes part in no round";
}

const char *fl_central_text(const struct fl_central_entry *entry, enum fl_central_reach reach,
                            char out[FL_CENTRAL_TEXT])
{
    /* Room for the state behind the settings. */
    const size_t size = FL_CENTRAL_TEXT - FL_CENTRAL_REFUSED - 64;
    const struct fl_wire_central *s;
    const char *state;
    size_t i;

    out[0] = '\0';
    if (entry == NULL) {
        return out;
    }
    s = &entry->settings;
    central_add_pairs(out, size, "labels", s->labels, s->n_labels);
    for (i = 0; i < s->n_hours; i++) {
        central_add(out, size, "%s%s",
                    i > 0            ? ", "
                    : out[0] != '\0' ? "; hours "
                                     : "hours ",
                    s->hours[i]);
    }
    central_add_pairs(out, size, "limits", s->limits, s->n_limits);
    state = central_state(entry, reach);
    central_add(out, FL_CENTRAL_TEXT, " (%s%s)", state,
                state[strlen(state) - 1] == ' ' ? entry->refused : "");
    return out;
}
