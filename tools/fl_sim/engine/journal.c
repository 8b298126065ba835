/*
 * The journal of a simulated run (journal.h): a container file of records (libfl/container). Writes
 * are buffered until a commit and are not synced. One thread, that of the federation.
 */
#include "tools/fl_sim/engine/journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/container/container.h"

/* Larger than any record: the divergences of a model with the maximum number of units. */
#define RECORD_MAX (UINT32_C(64) << 20)

enum record_kind {
    RECORD_JOB = 1,
    RECORD_AGGREGATED,
    RECORD_EVALUATED,
    RECORD_COMMIT,
    RECORD_DOWNLOAD
};

static const struct fl_container_kind journal_kind = {
    .name = "journal", .version = 5, .flags = FL_CONTAINER_RECORDS};

/* The result of a job; fl_job_answer_encode() follows. */
struct job_record {
    uint32_t job, client;
    struct fl_round_key key;
};

/* The result of an aggregation; the distances follow, and what was left of each weight. */
struct aggregated_record {
    uint64_t n_distance, n_left, collection_bytes;
    double effective, self_weight, robust_used, influence;
    uint64_t robust_out, clipped;
    char robust_clients[FL_ROBUST_CLIENTS_TEXT];
};

/* The size of a download that depends on the model that the client held. */
struct download_record {
    uint64_t client, round, bytes;
};

struct fl_journal {
    char path[4096];
    FILE *file;
    uint64_t committed; /* replay ends with the commit of this round */
    bool replays;
    uint64_t end;    /* offset of the end of that commit */
    uint8_t *record; /* the last record read, [len] */
    size_t len, cap;
    struct fl_buf answer;                        /* the last one written */
    char robust_clients[FL_ROBUST_CLIENTS_TEXT]; /* of the last aggregation that was read */
};

static int journal_file_error(const struct fl_journal *j, struct fl_err *err)
{
    int e = errno;

    return fl_err_set(err, e == ENOSPC ? FL_ENOSPC : FL_EIO, "%s: %s", j->path, strerror(e));
}

/* --- reading --- */

/* Reads the next record into j->record; FL_ENOENT: no complete one. */
static int journal_read_record(struct fl_journal *j, struct fl_container_record *ret)
{
    uint8_t *grown;

    if (fread(ret, sizeof(*ret), 1, j->file) != 1 || ret->len > RECORD_MAX) {
        return FL_ENOENT;
    }
    if (ret->len > j->cap) {
        grown = realloc(j->record, ret->len);
        if (grown == NULL) {
            return FL_ENOMEM;
        }
        j->record = grown;
        j->cap = ret->len;
    }
    if (fread(j->record, 1, ret->len, j->file) != ret->len ||
        fl_container_record_sum(ret->kind, j->record, ret->len) != ret->sum)
    {
        return FL_ENOENT;
    }
    j->len = ret->len;
    return FL_OK;
}

/* Finds the end of the commit of j->committed. */
static int journal_find_end(struct fl_journal *j, struct fl_err *err)
{
    struct fl_container_record head;
    uint64_t at = FL_CONTAINER_PAGE;
    uint64_t round = 0;
    int rv;

    while ((rv = journal_read_record(j, &head)) == FL_OK) {
        at += sizeof(head) + head.len;
        if (head.kind == RECORD_COMMIT && head.len == sizeof(round)) {
            (void)memcpy(&round, j->record, sizeof(round));
            j->end = round == j->committed ? at : j->end;
        }
    }
    if (rv != FL_ENOENT) {
        return rv;
    }
    return j->end > 0
               ? FL_OK
               : fl_err_set(
                     err, FL_ESTATE,
                     "%s ends before round %llu, which is committed in the folder beside it: "
                     "remove both to run this trial from its start",
                     j->path, (unsigned long long)j->committed);
}

/* Reads the next record and checks its kind. */
static int journal_take(struct fl_journal *j, uint32_t kind, size_t least, struct fl_err *err)
{
    struct fl_container_record head = {.kind = 0};
    int rv = journal_read_record(j, &head);

    if (rv != FL_OK && rv != FL_ENOENT) {
        return rv;
    }
    if (rv == FL_ENOENT || head.kind != kind || head.len < least) {
        return fl_err_set(err, FL_ESTATE,
                          "%s does not match this experiment: it was written by another "
                          "version or for other settings; remove the trial's folder",
                          j->path);
    }
    return FL_OK;
}

static int journal_take_floats(const struct fl_journal *j, size_t at, size_t n, size_t size,
                               void **ret)
{
    void *copy = malloc(n * size + 1);

    if (copy == NULL) {
        return FL_ENOMEM;
    }
    if (at > j->len || n > (j->len - at) / size) {
        free(copy);
        return FL_EFORMAT;
    }
    (void)memcpy(copy, j->record + at, n * size);
    *ret = copy;
    return FL_OK;
}

int fl_journal_take(struct fl_journal *j, enum fl_job_kind kind, uint32_t client,
                    struct fl_round_key key, struct fl_job_answer *ret, struct fl_err *err)
{
    struct job_record r;
    int rv = journal_take(j, RECORD_JOB, sizeof(r), err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(&r, j->record, sizeof(r));
    if (r.job != (uint32_t)kind || r.client != client || r.key.round != key.round ||
        r.key.attempt != key.attempt)
    {
        return fl_err_set(err, FL_ESTATE,
                          "%s does not match this experiment: remove the trial's folder", j->path);
    }
    return fl_job_answer_decode(j->record + sizeof(r), j->len - sizeof(r), ret, err);
}

int fl_journal_take_aggregated(struct fl_journal *j, struct fl_event *ret, double **ret_numbers,
                               struct fl_err *err)
{
    struct aggregated_record r;
    void *numbers = NULL;
    int rv = journal_take(j, RECORD_AGGREGATED, sizeof(r), err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(&r, j->record, sizeof(r));
    if (r.n_distance > RECORD_MAX || r.n_left > RECORD_MAX) {
        return FL_EFORMAT;
    }
    if (r.n_distance + r.n_left > 0) {
        rv = journal_take_floats(j, sizeof(r), (size_t)(r.n_distance + r.n_left), sizeof(double),
                                 &numbers);
        if (rv != FL_OK) {
            return rv;
        }
    }
    ret->u.aggregated.distance = r.n_distance > 0 ? numbers : NULL;
    ret->u.aggregated.left = r.n_left > 0 ? (const double *)numbers + r.n_distance : NULL;
    ret->u.aggregated.influence = r.influence;
    ret->u.aggregated.effective = r.effective;
    ret->u.aggregated.self_weight = r.self_weight;
    ret->u.aggregated.robust_used = r.robust_used;
    ret->u.aggregated.clipped = (uint32_t)r.clipped;
    ret->u.aggregated.robust_out = (uint32_t)r.robust_out;
    ret->u.aggregated.collection_bytes = r.collection_bytes;
    r.robust_clients[sizeof(r.robust_clients) - 1] = '\0';
    (void)memcpy(j->robust_clients, r.robust_clients, sizeof(j->robust_clients));
    ret->u.aggregated.robust_clients = j->robust_clients;
    *ret_numbers = numbers;
    return FL_OK;
}

int fl_journal_take_download(struct fl_journal *j, uint32_t client, uint64_t round,
                             uint64_t *ret_bytes, struct fl_err *err)
{
    struct download_record r;
    int rv = journal_take(j, RECORD_DOWNLOAD, sizeof(r), err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(&r, j->record, sizeof(r));
    if (r.client != client || r.round != round) {
        return fl_err_set(err, FL_ESTATE,
                          "%s does not match this experiment: remove the trial's folder", j->path);
    }
    *ret_bytes = r.bytes;
    return FL_OK;
}

int fl_journal_take_evaluated(struct fl_journal *j, struct fl_journal_evaluated *ret,
                              struct fl_err *err)
{
    int rv = journal_take(j, RECORD_EVALUATED, sizeof(*ret), err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(ret, j->record, sizeof(*ret));
    return FL_OK;
}

int fl_journal_take_commit(struct fl_journal *j, uint64_t round, struct fl_err *err)
{
    uint64_t known = 0;
    int rv = journal_take(j, RECORD_COMMIT, sizeof(known), err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(&known, j->record, sizeof(known));
    if (known != round) {
        return fl_err_set(err, FL_ESTATE, "%s has round %llu where round %llu is committed",
                          j->path, (unsigned long long)known, (unsigned long long)round);
    }
    if (round == j->committed) { /* End of the replay: records are written from here on. */
        j->replays = false;
        if (fseeko(j->file, (off_t)j->end, SEEK_SET) != 0) {
            return journal_file_error(j, err);
        }
    }
    return FL_OK;
}

/* --- writing --- */

/* A write error is sticky: the next commit returns it. */
static int journal_put(struct fl_journal *j, uint32_t kind, const void *head, size_t head_len,
                       const void *tail, size_t tail_len)
{
    size_t len = head_len + tail_len;
    struct fl_container_record h = {kind, (uint32_t)len, 0};
    uint8_t *grown;

    if (len > j->cap) {
        grown = realloc(j->record, len);
        if (grown == NULL) {
            return FL_ENOMEM;
        }
        j->record = grown;
        j->cap = len;
    }
    (void)memcpy(j->record, head, head_len);
    if (tail_len > 0) {
        (void)memcpy(j->record + head_len, tail, tail_len);
    }
    h.sum = fl_container_record_sum(kind, j->record, len);
    (void)fwrite(&h, sizeof(h), 1, j->file);
    (void)fwrite(j->record, 1, len, j->file);
    return FL_OK;
}

int fl_journal_put(struct fl_journal *j, enum fl_job_kind kind, uint32_t client,
                   struct fl_round_key key, const struct fl_job_answer *answer)
{
    struct job_record r;
    int rv;

    fl_buf_clear(&j->answer);
    rv = fl_job_answer_encode(answer, &j->answer);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memset(&r, 0, sizeof(r)); /* Zeroed including padding, as it is written to the file. */
    r.job = (uint32_t)kind;
    r.client = client;
    r.key.round = key.round;
    r.key.attempt = key.attempt;
    return journal_put(j, RECORD_JOB, &r, sizeof(r), j->answer.data, j->answer.len);
}

int fl_journal_put_aggregated(struct fl_journal *j, const struct fl_event *event, size_t n_parts)
{
    const double *distance = event->u.aggregated.distance;
    const double *left = event->u.aggregated.left;
    struct aggregated_record r = {.n_distance = distance != NULL ? n_parts : 0,
                                  .n_left = left != NULL ? n_parts : 0,
                                  .influence = event->u.aggregated.influence,
                                  .collection_bytes = event->u.aggregated.collection_bytes,
                                  .effective = event->u.aggregated.effective,
                                  .self_weight = event->u.aggregated.self_weight,
                                  .robust_used = event->u.aggregated.robust_used,
                                  .robust_out = event->u.aggregated.robust_out,
                                  .clipped = event->u.aggregated.clipped};
    int rv;

    if (event->u.aggregated.robust_clients != NULL) {
        (void)snprintf(r.robust_clients, sizeof(r.robust_clients), "%s",
                       event->u.aggregated.robust_clients);
    }
    fl_buf_clear(&j->answer);
    rv = fl_buf_add(&j->answer, distance, (size_t)r.n_distance * sizeof(*distance));
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_buf_add(&j->answer, left, (size_t)r.n_left * sizeof(*left));
    if (rv != FL_OK) {
        return rv;
    }
    return journal_put(j, RECORD_AGGREGATED, &r, sizeof(r), j->answer.data, j->answer.len);
}

int fl_journal_put_download(struct fl_journal *j, uint32_t client, uint64_t round, uint64_t bytes)
{
    const struct download_record r = {client, round, bytes};

    return journal_put(j, RECORD_DOWNLOAD, &r, sizeof(r), NULL, 0);
}

int fl_journal_put_evaluated(struct fl_journal *j, const struct fl_journal_evaluated *evaluated)
{
    return journal_put(j, RECORD_EVALUATED, evaluated, sizeof(*evaluated), NULL, 0);
}

int fl_journal_put_commit(struct fl_journal *j, uint64_t round, struct fl_err *err)
{
    int rv = journal_put(j, RECORD_COMMIT, &round, sizeof(round), NULL, 0);

    if (rv != FL_OK) {
        return rv;
    }
    return fflush(j->file) != 0 || ferror(j->file) != 0 ? journal_file_error(j, err) : FL_OK;
}

/* --- open and close --- */

bool fl_journal_replays(const struct fl_journal *journal)
{
    return journal->replays;
}

static int journal_begin(struct fl_journal *j, struct fl_err *err)
{
    const struct fl_container_content nothing = {.n = 0};
    struct fl_container_head head;
    uint8_t *raw;
    int rv = fl_container_head_make(&journal_kind, &nothing, &head);

    if (rv != FL_OK) {
        return rv;
    }
    raw = fl_container_head_pack(&head);
    if (raw == NULL) {
        rv = FL_ENOMEM;
        goto done;
    }
    j->file = fopen(j->path, "w+be");
    if (j->file == NULL || fwrite(raw, (size_t)head.start, 1, j->file) != 1 || fflush(j->file) != 0)
    {
        rv = journal_file_error(j, err);
    }
done:
    free(raw);
    fl_container_head_done(&head);
    return rv;
}

static int journal_check_head(const struct fl_journal *j, struct fl_err *err)
{
    struct fl_container_head head;
    struct fl_err why = {0};
    int rv = fl_container_head_read(fileno(j->file), j->path, &journal_kind, &head, &why);

    if (rv == FL_EFORMAT) {
        return fl_err_set(err, rv, "%s is not a journal of fl-sim: %s", j->path,
                          fl_err_text(&why, rv));
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
    }
    fl_container_head_done(&head);
    return FL_OK;
}

static int journal_resume(struct fl_journal *j, struct fl_err *err)
{
    int rv;

    j->file = fopen(j->path, "r+be");
    if (j->file == NULL) {
        return fl_err_set(err, errno == ENOENT ? FL_ESTATE : FL_EIO,
                          "%s: %s, but the folder beside it has committed %llu rounds: remove the "
                          "trial's folder",
                          j->path, strerror(errno), (unsigned long long)j->committed);
    }
    rv = journal_check_head(j, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (fseeko(j->file, FL_CONTAINER_PAGE, SEEK_SET) != 0) {
        return journal_file_error(j, err);
    }
    rv = journal_find_end(j, err);
    if (rv != FL_OK) {
        return rv;
    }
    j->replays = true;
    if (ftruncate(fileno(j->file), (off_t)j->end) != 0 ||
        fseeko(j->file, FL_CONTAINER_PAGE, SEEK_SET) != 0)
    {
        return journal_file_error(j, err);
    }
    return FL_OK;
}

int fl_journal_open(const char *path, uint64_t committed, struct fl_journal **ret,
                    struct fl_err *err)
{
    struct fl_journal *j = calloc(1, sizeof(*j));
    int n;
    int rv;

    if (j == NULL) {
        return FL_ENOMEM;
    }
    j->committed = committed;
    fl_buf_init(&j->answer, SIZE_MAX / 2);
    n = snprintf(j->path, sizeof(j->path), "%s", path);
    rv = n < 0 || (size_t)n >= sizeof(j->path)
             ? fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path)
         : committed == 0 ? journal_begin(j, err)
                          : journal_resume(j, err);
    if (rv != FL_OK) {
        fl_journal_close(j);
        return rv;
    }
    *ret = j;
    return FL_OK;
}

void fl_journal_close(struct fl_journal *journal)
{
    if (journal != NULL) {
        if (journal->file != NULL) {
            (void)fclose(journal->file);
        }
        fl_buf_done(&journal->answer);
        free(journal->record);
        free(journal);
    }
}
