/*
 * The collection of all data summaries, `fixed`, made from the clients' files when the first round
 * starts. It depends only on these files and the bound on their values, and stores a digest of
 * them: when a file is removed the collection is rebuilt, at the next start at the latest. So
 * removing the file is the only step that must be durable; a crash after it loses nothing.
 * Blocking; the caller serializes changes. Does not read the collection (summaries_read.c).
 */

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "server/core/summary_range.h"
#include "server/store/summaries_impl.h"

/* --- the clients' files --- */

struct summary_survey {
    struct fl_data_summary_info *list; /* in client order */
    size_t n, cap;
};

static int add_name(struct summary_survey *s, const char *name)
{
    int rv = fl_grow(&s->list, &s->cap, s->n, sizeof(*s->list));

    if (rv != FL_OK) {
        return rv;
    }
    s->list[s->n] = (struct fl_data_summary_info){.bound = (double)INFINITY};
    return fl_str_copy(s->list[s->n++].client, FL_NAME_MAX, name);
}

static int summary_by_name(const void *a, const void *b)
{
    const struct fl_data_summary_info *x = a;
    const struct fl_data_summary_info *y = b;

    return strcmp(x->client, y->client);
}

static int add_client(void *ctx, const char *folder, const char *file, struct fl_err *err)
{
    char name[FL_NAME_MAX];
    int rv;

    if (!fl__summary_client(file, name)) {
        return FL_OK;
    }
    rv = add_name(ctx, name);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot list folder '%s': %s", folder, fl_strerror(rv));
    }
    return FL_OK;
}

static int list_names(const char *dir, struct summary_survey *s, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    int rv;

    if (fl_fs_join(folder, sizeof(folder), dir, "summaries") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    rv = fl_fs_each(folder, add_client, s, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (s->n > 0) {
        qsort(s->list, s->n, sizeof(*s->list), summary_by_name);
    }
    return FL_OK;
}

/* The file of a client; `data` is NULL for the marker of a dropped summary. */
struct client_summary {
    uint8_t *data; /* owned */
    uint64_t bytes;
};

static int take_summary(const struct fl_container *file, const struct fl_summaries_rule *rule,
                        struct client_summary *ret, struct fl_err *err)
{
    uint8_t *data;
    int rv;

    if (file->head.n == 0) {
        return FL_OK;
    }
    ret->bytes = file->head.sections[0].bytes;
    if (ret->bytes > rule->max) {
        return fl_err_set(err, FL_ELIMIT, "'%s' is longer than %zu bytes", file->path, rule->max);
    }
    data = malloc((size_t)ret->bytes + 1);
    if (data == NULL) {
        return fl_err_set(err, FL_ENOMEM, "cannot read '%s': %s", file->path,
                          fl_strerror(FL_ENOMEM));
    }
    rv = fl_container_read(file, 0, data, err);
    if (rv != FL_OK) {
        free(data);
        return rv;
    }
    ret->data = data;
    return FL_OK;
}

/* Read the file of a client; FL_EFORMAT: damaged. `*ret` may have a length after an error too. */
static int read_one(const char *dir, const struct fl_summaries_rule *rule, const char *client,
                    struct client_summary *ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_container file;
    int rv = fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, err);

    *ret = (struct client_summary){.bytes = 0};
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_container_open(path, &fl__summary_kind, &file, err);
    if (rv != FL_OK) {
        return rv == FL_EVERSION ? FL_EFORMAT : rv;
    }
    rv = take_summary(&file, rule, ret, err);
    fl_container_close(&file);
    return rv;
}

static void leave_out(const struct fl_summaries_rule *rule, struct fl_data_summary_info *info,
                      enum fl_data_summary_state state, const char *why)
{
    info->state = state;
    if (rule->left_out != NULL) {
        rule->left_out(rule->ctx, info, why);
    }
}

/* Read and check the summary of a client; what is known of it is set after an error too. */
static int judge_summary(const char *dir, const struct fl_summaries_rule *rule,
                         struct fl_data_summary_info *info, struct fl_err *err)
{
    struct client_summary one;
    int rv = read_one(dir, rule, info->client, &one, err);

    info->bytes = one.bytes;
    if (rv != FL_OK) {
        return rv;
    }
    if (one.data == NULL) {
        info->state = FL_SUMMARY_DROPPED;
        return FL_OK;
    }
    info->state = one.bytes > 0 ? FL_SUMMARY_TAKEN : FL_SUMMARY_EMPTY;
    if (one.bytes > 0) {
        rv = rule->check(rule->ctx, one.data, (size_t)one.bytes, &info->largest, err);
    }
    free(one.data);
    return rv;
}

/* Drop the accepted summaries whose magnitude is out of range compared to the others. */
static int drop_out_of_range(const struct fl_summaries_rule *rule, struct summary_survey *s,
                             struct fl_err *err)
{
    double *largest = malloc((s->n + 1) * sizeof(*largest));
    double *bounds = malloc((s->n + 1) * sizeof(*bounds));
    size_t n = 0;
    size_t i;
    int rv = FL_ENOMEM;

    if (largest == NULL || bounds == NULL) {
        goto done;
    }
    for (i = 0; i < s->n; i++) {
        if (s->list[i].state == FL_SUMMARY_TAKEN) {
            largest[n++] = s->list[i].largest;
        }
    }
    rv = fl_summary_bounds(largest, n, rule->range, bounds);
    if (rv != FL_OK) {
        goto done;
    }
    n = 0;
    for (i = 0; i < s->n; i++) {
        struct fl_data_summary_info *info = &s->list[i];

        if (info->state == FL_SUMMARY_TAKEN) {
            info->bound = bounds[n++];
            if (info->largest > info->bound) {
                leave_out(rule, info, FL_SUMMARY_OUT_OF_RANGE, NULL);
            }
        }
    }
done:
    free(largest);
    free(bounds);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_strerror(rv));
    }
    return FL_OK;
}

static int survey_summaries(const char *dir, const struct fl_summaries_rule *rule,
                            struct summary_survey *s, struct fl_err *err)
{
    size_t i;
    int rv = list_names(dir, s, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < s->n; i++) {
        struct fl_err why = {0};

        rv = judge_summary(dir, rule, &s->list[i], &why);
        if (rv == FL_EFORMAT || rv == FL_ELIMIT) {
            /* Damaged, or made for another configuration: continue without it, as for a client
             * that sent none. */
            leave_out(rule, &s->list[i], FL_SUMMARY_UNFIT, fl_err_text(&why, rv));
        } else if (rv != FL_OK) {
            return fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
        }
    }
    return drop_out_of_range(rule, s, err);
}

int fl_summaries_list(const char *dir, const struct fl_summaries_rule *rule,
                      fl_summaries_list_cb *cb, void *ctx, struct fl_err *err)
{
    struct fl_summaries_rule silent = *rule;
    struct summary_survey s = {0};
    size_t i;
    int rv;

    silent.left_out = NULL;
    rv = survey_summaries(dir, &silent, &s, err);
    if (rv != FL_OK) {
        goto done;
    }
    for (i = 0; i < s.n; i++) {
        rv = cb(ctx, &s.list[i]);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    free(s.list);
    return rv;
}

/* --- the inputs of a collection --- */

/* Name and seal of a client's file; the seal stands for the contents. */
static int add_input(const char *dir, const char *client, struct fl_buf *out)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_container_head head = {.n = 0};
    uint64_t seal = 0; /* Damaged: the digest changes when the file is complete. */
    int fd;
    int rv = fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, NULL);

    if (rv != FL_OK) {
        return rv;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fl_err_from_errno(errno);
    }
    rv = fl_container_head_read(fd, path, &fl__summary_kind, &head, NULL);
    if (rv != FL_OK || fl_container_seal_read(fd, &head, &seal) != FL_OK) {
        seal = 0;
    }
    fl_container_head_done(&head);
    (void)close(fd);
    rv = fl_buf_add(out, client, strlen(client) + 1);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_add(out, &seal, sizeof(seal));
}

/* Digest of the files' names and seals, and of the bound. */
static int inputs_of(const char *dir, const struct fl_summaries_rule *rule,
                     const struct summary_survey *s, uint64_t *ret, struct fl_err *err)
{
    struct fl_buf all;
    size_t i;
    int rv;

    fl_buf_init(&all, SIZE_MAX);
    rv = fl_buf_add(&all, &rule->range, sizeof(rule->range));
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < s->n; i++) {
        rv = add_input(dir, s->list[i].client, &all);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = fl_checksum(all.data, all.len);
    fl_buf_done(&all);
    return FL_OK;
fail:
    fl_buf_done(&all);
    return fl_err_set(err, rv, "the data summaries in '%s/summaries': %s", dir, fl_strerror(rv));
}

/* --- writing --- */

static int write_collection(const char *dir, const struct fl_summaries_rule *rule,
                            const struct summary_survey *s, uint64_t inputs, struct fl_err *err)
{
    struct fl_container_part part = {.name = "data"};
    const struct fl_container_content content = {&inputs, sizeof(inputs), &part, 1};
    struct fl_container_writer *w = NULL;
    char path[FL__STORE_PATH_MAX];
    size_t i;
    int rv = fl__summaries_path(dir, FL__SUMMARIES_FIXED, "", path, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < s->n; i++) {
        part.bytes += s->list[i].state == FL_SUMMARY_TAKEN ? s->list[i].bytes : 0;
    }
    rv = fl_container_writer_create(path, &fl__summaries_kind, &content, &w, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < s->n; i++) {
        struct client_summary one;

        if (s->list[i].state != FL_SUMMARY_TAKEN) {
            continue;
        }
        rv = read_one(dir, rule, s->list[i].client, &one, err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl_container_writer_add(w, 0, one.data, (size_t)one.bytes, err);
        free(one.data);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    return fl_container_writer_publish(w, /* sync= */ true, err);
fail:
    fl_container_writer_abandon(w);
    return rv;
}

static int make_collection(const char *dir, const struct fl_summaries_rule *rule,
                           struct fl_err *err)
{
    struct summary_survey s = {0};
    uint64_t inputs = 0;
    int rv = survey_summaries(dir, rule, &s, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = inputs_of(dir, rule, &s, &inputs, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = write_collection(dir, rule, &s, inputs, err);
done:
    free(s.list);
    return rv;
}

int fl_summaries_fix(const char *dir, const struct fl_summaries_rule *rule, struct fl_err *err)
{
    return fl_summaries_fixed(dir) ? FL_OK : make_collection(dir, rule, err);
}

/* FL_OK: the collection is up to date; FL_ENOENT: it is not. */
static int is_current(const char *dir, const struct fl_summaries_rule *rule, struct fl_err *err)
{
    struct summary_survey s = {0};
    uint64_t was = 0;
    uint64_t now = 0;
    int rv = fl__summaries_made_of(dir, &was, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = list_names(dir, &s, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = inputs_of(dir, rule, &s, &now, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = was == now ? FL_OK : FL_ENOENT;
done:
    free(s.list);
    return rv;
}

int fl_summaries_renew(const char *dir, const struct fl_summaries_rule *rule, bool *ret_new,
                       struct fl_err *err)
{
    int rv;

    *ret_new = false;
    if (!fl_summaries_fixed(dir)) {
        return FL_OK;
    }
    rv = is_current(dir, rule, err);
    if (rv != FL_ENOENT) {
        return rv;
    }
    rv = make_collection(dir, rule, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_new = true;
    return FL_OK;
}
