/* Reads clients.jsonl of a trial into clients and participations of the report (report.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "libfl/json/json.h"
#include "tools/fl_sim/results/report_impl.h"
#include "tools/fl_sim/results/result_columns.h"

/* A larger file would take longer to read than the report is worth. */
#define REPORT_CLIENTS_MAX ((size_t)256 << 20)
/* Rounds whose participations are shown. */
#define REPORT_PART_ROUNDS 20
/* Layers of their masks. */
#define REPORT_LAYERS_MAX 256

struct report_client {
    char *name;
    char state[16];
    struct fl_client_figures figures;
    bool attacker, dropped;
};

/* A participation in one of the last rounds. */
struct report_part {
    const struct report_client *client;
    struct fl_sim_client_round round;
    enum fl_sim_fate fate;
    char *asked, *metrics;
};

struct report_reading {
    struct report_client **list; /* by name */
    size_t n, cap;
    struct report_part *parts; /* oldest first */
    size_t n_parts, parts_cap;
    uint64_t rounds, first; /* committed; first one with participations */
    size_t n_layers;
};

/* The place of `name` in the list. */
static size_t report_place(const struct report_reading *r, const char *name)
{
    size_t from = 0;
    size_t to = r->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (strcmp(r->list[middle]->name, name) < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static struct report_client *report_find(struct report_reading *r, const char *name)
{
    size_t at = report_place(r, name);
    struct report_client *c;

    if (at < r->n && strcmp(r->list[at]->name, name) == 0) {
        return r->list[at];
    }
    if (fl_grow(&r->list, &r->cap, r->n, sizeof(struct report_client *)) != FL_OK) {
        return NULL;
    }
    c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->name = fl_str_dup(name);
    }
    if (c == NULL || c->name == NULL) {
        free(c);
        return NULL;
    }
    (void)memmove(r->list + at + 1, r->list + at, (r->n - at) * sizeof(struct report_client *));
    r->list[at] = c;
    r->n++;
    return c;
}

static bool report_is(const char *state, enum fl_sim_fate fate)
{
    return strcmp(state, fl_sim_fate_text(fate)) == 0;
}

static uint64_t report_latest(const struct fl_sim_client_round *round)
{
    const uint64_t at[] = {round->selected_us, round->fetched_us, round->trained_us,
                           round->reported_us, round->pushed_us};
    uint64_t latest = 0;
    size_t i;

    for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        latest = at[i] != FL_FIGURE_NEVER && at[i] > latest ? at[i] : latest;
    }
    return latest;
}

/* Why the update of a client is not in the model. */
static const char *report_fate_text(enum fl_sim_fate fate)
{
    switch (fate) {
    case FL_SIM_FATE_ACCEPTED:
        return "";
    case FL_SIM_FATE_EMPTY:
        return "no layer was asked";
    case FL_SIM_FATE_LATE:
        return "it missed a deadline";
    case FL_SIM_FATE_STOPPED:
        return "enough others were in";
    case FL_SIM_FATE_DROPPED:
        return "it disconnected";
    case FL_SIM_FATE_FAILED:
        return "it reported an error, or its upload failed";
    case FL_SIM_FATE_REJECTED:
        return "its report or update was rejected";
    case FL_SIM_FATE_ABORTED:
        return "the attempt was aborted";
    case FL_SIM_FATE_EVALUATED:
        return "";
    }
    return "";
}

static int report_add_part(struct report_reading *r, const struct report_client *c,
                           const struct fl_sim_client_round *round, const char *asked,
                           const char *metrics)
{
    struct report_part *p;
    int fate = FL_SIM_FATE_ACCEPTED;
    int rv = fl_grow(&r->parts, &r->parts_cap, r->n_parts, sizeof(*r->parts));

    if (rv != FL_OK) {
        return rv;
    }
    while (fate < FL_SIM_FATE_EVALUATED && !report_is(c->state, (enum fl_sim_fate)fate)) {
        fate++;
    }
    p = &r->parts[r->n_parts];
    *p = (struct report_part){.client = c, .round = *round, .fate = (enum fl_sim_fate)fate};
    r->n_parts++;
    p->asked = asked != NULL ? fl_str_dup(asked) : NULL;
    p->metrics = fl_str_dup(metrics);
    return p->metrics != NULL && (asked == NULL || p->asked != NULL) ? FL_OK : FL_ENOMEM;
}

/* It was selected. */
static void report_count(struct report_client *c, const struct fl_sim_client_round *round,
                         const char *state)
{
    c->dropped = report_is(state, FL_SIM_FATE_DROPPED);
    c->figures.samples = round->samples;
    c->figures.n_selected++;
    c->figures.n_accepted +=
        report_is(state, FL_SIM_FATE_ACCEPTED) || report_is(state, FL_SIM_FATE_EMPTY);
    c->figures.n_rejected += report_is(state, FL_SIM_FATE_REJECTED);
    c->figures.n_lost +=
        c->dropped || report_is(state, FL_SIM_FATE_LATE) || report_is(state, FL_SIM_FATE_FAILED);
    c->figures.last_loss = round->train_loss;
    c->figures.last_seen_ms = report_latest(round) / 1000;
}

/* One line; one that is not of fl_row_client_json() is left out. */
static int report_take_line(struct report_reading *r, const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *state = json_string_value(json_object_get(object, "state"));
    struct fl_sim_client_round round;
    char metrics[FL_EVAL_METRICS_TEXT];
    struct report_client *c;
    const char *asked;

    if (name == NULL || state == NULL) {
        return FL_OK;
    }
    fl_sim_client_init(&round);
    fl_json_read_figures(object, &fl_sim_client_rows, &round);
    if (round.round > r->rounds) {
        return FL_OK; /* Of a round that was not committed. */
    }
    c = report_find(r, name);
    if (c == NULL) {
        return FL_ENOMEM;
    }
    (void)snprintf(c->state, sizeof(c->state), "%s", state);
    c->attacker = json_is_true(json_object_get(object, "attacker"));
    if (!report_is(state, FL_SIM_FATE_EVALUATED)) {
        report_count(c, &round, state);
    }
    if (round.round < r->first) {
        return FL_OK;
    }
    asked = json_string_value(json_object_get(object, "asked"));
    if (asked != NULL) {
        size_t len = strlen(asked);

        len = len < REPORT_LAYERS_MAX ? len : REPORT_LAYERS_MAX;
        r->n_layers = len > r->n_layers ? len : r->n_layers;
    }
    fl_json_read_metrics(json_object_get(object, "metrics"), metrics);
    return report_add_part(r, c, &round, asked, metrics);
}

static int report_take_lines(struct report_reading *r, const struct fl_buf *text)
{
    const char *at = (const char *)text->data;
    const char *end = at + text->len;

    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        json_t *object;
        int rv;

        if (stop == NULL) {
            break; /* Of a trial that is unfinished. */
        }
        object = json_loadb(at, (size_t)(stop - at), 0, NULL);
        rv = report_take_line(r, object);
        json_decref(object);
        if (rv != FL_OK) {
            return rv;
        }
        at = stop + 1;
    }
    return FL_OK;
}

/* --- as the page takes it --- */

static int report_name_layers(const struct report_reading *r, const struct fl_report_layers *layers,
                              struct fl__report_clients *ret)
{
    size_t n = layers->n > 0 && layers->n <= REPORT_LAYERS_MAX ? layers->n : r->n_layers;
    size_t i;

    ret->layers = calloc(n + 1, sizeof(*ret->layers));
    if (ret->layers == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        char number[32];

        (void)snprintf(number, sizeof(number), "layer %zu", i + 1);
        ret->layers[i] = fl_str_dup(i < layers->n ? layers->names[i] : number);
        if (ret->layers[i] == NULL) {
            return FL_ENOMEM;
        }
    }
    ret->n_layers = n;
    return FL_OK;
}

/* Takes masks and metrics. The names are those of the list. */
static int report_make_parts(struct report_reading *r, struct fl__report_clients *ret)
{
    size_t i;

    ret->parts = calloc(r->n_parts + 1, sizeof(*ret->parts));
    ret->texts = calloc(2 * r->n_parts + 1, sizeof(*ret->texts));
    if (ret->parts == NULL || ret->texts == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < r->n_parts; i++) {
        struct report_part *p = &r->parts[r->n_parts - 1 - i];

        ret->texts[2 * i] = p->asked;
        ret->texts[2 * i + 1] = p->metrics;
        p->asked = p->metrics = NULL;
        ret->parts[i] =
            (struct fl_page_part){.client = p->client->name,
                                  .round = p->round.round,
                                  .attempt = p->round.attempt,
                                  .state = fl_sim_fate_text(p->fate),
                                  .asked = ret->texts[2 * i],
                                  .bytes_up = p->round.bytes_up,
                                  .bytes_down = p->round.bytes_down,
                                  .train_loss = p->round.train_loss,
                                  .received = {p->round.received_accuracy, p->round.received_loss},
                                  .personal = {p->round.personal_accuracy, p->round.personal_loss},
                                  .metrics = ret->texts[2 * i + 1],
                                  .remark = report_fate_text(p->fate)};
        ret->n_parts++;
    }
    return FL_OK;
}

static int report_make(struct report_reading *r, const struct fl_report_layers *layers,
                       struct fl__report_clients *ret)
{
    static char none[] = "";
    static char attacker[] = "simulated attacker";
    size_t i;
    int rv;

    ret->list = calloc(r->n + 1, sizeof(*ret->list));
    if (ret->list == NULL) {
        return FL_ENOMEM;
    }
    rv = report_make_parts(r, ret);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < r->n; i++) {
        struct report_client *c = r->list[i];

        ret->list[i] = (struct fl_wire_client){.name = c->name,
                                               .agent = none,
                                               .state = fl_str_dup(c->state),
                                               .connected = !c->dropped,
                                               .figures = c->figures,
                                               .last_error = c->attacker ? attacker : none,
                                               .quarantine = none};
        ret->list[i].figures.score = (double)NAN; /* The file has none. */
        c->name = NULL;                           /* Now of the list. */
        ret->n++;
        if (ret->list[i].state == NULL) {
            return FL_ENOMEM;
        }
    }
    return report_name_layers(r, layers, ret);
}

int fl__report_clients_read(const char *path, uint64_t rounds,
                            const struct fl_report_layers *layers, struct fl__report_clients *ret,
                            struct fl_err *err)
{
    struct report_reading r = {.rounds = rounds};
    struct fl_buf text;
    size_t i;
    int rv = fl_fs_exists(path) ? fl_fs_read(path, REPORT_CLIENTS_MAX, &text, err) : FL_ENOENT;

    *ret = (struct fl__report_clients){0};
    if (rv == FL_ENOENT || rv == FL_ELIMIT) {
        return FL_OK;
    }
    if (rv != FL_OK) {
        return rv;
    }
    r.first = rounds > REPORT_PART_ROUNDS ? rounds - REPORT_PART_ROUNDS + 1 : 1;
    rv = report_take_lines(&r, &text);
    fl_buf_done(&text);
    if (rv != FL_OK) {
        goto done;
    }
    rv = report_make(&r, layers, ret);
done:
    for (i = 0; i < r.n; i++) {
        free(r.list[i]->name);
        free(r.list[i]);
    }
    for (i = 0; i < r.n_parts; i++) {
        free(r.parts[i].asked);
        free(r.parts[i].metrics);
    }
    free(r.list);
    free(r.parts);
    if (rv != FL_OK) {
        fl__report_clients_done(ret);
        return fl_err_set(err, rv, "out of memory for the clients of '%s'", path);
    }
    return FL_OK;
}

void fl__report_clients_done(struct fl__report_clients *clients)
{
    size_t i;

    for (i = 0; i < clients->n; i++) {
        free(clients->list[i].name);
        free(clients->list[i].state);
    }
    for (i = 0; clients->layers != NULL && clients->layers[i] != NULL; i++) {
        free(clients->layers[i]);
    }
    for (i = 0; i < clients->n_parts; i++) {
        free(clients->texts[2 * i]);
        free(clients->texts[2 * i + 1]);
    }
    free(clients->parts);
    free(clients->texts);
    free(clients->list);
    free(clients->layers);
    *clients = (struct fl__report_clients){0};
}
