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

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/core/summary_range.h"
#include "server/store/server_vectors.h"
#include "server/store/summaries_impl.h"

/* --- the clients' files --- */

struct summary_survey {
    struct fl_data_summary_info *list; /* in client order */
    size_t n, cap;
};

static int add_name(struct summary_survey *s, const char *name)
{
    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 64 : s->cap * 2;
        void *list = realloc(s->list, cap * sizeof(*s->list));

        if (list == NULL) {
            return FL_ENOMEM;
        }
        s->list = list;
        s->cap = cap;
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
    int rv = fl__summary_client(file, name) ? add_name(ctx, name) : FL_OK;

    return rv == FL_OK
               ? rv
               : fl_err_set(err, rv, "cannot list folder '%s': %s", folder, fl_strerror(rv));
}

static int list_names(const char *dir, struct summary_survey *s, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    int rv;

    if (fl_fs_join(folder, sizeof(folder), dir, "summaries") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    rv = fl_fs_each(folder, add_client, s, err);
    if (rv == FL_OK && s->n > 0) {
        qsort(s->list, s->n, sizeof(*s->list), summary_by_name);
    }
    return rv;
}

/* Read the file of a client; FL_EFORMAT: damaged, or a dropped summary. */
static int read_one(const char *dir, const struct fl_summaries_rule *rule, const char *client,
                    struct fl_buf *ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int rv = fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, err);

    *ret = (struct fl_buf){0};
    rv = rv == FL_OK ? fl_fs_read(path, rule->max + FL__SUMMARY_HEAD, ret, err) : rv;
    return rv == FL_OK && !fl__summary_is_whole(ret)
               ? fl_err_set(err, FL_EFORMAT, "its file '%s' is damaged", path)
               : rv;
}

static void leave_out(const struct fl_summaries_rule *rule, struct fl_data_summary_info *info,
                      enum fl_data_summary_state state, const char *why)
{
    info->state = state;
    if (rule->left_out != NULL) {
        rule->left_out(rule->ctx, info, why);
    }
}

static int survey_summary(const char *dir, const struct fl_summaries_rule *rule,
                          struct fl_data_summary_info *info, struct fl_err *err)
{
    struct fl_buf buf;
    struct fl_err why = {0};
    int rv = read_one(dir, rule, info->client, &buf, &why);

    info->bytes = buf.len > FL__SUMMARY_HEAD ? buf.len - FL__SUMMARY_HEAD : 0;
    if (rv == FL_OK && info->bytes > 0) {
        rv = rule->check(rule->ctx, buf.data + FL__SUMMARY_HEAD, (size_t)info->bytes,
                         &info->largest, &why);
    }
    if (rv == FL_OK) {
        info->state = info->bytes > 0 ? FL_SUMMARY_TAKEN : FL_SUMMARY_EMPTY;
    } else if (buf.len == FL__SUMMARY_HEAD && fl__summary_is_dropped(buf.data)) {
        info->state = FL_SUMMARY_DROPPED;
        rv = FL_OK;
    } else if (rv == FL_EFORMAT || rv == FL_ELIMIT) {
        /* Damaged, or made for another configuration: continue without it, as for a client that
         * sent none. */
        leave_out(rule, info, FL_SUMMARY_UNFIT, fl_err_text(&why, rv));
        rv = FL_OK;
    }
    fl_buf_done(&buf);
    return rv == FL_OK ? rv : fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
}

/* Drop the accepted summaries whose magnitude is out of range compared to the others. */
static int drop_out_of_range(const struct fl_summaries_rule *rule, struct summary_survey *s,
                             struct fl_err *err)
{
    double *largest = malloc((s->n + 1) * sizeof(*largest));
    double *bounds = malloc((s->n + 1) * sizeof(*bounds));
    size_t n = 0;
    size_t i;
    int rv = largest != NULL && bounds != NULL ? FL_OK : FL_ENOMEM;

    for (i = 0; rv == FL_OK && i < s->n; i++) {
        if (s->list[i].state == FL_SUMMARY_TAKEN) {
            largest[n++] = s->list[i].largest;
        }
    }
    rv = rv == FL_OK ? fl_summary_bounds(largest, n, rule->range, bounds) : rv;
    n = 0;
    for (i = 0; rv == FL_OK && i < s->n; i++) {
        struct fl_data_summary_info *info = &s->list[i];

        if (info->state == FL_SUMMARY_TAKEN) {
            info->bound = bounds[n++];
            if (info->largest > info->bound) {
                leave_out(rule, info, FL_SUMMARY_OUT_OF_RANGE, NULL);
            }
        }
    }
    free(largest);
    free(bounds);
    return rv == FL_OK ? rv : fl_err_set(err, rv, "%s", fl_strerror(rv));
}

static int survey_summaries(const char *dir, const struct fl_summaries_rule *rule,
                            struct summary_survey *s, struct fl_err *err)
{
    size_t i;
    int rv = list_names(dir, s, err);

    for (i = 0; rv == FL_OK && i < s->n; i++) {
        rv = survey_summary(dir, rule, &s->list[i], err);
    }
    return rv == FL_OK ? drop_out_of_range(rule, s, err) : rv;
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
    for (i = 0; rv == FL_OK && i < s.n; i++) {
        rv = cb(ctx, &s.list[i]);
    }
    free(s.list);
    return rv;
}

/* --- the inputs of a collection --- */

static int add_input(const char *dir, const char *client, struct fl_buf *out)
{
    char path[FL__STORE_PATH_MAX];
    uint8_t head[FL__SUMMARY_HEAD];
    int fd;
    int rv = fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, NULL);

    if (rv != FL_OK) {
        return rv;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fl_err_from_errno(errno);
    }
    if (fl_fs_pread(fd, head, sizeof(head), 0) != FL_OK) {
        (void)memset(head, 0,
                     sizeof(head)); /* Truncated: the digest changes when the file is complete. */
    }
    (void)close(fd);
    rv = fl_buf_add(out, client, strlen(client) + 1);
    return rv == FL_OK ? fl_buf_add(out, head, sizeof(head)) : rv;
}

/* Digest of the files' names and headers, which contain their checksums, and of the bound. */
static int inputs_of(const char *dir, const struct fl_summaries_rule *rule,
                     const struct summary_survey *s, uint64_t *ret, struct fl_err *err)
{
    struct fl_buf all;
    size_t i;
    int rv;

    fl_buf_init(&all, SIZE_MAX);
    rv = fl_buf_add(&all, &rule->range, sizeof(rule->range));
    for (i = 0; rv == FL_OK && i < s->n; i++) {
        rv = add_input(dir, s->list[i].client, &all);
    }
    if (rv == FL_OK) {
        *ret = fl_checksum(all.data, all.len);
    } else {
        rv = fl_err_set(err, rv, "the data summaries in '%s/summaries': %s", dir, fl_strerror(rv));
    }
    fl_buf_done(&all);
    return rv;
}

/* --- writing --- */

struct fixing {
    const char *dir;
    const struct fl_summaries_rule *rule;
    uint64_t inputs;
    int fd;
    struct fl__sums sums; /* of what was written */
};

static int append_summary(struct fixing *f, const struct fl_data_summary_info *info,
                          struct fl_err *err)
{
    struct fl_buf buf;
    int rv = read_one(f->dir, f->rule, info->client, &buf, err);

    if (rv == FL_OK) {
        rv = fl__sums_reserve(&f->sums, (size_t)info->bytes);
        if (rv == FL_OK) {
            rv = fl_fs_pwrite(f->fd, buf.data + FL__SUMMARY_HEAD, (size_t)info->bytes,
                              FL__SUMMARIES_HEAD + f->sums.bytes);
        }
        if (rv == FL_OK) {
            fl__sums_add(&f->sums, buf.data + FL__SUMMARY_HEAD, (size_t)info->bytes);
        } else {
            (void)fl_err_set(err, rv, "the data summaries in '%s': %s", f->dir, fl_strerror(rv));
        }
    }
    fl_buf_done(&buf);
    return rv;
}

/* Write the checksums after the summaries, and the header before them. */
static int seal_collection(struct fixing *f)
{
    uint8_t head[FL__SUMMARIES_HEAD];
    uint64_t checksum;
    size_t len;
    int rv;

    fl__sums_end(&f->sums);
    len = f->sums.n * sizeof(*f->sums.list);
    checksum = fl_checksum(f->sums.list, len);
    (void)memcpy(head, FL__SUMMARIES_MAGIC, 8);
    (void)memcpy(head + 8, &f->sums.bytes, 8);
    (void)memcpy(head + 16, &checksum, 8);
    (void)memcpy(head + 24, &f->inputs, 8);
    rv = fl_fs_pwrite(f->fd, f->sums.list, len, FL__SUMMARIES_HEAD + f->sums.bytes);
    rv = rv == FL_OK ? fl_fs_pwrite(f->fd, head, sizeof(head), 0) : rv;
    return rv == FL_OK && fdatasync(f->fd) != 0 ? fl_err_from_errno(errno) : rv;
}

static int write_collection(struct fixing *f, const struct summary_survey *s, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char tmp[FL__STORE_PATH_MAX];
    size_t i;
    int rv = fl__summaries_path(f->dir, FL__SUMMARIES_FIXED, "", path, err);

    rv = rv == FL_OK ? fl__summaries_path(f->dir, FL__SUMMARIES_FIXED, ".tmp", tmp, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    f->fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (f->fd < 0) {
        rv = fl_err_from_errno(errno);
        return fl_err_set(err, rv, "cannot create '%s': %s", tmp, strerror(errno));
    }
    for (i = 0; rv == FL_OK && i < s->n; i++) {
        rv = s->list[i].state == FL_SUMMARY_TAKEN ? append_summary(f, &s->list[i], err) : FL_OK;
    }
    if (rv == FL_OK) {
        rv = seal_collection(f);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot write '%s': %s", tmp, fl_strerror(rv));
        }
    }
    (void)close(f->fd);
    rv = rv == FL_OK ? fl_fs_publish(tmp, path, /* sync= */ true, err) : rv;
    if (rv != FL_OK) {
        (void)unlink(tmp);
    }
    return rv;
}

static int make_collection(const char *dir, const struct fl_summaries_rule *rule,
                           struct fl_err *err)
{
    struct fixing f = {.dir = dir, .rule = rule, .fd = -1};
    struct summary_survey s = {0};
    int rv = survey_summaries(dir, rule, &s, err);

    rv = rv == FL_OK ? inputs_of(dir, rule, &s, &f.inputs, err) : rv;
    rv = rv == FL_OK ? write_collection(&f, &s, err) : rv;
    free(s.list);
    fl__sums_done(&f.sums);
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

    rv = rv == FL_OK ? list_names(dir, &s, err) : rv;
    rv = rv == FL_OK ? inputs_of(dir, rule, &s, &now, err) : rv;
    free(s.list);
    return rv == FL_OK && was != now ? FL_ENOENT : rv;
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
    if (rv == FL_ENOENT) {
        rv = make_collection(dir, rule, err);
        *ret_new = rv == FL_OK;
    }
    return rv;
}
