#include "client/store/own_summary.h"

#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/container/container.h"

#define SUMMARY_PATH 4096

/* Its field is the group size, its one section the summary. */
static const struct fl_container_kind own_summary_kind = {
    .name = "sent-sum", .version = 1, .max_sections = 1, .max_fields = sizeof(uint64_t)};

static int own_summary_path(const char *state_dir, char path[SUMMARY_PATH], struct fl_err *err)
{
    return fl_fs_join(path, SUMMARY_PATH, state_dir, "summary.bin") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
}

static int summary_damaged(const char *path, const struct fl_err *why, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT,
                      "'%s', the data summary that was sent, is damaged: no summary is sent "
                      "without it. Restore it from a backup; remove it only if its samples may be "
                      "summarised again (docs/security.md). %s",
                      path, fl_err_text(why, FL_EFORMAT));
}

/* Opens the file and checks its head. */
static int open_summary(const char *path, struct fl_container *ret, uint64_t *ret_group,
                        struct fl_err *err)
{
    struct fl_err why = {0};
    int rv = fl_container_open(path, &own_summary_kind, ret, &why);

    if (rv == FL_EFORMAT) {
        return summary_damaged(path, &why, err);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
    }
    if (ret->head.n != 1 || fl_container_fields(&ret->head, ret_group, sizeof(*ret_group)) != FL_OK)
    {
        fl_container_close(ret);
        return summary_damaged(path, &why, err);
    }
    return FL_OK;
}

int fl_summary_group(const char *state_dir, uint64_t *ret, struct fl_err *err)
{
    char path[SUMMARY_PATH];
    struct fl_container file;
    int rv = own_summary_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = open_summary(path, &file, ret, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_container_close(&file);
    return FL_OK;
}

static int summary_read_body(const struct fl_container *file, struct fl_buf *out,
                             struct fl_err *err)
{
    size_t len = (size_t)file->head.sections[0].bytes;
    struct fl_err why = {0};
    int rv = fl_buf_reserve(out, len);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read '%s': %s", file->path, fl_strerror(rv));
    }
    rv = fl_container_read(file, 0, out->data, &why);
    if (rv == FL_EFORMAT) {
        return summary_damaged(file->path, &why, err);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
    }
    out->len = len;
    return FL_OK;
}

int fl_summary_load(const char *state_dir, struct fl_buf *out, struct fl_err *err)
{
    char path[SUMMARY_PATH];
    struct fl_container file;
    uint64_t group;
    int rv = own_summary_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = open_summary(path, &file, &group, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = summary_read_body(&file, out, err);
    fl_container_close(&file);
    return rv;
}

int fl_summary_save(const char *state_dir, uint64_t group, const void *data, size_t len,
                    struct fl_err *err)
{
    const struct fl_container_part part = {"data", data, len};
    const struct fl_container_content content = {&group, sizeof(group), &part, 1};
    char path[SUMMARY_PATH];
    int rv = own_summary_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_container_replace(path, &own_summary_kind, &content, /* sync= */ true, err);
}
