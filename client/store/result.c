/*
 * A finished result as the container file <state_dir>/result.bin: fields, sections, checks; and
 * its reference count. Written on the training thread, read at the start, released on the loop. It
 * does not decide when a result is dropped (pending_result.c).
 */

#include "client/store/result.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/container/container.h"

#define RESULT_PATH     4096
#define RESULT_SENT_MAX 15

enum { HAS_RECEIVED = 1u << 0, HAS_TRAINED = 1u << 1, HAS_PENDING = 1u << 2, HAS_KEPT = 1u << 3 };

struct result_fields {
    uint64_t round, attempt, samples, steps;
    double train_loss, previous_dot;
    uint64_t flags;
    uint64_t eval_samples, eval_correct;
    double eval_loss_sum;
    uint64_t trained_samples, trained_correct;
    double trained_loss_sum;
    char eval_metrics[FL_EVAL_METRICS_TEXT], trained_metrics[FL_EVAL_METRICS_TEXT];
    uint8_t layout[FL_DIGEST_SIZE], generation[FL_DIGEST_SIZE];
    uint64_t n_units, n_floats, n_sent, n_mask;
    uint64_t kept_round, kept_attempt, draw;
};
_Static_assert(sizeof(struct result_fields) == 224 + 2 * FL_EVAL_METRICS_TEXT, "no padding");

/* Sections: divergence, delta, the solver's other payloads, and the mask. */
#define N_SECTIONS (RESULT_SENT_MAX + 3)

static const struct fl_container_kind result_kind = {.name = "result",
                                                     .version = 1,
                                                     .max_sections = N_SECTIONS,
                                                     .max_fields = sizeof(struct result_fields)};

struct fl_result *fl_result_new(void)
{
    struct fl_result *r = calloc(1, sizeof(*r));

    if (r != NULL) {
        r->refs = 1;
    }
    return r;
}

struct fl_result *fl_result_ref(struct fl_result *result)
{
    result->refs++;
    return result;
}

void fl_result_unref(struct fl_result *result)
{
    size_t i;

    if (result == NULL || --result->refs > 0) {
        return;
    }
    free(result->divergence);
    free(result->delta);
    for (i = 0; result->sent != NULL && i < result->n_sent; i++) {
        free(result->sent[i]);
    }
    free(result->sent);
    free(result->mask);
    free(result);
}

static int result_path(const char *state_dir, char path[RESULT_PATH], struct fl_err *err)
{
    return fl_fs_join(path, RESULT_PATH, state_dir, "result.bin") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
}

struct result_section {
    const char *name;
    void *data;
    size_t bytes;
};

/* The sections of a result in their order, for writing and reading; empty ones have no memory. */
static size_t sections_of(const struct fl_result *r, struct result_section list[N_SECTIONS])
{
    size_t n = 0;
    size_t i;

    list[n++] = (struct result_section){"diverge", r->divergence, r->n_units * sizeof(float)};
    list[n++] = (struct result_section){"delta", r->delta, r->n_floats * sizeof(float)};
    for (i = 0; i < r->n_sent; i++) {
        list[n++] = (struct result_section){"sent", r->sent[i], r->n_floats * sizeof(float)};
    }
    list[n++] = (struct result_section){"mask", r->mask, r->n_mask};
    return n;
}

int fl_result_save(const char *state_dir, const struct fl_result *r, struct fl_err *err)
{
    struct result_fields fields = {
        .round = r->key.round,
        .attempt = r->key.attempt,
        .samples = r->samples,
        .steps = r->steps,
        .train_loss = r->train_loss,
        .previous_dot = r->previous_dot,
        .flags = (r->has_received ? HAS_RECEIVED : 0u) | (r->has_trained ? HAS_TRAINED : 0u) |
                 (r->pending ? HAS_PENDING : 0u) | (r->has_kept ? HAS_KEPT : 0u),
        .eval_samples = r->received.samples,
        .eval_correct = r->received.correct,
        .eval_loss_sum = r->received.loss_sum,
        .trained_samples = r->trained.samples,
        .trained_correct = r->trained.correct,
        .trained_loss_sum = r->trained.loss_sum,
        .n_units = r->n_units,
        .n_floats = r->n_floats,
        .n_sent = r->n_sent,
        .n_mask = r->n_mask,
        .kept_round = r->kept.round,
        .kept_attempt = r->kept.attempt,
        .draw = r->draw};
    struct result_section list[N_SECTIONS];
    struct fl_container_part parts[N_SECTIONS];
    struct fl_container_content content = {&fields, sizeof(fields), parts, 0};
    char path[RESULT_PATH];
    size_t i;
    int rv = result_path(state_dir, path, err);

    FL_REQUIRE(r->n_sent <= RESULT_SENT_MAX);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(fields.layout, r->digest, sizeof(fields.layout));
    (void)memcpy(fields.generation, r->generation, sizeof(fields.generation));
    /* Up to the end of the text: what is behind it is not written. */
    (void)memcpy(fields.eval_metrics, r->received.metrics, strlen(r->received.metrics));
    (void)memcpy(fields.trained_metrics, r->trained.metrics, strlen(r->trained.metrics));
    content.n = sections_of(r, list);
    for (i = 0; i < content.n; i++) {
        parts[i] = (struct fl_container_part){list[i].name, list[i].data, list[i].bytes};
    }
    return fl_container_replace(path, &result_kind, &content, /* sync= */ true, err);
}

/* --- reading --- */

/* Are the sections as long as the fields say? The file is as long as its sections. */
static bool check_sections(const struct fl_container_head *head, const struct result_fields *f)
{
    size_t i;

    if (head->n != f->n_sent + 3 || head->sections[0].bytes != f->n_units * sizeof(float) ||
        head->sections[head->n - 1].bytes != f->n_mask)
    {
        return false;
    }
    for (i = 1; i + 1 < head->n; i++) {
        if (head->sections[i].bytes != f->n_floats * sizeof(float)) {
            return false;
        }
    }
    return true;
}

static int result_allocate(struct fl_result *r)
{
    size_t i;

    r->divergence = malloc(r->n_units * sizeof(float) + 1);
    r->delta = malloc(r->n_floats * sizeof(float) + 1);
    r->sent = calloc(r->n_sent + 1, sizeof(*r->sent));
    r->mask = r->n_mask > 0 ? malloc(r->n_mask) : NULL;
    if (r->divergence == NULL || r->delta == NULL || r->sent == NULL ||
        (r->n_mask > 0 && r->mask == NULL))
    {
        return FL_ENOMEM;
    }
    for (i = 0; i < r->n_sent; i++) {
        r->sent[i] = malloc(r->n_floats * sizeof(float) + 1);
        if (r->sent[i] == NULL) {
            return FL_ENOMEM;
        }
    }
    return FL_OK;
}

static void result_take_metrics(char to[FL_EVAL_METRICS_TEXT],
                                const char from[FL_EVAL_METRICS_TEXT])
{
    (void)memcpy(to, from, FL_EVAL_METRICS_TEXT);
    to[FL_EVAL_METRICS_TEXT - 1] = '\0';
}

static int result_take(const struct fl_container *file, struct fl_result *r, struct fl_err *err)
{
    struct result_fields fields;
    struct result_section list[N_SECTIONS];
    size_t i;
    int rv;

    if (fl_container_fields(&file->head, &fields, sizeof(fields)) != FL_OK ||
        !(fields.n_units <= FL_LAYOUT_MAX_UNITS && fields.n_floats <= FL_LAYOUT_MAX_FLOATS &&
          fields.n_sent <= RESULT_SENT_MAX && fields.n_mask <= FL_LAYOUT_MAX_FLOATS) ||
        !check_sections(&file->head, &fields))
    {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: its fields and its %zu sections are those of no result",
                          file->path, file->head.n);
    }
    r->key = (struct fl_round_key){fields.round, (uint32_t)fields.attempt};
    r->draw = fields.draw;
    r->samples = fields.samples;
    r->steps = fields.steps;
    r->train_loss = fields.train_loss;
    r->previous_dot = fields.previous_dot;
    r->has_received = (fields.flags & HAS_RECEIVED) != 0;
    r->has_trained = (fields.flags & HAS_TRAINED) != 0;
    r->pending = (fields.flags & HAS_PENDING) != 0;
    r->has_kept = (fields.flags & HAS_KEPT) != 0;
    r->kept = (struct fl_round_key){fields.kept_round, (uint32_t)fields.kept_attempt};
    r->received = (struct fl_evaluation){.samples = fields.eval_samples,
                                         .correct = fields.eval_correct,
                                         .loss_sum = fields.eval_loss_sum};
    r->trained = (struct fl_evaluation){.samples = fields.trained_samples,
                                        .correct = fields.trained_correct,
                                        .loss_sum = fields.trained_loss_sum};
    result_take_metrics(r->received.metrics, fields.eval_metrics);
    result_take_metrics(r->trained.metrics, fields.trained_metrics);
    r->n_units = (size_t)fields.n_units;
    r->n_floats = (size_t)fields.n_floats;
    r->n_sent = (size_t)fields.n_sent;
    r->n_mask = (size_t)fields.n_mask;
    (void)memcpy(r->digest, fields.layout, sizeof(r->digest));
    (void)memcpy(r->generation, fields.generation, sizeof(r->generation));
    rv = result_allocate(r);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read '%s': %s", file->path, fl_strerror(rv));
    }
    (void)sections_of(r, list);
    for (i = 0; i < file->head.n; i++) {
        rv = fl_container_read(file, i, list[i].data, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_result_load(const char *state_dir, struct fl_result **ret, struct fl_err *err)
{
    struct fl_result *r = NULL;
    struct fl_container file;
    char path[RESULT_PATH];
    int rv = result_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_container_open(path, &result_kind, &file, err);
    if (rv != FL_OK) {
        return rv;
    }
    r = fl_result_new();
    if (r == NULL) {
        rv = FL_ENOMEM;
        goto fail;
    }
    rv = result_take(&file, r, err);
    if (rv != FL_OK) {
        goto fail;
    }
    fl_container_close(&file);
    *ret = r;
    return FL_OK;
fail:
    fl_container_close(&file);
    fl_result_unref(r);
    return rv;
}

int fl_result_remove(const char *state_dir, struct fl_err *err)
{
    char path[RESULT_PATH];
    int rv = result_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_remove(path);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot remove '%s': %s", path, fl_strerror(rv));
    }
    return FL_OK;
}
