/* summary.json of a trial, and its line in results.csv. */

#include <inttypes.h>
#include <string.h>

#include "libfl/json/json.h"
#include "tools/fl_sim/results/results_impl.h"

#define SUMMARY_MAX ((size_t)1 << 20)
#define NAME_MAX    256

static const char *const how_names[] = {
    [FL_TRIAL_DONE] = "done", [FL_TRIAL_STOPPED] = "stopped", [FL_TRIAL_DIVERGED] = "diverged"};

const char *fl_trial_how_text(enum fl_trial_how how)
{
    return how_names[how];
}

/* With all keys, so that all trials have the same columns. */
static json_t *summary_costs_json(const struct fl_spent *s)
{
    json_t *object = json_object();
    bool known = s->round > 0;

    (void)json_object_set_new(object, "round", known ? fl_json_whole(s->round) : json_null());
    (void)json_object_set_new(object, "time_us", known ? fl_json_whole(s->time_us) : json_null());
    (void)json_object_set_new(object, "uplink_bytes",
                              known ? fl_json_whole(s->uplink_bytes) : json_null());
    (void)json_object_set_new(object, "bytes_up", known ? fl_json_whole(s->bytes_up) : json_null());
    (void)json_object_set_new(object, "bytes_down",
                              known ? fl_json_whole(s->bytes_down) : json_null());
    (void)json_object_set_new(object, "full_models", fl_json_real(s->full_models, known));
    return object;
}

static json_t *summary_trajectory_json(const struct fl_trajectory *c)
{
    json_t *object = json_object();
    json_t *reached = json_object();
    char name[16];
    size_t i;

    for (i = 0; i < c->n_targets; i++) {
        (void)snprintf(name, sizeof(name), "%g", c->targets[i]);
        (void)json_object_set_new(reached, name, summary_costs_json(&c->reached[i]));
    }
    (void)json_object_set_new(object, "best", fl_json_real(c->best, c->known));
    (void)json_object_set_new(object, "best_round",
                              c->known ? fl_json_whole(c->best_round) : json_null());
    (void)json_object_set_new(object, "last", fl_json_real(c->last, c->known));
    (void)json_object_set_new(object, "last_round",
                              c->known ? fl_json_whole(c->last_round) : json_null());
    (void)json_object_set_new(object, "reached", reached);
    return object;
}

static json_t *summary_json(const struct fl_summary *s, const struct fl_trial_end *end)
{
    json_t *object = json_object();
    json_t *totals = json_object();
    bool diverged = end->how == FL_TRIAL_DIVERGED;

    fl_json_figures(totals, &fl_round_rows, &s->totals.record, /* totals= */ false);
    fl_json_figures(totals, &fl_sim_round_rows, &s->totals.sim, /* totals= */ false);
    (void)json_object_set_new(object, "point", json_string(s->point));
    (void)json_object_set_new(object, "label", json_string(s->label));
    (void)json_object_set_new(object, "seed", fl_json_whole(s->seed));
    (void)json_object_set_new(object, "ended", json_string(fl_trial_how_text(end->how)));
    (void)json_object_set_new(object, "diverged_round",
                              diverged ? fl_json_whole(end->round) : json_null());
    (void)json_object_set_new(object, "reason",
                              end->reason != NULL ? json_string(end->reason) : json_null());
    (void)json_object_set_new(object, "rounds", fl_json_whole(s->rounds));
    (void)json_object_set_new(object, "accuracy", summary_trajectory_json(&s->accuracy));
    (void)json_object_set_new(object, "personal_accuracy", summary_trajectory_json(&s->personal));
    (void)json_object_set_new(object, "totals", totals);
    return object;
}

int fl_summary_write(const char *path, const struct fl_summary *summary,
                     const struct fl_trial_end *end, struct fl_err *err)
{
    json_t *object = summary_json(summary, end);
    int rv = fl_results_write_json(path, object, SUMMARY_MAX, err);

    json_decref(object);
    return rv;
}

/* Nested members become columns "accuracy.reached.0.9.round". */
static void summary_add_cells(struct fl_writer *w, const json_t *object, const char *prefix,
                              bool head, bool *first)
{
    char number[FL_JSON_EXACT];
    void *it = json_object_iter((json_t *)(uintptr_t)object);

    for (; it != NULL; it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        const json_t *value = json_object_iter_value(it);
        char name[NAME_MAX];

        (void)snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "",
                       json_object_iter_key(it));
        if (json_is_object(value) && strlen(name) == NAME_MAX - 1) {
            /* Nesting is limited by summary_json(), so the name fits. */
            fl_writer_note(w, FL_ELIMIT);
            return;
        }
        if (json_is_object(value)) {
            summary_add_cells(w, value, name, head, first);
            continue;
        }
        fl_writer_printf(w, "%s", *first ? "" : ",");
        *first = false;
        if (head) {
            fl_csv_add(w, name);
        } else {
            if (json_is_string(value)) {
                fl_csv_add(w, json_string_value(value));
            } else if (json_is_integer(value)) {
                fl_writer_printf(w, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
            } else if (json_is_real(value)) {
                fl_writer_printf(w, "%s", fl_json_exact(json_real_value(value), number));
            }
        }
    }
}

int fl_summary_csv(struct fl_buf *out, const json_t *summary)
{
    struct fl_writer w = {.out = out};
    bool first = true;

    if (out->len == 0) {
        summary_add_cells(&w, summary, "", /* head= */ true, &first);
        fl_writer_printf(&w, "\n");
        first = true;
    }
    summary_add_cells(&w, summary, "", /* head= */ false, &first);
    fl_writer_printf(&w, "\n");
    return w.code;
}
