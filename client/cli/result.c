#include "client/cli/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"

/* "FLRESULT", then a version: the layout below, integers little-endian as on x86 and ARM. */
#define RESULT_MAGIC   "FLRESULT"
#define RESULT_VERSION 1
#define RESULT_PATH    4096

struct head {
    char magic[8];
    uint32_t version, attempt;
    uint64_t round, samples, steps;
    double train_loss;
    uint64_t has_received, eval_samples, eval_correct;
    double eval_loss_sum;
    uint8_t layout[FL_DIGEST_SIZE];
    uint64_t n_units, n_floats;
    uint8_t sha256[32]; /* over everything behind the head */
};

static int path_of(const char *state_dir, char path[RESULT_PATH], struct fl_err *err)
{
    return fl_fs_join(path, RESULT_PATH, state_dir, "result.bin") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", state_dir);
}

int fl_result_save(const char *state_dir, const struct fl_result *r, struct fl_err *err)
{
    size_t body = (r->n_units + r->n_floats) * sizeof(float);
    struct head head = {.version = RESULT_VERSION,
                        .attempt = r->key.attempt,
                        .round = r->key.round,
                        .samples = r->samples,
                        .steps = r->steps,
                        .train_loss = r->train_loss,
                        .has_received = r->has_received,
                        .eval_samples = r->eval_samples,
                        .eval_correct = r->eval_correct,
                        .eval_loss_sum = r->eval_loss_sum,
                        .n_units = r->n_units,
                        .n_floats = r->n_floats};
    char path[RESULT_PATH];
    uint8_t *file;
    int rv = path_of(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    file = malloc(sizeof(head) + body);
    if (file == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(file + sizeof(head), r->divergence, r->n_units * sizeof(float));
    (void)memcpy(file + sizeof(head) + r->n_units * sizeof(float), r->delta,
                 r->n_floats * sizeof(float));
    (void)memcpy(head.magic, RESULT_MAGIC, sizeof(head.magic));
    (void)memcpy(head.layout, r->digest, sizeof(head.layout));
    rv = fl_sha256(file + sizeof(head), body, head.sha256);
    if (rv == FL_OK) {
        (void)memcpy(file, &head, sizeof(head));
        rv = fl_fs_replace(path, file, sizeof(head) + body, /* sync= */ true, err);
    }
    free(file);
    return rv;
}

static int damaged(const char *path, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT, "'%s' is not a whole result file", path);
}

static int unpack(const char *path, const struct fl_buf *file, struct fl_result *ret,
                  struct fl_err *err)
{
    struct head head;
    uint8_t sha[32];
    size_t body;

    if (file->len < sizeof(head)) {
        return damaged(path, err);
    }
    (void)memcpy(&head, file->data, sizeof(head));
    body = file->len - sizeof(head);
    if (memcmp(head.magic, RESULT_MAGIC, sizeof(head.magic)) != 0 ||
        head.version != RESULT_VERSION || head.n_units > FL_LAYOUT_MAX_UNITS ||
        head.n_floats > FL_LAYOUT_MAX_FLOATS ||
        body != (head.n_units + head.n_floats) * sizeof(float) ||
        fl_sha256(file->data + sizeof(head), body, sha) != FL_OK ||
        memcmp(sha, head.sha256, sizeof(sha)) != 0)
    {
        return damaged(path, err);
    }
    *ret = (struct fl_result){.key = {head.round, head.attempt},
                              .samples = head.samples,
                              .steps = head.steps,
                              .train_loss = head.train_loss,
                              .has_received = head.has_received != 0,
                              .eval_samples = head.eval_samples,
                              .eval_correct = head.eval_correct,
                              .eval_loss_sum = head.eval_loss_sum,
                              .n_units = (size_t)head.n_units,
                              .n_floats = (size_t)head.n_floats};
    (void)memcpy(ret->digest, head.layout, sizeof(ret->digest));
    ret->divergence = malloc(ret->n_units * sizeof(float) + 1);
    ret->delta = malloc(ret->n_floats * sizeof(float) + 1);
    if (ret->divergence == NULL || ret->delta == NULL) {
        fl_result_done(ret);
        return FL_ENOMEM;
    }
    (void)memcpy(ret->divergence, file->data + sizeof(head), ret->n_units * sizeof(float));
    (void)memcpy(ret->delta, file->data + sizeof(head) + ret->n_units * sizeof(float),
                 ret->n_floats * sizeof(float));
    return FL_OK;
}

int fl_result_load(const char *state_dir, struct fl_result *ret, struct fl_err *err)
{
    char path[RESULT_PATH];
    struct fl_buf file;
    int rv = path_of(state_dir, path, err);

    if (rv == FL_OK) {
        rv = fl_fs_read(path, SIZE_MAX / 2, &file, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = unpack(path, &file, ret, err);
    fl_buf_done(&file);
    return rv;
}

int fl_result_remove(const char *state_dir, struct fl_err *err)
{
    char path[RESULT_PATH];
    int rv = path_of(state_dir, path, err);

    if (rv == FL_OK) {
        rv = fl_fs_remove(path);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot remove '%s': %s", path, fl_strerror(rv));
        }
    }
    return rv;
}

void fl_result_done(struct fl_result *result)
{
    free(result->divergence);
    free(result->delta);
    *result = (struct fl_result){0};
}
