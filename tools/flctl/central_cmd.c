/* Fills the requests of `clients label`, `clients limit` and `clients schedule`, for one client or,
   with a pattern, for each of several (bulk_cmd.c). Main thread. */
#include <stdlib.h>
#include <string.h>

#include "libfl/base/device_limits.h"
#include "libfl/base/hours.h"
#include "libfl/base/str.h"
#include "tools/flctl/flctl.h"

int fl_ctl_hours(struct fl_ctl_args *args, const char *text)
{
    struct fl_ctl_central *c = &args->central;
    struct fl_hours hours;
    struct fl_err err = {0};

    c->has_hours = true;
    if (strcmp(text, "none") == 0) {
        return -1;
    }
    if (fl_hours_read(text, &hours, &err) != FL_OK) {
        (void)fprintf(stderr, "flctl: --hours: %s\n", err.msg);
        return FL_CTL_USAGE;
    }
    if (c->n_hours == FL_HOURS_MAX) {
        (void)fprintf(stderr, "flctl: --hours: at most %d are taken\n", FL_HOURS_MAX);
        return FL_CTL_USAGE;
    }
    c->hours[c->n_hours++] = fl_wire_lend(text);
    return -1;
}

/* "KEY=VALUE", which is split in place, or "KEY-"; `what`: "label" or "limit". */
static int central_word(struct fl_ctl_args *args, const char *what, const char *such, char *word)
{
    struct fl_ctl_central *c = &args->central;
    char *equals = strchr(word, '=');
    size_t len = strlen(word);

    if (equals == word || len < 2 || (equals == NULL && word[len - 1] != '-')) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "expected KEY=VALUE such as %s, or KEY- to remove a %s, found '%s'",
                               such, what, word);
    }
    if (c->n_set + c->n_removed == FL_WIRE_MAX_PAIRS) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "at most %d %ss are taken", FL_WIRE_MAX_PAIRS,
                               what);
    }
    if (equals == NULL) {
        word[len - 1] = '\0';
        c->removed[c->n_removed++] = word;
        return -1;
    }
    *equals = '\0';
    if (fl_pairs_find(c->set, c->n_set, word) != NULL) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "the %s '%s' is set twice", what, word);
    }
    c->set[c->n_set++] = (struct fl_pair){word, equals + 1};
    return -1;
}

int fl_ctl_label_words(struct fl_ctl_args *args, int n, char **words)
{
    int code = -1;
    int i;

    if (n == 0) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "expected labels behind the name: KEY=VALUE, or KEY- to remove one");
    }
    for (i = 0; i < n && code < 0; i++) {
        code = central_word(args, "label", "site=lab-7", words[i]);
    }
    return code;
}

/* The server refuses values that are none. */
static int central_limit_names(struct fl_ctl_args *args)
{
    struct fl_ctl_central *c = &args->central;
    size_t i;

    for (i = 0; i < c->n_set + c->n_removed; i++) {
        const char *key = i < c->n_set ? c->set[i].key : c->removed[i - c->n_set];

        if (!fl_device_limits_has(key)) {
            return fl_ctl_complain(args, FL_CTL_USAGE,
                                   "expected upload_rate, download_rate or rounds_per_day, found "
                                   "'%s'",
                                   key);
        }
    }
    return -1;
}

int fl_ctl_limit_words(struct fl_ctl_args *args, int n, char **words)
{
    int code = -1;
    int i;

    if (n == 0) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "expected limits behind the name: KEY=VALUE, or KEY- to remove one");
    }
    for (i = 0; i < n && code < 0; i++) {
        code = central_word(args, "limit", "upload_rate=1Mbit/s", words[i]);
    }
    return code < 0 ? central_limit_names(args) : code;
}

int fl_ctl_schedule_words(struct fl_ctl_args *args, int n, char **words)
{
    if (n > 0) {
        return fl_ctl_complain(args, FL_CTL_USAGE, "unexpected argument '%s' (see flctl --help)",
                               words[0]);
    }
    if (!args->central.has_hours) {
        return fl_ctl_complain(args, FL_CTL_USAGE,
                               "--hours is required, such as --hours 22:00-06:00 or --hours none");
    }
    return -1;
}

static int central_name(struct fl_ctl_args *args, int n, char **words)
{
    if (n > 0 && fl_name_valid(words[0])) {
        args->name = words[0];
        return -1;
    }
    return fl_ctl_complain(args, FL_CTL_USAGE, "expected the name of a client");
}

static int central_label_args(struct fl_ctl_args *args, int n, char **words)
{
    int code = central_name(args, n, words);

    return code < 0 ? fl_ctl_label_words(args, n - 1, words + 1) : code;
}

static int central_fill_label(struct fl_ctl_args *args, struct fl_buf *request)
{
    struct fl_ctl_central *c = &args->central;
    const struct fl_wire_label_client label = {.client = fl_wire_lend(args->name),
                                               .set = c->set,
                                               .n_set = c->n_set,
                                               .removed = c->removed,
                                               .n_removed = c->n_removed};

    return fl_ctl_encoded(args, fl_wire_label_client_encode(&label, request));
}

const struct fl_ctl_request fl_ctl_request_label = {central_label_args, central_fill_label};

static int central_limit_args(struct fl_ctl_args *args, int n, char **words)
{
    int code = central_name(args, n, words);

    return code < 0 ? fl_ctl_limit_words(args, n - 1, words + 1) : code;
}

static int central_fill_limit(struct fl_ctl_args *args, struct fl_buf *request)
{
    struct fl_ctl_central *c = &args->central;
    const struct fl_wire_limit_client limit = {.client = fl_wire_lend(args->name),
                                               .set = c->set,
                                               .n_set = c->n_set,
                                               .removed = c->removed,
                                               .n_removed = c->n_removed};

    return fl_ctl_encoded(args, fl_wire_limit_client_encode(&limit, request));
}

const struct fl_ctl_request fl_ctl_request_limit = {central_limit_args, central_fill_limit};

static int central_schedule_args(struct fl_ctl_args *args, int n, char **words)
{
    int code = central_name(args, n, words);

    return code < 0 ? fl_ctl_schedule_words(args, n - 1, words + 1) : code;
}

static int central_fill_schedule(struct fl_ctl_args *args, struct fl_buf *request)
{
    const struct fl_wire_schedule_client schedule = {.client = fl_wire_lend(args->name),
                                                     .hours = args->central.hours,
                                                     .n_hours = args->central.n_hours};

    return fl_ctl_encoded(args, fl_wire_schedule_client_encode(&schedule, request));
}

const struct fl_ctl_request fl_ctl_request_schedule = {central_schedule_args,
                                                       central_fill_schedule};
