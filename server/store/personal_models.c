/*
 * The personalized models of a round, all in one file, so that one rename publishes them all.
 * Writing and reading; blocking, each object belongs to one thread. Removing old files is in
 * personal_models_clean.c.
 *
 * The file is a container (libfl/container). Its fields are the round (8), the bytes of one model
 * (8), and the names of the clients, FL_NAME_MAX bytes each, zero padded, in client order; its
 * sections are their models in the same order, float32 in exported order.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/container/block_sums.h"
#include "libfl/container/container.h"
#include "server/store/store_files_impl.h"
#include "server/store/store_impl.h"

/* Most uploading clients of one round; personalization costs n^2, so real numbers are far lower. */
#define MAX_CLIENTS 100000

struct personal_fields {
    uint64_t round, bytes;
};

static const struct fl_container_kind personal_kind = {
    .name = "personal",
    .version = 1,
    .max_sections = MAX_CLIENTS,
    .max_fields = sizeof(struct personal_fields) + MAX_CLIENTS * FL_NAME_MAX};

int fl__personal_models_path(const char *dir, uint64_t round, const char *more, char *out,
                             size_t size, struct fl_err *err)
{
    int n = snprintf(out, size, "%s/personal_models/%06" PRIu64 FL__PERSONAL_MODELS_SUFFIX "%s",
                     dir, round, more);

    return n >= 0 && (size_t)n < size ? FL_OK
                                      : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

/* --- writing --- */

struct fl_personal_models_writer {
    struct fl_container_writer *file;
    bool scratch; /* not synced */
    size_t n;
    uint64_t bytes;
};

static int personal_no_memory(struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
}

/* The fields and sections of a new file, owned, free(); FL_ENOMEM, FL_ELIMIT. */
static int describe_models(const struct personal_fields *about, const char *const *names, size_t n,
                           uint8_t **ret_fields, struct fl_container_part **ret_parts)
{
    uint8_t *fields = calloc(1, sizeof(*about) + n * FL_NAME_MAX);
    struct fl_container_part *parts = calloc(n + 1, sizeof(*parts));
    size_t i;
    int rv = fields != NULL && parts != NULL ? FL_OK : FL_ENOMEM;

    if (rv != FL_OK) {
        goto fail;
    }
    (void)memcpy(fields, about, sizeof(*about));
    for (i = 0; i < n; i++) {
        rv = fl_str_copy((char *)fields + sizeof(*about) + i * FL_NAME_MAX, FL_NAME_MAX, names[i]);
        if (rv != FL_OK) {
            goto fail;
        }
        parts[i] = (struct fl_container_part){"model", NULL, about->bytes};
    }
    *ret_fields = fields;
    *ret_parts = parts;
    return FL_OK;
fail:
    free(fields);
    free(parts);
    return rv;
}

static int create_models_file(const char *path, const struct personal_fields *about,
                              const char *const *names, size_t n, struct fl_container_writer **ret,
                              struct fl_err *err)
{
    struct fl_container_content content = {.fields_len = sizeof(*about) + n * FL_NAME_MAX, .n = n};
    struct fl_container_part *parts = NULL;
    uint8_t *fields = NULL;
    int rv = describe_models(about, names, n, &fields, &parts);

    if (rv != FL_OK) {
        return personal_no_memory(err);
    }
    content.fields = fields;
    content.parts = parts;
    rv = fl_fs_remove(path);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot remove '%s': %s", path, fl_strerror(rv));
        goto done;
    }
    rv = fl_container_writer_create(path, &personal_kind, &content, ret, err);
done:
    free(fields);
    free(parts);
    return rv;
}

int fl_personal_models_create(const char *dir, uint64_t round, const char *const *names, size_t n,
                              uint64_t bytes, struct fl_personal_models_writer **ret,
                              struct fl_err *err)
{
    const struct personal_fields about = {round, bytes};
    struct fl_personal_models_writer *w;
    char path[FL__STORE_PATH_MAX];
    int rv;

    if (n > MAX_CLIENTS) {
        return fl_err_set(err, FL_ELIMIT, "%zu personal models are too many", n);
    }
    rv = fl__personal_models_path(dir, round, "", path, sizeof(path), err);
    if (rv != FL_OK) {
        return rv;
    }
    w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return personal_no_memory(err);
    }
    w->n = n;
    w->bytes = bytes;
    rv = create_models_file(path, &about, names, n, &w->file, err);
    if (rv != FL_OK) {
        fl_personal_models_abandon(w);
        return rv;
    }
    *ret = w;
    return FL_OK;
}

int fl_personal_models_write(struct fl_personal_models_writer *w, size_t client, uint64_t offset,
                             const void *data, size_t len, struct fl_err *err)
{
    uint64_t at;

    FL_REQUIRE(client < w->n);
    at = fl_container_writer_at(w->file, client);
    if (offset != at || len > w->bytes - offset) {
        return fl_err_set(err, FL_ERANGE,
                          "personalized model %zu goes on at byte %" PRIu64 " of %" PRIu64
                          ", not at %" PRIu64,
                          client, at, w->bytes, offset);
    }
    return fl_container_writer_add(w->file, client, data, len, err);
}

void fl_personal_models_scratch(struct fl_personal_models_writer *w)
{
    w->scratch = true;
}

int fl_personal_models_publish(struct fl_personal_models_writer *w, struct fl_err *err)
{
    size_t i;
    int rv;

    for (i = 0; i < w->n; i++) {
        uint64_t at = fl_container_writer_at(w->file, i);

        if (at != w->bytes) {
            rv = fl_err_set(err, FL_ESTATE,
                            "personalized model %zu has %" PRIu64 " of %" PRIu64 " bytes", i, at,
                            w->bytes);
            fl_personal_models_abandon(w);
            return rv;
        }
    }
    rv = fl_container_writer_publish(w->file, /* sync= */ !w->scratch, err);
    free(w);
    return rv;
}

void fl_personal_models_abandon(struct fl_personal_models_writer *w)
{
    if (w != NULL) {
        fl_container_writer_abandon(w->file);
        free(w);
    }
}

/* --- reading --- */

struct fl_personal_models {
    struct fl_file *file;
    struct fl_container_head head;
    uint64_t *sums;                   /* of all models, and the seal */
    const char (*names)[FL_NAME_MAX]; /* [head.n], in its fields */
    uint64_t bytes;
};

/* Are fields and sections those of the models of this round? */
static bool check_models(struct fl_personal_models *m, uint64_t round)
{
    struct personal_fields about;
    size_t i;

    if (m->head.fields_len != sizeof(about) + m->head.n * FL_NAME_MAX ||
        fl_file_size(m->file) != fl_container_size(&m->head))
    {
        return false;
    }
    (void)memcpy(&about, m->head.fields, sizeof(about));
    m->names = (const char(*)[FL_NAME_MAX])(m->head.fields + sizeof(about));
    for (i = 0; i < m->head.n; i++) {
        if (m->head.sections[i].bytes != m->bytes ||
            memchr(m->names[i], '\0', FL_NAME_MAX) == NULL || !fl_name_valid(m->names[i]))
        {
            return false;
        }
    }
    return about.round == round && about.bytes == m->bytes;
}

static int load_personal_models(struct fl_personal_models *m, const char *path, uint64_t round,
                                struct fl_err *err)
{
    int fd = fl__file_fd(m->file);
    int rv = fl_container_head_read(fd, path, &personal_kind, &m->head, err);

    if (rv != FL_OK) {
        return rv == FL_EVERSION ? FL_EFORMAT : rv;
    }
    if (!check_models(m, round)) {
        return fl_err_set(err, FL_EFORMAT, "%s", fl_strerror(FL_EFORMAT));
    }
    return fl_container_tail_read(fd, path, &m->head, &m->sums, err);
}

int fl_personal_models_open(const char *dir, uint64_t round, uint64_t bytes,
                            struct fl_personal_models **ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_err why = {0};
    struct fl_personal_models *m;
    int rv = fl__personal_models_path(dir, round, "", path, sizeof(path), err);

    if (rv != FL_OK) {
        return rv;
    }
    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return personal_no_memory(err);
    }
    m->bytes = bytes;
    rv = fl_file_open(path, &m->file, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = load_personal_models(m, path, round, &why);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv,
                         "'%s' does not hold the personalized models of round %" PRIu64 ": %s",
                         path, round, fl_err_text(&why, rv));
        goto fail;
    }
    *ret = m;
    return FL_OK;
fail:
    fl_personal_models_close(m);
    return rv;
}

size_t fl_personal_models_count(const struct fl_personal_models *m)
{
    return m->head.n;
}

const char *fl_personal_models_name(const struct fl_personal_models *m, size_t i)
{
    FL_REQUIRE(i < m->head.n);
    return m->names[i];
}

struct fl_file *fl_personal_models_file(const struct fl_personal_models *m, size_t i)
{
    size_t size = fl_block_sums_count(m->bytes) * sizeof(*m->sums);
    uint64_t *sums = NULL;

    FL_REQUIRE(i < m->head.n);
    if (size > 0) {
        sums = malloc(size);
        if (sums == NULL) {
            return NULL;
        }
        (void)memcpy(sums, m->sums + m->head.sections[i].block, size);
    }
    return fl__file_part(m->file, m->head.sections[i].start, m->bytes, sums);
}

int fl_personal_models_verify(const struct fl_personal_models *m, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < m->head.n; i++) {
        struct fl_file *file = fl_personal_models_file(m, i);
        int rv = file != NULL ? fl_file_verify(file) : FL_ENOMEM;

        fl_file_unref(file);
        if (rv != FL_OK) {
            return fl_err_set(err, rv, "the personalized model of '%s' cannot be used: %s",
                              m->names[i], rv == FL_EFORMAT ? "it is damaged" : fl_strerror(rv));
        }
    }
    return FL_OK;
}

/* The seal of the container covers its head and the checksums of all models, so the whole file. */
void fl_personal_models_seal(const struct fl_personal_models *m, char out[FL_PERSONAL_MODELS_SEAL])
{
    (void)snprintf(out, FL_PERSONAL_MODELS_SEAL, "%zu %016" PRIx64, m->head.n,
                   m->sums[m->head.n_blocks]);
}

int fl_personal_models_open_sealed(const char *dir, uint64_t round, uint64_t bytes,
                                   const char *seal, struct fl_personal_models **ret,
                                   struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char found[FL_PERSONAL_MODELS_SEAL] = "";
    struct fl_personal_models *m = NULL;
    int rv = fl__personal_models_path(dir, round, "", path, sizeof(path), err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_personal_models_open(dir, round, bytes, &m, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_personal_models_seal(m, found);
    rv = strcmp(found, seal) == 0
             ? fl_personal_models_verify(m, err)
             : fl_err_set(err, FL_EFORMAT,
                          "the personalized models of round %" PRIu64 " do not belong to its "
                          "model",
                          round);
    if (rv != FL_OK) {
        fl_personal_models_close(m);
        return fl_err_wrap(err, rv, "'%s'", path);
    }
    *ret = m;
    return FL_OK;
}

size_t fl_personal_models_find(const struct fl_personal_models *m, const char *name)
{
    size_t low = 0;
    size_t high = m->head.n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (strcmp(m->names[mid], name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < m->head.n && strcmp(m->names[low], name) == 0 ? low : m->head.n;
}

void fl_personal_models_close(struct fl_personal_models *m)
{
    if (m == NULL) {
        return;
    }
    fl_file_unref(m->file);
    free(m->sums);
    fl_container_head_done(&m->head);
    free(m);
}
