/*
 * A finished result as the file <state_dir>/result.bin: format, checks, reading and writing; and
 * its reference count. Written on the training thread, read at the start, released on the loop. It
 * does not decide when a result is dropped (pending_result.c).
 */

#include "client/store/result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/store/whole.h"
#include "libfl/base/fs.h"
#include "libfl/model/digest.h"

/*
 * "FLRESULT", then a version and the head below, integers little-endian as on x86 and ARM; behind
 * it divergence, delta, the solver's other payloads, and the mask.
 */
#define RESULT_MAGIC    "FLRESULT"
#define RESULT_VERSION  1
#define RESULT_PATH     4096
#define RESULT_SENT_MAX 15

enum { HAS_RECEIVED = 1u << 0, HAS_TRAINED = 1u << 1, HAS_PENDING = 1u << 2, HAS_KEPT = 1u << 3 };

struct head {
    char magic[8];
    uint32_t version, attempt;
    uint64_t round, samples, steps;
    double train_loss, previous_dot;
    uint64_t flags;
    uint64_t eval_samples, eval_correct;
    double eval_loss_sum;
    uint64_t trained_samples, trained_correct;
    double trained_loss_sum;
    uint8_t layout[FL_DIGEST_SIZE], line[FL_DIGEST_SIZE];
    uint64_t n_units, n_floats, n_sent, n_mask;
    uint64_t kept_round, kept_attempt;
    uint8_t sha256[32]; /* over the SHA-256s of all runs behind the head */
    uint8_t head[32];   /* over the fields above */
};

/* The runs behind the head. */
#define N_RUNS (RESULT_SENT_MAX + 3)

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

/* The runs behind the head; empty runs have no memory. */
static size_t runs_of(const struct fl_result *r, struct fl_run runs[N_RUNS])
{
    size_t n = 0;
    size_t i;

    runs[n++] = (struct fl_run){r->divergence, r->n_units * sizeof(float)};
    runs[n++] = (struct fl_run){r->delta, r->n_floats * sizeof(float)};
    for (i = 0; i < r->n_sent; i++) {
        runs[n++] = (struct fl_run){r->sent[i], r->n_floats * sizeof(float)};
    }
    runs[n++] = (struct fl_run){r->mask, r->n_mask};
    return n;
}

static int result_digest(const struct fl_run *runs, size_t n, uint8_t sha[32])
{
    uint8_t each[N_RUNS][32];
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < n; i++) {
        rv = fl_sha256(runs[i].len > 0 ? runs[i].data : "", runs[i].len, each[i]);
    }
    return rv == FL_OK ? fl_sha256(each, n * sizeof(each[0]), sha) : rv;
}

int fl_result_save(const char *state_dir, const struct fl_result *r, struct fl_err *err)
{
    struct head head = {.version = RESULT_VERSION,
                        .attempt = r->key.attempt,
                        .round = r->key.round,
                        .samples = r->samples,
                        .steps = r->steps,
                        .train_loss = r->train_loss,
                        .previous_dot = r->previous_dot,
                        .flags = (r->has_received ? HAS_RECEIVED : 0u) |
                                 (r->has_trained ? HAS_TRAINED : 0u) |
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
                        .kept_attempt = r->kept.attempt};
    struct fl_run runs[1 + N_RUNS];
    char path[RESULT_PATH];
    size_t n;
    int rv = result_path(state_dir, path, err);

    FL_REQUIRE(r->n_sent <= RESULT_SENT_MAX);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(head.magic, RESULT_MAGIC, sizeof(head.magic));
    (void)memcpy(head.layout, r->digest, sizeof(head.layout));
    (void)memcpy(head.line, r->line, sizeof(head.line));
    runs[0] = (struct fl_run){&head, sizeof(head)};
    n = runs_of(r, runs + 1);
    rv = result_digest(runs + 1, n, head.sha256);
    if (rv == FL_OK) {
        rv = fl_sha256(&head, offsetof(struct head, head), head.head);
    }
    return rv == FL_OK ? fl_whole_write(path, runs, 1 + n, /* sync= */ true, err) : rv;
}

/* --- reading --- */

/* Of another version only magic and version are read. FL_EFORMAT: damaged. */
static int result_read_head(int fd, struct head *head)
{
    uint8_t sha[32];
    int rv;

    (void)memset(head, 0, sizeof(*head));
    rv = fl_fs_pread(fd, head, offsetof(struct head, attempt), 0);
    if (rv != FL_OK || head->version != RESULT_VERSION) {
        return rv;
    }
    rv = fl_fs_pread(fd, head, sizeof(*head), 0);
    if (rv == FL_OK) {
        rv = fl_sha256(head, offsetof(struct head, head), sha);
    }
    return rv == FL_OK && memcmp(sha, head->head, sizeof(sha)) != 0 ? FL_EFORMAT : rv;
}

static bool check_sizes(const struct head *head, uint64_t size)
{
    uint64_t body;

    if (head->n_units > FL_LAYOUT_MAX_UNITS || head->n_floats > FL_LAYOUT_MAX_FLOATS ||
        head->n_sent > RESULT_SENT_MAX || head->n_mask > FL_LAYOUT_MAX_FLOATS)
    {
        return false;
    }
    body = (head->n_units + head->n_floats * (1 + head->n_sent)) * sizeof(float) + head->n_mask;
    return size == sizeof(*head) + body;
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

static void take_head(const struct head *head, struct fl_result *r)
{
    r->key = (struct fl_round_key){head->round, head->attempt};
    r->samples = head->samples;
    r->steps = head->steps;
    r->train_loss = head->train_loss;
    r->previous_dot = head->previous_dot;
    r->has_received = (head->flags & HAS_RECEIVED) != 0;
    r->has_trained = (head->flags & HAS_TRAINED) != 0;
    r->pending = (head->flags & HAS_PENDING) != 0;
    r->has_kept = (head->flags & HAS_KEPT) != 0;
    r->kept = (struct fl_round_key){head->kept_round, (uint32_t)head->kept_attempt};
    r->received =
        (struct fl_evaluation){head->eval_samples, head->eval_correct, head->eval_loss_sum};
    r->trained = (struct fl_evaluation){head->trained_samples, head->trained_correct,
                                        head->trained_loss_sum};
    r->n_units = (size_t)head->n_units;
    r->n_floats = (size_t)head->n_floats;
    r->n_sent = (size_t)head->n_sent;
    r->n_mask = (size_t)head->n_mask;
    (void)memcpy(r->digest, head->layout, sizeof(r->digest));
    (void)memcpy(r->line, head->line, sizeof(r->line));
}

static int result_read_body(int fd, const struct head *head, struct fl_result *r)
{
    uint64_t offset = sizeof(*head);
    struct fl_run runs[N_RUNS];
    uint8_t sha[32];
    size_t n;
    size_t i;
    int rv = result_allocate(r);

    if (rv != FL_OK) {
        return rv;
    }
    n = runs_of(r, runs);
    for (i = 0; rv == FL_OK && i < n; i++) {
        rv = fl_fs_pread(fd, (void *)(uintptr_t)runs[i].data, runs[i].len, offset);
        offset += runs[i].len;
    }
    if (rv == FL_OK) {
        rv = result_digest(runs, n, sha);
    }
    return rv == FL_OK && memcmp(sha, head->sha256, sizeof(sha)) != 0 ? FL_EFORMAT : rv;
}

static int read_file(int fd, const char *path, struct fl_result *r, struct fl_err *err)
{
    struct head head;
    struct stat st;
    int rv = fstat(fd, &st) == 0 ? FL_OK : fl_err_from_errno(errno);

    if (rv == FL_OK) {
        rv = result_read_head(fd, &head);
    }
    if (rv == FL_OK && memcmp(head.magic, RESULT_MAGIC, sizeof(head.magic)) == 0 &&
        fl_whole_is_newer(head.version, RESULT_VERSION))
    {
        return fl_whole_newer(path, head.version, RESULT_VERSION, err);
    }
    if (rv == FL_OK &&
        (memcmp(head.magic, RESULT_MAGIC, sizeof(head.magic)) != 0 ||
         head.version != RESULT_VERSION || !check_sizes(&head, (uint64_t)st.st_size)))
    {
        rv = FL_EFORMAT;
    }
    if (rv == FL_OK) {
        take_head(&head, r);
        rv = result_read_body(fd, &head, r);
    }
    if (rv == FL_EFORMAT) {
        return fl_err_set(err, rv, "'%s' is a damaged result file", path);
    }
    return rv == FL_OK ? rv : fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
}

int fl_result_load(const char *state_dir, struct fl_result **ret, struct fl_err *err)
{
    struct fl_result *r;
    char path[RESULT_PATH];
    int fd;
    int rv = result_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int saved = errno;

        return fl_err_set(err, fl_err_from_errno(saved), "cannot open '%s': %s", path,
                          strerror(saved));
    }
    r = fl_result_new();
    rv = r != NULL ? read_file(fd, path, r, err) : FL_ENOMEM;
    (void)close(fd);
    if (rv != FL_OK) {
        fl_result_unref(r);
        return rv;
    }
    *ret = r;
    return FL_OK;
}

int fl_result_remove(const char *state_dir, struct fl_err *err)
{
    char path[RESULT_PATH];
    int rv = result_path(state_dir, path, err);

    if (rv == FL_OK) {
        rv = fl_fs_remove(path);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot remove '%s': %s", path, fl_strerror(rv));
        }
    }
    return rv;
}
