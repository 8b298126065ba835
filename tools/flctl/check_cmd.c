/*
 * `flctl check`: asks the server, compares with the bounds (check_rules.c) and prints one result
 * for a monitoring system: a line of a Nagios plugin, JSON, or a text file of Prometheus. Main
 * thread.
 */

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "libfl/json/json.h"
#include "tools/flctl/check_rules.h"
#include "tools/flctl/look.h"

/* As many rounds as `flctl rounds` lists. */
#define CHECK_ROUNDS 20
/* Clients whose names the line of a plugin lists. */
#define CHECK_NAMES 5
/* Shorter than the patience of a monitoring system with its plugins. */
#define CHECK_CALL_MS 9000
#define CHECK_TEXT    4096

enum check_format { CHECK_NAGIOS, CHECK_JSON, CHECK_PROMETHEUS };

static const char *const check_formats[] = {
    [CHECK_NAGIOS] = "nagios", [CHECK_JSON] = "json", [CHECK_PROMETHEUS] = "prometheus"};
static const char *const check_levels[] = {[FL_CHECK_OK] = "ok",
                                           [FL_CHECK_WARNING] = "warning",
                                           [FL_CHECK_CRITICAL] = "critical",
                                           [FL_CHECK_UNKNOWN] = "unknown"};

struct check {
    enum check_format format;
    struct fl_check_values warning, critical, values;
    struct fl_ctl_look look;
    enum fl_check_level levels[FL_CHECK_N];
    enum fl_check_level level; /* the worst */
    struct fl_err err;         /* why nothing was measured */
};

/* --- text --- */

/* What a value is measured in, for each output. */
static const char *unit_sign(const struct fl_check_measure *m)
{
    return m->kind == FL_CHECK_SPAN ? "s" : m->kind == FL_CHECK_PERCENT ? "%" : "";
}

static const char *unit_word(const struct fl_check_measure *m)
{
    static const char *const words[] = {[FL_CHECK_SPAN] = "seconds",
                                        [FL_CHECK_TIMES] = "ratio",
                                        [FL_CHECK_COUNT] = "count",
                                        [FL_CHECK_PERCENT] = "percent"};

    return words[m->kind];
}

/* Seconds and counts without decimals. */
static const char *value_text(const struct fl_check_measure *m, double value, char out[32])
{
    bool whole = m->kind == FL_CHECK_SPAN || m->kind == FL_CHECK_COUNT;

    (void)snprintf(out, 32, "%.*f", whole ? 0 : 2, value);
    return out;
}

FL_PRINTF(3, 4) static void text_add(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(out + used, size - used, fmt, ap);
    va_end(ap);
}

static void add_missing_names(const struct fl_ctl_look *look, char *out, size_t size)
{
    size_t missing = 0;
    size_t i;

    for (i = 0; i < look->n_clients; i++) {
        if (!fl_check_is_missing(&look->clients[i])) {
            continue;
        }
        if (missing < CHECK_NAMES) {
            text_add(out, size, "%s%s", missing == 0 ? ": " : ", ", look->clients[i].name);
        }
        missing++;
    }
    if (missing > CHECK_NAMES) {
        text_add(out, size, " and %zu more", missing - CHECK_NAMES);
    }
}

/* "missing 33.33% (warning at 20.00%: c1), …; what the server says" */
static void check_text(const struct check *c, char *out, size_t size)
{
    const struct fl_ctl_look *look = &c->look;
    char value[32];
    char bound[32];
    int i;

    out[0] = '\0';
    for (i = 0; i < FL_CHECK_N; i++) {
        const struct fl_check_measure *m = &fl_check_measures[i];
        double limit = c->levels[i] == FL_CHECK_CRITICAL ? c->critical.of[i] : c->warning.of[i];

        if (c->levels[i] == FL_CHECK_OK) {
            continue;
        }
        text_add(out, size, "%s %s%s (%s at %s%s", m->name, value_text(m, c->values.of[i], value),
                 unit_sign(m), check_levels[c->levels[i]], value_text(m, limit, bound),
                 unit_sign(m));
        if (i == FL_CHECK_MISSING) {
            add_missing_names(look, out, size);
        }
        text_add(out, size, "); ");
    }
    text_add(out, size, "%s%s%s", c->err.msg, c->err.msg[0] != '\0' && look->has_status ? "; " : "",
             look->has_status ? look->status.why : "");
    (void)fl_str_clean(out);
}

/* --- Nagios --- */

/* A range of the plugin guidelines: values below LIMIT are bad in "LIMIT:". */
static void print_range(const struct fl_check_measure *m, double bound)
{
    char text[32];

    if (isnan(bound)) {
        (void)printf(";");
        return;
    }
    (void)printf(";%s%s", value_text(m, bound, text), m->side == FL_CHECK_BELOW ? ":" : "");
}

static void check_print_nagios(const struct check *c)
{
    static const char *const words[] = {[FL_CHECK_OK] = "OK",
                                        [FL_CHECK_WARNING] = "WARNING",
                                        [FL_CHECK_CRITICAL] = "CRITICAL",
                                        [FL_CHECK_UNKNOWN] = "UNKNOWN"};
    char text[CHECK_TEXT];
    char *bar;
    bool any = false;
    int i;

    check_text(c, text, sizeof(text));
    while ((bar = strchr(text, '|')) != NULL) { /* What follows one is perfdata. */
        *bar = '/';
    }
    (void)printf("FL %s - %s", words[c->level], text);
    for (i = 0; i < FL_CHECK_N; i++) {
        const struct fl_check_measure *m = &fl_check_measures[i];
        char value[32];

        if (isnan(c->values.of[i])) {
            continue;
        }
        (void)printf("%s%s=%s%s", any ? " " : " | ", m->name, value_text(m, c->values.of[i], value),
                     unit_sign(m));
        print_range(m, c->warning.of[i]);
        print_range(m, c->critical.of[i]);
        (void)printf(";0%s", m->kind == FL_CHECK_PERCENT ? ";100" : "");
        any = true;
    }
    (void)printf("\n");
}

/* --- JSON --- */

static json_t *check_number_json(double value)
{
    return fl_json_real(value, !isnan(value));
}

static void check_print_json(const struct check *c)
{
    const struct fl_ctl_look *look = &c->look;
    json_t *o = json_object();
    json_t *measures = json_array();
    char text[CHECK_TEXT];
    int i;

    check_text(c, text, sizeof(text));
    (void)json_object_set_new(o, "status", json_string(check_levels[c->level]));
    (void)json_object_set_new(o, "code", json_integer(c->level));
    (void)json_object_set_new(o, "text", json_string(text));
    if (look->has_status) {
        (void)json_object_set_new(o, "federation", json_string(look->status.federation));
        (void)json_object_set_new(o, "phase", json_string(look->status.phase));
        (void)json_object_set_new(o, "round", fl_json_whole(look->status.round));
        (void)json_object_set_new(o, "why", json_string(look->status.why));
    }
    for (i = 0; i < FL_CHECK_N; i++) {
        json_t *m = json_object();

        (void)json_object_set_new(m, "name", json_string(fl_check_measures[i].name));
        (void)json_object_set_new(m, "unit", json_string(unit_word(&fl_check_measures[i])));
        (void)json_object_set_new(m, "value", check_number_json(c->values.of[i]));
        (void)json_object_set_new(m, "warning", check_number_json(c->warning.of[i]));
        (void)json_object_set_new(m, "critical", check_number_json(c->critical.of[i]));
        (void)json_object_set_new(m, "status", json_string(check_levels[c->levels[i]]));
        (void)json_array_append_new(measures, m);
    }
    (void)json_object_set_new(o, "measures", measures);
    fl_json_print(o, stdout);
}

/* --- Prometheus --- */

/* The name of a federation as a label; without a status there is none. */
static void print_labels(const struct check *c, const char *name, const char *value)
{
    const char *s = c->look.has_status ? c->look.status.federation : "";
    bool labelled = c->look.has_status || name != NULL;

    (void)printf("%s", labelled ? "{" : "");
    if (c->look.has_status) {
        (void)printf("federation=\"");
        for (; *s != '\0'; s++) {
            (void)printf("%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
        }
        (void)printf("\"%s", name != NULL ? "," : "");
    }
    if (name != NULL) {
        (void)printf("%s=\"%s\"", name, value);
    }
    (void)printf("%s", labelled ? "}" : "");
}

static void check_print_prometheus(const struct check *c)
{
    int i;

    (void)printf("# HELP fl_check_status Result of flctl check: 0 ok, 1 warning, 2 critical, 3 "
                 "unknown.\n# TYPE fl_check_status gauge\nfl_check_status");
    print_labels(c, NULL, NULL);
    (void)printf(" %d\n", (int)c->level);
    if (!c->look.has_status) {
        return;
    }
    (void)printf("# HELP fl_check_measure_status The same for each measure.\n"
                 "# TYPE fl_check_measure_status gauge\n");
    for (i = 0; i < FL_CHECK_N; i++) {
        (void)printf("fl_check_measure_status");
        print_labels(c, "measure", fl_check_measures[i].name);
        (void)printf(" %d\n", (int)c->levels[i]);
    }
    for (i = 0; i < FL_CHECK_N; i++) {
        const struct fl_check_measure *m = &fl_check_measures[i];

        if (isnan(c->values.of[i])) {
            continue;
        }
        (void)printf("# HELP fl_check_%s_%s flctl check: %s.\n# TYPE fl_check_%s_%s gauge\n"
                     "fl_check_%s_%s",
                     m->name, unit_word(m), m->meaning, m->name, unit_word(m), m->name,
                     unit_word(m));
        print_labels(c, NULL, NULL);
        (void)printf(" %.17g\n", c->values.of[i]);
    }
}

/* --- the command --- */

static int check_ask(struct fl_ctl_args *args, struct check *c)
{
    int code = fl_ctl_look_status(args, &c->look, &c->err);

    if (code != FL_CTL_OK) {
        return code;
    }
    code = fl_ctl_look_rounds(args, CHECK_ROUNDS, &c->look, &c->err);
    if (code != FL_CTL_OK) {
        return code;
    }
    return fl_ctl_look_clients(args, &c->look, &c->err);
}

static void check_measure(struct fl_ctl_args *args, struct check *c)
{
    int code = check_ask(args, c);
    const struct fl_check_seen seen = {.status = &c->look.status,
                                       .rounds = c->look.rounds,
                                       .n_rounds = c->look.n_rounds,
                                       .clients = c->look.clients,
                                       .n_clients = c->look.n_clients,
                                       .now_ms = fl_clock_wall_ms()};
    int i;

    if (code != FL_CTL_OK) {
        /*
         * A server that does not run, or answers without its disk only, is what a check is for;
         * anything else says nothing of it.
         */
        c->level =
            code == FL_CTL_NO_SERVER || c->look.has_status ? FL_CHECK_CRITICAL : FL_CHECK_UNKNOWN;
        for (i = 0; i < FL_CHECK_N; i++) {
            c->values.of[i] = (double)NAN;
        }
        return;
    }
    fl_check_measure(&seen, &c->values);
    for (i = 0; i < FL_CHECK_N; i++) {
        c->levels[i] = fl_check_judge((enum fl_check_id)i, &c->values, &c->warning, &c->critical);
        c->level = c->levels[i] > c->level ? c->levels[i] : c->level;
    }
}

static int check_read(const struct fl_ctl_args *args, int n, char **words, struct check *c)
{
    size_t format = 0;
    int rv;

    fl_check_defaults(&c->warning, &c->critical);
    if (n > 1) {
        return fl_err_set(&c->err, FL_EINVAL, "unexpected argument '%s'", words[1]);
    }
    c->format = args->out.json ? CHECK_JSON : CHECK_NAGIOS;
    if (args->format != NULL) {
        while (format < sizeof(check_formats) / sizeof(check_formats[0]) &&
               strcmp(check_formats[format], args->format) != 0)
        {
            format++;
        }
        if (format == sizeof(check_formats) / sizeof(check_formats[0])) {
            return fl_err_set(&c->err, FL_EINVAL,
                              "--format: expected nagios, json or prometheus, found '%s'",
                              args->format);
        }
        c->format = (enum check_format)format;
    }
    rv = args->warn != NULL ? fl_check_read(args->warn, &c->warning, &c->err) : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    return args->critical != NULL ? fl_check_read(args->critical, &c->critical, &c->err) : FL_OK;
}

int fl_ctl_check(struct fl_ctl_args *args, int n, char **words)
{
    struct check c = {.level = FL_CHECK_OK};

    if (check_read(args, n, words, &c) != FL_OK) {
        (void)fprintf(stderr, "flctl: check: %s\n", fl_str_clean(c.err.msg));
        return FL_CHECK_UNKNOWN;
    }
    args->call_ms = CHECK_CALL_MS;
    check_measure(args, &c);
    switch (c.format) {
    case CHECK_NAGIOS:
        check_print_nagios(&c);
        break;
    case CHECK_JSON:
        check_print_json(&c);
        break;
    case CHECK_PROMETHEUS:
        check_print_prometheus(&c);
        break;
    }
    fl_ctl_look_done(&c.look);
    return fflush(stdout) == 0 ? (int)c.level : (int)FL_CHECK_UNKNOWN;
}
