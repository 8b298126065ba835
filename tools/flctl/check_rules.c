/*
 * The rules of `flctl check`. Pure: it neither asks the server nor prints.
 */

#include "tools/flctl/check_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/quantity.h"
#include "libfl/base/str.h"

/* Rounds of seconds are no reason for an alarm after ten seconds. */
#define USUAL_MIN_MS 60000
#define ROUNDS_MAX   64
#define BOUND_TEXT   64

#define CHECK_ROW(id, name_, kind_, side_, warning_, critical_, meaning_) \
    [FL_CHECK_##id] = {.name = (name_),                                   \
                       .kind = FL_CHECK_##kind_,                          \
                       .side = FL_CHECK_##side_,                          \
                       .warning = (warning_),                             \
                       .critical = (critical_),                           \
                       .meaning = (meaning_)},

const struct fl_check_measure fl_check_measures[FL_CHECK_N] = {FL_CHECK_MEASURES(CHECK_ROW)};

/* --- bounds --- */

/* A number with the letter or sign of its kind, which may be left out. */
static int check_number(const char *text, char sign, double *ret)
{
    char number[BOUND_TEXT];
    size_t n = strlen(text);

    if (n > 0 && sign != '\0' && text[n - 1] == sign) {
        n--;
    }
    if (n >= sizeof(number)) {
        return FL_EINVAL;
    }
    (void)memcpy(number, text, n);
    number[n] = '\0';
    if (fl_str_to_double(number, ret) != FL_OK || !(*ret >= 0.0) || !isfinite(*ret)) {
        return FL_EINVAL;
    }
    return FL_OK;
}

static int check_bound(const struct fl_check_measure *m, const char *text, double *ret,
                       struct fl_err *err)
{
    static const char *const expected[] = {[FL_CHECK_SPAN] = "a duration such as 2h",
                                           [FL_CHECK_TIMES] = "a factor such as 3x",
                                           [FL_CHECK_COUNT] = "a number",
                                           [FL_CHECK_PERCENT] = "a percentage such as 20%"};
    static const char signs[] = {[FL_CHECK_SPAN] = '\0',
                                 [FL_CHECK_TIMES] = 'x',
                                 [FL_CHECK_COUNT] = '\0',
                                 [FL_CHECK_PERCENT] = '%'};
    struct fl_err ignored = {0};
    int rv;

    if (strcmp(text, "off") == 0) {
        *ret = (double)NAN;
        return FL_OK;
    }
    if (m->kind == FL_CHECK_SPAN) {
        rv = fl_quantity_parse(FL_QUANTITY_TIME, text, ret, &ignored);
        *ret /= 1e6;
    } else {
        rv = check_number(text, signs[m->kind], ret);
    }
    return rv == FL_OK ? FL_OK
                       : fl_err_set(err, FL_EINVAL, "%s: expected %s or off, found '%s'", m->name,
                                    expected[m->kind], text);
}

static int check_find(const char *name, enum fl_check_id *ret, struct fl_err *err)
{
    char names[256] = "";
    size_t used = 0;
    int i;

    for (i = 0; i < FL_CHECK_N; i++) {
        if (strcmp(fl_check_measures[i].name, name) == 0) {
            *ret = (enum fl_check_id)i;
            return FL_OK;
        }
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "",
                                 fl_check_measures[i].name);
    }
    return fl_err_set(err, FL_EINVAL, "unknown measure '%s', expected one of %s", name, names);
}

int fl_check_read(const char *text, struct fl_check_values *bounds, struct fl_err *err)
{
    while (*text != '\0') {
        char word[BOUND_TEXT];
        size_t n = strcspn(text, ",");
        char *value;
        enum fl_check_id id = FL_CHECK_N;
        int rv;

        if (n >= sizeof(word)) {
            return fl_err_set(err, FL_EINVAL, "expected NAME=VALUE, found '%s'", text);
        }
        (void)memcpy(word, text, n);
        word[n] = '\0';
        value = strchr(word, '=');
        if (value == NULL) {
            return fl_err_set(err, FL_EINVAL, "expected NAME=VALUE, found '%s'", word);
        }
        *value++ = '\0';
        rv = check_find(word, &id, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = check_bound(&fl_check_measures[id], value, &bounds->of[id], err);
        if (rv != FL_OK) {
            return rv;
        }
        text += n;
        text += *text == ',';
    }
    return FL_OK;
}

void fl_check_defaults(struct fl_check_values *warning, struct fl_check_values *critical)
{
    struct fl_err err = {0};
    int i;

    for (i = 0; i < FL_CHECK_N; i++) {
        const struct fl_check_measure *m = &fl_check_measures[i];
        const char *w = m->warning != NULL ? m->warning : "off";
        const char *c = m->critical != NULL ? m->critical : "off";

        FL_REQUIRE(check_bound(m, w, &warning->of[i], &err) == FL_OK &&
                   check_bound(m, c, &critical->of[i], &err) == FL_OK);
    }
}

/* --- measures --- */

static int check_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

uint64_t fl_check_usual_ms(const struct fl_wire_round *rounds, size_t n)
{
    uint64_t spans[ROUNDS_MAX];
    size_t found = 0;
    size_t i;

    for (i = 1; i < n && found < ROUNDS_MAX; i++) {
        uint64_t before = rounds[i - 1].figures.ended_ms;
        uint64_t after = rounds[i].figures.ended_ms;

        if (after >= before) { /* The clock was not set back. */
            spans[found++] = after - before;
        }
    }
    if (found == 0) {
        return 0;
    }
    qsort(spans, found, sizeof(spans[0]), check_compare);
    return spans[found / 2];
}

bool fl_check_is_missing(const struct fl_wire_client *client)
{
    return !client->connected && strcmp(client->state, "gone") != 0;
}

static double share_percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : (double)NAN;
}

/* Does the server start rounds? No round is late while it is paused, or when all are done. */
static bool check_works(const struct fl_wire_status *s)
{
    return strcmp(s->phase, "PAUSED") != 0 && strcmp(s->phase, "DRAINING") != 0 &&
           strcmp(s->phase, "STOPPED") != 0;
}

static void measure_rounds(const struct fl_check_seen *seen, struct fl_check_values *ret)
{
    uint64_t usual_ms = fl_check_usual_ms(seen->rounds, seen->n_rounds);
    uint64_t age_ms = seen->status->uptime_ms;

    if (seen->n_rounds > 0) {
        uint64_t ended_ms = seen->rounds[seen->n_rounds - 1].figures.ended_ms;

        age_ms = seen->now_ms > ended_ms ? seen->now_ms - ended_ms : 0;
    }
    if (!check_works(seen->status)) {
        return;
    }
    ret->of[FL_CHECK_AGE] = (double)age_ms / 1e3;
    if (usual_ms > 0) {
        usual_ms = usual_ms > USUAL_MIN_MS ? usual_ms : USUAL_MIN_MS;
        ret->of[FL_CHECK_LATE] = (double)age_ms / (double)usual_ms;
    }
}

void fl_check_measure(const struct fl_check_seen *seen, struct fl_check_values *ret)
{
    const struct fl_wire_status *s = seen->status;
    uint64_t known = 0;
    uint64_t missing = 0;
    uint64_t quarantined = 0;
    size_t i;

    for (i = 0; i < FL_CHECK_N; i++) {
        ret->of[i] = (double)NAN;
    }
    measure_rounds(seen, ret);
    for (i = 0; i < seen->n_clients; i++) {
        const struct fl_wire_client *c = &seen->clients[i];

        missing += fl_check_is_missing(c);
        known += c->connected || fl_check_is_missing(c);
        quarantined += c->quarantine[0] != '\0';
    }
    ret->of[FL_CHECK_FAILED] = (double)s->failed_attempts;
    ret->of[FL_CHECK_PAUSED] = strcmp(s->phase, "PAUSED") == 0 ? 1.0 : 0.0;
    ret->of[FL_CHECK_MISSING] = share_percent(missing, known);
    ret->of[FL_CHECK_QUARANTINED] = (double)quarantined;
    ret->of[FL_CHECK_DISK] = share_percent(s->disk_free_bytes, s->disk_bytes);
    if (s->certificate_ends_ms != 0) {
        ret->of[FL_CHECK_CERTIFICATE] = s->certificate_ends_ms > seen->now_ms
                                            ? (double)(s->certificate_ends_ms - seen->now_ms) / 1e3
                                            : 0.0;
    }
}

/* --- result --- */

static bool check_reaches(const struct fl_check_measure *m, double value, double bound)
{
    return m->side == FL_CHECK_ABOVE ? value >= bound : value <= bound; /* NAN: false */
}

enum fl_check_level fl_check_judge(enum fl_check_id id, const struct fl_check_values *values,
                                   const struct fl_check_values *warning,
                                   const struct fl_check_values *critical)
{
    const struct fl_check_measure *m = &fl_check_measures[id];

    if (check_reaches(m, values->of[id], critical->of[id])) {
        return FL_CHECK_CRITICAL;
    }
    return check_reaches(m, values->of[id], warning->of[id]) ? FL_CHECK_WARNING : FL_CHECK_OK;
}
