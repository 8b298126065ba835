/*
 * The report of a client as JSON: one row for each member, from which document and reference follow
 * (client_report.h). Pure.
 */

#include "client/http/client_report.h"
#include "libfl/base/writer.h"
#include "libfl/json/json.h"

struct owner_source {
    const struct fl_owner_facts *facts;
    struct fl_owner_report report;
};

/* --- a task --- */

struct task_member {
    const char *key;
    json_t *(*get)(const struct fl_task_record *r);
    const char *meaning;
};

#define TASK_WHOLE(name, field)                                \
    static json_t *task_##name(const struct fl_task_record *r) \
    {                                                          \
        return fl_json_whole(r->field);                        \
    }

TASK_WHOLE(round, round)
TASK_WHOLE(attempt, attempt)
TASK_WHOLE(began, began_ms)
TASK_WHOLE(down, bytes_down)
TASK_WHOLE(up, bytes_up)
TASK_WHOLE(cpu, cpu_ms)

static json_t *task_kind(const struct fl_task_record *r)
{
    return json_string(r->kind == FL_TASK_EVALUATION ? "evaluate" : "train");
}

static json_t *task_asked(const struct fl_task_record *r)
{
    char asked[FL_OWNER_WORDS];

    return json_string(fl_owner_asked(r, asked));
}

static json_t *task_ended(const struct fl_task_record *r)
{
    return r->ended_ms > 0 ? fl_json_whole(r->ended_ms) : json_null();
}

static json_t *task_layers_asked(const struct fl_task_record *r)
{
    return r->plan == FL_TASK_SOME_LAYERS ? fl_json_whole(r->layers_asked) : json_null();
}

static json_t *task_layers(const struct fl_task_record *r)
{
    return r->plan == FL_TASK_SOME_LAYERS ? fl_json_whole(r->layers) : json_null();
}

static json_t *task_result(const struct fl_task_record *r)
{
    return json_string(fl_owner_result(r));
}

static json_t *task_reason(const struct fl_task_record *r)
{
    return json_string(r->reason);
}

static const struct task_member task_members[] = {
    {"round", task_round, "Round of the federation"},
    {"attempt", task_attempt, "Attempt at it; 0 of an evaluation"},
    {"kind", task_kind, "`train`: train and send a result; `evaluate`: measure the model"},
    {"asked", task_asked, "The same in words, with the layers that the server wants"},
    {"layers_asked", task_layers_asked, "Layers that the server wants; null: all, or not said yet"},
    {"layers", task_layers, "Layers of the model; null with `layers_asked`"},
    {"began_ms", task_began, "When the task came, in ms since 1970"},
    {"ended_ms", task_ended, "When it ended; null: it is unfinished"},
    {"bytes_down", task_down, "Bytes received meanwhile, with framing and TLS"},
    {"bytes_up", task_up, "Bytes sent meanwhile"},
    {"cpu_ms", task_cpu,
     "Processor time of the client and its training program, in ms; processes that the program "
     "started count when they have ended"},
    {"result", task_result,
     "`unfinished` (it runs, or waits for the server), `accepted`, `rejected`, `not needed`, "
     "`failed`, "
     "`replaced` (the server continued with another round), `sent` (of an evaluation)"},
    {"reason", task_reason, "Why it failed or was rejected, else empty"},
};

/* --- the document --- */

struct owner_member {
    const char *key;
    json_t *(*get)(const struct owner_source *s);
    const char *meaning;
};

static json_t *owner_json_client(const struct owner_source *s)
{
    return json_string(s->facts->client);
}

static json_t *owner_json_federation(const struct owner_source *s)
{
    return json_string(s->facts->history.federation);
}

static json_t *owner_json_server(const struct owner_source *s)
{
    return json_string(s->facts->server);
}

static json_t *owner_json_state(const struct owner_source *s)
{
    return json_string(fl_session_state_name(s->facts->state));
}

static json_t *owner_json_now(const struct owner_source *s)
{
    return json_string(s->report.now);
}

static json_t *owner_json_story(const struct owner_source *s)
{
    return json_string(s->report.story);
}

static json_t *owner_json_next(const struct owner_source *s)
{
    return json_string(s->report.next);
}

static json_t *owner_json_needs(const struct owner_source *s)
{
    return json_boolean(s->report.needs_owner);
}

static json_t *owner_json_certificate(const struct owner_source *s)
{
    uint64_t end = s->facts->certificate_ms;

    return end > 0 ? fl_json_whole(end) : json_null();
}

static json_t *owner_json_totals(const struct owner_source *s)
{
    const struct fl_task_totals *t = &s->facts->history.totals;
    json_t *o = json_object();

    (void)json_object_set_new(o, "since_ms", fl_json_whole(t->since_ms));
    (void)json_object_set_new(o, "selected", fl_json_whole(t->trainings));
    (void)json_object_set_new(o, "accepted", fl_json_whole(t->accepted));
    (void)json_object_set_new(o, "rejected", fl_json_whole(t->rejected));
    (void)json_object_set_new(o, "failed", fl_json_whole(t->failed));
    (void)json_object_set_new(o, "evaluations", fl_json_whole(t->evaluations));
    (void)json_object_set_new(o, "bytes_down", fl_json_whole(t->bytes_down));
    (void)json_object_set_new(o, "bytes_up", fl_json_whole(t->bytes_up));
    (void)json_object_set_new(o, "cpu_ms", fl_json_whole(t->cpu_ms));
    return o;
}

static json_t *owner_json_tasks(const struct owner_source *s)
{
    const struct fl_task_history *h = &s->facts->history;
    json_t *list = json_array();
    uint32_t i;
    size_t m;

    for (i = h->n_records; i > 0; i--) {
        json_t *o = json_object();

        for (m = 0; m < sizeof(task_members) / sizeof(task_members[0]); m++) {
            (void)json_object_set_new(o, task_members[m].key,
                                      task_members[m].get(&h->records[i - 1]));
        }
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *owner_json_errors(const struct owner_source *s)
{
    const struct fl_task_history *h = &s->facts->history;
    json_t *list = json_array();
    uint32_t i;

    for (i = h->n_errors; i > 0; i--) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "at_ms", fl_json_whole(h->errors[i - 1].at_ms));
        (void)json_object_set_new(o, "times", fl_json_whole(h->errors[i - 1].n));
        (void)json_object_set_new(o, "text", json_string(h->errors[i - 1].text));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *owner_json_limits(const struct owner_source *s)
{
    json_t *o = json_object();
    size_t i;

    for (i = 0; i < s->facts->n_limits; i++) {
        (void)json_object_set_new(o, s->facts->limits[i].key,
                                  json_string(s->facts->limits[i].value));
    }
    return o;
}

static const struct owner_member owner_members[] = {
    {"client", owner_json_client, "Its name"},
    {"federation", owner_json_federation, "The federation; empty: it has joined none yet"},
    {"server", owner_json_server, "Address of the server"},
    {"state", owner_json_state, "State of its session"},
    {"now", owner_json_now, "What it does, in a sentence: STATUS of systemd is the same"},
    {"story", owner_json_story, "Its last task, and what leaves the device"},
    {"next", owner_json_next, "What its owner can do"},
    {"needs_owner", owner_json_needs, "Whether something is wrong: exit code 1 of `--status`"},
    {"certificate_end_ms", owner_json_certificate, "End of its certificate; null: none"},
    {"totals", owner_json_totals,
     "Since `since_ms`, the creation of the state folder: `selected` (tasks to train), results "
     "`accepted` and `rejected`, tasks `failed`, `evaluations`, `bytes_down`, `bytes_up`, "
     "`cpu_ms`"},
    {"tasks", owner_json_tasks, "The last 50 tasks, the newest first"},
    {"errors", owner_json_errors,
     "The last 10 different errors, the newest first: `at_ms`, `times`, `text`"},
    {"limits", owner_json_limits, "Limits in force, by the key of the configuration, in words"},
};

int fl_owner_json(const struct fl_owner_facts *facts, struct fl_buf *out)
{
    struct owner_source source = {.facts = facts};
    json_t *o = json_object();
    size_t i;

    fl_owner_report(facts, &source.report);
    for (i = 0; i < sizeof(owner_members) / sizeof(owner_members[0]); i++) {
        (void)json_object_set_new(o, owner_members[i].key, owner_members[i].get(&source));
    }
    return fl_json_add_document(out, o);
}

int fl_owner_reference(struct fl_buf *out)
{
    struct fl_writer w = {.out = out};
    size_t i;

    fl_writer_printf(&w, "| member | meaning |\n| --- | --- |\n");
    for (i = 0; i < sizeof(owner_members) / sizeof(owner_members[0]); i++) {
        fl_writer_printf(&w, "| `%s` | %s |\n", owner_members[i].key, owner_members[i].meaning);
    }
    fl_writer_printf(&w, "\nA task:\n\n| member | meaning |\n| --- | --- |\n");
    for (i = 0; i < sizeof(task_members) / sizeof(task_members[0]); i++) {
        fl_writer_printf(&w, "| `%s` | %s |\n", task_members[i].key, task_members[i].meaning);
    }
    return w.code;
}
