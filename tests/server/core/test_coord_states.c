/*
 * Everything that a client can say in every state that it can be in at the coordinator, against
 * docs/clients.md. Each cell is played twice, with the event and without it, and both go on
 * alike to the end: an event that is ignored leaves no difference.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/states_page.h"
#include "tests/lib/suites.h"

/* One uploader a unit: `a` is asked for the first, `b` for the others. */
static const float moved[] = {3, 1, 1};
static const float moved_else[] = {1, 2, 2};
static const float still[] = {0, 0, 0};

/* --- the ways into the states; `a` is the client, `b` an honest one beside it --- */

static struct script *of(const char *preset, unsigned n)
{
    struct script *s = script_new(preset);

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    if (strcmp(preset, "fedldf") == 0) {
        script_option(s, FL_COMPONENT_UPLOAD, "n", "1");
    }
    s->conf.start_clients = n;
    s->conf.rounds = 2;
    return s;
}

static struct script *begin(struct script *s, bool manual)
{
    script_create(s, NULL);
    s->manual = manual;
    script_start(s);
    script_join(s, "a", 300);
    script_join(s, "b", 100);
    return s;
}

static struct script *unknown(void)
{
    struct script *s = of("fedavg", 3);

    script_create(s, NULL);
    script_start(s);
    script_join(s, "b", 100);
    return s;
}

static struct script *idle(void)
{
    return begin(of("fedavg", 3), false);
}

static struct script *selecting(void)
{
    return begin(of("fedldf", 2), true);
}

static struct script *selected(void)
{
    return begin(of("fedldf", 2), false);
}

static struct script *beside(void)
{
    struct script *s = of("fedldf", 1);

    script_create(s, NULL);
    script_start(s);
    script_join(s, "b", 100);
    script_join(s, "a", 300);
    return s;
}

static struct script *away(void)
{
    struct script *s = selected();

    script_lost(s, "a");
    return s;
}

static struct script *forgotten(void)
{
    struct script *s = selected();

    script_forget_client(s, "a");
    return s;
}

static struct script *reported(void)
{
    struct script *s = selected();

    script_report(s, "a", moved);
    return s;
}

static struct script *planning(void)
{
    struct script *s = reported();

    s->manual = true;
    script_report(s, "b", moved_else);
    return s;
}

static struct script *planned(void)
{
    struct script *s = planning();

    script_answer_all(s);
    s->manual = false;
    return s;
}

static struct script *recording(void)
{
    struct script *s = planned();

    s->manual = true;
    script_stored(s, "a");
    return s;
}

static struct script *accepted(void)
{
    struct script *s = recording();

    script_answer_all(s);
    s->manual = false;
    return s;
}

static struct script *without_units(bool backfill)
{
    struct script *s = of("fedldf", 2);

    s->conf.backfill = backfill;
    (void)begin(s, false);
    script_report(s, "a", still);
    script_report(s, "b", moved);
    return s;
}

static struct script *empty(void)
{
    return without_units(false);
}

static struct script *spare(void)
{
    return without_units(true);
}

static struct script *rejected(void)
{
    struct script *s = planned();

    script_invalid(s, "a", "bad values");
    return s;
}

static struct script *lost(void)
{
    struct script *s = planned();

    script_failed(s, "a", "no power");
    return s;
}

static struct script *granted(void)
{
    return begin(of("fedavg", 2), false);
}

static struct script *early(void)
{
    struct script *s = granted();

    script_stored(s, "a");
    return s;
}

static struct script *owing(void)
{
    struct script *s = granted();

    script_report(s, "a", NULL);
    return s;
}

static struct script *closing(void)
{
    struct script *s = of("fedldf", 2);

    s->conf.min_responders = 2;
    (void)begin(s, false);
    s->manual = true;
    script_failed(s, "b", "no power");
    return s;
}

static struct script *all_in(bool evaluates, unsigned answers)
{
    struct script *s = of("fedavg", 2);

    s->conf.evaluate_every = evaluates ? 1 : 0;
    s->conf.evaluate_clients = true;
    (void)begin(s, false);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    s->manual = true;
    script_stored(s, "b");
    while (answers-- > 0) {
        script_answer(s);
    }
    return s;
}

static struct script *aggregating(void)
{
    return all_in(false, 1);
}

static struct script *asked(void)
{
    return all_in(true, 2);
}

static struct fl_event evaluation(uint32_t client, uint64_t round)
{
    struct fl_event ev = {.type = FL_EV_EVAL_REPORT};

    ev.u.eval.client = client;
    ev.u.eval.round = round;
    ev.u.eval.result = (struct fl_eval_rec){.samples = 10, .correct = 5, .loss_sum = 4.0};
    return ev;
}

static struct script *evaluated(void)
{
    struct script *s = asked();
    struct fl_event ev = evaluation(script_id(s, "a"), 1);

    script_step(s, &ev);
    return s;
}

static struct script *committing(void)
{
    return all_in(false, 2);
}

static struct script *counted(void)
{
    struct script *s = committing();

    script_simple(s, FL_EV_PAUSE);
    script_answer(s);
    return s;
}

static struct script *paused(void)
{
    struct script *s = idle();

    script_simple(s, FL_EV_PAUSE);
    return s;
}

static struct script *stopped(void)
{
    struct script *s = idle();

    script_simple(s, FL_EV_DRAIN);
    return s;
}

static const struct state {
    const char *name;
    struct script *(*bring)(void);
    enum fl_phase phase;
    int part; /* fl_participant_state, 0: none */
} states[] = {
    {"UNKNOWN", unknown, FL_PHASE_IDLE, 0},
    {"FORGOTTEN", forgotten, FL_PHASE_TRAINING, FL_PARTICIPANT_LOST},
    {"AWAY", away, FL_PHASE_TRAINING, FL_PARTICIPANT_SELECTED},
    {"IDLE", idle, FL_PHASE_IDLE, 0},
    {"BESIDE", beside, FL_PHASE_TRAINING, 0},
    {"SELECTING", selecting, FL_PHASE_SELECTING, FL_PARTICIPANT_SELECTED},
    {"SELECTED", selected, FL_PHASE_TRAINING, FL_PARTICIPANT_SELECTED},
    {"REPORTED", reported, FL_PHASE_TRAINING, FL_PARTICIPANT_REPORTED},
    {"PLANNING", planning, FL_PHASE_PLANNING, FL_PARTICIPANT_PLANNED},
    {"PLANNED", planned, FL_PHASE_UPLOADING, FL_PARTICIPANT_PLANNED},
    {"GRANTED", granted, FL_PHASE_TRAINING, FL_PARTICIPANT_SELECTED},
    {"EARLY", early, FL_PHASE_TRAINING, FL_PARTICIPANT_SELECTED},
    {"OWING", owing, FL_PHASE_TRAINING, FL_PARTICIPANT_REPORTED},
    {"RECORDING", recording, FL_PHASE_UPLOADING, FL_PARTICIPANT_PLANNED},
    {"ACCEPTED", accepted, FL_PHASE_UPLOADING, FL_PARTICIPANT_ACCEPTED},
    {"EMPTY", empty, FL_PHASE_UPLOADING, FL_PARTICIPANT_EMPTY},
    {"SPARE", spare, FL_PHASE_UPLOADING, FL_PARTICIPANT_EMPTY},
    {"REJECTED", rejected, FL_PHASE_UPLOADING, FL_PARTICIPANT_REJECTED},
    {"LOST", lost, FL_PHASE_UPLOADING, FL_PARTICIPANT_LOST},
    {"CLOSING", closing, FL_PHASE_IDLE, 0},
    {"AGGREGATING", aggregating, FL_PHASE_AGGREGATING, FL_PARTICIPANT_ACCEPTED},
    {"ASKED", asked, FL_PHASE_EVALUATING, FL_PARTICIPANT_ACCEPTED},
    {"EVALUATED", evaluated, FL_PHASE_EVALUATING, FL_PARTICIPANT_ACCEPTED},
    {"COMMITTING", committing, FL_PHASE_COMMITTING, FL_PARTICIPANT_ACCEPTED},
    {"COUNTED", counted, FL_PHASE_PAUSED, 0},
    {"PAUSED", paused, FL_PHASE_PAUSED, 0},
    {"STOPPED", stopped, FL_PHASE_STOPPED, 0},
};

#define N_STATES (sizeof(states) / sizeof(states[0]))

/* --- what it says --- */

enum said { HELLO, REPORT, UPLOAD, BAD_UPLOAD, FAILED, EVALUATION, HEARTBEAT, GOODBYE, N_SAID };

static const char *const said_names[] = {"Hello",  "Report",     "Upload",    "Bad upload",
                                         "Failed", "Evaluation", "Heartbeat", "Goodbye"};

struct key {
    uint64_t round;
    uint32_t attempt;
};

static struct fl_event make(uint32_t client, enum said said, struct key key)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_JOINED};

    switch (said) {
    case HELLO:
        ev.u.joined.name = "a";
        ev.u.joined.agent = "script 1";
        ev.u.joined.samples = 300;
        ev.u.joined.evaluation_samples = 30;
        break;
    case REPORT:
        ev.type = FL_EV_REPORT;
        ev.u.report.client = client;
        ev.u.report.round = key.round;
        ev.u.report.attempt = key.attempt;
        ev.u.report.samples = 300;
        ev.u.report.train_loss = 0.25;
        ev.u.report.divergence = moved;
        ev.u.report.n_divergence = SCRIPT_UNITS;
        break;
    case UPLOAD:
    case BAD_UPLOAD:
        ev.type = said == UPLOAD ? FL_EV_UPLOAD_STORED : FL_EV_UPLOAD_INVALID;
        ev.u.upload.client = client;
        ev.u.upload.round = key.round;
        ev.u.upload.attempt = key.attempt;
        ev.u.upload.bytes = 40;
        ev.u.upload.reason = "bad values";
        break;
    case FAILED:
        ev.type = FL_EV_CLIENT_FAILED;
        ev.u.failed.client = client;
        ev.u.failed.round = key.round;
        ev.u.failed.attempt = key.attempt;
        ev.u.failed.reason = "no power";
        break;
    case EVALUATION:
        return evaluation(client, key.round);
    case HEARTBEAT:
        ev.type = FL_EV_CLIENT_HEARD;
        ev.u.client = client;
        break;
    case GOODBYE:
    case N_SAID:
        ev.type = FL_EV_CLIENT_LOST;
        ev.u.client = client;
        break;
    }
    return ev;
}

/* --- what becomes of it --- */

static char *taken_log(struct script *s)
{
    char *text;

    ck_assert_int_eq(fl_buf_add(&s->log, "", 1), FL_OK);
    text = strdup((const char *)s->log.data);
    ck_assert_ptr_nonnull(text);
    script_forget(s);
    return text;
}

static void carry_on(struct script *s, const char *name)
{
    uint32_t id = script_id(s, name);
    const struct fl_participant_rec *part = fl_coord_part(s->coord, id);
    enum fl_phase phase = fl_coord_phase(s->coord);
    struct fl_event ev;

    if (phase == FL_PHASE_EVALUATING && id != UINT32_MAX) {
        ev = evaluation(id, fl_coord_round(s->coord));
        script_step(s, &ev);
    } else if (part != NULL && phase == FL_PHASE_TRAINING && part->state == FL_PARTICIPANT_SELECTED)
    {
        script_report(s, name, moved_else);
    } else if (part != NULL && phase == FL_PHASE_UPLOADING &&
               (part->state == FL_PARTICIPANT_PLANNED || part->state == FL_PARTICIPANT_REPORTED))
    {
        script_stored(s, name);
    }
}

/* To the end, as honest clients would: what an event left behind comes out. */
static char *the_rest(struct script *s)
{
    unsigned i;

    s->manual = false;
    script_simple(s, FL_EV_RESUME);
    for (i = 0; i < 16; i++) {
        carry_on(s, "b");
        carry_on(s, "a");
        script_run_to(s, s->now + 500);
    }
    return taken_log(s);
}

/* The first command to the client in what was said, or NULL. */
static const char *command_to_a(const char *log)
{
    static const struct {
        const char *text, *word;
    } commands[] = {{" a TASK ", "task"},           {" a PLAN ", "plan"},
                    {" a ACCEPTED ", "accepted"},   {" a REJECTED ", "rejected"},
                    {" a DISMISSED ", "dismissed"}, {" a EVALUATE ", "evaluate"},
                    {" a DRAIN ", "drain"}};
    const char *first = NULL;
    const char *word = NULL;
    size_t i;

    for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const char *at = strstr(log, commands[i].text);

        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            word = commands[i].word;
        }
    }
    return word;
}

struct outcome {
    const char *word;
    bool differs; /* what follows, from what follows without the event */
    char said[4096];
};

static struct outcome play(const struct state *state, enum said said, struct key key)
{
    struct script *with = state->bring();
    struct script *without = state->bring();
    struct fl_event tick = {.type = FL_EV_TICK};
    struct fl_event ev;
    struct outcome out = {0};
    uint32_t id = script_id(with, "a");
    char *said_with;
    char *rest_with;
    char *rest_without;

    /* Who is forgotten is not found by name any more; 7 is nobody. */
    id = id != UINT32_MAX ? id : strcmp(state->name, "FORGOTTEN") == 0 ? 0 : 7;
    ev = make(id, said, key);
    script_forget(with);
    script_forget(without);
    with->manual = true;
    without->manual = true;
    script_step(with, &ev);
    script_step(without, &tick);
    ck_assert_uint_eq(without->log.len, 0);
    said_with = taken_log(with);
    (void)snprintf(out.said, sizeof(out.said), "%s", said_with);
    rest_with = the_rest(with);
    rest_without = the_rest(without);
    out.differs = strcmp(rest_with, rest_without) != 0;
    out.word = command_to_a(out.said);
    if (out.word == NULL) {
        out.word = out.differs || out.said[0] != '\0' ? "takes" : "ignores";
    }
    free(said_with);
    free(rest_with);
    free(rest_without);
    script_free(with);
    script_free(without);
    return out;
}

TEST_EACH(each_state_is_what_it_is_called, N_STATES)
{
    const struct state *state = &states[_i];
    struct script *s = state->bring();
    uint32_t id = script_id(s, "a");
    const struct fl_participant_rec *part = fl_coord_part(s->coord, id);

    ck_assert_int_eq(fl_coord_phase(s->coord), state->phase);
    if (id != UINT32_MAX) {
        ck_assert_int_eq(part != NULL ? (int)part->state : 0, state->part);
    }
    script_free(s);
}

TEST_EACH(each_event_in_each_state_does_what_the_page_says, (N_STATES * N_SAID))
{
    const struct state *state = &states[_i / N_SAID];
    enum said said = (enum said)(_i % N_SAID);
    struct outcome out = play(state, said, (struct key){1, 1});
    char word[32];

    states_page_word("\n### Messages at the coordinator", state->name, (size_t)said, word,
                     sizeof(word));
    ck_assert_msg(strcmp(word, out.word) == 0, "%s in state %s: the page says %s, it %s%s\n%s",
                  said_names[said], state->name, word, out.word,
                  out.differs ? ", and that changes what follows" : "", out.said);
    if (said != HELLO && (strcmp(word, "accepted") == 0 || strcmp(word, "dismissed") == 0 ||
                          strcmp(word, "plan") == 0))
    {
        ck_assert_msg(!out.differs, "%s in state %s changes what follows", said_names[said],
                      state->name); /* It only says again what is so. */
    }
}

/* Of another round or attempt: at most the answer that it is over, and no trace of it. */
TEST_EACH(what_is_of_another_round_or_attempt_is_never_taken, (N_STATES * N_SAID))
{
    static const struct key keys[] = {{0, 0}, {0, 1}, {1, 0}, {1, 2}, {2, 1}, {UINT64_MAX, 1}};
    const struct state *state = &states[_i / N_SAID];
    enum said said = (enum said)(_i % N_SAID);
    size_t i;

    if (said == HELLO || said == HEARTBEAT || said == GOODBYE) {
        return; /* They are of no round. */
    }
    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct outcome out;

        if ((said == FAILED && keys[i].round == 0) || (said == EVALUATION && keys[i].round == 1)) {
            continue; /* "I do not take part at all"; evaluations are of no attempt. */
        }
        out = play(state, said, keys[i]);
        ck_assert_msg(strcmp(out.word, "ignores") == 0 || strcmp(out.word, "dismissed") == 0,
                      "%s of %llu.%u in state %s: it %s\n%s", said_names[said],
                      (unsigned long long)keys[i].round, keys[i].attempt, state->name, out.word,
                      out.said);
        ck_assert_msg(!out.differs, "%s of %llu.%u in state %s changes what follows",
                      said_names[said], (unsigned long long)keys[i].round, keys[i].attempt,
                      state->name);
    }
}
