/*
 * fl-clientd --try-trainer: runs the configured persistent training program without a server, times
 * its tasks and checks that it follows the protocol (docs/trainers.md). Runs in the
 * foreground, in one thread, with a clock of its own that triggers cancelling.
 */

#include "client/daemon/try_trainer.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/clientd_exit.h"
#include "client/daemon/try_impl.h"
#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "libfl/model/safetensors.h"
#include "libfl/num/vec.h"

/* Fixed seeds: a repeated task has to be the same task. */
#define SEED       UINT64_C(20240607)
#define ORDER_SEED UINT64_C(7)
/* Time that a program has to exit, as docs/trainers.md says. */
#define BYE_MS 2000
/* The time of a task is the median of up to TIMINGS runs within TIMING_MS. */
#define TIMINGS   5
#define TIMING_MS 2000

/* --- clock and log --- */

static uint64_t trial_now(void *ctx)
{
    struct fl__try *t = ctx;
    uint64_t now = fl_clock_ms();

    if (t->cancel_at_ms != 0 && now >= t->cancel_at_ms) {
        atomic_store(&t->cancel, true);
    }
    return now;
}

static void trial_pause(void *ctx, uint64_t ms)
{
    (void)ctx;
    (void)poll(NULL, 0, (int)ms);
}

/* Prints the stderr lines of the program at once and remembers the last warning. */
static void keep_warning(void *ctx, enum fl_log_level level, const char *component,
                         const char *text)
{
    struct fl__try *t = ctx;

    if (strcmp(component, "program") == 0) {
        (void)fprintf(stderr, "%s\n", text);
    } else if (level <= FL_LOG_WARNING) {
        (void)snprintf(t->warning, sizeof(t->warning), "%s", text);
    }
}

/* --- tasks --- */

int fl__try_describe(struct fl__try *t, const struct fl_layout *layout, const char *part,
                     struct fl_err *err)
{
    const char *parts[] = {part, NULL};
    const struct fl_persistent_model model = {.layout = layout,
                                              .solver = "{\"name\": \"sgd\", \"options\": {}}",
                                              .personal = "{\"name\": \"none\", \"options\": {}}",
                                              .parts = parts,
                                              .epochs = t->options->epochs,
                                              .batch_size = t->options->batch_size,
                                              .vectors = t->vectors};

    return fl_persistent_describe(t->r, &model, t->conf->command->start_limit_ms, err);
}

struct fl_persistent_task fl__try_task(struct fl__try *t)
{
    return (struct fl_persistent_task){.kind = FL_PERSISTENT_TRAIN,
                                       .given = {[FL_PERSISTENT_MODEL] = t->model},
                                       .asked = {.key.round = 1,
                                                 .seed = SEED,
                                                 .order_seed = ORDER_SEED,
                                                 .learning_rate = t->options->learning_rate},
                                       .epochs = t->options->epochs,
                                       .batch_size = t->options->batch_size,
                                       .limit_ms = t->conf->command->time_limit_ms,
                                       .limit_note = " (command.time_limit)",
                                       .cancel = &t->cancel};
}

int fl__try_train(struct fl__try *t, const struct fl_persistent_task *task, float *out,
                  struct fl_persistent_answer *ret, struct fl_err *err)
{
    size_t l;
    int rv = fl_persistent_run(t->r, task, ret, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_persistent_result(t->r, out, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (l = 0; l < fl_layout_units(t->layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(t->layout, l);

        if (!fl_vec_finite(out + unit->offset, unit->count)) {
            return fl_err_set(
                err, FL_ENUMERIC,
                "expected finite numbers, found others in layer '%s' of the trained model",
                unit->name);
        }
    }
    return FL_OK;
}

bool fl__try_same(const struct fl__try *t, const float *other)
{
    size_t i;

    for (i = 0; i < t->count; i++) {
        float a = t->plain[i];

        if (fabsf(a - other[i]) > 1e-6F * fmaxf(1.0F, fabsf(a))) {
            return false;
        }
    }
    return true;
}

/* --- the start --- */

static void list_can(const struct fl_persistent *r, char *out, size_t size)
{
    const struct fl_persistent_ready *ready = fl_persistent_ready(r);
    size_t used = 0;
    size_t i;

    out[0] = '\0';
    for (i = 0; i < FL_PERSISTENT_KINDS + ready->n_parts; i++) {
        bool part = i >= FL_PERSISTENT_KINDS;
        const char *word = part ? ready->parts[i - FL_PERSISTENT_KINDS] : fl_persistent_kinds[i];

        if (part || fl_persistent_can(r, (enum fl_persistent_kind)i)) {
            int n = snprintf(out + used, size - used, "%s%s",
                             i == FL_PERSISTENT_KINDS ? "; parts: "
                             : used > 0               ? ", "
                                                      : "",
                             word);

            used = n > 0 && (size_t)n < size - used ? used + (size_t)n : used;
        }
    }
}

static void try_set_capabilities(struct fl__try *t)
{
    const struct fl_persistent_ready *ready = fl_persistent_ready(t->r);
    json_t *can = json_array();
    json_t *parts = json_array();
    size_t i;

    for (i = 0; i < FL_PERSISTENT_KINDS; i++) {
        if (fl_persistent_can(t->r, (enum fl_persistent_kind)i)) {
            (void)json_array_append_new(can, json_string(fl_persistent_kinds[i]));
        }
    }
    for (i = 0; i < ready->n_parts; i++) {
        (void)json_array_append_new(parts, json_string(ready->parts[i]));
    }
    fl_try_set(&t->report, "can", can);
    fl_try_set(&t->report, "parts", parts);
}

static bool try_check_start(struct fl__try *t)
{
    uint64_t began = fl_clock_ms();
    struct fl_err err = {0};
    const struct fl_persistent_ready *ready;
    char can[512];
    int rv = fl_persistent_start(t->r, &err);

    if (rv != FL_OK) {
        fl_try_say(&t->report, FL_TRY_FAILED, "start", "%s", fl_err_text(&err, rv));
        return false;
    }
    ready = fl_persistent_ready(t->r);
    list_can(t->r, can, sizeof(can));
    fl_try_say(&t->report, FL_TRY_OK, "start",
               "software='%.200s' samples=%" PRIu64 " test_samples=%" PRIu64 " ready after %" PRIu64
               " ms",
               ready->software, ready->samples, ready->test_samples, fl_clock_ms() - began);
    fl_try_add_line(&t->report, "declares %s", can[0] != '\0' ? can : "no capabilities");
    fl_try_set(&t->report, "software", json_string(ready->software));
    fl_try_set(&t->report, "samples", fl_json_whole(ready->samples));
    fl_try_set(&t->report, "test_samples", fl_json_whole(ready->test_samples));
    fl_try_set(&t->report, "start_ms", fl_json_whole(fl_clock_ms() - began));
    try_set_capabilities(t);
    return true;
}

/* --- the model --- */

static int load_model(struct fl__try *t, struct fl_err *err)
{
    int rv = fl_st_layout(t->options->model, &t->layout, err);

    if (rv != FL_OK) {
        return rv;
    }
    t->count = fl_layout_count(t->layout);
    t->model = calloc(t->count, sizeof(float));
    t->plain = calloc(t->count, sizeof(float));
    t->other = calloc(t->count, sizeof(float));
    t->vector = calloc(t->count, sizeof(float));
    if (t->model == NULL || t->plain == NULL || t->other == NULL || t->vector == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for a model of %zu parameters", t->count);
    }
    return fl_st_load(t->options->model, t->layout, t->model, err);
}

static bool try_model(struct fl__try *t)
{
    uint64_t began = fl_clock_ms();
    uint64_t took;
    struct fl_err err = {0};
    char bytes[32];
    int rv;

    t->vectors = (fl_persistent_has_part(t->r, "pull") ? 1u << FL_PERSISTENT_ANCHOR : 0) |
                 (fl_persistent_has_part(t->r, "gradient") ? 1u << FL_PERSISTENT_GRADIENT : 0) |
                 (fl_persistent_has_part(t->r, "drift") ? 1u << FL_PERSISTENT_DRIFT : 0) |
                 (fl_persistent_has_part(t->r, "space") ? 1u << FL_PERSISTENT_PLACES : 0);
    rv = fl__try_describe(t, t->layout, NULL, &err);
    took = fl_clock_ms() - began;
    if (rv != FL_OK || !fl_persistent_runs(t->r)) {
        fl_try_say(&t->report, FL_TRY_FAILED, "model", "%s",
                   rv != FL_OK ? fl_err_text(&err, rv) : t->warning);
        return false;
    }
    fl_try_say(&t->report, FL_TRY_OK, "model",
               "layers=%zu tensors=%zu parameters=%zu accepted after %" PRIu64 " ms",
               fl_layout_units(t->layout), fl_layout_tensors(t->layout), t->count, took);
    fl_try_add_line(&t->report, "a full upload has %s before any codec",
                    fl_str_bytes(bytes, sizeof(bytes), (uint64_t)t->count * sizeof(float)));
    fl_try_set(&t->report, "parameters", fl_json_whole(t->count));
    fl_try_set(&t->report, "upload_bytes", fl_json_whole((uint64_t)t->count * sizeof(float)));
    fl_try_set(&t->report, "model_ms", fl_json_whole(took));
    return true;
}

/* --- training --- */

/* Tensors that training does not change (frozen parameters, constants) waste upload bytes. */
static void try_report_unchanged(struct fl__try *t)
{
    const char *first = NULL;
    size_t bytes = 0;
    size_t n = 0;
    size_t i;

    for (i = 0; i < fl_layout_tensors(t->layout); i++) {
        const struct fl_tensor *tensor = fl_layout_tensor(t->layout, i);

        if (memcmp(t->plain + tensor->offset, t->model + tensor->offset,
                   tensor->count * sizeof(float)) == 0)
        {
            first = first != NULL ? first : tensor->name;
            bytes += tensor->count * sizeof(float);
            n++;
        }
    }
    if (n > 0) {
        fl_try_say(&t->report, FL_TRY_WARNING, "unchanged",
                   "training does not change %zu tensors with %zu B of the model's %zu B, the "
                   "first is '%s': they would be sent in every round for nothing; leave them out "
                   "of the model's file (fl_trainer leaves out frozen parameters)",
                   n, bytes, t->count * sizeof(float), first);
    }
}

/* Prints the update norm per layer as in a report, which the server's upload plan uses. */
static void try_report_change(struct fl__try *t)
{
    json_t *list = json_array();
    bool changed = false;
    size_t l;

    for (l = 0; l < fl_layout_units(t->layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(t->layout, l);
        double norm = fl_unit_distance(t->layout, l, t->plain, t->model);

        changed = changed || norm > 0.0;
        fl_try_add_line(&t->report, "%-24s change=%-12.6g bytes=%zu", unit->name, norm,
                        unit->count * sizeof(float));
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:f, s:I}", "unit", unit->name, "change", norm,
                                              "bytes", (json_int_t)(unit->count * sizeof(float))));
    }
    fl_try_set(&t->report, "units", list);
    if (!changed) {
        fl_try_say(
            &t->report, FL_TRY_WARNING, "change",
            "the trained model equals the given one: nothing was learned, or nothing was written");
    } else {
        try_report_unchanged(t);
    }
}

struct timing {
    double in_ms, task_ms, out_ms;
};

/* Runs a training and measures the time to send the model, to train, and to read the result. */
static int try_timed_training(struct fl__try *t, const struct fl_persistent_task *task, float *out,
                              struct fl_persistent_answer *ret, struct timing *timing,
                              struct fl_err *err)
{
    double began = (double)fl_clock_ns() / 1e6;
    double ended;
    int rv = fl_persistent_run(t->r, task, ret, err);

    ended = (double)fl_clock_ns() / 1e6;
    if (rv != FL_OK) {
        return rv;
    }
    timing->task_ms = fmin((double)ret->took_ms, ended - began);
    timing->in_ms = ended - began - timing->task_ms;
    rv = fl_persistent_result(t->r, out, err);
    timing->out_ms = (double)fl_clock_ns() / 1e6 - ended;
    return rv;
}

static double timing_total(const struct timing *timing)
{
    return timing->in_ms + timing->task_ms + timing->out_ms;
}

static int timing_compare(const void *a, const void *b)
{
    double x = timing_total(a);
    double y = timing_total(b);

    return (x > y) - (x < y);
}

/* The first training is not measured: it touches memory for the first time. */
static void try_report_times(struct fl__try *t)
{
    struct fl_persistent_task task = fl__try_task(t);
    struct timing timings[TIMINGS];
    struct fl_persistent_answer answer;
    struct fl_err err = {0};
    uint64_t began = fl_clock_ms();
    const struct timing *median;
    size_t n = 0;

    do {
        int rv = try_timed_training(t, &task, t->other, &answer, &timings[n], &err);

        if (rv != FL_OK) {
            fl_try_say(&t->report, FL_TRY_FAILED, "train again", "%s", fl_err_text(&err, rv));
            return;
        }
        n++;
    } while (n < TIMINGS && fl_clock_ms() - began < TIMING_MS);
    qsort(timings, n, sizeof(*timings), timing_compare);
    median = &timings[n / 2];
    t->repeatable = memcmp(t->plain, t->other, t->count * sizeof(float)) == 0;
    fl_try_say(&t->report, t->repeatable ? FL_TRY_OK : FL_TRY_WARNING, "repeatable",
               t->repeatable ? "the same task with the same seed made the same model, bit for bit"
                             : "the same task with the same seed made another model: allowed in a "
                               "federation, but runs are not repeatable");
    fl_try_add_line(&t->report,
                    "a training takes %.1f ms: %.1f to send the model, %.1f in the program, %.1f "
                    "to read the result (median of %zu)",
                    timing_total(median), median->in_ms, median->task_ms, median->out_ms, n);
    fl_try_set(&t->report, "repeatable", json_boolean(t->repeatable));
    fl_try_set(&t->report, "hand_in_ms", fl_json_real(median->in_ms, true));
    fl_try_set(&t->report, "task_ms", fl_json_real(median->task_ms, true));
    fl_try_set(&t->report, "hand_out_ms", fl_json_real(median->out_ms, true));
    fl_try_set(&t->report, "hand_over_ms", fl_json_real(timing_total(median), true));
}

static bool try_train(struct fl__try *t)
{
    struct fl_persistent_task task = fl__try_task(t);
    struct fl_persistent_answer answer;
    struct fl_err err = {0};
    int rv = fl__try_train(t, &task, t->plain, &answer, &err);

    if (rv != FL_OK) {
        fl_try_say(&t->report, FL_TRY_FAILED, "train", "%s", fl_err_text(&err, rv));
        return false;
    }
    t->task_ms = answer.took_ms;
    fl_try_say(&t->report, FL_TRY_OK, "train",
               "steps=%" PRIu64 " samples=%" PRIu64 " loss=%.6g after %" PRIu64 " ms", answer.steps,
               answer.samples, answer.train_loss, answer.took_ms);
    fl_try_set(&t->report, "steps", fl_json_whole(answer.steps));
    fl_try_set(&t->report, "train_loss", fl_json_real(answer.train_loss, true));
    try_report_change(t);
    try_report_times(t);
    return true;
}

/* --- the other tasks --- */

static void try_evaluate(struct fl__try *t)
{
    struct fl_persistent_task task = fl__try_task(t);
    struct fl_persistent_answer answer;
    struct fl_err err = {0};
    uint64_t expected = fl_persistent_ready(t->r)->test_samples;
    int rv;

    task.kind = FL_PERSISTENT_EVALUATE;
    rv = fl_persistent_run(t->r, &task, &answer, &err);
    if (rv != FL_OK) {
        fl_try_say(&t->report, FL_TRY_FAILED, "evaluate", "%s", fl_err_text(&err, rv));
        return;
    }
    if (answer.received.samples != expected) {
        fl_try_say(&t->report, FL_TRY_FAILED, "evaluate",
                   "expected the %" PRIu64 " test samples of 'ready', found %" PRIu64, expected,
                   answer.received.samples);
        return;
    }
    fl_try_say(&t->report, FL_TRY_OK, "evaluate",
               "correct=%" PRIu64 " of %" PRIu64 " loss_sum=%.6g after %" PRIu64 " ms",
               answer.received.correct, answer.received.samples, answer.received.loss_sum,
               answer.took_ms);
    if (answer.received.metrics[0] != '\0') {
        fl_try_say(&t->report, FL_TRY_OK, "metrics", "%s", answer.received.metrics);
    }
    fl_try_set(&t->report, "evaluate_ms", fl_json_whole(answer.took_ms));
}

static void try_adapt(struct fl__try *t)
{
    struct fl_persistent_task task = fl__try_task(t);
    struct fl_persistent_answer answer;
    struct fl_err err = {0};
    int rv;

    task.kind = FL_PERSISTENT_ADAPT;
    rv = fl_persistent_run(t->r, &task, &answer, &err);
    if (rv != FL_OK) {
        fl_try_say(&t->report, FL_TRY_FAILED, "adapt", "%s", fl_err_text(&err, rv));
        return;
    }
    fl_try_say(&t->report, FL_TRY_OK, "adapt",
               "correct=%" PRIu64 " before, %" PRIu64 " after, of %" PRIu64 " after %" PRIu64 " ms",
               answer.received.correct, answer.adapted.correct, answer.adapted.samples,
               answer.took_ms);
    fl_try_set(&t->report, "adapt_ms", fl_json_whole(answer.took_ms));
}

/* Later versions may add fields to messages: an unknown one has to be ignored. */
static void try_unknown_field(struct fl__try *t)
{
    struct fl_persistent_task task = fl__try_task(t);
    struct fl_persistent_answer answer;
    struct fl_err err = {0};
    int rv;

    task.more = "{\"not_in_this_version\": {\"x\": [1]}}";
    rv = fl__try_train(t, &task, t->other, &answer, &err);
    if (rv != FL_OK) {
        fl_try_say(&t->report, FL_TRY_FAILED, "unknown field",
                   "expected that the field is ignored, found: %s", fl_err_text(&err, rv));
    } else if (t->repeatable && !fl__try_same(t, t->other)) {
        fl_try_say(&t->report, FL_TRY_FAILED, "unknown field",
                   "expected that the field is ignored, found another model than without it");
    } else {
        fl_try_say(&t->report, FL_TRY_OK, "unknown field",
                   "a task with an unknown field is carried out");
    }
}

static void try_bye(struct fl__try *t)
{
    uint64_t began = fl_clock_ms();
    uint64_t took;

    if (!fl_persistent_runs(t->r)) {
        fl_try_say(&t->report, FL_TRY_NOT_TRIED, "bye", "the program is no longer running");
        return;
    }
    t->warning[0] = '\0';
    fl_persistent_stop(t->r);
    took = fl_clock_ms() - began;
    if (t->warning[0] != '\0' && took >= BYE_MS) {
        /* Only a warning: the program had answered everything, and a busy machine is slow. */
        fl_try_say(&t->report, FL_TRY_WARNING, "bye",
                   "expected exit code 0 within %d ms, found that it was still running and had to "
                   "be killed",
                   BYE_MS);
        return;
    }
    if (t->warning[0] != '\0') {
        fl_try_say(&t->report, FL_TRY_FAILED, "bye", "expected exit code 0, found %s", t->warning);
        return;
    }
    fl_try_say(&t->report, FL_TRY_OK, "bye", "exited with code 0 after %" PRIu64 " ms", took);
}

static void try_tasks(struct fl__try *t)
{
    if (!fl_persistent_can(t->r, FL_PERSISTENT_TRAIN)) {
        fl_try_say(&t->report, FL_TRY_NOT_TRIED, "train", "not declared");
    } else if (try_train(t)) {
        try_unknown_field(t);
        fl__try_parts(t);
        fl__try_cancel(t);
    } else {
        return; /* The other checks would fail for the same reason. */
    }
    if (fl_persistent_can(t->r, FL_PERSISTENT_EVALUATE)) {
        try_evaluate(t);
    }
    if (fl_persistent_can(t->r, FL_PERSISTENT_ADAPT)) {
        try_adapt(t);
    }
    if (fl_persistent_can(t->r, FL_PERSISTENT_SUMMARY)) {
        fl_try_say(&t->report, FL_TRY_NOT_TRIED, "summary", "it needs the options of a federation");
    }
    fl__try_shape(t);
}

/* --- the whole run --- */

static void try_run_checks(struct fl__try *t)
{
    if (!try_check_start(t)) {
        return;
    }
    if (t->options->model == NULL) {
        fl_try_say(&t->report, FL_TRY_FAILED, "model",
                   "expected --model FILE.safetensors: 'python3 -m fl_trainer save SCRIPT.py "
                   "FILE.safetensors' writes one from a script with fl_trainer");
    } else if (try_model(t)) {
        try_tasks(t);
    }
    try_bye(t);
}

static int try_create_program(struct fl__try *t, char **environment, struct fl_err *err)
{
    const struct fl_client_command *c = t->conf->command;
    const struct fl_persistent_conf conf = {
        .argv = c->program.list,
        .environment = (const char *const *)environment,
        .memory_bytes = c->memory_limit,
        .memory_of = c->memory_of,
        .client = t->conf->main->name,
        .data = t->conf->data->path[0] != '\0' ? t->conf->data->path : NULL,
        .purpose = "try",
        .start_limit_ms = c->start_limit_ms,
        .cancel_grace_ms = c->cancel_grace_ms,
        .clock = &t->clock,
        .log = &t->log};

    return fl_persistent_create(&conf, &t->r, err);
}

static int try_run(struct fl__try *t)
{
    char **environment = fl_client_conf_environment(t->conf->command);
    struct fl_err err = {0};
    bool good = false;
    int rv = environment != NULL ? try_create_program(t, environment, &err) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto done;
    }
    if (t->options->model != NULL) {
        rv = load_model(t, &err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    fl_try_report_begin(&t->report, stdout, t->options->json);
    try_run_checks(t);
    good = fl_try_report_end(&t->report);
done:
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-clientd: %s\n", fl_err_text(&err, rv));
    }
    fl_persistent_free(t->r);
    fl_layout_free(t->layout);
    free(t->model);
    free(t->plain);
    free(t->other);
    free(t->vector);
    fl_str_list_free(environment);
    return good ? FL_EXIT_OK : FL_EXIT_DATA;
}

int fl_try_trainer(const struct fl_client_conf *conf, const struct fl_try_options *options)
{
    struct fl__try t = {.conf = conf, .options = options};

    if (conf->main->trainer != FL_TRAINER_COMMAND || !conf->command->persistent) {
        (void)fputs(
            "fl-clientd: --try-trainer needs a persistent training program: expected 'trainer: "
            "command' and 'command: {persistent: yes}'. Try a program that is started for each "
            "task "
            "by hand, with a task file in FL_TASK (docs/trainers.md)\n",
            stderr);
        return FL_EXIT_CONFIG;
    }
    t.log = (struct fl_log){.level = FL_LOG_INFO, .sink = keep_warning, .ctx = &t};
    t.clock = (struct fl_persistent_clock){trial_now, trial_pause, &t};
    atomic_init(&t.cancel, false);
    return try_run(&t);
}
